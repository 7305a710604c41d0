"""Selections on halves of the rows, and the bounds on what is false among the stable ones."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.path import Path
from ngp.greedy.stability import Stability, half_problem, halves, selections_on_halves
from ngp.greedy.stopping import FirstOf, MaxFeatures, MaxFits
from ngp.predictors import SSFN, ColumnSets, Kernel
from ngp.predictors.committee import resolve_predictor

QUICK: dict[str, Any] = {"predictor": SSFN(n_units=20, n_draws=1), "random_state": 0}


def data(n_rows: int = 120, n_columns: int = 10) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, np.tanh(X[:, 2]) + np.abs(X[:, 5]) + 0.1 * rng.normal(size=n_rows)


def problem_of(y: Any = None, **settings: Any) -> Problem:
    X, other = data()
    return make_problem(X, other if y is None else y, groups=make_groups(None, 10), **settings)


def test_halves_come_in_complementary_pairs() -> None:
    problem = problem_of(task="regression")
    masks = list(halves(problem, 6, 0))
    assert len(masks) == 6
    for first, second in zip(masks[::2], masks[1::2], strict=True):
        np.testing.assert_array_equal(first, ~second)
        assert first.sum() == 60
    assert len({mask.tobytes() for mask in masks}) == 6
    np.testing.assert_array_equal(masks, list(halves(problem, 6, 0)))
    assert (np.array(masks) != np.array(list(halves(problem, 6, 1)))).any()


def test_every_class_is_halved() -> None:
    y = np.repeat([0, 1, 2], [80, 31, 9])
    for mask in halves(problem_of(y, task="classification"), 4, 3):
        assert np.abs(np.bincount(y[mask]) - np.array([40, 15.5, 4.5])).max() <= 0.5


def test_rows_that_only_judge_are_in_all_halves_and_those_without_weight_in_none() -> None:
    X, y = data()
    problem = make_problem(X[:100], y[:100], groups=make_groups(None, 10), cv=(X[100:], y[100:]), task="regression")
    for mask in halves(problem, 2, 0):
        assert mask[100:].all()
        assert mask[:100].sum() == 50
        assert half_problem(problem, mask).rounds[0].validation(0).tolist() == list(range(100, 120))
    weighted = problem_of(task="regression", sample_weight=1.0 * (np.arange(120) >= 10))
    assert not any(mask[:10].any() for mask in halves(weighted, 4, 0))


@pytest.mark.parametrize(
    ("predictor", "cv"), [(SSFN(n_units=20, n_draws=2), 5), (SSFN(n_units=20), "loo"), (Kernel(), 0.3), (Ridge(), 5)]
)
def test_half_a_problem_is_the_problem_of_half_the_rows(predictor: Any, cv: Any) -> None:
    problem = problem_of(task="regression", cv=cv, random_state=1)
    mask = next(halves(problem, 2, 0))
    part, rows = half_problem(problem, mask), np.flatnonzero(mask)
    place = np.cumsum(mask) - 1
    splits = [(place[train], place[test]) for round_ in part.rounds for train, test in part.splits(round_)]
    twin = make_problem(problem.X[rows], problem.targets[rows, 0], groups=problem.groups, cv=splits, task="regression")
    candidates = ColumnSets.of([[1], [5], [2, 7]])
    losses = [
        resolve_predictor(predictor).bind(each, random_state=0, n_jobs=1, device="cpu")
        .add_losses(np.array([3]), candidates).means
        for each in (part, twin)
    ]  # fmt: skip
    # The width of a kernel comes from random pairs of rows.
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.2 if isinstance(predictor, Kernel) else 1e-6)


def test_features_that_matter_are_stable(tmp_path: FilePath) -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(n_features_to_select=2, **QUICK).fit(X, y)
    path, order = selector.path_, selector.order_
    stability = selector.measure_stability(X, y, n_halves=10)
    assert (stability.n_halves, stability.n_selected, stability.n_candidates) == (10, 2.0, 10)
    assert sorted(stability.stable()) == sorted(selector.order_) == [2, 5]
    assert stability.frequencies.sum() == pytest.approx(2)
    assert selector.stability_ is stability
    assert selector.path_ is path  # nothing else has changed
    assert selector.order_ is order
    selector.save(tmp_path / "selector.ngp")
    loaded = NeuralGreedyPursuit.load(tmp_path / "selector.ngp").stability_
    np.testing.assert_array_equal(loaded.frequencies, stability.frequencies)
    assert not hasattr(selector.fit(X, y), "stability_")  # of an earlier fit


@pytest.mark.parametrize(
    "settings",
    [{"cv": 0.3}, {"groups": [[0, 1], [2], [5, 6]]}, {"fixed": [0]}, {"floating": True}, {"tol": 0.1}],
    ids=lambda settings: ", ".join(settings),
)
def test_with_other_settings(settings: dict[str, Any]) -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(**{"n_features_to_select": 2, **QUICK, **settings}).fit(X, y)
    stability = selector.measure_stability(X, y, n_halves=4)
    again = selector.set_params(n_jobs=2).measure_stability(X, y, n_halves=4)
    np.testing.assert_array_equal(stability.frequencies, again.frequencies)
    assert 0 < stability.n_selected <= 2


def test_classes_and_estimators_without_weights() -> None:
    X, y = data()
    labels = np.where(y > np.median(y), "high", "low")
    selector = NeuralGreedyPursuit(LogisticRegression(), n_features_to_select=1, random_state=0).fit(X, labels)
    assert selector.measure_stability(X, labels, n_halves=4).n_selected == 1


def test_what_is_selected_by_chance_is_not_stable() -> None:
    X, _ = data(100, 30)
    y = np.random.default_rng(1).normal(size=100)
    selector = NeuralGreedyPursuit(n_features_to_select=3, **QUICK).fit(X, y)
    assert len(selector.measure_stability(X, y, n_halves=20).stable(0.9)) == 0


def test_bounds_are_those_of_the_papers() -> None:
    """With B = 50 pairs, q = 5 selected of p = 1,000."""
    for threshold in [0.55, 0.75, 0.76, 1.0]:
        stability = Stability((np.arange(5),) * 100, 1000, 1000)
        if threshold <= 0.75:
            unimodal = 0.025 / (2 * (2 * threshold - 1 - 1 / 100))
        else:
            unimodal = 0.025 * 4 * (1 - threshold + 1 / 100) / (1 + 1 / 50)
        assert stability.expected_false(threshold) == pytest.approx(min(unimodal, 0.025 / (2 * threshold - 1)))


def test_bounds_fall_with_the_threshold_and_rise_with_the_number() -> None:
    thresholds = np.linspace(0.52, 1, 30)
    few, many = (Stability((np.arange(n),) * 50, 200, 200) for n in (3, 20))
    for stability in (few, many):
        assert (np.diff([stability.expected_false(each) for each in thresholds]) <= 1e-12).all()
    assert all(few.expected_false(each) < many.expected_false(each) for each in thresholds)
    assert many.expected_false(0.501) == 20.0  # no more than are selected
    assert Stability((np.arange(0),) * 10, 5, 5).expected_false() == 0.0


def test_random_selections_are_false_as_seldom_as_the_bound_says() -> None:
    rng, n_false = np.random.default_rng(0), []
    for _ in range(200):
        stability = Stability(tuple(rng.choice(40, 16, replace=False) for _ in range(4)), 40, 40)
        n_false.append(len(stability.stable()))
    assert 5 < np.mean(n_false) <= stability.expected_false()


def test_columns_that_say_the_same_stand_in_for_each_other() -> None:
    X, y = data(200)
    X[:, 7] = X[:, 2] + 0.1 * np.random.default_rng(1).normal(size=200)
    selector = NeuralGreedyPursuit(n_features_to_select=2, **QUICK).fit(X, y)
    pairs = selector.measure_stability(X, y, n_halves=40).stand_ins()
    assert [sorted(pair[:2]) for pair in pairs] == [[2, 7]]
    assert -1 - 1e-12 <= pairs[0][2] < -0.5


def test_by_chance_nothing_stands_in_for_anything() -> None:
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        chosen = rng.random((20, 30)) < 0.5
        found += len(Stability(tuple(map(np.flatnonzero, chosen)), 30, 30).stand_ins())
    assert found / (100 * 30 * 29 / 2) < 0.001
    one_or_the_other = tuple(np.array([half % 2]) for half in range(20))
    assert Stability(one_or_the_other, 2, 2).stand_ins() == [(0, 1, pytest.approx(-1.0))]
    assert Stability(one_or_the_other[:12], 2, 2).stand_ins() == []
    assert Stability((np.arange(2),) * 20, 2, 2).stand_ins() == []


def test_a_half_that_was_cut_short_is_the_last_one_and_doesnt_count() -> None:
    X, y = data()
    path = NeuralGreedyPursuit(**QUICK, n_features_to_select=2).fit(X, y).path_
    short = Path(path[:2], "interrupted; the path is partial", partial=True)
    paths = iter([*[Path(path, "done")] * 3, short])
    with pytest.warns(UserWarning, match=r"Stability is from 2 of 8 halves of the rows: interrupted\."):
        found = selections_on_halves(problem_of(task="regression"), 8, 0, lambda _: next(paths))
    assert [set(groups) for groups in found] == [{2, 5}, {2, 5}]
    selector = NeuralGreedyPursuit(**QUICK, stop=FirstOf([MaxFeatures(2), MaxFits(1)])).fit(X, y)
    with pytest.raises(ValueError, match="No selection on a half of the rows was finished: the budget of 1 fit is us"):
        selector.measure_stability(X, y, n_halves=2)


def test_numbers_of_halves_that_are_no_pairs_are_refused() -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(n_features_to_select=1, **QUICK).fit(X, y)
    for n_halves in (3, 0, 2.0):
        with pytest.raises(ValueError, match=f"n_halves={n_halves} must be an even number of at least 2, since halves"):
            selector.measure_stability(X, y, n_halves=n_halves)


def test_thresholds_without_a_bound_are_refused() -> None:
    for threshold in [0.5, 1.1]:
        with pytest.raises(ValueError, match=r"must be more than 0.5 and at most 1: no bound holds for others"):
            Stability((np.arange(1),) * 10, 3, 3).expected_false(threshold)
