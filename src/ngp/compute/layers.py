"""One-layer SSFNs in plain numpy: their random numbers, their training, their predictions.

This is the model whose validation losses `ngp.compute.scoring` computes for many candidates at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ngp._types import FloatArray
from ngp.compute.ridge import solve_output_layer

__all__ = ["Network", "Penalties", "draw_biases", "draw_weights"]

# Streams of random numbers: a key names the stream, its position the number. So weight h of slot s is the same
# whatever else is drawn, by whom and in which order.
WEIGHT_STREAM, BIAS_STREAM, REDRAW_STREAM = range(3)


def _generator(seed: int, stream: int, draw: int, candidate: int = 0) -> np.random.Generator:
    counter = [0, 0, candidate, draw]
    return np.random.Generator(np.random.Philox(key=np.array([seed, stream], np.uint64), counter=counter))


def _numbers(generator: np.random.Generator, shape: tuple[int, ...], distribution: str) -> FloatArray:
    if distribution == "normal":
        return generator.standard_normal(shape)
    return generator.uniform(-1, 1, shape)


def draw_weights(
    seed: int, draw: int, n_slots: int, n_units: int, distribution: str = "normal", candidate: int | None = None
) -> FloatArray:
    """Random weights of the first slots; the k-th selected column gets slot k.

    Parameters
    ----------
    seed, draw : int
        Which network.
    n_slots, n_units : int
        Shape of the result.
    distribution : {"normal", "uniform"}
        Standard normal, or uniform between -1 and 1.
    candidate : int, optional
        Name of a candidate that gets weights of its own in every slot.

    Examples
    --------
    >>> few, more = draw_weights(0, 0, 2, 5), draw_weights(0, 0, 7, 5)
    >>> bool((few == more[:2]).all())
    True
    """
    if candidate is None:
        generator = _generator(seed, WEIGHT_STREAM, draw)
    else:
        generator = _generator(seed, REDRAW_STREAM + n_slots, draw, candidate)
    return _numbers(generator, (n_slots, n_units), distribution)


def draw_biases(seed: int, draw: int, n_units: int, distribution: str = "normal") -> FloatArray:
    """Random biases of the units.

    Examples
    --------
    >>> draw_biases(0, 0, 3).shape
    (3,)
    """
    return _numbers(_generator(seed, BIAS_STREAM, draw), (n_units,), distribution)


@dataclass(frozen=True)
class Penalties:
    """How the linear part and the output layer are held back, and whether they have an intercept.

    Attributes
    ----------
    ridge, linear_ridge : float
        Ridge penalties of the output layer and of the linear part.
    norm_bound : float or None
        Largest norm of the output weights.
    intercept : bool
        Whether both have an intercept.
    unit_norm : bool
        Whether each sample's random projections are scaled to unit norm.
    """

    ridge: float
    linear_ridge: float
    norm_bound: float | None
    intercept: bool
    unit_norm: bool


@dataclass(frozen=True)
class Network:
    """A trained network: relu of random projections and of plus and minus a linear prediction, then a linear output.

    Attributes
    ----------
    weights : array of shape (n_inputs, n_units)
    biases : array of shape (n_units,)
    slopes, offset : arrays of shape (n_inputs, n_outputs) and (n_outputs,)
        The linear prediction.
    coef, intercept : arrays of shape (n_units + 2 n_outputs, n_outputs) and (n_outputs,)
        The output layer.
    unit_norm : bool
    """

    weights: FloatArray
    biases: FloatArray
    slopes: FloatArray
    offset: FloatArray
    coef: FloatArray
    intercept: FloatArray
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
        """Solve for the linear part, then for the output layer.

        Examples
        --------
        >>> x = np.linspace(-2, 2, 50)[:, None]
        >>> penalties = Penalties(1e-3, 1e-3, None, True, False)
        >>> weights, biases = draw_weights(0, 0, 1, 40), draw_biases(0, 0, 40)
        >>> network = Network.train(x, x**2, np.ones(50), weights, biases, penalties)
        >>> bool(np.abs(network.predict(x) - x**2).max() < 0.05)
        True
        """
        slopes, offset = solve_output_layer(
            inputs,
            targets,
            ridge=penalties.linear_ridge,
            fit_intercept=penalties.intercept,
            sample_weight=sample_weight,
        )
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

    def predict(self, inputs: FloatArray) -> FloatArray:
        """Predictions of shape (n_samples, n_outputs)."""
        features = _features(inputs, self.weights, self.biases, self.slopes, self.offset, self.unit_norm)
        return features @ self.coef + self.intercept


def _features(
    inputs: FloatArray,
    weights: FloatArray,
    biases: FloatArray,
    slopes: FloatArray,
    offset: FloatArray,
    unit_norm: bool,
) -> FloatArray:
    projections = inputs @ weights
    if unit_norm:
        norms = np.linalg.norm(projections, axis=1, keepdims=True)
        projections /= np.where(norms > 0, norms, 1)
    linear = inputs @ slopes + offset
    return np.maximum(np.hstack([projections + biases, linear, -linear]), 0)
