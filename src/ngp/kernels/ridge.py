"""Least squares with a ridge and a bound on the norm of the coefficients, solved exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpocon

__all__ = ["FloatArray", "solve_normal_equations", "solve_output_layer"]

FloatArray = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def solve_output_layer(
    features: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    ridge: float = 0.0,
    norm_bound: float | None = None,
    fit_intercept: bool = True,
    sample_weight: npt.ArrayLike | None = None,
    centre: npt.ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Train a linear output layer by norm-constrained ridge regression.

    Over the coefficients O and the intercept c it minimises

    .. math:: \sum_j w_j \|t_j - c - O^T \phi_j\|^2 + \text{ridge} \, \|O - C\|_F^2
              \quad \text{subject to} \quad \|O\|_F \le \text{norm_bound}.

    The solution is exact and deterministic: a Cholesky factorisation, and only where the problem is
    singular or the bound is violated an eigendecomposition and a one-dimensional root for the multiplier
    of the bound. Where several coefficients attain the minimum (``ridge=0`` and collinear features), the
    ones with the smallest norm are returned. All computation is done in float64.
    """
    phi, t, centre_coef, weight = _check_arguments(features, targets, sample_weight, centre, ridge, norm_bound)
    phi_mean, t_mean = np.zeros(phi.shape[1]), np.zeros(t.shape[1])
    if fit_intercept:
        phi, phi_mean = _centre_columns(phi, weight)
        t, t_mean = _centre_columns(t, weight)
    root_weight = np.sqrt(weight)[:, None]
    coef = _solve_centred(root_weight * phi, root_weight * t, ridge, norm_bound, centre_coef)
    return coef, t_mean - phi_mean @ coef


def _check_arguments(
    features: npt.ArrayLike,
    targets: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    centre: npt.ArrayLike | None,
    ridge: float,
    norm_bound: float | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    phi = np.asarray(features, dtype=np.float64)
    t = np.asarray(targets, dtype=np.float64)
    if phi.ndim != 2 or t.ndim != 2 or len(phi) != len(t) or phi.size == 0:
        raise ValueError(
            "features and targets must be matrices with the same number of rows, and not empty; "
            f"got the shapes {phi.shape} and {t.shape}."
        )
    weight = np.ones(len(phi)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(phi),) or not (weight >= 0).all() or not weight.any():
        raise ValueError(
            f"sample_weight must hold {len(phi)} numbers, none negative and not all zero; got {sample_weight!r}."
        )
    shape = (phi.shape[1], t.shape[1])
    centre_coef = np.zeros(shape) if centre is None else np.asarray(centre, dtype=np.float64)
    if centre_coef.shape != shape:
        raise ValueError(f"centre must have the shape {shape} of the coefficients; got {centre_coef.shape}.")
    if not ridge >= 0:
        raise ValueError(f"ridge must be at least 0; got {ridge!r}.")
    if norm_bound is not None and not norm_bound >= 0:
        raise ValueError(f"norm_bound must be at least 0, or None for no bound; got {norm_bound!r}.")
    return phi, t, centre_coef, weight


def _centre_columns(matrix: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract the weighted column means; columns that are constant but for rounding become exactly zero."""
    share = weight / weight.sum()
    mean: FloatArray = share @ matrix
    centred = matrix - mean
    # Without this, least squares would fit the rounding errors of constant columns with huge coefficients.
    rounding = len(matrix) * _EPS * np.abs(mean)
    centred[:, share @ centred**2 <= rounding**2] = 0.0
    return centred, mean


def _solve_centred(
    phi: FloatArray, t: FloatArray, ridge: float, norm_bound: float | None, centre: FloatArray
) -> FloatArray:
    """Solve the problem without intercept and weights, by the smaller of two matrices."""
    if phi.shape[1] <= len(phi):
        gram, right = phi.T @ phi, phi.T @ t
        return solve_normal_equations(gram, right, len(phi), ridge=ridge, norm_bound=norm_bound, centre=centre)
    kernel = phi @ phi.T
    dual = _solve_by_cholesky(kernel, t - phi @ centre, ridge, phi.shape[1])
    if dual is not None:
        coef: FloatArray = phi.T @ dual + centre
        if norm_bound is None or np.linalg.norm(coef) <= norm_bound:
            return coef
    values, vectors = _eigenvectors(kernel, phi.shape[1])
    basis = phi.T @ (vectors / np.sqrt(values))  # from eigenvectors of the kernel matrix to those of the Gram matrix
    return _solve_by_eigenvalues(values, basis, phi.T @ t, ridge, norm_bound, centre)


def solve_normal_equations(
    gram: FloatArray,
    right: FloatArray,
    n_samples: int,
    *,
    ridge: float,
    norm_bound: float | None,
    centre: FloatArray | None = None,
) -> FloatArray:
    """Solve the problem of `solve_output_layer` without intercept, from what it needs to know of the samples."""
    centre = np.zeros_like(right) if centre is None else centre
    size = max(n_samples, len(gram))
    coef = _solve_by_cholesky(gram, right - gram @ centre, ridge, size)
    if coef is not None:
        coef += centre
        if norm_bound is None or np.linalg.norm(coef) <= norm_bound:
            return coef
    return _solve_by_eigenvalues(*_eigenvectors(gram, size), right, ridge, norm_bound, centre)


def _solve_by_cholesky(gram: FloatArray, right: FloatArray, ridge: float, size: int) -> FloatArray | None:
    """Return (gram + ridge I)^-1 right, or None where the matrix is numerically singular."""
    matrix = gram.copy()
    matrix.flat[:: len(matrix) + 1] += ridge
    one_norm = np.abs(matrix).sum(axis=0).max(initial=0.0)
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    # Rounding lets some singular matrices pass as positive definite; their condition number gives them away.
    reciprocal_condition, _ = dpocon(factor[0], one_norm, uplo="L")
    if reciprocal_condition < size * _EPS:
        return None
    return np.asarray(cho_solve(factor, right), dtype=np.float64)


def _eigenvectors(gram: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues that are more than rounding errors, and their eigenvectors."""
    values, vectors = eigh(gram, check_finite=False)
    kept = values > 10 * size * _EPS * max(values[-1], 0.0)
    return values[kept], vectors[:, kept]


def _solve_by_eigenvalues(
    values: FloatArray,
    basis: FloatArray,
    right: FloatArray,
    ridge: float,
    norm_bound: float | None,
    centre: FloatArray,
) -> FloatArray:
    """Return (Gram + multiplier I)^-1 (right + ridge centre), the multiplier raised from ridge by need."""
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
