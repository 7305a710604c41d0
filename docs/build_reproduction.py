"""Fill docs/reproduction.template.md with the results in docs/reproduction: python docs/build_reproduction.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from operator import ge, le
from pathlib import Path
from typing import NamedTuple

from ngp.io import markdown_table, write_whole
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


def regression(data: str, network: str, stop: str, *bounds: float) -> list[Claim]:
    """FPSR, FNSR and P-NME of a row of table 1, as published."""
    row = {"data": data, "method": f"NGP + {network}, {stop}"}
    names = {"fpsr": "FPSR", "fnsr": "FNSR", "p_nme": "P-NME in dB"}
    return [
        Claim(f"{data}, published, {network}, {stop}: {name}", "table1-published", row, key, le, bound)
        for (key, name), bound in zip(names.items(), bounds, strict=True)
    ]


def sound(data: str, column: str, name: str, bound: float) -> Claim:
    row = {"data": data, "method": "NGP + SSFN"}
    return Claim(f"{data}, sound, SSFN: {name}", "table1-sound", row, column, le, bound)


CLAIMS = [
    *regression("artificial", "SSFN", "η = 0.06", 0.016, 0.0, -12.0),
    *regression("artificial", "MLP", "η = 0.06", 0.0, 0.02, -10.57),
    *(
        claim
        for stop in ("η = 0.06", "η = 0.005", "8 features")
        for claim in regression("BOSTON", "SSFN", stop, 0.12, 0.45, -13.8)
    ),
    *(
        claim
        for stop in ("η = 0.06", "η = 0.005", "10 features")
        for claim in regression("BOSTON", "MLP", stop, 0.28, 0.42, -7.811)
    ),
    sound("artificial", "fpsr", "FPSR", 0.02),
    sound("artificial", "fnsr", "FNSR", 0.02),
    sound("BOSTON", "p_nme", "P-NME in dB", -15.5),
    *(
        Claim(
            f"MNIST, 40 % of the pixels, {protocol}, {method}: test accuracy in %",
            f"table2-{protocol}",
            {"method": method},
            "test",
            ge,
            bound,
        )
        for protocol in ("published", "sound")
        for method, bound in (("NGP + SSFN", 88), ("NGP + CNN, 4 × 4", 93))
    ),
    *(
        Claim(
            f"{law}, {protocol}: all features found from J",
            f"fig3-{protocol}",
            {"data": law},
            "phase_change",
            le,
            bound,
        )
        for protocol in ("published", "sound")
        for law, bound in (("planck", 130 / 3), ("ohm", 220 / 3), ("gravitation", 330 / 3))
    ),
    *(
        Claim(
            f"{law}, {protocol}: runs of 10 with the knee at the true number",
            f"fig4-{protocol}",
            {"law": law},
            "knees",
            ge,
            10,
        )
        for protocol in ("published", "sound")
        for law in ("planck", "ohm", "gravitation")
    ),
]


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
        found = find(claim.table, claim.row)
        text = found[claim.column]
        met = text != "" and claim.compare(float(text), claim.bound)
        wanted = f"{SIGNS[claim.compare]} {shown(claim.bound)}"
        published = found.get(f"{claim.column}_published", "")
        rows.append([claim.text, shown(published), wanted, shown(text) or "–", "yes" if met else "**no**"])
    for protocol in ("published", "sound"):
        if (RESULTS / f"fig5-{protocol}.csv").exists():
            below = all(
                ngp < other for size in range(1, 5) for ngp, *others in [orders(protocol, size)] for other in others
            )
            text = f"artificial data, {protocol}: error of NGP's order below random and reversed at 1 to 4 features"
            rows.append([text, "yes", "yes", "yes" if below else "no", "yes" if below else "**no**"])
    return markdown_table(["figure", "published", "wanted", "measured", "met"], rows)


def shown(figure: float | str) -> str:
    """A figure with five digits, so that no narrow miss looks like a hit; or nothing."""
    return f"{float(figure):.5g}".replace("-", "−") if figure != "" else ""


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
