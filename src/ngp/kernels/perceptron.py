"""Perceptrons with one hidden layer on the CPU, by the compiled kernel: each is trained within the cache.

The same training as `ngp.kernels.networks`, which is its twin in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ngp._types import AnyArray, IntArray
from ngp.kernels.scoring import _kernels, padded_width

__all__ = ["LOSS_NUMBERS", "is_compiled", "pack_parameters", "train_perceptron"]

# As in _task.h.
LOSS_NUMBERS = {"squared_error": 0, "cross_entropy": 1, "hinge": 2}


def is_compiled() -> bool:
    """Whether the kernel is there."""
    return hasattr(_kernels, "perceptron")


def pack_parameters(layers: Sequence[AnyArray], dtype: str) -> AnyArray:
    """Parameters in the order of the kernel."""
    weights, biases, out_weights, out_biases = layers
    rows = np.concatenate([weights.T, biases[None], out_weights])
    width = padded_width(rows.shape[1], np.dtype(dtype))
    padded = np.zeros((len(rows), width), dtype)
    padded[:, : rows.shape[1]] = rows
    return np.concatenate([padded.ravel(), out_biases.astype(dtype)])


def train_perceptron(
    inputs: AnyArray,
    targets: AnyArray,
    start: AnyArray,
    plan: tuple[IntArray, AnyArray],
    judged: IntArray,
    *,
    n_units: int,
    rates: Sequence[float],
    weight_decay: float,
    loss: str,
) -> AnyArray:
    """Train one network by Adam, with learning rates that fall linearly to zero, and predict some rows."""
    dtype = inputs.dtype
    rows, shares = np.ascontiguousarray(plan[0], np.int64), np.ascontiguousarray(plan[1], dtype)
    out = np.empty((len(judged), targets.shape[1]), dtype)
    sizes = (inputs.shape[1], padded_width(n_units, dtype), targets.shape[1], *rows.shape, len(judged))
    arrays = (inputs, targets, start.copy(), rows, shares, np.ascontiguousarray(judged, np.int64), out)
    first, later = rates
    _kernels.perceptron(arrays, sizes, (first, later), weight_decay, LOSS_NUMBERS[loss], dtype == np.float32)
    return out
