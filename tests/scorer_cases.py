"""Small problems for the tests of scorers, and what plain twins of scorers share."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, PredefinedSplit, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.predictors import ColumnSets
from ngp.predictors.base import Scorer

N_COLUMNS = 7
SELECTED = np.array([4, 1])
CANDIDATES = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0]])
CLASS_LOSSES = ("squared_error", "cross_entropy", "hinge")
PROBLEMS: dict[str, dict[str, Any]] = {
    "regression": {},
    "several outputs": {"kind": "outputs"},
    "sample weights": {"weighted": True},
    "several outputs, sample weights": {"kind": "outputs", "weighted": True},
    **{f"binary, {loss}": {"kind": "binary", "loss": loss} for loss in CLASS_LOSSES},
    **{f"classes, {loss}": {"kind": "classes", "loss": loss} for loss in CLASS_LOSSES},
    "classes, weights, hinge": {"kind": "classes", "loss": "hinge", "weighted": True},
    "repeated folds": {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)},
    "ShuffleSplit": {"cv": ShuffleSplit(3, test_size=0.3, random_state=0), "weighted": True},
    "TimeSeriesSplit": {"cv": TimeSeriesSplit(3)},
    "PredefinedSplit": {"cv": PredefinedSplit(np.arange(48) % 4 - 1)},
    "uneven folds": {"cv": KFold(7), "kind": "outputs"},
    "hold-out share": {"cv": 0.3},
    "explicit validation set": {"cv": "explicit", "weighted": True},
    "explicit, classes": {"cv": "explicit", "kind": "classes", "loss": "cross_entropy"},
    "leave-one-out": {"cv": "loo"},
    "leave-one-out, classes": {"cv": "loo", "kind": "classes", "loss": "hinge"},
}
SSFN_SETTINGS: dict[str, dict[str, Any]] = {
    "no bias": {"bias": False},
    "no scaling": {"standardize": False},
    "narrow clip": {"clip": 1.0},
    "no clip": {"clip": None},
    "ridges": {"ridge": 0.05, "linear_ridge": 20.0},
    "one wide draw": {"n_units": 37, "n_draws": 1},
}


def make_data(kind: str, n_rows: int = 48, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS)) * rng.uniform(0.5, 3, size=N_COLUMNS) + rng.normal(size=N_COLUMNS)
    signal = np.tanh(X[:, [0, 1, 6]] @ rng.normal(size=(3, 3)) / 2) + 0.4 * rng.normal(size=(n_rows, 3))
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > 0, "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(
    kind: str = "regression", cv: Any = 3, loss: str = "squared_error", weighted: bool = False, X: Any = None
) -> Problem:
    data, y = make_data(kind)
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2 if weighted else None
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=20, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    X = data if X is None else X
    groups = make_groups(None, X.shape[1])
    return make_problem(X, y, groups=groups, task=task, cv=cv, loss=loss, sample_weight=weights, random_state=3)


def training_weight(problem: Problem, r: int) -> float:
    """What a ridge of one stands for in a round: the weight of the training rows, mean over the folds that judge."""
    round_, weights = problem.rounds[r], problem.weights
    judging = [fold for fold in range(round_.n_folds) if weights[round_.validation(fold)].any()]
    return float(np.mean([weights[round_.training(fold)].sum() for fold in judging or range(round_.n_folds)]))


def loss_by_hand(name: str, prediction: Any, target: Any) -> float:
    """Loss of a single sample."""
    if name == "squared_error":
        return float(np.mean((prediction - target) ** 2))
    if len(target) == 1:
        prediction = np.array([1 - prediction[0], prediction[0]])
        target = np.array([1 - target[0], target[0]])
    true = int(np.argmax(target))
    if name == "cross_entropy":
        likely = np.clip(prediction, 1e-3, 1)
        return float(-np.log(likely[true] / likely.sum()))
    return float(max(0.0, 1 - prediction[true] + max(np.delete(prediction, true))))


def inputs_by_hand(problem: Problem, clip: float | None) -> Any:
    """Columns by the mean and deviation of the rows that ever train, held within `clip` deviations."""
    X, weights = np.asarray(problem.X, np.float64), problem.weights
    ever_train = sorted(
        {int(row) for round_ in problem.rounds for f in range(round_.n_folds) for row in round_.training(f)}
    )
    mean = np.average(X[ever_train], axis=0, weights=weights[ever_train])
    variance = np.average((X[ever_train] - mean) ** 2, axis=0, weights=weights[ever_train])
    X = (X - mean) / np.where(np.ptp(X[ever_train], axis=0) > 0, np.sqrt(variance), 1)
    return X if clip is None else np.clip(X, -clip, clip)


def target_scales_by_hand(problem: Problem, centred: bool = True) -> tuple[Any, float]:
    """Mean of each target (zeros unless `centred`), and the deviation from it of all of them together."""
    T, weights = problem.targets[: problem.n_fit], problem.weights[: problem.n_fit]
    centre = np.average(T, axis=0, weights=weights) if centred else np.zeros(T.shape[1])
    return centre, float(np.sqrt(np.average(((T - centre) ** 2).mean(axis=1), weights=weights))) or 1.0


def average_by_hand(problem: Problem, predict: Callable[[int, int], Any]) -> tuple[float, Any]:
    """Mean loss and its parts, sample by sample; `predict(r, f)` is for the rows that judge in fold f of round r."""
    parts, all_losses, all_weights = [], [], []
    for r, round_ in enumerate(problem.rounds):
        losses = dict.fromkeys(round_.rows.tolist(), 0.0)
        for f in range(round_.n_folds):
            for row, prediction in zip(round_.validation(f).tolist(), predict(r, f), strict=True):
                losses[row] = loss_by_hand(problem.loss, prediction, problem.targets[row])
                all_losses.append(losses[row])
                all_weights.append(problem.weights[row])
        for first, last in pairwise(round_.parts):
            rows = round_.rows[first:last].tolist()
            total = sum(problem.weights[row] * losses[row] for row in rows)
            parts.append(total / max(problem.weights[rows].sum(), 1e-300))
    return float(np.average(all_losses, weights=all_weights)), np.array(parts)


def largest_difference(
    losses_by_hand: Callable[[Any, Any, Any], tuple[float, Any]],
    scorer: Scorer,
    selected: Any = SELECTED,
    candidates: ColumnSets = CANDIDATES,
) -> float:
    """How far a scorer's losses are from those of its twin, `losses_by_hand(scorer, selected, new)`."""
    losses = scorer.add_losses(selected, candidates)
    worst = 0.0
    for i in range(len(candidates)):
        expected, parts = losses_by_hand(scorer, selected, candidates[i])
        worst = max(worst, abs(losses.means[i] - expected) / expected)
        difference = losses.weights * np.abs(losses.parts[i] - parts) / expected
        worst = max(worst, float(difference.max()))
    return worst


def check_answers_depend_on_the_question_alone(bind: Callable[[Problem], Scorer]) -> None:
    """Not on earlier questions, nor on the candidates beside one, to the bit."""
    problem = make_case("outputs", cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    scorer = bind(problem)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    reverse = ColumnSets.of([CANDIDATES[i] for i in reversed(range(len(CANDIDATES)))])
    other = bind(problem)
    other.fit(np.array([0]))
    other.add_losses(np.array([2]), ColumnSets.of([[1], [3]]))
    np.testing.assert_array_equal(other.add_losses(SELECTED, reverse).parts[::-1], expected)
    np.testing.assert_array_equal(other.add_losses(SELECTED, CANDIDATES).parts, expected)
    copy = pickle.loads(pickle.dumps(scorer)).on(problem)
    np.testing.assert_array_equal(copy.add_losses(SELECTED, CANDIDATES).parts, expected)
    for i in range(len(CANDIDATES)):
        alone = scorer.add_losses(SELECTED, ColumnSets.of([CANDIDATES[i]])).parts[0]
        np.testing.assert_array_equal(alone, expected[i])
