"""The output layer: optimality, agreement with other solvers, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from ngp.kernels.ridge import FloatArray, solve_output_layer

SHAPES = [(40, 6, 3), (6, 40, 2), (15, 15, 1)]  # tall, wide, square: samples, features, outputs


def draw_problem(n_samples: int, n_features: int, n_outputs: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_samples, n_features)) + 2.0
    targets = features[:, :1] + rng.normal(size=(n_samples, n_outputs)) - 1.0
    return features, targets


def objective(
    coef: FloatArray,
    intercept: FloatArray,
    features: FloatArray,
    targets: FloatArray,
    ridge: float = 0.0,
    sample_weight: FloatArray | None = None,
    centre: FloatArray | float = 0.0,
) -> float:
    weight = np.ones(len(features)) if sample_weight is None else sample_weight
    errors = targets - intercept - features @ coef
    return float(weight @ (errors**2).sum(axis=1) + ridge * ((coef - centre) ** 2).sum())


def assert_optimal(
    coef: FloatArray,
    intercept: FloatArray,
    features: FloatArray,
    targets: FloatArray,
    *,
    ridge: float = 0.0,
    norm_bound: float | None = None,
    fit_intercept: bool = True,
    sample_weight: FloatArray | None = None,
    centre: FloatArray | float = 0.0,
) -> None:
    """Check the Karush-Kuhn-Tucker conditions, which are sufficient for this convex problem."""
    weight = np.ones(len(features)) if sample_weight is None else sample_weight
    errors = targets - intercept - features @ coef
    gradient = -features.T @ (weight[:, None] * errors) + ridge * (coef - centre)
    scale = np.linalg.norm(features.T @ (weight[:, None] * targets)) + np.linalg.norm(ridge * coef) + 1e-12
    norm = float(np.linalg.norm(coef))
    if fit_intercept:
        assert np.abs(weight @ errors).max() <= 1e-9 * (weight @ np.abs(targets)).max() + 1e-9
    else:
        assert not intercept.any()
    if norm_bound is None or norm < norm_bound * (1 - 1e-9):
        multiplier = 0.0
    else:  # the multiplier that fits best; it must be nonnegative, and the gradient along the coefficients
        assert norm <= norm_bound * (1 + 1e-10)
        multiplier = -float((gradient * coef).sum()) / norm**2 if norm > 0 else 0.0
        assert multiplier >= -1e-8 * scale
    if norm_bound != 0:
        assert np.linalg.norm(gradient + multiplier * coef) <= 1e-7 * scale


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("norm_bound", [None, 0.3, 1e3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shrunk_to", ["zero", "centre"])
def test_solution_is_optimal(
    shape: tuple[int, int, int],
    ridge: float,
    norm_bound: float | None,
    fit_intercept: bool,
    weighted: bool,
    shrunk_to: str,
) -> None:
    features, targets = draw_problem(*shape)
    rng = np.random.default_rng(1)
    options: dict[str, Any] = {"ridge": ridge, "norm_bound": norm_bound, "fit_intercept": fit_intercept}
    if weighted:
        options["sample_weight"] = rng.exponential(size=shape[0])
    if shrunk_to == "centre":
        options["centre"] = rng.normal(size=shape[1:])
    assert_optimal(*solve_output_layer(features, targets, **options), features, targets, **options)


@pytest.mark.parametrize("centre", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(20, 3, 2), (4, 6, 1)])
def test_agrees_with_a_general_optimiser(shape: tuple[int, int, int], centre: float) -> None:
    features, targets = draw_problem(*shape)
    _, n_features, n_outputs = shape
    n_coef = n_features * n_outputs
    options: dict[str, Any] = {"ridge": 0.1, "centre": np.full((n_features, n_outputs), centre)}

    def split(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        return point[:n_coef].reshape(n_features, n_outputs), point[n_coef:]

    found = minimize(
        lambda point: objective(*split(point), features, targets, **options),
        np.zeros(n_coef + n_outputs),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda point: 0.25 - (point[:n_coef] ** 2).sum()},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    coef, intercept = solve_output_layer(features, targets, norm_bound=0.5, **options)
    assert found.success
    assert objective(coef, intercept, features, targets, **options) <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(coef, split(found.x)[0], atol=1e-4)
    assert np.linalg.norm(coef) == pytest.approx(0.5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agrees_with_ridge_regression(shape: tuple[int, int, int], fit_intercept: bool) -> None:
    features, targets = draw_problem(*shape)
    weight = np.random.default_rng(1).exponential(size=shape[0])
    coef, intercept = solve_output_layer(
        features, targets, ridge=2.0, fit_intercept=fit_intercept, sample_weight=weight
    )
    reference = Ridge(alpha=2.0, fit_intercept=fit_intercept, solver="svd").fit(features, targets, weight)
    np.testing.assert_allclose(coef.T, np.atleast_2d(reference.coef_), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(intercept, reference.intercept_, atol=1e-10)


def test_collinear_features_get_the_smallest_coefficients() -> None:
    features, targets = draw_problem(30, 4, 2)
    features = np.hstack([features, features])
    coef, _ = solve_output_layer(features, targets, fit_intercept=False)
    np.testing.assert_allclose(coef, np.linalg.lstsq(features, targets)[0], atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_ridge_shrinks_to_the_centre(shape: tuple[int, int, int]) -> None:
    features, targets = draw_problem(*shape)
    centre = np.random.default_rng(1).normal(size=shape[1:])
    coef, _ = solve_output_layer(features, targets, ridge=1e12, centre=centre)
    np.testing.assert_allclose(coef, centre, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("norm_bound", [None, 0.4])
def test_weights_count_as_repetitions(shape: tuple[int, int, int], norm_bound: float | None) -> None:
    features, targets = draw_problem(*shape)
    counts = np.random.default_rng(2).integers(0, 4, size=shape[0])
    weighted = solve_output_layer(features, targets, ridge=0.1, norm_bound=norm_bound, sample_weight=counts)
    repeated = solve_output_layer(
        features.repeat(counts, axis=0), targets.repeat(counts, axis=0), ridge=0.1, norm_bound=norm_bound
    )
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@settings(deadline=None, max_examples=200)
@given(
    n_samples=st.integers(1, 8),
    n_features=st.integers(1, 12),
    n_outputs=st.integers(1, 3),
    ridge=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    norm_bound=st.sampled_from([None, 0.0, 1e-6, 0.5, 10.0]),
    fit_intercept=st.booleans(),
    constant=st.booleans(),
    duplicated=st.booleans(),
    targets_are_zero=st.booleans(),
    seed=st.integers(0, 100),
)
def test_corners(
    n_samples: int,
    n_features: int,
    n_outputs: int,
    ridge: float,
    norm_bound: float | None,
    fit_intercept: bool,
    constant: bool,
    duplicated: bool,
    targets_are_zero: bool,
    seed: int,
) -> None:
    features, targets = draw_problem(n_samples, n_features, n_outputs, seed)
    if constant:
        features[:, 0] = 0.1
    if duplicated:
        features[:, -1] = features[:, 0]
    if targets_are_zero:
        targets[:] = 0.0
    options: dict[str, Any] = {"ridge": ridge, "norm_bound": norm_bound, "fit_intercept": fit_intercept}
    coef, intercept = solve_output_layer(features, targets, **options)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    assert_optimal(coef, intercept, features, targets, **options)
    if targets_are_zero:
        assert not coef.any()
        assert not intercept.any()
    if constant and fit_intercept:
        assert np.abs(coef[0]).max() <= 1e-12


def test_all_columns_constant_leave_the_mean() -> None:
    targets = np.array([[1.0], [2.0], [6.0]])
    coef, intercept = solve_output_layer(np.full((3, 2), 0.1), targets)
    assert not coef.any()
    assert intercept == pytest.approx([3.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.ones(3)}, "features and targets must be matrices"),
        ({"targets": np.ones((4, 1))}, "features and targets must be matrices"),
        ({"ridge": -1.0}, "ridge must be at least 0; got -1.0"),
        ({"norm_bound": float("nan")}, "norm_bound must be at least 0"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must hold 3 numbers"),
        ({"sample_weight": [0, 0, 0]}, "not all zero"),
        ({"centre": np.ones((1, 2))}, r"centre must have the shape \(2, 1\)"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"features": np.ones((3, 2)), "targets": np.ones((3, 1))} | changes
    with pytest.raises(ValueError, match=message):
        solve_output_layer(arguments.pop("features"), arguments.pop("targets"), **arguments)
