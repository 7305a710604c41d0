"""The kernels that score layers on a GPU against the plain numpy twin: on a CUDA device, or in Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from layer_cases import CASES, Case, losses, segment_bounds, tolerance, twin_losses
from layer_stacks import make_stack

pytest.importorskip("triton", reason="triton isn't installed")

from ngp.kernels import scoring_triton
from ngp.kernels.scoring_torch import LayerStack
from ngp.kernels.scoring_triton import FusedStack, fits

# Without a CUDA device, conftest.py has Triton interpret its kernels: slowly, so that not all cases are tried.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = (
    "plain", "m=5, Q=3", "k=0", "folds uneven", "folds hold-out", "folds folds + training rows", "weights real",
    "weights integer, hold-out", "H=17", "draws", "no intercept", "rare columns", "m=0, Q=3",
)  # fmt: skip


def smaller(case: Case) -> Case:
    """Few candidates, each of which is interpreted by itself, draws, folds and units."""
    n_units = 8 if case.n_units == 16 else case.n_units
    folds = "2" if case.folds == "5" else case.folds
    few = {"n_candidates": min(case.n_candidates, 2), "n_draws": min(case.n_draws, 2)}
    return replace(case, n_units=n_units, folds=folds, **few)


FITTING = {
    name: case if DEVICE == "cuda" else smaller(case)
    for name, case in CASES.items()
    if fits(case.n_units, case.n_outputs, len(segment_bounds(case)) - 2)
}


def fused(case: Case) -> tuple[LayerStack, torch.Tensor]:
    return make_stack(case, DEVICE, "float32", FusedStack)


def padded(predictions: torch.Tensor, case: Case) -> np.ndarray:
    always = int(segment_bounds(case)[1])
    return np.pad(predictions.mT.cpu().numpy(), ((0, 0), (always, 0), (0, 0)))


@pytest.mark.parametrize("name", FITTING if DEVICE == "cuda" else INTERPRETED)
def test_equals_numpy_twin(name: str) -> None:
    case = FITTING[name]
    stack, columns = fused(case)
    predictions = stack.predictions(columns)
    assert predictions.dtype == torch.float32
    found = losses(padded(predictions, case), case)
    np.testing.assert_allclose(found, twin_losses(case), rtol=tolerance(case, "float32"))


def test_cases_that_do_not_fit_are_few() -> None:
    assert len(FITTING) > 30
    assert not fits(129, 1, 5)
    assert not fits(100, 14, 1)
    assert not fits(16, 1, 83)


@pytest.mark.parametrize("name", ["m=5, Q=3", "folds hold-out"])
def test_the_selection_alone_comes_last(name: str) -> None:
    case = FITTING[name]
    stack, columns = fused(case)
    alone = replace(stack, random=0.7 * stack.random[:, : stack.n_selected])
    both = replace(stack, alone=alone).predictions(columns)
    torch.testing.assert_close(both[:-1], stack.predictions(columns), rtol=1e-4, atol=1e-4)
    plain = LayerStack(*(getattr(alone, name) for name in ("regressions", "random", "biases", "penalties", "dtype")))
    torch.testing.assert_close(both[-1:], plain.predictions(columns[:1, :0]), rtol=1e-4, atol=1e-4)
    plain = replace(plain, random=stack.random, alone=alone)
    torch.testing.assert_close(both, plain.predictions(columns), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["folds hold-out", "folds folds + training rows", "weights real"])
def test_pieces_of_the_samples_never_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stack, columns = fused(FITTING[name])
    whole = stack.predictions(columns)
    monkeypatch.setattr(scoring_triton, "PIECE_ROWS", 20)
    scoring_triton._layout.cache_clear()
    cut = fused(FITTING[name])[0].predictions(columns)
    scoring_triton._layout.cache_clear()
    torch.testing.assert_close(cut, whole, rtol=1e-4, atol=1e-4)


def test_chunks_never_matter() -> None:
    stack, columns = fused(FITTING["m=5, Q=3"])
    whole = stack.predictions(columns)
    for i in range(len(columns)):
        torch.testing.assert_close(stack.predictions(columns[i : i + 1]), whole[i : i + 1], rtol=0, atol=0)


@pytest.mark.parametrize("alone", [False, True])
def test_no_predictions_where_rounding_makes_a_system_indefinite(alone: bool) -> None:
    case = Case(n_units=60, ridge=1e-9, columns="duplicated", n_selected=3, folds="2")
    stack, columns = fused(case)
    if alone:
        stack = replace(stack, alone=replace(stack, random=stack.random[:, : stack.n_selected]))
    predictions = stack.predictions(columns)
    assert len(predictions) == len(columns) + alone
    assert np.isnan(predictions.cpu().numpy()).any()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", ["groups", "plain", "folds hold-out", "little noise, Q=3"])
def test_a_chunk_takes_as_much_memory_as_was_said(name: str) -> None:
    stack, columns = fused(FITTING[name])
    columns = columns.repeat(2000 // len(columns), 1, 1)
    stack.predictions(columns[:1])  # what is kept, and the libraries' own
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    stack.predictions(columns)
    taken = torch.cuda.max_memory_allocated() - before
    each = stack.candidate_bytes(columns.shape[1], stack.random.shape[2], stack.targets, stack.segments)
    assert taken / 1.5 < each * len(columns) < 5 * taken
