"""What several methods do to the data before they call another package, and to its importances afterwards."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.baselines.base import TrainingData

__all__ = ["held_out_rows", "on_standardised", "standardised_targets", "strongest_columns"]


def standardised_targets(data: TrainingData) -> AnyArray:
    """Targets for an estimator: labels, or values of moderate size whatever their unit, as a vector if it can be."""
    if data.classes is not None:
        return data.y
    targets = data.scaled_targets
    scaled: FloatArray = targets / targets.std() if targets.any() else targets
    return scaled[:, 0] if scaled.shape[1] == 1 else scaled


def on_standardised(estimator: Any, task: str) -> Any:
    """Put an estimator behind the standardisation that the method trained it with."""
    if task == "regression":
        estimator = TransformedTargetRegressor(estimator, transformer=StandardScaler())
    return make_pipeline(StandardScaler(), estimator)


def held_out_rows(data: TrainingData, share: float, what: str, *, least: int) -> tuple[IntArray, IntArray]:
    """Rows to train on and rows held out, chosen at random, from each class its share.

    Of classes too rare for that, some are held out by chance, but one is always left to train on.
    """
    rows, labels = np.arange(len(data.X)), None if data.classes is None else data.y
    split = partial(train_test_split, rows, test_size=share, random_state=data.seed)
    try:
        train, test = split(stratify=labels)
    except ValueError:
        train, test = split()
        if labels is not None:
            unknown = ~np.isin(labels[test], labels[train])
            train, test = np.append(train, test[unknown]), test[~unknown]
    if len(test) < least:
        raise ValueError(
            f"{what} holds out {share:.0%} of {len(rows)} samples, but none of a class it couldn't train on: "
            f"that makes {len(test)}, and it needs at least {least}, so give more samples."
        )
    return train, test


def strongest_columns(values: FloatArray | IntArray, origin: IntArray) -> BoolArray:
    """Mask of each feature's largest column, for importances that don't add up over the columns of a category."""
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(origin[order], return_index=True)
    mask = np.zeros(len(values), dtype=bool)
    mask[order[first]] = True
    return mask
