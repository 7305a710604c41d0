"""p-values of candidates, pairs, and the default stop on data."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from greedy_cases import OnStep, seen, stop_after
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array
from scipy.special import log_ndtr
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy import significance, unexplained
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stopping import FirstOf, MaxFeatures, Significance
from ngp.predictors import SSFN, ColumnSets

QUICK: dict[str, Any] = {"predictor": SSFN(n_units=20, n_draws=1), "random_state": 0}
NOTHING = np.zeros(0, np.intp)


def problem_of(X: Any, y: Any, **others: Any) -> Problem:
    task = others.pop("task", "regression")
    return make_problem(X, y, groups=make_groups(None, X.shape[1]), task=task, random_state=0, **others)


def p_values_of(problem: Problem, selected: Any = NOTHING, seed: int = 0, **others: Any) -> Any:
    candidates = ColumnSets.singles(np.setdiff1d(np.arange(problem.n_columns), selected))
    with threadpool_limits(1, user_api="blas"):  # as in a fit
        return SignificanceTest(problem, 0.01, seed, **others).p_values(np.asarray(selected, np.intp), candidates)


# ---------------------------------------------------------------- what is left unexplained


@pytest.mark.parametrize(("n_rows", "weighted"), [(200, False), (200, True), (40, False)], ids=str)
def test_residuals_are_those_of_regressions_without_the_row(n_rows: int, weighted: bool) -> None:
    """Against the plain loop over rows, for each ridge."""
    rng = np.random.default_rng(0)
    design, targets = rng.normal(size=(n_rows, 60)), rng.normal(size=(n_rows, 2))
    targets += design[:, :2]
    weights = rng.uniform(0.5, 1.5, size=n_rows) if weighted else np.ones(n_rows)
    # All regressions are centred alike, by the means of all rows: leaving a row out of these as well changes little.
    targets -= np.average(targets, axis=0, weights=weights)
    centred = design - np.average(design, axis=0, weights=weights)
    sizes, found = [], []
    for ridge in unexplained.RIDGES:
        inverse = np.linalg.inv((centred.T * weights) @ centred + ridge * np.eye(60))
        coef = inverse @ (centred.T * weights) @ targets
        left = 1 - weights * np.einsum("ji,ik,jk->j", centred, inverse, centred) - weights / weights.sum()
        residuals = targets - centred @ coef
        found.append(residuals / np.maximum(left, unexplained.LEAST_FREEDOM)[:, None])
        sizes.append((weights[:, None] * (residuals / left[:, None]) ** 2).sum())  # not bounded
    residuals, ridge = unexplained.leave_one_out(design, targets, weights)
    np.testing.assert_allclose(residuals, found[int(np.argmin(sizes))], rtol=1e-6, atol=1e-8)
    assert ridge == unexplained.RIDGES[int(np.argmin(sizes))]


def test_residuals_of_one_column_are_those_of_an_exact_leave_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unexplained, "RIDGES", (1e-9,))
    x, y = np.random.default_rng(0).normal(size=(2, 25, 1))
    found, _ = unexplained.leave_one_out(x, y - y.mean(), np.ones(25))
    for row in range(25):
        others = np.arange(25) != row
        left_out = LinearRegression().fit(x[others], y[others]).predict(x[[row]])
        assert found[row, 0] == pytest.approx(y[row, 0] - left_out[0, 0], abs=1e-6)


# ---------------------------------------------------------------- p-values


def test_quick_p_values_differ_only_where_they_are_clear() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    for strength, is_clear in ((0.0, False), (0.2, False), (0.5, True)):
        problem = problem_of(X, strength * X[:, 3] + rng.normal(size=200))
        plain, quick = p_values_of(problem), p_values_of(problem, quick=True)
        assert (quick.min() < 1e-3) == is_clear
        assert np.array_equal(plain <= 0.01, quick <= 0.01)
        if not is_clear:
            np.testing.assert_array_equal(plain, quick)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 999), is_class=st.booleans(), unit=st.sampled_from([1e-18, 1e-7, 1e12]))
def test_p_values_know_neither_units_nor_places(seed: int, is_class: bool, unit: float) -> None:
    """Ties among few values, and a column of huge ones, are ties in any unit, with other rounding."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, np.arange(3, 11), (60, 8)).astype(float)
    X[:, 1] = 1e17 * rng.integers(1, 9, 60)
    y = np.rint(X[:, 0] + X[:, 2] + rng.normal(size=60)) > 2 if is_class else np.round(X[:, 2] + rng.normal(size=60), 1)
    order, offsets = rng.permutation(8), rng.integers(0, 99, 8) * np.array([1, 0, 1, 1, 1, 1, 1, 1])
    others = ((X + offsets) * unit)[:, order]
    task = "classification" if is_class else "regression"
    expected = p_values_of(problem_of(X, y, task=task), np.array([0]))
    found = p_values_of(problem_of(others, y, task=task), np.flatnonzero(order == 0))
    np.testing.assert_allclose(found, expected[order[order > 0] - 1], rtol=1e-3)


