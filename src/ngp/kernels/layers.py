"""Networks with random hidden layers (SSFN): their random numbers, training and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ngp._types import FloatArray
from ngp.kernels.ridge import Rows, fit_ridge

__all__ = ["Layer", "Network", "draw_biases", "draw_weights", "hidden_units", "train_networks"]

# Streams of random numbers: key and counter name the stream, the position in it the number. So weight h of slot s is
# the same whatever else is drawn, by whom and in which order.
WEIGHT_STREAM, BIAS_STREAM = range(2)


def random_stream(seed: int, stream: int, layer: tuple[int, int, int]) -> np.random.Generator:
    """Random numbers of a layer, which has three numbers for a name."""
    key = np.array([seed, stream], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, *layer]))


def draw_weights(seed: int, layer: tuple[int, int, int], n_slots: int, n_units: int) -> FloatArray:
    """Random weights of a layer's first slots; the k-th selected column gets slot k."""
    return random_stream(seed, WEIGHT_STREAM, layer).standard_normal((n_slots, n_units))


def draw_biases(seed: int, layer: tuple[int, int, int], n_units: int) -> FloatArray:
    """Random biases of a layer's units."""
    return random_stream(seed, BIAS_STREAM, layer).standard_normal(n_units)


@dataclass(frozen=True)
class Layer:
    """A hidden layer with the linear output layer on top of it.

    Its first 2Q units carry the prediction of the layer below, split by sign; the others are random.
    """

    weights: FloatArray  # (width of the layer below, random units)
    bias: FloatArray  # (random units,)
    coef: FloatArray  # (2Q + random units, Q)
    intercept: FloatArray  # (Q,)


@dataclass(frozen=True)
class Network:
    """A linear prediction refined by hidden layers."""

    coef: FloatArray
    intercept: FloatArray
    layers: list[Layer]
    unit_norm: bool = False  # whether each sample's random projections are scaled to unit norm

    def predict(self, inputs: FloatArray) -> FloatArray:
        """Predictions of shape (n_samples, n_outputs)."""
        prediction: FloatArray = inputs @ self.coef + self.intercept
        hidden = inputs
        for layer in self.layers:
            hidden = hidden_units(prediction, hidden @ layer.weights + layer.bias, self.unit_norm)
            prediction = hidden @ layer.coef + layer.intercept
        return prediction


def hidden_units(prediction: FloatArray, projections: FloatArray, unit_norm: bool = False) -> FloatArray:
    """Hidden layer above a prediction and random projections of the layer below."""
    if unit_norm:
        norms = np.linalg.norm(projections, axis=1, keepdims=True)
        projections = projections / np.where(norms > 0, norms, 1.0)
    hidden: FloatArray = np.hstack([prediction, -prediction, projections])
    return np.maximum(hidden, 0.0, out=hidden)


def train_networks(
    blocks: Callable[[], Iterable[Rows]],
    random_layers: Iterable[tuple[FloatArray, FloatArray]],
    *,
    linear_ridge: float,
    ridges: Sequence[float],
    intercept: bool,
    norm_bound: float | None = None,
    unit_norm: bool = False,
) -> list[tuple[Network, ...]]:
    """Networks with one hidden layer of given random weights and biases: for each ridge one network a random layer."""
    ((slopes, offset),) = fit_ridge(blocks(), [linear_ridge], intercept=intercept)

    def hidden_blocks(weights: FloatArray, bias: FloatArray) -> Iterator[Rows]:
        for inputs, targets, sample_weight in blocks():
            hidden = hidden_units(inputs @ slopes + offset, inputs @ weights + bias, unit_norm)
            yield hidden, targets, sample_weight

    networks = []
    for layer in random_layers:
        outputs = fit_ridge(hidden_blocks(*layer), ridges, intercept=intercept, norm_bound=norm_bound)
        networks.append([Network(slopes, offset, [Layer(*layer, *output)], unit_norm) for output in outputs])
    return list(zip(*networks, strict=True))
