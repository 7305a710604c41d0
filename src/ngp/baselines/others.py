"""Methods of other packages: a function each that rates the columns, and one selector around them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import parallel_config
from scipy.stats import rankdata
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import RFE, RFECV, mutual_info_classif, mutual_info_regression
from sklearn.inspection import permutation_importance
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from ngp._types import AnyArray, FloatArray
from ngp.baselines.base import Baseline, TrainingData, require

__all__ = ["OtherMethod", "boruta", "lassonet", "mrmr", "mutual_information", "permutation", "recursive_elimination"]

# Data, number of features to select (None: by the method's own rule), parallel tasks -> importances of the columns.
Rating = Callable[[TrainingData, int | None, int | None], Any]


@dataclass(kw_only=True, eq=False, repr=False)
class OtherMethod(Baseline):
    """A method of another package with the checks, the categories and the choice that all baselines share."""

    rate: Rating
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "rate": [callable],
    }

    def _column_importances(self, data: TrainingData) -> FloatArray:
        n_columns = data.X.shape[1]
        if not data.outputs:  # nothing to predict: any order would be arbitrary
            return np.zeros(n_columns)
        if n_columns == 1:  # most packages refuse a single column
            return np.ones(1)
        return np.asarray(self.rate(data, self._number_to_select(data), self.n_jobs), dtype=np.float64)


def mutual_information(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """Mutual information with the targets, summed over the outputs."""
    estimate = mutual_info_regression if data.classes is None else mutual_info_classif
    category = np.bincount(data.origin)[data.origin] > 1
    settings = {"discrete_features": category, "random_state": data.seed, "n_jobs": n_jobs}
    with parallel_config(backend="threading"):  # processes would take longer to start than to estimate
        return np.sum([estimate(data.X, output, **settings) for output in data.outputs], axis=0)


def permutation(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """Loss of a random forest's score on a quarter of the rows when the column is shuffled."""
    X, X_test, y, y_test = train_test_split(data.standardised, _joint(data), random_state=data.seed)
    forest = (RandomForestRegressor if data.classes is None else RandomForestClassifier)(random_state=data.seed)
    found = permutation_importance(
        forest.fit(X, y), X_test, y_test, n_repeats=10, n_jobs=n_jobs, random_state=data.seed
    )
    return np.maximum(found.importances_mean, 0)


def recursive_elimination(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """1 for the columns that RFE leaves; cross-validation decides how many if `number` is None."""
    trees = (ExtraTreesRegressor if data.classes is None else ExtraTreesClassifier)(
        50, max_features="sqrt", random_state=data.seed
    )
    folds = (KFold if data.classes is None else StratifiedKFold)(5, shuffle=True, random_state=data.seed)
    if number is None:
        elimination = RFECV(trees, step=0.01, cv=folds, n_jobs=n_jobs)
    else:
        elimination = RFE(trees.set_params(n_jobs=n_jobs), n_features_to_select=number, step=0.01)
    return elimination.fit(data.standardised, _joint(data)).support_


def mrmr(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """Rank of the F-statistic of the columns that mRMR takes; these are a fifth of them if `number` is None."""
    require("feature_engine", "mrmr")
    from feature_engine.selection import MRMR
    from pandas import DataFrame, Series

    importances = np.zeros(data.X.shape[1])
    n_taken = max(2, int(0.2 * len(importances)) if number is None else number)  # feature-engine takes at least two
    for output in data.outputs:
        y = output if data.classes is None else np.searchsorted(data.classes, output)
        selector: Any = MRMR(method="FCQ", max_features=n_taken, regression=data.classes is None, n_jobs=n_jobs)
        with np.errstate(divide="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Features .* are constant")  # within classes
            selector.fit(DataFrame(data.X), Series(y))
        importances += np.where(selector.get_support(), rankdata(selector.relevance_), 0)
    return importances


def boruta(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """Mean importance in Boruta's forests; zero for columns that it doesn't confirm if `number` is None."""
    require("boruta", "boruta")
    from boruta import BorutaPy

    # A few columns per split in regression too: all of them would take many times as long.
    forest = (RandomForestRegressor if data.classes is None else RandomForestClassifier)(
        max_depth=5, max_features="sqrt", n_jobs=n_jobs
    )
    importances = np.zeros(data.X.shape[1])
    for output in data.outputs:
        rounds = BorutaPy(forest, n_estimators=100, random_state=data.seed).fit(data.standardised, output)
        mean = np.nan_to_num(rounds.importance_history_[1:]).mean(axis=0)
        importances += mean if number is not None else np.where(rounds.ranking_ == 1, mean, 0)
    return importances


def lassonet(data: TrainingData, number: int | None, n_jobs: int | None) -> Any:
    """Penalty at which the column leaves LassoNet's path."""
    require("torch", "lassonet")
    require("lassonet", "lassonet")
    import torch
    from lassonet import LassoNetClassifier, LassoNetRegressor

    from ngp.kernels.networks import seeded
    from ngp.predictors.networks import one_torch_thread

    network = (LassoNetRegressor if data.classes is None else LassoNetClassifier)(
        random_state=data.seed, device=torch.device("cpu"), verbose=0
    )
    y = _joint(data) if data.classes is None else np.searchsorted(data.classes, data.y)
    with seeded(data.seed), one_torch_thread(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lambda_start=", UserWarning)  # that it might be too large
        network.path(data.standardised, y)
    return network.feature_importances_.numpy()


def _joint(data: TrainingData) -> AnyArray:
    """Labels, a single output as a vector, or several outputs side by side."""
    return data.outputs[0] if len(data.outputs) == 1 else np.column_stack(data.outputs)
