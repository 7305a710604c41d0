"""The scikit-learn face: conventions, attributes, parameters, targets, and who hears of the steps of a fit."""

from __future__ import annotations

import logging
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from greedy_cases import OnStep, stop_after
from joblib import parallel_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.callback import ProgressBar
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor
from ngp._formatting import step_line
from ngp.data.groups import image_windows, make_groups
from ngp.datasets import make_artificial, make_gravitation
from ngp.greedy.candidates import Search
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stopping import FirstOf, MaxColumns, MaxFeatures, MaxFits, RelativeImprovement
from ngp.predictors import MLP, SSFN
from ngp.predictors.ssfn import SSFNScorer

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [NeuralGreedyPursuit, NGPRegressor, NGPClassifier])
def test_scikit_learn_conventions(kind: type[NeuralGreedyPursuit]) -> None:
    if kind is NeuralGreedyPursuit:  # with p-values
        # As with scikit-learn's own estimators that resample: the rows of the redrawn columns are permuted one by one.
        reason = "p-values count a repeated row as several"
        failing = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
        check_estimator(kind(FAST), expected_failed_checks=failing)
    else:
        check_estimator(kind(FAST, tol=0.09))


def make_data(n_samples: int = 80, n_columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 4 and 1, the former more important."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_columns))
    return X, 2 * X[:, 4] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n_samples)


def make_selector(*args: Any, **settings: Any) -> NGPRegressor:
    return NGPRegressor(*(args or (FAST,)), **{"random_state": 0, **settings})


def make_classifier(**settings: Any) -> NGPClassifier:
    return NGPClassifier(FAST, **{"random_state": 0, **settings})


def fit(*args: Any, **settings: Any) -> NGPRegressor:
    return make_selector(*args, **settings).fit(*make_data())


# ---------------------------------------------------------------- attributes and parameters


def test_attributes_agree_with_each_other() -> None:
    X, y = make_data()
    selector = make_selector(tol=0.05).fit(X, y)
    steps, order = selector.path_, selector.order_
    assert order.tolist()[:2] == [4, 1]
    assert selector.support_.dtype == bool
    assert sorted(order) == np.flatnonzero(selector.support_).tolist()
    assert [step.group for step in steps if step.kept and step.action == "add"] == order.tolist()
    assert selector.losses_.shape == (len(steps) - 1, 6)
    for k, step in enumerate(steps[1:]):
        np.testing.assert_array_equal(selector.losses_[k], step.losses)
        earlier = {s.group for s in steps[1 : k + 1]}
        assert {int(c) for c in np.flatnonzero(np.isnan(step.losses))} == earlier
        assert np.nanargmin(step.losses) == step.group
        assert np.nanmin(step.losses) >= step.loss  # equal, unless another ridge suits the winner better
        assert step.predictor == "SSFN"
    importances = selector.feature_importances_
    np.testing.assert_array_equal(importances > 0, selector.support_)
    for step in steps[1:]:
        if step.kept:
            assert importances[step.group] == pytest.approx((step.before - step.loss) / steps[0].loss)
    assert importances.sum() == pytest.approx([step for step in steps if step.kept][-1].score)
    assert importances.sum() <= 1
    assert selector.constant_loss_ == steps[0].loss == pytest.approx(np.var(y), rel=0.1)
    assert "no relative improvement of at least 0.05" in selector.stop_reason_
    assert (selector.task_, selector.n_features_in_, selector.groups_.n_groups) == ("regression", 6, 6)
    assert not hasattr(selector, "classes_")
    assert not hasattr(selector, "feature_names_in_")
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])
    assert selector.get_feature_names_out().tolist() == [f"x{c}" for c in sorted(order)]
    assert selector.get_support(indices=True).tolist() == sorted(order)
    assert selector.score(X, y) > 0.9
    np.testing.assert_array_equal(selector.predictor_.predict(X)[:, 0], selector.predict(X))
    other = np.where(selector.support_, X, 1e6)  # only selected columns are read
    np.testing.assert_array_equal(selector.predict(other), selector.predict(X))


