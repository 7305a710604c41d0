"""The compiled kernels once more, in plain numpy: for machines without a compiler, for tests, and for reading.

Where the compiled ones share sums between folds, and regressions between candidates, these train every network anew,
on its own rows, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.kernels.layers import hidden_units
from ngp.kernels.ridge import Moments

if TYPE_CHECKING:
    from ngp.kernels.scoring import Blocks, LayerTask

__all__ = ["gather", "score_blocks", "screen"]

Key = tuple[int, ...]  # of a regression: candidate and fold, and for the output layer the draw


def gather(
    X: AnyArray,
    rows: IntArray,
    columns: IntArray,
    mean: FloatArray,
    scale: FloatArray,
    bound: float,
    out: FloatArray,
) -> None:
    """Write standardised columns of X, clipped at +-bound, to the rows of `out`, samples in the given order."""
    out[:] = X[np.ix_(rows, columns)].T
    out -= mean[:, None]
    out /= scale[:, None]
    np.clip(out, -bound, bound, out=out)


def score_blocks(blocks: Blocks) -> Iterator[AnyArray]:
    """Out-of-fold predictions of one-layer SSFNs, mean over the draws, one block of rows after the other.

    A network's first layer holds the linear units relu(Y) and relu(-Y), where Y is the ridge prediction of the targets
    from its columns, and the hidden units relu(Z), where Z is a random projection of those columns. Its output layer is
    the ridge regression of the targets on the first layer. Both regressions see nothing but a fold's training rows.
    """
    linear = _regressions(blocks(False), _linear_features, lambda task: task.penalties.linear_ridge)

    def layers(task: LayerTask, columns: FloatArray) -> Iterator[tuple[Key, FloatArray, IntArray, slice]]:
        for (candidate, fold), inputs, trains, judges in _linear_features(task, columns):
            slopes, offset = linear[candidate, fold]
            projections = task.base + np.einsum("aj,dah->djh", columns[candidate], task.slot_weights)
            for draw, projection in enumerate(projections[:, :, : task.n_units].astype(np.float64)):
                yield (candidate, fold, draw), hidden_units(inputs @ slopes + offset, projection), trains, judges

    output = _regressions(blocks(True), layers, lambda task: task.penalties.ridge)
    for task, columns in blocks(True):
        out = np.zeros((len(columns), *task.targets.shape))
        for key, layer, _, judges in layers(task, columns):
            coef, constant = output[key]
            out[key[0], judges] += (layer[judges] @ coef + constant) / len(task.base)
        yield out.astype(task.targets.dtype)


def _linear_features(task: LayerTask, columns: FloatArray) -> Iterator[tuple[Key, FloatArray, IntArray, slice]]:
    """For each candidate and fold the inputs of all rows, the rows that train and those that judge."""
    n_rows = len(task.weights)
    for candidate, new in enumerate(columns):
        inputs = np.concatenate([task.linear.selected[:, :n_rows], new]).T
        for fold, (first, last) in enumerate(pairwise(task.segments[1:])):
            yield (candidate, fold), inputs, np.r_[0:first, last:n_rows], slice(first, last)


def _regressions(
    blocks: Iterator[tuple[LayerTask, FloatArray]],
    features: Callable[[LayerTask, FloatArray], Iterator[tuple[Key, FloatArray, IntArray, slice]]],
    ridge: Callable[[LayerTask], float],
) -> dict[Key, tuple[FloatArray, FloatArray]]:
    """Coefficients and intercepts of all regressions on some features."""
    sums: dict[Key, Moments] = {}
    for task, columns in blocks:
        for key, values, trains, _ in features(task, columns):
            moments = sums.setdefault(key, Moments(task.penalties.intercept))
            moments.add(values[trains], task.targets[trains], task.weights[trains])
    return {key: moments.solve([ridge(task)])[0] for key, moments in sums.items()}


def screen(arrays: Sequence[AnyArray], sizes: Sequence[int]) -> None:
    """Write what each candidate takes from the squared residuals to the last of the arrays."""
    columns, base, shift, slot_weights, places, ridge, out = (np.asarray(array, np.float64) for array in arrays)
    n_outputs, n_params = sizes[3:5]
    for candidate, new in enumerate(columns):
        rows = np.maximum(base + new.T @ slot_weights, 0) + new.T @ places + shift
        design, residuals = rows[:, :n_params], rows[:, n_params : n_params + n_outputs]
        moments = design.T @ residuals
        solution = np.linalg.solve(design.T @ design + np.diag(ridge), moments)
        out[candidate] = (moments * solution).sum()
