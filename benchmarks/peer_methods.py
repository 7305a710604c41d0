"""The methods of benchmarks.peers: NGP, and its peers as their packages come, with the settings that they document.

Each takes the number of columns that it is told (`k`), or chooses the number by a rule of its own (`k` is None).
Folds are the same for all that take folds. All of them work in one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC

from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray

N_FOLDS = 5
TOL = 0.01  # of R² or accuracy: scikit-learn's sequential selector stops where a step gains less
TOLD, OWN = "told", "own"


class Job(NamedTuple):
    """What a method selects from."""

    X: FloatArray
    y: AnyArray
    task: str
    k: int | None
    seed: int

    @property
    def classes(self) -> bool:
        return self.task == "classification"

    @property
    def folds(self) -> Any:
        kind = StratifiedKFold if self.classes else KFold
        return kind(N_FOLDS, shuffle=True, random_state=self.seed)


Select = Callable[[Job], Sequence[int]]


class Method(NamedTuple):
    """A method with its settings in words; `rules` says whether it can be told a number, and has a rule of its own."""

    package: str  # its name on PyPI
    module: str  # what has to be imported before the clock runs
    select: Select
    settings: str
    rules: tuple[str, ...] = (TOLD, OWN)
    tasks: tuple[str, ...] = ("regression", "classification")


def ngp(job: Job) -> Sequence[int]:
    selector = NeuralGreedyPursuit(
        n_features_to_select=job.k,
        cv=job.folds,
        task=job.task,
        n_jobs=1,
        device="cpu",  # where it would be "auto" it would look for a GPU, which no peer here uses
        random_state=job.seed,
    )
    return chosen(selector.fit(job.X, job.y))


def sklearn_sequential(job: Job, estimator: Any) -> Sequence[int]:
    number = {"n_features_to_select": "auto", "tol": TOL} if job.k is None else {"n_features_to_select": job.k}
    selector = SequentialFeatureSelector(estimator, **number, cv=job.folds, n_jobs=1)
    return chosen(selector.fit(job.X, job.y))


def mlxtend_sequential(job: Job, estimator: Any) -> Sequence[int]:
    from mlxtend.feature_selection import SequentialFeatureSelector as Sequential

    number = "parsimonious" if job.k is None else job.k
    selector = Sequential(estimator, k_features=number, cv=list(job.folds.split(job.X, job.y)), n_jobs=1)
    return sorted(selector.fit(job.X, job.y).k_feature_idx_)


def elimination(job: Job, estimator: Any) -> Sequence[int]:
    if job.k is None:
        selector = RFECV(estimator, cv=job.folds, n_jobs=1)
    else:
        selector = RFE(estimator, n_features_to_select=job.k)
    return chosen(selector.fit(job.X, job.y))


def from_model(job: Job, estimator: Any) -> Sequence[int]:
    number = {} if job.k is None else {"max_features": job.k, "threshold": -np.inf}
    return chosen(SelectFromModel(estimator, **number).fit(job.X, job.y))


def boruta(job: Job, trees: Any) -> Sequence[int]:
    from boruta import BorutaPy

    selector = BorutaPy(trees, n_estimators="auto", random_state=job.seed).fit(job.X, job.y)
    return np.flatnonzero(selector.ranking_ == 1).tolist()  # confirmed; support_ can have tentative columns in it


def lassonet(job: Job) -> Sequence[int]:
    import lassonet as package

    kind = "LassoNetClassifier" if job.classes else "LassoNetRegressor"
    settings = {"random_state": job.seed, "torch_seed": job.seed, "verbose": 0, "device": "cpu"}
    if job.k is None:
        model = getattr(package, f"{kind}CV")(cv=job.folds, **settings)
        model.path(job.X, job.y)
        return np.flatnonzero(model.best_selected_.numpy()).tolist()
    # It can't be asked for a number: those that leave last are its choice.
    model = getattr(package, kind)(**settings)
    model.path(job.X, job.y)
    return np.argsort(-model.feature_importances_.numpy(), kind="stable")[: job.k].tolist()


def abess(job: Job) -> Sequence[int]:
    from abess import linear

    kind = linear.LogisticRegression if job.classes else linear.LinearRegression
    model = kind() if job.k is None else kind(support_size=job.k)
    return np.flatnonzero(model.fit(job.X, job.y).coef_).tolist()


def mrmr(job: Job, method: str) -> Sequence[int]:
    import pandas as pd
    from feature_engine.selection import MRMR

    selector = MRMR(method=method, max_features=job.k, regression=not job.classes, random_state=job.seed)
    selector.fit(pd.DataFrame(job.X), pd.Series(job.y))
    dropped = set(selector.features_to_drop_)
    return [column for column in range(job.X.shape[1]) if column not in dropped]


def chosen(selector: Any) -> list[int]:
    return selector.get_support(indices=True).tolist()


# ---------------------------------------------------------------- the models that peers are put around


def linear(job: Job) -> Any:
    return LogisticRegression(max_iter=1000) if job.classes else LinearRegression()


def neighbours(job: Job) -> Any:
    return KNeighborsClassifier() if job.classes else KNeighborsRegressor()


def forest(job: Job) -> Any:
    return (RandomForestClassifier if job.classes else RandomForestRegressor)(random_state=job.seed)


def shallow(job: Job) -> Any:
    """As the boruta package's documentation has it; in regression a split looks at all columns, which is slow."""
    return forest(job).set_params(max_depth=5)


