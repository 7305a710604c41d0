"""Ridge regressions on a selection and on what candidates add to it, by torch: the linear part of an SSFN on a GPU.

With the regression on the selection S known for each fold, columns X_g that are added need no regression of their own:
with C = X_Sᵀ W X_g and A = (X_Sᵀ W X_S + λ)⁻¹ C, a small system for the residual columns X_g - X_S A has the rest. In
double precision, as in _linear.h; samples come last in all arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from ngp._types import IntArray

__all__ = ["FoldRegressions", "fold_slices", "training_sums"]

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

    Shapes for k selected columns, J samples in fold order, K folds, Q outputs.
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
    """Inverses of moments (K, k, k) with a ridge, or what comes next to them where there is none."""
    if ridge == 0:  # columns may repeat each other
        return _nearly_inverted(normal)
    one = torch.eye(normal.shape[-1], dtype=normal.dtype, device=normal.device)
    factor, failed = torch.linalg.cholesky_ex(normal + ridge * one)
    if bool(failed.any()):  # a ridge as small as rounding
        return _nearly_inverted(normal + ridge * one)
    half = torch.linalg.solve_triangular(factor, one.expand_as(normal), upper=False)
    inverse: Tensor = half.mT @ half
    return inverse


def _nearly_inverted(matrix: Tensor) -> Tensor:
    inverse: Tensor = torch.linalg.pinv(matrix, rtol=1e-11, hermitian=True)
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
