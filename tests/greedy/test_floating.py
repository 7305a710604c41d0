"""Taking back: with made-up losses, where all selections can be compared, and on data with a decoy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path as FilePath
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from greedy_cases import (
    Observes,
    OnStep,
    decoy_loss,
    make_fake,
    random_loss,
    run,
    search_of,
    seen,
    stop_after,
    weights_loss,
)
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ngp import NeuralGreedyPursuit, NGPRegressor
from ngp.greedy import floating
from ngp.greedy.floating import Floating
from ngp.greedy.path import Step, additions, chosen, columns_of
from ngp.greedy.stopping import (
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    Plateau,
    RelativeImprovement,
    StopRule,
)
from ngp.predictors import SSFN, Kernel

RULES: dict[str, StopRule] = {
    "number": MaxFeatures(3),
    "gain": RelativeImprovement(0.05),
    "any gain": RelativeImprovement(0.0),
    "either": FirstOf([MaxFeatures(4), RelativeImprovement(0.02)]),
    "plateau": Plateau(),
}


def columns_after(steps: Sequence[Step]) -> frozenset[int]:
    return frozenset(columns_of(chosen(steps)).tolist())


class Watching(Observes):
    """Keeps what stood after each step, as it was then."""

    def __init__(self) -> None:
        super().__init__(self.watch)
        self.stood: list[list[Step]] = []

    def watch(self, steps: Sequence[Step], n_new: int) -> None:
        for length in range(len(steps) - n_new + 1, len(steps) + 1):
            self.stood.append([step for step in steps[:length] if step.kept])


@given(seed=st.integers(0, 10_000), n_columns=st.integers(2, 6), rule=st.sampled_from(list(RULES)))
@example(seed=168, n_columns=6, rule="plateau")  # kept is less than an exchange of one for several led to
def test_in_the_end_no_exchange_of_one_for_one_lowers_the_loss(seed: int, n_columns: int, rule: str) -> None:
    loss = random_loss(seed)
    path = run(make_fake(n_columns, loss), RULES[rule], floating=True)
    selected = frozenset(path.columns.tolist())
    for out, new in product(selected, frozenset(range(n_columns)) - selected):
        assert loss(selected) <= loss(selected - {out} | {new})
    if rule == "number" and n_columns >= 3:
        assert len(selected) == 3


@given(seed=st.integers(0, 10_000), n_columns=st.integers(3, 7), n=st.integers(1, 3))
def test_as_many_features_are_at_least_as_good_as_without(seed: int, n_columns: int, n: int) -> None:
    scorer = make_fake(n_columns, random_loss(seed))
    plain, free = (run(scorer, MaxFeatures(n), floating=way) for way in (False, True))
    assert len(free.columns) == len(plain.columns) == n
    assume([step.action for step in free.steps[1 : n + 1]] == ["add"] * n)  # after a drop the path is another one
    assert scorer.loss(frozenset(free.columns.tolist())) <= scorer.loss(frozenset(plain.columns.tolist()))


@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=6),
    n=st.integers(1, 6),
    other=st.sampled_from([None, *RULES]),
)
@example(seed=1, sizes=[1, 1, 2, 1], n=2, other=None)  # where an exchange of one for one would lead beyond
@example(seed=0, sizes=[2, 1, 3, 1, 2], n=3, other=None)  # and so does one of one for several
def test_exchanges_lead_to_no_more_columns_than_allowed(seed: int, sizes: list[int], n: int, other: str | None) -> None:
    groups = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    rule: StopRule = MaxColumns(n) if other is None else FirstOf([RULES[other], MaxColumns(n)])
    path = run(make_fake(sum(sizes), random_loss(seed), groups=groups), rule, floating=True)
    assert len(path.columns) <= n
    if other is None and path.reason != "no candidate is left":
        assert path.reason.startswith(f"{len(path.columns)} of at most {n} column")


def test_no_selection_is_exchanged_twice() -> None:
    """Luck could make each of two selections look better than the other, for ever."""
    search = search_of(make_fake(3, weights_loss([1, 2, 0])))
    start, added = run(make_fake(3, weights_loss([1, 0, 0])), MaxFeatures(1)).steps
    there = replace(added, action="swap", group=1, dropped=0, columns=np.array([1]))
    back = replace(added, action="swap", group=0, dropped=1)
    floats = Floating(search, MaxFeatures(1), None)
    assert [step.group for step in floats.exchange([start, added])] == [1]
    assert floats.exchange([start, added, there, back]) == []


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 6), rule=st.sampled_from(list(RULES)))
def test_steps_say_what_they_do(seed: int, n_columns: int, rule: str) -> None:
    scorer, watching = make_fake(n_columns, random_loss(seed)), Watching()
    path = run(scorer, RULES[rule], floating=True, observer=watching)
    for stood in watching.stood:
        step, columns = stood[-1], columns_after(stood)
        assert (step.n_selected, step.n_columns) == (len(columns), len(columns))
        assert (step.group is None) == (step.action in ("start", "drop"))
        assert (step.dropped is None) == (step.action in ("start", "add"))
        if len(stood) > 1:
            assert step.loss == pytest.approx(scorer.loss(columns))
            before = columns - {step.group} | ({step.dropped} if step.action == "drop" else set())
            if before:
                assert step.paired == pytest.approx(scorer.loss(before))
            assert step.before == stood[-2].loss
            assert step.gain == pytest.approx((step.before - step.loss) / step.before)
    drops = [step.dropped for step in path.steps if step.action == "drop" and step.kept]
    assert len(drops) == len(set(drops))
    last = [step for step in path.steps if step.kept][-1]
    assert last.n_selected == len(path.columns)
    if len(path.columns):
        assert last.loss == pytest.approx(scorer.loss(frozenset(path.columns.tolist())))


def test_what_others_make_useless_is_dropped() -> None:
    def loss(columns: frozenset[int]) -> float:
        """Column 0 is worth most by itself, and nothing beside 1 and 2."""
        parts = len(columns & {1, 2})
        return (
            10.0 - max(6.0 if 0 in columns else 0.0, 4.0 * parts) - (0.5 * parts if 0 in columns and parts < 2 else 0)
        )

    path = run(make_fake(5, loss), RelativeImprovement(0.05), floating=True)
    assert [(step.action, step.name) for step in path.steps[1:5]] == [
        ("add", "x0"), ("add", "x1"), ("add", "x2"), ("drop", "x0"),
    ]  # fmt: skip
    assert sorted(path.columns) == [1, 2]
    assert [step.kept for step in path.steps[:5]] == [True, False, True, True, True]
    assert sorted(run(make_fake(5, loss), RelativeImprovement(0.05)).columns) == [0, 1, 2]


def test_a_decoy_is_left_out_for_those_that_it_is_made_of() -> None:
    path = run(make_fake(9, decoy_loss), RelativeImprovement(0.1), floating=True)
    assert sorted(path.columns) == [1, 2, 3, 4]
    assert [step.action for step in additions(path.steps)] == ["swap", "add", "add", "add"]
    assert run(make_fake(9, decoy_loss), RelativeImprovement(0.1)).columns.tolist() == [0]


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), rule=st.sampled_from(list(RULES)))
def test_a_pursuit_goes_on_from_wherever_it_was_saved(seed: int, rule: str) -> None:
    saved: list[tuple[Step, ...]] = []

    def save(steps: Sequence[Step], n_new: int) -> None:
        assert n_new == len(steps) - len(saved[-1] if saved else ())
        saved.append(tuple(steps))

    scorer = make_fake(7, random_loss(seed))
    whole = run(scorer, RULES[rule], floating=True, observer=Observes(save))
    for steps in saved:
        assert seen(run(scorer, RULES[rule], floating=True, made=steps).steps) == seen(whole.steps)


@given(seed=st.integers(0, 10_000), fixed=st.sampled_from([[0], [2, 5]]))
def test_fixed_columns_stay(seed: int, fixed: list[int]) -> None:
    path = run(make_fake(7, random_loss(seed)), MaxFeatures(4), fixed, floating=True)
    assert path.columns[: len(fixed)].tolist() == fixed
    assert len(path.columns) == 4
    assert not {step.dropped for step in path.steps} & set(fixed)


@given(seed=st.integers(0, 10_000))
def test_groups_that_share_columns_stay(seed: int) -> None:
    groups = [[0, 1], [1, 2], [3], [4], [5, 6], [6, 7]]
    watching = Watching()
    path = run(make_fake(8, random_loss(seed), groups=groups), MaxFeatures(4), floating=True, observer=watching)
    selected = [step.group for step in path.kept]
    union = sorted({column for group in selected if group is not None for column in groups[group]})
    assert sorted(path.columns) == union
    for stood in watching.stood:
        if stood[-1].dropped is not None:
            others = [group for group in chosen(stood) if group not in (None, stood[-1].group)]
            columns = {column for group in others if group is not None for column in groups[group]}
            assert not set(groups[stood[-1].dropped]) & columns


def test_no_group_of_which_others_need_columns_is_removable() -> None:
    scorer = make_fake(4, weights_loss([1, 1, 1, 1]), groups=[[0, 1], [1, 2], [3]])
    path = run(scorer, MaxFeatures(3))
    assert floating._removable(scorer.problem, path.steps) == [2]


@given(seed=st.integers(0, 10_000))
def test_nothing_is_exchanged_for_what_costs_more(seed: int) -> None:
    costs = [1.0, 2.0, 1.0, 5.0, 2.0, 1.0]

    def spent(steps: Sequence[Step]) -> float:
        return sum(costs[group] for group in chosen([step for step in steps if step.kept]) if group is not None)

    def check(steps: Sequence[Step], n_new: int) -> None:
        exchanged = steps[-n_new].action == "swap"
        if exchanged and steps[-1].n_selected <= steps[-n_new - 1].n_selected:
            assert spent(steps) <= spent(steps[:-n_new])

    run(make_fake(6, random_loss(seed), costs=costs), MaxFeatures(3), floating=True, observer=Observes(check))


def test_if_the_budget_is_spent_nothing_is_exchanged() -> None:
    rule = FirstOf([MaxFeatures(1), MaxFits(1)])
    plain, path = (run(make_fake(6, random_loss(0)), rule, floating=way) for way in (False, True))
    assert [step.action for step in path.steps] == ["start", "add"]
    assert path.partial
    assert path.reason == "the budget of 1 fit is used up; the path is partial"
    assert plain.columns.tolist() == path.columns.tolist()


@given(seed=st.integers(0, 10_000), rule=st.sampled_from(list(RULES)), most=st.integers(1, 80))
@example(seed=0, rule="any gain", most=24)  # with a step that was taken back before an exchange
def test_nothing_begins_when_the_budget_is_spent(seed: int, rule: str, most: int) -> None:
    def within(steps: Sequence[Step], n_new: int) -> None:
        assert sum(step.n_fits for step in steps[:-n_new]) < most

    run(
        make_fake(6, random_loss(seed)), FirstOf([RULES[rule], MaxFits(most)]), floating=True, observer=Observes(within)
    )


def test_looking_in_vain_counts() -> None:
    weights = [3.0, 2.0, 1.0, 0.5]
    plain, free = (run(make_fake(4, weights_loss(weights)), MaxFeatures(2), floating=way) for way in (False, True))
    assert free.columns.tolist() == plain.columns.tolist() == [0, 1]
    extra = sum(step.n_fits for step in free.steps) - sum(step.n_fits for step in plain.steps)
    # Without each of two, and with both; each for itself and two others, and without it; and once more to leave it out.
    assert extra >= 3 + 2 * 4


def test_losses_that_are_no_numbers_are_never_better() -> None:
    def loss(columns: frozenset[int]) -> float:
        return np.nan if {1, 2} <= columns else 5.0 - len(columns) + 0.1 * min(columns, default=0)

    with pytest.warns(UserWarning, match="1 candidates have a loss that is no finite number: they lose"):
        path = run(make_fake(4, loss), MaxFeatures(2), floating=True)
    assert np.isfinite(loss(frozenset(path.columns.tolist())))


@pytest.mark.parametrize("how", ["stop", "interrupt"])
def test_an_exchange_is_kept_whole_when_a_pursuit_is_cut_short(how: str) -> None:
    def impatient(steps: Sequence[Step], n_new: int) -> bool:
        if n_new > 1 and how == "interrupt":
            raise KeyboardInterrupt
        return n_new > 1

    path = run(make_fake(9, decoy_loss), RelativeImprovement(0.1), floating=True, observer=Observes(impatient))
    assert path.partial
    assert sorted(path.columns) == [1, 2, 3, 4]
    assert ("interrupted" if how == "interrupt" else "a callback asked") in path.reason


# ---------------------------------------------------------------- data


def decoy(seed: int, noise: float = 1.0, n_rows: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 12))
    total = X[:, :4].sum(axis=1)
    X[:, 4] = total + noise * rng.normal(size=n_rows)
    return X, total + 0.3 * rng.normal(size=n_rows)


QUICK: dict[str, Any] = {"predictor": SSFN(n_units=30, n_draws=2), "random_state": 0, "floating": True}
WAYS: dict[str, dict[str, Any]] = {
    "number": {"n_features_to_select": 4},
    "tol": {"tol": 0.09},
    "p-values": {"stop": "auto"},
    "kernel": {"predictor": Kernel(), "tol": 0.09},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_decoy_is_dropped(way: dict[str, Any]) -> None:
    X, y = decoy(5000)
    plain = NGPRegressor(**{**QUICK, **way, "floating": False}).fit(X, y)
    begin = perf_counter()
    free = NGPRegressor(**QUICK | way).fit(X, y)
    taken = perf_counter() - begin
    assert (4 in plain.order_) == ("stop" not in way)  # with p-values, decoys are dropped in the end
    assert sorted(free.order_) == free.support_.nonzero()[0].tolist() == [0, 1, 2, 3]
    assert (free.feature_importances_[:4] > 0).all()
    assert free.feature_importances_[4] == 0
    fresh_X, fresh_y = decoy(9000)
    assert free.score(fresh_X, fresh_y) >= plain.score(fresh_X, fresh_y) - 0.01
    assert 0 < sum(step.seconds for step in free.path_) <= taken


def test_by_default_a_decoy_is_dropped_in_the_end() -> None:
    X, y = decoy(5000)
    path = NeuralGreedyPursuit(random_state=0).fit(X, y).path_
    place = next(number for number, step in enumerate(path) if step.action == "drop")
    assert path[1].group == path[place].dropped == 4
    assert sorted(step.group for step in path[:place] if step.kept and step.group is not None) == [0, 1, 2, 3]
    assert not any(step.kept for step in path[place + 1 :])  # nothing takes its place
    best = NeuralGreedyPursuit(stop="plateau", random_state=0).fit(X, y)
    assert all(step.action in ("start", "add") for step in best.path_)  # what predicts best needn't be significant


def test_in_an_exchange_too_each_addition_has_a_p_value() -> None:
    X, y = decoy(5001, noise=0.4)  # better than three of those that it is made of
    path = NGPRegressor(**QUICK).fit(X, y).path_
    place = next(number for number, step in enumerate(path) if step.action == "swap" and step.n_ahead > 1)
    grown = path[place : place + path[place].n_ahead]
    assert all(step.p_value <= 0.01 for step in grown)
    assert path[place].ahead == grown[-1].loss


@pytest.mark.parametrize("way", ["tol", "p-values"])
def test_a_fit_that_was_cut_short_goes_on_to_the_same_answer(way: str, tmp_path: FilePath) -> None:
    X, y = decoy(5001)
    whole = NGPRegressor(**QUICK, **WAYS[way]).fit(X, y)
    for length in range(1, len(whole.path_) - 1, 2):
        file = tmp_path / f"{length}.npz"
        selector = NGPRegressor(**QUICK, **WAYS[way], checkpoint=file)
        assert selector.set_callbacks(OnStep(stop_after(length))).fit(X, y).partial_
        again = NGPRegressor(**QUICK, **WAYS[way], checkpoint=file).fit(X, y)
        assert seen(again.path_) == seen(whole.path_)
        np.testing.assert_array_equal(again.order_, whole.order_)
