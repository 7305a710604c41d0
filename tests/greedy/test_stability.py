"""Selections on halves of the rows, and the bounds on what is false among the stable ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ngp.greedy.rule_parts import with_what_is_left
from pursuit_cases import WithinBudget, make_fake, random_loss, run
from sklearn.linear_model import LogisticRegression, Ridge

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.path import Path
from ngp.greedy.stability import Stability, half_problem, halves, selections_on_halves
from ngp.greedy.stopping import FirstOf, MaxFeatures, MaxFits, MaxTime, StopRule
from ngp.predictors import SSFN, ColumnSets, Kernel

QUICK = {"predictor": SSFN(n_units=20, n_draws=1), "random_state": 0}
START = run(make_fake(2, random_loss(0)), MaxFeatures(1)).steps[0]


def data(n_rows: int = 120, n_columns: int = 10) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, np.tanh(X[:, 2]) + np.abs(X[:, 5]) + 0.1 * rng.normal(size=n_rows)


def problem_of(y: Any = None, **settings: Any) -> Problem:
    X, other = data()
    return make_problem(X, other if y is None else y, groups=make_groups(None, 10), **settings)


def test_halves_come_in_pairs_that_share_no_row() -> None:
    problem = problem_of(task="regression")
    masks = list(halves(problem, 6, 0))
    assert len(masks) == 6
    for first, second in zip(masks[::2], masks[1::2], strict=True):
        np.testing.assert_array_equal(first, ~second)
        assert first.sum() == 60
    assert len({mask.tobytes() for mask in masks}) == 6
    again, other = list(halves(problem, 6, 0)), list(halves(problem, 6, 1))
    np.testing.assert_array_equal(masks, again)
    assert any((a != b).any() for a, b in zip(masks, other, strict=True))


def test_every_class_is_halved() -> None:
    y = np.repeat([0, 1, 2], [80, 31, 9])
    for mask in halves(problem_of(y, task="classification"), 4, 3):
        assert np.abs(np.bincount(y[mask]) - np.array([40, 15.5, 4.5])).max() <= 0.5


def test_rows_that_only_judge_are_in_all_halves_and_useless_ones_in_none() -> None:
    X, y = data()
    weights = np.ones(120)
    weights[:10] = 0
    cv = [(np.arange(100), np.arange(100, 120))]
    problem = make_problem(X[:100], y[:100], groups=make_groups(None, 10), cv=(X[100:], y[100:]), task="regression")
    for mask in halves(problem, 2, 0):
        assert mask[100:].all()
        assert mask[:100].sum() == 50
        assert half_problem(problem, mask).rounds[0].validation(0).tolist() == list(range(100, 120))
    useless = problem_of(task="regression", cv=cv, sample_weight=weights)
    assert not any(mask[:10].any() for mask in halves(useless, 4, 0))


@pytest.mark.parametrize("cv", [5, 0.3, "loo"])
@pytest.mark.parametrize("predictor", [SSFN(n_units=20, n_draws=2), Kernel(), Ridge()], ids=["ssfn", "kernel", "ridge"])
def test_half_a_problem_is_the_problem_of_half_the_rows(predictor: Any, cv: Any) -> None:
    from ngp.predictors.committee import resolve_predictor

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
    if isinstance(predictor, Kernel):  # its width comes from random pairs of rows
        np.testing.assert_allclose(losses[0], losses[1], rtol=0.2)
    else:
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)


def test_what_matters_is_stable() -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(n_features_to_select=2, n_resamples=10, **QUICK).fit(X, y)
    stability = selector.stability_
    assert (stability.n_halves, stability.n_selected, stability.n_candidates) == (10, 2.0, 10)
    assert sorted(stability.stable()) == sorted(selector.order_) == [2, 5]
    assert stability.frequencies.sum() == pytest.approx(2)
    plain = NeuralGreedyPursuit(n_features_to_select=2, **QUICK).fit(X, y)
    np.testing.assert_array_equal(plain.order_, selector.order_)
    assert not hasattr(plain, "stability_")
    assert not hasattr(selector.set_params(n_resamples=0).fit(X, y), "stability_")


def test_that_of_an_earlier_fit_is_gone_when_a_new_one_begins() -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(n_features_to_select=1, n_resamples=2, **QUICK).fit(X, y)
    seen: list[bool] = []
    selector.set_params(callback=lambda _: seen.append(hasattr(selector, "stability_"))).fit(X, y)
    assert seen == [False, False]
    assert hasattr(selector, "stability_")


@pytest.mark.parametrize(
    "settings",
    [{"n_jobs": 2}, {"cv": 0.3}, {"groups": [[0, 1], [2], [5, 6]]}, {"fixed": [0]}, {"floating": True}, {"tol": 0.1}],
)
def test_with_other_settings(settings: dict[str, Any]) -> None:
    X, y = data()
    settings = {"n_features_to_select": 2, "n_resamples": 4, **QUICK, **settings}
    stability = NeuralGreedyPursuit(**settings).fit(X, y).stability_
    again = NeuralGreedyPursuit(**{**settings, "n_jobs": 1}).fit(X, y).stability_
    np.testing.assert_array_equal(stability.frequencies, again.frequencies)
    assert 0 < stability.n_selected <= 2


def test_classes_and_estimators_without_weights() -> None:
    X, y = data()
    labels = np.where(y > np.median(y), "high", "low")
    selector = NeuralGreedyPursuit(LogisticRegression(), n_features_to_select=1, n_resamples=4, random_state=0)
    assert selector.fit(X, labels).stability_.n_selected == 1


def test_what_chance_would_select_is_not_stable() -> None:
    X, _ = data(100, 30)
    y = np.random.default_rng(1).normal(size=100)
    stability = NeuralGreedyPursuit(n_features_to_select=3, n_resamples=20, **QUICK).fit(X, y).stability_
    assert len(stability.stable(0.9)) == 0


@pytest.mark.parametrize("threshold", [0.55, 0.6, 0.75, 0.76, 0.9, 1.0])
def test_bounds_are_those_of_the_papers(threshold: float) -> None:
    """With B = 50 pairs, q = 5 selected of p = 1,000."""
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
    selector = NeuralGreedyPursuit(n_features_to_select=2, n_resamples=40, **QUICK).fit(X, y)
    pairs = selector.stability_.stand_ins()
    assert [sorted(pair[:2]) for pair in pairs] == [[2, 7]]
    assert -1 <= pairs[0][2] < -0.5


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


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.1])
def test_thresholds_without_a_bound_are_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"must be more than 0.5 and at most 1: no bound holds for others"):
        Stability((np.arange(1),) * 10, 3, 3).expected_false(threshold)


def test_an_odd_number_of_halves_is_refused() -> None:
    with pytest.raises(ValueError, match="n_resamples=3 is odd, but halves come in pairs: give an even number"):
        NeuralGreedyPursuit(n_resamples=3).fit(*data())


def test_it_is_saved_and_loaded(tmp_path: FilePath) -> None:
    selector = NeuralGreedyPursuit(n_features_to_select=1, n_resamples=2, **QUICK).fit(*data())
    selector.save(tmp_path / "selector.ngp")
    loaded = NeuralGreedyPursuit.load(tmp_path / "selector.ngp")
    np.testing.assert_array_equal(loaded.stability_.frequencies, selector.stability_.frequencies)
    assert loaded.n_resamples == 2


def test_budgets_are_those_of_all_selections_together() -> None:
    X, y = data()
    settings = {**QUICK, "n_features_to_select": 2, "n_resamples": 10}
    whole = NeuralGreedyPursuit(**settings).fit(X, y).stability_
    # 19 trainings for each selection: after the one on all rows and three on halves, the budget is used up.
    with pytest.warns(UserWarning, match=r"only 2 of 10 halves of the rows: the budget of 76 fits is used up\."):
        cut = NeuralGreedyPursuit(**settings, max_fits=76).fit(X, y)
    assert not cut.partial_
    np.testing.assert_array_equal(cut.stability_.selections, whole.selections[:2])


@pytest.mark.filterwarnings("ignore:The stability is that of")
@given(seed=st.integers(0, 100), max_fits=st.integers(1, 120), floating=st.booleans())
def test_no_step_on_any_half_begins_when_the_budget_is_spent(seed: int, max_fits: int, floating: bool) -> None:
    scorer, rule = make_fake(6, random_loss(seed)), FirstOf([MaxFeatures(2), MaxFits(max_fits)])
    spent = 0

    def select(rule: StopRule, problem: Problem | None = None) -> Path:
        nonlocal spent
        path = run(scorer, rule, floating=floating, observer=WithinBudget(max_fits, spent))
        spent += sum(step.n_fits for step in path.steps)
        return path

    selections_on_halves(scorer.problem, 4, 0, select, rule, select(rule))


def test_what_is_left_of_a_budget_is_what_the_steps_did_not_use() -> None:
    steps = [replace(START, seconds=2.5, n_fits=7), replace(START, seconds=1.0, n_fits=3)]
    rule = FirstOf([MaxFeatures(3), FirstOf([MaxTime(10.0)]), MaxFits(11)])
    left = with_what_is_left(rule, steps)
    assert left == FirstOf([MaxFeatures(3), FirstOf([MaxTime(6.5)]), MaxFits(1)])
    assert with_what_is_left(left, []) == left


def test_what_was_cut_short_on_all_rows_is_not_selected_on_halves() -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(**QUICK, n_resamples=4, callback=lambda step: step.n_selected == 1)
    with pytest.warns(UserWarning, match="none of 4 halves of the rows: a callback asked to stop"):
        selector.fit(X, y)
    assert not hasattr(selector, "stability_")


def test_an_interrupted_half_is_the_last_one_and_does_not_count() -> None:
    X, y = data()
    prepared = problem_of(task="regression")
    path = NeuralGreedyPursuit(**QUICK, n_features_to_select=2).fit(X, y).path_
    paths = iter([*[Path(path, "done")] * 3, Path(path[:2], "interrupted; the path is partial", partial=True)])
    with pytest.warns(UserWarning, match=r"only 2 of 8 halves of the rows: interrupted\."):
        found = selections_on_halves(prepared, 8, 0, lambda *_: next(paths), MaxFeatures(2), Path(path, "done"))
    assert [set(groups) for groups in found] == [{2, 5}, {2, 5}]
