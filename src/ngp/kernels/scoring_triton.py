"""Out-of-fold predictions of one-layer SSFNs by Triton: of a layer only the Gram matrices leave the chip.

The same as `ngp.kernels.scoring_torch.LayerStack` in single precision. A sample's row is
[hidden units | 1, targets, linear units of every fold], the two parts padded to powers of two: lanes. As in _rows.h,
the linear units of a fold are zero on the samples that it judges, so that one Gram matrix for each piece of the
samples holds the normal equations of all folds.

The first `n_added` candidates share one `base`, the pre-activations from the selection; the next one, if there is one,
is the selection as it is: it has a base of its own, and columns of zeros.

Products of rows are taken apart into three of eleven binary digits each (PRECISION "tf32x3"), which the matrix units
multiply faster than the others multiply single precision, and no less precisely.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from ngp._types import IntArray
from ngp.kernels.scoring_torch import SHIFT_ROWS, LayerStack

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
        n_added, n_judged = len(columns), int(self.segments[-1] - self.segments[1])
        if self.alone is not None:
            columns = torch.nn.functional.pad(columns, (0, 0, 0, 0, 0, 1))
        tail = self._linear_tail(columns)
        judged = torch.zeros(len(columns), len(self.targets), n_judged, device=columns.device)
        failed = torch.zeros(len(columns), dtype=torch.bool, device=columns.device)
        narrow = columns.float()
        for draw in range(len(self.random)):
            failed |= self._add_draw(narrow, n_added, tail, draw, judged)
        judged[failed] = torch.nan  # rounding made a system indefinite
        return judged

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


# ---------------------------------------------------------------- kernels


@triton.jit
def _units(  # type: ignore[no-untyped-def]
    base, slots, columns, row, known, n_units, n_new, n_rows, UNITS: tl.constexpr
):
    """Hidden units (UNITS, rows) before their shift."""
    unit = tl.arange(0, UNITS)
    real = (unit < n_units)[:, None] & known[None, :]
    z = tl.load(base + unit[:, None] * n_rows + row[None, :], mask=real, other=0.0)
    for a in range(n_new):
        x = tl.load(columns + a * n_rows + row, mask=known, other=0.0)
        z += tl.load(slots + a * n_units + unit, mask=unit < n_units, other=0.0)[:, None] * x[None, :]
    return tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _shifted(  # type: ignore[no-untyped-def]
    base, slots, columns, shift, row, known, n_units, n_new, n_rows,
    UNITS: tl.constexpr,
):  # fmt: skip
    """Hidden units (UNITS, rows); zero beyond the real ones."""
    z = _units(base, slots, columns, row, known, n_units, n_new, n_rows, UNITS) - shift[:, None]
    return tl.where((tl.arange(0, UNITS) < n_units)[:, None] & known[None, :], z, 0.0)


@triton.jit
def _fold_of(lane, n_outputs):  # type: ignore[no-untyped-def]
    """The fold of a lane's linear units; -1 for what all folds have in common."""
    return tl.where(lane > n_outputs, (lane - 1 - n_outputs) // (2 * n_outputs), -1)


@triton.jit
def _tail(  # type: ignore[no-untyped-def]
    shared, slopes, offsets, rest, row, known, n_outputs, n_rest, per_fold, n_rows,
    TAIL: tl.constexpr,
):  # fmt: skip
    """The rest of the rows (TAIL, rows): 1, targets, and relu(shared + slope * rest - offset).

    There are `per_fold` rests for a fold, one for all outputs or one for each.
    """
    lane = tl.arange(0, TAIL)
    mask = (lane >= 0)[:, None] & known[None, :]
    value = tl.load(shared + lane[:, None] * n_rows + row[None, :], mask=mask, other=0.0)
    linear = lane > n_outputs
    at = _fold_of(lane, n_outputs) * per_fold + (lane - 1 - n_outputs) % n_outputs % per_fold
    found = linear & (at < n_rest)
    x = tl.load(rest + at[:, None] * n_rows + row[None, :], mask=mask & found[:, None], other=0.0)
    y = value + tl.load(slopes + lane)[:, None] * x - tl.load(offsets + lane)[:, None]
    y = tl.where(linear[:, None], tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL), value)
    return tl.where(mask, y, 0.0)


