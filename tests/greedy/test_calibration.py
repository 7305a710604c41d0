"""What an estimate measures with: the time and the memory of small samples, a look at some of the columns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array

from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.data.sources import as_columns
from ngp.greedy import calibration, rehearsal
from ngp.greedy.calibration import Cost, look_at_columns, runs, timed, traced_bytes, watched_memory
from ngp.predictors import SSFN, ssfn
from ngp.predictors.base import Losses, Scorer

rng = np.random.default_rng(0)


@given(fixed=st.floats(0, 10), each=st.floats(0.01, 10), few=st.integers(1, 100), more=st.integers(1, 10_000))
def test_a_line_is_found_again(fixed: float, each: float, few: int, more: int) -> None:
    truth = Cost(fixed, each)
    found = Cost.between([(n, truth.of(n)) for n in (few, few + more)])
    for number in (few, few + more):
        assert found.of(number) == pytest.approx(truth.of(number), rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(st.integers(1, 1000), st.floats(0, 100)), min_size=1, max_size=3, unique_by=lambda p: p[0]))
def test_costs_are_never_negative(points: list[tuple[int, float]]) -> None:
    found = Cost.between(sorted(points))
    assert found.fixed >= 0
    assert found.each >= 0


@given(length=st.integers(1, 500), run=st.integers(1, 40), data=st.data())
def test_runs_are_as_many_as_wanted(length: int, run: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, length))
    found = runs(length, number, run)
    assert len(found) == number
    assert (np.diff(found) > 0).all()
    assert not number or 0 <= found[0] <= found[-1] < length


@pytest.mark.parametrize(("fewest", "most"), [(2, 2), (2, 1), (2, 10_000)])
def test_samples_grow_until_they_take_long_enough(fewest: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(calibration, "perf_counter", lambda: now[0])

    def task(number: int) -> None:
        now[0] += 0.001 * number

    points = timed(task, fewest, most, 1.0)
    numbers = [number for number, _ in points]
    assert numbers[0] == min(fewest, most)
    assert all(a < b <= calibration.GROWTH * a for a, b in pairwise(numbers))
    assert numbers[-1] == most or 0.5 < points[-1][1] <= 1


def test_memory_is_seen() -> None:
    assert traced_bytes(lambda: np.ones(1_000_000)) == pytest.approx(8_000_000, rel=0.01)
    with watched_memory() as growth:
        held = np.ones(20_000_000)
    assert growth == [] or growth[0] > 0.9 * held.nbytes


def test_files_larger_than_memory_are_sampled_where_they_were_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SCAN_SECONDS", 0.0)
    wide = csc_array(rng.normal(size=(30, 1000)))

    def scan() -> slice:
        problem = make_problem(as_columns(wide), np.arange(30.0), groups=make_groups(None, 1000))
        return look_at_columns(problem).columns

    assert scan() == slice(0, calibration.FIRST_COLUMNS)
    monkeypatch.setattr(calibration, "_machine_bytes", lambda: 1000)
    assert scan() == slice(calibration.FIRST_COLUMNS, 1000)
    monkeypatch.setattr(calibration, "POOL_COLUMNS", 10)
    assert scan() == slice(calibration.FIRST_COLUMNS, calibration.FIRST_COLUMNS + 10)


def test_a_look_at_all_columns_tells_what_the_problem_would() -> None:
    wide = rng.normal(size=(30, 300)) + 5
    plain, looked_at = (make_problem(wide, np.arange(30.0), groups=make_groups(None, 300)) for _ in range(2))
    assert look_at_columns(looked_at).columns == slice(0, 300)
    for one, other in zip(plain.column_statistics, looked_at.column_statistics, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("refit_units", ["auto", 50])
def test_the_final_predictor_of_many_rows_is_timed_on_some(refit_units: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rng.normal(size=(4000, 3))
    problem = make_problem(table, table[:, 0], groups=make_groups(None, 3))
    scorer = SSFN(n_draws=2, refit_units=refit_units).bind(problem, random_state=0, device="cpu")
    seen: list[tuple[int, int]] = []
    train = ssfn.SSFNScorer._train

    def seconds(task: Callable[[], Any]) -> float:
        """What a task takes on a machine whose time goes with rows and units."""
        seen.clear()
        task()
        return sum(rows * units for rows, units in seen) / 1e6

    def counted(self: Any, selected: Any, rows: Any, width: int, n_draws: int, ridges: Any) -> Any:
        seen.append((len(rows), width * n_draws))
        return train(self, selected, rows, width, n_draws, ridges)

    monkeypatch.setattr(ssfn.SSFNScorer, "_train", counted)
    monkeypatch.setattr(ssfn, "_clock", seconds)
    whole = scorer.fit_seconds(np.arange(3))
    assert {rows for rows, _ in seen} == {3200}
    monkeypatch.setattr(ssfn, "TIMED_ROWS", 1000)
    assert scorer.fit_seconds(np.arange(3)) == pytest.approx(whole, rel=0.5)
    assert {rows for rows, _ in seen} == {1000}


class SlowAtFirst(Scorer):
    """A scorer on a GPU that takes long for the first step of every size, as a compiler makes it."""

    device = "cuda"

    def __init__(self, problem: Any) -> None:
        self.problem, self.compiled, self.moved = problem, SlowAtFirst.sizes, False

    sizes: set[tuple[int, int]] = set()  # noqa: RUF012

    def add_losses(self, selected: Any, candidates: Any) -> Losses:
        if not self.moved:
            sleep(0.05)
            self.moved = True
        if (size := (len(selected), len(candidates))) not in self.compiled:
            self.compiled.add(size)
            sleep(0.3)
        return Losses(np.zeros((len(candidates), 1)), np.ones(1))

    def fit(self, selected: Any) -> Any:
        """Take no time."""


def test_what_a_gpu_compiles_once_is_not_taken_for_the_time_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "SAMPLE_SECONDS", 0.02)
    X = np.random.default_rng(0).normal(size=(30, 20))
    problem = make_problem(X, X[:, 0], groups=make_groups(None, 20), cv=3)
    nothing = np.zeros(0, dtype=np.intp)
    trial = rehearsal.Rehearsal(problem, SlowAtFirst(problem), None, nothing, 4, slice(0, 20), None)
    assert not trial.slow
    assert trial.step_seconds(2, 18, 18) < 0.2
    assert 0.03 < trial.once_seconds < 0.3
