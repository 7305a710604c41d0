"""Out-of-fold predictions of one-layer SSFNs by torch, a whole chunk of candidates in each operation.

The same networks as in `ngp.kernels.scoring`, whose layout is turned around: samples come last in all arrays. As there,
the regressions of the linear part are updated for each candidate in double precision, and the layers' Gram matrices of
all folds come from sums over the folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from ngp._types import IntArray
from ngp.kernels.scoring import Penalties

__all__ = ["FoldRegressions", "LayerStack"]

# Units are shifted by their mean over so many samples, which single precision is grateful for (as in _rows.h).
SHIFT_ROWS = 64
# A column of which so little is left, relative to the largest, repeats others: what is left is rounding noise.
NOTHING_LEFT = 1e-14


def fold_slices(segments: IntArray) -> list[slice]:
    """Samples that judge in each fold, where segments are the bounds of those that always train, then of the folds."""
    return [slice(int(first), int(last)) for first, last in pairwise(segments[1:])]


def training_sums(segments: IntArray, product: Callable[[slice], Tensor]) -> Tensor:
    """What some samples add up to, for those that train in each fold."""
    always, folds = slice(0, int(segments[1])), fold_slices(segments)
    if len(folds) == 1:  # no need for what would be taken away again
        return product(always)[None]
    parts = torch.stack([product(samples) for samples in folds])
    total = parts.sum(dim=0)
    return (total + product(always) if always.stop else total) - parts


class FoldRegressions:
    """Ridge regressions of the targets on the selected columns, one for each fold.

    With the regression on the selection S known for each fold, columns X_g that are added need no regression of their
    own: with C = X_Sᵀ W X_g and A = (X_Sᵀ W X_S + λ)⁻¹ C, a small system for the residual columns X_g - X_S A has the
    rest. In double precision, as in _linear.h. Shapes for k selected columns, J samples, K folds, Q outputs.
    """

    def __init__(
        self,
        selected: Tensor,
        targets: Tensor,
        weights: Tensor,
        segments: IntArray,
        *,
        ridge: float,
        centred: bool,
    ) -> None:
        self.selected, self.targets, self.weights, self.segments = selected, targets, weights, segments
        self.ridge, self.centred = ridge, centred
        k = len(selected)
        design = torch.cat([selected, targets])
        weighted = design * weights
        self._weight = training_sums(segments, lambda samples: weights[samples].sum())  # (K,)
        means = self._means(weighted)  # (K, k + Q)
        moments = training_sums(segments, lambda samples: weighted[:, samples] @ design[:, samples].T)
        moments -= self._weight[:, None, None] * means[:, :, None] * means[:, None, :]
        self._inverse = _inverted(moments[:, :k, :k], ridge)
        slopes = self._inverse @ moments[:, :k, k:]
        self._selected_means = means[:, :k]
        intercepts = means[:, k:] - (means[:, None, :k] @ slopes)[:, 0]
        self.prediction = slopes.mT @ selected + intercepts[:, :, None]  # (K, Q, J)
        self._residual = weights * (targets - self.prediction)
        for fold, samples in enumerate(fold_slices(segments)):
            self._residual[fold, :, samples] = 0

    def _means(self, weighted: Tensor) -> Tensor:
        """Means of columns (n, J), times their weights, over the training samples: (K, n); zeros if not centred."""
        sums = training_sums(self.segments, lambda samples: weighted[:, samples].sum(dim=-1))
        return sums / self._weight[:, None] if self.centred else torch.zeros_like(sums)

    def updates(self, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the columns of each candidate add to the predictions: slopes times rest, less an offset."""
        n, m, n_samples = columns.shape
        n_folds, n_outputs = self.prediction.shape[:2]
        flat = columns.reshape(n * m, n_samples)
        weighted = flat * self.weights
        means = self._means(weighted)  # (K, n m)
        crossed = training_sums(self.segments, lambda s: self.selected[:, s] @ weighted[:, s].T)  # (K, k, n m)
        crossed -= self._weight[:, None, None] * self._selected_means[:, :, None] * means[:, None, :]
        solved = self._inverse @ crossed
        moments = self._moments(columns, weighted.reshape(columns.shape), means.reshape(n_folds, n, m))
        floor = NOTHING_LEFT * moments.diagonal(dim1=-2, dim2=-1).amax(dim=-1)
        pairs = crossed.reshape(n_folds, -1, n, m), solved.reshape(n_folds, -1, n, m)
        left = moments - torch.einsum("fsna,fsnb->fnab", *pairs)
        left.diagonal(dim1=-2, dim2=-1).add_(self.ridge)
        right = (self._residual @ flat.T).reshape(n_folds, n_outputs, n, m).permute(0, 2, 3, 1)
        slopes = _solve_small(left, right, floor)  # (K, n, m, Q)
        rest_means = means - (self._selected_means[:, None] @ solved)[:, 0]
        offsets = (rest_means.reshape(n_folds, n, 1, m) @ slopes)[:, :, 0]
        rest = flat - solved.mT @ self.selected  # (K, n m, J)
        return slopes, offsets, rest.reshape(n_folds, n, m, n_samples)

    def predictions(self, columns: Tensor) -> Tensor:
        """Predictions from the selection and the columns of each candidate, on all samples."""
        if columns.shape[1] == 0:
            same: Tensor = self.prediction[:, None].expand(-1, len(columns), -1, -1)
            return same
        slopes, offsets, rest = self.updates(columns)
        return (slopes.mT @ rest).add_(self.prediction[:, None] - offsets[..., None])

    def _moments(self, columns: Tensor, weighted: Tensor, means: Tensor) -> Tensor:
        """Second moments (K, n, m, m) of new columns."""
        moments = training_sums(self.segments, lambda s: weighted[..., s] @ columns[..., s].mT)
        return moments - self._weight[:, None, None, None] * means[..., :, None] * means[..., None, :]