def test_there_are_eighteen_parameters() -> None:
    names = (
        "predictor n_features_to_select tol stop groups fixed cv loss task floating screen p_values max_time "
        "n_jobs device checkpoint verbose random_state"
    )
    assert len(names.split()) == 18
    assert sorted(NeuralGreedyPursuit().get_params(deep=False)) == sorted(names.split())
    for kind in (NGPRegressor, NGPClassifier):
        assert sorted(["task", *kind().get_params(deep=False)]) == sorted(names.split())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_features_to_select": 5}, 5),  # alone, even if nothing pays
        ({"n_features_to_select": 1, "tol": 0.05}, 1),
        ({"n_features_to_select": 6, "tol": 0.05}, 2),
        ({}, 2),
        ({"tol": 1e3}, 0),
        ({"n_features_to_select": 6, "stop": "plateau"}, 2),
        ({"stop": RelativeImprovement(0.05, patience=2)}, 2),
        ({"stop": MaxColumns(3)}, 3),
        ({"stop": FirstOf([MaxFeatures(6), MaxFits(9)])}, 2),
        ({"n_features_to_select": 0.5}, 3),
        ({"n_features_to_select": 0.01}, 1),
        ({"n_features_to_select": 1.0}, 6),
        ({"n_features_to_select": 0.5, "tol": 0.05}, 2),
        ({"n_features_to_select": 6, "max_time": 60}, 6),
        ({"n_features_to_select": 6, "max_time": 1e-9}, 0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_number_share_tolerance_and_rule_combine(settings: dict[str, Any], expected: int) -> None:
    selector = fit(SSFN(n_units=30, n_draws=2, ridge=0.003), **settings)
    assert selector.order_.tolist()[:2] == [4, 1][:expected]
    assert selector.support_.sum() == expected
    assert selector.partial_ == ("the path is partial" in selector.stop_reason_)
    assert selector.partial_ == (settings.get("max_time") == 1e-9 or "MaxFits" in repr(settings))


def test_p_values_come_with_a_number_and_with_stop_but_not_with_tol(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in ({}, {"stop": "plateau"}, {"n_features_to_select": 3}, {"n_features_to_select": 0.5}):
        p_values = [step.p_value for step in fit(**settings).path_]
        assert np.isnan(p_values[0])
        assert (np.array(p_values[1:3]) < 0.01).all()
        assert not p_values[3] <= 0.01  # the last that is asked for: nothing else is significant
    groups = [[0, 1], [2, 3], [4, 5]]
    p_values = [step.p_value for step in fit(n_features_to_select=0.7, groups=groups).path_]
    assert np.isfinite(p_values[1:3]).all()
    monkeypatch.setattr(SignificanceTest, "p_values", lambda *_: pytest.fail("a step was tested, though nobody asks"))
    paper = [{"tol": 0.05}, {"tol": 0.05, "n_features_to_select": 3}, {"tol": 0.0, "floating": True}]
    for settings in (*paper, {"stop": MaxFeatures(3)}, {"stop": RelativeImprovement(0.05)}):
        assert np.isnan([step.p_value for step in fit(**settings).path_]).all()


def test_with_a_number_significant_candidates_come_first_and_others_after_them() -> None:
    X, y = make_data(60)
    X[:, 4] = np.sign(X[:, 4]) * np.abs(X[:, 4]) ** 3
    selector = make_selector(n_features_to_select=5).fit(X, y)
    significant = [step.p_value <= 0.01 for step in selector.path_[1:]]
    assert significant[0]
    assert not all(significant)  # exactly so many are selected
    assert len(selector.order_) == 5


def test_nothing_is_a_valid_selection() -> None:
    X, y = make_data()
    with pytest.warns(UserWarning, match=r"Nothing was selected \(no .*\): the prediction is constant") as caught:
        selector = make_selector(tol=1e6).fit(X, y)
    assert caught[0].filename == __file__  # it points at the user's line
    assert len(selector.order_) == selector.support_.sum() == selector.feature_importances_.sum() == 0
    np.testing.assert_allclose(selector.predict(X[:7]), np.full(7, y.mean()))
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (80, 0)
    labels = np.where(np.arange(80) % 4 > 0, "often", "rare")
    with pytest.warns(UserWarning, match="Nothing was selected"):
        classifier = make_classifier(tol=1e6).fit(X, labels)
    np.testing.assert_allclose(classifier.predict_proba(X), np.tile([0.75, 0.25], (80, 1)))
    assert (classifier.predict(X) == "often").all()
    with pytest.warns(UserWarning, match=r"Nothing was selected \(no .*\)\.$") as caught:
        NeuralGreedyPursuit(FAST, tol=1e6).fit(X, y)
    assert caught[0].filename == __file__


def test_fixed_columns_are_selected_without_rank() -> None:
    for fixed in ([5, 0], [True, False, False, False, False, True]):
        selector = fit(n_features_to_select=3, fixed=fixed)
        assert np.flatnonzero(selector.support_).tolist() == [0, 4, 5]
        assert selector.order_.tolist() == [4]
        assert sorted(selector.path_[0].columns) == [0, 5]


GROUPINGS = {
    "labels": ["a", "b", "a", "b", "c", "c"],
    "lists": [[0, 2], [1, 3], [4, 5]],
    "mapping": {"a": [0, 2], "b": [1, 3], "c": [4, 5]},
    "object": make_groups([[0, 2], [1, 3], [4, 5]], 6),
}


@pytest.mark.parametrize("groups", GROUPINGS.values(), ids=GROUPINGS)
def test_groups_enter_together(groups: Any) -> None:
    selector = fit(n_features_to_select=2, groups=groups)
    assert selector.order_.tolist() == [2, 1]
    assert selector.support_.tolist() == [False, True, False, True, True, True]
    assert selector.losses_.shape == (2, 3)
    importances = selector.feature_importances_
    assert importances[4] == importances[5] > importances[1] == importances[3] > 0
    assert fit(n_features_to_select=0.4, groups=groups).support_.sum() == 2  # a share is one of columns


def test_groups_of_one_column_each_are_the_columns_in_whatever_order() -> None:
    X, y = make_data()
    costs, order = np.array([1.0, 3.0, 1.0, 1.0, 5.0, 1.0]), [3, 0, 5, 1, 4, 2]
    groups = make_groups({f"x{column}": [column] for column in order}, 6, costs=costs[order])
    plain, grouped = (
        make_selector(n_features_to_select=2, groups=each).fit(X, y)
        for each in (make_groups(None, 6, costs=costs), groups)
    )
    assert [step.name for step in grouped.path_] == [step.name for step in plain.path_]
    assert [order[group] for group in grouped.order_] == plain.order_.tolist()
    np.testing.assert_array_equal(grouped.losses_, plain.losses_[:, order])


def test_image_windows_and_costs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 16))
    y = X[:, [10, 11, 14, 15]].sum(axis=1)
    selector = make_selector(n_features_to_select=1, groups=image_windows((4, 4), 2)).fit(X, y)
    assert selector.groups_.names[selector.order_[0]] == "rows 2-3, cols 2-3"
    assert np.flatnonzero(selector.support_).tolist() == [10, 11, 14, 15]
    y = 2 * X[:, 4] + X[:, 1]
    for cost, first in [(2, 4), (1e3, 1)]:
        groups = make_groups(None, 16, costs=np.where(np.arange(16) == 4, cost, 1))
        assert make_selector(n_features_to_select=1, groups=groups).fit(X, y).order_.tolist() == [first]


