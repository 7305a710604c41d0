"""Data of any width, made in place."""

from __future__ import annotations

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.datasets import make_artificial


def make_wide_data(n_samples: int, n_features: int, dtype: str) -> tuple[AnyArray, FloatArray]:
    """The artificial data with any number of irrelevant columns, which are independent here."""
    relevant, y, _ = make_artificial(n_samples, 5, random_state=0)
    rng = np.random.default_rng(0)
    X = np.empty((n_samples, n_features), dtype=dtype)
    for row in X:
        rng.standard_normal(out=row, dtype=dtype)
    X[:, :5] = relevant
    return X, y
