"""The networks of `layer_cases` as the scorers by torch take them."""

from __future__ import annotations

import torch
from layer_cases import Case, draw, segment_bounds

from ngp.kernels.scoring import Penalties
from ngp.kernels.scoring_torch import FoldRegressions, LayerStack


def make_stack(
    case: Case, device: str = "cpu", dtype: str = "float64", make: type[LayerStack] = LayerStack
) -> tuple[LayerStack, torch.Tensor]:
    numbers = {name: torch.tensor(values, device=device) for name, values in draw(case).items()}
    penalties = Penalties(case.ridge, case.linear_ridge, case.intercept)
    data = numbers["selected"], numbers["targets"].T, numbers["weights"], segment_bounds(case)
    regressions = FoldRegressions(*data, ridge=case.linear_ridge, centred=case.intercept)
    layers, weighted = (numbers["R"], numbers["bias"][:, 0]), case.weights != "none"
    stack = make(regressions, *layers, penalties, getattr(torch, dtype), weighted)
    return stack, numbers["columns"]
