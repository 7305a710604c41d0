"""Convolutional networks: batched losses against networks trained one by one, and what they depend on."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pytest
import torch
from cnn_cases import (
    CANDIDATES,
    KINDS,
    NOTHING,
    SELECTED,
    Factory,
    bind,
    dropping_channels,
    images_by_hand,
    initial_network,
    make_case,
    make_data,
    normalised,
    predict_plainly,
    small,
    smooth,
    train_plainly,
    with_output,
)
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit
from torch import Tensor, nn

from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import CNNScorer

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def losses_by_hand(scorer: CNNScorer, selected: Any, new: Any) -> Any:
    """Parts of the loss of one candidate, one network after the other."""
    problem, config = scorer.problem, scorer.config
    images, before = images_by_hand(problem, [*selected, *new]), images_by_hand(problem, selected)
    predictions = []
    for round_ in problem.rounds:
        predicted = np.zeros((1, len(problem.X), problem.n_outputs))
        for f in range(round_.n_folds):
            rows, judge = round_.training(f), round_.validation(f)
            rows = rows[problem.weights[rows] > 0]
            for draw in range(config.n_draws):
                network = initial_network(scorer, len(selected), draw)
                if config.warm_start and len(selected):
                    train_plainly(scorer, network, before, rows, len(selected), draw)
                train_plainly(scorer, network, images, rows, len(selected), draw)
                predicted[0, judge] += predict_plainly(scorer, network, images[judge]) / config.n_draws
        predictions.append(predicted[:, round_.rows])
    return problem.part_losses(iter(predictions))[0]


def check_against_twin(scorer: CNNScorer, selected: Any = SELECTED, candidates: ColumnSets = CANDIDATES) -> None:
    losses = scorer.add_losses(selected, candidates)
    np.testing.assert_array_equal(losses.weights, scorer.problem.part_weights)
    for i in range(len(candidates)):
        expected = losses_by_hand(scorer, selected, candidates[i])
        np.testing.assert_allclose(losses.parts[i], expected, rtol=1e-9, atol=1e-9 * expected.mean())


PROBLEMS = {
    "regression": {"kind": "regression", "loss": "squared_error"},
    "several outputs, sample weights": {"kind": "outputs", "loss": "squared_error", "weighted": True},
    "binary": {"kind": "binary"},
    "binary, hinge": {"kind": "binary", "loss": "hinge"},
    "binary, squared error": {"kind": "binary", "loss": "squared_error"},
    "classes, sample weights": {"weighted": True},
    "classes, hinge": {"loss": "hinge"},
    "classes, squared error": {"loss": "squared_error"},
    "repeated folds": {"cv": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)},
    "TimeSeriesSplit": {"cv": TimeSeriesSplit(2)},
    "uneven folds": {"cv": KFold(4)},
    "hold-out share": {"cv": 0.3},
    "explicit validation set": {"cv": "explicit", "weighted": True},
}
SETTINGS = {
    "two draws": {"n_draws": 2},
    "weight decay": {"weight_decay": 0.3},
    "one batch": {"batch_size": 100},
    "single rows": {"batch_size": 1, "epochs": 1},
    "through vmap": {"network": smooth},
    "warm start": {"warm_start": True},
    "warm start, two draws": {"warm_start": True, "n_draws": 2, "network": smooth},
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any]) -> None:
    check_against_twin(bind(make_case(**case)))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_of_other_networks(settings: dict[str, Any]) -> None:
    check_against_twin(bind(make_case("outputs", loss="squared_error"), **settings))


@pytest.mark.parametrize("warm_start", [False, True])
def test_the_first_step_and_the_empty_image(warm_start: bool) -> None:
    check_against_twin(bind(make_case(), warm_start=warm_start), NOTHING)


# Answers depend on the question alone


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    bound = {"float64": 1e-9, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * np.abs(expected).mean())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_candidates_together_are_candidates_alone(settings: dict[str, Any], dtype: str) -> None:
    scorer = bind(make_case(cv=KFold(4), weighted=True), dtype, **settings)
    for selected in (SELECTED, NOTHING):
        together = scorer.add_losses(selected, CANDIDATES).parts
        for i in range(len(CANDIDATES)):
            assert_close(scorer.add_losses(selected, ColumnSets.of([CANDIDATES[i]])).parts[0], together[i], dtype)


@pytest.mark.parametrize("network", ["paper", "strong"])
def test_networks_of_the_package_together_and_alone(network: str) -> None:
    side = {"paper": 8, "strong": 6}[network]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, side * side)), rng.integers(0, 3, size=12)
    scorer = bind(make_case(cv=2, data=(X, y)), network=network, image_shape=None, epochs=1, batch_size=3)
    candidates = ColumnSets.of([[0], [9, 10, 11]])
    together = scorer.add_losses(SELECTED, candidates).parts
    for i in range(2):
        assert_close(scorer.add_losses(SELECTED, ColumnSets.of([candidates[i]])).parts[0], together[i], "float64")
    assert scorer.fit(SELECTED).predict(X).shape == (12, 3)


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_jobs_and_chunks_change_nothing(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case(cv=TimeSeriesSplit(2))
    expected = bind(problem, **settings).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs, numbers in [(1, 1), (2, 2**13), (2, 2**30)]:
        monkeypatch.setattr(networks, "CPU_NUMBERS", numbers)
        found = bind(problem, n_jobs=n_jobs, **settings).add_losses(SELECTED, CANDIDATES).parts
        assert_close(found, expected, "float64")


def slow_to_draw(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    layers, channels = [], image[0]
    for _ in range(3):
        layers += [nn.Conv2d(channels, 6, 1), nn.ReLU()]
        channels = 6
        time.sleep(0.005)  # another thread may come in between
    return with_output(image, n_outputs, *layers)


def slow_to_drop(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            time.sleep(0.002)
            return torch.tanh(x)

    return with_output(image, n_outputs, Slow(), nn.Dropout(0.5), Slow(), nn.Dropout(0.5))


@pytest.mark.parametrize("network", [slow_to_draw, slow_to_drop])
def test_threads_do_not_share_random_numbers(network: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and dropout come from torch's global generator, which all threads have in common."""
    problem = make_case(cv=0.3)
    expected = bind(problem, network=network, epochs=1).add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(networks, "CPU_NUMBERS", 1)  # one candidate a task
    for _ in range(3):
        found = bind(problem, n_jobs=4, network=network, epochs=1).add_losses(SELECTED, CANDIDATES).parts
        assert_close(found, expected, "float64")


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_earlier_calls_change_nothing(settings: dict[str, Any]) -> None:
    problem = make_case(cv=0.3)
    scorer = bind(problem, "float32", **settings)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    other = bind(problem, "float32", **settings)
    other.fit(np.array([0]))
    other.add_losses(np.array([2]), ColumnSets.of([[1], [3]]))
    torch.manual_seed(99)
    for again in (other, pickle.loads(pickle.dumps(scorer))):
        np.testing.assert_array_equal(again.add_losses(SELECTED, CANDIDATES).parts, expected)


@pytest.mark.parametrize("network", [small, dropping_channels, normalised])
def test_torch_keeps_its_own_random_numbers(network: Factory) -> None:
    before = torch.get_rng_state()
    scorer = bind(make_case(), network=network, epochs=1)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert torch.equal(torch.get_rng_state(), before)


def test_rows_without_weight_have_no_say() -> None:
    X, y = make_data("regression")
    problem = make_case("regression", loss="squared_error", weighted=True)
    without = np.flatnonzero(problem.weights == 0)
    assert len(without)
    spoiled, wrong = X.copy(), y.copy()
    spoiled[without] = 1e3
    wrong[without] = -1e4
    other = make_case("regression", loss="squared_error", weighted=True, data=(spoiled, wrong))
    expected, found = (bind(each).add_losses(SELECTED, CANDIDATES).means for each in (problem, other))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_the_scale_of_the_pixels_does_not_matter(scale: float) -> None:
    X, y = make_data("classes")
    expected = bind(make_case()).add_losses(SELECTED, CANDIDATES).means
    found = bind(make_case(data=(scale * X, y))).add_losses(SELECTED, CANDIDATES).means
    np.testing.assert_allclose(found, expected, rtol=1e-6)
