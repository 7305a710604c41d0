"""Algorithm 1 with made-up losses: whatever predicts, the pursuit must do as the paper says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from greedy_cases import (
    NEVER,
    Loss,
    Observes,
    fake_steps,
    make_fake,
    random_loss,
    run,
    seen,
    stop_after,
    weights_loss,
)
from hypothesis import given
from hypothesis import strategies as st

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path, Step
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stopping import (
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    Plateau,
    RelativeImprovement,
    Significance,
    StopRule,
)
from ngp.predictors import SSFN, ColumnSets


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 6), decimals=st.sampled_from([1, 6]))
def test_no_other_candidate_would_have_been_better(seed: int, n_columns: int, decimals: int) -> None:
    loss = random_loss(seed, decimals)
    path = run(make_fake(n_columns, loss), NEVER)
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


def plain_greedy(loss: Loss, start: float, groups: list[list[int]], costs: list[float], fixed: list[int]) -> list[int]:
    """Groups in the order in which the largest improvement per cost selects them, in plain loops."""
    selected, order = frozenset(fixed), list[int]()
    while candidates := [group for group, columns in enumerate(groups) if set(columns) - selected]:
        before = loss(selected) if selected else start

        def merit(group: int, selected: frozenset[int] = selected, before: float = before) -> float:
            change = loss(selected | set(groups[group])) - before
            return change / costs[group] if change < 0 else change

        order.append(min(candidates, key=merit))
        selected |= set(groups[order[-1]])
    return order


@given(seed=st.integers(0, 10_000), n_columns=st.integers(2, 7), data=st.data())
def test_groups_costs_and_fixed_columns_as_in_a_plain_loop(seed: int, n_columns: int, data: Any) -> None:
    columns = st.lists(st.integers(0, n_columns - 1), min_size=1, max_size=3, unique=True)
    groups, fixed = data.draw(st.lists(columns, min_size=1, max_size=5)), data.draw(st.just([]) | columns)
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.1, 5, size=len(groups)).tolist() if data.draw(st.booleans()) else [1.0] * len(groups)
    scorer = make_fake(n_columns, random_loss(seed), groups=groups, costs=costs)
    path = run(scorer, NEVER, fixed)
    expected = plain_greedy(scorer.loss, path.steps[0].loss, groups, costs, fixed)
    assert [step.group for step in path.steps[1:]] == expected
    assert len(set(path.columns)) == len(path.columns) == path.steps[-1].n_columns
    assert set(path.columns) == set(fixed).union(*(groups[group] for group in expected))


def test_the_start_is_the_constant_prediction() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    start = run(scorer, MaxFeatures(1)).steps[0]
    problem = scorer.problem
    assert (start.action, start.group, start.n_selected, start.n_columns, start.n_fits) == ("start", None, 0, 0, 0)
    squares = [
        (problem.targets[row, 0] - problem.targets[round_.training(f), 0].mean()) ** 2
        for round_ in problem.rounds
        for f in range(round_.n_folds)
        for row in round_.validation(f)
    ]
    assert start.loss == pytest.approx(np.mean(squares))
    assert np.isnan([start.before, start.gain, start.paired, start.runner_up_loss, *start.losses]).all()


def test_fixed_columns_are_in_from_the_start() -> None:
    scorer = make_fake(4, weights_loss([1, 2, 3, 4]))
    path = run(scorer, MaxFeatures(3), fixed=[2, 0])
    start = path.steps[0]
    assert scorer.calls[0] == ([2, 0], [[]])
    assert start.loss == pytest.approx(6)
    assert (start.n_selected, start.n_columns, start.n_fits) == (2, 2, 1)
    assert path.columns.tolist() == [2, 0, 3]
    assert path.steps[1].losses == pytest.approx([np.nan, 4, np.nan, 2], nan_ok=True)


def test_fixed_columns_may_be_fewer_features_than_columns_and_all_there_is() -> None:
    path = run(make_fake(5, weights_loss([1, 2, 3, 4, 5])), MaxFeatures(2), fixed=[0, 1, 2], n_fixed=1)
    assert [(step.n_selected, step.n_columns) for step in path.steps] == [(1, 3), (2, 4)]
    path = run(make_fake(2, weights_loss([1, 2])), RelativeImprovement(0.1), fixed=[1, 0])
    assert (path.columns.tolist(), len(path.steps), path.reason) == ([1, 0], 1, "no candidate is left")


def test_gain_errors_and_counts_of_a_step() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    _, first, second = run(scorer, MaxFeatures(2), predictor="fake").steps
    assert (first.loss, second.before, second.loss) == pytest.approx((7, 7, 5))
    assert second.gain == pytest.approx((7 - 5) / 7)
    assert (first.n_fits, second.n_fits) == (3, 2)
    assert first.fold_losses.base is None  # a view would keep the losses of all candidates in memory
    assert first.columns.base is None
    assert (first.name, second.name, second.predictor) == ("x2", "x1", "fake")
    assert second.seconds >= 0
    weights, parts = second.fold_weights, second.fold_losses
    assert weights @ parts == pytest.approx(second.loss)
    assert second.standard_error == pytest.approx(np.std(parts, ddof=1) / np.sqrt(len(weights)))
    assert run(make_fake(2, lambda columns: 0.0), MaxFeatures(1)).steps[1].gain == 1


def test_a_gain_is_a_share_of_the_loss_beside_it_and_eta_is_paired() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]), luck=lambda size: [0.0, 0.5, -0.25][size])
    steps = run(scorer, NEVER).steps
    assert [step.loss for step in steps[1:]] == pytest.approx([7, 5.5, 3.75])
    assert [step.before for step in steps[1:]] == [step.loss for step in steps[:-1]]
    assert [step.gain for step in steps[2:]] == pytest.approx([(7 - 5.5) / 7, (5.5 - 3.75) / 5.5])
    assert [step.paired for step in steps[2:]] == pytest.approx([7.5, 4.75])  # under the conditions of the step
    assert steps[1].paired == steps[0].loss
    # The selection as it is travels with the candidates, as an empty set.
    assert scorer.calls == [([], [[0], [1], [2]]), ([2], [[0], [1], []]), ([2, 1], [[0], []])]


def test_groups_enter_together_and_overlap_adds_only_what_is_new() -> None:
    groups = {"a": [0, 1], "b": [1, 2], "c": [2, 1], "d": [3]}
    scorer = make_fake(5, weights_loss([3, 2, 1, 0.5, 9]), groups=groups)
    path = run(scorer, NEVER)
    assert [step.name for step in path.steps[1:]] == ["a", "b", "d"]  # c has nothing left to add, column 4 no group
    assert [step.columns.tolist() for step in path.steps[1:]] == [[0, 1], [2], [3]]
    assert [(step.n_selected, step.n_columns) for step in path.steps] == [(0, 0), (1, 2), (2, 3), (3, 4)]
    assert path.steps[2].losses == pytest.approx([np.nan, 4, 4, 4.5], nan_ok=True)


def test_losses_that_are_no_numbers_lose_with_a_warning() -> None:
    for costs in [None, [1.0, 2.0, 3.0, 4.0]]:

        def loss(columns: frozenset[int]) -> float:
            return float("nan") if columns & {0, 2} else weights_loss([0, 1, 0, 2])(columns)

        with pytest.warns(UserWarning, match="2 candidates have a loss that is no finite number: they lose"):
            path = run(make_fake(4, loss, costs=costs), MaxFeatures(2))
        assert sorted(path.columns.tolist()) == [1, 3]
        assert path.steps[1].runner_up in (1, 3)
        assert path.steps[2].runner_up is None
        assert np.isnan(path.steps[2].runner_up_loss)


def test_a_step_in_which_all_losses_are_no_numbers_ends_the_pursuit() -> None:
    for value in [float("nan"), float("inf")]:

        def loss(columns: frozenset[int], value: float = value) -> float:
            return value if len(columns) > 1 else weights_loss([1, 2, 4])(columns)

        with pytest.warns(UserWarning, match="Step 2 ends the pursuit: the loss of every candidate is NaN or infinite"):
            path = run(make_fake(3, loss), MaxFeatures(3))
        assert path.columns.tolist() == [2]
        assert path.reason.startswith("the loss of every candidate is NaN or infinite")


@pytest.mark.filterwarnings("ignore:1 candidates have a loss")
def test_a_selection_whose_own_loss_is_no_number_is_improved_by_any_that_is() -> None:
    def loss(columns: frozenset[int]) -> float:
        return float("nan") if columns == {0} or 1 in columns else weights_loss([1, 9, 2, 4])(columns)

    scorer = make_fake(4, loss, costs=[1.0, 1.0, 1.0, 5.0])
    path = run(scorer, MaxFeatures(2), fixed=[0])
    assert path.columns.tolist() == [0, 3]  # no improvement is larger than another: the lowest loss wins
    assert path.steps[1].paired == float("inf")


RULES: dict[str, tuple[StopRule, list[int], int, str]] = {
    # Losses after the start: 7, 5, 4, 3.9, 4.9 (columns 4, 3, 2, 1, 0); the start's is far above.
    "number": (MaxFeatures(2), [4, 3], 2, "2 of at most 2 features are selected"),
    "columns": (MaxColumns(3), [4, 3, 2], 3, "3 of at most 3 columns are selected"),
    "tol": (RelativeImprovement(0.1), [4, 3, 2], 4, "no relative improvement of at least 0.1 of the loss in 1 step"),
    "nothing pays": (RelativeImprovement(1e9), [], 1, "no relative improvement of at least 1e+09 of the loss in 1 st"),
    "number before tol": (FirstOf([MaxFeatures(2), RelativeImprovement(0.1)]), [4, 3], 2, "2 of at most 2 features"),
    "tol before number": (FirstOf([MaxFeatures(5), RelativeImprovement(0.1)]), [4, 3, 2], 4, "no relative improvement"),
    "plateau": (Plateau(patience=1, standard_errors=0), [4, 3, 2, 1], 5, "no lower loss in 1 step; kept is the small"),
    "fits": (MaxFits(9), [4, 3], 2, "the budget of 9 fits is used up; the path is partial"),
}


@pytest.mark.parametrize(("rule", "kept", "n_tried", "reason"), RULES.values(), ids=RULES)
def test_rules_decide_how_many_steps_are_tried_and_kept(
    rule: StopRule, kept: list[int], n_tried: int, reason: str
) -> None:
    path = run(make_fake(5, weights_loss([-1, 0.1, 1, 2, 3])), rule)
    assert path.columns.tolist() == kept
    assert [step.kept for step in path.steps] == [True] * (len(kept) + 1) + [False] * (n_tried - len(kept))
    assert [step.group for step in path.kept] == kept
    assert path.reason.startswith(reason)
    assert path.partial == ("partial" in reason)


def test_the_rule_is_asked_before_the_first_step_too() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    path = run(scorer, MaxFeatures(2), fixed=[0, 1])
    assert (len(path.steps), path.columns.tolist()) == (1, [0, 1])
    assert scorer.calls == [([0, 1], [[]])]  # nothing but the start was scored


def test_each_step_is_reported_once_and_as_it_is_made() -> None:
    scorer, events = make_fake(4, weights_loss([1, 2, 3, 4])), list[Any]()

    class Listener:
        def begin(self) -> None:
            events.append(("begin", len(scorer.calls)))

        def end(self, steps: Sequence[Step], n_new: int) -> bool:
            events.append((steps[-1].group, n_new, len(scorer.calls)))
            return False

    run(scorer, MaxFeatures(2), observer=Listener())
    assert events == [(None, 1, 0), ("begin", 0), (3, 1, 1), ("begin", 1), (2, 1, 2)]


ASKED = "a callback asked to stop; the path is partial"


@pytest.mark.parametrize(
    ("reason", "how", "after"),
    [
        ("interrupted before anything was selected", KeyboardInterrupt(), 0),
        ("interrupted; the path is partial", KeyboardInterrupt(), 2),
        (ASKED, None, 0),
        (ASKED, None, 2),
    ],
)
def test_all_steps_are_kept_when_a_pursuit_is_cut_short(reason: str, how: BaseException | None, after: int) -> None:
    whole = run(make_fake(4, weights_loss([1, 2, 3, 4])), MaxFeatures(3))
    observer = Observes(stop_after(after, how))
    path = run(make_fake(4, weights_loss([1, 2, 3, 4])), MaxFeatures(3), observer=observer)
    assert (path.reason, path.partial, len(path.steps)) == (reason, True, after + 1)
    assert [step.group for step in path.kept] == [step.group for step in whole.kept][:after]
    assert not whole.partial


@pytest.mark.filterwarnings("ignore:Step 3 ends the pursuit")
@pytest.mark.parametrize("how", ["budget", "callback", "interrupt", "divergence"])
def test_however_a_pursuit_is_cut_short_unproven_steps_are_taken_back(how: str) -> None:
    """The first step is proven, the second isn't, and no third one follows that could prove it."""

    def loss(columns: frozenset[int]) -> float:
        if how == "interrupt" and len(columns) > 2:
            raise KeyboardInterrupt
        return float("nan") if how == "divergence" and len(columns) > 2 else weights_loss([0, 1e-3, 1e-3, 4])(columns)

    start, first, second = run(make_fake(4, loss), MaxFeatures(2)).steps
    made = [start, replace(first, p_value=0.001), replace(second, p_value=0.9)]
    rule = FirstOf([Significance(0.01), MaxFits(1)]) if how == "budget" else Significance(0.01)
    observer = Observes(stop_after(2)) if how == "callback" else None
    path = run(make_fake(4, loss), rule, made=made, observer=observer)
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
    def found(rule: StopRule, observer: Observes | None = None) -> Any:
        scorer = make_fake(8, random_loss(seed), groups=[[0, 1], [2], [3, 4], [5], [6, 7]])
        return run(scorer, rule, floating=floating, observer=observer)

    asked = found(rule, Observes(stop_after(n)))
    spent = found(FirstOf([rule, MaxFits(sum(step.n_fits for step in asked.steps))]))
    assert (len(asked.steps), asked.columns.tolist()) == (len(spent.steps), spent.columns.tolist())


