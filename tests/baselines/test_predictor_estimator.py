"""Predictors as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, get_scorer, r2_score, roc_auc_score

from ngp import NGPRegressor
from ngp.baselines.base import PredictorEstimator
from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)


def make_data(n_samples: int = 90) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 3))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n_samples)


def test_ssfn_is_the_network_of_a_pursuit() -> None:
    X, y = make_data()
    pursuit = NGPRegressor(fixed=[0, 1, 2], n_features_to_select=3, random_state=0).fit(X[:60], y[:60])
    network = PredictorEstimator("ssfn", random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(network.predict(X[60:]), pursuit.predict(X[60:]))


def test_scores_and_probabilities() -> None:
    X, y = make_data()
    labels = np.where(y > 0, "above", "below")
    classifier = PredictorEstimator(random_state=0).fit(X[:60], labels[:60])
    probabilities = classifier.predict_proba(X[60:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.classes_[probabilities.argmax(axis=1)], classifier.predict(X[60:]))
    assert classifier.score(X[60:], labels[60:]) == accuracy_score(labels[60:], classifier.predict(X[60:])) > 0.7
    area = get_scorer("roc_auc")(classifier, X[60:], labels[60:])
    assert area == pytest.approx(roc_auc_score(labels[60:] == "below", probabilities[:, 1]))
    regressor = PredictorEstimator(random_state=0).fit(X[:60], y[:60])
    assert regressor.score(X[60:], y[60:]) == r2_score(y[60:], regressor.predict(X[60:])) > 0.5
    assert not hasattr(regressor, "predict_proba")


def test_more_classes_are_predicted_too() -> None:
    X, _ = make_data()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    classifier = PredictorEstimator(random_state=0).fit(X[:60], y[:60])
    assert classifier.score(X[60:], y[60:]) > 0.6
    assert classifier.predict_proba(X).shape == (90, 3)


def test_a_second_fit_forgets_the_first() -> None:
    X, y = make_data()
    estimator = PredictorEstimator(FAST, random_state=0).fit(X, y > 0)
    assert estimator.task_ == "classification"
    estimator.fit(X, y)
    assert estimator.task_ == "regression"
    assert not hasattr(estimator, "classes_")


def test_few_rows_are_enough() -> None:
    X, y = make_data(4)
    assert PredictorEstimator(FAST, task="regression", random_state=0).fit(X, y).predict(X).shape == (4,)