def test_fewer_features_than_asked_for_are_told() -> None:
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))
    selector = NeuralGreedyPursuit(FAST, groups=[[0, 1], [1, 2], [0, 2]], n_features_to_select=3, random_state=0)
    with pytest.warns(UserWarning, match="Only 2 of 3 features were selected: the others share all their") as caught:
        selector.fit(X, y.sum(axis=1))
    assert caught[0].filename == __file__
    assert len(selector.order_) == 2


def test_clone_pickle_and_parameters() -> None:
    X, y = make_data()
    selector = make_classifier(n_features_to_select=2)
    assert selector.get_params()["predictor__n_units"] == 15
    copy = clone(selector).set_params(predictor__n_units=9, tol=0.5)
    assert (copy.predictor.n_units, copy.tol, selector.predictor.n_units) == (9, 0.5, 15)
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.predict(X)
    labels = y > 1
    selector.fit(X, labels)
    again = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(again.predict_proba(X), selector.predict_proba(X))
    np.testing.assert_array_equal(again.losses_, selector.losses_)
    np.testing.assert_array_equal(clone(selector).fit(X, labels).losses_, selector.losses_)


def test_inside_a_search_over_a_pipeline() -> None:
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), make_selector())
    grid = {"ngpregressor__n_features_to_select": [1, 2], "ngpregressor__predictor__n_units": [5, 20]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_["ngpregressor__n_features_to_select"] == 2
    assert search.best_estimator_[-1].order_.tolist() == [4, 1]


def test_the_result_depends_on_the_data_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, size=(60, 7))
    y = X[:, 3] + np.abs(X[:, 5]) + 0.1 * rng.normal(size=60)
    base = make_selector(n_features_to_select=5).fit(X, y)

    def assert_same(other: Any) -> None:
        np.testing.assert_array_equal(other.order_, base.order_)
        np.testing.assert_array_equal(other.losses_, base.losses_)

    for other in (X.astype(float), X.astype(np.float32), np.asfortranarray(X), X.tolist(), X.astype(np.int8)):
        assert_same(make_selector(n_features_to_select=5).fit(other, y))
    assert_same(make_selector(n_features_to_select=5, n_jobs=2).fit(X, y))
    with parallel_config(backend="loky", n_jobs=2):
        assert_same(make_selector(n_features_to_select=5).fit(X, y))
    assert_same(base.fit(X, y))
    order = rng.permutation(7)
    permuted = make_selector(n_features_to_select=5).fit(X[:, order], y)
    np.testing.assert_array_equal(order[permuted.order_], base.order_)
    np.testing.assert_array_equal(permuted.losses_, base.losses_[:, order])
    different = make_selector(n_features_to_select=5, random_state=1).fit(X, y)
    assert (different.losses_[0] != base.losses_[0]).all()


