"""What all competing methods share, tried on a method whose importances are given."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from baseline_cases import LABELS, TOWN, Choosy, Given, X, fit_weights, training_data, y
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from ngp import NeuralGreedyPursuit
from ngp.baselines.base import best_features, normalised
from ngp.predictors import SSFN

# The rule for choosing

sizes = st.floats(0, sys.float_info.max)


@given(st.lists(sizes, min_size=1, max_size=20))
def test_importances_are_brought_to_sum_one(values: list[float]) -> None:
    before = np.array(values)
    result = normalised(before)
    assert before.tolist() == values
    assert (result >= 0).all()
    if max(values) == 0:
        assert result.tolist() == values
        return
    assert result.sum() == pytest.approx(1)
    order = np.argsort(before)
    assert (np.diff(result[order]) >= 0).all()
    scale = max(values)
    np.testing.assert_allclose(result / result.max(), before / scale, rtol=1e-12, atol=1e-300)


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=12), st.floats(0, 1, exclude_max=True)
)
def test_the_threshold_is_exceeded_by_all_that_is_selected_and_nothing_else(values: Any, threshold: float) -> None:
    selector = fit_weights(values, threshold=threshold)
    np.testing.assert_array_equal(selector.importances_, normalised(values))
    assert selector.support_.dtype == bool
    assert selector.support_.tolist() == [bool(value > threshold) for value in selector.importances_]


def test_what_is_as_important_as_the_threshold_is_left_out() -> None:
    assert fit_weights([1, 2, 97]).support_.tolist() == [False, True, True]  # 0.01 is the paper's threshold
    assert fit_weights([1, 2, 1], threshold=0.25).support_.tolist() == [False, True, False]
    assert fit_weights([0, 1, 1], threshold=0).support_.tolist() == [False, True, True]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_the_best_are_selected_and_of_equal_ones_the_first(values: list[int], data: Any) -> None:
    number = data.draw(st.integers(1, len(values)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = fit_weights(values, n_features_to_select=number, threshold=0.9)  # which then has no say
    mask = selector.support_
    np.testing.assert_array_equal(mask, best_features(selector.importances_, number))
    chosen = [(-value, place) for place, value in enumerate(values) if mask[place]]
    left = [(-value, place) for place, value in enumerate(values) if value > 0 and not mask[place]]
    assert len(chosen) == min(number, sum(value > 0 for value in values))
    assert not (chosen and left and max(chosen) > min(left))
    assert all(value for value, _ in chosen)


@given(st.integers(1, 30), st.floats(0, 1, exclude_min=True))
def test_a_share_is_rounded_and_at_least_one_feature(n_features: int, share: float) -> None:
    expected = min(n_features, max(1, round(share * n_features)))
    assert fit_weights(np.ones(n_features), n_features_to_select=share).support_.sum() == expected


def test_a_number_counts_features_and_one_point_nought_is_all_of_them() -> None:
    assert fit_weights(np.ones(5), n_features_to_select=1).support_.sum() == 1
    assert fit_weights(np.ones(5), n_features_to_select=1.0).support_.sum() == 5
    assert fit_weights(np.ones(5), n_features_to_select=np.int64(3)).support_.sum() == 3
    assert fit_weights(np.ones(5), n_features_to_select=np.float32(0.4)).support_.sum() == 2


def test_a_share_is_one_of_all_features_but_constant_ones_cannot_fill_it() -> None:
    data = np.column_stack([X, np.ones((20, 4))])
    with pytest.warns(UserWarning, match="X has constant features, 4 of 8"):
        half = Given(np.ones(4), n_features_to_select=0.5).fit(data, y)
    with pytest.warns(UserWarning, match="X has constant features") as caught:
        everything = Given(np.ones(4), n_features_to_select=1.0).fit(data, y)
    assert half.get_support(indices=True).tolist() == everything.get_support(indices=True).tolist() == [0, 1, 2, 3]
    assert len(caught) == 1


def test_a_method_may_have_a_rule_of_its_own() -> None:
    assert Choosy(threshold=None).fit(X, y).support_.tolist() == [False, False, True, False]
    assert Choosy(threshold=0.4).fit(X, y).support_.tolist() == [False, True, False, False]
    assert Choosy(threshold=None, n_features_to_select=2).fit(X, y).support_.tolist() == [False, True, False, True]


def test_a_method_without_such_a_rule_needs_a_threshold() -> None:
    with pytest.raises(ValueError, match="The 'threshold' parameter of Given must be a float in the range"):
        Given(threshold=None).fit(X, y)


# What a method learns from


def test_columns_with_categories_are_summed_back_to_their_feature() -> None:
    numbers = {"a": X[:, 0], "flag": X[:, 1] > 0, "b": X[:, 2]}
    tables = [
        pd.DataFrame({"a": X[:, 0], "town": pd.Categorical(TOWN), "flag": X[:, 1] > 0, "b": X[:, 2]}),
        pl.DataFrame({**numbers, "town": pl.Series(TOWN, dtype=pl.Categorical)}).select("a", "town", "flag", "b"),
        pl.DataFrame({**numbers, "town": pl.Series(TOWN, dtype=pl.Enum(["Ulm", "Bonn", "Kiel"]))}).select(
            "a", "town", "flag", "b"
        ),
    ]
    for table in tables:
        selector = Given([1, 2, 3, 4, 0, 10], n_features_to_select=2).fit(table, y)
        np.testing.assert_allclose(selector.importances_, [0.05, 0.45, 0, 0.5])
        assert selector.n_features_in_ == 4
        assert selector.get_feature_names_out().tolist() == ["town", "b"]
        assert selector.data_.origin.tolist() == [0, 1, 1, 1, 2, 3]
        assert selector.data_.n_features == 4
        towns = selector.data_.X[:, 1:4]
        np.testing.assert_array_equal(towns, TOWN[:, None] == ["Bonn", "Kiel", "Ulm"])
        np.testing.assert_array_equal(selector.data_.X[:, 4], X[:, 1] > 0)


def test_columns_that_do_not_vary_are_left_out_of_the_data() -> None:
    data = np.column_stack([np.full(20, 0.1), X[:, 0], np.zeros(20), X[:, 1]])
    with pytest.warns(UserWarning, match=r"X has constant features, 2 of 4 \(x0, x2\): they are never selected"):
        selector = Given([3, 1]).fit(data, y)
    np.testing.assert_array_equal(selector.data_.X, X[:, :2])
    assert selector.importances_.tolist() == [0, 0.75, 0, 0.25]
    assert selector.support_.tolist() == [False, True, False, True]


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_a_column_that_differs_by_rounding_alone_is_constant_as_for_the_pursuit() -> None:
    data = np.column_stack([X, np.where(X[:, 0] > 0, 0.1 + 0.2, 0.3), 1e10 + 1e-6 * X[:, 0], 1e6 + X[:, 0]])
    assert training_data(data, y).origin.tolist() == [0, 1, 2, 3, 6]
    fast = SSFN(n_units=10, n_draws=1, refit_units=10)
    pursuit = NeuralGreedyPursuit(fast, n_features_to_select=1, random_state=0).fit(data, y)
    assert np.flatnonzero(~np.isnan(pursuit.losses_[0])).tolist() == [0, 1, 2, 3, 6]


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-9, 1, 1e9, 1e200, 1e306])
def test_columns_are_standardised_whatever_their_unit(scale: float) -> None:
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(training_data(X * scale, y).standardised, expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1, 1e9])
def test_targets_are_scaled_together_whatever_their_unit(scale: float) -> None:
    targets = np.column_stack([y, 10 * X[:, 0] + 5, np.full(20, 0.1)])
    scaled = training_data(X, targets * scale).scaled_targets
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, 0].std() / scaled[:, 1].std(), y.std() / X[:, 0].std() / 10)
    assert np.abs(scaled).max() == 1
    assert (scaled[:, 2] == 0).all()
    constant = training_data(X, np.full(20, 0.1) * scale, task="regression")
    assert (constant.scaled_targets == 0).all()


def test_data_stay_as_they_are() -> None:
    before, targets = X.copy(), y.copy()
    data = training_data(X, y)
    assert data.standardised.shape == data.X.shape
    assert data.scaled_targets.shape == data.targets.shape
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(y, targets)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool, object])
def test_numbers_of_any_type_become_doubles(dtype: Any) -> None:
    values = np.round(3 * X).astype(dtype)
    data = training_data(values, y)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, values.astype(float))


THREE = np.digitize(y, [-0.5, 0.5])
TARGETS = {
    "quantities": (y, "auto", "regression", y),
    "a column": (y[:, None], "auto", "regression", y),
    "two outputs": (X[:, :2], "auto", "regression", X[:, :2]),
    "whole numbers": (np.arange(20) * 7, "auto", "regression", np.arange(20) * 7),
    "whole numbers by order": (THREE, "regression", "regression", THREE),
    "labels": (LABELS, "auto", "classification", LABELS),
    "labels in a column": (LABELS[:, None], "auto", "classification", LABELS),
    "booleans": (y > 0, "auto", "classification", y > 0),
    "three classes": (THREE, "auto", "classification", THREE),
    "classes as quantities": (THREE.astype(float), "auto", "classification", THREE),
    "classes by order": (np.arange(20) % 11, "classification", "classification", np.arange(20) % 11),
    "a series": (pd.Series(LABELS), "auto", "classification", LABELS),
    "a series of categories": (pd.Series(pd.Categorical(LABELS)), "auto", "classification", LABELS),
}


@pytest.mark.parametrize(("target", "task", "expected", "plain"), TARGETS.values(), ids=TARGETS)
def test_targets_of_all_kinds(target: Any, task: str, expected: str, plain: Any) -> None:
    selector = Given(task=task).fit(X, target)
    data = selector.data_
    assert selector.task_ == expected
    np.testing.assert_array_equal(data.y, plain)
    assert data.targets.dtype == np.float64
    assert data.targets.ndim == 2
    assert (data.classes is None) == (expected == "regression")
    if data.classes is not None:
        assert data.targets.shape[1] == (1 if len(data.classes) == 2 else len(data.classes))
        assert set(np.unique(data.targets)) == {0, 1}


def test_one_seed_one_answer() -> None:
    seeds = [training_data(X, y, random_state=seed).seed for seed in (3, 3, np.random.RandomState(3), 4)]
    assert seeds[0] == seeds[1] == seeds[2] != seeds[3]


# The scikit-learn face


def test_reduction_names_and_back() -> None:
    selector = Given().fit(X, y)
    assert selector.get_support(indices=True).tolist() == [0, 1, 3]
    np.testing.assert_array_equal(selector.transform(X), X[:, [0, 1, 3]])
    np.testing.assert_array_equal(Given().fit_transform(X, y), X[:, [0, 1, 3]])
    assert selector.get_feature_names_out().tolist() == ["x0", "x1", "x3"]
    np.testing.assert_array_equal(selector.inverse_transform(X[:, [0, 1, 3]])[:, [0, 1, 3]], X[:, [0, 1, 3]])
    with pytest.raises(ValueError, match="X has 3 features, but Given is expecting 4 features"):
        selector.transform(X[:, :3])
    assert selector.own_estimator() is None


def make_table(kind: str) -> Any:
    columns = {"a": X[:, 0], "flag": X[:, 1] > 0, "n": np.arange(20)}
    if kind == "pandas":
        return pd.DataFrame({"town": pd.Categorical(TOWN), **columns})
    return pl.DataFrame({"town": pl.Series(TOWN, dtype=pl.Categorical), **columns})


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_frames_of_all_kinds_come_out(kind: str, output: str) -> None:
    table = make_table(kind)
    selector = Given([1, 1, 1, 0, 1, 1]).set_output(transform=output).fit(table, y)
    result = selector.transform(table)
    if output == "default":
        assert isinstance(result, np.ndarray)
        columns = dict(zip(["town", "flag", "n"], result.T, strict=True))
    else:
        assert type(result).__module__.startswith(output)
        columns = {name: result[name] for name in result.columns}
        assert list(columns) == ["town", "flag", "n"]
    for name, values in columns.items():
        assert list(values) == table[name].to_list()
        if kind == output:
            assert values.dtype == table[name].dtype


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_must_have_the_columns_of_fit(kind: str) -> None:
    table = make_table(kind)
    for output in ("default", kind):
        selector = Given([1, 1, 1, 0, 1, 1]).set_output(transform=output).fit(table, y)
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            selector.transform(table[["town", "a"]])


def test_another_fit_leaves_nothing_behind() -> None:
    selector = Given(np.ones(6)).fit(make_table("pandas"), LABELS)
    fresh = Given(np.ones(6)).fit(X[:, :2], y)
    selector.fit(X[:, :2], y)
    assert set(vars(selector)) == set(vars(fresh))
    assert not hasattr(selector, "feature_names_in_")
    assert (selector.n_features_in_, selector.task_) == (2, "regression")
    assert selector.importances_.tolist() == [0.5, 0.5]
    assert selector.data_.classes is None


def test_before_fit_and_after_a_failed_one_nothing_can_be_asked() -> None:
    selector = Given(n_features_to_select=9)
    for _ in range(2):
        with pytest.raises(NotFittedError):
            selector.transform(X)
        with pytest.raises(NotFittedError):
            selector.get_support()
        with pytest.raises(ValueError, match="is more than the 4 features"):
            selector.fit(X, y)
    assert selector.n_features_to_select == 9


def test_a_failed_fit_changes_no_parameters() -> None:
    selector = Given([np.nan] * 4)
    before = dict(selector.get_params())
    with pytest.raises(ValueError, match="aren't finite"):
        selector.fit(X, y)
    assert selector.get_params() == before
