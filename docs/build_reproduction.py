"""Fill docs/reproduction.template.md with the results in docs/reproduction: python docs/build_reproduction.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from operator import ge, le
from pathlib import Path
from typing import NamedTuple

from ngp.files import markdown_table, write_whole
from ngp.paper.catalogue import EXPERIMENTS

DOCS = Path(__file__).parent
RESULTS = DOCS / "reproduction"
SIGNS: dict[Callable[[float, float], bool], str] = {le: "at most", ge: "at least"}


class Claim(NamedTuple):
    """What a figure of a table should be."""

    text: str
    table: str
    row: dict[str, str]
    column: str
    compare: Callable[[float, float], bool]
    bound: float
    published: str = ""


def row(data: str, method: str, stop: str = "") -> dict[str, str]:
    return {"data": data, "method": f"NGP + {method}{stop}"}


T1, T1_SOUND = "table1-published", "table1-sound"
CLAIMS = [
    Claim("artificial data as published, SSFN: FPSR", T1, row("artificial", "SSFN", ", η = 0.06"), "fpsr", le, 0.016, "0.016"),
    Claim("the same: FNSR", T1, row("artificial", "SSFN", ", η = 0.06"), "fnsr", le, 0.0, "0.00"),
    Claim("the same: P-NME in dB", T1, row("artificial", "SSFN", ", η = 0.06"), "p_nme", le, -12.0, "−12.01"),
    Claim("artificial data as published, MLP: FPSR", T1, row("artificial", "MLP", ", η = 0.06"), "fpsr", le, 0.0, "0.000"),
    Claim("the same: FNSR", T1, row("artificial", "MLP", ", η = 0.06"), "fnsr", le, 0.02, "0.02"),
    Claim("the same: P-NME in dB", T1, row("artificial", "MLP", ", η = 0.06"), "p_nme", le, -10.57, "−10.57"),
    Claim("BOSTON as published, η = 0.06, SSFN: FPSR", T1, row("BOSTON", "SSFN", ", η = 0.06"), "fpsr", le, 0.12, "0.120"),
    Claim("the same: FNSR", T1, row("BOSTON", "SSFN", ", η = 0.06"), "fnsr", le, 0.45, "0.45"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "SSFN", ", η = 0.06"), "p_nme", le, -13.8, "−13.82"),
    Claim("BOSTON as published, η = 0.005, SSFN: FPSR", T1, row("BOSTON", "SSFN", ", η = 0.005"), "fpsr", le, 0.12, "0.120"),
    Claim("the same: FNSR", T1, row("BOSTON", "SSFN", ", η = 0.005"), "fnsr", le, 0.45, "0.45"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "SSFN", ", η = 0.005"), "p_nme", le, -13.8, "−13.82"),
    Claim("BOSTON as published, 8 features, SSFN: FPSR", T1, row("BOSTON", "SSFN", ", 8 features"), "fpsr", le, 0.12, "0.120"),
    Claim("the same: FNSR", T1, row("BOSTON", "SSFN", ", 8 features"), "fnsr", le, 0.45, "0.45"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "SSFN", ", 8 features"), "p_nme", le, -13.8, "−13.82"),
    Claim("BOSTON as published, η = 0.06, MLP: FPSR", T1, row("BOSTON", "MLP", ", η = 0.06"), "fpsr", le, 0.28, "0.280"),
    Claim("the same: FNSR", T1, row("BOSTON", "MLP", ", η = 0.06"), "fnsr", le, 0.42, "0.42"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "MLP", ", η = 0.06"), "p_nme", le, -7.811, "−7.81"),
    Claim("BOSTON as published, η = 0.005, MLP: FPSR", T1, row("BOSTON", "MLP", ", η = 0.005"), "fpsr", le, 0.28, "0.280"),
    Claim("the same: FNSR", T1, row("BOSTON", "MLP", ", η = 0.005"), "fnsr", le, 0.42, "0.42"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "MLP", ", η = 0.005"), "p_nme", le, -7.811, "−7.81"),
    Claim("BOSTON as published, 10 features, MLP: FPSR", T1, row("BOSTON", "MLP", ", 10 features"), "fpsr", le, 0.28, "0.280"),
    Claim("the same: FNSR", T1, row("BOSTON", "MLP", ", 10 features"), "fnsr", le, 0.42, "0.42"),
    Claim("the same: P-NME in dB", T1, row("BOSTON", "MLP", ", 10 features"), "p_nme", le, -7.811, "−7.81"),
    Claim("artificial data, sound, SSFN: FPSR", T1_SOUND, row("artificial", "SSFN"), "fpsr", le, 0.02),
    Claim("the same: FNSR", T1_SOUND, row("artificial", "SSFN"), "fnsr", le, 0.02),
    Claim("BOSTON, sound, SSFN: P-NME in dB", T1_SOUND, row("BOSTON", "SSFN"), "p_nme", le, -15.5),
    *(
        Claim(f"MNIST, 40 % of the pixels, {protocol}, {name}: test accuracy in %", f"table2-{protocol}",
              {"method": method}, "test", ge, bound, published)
        for protocol in ("published", "sound")
        for name, method, bound, published in (
            ("SSFN", "NGP + SSFN", 88, "86.45"), ("CNN", "NGP + CNN, 4 × 4", 93, "86.25")
        )
    ),
    *(
        Claim(f"{law}, sound: all features found from J", "fig3-sound", {"data": law.lower()}, "phase_change", le,
              published / 3, f"about {published}")
        for law, published in (("Planck", 130), ("Ohm", 220), ("Gravitation", 330))
    ),
    *(
        Claim(f"{law}, {protocol}: runs of 10 with the knee at the true number", f"fig4-{protocol}",
              {"law": law.lower()}, "knees", ge, 10)
        for protocol in ("published", "sound")
        for law in ("Planck", "Ohm", "Gravitation")
    ),
]  # fmt: skip


def read_table(name: str) -> list[dict[str, str]]:
    """Rows of a table; the comment above them is left out."""
    lines = (RESULTS / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def find(name: str, row: dict[str, str]) -> dict[str, str]:
    """The only row with these labels."""
    (found,) = (each for each in read_table(name) if row.items() <= each.items())
    return found


def verdicts() -> str:
    """What was promised, what the paper has, and what came out."""
    rows = []
    for claim in CLAIMS:
        if not (RESULTS / f"{claim.table}.csv").exists():
            continue
        text = find(claim.table, claim.row)[claim.column]
        met = text != "" and claim.compare(float(text), claim.bound)
        wanted = f"{SIGNS[claim.compare]} {claim.bound:.4g}".replace("-", "−")
        shown = f"{float(text):.4g}".replace("-", "−") if text else "–"
        rows.append([claim.text, claim.published, wanted, shown, "yes" if met else "**no**"])
    for protocol in ("published", "sound"):
        if (RESULTS / f"fig5-{protocol}.csv").exists():
            below = all(
                ngp < other for size in range(1, 5) for ngp, *others in [orders(protocol, size)] for other in others
            )
            text = f"artificial data, {protocol}: error of NGP's order below random and reversed at 1 to 4 features"
            rows.append([text, "yes", "yes", "yes" if below else "no", "yes" if below else "**no**"])
    return markdown_table(["figure", "published", "wanted", "measured", "met"], rows)


def orders(protocol: str, size: int) -> list[float]:
    """Test NME with so many features in NGP's, a random and the reversed order."""
    row = find(f"fig5-{protocol}", {"with": f"{size} feature{'s' * (size > 1)}"})
    return [float(row[key]) for key in ("test_nme", "random_nme", "reversed_nme")]


def results(name: str) -> str:
    """The tables and pictures of an experiment, for both protocols."""
    parts = []
    for protocol, heading in (("published", "As published"), ("sound", "Sound")):
        path = RESULTS / f"{name}-{protocol}.md"
        text = f"Not run in full yet: `ngp reproduce {name} --protocol {protocol}`."
        if path.exists():
            text = path.read_text().split("\n", 2)[2].strip()  # the title is above already
        parts += [f"### {heading}", re.sub(r"\]\((?=[\w-]+\.png\))", "](reproduction/", text)]
    return "\n\n".join(parts)


def document() -> str:
    """The template with its blanks filled in."""
    fill: dict[str, Callable[[str], str]] = {
        "verdicts": lambda _: verdicts(),
        "title": lambda name: f"## {EXPERIMENTS[name].title}",
        "results": results,
    }
    template = (DOCS / "reproduction.template.md").read_text()
    return re.sub(r"\{\{(\w+) ?(\w*)\}\}", lambda blank: fill[blank[1]](blank[2]), template)


def main() -> None:
    target = DOCS / "reproduction.md"
    write_whole(target, document().encode())
    print(target)


if __name__ == "__main__":
    main()
