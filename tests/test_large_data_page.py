"""What docs/large-data.md shows is what happens."""

from __future__ import annotations

from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "large-data.md").read_text(encoding="utf-8")


def test_figures_are_those_of_the_code() -> None:
    from ngp.data.sources.mapped import MOST_MAPPED
    from ngp.data.sources.zarrs import KEPT_BYTES

    assert f"up to {KEPT_BYTES // 2**20} MB" in PAGE
    assert f"about {MOST_MAPPED // 2**30} GB" in PAGE
