"""What the tests of comparisons share: methods and predictors that remember what they were given, and data."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)
ALPHAS = np.logspace(-3, 3, 13)


class First(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects the first so many columns, and remembers what it was given."""

    seen: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(self, number: int = 2, error: BaseException | None = None, warning: str = "") -> None:
        self.number = number
        self.error = error
        self.warning = warning

    def fit(self, X: Any, y: Any) -> First:
        self.n_features_in_ = X.shape[1]
        First.seen.append((np.asarray(X), np.asarray(y)))
        if self.warning:
            warnings.warn(self.warning.format(len(First.seen)), stacklevel=2)
        if self.error is not None:
            raise self.error
        return self

    def _get_support_mask(self) -> Any:
        return np.arange(self.n_features_in_) < self.number


class Spy(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts zero, and remembers what it was trained on and asked for."""

    trained: ClassVar[list[Any]] = []
    asked: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any) -> Spy:
        Spy.trained.append(np.asarray(X))
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        Spy.asked.append(np.asarray(X))
        return np.zeros(len(X))


def make_data(n_samples: int = 60, n_columns: int = 6) -> tuple[Any, Any]:
    """Column 0 numbers the rows; y comes from columns 1 and 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_columns))
    X[:, 0] = np.arange(n_samples)
    return X, 3 * X[:, 2] + X[:, 1] + 0.1 * rng.normal(size=n_samples)


def splits(n_samples: int, n_folds: int, seed: int) -> list[tuple[Any, Any]]:
    return list(KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros((n_samples, 1))))


def ridge() -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS))
