"""Losses against scikit-learn's, and their corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import hinge_loss, log_loss, mean_squared_error

from ngp.data.losses import LOSSES, SMALLEST_PROBABILITY, probabilities
from ngp.data.problem import code_targets

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 4))
def test_squared_error_is_scikit_learns(seed: int, n_outputs: int) -> None:
    rng = np.random.default_rng(seed)
    predictions, targets = rng.normal(size=(2, 9, n_outputs))
    losses = LOSSES["squared_error"](predictions, targets)
    assert losses.mean() == pytest.approx(mean_squared_error(targets, predictions))


@given(seeds, st.integers(2, 5))
def test_cross_entropy_is_scikit_learns_log_loss(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, size=9)])
    targets, _ = code_targets(labels, "classification")
    shares = rng.dirichlet(np.ones(n_classes), size=len(labels))
    shares = (shares + 0.01) / (1 + 0.01 * n_classes)  # none below the smallest probability
    losses = LOSSES["cross_entropy"](shares if n_classes > 2 else shares[:, 1:], targets)
    assert losses.mean() == pytest.approx(log_loss(labels, shares))


@given(seeds, st.integers(2, 5))
def test_hinge_is_scikit_learns(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, size=9)])
    targets, _ = code_targets(labels, "classification")
    scores = rng.normal(size=(len(labels), targets.shape[1]))
    # Two classes have the scores 1 - p and p: their difference is the decision value.
    decision = scores if n_classes > 2 else 2 * scores[:, 0] - 1
    assert LOSSES["hinge"](scores, targets).mean() == pytest.approx(hinge_loss(labels, decision))


@given(seeds, st.integers(1, 5))
def test_probabilities_are_probabilities(seed: int, n_columns: int) -> None:
    predictions = 3 * np.random.default_rng(seed).normal(size=(4, 7, n_columns))
    shares = probabilities(predictions)
    assert shares.shape == (4, 7, max(n_columns, 2))
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=-1), 1)


def test_one_confident_mistake_costs_a_finite_loss() -> None:
    (loss,) = LOSSES["cross_entropy"](np.array([[50.0]]), np.array([[0.0]]))
    assert loss == pytest.approx(-np.log(SMALLEST_PROBABILITY / (1 + SMALLEST_PROBABILITY)))


@given(seeds, st.sampled_from(list(LOSSES)), st.sampled_from([2, 4]))
def test_candidates_are_judged_each_for_itself(seed: int, name: str, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    targets, _ = code_targets(np.arange(12) % n_classes, "classification")
    predictions = rng.normal(size=(3, 2, *targets.shape))
    before = predictions.copy()
    losses = LOSSES[name](predictions, targets)
    assert losses.shape == (3, 2, 12)
    assert (losses >= 0).all()
    assert np.array_equal(losses[2, 1], LOSSES[name](predictions[2, 1], targets))
    assert np.array_equal(predictions, before)


@pytest.mark.parametrize("name", LOSSES)
def test_perfect_predictions_cost_least(name: str) -> None:
    for n_classes in (2, 4):
        targets, _ = code_targets(np.arange(12) % n_classes, "classification")
        np.testing.assert_allclose(LOSSES[name](targets, targets), 0, atol=n_classes * SMALLEST_PROBABILITY)