def quick_shallow(job: Job) -> Any:
    return shallow(job).set_params(max_features="sqrt")


def ridge(job: Job) -> Any:
    """As `linear`, but with a penalty: elimination begins with more columns than rows."""
    return LogisticRegression(max_iter=1000) if job.classes else Ridge()


def lasso(job: Job) -> Any:
    if job.classes:
        return LinearSVC(C=0.01, penalty="l1", dual=False, random_state=job.seed)
    return LassoCV(cv=job.folds, random_state=job.seed)


def around(select: Callable[[Job, Any], Sequence[int]], model: Callable[[Job], Any]) -> Select:
    return lambda job: select(job, model(job))


SFS_RULE = f"own rule: tol={TOL}"
MLX_RULE = 'own rule: k_features="parsimonious"'
LINEAR, FOREST = "LinearRegression or LogisticRegression", "a random forest of 100 trees"
METHODS: dict[str, Method] = {
    "NGP": Method("neural-greedy-pursuit", "ngp", ngp, 'its defaults; own rule: stop="auto"'),
    "scikit-learn SFS, linear": Method(
        "scikit-learn", "sklearn", around(sklearn_sequential, linear), f"{LINEAR}; {SFS_RULE}"
    ),
    "scikit-learn SFS, k-NN": Method(
        "scikit-learn", "sklearn", around(sklearn_sequential, neighbours), f"5 nearest neighbours; {SFS_RULE}"
    ),
    "scikit-learn SFS, forest": Method(
        "scikit-learn", "sklearn", around(sklearn_sequential, forest), FOREST, rules=(TOLD,)
    ),
    "mlxtend SFS, linear": Method(
        "mlxtend", "mlxtend.feature_selection", around(mlxtend_sequential, linear), f"{LINEAR}; {MLX_RULE}"
    ),
    "mlxtend SFS, k-NN": Method(
        "mlxtend",
        "mlxtend.feature_selection",
        around(mlxtend_sequential, neighbours),
        f"5 nearest neighbours; {MLX_RULE}",
    ),
    "scikit-learn RFE, linear": Method(
        "scikit-learn", "sklearn", around(elimination, ridge), "Ridge or LogisticRegression; own rule: RFECV"
    ),
    "scikit-learn RFE, forest": Method(
        "scikit-learn", "sklearn", around(elimination, forest), f"{FOREST}; own rule: RFECV"
    ),
    "SelectFromModel, lasso": Method(
        "scikit-learn",
        "sklearn",
        around(from_model, lasso),
        'LassoCV, or LinearSVC(C=0.01, penalty="l1"); own rule: coefficients that are not zero',
    ),
    "SelectFromModel, forest": Method(
        "scikit-learn", "sklearn", around(from_model, forest), f"{FOREST}; own rule: above the mean importance"
    ),
    "Boruta": Method(
        "Boruta", "boruta", around(boruta, shallow), 'forests of depth 5, n_estimators="auto"', rules=(OWN,)
    ),
    "Boruta, √P columns": Method(
        "Boruta",
        "boruta",
        around(boruta, quick_shallow),
        'the same with max_features="sqrt", as for classes',
        rules=(OWN,),
        tasks=("regression",),
    ),
    "LassoNet": Method("lassonet", "lassonet", lassonet, "told: columns that leave its path last; own rule: its CV"),
    "abess": Method("abess", "abess.linear", abess, "linear or logistic regression; own rule: its criterion, EBIC"),
    "mRMR, MIQ": Method(
        "feature-engine",
        "feature_engine.selection",
        lambda job: mrmr(job, "MIQ"),
        "feature-engine's, mutual information (its default)",
        rules=(TOLD,),
    ),
    "mRMR, FCQ": Method(
        "feature-engine",
        "feature_engine.selection",
        lambda job: mrmr(job, "FCQ"),
        "feature-engine's, F-statistic over correlation",
        rules=(TOLD,),
    ),
}


def is_installed(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def versions(names: Sequence[str]) -> dict[str, str]:
    """The version of each method's package."""
    return {METHODS[name].package: version(METHODS[name].package) for name in names}
