"""What y is, and its values as columns of numbers."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from ngp._types import AnyArray, FloatArray

__all__ = ["code_targets", "detect_task"]

# Whole numbers with at most this many different values are taken for classes.
MOST_CLASSES_BY_GUESS = 20


def detect_task(y: AnyArray) -> str:
    """Whether y looks like classes or like quantities.

    Text, booleans and whole numbers with at most 20 different values (and each twice on average) are classes.
    """
    if y.ndim == 2 and y.shape[1] > 1:
        return "regression"
    if y.dtype.kind in "OUSTb":
        return "classification"
    whole = type_of_target(y) in ("binary", "multiclass")
    n_values = len(np.unique(y))
    return "classification" if whole and n_values <= min(MOST_CLASSES_BY_GUESS, len(y) / 2) else "regression"


def code_targets(y: AnyArray, task: str) -> tuple[FloatArray, AnyArray | None]:
    """Targets as columns of numbers, and the classes they stand for."""
    if task == "regression":
        try:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1), None
        except ValueError as error:
            if y.ndim == 2 and y.shape[1] > 1:
                raise ValueError(
                    "y has several columns, and not all hold numbers: several outputs have to be numbers, and classes "
                    "have to be in one column."
                ) from error
            raise ValueError("task='regression' needs numbers in y: give numbers or task='classification'.") from error
    try:
        check_classification_targets(y)
    except TypeError as error:
        raise ValueError("y holds labels that can't be sorted, such as text beside None: give one type.") from error
    if y.ndim == 2:
        if y.shape[1] > 1:
            raise ValueError("task='classification' takes one column of classes: y has several outputs.")
        y = column_or_1d(y, warn=True)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        value = classes.tolist()[0]
        raise ValueError(f"y holds a single value, {value!r}: there are no classes to tell apart, nothing to predict.")
    if len(classes) == 2:
        return codes[:, None].astype(np.float64), classes
    return np.eye(len(classes))[codes], classes