@pytest.mark.parametrize("big", ["identifiers", "nanoseconds"])
def test_a_column_of_huge_repeated_values_is_noise_as_any_other(big: str) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 9)), rng.integers(0, 2, 60)
        X[:, 0] = 1e17 * rng.integers(1, 9, 60) if big == "identifiers" else 1.7e18 + 86400e9 * rng.integers(0, 30, 60)
        found += p_values_of(problem_of(X, y, task="classification")).min() <= 0.05
    assert found <= 6  # of two expected; more than six have a probability of 0.3 %


def plain_evidence(problem: Problem, selected: Any, column: int, n_candidates: int) -> float:
    """Logarithm of a candidate's p-value, if normal: one comparison after the other, by ordinary least squares."""
    signals = SignificanceTest(problem, 0.01, 0)._signals(np.asarray(selected, np.intp), n_candidates)
    columns = problem.columns(np.arange(problem.n_columns)).T[signals.left.rows]
    X = np.clip((columns - problem.column_scales[0]) / problem.column_scales[1], -4, 4)
    known = np.column_stack([np.ones(len(X)), X[:, selected], np.clip(X[:, selected], -3, 3) ** 2])

    def freed(values: Any) -> Any:
        return values - known @ np.linalg.lstsq(known, values, rcond=None)[0]

    def per_freedom(values: Any) -> Any:
        return np.sqrt((freed(values) ** 2).sum() / (len(X) - known.shape[1]))

    x, w = X[:, column], significance.WAVE
    functions = [x, np.abs(x), *(f(k * w * x) for k in (1, 2, 3) for f in (np.cos, np.sin))]
    shares, logs = significance.SHARES, []
    for number, function in enumerate(functions):
        for kind, compared in ((min(number, 1), signals.residuals), (2, signals.values[:, signals.n_outputs :])):
            n = n_candidates * {0: 1, 1: 7, 2: 8}[kind] * compared.shape[1]
            for v in compared.T.astype(np.float64):
                z = freed(function) @ v / np.sqrt((freed(function) ** 2).sum()) / per_freedom(v)
                logs.append(np.log(2 * n / shares[kind]) + log_ndtr(-abs(z)))
    return float(min(logs))


@pytest.mark.parametrize("selected", [[], [2], [4, 0, 1]])
def test_it_is_what_single_comparisons_say(selected: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 7))
    y = X[:, 0] * X[:, 3] + X[:, 5] + rng.normal(size=120)
    problem = problem_of(X, y)
    others = [column for column in range(7) if column not in selected]
    candidates = ColumnSets.singles(np.array(others))
    signals = SignificanceTest(problem, 0.01)._signals(np.array(selected, np.intp), len(others))
    found, _ = significance._chunk_evidence(problem, signals, candidates.columns)
    expected = [plain_evidence(problem, selected, column, len(others)) for column in others]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    orders = np.array([rng.permutation(120) for _ in range(12)])
    least, leaders = significance._chunk_null(problem, signals, candidates.columns, orders)
    functions = significance._chunk_functions(problem, signals, candidates.columns)
    for order, found, leader in zip(orders, least[:, 0], leaders[:, 0], strict=True):
        logs = signals.evidence(np.abs(functions @ signals.values[np.argsort(order)]))
        assert (found, leader) == (pytest.approx(logs.min(), abs=1e-3), others[int(np.argmin(logs))])


