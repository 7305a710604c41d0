"""What README.md shows of benchmarks/results/peers.json, a picture and a table: python -m docs.build_peers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.peer_tables import NAMES, NGP, RULES, difference, overview, score_name
from docs.peers_figure import draw
from ngp.io import write_whole

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "peers.png"
BLOCK = re.compile(r"(?<=<!-- made by docs\.build_peers -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def results() -> dict[str, Any]:
    """What `make bench-peers` measured."""
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))
    return found


def speed_line(found: dict[str, Any]) -> str:
    """How many times as long the sequential selectors take for the same work."""
    default, same = "NGP, SSFN, 8 draws (default)", "NGP, MLP, 1 draw, batches of {}"
    ours, theirs = (found["same_work"]["ngp"][name]["seconds"] for name in (default, same.format(32)))
    return (
        f"The same work on one core, 5 of 500 columns, in turn: {NGP} takes {ours:.1f} s. The sequential selectors of"
        f" scikit-learn and mlxtend around an MLP of the paper's size take {times(found, default, 32)} times as long"
        f" with the paper's batches of 32 rows, {times(found, default, 200)} times with scikit-learn's default of"
        f" 200. With the same MLP in place of its own network, {NGP} takes {theirs:.0f} s: they take"
        f" {times(found, same.format(32), 32)}, and {times(found, same.format(200), 200)}, times as long."
    )


def times(found: dict[str, Any], ours: str, batch: int) -> str:
    peers = found["same_work"]["peers"].items()
    return " and ".join(f"{row['ratios'][ours]:.0f}" for name, row in peers if name.endswith(f" {batch}"))


def ahead_line(found: dict[str, Any]) -> str:
    """Where peers are better, of all that was compared."""
    lines = []
    for name, design in found["designs"].items():
        for rule, words in RULES.items():
            better = [each for each in design["comparisons"] if each["rule"] == rule and each["better"]]
            for measure in dict.fromkeys(each["measure"] for each in better):
                ranked = sorted((each for each in better if each["measure"] == measure), key=lambda each: -each["mean"])
                title = NAMES.get(measure, score_name(design))
                lines.append(f"{name}, {words}, {title}: {'; '.join(map(difference, ranked))}")
    return f"Peers that are ahead, of all that was compared: {'. '.join(lines) or 'none'}."


def readme_block(found: dict[str, Any]) -> str:
    return f"\n{overview(found)}\n\n{ahead_line(found)}\n\n{speed_line(found)} [All of it](docs/peers.md).\n"


def filled(text: str, found: dict[str, Any]) -> str:
    """README.md with its table as it was measured."""
    new, n_blocks = BLOCK.subn(lambda _: readme_block(found), text)
    assert n_blocks == 1
    return new


def main() -> None:
    found = results()
    write_whole(PICTURE, draw(found["designs"]["artificial"], found["settings"]["limit"]))
    readme = ROOT / "README.md"
    write_whole(readme, filled(readme.read_text(encoding="utf-8"), found).encode())
    print(PICTURE, readme, sep="\n")


if __name__ == "__main__":
    main()
