"""Predictors of the package as plain estimators: what is trained on the columns that a method has selected."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from ngp._types import AnyArray
from ngp.groups import make_groups
from ngp.predictors.base import scorer_at
from ngp.predictors.resolve import resolve_predictor
from ngp.problem import make_problem

__all__ = ["PredictorEstimator"]


class PredictorEstimator(BaseEstimator):  # type: ignore[misc]
    """A predictor of `ngp.predictors`, trained on all columns of X.

    Parameters
    ----------
    predictor : object, default="ssfn"
        As in `ngp.NeuralGreedyPursuit`.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    random_state : int, RandomState or None, default=None
        Seed of folds and weights.

    Examples
    --------
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(300, random_state=0)
    >>> PredictorEstimator(random_state=0).fit(X[:200], y[:200]).predict(X[200:]).shape
    (100,)
    """

    def __init__(
        self,
        predictor: Any = "ssfn",
        *,
        task: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.predictor = predictor
        self.task = task
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        """
        X, y = validate_data(self, X, y, multi_output=True)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        predictor = resolve_predictor(self.predictor)
        problem = make_problem(
            X,
            y,
            groups=make_groups(None, X.shape[1]),
            task=self.task,
            classification_loss=getattr(predictor, "classification_loss", "squared_error"),
            random_state=seed,
        )
        scorer = predictor.bind(problem, random_state=seed, n_jobs=None, dtype="float32", device="auto")
        with threadpool_limits(1, user_api="blas"):
            self.predictor_ = scorer_at(scorer, 1).fit(np.arange(X.shape[1]))
        self.classes_ = problem.classes
        self._single_output = y.ndim == 1
        return self

    def predict(self, X: Any) -> AnyArray:
        """Predict values or classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers.
        """
        check_is_fitted(self)
        coded = self.predictor_.predict(validate_data(self, X, reset=False))
        if self.classes_ is None:
            return coded[:, 0] if self._single_output else coded
        labels: AnyArray = self.classes_[
            coded.argmax(axis=1) if coded.shape[1] > 1 else (coded[:, 0] > 0.5).astype(np.intp)
        ]
        return labels
