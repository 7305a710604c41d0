"""Ridge regression with several outputs and a bound on the norm of the coefficients, solved exactly in float64."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpocon

from ngp._types import AnyArray, FloatArray

__all__ = ["Moments", "Rows", "Solution", "fit_ridge"]

Rows = tuple[AnyArray, AnyArray, FloatArray]  # features, targets, sample weights
Solution = tuple[FloatArray, FloatArray]  # coefficients, intercept

_EPS = float(np.finfo(np.float64).eps)


def fit_ridge(
    blocks: Iterable[Rows],
    ridges: Sequence[float],
    *,
    intercept: bool,
    norm_bound: float | None = None,
    centre: FloatArray | None = None,
) -> list[Solution]:
    r"""Train a linear layer for each of some ridges, on rows that come in one block or several.

    Over the coefficients O and the intercept c it minimises

    .. math:: \sum_j w_j \|t_j - c - O^T \phi_j\|^2 + \text{ridge} \, \|O - C\|_F^2
              \quad \text{subject to} \quad \|O\|_F \le \text{norm_bound}.

    One ridge takes a Cholesky factorisation; several, a singular problem or a violated bound take an eigendecomposition
    that serves all ridges, and a one-dimensional root for the multiplier of the bound. Where several coefficients
    attain the minimum (ridge 0 and collinear features), those with the smallest norm are returned.
    """
    first, *second = _first_two(blocks := iter(blocks))
    few_rows = not second and len(first[0]) < first[0].shape[1]
    if few_rows and (solutions := _fit_few_rows(*first, ridges, intercept, norm_bound, centre)):
        return solutions
    moments = Moments(intercept)
    for block in chain([first], second, blocks):
        moments.add(*block)
    return moments.solve(ridges, norm_bound=norm_bound, centre=centre)


def _first_two(blocks: Iterable[Rows]) -> list[Rows]:
    return [block for _, block in zip(range(2), blocks, strict=False)]


class Moments:
    """Weighted second moments of features, targets and one: all that a regression needs to know of its rows."""

    def __init__(self, intercept: bool) -> None:
        self.intercept = intercept
        self.n_rows = 0

    def add(self, features: AnyArray, targets: AnyArray, sample_weight: FloatArray) -> None:
        """Add a block of rows."""
        if not len(features):
            return
        values = np.hstack([features, targets, np.ones((len(features), 1))], dtype=np.float64)
        if not self.n_rows:
            self._n_features = features.shape[1]
            # An intercept makes a regression blind to constants: near the means, no digits are lost to them.
            self._shift = np.average(values, axis=0, weights=sample_weight + _EPS) * self.intercept
            self._shift[-1] = 0
            self._sums = np.zeros((values.shape[1], values.shape[1]))
        values -= self._shift
        values *= np.sqrt(sample_weight)[:, None]
        self._sums += values.T @ values  # of one array with itself: half the work, as numpy knows
        self.n_rows += len(features)

    def solve(
        self, ridges: Sequence[float], *, norm_bound: float | None = None, centre: FloatArray | None = None
    ) -> list[Solution]:
        """Coefficients and intercept for each ridge, as `fit_ridge` defines them."""
        gram, right, mean, target_mean = self._centred()
        size = max(self.n_rows, len(gram))
        coefs = _solve(gram, right if centre is None else right - gram @ centre, ridges, size)
        coefs = coefs if centre is None else [coef + centre for coef in coefs]
        if not coefs or not _obey(norm_bound, coefs):
            values, basis = _eigenvectors(gram, size)
            coefs = [_solve_by_eigenvalues(values, basis, right, ridge, norm_bound, centre) for ridge in ridges]
        return [(coef, target_mean - mean @ coef) for coef in coefs]

    def _centred(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Gram matrix and right-hand sides, after centring if there is an intercept, and the means."""
        n, means, second = self._n_features, np.zeros(len(self._shift) - 1), self._sums[:-1, :-1]
        if self.intercept:
            means = self._sums[:-1, -1] / self._sums[-1, -1]
            second = second - self._sums[-1, -1] * np.outer(means, means)
            # Constant features leave nothing but rounding errors, which must not be fitted.
            means = means + self._shift[:-1]
            rounding = self.n_rows * _EPS * np.abs(means)
            constant = np.flatnonzero(np.diag(second)[:n] <= self._sums[-1, -1] * rounding[:n] ** 2)
            second[constant] = second[:, constant] = 0
        return second[:n, :n], second[:n, n:], means[:n], means[n:]