def test_pairs_that_are_added_are_significant_and_of_two_candidates() -> None:
    """Though of few candidates, all pairs are among the leading ones."""
    rng = np.random.default_rng(2207)
    X = rng.normal(size=(80, 7))
    groups = make_groups([[0], [1, 2], [3], [4, 5], [6]], 7)
    problem = make_problem(X, X[:, 2] * X[:, 4] + 0.1 * rng.normal(size=80), groups=groups, task="regression", cv=5)
    candidates, test = ColumnSets.of(groups.columns), SignificanceTest(problem, 0.01, 0)
    found = test.pair(np.zeros(0, np.intp), candidates)
    assert found.p_value <= test.pair_level
    assert found.leading[0].tolist() == [1, 3]
    assert len(found.leading) < 4  # of ten
    few = test.pair(np.array([2]), candidates.take(np.array([0, 2])))
    assert few.leading.tolist() == [[0, 1]]
    path = run_on(problem, MaxFeatures(2, level=0.01))
    assert [(step.group, step.n_ahead) for step in path.steps[1:]] in ([(1, 2), (3, 1)], [(3, 2), (1, 1)])
    quick = SignificanceTest(problem, 0.01, 0, quick=True).pair(np.zeros(0, np.intp), candidates)
    assert {step.p_value for step in path.steps[1:]} == {quick.p_value}


