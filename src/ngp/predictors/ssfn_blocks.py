"""How an `SSFN` goes through very many rows: block by block, so that no memory but a few vectors grows with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.kernels.scoring import LayerTask, LinearFit, padded_width, score_blocks, score_chunk, segment_moments

if TYPE_CHECKING:
    from ngp.predictors.ssfn_scorer import SSFNScorer

__all__ = ["RoundTask", "RowBlock", "linear_fit", "row_blocks"]

# Samples whose projections are held in double at a time.
PROJECTED_ROWS = 2**10


@dataclass(frozen=True)
class RowBlock:
    """Rows of a round that are worked on together, in fold order."""

    places: IntArray  # where they stand in the round, ascending
    rows: IntArray  # their row numbers
    segments: IntArray  # bounds in `rows`, as in `ngp.data.folds.Round`


def row_blocks(round_: Round, most_rows: int) -> list[RowBlock]:
    """Cut a round into blocks of about equal length, each of rows that are neighbours in X."""
    n_rows = len(round_.rows)
    n_blocks = -(-n_rows // most_rows)
    if n_blocks == 1:
        return [RowBlock(np.arange(n_rows), round_.rows, round_.segments)]
    pieces = np.array_split(np.argsort(round_.rows), n_blocks)
    places = [np.sort(piece) for piece in pieces]
    return [RowBlock(own, round_.rows[own], np.searchsorted(own, round_.segments)) for own in places]


def linear_fit(scorer: SSFNScorer, blocks: Sequence[RowBlock], selected: IntArray) -> LinearFit:
    """Regressions on the selected columns in all folds of a round."""
    moments = sum(segment_moments(*_linear_rows(scorer, block, selected)) for block in blocks)
    ridge = scorer.penalties(len(selected)).linear_ridge
    return LinearFit.of(np.asarray(moments), len(selected), ridge=ridge, centred=scorer.config.bias)


def _linear_rows(
    scorer: SSFNScorer, block: RowBlock, selected: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """What the regressions know of a block."""
    rows = block.rows
    return scorer.inputs(selected, rows), scorer.scaled_targets(rows), scorer.problem.weights[rows], block.segments


@dataclass(frozen=True)
class RoundTask:
    """What the candidates of one step share in one round."""

    round_: Round  # the round
    blocks: Sequence[RowBlock]  # its rows
    selected: IntArray  # the selected columns
    n_new: int  # number of columns that each candidate adds
    fit: LinearFit  # the regressions of the linear part on the selected columns
    whole: LayerTask | None = None  # where there is only one block, what its candidates share

    def prepared(self, scorer: SSFNScorer) -> RoundTask:
        """The same with all that can be done once for all candidates."""
        if len(self.blocks) > 1:
            return self
        return replace(self, whole=self._layer_task(scorer, self.blocks[0], _Space()))

    def part_losses(self, scorer: SSFNScorer, candidates: IntArray) -> FloatArray:
        """Losses (n, n_parts) of a few candidates (n, m) in the parts of the round."""
        problem, (mean, scale) = scorer.problem, scorer.target_scales
        weights = self.round_.part_weights(problem.weights)
        sums = np.zeros((len(candidates), len(weights)))
        for block, outputs in zip(self.blocks, self._predictions(scorer, candidates), strict=True):
            predictions = np.multiply(outputs, scale, dtype=np.float64)
            predictions += mean
            losses = problem.row_losses(predictions, block.rows)
            losses *= problem.weights[block.rows]
            bounds = np.searchsorted(block.places, self.round_.parts)
            filled = np.flatnonzero(np.diff(bounds))
            if len(filled):
                sums[:, filled] += np.add.reduceat(losses[:, : bounds[-1]], bounds[filled], axis=1)
        return sums / np.where(weights > 0, weights, 1)

    def _predictions(self, scorer: SSFNScorer, candidates: IntArray) -> Iterator[AnyArray]:
        """Out-of-fold predictions of one block after the other, of scaled targets."""

        def blocks(layers: bool) -> Iterator[tuple[LayerTask, FloatArray]]:
            space = _Space()
            for block in self.blocks:
                columns = scorer.inputs(candidates.ravel(), block.rows).reshape(*candidates.shape, len(block.rows))
                task = self.whole or self._layer_task(scorer, block, space, layers)
                if scorer.config.redraw:
                    task = self._redrawn(scorer, task, block, candidates, columns, space)
                yield task, columns

        if len(self.blocks) > 1:
            yield from score_blocks(blocks, len(candidates))
        else:
            for task, columns in blocks(True):
                yield score_chunk(task, columns)

    def _layer_task(self, scorer: SSFNScorer, block: RowBlock, space: _Space, layers: bool = True) -> LayerTask:
        """What the candidates share in a block; without `layers`, no pre-activations."""
        config, rows = scorer.config, _linear_rows(scorer, block, self.selected)
        inputs, targets, weights, segments = rows
        width, n_selected = padded_width(config.n_units, scorer.dtype), len(self.selected)
        base = space.zeros("base", (config.n_draws, len(weights) if layers else 0, width), scorer.dtype)
        slots = np.zeros((config.n_draws, self.n_new, width), scorer.dtype)
        for draw in range(config.n_draws):
            random, biases = scorer.layer((draw, n_selected, 0), n_selected + self.n_new, config.n_units)
            slots[draw, :, : config.n_units] = random[n_selected:]
            if not config.redraw:
                _project(inputs, random[:n_selected], biases, base[draw])
        penalties = scorer.penalties(n_selected)  # the same for all candidates of a step
        state = self.fit.state(*rows)
        return LayerTask(segments, weights, targets.astype(scorer.dtype), base, slots, state, config.n_units, penalties)

    def _redrawn(
        self,
        scorer: SSFNScorer,
        task: LayerTask,
        block: RowBlock,
        candidates: IntArray,
        columns: FloatArray,
        space: _Space,
    ) -> LayerTask:
        """The task with complete pre-activations of its own for each candidate, from weights of its own."""
        base = space.zeros("own base", (len(candidates), *task.base.shape), task.base.dtype)
        known = scorer.inputs(self.selected, block.rows)
        for names, new, own in zip(candidates, columns, base, strict=True):
            inputs = np.concatenate([known, new])
            for draw in range(scorer.config.n_draws):
                number = (draw, len(self.selected), 1 + int(names[0]) if len(names) else 0)
                _project(inputs, *scorer.layer(number, len(inputs), task.n_units), own[draw])
        return task.with_base(base)


class _Space:
    """Large arrays that one block of rows takes over from the last, which is quicker than to ask for new memory."""

    def __init__(self) -> None:
        self._kept: dict[str, AnyArray] = {}

    def zeros(self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> AnyArray:
        """An array of zeros, in the place of the last one of that name."""
        size = int(np.prod(shape))
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            self._kept[name] = kept = np.zeros(size, dtype)
        else:
            kept[:size] = 0
        return kept[:size].reshape(shape)


def _project(inputs: FloatArray, weights: FloatArray, biases: FloatArray, out: AnyArray) -> None:
    """Pre-activations of samples (n_inputs, J) to the first columns of (J, width), a few at a time to save memory."""
    for start in range(0, len(out), PROJECTED_ROWS):
        some = slice(start, start + PROJECTED_ROWS)
        out[some, : len(biases)] = inputs[:, some].T @ weights + biases
