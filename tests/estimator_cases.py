"""Small problems for scikit-learn estimators, and their losses by a plain loop of clones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor

from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, make_problem
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import EstimatorPredictor, EstimatorScorer

N_ROWS, N_COLUMNS = 48, 7
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([4, 1])
CANDIDATES = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0]])
ROW_ORDER = SGDRegressor(random_state=0, max_iter=5, tol=None, eta0=1e-3)  # for which the order of rows matters


def make_data(kind: str, n_rows: int = N_ROWS, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS)) * rng.uniform(0.5, 3, size=N_COLUMNS) + rng.normal(size=N_COLUMNS)
    signal = X[:, [0, 1, 6]] @ np.random.default_rng(9).normal(size=(3, 3)) + 0.8 * rng.normal(size=(n_rows, 3))
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > 0, "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(kind: str = "regression", cv: Any = 3, weighted: bool = False, **options: Any) -> Problem:
    X, y = make_data(kind)
    if weighted:
        options["sample_weight"] = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=20, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    return make_problem(X, y, groups=make_groups(None, N_COLUMNS), task=task, cv=cv, random_state=3, **options)


def bind(estimator: Any, problem: Problem, n_jobs: int | None = None, seed: int = 11) -> EstimatorScorer:
    return EstimatorPredictor(estimator).bind(problem, random_state=seed, n_jobs=n_jobs)


def coded_by_hand(fitted: Any, X: Any, classes: Any) -> list[list[float]]:
    """Predictions of coded targets, sample by sample."""
    if classes is None:
        return [list(np.atleast_1d(row)) for row in fitted.predict(X)]
    coded = []
    for row in X:
        if hasattr(fitted, "predict_proba"):
            likely = dict(zip(fitted.classes_, fitted.predict_proba(row[None])[0], strict=True))
        else:
            likely = {fitted.predict(row[None])[0]: 1.0}
        values = [likely.get(label, 0.0) for label in classes]
        coded.append(values[1:] if len(classes) == 2 else values)
    return coded


def parts_by_hand(estimator: Any, problem: Problem, columns: list[int], fit_weights: str = "") -> Any:
    """Mean loss in every part of the validation for one set of columns."""
    classes, parts = problem.classes, []
    for round_ in problem.rounds:
        losses = np.zeros(len(round_.rows))
        for f in range(round_.n_folds):
            train = [row for row in sorted(round_.training(f)) if problem.weights[row] > 0]
            y = problem.targets if problem.n_outputs > 1 else problem.targets[:, 0]
            if classes is not None:
                y = np.array([classes[int(np.argmax(t)) if t.ndim else int(t)] for t in y])
            weights = {fit_weights: problem.weights[train]} if fit_weights else {}
            fitted = clone(estimator).fit(problem.X[train][:, columns], y[train], **weights)
            start, end = round_.segments[f + 1 : f + 3]
            rows = round_.rows[start:end]
            predictions = np.array(coded_by_hand(fitted, problem.X[rows][:, columns], classes))
            losses[start:end] = LOSSES[problem.loss](predictions, problem.targets[rows])
        for first, last in pairwise(round_.parts):
            weights = problem.weights[round_.rows[first:last]]
            parts.append(weights @ losses[first:last] / max(weights.sum(), 1e-300))
    return np.array(parts)


def check(estimator: Any, problem: Problem, fit_weights: str = "", candidates: ColumnSets = CANDIDATES) -> None:
    losses = bind(estimator, problem).add_losses(SELECTED, candidates)
    for i in range(len(candidates)):
        expected = parts_by_hand(estimator, problem, [*SELECTED, *candidates[i]], fit_weights)
        np.testing.assert_allclose(losses.parts[i], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(losses.weights, problem.part_weights)
