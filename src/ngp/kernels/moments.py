"""What a ridge regression needs to know of its rows, summed over blocks of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.kernels.ridge import solve_normal_equations

__all__ = ["Moments"]


class Moments:
    """Weighted second moments of features, targets and one.

    The numbers are `ngp.kernels.ridge.solve_output_layer`'s, but for rounding, where there are at least as many rows as
    features.
    """

    def __init__(self, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self.n_rows = 0

    def add(self, features: AnyArray, targets: AnyArray, sample_weight: FloatArray) -> None:
        """Add a block of rows."""
        if not len(features):
            return
        values = np.hstack([features, targets, np.ones((len(features), 1))], dtype=np.float64)
        if not self.n_rows:
            self._n_features = features.shape[1]
            # An intercept makes a regression blind to constants: near the means, no digits are lost to them.
            self._shift = values.mean(axis=0) * self.fit_intercept
            self._shift[-1] = 0
            self._sums = np.zeros((values.shape[1], values.shape[1]))
        values -= self._shift
        values *= np.sqrt(sample_weight)[:, None]
        self._sums += values.T @ values  # of one array with itself: half the work, as numpy knows
        self.n_rows += len(features)

    def solve(self, *, ridge: float, norm_bound: float | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercept."""
        gram, right, mean, target_mean = self._centred()
        coef = solve_normal_equations(gram, right, self.n_rows, ridge=ridge, norm_bound=norm_bound)
        return coef, target_mean - mean @ coef

    def solve_path(self, ridges: Sequence[float]) -> list[tuple[FloatArray, FloatArray]]:
        """The same for several positive ridges, from one eigendecomposition."""
        gram, right, mean, target_mean = self._centred()
        values, vectors = np.linalg.eigh(gram)
        left = vectors.T @ right
        coefs = [vectors @ (left / (np.maximum(values, 0) + ridge)[:, None]) for ridge in ridges]
        return [(coef, target_mean - mean @ coef) for coef in coefs]

    def _centred(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Gram matrix and right-hand sides, after centring if there is an intercept, and the means."""
        n, means, second = self._n_features, np.zeros(len(self._shift) - 1), self._sums[:-1, :-1]
        if self.fit_intercept:
            means = self._sums[:-1, -1] / self._sums[-1, -1]
            second = second - self._sums[-1, -1] * np.outer(means, means)
            # Constant features leave nothing but rounding errors, which must not be fitted.
            rounding = self.n_rows * np.finfo(np.float64).eps * np.abs(means + self._shift[:-1])
            constant = np.flatnonzero(np.diag(second)[:n] <= self._sums[-1, -1] * rounding[:n] ** 2)
            second[constant] = second[:, constant] = 0
            means = means + self._shift[:-1]
        return second[:n, :n], second[:n, n:], means[:n], means[n:]
