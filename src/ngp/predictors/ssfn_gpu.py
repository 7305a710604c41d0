"""How an `SSFN` scores candidates on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.data.sources import read_columns
from ngp.kernels.layers import draw_weights
from ngp.predictors.base import ColumnSets, Losses
from ngp.predictors.ssfn_scorer import SSFNScorer

if TYPE_CHECKING:
    from torch import Tensor

    from ngp.kernels.regressions import FoldRegressions
    from ngp.kernels.scoring_gpu import LayerStack

__all__ = ["SSFNGpuScorer"]

# Shares of the free memory: for all columns, which are then read once, and for a chunk of candidates.
COLUMNS_SHARE = 0.3
CHUNK_SHARE = 0.5
# Numbers that are moved to the GPU at a time.
MOVED_NUMBERS = 2**24
# Steps that take no more than this are done at once; asking how much is free would take as long as such a step.
SMALL_MEMORY = 2**30
# What counts as free where torch runs on the CPU.
CPU_MEMORY = 2**28


class _RoundTensors(NamedTuple):
    """What no step changes in a round."""

    rows: Tensor  # row numbers, in fold order
    targets: Tensor  # scaled targets
    weights: Tensor  # sample weights
    weighted: bool  # whether they tell samples apart
    shares: Tensor  # share of each row that doesn't always train in the mean loss of each part


@dataclass(frozen=True)
class SSFNGpuScorer(SSFNScorer):
    """An `SSFN` bound to a problem; candidates are scored on a GPU, the final predictor is trained on the CPU."""

    gpu: str = "cuda"

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        sizes = list(candidates.by_size())
        # The selection as it is keeps the first others company: by itself it would take as long as many of them.
        alone = len(sizes) > 1 and len(sizes[0][0]) == 1 and sizes[0][1].size == 0
        if alone:
            (last, _), (members, columns), *others = sizes
            sizes = [(np.append(members, last), columns), *others]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        n_slots = len(selected) + int(candidates.sizes.max(initial=0))
        weights, biases = (self._tensor(each) for each in self._layers(len(selected), n_slots))
        ridge = self.penalties(len(selected)).linear_ridge
        regressions = [
            self._regressions(number, self._columns(selected, number), ridge) for number in range(len(self._rounds))
        ]
        for i, (members, columns) in enumerate(sizes):
            stacks = self._stacks(regressions, weights, biases, columns.shape[1], alone=alone and i == 0)
            parts[members] = self._chunks(columns, stacks)
        return Losses(parts, self.problem.part_weights)

    def _stacks(
        self, regressions: list[FoldRegressions], weights: Tensor, biases: Tensor, n_new: int, alone: bool
    ) -> list[LayerStack]:
        """What candidates that add equally many columns share in each round; whether the selection alone is beside."""
        n_selected = len(regressions[0].selected)
        scaled = [weights[:, :n_slots] / self._weight_divisor(n_slots) for n_slots in (n_selected + n_new, n_selected)]
        stacks = []
        for number, each in enumerate(regressions):
            stack, single = (self._stack(number, each, slots, biases) for slots in scaled)
            stacks.append(replace(stack, alone=single) if alone else stack)
        return stacks

    def _chunks(self, candidates: IntArray, stacks: list[LayerStack]) -> FloatArray:
        """Losses of candidates (n, m) that all add equally many columns, as many at a time as fit in the memory.

        Those of the selection as it is come last, if the stacks have it.
        """
        n, n_new = candidates.shape
        each, length = self._candidate_bytes(n_new), n
        if n * each > SMALL_MEMORY:
            length = max(1, self._free_memory(CHUNK_SHARE) // each)
        chunks, alone = [], []
        for start in range(0, n, length):
            chunk = candidates[start : start + length]
            parts = []
            for number, stack in enumerate(stacks):
                columns = self._columns(chunk.ravel(), number).unflatten(0, chunk.shape)
                parts.append(self._part_losses(number, stack.predictions(columns)))
            losses = np.concatenate(parts, axis=1)
            chunks.append(losses[: len(chunk)])
            alone.append(losses[len(chunk) :])
            stacks = [replace(stack, alone=None) for stack in stacks]
        return np.concatenate([*chunks, *alone])

    def _candidate_bytes(self, n_new: int) -> int:
        """Memory that a candidate of so many columns takes, about."""
        rounds = zip(self.problem.rounds, self._rounds, strict=True)
        return max(
            self._stack_class(round_.n_folds).candidate_bytes(n_new, self.config.n_units, each.targets, round_.segments)
            for round_, each in rounds
        )

    def _tensor(self, values: AnyArray) -> Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self.gpu)

    def _free_memory(self, share: float) -> int:
        """Bytes to use; what torch keeps for itself can be had again."""
        import torch

        if self.gpu == "cpu":
            return int(share * CPU_MEMORY)
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return int(share * (torch.cuda.mem_get_info()[0] + kept))

    @cached_property
    def _rounds(self) -> list[_RoundTensors]:
        """What no step changes."""
        weights = self.problem.weights
        return [
            _RoundTensors(
                self._tensor(round_.rows.astype(np.int64)),
                self._tensor(self.scaled_targets(round_.rows).T),
                self._tensor(weights[round_.rows]),
                bool((weights[round_.rows] != 1).any()),
                self._tensor(_row_shares(round_, weights)),
            )
            for round_ in self.problem.rounds
        ]

    @cached_property
    def _resident(self) -> list[Tensor] | None:
        """All columns for each round, samples last and in its order, if there is memory for them."""
        n_bytes = 8 * sum(len(round_.rows) for round_ in self.problem.rounds) * self.problem.n_columns
        if n_bytes > self._free_memory(COLUMNS_SHARE):
            return None
        columns = self._all_columns()
        return [columns[:, each.rows] for each in self._rounds]

    def _all_columns(self) -> Tensor:
        """All columns, scaled as `inputs` does; a plain array is scaled on the device."""
        import torch

        X, config, n_rows, n_columns = self.problem.X, self.config, self.problem.n_samples, self.problem.n_columns
        columns = torch.empty(n_columns, n_rows, dtype=torch.float64, device=self.gpu)
        length = max(1, MOVED_NUMBERS // n_rows)  # the GPU may have more memory than its host
        plain = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64) and X.dtype.isnative
        for start in range(0, n_columns, length):
            chunk = np.arange(start, min(start + length, n_columns))
            if plain:
                columns[chunk[0] : chunk[-1] + 1] = self._tensor(read_columns(X, chunk).T).T
            else:
                columns[chunk[0] : chunk[-1] + 1] = self._tensor(self.inputs(chunk, np.arange(n_rows)))
        if plain and config.standardize:
            mean, scale = (self._tensor(each)[:, None] for each in self.problem.column_scales)
            bound = np.inf if config.clip is None else config.clip
            columns.sub_(mean).div_(scale).clamp_(-bound, bound)
        return columns

    def _columns(self, columns: IntArray, number: int) -> Tensor:
        """Columns (n, J), samples in the order of a round."""
        if self._resident is None:
            return self._tensor(self.inputs(columns, self.problem.rounds[number].rows))
        return self._resident[number][self._tensor(columns.astype(np.int64))]

    def _regressions(self, number: int, selected: Tensor, ridge: float) -> FoldRegressions:
        """The linear parts' regressions on the selected columns (k, J), in one round."""
        from ngp.kernels.regressions import FoldRegressions

        each, segments = self._rounds[number], self.problem.rounds[number].segments
        return FoldRegressions(selected, each.targets, each.weights, segments, ridge=ridge, centred=self.config.bias)

    def _layers(self, n_selected: int, n_slots: int) -> tuple[FloatArray, FloatArray]:
        """Random weights of so many slots, (D, n_slots, H), not yet scaled, and biases, (D, H)."""
        config, numbers = self.config, [(draw, n_selected, 0) for draw in range(self.config.n_draws)]
        weights = [draw_weights(self.seed, each, n_slots, config.n_units, config.distribution) for each in numbers]
        biases = [self.layer(each, 0, config.n_units)[1] for each in numbers]
        return np.array(weights), np.array(biases)

    def _weight_divisor(self, n_slots: int) -> float:
        """What random weights are divided by, as in `layer`."""
        return float(np.sqrt(max(1, n_slots))) if self.config.standardize else 1.0

    def _stack_class(self, n_folds: int) -> type[LayerStack]:
        """The kernels where they can do it, plain operations elsewhere."""
        from ngp.kernels.scoring_gpu import LayerStack

        if self.gpu == "cpu" or self.dtype != np.float32 or find_spec("triton") is None:
            return LayerStack
        from ngp.kernels.scoring_fused import FusedStack, fits

        return FusedStack if fits(self.config.n_units, self.problem.n_outputs, n_folds) else LayerStack

    def _stack(self, number: int, regressions: FoldRegressions, weights: Tensor, biases: Tensor) -> LayerStack:
        """What all candidates of a step that add equally many columns have in common in one round."""
        import torch

        make = self._stack_class(self.problem.rounds[number].n_folds)
        penalties, dtype = self.penalties(len(regressions.selected)), getattr(torch, self.dtype.name)
        return make(regressions, weights, biases, penalties, dtype, self._rounds[number].weighted)

    def _part_losses(self, number: int, predictions: Tensor) -> FloatArray:
        """Losses in the parts of a round, from predictions (n, Q, J); for squared errors nothing else is fetched."""
        mean, scale = self.target_scales
        if self.problem.loss != "squared_error":
            round_, values = self.problem.rounds[number], predictions.mT.double().cpu().numpy() * scale + mean
            values = np.pad(values, ((0, 0), (int(round_.segments[1]), 0), (0, 0)))
            return round_.part_losses(self.problem.row_losses(values, round_.rows), self.problem.weights)
        errors = predictions.double() - self._rounds[number].targets[:, -predictions.shape[2] :]
        means: FloatArray = (errors.square_().mean(dim=1) @ self._rounds[number].shares).cpu().numpy()
        return means * scale**2


def _row_shares(round_: Round, weights: FloatArray) -> FloatArray:
    """Share of each row that doesn't always train in the mean loss of each part, (n_judged, n_parts)."""
    totals, judged = round_.part_weights(weights), np.arange(round_.parts[0], round_.parts[-1])
    part = np.searchsorted(round_.parts, judged, side="right") - 1
    shares = np.zeros((len(judged), len(totals)))
    shares[np.arange(len(judged)), part] = weights[round_.rows[judged]] / np.where(totals > 0, totals, 1)[part]
    return shares
