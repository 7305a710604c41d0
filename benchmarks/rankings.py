"""Methods that rank columns for classes, for benchmarks.nonlinear and benchmarks.wide.

Each returns a number of columns, the best first. All of them work in one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray
from ngp.baselines import registry

# X, the classes, the number of columns, the seed -> that many columns, the best first.
Rank = Callable[[FloatArray, AnyArray, int, int], list[int]]


class Method(NamedTuple):
    """How a method is shown, how it ranks, and the package that it needs."""

    title: str
    rank: Rank
    module: str = "sklearn"


def ngp(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """The default, with a number of columns."""
    selector = NeuralGreedyPursuit(n_features_to_select=number, random_state=seed, n_jobs=1).fit(X, y)
    order: list[int] = selector.order_.tolist()
    return order


def baseline(name: str, X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """A method of `ngp.baselines` that rates all columns."""
    selector = registry[name](n_features_to_select=number, task="classification", random_state=seed, n_jobs=1)
    return highest(selector.fit(X, y).importances_, number)


def anova(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    return highest(f_statistics(X, y), number)


def logistic(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """L1 logistic regression of each class against the rest: the sum of the absolute coefficients."""
    model = OneVsRestClassifier(LogisticRegression(l1_ratio=1, solver="liblinear", max_iter=1000, random_state=seed))
    model.fit(scale(X), y)
    return highest(sum(np.abs(each.coef_[0]) for each in model.estimators_), number)


def mrmr(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """The F-statistic by the mean absolute correlation with the columns that are already taken."""
    relevance, Z = f_statistics(X, y), scale(X)
    taken, redundancy = highest(relevance, 1), np.zeros(X.shape[1])
    while len(taken) < number:
        redundancy += np.abs(Z[:, taken[-1]] @ Z) / len(Z)
        merit = relevance / np.maximum(redundancy / len(taken), 1e-3)
        merit[taken] = -np.inf
        taken += highest(merit, 1)
    return taken


def tree_shap(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """The mean absolute SHAP values of a random forest."""
    import shap

    forest = RandomForestClassifier(random_state=seed).fit(X, y)
    values = shap.TreeExplainer(forest).shap_values(X)  # samples, columns, classes
    return highest(np.abs(values).mean(axis=(0, 2)), number)


def neighbours(X: FloatArray, y: AnyArray, number: int, seed: int) -> list[int]:
    """Forward selection with k-NN and five folds: scikit-learn's sequential selector, which keeps no order."""
    taken: list[int] = []
    while len(taken) < number:
        scores = np.full(X.shape[1], -np.inf)
        for column in set(range(X.shape[1])) - set(taken):
            scores[column] = cross_val_score(KNeighborsClassifier(), X[:, [*taken, column]], y).mean()
        taken += highest(scores, 1)
    return taken


def f_statistics(X: FloatArray, y: AnyArray) -> FloatArray:
    found: FloatArray = np.nan_to_num(f_classif(X, y)[0])  # NaN: a constant column
    return found


def highest(ratings: AnyArray, number: int) -> list[int]:
    columns: list[int] = np.argsort(-np.asarray(ratings), kind="stable")[:number].tolist()
    return columns


METHODS: dict[str, Method] = {
    "ngp": Method("NGP", ngp),
    "forest": Method("random forest", partial(baseline, "random-forest")),
    "mrmr": Method("mRMR, F and correlation", mrmr),
    "tree-shap": Method("TreeSHAP", tree_shap, "shap"),
    "lassonet": Method("LassoNet", partial(baseline, "lassonet"), "lassonet"),
    "boruta": Method("Boruta", partial(baseline, "boruta"), "boruta"),
    "k-nn": Method("SFS, k-NN", neighbours),
    "anova": Method("ANOVA", anova),
    "logistic": Method("L1 logistic regression", logistic),
}


def installed(names: list[str]) -> list[str]:
    """Those whose package is installed; the others are named."""
    missing = [name for name in names if find_spec(METHODS[name].module) is None]
    for name in missing:
        print(f"{name}: LEFT OUT. {METHODS[name].module} is not installed.")
    return [name for name in names if name not in missing]


def timed(name: str, X: FloatArray, y: AnyArray, number: int, seed: int) -> tuple[list[int], float]:
    """The columns, and the seconds that it took to rank them."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        order = METHODS[name].rank(X, y, number, seed)
        return order, perf_counter() - start
