"""Algorithm 1 with made-up losses: whatever predicts, the pursuit must do as the paper says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursuit_cases import Never, make_fake, random_loss, run, weights_loss

from ngp.greedy.path import Step
from ngp.greedy.stopping import (
    BeyondChance,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    Plateau,
    RelativeImprovement,
    StopRule,
)


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 6), decimals=st.sampled_from([1, 6]))
def test_no_other_candidate_would_have_been_better(seed: int, n_columns: int, decimals: int) -> None:
    loss = random_loss(seed, decimals)
    path = run(make_fake(n_columns, loss), Never())
    chosen: list[int] = []
    for step in path.steps[1:]:
        others = [i for i in range(n_columns) if i not in chosen]
        ranked = sorted(others, key=lambda i: (loss(frozenset([*chosen, i])), i))
        assert (step.action, step.group, step.columns.tolist()) == ("add", ranked[0], [ranked[0]])
        assert step.loss == pytest.approx(loss(frozenset([*chosen, ranked[0]])))
        assert step.runner_up == (ranked[1] if len(ranked) > 1 else None)
        if len(ranked) > 1:
            assert step.runner_up_loss == pytest.approx(loss(frozenset([*chosen, ranked[1]])))
        else:
            assert np.isnan(step.runner_up_loss)
        expected = [loss(frozenset([*chosen, i])) if i in others else np.nan for i in range(n_columns)]
        np.testing.assert_allclose(step.losses, expected)
        chosen.append(ranked[0])
        assert (step.n_selected, step.n_columns) == (len(chosen), len(chosen))
    assert sorted(chosen) == list(range(n_columns))
    assert path.columns.tolist() == chosen
    assert path.reason == "no candidate is left"


def test_ties_go_to_the_lowest_index() -> None:
    path = run(make_fake(4, lambda columns: 5.0 - len(columns)), Never())
    assert path.columns.tolist() == [0, 1, 2, 3]
    assert [step.runner_up for step in path.steps[1:]] == [1, 2, 3, None]


def test_the_start_is_the_constant_prediction() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    start = run(scorer, MaxFeatures(1)).steps[0]
    problem = scorer.problem
    assert (start.action, start.group, start.n_selected, start.n_columns, start.n_fits) == ("start", None, 0, 0, 0)
    assert len(start.columns) == 0
    squares = [
        (problem.targets[row, 0] - problem.targets[round_.training(f), 0].mean()) ** 2
        for round_ in problem.rounds
        for f in range(round_.n_folds)
        for row in round_.validation(f)
    ]
    assert start.loss == pytest.approx(np.mean(squares))
    assert np.isnan([start.before, start.gain, start.runner_up_loss, *start.losses]).all()


def test_gain_errors_and_counts_of_a_step() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    _, first, second = run(scorer, MaxFeatures(2), predictor="fake").steps
    assert (first.loss, second.before, second.loss) == pytest.approx((7, 7, 5))
    assert second.gain == pytest.approx((7 - 5) / 5)
    assert first.gain == pytest.approx((first.before - 7) / 7)
    assert (first.n_fits, second.n_fits) == (3, 2)
    assert first.fold_losses.base is None  # a view would keep the losses of all candidates in memory
    assert first.columns.base is None
    assert (first.name, second.name, second.predictor) == ("x2", "x1", "fake")
    assert second.seconds >= 0
    weights, parts = second.fold_weights, second.fold_losses
    assert weights @ parts == pytest.approx(second.loss)
    n = len(weights)
    assert second.standard_error == pytest.approx(np.std(parts, ddof=1) / np.sqrt(n))


def test_a_loss_of_zero_is_an_infinite_gain() -> None:
    assert run(make_fake(2, lambda columns: 0.0), MaxFeatures(1)).steps[1].gain == np.inf


def test_before_is_the_loss_of_the_selection_under_the_conditions_of_the_step() -> None:
    loss = weights_loss([1, 2, 3])
    scorer = make_fake(3, loss, luck=lambda size: [0.0, 0.5, -0.25][size])
    steps = run(scorer, Never()).steps
    assert [step.loss for step in steps[1:]] == pytest.approx([7, 5.5, 3.75])
    assert [step.before for step in steps[2:]] == pytest.approx([7.5, 4.75])
    assert steps[1].before == steps[0].loss
    # The selection as it is travels with the candidates, as an empty set.
    assert scorer.calls == [([], [[0], [1], [2]]), ([2], [[0], [1], []]), ([2, 1], [[0], []])]


def test_groups_enter_together_and_overlap_adds_only_what_is_new() -> None:
    groups = {"a": [0, 1], "b": [1, 2], "c": [2, 1], "d": [3]}
    scorer = make_fake(5, weights_loss([3, 2, 1, 0.5, 9]), groups=groups)
    path = run(scorer, Never())
    assert [step.name for step in path.steps[1:]] == ["a", "b", "d"]  # c has nothing left to add, column 4 no group
    assert [step.columns.tolist() for step in path.steps[1:]] == [[0, 1], [2], [3]]
    assert [step.n_columns for step in path.steps] == [0, 2, 3, 4]
    assert [step.n_selected for step in path.steps] == [0, 1, 2, 3]
    assert scorer.calls[1] == ([0, 1], [[2], [2], [3], []])
    assert path.steps[1].losses == pytest.approx([5, 7, 7, 9.5])
    assert path.steps[2].losses == pytest.approx([np.nan, 4, 4, 4.5], nan_ok=True)
    assert path.steps[2].runner_up == 2


def test_single_columns_listed_as_groups_keep_their_own_numbers() -> None:
    path = run(make_fake(4, weights_loss([4, 3, 2, 1]), groups=[[3], [1]]), Never())
    assert [step.group for step in path.steps[1:]] == [1, 0]
    assert path.columns.tolist() == [1, 3]
    assert path.steps[1].losses.shape == (2,)


def test_the_largest_improvement_per_cost_wins() -> None:
    # Loss of the start is far above ten, so that everything improves; improvements after it are the weights.
    weights = [1.0, 3.0, 8.0, 1.5]
    costs = [1.0, 2.0, 16.0, 1.0]
    scorer = make_fake(4, weights_loss(weights), groups=[[0], [1], [2], [3]], costs=costs)
    path = run(scorer, Never())
    first = path.steps[1]
    merits = (first.before - first.losses) / costs
    assert first.group == int(np.argmax(merits))
    chosen = [first.group]
    for step in path.steps[2:]:
        left = [i for i in range(4) if i not in chosen]
        ranked = sorted(left, key=lambda i: (-weights[i] / costs[i], i))
        assert step.group == ranked[0]
        assert step.runner_up == (ranked[1] if len(ranked) > 1 else None)
        chosen.append(step.group)


def test_costs_never_let_a_harmful_candidate_win() -> None:
    weights = [-1.0, 0.5, -0.25, 6.0]
    scorer = make_fake(4, weights_loss(weights), costs=[0.001, 100.0, 1000.0, 1.0])
    path = run(scorer, Never(), fixed=[3])
    # One that helps a little at a high price, then the one that harms least, whatever it costs.
    assert [step.group for step in path.steps[1:]] == [1, 2, 0]
    assert [step.runner_up for step in path.steps[1:]] == [2, 0, None]


def test_equal_costs_change_nothing() -> None:
    loss = random_loss(3)
    plain, equal = (run(make_fake(5, loss, costs=costs), Never()) for costs in (None, [0.3] * 5))
    assert plain.columns.tolist() == equal.columns.tolist()


def test_constant_columns_are_no_candidates() -> None:
    scorer = make_fake(4, weights_loss([1, 9, 2, 9]), constant=[1, 3])
    path = run(scorer, Never())
    assert path.columns.tolist() == [2, 0]
    assert np.isnan(path.steps[1].losses).tolist() == [False, True, False, True]
    grouped = make_fake(4, weights_loss([1, 9, 2, 9]), constant=[1, 3], groups=[[0, 1], [3], [2]])
    assert [step.group for step in run(grouped, Never()).steps[1:]] == [0, 2]  # a group with something that varies may


def test_fixed_columns_are_in_from_the_start() -> None:
    scorer = make_fake(4, weights_loss([1, 2, 3, 4]))
    path = run(scorer, MaxFeatures(3), fixed=[2, 0])
    start = path.steps[0]
    assert scorer.calls[0] == ([], [[2, 0]])
    assert start.loss == pytest.approx(6)
    assert (start.n_selected, start.n_columns, start.n_fits) == (2, 2, 1)
    assert path.columns.tolist() == [2, 0, 3]
    assert path.steps[1].losses == pytest.approx([np.nan, 4, np.nan, 2], nan_ok=True)


def test_fixed_columns_may_be_fewer_features_than_columns() -> None:
    path = run(make_fake(5, weights_loss([1, 2, 3, 4, 5])), MaxFeatures(2), fixed=[0, 1, 2], n_fixed=1)
    assert [step.n_selected for step in path.steps] == [1, 2]
    assert [step.n_columns for step in path.steps] == [3, 4]


def test_all_columns_may_be_selected() -> None:
    path = run(make_fake(3, weights_loss([1, 2, 3])), MaxFeatures(3))
    assert path.columns.tolist() == [2, 1, 0]
    assert path.reason == "3 of at most 3 features are selected"


def test_fixed_columns_may_be_all_there_is() -> None:
    path = run(make_fake(2, weights_loss([1, 2])), RelativeImprovement(0.1), fixed=[1, 0])
    assert path.columns.tolist() == [1, 0]
    assert (len(path.steps), path.kept, path.reason) == (1, (), "no candidate is left")


@pytest.mark.parametrize("costs", [None, [1.0, 2.0, 3.0, 4.0]])
def test_losses_that_are_no_numbers_lose_with_a_warning(costs: Any) -> None:
    def loss(columns: frozenset[int]) -> float:
        return float("nan") if columns & {0, 2} else weights_loss([0, 1, 0, 2])(columns)

    with pytest.warns(UserWarning, match="2 candidates have a loss that is no finite number: they lose"):
        path = run(make_fake(4, loss, costs=costs), MaxFeatures(2))
    assert sorted(path.columns.tolist()) == [1, 3]
    assert path.steps[1].runner_up in (1, 3)
    assert path.steps[2].runner_up is None
    assert np.isnan(path.steps[2].runner_up_loss)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_step_in_which_all_losses_are_no_numbers_ends_the_pursuit(value: float) -> None:
    def loss(columns: frozenset[int]) -> float:
        return value if len(columns) > 1 else weights_loss([1, 2, 4])(columns)

    with pytest.warns(UserWarning, match="Step 2 ends the pursuit: the loss of every candidate is NaN or infinite"):
        path = run(make_fake(3, loss), MaxFeatures(3))
    assert path.columns.tolist() == [2]
    assert path.reason.startswith("the loss of every candidate is NaN or infinite")


@pytest.mark.filterwarnings("ignore:1 candidates have a loss")
@pytest.mark.parametrize("look_ahead", [1, 2])
@pytest.mark.parametrize("costs", [None, [1.0, 1.0, 1.0, 5.0]])
def test_a_selection_whose_own_loss_is_no_number_is_improved_by_any_that_is(costs: Any, look_ahead: int) -> None:
    def loss(columns: frozenset[int]) -> float:
        return float("nan") if columns == {0} or 1 in columns else weights_loss([1, 9, 2, 4])(columns)

    path = run(make_fake(4, loss, costs=costs), MaxFeatures(1 + look_ahead), fixed=[0], look_ahead=look_ahead)
    assert path.columns.tolist()[:2] == [0, 3]  # no improvement is larger than another: the lowest loss wins
    assert path.steps[1].gain == float("inf")


RULES = {
    # Losses after the start: 7, 5, 4, 3.9, 4.9 (columns 4, 3, 2, 1, 0); the start's is far above.
    "number": (MaxFeatures(2), [4, 3], 2),
    "columns": (MaxColumns(3), [4, 3, 2], 3),
    "tol": (RelativeImprovement(0.1), [4, 3, 2], 4),
    "nothing is worth that": (RelativeImprovement(1e9), [], 1),
    "number before tol": (FirstOf([MaxFeatures(2), RelativeImprovement(0.1)]), [4, 3], 2),
    "tol before number": (FirstOf([MaxFeatures(5), RelativeImprovement(0.1)]), [4, 3, 2], 4),
    "plateau": (Plateau(patience=1, standard_errors=0), [4, 3, 2, 1], 5),
    "fits": (MaxFits(9), [4, 3], 2),
}


@pytest.mark.parametrize(("rule", "kept", "n_tried"), RULES.values(), ids=RULES)
def test_rules_decide_how_many_steps_are_tried_and_kept(rule: StopRule, kept: list[int], n_tried: int) -> None:
    path = run(make_fake(5, weights_loss([-1, 0.1, 1, 2, 3])), rule)
    assert path.columns.tolist() == kept
    assert len(path.steps) == n_tried + 1
    assert [step.kept for step in path.steps] == [True] * (len(kept) + 1) + [False] * (n_tried - len(kept))
    assert [step.group for step in path.kept] == kept
    assert path.reason


def test_reasons_are_the_rules_own() -> None:
    path = run(make_fake(5, weights_loss([-1, 0.1, 1, 2, 3])), RelativeImprovement(0.1))
    assert path.reason == "no relative improvement of at least 0.1 of the loss in 1 step"


def test_the_rule_is_asked_before_the_first_step_too() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    path = run(scorer, MaxFeatures(2), fixed=[0, 1])
    assert (len(path.steps), path.columns.tolist()) == (1, [0, 1])
    assert scorer.calls == [([], [[0, 1]])]  # nothing but the start was scored


def test_each_step_is_reported_once_and_as_it_is_made() -> None:
    seen: list[Step] = []
    scorer = make_fake(4, weights_loss([1, 2, 3, 4]))
    calls_so_far: list[int] = []
    begun: list[int] = []

    class Listener:
        def begin(self) -> None:
            begun.append(len(seen))

        def end(self, steps: Sequence[Step], n_new: int) -> bool:
            seen.append(steps[-1])
            assert len(steps) == len(seen)
            calls_so_far.append(len(scorer.calls))
            return False

    path = run(scorer, MaxFeatures(3), observer=Listener())
    assert begun == [1, 2, 3]
    assert [(step.action, step.group, step.loss) for step in seen] == [
        (step.action, step.group, step.loss) for step in path.steps
    ]
    assert calls_so_far == [0, 1, 2, 3]


class Interrupts:
    """An observer that stops, or raises, after so many steps."""

    def __init__(self, after: int, how: BaseException | None = None) -> None:
        self.after, self.how = after, how

    def begin(self) -> None:
        pass

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        if len(steps) <= self.after:
            return False
        if self.how:
            raise self.how
        return True


REASONS = {
    "interrupted; the path is partial": KeyboardInterrupt(),
    "a callback asked to stop; the path is partial": None,
}


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("reason", REASONS)
def test_what_is_there_is_kept_when_a_pursuit_is_cut_short(reason: str, after: int) -> None:
    whole = run(make_fake(4, weights_loss([1, 2, 3, 4])), MaxFeatures(3))
    path = run(make_fake(4, weights_loss([1, 2, 3, 4])), MaxFeatures(3), observer=Interrupts(after, REASONS[reason]))
    assert (path.reason, path.partial, len(path.steps)) == (reason, True, after + 1)
    assert [step.group for step in path.kept] == [step.group for step in whole.kept][:after]
    assert not whole.partial


@pytest.mark.filterwarnings("ignore:Step 3 ends the pursuit")
@pytest.mark.parametrize("how", ["budget", "callback", "interrupt", "divergence"])
def test_however_a_pursuit_is_cut_short_what_may_be_chance_is_taken_back(how: str) -> None:
    """The first step is proven, the second isn't, and no third one follows that could prove it."""

    def loss(columns: frozenset[int]) -> float:
        if how == "interrupt" and len(columns) > 2:
            raise KeyboardInterrupt
        return float("nan") if how == "divergence" and len(columns) > 2 else weights_loss([1, 2, 3, 4])(columns)

    start, first, second = run(make_fake(4, loss), MaxFeatures(2)).steps
    made = [start, replace(first, chance=0.001), replace(second, chance=0.1)]
    rule = FirstOf([BeyondChance(0.01), MaxFits(1)]) if how == "budget" else BeyondChance(0.01)
    path = run(make_fake(4, loss), rule, made=made, observer=Interrupts(2) if how == "callback" else None)
    assert path.columns.tolist() == [3]
    assert [step.kept for step in path.steps] == [True, True] + [False] * (len(path.steps) - 2)
    assert path.partial == (how != "divergence")


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 5),
    rule=st.sampled_from([MaxColumns(3), RelativeImprovement(0.02), Plateau(patience=1), MaxFeatures(9)]),
    floating=st.booleans(),
)
def test_a_callback_that_stops_keeps_what_a_budget_keeps_that_is_spent_then(
    seed: int, n: int, rule: StopRule, floating: bool
) -> None:
    def found(rule: StopRule, observer: Interrupts | None = None) -> tuple[int, list[int]]:
        scorer = make_fake(8, random_loss(seed), groups=[[0, 1], [2], [3, 4], [5], [6, 7]])
        path = run(scorer, rule, floating=floating, observer=observer)
        counts.append([step.n_fits for step in path.steps])
        return len(path.steps), path.columns.tolist()

    counts: list[list[int]] = []
    asked = found(rule, Interrupts(n))
    assert asked == found(FirstOf([rule, MaxFits(sum(counts[0]))]))


def test_an_interrupt_before_there_is_anything_is_not_held_up() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    scorer.add_losses = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(scorer, MaxFeatures(2), fixed=[0])


@pytest.mark.parametrize("n_made", [1, 2, 4])
def test_a_pursuit_goes_on_with_the_steps_of_another(n_made: int) -> None:
    whole = run(make_fake(5, weights_loss([-1, 0.1, 1, 2, 3])), RelativeImprovement(0.1))
    scorer = make_fake(5, weights_loss([-1, 0.1, 1, 2, 3]))
    again = run(scorer, RelativeImprovement(0.1), made=whole.steps[:n_made])
    assert [(step.group, step.loss, step.kept) for step in again.steps] == [
        (step.group, step.loss, step.kept) for step in whole.steps
    ]
    assert again.reason == whole.reason
    assert len(scorer.calls) == len(whole.steps) - n_made
