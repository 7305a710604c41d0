"""The scikit-learn face: what a user gets wrong is named, in one sentence, by the right kind of error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedGroupKFold

from ngp import NeuralGreedyPursuit, NGPRegressor
from ngp.data.groups import image_windows, make_groups
from ngp.greedy.stopping import Plateau
from ngp.predictors import SSFN

FAST = SSFN(n_units=10, n_draws=1, refit_units=10)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5))
y = X[:, 3] + X[:, 0]
ROWS = np.arange(40)


def make_selector(**settings: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(**{"predictor": FAST, "n_features_to_select": 2, "random_state": 0, **settings})


def spoiled(values: Any, value: float) -> Any:
    result = values.copy()
    result[3] = value
    return result


BAD_DATA = {
    "NaN in X": (spoiled(X, np.nan), y, ValueError, "Input X contains NaN"),
    "None in X": (
        [[1.0, None], [2.0, 3.0]] * 20,
        y,
        ValueError,
        "Input X contains NaN: drop rows or columns with gaps",
    ),
    "None in y": (X, np.array(["a", "b", None, "a"] * 10), ValueError, "y holds labels that can't be sorted, such as"),
    "infinity in X": (spoiled(X, np.inf), y, ValueError, "Input X contains infinity"),
    "NaN in y": (X, spoiled(y, np.nan), ValueError, "Input y contains NaN"),
    "infinity in y": (X, spoiled(y, -np.inf), ValueError, "Input y contains infinity"),
    "text in X": (X.astype(str) + "?", y, ValueError, "not compatible with arrays of bytes/strings"),
    "one dimension": (X[:, 0], y, ValueError, "Expected 2D array, got 1D array"),
    "sparse, one row": (csr_array(X)[:1], y[:1], ValueError, r"X has the shape \(1, 5\): give at least 2 samples"),
    "sparse, complex": (csr_array(X * 1j), y, ValueError, "a sparse array of 2 dimensions and type complex128"),
    "no y": (X, None, ValueError, "requires y to be passed, but the target y is None"),
    "lengths": (X, y[:-1], ValueError, r"inconsistent numbers of samples: \[40, 39\]"),
    "no rows": (X[:0], y[:0], ValueError, r"Found array with 0 sample\(s\)"),
    "one row": (X[:1], y[:1], ValueError, r"Found array with 1 sample\(s\).* minimum of 2"),
    "no columns": (X[:, :0], y, ValueError, r"Found array with 0 feature\(s\)"),
    "constant columns": (np.ones((40, 3)), y, ValueError, "X has only constant columns: there is nothing to select"),
    "a single class": (X, ["yes"] * 40, ValueError, "y holds a single value, .*'yes'.*: there are no classes"),
    "a single number": (X, np.ones(40), ValueError, r"y holds a single value, 1\.0: .* nothing to predict"),
    "texts in two columns": (X, np.full((40, 2), "yes"), ValueError, "several columns, and not all hold numbers"),
    "few samples": (X[:4], y[:4], ValueError, "cv=5 folds don't fit 4 samples: give at least 2 folds and at most"),
}


@pytest.mark.parametrize(("data", "target", "error", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(data: Any, target: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_selector().fit(data, target)


def test_targets_that_do_not_fit_the_task() -> None:
    for settings, target, message in [
        ({"task": "classification"}, y, "Unknown label type: continuous"),
        ({"task": "classification"}, np.ones(40), "y holds a single value"),
        ({"task": "classification"}, np.ones((40, 2), int), "takes one column of classes: y has several outputs"),
        ({"task": "regression"}, ["a", "b"] * 20, "A regression needs numbers in y: give numbers, or select for"),
        ({"loss": "hinge"}, y, "loss='hinge' is for classes, and this is a regression: use loss='squared_error'"),
        ({"loss": "cross_entropy"}, y, "loss='cross_entropy' is for classes, and this is a regression"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_selector(**settings).fit(X, target)


UNKNOWN_VALUES: dict[str, list[Any]] = {
    "predictor": ["mlp9", 5, None],
    "n_features_to_select": [0, -1, 1.5, 0.0, "all"],
    "tol": [-0.1, "small"],
    "stop": ["never", 3, Plateau],
    "fixed": ["x0", 3],
    "loss": ["mse", None],
    "task": ["ranking"],
    "floating": ["yes"],
    "screen": [0, -1, "x", 1.5],
    "max_time": [0, -1.0, "1 s"],
    "n_jobs": ["all", 1.5],
    "device": ["tpu"],
    "checkpoint": [3],
    "verbose": [-1, "yes"],
    "random_state": ["seed", -1],
}


@pytest.mark.parametrize("name", UNKNOWN_VALUES)
def test_values_that_a_parameter_cannot_have(name: str) -> None:
    for value in UNKNOWN_VALUES[name]:
        with pytest.raises(ValueError, match=f"The '{name}' parameter of NeuralGreedyPursuit must be .* Got .* instea"):
            make_selector(**{name: value}).fit(X, y)


def test_unknown_parameters_and_positions() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        NeuralGreedyPursuit(colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        NeuralGreedyPursuit("ssfn", 3)  # type: ignore[misc]


BAD_SETTINGS = {
    "tol and stop": ({"tol": 0.1, "stop": "plateau"}, ValueError, "tol=0.1 and stop='plateau' are two rules for one"),
    "a class as predictor": ({"predictor": SSFN}, TypeError, "predictor=SSFN is a class: give an object"),
    "the predictor's own": ({"predictor": SSFN(n_units=0)}, ValueError, "The 'n_units' parameter of SSFN must be"),
    "too many features": (
        {"n_features_to_select": 6},
        ValueError,
        "n_features_to_select=6 is more than the 5 features that vary: give at most 5",
    ),
    "more features than groups": (
        {"n_features_to_select": 3, "groups": [[0, 1], [2]]},
        ValueError,
        "n_features_to_select=3 is more than the 2 features that vary",
    ),
    "fewer features than fixed": (
        {"n_features_to_select": 1, "fixed": [0, 1]},
        ValueError,
        "n_features_to_select=1 is less than the 2 fixed columns: give more",
    ),
    "fixed name": ({"fixed": ["age"]}, ValueError, "fixed has the column name 'age', but X has no column names"),
    "fixed number": ({"fixed": [5]}, ValueError, "fixed has the column 5, out of range: use 0 to 4"),
    "fixed twice": ({"fixed": [0, 0]}, ValueError, "fixed names the column 0 twice: name each column once"),
    "fixed mask": ({"fixed": [True, False]}, TypeError, "fixed has the column True: give columns as integer indices"),
    "labels": ({"groups": [0, 0, 1]}, ValueError, "groups has 3 labels for 5 columns: give one label per column"),
    "group beyond": ({"groups": [[0, 9]]}, ValueError, r"groups\[0\] has the column 9, out of range: use 0 to 4"),
    "windows beyond": ({"groups": image_windows((3, 3), 3)}, ValueError, "has the column 5, out of range: use 0 to 4"),
    "a number as groups": ({"groups": 5}, TypeError, "groups=5 must be None, one label per column, a list of lists"),
    "groups of another table": ({"groups": make_groups(None, 4)}, ValueError, "made for 4 columns, but X has 5"),
    "screen": ({"screen": True}, TypeError, "screen=True is no number of candidates: give one, 'auto' or None"),
    "one part": (
        {"stop": Plateau(), "cv": [(ROWS[:39], ROWS[39:])]},
        ValueError,
        "standard_errors needs at least 2 parts of the validation, but there is 1",
    ),
}


@pytest.mark.parametrize(("settings", "error", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_settings_that_do_not_fit(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make_selector(**settings).fit(X, y)
    assert "\n" not in str(caught.value)


BAD_CV = {
    "None": (None, TypeError, "cv=None is no way of validation: give a number of folds"),
    "True": (True, TypeError, "cv=True is no way of validation"),
    "no cv_groups": (
        GroupKFold(3),
        ValueError,
        r"cv=GroupKFold\(.* keeps groups of rows .* give them to fit as cv_groups",
    ),
    "no cv_groups, left out": (LeaveOneGroupOut(), ValueError, "give them to fit as cv_groups, or give the splits"),
    "columns": ((X[:, :3], y), ValueError, r"cv=\(X, y\) of shapes \(40, 3\) and \(40,\) doesn't fit X with 5 columns"),
    "lengths": ((X, y[:7]), ValueError, r"cv=\(X, y\) of shapes \(40, 5\) and \(7,\) doesn't fit"),
    "outputs": ((X, np.column_stack([y, y])), ValueError, r"of shapes \(40, 5\) and \(40, 2\) doesn't fit"),
    "no rows": ((X[:0], y[:0]), ValueError, r"Found array with 0 sample\(s\)"),
    "NaN in X": ((spoiled(X, np.nan), y), ValueError, r"Input cv\[0\] contains NaN"),
    "NaN in y": ((X, spoiled(y, np.nan)), ValueError, r"Input cv\[1\] contains NaN"),
    "text in y": ((X, ["a"] * 40), ValueError, "needs numbers in y"),
}


@pytest.mark.parametrize(("cv", "error", "message"), BAD_CV.values(), ids=BAD_CV)
def test_bad_validation(cv: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_selector(cv=cv).fit(X, y)


def test_stratified_folds_need_groups_too() -> None:
    with pytest.raises(ValueError, match=r"cv=StratifiedGroupKFold\(.* give them to fit as cv_groups, or give the spl"):
        make_selector(cv=StratifiedGroupKFold(3)).fit(X, y > 0)


def test_validation_classes_must_be_known() -> None:
    labels = np.where(y > 0, "yes", "no")
    with pytest.raises(ValueError, match=r"cv holds classes that y doesn't: \['maybe'\]"):
        make_selector(cv=(X, np.repeat("maybe", 40))).fit(X, labels)


BAD_WEIGHTS = {
    "negative": (-np.ones(40), 5, "Negative values in data passed to `sample_weight`"),
    "length": (np.ones(3), 5, r"sample_weight.shape == \(3,\), expected \(40,\)"),
    "NaN": (np.full(40, np.nan), 5, "Input sample_weight contains NaN"),
    "all zero": (np.zeros(40), 5, "Sample weights must contain at least one non-zero number"),
    "no training": (
        1.0 * (ROWS > 19),
        [(ROWS[:20], ROWS[20:])],
        "sample_weight is zero on all training rows of a fold",
    ),
    "no judges": (1.0 * (ROWS < 20), [(ROWS[:20], ROWS[20:])], "sample_weight is zero on all validation rows"),
}


def test_bad_weights() -> None:
    for weights, cv, message in BAD_WEIGHTS.values():
        with pytest.raises(ValueError, match=message):
            make_selector(cv=cv).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("n_constant", [1, 4])
def test_constant_columns_are_named_and_never_selected(n_constant: int) -> None:
    data = np.column_stack([X, np.full((40, n_constant), 3.7)])
    listed = {1: r"1 of 6 \(x5\)", 4: r"4 of 9 \(x5, x6, x7, …\)"}[n_constant]
    with pytest.warns(UserWarning, match=rf"X has constant features, {listed}: they are never selected") as caught:
        selector = make_selector(n_features_to_select=5).fit(data, y)
    assert caught[0].filename == __file__
    assert sorted(selector.order_) == [0, 1, 2, 3, 4]
    assert np.isnan(selector.losses_[:, 5:]).all()
    with pytest.raises(ValueError, match="n_features_to_select=6 is more than the 5 features that vary"):
        make_selector(n_features_to_select=6).fit(data, y)


def test_columns_that_are_constant_in_training_are_never_selected() -> None:
    data = np.column_stack([X, ROWS >= 30])  # varies in the validation set only
    with pytest.warns(UserWarning, match=r"X has constant features, 1 of 6 \(x5\)"):
        selector = make_selector(n_features_to_select=5, cv=(data[30:], y[30:])).fit(data[:30], y[:30])
    assert not selector.support_[5]


def test_a_loss_that_the_predictor_cannot_score() -> None:
    class OnlySquares(SSFN):
        losses = frozenset({"squared_error"})

    with pytest.raises(ValueError, match="loss='hinge' can't be scored by OnlySquares: use one of squared_error"):
        make_selector(predictor=OnlySquares(), loss="hinge").fit(X, y > 0)


def test_data_that_differ_from_those_of_fit() -> None:
    selector = NGPRegressor(FAST, n_features_to_select=2, random_state=0).fit(X, y)
    for method in (selector.predict, selector.transform):
        with pytest.raises(ValueError, match="X has 3 features, but NGPRegressor is expecting 5 features"):
            method(X[:, :3])
        with pytest.raises(ValueError, match=r"^Input X contains NaN: drop rows .*\.$"):
            method(spoiled(X, np.nan))


def test_a_failed_fit_leaves_parameters_alone() -> None:
    selector = make_selector(fixed=["age"])
    before = selector.get_params()
    with pytest.raises(ValueError, match="fixed has the column name"):
        selector.fit(X, y)
    assert selector.get_params() == before
