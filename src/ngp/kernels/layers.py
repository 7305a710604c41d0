"""Self size-estimating feed-forward networks (SSFN): their random numbers, their training, their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ngp._types import FloatArray
from ngp.kernels.ridge import Rows, fit_ridge

__all__ = [
    "Growth",
    "Layer",
    "Network",
    "draw_biases",
    "draw_weights",
    "grow_network",
    "hidden_units",
    "train_networks",
]

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


@dataclass(frozen=True)
class Growth:
    """How a network grows and how its weights are trained; see `ngp.SSFNRegressor`."""

    max_layers: int
    max_units: int
    units_per_step: int
    node_tol: float
    layer_tol: float
    linear_ridge: float
    ridge: float
    norm_bound: float | None
    bias: bool
    unit_norm: bool


def grow_network(
    inputs: FloatArray,
    targets: FloatArray,
    sample_weight: FloatArray,
    growth: Growth,
    rng: np.random.RandomState,
) -> tuple[Network, list[float]]:
    """Add layers until the next one lowers the training cost by less than ``layer_tol``, relatively.

    The cost is the normalised mean error ||T - prediction||_F / ||T||_F, returned before the first layer and after
    each. It never rises from layer to layer (see :func:`_grow_layer`).
    """
    ((coef, intercept),) = fit_ridge([(inputs, targets, sample_weight)], [growth.linear_ridge], intercept=growth.bias)
    hidden, prediction = inputs, inputs @ coef + intercept
    layers: list[Layer] = []
    costs = [_cost(prediction, targets, sample_weight)]
    while len(layers) < growth.max_layers:
        layer, hidden, cost = _grow_layer(hidden, prediction, targets, sample_weight, growth, rng)
        prediction = hidden @ layer.coef + layer.intercept
        layers.append(layer)
        costs.append(cost)
        if not _pays(costs[-2], cost, growth.layer_tol):
            break
    return Network(coef, intercept, layers, growth.unit_norm), costs


def _grow_layer(
    below: FloatArray,
    prediction: FloatArray,
    targets: FloatArray,
    sample_weight: FloatArray,
    growth: Growth,
    rng: np.random.RandomState,
) -> tuple[Layer, FloatArray, float]:
    """Add random units until the next ones lower the training cost by less than ``node_tol``, relatively.

    The ridge shrinks the output weights not to zero but to those that reproduce the prediction of the layer
    below. These have no penalty, so the penalised squared error of the solution, and its squared error all
    the more, is at most the squared error of the layer below: the lossless flow property, for every ridge.
    It needs these weights to be feasible: a norm bound of at least sqrt(2 n_outputs).
    """
    weights, bias = np.empty((below.shape[1], 0)), np.empty(0)
    projections = np.empty((len(below), 0))
    previous_cost = np.inf
    for new_weights, new_bias in _random_units(below.shape[1], growth, rng):
        weights, bias = np.hstack([weights, new_weights]), np.append(bias, new_bias)
        projections = np.hstack([projections, below @ new_weights + new_bias])
        hidden = hidden_units(prediction, projections, growth.unit_norm)
        ((coef, intercept),) = fit_ridge(
            [(hidden, targets, sample_weight)],
            [growth.ridge],
            intercept=growth.bias,
            norm_bound=growth.norm_bound,
            centre=_lossless_coef(hidden.shape[1], targets.shape[1]),
        )
        cost = _cost(hidden @ coef + intercept, targets, sample_weight)
        if not _pays(previous_cost, cost, growth.node_tol):
            break
        previous_cost = cost
    return Layer(weights, bias, coef, intercept), hidden, cost


def _random_units(n_inputs: int, growth: Growth, rng: np.random.RandomState) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the weights and biases of one step of random units after the other, up to the largest width."""
    for start in range(0, growth.max_units, growth.units_per_step):
        n_new = min(growth.units_per_step, growth.max_units - start)
        # Pre-activations of unit variance for inputs of unit variance, however many inputs there are.
        weights = rng.uniform(-1.0, 1.0, size=(n_inputs, n_new)) * np.sqrt(3.0 / n_inputs)
        bias = rng.uniform(-1.0, 1.0, size=n_new) if growth.bias else np.zeros(n_new)
        yield weights, bias


def _lossless_coef(n_hidden: int, n_outputs: int) -> FloatArray:
    """Return the output weights that reproduce the prediction of the layer below: relu(p) - relu(-p) = p."""
    coef = np.zeros((n_hidden, n_outputs))
    coef[:n_outputs] = np.eye(n_outputs)
    coef[n_outputs : 2 * n_outputs] = -np.eye(n_outputs)
    return coef


def _cost(prediction: FloatArray, targets: FloatArray, sample_weight: FloatArray) -> float:
    error = float(np.sqrt(sample_weight @ ((prediction - targets) ** 2).sum(axis=1)))
    size = float(np.sqrt(sample_weight @ (targets**2).sum(axis=1)))
    return error / size if size > 0 else error


def _pays(before: float, after: float, tol: float) -> bool:
    return before == np.inf or before - after >= max(tol * before, np.finfo(float).tiny)