def test_precisions_agree() -> None:
    predictors = (clone(FAST).set_params(dtype=dtype) for dtype in ("float32", "float64"))
    single, double = (fit(predictor, n_features_to_select=3) for predictor in predictors)
    assert single.order_.tolist()[:2] == double.order_.tolist()[:2] == [4, 1]
    np.testing.assert_allclose(single.losses_[:2], double.losses_[:2], rtol=1e-4)
    assert (single.losses_[:2] != double.losses_[:2])[:, [0, 2, 3, 5]].all()


ROWS = np.arange(80)
WAYS_OF_VALIDATION = {
    "folds": 3,
    "share": 0.3,
    "leave-one-out": "loo",
    "splitter": KFold(4),
    "random splits": ShuffleSplit(3, random_state=0),
    "a pair of uneven splits": ((ROWS[:50], ROWS[50:]), (ROWS[30:], ROWS[:30])),
    "masks": [(ROWS < 50, ROWS >= 50)],
    "explicit": make_data(30, seed=1),
}


@pytest.mark.parametrize("cv", WAYS_OF_VALIDATION.values(), ids=WAYS_OF_VALIDATION)
def test_every_way_of_validation(cv: Any) -> None:
    selector = fit(n_features_to_select=2, cv=cv)
    assert selector.order_.tolist() == [4, 1]
    assert np.isfinite([step.standard_error for step in selector.path_]).all()


def test_groups_of_samples_are_kept_together() -> None:
    X, y = make_data()
    together = np.arange(80) // 8
    by_group = make_selector(n_features_to_select=2, cv=GroupKFold(5)).fit(X, y, cv_groups=together)
    splits = list(GroupKFold(5).split(X, y, together))
    by_hand = make_selector(n_features_to_select=2, cv=splits).fit(X, y)
    np.testing.assert_array_equal(by_group.losses_, by_hand.losses_)


def test_an_explicit_validation_set_judges_and_does_not_train() -> None:
    X, y = make_data()
    X_val, _ = make_data(40, seed=1)
    # Half of the weight in training lies on a column that means nothing in validation.
    y_train, y_val = y + 2 * X[:, 0], 2 * X_val[:, 4] + np.abs(X_val[:, 1])
    given = SSFN(n_units=15, n_draws=1, refit_units=15, ridge=0.003)  # a ridge that is chosen would depend on them
    selector = make_selector(given, n_features_to_select=1, cv=(X_val, y_val)).fit(X, y_train)
    assert selector.order_.tolist() == [4]
    # The final predictor is the same whatever the validation targets, as long as the choice is.
    other = make_selector(given, n_features_to_select=1, cv=(X_val[:25], 3 * y_val[:25])).fit(X, y_train)
    assert other.order_.tolist() == [4]
    np.testing.assert_array_equal(selector.predict(X), other.predict(X))


