"""What chance would have gained."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from report_cases import decoy

from ngp import NeuralGreedyPursuit
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import SSFN, Kernel

QUICK = SSFN(n_units=20, n_draws=1)


def table(seed: int = 0, n_columns: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, n_columns))
    return X, 2 * X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=120)


@pytest.mark.parametrize("predictor", [QUICK, Kernel()], ids=["ssfn", "kernel"])
@pytest.mark.parametrize("n_columns", [20, 200])
def test_without_a_signal_losses_are_in_the_range(predictor: SSFN | Kernel, n_columns: int) -> None:
    below, above, n_steps = 0, 0, 40
    for seed in range(n_steps // 2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(80, n_columns)), rng.normal(size=80)
        selector = NeuralGreedyPursuit(predictor, n_features_to_select=2, stop=MaxFeatures(2), random_state=seed)
        chance = selector.fit(X, y).measure_chance(X, y)[1:]
        losses = np.array([step.loss for step in selector.path_[1:]])
        below, above = below + int((losses < chance[:, 0]).sum()), above + int((losses > chance[:, 1]).sum())
    assert below <= 0.15 * n_steps  # 0.05 on average
    assert below + above <= 0.45 * n_steps  # 0.2 on average


def test_what_pays_is_below_the_range() -> None:
    X, y = table()
    selector = NeuralGreedyPursuit(QUICK, random_state=0).fit(X, y)
    chance = selector.measure_chance(X, y)
    assert chance is selector.chance_
    assert chance.shape == (len(selector.path_), 2)
    assert np.isnan(chance[0]).all()
    assert [step.loss < low for step, (low, _) in zip(selector.path_[1:3], chance[1:3], strict=True)] == [True, True]


def test_the_same_seed_gives_the_same_range_and_changes_nothing() -> None:
    X, y = table()
    selector = NeuralGreedyPursuit(QUICK, n_features_to_select=2, random_state=np.random.RandomState(0)).fit(X, y)
    path = selector.path_
    first = selector.measure_chance(X, y)
    np.testing.assert_array_equal(first, selector.measure_chance(X, y))
    np.testing.assert_array_equal(first, selector.set_params(n_jobs=2).measure_chance(X, y))
    assert selector.path_ is path
    assert not hasattr(selector.fit(X, y), "chance_")


def test_drops_and_exchanges_have_none() -> None:
    case = decoy()
    actions = [step.action for step in case.selector.path_]
    assert set(actions) > {"start", "add"}
    known = np.isfinite(copy(case.selector).measure_chance(case.X, case.y)).all(axis=1)
    assert known.tolist() == [action == "add" for action in actions]


def test_groups_fixed_columns_and_a_validation_set() -> None:
    X, y = table(n_columns=12)
    selector = NeuralGreedyPursuit(
        QUICK, n_features_to_select=3, groups=np.arange(12) // 3, fixed=[11], cv=(X[90:], y[90:]), random_state=0
    ).fit(X[:90], y[:90])
    low, high = selector.measure_chance(X[:90], y[:90])[1]
    assert selector.path_[1].loss < low < high
