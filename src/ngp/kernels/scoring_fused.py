"""Out-of-fold predictions of one-layer SSFNs by the kernels of `ngp.kernels.layer_kernels`.

The same as `ngp.kernels.scoring_gpu.LayerStack` in single precision, without its trips to memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ngp._types import IntArray
from ngp.kernels.layer_kernels import add_predictions, find_shifts, solve_systems, sum_grams
from ngp.kernels.scoring_gpu import SHIFT_ROWS, LayerStack

__all__ = ["FusedStack", "fits"]

# Sizes up to which all fits into a multiprocessor's registers and shared memory.
MOST_UNITS = MOST_UNKNOWNS = MOST_TAIL = 128
LEAST_SIDE = 16  # of what is multiplied by the matrix units
# Instead of a fold's number, for samples that always train; -1 is what all folds have in common.
NO_FOLD = -2
# Samples that one program sums up: single precision isn't asked for more.
PIECE_ROWS = 4096
# How the kernels cut their work up, as measured on an H200.
GRAM = {"ROWS": 32, "num_warps": 8, "num_stages": 1}
SOLVE = {"BLOCK": 16, "num_warps": 1}
PREDICT = {"ROWS": 32, "num_warps": 4, "num_stages": 1}
PRECISION = "tf32x3"
# What is left of a pivot is no better than the rounding of what it was taken from (as in _solve.h).
PIVOT_ROUNDING = 8 * torch.finfo(torch.float32).eps
NO_LANE = -2


def _padded(n: int) -> int:
    return max(LEAST_SIDE, 1 << (n - 1).bit_length())


def fits(n_units: int, n_outputs: int, n_folds: int) -> bool:
    """Whether the kernels can score networks of this size."""
    tail, unknowns = 1 + n_outputs + 2 * n_outputs * n_folds, n_units + 1 + 2 * n_outputs
    return n_units <= MOST_UNITS and unknowns <= MOST_UNKNOWNS and tail <= MOST_TAIL


class Layout(NamedTuple):
    """Where everything stands in the kernels' arrays: it depends on sizes only."""

    units: int  # lanes of the hidden units and of the rest of a row, padded
    tail: int  # lanes of the hidden units and of the rest of a row, padded
    n_blocks: int  # blocks of unknowns in a system, and their number, padded
    size: int  # blocks of unknowns in a system, and their number, padded
    lanes: Tensor  # the lane of each unknown
    training: Tensor  # first sample, last one and fold of the pieces that train and that judge
    judging: Tensor  # first sample, last one and fold of the pieces that train and that judge
    counts: list[int]  # how many of the training pieces always train, then belong to each fold


