"""The predictor of an empty selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.data.problem import Problem

__all__ = ["Constant"]


@dataclass(frozen=True)
class Constant:
    """Predicts the mean of the coded targets, whatever X is."""

    values: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> Constant:
        """Average the rows that train the final predictor."""
        rows = slice(problem.n_fit)
        return cls(np.average(problem.targets[rows], axis=0, weights=problem.weights[rows]))

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        return np.tile(self.values, (len(X), 1))
