"""Minimum redundancy, maximum relevance."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.baselines.base import SelfChoosing, TrainingData, best_features, require

__all__ = ["MRMR"]

SMALLEST_REDUNDANCY = 1e-12  # a column unrelated to everything would divide zero by zero, and be taken first


class MRMR(SelfChoosing):
    """Take features one by one: related to the targets, and little related to the features already taken.

    The method is feature-engine's ``MRMR``, gone through to the last feature. It tells an order alone, so the
    importance of a feature is one over its place in that order, summed over several outputs, each of which has an
    order of its own. A category column takes the place of the first of its columns of 0 and 1.

    Parameters
    ----------
    method : {"FCQ", "FCD", "MID"}, default="FCQ"
        Relevance and redundancy, and how they meet: F-statistic over correlation, F-statistic less correlation, or
        mutual information less mutual information, which is much slower. feature-engine's quotient of mutual
        informations (``"MIQ"``) is left out, because it takes columns first whose estimates are both zero.
    n_features_to_select : int, float or None, default=None
        The first so many features, or the first share of them; None leaves the choice to `threshold`.
    threshold : float or None, default=None
        None selects the first fifth of the features that vary, and two at least, as feature-engine does. A number
        selects features whose importance, normalised to sum one, is above it.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Columns that are worked on in parallel where ``method="MID"``.
    random_state : int, RandomState or None, default=None
        Seed of the estimates where ``method="MID"``.

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
    >>> X[:, 3] = X[:, 2] + 0.3 * X[:, 3]  # redundant
    >>> MRMR(n_features_to_select=2).fit(X, X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfChoosing._parameter_constraints,
        "method": [StrOptions({"FCQ", "FCD", "MID"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        method: str = "FCQ",
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _column_importances(self, data: TrainingData) -> FloatArray:
        require("feature_engine", "MRMR")
        outputs = data.targets.T if data.classes is None else [np.unique(data.y, return_inverse=True)[1]]
        importances = np.zeros(data.X.shape[1])
        for output in outputs:
            if np.ptp(output) > 0:
                order = self._column_order(data, output)
                _, first = np.unique(data.origin[order], return_index=True)
                taken = order[np.sort(first)]
                importances[taken] += 1 / np.arange(1, len(taken) + 1)
        return importances

    def _column_order(self, data: TrainingData, output: AnyArray) -> IntArray:
        """All columns in the order in which they are taken for one output."""
        import pandas as pd
        from feature_engine.selection import MRMR as FeatureEngineMRMR

        n_columns = data.X.shape[1]
        if n_columns == 1:  # feature-engine refuses a single column
            return np.zeros(1, dtype=np.intp)
        selector: Any = FeatureEngineMRMR(
            method=self.method,
            max_features=n_columns,
            regression=data.classes is None,
            random_state=data.seed,
            n_jobs=self.n_jobs,
        )
        # It doesn't keep the order, but asks for the redundancy with each column as it takes it.
        order: list[int] = []
        redundancy = selector._calculate_redundance

        def recorded_redundancy(columns: Any, taken: Any) -> Any:
            order.append(taken.name)
            return np.fmax(redundancy(columns, taken), SMALLEST_REDUNDANCY)

        selector._calculate_redundance = recorded_redundancy
        with np.errstate(divide="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Features .* are constant")  # within classes: they tell them apart
            selector.fit(pd.DataFrame(data.X), pd.Series(output))
        (last,) = set(range(n_columns)) - set(order)
        return np.array([*order, last], dtype=np.intp)

    def _own_choice(self) -> BoolArray:
        return best_features(self.importances_, max(2, int(0.2 * np.count_nonzero(self.importances_))))
