"""What a selection leaves unexplained: the residuals of a small network on the selected columns.

Screening and the test of significance ask whether a candidate knows something about them. Whatever the predictor is,
this network is the same: one layer of random units beside the columns themselves, with the ridge that has the smallest
leave-one-out errors. Its residuals are those errors: residuals in sample would be too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.predictors.base import scaled_columns

__all__ = ["CLIP", "Unexplained", "rows_read", "unit_layer"]

N_UNITS = 100
RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)  # beside weights with mean one
LEAST_FREEDOM = 0.05  # the share of its residual that a row keeps at least: it bounds the leave-one-out errors
ROUNDING, SINGLE_ROUNDING = 1e-9, 3e-7
LEAST_VARIANCE = 1e-10  # relative to the largest: less is rounding
CLIP = 4.0
# The predictors' layers are numbered by their draws: these stand apart.
LAYER = 2**62
# Rows that are read at most: so many tell good candidates from bad ones, and more take longer.
MOST_ROWS = 2**14


def rows_read(problem: Problem, seed: int) -> IntArray:
    """Rows that ever train; of very many, some at random, but the same ones in every step."""
    rows = np.flatnonzero(problem.trains & (problem.weights > 0))
    if len(rows) > MOST_ROWS:
        key = np.array([seed, LAYER], dtype=np.uint64)
        chosen = np.random.Generator(np.random.Philox(key=key)).choice(len(rows), MOST_ROWS, replace=False)
        rows = rows[np.sort(chosen)]
    return rows


def selected_inputs(problem: Problem, selected: IntArray, rows: IntArray) -> FloatArray:
    """The selected columns (J, k), standardised and clipped."""
    return scaled_columns(problem, selected, rows, CLIP).T


def unit_layer(inputs: FloatArray, seed: int, n_units: int, n_new: int) -> tuple[FloatArray, FloatArray]:
    """Pre-activations (J, H) of random units, and weights (m, H) with which new columns add to them.

    The selected columns together weigh as much in them as the new ones together, and as the bias.
    """
    n_selected = inputs.shape[1]
    number = (LAYER, n_selected, n_units)
    weights = draw_weights(seed, number, n_selected + n_new, n_units)
    base = inputs @ weights[:n_selected] / max(1, n_selected) ** 0.5 + draw_biases(seed, number, n_units)
    return base, weights[n_selected:] / max(1, n_new) ** 0.5


@dataclass(frozen=True, eq=False)
class Unexplained:
    """What a network on the selected columns leaves unexplained of some rows, and how much less it is with others."""

    rows: IntArray
    inputs: FloatArray  # the selected columns (J, k)
    targets: FloatArray  # scaled, with mean zero (J, Q)
    weights: FloatArray  # of the rows, one on average
    residuals: FloatArray  # leave-one-out, with mean zero (J, Q)
    ridge: float  # of the network; infinite if nothing is selected
    seed: int

    @classmethod
    def of(cls, problem: Problem, selected: IntArray, rows: IntArray, seed: int) -> Unexplained:
        """What some columns leave unexplained."""
        mean, scale = problem.target_scales
        inputs = selected_inputs(problem, selected, rows)
        weights = problem.weights[rows] / problem.weights[rows].mean()
        targets = (problem.targets[rows] - mean) / scale
        targets = targets - np.average(targets, axis=0, weights=weights)
        if not inputs.shape[1]:
            return cls(rows, inputs, targets, weights, targets, np.inf, seed)
        base, _ = unit_layer(inputs, seed, N_UNITS, 0)
        residuals, ridge = leave_one_out(np.hstack([inputs, np.maximum(base, 0)]), targets, weights)
        residuals = residuals - np.average(residuals, axis=0, weights=weights)
        return cls(rows, inputs, targets, weights, residuals, ridge, seed)

    def errors_with(self, candidates: Sequence[FloatArray]) -> FloatArray:
        """Mean squared leave-one-out errors of the network with each candidate's columns (m, J) beside those selected.

        In single precision: hundreds of them are compared with each other.
        """
        inputs, roots = self.inputs.astype(np.float32), np.sqrt(self.weights)[:, None].astype(np.float32)
        layers = {
            n_new: [values.astype(np.float32) for values in unit_layer(self.inputs, self.seed, N_UNITS, n_new)]
            for n_new in {len(each) for each in candidates}
        }
        return np.array(
            [self._error_with(inputs, roots, each.astype(np.float32), *layers[len(each)]) for each in candidates]
        )

    def _error_with(
        self, inputs: AnyArray, roots: AnyArray, columns: AnyArray, base: AnyArray, slots: AnyArray
    ) -> float:
        n_linear = inputs.shape[1] + len(columns)
        design = np.empty((len(base), n_linear + N_UNITS), np.float32)
        design[:, :n_linear] = np.hstack([inputs, columns.T])
        np.maximum(base + columns.T @ slots, 0, out=design[:, n_linear:])
        shares = self.weights / self.weights.sum()
        design -= shares.astype(np.float32) @ design
        design *= roots
        gram = design.T @ design
        gram[np.diag_indices_from(gram)] += max(self.ridge, SINGLE_ROUNDING * gram.trace())
        vectors = solve_triangular(np.linalg.cholesky(gram), design.T, lower=True, check_finite=False)
        inner = self.targets - vectors.T @ (vectors @ (roots * self.targets.astype(np.float32))) / roots
        freedom = 1 - np.einsum("ij,ij->j", vectors, vectors) - shares
        errors = inner / np.maximum(freedom, LEAST_FREEDOM)[:, None]
        return float(shares @ (errors**2).sum(axis=1))


def leave_one_out(design: FloatArray, targets: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Leave-one-out residuals of a ridge regression with the ridge for which they are smallest, and that ridge."""
    roots = np.sqrt(weights)[:, None]
    centred = roots * (design - np.average(design, axis=0, weights=weights))
    if len(centred) < centred.shape[1]:
        vectors, deviations, _ = np.linalg.svd(centred, full_matrices=False)
        variances = deviations**2
    else:
        variances, basis = np.linalg.eigh(centred.T @ centred)
        vectors = centred @ (basis / np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny)))
    large = variances > LEAST_VARIANCE * variances.max()
    vectors, variances = vectors[:, large], variances[large]
    inside, squares = vectors.T @ (roots * targets), vectors**2
    best, smallest = (targets, np.inf), np.inf
    for ridge in RIDGES:
        shares = variances / (variances + ridge)
        freedom = 1 - squares @ shares - weights / weights.sum()
        inner = targets - vectors @ (shares[:, None] * inside) / roots
        # Bounded errors would favour a ridge with which nearly all rows are fitted.
        errors = inner / np.maximum(freedom, ROUNDING)[:, None]
        if (size := float(weights @ (errors**2).sum(axis=1))) < smallest:
            best, smallest = (inner / np.maximum(freedom, LEAST_FREEDOM)[:, None], ridge), size
    return best
