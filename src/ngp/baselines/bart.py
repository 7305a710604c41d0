"""Bayesian additive regression trees: how often trees split on a column."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from ngp._types import AnyArray, FloatArray
from ngp.baselines.base import Baseline, PredictorEstimator, TrainingData, require
from ngp.data.problem import code_targets, detect_task

__all__ = ["BART", "BARTEstimator"]

SMALLEST_LEAF = 5  # samples; stochtree's own default


@dataclass(kw_only=True, eq=False, repr=False)
class BART(Baseline):
    """Rate each column by how often the trees of a Bayesian additive model split on it.

    The trees are grown by XBART (He and Hahn 2021), in its authors' package stochtree: in each sweep all trees are
    grown again from their roots. Splits are counted in the sweeps after the burn-in. Each output has its own trees, and
    their counts are summed. Classes are modelled with a probit link, more than two one against the rest.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    n_trees : int, default=50
        Trees per sweep and output.
    n_sweeps : int, default=40
        Sweeps, including those of the burn-in.
    n_burn_in : int, default=15
        Number of first sweeps that don't count. The paper used 15 of 20.
    n_jobs : int or None, default=None
        Number of outputs (or classes) that are modelled in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the trees.
    """

    n_trees: int = 50
    n_sweeps: int = 40
    n_burn_in: int = 15
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "n_burn_in": [Interval(Integral, 0, None, closed="left")],
    }

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
        settings = data.classes is not None, self.n_trees, self.n_sweeps, data.seed
        counts = Parallel(n_jobs=self.n_jobs)(
            delayed(_split_counts)(self.n_burn_in, data.X, output, *settings) for output in useful
        )
        result: FloatArray = np.sum(counts, axis=0, dtype=np.float64) if counts else np.zeros(data.X.shape[1])
        return result


@dataclass(kw_only=True, eq=False, repr=False)
class BARTEstimator(PredictorEstimator):
    """Bayesian additive regression trees as `BART` grows them, to predict values or classes.

    Predictions, and probabilities of classes, are means over the sweeps after the burn-in.
    """

    task: str = "auto"
    n_trees: int = 50
    n_sweeps: int = 40
    n_burn_in: int = 15
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees."""
        X, y = validate_data(self, X, y, multi_output=True, dtype=np.float64)
        _check_settings(self.n_sweeps, self.n_burn_in, len(X))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        targets, classes = code_targets(y, detect_task(y) if self.task == "auto" else self.task)
        self._remember_targets(y, classes)
        self._means = targets.mean(axis=0)
        self._models = [
            _sampled_model(X, output, classes is not None, self.n_trees, self.n_sweeps, seed)
            if np.ptp(output) > 0  # stochtree divides by the spread
            else None
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
    """Number of cut points per column: stochtree's default, or all samples if values repeat.

    stochtree takes evenly spaced samples as cut points. If values repeat, most of these coincide, and hardly any
    split is found.
    """
    ordered = np.sort(X, axis=0)
    return max(100, len(X)) if (ordered[1:] == ordered[:-1]).any() else 100


def _restored_model(text: str) -> Any:
    from stochtree import BARTModel

    model = BARTModel()
    model.from_json(text)
    return model


def _split_counts(n_burn_in: int, X: FloatArray, *settings: Any) -> AnyArray:
    """Number of splits on each column in the sweeps after the burn-in."""
    model = _sampled_model(X, *settings)
    forests, sweeps = model.forest_container_mean, range(n_burn_in, model.num_gfr)
    total: AnyArray = np.sum([forests.get_forest_split_counts(sweep, X.shape[1]) for sweep in sweeps], axis=0)
    return total
