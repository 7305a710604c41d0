"""Mutual information with the targets."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.utils._param_validation import Interval

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.baselines.base import Baseline, TrainingData

__all__ = ["MutualInformation"]


class MutualInformation(Baseline):
    """Rate each feature by its mutual information with the targets.

    Estimated from nearest neighbours by scikit-learn's ``mutual_info_regression`` and ``mutual_info_classif``, one
    feature at a time, and summed over the outputs. Numbers count as continuous; a category column is taken as a whole.

    Parameters
    ----------
    n_neighbors : int, default=3
        Neighbours per sample: more of them lower the variance of the estimate and raise its bias.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Features that are rated in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the slight noise that tells equal values apart.

    Attributes
    ----------
    importances_ : float array of shape (`n_features_in_`,)
        They sum to one.
    support_ : bool array of shape (`n_features_in_`,)
        The selected features.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> MutualInformation(n_features_to_select=1, random_state=0).fit(X, X[:, 2] ** 2).get_support(indices=True)
    array([2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _column_importances(self, data: TrainingData) -> FloatArray:
        if len(data.X) <= self.n_neighbors:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} needs more than {self.n_neighbors} samples, "
                f"and X has {len(data.X)}: give fewer neighbours."
            )
        features, is_category, first_columns = _whole_features(data)
        estimate = mutual_info_regression if data.classes is None else mutual_info_classif
        importances = np.zeros(data.X.shape[1])
        for output in _outputs(data):
            importances[first_columns] += estimate(
                features,
                output,
                discrete_features=is_category,
                n_neighbors=self.n_neighbors,
                random_state=data.seed,
                n_jobs=self.n_jobs,
            )
        return importances


def _outputs(data: TrainingData) -> list[AnyArray]:
    """The labels, or the outputs that vary: scikit-learn's estimate would take a constant for noise."""
    return [data.y] if data.classes is not None else [output for output in data.targets.T if np.ptp(output) > 0]


def _whole_features(data: TrainingData) -> tuple[FloatArray, BoolArray, AnyArray]:
    """One column per feature, a category as the number of its level; which are categories; first columns."""
    _, first_columns, place, width = np.unique(data.origin, return_index=True, return_inverse=True, return_counts=True)
    features = data.X[:, first_columns]
    is_category: BoolArray = width > 1
    for feature in np.flatnonzero(is_category):
        columns: IntArray = np.flatnonzero(place == feature)
        features[:, feature] = data.X[:, columns].argmax(axis=1)
    return features, is_category, first_columns
