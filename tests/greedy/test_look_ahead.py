"""Looking ahead: with made-up losses, where all sets can be tried, and on data where single columns say nothing."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from greedy_cases import Loss, make_fake, random_loss, run
from hypothesis import given
from hypothesis import strategies as st

from ngp import NeuralGreedyPursuit
from ngp.greedy import look_ahead
from ngp.greedy.look_ahead import LookAhead, all_sets, extended, n_sets
from ngp.greedy.stopping import MaxFeatures, RelativeImprovement
from ngp.predictors import SSFN


def best_set(loss: Loss, n_columns: int, size: int, beside: frozenset[int] = frozenset()) -> frozenset[int]:
    others = [column for column in range(n_columns) if column not in beside]
    return min((beside | set(members) for members in combinations(others, size)), key=loss)


def parity_loss(*members: int) -> Loss:
    """Columns that say something only together."""
    return lambda columns: (1.0 if set(members) <= columns else 10.0) + 0.01 * len(columns)


@given(seed=st.integers(0, 10_000), n_columns=st.integers(2, 7), depth=st.integers(2, 4), wide=st.booleans())
def test_looking_as_far_as_the_end_finds_the_best_of_all_selections(
    seed: int, n_columns: int, depth: int, wide: bool
) -> None:
    """All sets are tried, or a beam that is as wide."""
    loss, size = random_loss(seed), min(depth, n_columns)
    beam_width = 1000 if wide else None
    path = run(make_fake(n_columns, loss), MaxFeatures(size), look_ahead=depth, beam_width=beam_width)
    assert frozenset(path.columns.tolist()) == best_set(loss, n_columns, size)


@given(seed=st.integers(0, 10_000), n_columns=st.integers(3, 7))
def test_each_step_adds_one_of_the_best_set(seed: int, n_columns: int) -> None:
    loss, selected = random_loss(seed), frozenset[int]()
    path = run(make_fake(n_columns, loss), MaxFeatures(3), look_ahead=2)
    for step in path.steps[1:]:
        depth = min(2, 3 - len(selected))  # there is no need to look beyond the last feature
        best = best_set(loss, n_columns, depth, selected)
        assert step.group in best - selected
        assert step.n_ahead == depth
        if depth == 2:
            assert step.ahead == pytest.approx(loss(best))
            assert step.loss == pytest.approx(min(loss(selected | {column}) for column in best - selected))
            assert (step.runner_up is None) == (step.group != np.nanargmin(step.losses))
        else:
            assert np.isnan(step.ahead)
        selected |= {int(step.group or 0)}


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 6))
def test_extending_the_best_one_alone_is_plain_greedy(seed: int, n_columns: int) -> None:
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
        # If the two lead to the same pair, the better of them is first.
        assert step.group == (better if len(set(further.values())) == 2 else two[0])
        selected |= {int(step.group or 0)}


def test_features_that_work_together_are_found_if_a_gain_is_asked_for() -> None:
    for members, depth in [((2, 5), 2), ((0, 3, 6), 3), ((1, 2), 3)]:
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
    path = run(make_fake(7, loss, groups=groups, costs=costs), MaxFeatures(2), look_ahead=2)
    start = path.steps[0].loss

    def value(pair: tuple[int, int]) -> float:
        change = loss(frozenset(groups[pair[0]]) | frozenset(groups[pair[1]])) - start
        return change / (costs[pair[0]] + costs[pair[1]]) if change < 0 else change

    assert path.steps[1].group in min(combinations(range(4), 2), key=value)


def test_too_many_sets_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ahead, "MOST_SETS", 40)
    loss = random_loss(3)
    path = run(make_fake(20, loss), MaxFeatures(2), look_ahead=2)
    two = np.argsort(path.steps[1].losses)[:2]  # as many as fit are extended
    assert path.steps[1].n_fits == 20 + 2 * 18 + 1
    pairs = {frozenset({int(one), other}) for one in two for other in range(20) if other != one}
    assert path.steps[1].ahead == pytest.approx(min(map(loss, pairs)))


def test_losses_that_are_no_numbers_are_never_best() -> None:
    def loss(columns: frozenset[int]) -> float:
        return float("nan") if len(columns) == 2 and 1 in columns else 5.0 - sum(columns) / 10

    with pytest.warns(UserWarning, match="1 candidates have a loss that is no finite number: they lose"):
        path = run(make_fake(4, loss), MaxFeatures(2), look_ahead=2)
    assert sorted(path.columns) == [2, 3]
    no_pair = make_fake(4, lambda columns: np.nan if len(columns) == 2 else 5.0 - sum(columns) / 10)
    with pytest.warns(UserWarning, match="Step 2 ends the pursuit: the loss of every candidate is NaN"):
        path = run(no_pair, MaxFeatures(2), look_ahead=2)
    assert path.columns.tolist() == [3]  # the best single one
    assert np.isnan(path.steps[1].ahead)


def test_sets_are_all_there_and_none_is_twice() -> None:
    for n, size in [(5, 2), (6, 3), (4, 4), (3, 1)]:
        assert list(map(tuple, all_sets(n, size))) == list(combinations(range(n), size))
    np.testing.assert_array_equal(extended(all_sets(6, 2), 6), all_sets(6, 3))


@given(n=st.integers(1, 7), depth=st.integers(1, 4), beam_width=st.none() | st.integers(1, 30))
def test_a_step_scores_no_more_sets_than_said(n: int, depth: int, beam_width: int | None) -> None:
    path = run(make_fake(n, random_loss(0)), MaxFeatures(n), look_ahead=depth, beam_width=beam_width)
    drops = sum(range(3, depth + 1))  # to see which one of the best set to begin with
    assert path.steps[1].n_fits <= n + n_sets(n, min(n, depth), beam_width, False) + drops


def test_mistakes() -> None:
    for n_features, beam_width, message in [
        (6, None, "look_ahead=6 must be an integer from 1 to 5"),
        (True, None, "look_ahead=True must be an integer from 1 to 5"),
        (2, 0, "beam_width=0 must be a positive integer, or None for all sets"),
    ]:
        with pytest.raises(ValueError, match=message):
            LookAhead(n_features, beam_width)


def parity(n_rows: int, n_columns: int, members: list[int], kind: str = "bits") -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    if kind == "bits":
        X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
        return X, X[:, members].sum(axis=1) % 2
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, members].prod(axis=1) > 0).astype(int)


WAYS: dict[str, dict[str, Any]] = {
    "number": {"n_features_to_select": 2, "look_ahead": 2},
    "tol": {"tol": 0.09, "look_ahead": 2},
    "screened": {"n_features_to_select": 2, "screen": 60, "look_ahead": 2},
    "beam": {"n_features_to_select": 2, "look_ahead": LookAhead(2, beam_width=12)},
}


@pytest.mark.parametrize(("kind", "way"), [("bits", "number"), *(("normal", way) for way in WAYS)])
def test_xor_is_found(kind: str, way: str) -> None:
    X, y = parity(400, 12, [3, 7], kind)
    settings = {"predictor": SSFN(n_units=40, n_draws=2), "random_state": 0}
    selector = NeuralGreedyPursuit(**settings, **WAYS[way]).fit(X, y)
    assert sorted(selector.order_) == [3, 7]
    assert sorted(NeuralGreedyPursuit(**settings, n_features_to_select=2).fit(X, y).order_) != [3, 7]


def test_xor_is_found_and_nothing_else_if_p_values_decide() -> None:
    X, y = parity(400, 8, [3, 7])
    selector = NeuralGreedyPursuit(SSFN(n_units=30, n_draws=1), random_state=0, look_ahead=2).fit(X, y)
    assert sorted(selector.order_) == [3, 7]
    assert selector.path_[1].p_value < 1e-6


def test_three_way_parity_is_found() -> None:
    X, y = parity(500, 10, [1, 4, 9])
    settings = {"random_state": 0, "n_features_to_select": 3}
    selector = NeuralGreedyPursuit(SSFN(n_units=40, n_draws=2), look_ahead=3, **settings).fit(X, y)
    assert sorted(selector.order_) == [1, 4, 9]
