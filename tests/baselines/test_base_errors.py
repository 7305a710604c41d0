"""What all competing methods refuse and warn of, tried on a method whose importances are given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from baseline_cases import LABELS, TOWN, Given, X, y
from scipy.sparse import csr_array

from ngp import NeuralGreedyPursuit
from ngp.baselines.base import TrainingData, require


def spoiled(values: Any, value: float) -> Any:
    result = values.copy()
    result[3] = value
    return result


BAD_DATA = {
    "infinity in X": (spoiled(X, np.inf), y, ValueError, "Input X contains infinity"),
    "NaN in y": (X, spoiled(y, np.nan), ValueError, "Input y contains NaN"),
    "NaN among labels": (X, np.array(["a", np.nan] * 10, dtype=object), ValueError, "Input contains NaN"),
    "infinity in y": (X, spoiled(y, -np.inf), ValueError, "Input y contains infinity"),
    "text in X": (np.full((20, 2), "red"), y, ValueError, "could not convert string to float: .*'red'"),
    "one dimension": (X[:, 0], y, ValueError, "Expected 2D array, got 1D array"),
    "sparse": (csr_array(X), y, TypeError, "Given needs X as an array in memory, and X is a csr_array"),
    "no y": (X, None, ValueError, "requires y to be passed, but the target y is None"),
    "lengths": (X, y[:-1], ValueError, r"inconsistent numbers of samples: \[20, 19\]"),
    "one row": (X[:1], y[:1], ValueError, r"Found array with 1 sample\(s\).* minimum of 2"),
    "no columns": (X[:, :0], y, ValueError, r"Found array with 0 feature\(s\)"),
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
        ("regression", LABELS, "task='regression' needs numbers in y: give numbers or task='classification'"),
    ],
)
def test_targets_that_do_not_fit_the_task(task: str, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Given(task=task).fit(X, target)


NO_GAPS = "Input X contains NaN: drop rows or columns with gaps, or fill them (sklearn.impute)."


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("selector", [Given(), NeuralGreedyPursuit()])
def test_missing_values_are_refused_in_one_sentence(selector: Any, make: Any) -> None:
    with pytest.raises(ValueError, match="NaN") as caught:
        selector.fit(make(spoiled(X, np.nan)), y)
    assert str(caught.value) == NO_GAPS
    assert caught.value.__suppress_context__


def test_missing_values_of_lists_are_refused_too() -> None:
    with pytest.raises(ValueError, match="Input X contains NaN: drop rows"):
        Given().fit([[1.0, 2.0], [None, 3.0], [4.0, 5.0]], [1.5, 2.5, 3.5])


def test_missing_values_are_refused_after_fit_too() -> None:
    with pytest.raises(ValueError, match="NaN") as caught:
        Given().fit(X, y).transform(spoiled(X, np.nan))
    assert str(caught.value) == NO_GAPS


UNKNOWN_VALUES = {
    "n_features_to_select": [0, -1, 1.5, 0.0, "all"],
    "threshold": [-0.1, 1.0, 1, "mean", None],
    "task": ["ranking", None],
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
    assert Given(np.ones(4), n_features_to_select=4).fit(data, y).support_.sum() == 4


def test_a_category_counts_as_one_feature() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(TOWN), "a": X[:, 0]})
    with pytest.raises(ValueError, match="n_features_to_select=3 is more than the 2 features that vary"):
        NeverRates(n_features_to_select=3).fit(frame, y)
    assert Given(np.ones(4), n_features_to_select=0.5).fit(frame, y).support_.tolist() == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_importances_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"^Given finds importances that aren't finite: rescale X and y.$"):
        Given([1, value, 1, 1]).fit(X, y)


@pytest.mark.parametrize("settings", [{}, {"n_features_to_select": 2}, {"n_features_to_select": 0.5}])
def test_an_empty_selection_is_said_once(settings: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=r"^Nothing was selected: no feature is important enough.$") as caught:
        selector = Given(np.zeros(4), **settings).fit(X, y)
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


@pytest.mark.parametrize(
    ("n_constant", "listed"), [(1, r"1 of 5 \(x4\)"), (3, r"3 of 7 \(x4, x5, x6\)"), (4, r"4 of 8 \(x4, x5, x6, …\)")]
)
def test_constant_features_are_said(n_constant: int, listed: str) -> None:
    data = np.column_stack([X, np.full((20, n_constant), 0.1)])
    with pytest.warns(UserWarning, match=f"^X has constant features, {listed}: they are never selected.$") as caught:
        selector = Given(threshold=0).fit(data, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert selector.support_.tolist() == [True, True, False, True] + [False] * n_constant


def test_constant_features_of_a_frame_are_named() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(["Ulm"] * 20), "a": X[:, 0], "b": 1, "c": X[:, 1]})
    with pytest.warns(UserWarning, match=r"X has constant features, 2 of 4 \(town, b\)"):
        selector = Given([1, 3]).fit(frame, y)
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
