"""The compiled scorer once more, in plain numpy: for machines without a compiler, and for reading.

`gather`, `make_state`, `score`, `screen`, `use` and `current` stand in for the compiled functions of the same names.
Where those share sums between folds, and regressions between candidates, these train every network anew, on its own
rows, in float64.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import IntFlag
from itertools import pairwise

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.kernels.moments import Moments

__all__ = ["Phase", "State", "current", "gather", "make_state", "score", "screen", "use"]


class Phase(IntFlag):
    """What `score` does with a block of rows (see _task.h)."""

    LINEAR_SUMS = 1
    LINEAR_SOLVE = 2
    LAYER_START = 4
    LAYER_SUMS = 8
    LAYER_SOLVE = 16
    PREDICT = 32
    ALL = 63


class State:
    """What is kept of networks from block to block: for each candidate and fold, and for each draw of those."""

    def __init__(self, fit_intercept: bool) -> None:
        self.linear_sums: defaultdict[tuple[int, ...], Moments] = defaultdict(lambda: Moments(fit_intercept))
        self.layer_sums: defaultdict[tuple[int, ...], Moments] = defaultdict(lambda: Moments(fit_intercept))
        self.linear: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}
        self.layer: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}


def make_state(sizes: Sequence[int], flags: Sequence[bool]) -> State:
    """Make what `score` keeps of a chunk of candidates between blocks of rows."""
    return State(fit_intercept=flags[0])


def use(name: str) -> tuple[str, int]:
    """Say what computes and how many bytes its rows are padded to; there is nothing to choose from."""
    return current()


def current() -> tuple[str, int]:
    """Say what computes and how many bytes its rows are padded to."""
    return "numpy", 1


def gather(
    X: AnyArray,
    rows: IntArray,
    columns: IntArray,
    mean: FloatArray,
    scale: FloatArray,
    bound: float,
    out: FloatArray,
) -> None:
    """Write standardised columns of X, held within +-bound, to the rows of `out`, samples in the given order."""
    out[:] = X[np.ix_(rows, columns)].T
    out -= mean[:, None]
    out /= scale[:, None]
    np.clip(out, -bound, bound, out=out)


def score(
    arrays: Sequence[AnyArray],
    sizes: Sequence[int],
    flags: Sequence[bool],
    ridge: float,
    linear_ridge: float,
    norm_bound: float,
    phases: int,
    state: State | None,
) -> None:
    """Out-of-fold predictions of one-layer SSFNs, mean over the draws, written to the last of the arrays.

    A network's first layer holds the hidden units relu(Z), where Z is a random projection of its columns, and
    the linear units relu(Y) and relu(-Y), where Y is the ridge prediction of the targets from those columns.
    Its output layer is the ridge regression of the targets on the first layer, with a bound on its norm. Both
    regressions see nothing but a fold's training rows.
    """
    segments, selected, _, _, _, _, weights, _, columns, base, slot_weights, targets, out = arrays
    n_rows, n_units, n_slots = sizes[0], sizes[8], sizes[10]
    unit_norm, use_linear = flags[2], flags[3]
    state = make_state(sizes, flags) if state is None else state
    with_layers = phases & (Phase.LAYER_SUMS | Phase.PREDICT)
    for candidate, new in enumerate(columns):
        inputs = np.concatenate([selected[:, :n_rows], new]).T if use_linear else new.T
        hidden = np.zeros((base.shape[-3], n_rows, n_units))
        if with_layers:
            own_base = base[candidate] if base.ndim == 4 else base  # (n_draws, n_rows, padded n_units)
            projections = own_base + np.einsum("aj,dah->djh", new[:n_slots], slot_weights)
            hidden = _hidden_units(projections[:, :, :n_units], unit_norm)
        predictions = np.zeros((n_rows, targets.shape[1]))
        for fold, (first, last) in enumerate(pairwise(segments[1:])):
            network = candidate, fold
            judges, trains = slice(first, last), np.r_[0:first, last:n_rows]
            if use_linear and phases & Phase.LINEAR_SUMS:
                state.linear_sums[network].add(inputs[trains], targets[trains], weights[trains])
            if use_linear and phases & Phase.LINEAR_SOLVE:
                state.linear[network] = state.linear_sums[network].solve(ridge=linear_ridge)
            linear = np.zeros((n_rows, 0))
            if use_linear and with_layers:
                slopes, offset = state.linear[network]
                regression = inputs @ slopes + offset
                linear = np.maximum(np.hstack([regression, -regression]), 0)
            for draw, units in enumerate(hidden):
                layer = np.hstack([units, linear])
                if phases & Phase.LAYER_SUMS:
                    state.layer_sums[*network, draw].add(layer[trains], targets[trains], weights[trains])
                if phases & Phase.LAYER_SOLVE:
                    sums = state.layer_sums[*network, draw]
                    state.layer[*network, draw] = sums.solve(ridge=ridge, norm_bound=norm_bound or None)
                if phases & Phase.PREDICT:
                    coef, constant = state.layer[*network, draw]
                    predictions[judges] += (layer[judges] @ coef + constant) / len(hidden)
        if phases & Phase.PREDICT:
            out[candidate] = predictions


def _hidden_units(projections: AnyArray, unit_norm: bool) -> FloatArray:
    """Rectify projections (n_draws, n_rows, n_units); with `unit_norm` each sample's have norm one before."""
    values = projections.astype(np.float64)
    if unit_norm:
        norms = np.linalg.norm(values, axis=-1, keepdims=True)
        values /= np.where(norms > 0, norms, 1)
    return np.maximum(values, 0)


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
