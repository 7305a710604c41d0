"""What one sees while the selector runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import report_cases as cases

from ngp import NGPRegressor
from ngp._progress import Phase
from ngp.cli import progress
from ngp.cli.progress import Progress
from ngp.greedy.path import Step
from ngp.predictors import SSFN


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fitted(shower: Progress, n_features: int | None = 2, **settings: Any) -> NGPRegressor:
    X = np.random.default_rng(0).normal(size=(60, 4))
    selector = NGPRegressor(
        SSFN(n_units=10, n_draws=1, refit_units=10),
        n_features_to_select=n_features,
        random_state=0,
        **settings,
    )
    selector.set_callbacks(shower)
    with shower.shown():
        return selector.fit(X, X[:, 2] + 0.5 * X[:, 1])


def test_a_live_table_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    fitted(Progress(2, None, quiet=False))
    shown = terminal.getvalue()
    for word in (
        "step",
        "feature",
        "R²",
        "loss ± se",
        "change",
        "time left",
        "(constant prediction)",
        "x2",
        "x1",
        "Ctrl-C",
    ):
        assert word in shown
    assert "Ctrl-C" not in shown.splitlines()[-1]  # nothing runs any more


def test_the_live_table_says_how_far_the_step_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    shower, shown = Progress(2, None, quiet=False), set[str]()
    watch = shower._watch

    def drawn(phase: Phase) -> None:
        watch(phase)
        shown.update(str(each) for each in shower._shown(9).renderables[1:])

    monkeypatch.setattr(shower, "_watch", drawn)
    fitted(shower)
    assert {
        "testing",
        "scoring 0 of 4 candidates",
        "scoring 4 of 4 candidates",
        "training the final predictor",
    } <= shown
    assert len(shower._shown(9).renderables) == 1  # nothing runs any more


def test_a_low_terminal_shows_the_newest_steps_and_all_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "5")
    shower = Progress(4, None, quiet=False)
    fitted(shower, n_features=4)
    last = terminal.getvalue().rpartition("time left")[2]
    assert all(f"x{i}" in last for i in range(4))
    assert "x2" not in str([cell for column in shower._table(2).columns for cell in column._cells])


def test_lines_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(Progress(2, None, quiet=False))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["step 0", "(constant prediction)"],
        ["step 1", "add x2"],
        ["step 2", "add x1"],
    ]


def test_lines_have_p_values_if_they_are_computed(capsys: pytest.CaptureFixture[str]) -> None:
    selector = fitted(Progress(None, None, quiet=False), n_features=None)
    lines = capsys.readouterr().err.splitlines()
    assert "  p " not in lines[0]
    assert lines[1].endswith("p <0.001")
    last = next(step for step in selector.path_[1:] if step.p_value > 0.01)
    assert any(line.endswith(f"p {last.p_value:.2g}") for line in lines)


def test_the_live_table_has_p_values_if_they_are_computed() -> None:
    shower = Progress(None, None, quiet=True)
    fitted(shower, n_features=None)
    assert [column.header for column in shower._table(9).columns][3:] == ["loss ± se", "change", "p", "time left"]
    plain = Progress(2, None, quiet=True)
    fitted(plain, tol=0.0)
    assert [column.header for column in plain._table(9).columns][3:] == ["loss ± se", "change", "time left"]


def test_nothing_if_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(Progress(2, None, quiet=True))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fitted(Progress(2, None, quiet=True))
    assert capsys.readouterr() == ("", "")


def test_time_that_is_left() -> None:
    steps = fitted(Progress(None, None, quiet=True)).path_
    slow = [step.__class__(**{**vars(step), "seconds": 20.0}) for step in steps]

    def left(n_features: int | None, max_time: float | None) -> str:
        shower = Progress(n_features, max_time, quiet=True)
        for step in slow[:2]:
            shower._show(step)
        return shower._cells(1)[-1]

    assert left(4, None) == "about 1 min 0 s"  # three more
    assert left(1, None) == ""
    assert left(None, None) == ""  # a threshold decides
    assert left(None, 90) == "about 1 min 30 s"
    assert left(4, 30) == "about 30 s"


def test_long_names_are_cut() -> None:
    step = fitted(Progress(None, None, quiet=True)).path_[1]
    long = step.__class__(**{**vars(step), "name": "n" * 100})
    shower = Progress(None, None, quiet=True)
    shower._show(long)
    assert len(shower._cells(0)[1]) == len("add ") + progress.LONGEST_NAME


def shown_lines(steps: Sequence[Step], made: Sequence[Step], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Number and doing of each step, as it is printed."""
    shower = Progress(None, None, quiet=False, made=made)
    for step in steps:
        shower._show(step)
    return [line.split("  ")[:2] for line in capsys.readouterr().err.splitlines()]


def test_lines_name_drops_and_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    path = cases.exchanges().selector.path_
    lines = shown_lines(path, (), capsys)
    assert [number for number, _ in lines] == [f"step {number}" for number in range(len(path))]
    words = [what for _, what in lines]
    assert words[:2] == ["(constant prediction)", "add x3"]
    assert words[6:10] == ["add x6", "swap x6 in, x4 out after step 5", "drop x3", "drop x6"]


def test_a_run_that_goes_on_counts_and_names_the_steps_before(capsys: pytest.CaptureFixture[str]) -> None:
    path = cases.exchanges().selector.path_
    assert shown_lines(path[7:], path[:7], capsys) == shown_lines(path, (), capsys)[7:]


def test_the_live_table_names_drops_and_exchanges() -> None:
    shower = Progress(None, None, quiet=True)
    for step in cases.exchanges().selector.path_:
        shower._show(step)
    cells = [str(cell) for cell in shower._table(99).columns[1]._cells]
    assert cells[5:10] == ["add x0", "add x6", "swap x6 in, x4 out after step 5", "drop x3", "drop x6"]


def test_a_quick_drop_is_no_measure_of_the_time_that_is_left() -> None:
    path = cases.decoy().selector.path_
    shower = Progress(6, None, quiet=True)
    for step in path[:7]:
        shower._show(replace(step, seconds=1e-3 if step.action == "drop" else 20.0))
    assert path[6].action == "drop"
    assert shower._cells(6)[-1] == "about 40 s"  # four are in, two are to come
