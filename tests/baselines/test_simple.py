"""Correlation, LASSO, random forest, GAM: held against the library called by hand, and on problems easy for them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel, r_regression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, SplineTransformer, StandardScaler

from ngp.baselines import GAM, Correlation, Lasso, RandomForest
from ngp.baselines.base import Baseline


def make_data(n_samples: int = 80, n_columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 1 and 4; columns have different units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_columns))
    y = 2 * X[:, 1] - X[:, 4] + 0.3 * rng.normal(size=n_samples)
    return X * np.logspace(-2, 3, n_columns) + 7, y


X, Y = make_data()
TARGETS = {
    "regression": Y,
    "binary": np.where(Y > 0, "yes", "no"),
    "classes": np.digitize(Y, [-1, 1]),
    "outputs": np.column_stack([Y, 3 * X[:, 0] + 0.01 * X[:, 3]]),
}
METHODS: dict[str, Baseline] = {
    "correlation": Correlation(),
    "lasso": Lasso(),
    "lasso-cv": Lasso(alpha="cv"),
    "random-forest": RandomForest(n_estimators=30, random_state=0),
    "gam": GAM(),
}
each_kind = pytest.mark.parametrize("kind", list(TARGETS))
each_method = pytest.mark.parametrize("name", list(METHODS))


def importances(name: str, data: Any, target: Any, **settings: Any) -> Any:
    return clone(METHODS[name]).set_params(**settings).fit(data, target).importances_


def coded(kind: str) -> Any:
    """Targets as numbers, one column per output or class, a single one for two classes."""
    target = TARGETS[kind]
    return LabelBinarizer().fit_transform(target) if kind in ("binary", "classes") else target.reshape(len(target), -1)


def shares(values: Any) -> Any:
    return values / values.sum()


# The library called by hand


@each_kind
def test_correlations_by_hand(kind: str) -> None:
    squares = sum(r_regression(X, output) ** 2 for output in coded(kind).T.astype(float))
    np.testing.assert_allclose(importances("correlation", X, TARGETS[kind]), shares(np.sqrt(squares)), rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "alpha"), [("regression", 0.1), ("classes", 0.1), ("binary", "cv"), ("outputs", "cv")]
)
def test_lasso_by_hand(kind: str, alpha: Any) -> None:
    target = coded(kind).astype(float)
    several = target.shape[1] > 1
    if alpha == "cv":
        folds = KFold(5, shuffle=True, random_state=0)
        model = (linear_model.MultiTaskLassoCV if several else linear_model.LassoCV)(cv=folds)
    else:
        model = (linear_model.MultiTaskLasso if several else linear_model.Lasso)(alpha=alpha)
    model.fit(StandardScaler().fit_transform(X), target if several else target[:, 0])
    selector = Lasso(alpha=alpha).fit(X, TARGETS[kind])
    expected = shares(np.abs(np.atleast_2d(model.coef_)).sum(axis=0))
    np.testing.assert_allclose(selector.importances_, expected, rtol=1e-6, atol=1e-9)
    assert selector.alpha_ == pytest.approx(model.alpha_ if alpha == "cv" else alpha)


@each_kind
@pytest.mark.parametrize("data", [X, np.round(2 * StandardScaler().fit_transform(X))], ids=["numbers", "equal ones"])
def test_forest_by_hand(kind: str, data: Any) -> None:
    forest = RandomForestRegressor if kind in ("regression", "outputs") else RandomForestClassifier
    model = forest(n_estimators=30, random_state=0).fit(data, TARGETS[kind])
    np.testing.assert_allclose(importances("random-forest", data, TARGETS[kind]), model.feature_importances_, rtol=1e-9)


@pytest.mark.parametrize(("kind", "n_splines"), [("regression", 4), ("classes", 7), ("binary", 5), ("outputs", 5)])
def test_curves_by_hand(kind: str, n_splines: int) -> None:
    model = make_pipeline(SplineTransformer(n_knots=n_splines - 2), RidgeCV(alphas=np.logspace(-3, 3, 13)))
    model.fit(X, coded(kind).astype(float))
    spread = np.zeros(X.shape[1])
    for column in range(X.shape[1]):
        alone = np.tile(X[0], (len(X), 1))  # all others held where they are in the first row
        alone[:, column] = X[:, column]
        spread[column] = np.sqrt(model.predict(alone).reshape(len(X), -1).var(axis=0).sum())
    selector = GAM(n_splines=n_splines).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, shares(spread), rtol=1e-6)
    assert selector.penalty_ == model[-1].alpha_


# Problems that are easy for one method


def best(name: str, data: Any, target: Any, number: int) -> list[int]:
    selector = clone(METHODS[name]).set_params(n_features_to_select=number)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_features_to_select=|Nothing was selected")
        found: list[int] = selector.fit(data, target).get_support(indices=True).tolist()
    return found


def test_correlation_finds_one_strong_linear_column() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 20))
    target = data[:, 7] + 0.5 * rng.normal(size=200)
    selector = Correlation(threshold=0.2).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [7]


@pytest.mark.parametrize("name", ["lasso", "lasso-cv"])
def test_lasso_finds_a_sparse_linear_truth_among_correlated_columns(name: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(100, 200)) + 0.7 * rng.normal(size=(100, 1))  # all columns have something in common
    target = 3 * data[:, 5] - 2 * data[:, 50] + 2 * data[:, 120] + 0.1 * rng.normal(size=100)
    selector = clone(METHODS[name]).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [5, 50, 120]
    # What all columns have in common lets the others pass for good ones, one by one, and hides the negative one.
    assert best("correlation", data, target, 3) != [5, 50, 120]


def test_gam_finds_curves_without_any_linear_trend() -> None:
    rng = np.random.default_rng(0)
    half = rng.uniform(-2, 2, size=(150, 12))
    data = np.concatenate([half, -half])  # so that even functions have no correlation at all with any column
    target = data[:, 2] ** 2 + 1.5 * np.cos(2 * data[:, 9]) + 0.3 * rng.normal(size=300)
    assert best("gam", data, target, 2) == [2, 9]
    for linear in ("correlation", "lasso", "lasso-cv"):
        assert not {2, 9} & set(best(linear, data, target, 2))


@pytest.mark.parametrize("kind", ["product", "either or"])
def test_forest_finds_columns_that_count_together_alone(kind: str) -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(100, 6))
    mirrored = half * np.where(np.arange(6) == 1, -1, 1)
    data = np.concatenate([half, mirrored, -half, -mirrored])  # neither column alone says anything
    product = data[:, 1] * data[:, 4]
    noisy = product + 0.1 * rng.normal(size=400)
    target = noisy if kind == "product" else noisy > 0
    assert best("random-forest", data, target, 2) == [1, 4]
    for additive in ("correlation", "lasso", "gam"):
        assert best(additive, data, target, 2) != [1, 4]


# What must not matter


@each_method
def test_the_units_of_columns_do_not_matter(name: str) -> None:
    expected = importances(name, X, Y)
    units = np.array([1e-300, 1e-300, 1, 1e300, 1e-9, 1e250])
    np.testing.assert_allclose(importances(name, X * units, Y), expected, rtol=1e-5, atol=1e-7)


def test_forests_need_only_the_order_of_values() -> None:
    bent = np.exp(3 * StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(importances("random-forest", bent, Y), importances("random-forest", X, Y))


@pytest.mark.parametrize("name", ["correlation", "lasso", "gam"])
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    order, target = np.argsort(Y), TARGETS["classes"]
    expected = importances(name, X, target)
    np.testing.assert_allclose(importances(name, X[order], target[order]), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["correlation", "lasso-cv", "random-forest", "gam"])
def test_the_unit_of_y_does_not_matter(name: str) -> None:
    for target, scale in ((Y, 2.0**-40), (TARGETS["outputs"], 2.0**40)):
        expected = importances(name, X, target)
        np.testing.assert_allclose(importances(name, X, target * scale), expected, rtol=1e-5, atol=1e-7)


@each_method
def test_a_constant_output_does_not_matter(name: str) -> None:
    both = np.column_stack([Y, np.full(80, 0.1)])
    tolerance = 0.02 if name == "random-forest" else 1e-6  # equal splits of a tree are drawn by chance
    np.testing.assert_allclose(importances(name, X, both), importances(name, X, Y), rtol=1e-4, atol=tolerance)


@each_method
def test_nothing_matters_where_y_is_constant(name: str) -> None:
    target = np.full((80, 2), 0.1)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        assert (importances(name, X, target) == 0).all()


@each_method
def test_two_samples_are_enough_for_all_but_folds(name: str) -> None:
    if name == "lasso-cv":
        message = "^alpha='cv' needs at least 5 samples, and X has 4: give alpha as a number.$"
        with pytest.raises(ValueError, match=message):
            Lasso(alpha="cv").fit(X[:4], Y[:4])
        assert Lasso(alpha="cv").fit(X[:5], Y[:5]).alpha_ > 0
    else:
        assert importances(name, X[:2], Y[:2]).sum() == pytest.approx(1)


# Each method's own


def test_folds_are_shuffled_because_rows_may_be_sorted() -> None:
    data, species = load_iris(return_X_y=True)  # sorted by species: folds of neighbours know nothing of the third
    orders = [np.random.default_rng(seed).permutation(len(data)) for seed in range(5)]
    others = [Lasso(alpha="cv").fit(data[rows], species[rows]).alpha_ for rows in orders]
    assert min(others) / 2 < Lasso(alpha="cv").fit(data, species).alpha_ < 2 * max(others)


def test_the_weight_of_the_penalty() -> None:
    assert Lasso().get_params()["alpha"] == 0.01  # the paper's
    few, many = (Lasso(alpha=alpha, threshold=0).fit(X, Y).support_.sum() for alpha in (0.5, 0.001))
    assert few < many
    with pytest.warns(UserWarning, match="Nothing was selected"):
        assert not Lasso(alpha=100).fit(X, Y).support_.any()


@pytest.mark.parametrize(
    ("selector", "parameter"),
    [
        (Lasso(alpha=0), "alpha"),
        (Lasso(alpha="best"), "alpha"),
        (GAM(n_splines=3), "n_splines"),
        (RandomForest(n_estimators=0), "n_estimators"),
        (RandomForest(n_jobs="all"), "n_jobs"),  # type: ignore[arg-type]
        (RandomForest(random_state="seed"), "random_state"),  # type: ignore[arg-type]
        (Correlation(threshold=1), "threshold"),
    ],
)
def test_values_that_a_parameter_cannot_have(selector: Baseline, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {type(selector).__name__} must be .* Got"):
        selector.fit(X, Y)


@pytest.mark.parametrize("data", [load_iris, load_wine, load_diabetes, load_breast_cancer])
def test_a_forest_does_not_keep_nearly_all_columns(data: Any) -> None:
    X, y = data(return_X_y=True)
    chosen = RandomForest(n_estimators=30, random_state=0).fit(X, y).support_
    assert 0 < chosen.mean() <= 0.5
    trees = RandomForestRegressor if data is load_diabetes else RandomForestClassifier
    theirs = SelectFromModel(trees(30, random_state=0)).fit(rankdata(X, method="dense", axis=0), y)
    np.testing.assert_array_equal(chosen, theirs.get_support())


@pytest.mark.parametrize("name", ["lasso", "lasso-cv", "random-forest", "gam"])
@pytest.mark.parametrize("kind", ["outputs", "binary"])
@pytest.mark.filterwarnings("ignore:n_features_to_select=3 asks for")
def test_the_own_estimator_learns_from_the_selection(name: str, kind: str) -> None:
    target = TARGETS[kind]
    selector = clone(METHODS[name])
    with pytest.raises(NotFittedError):
        selector.own_estimator()
    reduced = selector.set_params(n_features_to_select=3).fit(X, target).transform(X)
    estimator = selector.own_estimator()
    assert estimator.fit(reduced, target).score(reduced, target) > 0.75
    assert estimator.predict(reduced).shape == target.shape
    assert selector.own_estimator() is not estimator  # a new one each time
