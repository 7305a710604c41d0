"""Tables say what was measured, and nothing where there is nothing."""

from __future__ import annotations

import csv
from math import isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from ngp.paper.experiment import Cell, Column, ResultTable, cell


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_mean_and_spread(values: list[float]) -> None:
    found = cell(values)
    assert min(values) - 1e-6 <= found.mean <= max(values) + 1e-6
    assert 0 <= found.spread <= max(values) - min(values) + 1e-6


def test_runs_without_a_figure_do_not_count() -> None:
    assert cell([1.0, None, 3.0]).mean == 2
    assert isnan(cell([None]).mean)
    assert isnan(cell([5.0]).spread)


def make_table() -> ResultTable:
    rows = [
        (("ours",), {"error": cell([-1.25, -1.75], published=-1), "time": cell([2.0])}),
        (("theirs",), {"error": Cell(nan)}),
    ]
    return ResultTable(("method",), (Column("error", "error (dB)"), Column("time", "time (s)", 0)), rows)


def test_markdown() -> None:
    lines = make_table().to_markdown().splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == ["method", "error (dB)", "time (s)"]
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["ours", "−1.50 ± 0.35 (−1.00)", "2"]
    assert [cell.strip() for cell in lines[3].strip("|").split("|")] == ["theirs", "–", ""]


def test_csv() -> None:
    comment, *lines = make_table().to_csv("the command").splitlines()
    assert comment == "# the command"
    ours, theirs = csv.DictReader(lines)
    assert float(ours["error"]) == -1.5
    assert float(ours["error_published"]) == -1
    assert ours["time_sd"] == ours["time_published"] == ""
    assert set(theirs.values()) == {"theirs", ""}
    assert make_table().to_csv().startswith("method,")
