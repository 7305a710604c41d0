"""The DeepLIFT baseline: what it finds, and agreement with shap called by hand on the trained networks."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from ngp._types import AnyArray, FloatArray
from ngp.baselines.base import PredictorEstimator
from ngp.baselines.deeplift import DeepLIFT
from ngp.kernels import devices
from ngp.predictors import CNN, MLP
from ngp.predictors.networks import NetworkPredictor, NetworkScorer

pytestmark = pytest.mark.usefixtures("one_torch_thread")
SMALL = MLP(n_units=20)
SHAPE = (9, 8)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[NetworkPredictor]:
    """What has been trained in a test."""
    predictors: list[NetworkPredictor] = []
    fit = NetworkScorer.fit

    def watched(self: NetworkScorer, selected: Any) -> NetworkPredictor:
        predictors.append(fit(self, selected))
        return predictors[-1]

    monkeypatch.setattr(NetworkScorer, "fit", watched)
    return predictors


def smooth_data(n_rows: int = 400) -> tuple[FloatArray, FloatArray]:
    """An easy problem: a smooth function of two of eight columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 8))
    return X, np.sin(2 * X[:, 2]) + X[:, 5] ** 2 + 0.1 * rng.normal(size=n_rows)


def images(n_rows: int = 60) -> tuple[FloatArray, AnyArray]:
    """Images with a constant border on three sides; classes show in two places."""
    rng = np.random.default_rng(0)
    X = np.full((n_rows, *SHAPE), 3.0)
    X[:, 1:, 1:7] = rng.random((n_rows, 8, 6))
    y = rng.integers(3, size=n_rows)
    X[:, 2, 3] += 2 * (y == 1)
    X[:, 5, 5] += 2 * (y == 2)
    return X.reshape(n_rows, -1), np.array(["a", "b", "c"])[y]


def small_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    n_hidden = 4 * ((image[1] - 2) // 2) * ((image[2] - 2) // 2)
    return nn.Sequential(
        nn.Conv2d(image[0], 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(n_hidden, n_outputs)
    )


def normalised(values: AnyArray) -> FloatArray:
    return np.asarray(values / values.sum(), dtype=np.float64)


def by_shap(network: nn.Module, inputs: FloatArray) -> FloatArray:
    """Contributions (samples, ..., outputs) of all samples, compared with all samples."""
    rows = torch.from_numpy(inputs)
    values = shap.DeepExplainer(copy.deepcopy(network).double(), rows).shap_values(rows, check_additivity=False)
    return np.asarray(values)


# What it finds


@pytest.mark.parametrize("n_layers", [1, 2])
def test_finds_a_smooth_function_of_two_columns(n_layers: int) -> None:
    selector = DeepLIFT(predictor=MLP(n_layers=n_layers), n_features_to_select=2, random_state=0).fit(*smooth_data())
    assert selector.get_support(indices=True).tolist() == [2, 5]
    assert selector.importances_[[2, 5]].sum() > 0.7
    assert selector.importances_.sum() == pytest.approx(1)


def test_finds_the_places_where_classes_show() -> None:
    X, y = images(300)
    network = CNN(network=small_network, image_shape=SHAPE)
    with pytest.warns(UserWarning, match="constant features, 24 of 72"):
        selector = DeepLIFT(predictor=network, n_features_to_select=2, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2 * 8 + 3, 5 * 8 + 5]


def test_units_do_not_matter() -> None:
    X, y = smooth_data(100)
    selector = DeepLIFT(predictor=SMALL, random_state=0)
    expected = selector.fit(X, y).importances_
    powers = 2.0 ** np.array([-600, -30, 0, 1, 5, 30, 100, 300])
    np.testing.assert_allclose(selector.fit(X * powers, 2.0**-600 * y).importances_, expected, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_units_of_pixels_do_not_matter() -> None:
    X, y = images()
    selector = DeepLIFT(predictor=CNN(network=small_network, image_shape=SHAPE, epochs=2), random_state=0)
    expected = selector.fit(X, y).importances_
    np.testing.assert_array_equal(selector.fit(2.0**-600 * X, y).importances_, expected)


# Agreement with shap, called by hand


@pytest.mark.parametrize("kind", ["regression", "several outputs", "two classes", "three classes"])
def test_agrees_with_shap_on_perceptrons(kind: str, trained: list[NetworkPredictor]) -> None:
    X, y = smooth_data(60)
    targets = {
        "regression": y,
        "several outputs": np.column_stack([y, 3 * X[:, 0] ** 2, X[:, 1]]),
        "two classes": np.where(y > 1, "yes", "no"),
        "three classes": np.digitize(y, [0.5, 1.5]),
    }
    importances = DeepLIFT(predictor=SMALL, random_state=0).fit(X, targets[kind]).importances_
    (predictor,) = trained
    assert len(predictor.modules) == 2
    inputs = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -4, 4)
    contributions = np.mean([by_shap(module, inputs) for module in predictor.modules], axis=0)
    n_outputs = {"several outputs": 3, "three classes": 3}.get(kind, 1)
    assert contributions.shape == (60, 8, n_outputs)
    np.testing.assert_allclose(importances, normalised(np.abs(contributions).sum(axis=(0, 2))), rtol=1e-4)


def test_standardised_and_clipped_columns_contribute_as_they_are(trained: list[NetworkPredictor]) -> None:
    rng = np.random.default_rng(0)
    X = 5 + 3 * rng.standard_t(df=1.5, size=(80, 3))
    importances = DeepLIFT(predictor=MLP(n_units=20, n_draws=1, clip=1.0), random_state=0).fit(X, X[:, 0]).importances_
    mean, scale = X.mean(axis=0), X.std(axis=0)
    assert (np.abs((X - mean) / scale) > 1).any(axis=0).all()
    # On X as it is: clipped to one deviation is relu(z + 1) − relu(z − 1) − 1.
    both, difference = nn.Linear(3, 6), nn.Linear(6, 3)
    both.weight.data = torch.from_numpy(np.concatenate([np.diag(1 / scale)] * 2))
    both.bias.data = torch.from_numpy(np.concatenate([1 - mean / scale, -1 - mean / scale]))
    difference.weight.data = torch.cat([torch.eye(3), -torch.eye(3)], dim=1)
    difference.bias.data = -torch.ones(3)
    network = nn.Sequential(both, nn.ReLU(), difference, *trained[0].modules[0])
    np.testing.assert_allclose(importances, normalised(np.abs(by_shap(network, X)).sum(axis=(0, 2))), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:X has constant features")
@pytest.mark.parametrize(("network", "shape"), [("paper", (9, 8)), (small_network, (9, 4, 2))])
def test_agrees_with_shap_on_images_with_constant_borders(
    network: Any, shape: tuple[int, ...], trained: list[NetworkPredictor]
) -> None:
    X, y = images(20)
    predictor = CNN(network=network, image_shape=shape, epochs=2, n_draws=2)
    importances = DeepLIFT(predictor=predictor, random_state=0).fit(X, y).importances_
    varies = np.ptp(X, axis=0) > 0
    seen = np.where(varies, X, 0) / np.sqrt((X[:, varies] ** 2).mean())
    pictures = np.moveaxis(seen.reshape(20, *(*shape, 1)[:3]), 3, 1).copy()
    contributions = np.mean([by_shap(module, pictures) for module in trained[0].modules], axis=0)
    expected = np.moveaxis(np.abs(contributions).sum(axis=(0, 4)), 0, 2).ravel()
    np.testing.assert_allclose(importances, normalised(expected), rtol=1e-3, atol=1e-7)
    assert (importances[~varies] == 0).all()
    assert (importances > 0).sum() > 20  # most of what the network reads


# The samples and the training


@pytest.mark.parametrize(("n_explained", "n_background", "shapes"), [(5, 7, (5, 7)), (1000, 1000, (50, 50))])
def test_number_of_samples(
    n_explained: int, n_background: int, shapes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []

    def watched(network: nn.Module, inputs: Tensor, baselines: Tensor) -> Tensor:
        seen.extend([inputs, baselines])
        return torch.ones(len(inputs), 1, 8)

    monkeypatch.setattr("ngp.kernels.deeplift.attributions", watched)
    X, y = smooth_data(50)
    DeepLIFT(predictor=SMALL, n_explained=n_explained, n_background=n_background, random_state=0).fit(X, y)
    inputs, baselines = seen[:2]
    assert (len(inputs), len(baselines)) == shapes
    for rows in (inputs, baselines):  # each a sample of X, none twice
        assert len(np.unique(rows.numpy(), axis=0)) == len(rows)
        distances = np.abs(((X - X.mean(axis=0)) / X.std(axis=0))[:, None] - rows.numpy()).max(axis=2)
        assert distances.min(axis=0).max() < 1e-12
    assert not torch.equal(inputs[:5], baselines[:5])


@pytest.mark.parametrize(
    ("predictor", "epochs"),
    [("mlp", 10), (MLP(epochs=4, refit_epochs=6), 6)],
)
def test_epochs_are_those_of_the_predictor(predictor: Any, epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[int] = []
    plan = NetworkScorer.plan

    def watched(self: NetworkScorer, splits: Any, n_epochs: int, *key: int) -> Any:
        trainings.append(n_epochs)
        return plan(self, splits, n_epochs, *key)

    monkeypatch.setattr(NetworkScorer, "plan", watched)
    before = copy.deepcopy(predictor)
    DeepLIFT(predictor=predictor, random_state=0).fit(*smooth_data(40))
    n_draws = 2 if isinstance(predictor, str) else predictor.n_draws
    assert trainings == [epochs] * n_draws  # no search
    assert repr(predictor) == repr(before)


def test_same_seed_same_answer_and_another_seed_another() -> None:
    X, y = smooth_data(100)
    first, again, other = (
        DeepLIFT(predictor=SMALL, n_explained=20, n_background=20, random_state=seed).fit(X, y).importances_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_torch_is_left_alone() -> None:
    state, n_threads = torch.random.get_rng_state(), 2
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        DeepLIFT(predictor=SMALL, random_state=0).fit(*smooth_data(40))
        assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_category_columns() -> None:
    rng = np.random.default_rng(0)
    town = rng.choice(["Bonn", "Kiel", "Ulm"], size=300)
    frame = pd.DataFrame({"a": rng.normal(size=300), "town": pd.Categorical(town), "b": rng.normal(size=300)})
    y = np.sin(2 * frame["a"].to_numpy()) + (town == "Kiel") - (town == "Ulm")
    selector = DeepLIFT(predictor=SMALL, n_features_to_select=2, random_state=0).fit(frame, y)
    assert selector.get_feature_names_out().tolist() == ["a", "town"]
    assert selector.importances_.shape == (3,)


# Networks of its own kind


def test_own_estimator_is_the_predictor() -> None:
    X, y = smooth_data()
    selector = DeepLIFT(predictor=SMALL, n_features_to_select=2, random_state=0).fit(X, y)
    own = selector.own_estimator()
    assert isinstance(own, PredictorEstimator)
    assert (own.predictor, own.task, own.random_state) == (SMALL, "regression", 0)
    assert own.fit(selector.transform(X), y).score(selector.transform(X), y) > 0.9


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_own_estimator_puts_pixels_in_their_places() -> None:
    X, y = images()
    network = CNN(network=small_network, image_shape=SHAPE, epochs=2, refit_epochs=2)
    selector = DeepLIFT(predictor=network, n_features_to_select=5, random_state=0).fit(X, y)
    own = selector.own_estimator()
    assert isinstance(own, Pipeline)
    chosen = selector.transform(X)
    predictions = pickle.loads(pickle.dumps(clone(own).fit(chosen, y))).predict(chosen)
    everywhere = np.where(selector.support_, X, 0)
    alone = PredictorEstimator(network, task="classification", random_state=0).fit(everywhere, y)
    np.testing.assert_array_equal(predictions, alone.predict(everywhere))
    assert set(predictions) <= set("abc")


# What it refuses


def test_torch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"DeepLIFT needs torch: install it with pip install .*\[torch\]"):
        DeepLIFT().fit(*smooth_data(40))


@pytest.mark.parametrize("predictor", ["ssfn", MLP])
def test_other_predictors_are_refused(predictor: Any) -> None:
    with pytest.raises(ValueError, match=r"'predictor' parameter of DeepLIFT must be a str among .*'mlp'.*MLP.*CNN"):
        DeepLIFT(predictor=predictor).fit(*smooth_data(40))


def tanh_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(image[1] * image[2], n_outputs))


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_a_network_without_rules_is_refused_before_it_is_trained(trained: list[NetworkPredictor]) -> None:
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match=r"network holds Tanh\(\), and there is no DeepLIFT rule for that"):
        DeepLIFT(predictor=CNN(network=tanh_network)).fit(X[:50, 16:52], y[:50])
    assert not trained


def test_categories_are_no_pixels() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "town": pd.Categorical(["Bonn", "Kiel", "Ulm", "Ulm"])})
    with pytest.raises(ValueError, match="CNN takes features for pixels, and X has category columns: use predictor="):
        DeepLIFT(predictor="cnn").fit(frame, [0.5, 1.5, 2.2, 3.1])


def test_images_must_have_the_shape_that_is_said() -> None:
    with pytest.raises(ValueError, match="X with 8 columns is no square image: give image_shape"):
        DeepLIFT(predictor="cnn").fit(*smooth_data(40))


def test_training_that_diverges() -> None:
    predictor = MLP(n_units=5, learning_rate=1e30)
    with pytest.raises(ValueError, match=r"learning_rate=1e\+30.* diverged in training: give one with a lower"):
        DeepLIFT(predictor=predictor, random_state=0).fit(*smooth_data(40))


def test_nothing_to_explain() -> None:
    X, _ = smooth_data(40)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        selector = DeepLIFT(predictor=SMALL, random_state=0).fit(X, np.full(40, 2.5))
    assert not selector.importances_.any()
