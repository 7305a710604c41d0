"""Screening: a cheap first pass that ranks the candidates of a step, so that only the best are scored exactly.

Asked of each candidate is how much of what the selection leaves unexplained a few random units of it, together with
the selected columns, would explain (see `ngp.kernels.screening`). Whatever the predictor is, this pass is a little
network of its own. It reads the rows that ever train, under K folds all of them. That doesn't flatter the losses: the
exact pass judges every candidate it gets as it would without screening, so the lowest loss can only be missed. Of very
many rows it reads a random part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ngp._progress import phase
from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.unexplained import CLIP, Unexplained, rows_read, unit_layer
from ngp.kernels.parallel import run_tasks
from ngp.kernels.screening import ScreenTask, gains, screen_task
from ngp.predictors.base import ColumnSets, scaled_columns

__all__ = ["Screening", "n_scored"]

# Of the candidates' regressions: with the candidate itself, the intercept and one output they fill a vector of 16.
N_UNITS = 13
RIDGE_SHARE = 0.003  # of the sum of the weights
# How many candidates are scored by itself: so many times the root of their number.
AUTO_FACTOR = 10
# Numbers in the columns that one task gets; but so many candidates at least, since they share what they read.
CHUNK_NUMBERS = 2**18
LEAST_AT_ONCE = 8


def n_scored(screen: int | Literal["auto"], n_candidates: int) -> int:
    """How many candidates of a step are scored exactly."""
    number = round(AUTO_FACTOR * n_candidates**0.5) if screen == "auto" else screen
    return min(number, n_candidates)


@dataclass(frozen=True)
class Screening:
    """Chooses the candidates that are scored exactly."""

    screen: int | Literal["auto"]  # how many (see `n_scored`)
    seed: int  # of the random units
    n_jobs: int | None = None  # parallel tasks. No answer depends on it

    def __post_init__(self) -> None:
        if isinstance(self.screen, bool):  # which passes for a number
            raise TypeError(f"screen={self.screen} is no number of candidates: give one, 'auto' or None.")

    def best(self, problem: Problem, selected: IntArray, candidates: ColumnSets, costs: FloatArray) -> IntArray:
        """Positions of the candidates that promise most, per cost where costs differ, in ascending order."""
        number = n_scored(self.screen, len(candidates))
        if number == len(candidates):
            return np.arange(number)
        with phase("screening", len(candidates)):
            promise = self.promises(problem, selected, candidates)
        # As in the exact pass: what brings nothing is not made better by a low cost.
        promise = np.where(promise > 0, promise / costs, promise)
        return np.sort(np.argsort(-promise, kind="stable")[:number])

    def promises(self, problem: Problem, selected: IntArray, candidates: ColumnSets) -> FloatArray:
        """What each candidate explains, less Mallows' allowance for what so many parameters explain by chance."""
        rows = rows_read(problem, self.seed)
        left = Unexplained.of(problem, selected, rows, self.seed)
        weights, residuals = left.weights, left.residuals
        allowance = 2 * np.average(residuals**2, axis=0, weights=weights).sum()  # for each parameter
        promise = np.empty(len(candidates))
        for members, columns in candidates.by_size():
            n_new = columns.shape[1]
            base, slots = unit_layer(left.inputs, self.seed, N_UNITS, n_new)
            task = screen_task(base, slots, residuals, weights, RIDGE_SHARE * weights.sum())
            length = max(LEAST_AT_ONCE, CHUNK_NUMBERS // (len(rows) * n_new))
            starts = range(0, len(columns), length)
            chunks, shared = [(columns[start : start + length],) for start in starts], (problem, _Step(task, rows))
            counts = [len(some) for (some,) in chunks]
            gained = run_tasks(_chunk_gains, chunks, self.n_jobs, shared=shared, counts=counts)
            for start, found in zip(starts, gained, strict=True):
                promise[members[start : start + length]] = found - (N_UNITS + n_new) * allowance
        return promise


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: what they share, and the rows."""

    task: ScreenTask
    rows: IntArray


def _chunk_gains(problem: Problem, step: _Step, columns: IntArray) -> FloatArray:
    """Gains of a few candidates (n, m)."""
    values = scaled_columns(problem, columns.ravel(), step.rows, CLIP)
    return gains(step.task, values.reshape(*columns.shape, len(step.rows)))
