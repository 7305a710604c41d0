"""Inside a step: what is done, how many candidates are done, and how long the rest takes."""

from __future__ import annotations

import io
import sys
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ngp import NeuralGreedyPursuit, NGPRegressor, _progress
from ngp._progress import Phase, StatusLine, phase, watched
from ngp.kernels.parallel import run_tasks
from ngp.predictors import MLP, SSFN

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12))
y = X[:, 3] + X[:, 0]
FAST = SSFN(n_units=10, n_draws=2, refit_units=10)


@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "threading"), (2, "threading"), (2, "loky")])
def test_tasks_count_as_they_are_done(n_jobs: int, backend: str) -> None:
    seen: list[tuple[int, int]] = []
    arguments, counts = [(n, 7) for n in range(30)], [n % 3 for n in range(30)]
    with joblib.parallel_config(backend=backend), watched(lambda now: seen.append((now.done, now.total))):
        run_tasks(divmod, arguments, n_jobs, counts=counts)  # nobody has announced it
        assert seen == []
        with phase("dividing", 30):
            assert run_tasks(divmod, arguments, n_jobs, counts=counts) == [divmod(n, 7) for n in range(30)]
    done = [done for done, _ in seen]
    assert (done[0], done[-1]) == (0, 30)
    assert done == sorted(done)
    assert len(done) > 10
    assert {total for _, total in seen} == {30}


PREDICTORS: dict[str, tuple[Any, set[str]]] = {
    "ssfn": (FAST, {"scoring", "racing"}),
    "kernel": ("kernel", {"scoring"}),
    "mlp": (MLP(n_units=3, epochs=1), {"scoring"}),
    "estimator": (LinearRegression(), {"scoring"}),
    "several": ([FAST, LinearRegression()], {"scoring with SSFN", "scoring with LinearRegression"}),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_all_candidates_of_a_step_are_counted(name: str) -> None:
    predictor, expected = PREDICTORS[name]
    ended: dict[int, Phase] = {}
    with watched(lambda now: ended.update({id(now): now})):
        NGPRegressor(predictor, n_features_to_select=2, random_state=0, device="cpu").fit(X, y)
    phases = list(ended.values())
    names = {each.name for each in phases}
    assert {*expected, "testing", "training the final predictor"} <= names
    scored = [each for each in phases if each.name.startswith(("scoring", "racing")) and each.done]
    assert max(each.total for each in scored) == 12
    assert all(each.done >= each.total for each in scored)  # the selection as it is counts, too


def test_screening_exchanges_and_pairs_are_told_as_well() -> None:
    names: list[str] = []
    selector = NeuralGreedyPursuit(FAST, screen=4, floating=True, random_state=0)
    with watched(lambda now: names.append(now.name)):
        selector.fit(X, y)
    assert {"screening", "exchanging", "testing pairs"} <= set(names)


def test_nothing_is_counted_if_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any) -> None:
        raise AssertionError("a phase without a watcher")

    monkeypatch.setattr(_progress, "Phase", made)
    NeuralGreedyPursuit(FAST, n_features_to_select=2, random_state=0, verbose=1).fit(X, y)


def test_the_time_that_is_left_is_that_of_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Phase("scoring", 4000, since=0.0)
    texts = []
    for seconds, done in [(0.4, 500), (10.0, 1000), (40.0, 4001)]:
        monkeypatch.setattr(_progress, "perf_counter", lambda seconds=seconds: seconds)
        now.done = done
        texts.append(str(now))
    assert texts == [
        "scoring 500 of 4,000 candidates",
        "scoring 1,000 of 4,000 candidates, about 30 s left",
        "scoring 4,000 of 4,000 candidates",
    ]
    assert str(Phase("testing", 0)) == "testing"


# ---------------------------------------------------------------- verbose=1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook(io.StringIO):
    """As the standard output of Jupyter's kernels."""


Notebook.__module__ = "ipykernel.iostream"


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_line_is_written_again_and_again(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", kind())
    monkeypatch.setattr(_progress, "REWRITTEN_SECONDS", 0.0)
    selector = NGPRegressor(FAST, n_features_to_select=2, random_state=0, verbose=1).fit(X, y)
    written = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "\r[ngp] scoring 12 of 12 candidates" in written
    assert "\r[ngp] training the final predictor" in written
    screen = [line.rpartition("\r")[2] for line in written.split("\n")]  # what is left of each line
    assert len(screen) == len(selector.path_) + 1
    assert ["add" in line for line in screen] == [False, True, True, False]
    assert screen[-1] == ""


def test_the_line_is_not_written_more_often_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    times = iter(np.arange(0, 2, 0.01))
    monkeypatch.setattr(_progress, "perf_counter", lambda: float(next(times)))
    with StatusLine(True).shown(), phase("scoring", 50):
        run_tasks(divmod, [(1, 1)] * 50, 1, counts=[1] * 50)
    assert 2 <= sys.stdout.getvalue().count("scoring") < 15  # type: ignore[attr-defined]


def test_a_file_gets_a_line_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    NeuralGreedyPursuit(FAST, n_features_to_select=2, random_state=0, verbose=1).fit(X, y)
    written = capsys.readouterr().out
    assert len(written.splitlines()) == 3
    assert "\r" not in written
