"""Kernels of the selected columns together with each candidate's: what the former add is computed once.

Squared distances and inner products are sums over the columns. So a candidate costs as many operations as its own
columns have pairs of rows, however many columns are selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ngp._types import FloatArray, IntArray
from ngp.kernels.algebra import Algebra, Array

__all__ = ["Candidates", "KernelName", "KernelTask", "kernel_matrix"]

KernelName = Literal["rbf", "arc-cosine"]


@dataclass(frozen=True)
class KernelTask:
    """What the candidates of one step share in one round; made by `of`.

    Shapes for J rows in fold order, c centres and Q outputs.
    """

    algebra: Algebra  # what computes
    kernel: KernelName  # see `kernel_matrix`
    scale: float  # see `kernel_matrix`
    ridge: float  # the ridge λ
    segments: tuple[int, ...]  # bounds of the rows that always train, then of the folds. A single fold never trains
    centres: slice | IntArray  # the rows that functions are centred at: those that train, or the landmarks
    landmarks: bool  # whether the centres are landmarks
    # inner products of centres and rows, or minus their squared distances, in the selected columns, times `scale`
    base: Array
    lengths: Array  # squared lengths of the rows in these columns, times `scale`
    right: Array  # ones, and the targets
    weights: Array  # sample weights, all positive
    sign: Literal[1, -1]  # whether candidates add their columns, or take them away from the selected ones

    @classmethod
    def of(
        cls,
        algebra: Algebra,
        selected: FloatArray,
        targets: FloatArray,
        weights: FloatArray,
        segments: IntArray,
        *,
        kernel: KernelName,
        scale: float,
        ridge: float,
        landmarks: IntArray | None = None,
        sign: Literal[1, -1] = 1,
    ) -> KernelTask:
        """Prepare for candidates that join or leave the columns `selected` (k, J)."""
        bounds = tuple(int(bound) for bound in segments)
        centres = slice(0, bounds[1] if len(bounds) == 3 else bounds[-1]) if landmarks is None else landmarks
        columns = algebra.array(selected)
        left, right = _factors(algebra.xp, kernel, scale, columns)
        constant = 1 if kernel == "arc-cosine" else 0
        return cls(
            algebra=algebra,
            kernel=kernel,
            scale=scale,
            ridge=ridge,
            segments=bounds,
            centres=centres,
            landmarks=landmarks is not None,
            base=left[:, centres].mT @ right + constant,
            lengths=_squared_lengths(scale, columns) + constant,
            right=algebra.array(np.concatenate([np.ones((len(targets), 1)), targets], axis=1)),
            weights=algebra.array(weights),
            sign=sign,
        )

    @property
    def folds(self) -> list[slice]:
        """The folds that have rows."""
        return [slice(start, end) for start, end in pairwise(self.segments[1:]) if end > start]


def kernel_matrix(kernel: KernelName, scale: float, first: FloatArray, second: FloatArray) -> FloatArray:
    r"""Kernel between all rows of two sets."""
    left, right = _factors(np, kernel, scale, first)[0], _factors(np, kernel, scale, second)[1]
    values: FloatArray
    if kernel == "rbf":
        values = _evaluate(np, left.T @ right, None)
    else:
        norms = [np.sqrt(1 + _squared_lengths(scale, columns)) for columns in (first, second)]
        values = _evaluate(np, 1 + left.T @ right, norms[0][:, None] * norms[1])
    return values


def _factors(xp: Any, kernel: KernelName, scale: float, columns: Array) -> tuple[Array, Array]:
    """Two matrices whose product holds the inner products of all rows, or minus their squared distances."""
    if kernel == "arc-cosine":
        scaled = columns * scale**0.5
        return scaled, scaled
    scaled = columns * (2 * scale) ** 0.5
    minus = _squared_lengths(-0.5, scaled)[..., None, :]
    ones = xp.ones_like(minus)
    return xp.concatenate((scaled, minus, ones), -2), xp.concatenate((scaled, ones, minus), -2)


def _squared_lengths(scale: float, columns: Array) -> Array:
    return scale * (columns * columns).sum(-2)


def _evaluate(xp: Any, products: Array, norms: Array | None) -> Array:
    """Kernel from minus the squared distances or, with the products of the norms, from the inner products."""
    if norms is None:
        return xp.exp(products, out=products)
    cosines = xp.clip(xp.divide(products, norms, out=products), -1, 1)
    sines = xp.sqrt(1 - cosines * cosines)
    return norms * (sines + (np.pi - xp.arccos(cosines)) * cosines) / np.pi


class Candidates:
    """The kernel of the selected columns together with each candidate's, or without them."""

    def __init__(self, task: KernelTask, columns: Array, algebra: Algebra) -> None:
        self.task, self.algebra, self.xp = task, algebra, algebra.xp
        self.length = len(columns)
        left, self.right = _factors(self.xp, task.kernel, task.scale, columns)
        self.left = task.sign * left[..., task.centres]
        self.norms = None
        if task.kernel == "arc-cosine":
            lengths = task.lengths + task.sign * _squared_lengths(task.scale, columns)
            self.norms = self.xp.sqrt(lengths)

    def kernel(self, centres: slice, rows: slice | IntArray, out: Array | None = None) -> Array:
        """Kernel (n_candidates, …) between some of the centres and some rows, in `out` or in a new array."""
        products = self.xp.matmul(self.left[..., centres].mT, self.right[..., rows], out=out)
        products += self.task.base[centres][:, rows]
        if self.norms is None:
            return _evaluate(self.xp, products, None)
        norms = self.norms[:, self.task.centres][:, centres, None] * self.norms[:, None, rows]
        return _evaluate(self.xp, products, norms)
