"""Recursive elimination: train on all columns, drop the least important ones, train again."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.feature_selection import RFE, RFECV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from ngp._types import BoolArray, FloatArray, IntArray
from ngp.baselines.base import SelfChoosing, TrainingData
from ngp.baselines.preparation import on_standardised, standardised_targets, strongest_columns

__all__ = ["RecursiveElimination"]


class RecursiveElimination(SelfChoosing):
    """Train an estimator, drop the columns that are least important to it, and again with those left.

    scikit-learn's ``RFE`` where `n_features_to_select` says how many are to be left, and ``RFECV`` where
    cross-validation has to find that out. The importance of a feature is one over its rank, so that only the order
    means something: 1 is left at the end, 2 was dropped last, and so on, columns dropped together being equal. A
    category column ranks as the best of its columns of 0 and 1. Columns and targets are standardised first, so that
    coefficients can be compared.

    Parameters
    ----------
    estimator : scikit-learn estimator or None, default=None
        With ``feature_importances_`` or ``coef_``; None means 50 extremely randomised trees, quick enough for
        hundreds of rounds.
    step : int or float, default=0.01
        Columns dropped in a round, or their share of all columns (of all, not of those left), at least one.
    cv : int, default=5
        Folds of the cross-validation; shuffled, and stratified for classes.
    n_features_to_select : int, float or None, default=None
        So many features are left, or a share of them; None leaves the choice to `threshold`.
    threshold : float or None, default=None
        None selects what is left where cross-validation rates best. A number selects features whose importance,
        normalised to sum one, is above it.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Folds that are worked on in parallel, or trees where there are no folds.
    random_state : int, RandomState or None, default=None
        Seed of folds and trees.

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
    >>> selector = RecursiveElimination(n_features_to_select=2, random_state=0)
    >>> selector.fit(X, X[:, 2] ** 2 + X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfChoosing._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "step": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        estimator: Any = None,
        step: int | float = 0.01,
        cv: int = 5,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.step = step
        self.cv = cv
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def own_estimator(self) -> Any:
        """Make an estimator like the one that columns were dropped by."""
        check_is_fitted(self)
        return on_standardised(self._make_estimator(self.random_state, self.n_jobs), self.task_)

    def _make_estimator(self, random_state: int | np.random.RandomState | None, n_jobs: int | None) -> Any:
        if self.estimator is not None:
            return clone(self.estimator)
        trees = ExtraTreesRegressor if self.task_ == "regression" else ExtraTreesClassifier
        return trees(n_estimators=50, max_features="sqrt", n_jobs=n_jobs, random_state=random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        ranking = self._ranking(data)
        learnable = np.ptp(data.targets, axis=0).any()  # else any order would be made up
        self._left = np.bincount(data.origin, weights=learnable & (ranking == 1), minlength=data.n_features) > 0
        return np.where(learnable & strongest_columns(-ranking, data.origin), 1 / ranking, 0.0)

    def _ranking(self, data: TrainingData) -> IntArray:
        number = self._number_to_select(data)
        if data.X.shape[1] == 1:  # scikit-learn refuses a single column
            return np.ones(1, dtype=np.intp)
        if number is not None:
            estimator = self._make_estimator(data.seed, self.n_jobs)
            elimination = RFE(estimator, n_features_to_select=number, step=self.step)
        else:
            estimator = self._make_estimator(data.seed, None)
            elimination = RFECV(estimator, step=self.step, cv=self._folds(data), n_jobs=self.n_jobs)
        ranking: IntArray = elimination.fit(data.standardised, standardised_targets(data)).ranking_
        return ranking

    def _folds(self, data: TrainingData) -> Any:
        if len(data.X) < self.cv:
            raise ValueError(f"cv={self.cv} needs at least {self.cv} samples, and X has {len(data.X)}.")
        folds = KFold if data.classes is None else StratifiedKFold
        return folds(self.cv, shuffle=True, random_state=data.seed)

    def _own_choice(self) -> BoolArray:
        chosen: BoolArray = self._left
        return chosen
