"""Picture and lines in README.md about the comparison with other packages: python -m docs.build_peers."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peer_tables import NAMES, NGP, RULES, difference, score_name
from ngp.io import write_whole
from ngp.report.style import COLOURS, GREY, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "peers.png"
BLOCK = re.compile(r"(?<=<!-- made by docs\.build_peers -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def results() -> dict[str, Any]:
    """What `make bench-peers` measured."""
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))
    return found


def found_line(found: Mapping[str, Any]) -> str:
    """How well the relevant columns are found: NGP, the best peer and the quickest one."""
    rows = {row["method"]: row for row in found["designs"]["artificial"]["rows"] if row["rule"] == "own" and row["f1"]}
    others = [row for name, row in rows.items() if name != NGP]
    best = max(others, key=lambda row: row["f1"]["mean"])
    quickest = min(others, key=lambda row: row["seconds"]["mean"])
    ours, next_best, fast = (f"{row['f1']['mean']:.2f} in {seconds(row)}" for row in (rows[NGP], best, quickest))
    return (
        f"- **Recovery**: with 5 relevant of 500 columns, each method with its own stop rule, NGP has an F1 of {ours};"
        f" the best other one ({best['method']}) {next_best}; the quickest ({quickest['method']}) {fast}."
    )


def speed_line(found: Mapping[str, Any]) -> str:
    """How many times as long the sequential selectors take for the same work."""
    work = found["same_work"]
    default, same = "NGP, SSFN, 8 draws (default)", "NGP, MLP, 1 draw, batches of 32"
    peers = [row["ratios"] for name, row in work["peers"].items() if name.endswith(" 32")]
    times = [" and ".join(f"{ratios[name]:.0f}" for ratios in peers) for name in (default, same)]
    return (
        f"- **Speed**: 5 of 500 columns on one core take {work['ngp'][default]['seconds']:.1f} s. The sequential"
        f" selectors of scikit-learn and mlxtend with the paper's MLP take {times[0]} times as long; compared with NGP"
        f" using the same MLP, {times[1]} times."
    )


def ahead_line(found: Mapping[str, Any]) -> str:
    """Where peers are better, of everything that was compared."""
    lines = []
    for name, design in found["designs"].items():
        better = sorted((each for each in design["comparisons"] if each["better"]), key=lambda each: -each["mean"])
        for measure, rule in dict.fromkeys((each["measure"], each["rule"]) for each in better):
            title = f"{NAMES.get(measure, score_name(design))} on {name}, {RULES[rule]}"
            those = [difference(each) for each in better if (each["measure"], each["rule"]) == (measure, rule)]
            lines.append(f"{title}: {'; '.join(those)}")
    return f"- **Where others are ahead**: {'. '.join(lines) or 'nowhere'}."


def readme_block(found: Mapping[str, Any]) -> str:
    return f"\n{found_line(found)}\n{speed_line(found)}\n{ahead_line(found)}\n\n"


def filled(text: str, found: Mapping[str, Any]) -> str:
    """README.md with its lines as they were measured."""
    new, n_blocks = BLOCK.subn(lambda _: readme_block(found), text)
    assert n_blocks == 1
    return new


def seconds(row: Mapping[str, Any]) -> str:
    mean = row["seconds"]["mean"]
    return f"{mean:.{0 if mean >= 10 else 1 if mean >= 0.1 else 2}f} s"


def draw(design: Mapping[str, Any], limit: float) -> bytes:
    """The picture as a PNG that says what it was drawn from."""
    target = io.BytesIO()
    about = {"Software": None, "Description": description(design, limit)}
    make_figure(design, limit).savefig(target, format="png", dpi=130, metadata=about)
    return target.getvalue()


def description(design: Mapping[str, Any], limit: float) -> str:
    """What is drawn, in words."""
    return "; ".join(f"{row['method']} ({row['rule']}): {said(row, limit)}" for row in design["rows"])


def said(row: Mapping[str, Any], limit: float) -> str:
    """What stands at the end of a bar."""
    if not row["f1"]:
        return f"not ended within {limit:g} s"
    return f"{row['f1']['mean']:.2f} in {seconds(row)}"


def make_figure(design: Mapping[str, Any], limit: float) -> Figure:
    """A panel for each rule, of a design whose relevant columns are known; the best method is on top."""
    from matplotlib.figure import Figure

    rows = {rule: ranked([row for row in design["rows"] if row["rule"] == rule]) for rule in RULES}
    figure = Figure(figsize=(10.5, 0.6 + 0.27 * max(map(len, rows.values()))), layout="constrained")
    for ax, (rule, words) in zip(figure.subplots(1, len(RULES)), RULES.items(), strict=True):
        _bars(ax, rows[rule], limit)
        ax.set_title(words[0].upper() + words[1:], fontsize=11)
        ax.set_xlabel("F1 of the relevant columns")
    return figure


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows, those that find most first."""
    return sorted(rows, key=lambda row: -row["f1"]["mean"] if row["f1"] else 1)


def _bars(ax: Any, rows: Sequence[Mapping[str, Any]], limit: float) -> None:
    places, colours = range(len(rows)), [COLOURS[1] if row["method"] == NGP else COLOURS[0] for row in rows]
    values = [row["f1"]["mean"] if row["f1"] else 0.0 for row in rows]
    ax.barh(places, values, height=0.66, color=colours)
    for place, row, value in zip(places, rows, values, strict=True):
        colour = "black" if row["f1"] else GREY
        ax.text(value + 0.02, place, said(row, limit), va="center", fontsize=8.5, color=colour)
    ax.set_yticks(places, [row["method"] for row in rows])
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row["method"] == NGP else "normal")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.32)
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    clean(ax)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def main() -> None:
    found = results()
    write_whole(PICTURE, draw(found["designs"]["artificial"], found["settings"]["limit"]))
    readme = ROOT / "README.md"
    write_whole(readme, filled(readme.read_text(encoding="utf-8"), found).encode())


if __name__ == "__main__":
    main()
