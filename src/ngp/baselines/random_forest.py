"""Impurity importances of a random forest."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData
from ngp.baselines.preparation import on_standardised

__all__ = ["RandomForest"]


class RandomForest(Baseline):
    """Rate each column by how much it lowers the impurity in the trees of a random forest.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Trees that grow in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the forest.

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
    >>> RandomForest(n_features_to_select=1, random_state=0).fit(X, X[:, 2] ** 2).get_support(indices=True)
    array([2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def own_estimator(self) -> Any:
        """Make a random forest, on standardised columns and targets."""
        check_is_fitted(self)
        return on_standardised(self._forest(), self.task_)

    def _forest(self) -> Any:
        forest = RandomForestRegressor if self.task_ == "regression" else RandomForestClassifier
        return forest(n_estimators=self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        # scikit-learn's trees take differences below 1e-7 in single precision, and variances of y below 1e-16, for
        # none. Only the order of a column's values counts, so that ranks give the same splits; so does a power of two.
        ranks = rankdata(data.X, method="dense", axis=0)
        y = data.y
        if data.classes is None:
            y = np.ldexp(y, -np.frexp(np.ptp(data.targets, axis=0).max())[1])
        importances: FloatArray = self._forest().fit(ranks, y).feature_importances_
        return importances
