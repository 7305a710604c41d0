"""Paths: what is selected after some steps, what is taken back, and how certain a step is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from greedy_cases import fake_step
from hypothesis import given
from hypothesis import strategies as st

from ngp.greedy.path import Step, chosen, columns_of, finished, standard_error, suspect, taken_back


def steps_of(*actions: str) -> list[Step]:
    """Steps such as "+2" (adds group 2, which is column 2), "-2" (drops it) and "2>3" (exchanges 2 for 3)."""
    steps = [fake_step(9.0, action="start", group=None)]
    for action in actions:
        out, new = {"+": (None, action[1:]), "-": (action[1:], None)}.get(action[0]) or action.split(">")
        kind = "swap" if ">" in action else "add" if new else "drop"
        group, dropped = (None if each is None else int(each) for each in (new, out))
        columns = np.array([group if group is not None else dropped], dtype=np.intp)
        steps.append(fake_step(9.0, action=kind, group=group, dropped=dropped, columns=columns))
    return steps


def test_what_is_selected_after_some_steps() -> None:
    steps = steps_of("+1", "+2", "-1", "2>3", "+1")
    assert [group for group in chosen(steps) if group is not None] == [3, 1]
    assert columns_of(chosen(steps[:3])).tolist() == [1, 2]
    path = finished(steps, "done")
    assert path.columns.tolist() == [3, 1]
    assert [step.kept for step in path.steps] == [True, False, False, True, True, True]
    assert [step.group for step in path.kept] == [3, 1]


def test_steps_after_those_to_keep_are_taken_back() -> None:
    kept = [step.kept for step in taken_back(steps_of("+1", "+2", "+3"), 1)]
    assert kept == [True, True, False, False]
    again = taken_back(taken_back(steps_of("+1", "+2", "+3"), 2), 1)  # of those that still stand
    assert [step.kept for step in again] == [True, True, False, False]


def test_exchanges_are_never_undone() -> None:
    assert [step.kept for step in taken_back(steps_of("+1", "1>2", "+3"), 0)] == [True, True, True, False]
    steps = steps_of("+1", "1>2", "+3", "-2", "+4")  # an exchange of one for several, with the drop that follows
    steps[2] = fake_step(9.0, action="swap", group=2, dropped=1, columns=np.array([2]), n_ahead=2)
    assert [step.kept for step in taken_back(steps, 1)] == [True] * 5 + [False]


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=10))
def test_standard_error_of_equal_folds(losses: list[float]) -> None:
    n = len(losses)
    expected = np.std(losses, ddof=1) / np.sqrt(n)
    assert standard_error(np.array(losses), np.full(n, 1 / n)) == pytest.approx(expected, abs=1e-9)
    weights = np.r_[np.full(n, 1 / n), 0.0]  # a fold without weight doesn't count
    assert standard_error(np.array([*losses, 1e6]), weights) == pytest.approx(expected, abs=1e-9)


def test_standard_error_of_unequal_folds_is_about_right() -> None:
    # Means of 40, 20, 20, 10 and 10 samples; their weighted mean has the standard deviation 1 / sqrt(100).
    rng = np.random.default_rng(0)
    sizes = np.array([40, 20, 20, 10, 10])
    means = rng.standard_normal((4000, 5)) / np.sqrt(sizes)
    squares = [standard_error(losses, sizes / 100) ** 2 for losses in means]
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.1, rel=0.06)


LEAKS = {
    "R²": (("regression", 0.0, 0.99), True),
    "a strong column": (("regression", 0.0, 0.989), False),
    "accuracy": (("classification", 0.6, 0.995), True),
    "a strong column, classes": (("classification", 0.6, 0.994), False),
    "one class is nearly all": (("classification", 0.9, 0.999), False),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_column_that_explains_nearly_everything_is_suspect(name: str) -> None:
    (task, constant, score), expected = LEAKS[name]
    start, first = fake_step(9.0, action="start", group=None, score=constant), fake_step(1.0, name="paid", score=score)
    text = suspect([start, first], task)
    assert text.startswith("paid explains nearly everything by itself (") if expected else text == ""
    assert suspect([start], task) == ""
    assert suspect([replace(start, columns=np.array([0])), first], task) == ""  # beside fixed columns
