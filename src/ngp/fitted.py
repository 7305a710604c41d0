"""What a fitted selector does: reduce, predict, score, draw."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from ngp._types import AnyArray, FloatArray
from ngp.columns import briefly_refused_gaps
from ngp.losses import labels, probabilities
from ngp.reduction import TableSelector

__all__ = ["FittedSelector"]


def _is_classification(selector: FittedSelector) -> bool:
    check_is_fitted(selector)
    if selector.task_ != "classification":
        raise AttributeError("predict_proba is for classes, and this selector was fitted to a regression.")
    return True


class FittedSelector(TableSelector):
    """The half of `ngp.NeuralGreedyPursuit` that uses what `fit` has found."""

    def _predict_coded(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        with briefly_refused_gaps():
            if self.encoder_.feature_groups_ is None:
                data = validate_data(self, X, reset=False)
            else:
                _check_feature_names(self, X, reset=False)
                data = check_array(self.encoder_.transform(X), estimator=self, input_name="X")
        coded: FloatArray = self.predictor_.predict(data)
        return coded

    def predict(self, X: npt.ArrayLike) -> AnyArray:
        """Predict from the selected columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All columns, as in `fit`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
        """
        coded = self._predict_coded(X)
        if self.task_ == "classification":
            return labels(coded, self.classes_)
        return coded[:, 0] if self._single_output else coded

    @available_if(_is_classification)
    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All columns, as in `fit`.
        """
        return probabilities(self._predict_coded(X))

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Accuracy of the predicted classes, or R² of the predicted values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All columns, as in `fit`.
        y : array-like
            The truth.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.
        """
        check_is_fitted(self)
        metric = accuracy_score if self.task_ == "classification" else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def plot_path(self, *, ax: Any = None) -> Any:
        """Plot the validation loss against the number of selected features (see `ngp.report.plot_path`).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        from ngp.report import plot_path

        return plot_path(self, ax=ax)