def test_recovery_of_known_laws() -> None:
    for seed in range(3):
        X, y, truth = make_gravitation(150, random_state=seed)
        selector = NeuralGreedyPursuit(n_features_to_select=3, random_state=seed).fit(X, y)
        assert sorted(selector.order_) == truth.tolist()
    X, y, truth = make_artificial(300, 60, random_state=0)
    assert sorted(NeuralGreedyPursuit(random_state=0).fit(X, y).order_) == truth.tolist()


# ---------------------------------------------------------------- targets and weights


def test_classes_of_every_type() -> None:
    X, y = make_data()
    for classes in ([False, True], ["no", "yes"], [3, 7], [-1.0, 1.0]):
        labels = np.array(classes)[(y > np.median(y)).astype(int)]
        selector = make_classifier(n_features_to_select=2).fit(X, labels)
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
    selector = make_classifier(n_features_to_select=2, loss=loss).fit(X, labels)
    assert selector.order_[0] == 4
    probabilities = selector.predict_proba(X)
    assert probabilities.shape == (80, n_classes)
    assert (probabilities > 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    own = np.searchsorted(selector.classes_, selector.predict(X))
    np.testing.assert_array_equal(probabilities[np.arange(80), own], probabilities.max(axis=1))
    assert selector.score(X, labels) == np.mean(selector.predict(X) == labels) > 0.8


def test_the_class_says_what_it_is_for() -> None:
    X, y = make_data()
    labels, whole = np.where(y > np.median(y), "high", "low"), np.arange(80) % 3
    selector = NeuralGreedyPursuit(FAST, n_features_to_select=1, random_state=0)
    for target, task in [(y, "regression"), (labels, "classification"), (y, "regression")]:
        selector.fit(X, target)
        assert (selector.task_, hasattr(selector, "classes_")) == (task, task == "classification")
        assert not is_classifier(selector)
        assert not is_regressor(selector)
        np.testing.assert_array_equal(selector.transform(X), X[:, [4]])
    assert not any(hasattr(selector, name) for name in ("predict", "predict_proba", "score", "predictor_"))
    assert selector.set_params(task="regression").fit(X, whole).task_ == "regression"
    regressor, classifier = make_selector(n_features_to_select=1), make_classifier(n_features_to_select=1)
    assert is_regressor(regressor)
    assert not is_classifier(regressor)
    assert not hasattr(regressor, "predict_proba")
    assert is_classifier(classifier)
    assert not is_regressor(classifier)
    assert regressor.fit(X, whole).task_ == "regression"
    assert classifier.fit(X, whole).task_ == "classification"
    with pytest.raises(ValueError, match="Invalid parameter 'task' for estimator NGPRegressor"):
        regressor.set_params(task="classification")
    with pytest.raises(ValueError, match="A regression needs numbers in y: give numbers, or select for classes"):
        regressor.fit(X, labels)


def test_cross_validation_of_classes_is_stratified() -> None:
    scores = cross_val_score(NGPClassifier(FAST, n_features_to_select=2), *load_iris(return_X_y=True), cv=3)
    assert (scores > 0.85).all()


def test_to_select_trains_no_final_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data()
    expected = fit(n_features_to_select=2).losses_
    monkeypatch.setattr(SSFNScorer, "fit", lambda *_: pytest.fail("a final predictor was trained"))
    selector = NeuralGreedyPursuit(FAST, n_features_to_select=2, random_state=0)
    selector.estimate(X, y)
    np.testing.assert_array_equal(selector.fit(X, y).losses_, expected)


def test_a_selector_of_classes_is_stratified_ranked_and_calibrated_by_scikit_learn() -> None:
    X, y = make_data()
    ordered = np.argsort(y)  # so that plain blocks of rows would hold one class each
    X, high = X[ordered], np.where(y > np.median(y), "high", "low")[ordered]
    selector = make_classifier(n_features_to_select=1)
    areas = cross_val_score(selector, X, high, cv=2, scoring="roc_auc")
    assert (areas > 0.8).all()
    assert CalibratedClassifierCV(selector, cv=2).fit(X, high).score(X, high) > 0.8


def test_several_outputs() -> None:
    X, y = make_data()
    outputs = np.column_stack([y, X[:, 2] ** 2])
    selector = make_selector(n_features_to_select=3).fit(X, outputs)
    assert sorted(selector.order_) == [1, 2, 4]
    assert selector.predict(X).shape == (80, 2)
    assert selector.score(X, outputs) > 0.8
    one = make_selector(n_features_to_select=1).fit(X, y[:, None])
    np.testing.assert_array_equal(one.predict(X)[:, 0], make_selector(n_features_to_select=1).fit(X, y).predict(X))


def test_weights_say_which_samples_count() -> None:
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
    with pytest.warns(UserWarning, match="Nothing was selected"):
        constant = make_selector(tol=1e6).fit(X, mixed, sample_weight=half)
    np.testing.assert_allclose(constant.predict(X[:1]), mixed[half == 1].mean())


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


def test_groups_of_samples_are_routed() -> None:
    X, y = make_data()
    together = np.arange(80) // 8
    by_group = make_selector(n_features_to_select=2, cv=GroupKFold(5))
    expected = clone(by_group).fit(X, y, cv_groups=together).losses_
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(by_group).set_fit_request(cv_groups="groups")  # the same that the outer splitter gets
        pipeline = make_pipeline(StandardScaler(), asking)
        np.testing.assert_array_equal(pipeline.fit(X, y, groups=together)[-1].losses_, expected)
        found = cross_validate(
            pipeline, X, y, cv=GroupKFold(4), params={"groups": together}, return_estimator=True, return_indices=True
        )
        for fitted, rows in zip(found["estimator"], found["indices"]["train"], strict=True):
            alone = make_pipeline(StandardScaler(), clone(by_group).set_fit_request(cv_groups=True))
            alone.fit(X[rows], y[rows], cv_groups=together[rows])
            np.testing.assert_array_equal(fitted[-1].losses_, alone[-1].losses_)
        assert found["test_score"].mean() > 0.5
        with pytest.raises(UnsetMetadataPassedError, match=r"\[sample_weight\] are passed but are not explicitly set"):
            pipeline.fit(X, y, groups=together, sample_weight=np.ones(80))
    plain = cross_validate(by_group, X, y, cv=4, params={"cv_groups": together})  # without routing
    assert plain["test_score"].shape == (4,)


# ---------------------------------------------------------------- who hears of the steps


class Listener(OnStep):
    """Writes down what it hears, and keeps the selector as it would be if the fit ended now."""

    def __init__(self) -> None:
        super().__init__(lambda steps: False)
        self.calls: list[str] = []
        self.fitted: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        self.calls.append(f"end {context.task_name} {context.task_id} with {len(estimator.path_) - 1}")
        self.fitted.append(fitted_estimator)
        return False


def test_callbacks_hear_of_every_step() -> None:
    X, y = make_data()
    listener = Listener()
    selector = make_selector(n_features_to_select=2).set_callbacks(listener).fit(X, y)
    steps = ["begin step 0", "end step 0 with 1", "begin step 1", "end step 1 with 2"]
    assert listener.calls == ["setup", "begin fit 0", *steps, "end fit 0 with 2", "teardown"]
    *each, whole = listener.fitted
    assert whole is None  # the selector itself is fitted then
    for number, fitted in enumerate(each, 1):
        expected = make_selector(n_features_to_select=number).fit(X, y)
        np.testing.assert_array_equal(fitted.order_, selector.order_[:number])
        np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


def test_callbacks_can_stop_a_fit() -> None:
    X, y = make_data()
    for n in (1, 2):
        selector = make_selector(n_features_to_select=4).set_callbacks(OnStep(stop_after(n))).fit(X, y)
        assert selector.order_.tolist() == [4, 1][:n]
        assert selector.partial_
        assert selector.stop_reason_ == "a callback asked to stop; the path is partial"
        assert selector.predict(X).shape == y.shape


def test_scikit_learns_progress_bar_works(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = make_pipeline(StandardScaler(), make_selector(n_features_to_select=2)).set_callbacks(ProgressBar())
    pipeline.fit(*make_data())
    assert "NGPRegressor" in capsys.readouterr().out


def test_the_log_and_the_screen_have_the_same_lines(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with caplog.at_level(logging.INFO, "ngp"):
        selector = fit(n_features_to_select=2, verbose=1, checkpoint=tmp_path / "run.npz")
    lines = [step_line(step, selector.path_, "regression") for step in selector.path_]
    assert caplog.messages == lines
    assert capsys.readouterr().out.splitlines() == [f"[ngp] {line}" for line in lines]
    assert ["(constant prediction)" in lines[0], "add x4" in lines[1], "add x1" in lines[2]] == [True] * 3
    with caplog.at_level(logging.INFO, "ngp"):
        fit(n_features_to_select=2, checkpoint=tmp_path / "run.npz")
    assert caplog.messages[-1] == f"going on after 2 steps that were found in {tmp_path / 'run.npz'}"
    assert capsys.readouterr().out == ""


INTERRUPTED = """
import sys, time
sys.path.insert(0, sys.argv[1])
from greedy_cases import OnStep
from test_selector import make_data, make_selector
def slow(steps):
    print(len(steps) - 1, flush=True)
    time.sleep(60 if len(steps) == 3 else 0)
X, y = make_data()
selector = make_selector(n_features_to_select=5).set_callbacks(OnStep(slow)).fit(X, y)
print(selector.stop_reason_, selector.partial_, selector.order_.tolist(), selector.predict(X).shape)
"""


def test_ctrl_c_keeps_the_steps_that_were_made() -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for line in process.stdout:
        if line.strip() == "2":
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert rest.splitlines() == ["interrupted; the path is partial True [4, 1] (80,)"]
    assert process.returncode == 0


def test_a_leak_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "paid", "c"]), rng.normal(size=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_of = NeuralGreedyPursuit("kernel", n_features_to_select=1, random_state=0)
        fit_of.fit(X, y)
    X["paid"] = y + 0.01 * rng.normal(size=80)
    message = r"paid explains nearly everything by itself \(R² .*\): is it known before the target is\?"
    with pytest.warns(UserWarning, match=message):
        fit_of.fit(X, y)
    with pytest.warns(UserWarning, match=r"paid explains nearly everything by itself \(accuracy "):
        fit_of.fit(X.assign(paid=np.sign(y)), np.sign(y))


def test_the_score_of_all_columns_is_that_of_a_pursuit_that_has_them() -> None:
    X, y = load_wine(return_X_y=True)
    settings: dict[str, Any] = {"n_features_to_select": 2, "random_state": 0}
    selector = NeuralGreedyPursuit("kernel", **settings).fit(X, y)
    every = NeuralGreedyPursuit("kernel", fixed=range(13), **settings | {"n_features_to_select": 13}).fit(X, y)
    assert selector.all_columns_score_ == every.path_[0].score
    assert 0.9 < selector.path_[2].score < selector.all_columns_score_ <= 1
    short = NeuralGreedyPursuit("kernel", max_time=1e-9).fit(X, y)
    assert (short.partial_, np.isnan(short.all_columns_score_)) == (True, True)


def test_all_columns_are_not_scored_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngp.greedy.candidates.MOST_COLUMNS", 12)
    X, y = load_wine(return_X_y=True)
    assert np.isnan(NeuralGreedyPursuit("kernel", n_features_to_select=1).fit(X, y).all_columns_score_)


def test_an_interrupt_while_all_columns_are_scored_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(search: Search) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "score_of_all", interrupted)
    X, y = load_wine(return_X_y=True)
    selector = NeuralGreedyPursuit("kernel", n_features_to_select=1).fit(X, y)
    assert (len(selector.order_), selector.partial_) == (1, False)
    assert np.isnan(selector.all_columns_score_)


@pytest.mark.filterwarnings("ignore:Interrupted while")
def test_ctrl_c_in_the_training_of_the_final_predictor_keeps_the_selection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    X, y = make_data()
    file = tmp_path / "run.npz"
    whole, selector = fit(n_features_to_select=2), make_selector(n_features_to_select=2, checkpoint=file).fit(X, y)
    file.unlink()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SSFNScorer, "fit", interrupted)
        with pytest.warns(UserWarning, match="Interrupted while the final predictor was trained: the selection is"):
            selector.fit(X, y)
    assert selector.order_.tolist() == whole.order_.tolist()
    assert selector.support_.tolist() == whole.support_.tolist()
    assert selector.transform(X).shape == (80, 2)
    assert selector.partial_
    assert selector.stop_reason_ == f"{whole.stop_reason_}; interrupted while the final predictor was trained"
    for use in (selector.predict, lambda X: selector.score(X, y)):
        with pytest.raises(NotFittedError, match="The training of the final predictor was interrupted: call fit again"):
            use(X)
    selector.report(tmp_path / "report.html", X, y)
    assert "interrupted while the final predictor was trained" in (tmp_path / "report.html").read_text("utf-8")
    selector.fit(X, y)  # goes on with the checkpoint
    assert selector.predict(X).tolist() == whole.predict(X).tolist()


