"""A competing method whose importances are given, and data to try it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ngp.baselines.base import Baseline, TrainingData

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 4))
y = X[:, 1] + 0.1 * rng.normal(size=20)
TOWN = np.array(["Kiel", "Bonn", "Ulm", "Kiel"] * 5)
LABELS = np.array(["no", "yes"])[(y > 0).astype(int)]


@dataclass(kw_only=True, eq=False, repr=False)
class Given(Baseline):
    """Importances as given, one per column that varies."""

    weights: Any = (1.0, 5.0, 0.0, 4.0)
    threshold: Any = 0.01
    random_state: Any = None

    def _column_importances(self, data: TrainingData) -> Any:
        self.data_ = data
        return np.asarray(self.weights, dtype=float)[: data.X.shape[1]]


def fit_weights(weights: Any, **settings: Any) -> Given:
    """Fit to as many random columns as there are weights."""
    columns = np.random.default_rng(1).normal(size=(6, len(weights)))
    return Given(weights=weights, **settings).fit(columns, columns[:, 0])


def training_data(X: Any, y: Any, **settings: Any) -> TrainingData:
    data: TrainingData = Given(weights=np.ones(50), **settings).fit(X, y).data_
    return data
