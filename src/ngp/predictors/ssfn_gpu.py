"""How an `SSFN` scores candidates on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.predictors.base import ColumnSets, Losses
from ngp.predictors.ssfn_scorer import SSFNScorer
from ngp.validation import Round

if TYPE_CHECKING:
    from torch import Tensor

    from ngp.compute.scoring_gpu import LayerStack

__all__ = ["SSFNGpuScorer"]

# Shares of the free memory: for all columns, which are then read once, and for a chunk of candidates.
COLUMNS_SHARE = 0.3
CHUNK_SHARE = 0.5
# Numbers that are moved to the GPU at a time.
MOVED_NUMBERS = 2**24
# What counts as free where torch runs on the CPU.
CPU_MEMORY = 2**28


class _RoundTensors(NamedTuple):
    """What no step changes in a round.

    Attributes
    ----------
    rows : int tensor of shape (J,)
        Row numbers, in fold order.
    targets : tensor of shape (Q, J)
        Scaled targets.
    weights : tensor of shape (J,)
        Sample weights.
    shares : tensor of shape (J, n_parts)
        Share of each row in the mean loss of each part.
    """

    rows: Tensor
    targets: Tensor
    weights: Tensor
    shares: Tensor


@dataclass(frozen=True)
class SSFNGpuScorer(SSFNScorer):
    """An `SSFN` bound to a problem; candidates are scored on a GPU, the final predictor is trained on the CPU."""

    gpu: str = "cuda"

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        for members, columns in candidates.by_size():
            parts[members] = self._chunks(selected, columns)
        return Losses(parts, self.problem.part_weights)

    def _chunks(self, selected: IntArray, candidates: IntArray) -> FloatArray:
        """Losses of candidates (n, m) that all add equally many columns, as many at a time as fit in the memory."""
        n_new, numbers = candidates.shape[1], range(len(self.problem.rounds))
        stacks = [self._stack(number, selected, n_new) for number in numbers]
        length = max(1, self._free_memory(CHUNK_SHARE) // max(stack.bytes_per_candidate(n_new) for stack in stacks))
        chunks = []
        for start in range(0, len(candidates), length):
            chunk = candidates[start : start + length]
            parts = []
            for number, stack in zip(numbers, stacks, strict=True):
                columns = self._columns(chunk.ravel(), number).unflatten(0, chunk.shape)
                parts.append(self._part_losses(number, stack.predictions(columns)))
            chunks.append(np.concatenate(parts, axis=1))
        return np.concatenate(chunks)

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
        return [
            _RoundTensors(
                self._tensor(fold.rows.astype(np.int64)),
                self._tensor(self._scaled_targets(fold.rows).T),
                self._tensor(self.problem.weights[fold.rows]),
                self._tensor(_row_shares(fold, self.problem.weights)),
            )
            for fold in self.problem.rounds
        ]

    @cached_property
    def _resident(self) -> Tensor | None:
        """All columns, samples last, if there is memory for them."""
        import torch

        n_rows, n_columns = self.problem.n_samples, self.problem.n_columns
        if 8 * n_rows * n_columns > self._free_memory(COLUMNS_SHARE):
            return None
        resident = torch.empty((n_columns, n_rows), dtype=torch.float64, device=self.gpu)
        length = max(1, MOVED_NUMBERS // n_rows)  # the GPU may have more memory than its host
        for start in range(0, n_columns, length):
            columns = np.arange(start, min(start + length, n_columns))
            resident[start : start + length] = self._tensor(self.inputs(columns, np.arange(n_rows)))
        return resident

    def _columns(self, columns: IntArray, number: int) -> Tensor:
        """Columns (n, J), samples in the order of a round."""
        if self._resident is None:
            return self._tensor(self.inputs(columns, self.problem.rounds[number].rows))
        chosen = self._resident[self._tensor(columns.astype(np.int64))]
        return chosen[:, self._rounds[number].rows]

    def _stack(self, number: int, selected: IntArray, n_new: int) -> LayerStack:
        """What all candidates of a step have in common in one round."""
        import torch

        from ngp.compute.scoring_gpu import LayerStack

        config, n_slots = self.config, len(selected) + n_new
        layers = [self.layer((draw, len(selected), 0), n_slots, config.n_units) for draw in range(config.n_draws)]
        return LayerStack(
            self._columns(selected, number),
            self._rounds[number].targets,
            self._rounds[number].weights,
            self.problem.rounds[number].segments,
            self._tensor(np.array([weights for weights, _ in layers])),
            self._tensor(np.array([biases for _, biases in layers])),
            self.penalties(len(selected)),
            getattr(torch, self.dtype.name),
        )

    def _part_losses(self, number: int, predictions: Tensor) -> FloatArray:
        """Losses in the parts of a round, from predictions (n, Q, J); for squared errors nothing else is fetched."""
        mean, scale = self.target_scales
        if self.problem.loss != "squared_error":
            fold, values = self.problem.rounds[number], predictions.mT.double().cpu().numpy() * scale + mean
            return fold.part_losses(self.problem.row_losses(values, fold.rows), self.problem.weights)
        errors = predictions.double() - self._rounds[number].targets
        means: FloatArray = (errors.square_().mean(dim=1) @ self._rounds[number].shares).cpu().numpy()
        return means * scale**2


def _row_shares(fold: Round, weights: FloatArray) -> FloatArray:
    """Share of each row in the mean loss of each part, (J, n_parts)."""
    totals, judged = fold.part_weights(weights), np.arange(fold.parts[0], fold.parts[-1])
    part = np.searchsorted(fold.parts, judged, side="right") - 1
    shares = np.zeros((len(fold.rows), len(totals)))
    shares[judged, part] = weights[fold.rows[judged]] / np.where(totals > 0, totals, 1)[part]
    return shares
