"""Convolutional networks: the final ones, networks of the user's own, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cnn_cases import (
    KINDS,
    N_COLUMNS,
    N_ROWS,
    SELECTED,
    Factory,
    bind,
    images_by_hand,
    initial_network,
    make_case,
    make_cnn,
    make_data,
    normalised,
    predict_plainly,
    small,
    smooth,
    train_plainly,
)
from sklearn.base import clone
from torch import Tensor, nn

from ngp import NeuralGreedyPursuit
from ngp.data.groups import image_windows
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import FINAL_STREAM

pytestmark = pytest.mark.usefixtures("one_torch_thread")

FINALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "classes": ({}, {"n_draws": 2}),
    "two classes": ({"kind": "binary"}, {"network": smooth}),
    "regression, sample weights": ({"kind": "outputs", "loss": "squared_error", "weighted": True}, {}),
    "explicit validation set": ({"cv": "explicit", "loss": "hinge"}, {"weight_decay": 0.1}),
}


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize(("case", "settings"), FINALS.values(), ids=FINALS)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(
    case: dict[str, Any], settings: dict[str, Any], epochs: int
) -> None:
    scorer = bind(problem := make_case(**case), refit_epochs=epochs, **settings)
    images = images_by_hand(problem, SELECTED)
    rows, size = np.flatnonzero(problem.weights[:N_ROWS] > 0), len(SELECTED)
    outputs = []
    for draw in range(scorer.config.n_draws):
        network = initial_network(scorer, size, draw)
        train_plainly(scorer, network, images, rows, size, draw, epochs=epochs, stream=FINAL_STREAM)
        outputs.append(predict_plainly(scorer, network, images))
    found = scorer.fit(SELECTED).predict(problem.X)
    np.testing.assert_allclose(found, np.mean(outputs, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_pixels_that_are_not_selected_have_no_influence(settings: dict[str, Any]) -> None:
    predictor = bind(make_case(), "float32", **settings).fit(SELECTED)
    X = make_data("classes", seed=4)[0]
    expected = predictor.predict(X)
    assert expected.std(axis=0).min() > 0
    others = np.setdiff1d(np.arange(N_COLUMNS), SELECTED)
    for value in (0.0, 1e6, np.nan):
        changed = X.copy()
        changed[:, others] = value
        np.testing.assert_array_equal(predictor.predict(changed), expected)
    changed = X.copy()
    changed[:, SELECTED] += 100
    assert (predictor.predict(changed) != expected).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict(X), expected)


def test_the_final_network_has_the_statistics_of_its_training() -> None:
    module = bind(make_case(), network=normalised).fit(SELECTED).modules[0]
    assert not module.training
    statistics = module[1]
    assert (statistics.running_mean != 0).all()
    assert int(statistics.num_batches_tracked) == 3 * -(-N_ROWS // 6)  # epochs of four batches


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_cross_entropy_predicts_probabilities(kind: str) -> None:
    problem = make_case(kind)
    found = bind(problem, "float32", epochs=10).fit(np.arange(12)).predict(problem.X)
    assert found.min() >= 0
    assert found.max() <= 1
    if kind == "classes":
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("kind", ["regression", "binary", "classes"])
def test_an_easy_problem_is_solved(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(320, 36))
    brightness = X[:, [14, 15, 20, 21]].sum(axis=1)  # a window of two by two
    level = np.digitize(brightness, np.quantile(brightness, [1 / 3, 2 / 3] if kind == "classes" else [0.5]))
    y = brightness if kind == "regression" else np.array(["dark", "grey", "light"])[level]
    predictor = make_cnn(network=smooth, image_shape=None, epochs=20, refit_epochs=20, batch_size=16)
    groups = image_windows((6, 6), 2)
    selector = NeuralGreedyPursuit(
        predictor, groups=groups, n_features_to_select=1, cv=0.3, random_state=0, device="cpu"
    ).fit(X[:120], y[:120])
    assert np.flatnonzero(selector.support_).tolist() == [14, 15, 20, 21]
    assert selector.score(X[120:], y[120:]) > {"regression": 0.8, "binary": 0.8, "classes": 0.7}[kind]


# Networks of the user's own


class Bare(nn.Module):
    """Parameters in a list, and no layers."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList([0.1 * torch.randn(int(np.prod(image)), n_outputs)])

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weights[0]


OWN: dict[str, Factory] = {"parameters in a list": Bare, "through vmap": smooth, "running statistics": normalised}


@pytest.mark.parametrize("network", OWN.values(), ids=OWN)
def test_networks_of_ones_own_select_and_predict(network: Factory) -> None:
    X, y = make_data("classes")
    predictor = make_cnn(network=network)
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0).fit(X, y)
    assert len(selector.order_) == 2
    assert set(selector.predict(X)) <= set(y)


