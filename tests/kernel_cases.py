"""The kernel predictor's plain twin: each regression solved anew, one after the other."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scorer_cases import average_by_hand, inputs_by_hand, largest_difference, target_scales_by_hand

from ngp.data.problem import Problem
from ngp.kernels.algebra import jitter
from ngp.predictors.kernel import Kernel, KernelScorer

NOTHING = np.zeros(0, np.intp)
PRECISIONS = [("float64", 1e-9), ("float32", 1e-4)]


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> KernelScorer:
    return Kernel(dtype=dtype, **settings).bind(problem, random_state=11, n_jobs=n_jobs, device="cpu")


def scaled_by_hand(problem: Problem, clip: float | None) -> tuple[Any, Any, Any]:
    """Inputs, mean and deviation of the targets."""
    return inputs_by_hand(problem, clip), *target_scales_by_hand(problem)


def kernel_by_hand(config: Kernel, first: Any, second: Any, n_columns: int | None = None) -> Any:
    """Kernel of all pairs of rows, one after the other."""
    n_columns = n_columns or max(1, first.shape[1])
    values = np.empty((len(first), len(second)))
    for i, x in enumerate(first):
        for j, z in enumerate(second):
            if config.kernel == "rbf":
                values[i, j] = np.exp(-config.gamma * ((x - z) ** 2).sum() / n_columns)
                continue
            a, b = np.append(x / np.sqrt(n_columns), 1), np.append(z / np.sqrt(n_columns), 1)
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            angle = np.arccos(np.clip(a @ b / lengths, -1, 1))
            values[i, j] = lengths * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
    return values


def train_by_hand(values: Any, weights: Any, targets: Any, ridge: float) -> tuple[Any, Any]:
    """Coefficients and intercept from the bordered system; rows of weight zero don't train."""
    rows = np.flatnonzero(weights > 0)
    n = len(rows)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = values[np.ix_(rows, rows)] + ridge * np.diag(1 / weights[rows])
    system[n, n] = 0
    solution = np.linalg.solve(system, np.concatenate([targets[rows], np.zeros((1, targets.shape[1]))]))
    coefficients = np.zeros((len(weights), targets.shape[1]))
    coefficients[rows] = solution[:n]
    return coefficients, solution[n]


def nystroem_by_hand(
    cross: Any, weights: Any, targets: Any, ridge: float, landmarks: Any, dtype: str
) -> tuple[Any, Any]:
    """Subset of regressors: coefficients of some functions (kernel `cross` with all rows), and the intercept."""
    features = np.concatenate([cross, np.ones((1, cross.shape[1]))]).T
    penalty = np.zeros((len(cross) + 1, len(cross) + 1))
    penalty[:-1, :-1] = ridge * (cross[:, landmarks] + jitter(0, len(cross), dtype) * np.eye(len(cross)))
    system = (features.T * weights) @ features + penalty
    solution = np.linalg.lstsq(system, (features.T * weights) @ targets, rcond=1e-14)[0]
    return solution[:-1], solution[-1]


def losses_by_hand(scorer: KernelScorer, selected: Any, new: Any) -> tuple[float, Any]:
    """The loss of one candidate and its parts; a selection as it is may have a kernel as wide as its candidates'."""
    widths = [len(selected) + len(new)] if len(new) else [len(selected), len(selected) + 1]
    return min((losses_of_width(scorer, selected, new, width) for width in widths), key=lambda result: result[0])


def losses_of_width(scorer: KernelScorer, selected: Any, new: Any, n_columns: int) -> tuple[float, Any]:
    """The loss of one candidate and its parts, one regression after the other."""
    problem, config = scorer.problem, scorer.config
    X, centre, spread = scaled_by_hand(problem, config.clip)
    X, targets = X[:, [*selected, *new]], (problem.targets - centre) / spread
    values = kernel_by_hand(config, X, X, n_columns)
    assert len(scorer.parts) == len(problem.rounds)

    def predict(r: int, f: int) -> Any:
        train, judge, kept = problem.rounds[r].training(f), problem.rounds[r].validation(f), scorer.parts[r]
        places = scorer._landmarks(kept.rows[: kept.n_training], config.landmarks)
        data = problem.weights[train], targets[train], config.ridge
        if places is None:
            centres = train
            coefficients, intercept = train_by_hand(values[np.ix_(train, train)], *data)
        else:
            centres = kept.rows[places]
            inner = np.concatenate([train, centres])  # landmarks may be in the fold
            cross, weights = values[np.ix_(centres, inner)], np.append(data[0], np.zeros(len(centres)))
            fake = np.concatenate([data[1], np.zeros((len(centres), problem.n_outputs))])
            mine = np.arange(len(train), len(inner))
            coefficients, intercept = nystroem_by_hand(cross, weights, fake, config.ridge, mine, scorer.algebra.dtype)
        return (values[np.ix_(judge, centres)] @ coefficients + intercept) * spread + centre

    return average_by_hand(problem, predict)


difference_from_twin = partial(largest_difference, losses_by_hand)
