"""The scikit-learn face: what y may be, and what its samples weigh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)


def make_data(n_samples: int = 80, n_columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 4 and 1, the former more important."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_columns))
    return X, 2 * X[:, 4] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n_samples)


def make_selector(*args: Any, **settings: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(*(args or (FAST,)), **{"random_state": 0, **settings})


def fit(*args: Any, **settings: Any) -> NeuralGreedyPursuit:
    return make_selector(*args, **settings).fit(*make_data())


def test_classes_of_every_type() -> None:
    X, y = make_data()
    for classes in ([False, True], ["no", "yes"], [3, 7], [-1.0, 1.0]):
        labels = np.array(classes)[(y > np.median(y)).astype(int)]
        selector = make_selector(n_features_to_select=2).fit(X, labels)
        assert (selector.task_, selector.classes_.tolist()) == ("classification", classes)
        assert selector.predict(X).dtype == labels.dtype
        assert selector.score(X, labels) > 0.9
        assert 4 in selector.order_


@pytest.mark.parametrize("loss", ["auto", "squared_error", "cross_entropy", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_agree_with_predictions(n_classes: int, loss: str) -> None:
    X, y = make_data()
    names = np.array(["low", "middle", "high"])[:n_classes]
    labels = names[np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)]
    selector = make_selector(n_features_to_select=2, loss=loss).fit(X, labels)
    assert selector.order_[0] == 4
    chances = selector.predict_proba(X)
    assert chances.shape == (80, n_classes)
    assert (chances > 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    own = np.searchsorted(selector.classes_, selector.predict(X))
    np.testing.assert_array_equal(chances[np.arange(80), own], chances.max(axis=1))
    assert selector.score(X, labels) == np.mean(selector.predict(X) == labels) > 0.8


def test_a_regression_has_no_probabilities() -> None:
    selector = fit(n_features_to_select=1)
    assert not hasattr(selector, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        selector.predict_proba(make_data()[0])
    selector.fit(make_data()[0], np.arange(80) % 2)
    assert hasattr(selector, "predict_proba")
    selector.fit(*make_data())
    assert not hasattr(selector, "classes_")


def test_scikit_learn_knows_the_task_once_it_is_said_or_seen() -> None:
    X, y = make_data()
    high = y > np.median(y)
    selector = make_selector(n_features_to_select=1)
    assert not is_classifier(selector)
    assert not is_regressor(selector)
    assert is_classifier(selector.fit(X, high))
    assert is_regressor(selector.fit(X, y))
    assert is_classifier(selector.set_params(task="classification"))
    assert is_regressor(make_selector(task="regression"))


def test_a_selector_of_classes_is_stratified_ranked_and_calibrated_by_scikit_learn() -> None:
    X, y = make_data()
    ordered = np.argsort(y)  # so that plain blocks of rows would hold one class each
    X, high = X[ordered], np.where(y > np.median(y), "high", "low")[ordered]
    selector = make_selector(n_features_to_select=1, task="classification")
    areas = cross_val_score(selector, X, high, cv=2, scoring="roc_auc")
    assert (areas > 0.8).all()
    calibrated = CalibratedClassifierCV(selector, cv=2).fit(X, high)
    assert calibrated.score(X, high) > 0.8


def test_the_task_can_be_said() -> None:
    X, _ = make_data()
    y = np.arange(80) % 3
    assert make_selector(n_features_to_select=1).fit(X, y).task_ == "classification"
    regression = make_selector(n_features_to_select=1, task="regression").fit(X, y)
    assert (regression.task_, regression.predict(X).dtype) == ("regression", np.float64)
    whole = np.round(make_data()[1])  # many values: quantities, unless said otherwise
    assert make_selector(n_features_to_select=1, task="classification").fit(X, whole).task_ == "classification"


def test_several_outputs() -> None:
    X, y = make_data()
    outputs = np.column_stack([y, X[:, 2] ** 2])
    selector = make_selector(n_features_to_select=3).fit(X, outputs)
    assert sorted(selector.order_) == [1, 2, 4]
    assert selector.predict(X).shape == (80, 2)
    assert selector.score(X, outputs) > 0.8
    one = make_selector(n_features_to_select=1).fit(X, y[:, None])
    np.testing.assert_array_equal(one.predict(X)[:, 0], make_selector(n_features_to_select=1).fit(X, y).predict(X))


def test_weights_tell_which_samples_count() -> None:
    X, y = make_data(160)
    half = np.arange(160) % 2
    mixed = np.where(half == 1, y, 3 * X[:, 0])
    for weights, first in [(half, 4), (1 - half, 0), (None, 0)]:
        selector = make_selector(n_features_to_select=1).fit(X, mixed, sample_weight=weights)
        assert selector.order_.tolist() == [first]
    counted = make_selector(n_features_to_select=1).fit(X, mixed, sample_weight=half)
    assert counted.score(X, mixed, sample_weight=half) > 0.6 > counted.score(X, mixed)
    ones = make_selector(n_features_to_select=2).fit(X, mixed, sample_weight=np.ones(160))
    none = make_selector(n_features_to_select=2).fit(X, mixed)
    np.testing.assert_array_equal(ones.losses_, none.losses_)
    weighted = make_selector(tol=1e6)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        weighted.fit(X, mixed, sample_weight=half)
    np.testing.assert_allclose(weighted.predict(X[:1]), mixed[half == 1].mean())


def test_sample_weights_are_routed() -> None:
    X, y = make_data(160)
    half = np.arange(160) % 2
    mixed = np.where(half == 1, y, 3 * X[:, 0])
    with sklearn.config_context(enable_metadata_routing=True):
        selector = make_selector(n_features_to_select=1)
        selector.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), selector)
        pipeline.fit(X, mixed, sample_weight=half)
        assert pipeline[-1].order_.tolist() == [4]
        assert pipeline.score(X, mixed, sample_weight=half) > 0.6
        search = GridSearchCV(pipeline, {"neuralgreedypursuit__n_features_to_select": [1, 2]}, cv=2)
        search.fit(X, mixed, sample_weight=half)
        assert search.best_params_ == {"neuralgreedypursuit__n_features_to_select": 2}
        assert sorted(search.best_estimator_[-1].order_) == [1, 4]
