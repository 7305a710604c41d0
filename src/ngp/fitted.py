"""What a fitted selector does: reduce, predict, score, draw."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.callback import CallbackSupportMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from ngp._types import AnyArray, FloatArray
from ngp.data.encoding import TableSelector, briefly_refused_gaps
from ngp.data.losses import labels, probabilities
from ngp.data.problem import Problem
from ngp.greedy.path import Path
from ngp.predictors.base import Scorer

__all__ = ["FittedSelector"]


def _is_classification(selector: FittedSelector) -> bool:
    if selector.task == "classification":
        return True
    check_is_fitted(selector)
    if selector.task_ != "classification":
        raise AttributeError("predict_proba is for classes, and this selector was fitted to a regression.")
    return True


class FittedSelector(CallbackSupportMixin, TableSelector):  # type: ignore[misc]
    """The half of `ngp.NeuralGreedyPursuit` that uses what `fit` has found."""

    def _store(self, problem: Problem, scorer: Scorer, path: Path) -> None:
        """Set what a path says about the columns."""
        self.path_, self.stop_reason_, self.partial_ = path.steps, path.reason, path.partial
        self.order_ = np.array([step.group for step in path.kept], dtype=np.intp)
        self.losses_ = np.array([step.losses for step in path.steps[1:]]).reshape(-1, problem.groups.n_groups)
        self.task_ = "regression" if problem.classes is None else "classification"
        self.__dict__.pop("classes_", None)
        if problem.classes is not None:
            self.classes_ = problem.classes
        self.constant_loss_ = constant = float(scorer.at(1).constant_losses(problem).means[0])
        blocks = self.encoder_.feature_groups_
        origin = np.arange(problem.n_columns)  # the column that an encoded one stands for
        if blocks is not None:
            origin = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.feature_importances_ = np.zeros(self.n_features_in_)
        for step in (path.steps[0], *path.kept):
            columns = np.unique(origin[step.columns])
            self.support_[columns] = True
            if len(columns) and constant > 0:
                before = constant if step.action == "start" else step.before
                self.feature_importances_[columns] = max(before - step.loss, 0.0) / constant / len(columns)

    def _predict_coded(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        data: Any
        with briefly_refused_gaps():
            if self.encoder_.feature_groups_ is None:
                data = self._few_columns(X)
                if data is None:
                    data = validate_data(self, X, reset=False)
            else:
                _check_feature_names(self, X, reset=False)
                data = check_array(self.encoder_.transform(X), estimator=self, input_name="X")
        coded: FloatArray = self.predictor_.predict(data)
        return coded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # With task="auto" it is y that says what this is, so that it isn't known before the fit.
        task = self.task if self.task != "auto" else getattr(self, "task_", "auto")
        if task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.classifier_tags = ClassifierTags()  # if it turns out to be a classifier: of many classes, too
        if task == "classification":
            tags.estimator_type, tags.target_tags.multi_output = "classifier", False
        return tags

    def predict(self, X: npt.ArrayLike) -> AnyArray:
        """Predict from the selected columns."""
        coded = self._predict_coded(X)
        if self.task_ == "classification":
            return labels(coded, self.classes_)
        return coded[:, 0] if self._single_output else coded

    @available_if(_is_classification)
    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Estimate the probability of each class."""
        return probabilities(self._predict_coded(X))

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Judge the predictions."""
        check_is_fitted(self)
        metric = accuracy_score if self.task_ == "classification" else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def report(
        self,
        path: str | PathLike[str],
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        target: str = "y",
        held_out: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        image_shape: Sequence[int] | None = None,
    ) -> None:
        """Write a report as one HTML file (see `ngp.report.write_report`)."""
        from ngp.report import write_report
        from ngp.report.result import Result

        write_report(Result.of(self, X, y, target=target, held_out=held_out, image_shape=image_shape), path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted selector to a file, without pickle (see `ngp.io.save`)."""
        from ngp.io import save

        save(cast(Any, self), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a fitted selector from a file that `save` has written (see `ngp.io.load`)."""
        from ngp.io import load

        return cast(Self, load(path))

    def plot_path(self, *, ax: Any = None) -> Any:
        """Plot the validation loss against the number of selected features (see `ngp.report.plot_path`)."""
        from ngp.report import plot_path

        return plot_path(self, ax=ax)
