"""Correlation with the targets."""

from __future__ import annotations

import numpy as np

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData

__all__ = ["Correlation"]


class Correlation(Baseline):
    """Rate each column by its linear correlation with the targets.

    The importance of a column is the root of its squared correlations, summed over the outputs (over the classes,
    where there are more than two): with a single output the absolute correlation.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.

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
    >>> Correlation(n_features_to_select=1).fit(X, X[:, 2]).get_support(indices=True)
    array([2])
    """

    def __init__(
        self,
        *,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task

    def _column_importances(self, data: TrainingData) -> FloatArray:
        targets = data.scaled_targets
        spread = targets.std(axis=0)
        useful = spread > 0  # a constant output correlates with nothing
        correlations = data.standardised.T @ (targets[:, useful] / spread[useful]) / len(targets)
        result: FloatArray = np.sqrt((correlations**2).sum(axis=1))
        return result
