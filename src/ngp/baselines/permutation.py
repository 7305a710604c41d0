"""Permutation importances: how much worse a model predicts when a column is shuffled."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData
from ngp.baselines.preparation import held_out_rows, on_standardised, standardised_targets

__all__ = ["PermutationImportance"]


class PermutationImportance(Baseline):
    """Rate each column by how much the score on held-out samples falls when the column is shuffled.

    scikit-learn's ``permutation_importance`` with the estimator's own score: R² for values (the mean over several
    outputs), the share of right answers for classes. Importances below zero count as zero. Columns and targets are
    standardised first.

    Parameters
    ----------
    estimator : scikit-learn estimator or None, default=None
        What is trained; None means a random forest of 100 trees.
    test_size : float, default=0.25
        Share of the samples that is held out; stratified for classes.
    n_repeats : int, default=10
        How often each column is shuffled.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Columns that are shuffled in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the held-out samples, the forest and the shuffling.

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
    >>> PermutationImportance(random_state=0).fit(X, 3 * X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict", "score"]), None],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        estimator: Any = None,
        test_size: float = 0.25,
        n_repeats: int = 10,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.test_size = test_size
        self.n_repeats = n_repeats
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def own_estimator(self) -> Any:
        """Make an estimator like the one whose columns were shuffled."""
        check_is_fitted(self)
        return on_standardised(self._make_estimator(self.random_state), self.task_)

    def _make_estimator(self, random_state: int | np.random.RandomState | None) -> Any:
        if self.estimator is not None:
            return clone(self.estimator)
        forest = RandomForestRegressor if self.task_ == "regression" else RandomForestClassifier
        return forest(random_state=random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        train, test = held_out_rows(data, self.test_size, "PermutationImportance", least=2)
        X, y = data.standardised, standardised_targets(data)
        fall = permutation_importance(
            self._make_estimator(data.seed).fit(X[train], y[train]),
            X[test],
            y[test],
            n_repeats=self.n_repeats,
            n_jobs=self.n_jobs,
            random_state=data.seed,
        )
        importances: FloatArray = np.maximum(fall.importances_mean, 0)
        return importances