def _fit_few_rows(
    features: AnyArray,
    targets: AnyArray,
    weights: FloatArray,
    ridges: Sequence[float],
    intercept: bool,
    norm_bound: float | None,
    centre: FloatArray | None,
) -> list[Solution]:
    """Solve in the dual, whose matrix is of the size of the rows; nothing if that loses small features."""
    mean, target_mean = np.zeros(features.shape[1]), np.zeros(targets.shape[1])
    if intercept:
        mean, target_mean = (np.average(values, axis=0, weights=weights) for values in (features, targets))
    design = features - mean
    if intercept:  # least squares would fit the rounding errors of constant columns
        rounding = len(design) * _EPS * np.abs(mean)
        design[:, weights @ design**2 <= weights.sum() * rounding**2] = 0
    root = np.sqrt(weights)[:, None]
    design, response = root * design, root * (targets - target_mean)
    kernel, size = design @ design.T, features.shape[1]
    duals = _solve(kernel, response if centre is None else response - design @ centre, ridges, size)
    if not duals and min(ridges) > 0:
        return []
    coefs = [design.T @ dual if centre is None else design.T @ dual + centre for dual in duals]
    if not coefs or not _obey(norm_bound, coefs):
        values, vectors = _eigenvectors(kernel, size)
        basis = design.T @ (vectors / np.sqrt(values))  # eigenvectors of the Gram matrix
        right = design.T @ response
        coefs = [_solve_by_eigenvalues(values, basis, right, ridge, norm_bound, centre) for ridge in ridges]
    return [(coef, target_mean - mean @ coef) for coef in coefs]


def _solve(matrix: FloatArray, right: FloatArray, ridges: Sequence[float], size: int) -> list[FloatArray]:
    """Return (matrix + ridge I)^-1 right for each ridge, or nothing if a matrix is numerically singular."""
    if not len(matrix):  # no features, which LAPACK refuses
        return [right] * len(ridges)
    if len(ridges) > 1:
        values, vectors = np.linalg.eigh(matrix)  # unlike SciPy's, it lets other threads run
        if values[0] + min(ridges) > size * _EPS * values[-1]:
            left = vectors.T @ right
            return [vectors @ (left / (values + ridge)[:, None]) for ridge in ridges]
    solutions = []
    for ridge in ridges:
        if (solution := _solve_by_cholesky(matrix, right, ridge, size)) is None:
            return []
        solutions.append(solution)
    return solutions


def _solve_by_cholesky(gram: FloatArray, right: FloatArray, ridge: float, size: int) -> FloatArray | None:
    matrix = gram.copy()
    matrix.flat[:: len(matrix) + 1] += ridge
    # Features of different scales make no matrix singular. Powers of two change no digit.
    diagonal = np.diag(matrix)
    scales = np.exp2(np.rint(np.log2(diagonal, where=diagonal > 0, out=np.zeros(len(matrix))) / 2))
    matrix /= scales * scales[:, None]
    one_norm = np.abs(matrix).sum(axis=0).max()
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    # Rounding lets some singular matrices pass as positive definite; their condition number gives them away.
    reciprocal_condition, _ = dpocon(factor[0], one_norm, uplo="L")
    if reciprocal_condition < size * _EPS:
        return None
    return np.asarray(cho_solve(factor, right / scales[:, None]) / scales[:, None], dtype=np.float64)


def _obey(norm_bound: float | None, coefs: list[FloatArray]) -> bool:
    return norm_bound is None or all(np.linalg.norm(coef) <= norm_bound for coef in coefs)


def _eigenvectors(gram: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues that are more than rounding errors, and their eigenvectors."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 10 * size * _EPS * max(values[-1], 0.0)
    return values[kept], vectors[:, kept]


def _solve_by_eigenvalues(
    values: FloatArray,
    basis: FloatArray,
    right: FloatArray,
    ridge: float,
    norm_bound: float | None,
    centre: FloatArray | None,
) -> FloatArray:
    """Return (Gram + multiplier I)^-1 (right + ridge centre), the multiplier raised from ridge by need."""
    centre = np.zeros_like(right) if centre is None else centre
    inside: FloatArray = basis.T @ (right + ridge * centre)
    outside: FloatArray = ridge * (centre - basis @ (basis.T @ centre))  # where the features say nothing
    multiplier = ridge
    if norm_bound is not None:
        if norm_bound == 0.0:
            return np.zeros_like(centre)
        energies = np.append((inside**2).sum(axis=1), (outside**2).sum())
        multiplier = _find_multiplier(np.append(values, 0.0), energies, ridge, norm_bound)
    coef: FloatArray = basis @ (inside / (values + multiplier)[:, None])
    if outside.any():
        coef += outside / multiplier
    return coef


def _find_multiplier(values: FloatArray, energies: FloatArray, start: float, norm_bound: float) -> float:
    """Return the smallest multiplier >= start for which the norm of the coefficients obeys the bound.

    The inverse of the norm, as a function of the multiplier, is increasing and concave. So Newton's method on
    it, started where the norm is too large, climbs to the root without ever passing it.
    """
    values, energies = values[energies > 0], energies[energies > 0]
    multiplier = start
    while True:
        norm = float(np.sqrt((energies / (values + multiplier) ** 2).sum()))
        if norm <= norm_bound:
            return multiplier
        # The slope of 1 / norm, but for the factor 1 / norm^3.
        slope = float((energies / (values + multiplier) ** 3).sum())
        following = multiplier + (norm / norm_bound - 1) * norm * norm / slope
        if following <= multiplier * (1 + 2 * _EPS):
            return following
        multiplier = following
