"""Losses of single samples, for predictions of coded targets.

Regression targets are coded as they are; classes as one 0/1 column per class, or as a single 0/1 column if there are
only two (see `ngp.data.problem.code_targets`). Predictors of classes return estimates of those columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray

__all__ = ["CLASSIFICATION_LOSSES", "LOSSES", "labels", "mistakes", "probabilities", "squared_error"]

# Smaller estimates of a probability are raised to this, so that one confident mistake costs a finite loss.
SMALLEST_PROBABILITY = 1e-3


def squared_error(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Squared error, mean over the outputs."""
    errors = predictions - targets
    np.square(errors, out=errors)
    result: FloatArray = errors[..., 0] if errors.shape[-1] == 1 else errors.mean(axis=-1)
    return result


def cross_entropy(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Negative logarithm of the probability of the true class (see `probabilities`)."""
    own = probabilities(predictions)[..., np.arange(len(targets)), _class_numbers(targets)]
    result: FloatArray = -np.log(own)
    return result


def hinge(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Hinge loss of the margin between the true class and the best other one (Crammer and Singer)."""
    rows, numbers = np.arange(len(targets)), _class_numbers(targets)
    others = np.array(_per_class(predictions))
    own = others[..., rows, numbers]
    others[..., rows, numbers] = -np.inf
    result: FloatArray = np.maximum(0, 1 - own + others.max(axis=-1))
    return result


LOSSES: dict[str, Callable[[AnyArray, FloatArray], FloatArray]] = {
    "squared_error": squared_error,
    "cross_entropy": cross_entropy,
    "hinge": hinge,
}
CLASSIFICATION_LOSSES = frozenset({"cross_entropy", "hinge"})


def probabilities(predictions: AnyArray) -> FloatArray:
    """Class probabilities from estimates of the coded targets: clipped, then normalised."""
    clipped = np.clip(_per_class(predictions), SMALLEST_PROBABILITY, 1)
    result: FloatArray = clipped / clipped.sum(axis=-1, keepdims=True)
    return result


def labels(coded: AnyArray, classes: AnyArray) -> AnyArray:
    """Classes that coded targets or predictions (n_samples, n_outputs) stand for, or come closest to."""
    found: AnyArray = classes[_class_numbers(coded)]
    return found


def mistakes(predictions: AnyArray, targets: FloatArray) -> AnyArray:
    """Whether predictions (n_samples, n_outputs) come closest to another class than that of the targets."""
    wrong: AnyArray = _class_numbers(predictions) != _class_numbers(targets)
    return wrong


def _per_class(predictions: AnyArray) -> AnyArray:
    """A column per class, also if there are only two classes."""
    return predictions if predictions.shape[-1] > 1 else np.concatenate([1 - predictions, predictions], axis=-1)


def _class_numbers(coded: AnyArray) -> IntArray:
    numbers: IntArray = coded.argmax(axis=1) if coded.shape[1] > 1 else (coded[:, 0] > 0.5).astype(np.intp)
    return numbers
