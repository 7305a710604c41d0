"""Boruta: columns that a forest finds more important than shuffled copies of all columns."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.preprocessing import scale
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ngp._types import BoolArray, FloatArray
from ngp.baselines.base import SelfChoosing, TrainingData, require
from ngp.baselines.preparation import on_standardised

__all__ = ["Boruta"]


class Boruta(SelfChoosing):
    """Keep the columns that are more important to a random forest than chance would have it.

    The boruta package: in each round a forest is trained on the columns and on shuffled copies of them, and a column
    that beats the best copy has a hit. By the number of hits columns are confirmed, rejected (and left out from then
    on), or stay tentative until the last round. The importance of a column is its importance in the forests, averaged
    over all rounds, with zero for the rounds after its rejection. Each of several outputs has rounds of its own:
    importances are summed, and a feature is confirmed where one output confirms one of its columns. Columns and
    targets are standardised first.

    Boruta looks for all features that are related to the targets, also those that are so only through others.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees per round.
    max_depth : int or None, default=5
        Depth of the trees; the package's authors advise 3 to 7.
    max_iter : int, default=100
        The rounds end before this number, or when no column is tentative any more.
    alpha : float, default=0.05
        Level of the tests that confirm and reject.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float or None, default=None
        None selects the confirmed features; those that are still tentative are left out. A number selects features
        whose importance, normalised to sum one, is above it.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Trees that grow in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the forests and the shuffling.

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
    >>> Boruta(n_estimators=20, random_state=0).fit(X, X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfChoosing._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 2, None, closed="left")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_depth: int | None = 5,
        max_iter: int = 100,
        alpha: float = 0.05,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_iter = max_iter
        self.alpha = alpha
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def own_estimator(self) -> Any:
        """Make a random forest of 100 trees, which may grow as deep as they like."""
        check_is_fitted(self)
        forest = RandomForestRegressor if self.task_ == "regression" else RandomForestClassifier
        return on_standardised(forest(n_jobs=self.n_jobs, random_state=self.random_state), self.task_)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        require("boruta", "Boruta")
        from boruta import BorutaPy

        forest = RandomForestRegressor if data.classes is None else RandomForestClassifier
        importances = np.zeros(data.X.shape[1])
        confirmed = np.zeros(data.X.shape[1], dtype=bool)
        for output in [data.y] if data.classes is not None else scale(data.scaled_targets).T:
            boruta = BorutaPy(
                # a few columns per split in regression too: all of them would take many times as long
                forest(max_depth=self.max_depth, max_features="sqrt", n_jobs=self.n_jobs),
                n_estimators=self.n_estimators,
                alpha=self.alpha,
                max_iter=self.max_iter,
                random_state=data.seed,
            )
            boruta.fit(data.standardised, output)
            importances += np.nan_to_num(boruta.importance_history_[1:]).mean(axis=0)
            confirmed |= boruta.ranking_ == 1  # its support_ has tentative columns in it where none is rejected
        self._confirmed = np.bincount(data.origin, weights=confirmed, minlength=data.n_features) > 0
        return importances

    def _own_choice(self) -> BoolArray:
        chosen: BoolArray = self._confirmed
        return chosen
