"""A competing method whose importances are given, and data to try it on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ngp.baselines.base import Baseline, TrainingData

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 4))
y = X[:, 1] + 0.1 * rng.normal(size=20)
TOWN = np.array(["Kiel", "Bonn", "Ulm", "Kiel"] * 5)
LABELS = np.array(["no", "yes"])[(y > 0).astype(int)]


class Given(Baseline):
    """Importances as given, one per column that varies."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**Baseline._parameter_constraints}

    def __init__(
        self,
        weights: Any = (1.0, 5.0, 0.0, 4.0),
        *,
        n_features_to_select: int | float | None = None,
        threshold: float | None = 0.01,
        task: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.weights = weights
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.random_state = random_state

    def _column_importances(self, data: TrainingData) -> Any:
        self.data_ = data
        return np.asarray(self.weights, dtype=float)[: data.X.shape[1]]


class Choosy(Given):
    """Selects the least important feature, where nothing else is asked for."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "threshold": [*Baseline._parameter_constraints["threshold"], None],
    }

    def _own_choice(self) -> Any:
        return self.importances_ == self.importances_.min()


def fit_weights(weights: Any, **settings: Any) -> Given:
    """Fit to as many random columns as there are weights."""
    columns = np.random.default_rng(1).normal(size=(6, len(weights)))
    return Given(weights, **settings).fit(columns, columns[:, 0])


def training_data(X: Any, y: Any, **settings: Any) -> TrainingData:
    data: TrainingData = Given(np.ones(50), **settings).fit(X, y).data_
    return data