@pytest.mark.parametrize("kind", ["normal", "Cauchy", "classes 10:90, rare values"])
def test_without_a_signal_p_values_are_uniform(kind: str) -> None:
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
        if kind == "Cauchy":
            X, y = rng.standard_cauchy(size=(60, 8)), rng.standard_cauchy(size=60)
        if kind.startswith("classes"):
            X, y = (rng.random(size=(60, 8)) < 0.1).astype(float), rng.permutation(np.arange(60) < 6).astype(float)
        problem = problem_of(X, y, task="classification" if kind.startswith("classes") else "regression")
        found.append(p_values_of(problem, seed=seed).min())
    for level in (0.05, 0.2, 0.5):  # the best of all candidates; ties make p-values larger
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 150)
    assert np.mean(np.array(found) <= 0.5) > 0.3 or kind.startswith("classes")


def test_what_the_selection_says_by_lines_and_squares_is_no_news() -> None:
    """Columns that are nothing but noisy functions of the selection have no small p-values; one with news has."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(300, 1))
    noisy = np.hstack([s + rng.normal(size=(300, 10)), s**2 + rng.normal(size=(300, 10))])
    news = rng.normal(size=(300, 1))
    y = np.tanh(2 * s[:, 0]) + 0.5 * news[:, 0] + 0.3 * rng.normal(size=300)
    found = p_values_of(problem_of(np.hstack([s, noisy, news]), y), [0])
    assert found[:-1].min() > 0.01
    assert found[-1] < 1e-6


# ---------------------------------------------------------------- trials


@pytest.mark.parametrize("weighted", [False, True], ids=["equal weights", "weights"])
def test_errors_with_a_candidate_are_those_of_a_network_with_it(weighted: bool) -> None:
    """Against a regression on all of its units, and as they are without permutations."""
    rng = np.random.default_rng(0)
    X = rng.normal(3, 2, size=(80, 6))
    weights = rng.uniform(0.5, 1.5, size=80) if weighted else None
    problem = problem_of(X, X[:, 0] * X[:, 3] + rng.normal(size=80), sample_weight=weights)
    selected, candidates = np.array([3]), ColumnSets.of([[0], [1, 2], [5]])
    signals = SignificanceTest(problem, 0.01)._signals(selected, 5)
    left, expected = signals.left, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unexplained, "RIDGES", (left.ridge,))
        for number in range(3):
            columns = unexplained.selected_inputs(problem, candidates[number], left.rows)
            base, slots = unexplained.unit_layer(left.inputs, 0, unexplained.N_UNITS, columns.shape[1])
            design = np.hstack([left.inputs, columns, np.maximum(base + columns @ slots, 0)])
            errors, _ = unexplained.leave_one_out(design, left.targets, left.weights)
            expected.append(np.average(errors[:, 0] ** 2, weights=left.weights))
    trial = significance.Trial(problem, signals, candidates, None)
    for found in trial.losses([(candidates, None), (candidates, np.arange(80))]):
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    shuffled = trial.losses([(candidates, rng.permutation(80))])[0]
    assert shuffled[0] > 1.2 * expected[0]  # what it knew is gone
    assert trial.owners_of(np.array([5, 2])).columns.tolist() == [1, 2, 5]


def test_training_shows_what_correlations_leave_open() -> None:
    """A column that matters only where two others are large: its correlations are lost among those of noise."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 30))
    y = X[:, 0] + X[:, 1] + np.maximum(X[:, 0] + X[:, 1] + X[:, 2] - 2, 0) * 1.2 + 0.3 * rng.normal(size=300)
    problem = problem_of(X, y)
    with_training = p_values_of(problem, [0, 1])
    assert int(np.argmin(with_training)) == 0  # column 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(significance, "MOST_TRIED_ROWS", 299)
        assert with_training[0] <= min(0.01, p_values_of(problem, [0, 1])[0])


