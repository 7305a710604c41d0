"""Files that are written whole or not at all, and tables of text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["markdown_table", "write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write beside, then rename: nothing half-written ever replaces something whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave the new name with nothing behind it
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table that reads well in a terminal too."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )
