"""Quick predictors, and selectors that are fitted with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor
from ngp.data.problem import Problem
from ngp.predictors import CNN, MLP, SSFN
from ngp.predictors.base import ColumnSets, Losses, Predictor, Scorer

FAST_SSFN = SSFN(n_units=12, n_draws=1, refit_units=12)
FAST_MLP = MLP(n_units=16, epochs=6, batch_size=16, n_draws=1, refit_epochs=6)
N_COLUMNS = 5


def tiny_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    layers = [nn.Conv2d(image[0], 3, (1, 2)), nn.Tanh(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(3 * image[1] * (image[2] - 1), n_outputs))


FAST_CNN = CNN(network=tiny_network, image_shape=(1, 5), epochs=2, refit_epochs=2)


def make_data(kind: str = "regression", n_samples: int = 70, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 3 and 1, the former more important."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, N_COLUMNS))
    signal = 2 * X[:, 3] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n_samples)
    y = {
        "regression": signal,
        "outputs": np.stack([signal, -X[:, 3]], axis=1),
        "binary": np.where(signal > 0.5, "up", "down"),
        "classes": np.array(["a", "b", "c"])[np.digitize(signal, [-1, 1.5])],
    }[kind]
    return X, y


def make_selector(predictor: Any, kind: str = "regression", **settings: Any) -> Any:
    common = {"n_features_to_select": 2, "cv": 3, "device": "cpu", "random_state": 0}
    selector = NGPClassifier if kind in ("binary", "classes") else NGPRegressor
    return selector(predictor, **{**common, **settings})


def fit(predictor: Any, kind: str = "regression", **settings: Any) -> Any:
    return make_selector(predictor, kind, **settings).fit(*make_data(kind))


def names(selector: NeuralGreedyPursuit) -> list[str]:
    return [step.predictor for step in selector.path_[1:]]


class OnlySquares(Predictor, Scorer):
    """A predictor of the user's own, which can't do every loss."""

    losses = frozenset({"squared_error"})

    def bind(self, problem: Problem, **conditions: Any) -> Any:
        assert set(conditions) == {"random_state", "n_jobs", "device"}
        return self

    def add_losses(self, selected: Any, candidates: ColumnSets) -> Losses:
        return Losses(1.0 + np.arange(len(candidates))[:, None], np.ones(1))

    def fit(self, selected: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.ones((len(X), 1))