def run_on(problem: Problem, rule: StopRule) -> Path:
    """A pursuit with real networks."""
    search = Search(problem, lambda problem: SSFN(n_units=20, n_draws=1).bind(problem, random_state=0))
    return pursue(search, rule, fixed=np.zeros(0, np.intp))


def test_an_interrupt_before_there_is_anything_is_raised() -> None:
    scorer = make_fake(3, weights_loss([1, 2, 3]))
    scorer.add_losses = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(scorer, MaxFeatures(2), fixed=[0])


def test_a_pursuit_goes_on_with_the_steps_of_another() -> None:
    for n_made in [1, 2, 4]:
        whole = run(make_fake(5, weights_loss([-1, 0.1, 1, 2, 3])), RelativeImprovement(0.1))
        scorer = make_fake(5, weights_loss([-1, 0.1, 1, 2, 3]))
        again = run(scorer, RelativeImprovement(0.1), made=whole.steps[:n_made])
        assert seen(again.steps) == seen(whole.steps)
        assert again.reason == whole.reason
        assert len(scorer.calls) == len(whole.steps) - n_made


def test_the_time_of_an_earlier_run_is_not_counted_again() -> None:
    fast = run(make_fake(5, weights_loss([5, 4, 3, 2, 1])), MaxFeatures(2)).steps
    made = [replace(step, seconds=1000.0) for step in fast]
    path = run(make_fake(5, weights_loss([5, 4, 3, 2, 1])), FirstOf([MaxTime(500), MaxFeatures(4)]), made=made)
    assert (path.partial, path.columns.tolist()) == (False, [0, 1, 2, 3])
    assert [step.seconds for step in path.steps[:3]] == [1000.0] * 3  # the record stays


def test_a_budget_counts_steps_that_were_taken_back() -> None:
    start, first, second = fake_steps([10, 5, 4])
    made = [start, replace(first, columns=np.array([0])), replace(second, kept=False, n_fits=100)]
    path = run(make_fake(4, weights_loss([4, 3, 2, 1])), MaxFits(100), made=made)
    assert (path.reason, len(path.steps)) == ("the budget of 100 fits is used up; the path is partial", 3)
