"""Losses of single samples, for predictions of coded targets.

Regression targets are coded as they are; a class as one 0/1 column per class, or a single 0/1 column where there are
only two. A predictor that scores a class returns estimates of those columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ngp._types import AnyArray, FloatArray

__all__ = [
    "CLASSIFICATION_LOSSES",
    "LOSSES",
    "labels",
    "probabilities",
]

# A probability estimate below this counts as this, so that one confident mistake costs a finite loss.
SMALLEST_PROBABILITY = 1e-3


def squared_error(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Squared error, mean over the outputs."""
    errors = predictions - targets
    np.square(errors, out=errors)
    result: FloatArray = errors[..., 0] if errors.shape[-1] == 1 else errors.mean(axis=-1)
    return result


def probabilities(predictions: AnyArray) -> FloatArray:
    """Class probabilities from estimates of the coded targets: clipped, then normalised."""
    if predictions.shape[-1] == 1:
        predictions = np.concatenate([1 - predictions, predictions], axis=-1)
    clipped = np.clip(predictions, SMALLEST_PROBABILITY, 1)
    result: FloatArray = clipped / clipped.sum(axis=-1, keepdims=True)
    return result


def _class_index(targets: FloatArray) -> AnyArray:
    labels: AnyArray = targets[:, 0].astype(np.intp) if targets.shape[1] == 1 else targets.argmax(axis=1)
    return labels


def cross_entropy(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Negative logarithm of the probability given to the true class (see `probabilities`)."""
    own = probabilities(predictions)[..., np.arange(len(targets)), _class_index(targets)]
    result: FloatArray = -np.log(own)
    return result


def hinge(predictions: AnyArray, targets: FloatArray) -> FloatArray:
    """Hinge loss of the margin between the true class and the best other one (Crammer and Singer)."""
    if predictions.shape[-1] == 1:
        predictions = np.concatenate([1 - predictions, predictions], axis=-1)
    rows, labels = np.arange(len(targets)), _class_index(targets)
    own = predictions[..., rows, labels]
    others = predictions.copy()
    others[..., rows, labels] = -np.inf
    result: FloatArray = np.maximum(0, 1 - own + others.max(axis=-1))
    return result


LOSSES: dict[str, Callable[[AnyArray, FloatArray], FloatArray]] = {
    "squared_error": squared_error,
    "cross_entropy": cross_entropy,
    "hinge": hinge,
}
CLASSIFICATION_LOSSES = frozenset({"cross_entropy", "hinge"})


def mistakes(predictions: AnyArray, targets: FloatArray) -> AnyArray:
    """Whether coded predictions (n_samples, n_outputs) come closest to another class than the coded targets."""
    wrong: AnyArray = _class_numbers(predictions) != _class_numbers(targets)
    return wrong


def _class_numbers(coded: AnyArray) -> AnyArray:
    numbers: AnyArray = coded.argmax(axis=1) if coded.shape[1] > 1 else (coded[:, 0] > 0.5).astype(np.intp)
    return numbers


def labels(coded: AnyArray, classes: AnyArray) -> AnyArray:
    """Classes that coded targets or predictions (n_samples, n_outputs) stand for, or come closest to."""
    found: AnyArray = classes[_class_numbers(coded)]
    return found
