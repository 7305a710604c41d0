"""The scorer of torch against the plain numpy twin, on the CPU and wherever else torch runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from layer_cases import CASES, SAMPLE, Case, draw, losses, segment_bounds, tolerance, twin_losses
from layer_stacks import make_stack

from ngp.kernels.scoring_torch import FoldRegressions, training_sums

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)] if torch.cuda.is_available() else ["cpu"]


def scored(case: Case, device: str = "cpu", dtype: str = "float64") -> Any:
    stack, columns = make_stack(case, device, dtype)
    predictions = stack.predictions(columns)
    assert predictions.dtype == getattr(torch, dtype)
    always = int(segment_bounds(case)[1])
    return np.pad(predictions.mT.cpu().numpy(), ((0, 0), (always, 0), (0, 0)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "dtype"), [(n, "float64") for n in CASES] + [(n, "float32") for n in SAMPLE])
def test_equals_numpy_twin(name: str, dtype: str, device: str) -> None:
    case = CASES[name]
    predictions = scored(case, device, dtype)
    np.testing.assert_allclose(losses(predictions, case), twin_losses(case), rtol=tolerance(case, dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["plain", "m=5, Q=3", "weights real", "folds hold-out", "duplicated columns"])
def test_chunks_never_matter(name: str, device: str) -> None:
    stack, columns = make_stack(CASES[name], device)
    whole = stack.predictions(columns)
    for i in range(len(columns)):
        torch.testing.assert_close(stack.predictions(columns[i : i + 1]), whole[i : i + 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_no_predictions_where_rounding_makes_a_system_indefinite(device: str) -> None:
    case = Case(n_units=100, ridge=1e-9, columns="duplicated", n_selected=3)
    assert np.isnan(scored(case, device, "float32")).any()
    assert np.isfinite(scored(replace(case, ridge=0.1), device, "float32")).all()


def regressions(case: Case, device: str, ridge: Any) -> tuple[FoldRegressions, torch.Tensor]:
    numbers = {name: torch.tensor(values, device=device) for name, values in draw(case).items()}
    data = numbers["selected"], numbers["targets"].T, numbers["weights"], segment_bounds(case)
    return FoldRegressions(*data, ridge=ridge, centred=True), numbers["columns"]


@pytest.mark.parametrize("device", DEVICES)
def test_columns_that_repeat_each_other_with_hardly_a_ridge(device: str) -> None:
    case = Case(columns="duplicated", n_selected=6)
    hardly, none = (regressions(case, device, ridge)[0].prediction for ridge in (1e-20, 0.0))
    torch.testing.assert_close(hardly, none, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("folds", ["hold-out", "5", "folds + training rows"])
def test_training_sums_leave_out_what_judges(folds: str) -> None:
    bounds = segment_bounds(Case(folds=folds))
    numbers = torch.arange(float(bounds[-1]))
    sums = training_sums(bounds, lambda samples: numbers[samples].sum())
    for fold, total in enumerate(sums):
        trains = np.delete(numbers.numpy(), np.arange(bounds[fold + 1], bounds[fold + 2]))
        assert float(total) == trains.sum()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", ["groups", "folds loo", "little noise, Q=3"])
def test_a_chunk_takes_as_much_memory_as_was_said(name: str) -> None:
    stack, columns = make_stack(CASES[name], "cuda", "float32")
    columns = columns.repeat(200 // len(columns), 1, 1)
    stack.predictions(columns[:1])  # what is kept, and the libraries' own
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    stack.predictions(columns)
    taken = torch.cuda.max_memory_allocated() - before
    each = stack.candidate_bytes(columns.shape[1], stack.random.shape[2], stack.targets, stack.segments)
    assert taken / 1.5 < each * len(columns) < 5 * taken
