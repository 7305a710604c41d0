"""Estimators that judge selections: what they are, and that they behave as scikit-learn's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import accuracy_score, get_scorer, r2_score, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ngp import NeuralGreedyPursuit
from ngp.baselines.downstream import DOWNSTREAM, PredictorEstimator, downstream_estimator
from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)


@parametrize_with_checks(
    [
        PredictorEstimator(FAST),
        PredictorEstimator(FAST, task="regression"),
        PredictorEstimator(FAST, task="classification"),
    ]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def make_data(n_samples: int = 90) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 3))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n_samples)


def test_ridge_is_ridge_on_standardised_columns_with_its_penalty_by_leave_one_out() -> None:
    X, y = make_data()
    fitted = downstream_estimator("ridge", "regression").fit(X * [1, 100, 0.01], y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    by_hand = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(scaled, y)
    np.testing.assert_allclose(fitted.predict(X * [1, 100, 0.01]), by_hand.predict(scaled))


def test_random_forests_have_a_hundred_trees() -> None:
    regressor = downstream_estimator("random-forest", "regression", n_jobs=2, random_state=3)
    classifier = downstream_estimator("random-forest", "classification")
    assert isinstance(regressor, RandomForestRegressor)
    assert isinstance(classifier, RandomForestClassifier)
    assert (regressor.n_estimators, classifier.n_estimators) == (100, 100)
    assert (regressor.n_jobs, regressor.random_state) == (2, 3)


def test_ssfn_is_the_network_of_a_pursuit() -> None:
    X, y = make_data()
    pursuit = NeuralGreedyPursuit(fixed=[0, 1, 2], n_features_to_select=3, random_state=0).fit(X[:60], y[:60])
    network = downstream_estimator("ssfn", "regression", random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(network.predict(X[60:]), pursuit.predict(X[60:]))


@pytest.mark.parametrize("name", DOWNSTREAM)
def test_every_one_knows_classes_from_numbers(name: str) -> None:
    X, y = make_data()
    labels = np.where(y > 0, "above", "below")
    regressor = downstream_estimator(name, "regression", random_state=0).fit(X, y)
    classifier = downstream_estimator(name, "classification", random_state=0).fit(X, labels)
    assert is_regressor(regressor)
    assert is_classifier(classifier)
    assert set(classifier.predict(X)) <= {"above", "below"}
    outputs = downstream_estimator(name, "regression", random_state=0).fit(X, np.column_stack([y, 2 * y]))
    assert outputs.predict(X).shape == (90, 2)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'svm' is no downstream predictor: use one of ridge, random-forest, ssfn"):
        downstream_estimator("svm", "regression")


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
    with pytest.raises(AttributeError) as refusal:
        regressor.predict_proba(X)
    expected = "predict_proba is for classes, and this estimator was fitted to a regression."
    assert str(refusal.value.__cause__) == expected


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
