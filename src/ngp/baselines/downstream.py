"""What is trained on the columns that a method has selected, to judge the selection by its predictions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from ngp._types import AnyArray, FloatArray
from ngp.data.groups import make_groups
from ngp.data.losses import labels, probabilities
from ngp.data.problem import make_problem
from ngp.predictors.committee import bind_predictor, resolve_predictor

__all__ = ["DOWNSTREAM", "PredictorEstimator", "downstream_estimator"]

DOWNSTREAM = ("ridge", "random-forest", "ssfn")
PENALTIES = np.logspace(-3, 3, 13)
# Folds by which a predictor finds its own size.
FOLDS = 5


def downstream_estimator(name: str, task: str, *, n_jobs: int | None = None, random_state: int | None = None) -> Any:
    """Make one of the estimators that judge selections."""
    classes = task == "classification"
    if name == "ridge":
        return make_pipeline(StandardScaler(), (RidgeClassifierCV if classes else RidgeCV)(alphas=PENALTIES))
    if name == "random-forest":
        forest = RandomForestClassifier if classes else RandomForestRegressor
        return forest(n_estimators=100, n_jobs=n_jobs, random_state=random_state)
    if name == "ssfn":
        return PredictorEstimator("ssfn", task=task, random_state=random_state)
    raise ValueError(f"{name!r} is no downstream predictor: use one of {', '.join(DOWNSTREAM)}.")


def _predicts_classes(estimator: PredictorEstimator) -> bool:
    check_is_fitted(estimator)
    if estimator.task_ != "classification":
        raise AttributeError("predict_proba is for classes, and this estimator was fitted to a regression.")
    return True


class PredictorEstimator(BaseEstimator):  # type: ignore[misc]
    """A predictor of `ngp.predictors`, trained on all columns of X."""

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
        """Train on all columns."""
        X, y = validate_data(self, X, y, multi_output=True, ensure_min_samples=2)
        if self.task == "classification" and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        predictor = resolve_predictor(self.predictor)
        problem = make_problem(
            X,
            y,
            groups=make_groups(None, X.shape[1]),
            task=self.task,
            cv=min(FOLDS, len(X)),
            classification_loss=predictor.classification_loss,
            random_state=seed,
        )
        scorer = bind_predictor(predictor, problem, random_state=seed, n_jobs=None, device="auto")
        with threadpool_limits(1, user_api="blas"):
            self.predictor_ = scorer.at(1).fit(np.arange(X.shape[1]))
        self.task_ = "regression" if problem.classes is None else "classification"
        self.__dict__.pop("classes_", None)
        if problem.classes is not None:
            self.classes_ = problem.classes
        self._single_output = y.ndim == 1
        return self

    def _predict_coded(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        coded: FloatArray = self.predictor_.predict(validate_data(self, X, reset=False))
        return coded

    def predict(self, X: Any) -> AnyArray:
        """Predict values or classes."""
        coded = self._predict_coded(X)
        if self.task_ == "regression":
            return coded[:, 0] if self._single_output else coded
        return labels(coded, self.classes_)

    @available_if(_predicts_classes)
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, of shape (n_samples, n_classes)."""
        return probabilities(self._predict_coded(X))

    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the predicted classes, or R² of the predicted values."""
        predictions = self.predict(X)
        return float((accuracy_score if self.task_ == "classification" else r2_score)(y, predictions))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        task = getattr(self, "task_", self.task)
        if task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
            tags.target_tags.multi_output = False
        elif task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
