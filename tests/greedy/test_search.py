"""What a step finds, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursuit_cases import make_fake, run, weights_loss
from scipy.stats import ttest_rel

from ngp import NeuralGreedyPursuit
from ngp.greedy.stopping import MaxFeatures
from ngp.greedy.uncertainty import certainty
from ngp.predictors import SSFN, Losses


@given(seed=st.integers(0, 1000), n_parts=st.integers(2, 40))
def test_with_parts_alike_the_certainty_is_that_of_a_paired_t_test(seed: int, n_parts: int) -> None:
    parts = np.random.default_rng(seed).normal(size=(2, n_parts))
    expected = 1 - ttest_rel(parts[0], parts[1], alternative="less").pvalue
    assert certainty(Losses(parts, np.full(n_parts, 1 / n_parts)), 0, 1) == pytest.approx(expected)


def test_parts_without_weight_have_no_say() -> None:
    parts, weights = np.array([[1.0, 2.0, 9.0], [1.5, 2.1, 0.0]]), np.array([0.5, 0.5, 0.0])
    assert certainty(Losses(parts, weights), 0, 1) == pytest.approx(certainty(Losses(parts[:, :2], weights[:2]), 0, 1))


def test_where_nothing_can_be_said_nothing_is() -> None:
    one_part = Losses(np.array([[1.0], [2.0]]), np.ones(1))
    assert np.isnan(certainty(one_part, 0, 1))
    two_parts = Losses(np.array([[1.0, 1.0], [2.0, 2.0]]), np.full(2, 0.5))
    assert np.isnan(certainty(two_parts, 0, None))
    assert (certainty(two_parts, 0, 1), certainty(two_parts, 1, 0), certainty(two_parts, 0, 0)) == (1.0, 0.0, 0.5)
    steps = run(make_fake(2, weights_loss([1, 2])), MaxFeatures(2)).steps
    assert np.isnan([steps[0].certainty, steps[2].certainty]).all()
    assert steps[1].certainty > 0.5


def test_picks_among_like_columns_are_less_certain() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=300)
    y = np.tanh(X[:, 0]) + 0.5 * X[:, 3]
    steps = NeuralGreedyPursuit(SSFN(n_units=30), n_features_to_select=2, random_state=0).fit(X, y).path_
    assert steps[1].group in (0, 1)
    assert steps[2].group == 3
    assert steps[1].certainty < steps[2].certainty
    assert steps[2].certainty > 0.99
