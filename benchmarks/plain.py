"""What the batched scorer replaces: refit the SSFN for every candidate and every fold, in numpy."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.predictors.ssfn import SSFNScorer


class PlainSSFN:
    """One random layer, trained on some rows: ridge on the columns, then ridge on the hidden units."""

    def __init__(self, ridge: float, linear_ridge: float) -> None:
        self.ridge = ridge
        self.linear_ridge = linear_ridge

    def fit(self, X: AnyArray, t: AnyArray, weights: AnyArray, bias: AnyArray) -> PlainSSFN:
        self.weights, self.bias = weights, bias
        self.linear = _ridge(X, t, self.linear_ridge)
        self.output = _ridge(self.hidden(X), t, self.ridge)
        return self

    def hidden(self, X: AnyArray) -> AnyArray:
        slopes, intercept = self.linear
        y = (X @ slopes + intercept)[:, None]
        units = np.hstack([X @ self.weights + self.bias, y, -y])
        return np.maximum(units, 0, out=units)

    def predict(self, X: AnyArray) -> AnyArray:
        slopes, intercept = self.output
        return self.hidden(X) @ slopes + intercept


def _ridge(A: AnyArray, t: AnyArray, penalty: float) -> tuple[AnyArray, AnyArray]:
    """Slopes and intercept from the normal equations."""
    a_mean, t_mean = A.mean(axis=0), t.mean()
    A = A - a_mean
    normal = A.T @ A
    normal.flat[:: len(normal) + 1] += penalty
    factor = cho_factor(normal, overwrite_a=True, check_finite=False)
    slopes = cho_solve(factor, A.T @ (t - t_mean), check_finite=False)
    return slopes, t_mean - a_mean @ slopes


class PlainLoop:
    """Losses of S + i, one candidate i and one fold after the other; regression with one output and one draw.

    It takes from the scorer what both must share: the data, the folds and the random weights.
    """

    def __init__(self, scorer: SSFNScorer, dtype: str) -> None:
        problem = scorer.problem
        self.scorer = scorer
        inputs = scorer.inputs(np.arange(problem.n_columns), np.arange(len(problem.X)))
        self.X = np.asfortranarray(inputs.T, dtype=dtype)
        targets = problem.targets[:, 0]
        self.scale = targets.std()
        self.t = ((targets - targets.mean()) / self.scale).astype(dtype)
        (round_,) = problem.rounds
        self.splits = [(round_.training(f), round_.validation(f)) for f in range(round_.n_folds)]

    def losses(self, selected: IntArray, candidates: IntArray) -> FloatArray:
        layer = self.scorer.layer(0, len(selected), len(selected) + 1, self.scorer.config.n_units)
        weights, bias = (part.astype(self.X.dtype) for part in layer)
        (round_,) = self.scorer.problem.rounds
        weight = round_.training_weight(self.scorer.problem.weights)
        penalties = self.scorer.penalties(len(selected), weight)
        network = PlainSSFN(penalties.ridge, penalties.linear_ridge)
        result = []
        for candidate in candidates:
            X = self.X[:, [*selected, candidate]]
            error = 0.0
            for train, test in self.splits:
                model = network.fit(X[train], self.t[train], weights, bias)
                error += np.sum((model.predict(X[test]) - self.t[test]) ** 2, dtype=np.float64)
            result.append(error / len(self.t) * self.scale**2)
        return np.array(result)
