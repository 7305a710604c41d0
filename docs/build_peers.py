"""What README.md shows of benchmarks/results/peers.json, a picture and a table: python -m docs.build_peers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.peer_tables import NGP, overview
from docs.peers_figure import draw
from ngp.files import write_whole

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "peers.png"
BLOCK = re.compile(r"(?<=<!-- made by docs\.build_peers -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def results() -> dict[str, Any]:
    """What `make bench-peers` measured."""
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))
    return found


def speed_line(found: dict[str, Any]) -> str:
    """How many times as long the sequential selectors take for the same work."""
    work = found["same_work"]
    ours = "NGP, SSFN, 8 draws (default)"
    peers = {name: row["ratios"][ours] for name, row in work["peers"].items()}
    times = [f"{name} {ratio:.0f}" for name, ratio in peers.items()]
    seconds = work["ngp"][ours]["seconds"]
    return (
        f"Told the number, {NGP} takes {seconds:.1f} s for 5 of 500 columns. Sequential selectors around an MLP of the"
        f" paper's size take so many times as long for the same work: {'; '.join(times)}. [All of it](docs/peers.md)."
    )


def readme_block(found: dict[str, Any]) -> str:
    return f"\n{overview(found)}\n\n{speed_line(found)}\n"


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
