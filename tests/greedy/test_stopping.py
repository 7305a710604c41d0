"""Stop rules on made-up steps, each beside what its description says in plain loops."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from stopping_cases import FakeStep, path, run

from ngp.greedy.stopping import (
    BeyondChance,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    Plateau,
    RelativeImprovement,
    Stop,
    StopRule,
    standard_error,
)

losses_strategy = st.lists(st.floats(0, 100), min_size=1, max_size=12)


def test_max_features() -> None:
    assert run(MaxFeatures(2), path([9, 8, 7, 6])) == (2, Stop("2 of at most 2 features are selected", 2))
    assert run(MaxFeatures(4), path([9, 8, 7, 6])) == (3, None)


def test_max_columns_takes_back_what_leads_beyond() -> None:
    steps = path([9, 8, 7, 6], columns_per_step=4)
    assert run(MaxColumns(8), steps) == (2, Stop("8 of at most 8 columns are selected", 2))
    assert run(MaxColumns(10), steps) == (3, Stop("8 of at most 10 columns are selected", 2))
    assert run(MaxColumns(3), steps) == (1, Stop("0 of at most 3 columns are selected", 0))


def test_fixed_columns_beyond_the_limit_stay() -> None:
    start = FakeStep(float("nan"), 1.0, np.array([1.0, 1.0]), n_selected=5, n_columns=5)
    assert MaxFeatures(3).check([start]) == Stop("5 of at most 3 features are selected", 0)


def test_relative_improvement_drops_the_feature_that_did_not_pay() -> None:
    steps = path([10, 5, 4, 3.9, 1])
    reason = "no relative improvement of at least 0.06 of the loss in 1 step"
    assert run(RelativeImprovement(0.06), steps) == (3, Stop(reason, 2))
    assert run(RelativeImprovement(0.02), steps) == (4, None)


def test_relative_improvement_divides_by_the_new_loss() -> None:
    # (10 - 8) / 8 = 0.25, although the loss fell by only a fifth of the old one.
    assert run(RelativeImprovement(0.25), path([10, 8])) == (1, None)
    stopped = run(RelativeImprovement(0.26), path([10, 8]))[1]
    assert stopped is not None
    assert stopped.keep == 0


def test_relative_improvement_can_stop_before_the_first_feature() -> None:
    assert run(RelativeImprovement(0.1), path([10, 10, 5])) == (
        1,
        Stop("no relative improvement of at least 0.1 of the loss in 1 step", 0),
    )


def test_an_equal_loss_does_not_pay_even_without_tolerance() -> None:
    assert run(RelativeImprovement(0), path([10, 9.99, 9.99])) == (
        2,
        Stop("no improvement of the loss in 1 step", 1),
    )


def test_patience_waits_for_a_joint_improvement() -> None:
    steps = path([10, 9.5, 8, 7.9, 7.8, 7.7, 1])
    assert run(RelativeImprovement(0.1, patience=2), steps) == (
        4,
        Stop("no relative improvement of at least 0.1 of the loss in 2 steps", 2),
    )


def test_steps_that_did_not_pay_are_taken_back_when_candidates_run_out() -> None:
    steps = path([10, 5, 4.99])
    assert run(RelativeImprovement(0.1, patience=3), steps) == (
        2,
        Stop("no relative improvement of at least 0.1 of the loss in 1 step", 1),
    )


@pytest.mark.parametrize(("losses", "keep"), [([0.0], 0), ([3.0, 0.0, 0.0], 1)])
def test_a_loss_of_zero_stops_at_once(losses: list[float], keep: int) -> None:
    answer = Stop("the loss is zero and cannot improve", keep)
    assert run(RelativeImprovement(0.1, patience=5), path(losses)) == (keep, answer)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.floats(1e-6, 2))
def test_relative_improvement_is_the_rule_of_the_paper(losses: list[float], tol: float) -> None:
    def paper() -> int | None:
        for k in range(1, len(losses)):
            if losses[k] > 0 and (losses[k - 1] - losses[k]) / losses[k] < tol:
                return k - 1
        return None

    improvements = [(a - b) / b for a, b in pairwise(losses)]
    assume(all(abs(improvement - tol) > 1e-9 for improvement in improvements))
    stop = run(RelativeImprovement(tol), path(losses))[1]
    assert (None if stop is None else stop.keep) == paper()


def test_plateau_keeps_the_smallest_within_one_standard_error() -> None:
    steps = path([10, 5, 4.2, 4.0, 4.1, 4.1, 4.3, 1.0], spread=0.3)
    kept = "kept is the smallest selection within {} standard errors of the lowest loss"
    reason = "no lower loss in 3 steps; " + kept
    assert run(Plateau(), steps) == (6, Stop(reason.format(1), 2))
    assert run(Plateau(standard_errors=0), steps) == (6, Stop(reason.format(0), 3))
    assert run(Plateau(standard_errors=4), steps) == (6, Stop(reason.format(4), 1))
    reason = "no lower loss in 1 step; " + kept
    assert run(Plateau(patience=1), steps) == (4, Stop(reason.format(1), 2))


def test_plateau_prunes_when_candidates_run_out() -> None:
    reason = "no candidate is left; kept is the smallest selection within 1 standard errors of the lowest loss"
    assert run(Plateau(), path([10, 4.2, 4.0], spread=0.3)) == (2, Stop(reason, 1))


def test_plateau_uses_the_standard_error_of_the_best_step() -> None:
    steps = path([10, 4.2, 4.0], spread=0.1)
    steps[1] = FakeStep(5.0, 4.2, np.array([0.0, 8.4]), 1, 1)
    stop = Plateau().check(steps, exhausted=True)
    assert stop is not None
    assert stop.keep == 2


def test_plateau_looks_at_size_not_at_place() -> None:
    # A removal made the selection smaller again: steps 1 and 3 have one feature each.
    steps = [
        FakeStep(loss, loss, np.array([loss, loss + 2.0]), size, size)
        for loss, size in [(10.0, 0), (4.5, 1), (4.2, 2), (4.1, 1), (4.0, 2)]
    ]
    stop = Plateau().check(steps, exhausted=True)
    assert stop is not None
    assert stop.keep == 3


def test_plateau_with_a_single_fold() -> None:
    steps = [FakeStep(loss, loss, np.array([loss]), k, k, np.array([1.0])) for k, loss in enumerate([3.0, 2.0, 2.5])]
    message = (
        "standard_errors needs at least 2 parts of the validation, but there is 1: "
        "use more folds, such as cv=5, or Plateau(standard_errors=0)."
    )
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Plateau().check(steps[:1])
    stop = Plateau(patience=1, standard_errors=0).check(steps)
    assert stop is not None
    assert stop.keep == 1


@given(losses_strategy, st.floats(0, 10), st.floats(0, 3), st.integers(1, 4))
def test_plateau_properties(losses: list[float], spread: float, errors: float, patience: int) -> None:
    made, stop = run(Plateau(patience, errors), path(losses, spread))
    assert stop is not None
    best = int(np.argmin(losses[: made + 1]))
    assert made - best <= patience
    assert stop.keep <= best
    slack = errors * spread * (1 + 1e-9) + 1e-9
    assert losses[stop.keep] <= losses[best] + slack
    slack = errors * spread * (1 - 1e-9) - 1e-9
    assert all(losses[k] > losses[best] + slack for k in range(stop.keep))


def test_max_time() -> None:
    steps = path([5, 4, 3, 2])
    reason = "the time of 2.5 seconds is up; the path is partial"
    assert run(MaxTime(2.5), steps) == (2, Stop(reason, 2, partial=True))
    assert run(MaxTime(60), steps) == (3, None)


def test_max_fits() -> None:
    steps = path([5, 4, 3, 2])
    reason = "the budget of 20 fits is used up; the path is partial"
    assert run(MaxFits(20), steps) == (1, Stop(reason, 1, partial=True))
    assert run(MaxFits(1), steps) == (0, Stop("the budget of 1 fit is used up; the path is partial", 0, partial=True))
    assert run(MaxFits(100), steps) == (3, None)


def test_a_complete_path_is_not_partial() -> None:
    steps = path([5, 4])
    assert MaxTime(1).check(steps, exhausted=True) is None
    assert MaxFits(1).check(steps, exhausted=True) is None


def test_first_of_stops_with_the_first() -> None:
    steps = path([10, 5, 4, 3.9])
    rules: list[StopRule] = [RelativeImprovement(0.06), MaxFeatures(2)]
    assert run(FirstOf(rules), steps) == run(MaxFeatures(2), steps)
    assert run(FirstOf([RelativeImprovement(0.06), MaxFeatures(4)]), steps) == run(rules[0], steps)
    assert run(FirstOf([MaxFeatures(9), MaxTime(99)]), steps) == (3, None)


def test_first_of_keeps_the_least_when_several_stop() -> None:
    rules: list[StopRule] = [MaxFeatures(3), RelativeImprovement(0.06), MaxFits(40)]
    made, stop = run(FirstOf(rules), path([10, 5, 4, 3.9]))
    assert made == 3
    assert stop is not None
    assert stop.keep == 2


def test_first_of_passes_on_that_candidates_ran_out() -> None:
    steps = path([10, 4.2, 4.0], spread=0.3)
    assert FirstOf([Plateau()]).check(steps, exhausted=True) == Plateau().check(steps, exhausted=True)


@given(losses_strategy, st.integers(1, 12), st.floats(0, 1), st.integers(1, 3))
def test_every_answer_is_a_step_of_the_path(losses: list[float], n: int, tol: float, patience: int) -> None:
    rules: list[StopRule] = [
        MaxFeatures(n),
        RelativeImprovement(tol, patience),
        Plateau(patience),
        MaxFits(10 * n),
    ]
    steps = path(losses, spread=0.5, columns_per_step=3)
    made, stop = run(FirstOf(rules), steps)
    alone = [run(rule, steps) for rule in [*rules, MaxColumns(n)]]
    for additions, answer in [(made, stop), *alone]:
        assert answer is None or 0 <= answer.keep <= additions
    assert made == min(additions for additions, _ in alone[:-1])


def test_rules_are_plain_values() -> None:
    rule = FirstOf([MaxFeatures(3), Plateau()])
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert repr(rule) == "FirstOf(rules=(MaxFeatures(n=3), Plateau(patience=3, standard_errors=1.0)))"


COUNT = "must be an integer of at least 1."


@pytest.mark.parametrize(
    ("rule", "parameters", "message"),
    [
        (MaxFeatures, {"n": 0}, f"n=0 {COUNT}"),
        (MaxFeatures, {"n": 2.0}, f"n=2.0 {COUNT}"),
        (MaxFeatures, {"n": True}, f"n=True {COUNT}"),
        (MaxColumns, {"n": -1}, f"n=-1 {COUNT}"),
        (
            MaxTime,
            {"seconds": True},
            "seconds=True must be a finite number, more than 0: leave the rule out for no limit.",
        ),
        (MaxFits, {"n": 0}, f"n=0 {COUNT}"),
        (RelativeImprovement, {"tol": 0.1, "patience": 0}, f"patience=0 {COUNT}"),
        (Plateau, {"patience": 0}, f"patience=0 {COUNT}"),
        (BeyondChance, {"patience": 0}, f"patience=0 {COUNT}"),
        (
            RelativeImprovement,
            {"tol": -0.1},
            "tol=-0.1 must be a finite number, 0 or more: use 0 to stop when the loss no longer falls.",
        ),
        (
            RelativeImprovement,
            {"tol": float("nan")},
            "tol=nan must be a finite number, 0 or more: use 0 to stop when the loss no longer falls.",
        ),
        (
            RelativeImprovement,
            {"tol": "0.1"},
            "tol='0.1' must be a finite number, 0 or more: use 0 to stop when the loss no longer falls.",
        ),
        (
            Plateau,
            {"standard_errors": -1},
            "standard_errors=-1 must be a finite number, 0 or more: use 0 to keep the lowest loss itself.",
        ),
        (
            MaxTime,
            {"seconds": 0},
            "seconds=0 must be a finite number, more than 0: leave the rule out for no limit.",
        ),
        (FirstOf, {"rules": []}, "rules=[] must be a list of stop rules, such as [MaxFeatures(10)]."),
        (
            FirstOf,
            {"rules": MaxFeatures(3)},
            "rules=MaxFeatures(n=3) must be a list of stop rules, such as [MaxFeatures(10)].",
        ),
        (FirstOf, {"rules": [3]}, "rules has 3, which is no stop rule: use one like MaxFeatures(10)."),
        (
            FirstOf,
            {"rules": [Plateau]},
            "rules has <class 'ngp.greedy.stopping.Plateau'>, which is no stop rule: use one like MaxFeatures(10).",
        ),
    ],
)
def test_parameter_errors(rule: Callable[..., Any], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        rule(**parameters)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=10))
def test_standard_error_of_equal_folds(losses: list[float]) -> None:
    n = len(losses)
    expected = np.std(losses, ddof=1) / np.sqrt(n)
    assert standard_error(np.array(losses), np.full(n, 1 / n)) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=10), st.data())
def test_standard_error_ignores_folds_of_no_weight(losses: list[float], data: st.DataObject) -> None:
    n = len(losses)
    weights = np.array(data.draw(st.lists(st.floats(0.1, 1), min_size=n, max_size=n)))
    weights /= weights.sum()
    with_empty = standard_error(np.array([*losses, 1e6]), np.array([*weights, 0.0]))
    assert with_empty == pytest.approx(standard_error(np.array(losses), weights))
    assert with_empty >= 0


def test_standard_error_of_unequal_folds_is_about_right() -> None:
    # Means of 40, 20, 20, 10 and 10 samples; their weighted mean has the standard deviation 1 / sqrt(100).
    rng = np.random.default_rng(0)
    sizes = np.array([40, 20, 20, 10, 10])
    means = rng.standard_normal((4000, 5)) / np.sqrt(sizes)
    squares = [standard_error(losses, sizes / 100) ** 2 for losses in means]
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.1, rel=0.06)
