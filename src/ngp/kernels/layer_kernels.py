"""Triton kernels for one-layer SSFNs: a candidate's layer never leaves the chip, only its Gram matrices do.

The same networks as in `ngp.kernels.scoring_gpu`, whose plain operations are their twin in the tests. A sample's row is
[hidden units | 1, targets, linear units of every fold], the two parts padded to powers of two: lanes. As in _rows.h,
the linear units of a fold are zero on the samples that it judges, so that one Gram matrix for each piece of the
samples holds the normal equations of all folds.

The first `n_added` candidates share one `base`, the pre-activations from the selection; the next one, if there is one,
is the selection as it is: it has a base of its own, and columns of zeros.

Products of rows are taken apart into three of eleven binary digits each (PRECISION "tf32x3"), which the matrix units
multiply faster than the others multiply single precision, and no less precisely.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_predictions", "find_shifts", "solve_systems", "sum_grams"]


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
