"""Files are whole, tables are straight."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngp.io import markdown_table, write_whole


def test_tables_are_aligned_markdown() -> None:
    lines = markdown_table(["a", "long name"], [["value", "1"], ["2", "3"]]).splitlines()
    assert lines[1] == "| ----- | --------- |"
    assert len(set(map(len, lines))) == 1


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.md", b"first")
    write_whole(tmp_path / "report.md", b"second")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "report.md", 3)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
    assert (tmp_path / "report.md").read_bytes() == b"second"
