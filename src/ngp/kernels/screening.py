"""How much of some residuals each of many candidates explains, by a ridge regression on a few random units of its own.

A candidate with the columns x has the units relu(z + x r) - relu(z), where z comes from the columns that are selected
already: what those say alone cancels, what x says alone or together with them is left. The units, x itself and an
intercept regress the residuals; the gain is what that takes from their sum of squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.kernels import plain
from ngp.kernels.scoring import _kernels, padded_width, whole_vectors

__all__ = ["ScreenTask", "gains", "screen_task"]

SINGLE = np.dtype(np.float32)


@dataclass(frozen=True)
class ScreenTask:
    """What the candidates of one step share, in single precision; made by `screen_task`.

    A row has a place for each of H units, m new columns, the intercept and Q residuals, then padding. With the roots of
    the weights as factors, row j of a candidate is ``relu(base[j] + x[j] @ slot_weights) + x[j] @ places + shift[j]``.
    """

    base: AnyArray  # pre-activations from the selected columns, bias included; zero beyond the units
    shift: AnyArray  # what is added at the end: minus the units without the candidate, the intercept, the residuals
    slot_weights: AnyArray  # weights of the new columns; zero beyond the units
    places: AnyArray  # one where a new column itself stands, zero elsewhere
    ridge: AnyArray  # ridge of each parameter; none for the intercept
    roots: FloatArray  # roots of the sample weights
    n_outputs: int  # Q


def screen_task(
    base: FloatArray, slot_weights: FloatArray, residuals: FloatArray, weights: FloatArray, ridge: float
) -> ScreenTask:
    """Put together what the candidates of one step share."""
    (n_rows, n_units), n_new, n_outputs = base.shape, len(slot_weights), residuals.shape[1]
    intercept = n_units + n_new
    width = padded_width(intercept + 1 + n_outputs, SINGLE)
    roots = np.sqrt(weights)
    all_base, shift = np.zeros((2, n_rows, width))
    all_base[:, :n_units] = base
    shift[:, :n_units] = -np.maximum(base, 0)
    shift[:, intercept] = 1
    shift[:, intercept + 1 : intercept + 1 + n_outputs] = residuals
    slots, places = np.zeros((2, n_new, width))
    slots[:, :n_units] = slot_weights
    places[:, n_units:intercept] = np.eye(n_new)
    return ScreenTask(
        (all_base * roots[:, None]).astype(SINGLE),
        (shift * roots[:, None]).astype(SINGLE),
        slots.astype(SINGLE),
        places.astype(SINGLE),
        np.array([ridge] * intercept + [0], dtype=SINGLE),
        roots,
        n_outputs,
    )


def gains(task: ScreenTask, columns: FloatArray) -> FloatArray:
    """What each candidate takes from the weighted sum of the squared residuals, all outputs together."""
    columns = np.multiply(columns, task.roots, dtype=SINGLE, casting="same_kind")
    out = np.empty(len(columns))
    rows = [whole_vectors(each) for each in (task.base, task.shift, task.slot_weights, task.places)]
    sizes = (*columns.shape, task.n_outputs, len(task.ridge), rows[0].shape[1])
    (_kernels or plain).screen((columns, *rows, task.ridge, out), sizes)
    return out
