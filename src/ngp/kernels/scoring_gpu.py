"""Out-of-fold predictions of one-layer SSFNs by torch, a whole chunk of candidates in each operation.

The same networks as in `ngp.kernels.scoring`, whose layout is turned around: samples come last in all arrays. As there,
the regressions of the linear part are updated for each candidate in double precision, and the layers' Gram matrices of
all folds come from sums over the folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ngp._types import IntArray
from ngp.kernels.regressions import FoldRegressions, fold_slices, training_sums
from ngp.kernels.scoring import Penalties

__all__ = ["LayerStack"]

# Units are shifted by their mean over so many samples, which single precision is grateful for (as in _rows.h).
SHIFT_ROWS = 64
# How often a ridge is made four times larger before a system is given up.
MOST_ATTEMPTS = 40


@dataclass(frozen=True)
class LayerStack:
    """What the candidates of one step share in one round, on a device.

    Shapes for k selected columns, J samples in fold order, K folds, Q outputs, D draws of H units, and candidates of
    m new columns.
    """

    regressions: FoldRegressions  # the linear part's, on the selected columns; it holds the data too
    random: Tensor  # random weights; the new columns' come last
    biases: Tensor  # random biases
    penalties: Penalties
    dtype: torch.dtype  # precision of the layers
    weighted: bool = True  # whether weights tell samples apart
    alone: LayerStack | None = None  # the selection as it is, without new columns, to be scored beside the candidates

    @property
    def targets(self) -> Tensor:
        """Targets, (Q, J)."""
        return self.regressions.targets

    @property
    def segments(self) -> IntArray:
        """Bounds of the samples that always train, then of the folds."""
        return self.regressions.segments

    @property
    def n_selected(self) -> int:
        """Number of selected columns."""
        return len(self.regressions.selected)

    @property
    def folds(self) -> list[slice]:
        """Samples that judge in each fold."""
        return fold_slices(self.segments)

    @property
    def training(self) -> slice:
        """Samples that train in any fold."""
        return slice(0, int(self.segments[1] if len(self.folds) == 1 else self.segments[-1]))

    @cached_property
    def base(self) -> Tensor:
        """Pre-activations from the selected columns, (D, H, J)."""
        known = self.random[:, : self.n_selected].mT @ self.regressions.selected
        return (known + self.biases[:, :, None]).to(self.dtype)

    @staticmethod
    def candidate_bytes(n_new: int, n_units: int, targets: Tensor, segments: IntArray) -> int:
        """Memory that `predictions` takes for each candidate of so many columns, about."""
        (n_outputs, n_samples), n_folds = targets.shape, len(segments) - 2
        n_shared = n_units + 1 + n_outputs
        by_sample = 8 * n_folds * (3 * n_new + 3 * n_outputs) + 4 * (2 * n_shared + 6 * n_folds * n_outputs)
        return n_samples * (by_sample + 24 * n_outputs) + 4 * n_folds * 6 * (n_shared + 2 * n_outputs) ** 2

    def predictions(self, columns: Tensor) -> Tensor:
        """Out-of-fold predictions of candidates."""
        n_units, n_outputs, nothing = self.random.shape[2], len(self.targets), columns[:1, :0]
        linear, own_linear = self._linear_units(columns)
        constants = self.targets
        if self.penalties.intercept:
            constants = torch.cat([torch.ones_like(constants[:1]), constants])
        shape = (len(columns), n_units + len(constants), columns.shape[2])
        layer = torch.empty(shape, dtype=self.dtype, device=columns.device)
        layer[:, n_units:] = constants
        columns, own = columns.to(self.dtype), slice(0, shape[1] - n_outputs)
        total = torch.zeros_like(own_linear[:, :n_outputs])
        for draw in range(len(self.random)):
            self._fill_units(layer[:, :n_units], columns, draw)
            solutions = self._output_weights(layer[..., self.training], linear)
            for samples, solution in zip(self.folds, solutions, strict=True):
                total[..., samples] += solution[:, own].mT @ layer[:, own, samples]
                total[..., samples] += solution[:, own.stop :].mT @ own_linear[..., samples]
        judged = total[..., int(self.segments[1]) :] / len(self.random)
        return judged if self.alone is None else torch.cat([judged, self.alone.predictions(nothing)])

    def _linear_units(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """relu(Y) and relu(-Y) of the linear predictions Y."""
        predictions = self.regressions.predictions(columns).transpose(0, 1)
        units = torch.cat([predictions, -predictions], dim=2).relu_().to(self.dtype)
        judged = torch.zeros_like(units[:, 0])
        for fold, samples in enumerate(self.folds):
            judged[..., samples] = units[:, fold, :, samples]
            units[:, fold, :, samples] = 0
        return units[..., self.training], judged

    def _fill_units(self, units: Tensor, columns: Tensor, draw: int) -> None:
        """Hidden units of one draw, (n_candidates, H, J)."""
        slots = self.random[draw, self.n_selected :].mT.to(self.dtype)
        if columns.shape[1] == 1:  # by far the most common case, in one pass
            torch.addcmul(self.base[draw], slots, columns, out=units)
        else:
            torch.add(self.base[draw], slots @ columns, out=units)
        units.relu_()
        if self.penalties.intercept:
            units -= units[..., :SHIFT_ROWS].mean(dim=-1, keepdim=True)

    def _output_weights(self, layer: Tensor, linear: Tensor) -> Tensor:
        """Weights (K, n_candidates, n_params, Q) of units, intercept and linear units, from training samples."""
        n, n_outputs = len(layer), len(self.targets)
        own = slice(0, layer.shape[1] - n_outputs)
        weighted, weighted_linear = layer, linear
        if self.weighted:
            weights = self.regressions.weights[self.training].to(self.dtype)
            weighted, weighted_linear = layer * weights, linear * weights
        grams = training_sums(self.segments, lambda samples: weighted[..., samples] @ layer[..., samples].mT)
        crossed = weighted @ linear.flatten(1, 2).mT  # all folds at once: (n, S, K 2 Q)
        crossed = crossed.reshape(n, -1, len(self.folds), 2 * n_outputs).permute(2, 0, 1, 3)
        corner = (weighted_linear @ linear.mT).transpose(0, 1)
        upper = torch.cat([grams[:, :, own, own], crossed[:, :, own]], dim=3)
        lower = torch.cat([crossed[:, :, own].mT, corner], dim=3)
        right = torch.cat([grams[:, :, own, own.stop :], crossed[:, :, own.stop :].mT], dim=2)
        return self._solved(torch.cat([upper, lower], dim=2), right)

    def _solved(self, matrix: Tensor, right: Tensor) -> Tensor:
        """Ridge solutions; where rounding makes a matrix indefinite, with the smallest ridge that will do."""
        penalised = torch.ones(matrix.shape[-1], dtype=self.dtype, device=matrix.device)
        if self.penalties.intercept:
            penalised[self.random.shape[2]] = 0
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        least = diagonal.mean(dim=-1) * torch.finfo(self.dtype).eps * matrix.shape[-1]
        ridge = torch.full_like(least, self.penalties.ridge)
        added = torch.zeros_like(least)
        for _ in range(MOST_ATTEMPTS):
            diagonal += (ridge - added)[..., None] * penalised
            added = ridge
            factor, info = torch.linalg.cholesky_ex(matrix)
            failed = info > 0
            if not bool(failed.any()):
                break
            ridge = torch.where(failed, 4 * torch.maximum(ridge, least), ridge)
        forward = torch.linalg.solve_triangular(factor, right, upper=False)
        solution: Tensor = torch.linalg.solve_triangular(factor.mT, forward, upper=True)
        return solution
