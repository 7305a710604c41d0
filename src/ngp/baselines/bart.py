"""Bayesian additive regression trees: how often trees split on a column."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from ngp._types import AnyArray, FloatArray
from ngp.baselines.base import Baseline, TrainingData, require
from ngp.baselines.downstream import PredictorEstimator
from ngp.data.problem import code_targets, detect_task

__all__ = ["BART", "BARTEstimator"]

SMALLEST_LEAF = 5  # samples; stochtree's own default
CUT_POINTS = 100  # tried per column; stochtree's own default


class BART(Baseline):
    """Rate each column by how often the trees of a Bayesian additive model split on it.

    The trees are grown by XBART's algorithm (He and Hahn 2021), as its authors' package stochtree has it: in each
    sweep all trees are grown anew from their roots. Splits are counted in the sweeps after the burn-in. Each output
    has trees of its own, and their counts are summed as they are. Classes are modelled by a probit link; with more
    than two, each has trees that tell it from all others.

    Parameters
    ----------
    n_trees : int, default=50
        Trees per sweep and output.
    n_sweeps : int, default=40
        Sweeps, those of the burn-in among them.
    n_burn_in : int, default=15
        The first so many sweeps, which don't count. The paper used 15 of 20.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Outputs (or classes) that are modelled in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the trees.

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
    >>> bart = BART(n_sweeps=10, n_burn_in=5, n_features_to_select=1, random_state=0)
    >>> bart.fit(X, X[:, 2] ** 2).get_support(indices=True)
    array([2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "n_burn_in": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_trees: int = 50,
        n_sweeps: int = 40,
        n_burn_in: int = 15,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_sweeps = n_sweeps
        self.n_burn_in = n_burn_in
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def own_estimator(self) -> BARTEstimator:
        """Make a Bayesian additive model of trees."""
        check_is_fitted(self)
        return BARTEstimator(
            task=self.task_,
            n_trees=self.n_trees,
            n_sweeps=self.n_sweeps,
            n_burn_in=self.n_burn_in,
            random_state=self.random_state,
        )

    def _column_importances(self, data: TrainingData) -> FloatArray:
        _check_settings(self.n_sweeps, self.n_burn_in, len(data.X))
        useful = data.targets.T[np.ptp(data.targets, axis=0) > 0]
        counts = Parallel(n_jobs=self.n_jobs)(
            delayed(_split_counts)(
                data.X, output, data.classes is not None, self.n_trees, self.n_sweeps, self.n_burn_in, data.seed
            )
            for output in useful
        )
        result: FloatArray = np.sum(counts, axis=0, dtype=np.float64) if counts else np.zeros(data.X.shape[1])
        return result


class BARTEstimator(PredictorEstimator):
    """Bayesian additive regression trees as `BART` grows them, to predict values or classes.

    Predictions, and probabilities of classes, are means over the sweeps after the burn-in.
    """

    def __init__(
        self,
        *,
        task: str = "auto",
        n_trees: int = 50,
        n_sweeps: int = 40,
        n_burn_in: int = 15,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.task = task
        self.n_trees = n_trees
        self.n_sweeps = n_sweeps
        self.n_burn_in = n_burn_in
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees."""
        X, y = validate_data(self, X, y, multi_output=True, dtype=np.float64)
        _check_settings(self.n_sweeps, self.n_burn_in, len(X))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.task_ = detect_task(y) if self.task == "auto" else self.task
        targets, classes = code_targets(y, self.task_)
        self.__dict__.pop("classes_", None)
        if classes is not None:
            self.classes_ = classes
        self._single_output = y.ndim == 1
        self._means = targets.mean(axis=0)
        self._models = [
            _sampled_model(X, output, classes is not None, self.n_trees, self.n_sweeps, seed)
            if np.ptp(output) > 0
            else None  # stochtree divides by the spread
            for output in targets.T
        ]
        return self

    def _predict_coded(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, copy=True)
        coded: FloatArray = np.tile(self._means, (len(X), 1))
        scale = "linear" if self.task_ == "regression" else "probability"
        for output, model in enumerate(self._models):
            if model is not None:
                sweeps = model.predict(X, type="posterior", terms="y_hat", scale=scale)
                coded[:, output] = sweeps[:, self.n_burn_in :].mean(axis=1)
        return coded

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}
        if "_models" in state:  # stochtree's models hold C++ objects, which don't pickle
            state["_models"] = [model and model.to_json() for model in state["_models"]]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_models" in state:
            self._models = [text and _restored_model(text) for text in state["_models"]]


def _check_settings(n_sweeps: int, n_burn_in: int, n_samples: int) -> None:
    require("stochtree", "BART")
    if n_burn_in >= n_sweeps:
        raise ValueError(
            f"n_burn_in={n_burn_in} leaves none of the n_sweeps={n_sweeps} sweeps: give less than {n_sweeps}."
        )
    if n_samples <= 2 * SMALLEST_LEAF:
        raise ValueError(
            f"X has {n_samples} samples, but BART needs at least {2 * SMALLEST_LEAF + 1}, "
            f"since each leaf holds {SMALLEST_LEAF} or more."
        )


def _sampled_model(X: FloatArray, output: FloatArray, binary: bool, n_trees: int, n_sweeps: int, seed: int) -> Any:
    from stochtree import BARTModel, OutcomeModel

    general: dict[str, Any] = {"random_seed": seed, "num_threads": 1, "cutpoint_grid_size": _cut_points(X)}
    if binary:
        general |= {"outcome_model": OutcomeModel(outcome="binary", link="probit"), "sample_sigma2_global": False}
    model = BARTModel()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Covariate", UserWarning)  # that columns have few values: see `_cut_points`
        model.sample(
            X_train=np.array(X),  # stochtree wants to be allowed to write into it
            y_train=np.array(output),
            num_gfr=n_sweeps,
            num_mcmc=0,
            general_params=general,
            mean_forest_params={"num_trees": n_trees, "min_samples_leaf": SMALLEST_LEAF},
        )
    return model


def _cut_points(X: FloatArray) -> int:
    """Largest number of cut points per column.

    stochtree takes every so-many-th sample for a cut point. Where values repeat, most of these fall on the same
    value, and hardly any split is found, unless each sample may be one.
    """
    ordered = np.sort(X, axis=0)
    return max(CUT_POINTS, len(X)) if (ordered[1:] == ordered[:-1]).any() else CUT_POINTS


def _restored_model(text: str) -> Any:
    from stochtree import BARTModel

    model = BARTModel()
    model.from_json(text)
    return model


def _split_counts(
    X: FloatArray, output: FloatArray, binary: bool, n_trees: int, n_sweeps: int, n_burn_in: int, seed: int
) -> AnyArray:
    forests = _sampled_model(X, output, binary, n_trees, n_sweeps, seed).forest_container_mean
    counts = [forests.get_forest_split_counts(sweep, X.shape[1]) for sweep in range(n_burn_in, n_sweeps)]
    total: AnyArray = np.sum(counts, axis=0)
    return total