def test_the_factory_gets_the_shape_of_the_image_as_torch_has_it() -> None:
    asked = []

    def noting(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
        asked.append((image, n_outputs))
        return small(image, n_outputs)

    bind(make_case(), network=noting)
    bind(make_case("outputs", loss="squared_error"), network=noting, image_shape=[10, 6])
    assert set(asked) == {((2, 5, 6), 3), ((1, 10, 6), 3)}


def test_a_square_image_needs_no_shape() -> None:
    data = np.random.default_rng(0).normal(size=(20, 25)), np.arange(20) % 2
    assert bind(make_case(data=data), image_shape=None).shape == (5, 5, 1)


# What goes wrong


def returning(outputs: Callable[[Tensor], Any]) -> Factory:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Any:
            return outputs(x)

    return lambda image, n_outputs: Wrong()


WRONG_NETWORKS = {
    "number of outputs": (returning(lambda x: x.flatten(1)[:, :4]), r"network returned \(2, 4\) for images of shape"),
    "images": (returning(lambda x: x), r"network returned \(2, 2, 5, 6\) .*\(2, 2, 5, 6\): it must return \(2, 3\)"),
    "one number": (returning(lambda x: x.sum()), r"network returned \(\) .* one row of outputs for each image"),
    "a tuple": (returning(lambda x: (x, x)), r"network returned tuple for images .*: it must return \(2, 3\)"),
    "an array": (returning(lambda x: x.numpy()), "network returned ndarray for images"),
    "nothing": (returning(lambda x: None), "network returned NoneType for images"),
    "no network": (lambda image, n_outputs: "network", "network"),
}


@pytest.mark.parametrize(("network", "message"), WRONG_NETWORKS.values(), ids=WRONG_NETWORKS)
def test_a_network_that_returns_something_else(network: Factory, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        bind(make_case(), network=network)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "image_shape=None, and X with 60 columns is no square image: give image_shape"),
        (
            (7, 8),
            r"image_shape=\(7, 8\) has 56 pixels, and X has 60 columns: give the shape of the images whose pixels",
        ),
        ([5, 6, 3], r"image_shape=\(5, 6, 3\) has 90 pixels, and X has 60 columns"),
        ((60,), r"image_shape=\(60,\) must be \(rows, cols\) or \(rows, cols, channels\)"),
        ((1, 5, 6, 2), r"image_shape=\(1, 5, 6, 2\) must be \(rows, cols\)"),
        ((-5, -6, 2), r"image_shape=\(-5, -6, 2\) must be"),
        ((0, 60), r"image_shape=\(0, 60\) must be"),
        ((7.5, 8), r"image_shape=\(7.5, 8\) must be"),
        (("5", "12"), r"image_shape=\('5', '12'\) must be"),
        (60, "The 'image_shape' parameter of CNN must be"),
        ("5x12", "The 'image_shape' parameter of CNN must be"),
    ],
)
def test_a_shape_that_does_not_fit(shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind(make_case(), image_shape=shape)


@pytest.mark.parametrize("side", [2, 7])
def test_an_image_that_is_too_small_for_the_network(side: int) -> None:
    data = np.random.default_rng(0).normal(size=(20, side * side)), np.arange(20) % 2
    message = f"image_shape: images of {side} x {side} pixels are too small for this network: give larger ones, or a"
    with pytest.raises(ValueError, match=message):
        bind(make_case(data=data), network="paper", image_shape=(side, side))


class NotANumber(nn.Module):
    """Fails as soon as it sees one of some pixels."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int, pixels: tuple[int, ...] = (3,)) -> None:
        super().__init__()
        self.layers, self.pixels = small(image, n_outputs), list(pixels)

    def forward(self, x: Tensor) -> Tensor:
        seen = (x.flatten(1)[:, self.pixels] != 0).any(dim=1, keepdim=True)
        return torch.where(seen, torch.nan, self.layers(x))


def test_a_candidate_whose_network_fails_loses() -> None:
    X, y = make_data("classes")
    scorer = bind(make_case(), network=NotANumber, image_shape=(6, 10))
    losses = scorer.add_losses(SELECTED, ColumnSets.of([[2], [3], [4, 3], []])).means
    assert np.isnan(losses).tolist() == [False, True, True, False]
    predictor = make_cnn(network=NotANumber, image_shape=(6, 10))
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0)
    with pytest.warns(UserWarning, match="^1 candidates have a loss that is no finite number: they lose"):
        selector.fit(X, y)
    assert 3 not in selector.order_
    assert np.isnan(selector.path_[1].losses[3])
    assert np.isfinite([step.loss for step in selector.path_]).all()
    assert np.isfinite(selector.predict_proba(X)).all()


def always_nan(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return NotANumber(image, n_outputs, tuple(range(N_COLUMNS)))


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@pytest.mark.parametrize("settings", [{"network": always_nan}, {"learning_rate": 1e30}])
def test_a_pursuit_in_which_every_candidate_fails_ends(settings: dict[str, Any]) -> None:
    X, y = make_data("regression")
    predictor = make_cnn(**{"image_shape": (6, 10), **settings})
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0)
    message = "Step 1 ends the pursuit: the loss of every candidate is NaN or infinite"
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match=message):
        selector.fit(X, y)
    assert len(selector.order_) == 0
    np.testing.assert_allclose(selector.predict(X), y.mean())


BAD_SETTINGS = {
    "network": "resnet", "epochs": 0, "batch_size": 0, "learning_rate": 0.0, "weight_decay": -1.0, "n_draws": 0,
    "warm_start": "yes", "refit_epochs": 0, "dtype": "half",
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS.items())
def test_bad_settings_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of CNN must be"):
        bind(make_case(), **{name: value})


def test_a_device_that_is_not_there() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match=r"device='cuda' isn't available here .*: use device='cpu' or 'auto'"):
        make_cnn().bind(make_case(), random_state=0, device="cuda")


def test_the_configuration_is_cloned_and_pickled() -> None:
    config = make_cnn(n_draws=3, warm_start=True)
    assert clone(config).get_params() == config.get_params()
    assert pickle.loads(pickle.dumps(config)).get_params() == config.get_params()
    assert config.classification_loss == "cross_entropy"
