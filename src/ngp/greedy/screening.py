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

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.kernels.parallel import run_tasks
from ngp.kernels.screening import ScreenTask, gains, screen_task
from ngp.predictors.base import ColumnSets, scaled_columns

__all__ = ["Screening", "n_scored"]

# Of the candidates' regressions: with the candidate itself, the intercept and one output they fill a vector of 16.
N_UNITS = 13
RIDGE_SHARE = 0.003  # of the sum of the weights
# Of the network whose residuals are to be explained: as the SSFN's.
RESIDUAL_UNITS = 100
RESIDUAL_RIDGE = 1.0
LEAST_FREEDOM = 0.05  # the share of its residual that a row keeps at least: it bounds the leave-one-out residuals
CLIP = 4.0
# How many candidates are scored by itself: so many times the root of their number.
AUTO_FACTOR = 10
# The predictors' layers are numbered by their draws: these stand apart.
LAYER = 2**62
# Numbers in the columns that one task gets; but so many candidates at least, since they share what they read.
CHUNK_NUMBERS = 2**18
LEAST_AT_ONCE = 8
# Rows whose layer is held in memory at a time.
BLOCK_ROWS = 2**12
# Rows that are read at most: so many tell good candidates from bad ones, and more take longer.
MOST_ROWS = 2**14


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
        promise = self.promises(problem, selected, candidates)
        # As in the exact pass: what brings nothing is not made better by a low cost.
        promise = np.where(promise > 0, promise / costs, promise)
        return np.sort(np.argsort(-promise, kind="stable")[:number])

    def promises(self, problem: Problem, selected: IntArray, candidates: ColumnSets) -> FloatArray:
        """What each candidate explains, less Mallows' allowance for what so many parameters explain by chance."""
        rows = self._rows(problem)
        weights = problem.weights[rows] / problem.weights[rows].mean()
        inputs = scaled_columns(problem, selected, rows, CLIP).T
        mean, scale = problem.target_scales
        residuals = self._residuals(inputs, (problem.targets[rows] - mean) / scale, weights)
        allowance = 2 * np.average(residuals**2, axis=0, weights=weights).sum()  # for each parameter
        promise = np.empty(len(candidates))
        for members, columns in candidates.by_size():
            n_new = columns.shape[1]
            base, slots = self._units(inputs, N_UNITS, n_new)
            task = screen_task(base, slots, residuals, weights, RIDGE_SHARE * weights.sum())
            length = max(LEAST_AT_ONCE, CHUNK_NUMBERS // (len(rows) * n_new))
            starts = range(0, len(columns), length)
            chunks, shared = [(columns[start : start + length],) for start in starts], (problem, _Step(task, rows))
            for start, found in zip(starts, run_tasks(_chunk_gains, chunks, self.n_jobs, shared=shared), strict=True):
                promise[members[start : start + length]] = found - (N_UNITS + n_new) * allowance
        return promise

    def _rows(self, problem: Problem) -> IntArray:
        """Rows that ever train; of very many, some at random, but the same ones in every step."""
        rows = np.flatnonzero(problem.trains & (problem.weights > 0))
        if len(rows) > MOST_ROWS:
            key = np.array([self.seed, LAYER], dtype=np.uint64)
            chosen = np.random.Generator(np.random.Philox(key=key)).choice(len(rows), MOST_ROWS, replace=False)
            rows = rows[np.sort(chosen)]
        return rows

    def _units(self, inputs: FloatArray, n_units: int, n_new: int) -> tuple[FloatArray, FloatArray]:
        """Pre-activations (J, H) of random units, and weights (m, H) with which new columns add to them.

        The selected columns together weigh as much in them as the new ones together, and as the bias.
        """
        n_selected = inputs.shape[1]
        number = (LAYER, n_selected, n_units)
        weights = draw_weights(self.seed, number, n_selected + n_new, n_units)
        base = inputs @ weights[:n_selected] / max(1, n_selected) ** 0.5 + draw_biases(self.seed, number, n_units)
        return base, weights[n_selected:] / max(1, n_new) ** 0.5

    def _residuals(self, inputs: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
        """Leave-one-out residuals (J, Q) of a network on the selected columns: those in sample would be too small."""
        shares = weights / weights.sum()
        if not inputs.shape[1]:
            centred: FloatArray = targets - shares @ targets
            return centred
        blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, len(inputs), BLOCK_ROWS)]
        n_params = 1 + inputs.shape[1] + RESIDUAL_UNITS
        normal, moments = np.zeros((n_params, n_params)), np.zeros((n_params, targets.shape[1]))
        np.fill_diagonal(normal[1:, 1:], RESIDUAL_RIDGE)  # none for the intercept
        for block in blocks:
            design = self._design(inputs[block])
            normal += (design.T * weights[block]) @ design
            moments += (design.T * weights[block]) @ targets[block]
        inverse = np.linalg.inv(normal)
        coef, residuals = inverse @ moments, np.empty_like(targets)
        for block in blocks:
            design = self._design(inputs[block])
            freedom = 1 - weights[block] * ((design @ inverse) * design).sum(axis=1)
            residuals[block] = (targets[block] - design @ coef) / np.maximum(freedom, LEAST_FREEDOM)[:, None]
        residuals -= shares @ residuals
        return residuals

    def _design(self, inputs: FloatArray) -> FloatArray:
        """Intercept, selected columns and units of the network whose residuals are to be explained."""
        base, _ = self._units(inputs, RESIDUAL_UNITS, 0)
        return np.hstack([np.ones((len(inputs), 1)), inputs, np.maximum(base, 0)])


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: what they share, and the rows."""

    task: ScreenTask
    rows: IntArray


def _chunk_gains(problem: Problem, step: _Step, columns: IntArray) -> FloatArray:
    """Gains of a few candidates (n, m)."""
    values = scaled_columns(problem, columns.ravel(), step.rows, CLIP)
    return gains(step.task, values.reshape(*columns.shape, len(step.rows)))