def test_a_fit_that_is_interrupted_in_its_first_step_says_so() -> None:
    selector = make_selector(Interrupting())
    with pytest.warns(UserWarning, match=r"Nothing was selected \(interrupted before anything was selected\)"):
        selector.fit(*make_data())
    assert (selector.stop_reason_, selector.partial_) == ("interrupted before anything was selected", True)


def test_a_fit_that_fails_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data()
    selector, new = fit(n_features_to_select=2), make_selector()
    before, expected = vars(selector).copy(), selector.predict(X)
    for kind, name in ((SSFNScorer, "add_losses"), (SSFNScorer, "fit"), (Search, "score_of_all")):
        with monkeypatch.context() as patched:
            patched.setattr(kind, name, lambda *_: 1 / 0)
            for each in (selector, new):
                with pytest.raises(ZeroDivisionError):
                    each.fit(X[:, 1:], np.column_stack([y, y]))
        assert vars(selector) == before
        np.testing.assert_array_equal(selector.predict(X), expected)
        for use in (partial(new.cut, 1), new.summary):
            with pytest.raises(NotFittedError):
                use()


class Interrupting(LinearRegression):
    """Ctrl-C comes in its first training."""

    def fit(self, X: Any, y: Any) -> Any:
        raise KeyboardInterrupt


