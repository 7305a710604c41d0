"""Regressions from sums over blocks are those of all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngp.kernels.moments import Moments
from ngp.kernels.ridge import solve_output_layer


def make_rows(seed: int, n_rows: int = 60, far: float = 0.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, 7)) + far
    targets = features[:, :2] ** 2 / (1 + far) + rng.normal(size=(n_rows, 2))
    return features, targets, rng.integers(0, 4, size=n_rows) / 2


def summed(rows: tuple[Any, Any, Any], bounds: list[int], fit_intercept: bool) -> Moments:
    moments = Moments(fit_intercept)
    for block in zip(*(np.split(values, bounds) for values in rows), strict=True):
        moments.add(*block)
    return moments


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 50),
    bounds=st.lists(st.integers(0, 60), max_size=6).map(sorted),
    fit_intercept=st.booleans(),
    ridge=st.sampled_from([0.0, 0.3, 10.0]),
    norm_bound=st.sampled_from([None, 0.2]),
    constant=st.booleans(),
)
def test_blocks_of_any_length(
    seed: int, bounds: list[int], fit_intercept: bool, ridge: float, norm_bound: float | None, constant: bool
) -> None:
    features, targets, weights = make_rows(seed)
    if constant:
        features[:, 3] = 0.1
    rows = features, targets, weights
    ours = summed(rows, bounds, fit_intercept).solve(ridge=ridge, norm_bound=norm_bound)
    theirs = solve_output_layer(
        features, targets, ridge=ridge, norm_bound=norm_bound, fit_intercept=fit_intercept, sample_weight=weights
    )
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-8, atol=1e-9)


def test_means_far_from_zero_cost_no_digits() -> None:
    rows = make_rows(0, far=1e6)
    coef, _ = summed(rows, [20, 40], fit_intercept=True).solve(ridge=1.0)
    expected, _ = solve_output_layer(rows[0], rows[1], ridge=1.0, sample_weight=rows[2])
    np.testing.assert_allclose(coef, expected, rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_path_of_ridges_is_each_ridge_alone(fit_intercept: bool) -> None:
    moments = summed(make_rows(1), [13], fit_intercept)
    ridges = [0.1, 1.0, 30.0]
    for ridge, (coef, intercept) in zip(ridges, moments.solve_path(ridges), strict=True):
        alone = moments.solve(ridge=ridge)
        np.testing.assert_allclose(coef, alone[0], rtol=1e-9)
        np.testing.assert_allclose(intercept, alone[1], rtol=1e-9)