def _inverted(normal: Tensor, ridge: float) -> Tensor:
    """Inverses of moments (K, k, k) with a ridge."""
    one = torch.eye(normal.shape[-1], dtype=normal.dtype, device=normal.device)
    factor, failed = torch.linalg.cholesky_ex(normal + ridge * one)
    half = torch.linalg.solve_triangular(factor, one.expand_as(normal), upper=False)
    inverse: Tensor = half.mT @ half
    if bool(failed.any()):  # columns repeat each other, with a ridge as small as rounding
        inverse = torch.linalg.pinv(normal + ridge * one, rtol=1e-11, hermitian=True)
    return inverse


def _solve_small(left: Tensor, right: Tensor, floor: Tensor) -> Tensor:
    """Solve positive definite systems (..., m, m); what depends on the unknowns before it, to within a floor, is 0."""
    size = left.shape[-1]
    if size == 1:  # by far the most common case
        return right / torch.where(left > floor[..., None, None], left, torch.inf)
    left, right = left.clone(), right.clone()
    for i in range(size):
        pivot = torch.where(left[..., i, i] > floor, left[..., i, i], torch.inf)
        factors = left[..., i + 1 :, i, None] / pivot[..., None, None]
        left[..., i + 1 :, i + 1 :] -= factors * left[..., None, i, i + 1 :]
        right[..., i + 1 :, :] -= factors * right[..., None, i, :]
        left[..., i, i] = pivot
    for i in reversed(range(size)):
        known = (left[..., None, i, i + 1 :] @ right[..., i + 1 :, :])[..., 0, :]
        right[..., i, :] = (right[..., i, :] - known) / left[..., i, i, None]
    return right


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
        """Ridge solutions; NaN where the ridge is so small that rounding makes a matrix indefinite."""
        penalised = torch.ones(matrix.shape[-1], dtype=self.dtype, device=matrix.device)
        if self.penalties.intercept:
            penalised[self.random.shape[2]] = 0
        matrix.diagonal(dim1=-2, dim2=-1).add_(self.penalties.ridge * penalised)
        factor, info = torch.linalg.cholesky_ex(matrix)
        forward = torch.linalg.solve_triangular(factor, right, upper=False)
        solution: Tensor = torch.linalg.solve_triangular(factor.mT, forward, upper=True)
        return solution.masked_fill_((info > 0)[..., None, None], torch.nan)
