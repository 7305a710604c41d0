"""Out-of-fold predictions of one-layer SSFNs, for a chunk of candidates at a time.

A `LayerTask` holds, as plain arrays, all that the candidates of one step share; `score_chunk` adds the candidates' own
columns and calls the compiled kernel. Both travel to other threads and processes as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.compute import fallback
from ngp.compute.layers import Penalties

_kernels: ModuleType
try:
    from ngp.compute import _kernels
except ImportError:  # not built: no compiler, or a source tree that was never installed
    _kernels = fallback

__all__ = ["LayerTask", "LinearState", "gather_columns", "linear_state", "padded_width", "score_chunk"]

# Row lengths of the double arrays that the kernel reads in whole vectors, whatever the instruction set.
ROW_MULTIPLE = 8


def padded_width(n: int, dtype: np.dtype[np.floating]) -> int:
    """Smallest row length that holds n numbers and is a whole number of vectors.

    Examples
    --------
    >>> padded_width(102, np.dtype("float32")) % 4
    0
    """
    lanes = max(1, _kernels.current()[1] // dtype.itemsize)
    return int(-(-n // lanes) * lanes)


def gather_columns(
    X: AnyArray, rows: IntArray, columns: IntArray, mean: FloatArray, scale: FloatArray, bound: float
) -> FloatArray:
    """Standardised columns of X, held within a bound, as rows of an array.

    Parameters
    ----------
    X : array of shape (n_samples, n_columns)
        Numbers of any type and memory order.
    rows, columns : int arrays
        What to take, in this order.
    mean, scale : float arrays, one entry per taken column
        What to take away, and what to divide by.
    bound : float
        Largest absolute value of the result.

    Examples
    --------
    >>> X = np.array([[1, 2], [3, 8]])
    >>> gather_columns(X, np.array([1, 0]), np.array([1, 0]), np.array([2.0, 1.0]), np.array([2.0, 1.0]), 2.5)
    array([[2.5, 0. ], [2. , 0. ]])
    """
    out = np.empty((len(columns), len(rows)))
    compiled = X.dtype in (np.float32, np.float64) and X.dtype.isnative
    gather = _kernels.gather if compiled else fallback.gather
    gather(X, np.asarray(rows, np.int64), np.asarray(columns, np.int64), mean, scale, bound, out)
    return out


@dataclass(frozen=True)
class LinearState:
    """Ridge regressions of the targets on the selected columns, one for each fold of a round.

    Shapes for K folds, k selected columns, Q outputs and J rows in fold order.

    Attributes
    ----------
    selected : (k, J padded)
        The columns, zero beyond J.
    means : (K, k)
        Their means over each fold's training rows; zeros without intercept.
    inverse : (K, k, k)
        Inverse of the ridge normal matrix of the (centred) training rows.
    residual : (K, Q, J)
        Weighted residuals on training rows, zero elsewhere.
    prediction : (K, Q, J)
        Predictions on all rows.
    fold_weight : (K,)
        Sum of the training weights.
    """

    selected: FloatArray
    means: FloatArray
    inverse: FloatArray
    residual: FloatArray
    prediction: FloatArray
    fold_weight: FloatArray


def linear_state(
    selected: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    segments: IntArray,
    *,
    ridge: float,
    centred: bool,
) -> LinearState:
    """Regress on the columns `selected` (k, J), for all folds at once: training sums are total minus fold sums."""
    n_columns, n_rows = selected.shape
    n_folds = len(segments) - 2
    design = np.concatenate([selected, targets.T, np.ones((1, n_rows))])  # k + Q + 1 rows
    total = (design * weights) @ design.T
    inner = np.empty((n_folds, *total.shape))
    for fold in range(n_folds):
        rows = slice(*segments[fold + 1 : fold + 3])
        inner[fold] = total - (design[:, rows] * weights[rows]) @ design[:, rows].T
    fold_weight = inner[:, -1, -1]
    means = inner[:, :-1, -1] / fold_weight[:, None] if centred else np.zeros((n_folds, len(design) - 1))
    moments = inner[:, :-1, :-1] - fold_weight[:, None, None] * means[:, :, None] * means[:, None, :]
    normal = moments[:, :n_columns, :n_columns]
    if ridge > 0:
        inverse = np.linalg.inv(normal + ridge * np.eye(n_columns))
    else:  # columns may repeat each other
        inverse = np.linalg.pinv(normal, rcond=1e-11, hermitian=True)
    slopes = inverse @ moments[:, :n_columns, n_columns:]  # (K, k, Q)
    intercepts = means[:, n_columns:] - np.einsum("fk,fkq->fq", means[:, :n_columns], slopes)
    prediction = np.einsum("fkq,kj->fqj", slopes, selected, optimize=True) + intercepts[:, :, None]
    residual = weights * (targets.T - prediction)
    for fold in range(n_folds):
        residual[fold, :, segments[fold + 1] : segments[fold + 2]] = 0
    padded = np.zeros((n_columns, -(-n_rows // ROW_MULTIPLE) * ROW_MULTIPLE))
    padded[:, :n_rows] = selected
    return LinearState(
        padded,
        np.ascontiguousarray(means[:, :n_columns]),
        np.ascontiguousarray(inverse),
        np.ascontiguousarray(residual),
        np.ascontiguousarray(prediction),
        np.ascontiguousarray(fold_weight),
    )


@dataclass(frozen=True)
class LayerTask:
    """What the candidates of one step share in one round.

    Shapes for D draws, J rows in fold order, H hidden units, Q outputs. The width is H, padded.

    Attributes
    ----------
    segments : (K + 2,)
        Bounds of the rows that always train, then of the folds.
    weights : (J,)
        Sample weights.
    targets : (J, Q)
        Targets, in the precision of the computation.
    base : (D, J, width) or (n_candidates, D, J, width)
        Pre-activations from the selected columns, bias included; with the extra axis, complete ones for each candidate.
    slot_weights : (D, n_slots, width)
        Random weights that a candidate's first, second, … new column gets; no slots where `base` is complete.
    linear : LinearState or None
        State of the linear part; None leaves it out.
    n_units : int
        H.
    penalties : Penalties
        Penalties, intercept and normalisation.
    """

    segments: IntArray
    weights: FloatArray
    targets: AnyArray
    base: AnyArray
    slot_weights: AnyArray
    linear: LinearState | None
    n_units: int
    penalties: Penalties

    def with_base(self, base: AnyArray) -> LayerTask:
        """Return the task with complete pre-activations for each candidate, so that no slots are left to add."""
        return replace(self, base=base, slot_weights=self.slot_weights[:, :0])


def _widened(task: LayerTask) -> LayerTask:
    """The task with whole vectors of this machine, where one with shorter vectors has made it."""
    width = task.base.shape[-1]
    missing = padded_width(width, task.base.dtype) - width
    if missing == 0:
        return task
    base, slots = (np.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, missing)]) for each in (task.base, task.slot_weights))
    return replace(task, base=base, slot_weights=slots)


def score_chunk(task: LayerTask, columns: FloatArray) -> AnyArray:
    """Out-of-fold predictions for some candidates that add equally many columns.

    Parameters
    ----------
    task : LayerTask
        What they share.
    columns : array of shape (n_candidates, n_new_columns, J)
        The candidates' new columns, rows in fold order.

    Returns
    -------
    array of shape (n_candidates, J, Q)
        Mean predictions over the draws; zero in rows that always train.
    """
    task = _widened(task)
    n_rows, n_outputs = task.targets.shape
    n_folds, n_candidates = len(task.segments) - 2, len(columns)
    n_draws, _, width = task.base.shape[-3:]
    nothing = np.zeros(0)
    linear = task.linear or LinearState(np.zeros((0, 0)), nothing, nothing, nothing, nothing, nothing)
    out = np.empty((n_candidates, n_rows, n_outputs), dtype=task.targets.dtype)
    arrays = (
        np.ascontiguousarray(task.segments, dtype=np.int64), linear.selected, linear.means, linear.inverse,
        linear.residual, linear.prediction, task.weights, linear.fold_weight, np.ascontiguousarray(columns),
        task.base, task.slot_weights, task.targets, out,
    )  # fmt: skip
    sizes = (
        n_rows, linear.selected.shape[1], n_folds, n_outputs, linear.selected.shape[0], n_candidates,
        columns.shape[1], n_draws, task.n_units, width, task.slot_weights.shape[1],
        n_draws * n_rows * width if task.base.ndim == 4 else 0,
    )  # fmt: skip
    penalties = task.penalties
    flags = (
        penalties.intercept, penalties.intercept, penalties.unit_norm, task.linear is not None,
        bool(np.any(task.weights != 1)), task.targets.dtype == np.float32,
    )  # fmt: skip
    _kernels.score(arrays, sizes, flags, penalties.ridge, penalties.linear_ridge, penalties.norm_bound or 0.0)
    return out
