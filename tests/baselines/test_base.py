"""What all competing methods share, tried on a method whose importances are given."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from baseline_cases import LABELS, TOWN, Given, X, fit_weights, training_data, y
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from ngp import NeuralGreedyPursuit
from ngp.baselines.base import TrainingData, best_features, normalised, require
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


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_mean_selects_what_is_at_least_as_important_as_the_average(values: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = fit_weights(values, threshold="mean").support_
    assert chosen.tolist() == [value > 0 and value * len(values) >= sum(values) for value in values]


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


def test_a_share_is_one_of_all_features_but_constant_ones_cannot_fill_it() -> None:
    data = np.column_stack([X, np.ones((20, 4))])
    with pytest.warns(UserWarning, match="X has constant features, 4 of 8"):
        half = Given(weights=np.ones(4), n_features_to_select=0.5).fit(data, y)
    with pytest.warns(UserWarning, match="X has constant features") as caught:
        everything = Given(weights=np.ones(4), n_features_to_select=1.0).fit(data, y)
    assert half.get_support(indices=True).tolist() == everything.get_support(indices=True).tolist() == [0, 1, 2, 3]
    assert len(caught) == 1


def test_a_threshold_is_needed() -> None:
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
        selector = Given(weights=[1, 2, 3, 4, 0, 10], n_features_to_select=2).fit(table, y)
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
        selector = Given(weights=[3, 1]).fit(data, y)
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


@pytest.mark.parametrize("scale", [1e-310, 1, 1e306])
def test_columns_are_standardised_whatever_their_unit(scale: float) -> None:
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(training_data(X * scale, y).standardised, expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-200, 1, 1e9])
def test_targets_are_scaled_together_whatever_their_unit(scale: float) -> None:
    targets = np.column_stack([y, 10 * X[:, 0] + 5, np.full(20, 0.1)])
    scaled = training_data(X, targets * scale).scaled_targets
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, 0].std() / scaled[:, 1].std(), y.std() / X[:, 0].std() / 10)
    assert np.abs(scaled).max() == 1
    assert (scaled[:, 2] == 0).all()
    constant = training_data(X, np.full(20, 0.1) * scale, task="regression")
    assert (constant.scaled_targets == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int8, object])
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
    "three classes": (THREE, "auto", "classification", THREE),
    "classes by order": (np.arange(20) % 11, "classification", "classification", np.arange(20) % 11),
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
    selector = Given(weights=[1, 1, 1, 0, 1, 1]).set_output(transform=output).fit(table, y)
    result = selector.transform(table)
    expected = kind if output == "default" else output
    assert type(result).__module__.startswith(expected)
    assert list(result.columns) == ["town", "flag", "n"]
    for name in result.columns:
        values = result[name]
        assert list(values) == table[name].to_list()
        if kind == expected:
            assert values.dtype == table[name].dtype


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_must_have_the_columns_of_fit(kind: str) -> None:
    table = make_table(kind)
    for output in ("default", kind):
        selector = Given(weights=[1, 1, 1, 0, 1, 1]).set_output(transform=output).fit(table, y)
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            selector.transform(table[["town", "a"]])


def test_another_fit_leaves_nothing_behind() -> None:
    selector = Given(weights=np.ones(6)).fit(make_table("pandas"), LABELS)
    fresh = Given(weights=np.ones(6)).fit(X[:, :2], y)
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


# What is refused, and what is warned of


def spoiled(values: Any, value: float) -> Any:
    result = values.copy()
    result[3] = value
    return result


BAD_DATA = {
    "infinity in X": (spoiled(X, np.inf), y, ValueError, "Input X contains infinity"),
    "NaN in y": (X, spoiled(y, np.nan), ValueError, "Input y contains NaN"),
    "NaN among labels": (X, np.array(["a", np.nan] * 10, dtype=object), ValueError, "Input contains NaN"),
    "text in X": (np.full((20, 2), "red"), y, ValueError, "could not convert string to float: .*'red'"),
    "sparse": (csr_array(X), y, TypeError, "Given needs X as an array in memory, and X is a csr_array"),
    "no y": (X, None, ValueError, "requires y to be passed, but the target y is None"),
    "one row": (X[:1], y[:1], ValueError, r"Found array with 1 sample\(s\).* minimum of 2"),
    "constant columns": (
        np.full((20, 3), 0.1),
        y,
        ValueError,
        "^X has only constant columns: there is nothing to select from.$",
    ),
    "a single class": (
        X,
        ["yes"] * 20,
        ValueError,
        "^y holds a single value, 'yes': there are no classes to tell apart, nothing to predict.$",
    ),
    "text in a frame": (
        pd.DataFrame({"town": TOWN}),
        y,
        ValueError,
        r"X has columns that are neither numbers nor categories, 'town' \(String\): make them categories",
    ),
    "gaps in categories": (
        pd.DataFrame({"town": pd.Categorical(np.where(TOWN == "Ulm", None, TOWN))}),
        y,
        ValueError,
        "X has missing values in the category columns 'town': drop these rows",
    ),
}


@pytest.mark.parametrize(("data", "target", "error", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(data: Any, target: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Given().fit(data, target)


@pytest.mark.parametrize(
    ("task", "target", "message"),
    [
        ("classification", y, "Unknown label type: continuous"),
        ("classification", np.ones((20, 2), int), "takes one column of classes: y has several outputs"),
        ("regression", LABELS, "A regression needs numbers in y: give numbers, or select for classes"),
    ],
)
def test_targets_that_do_not_fit_the_task(task: str, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Given(task=task).fit(X, target)


NO_GAPS = "Input X contains NaN: drop rows or columns with gaps, or fill them (sklearn.impute)."


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_missing_values_are_refused_in_one_sentence(make: Any) -> None:
    with pytest.raises(ValueError, match="NaN") as caught:
        Given().fit(make(spoiled(X, np.nan)), y)
    assert str(caught.value) == NO_GAPS
    assert caught.value.__suppress_context__


UNKNOWN_VALUES = {
    "n_features_to_select": [0, 1.5, "all"],
    "threshold": [-0.1, 1.0, None],
    "task": ["ranking"],
}


@pytest.mark.parametrize(("name", "value"), [(n, value) for n, values in UNKNOWN_VALUES.items() for value in values])
def test_values_that_a_parameter_cannot_have(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Given must be .* Got .* instead"):
        Given(**{name: value}).fit(X, y)


class NeverRates(Given):
    def _column_importances(self, data: TrainingData) -> Any:
        raise AssertionError("this may take hours")


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_more_features_than_vary_are_refused_before_the_work_begins() -> None:
    data = np.column_stack([X, np.ones(20)])
    for number in (5, 6):
        message = f"^n_features_to_select={number} is more than the 4 features that vary: give at most 4.$"
        with pytest.raises(ValueError, match=message):
            NeverRates(n_features_to_select=number).fit(data, y)
    assert Given(weights=np.ones(4), n_features_to_select=4).fit(data, y).support_.sum() == 4


def test_a_category_counts_as_one_feature() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(TOWN), "a": X[:, 0]})
    with pytest.raises(ValueError, match="n_features_to_select=3 is more than the 2 features that vary"):
        NeverRates(n_features_to_select=3).fit(frame, y)
    assert Given(weights=np.ones(4), n_features_to_select=0.5).fit(frame, y).support_.tolist() == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_importances_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"^Given finds importances that aren't finite: rescale X and y.$"):
        Given(weights=[1, value, 1, 1]).fit(X, y)


@pytest.mark.parametrize("settings", [{}, {"n_features_to_select": 2}, {"n_features_to_select": 0.5}])
def test_an_empty_selection_is_said_once(settings: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=r"^Nothing was selected: no feature is important enough.$") as caught:
        selector = Given(weights=np.zeros(4), **settings).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert selector.importances_.tolist() == [0, 0, 0, 0]
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (20, 0)


@pytest.mark.parametrize(("number", "as_text"), [(4, "4"), (1.0, r"1\.0")])
def test_fewer_features_above_zero_than_asked_for_are_said(number: float, as_text: str) -> None:
    message = (
        f"^n_features_to_select={as_text} asks for 4 features, but only 3 have an importance above zero: "
        "only these are selected.$"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        selector = Given(n_features_to_select=number).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert selector.support_.tolist() == [True, True, False, True]


@pytest.mark.parametrize(("n_constant", "listed"), [(3, r"3 of 7 \(x4, x5, x6\)"), (4, r"4 of 8 \(x4, x5, x6, …\)")])
def test_constant_features_are_said(n_constant: int, listed: str) -> None:
    data = np.column_stack([X, np.full((20, n_constant), 0.1)])
    with pytest.warns(UserWarning, match=f"^X has constant features, {listed}: they are never selected.$") as caught:
        selector = Given(threshold=0).fit(data, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert selector.support_.tolist() == [True, True, False, True] + [False] * n_constant


def test_constant_features_of_a_frame_are_named() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(["Ulm"] * 20), "a": X[:, 0], "b": 1, "c": X[:, 1]})
    with pytest.warns(UserWarning, match=r"X has constant features, 2 of 4 \(town, b\)"):
        selector = Given(weights=[1, 3]).fit(frame, y)
    assert selector.importances_.tolist() == [0, 0.25, 0, 0.75]


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Given().fit(X, y).transform(X)


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    require("numpy", "LassoNet")
    with pytest.raises(ImportError) as caught:
        require("no_such_package", "BART")
    expected = "BART needs no_such_package: install it with pip install 'neural-greedy-pursuit[baselines]'."
    assert str(caught.value) == expected
