"""Looking ahead: with made-up losses, where all sets can be tried, and on data where single columns say nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursuit_cases import make_fake, random_loss, run

from ngp import NeuralGreedyPursuit, looking_ahead
from ngp.greedy.look_ahead import all_sets, extended
from ngp.greedy.stopping import MaxFeatures, RelativeImprovement
from ngp.predictors import SSFN

Loss = Callable[[frozenset[int]], float]


def best_set(loss: Loss, n_columns: int, size: int, beside: frozenset[int] = frozenset()) -> frozenset[int]:
    others = [column for column in range(n_columns) if column not in beside]
    return min((beside | set(members) for members in combinations(others, size)), key=loss)


def parity_loss(*members: int) -> Loss:
    """Columns that say something only together."""
    return lambda columns: (1.0 if set(members) <= columns else 10.0) + 0.01 * len(columns)


@given(seed=st.integers(0, 10_000), n_columns=st.integers(2, 7), depth=st.integers(2, 4))
def test_to_look_as_far_as_the_end_finds_the_best_of_all_selections(seed: int, n_columns: int, depth: int) -> None:
    loss, size = random_loss(seed), min(depth, n_columns)
    path = run(make_fake(n_columns, loss), MaxFeatures(size), look_ahead=depth)
    assert frozenset(path.columns.tolist()) == best_set(loss, n_columns, size)


@given(seed=st.integers(0, 10_000), n_columns=st.integers(3, 7))
def test_each_step_adds_one_of_the_best_set(seed: int, n_columns: int) -> None:
    loss, selected = random_loss(seed), frozenset[int]()
    path = run(make_fake(n_columns, loss), MaxFeatures(3), look_ahead=2)
    for step in path.steps[1:]:
        depth = min(2, 3 - len(selected))
        best = best_set(loss, n_columns, depth, selected)
        assert step.group in best - selected
        assert step.n_ahead == depth
        if depth == 2:
            assert step.ahead == pytest.approx(loss(best))
            assert step.loss == pytest.approx(min(loss(selected | {column}) for column in best - selected))
            others = np.nanargmin(step.losses)
            assert (step.runner_up is None) == (step.group != others)
        else:
            assert np.isnan(step.ahead)
        selected |= {int(step.group or 0)}


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 6))
def test_to_extend_the_best_one_alone_is_plain_greed(seed: int, n_columns: int) -> None:
    loss, n = random_loss(seed), min(3, n_columns)
    plain = run(make_fake(n_columns, loss), MaxFeatures(n))
    narrow = run(make_fake(n_columns, loss), MaxFeatures(n), look_ahead=2, beam_width=1)
    assert narrow.columns.tolist() == plain.columns.tolist()


@given(seed=st.integers(0, 10_000), n_columns=st.integers(3, 7))
def test_with_two_candidates_it_is_what_the_authors_tried(seed: int, n_columns: int) -> None:
    """Take the two best candidates, go one step further with each, keep the better."""
    loss, selected = random_loss(seed), frozenset[int]()
    path = run(make_fake(n_columns, loss), MaxFeatures(3), look_ahead=2, beam_width=2)
    for step in path.steps[1:3]:
        others = [column for column in range(n_columns) if column not in selected]
        two = sorted(others, key=lambda column: loss(selected | {column}))[:2]
        further = {
            column: min(loss(selected | {column, other}) for other in others if other != column) for column in two
        }
        better = min(two, key=lambda column: further[column])
        if len(set(further.values())) == 2:  # else the two lead to the same pair, and the better of them is first
            assert step.group == better
        else:
            assert step.group == two[0]
        selected |= {int(step.group or 0)}


@pytest.mark.parametrize(("members", "depth"), [((2, 5), 2), ((0, 3, 6), 3), ((1, 2), 3)])
def test_what_works_together_is_found_where_a_gain_is_asked_for(members: tuple[int, ...], depth: int) -> None:
    scorer = make_fake(8, parity_loss(*members))
    rule = RelativeImprovement(0.05)
    path = run(scorer, rule, fixed=[7], look_ahead=depth)
    assert sorted(path.columns) == sorted([*members, 7])
    assert run(scorer, rule, fixed=[7]).columns.tolist() == [7]


def test_a_promise_that_isnt_kept_is_taken_back() -> None:
    """Beside one column, pairs promise a lot; beside two, with other luck, nothing pays."""
    scorer = make_fake(6, lambda columns: 1.0 if len(columns) == 3 else 10.0, luck=lambda size: 0 if size < 2 else 1000)
    path = run(scorer, RelativeImprovement(0.05), fixed=[0], look_ahead=2)
    assert [(step.n_selected, step.kept) for step in path.steps] == [(1, True), (2, False), (3, False)]
    assert path.steps[1].ahead == pytest.approx(1.0)
    assert path.columns.tolist() == [0]
    assert path.reason == "no relative improvement of at least 0.05 of the loss in 2 steps"


@given(seed=st.integers(0, 10_000))
def test_groups_may_share_columns_and_differ_in_cost(seed: int) -> None:
    groups, costs = [[0, 1], [1, 2], [3], [4, 5, 6]], [2.0, 2.0, 1.0, 5.0]
    loss = random_loss(seed)
    scorer = make_fake(7, loss, groups=groups, costs=costs)
    path = run(scorer, MaxFeatures(2), look_ahead=2)
    start = path.steps[0].loss

    def value(pair: tuple[int, int]) -> float:
        change = loss(frozenset(groups[pair[0]]) | frozenset(groups[pair[1]])) - start
        return change / (costs[pair[0]] + costs[pair[1]]) if change < 0 else change

    assert path.steps[1].group in min(combinations(range(4), 2), key=value)


def test_too_many_sets_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking_ahead, "MOST_SETS", 40)
    scorer = make_fake(20, random_loss(3))
    path = run(scorer, MaxFeatures(2), look_ahead=2)
    two = np.argsort(path.steps[1].losses)[:2]  # as many as fit are extended
    assert path.steps[1].n_fits == 20 + 2 * 18 + 1
    loss = random_loss(3)
    pairs = {frozenset({int(one), other}) for one in two for other in range(20) if other != one}
    assert path.steps[1].ahead == pytest.approx(min(map(loss, pairs)))


def test_losses_that_are_no_numbers_are_never_best() -> None:
    def loss(columns: frozenset[int]) -> float:
        return float("nan") if len(columns) == 2 and 1 in columns else 5.0 - sum(columns) / 10

    with pytest.warns(UserWarning, match="1 candidates have a loss that is no finite number: they lose"):
        path = run(make_fake(4, loss), MaxFeatures(2), look_ahead=2)
    assert sorted(path.columns) == [2, 3]


def test_where_no_pair_has_a_loss_the_best_single_one_counts() -> None:
    scorer = make_fake(4, lambda columns: np.nan if len(columns) == 2 else 5.0 - sum(columns) / 10)
    with pytest.warns(UserWarning, match="Step 2 ends the pursuit: the loss of every candidate is NaN"):
        path = run(scorer, MaxFeatures(2), look_ahead=2)
    assert path.columns.tolist() == [3]
    assert np.isnan(path.steps[1].ahead)


def test_sets_are_all_there_and_none_is_twice() -> None:
    for n, size in [(5, 2), (6, 3), (4, 4), (3, 1)]:
        assert list(map(tuple, all_sets(n, size))) == list(combinations(range(n), size))
    larger = extended(all_sets(6, 2), 6)
    np.testing.assert_array_equal(larger, all_sets(6, 3))


def parity(n_rows: int, n_columns: int, members: list[int], kind: str, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if kind == "bits":
        X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
        return X, X[:, members].sum(axis=1) % 2
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, members].prod(axis=1) > 0).astype(int)


@pytest.mark.parametrize("kind", ["bits", "normal"])
@pytest.mark.parametrize("way", [{"n_features_to_select": 2}, {"tol": 0.09}, {"n_features_to_select": 2, "screen": 60}])
def test_xor_is_found(kind: str, way: dict[str, Any]) -> None:
    X, y = parity(400, 16, [3, 11], kind)
    selector = NeuralGreedyPursuit(SSFN(n_units=40, n_draws=2), random_state=0, look_ahead=2, **way).fit(X, y)
    assert sorted(selector.order_) == [3, 11]
    blind = NeuralGreedyPursuit(SSFN(n_units=40, n_draws=2), random_state=0, n_features_to_select=2).fit(X, y)
    assert sorted(blind.order_) != [3, 11]


def test_xor_is_found_and_nothing_else_where_chance_decides() -> None:
    X, y = parity(400, 10, [3, 7], "bits")
    selector = NeuralGreedyPursuit(SSFN(n_units=30, n_draws=1), random_state=0, look_ahead=2, stop="auto").fit(X, y)
    assert sorted(selector.order_) == [3, 7]
    assert selector.path_[1].chance < 1e-6


def test_three_way_parity_is_found() -> None:
    X, y = parity(500, 12, [1, 4, 9], "bits")
    settings = {"random_state": 0, "n_features_to_select": 3}
    selector = NeuralGreedyPursuit(SSFN(n_units=40, n_draws=2), look_ahead=3, **settings).fit(X, y)
    assert sorted(selector.order_) == [1, 4, 9]
