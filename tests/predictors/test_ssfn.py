"""The SSFN estimators: their promises, not their numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ngp.predictors.ssfn_estimators import SSFNClassifier, SSFNRegressor

AUTHORS: dict[str, Any] = {
    "linear_ridge": 100,
    "ridge": 0,
    "bias": False,
    "standardize": False,
    "unit_norm": True,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def friedman() -> tuple[Any, Any]:
    X, y = make_friedman1(n_samples=200, noise=0.5, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def two_outputs(friedman: tuple[Any, Any]) -> tuple[Any, Any]:
    X, y = friedman
    return X, np.column_stack([y, np.sin(5 * X[:, 0]) - X[:, 1]])


@parametrize_with_checks([SSFNRegressor(), SSFNClassifier()])  # type: ignore[untyped-decorator]
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("ridge", "norm_bound", "bias", "unit_norm"),
    [
        (0.0, "auto", True, False),
        (0.0, None, False, True),
        (1e-3, "smallest", True, True),
        (1.0, "auto", False, False),
        (1.0, None, True, False),
        (1e3, "smallest", False, True),
        (1e3, "auto", True, True),
    ],
)
def test_training_error_never_rises_with_depth(
    two_outputs: tuple[Any, Any], ridge: float, norm_bound: Any, bias: bool, unit_norm: bool
) -> None:
    bound = np.sqrt(2 * 2) if norm_bound == "smallest" else norm_bound
    model = SSFNRegressor(
        max_layers=5,
        max_units=30,
        units_per_step=10,
        layer_tol=0,
        ridge=ridge,
        norm_bound=bound,
        bias=bias,
        unit_norm=unit_norm,
        random_state=0,
    ).fit(*two_outputs)
    assert model.n_layers_ >= 2
    assert (np.diff(model.training_nme_) <= 1e-6).all()
    if bound is not None:
        largest = 2 * np.sqrt(2 * 2) if bound == "auto" else bound
        assert all(np.linalg.norm(coef) <= largest * (1 + 1e-10) for coef in model.coefs_[1:])


def test_training_error_is_that_of_the_predictions(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    model = SSFNRegressor(random_state=0).fit(X, y)
    error = np.linalg.norm(y - model.predict(X)) / np.linalg.norm(y - y.mean())
    assert model.training_nme_[-1] == pytest.approx(20 * np.log10(error))
    assert model.score(X, y) == pytest.approx(1 - error**2)


def test_deeper_networks_extend_shallower_ones(friedman: tuple[Any, Any]) -> None:
    shallow = SSFNRegressor(max_layers=1, random_state=0).fit(*friedman)
    deep = SSFNRegressor(max_layers=3, layer_tol=0, random_state=0).fit(*friedman)
    assert (shallow.n_layers_, deep.n_layers_) == (1, 3)
    np.testing.assert_array_equal(deep.coefs_[1], shallow.coefs_[1])
    assert deep.training_nme_[-1] <= shallow.training_nme_[-1]


def test_no_hidden_layer_is_ridge_regression(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    model = SSFNRegressor(max_layers=0, linear_ridge=3.0, standardize=False).fit(X, y)
    assert (model.n_layers_, model.n_units_) == (0, [])
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=3.0).fit(X, y).predict(X))


def test_layers_stop_by_their_tolerance(friedman: tuple[Any, Any]) -> None:
    model = SSFNRegressor(layer_tol=0.1, random_state=0).fit(*friedman)
    cost = 10 ** (model.training_nme_ / 20)
    gains = (cost[:-1] - cost[1:]) / cost[:-1]
    assert 1 <= model.n_layers_ < 20
    assert (gains[:-1] >= 0.1).all()
    assert gains[-1] < 0.1
    assert SSFNRegressor(layer_tol=1, random_state=0).fit(*friedman).n_layers_ == 1


def test_units_stop_by_their_tolerance(friedman: tuple[Any, Any]) -> None:
    def cost_of_width(width: int) -> float:
        model = SSFNRegressor(max_layers=1, max_units=width, node_tol=0, random_state=0).fit(*friedman)
        assert model.n_units_ == [width]
        return float(10 ** (model.training_nme_[-1] / 20))

    tolerance = 0.03
    (width,) = SSFNRegressor(max_layers=1, node_tol=tolerance, random_state=0).fit(*friedman).n_units_
    assert 100 <= width < 1000
    assert width % 50 == 0
    costs = np.array([cost_of_width(n) for n in range(50, width + 1, 50)])
    gains = (costs[:-1] - costs[1:]) / costs[:-1]
    assert (gains[:-1] >= tolerance).all()
    assert gains[-1] < tolerance


def test_width_can_be_fixed_and_is_never_passed(friedman: tuple[Any, Any]) -> None:
    fixed = SSFNRegressor(max_units=70, units_per_step=70, random_state=0).fit(*friedman)
    assert set(fixed.n_units_) == {70}
    uneven = SSFNRegressor(max_units=70, node_tol=0, max_layers=1, random_state=0).fit(*friedman)
    assert uneven.n_units_ == [70]


def test_weights_count_as_repetitions(two_outputs: tuple[Any, Any]) -> None:
    X, Y = two_outputs
    counts = np.random.default_rng(0).integers(0, 4, size=len(X))
    model = SSFNRegressor(random_state=0)
    weighted = clone(model).fit(X, Y, sample_weight=counts)
    repeated = clone(model).fit(X.repeat(counts, axis=0), Y.repeat(counts, axis=0))
    assert weighted.n_units_ == repeated.n_units_
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)


def test_classes_without_weight_are_removed() -> None:
    X, y = load_iris(return_X_y=True)
    model = SSFNClassifier(random_state=0).fit(X, y, sample_weight=(y > 0).astype(float))
    assert model.classes_.tolist() == [1, 2]
    assert model.predict_proba(X).shape == (150, 2)


def test_scale_of_features_and_targets_does_not_matter(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    scales = 10.0 ** np.arange(-5, 5)
    model = SSFNRegressor(random_state=0)
    plain = clone(model).fit(X, y).predict(X)
    scaled = clone(model).fit(X * scales + scales, 100 * y - 7).predict(X * scales + scales)
    np.testing.assert_allclose(scaled, 100 * plain - 7, rtol=1e-6)


def test_constant_columns_and_targets(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    model = SSFNRegressor(random_state=0).fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert np.isfinite(model.training_nme_).all()
    constant = SSFNRegressor(random_state=0).fit(X, np.full(len(X), 0.1))
    np.testing.assert_allclose(constant.predict(X), 0.1)


def test_shape_of_predictions_follows_the_targets(two_outputs: tuple[Any, Any]) -> None:
    X, Y = two_outputs
    model = SSFNRegressor(random_state=0)
    assert clone(model).fit(X, Y).predict(X).shape == (200, 2)
    assert clone(model).fit(X, Y[:, :1]).predict(X).shape == (200, 1)
    assert clone(model).fit(X, Y[:, 0]).predict(X).shape == (200,)


def test_random_state_decides_the_network(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    first, again, other = (SSFNRegressor(max_layers=2, random_state=seed).fit(X, y).predict(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_pickle_keeps_predictions(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    model = SSFNRegressor(random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_authors_settings(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    regressor = SSFNRegressor(**AUTHORS).fit(X, y)
    assert not any(intercept.any() for intercept in regressor.intercepts_)
    assert (np.diff(regressor.training_nme_) <= 1e-6).all()
    X, y = load_iris(return_X_y=True)
    assert SSFNClassifier(**AUTHORS).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_probabilities(load: Any) -> None:
    X, y = load(return_X_y=True)
    model = SSFNClassifier(max_layers=2, random_state=0).fit(X[::2], y[::2])
    probabilities = model.predict_proba(X[1::2])
    assert probabilities.shape == (len(y) // 2, len(model.classes_))
    assert (probabilities >= 0).all()
    assert (probabilities <= 1).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X[1::2]))


def test_probabilities_are_nearer_to_the_truth_than_the_outputs() -> None:
    X, y = load_iris(return_X_y=True)
    model = SSFNClassifier(random_state=0).fit(X[::2], y[::2])
    truth = np.eye(3)[y[1::2]]
    by_probability = np.linalg.norm(model.predict_proba(X[1::2]) - truth, axis=1)
    by_output = np.linalg.norm(model.decision_function(X[1::2]) - truth, axis=1)
    assert (by_probability <= by_output + 1e-12).all()


def test_labels_may_be_strings() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SSFNClassifier(random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(model.predict(X)) <= set(names)


def test_predicts_better_than_linear(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    network = cross_val_score(SSFNRegressor(random_state=0), X, y).mean()
    assert network > cross_val_score(Ridge(), X, y).mean() + 0.05


def test_recognises_digits() -> None:
    X, y = load_digits(return_X_y=True)
    model = SSFNClassifier(max_units=300, max_layers=2, random_state=0).fit(X[:1000], y[:1000])
    linear = SSFNClassifier(max_layers=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > linear.score(X[1000:], y[1000:]) + 0.02


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_units": 0}, "'max_units' parameter of SSFNRegressor must be"),
        ({"ridge": -1.0}, "'ridge' parameter of SSFNRegressor must be"),
        ({"norm_bound": "large"}, "'norm_bound' parameter of SSFNRegressor must be"),
    ],
)
def test_wrong_parameters_are_named(friedman: tuple[Any, Any], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SSFNRegressor(**parameters).fit(*friedman)


def test_a_single_class_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"at least two classes .* got the one class 0"):
        SSFNClassifier().fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="at least two classes with positive sample_weight"):
        SSFNClassifier().fit(X, y, sample_weight=(y == 1).astype(float))


def test_missing_values_are_refused(friedman: tuple[Any, Any]) -> None:
    X, y = friedman
    broken = X.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SSFNRegressor().fit(broken, y)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        SSFNRegressor().fit(X, y, sample_weight=-np.ones(len(X)))
