"""What README.md and the page about peers show is what benchmarks/results holds, whoever wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peer_tables
from docs import build_peers as builder

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("name", ["peers", "peers-h200"])
def test_tables_are_those_of_the_results(name: str) -> None:
    results = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == peer_tables.text(results) + "\n"


def test_readme_is_filled() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert builder.filled(text, builder.results()) == text


def test_the_picture_is_drawn_from_the_results() -> None:
    image = pytest.importorskip("PIL.Image")
    from docs.peers_figure import description

    results = builder.results()
    with image.open(builder.PICTURE) as picture:
        expected = description(results["designs"]["artificial"], results["settings"]["limit"])
        assert picture.info["Description"] == expected


def test_the_picture_shows_every_method_as_it_was_measured() -> None:
    pytest.importorskip("matplotlib")
    from docs.peers_figure import make_figure, said

    design = builder.results()["designs"]["artificial"]
    for ax, rule in zip(make_figure(design, 120).axes, peer_tables.RULES, strict=True):
        rows = {row["method"]: row for row in design["rows"] if row["rule"] == rule}
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert sorted(names) == sorted(rows)
        for name, bar, text in zip(names, ax.patches, ax.texts, strict=True):
            row = rows[name]
            assert bar.get_width() == (row["f1"]["mean"] if row["f1"] else 0)
            assert text.get_text() == said(row, 120)
        assert [bar.get_width() for bar in ax.patches] == sorted((bar.get_width() for bar in ax.patches), reverse=True)


def made_up(values: dict[str, tuple[float | None, float | None]]) -> dict[str, Any]:
    """Results with F1 (or score) and seconds of each method, alike on all designs."""

    def row(method: str, value: float | None, seconds: float | None) -> dict[str, Any]:
        mean, time = (None if each is None else {"mean": each} for each in (value, seconds))
        return {"method": method, "rule": "own", "f1": mean, "score": mean, "seconds": time}

    names = {name for _, designs, _ in peer_tables.OVERVIEW for name in designs}
    rows = [row(method, *pair) for method, pair in values.items()]
    return {"methods": dict.fromkeys(values), "designs": {name: {"rows": rows} for name in names}}


def test_the_overview_shows_a_peer_that_wins_first() -> None:
    table = peer_tables.overview(made_up({"NGP": (0.5, 2.0), "abess": (0.75, 3.0), "slow": (None, None)}))
    _, _, first, second = table.splitlines()
    assert [cell.strip() for cell in first.split("|")[1:4]] == ["abess", "**0.750**", "3.00"]
    assert [cell.strip() for cell in second.split("|")[1:4]] == ["NGP", "0.500", "**2.00**"]


def test_the_overview_is_a_mean_over_laws() -> None:
    results = made_up({"NGP": (0.5, 2.0)})
    law = results["designs"]["ohm-50"] = {"rows": [dict(results["designs"]["ohm-50"]["rows"][0])]}
    law["rows"][0]["f1"] = {"mean": 0.8}
    assert peer_tables.mean_of(results, "NGP", peer_tables.LAWS_50, "f1") == pytest.approx(0.6)
    law["rows"][0]["f1"] = None  # it ended in no run there: nothing to compare
    assert peer_tables.mean_of(results, "NGP", peer_tables.LAWS_50, "f1") is None


def ratios(name: str, ours: str, batch: int) -> str:
    """How many times as long both peers take as one of our predictors, in words."""
    peers = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["same_work"]["peers"]
    sklearn, mlxtend = (
        peers[f"{peer} SFS, batches of {batch}"]["ratios"][f"NGP, {ours}"] for peer in ("scikit-learn", "mlxtend")
    )
    return f"{sklearn:.0f} and {mlxtend:.0f} times"


def test_figures_of_the_same_work_are_those_of_the_results() -> None:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    for name, ours in [
        ("peers", "SSFN, 8 draws (default)"),
        ("peers", "MLP, 1 draw, batches of {}"),
        ("peers-h200", "MLP, 1 draw, batches of {}"),
    ]:
        paper, usual = (ratios(name, ours.format(batch), batch) for batch in (32, 200))
        (line,) = [line for line in page.splitlines() if f"| {paper} as long" in line]
        assert f"; {usual} |" in line