def test_beside_a_selection_trials_keep_the_level() -> None:
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 9))
        found.append(p_values_of(problem_of(X, X[:, 0] + 0.5 * rng.normal(size=60)), [0], seed=seed).min())
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 100)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_order_of_the_rows_changes_no_p_value(task: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = X[:, 0] + 0.4 * X[:, 1] + rng.normal(size=80)
    y = (y > 0).astype(int) if task == "classification" else y
    order = rng.permutation(80)
    for selected in ([], [0]):
        found = [p_values_of(problem_of(X[rows], y[rows], task=task), selected) for rows in (np.arange(80), order)]
        np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


# ---------------------------------------------------------------- pairs


def test_a_pair_is_found_that_no_single_column_shows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 60))
    y = (X[:, 7] * X[:, 31] > 0).astype(float)
    problem = problem_of(X, y, task="classification")
    assert p_values_of(problem).min() > 0.01
    test, candidates = SignificanceTest(problem, 0.01, 0), ColumnSets.singles(np.arange(60))
    found = test.pair(NOTHING, candidates)
    assert found.leading[0].tolist() == [7, 31]
    assert found.p_value < 1e-6
    shuffled = replace(problem, targets=rng.permutation(problem.targets))
    assert SignificanceTest(shuffled, 0.01, 0).pair(NOTHING, candidates).p_value > test.pair_level


def test_pairs_are_the_largest_of_all_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the plain loop over pairs; blocks change nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 9)), rng.normal(size=80)
    problem = problem_of(X, y)
    test, candidates = SignificanceTest(problem, 0.01, 0), ColumnSets.singles(np.arange(9))
    signals = test._signals(NOTHING, 9)
    factors = test._factors(signals, candidates, np.arange(9))
    sizes = {}
    for i in range(18):
        for j in range(18):
            if i % 9 < j % 9:
                product = (factors.values[i] * factors.values[j]).astype(np.float64)
                deviation = max(product.var(), 0.05) ** 0.5
                sizes[i, j] = abs(product @ signals.residuals[:, 0]) / deviation / np.sqrt(80)
    order = sorted(sizes, key=lambda pair: -sizes[pair])
    expected = list(dict.fromkeys((i % 9, j % 9) for i, j in order))[:5]
    for block in (512, 4):
        monkeypatch.setattr(significance, "BLOCK_PAIRED", block)
        assert [tuple(pair) for pair in test.pair(NOTHING, candidates).leading[:5].tolist()] == expected


def test_of_too_many_columns_the_best_ones_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = X[:, 3] * X[:, 4] + X[:, 3] + X[:, 4]
    monkeypatch.setattr(significance, "PAIR_STEPS", 5 * 8 / significance.NETWORK_OPERATIONS)
    found = SignificanceTest(problem_of(X, y), 0.01, 0).pair(NOTHING, ColumnSets.singles(np.arange(30)))
    assert found.leading[0].tolist() == [3, 4]
    assert len(np.unique(found.leading)) <= 5


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99))
def test_groups_are_as_good_as_the_best_of_their_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6))
    problem = problem_of(X, X[:, 2] + rng.normal(size=50))
    test = SignificanceTest(problem, 0.01, seed)
    single = test.p_values(NOTHING, ColumnSets.singles(np.arange(6)))
    grouped = test.p_values(NOTHING, ColumnSets.of([[0, 1, 2], [3], [4, 5]]))
    np.testing.assert_array_equal(grouped, [single[:3].min(), single[3], single[4:].min()])


# ---------------------------------------------------------------- data


def planted(n_columns: int = 30, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, n_columns)) + rng.normal(size=(200, 1))
    return X, np.abs(X[:, 3]) + np.tanh(X[:, 8]) + 0.1 * rng.normal(size=200)


def p_values(selector: NeuralGreedyPursuit) -> list[float]:
    return [step.p_value for step in selector.path_[1:]]


def test_features_that_matter_are_selected_and_nothing_else() -> None:
    X, y = planted()
    selector = NeuralGreedyPursuit(stop=Significance(), **QUICK).fit(X, y)
    assert sorted(selector.order_) == [3, 8]
    assert [each <= 0.01 for each in p_values(selector)] == [True, True, False, False, False]
    assert "not significant, p = " in selector.stop_reason_
    assert sorted(NeuralGreedyPursuit(**QUICK).fit(X, y).order_) == [3, 8]
    assert np.isnan(p_values(NeuralGreedyPursuit(tol=0.1, **QUICK).fit(X, y))).all()


