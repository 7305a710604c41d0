"""BART: held against stochtree called by hand, and on a problem that is easy for sums of trees."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.preprocessing import LabelBinarizer
from stochtree import BARTModel, OutcomeModel

from ngp.baselines import base
from ngp.baselines.bart import BART, BARTEstimator
from ngp.baselines.base import normalised

QUICK: dict[str, Any] = {"n_trees": 12, "n_sweeps": 6, "n_burn_in": 2, "random_state": 0}
SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # as scikit-learn seeds

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
SIGNAL = X[:, 1] ** 2 + X[:, 2] + 0.1 * rng.normal(size=80)
TARGETS = {
    "regression": 100 + 7 * SIGNAL,
    "outputs": np.column_stack([SIGNAL, 1000 * X[:, 3]]),
    "binary": np.where(SIGNAL > 1, "yes", "no"),
    "classes": np.array(["low", "middle", "high"])[np.digitize(SIGNAL, [0.2, 1.5])],
}
each_kind = pytest.mark.parametrize("kind", list(TARGETS))


def has_classes(kind: str) -> bool:
    return kind in ("binary", "classes")


def model_by_hand(output: Any, probit: bool) -> Any:
    general = {"random_seed": SEED, "num_threads": 1}
    if probit:
        general |= {"outcome_model": OutcomeModel(outcome="binary", link="probit"), "sample_sigma2_global": False}
    model = BARTModel()
    forest = {"num_trees": 12}
    model.sample(
        X.copy(), output.astype(float), num_gfr=6, num_mcmc=0, general_params=general, mean_forest_params=forest
    )
    return model


def models_by_hand(kind: str) -> list[Any]:
    target = TARGETS[kind]
    columns = LabelBinarizer().fit_transform(target) if has_classes(kind) else target.reshape(80, -1)
    return [model_by_hand(output, has_classes(kind)) for output in columns.T]


@each_kind
def test_importances_are_splits_after_the_burn_in_as_stochtree_counts_them(kind: str) -> None:
    forests = [model.forest_container_mean for model in models_by_hand(kind)]
    counts = sum(forest.get_forest_split_counts(sweep, 4) for forest in forests for sweep in range(2, 6))
    np.testing.assert_allclose(BART(**QUICK).fit(X, TARGETS[kind]).importances_, normalised(counts), rtol=1e-12)


def test_friedmans_five_features_are_found() -> None:
    """Chipman, George and McCulloch (2010) chose this function to show BART by."""
    data, target = make_friedman1(300, n_features=15, noise=0.5, random_state=0)
    selector = BART(n_sweeps=20, n_burn_in=10, n_features_to_select=5, random_state=0).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["outputs", "classes"])
def test_one_seed_one_answer_whatever_the_number_of_jobs(kind: str) -> None:
    expected = BART(**QUICK).fit(X, TARGETS[kind]).importances_
    with_jobs = BART(**QUICK, n_jobs=2).fit(X, TARGETS[kind]).importances_
    other_seed = BART(**{**QUICK, "random_state": 1}).fit(X, TARGETS[kind]).importances_
    np.testing.assert_array_equal(with_jobs, expected)
    assert (other_seed != expected).any()


def test_columns_with_repeated_values_are_split_on() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) * (rng.random((400, 6)) < 0.3)  # mostly zeros, as pixels and counts are
    y = 3 * (X[:, 1] > 0) + X[:, 4]
    bart = BART(n_sweeps=10, n_burn_in=5, n_features_to_select=2, random_state=0).fit(X, y)
    assert bart.get_support(indices=True).tolist() == [1, 4]
    estimator = bart.own_estimator().fit(X[:200], y[:200])
    assert r2_score(y[200:], estimator.predict(X[200:])) > 0.9


def test_constant_columns_and_outputs_count_for_nothing() -> None:
    data = np.column_stack([np.full(80, 3.0), X])
    targets = np.column_stack([SIGNAL, np.full(80, 0.1)])
    with pytest.warns(UserWarning, match="X has constant features, 1 of 5"):
        selector = BART(**QUICK).fit(data, targets)
    np.testing.assert_array_equal(selector.importances_[1:], BART(**QUICK).fit(X, SIGNAL).importances_)
    assert selector.importances_[0] == 0
    assert not selector.support_[0]
    with pytest.warns(UserWarning, match="Nothing was selected"):
        assert not BART(**QUICK, task="regression").fit(X, np.full(80, 0.1)).support_.any()


def test_a_category_column_counts_as_a_whole_and_nothing_is_said_about_its_few_values() -> None:
    town = np.array(["Bonn", "Kiel", "Ulm", "Kiel"] * 20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "town", pd.Categorical(town))
    columns = np.column_stack([town[:, None] == ["Bonn", "Kiel", "Ulm"], X])
    target = SIGNAL + 9 * (town == "Ulm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = BART(**QUICK, threshold=0.01).fit(frame, target)
        by_column = BART(**QUICK).fit(columns, target).importances_
    expected = [by_column[:3].sum(), *by_column[3:]]
    np.testing.assert_allclose(selector.importances_, expected)
    assert "town" in selector.get_feature_names_out()


# The estimator


@each_kind
def test_predictions_are_means_over_the_sweeps_after_the_burn_in(kind: str) -> None:
    estimator = BARTEstimator(**QUICK).fit(X, TARGETS[kind])
    scale = "probability" if has_classes(kind) else "linear"
    sweeps = [model.predict(X.copy(), type="posterior", terms="y_hat", scale=scale) for model in models_by_hand(kind)]
    expected = np.column_stack([values[:, 2:].mean(axis=1) for values in sweeps])
    if not has_classes(kind):
        np.testing.assert_allclose(estimator.predict(X), expected if kind == "outputs" else expected[:, 0])
        return
    classes = np.unique(TARGETS[kind])
    winner = expected.argmax(axis=1) if kind == "classes" else (expected[:, 0] > 0.5).astype(int)
    np.testing.assert_array_equal(estimator.predict(X), classes[winner])
    if kind == "binary":
        np.testing.assert_allclose(estimator.predict_proba(X)[:, 1], expected[:, 0], atol=2e-3)
    np.testing.assert_allclose(estimator.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_the_own_estimator_learns_from_the_selection(kind: str) -> None:
    target = TARGETS[kind]
    selector = BART(n_sweeps=15, n_burn_in=5, n_features_to_select=3, random_state=0).fit(X, target)
    estimator = clone(selector.own_estimator()).fit(selector.transform(X), target)
    predictions = estimator.predict(selector.transform(X))
    assert predictions.shape == target.shape
    score = (accuracy_score if has_classes(kind) else r2_score)(target, predictions)
    assert score == estimator.score(selector.transform(X), target)
    assert score > 0.8
    assert (is_classifier if has_classes(kind) else is_regressor)(estimator)
    if kind == "binary":
        assert roc_auc_score(target, estimator.predict_proba(selector.transform(X))[:, 1]) > 0.9
        assert estimator.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("kind", ["outputs", "classes"])
def test_a_pickled_estimator_predicts_the_same(kind: str) -> None:
    estimator = BARTEstimator(**QUICK)
    assert pickle.loads(pickle.dumps(estimator)).get_params() == estimator.get_params()
    estimator.fit(X, TARGETS[kind])
    before = estimator.predict(X)
    loaded = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(loaded.predict(X), before)
    np.testing.assert_array_equal(estimator.predict(X), before)
    assert len(pickle.dumps(BART(**QUICK).fit(X, TARGETS[kind]))) < 10_000  # no trees in the selector


def test_a_constant_output_is_predicted_as_it_is() -> None:
    targets = np.column_stack([np.full(80, 0.1), SIGNAL])
    estimator = pickle.loads(pickle.dumps(BARTEstimator(**QUICK).fit(X, targets)))
    np.testing.assert_allclose(estimator.predict(X)[:, 0], 0.1)
    np.testing.assert_allclose(estimator.predict(X)[:, 1], BARTEstimator(**QUICK).fit(X, SIGNAL).predict(X))


def test_an_estimator_forgets_the_classes_of_an_earlier_fit() -> None:
    estimator = BARTEstimator(**QUICK).fit(X, TARGETS["binary"]).fit(X, SIGNAL)
    assert not hasattr(estimator, "classes_")
    assert estimator.predict(X).dtype == float
    with pytest.raises(NotFittedError):
        BARTEstimator().predict(X)


# Mistakes


@pytest.mark.parametrize("model", [BART(n_sweeps=15), BARTEstimator(n_sweeps=15)])
def test_some_sweeps_must_be_left_after_the_burn_in(model: Any) -> None:
    with pytest.raises(ValueError, match="n_burn_in=15 leaves none of the n_sweeps=15 sweeps: give less than 15"):
        model.fit(X, SIGNAL)


@pytest.mark.parametrize("model", [BART(**QUICK), BARTEstimator(**QUICK)])
def test_few_samples_are_refused_in_one_sentence(model: Any) -> None:
    model.fit(X[:11], SIGNAL[:11])
    with pytest.raises(ValueError, match="X has 10 samples, but BART needs at least 11, since each leaf holds 5"):
        model.fit(X[:10], SIGNAL[:10])


@pytest.mark.parametrize("model", [BART(), BARTEstimator()])
def test_without_stochtree_it_says_how_to_install_it(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "find_spec", lambda name: None)
    message = r"^BART needs stochtree: install it with pip install 'neural-greedy-pursuit\[baselines\]'\.$"
    with pytest.raises(ImportError, match=message):
        model.fit(X, SIGNAL)