def test_fits_side_by_side_have_one_blas_thread_and_give_back_the_others() -> None:
    """The first one ends while the second one runs: the limit must outlast it, and no longer than the second one."""

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def run(on_step: Callable[[Any], None]) -> None:
        NGPRegressor(FAST, n_features_to_select=1, random_state=0).set_callbacks(OnStep(on_step)).fit(*make_data())

    both, seen = Barrier(2), list[set[int]]()
    first = Thread(target=run, args=[lambda _: both.wait(60)])

    def outlast(_: Any) -> None:
        both.wait(60)
        first.join(60)
        seen.append(threads())

    second = Thread(target=run, args=[outlast])
    with threadpool_limits(2, user_api="blas"):
        for thread in (first, second):
            thread.start()
        second.join(60)
        assert (seen, threads()) == ([{1}], {2})


def test_once_the_time_is_up_the_final_predictor_is_not_searched_for(tmp_path: Path) -> None:
    """It has the settings of the last step; `cut` searches as usual."""
    X, y = make_data()
    widths, epochs = {"n_units": 15, "n_draws": 2}, {"n_units": 5, "epochs": 2}
    for place, (searching, settled) in enumerate(
        [
            (SSFN(**widths), lambda ridge: SSFN(**widths, refit_units=15, ridge=ridge)),
            ([SSFN(**widths)], lambda _: [SSFN(**widths, refit_units=15, ridge=0.3)]),
            (MLP(**epochs), lambda _: MLP(**epochs, refit_epochs=2)),
        ]
    ):
        at_leisure = NGPRegressor(searching, n_features_to_select=1, random_state=0).fit(X, y)
        late = clone(at_leisure).set_params(n_features_to_select=2, max_time=1e-9, checkpoint=tmp_path / f"{place}.npz")
        with pytest.warns(UserWarning, match="Nothing was selected"):
            late.fit(X, y)
        late.fit(X, y)  # goes on, and has time for a single step
        same = clone(at_leisure).set_params(predictor=settled(late.path_[1].ridge)).fit(X, y)
        assert late.order_.tolist() == same.order_.tolist() == [4]
        np.testing.assert_array_equal(late.predict(X), same.predict(X))
        assert (late.predict(X) != at_leisure.predict(X)).any()
        np.testing.assert_array_equal(late.cut(1, X, y).predict(X), at_leisure.predict(X))