def test_exclusive_or_is_found_by_default_whatever_ends_the_pursuit() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(300, 40)).astype(float)
    y = np.logical_xor(X[:, 5], X[:, 17]).astype(int)
    for settings_ in ({}, {"n_features_to_select": 2}, {"stop": "plateau"}):
        selector = NeuralGreedyPursuit(random_state=0, **settings_).fit(X, y)
        assert sorted(selector.order_) == [5, 17]
        first, second = selector.path_[1:3]
        assert (first.n_ahead, first.ahead) == (2, second.loss)
        assert first.p_value == second.p_value < 1e-6
    assert len(NeuralGreedyPursuit(n_features_to_select=1, random_state=0).fit(X, y).order_) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"predictor": Ridge()},
        {"groups": np.arange(30) // 2},
        {"screen": 10},
        {"fixed": [8]},
        {"n_features_to_select": 1, "stop": "auto"},
    ],
    ids=["an estimator", "groups", "screening", "fixed columns", "a number beside it"],
)
def test_it_works_with_everything(settings: dict[str, Any]) -> None:
    X, y = planted(seed=1)
    selector = NeuralGreedyPursuit(**{**QUICK, **settings}).fit(X, y + X[:, 3])
    assert len(selector.order_) in (1, 2)
    assert selector.path_[1].p_value <= 0.01


def test_jobs_and_storage_change_no_p_value() -> None:
    X, y = planted()
    X[np.abs(X) < 0.5] = 0
    expected = p_values(NeuralGreedyPursuit(**QUICK).fit(X, y))
    np.testing.assert_array_equal(p_values(NeuralGreedyPursuit(**QUICK).fit(csc_array(X), y)), expected)
    np.testing.assert_array_equal(p_values(NeuralGreedyPursuit(**QUICK, n_jobs=2).fit(X, y)), expected)


def weak(seed: int) -> tuple[Any, Any]:
    """Six columns that say a little each, among thirty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 30))
    return X, X[:, :6].sum(axis=1) + 4 * rng.normal(size=200)


def test_small_effects_add_up() -> None:
    n_alone = n_together = 0
    for seed in range(10):
        X, y = weak(seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Nothing was selected")
            alone = NeuralGreedyPursuit(stop=Significance(patience=1), **QUICK).fit(X, y)
            together = NeuralGreedyPursuit(stop=Significance(), **QUICK).fit(X, y)
        n_alone, n_together = n_alone + len(alone.order_), n_together + len(together.order_)
        dropped = {step.dropped for step in together.path_}
        kept = [step.kept for step in together.path_ if step.group not in dropped]
        assert kept == sorted(kept, reverse=True)
    assert n_together > n_alone


def test_steps_that_are_not_proven_are_not_selected_whatever_ends_the_pursuit() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.random.default_rng(1).normal(size=60)
    rule = FirstOf([MaxFeatures(1), Significance(level=1e-9, patience=3)])
    with pytest.warns(UserWarning, match="Nothing was selected"):
        selector = NeuralGreedyPursuit(stop=rule, **QUICK).fit(X, y)
    assert [step.kept for step in selector.path_] == [True, False]


def test_a_killed_pursuit_goes_on_to_the_same_p_values(tmp_path: Path) -> None:
    X, y = planted()
    whole = NeuralGreedyPursuit(**QUICK).fit(X, y)
    for n_made, how in ((1, None), (2, KeyboardInterrupt())):
        file = tmp_path / f"after {n_made}"
        selector = NeuralGreedyPursuit(**QUICK, checkpoint=file).set_callbacks(OnStep(stop_after(n_made, how)))
        selector.fit(X, y)
        resumed = NeuralGreedyPursuit(**QUICK, checkpoint=file).fit(X, y)
        assert seen(resumed.path_) == seen(whole.path_)
        np.testing.assert_array_equal(resumed.support_, whole.support_)
