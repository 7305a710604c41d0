"""Out-of-fold predictions of one-layer SSFNs, for a chunk of candidates at a time.

A `LayerTask` holds, as plain arrays, all that the candidates of one step share in a block of rows; `score_chunk` adds
the candidates' own columns and calls the compiled kernel. `score_blocks` does the same where there are so many rows
that they come in several blocks: nothing but sums is kept from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntFlag
from itertools import pairwise
from typing import Any

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.kernels import plain

_kernels: Any
try:
    from ngp.kernels import _kernels
except ImportError:  # not built: no compiler, or a source tree that was never installed
    _kernels = None

__all__ = [
    "LayerTask",
    "LinearFit",
    "LinearState",
    "Penalties",
    "gather_columns",
    "padded_width",
    "score_blocks",
    "score_chunk",
    "segment_moments",
    "whole_vectors",
]

# Row lengths of the double arrays that the kernel reads in whole vectors, whatever the instruction set.
ROW_MULTIPLE = 8


class Phase(IntFlag):
    """What the kernel does with a block of rows (see _task.h)."""

    LINEAR_SUMS = 1
    LINEAR_SOLVE = 2
    LAYER_START = 4
    LAYER_SUMS = 8
    LAYER_SOLVE = 16
    PREDICT = 32
    ALL = 63


def padded_width(n: int, dtype: np.dtype[np.floating]) -> int:
    """Smallest row length that holds n numbers and is a whole number of vectors."""
    lanes = _kernels.current()[1] // dtype.itemsize if _kernels else 1
    return int(-(-n // lanes) * lanes)


def whole_vectors(rows: AnyArray) -> AnyArray:
    """Rows of whole vectors of this machine, where one with shorter vectors has made them: zeros are appended."""
    missing = padded_width(rows.shape[-1], rows.dtype) - rows.shape[-1]
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)]) if missing else rows


def gather_columns(
    X: AnyArray, rows: IntArray, columns: IntArray, mean: FloatArray, scale: FloatArray, bound: float
) -> FloatArray:
    """Standardised columns of X, held within a bound, as rows of an array."""
    out = np.empty((len(columns), len(rows)))
    if len(rows):  # only what lies between the first and the last row is looked at
        first = int(rows.min())
        X, rows = X[first : int(rows.max()) + 1], rows - first
    gather = plain.gather
    if _kernels and X.dtype in (np.float32, np.float64) and X.dtype.isnative:
        gather = _kernels.gather
    gather(X, np.asarray(rows, np.int64), np.asarray(columns, np.int64), mean, scale, bound, out)
    return out


@dataclass(frozen=True)
class LinearState:
    """Ridge regressions of the targets on the selected columns, one for each fold of a round, for a block of rows.

    Shapes for K folds, k selected columns, Q outputs and J rows in fold order.
    """

    selected: FloatArray  # the columns, zero beyond J
    means: FloatArray  # their means over each fold's training rows; zeros without intercept
    inverse: FloatArray  # inverse of the ridge normal matrix of the (centred) training rows
    residual: FloatArray  # weighted residuals on training rows, zero elsewhere
    prediction: FloatArray  # predictions on all rows
    fold_weight: FloatArray  # sum of the training weights


def segment_moments(selected: FloatArray, targets: FloatArray, weights: FloatArray, segments: IntArray) -> FloatArray:
    """Weighted second moments of columns (k, J), targets (J, Q) and one, in each segment of the rows."""
    design = np.concatenate([selected, targets.T, np.ones((1, len(weights)))])
    parts = [slice(*bounds) for bounds in pairwise(segments)]
    return np.array([(design[:, rows] * weights[rows]) @ design[:, rows].T for rows in parts])


@dataclass(frozen=True)
class LinearFit:
    """What `LinearState` holds of all rows, and how to predict any of them.

    Shapes and attributes as there, and:
    """

    means: FloatArray
    inverse: FloatArray
    fold_weight: FloatArray
    slopes: FloatArray  # slopes of the regressions
    intercepts: FloatArray  # their intercepts

    @classmethod
    def of(cls, moments: FloatArray, n_columns: int, *, ridge: float, centred: bool) -> LinearFit:
        """Regress for all folds at once, from `segment_moments`: training sums are total minus fold sums."""
        inner = moments.sum(axis=0) - moments[1:]
        fold_weight = inner[:, -1, -1]
        means = inner[:, :-1, -1] / fold_weight[:, None] if centred else np.zeros(inner.shape[:2])[:, :-1]
        centred_moments = inner[:, :-1, :-1] - fold_weight[:, None, None] * means[:, :, None] * means[:, None, :]
        normal = centred_moments[:, :n_columns, :n_columns]
        normal = normal + ridge * np.eye(n_columns)
        try:
            inverse = np.linalg.inv(normal)
        except np.linalg.LinAlgError:  # columns that repeat others, so large that the ridge is a rounding error
            inverse = np.linalg.pinv(normal, hermitian=True)
        slopes = inverse @ centred_moments[:, :n_columns, n_columns:]
        intercepts = means[:, n_columns:] - np.einsum("fk,fkq->fq", means[:, :n_columns], slopes)
        arrays = means[:, :n_columns], inverse, fold_weight, slopes, intercepts
        return cls(*(np.ascontiguousarray(values) for values in arrays))

    def state(self, selected: FloatArray, targets: FloatArray, weights: FloatArray, segments: IntArray) -> LinearState:
        """Predictions and residuals of a block of rows; arguments as of `segment_moments`."""
        prediction = np.einsum("fkq,kj->fqj", self.slopes, selected, optimize=True) + self.intercepts[:, :, None]
        residual = weights * (targets.T - prediction)
        for fold in range(len(residual)):
            residual[fold, :, segments[fold + 1] : segments[fold + 2]] = 0
        n_columns, n_rows = selected.shape
        padded = np.zeros((n_columns, -(-n_rows // ROW_MULTIPLE) * ROW_MULTIPLE))
        padded[:, :n_rows] = selected
        rows = np.ascontiguousarray(residual), np.ascontiguousarray(prediction)
        return LinearState(padded, self.means, self.inverse, *rows, self.fold_weight)


@dataclass(frozen=True)
class Penalties:
    """How the linear part and the output layer are held back, and whether they have an intercept."""

    ridge: float  # of the output layer
    linear_ridge: float  # of the linear part
    intercept: bool


@dataclass(frozen=True)
class LayerTask:
    """What the candidates of one step share in one round, or in a block of its rows.

    Shapes for D draws, J rows in fold order, H hidden units, Q outputs. The width is H, padded.
    """

    segments: IntArray  # bounds of the rows that always train, then of the folds
    weights: FloatArray  # sample weights
    targets: AnyArray  # targets, in the precision of the computation
    base: AnyArray  # pre-activations from the selected columns, bias included
    slot_weights: AnyArray  # random weights that a candidate's first, second, … new column gets
    linear: LinearState  # state of the linear part
    n_units: int  # H
    penalties: Penalties


Blocks = Callable[[bool], Iterator[tuple[LayerTask, FloatArray]]]


def score_chunk(task: LayerTask, columns: FloatArray) -> AnyArray:
    """Out-of-fold predictions (n, J, Q) for candidates that all add m columns (n, m, J)."""
    if _kernels is None:
        return next(plain.score_blocks(lambda _: iter([(task, columns)])))
    out = np.empty((len(columns), *task.targets.shape), dtype=task.targets.dtype)
    widened = replace(task, base=whole_vectors(task.base), slot_weights=whole_vectors(task.slot_weights))
    _call(widened, columns, Phase.ALL, None, out)
    return out


def score_blocks(blocks: Blocks) -> Iterator[AnyArray]:
    """Out-of-fold predictions of some candidates as of `score_chunk`, from rows that come block by block.

    The numbers are the same but for rounding; sums over the blocks, and what is solved from them, are in double.
    ``blocks(False)`` may leave the pre-activations out.
    """
    if _kernels is None:
        yield from plain.score_blocks(blocks)
        return
    nothing, state = np.zeros(0), None
    for task, columns in blocks(False):
        state = _kernels.make_state(*_sizes(task, columns)) if state is None else state
        _call(task, columns, Phase.LINEAR_SUMS, state, nothing)
    phases = Phase.LINEAR_SOLVE | Phase.LAYER_START | Phase.LAYER_SUMS
    for task, columns in blocks(True):
        _call(task, columns, phases, state, nothing)
        phases = Phase.LAYER_SUMS
    phases = Phase.LAYER_SOLVE | Phase.PREDICT
    for task, columns in blocks(True):
        out = np.empty((len(columns), *task.targets.shape), dtype=task.targets.dtype)
        _call(task, columns, phases, state, out)
        phases = Phase.PREDICT
        yield out


def _sizes(task: LayerTask, columns: FloatArray) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Sizes and flags as the kernel wants them."""
    (n_rows, n_outputs), (n_draws, _, width) = task.targets.shape, task.base.shape
    n_selected, padded_rows = task.linear.selected.shape
    sizes = (
        n_rows, padded_rows, len(task.segments) - 2, n_outputs, n_selected, *columns.shape[:2], n_draws, task.n_units,
        width,
    )  # fmt: skip
    return sizes, (task.penalties.intercept, bool(np.any(task.weights != 1)), task.targets.dtype == np.float32)


def _call(task: LayerTask, columns: FloatArray, phases: Phase, state: Any, out: AnyArray) -> None:
    linear, penalties = task.linear, task.penalties
    arrays = (
        np.ascontiguousarray(task.segments, dtype=np.int64), linear.selected, linear.means, linear.inverse,
        linear.residual, linear.prediction, task.weights, linear.fold_weight, np.ascontiguousarray(columns),
        task.base, task.slot_weights, task.targets, out,
    )  # fmt: skip
    ridges = penalties.ridge, penalties.linear_ridge
    _kernels.score(arrays, *_sizes(task, columns), *ridges, int(phases), state)