@triton.jit
def find_shifts(  # type: ignore[no-untyped-def]
    base, slots, columns, shifts, n_added, n_units, n_new, n_rows, n_first,
    UNITS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Mean of each unit over the first samples: what it is shifted by."""
    candidate = tl.program_id(0).to(tl.int64)
    base += (candidate >= n_added) * n_units * n_rows
    row = tl.arange(0, ROWS)
    known = row < n_first
    z = _units(base, slots, columns + candidate * n_new * n_rows, row, known, n_units, n_new, n_rows, UNITS)
    mean = tl.sum(tl.where(known[None, :], z, 0.0), axis=1) / n_first
    unit = tl.arange(0, UNITS)
    tl.store(shifts + candidate * UNITS + unit, tl.where(unit < n_units, mean, 0.0))


@triton.jit
def sum_grams(  # type: ignore[no-untyped-def]
    base, slots, columns, shifts, shared, slopes, offsets, rest, weights, pieces, grams,
    n_added, n_units, n_new, n_rows, n_outputs, n_rest, per_fold, n_pieces,
    UNITS: tl.constexpr, TAIL: tl.constexpr, ROWS: tl.constexpr, WEIGHTED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Gram matrices of the rows, (n_candidates, n_pieces, UNITS + TAIL, UNITS + TAIL), their lower left half."""
    candidate, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, last = tl.load(pieces + 3 * piece), tl.load(pieces + 3 * piece + 1)
    fold = tl.load(pieces + 3 * piece + 2)
    unit, lane = tl.arange(0, UNITS), tl.arange(0, TAIL)
    base += (candidate >= n_added) * n_units * n_rows
    columns += candidate * n_new * n_rows
    rest += candidate * n_rest * n_rows
    slopes += candidate * TAIL
    offsets += candidate * TAIL
    shift = tl.load(shifts + candidate * UNITS + unit)
    trains = (_fold_of(lane, n_outputs) != fold)[:, None]
    units_gram = tl.zeros((UNITS, UNITS), dtype=tl.float32)
    crossed = tl.zeros((UNITS, TAIL), dtype=tl.float32)
    corner = tl.zeros((TAIL, TAIL), dtype=tl.float32)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        known = row < last
        u = _shifted(base, slots, columns, shift, row, known, n_units, n_new, n_rows, UNITS)
        t = _tail(shared, slopes, offsets, rest, row, known, n_outputs, n_rest, per_fold, n_rows, TAIL)
        t = tl.where(trains, t, 0.0)
        other_u, other_t = u, t
        if WEIGHTED:
            weight = tl.load(weights + row, mask=known, other=0.0)[None, :]
            other_u, other_t = u * weight, t * weight
        units_gram = tl.dot(u, tl.trans(other_u), units_gram, input_precision=PRECISION)
        crossed = tl.dot(u, tl.trans(other_t), crossed, input_precision=PRECISION)
        corner = tl.dot(t, tl.trans(other_t), corner, input_precision=PRECISION)
    WIDTH: tl.constexpr = UNITS + TAIL
    grams += (candidate * n_pieces + piece) * WIDTH * WIDTH
    tl.store(grams + unit[:, None] * WIDTH + unit[None, :], units_gram)
    tl.store(grams + (UNITS + lane)[None, :] * WIDTH + unit[:, None], crossed)
    tl.store(grams + (UNITS + lane)[:, None] * WIDTH + (UNITS + lane)[None, :], corner)


@triton.jit
def _factored(block, floor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Inverse of the Cholesky factor of a small matrix, and whether all pivots are above a floor."""
    index = tl.arange(0, BLOCK)
    down, right = index[:, None], index[None, :]
    inverse = tl.where(down == right, 1.0, 0.0)
    pivots = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(BLOCK):
        row = tl.sum(tl.where(down == i, block, 0.0), axis=0)
        column = tl.sum(tl.where(right == i, block, 0.0), axis=1)
        inverse_row = tl.sum(tl.where(down == i, inverse, 0.0), axis=0)
        pivot = tl.sum(tl.where(index == i, row, 0.0), axis=0)
        factor = tl.where(index > i, column / pivot, 0.0)
        block -= factor[:, None] * row[None, :]
        inverse -= factor[:, None] * inverse_row[None, :]
        pivots = tl.where(index == i, pivot, pivots)
    sound = tl.min(tl.where(pivots > floor, 1, 0), axis=0)
    return inverse / tl.sqrt(tl.where(pivots > floor, pivots, 1.0))[:, None], sound


@triton.jit
def _entries(total, part, at, mask, HOLD_OUT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums over what trains: all but the fold's part."""
    values = tl.load(total + at, mask=mask, other=0.0)
    if not HOLD_OUT:
        values -= tl.load(part + at, mask=mask, other=0.0)
    return values


@triton.jit
def _eliminate(  # type: ignore[no-untyped-def]
    j, totals, parts, lanes, scratch, n_rows, n_outputs, width, target, one, ridge, rounding,
    TOP: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, HOLD_OUT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Block j of the factor's columns, its rows from TOP on; returns whether all of its pivots are sound."""
    place, output = tl.arange(0, BLOCK), tl.arange(0, OUTPUTS)
    column = j * BLOCK + place
    lane = tl.load(lanes + column)
    real, real_output = (lane >= 0)[None, :], (output < n_outputs)[:, None]
    higher, lower = tl.maximum(lane[:, None], lane[None, :]), tl.minimum(lane[:, None], lane[None, :])
    block = _entries(totals, parts, higher * width + lower, real & (lane >= 0)[:, None], HOLD_OUT)
    added = tl.where(lane < 0, 1.0, tl.where(lane == one, 0.0, ridge))
    block += tl.where(place[:, None] == place[None, :], added[None, :], 0.0)
    row = TOP + tl.arange(0, SIZE - TOP)
    below = ((row >= (j + 1) * BLOCK) & (row < n_rows))[:, None]
    row_lane = tl.load(lanes + row)[:, None]
    panel = _entries(totals, parts, row_lane * width + lane[None, :], below & (row_lane >= 0) & real, HOLD_OUT)
    goal = _entries(totals, parts, (target + output)[:, None] * width + lane[None, :], real_output & real, HOLD_OUT)
    goals = scratch + (SIZE + output)[:, None] * SIZE
    for i in range(j):
        before = (i * BLOCK + place)[None, :]
        mine = tl.trans(tl.load(scratch + column[:, None] * SIZE + before))
        theirs = tl.load(scratch + row[:, None] * SIZE + before, mask=below, other=0.0)
        block -= tl.dot(tl.trans(mine), mine, input_precision=PRECISION)
        panel -= tl.dot(theirs, mine, input_precision=PRECISION)
        goal -= tl.dot(tl.load(goals + before), mine, input_precision=PRECISION)
    floor = rounding * tl.load(totals + lane * (width + 1), mask=lane >= 0, other=0.0)
    inverse, sound = _factored(block, floor, BLOCK)
    panel = tl.dot(panel, tl.trans(inverse), input_precision=PRECISION)
    goal = tl.dot(goal, tl.trans(inverse), input_precision=PRECISION)
    tl.store(scratch + column[:, None] * SIZE + column[None, :], inverse)
    tl.store(scratch + row[:, None] * SIZE + column[None, :], panel, mask=below)
    tl.store(goals + column[None, :], goal)
    tl.debug_barrier()
    return sound


@triton.jit
def solve_systems(  # type: ignore[no-untyped-def]
    totals, parts, lanes, scratch, solutions, failed, n_folds, n_blocks, n_outputs, width, target, one, ridge, rounding,
    SIZE: tl.constexpr, BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, HOLD_OUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Ridge solutions of every fold's normal equations, by a blocked Cholesky factorisation.

    `lanes` names the lane of each unknown of a fold, -1 beyond the last; `scratch` holds the factor, its diagonal
    blocks inverted, and the right-hand sides below it.
    """
    candidate, fold = tl.program_id(0).to(tl.int64), tl.program_id(1)
    totals += candidate * width * width
    parts += (candidate * n_folds + fold) * width * width
    lanes += fold * SIZE
    scratch += (candidate * n_folds + fold) * (SIZE + OUTPUTS) * SIZE
    HALF: tl.constexpr = SIZE // 2
    n_rows = n_blocks * BLOCK
    sound = 1
    # Once the diagonal has passed the upper half of the rows, that has no more to say.
    for j in range(tl.minimum(HALF // BLOCK - 1, n_blocks)):
        sound &= _eliminate(
            j, totals, parts, lanes, scratch, n_rows, n_outputs, width, target, one, ridge, rounding,
            0, SIZE, BLOCK, OUTPUTS, HOLD_OUT, PRECISION,
        )  # fmt: skip
    for j in range(tl.minimum(HALF // BLOCK - 1, n_blocks), n_blocks):
        sound &= _eliminate(
            j, totals, parts, lanes, scratch, n_rows, n_outputs, width, target, one, ridge, rounding,
            HALF, SIZE, BLOCK, OUTPUTS, HOLD_OUT, PRECISION,
        )  # fmt: skip
    tl.store(failed + candidate * n_folds + fold, 1 - sound)
    place, output = tl.arange(0, BLOCK), tl.arange(0, OUTPUTS)
    goals = scratch + (SIZE + output)[:, None] * SIZE
    solutions += ((candidate * n_folds + fold) * n_outputs + output[:, None]) * width
    for back in range(n_blocks):
        j = n_blocks - 1 - back
        column = j * BLOCK + place
        goal = tl.load(goals + column[None, :])
        for i in range(j + 1, n_blocks):
            after = i * BLOCK + place
            factor = tl.load(scratch + after[:, None] * SIZE + column[None, :])
            goal -= tl.dot(tl.load(goals + after[None, :]), factor, input_precision=PRECISION)
        inverse = tl.load(scratch + column[:, None] * SIZE + column[None, :])
        goal = tl.dot(goal, inverse, input_precision=PRECISION)
        tl.debug_barrier()  # all has been read before anything is written
        tl.store(goals + column[None, :], goal)
        lane = tl.load(lanes + column)[None, :]
        tl.store(solutions + lane, goal, mask=(output < n_outputs)[:, None] & (lane >= 0))
        tl.debug_barrier()


@triton.jit
def add_predictions(  # type: ignore[no-untyped-def]
    base, slots, columns, shifts, shared, slopes, offsets, rest, pieces, solutions, out,
    n_added, n_units, n_new, n_rows, n_outputs, n_rest, per_fold, n_folds, n_judged, share,
    UNITS: tl.constexpr, TAIL: tl.constexpr, ROWS: tl.constexpr, OUTPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Add a share of the predictions of samples that judge to `out`, (n_candidates, n_outputs, n_judged)."""
    candidate, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, last = tl.load(pieces + 3 * piece), tl.load(pieces + 3 * piece + 1)
    fold = tl.load(pieces + 3 * piece + 2)
    unit, lane, output = tl.arange(0, UNITS), tl.arange(0, TAIL), tl.arange(0, OUTPUTS)
    base += (candidate >= n_added) * n_units * n_rows
    columns += candidate * n_new * n_rows
    rest += candidate * n_rest * n_rows
    slopes += candidate * TAIL
    offsets += candidate * TAIL
    shift = tl.load(shifts + candidate * UNITS + unit)
    solutions += (candidate * n_folds + fold) * n_outputs * (UNITS + TAIL)
    at, real = output[:, None] * (UNITS + TAIL), (output < n_outputs)[:, None]
    unit_weights = tl.load(solutions + at + unit[None, :], mask=real, other=0.0)
    tail_weights = tl.load(solutions + at + UNITS + lane[None, :], mask=real, other=0.0)
    skipped = n_rows - n_judged  # those that always train come first
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        known = row < last
        u = _shifted(base, slots, columns, shift, row, known, n_units, n_new, n_rows, UNITS)
        t = _tail(shared, slopes, offsets, rest, row, known, n_outputs, n_rest, per_fold, n_rows, TAIL)
        if OUTPUTS == 1:
            y = tl.sum(u * tl.trans(unit_weights), axis=0) + tl.sum(t * tl.trans(tail_weights), axis=0)
            y = y[None, :]
        else:
            y = tl.dot(unit_weights, u, input_precision=PRECISION)
            y = tl.dot(tail_weights, t, y, input_precision=PRECISION)
        to = out + (candidate * n_outputs + output[:, None]) * n_judged + (row - skipped)[None, :]
        mask = real & known[None, :]
        tl.store(to, tl.load(to, mask=mask, other=0.0) + share * y, mask=mask)
