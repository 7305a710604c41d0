"""The networks of `layer_cases` as arrays for the scorers."""

from __future__ import annotations

from typing import Any

import numpy as np
from layer_cases import Case, draw, segment_bounds

from ngp.kernels import scoring
from ngp.kernels.layers import Penalties
from ngp.kernels.scoring import LayerTask, linear_state

DTYPES = ("float64", "float32")


def make_case(
    case: Case, dtype: str = "float64", instruction_set: str = "", targets: Any = None
) -> tuple[LayerTask, Any]:
    """Switch to an instruction set and put a case into arrays for the scorer, padded for that set."""
    numbers = draw(case)
    targets = numbers["targets"] if targets is None else targets
    selected, columns, R, weights = (numbers[name] for name in ("selected", "columns", "R", "weights"))
    segments, k = segment_bounds(case), case.n_selected
    projections = np.einsum("kj,dkh->djh", selected, R[:, :k]) + numbers["bias"]
    slots = R[:, k:]
    if case.own_base:
        projections = projections + np.einsum("naj,dah->ndjh", columns, slots)
        slots = slots[:, :0]
    vector_bytes = scoring._kernels.use(instruction_set)[1]
    padding = -case.n_units % max(1, vector_bytes // np.dtype(dtype).itemsize)
    linear = linear_state(selected, targets, weights, segments, ridge=case.linear_ridge, centred=case.intercept)
    task = LayerTask(
        segments, weights, targets.astype(dtype),
        pad(projections, padding, dtype), pad(slots, padding, dtype),
        linear if case.linear else None, case.n_units,
        Penalties(case.ridge, case.linear_ridge, case.norm_bound, case.intercept, case.unit_norm),
    )  # fmt: skip
    return task, columns


def pad(array: Any, n: int, dtype: str) -> Any:
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, n)]).astype(dtype)
