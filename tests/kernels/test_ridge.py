"""Ridge regressions: optimality, agreement with other solvers, blocks of rows, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from ngp.kernels.ridge import Moments, fit_ridge

SHAPES = [(40, 6, 3), (6, 40, 2), (15, 15, 1)]  # tall, wide, square: samples, features, outputs
any_seed = st.integers(0, 100)


def draw_problem(n_samples: int, n_features: int, n_outputs: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_samples, n_features)) + 2.0
    targets = features[:, :1] + rng.normal(size=(n_samples, n_outputs)) - 1.0
    return features, targets


def solve(features: Any, targets: Any, weight: Any = None, ridge: float = 0.0, **options: Any) -> tuple[Any, Any]:
    weight = np.ones(len(features)) if weight is None else weight
    (solution,) = fit_ridge([(features, targets, weight)], [ridge], **{"intercept": True, **options})
    return solution


def assert_optimal(
    coef: Any,
    constant: Any,
    features: Any,
    targets: Any,
    weight: Any,
    ridge: float,
    *,
    intercept: bool,
    norm_bound: float | None,
    centre: Any,
) -> None:
    """Check the Karush-Kuhn-Tucker conditions, which are sufficient for this convex problem."""
    errors = targets - constant - features @ coef
    gradient = -features.T @ (weight[:, None] * errors) + ridge * (coef - centre)
    scale = np.linalg.norm(features.T @ (weight[:, None] * targets)) + np.linalg.norm(ridge * coef) + 1e-12
    scale += ridge * np.linalg.norm(centre) + np.linalg.norm((features.T * weight) @ features @ centre)
    norm = float(np.linalg.norm(coef))
    if intercept:
        assert np.abs(weight @ errors).max() <= 1e-9 * (weight @ np.abs(targets)).max() + 1e-9
    else:
        assert not constant.any()
    if norm_bound is None or norm < norm_bound * (1 - 1e-9):
        multiplier = 0.0
    else:  # the multiplier that fits best; it must be nonnegative, and the gradient along the coefficients
        assert norm <= norm_bound * (1 + 1e-10)
        multiplier = -float((gradient * coef).sum()) / norm**2 if norm > 0 else 0.0
        assert multiplier >= -1e-8 * scale
    if norm_bound != 0:
        assert np.linalg.norm(gradient + multiplier * coef) <= 1e-7 * scale


@settings(deadline=None, max_examples=300)
@given(
    shape=st.sampled_from(SHAPES) | st.tuples(st.integers(1, 8), st.integers(1, 12), st.integers(1, 3)),
    ridge=st.sampled_from([0.0, 1e-6, 0.5, 1e6]),
    norm_bound=st.sampled_from([None, 0.0, 1e-6, 0.3, 10.0, 1e3]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    centred=st.booleans(),
    constant=st.booleans(),
    duplicated=st.booleans(),
    no_targets=st.booleans(),
    seed=any_seed,
)
def test_solution_is_optimal(
    shape: tuple[int, int, int],
    ridge: float,
    norm_bound: float | None,
    intercept: bool,
    weighted: bool,
    centred: bool,
    constant: bool,
    duplicated: bool,
    no_targets: bool,
    seed: int,
) -> None:
    (features, targets), rng = draw_problem(*shape, seed), np.random.default_rng(seed)
    if constant:
        features[:, 0] = 0.1
    if duplicated:
        features[:, -1] = features[:, 0]
    if no_targets:
        targets[:] = 0.0
    weight = rng.exponential(size=shape[0]) if weighted else np.ones(shape[0])
    centre = rng.normal(size=shape[1:]) * centred
    options: dict[str, Any] = {"intercept": intercept, "norm_bound": norm_bound, "centre": centre}
    coef, offset = solve(features, targets, weight, ridge, **options)
    assert np.isfinite(coef).all()
    assert np.isfinite(offset).all()
    assert_optimal(coef, offset, features, targets, weight, ridge, **options)
    if no_targets and not centred:
        assert not coef.any()
        assert not offset.any()
    if constant and intercept and not centred:
        assert np.abs(coef[0]).max() <= 1e-12


@pytest.mark.parametrize("centre", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(20, 3, 2), (4, 6, 1)])
def test_agrees_with_a_general_optimiser(shape: tuple[int, int, int], centre: float) -> None:
    features, targets = draw_problem(*shape)
    _, n_features, n_outputs = shape
    n_coef = n_features * n_outputs

    def split(point: Any) -> tuple[Any, Any]:
        return point[:n_coef].reshape(n_features, n_outputs), point[n_coef:]

    def objective(coef: Any, offset: Any) -> float:
        return float(((targets - offset - features @ coef) ** 2).sum() + 0.1 * ((coef - centre) ** 2).sum())

    found = minimize(
        lambda point: objective(*split(point)),
        np.zeros(n_coef + n_outputs),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda point: 0.25 - (point[:n_coef] ** 2).sum()},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    solution = solve(features, targets, ridge=0.1, norm_bound=0.5, centre=np.full((n_features, n_outputs), centre))
    assert found.success
    assert objective(*solution) <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(solution[0], split(found.x)[0], atol=1e-4)
    assert np.linalg.norm(solution[0]) == pytest.approx(0.5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_ridge_regression(shape: tuple[int, int, int], intercept: bool) -> None:
    features, targets = draw_problem(*shape)
    weight = np.random.default_rng(1).exponential(size=shape[0])
    reference = Ridge(alpha=2.0, fit_intercept=intercept, solver="svd").fit(features, targets, weight)
    several = fit_ridge([(features, targets, weight)], [0.1, 2.0, 30.0], intercept=intercept)
    for coef, offset in (solve(features, targets, weight, 2.0, intercept=intercept), several[1]):
        np.testing.assert_allclose(coef.T, np.atleast_2d(reference.coef_), rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(offset, reference.intercept_, atol=1e-10)


def test_collinear_features_get_the_smallest_coefficients() -> None:
    features, targets = draw_problem(30, 4, 2)
    features = np.hstack([features, features])
    coef, _ = solve(features, targets, intercept=False)
    np.testing.assert_allclose(coef, np.linalg.lstsq(features, targets)[0], atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_count_as_repetitions(shape: tuple[int, int, int]) -> None:
    features, targets = draw_problem(*shape)
    counts = np.random.default_rng(2).integers(0, 4, size=shape[0])
    for norm_bound in (None, 0.4):
        weighted = solve(features, targets, counts.astype(float), 0.1, norm_bound=norm_bound)
        repeated = solve(
            *(each.repeat(counts, axis=0) for each in (features, targets)), None, 0.1, norm_bound=norm_bound
        )
        for one, other in zip(weighted, repeated, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def blocks_of(features: Any, targets: Any, weight: Any, bounds: list[int]) -> list[Any]:
    return list(zip(*(np.split(values, bounds) for values in (features, targets, weight)), strict=True))


@settings(max_examples=40, deadline=None)
@given(
    seed=any_seed,
    bounds=st.lists(st.integers(0, 60), max_size=6).map(sorted),
    intercept=st.booleans(),
    ridges=st.sampled_from([[0.0], [0.3], [0.1, 10.0]]),
    norm_bound=st.sampled_from([None, 0.2]),
)
def test_blocks_of_any_length(
    seed: int, bounds: list[int], intercept: bool, ridges: list[float], norm_bound: float | None
) -> None:
    features, targets = draw_problem(60, 7, 2, seed)
    features[:, 3] = 0.1
    weight = np.random.default_rng(seed).integers(0, 4, size=60) / 2
    moments = Moments(intercept)
    for block in blocks_of(features, targets, weight, bounds):
        moments.add(*block)
    for ridge, ours in zip(ridges, moments.solve(ridges, norm_bound=norm_bound), strict=True):
        theirs = solve(features, targets, weight, ridge, intercept=intercept, norm_bound=norm_bound)
        for our, their in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-8, atol=1e-9)


def test_means_far_from_zero_cost_no_digits() -> None:
    features, targets = draw_problem(60, 7, 2)
    expected, _ = solve(features, targets, ridge=1.0)
    far = features + 1e6
    ((coef, _),) = fit_ridge(blocks_of(far, targets, np.ones(60), [20, 40]), [1.0], intercept=True)
    np.testing.assert_allclose(coef, expected, rtol=1e-7)


def test_blocks_shorter_than_their_width_are_summed() -> None:
    features, targets = draw_problem(40, 15, 2)
    ((coef, _),) = fit_ridge(blocks_of(features, targets, np.ones(40), [10, 20, 30]), [1.0], intercept=True)
    np.testing.assert_allclose(coef, solve(features, targets, ridge=1.0)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ridges", [[0.1], [0.1, 10.0]])
@pytest.mark.parametrize("shape", [(40, 6, 2), (12, 20, 2)])
def test_large_features_leave_the_small_ones_their_part(shape: tuple[int, int, int], ridges: list[float]) -> None:
    features, targets = draw_problem(*shape)
    scales = np.where(np.arange(shape[1]) < 2, 1e9, 1.0)
    solutions = fit_ridge([(features * scales, targets, np.ones(shape[0]))], ridges, intercept=True)
    for ridge, (coef, _) in zip(ridges, solutions, strict=True):
        rows = np.vstack([features - features.mean(axis=0), np.diag(ridge**0.5 / scales)])
        right = np.vstack([targets - targets.mean(axis=0), np.zeros(shape[1:])])
        np.testing.assert_allclose(coef * scales[:, None], np.linalg.lstsq(rows, right)[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ridges", [[0.0], [0.1, 10.0]])
def test_without_features_the_mean_is_left(ridges: list[float]) -> None:
    _, targets = draw_problem(8, 1, 2)
    for coef, offset in fit_ridge([(np.zeros((8, 0)), targets, np.ones(8))], ridges, intercept=True):
        assert coef.shape == (0, 2)
        np.testing.assert_allclose(offset, targets.mean(axis=0))
