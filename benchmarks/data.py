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


def make_additive(n_samples: int, n_features: int, seed: int) -> tuple[AnyArray, FloatArray]:
    """Friedman's first function of the first five of any number of independent columns, in single precision."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features), dtype=np.float32)
    a, b, c, d, e = X[:, :5].T.astype(np.float64)
    y = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, y + rng.standard_normal(n_samples)


def make_interacting(n_samples: int, n_features: int, seed: int) -> tuple[AnyArray, FloatArray]:
    """Five of any number of independent columns matter, the second one only through its product with the first."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    a, b, c, d, e = X[:, :5].T.astype(np.float64)
    y = 2 * a + 2 * a * b + 2 * np.sin(2 * c) + 2 * np.abs(d) + e
    return X, y + 0.5 * rng.standard_normal(n_samples)


def make_correlated(n_samples: int, n_features: int, seed: int) -> tuple[AnyArray, FloatArray]:
    """The paper's artificial data, in which any two columns have correlation 1/2, in single precision."""
    X, y, _ = make_artificial(n_samples, n_features, random_state=seed)
    return X.astype(np.float32), y
