"""Importances and p-values of a finished selection."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_predict

from ngp import NeuralGreedyPursuit, NGPRegressor
from ngp.predictors import SSFN, Kernel

QUICK = SSFN(n_units=20, n_draws=1, ridge=0.003)


def table(seed: int = 0, n_rows: int = 150, n_columns: int = 10) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, 2 * X[:, 0] + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n_rows)


def test_an_importance_is_the_rise_of_the_loss_of_a_plain_refit() -> None:
    X, y = table()
    folds = list(KFold(30, shuffle=True, random_state=0).split(X))
    selector = NeuralGreedyPursuit(Ridge(), n_features_to_select=3, cv=folds, random_state=0).fit(X, y)
    order = selector.order_.tolist()

    def losses(columns: list[int]) -> Any:
        errors = (cross_val_predict(Ridge(), X[:, columns], y, cv=folds) - y) ** 2
        return np.array([errors[test].mean() for _, test in folds])

    for column in order:
        rise = losses([other for other in order if other != column]) - losses(order)
        assert selector.importances_[column] == pytest.approx(rise.mean() / selector.constant_loss_)
        error = rise.std(ddof=1) / 30**0.5 / selector.constant_loss_
        assert selector.importance_errors_[column] == pytest.approx(error)
    assert np.isnan(np.delete(selector.importances_, order)).all()


@pytest.mark.parametrize("predictor", [QUICK, Kernel()], ids=["ssfn", "kernel"])
def test_a_single_feature_is_worth_what_the_selection_is(predictor: Any) -> None:
    X, y = table()
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=1, random_state=0).fit(X, y)
    last = selector.path_[1]
    saved = (selector.constant_loss_ - last.loss) / selector.constant_loss_
    assert selector.importances_[selector.order_[0]] == pytest.approx(saved, rel=0.05)


def test_columns_that_work_together_are_both_important() -> None:
    bits = np.random.default_rng(0).integers(0, 2, size=(300, 10)).astype(float)
    selector = NeuralGreedyPursuit(random_state=0).fit(bits, bits[:, 3] != bits[:, 7])
    assert (selector.importances_[[3, 7]] > 0.9).all()
    assert (selector.p_values_[[3, 7]] < 1e-6).all()


def test_p_values_of_useless_columns_are_uniform() -> None:
    p_values = []
    for seed in range(6):
        X, y = table(seed, n_columns=60)
        selector = NeuralGreedyPursuit(QUICK, p_values="all", random_state=0).fit(X, y)
        p_values.append(selector.p_values_[4:])
    found = np.concatenate(p_values)
    assert np.isfinite(found).all()
    for level in (0.05, 0.2, 0.5):  # 336 of them
        assert np.mean(found <= level) == pytest.approx(level, abs=3.5 * (level * (1 - level) / len(found)) ** 0.5)


def test_that_a_column_was_chosen_on_the_same_rows_is_accounted_for() -> None:
    n_tables, found = 40, 0
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 20)), rng.normal(size=60)
        selector = NeuralGreedyPursuit(QUICK, n_features_to_select=2, random_state=0).fit(X, y)
        found += int((selector.p_values_[selector.order_] <= 0.05).any())
    assert found <= 6  # 0.05 each, at most


def test_what_matters_has_low_p_values_whatever_the_seed() -> None:
    X, y = table(n_rows=300)
    fits = [NeuralGreedyPursuit(p_values="all", random_state=seed).fit(X, y) for seed in (0, 1)]
    assert sorted(fits[0].order_.tolist()) == [0, 1, 2, 3]
    assert (fits[0].p_values_[:4] < 1e-4).all()
    np.testing.assert_allclose(fits[0].p_values_, fits[1].p_values_)
    rows = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(fits[0].p_values_, fits[0].fit(X[rows], y[rows]).p_values_, rtol=0.1, atol=0.02)


def test_groups_have_one_p_value_each() -> None:
    X, y = table(n_columns=12)
    selector = NeuralGreedyPursuit(QUICK, groups=np.arange(12) // 3, p_values="all", random_state=0).fit(X, y)
    assert selector.p_values_.shape == (4,)
    assert selector.p_values_[0] < 1e-3
    assert (selector.p_values_[2:] > 0.01).all()


def test_which_p_values_are_computed() -> None:
    X, y = table()
    for which, n_known in (("selected", 2), ("all", 10), (None, 0)):
        selector = NeuralGreedyPursuit(QUICK, n_features_to_select=2, p_values=which, random_state=0).fit(X, y)
        assert np.isfinite(selector.p_values_).sum() == n_known
    assert np.isnan(selector.cut(1).p_values_).all()  # which would need the data
    regressor = NGPRegressor(QUICK, n_features_to_select=2, random_state=0).fit(X, y).cut(1, X, y)
    assert np.isfinite(regressor.p_values_).tolist() == np.isin(np.arange(10), regressor.order_).tolist()


def test_significant_features_are_those_of_benjamini_and_hochberg() -> None:
    X, y = table()
    selector = NeuralGreedyPursuit(QUICK, random_state=0).fit(X, y)
    selector.p_values_ = np.array([0.01, 0.5, np.nan, 0.026, 0.02, 0.001, 0.9, 0.07, np.nan, 0.04])
    # Of eight, sorted: .001 <= .0125, .01 <= .025, .02 <= .0375, .026 <= .05, .04 <= .0625, .07 <= .075, .5 > .0875.
    assert selector.significant(0.1).tolist() == [5, 0, 4, 3, 9, 7]
    assert selector.significant(0.1, method="by").tolist() == [5]
    with pytest.raises(ValueError, match=r"fdr=5 must be a share between 0 and 1: use 0\.1\."):
        selector.significant(5)
    with pytest.raises(ValueError, match="method='bonferroni' must be 'bh' or 'by'"):
        selector.significant(method="bonferroni")  # type: ignore[arg-type]


def test_the_summary_is_a_table() -> None:
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(10)])
    selector = NeuralGreedyPursuit(p_values="all", random_state=0).fit(frame, y)
    summary = selector.summary()
    assert summary.index[: len(selector.order_)].tolist() == [f"c{i}" for i in selector.order_]
    assert summary["rank"].tolist()[: len(selector.order_)] == list(range(1, len(selector.order_) + 1))
    assert summary["rank"].isna().sum() == 10 - len(selector.order_)
    assert set(summary.index[summary.significant]) == {f"c{i}" for i in selector.significant()}
    assert summary.loc["c0", "p_value"] == selector.p_values_[0]


def selects_something(runs: int, **options: Any) -> int:
    count = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        if "cv" in options:
            X, y, rows = rng.normal(size=(150, 10)).cumsum(axis=0), rng.normal(size=150).cumsum(), {}
        else:
            groups = np.repeat(np.arange(15), rng.integers(3, 18, 15))
            X = rng.normal(size=(15, 10))[groups] + 0.3 * rng.normal(size=(len(groups), 10))
            y, rows = 2 * rng.normal(size=15)[groups] + rng.normal(size=len(groups)), {"cv_groups": groups}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Nothing was selected")
            count += len(NeuralGreedyPursuit(QUICK, random_state=0, **options).fit(X, y, **rows).order_) > 0
    return count


def test_random_walks_have_nothing_in_common() -> None:
    assert selects_something(20, cv=TimeSeriesSplit(5)) <= 3


def test_groups_of_rows_that_depend_on_each_other_have_nothing_in_common() -> None:
    assert selects_something(20) <= 3


def test_what_is_new_in_time_is_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)).cumsum(axis=0)
    y = 0.5 * X[:, 3] + 0.3 * rng.normal(size=200).cumsum()
    selector = NeuralGreedyPursuit(QUICK, cv=TimeSeriesSplit(5), random_state=0).fit(X, y)
    assert selector.order_.tolist()[:1] == [3]


def test_where_nothing_is_selected_it_says_how_many_rows_would_be_needed() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 10))
    y = 0.25 * X[:, 0] + rng.normal(size=2000)
    message = r"Nothing was selected .* Nearest came x0: it would \w+ the loss by .*, p = .* rows would be needed"
    with pytest.warns(UserWarning, match=message):
        selector = NeuralGreedyPursuit(random_state=0).fit(X[:80], y[:80])
    assert selector.p_values_[0] == selector.path_[1].p_value > 0.01
    assert 80 < selector.rows_needed_ < 1000
    enough = int(1.5 * selector.rows_needed_)
    assert NeuralGreedyPursuit(random_state=0).fit(X[:enough], y[:enough]).order_.tolist() == [0]


def test_where_something_is_selected_no_more_rows_are_needed() -> None:
    X, y = table()
    assert np.isnan(NeuralGreedyPursuit(QUICK, random_state=0).fit(X, y).rows_needed_)
