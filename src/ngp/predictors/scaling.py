"""Columns as predictors want them: standardised, and held within a few deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.data.sources import between
from ngp.kernels.scoring import gather_columns

__all__ = ["ScaledColumns", "scaled_columns"]


def scaled_columns(problem: Problem, columns: IntArray, rows: IntArray, clip: float | None) -> FloatArray:
    """Standardised columns as rows of an array, held within `clip` deviations (None: not at all)."""
    mean, scale = problem.column_scales
    columns, bound = np.ascontiguousarray(columns), np.inf if clip is None else clip
    if isinstance(problem.X, np.ndarray):
        return gather_columns(problem.X, rows, columns, mean[columns], scale[columns], bound)
    whole, rows = between(rows)
    taken = problem.X.read(columns, whole)
    return gather_columns(taken.T, rows, np.arange(len(columns)), mean[columns], scale[columns], bound)


@dataclass(frozen=True)
class ScaledColumns:
    """Takes columns of any X, and scales them as in training; picklable."""

    columns: IntArray  # what is taken
    mean: FloatArray  # what is taken away, and what it is divided by
    scale: FloatArray  # what is taken away, and what it is divided by
    clip: float  # largest absolute value after that

    @classmethod
    def of(cls, problem: Problem, columns: IntArray, clip: float | None) -> ScaledColumns:
        """Scale as `scaled_columns` does."""
        mean, scale = problem.column_scales
        return cls(columns, mean[columns], scale[columns], np.inf if clip is None else clip)

    @classmethod
    def as_they_are(cls, columns: IntArray) -> ScaledColumns:
        """Take columns without scaling them."""
        return cls(columns, np.zeros(len(columns)), np.ones(len(columns)), np.inf)

    def __call__(self, X: AnyArray) -> FloatArray:
        """Inputs of shape (n_samples, n_columns)."""
        values = (np.asarray(X[:, self.columns], dtype=np.float64) - self.mean) / self.scale
        return np.clip(values, -self.clip, self.clip)
