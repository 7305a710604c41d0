"""One-layer SSFNs in plain numpy: their random numbers, their training, their predictions.

This is the model whose validation losses `ngp.kernels.scoring` computes for many candidates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ngp._types import FloatArray
from ngp.kernels.moments import Moments
from ngp.kernels.ridge import solve_output_layer

__all__ = ["Network", "Penalties", "draw_biases", "draw_weights"]

# Streams of random numbers: key and counter name the stream, the position in it the number. So weight h of slot s is
# the same whatever else is drawn, by whom and in which order.
WEIGHT_STREAM, BIAS_STREAM = range(2)


def _numbers(
    seed: int, stream: int, layer: tuple[int, int, int], shape: tuple[int, ...], distribution: str
) -> FloatArray:
    key = np.array([seed, stream], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=[0, *layer]))
    if distribution == "normal":
        return generator.standard_normal(shape)
    return generator.uniform(-1, 1, shape)


def draw_weights(
    seed: int, layer: tuple[int, int, int], n_slots: int, n_units: int, distribution: str = "normal"
) -> FloatArray:
    """Random weights of a layer's first slots; the k-th selected column gets slot k."""
    return _numbers(seed, WEIGHT_STREAM, layer, (n_slots, n_units), distribution)


def draw_biases(seed: int, layer: tuple[int, int, int], n_units: int, distribution: str = "normal") -> FloatArray:
    """Random biases of a layer's units."""
    return _numbers(seed, BIAS_STREAM, layer, (n_units,), distribution)


@dataclass(frozen=True)
class Penalties:
    """How the linear part and the output layer are held back, and whether they have an intercept."""

    ridge: float  # ridge penalties of the output layer and of the linear part
    linear_ridge: float  # ridge penalties of the output layer and of the linear part
    norm_bound: float | None  # largest norm of the output weights
    intercept: bool  # whether both have an intercept
    unit_norm: bool  # whether each sample's random projections are scaled to unit norm


@dataclass(frozen=True)
class Network:
    """A trained network: relu of random projections and of plus and minus a linear prediction, then a linear output."""

    weights: FloatArray
    biases: FloatArray
    slopes: FloatArray  # the linear prediction
    offset: FloatArray  # the linear prediction
    coef: FloatArray  # the output layer
    intercept: FloatArray  # the output layer
    unit_norm: bool

    @classmethod
    def train(
        cls,
        inputs: FloatArray,
        targets: FloatArray,
        sample_weight: FloatArray,
        weights: FloatArray,
        biases: FloatArray,
        penalties: Penalties,
    ) -> Network:
        """Solve for the linear part, then for the output layer."""
        slopes, offset = _linear_part(inputs, targets, sample_weight, penalties)
        features = _features(inputs, weights, biases, slopes, offset, penalties.unit_norm)
        coef, intercept = solve_output_layer(
            features,
            targets,
            ridge=penalties.ridge,
            norm_bound=penalties.norm_bound,
            fit_intercept=penalties.intercept,
            sample_weight=sample_weight,
        )
        return cls(weights, biases, slopes, offset, coef, intercept, penalties.unit_norm)

    @classmethod
    def train_path(
        cls,
        inputs: FloatArray,
        targets: FloatArray,
        sample_weight: FloatArray,
        weights: FloatArray,
        biases: FloatArray,
        penalties: Penalties,
        ridges: Sequence[float],
    ) -> list[Network]:
        """Train as `train` does, for several ridges of the output layer (without norm bound) at the price of one."""
        slopes, offset = _linear_part(inputs, targets, sample_weight, penalties)
        features = _features(inputs, weights, biases, slopes, offset, penalties.unit_norm)
        outputs = _ridge_path(features, targets, sample_weight, ridges, penalties.intercept)
        return [cls(weights, biases, slopes, offset, *output, penalties.unit_norm) for output in outputs]

    @classmethod
    def train_blocks(
        cls,
        blocks: Callable[[], Iterable[tuple[FloatArray, FloatArray, FloatArray]]],
        weights: FloatArray,
        biases: FloatArray,
        penalties: Penalties,
        ridges: Sequence[float],
    ) -> list[Network]:
        """Train as `train` does, for each of some ridges, on rows that come block by block."""
        linear, layer = Moments(penalties.intercept), Moments(penalties.intercept)
        for block in blocks():
            linear.add(*block)
        slopes, offset = linear.solve(ridge=penalties.linear_ridge)
        for inputs, targets, sample_weight in blocks():
            features = _features(inputs, weights, biases, slopes, offset, penalties.unit_norm)
            layer.add(features, targets, sample_weight)
        if len(ridges) > 1:
            outputs = layer.solve_path(ridges)
        else:
            outputs = [layer.solve(ridge=ridges[0], norm_bound=penalties.norm_bound)]
        return [cls(weights, biases, slopes, offset, *output, penalties.unit_norm) for output in outputs]

    def predict(self, inputs: FloatArray) -> FloatArray:
        """Predictions of shape (n_samples, n_outputs)."""
        features = _features(inputs, self.weights, self.biases, self.slopes, self.offset, self.unit_norm)
        return features @ self.coef + self.intercept


def _linear_part(
    inputs: FloatArray, targets: FloatArray, sample_weight: FloatArray, penalties: Penalties
) -> tuple[FloatArray, FloatArray]:
    return solve_output_layer(
        inputs,
        targets,
        ridge=penalties.linear_ridge,
        fit_intercept=penalties.intercept,
        sample_weight=sample_weight,
    )


def _ridge_path(
    features: FloatArray,
    targets: FloatArray,
    sample_weight: FloatArray,
    ridges: Sequence[float],
    intercept: bool,
) -> list[tuple[FloatArray, FloatArray]]:
    """Ridge regressions of positive ridges from one eigendecomposition, of the smaller of the two Gram matrices."""
    mean, target_mean = np.zeros(features.shape[1]), np.zeros(targets.shape[1])
    if intercept:
        mean = np.average(features, axis=0, weights=sample_weight)
        target_mean = np.average(targets, axis=0, weights=sample_weight)
    root = np.sqrt(sample_weight)[:, None]
    design, response = root * (features - mean), root * (targets - target_mean)
    tall = len(design) >= design.shape[1]
    values, vectors = np.linalg.eigh(design.T @ design if tall else design @ design.T)
    left = vectors.T @ (design.T @ response if tall else response)
    solutions = [vectors @ (left / (np.maximum(values, 0) + ridge)[:, None]) for ridge in ridges]
    coefs = solutions if tall else [design.T @ solution for solution in solutions]
    return [(coef, target_mean - mean @ coef) for coef in coefs]


def _features(
    inputs: FloatArray,
    weights: FloatArray,
    biases: FloatArray,
    slopes: FloatArray,
    offset: FloatArray,
    unit_norm: bool,
) -> FloatArray:
    projections = inputs @ weights + biases
    if unit_norm:
        norms = np.linalg.norm(projections, axis=1, keepdims=True)
        projections /= np.where(norms > 0, norms, 1)
    linear = inputs @ slopes + offset
    return np.maximum(np.hstack([projections, linear, -linear]), 0)