@lru_cache(maxsize=16)
def _layout(n_units: int, n_outputs: int, intercept: bool, segments: tuple[int, ...], device: torch.device) -> Layout:
    n_folds = len(segments) - 2
    n_unknowns, n_tail = n_units + intercept + 2 * n_outputs, 1 + n_outputs + 2 * n_outputs * n_folds
    units, tail, n_blocks = _padded(n_units), _padded(n_tail), -(-n_unknowns // SOLVE["BLOCK"])
    size = max(2 * SOLVE["BLOCK"], _padded(n_blocks * SOLVE["BLOCK"]))
    lanes = np.full((n_folds, size), -1)
    lanes[:, :n_units] = np.arange(n_units)
    lanes[:, n_units : n_units + intercept] = units
    lanes[:, n_units + intercept : n_unknowns] = (
        units + 1 + n_outputs + np.arange(n_folds * 2 * n_outputs).reshape(n_folds, -1)
    )
    parts = [(*bounds, fold) for bounds, fold in zip(pairwise(segments), (NO_FOLD, *range(n_folds)), strict=True)]
    training, judging = (_cut(each) for each in (parts[:1] if n_folds == 1 else parts, parts[1:]))
    counts = [sum(fold == f for *_, fold in training) for f in (NO_FOLD, *range(n_folds))]

    def tensor(values: Any) -> Tensor:
        return torch.tensor(np.asarray(values, dtype=np.int32), device=device)

    return Layout(units, tail, n_blocks, size, tensor(lanes), tensor(training), tensor(judging), counts)


def _cut(parts: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Cut stretches of samples into pieces."""
    return [
        (start, min(start + PIECE_ROWS, last), fold)
        for first, last, fold in parts
        for start in range(first, last, PIECE_ROWS)
    ]


@dataclass(frozen=True)
class FusedStack(LayerStack):
    """What the candidates of one step share in one round, on a CUDA device; layers are in single precision."""

    @cached_property
    def _bases(self) -> Tensor:
        """Pre-activations from the selected columns, (D, 1 or 2, H, J): for candidates, and for the selection alone."""
        bases = [self.base] if self.alone is None else [self.base, self.alone.base]
        return torch.stack(bases, dim=1)

    @cached_property
    def _layout(self) -> Layout:
        sizes = self.random.shape[2], len(self.targets), self.penalties.intercept
        return _layout(*sizes, tuple(self.segments.tolist()), self.targets.device)

    @cached_property
    def _shared_tail(self) -> Tensor:
        """What candidates share of the tail, (tail, J): one, targets, plus and minus the linear predictions."""
        linear = self.regressions.prediction  # (K, Q, J)
        signed = torch.stack([linear, -linear], dim=1).flatten(0, 2)
        rows = torch.cat([torch.ones_like(self.targets[:1]), self.targets, signed]).float()
        return torch.nn.functional.pad(rows, (0, 0, 0, self._layout.tail - len(rows)))

    @staticmethod
    def candidate_bytes(n_new: int, n_units: int, targets: Tensor, segments: IntArray) -> int:
        """Memory that `predictions` takes for each candidate of so many columns, about."""
        (n_outputs, n_samples), n_folds = targets.shape, len(segments) - 2
        layout = _layout(n_units, n_outputs, True, tuple(segments.tolist()), targets.device)
        n_grams = len(layout.training) + 1 + (n_folds if len(layout.training) > n_folds > 1 else 0)
        matrices = (
            n_grams * (layout.units + layout.tail) ** 2 + n_folds * (layout.size + _padded(n_outputs)) * layout.size
        )
        by_sample = n_new * (12 + 28 * n_folds) + (12 * n_folds * n_outputs if n_new > 1 else 0) + 24 * n_outputs
        return 4 * matrices + n_samples * by_sample

    def predictions(self, columns: Tensor) -> Tensor:
        """Out-of-fold predictions of candidates."""
        given, n_added, n_judged = columns, len(columns), int(self.segments[-1] - self.segments[1])
        if self.alone is not None:
            columns = torch.nn.functional.pad(columns, (0, 0, 0, 0, 0, 1))
        tail = self._linear_tail(columns)
        judged = torch.zeros(len(columns), len(self.targets), n_judged, device=columns.device)
        failed = torch.zeros(len(columns), dtype=torch.bool, device=columns.device)
        narrow = columns.float()
        for draw in range(len(self.random)):
            failed |= self._add_draw(narrow, n_added, tail, draw, judged)
        if bool(failed.any()):  # rounding made a system indefinite: the plain way finds a larger ridge
            judged[failed] = self._plainly(given, failed)
        return judged

    def _plainly(self, columns: Tensor, chosen: Tensor) -> Tensor:
        """Predictions of some candidates, given by a mask, by plain operations."""
        plain = [LayerStack.predictions(replace(self, alone=None), columns[chosen[: len(columns)]])]
        if self.alone is not None and bool(chosen[-1]):
            plain.append(LayerStack.predictions(self.alone, columns[:1, :0]))
        return torch.cat(plain)

    def _linear_tail(self, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Slopes and offsets of the tail's lanes, (n, tail), and what the slopes are of, (n, n_rest, J)."""
        n, m, n_samples = columns.shape
        n_folds, n_outputs = len(self.folds), len(self.targets)
        lanes = torch.zeros(2, n, n_folds, 2, n_outputs, device=columns.device)  # slopes, offsets
        rest = torch.zeros(n, 1, n_samples if m == 0 else 0, device=columns.device)
        if m:
            slopes, offsets, left = self.regressions.updates(columns)
            lanes[1] = offsets.transpose(0, 1)[:, :, None]
            if m == 1:  # the same for all outputs
                lanes[0] = slopes[:, :, 0].transpose(0, 1)[:, :, None]
                rest = left[:, :, 0].transpose(0, 1)
            else:
                lanes[0] = 1
                rest = (slopes.mT @ left).transpose(0, 1).flatten(1, 2)
            lanes[:, :, :, 1].neg_()
        n_constant = 1 + n_outputs
        padded = torch.nn.functional.pad(
            lanes.flatten(2), (n_constant, self._layout.tail - n_constant - 2 * n_outputs * n_folds)
        )
        return padded[0], padded[1], rest.float().contiguous()

    def _add_draw(
        self, columns: Tensor, n_added: int, tail: tuple[Tensor, Tensor, Tensor], draw: int, judged: Tensor
    ) -> Tensor:
        """Add one draw's share of the predictions; returns where a system couldn't be solved."""
        n, m, n_samples = columns.shape
        layout, device = self._layout, columns.device
        units, width, size, outputs = layout.units, layout.units + layout.tail, layout.size, _padded(len(self.targets))
        n_units, n_outputs, n_folds = self.random.shape[2], len(self.targets), len(self.folds)
        layer = (self._bases[draw], self.random[draw, self.n_selected :].float(), columns)
        counted = (n_added, n_units, m, n_samples)
        shifts = torch.zeros(n, units, device=device)
        if self.penalties.intercept:
            find_shifts[(n,)](
                *layer, shifts, *counted, min(SHIFT_ROWS, n_samples), UNITS=units, ROWS=SHIFT_ROWS,
            )  # fmt: skip
        n_rest = tail[2].shape[1]
        linear = (n_outputs, n_rest, max(1, n_rest // n_folds))
        shape = {"UNITS": units, "TAIL": layout.tail}
        grams = torch.empty(n, len(layout.training), width, width, device=device)
        sum_grams[(n, len(layout.training))](
            *layer, shifts, self._shared_tail, *tail, self.regressions.weights.float(), layout.training, grams,
            *counted, *linear, len(layout.training), **shape, WEIGHTED=self.weighted,
            PRECISION=PRECISION, **GRAM,
        )  # fmt: skip
        totals, parts = _totals_and_parts(grams, layout.counts)
        scratch = torch.empty(n, n_folds, size + outputs, size, device=device)
        solutions = torch.zeros(n, n_folds, n_outputs, width, device=device)
        failed = torch.empty(n, n_folds, dtype=torch.int32, device=device)
        solve_systems[(n, n_folds)](
            totals, parts, layout.lanes, scratch, solutions, failed, n_folds, layout.n_blocks, n_outputs, width,
            units + 1, units if self.penalties.intercept else NO_LANE, self.penalties.ridge, PIVOT_ROUNDING, SIZE=size,
            OUTPUTS=outputs, HOLD_OUT=n_folds == 1, PRECISION=PRECISION, **SOLVE,
        )  # fmt: skip
        add_predictions[(n, len(layout.judging))](
            *layer, shifts, self._shared_tail, *tail, layout.judging, solutions, judged, *counted, *linear, n_folds,
            judged.shape[2], 1 / len(self.random), **shape, OUTPUTS=1 if n_outputs == 1 else outputs,
            PRECISION=PRECISION, **PREDICT,
        )  # fmt: skip
        return failed.any(dim=1)


def _totals_and_parts(grams: Tensor, counts: list[int]) -> tuple[Tensor, Tensor]:
    """Sums of all pieces, and of each fold's, from how many pieces always train, then belong to each fold."""
    totals = grams[:, 0] if grams.shape[1] == 1 else grams.sum(dim=1)
    if len(counts) == 2:  # a single fold, whose own pieces weren't summed
        return totals, totals
    if counts[0] == 0 and set(counts[1:]) == {1}:
        return totals, grams
    return totals, torch.stack([part.sum(dim=1) for part in grams.split(counts, dim=1)[1:]], dim=1)
