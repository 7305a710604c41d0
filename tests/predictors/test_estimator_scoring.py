"""Estimators judged by scikit-learn's scorers: scores and picks against scikit-learn's own cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_cases import CANDIDATES, N_COLUMNS, N_ROWS, NOTHING, ROW_ORDER, SELECTED, bind, make_case, make_data
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.stopping import MaxFeatures


def largest_error_score(estimator: Any, X: Any, y: Any) -> float:
    return float(1 - np.abs(estimator.predict(X) - y).max())


SCORED: list[tuple[Any, str, Any, Any]] = [
    (SVC(), "classes", "accuracy", StratifiedKFold(4)),
    (SVC(), "binary", "roc_auc", StratifiedKFold(3, shuffle=True, random_state=0)),
    (GaussianNB(), "classes", "neg_log_loss", KFold(4)),
    (GaussianNB(), "classes", "f1_macro", StratifiedKFold(3)),
    (SVR(), "regression", "r2", RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)),
    (KNeighborsRegressor(), "regression", "neg_mean_absolute_error", ShuffleSplit(4, random_state=0)),
    (Ridge(), "outputs", "r2", KFold(3)),
    (make_pipeline(StandardScaler(), SVR()), "regression", make_scorer(mean_absolute_error), TimeSeriesSplit(3)),
    (SVR(), "regression", largest_error_score, KFold(3)),
    (ROW_ORDER, "regression", "r2", KFold(3, shuffle=True, random_state=0)),
]


@pytest.mark.parametrize(
    ("estimator", "kind", "scoring", "cv"), SCORED, ids=lambda value: getattr(value, "__name__", str(value)[:30])
)
def test_scores_are_those_of_cross_val_score(estimator: Any, kind: str, scoring: Any, cv: Any) -> None:
    X, y = make_data(kind)
    losses = bind(estimator, make_case(kind, cv=cv, scoring=scoring)).add_losses(SELECTED, CANDIDATES)
    best = 0.0 if isinstance(scoring, str) and scoring.startswith("neg_") else 1.0
    for i in range(len(CANDIDATES)):
        scores = cross_val_score(estimator, X[:, [*SELECTED, *CANDIDATES[i]]], y, scoring=scoring, cv=cv)
        np.testing.assert_allclose(losses.parts[i], best - scores, rtol=1e-12)
        assert losses.means[i] == pytest.approx(best - scores.mean())


@pytest.mark.parametrize(
    ("estimator", "kind", "scoring"),
    [
        (SVR(), "regression", "r2"),
        (make_pipeline(StandardScaler(), KNeighborsRegressor()), "outputs", "neg_root_mean_squared_error"),
        (GaussianNB(), "classes", "neg_log_loss"),
        (SVC(), "binary", "roc_auc"),
    ],
    ids=str,
)
def test_picks_are_those_of_scikit_learns_forward_selection(estimator: Any, kind: str, scoring: str) -> None:
    X, y = make_data(kind)
    cv = KFold(4, shuffle=True, random_state=1)
    problem = make_case(kind, cv=cv, scoring=scoring)
    path = pursue(Search(problem, bind(estimator, problem)), MaxFeatures(4), fixed=NOTHING)
    for number in range(1, 5):
        theirs = SequentialFeatureSelector(estimator, n_features_to_select=number, scoring=scoring, cv=cv).fit(X, y)
        assert set(path.columns[:number]) == set(theirs.get_support(indices=True))


def test_picks_by_accuracy_are_those_of_scikit_learn() -> None:
    X, y = make_data("classes", n_rows=300)
    cv = KFold(4)
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=cv, scoring="accuracy")
    path = pursue(Search(problem, bind(SVC(), problem)), MaxFeatures(3), fixed=NOTHING)
    for number in range(1, 4):
        theirs = SequentialFeatureSelector(SVC(), n_features_to_select=number, scoring="accuracy", cv=cv).fit(X, y)
        assert set(path.columns[:number]) == set(theirs.get_support(indices=True))


def test_scores_are_weighted() -> None:
    problem = make_case("classes", weighted=True, cv=KFold(3), scoring="accuracy")
    losses = bind(GaussianNB(), problem).add_losses(SELECTED, CANDIDATES)
    X, y = make_data("classes")
    for part, (train, test) in enumerate(KFold(3).split(X)):
        weights = problem.weights
        fitted = GaussianNB().fit(X[train][:, SELECTED], y[train], weights[train])
        hits = fitted.predict(X[test][:, SELECTED]) == y[test]
        assert losses.parts[3, part] == pytest.approx(1 - np.average(hits, weights=weights[test]))


def test_zero_weights_need_no_scorer_that_takes_weights() -> None:
    weights = np.arange(N_ROWS) % 3 > 0
    losses = bind(SVR(), make_case(cv=KFold(3), scoring="neg_max_error", sample_weight=weights))
    X, y = make_data("regression")
    cv = KFold(3).split(X)
    scores = cross_val_score(
        SVR(),
        X[:, SELECTED],
        y,
        scoring="neg_max_error",
        cv=[(train[weights[train]], test[weights[test]]) for train, test in cv],
    )
    np.testing.assert_allclose(losses.add_losses(SELECTED, CANDIDATES).parts[3], -scores)


def test_scorers_travel_to_other_processes() -> None:
    problem = make_case(scoring=lambda estimator, X, y: -abs(estimator.predict(X) - y).mean())
    expected = bind(SVR(), problem).add_losses(SELECTED, CANDIDATES).parts
    np.testing.assert_array_equal(bind(SVR(), problem, n_jobs=2).add_losses(SELECTED, CANDIDATES).parts, expected)
