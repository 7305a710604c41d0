"""LassoNet: a network whose inputs leave one after another under a growing penalty."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData, require
from ngp.baselines.preparation import held_out_rows, standardised_targets, strongest_columns

__all__ = ["LassoNet"]

HELD_OUT = 0.1  # the package's own share for early stopping, but stratified


class LassoNet(Baseline):
    """Rate each column by the penalty that drives it out of a network.

    The lassonet package's path: a network with one hidden layer and a linear skip connection is trained, and then
    trained on under an ℓ1 penalty of the skip connection that grows from step to step; a column that the skip
    connection loses is lost to the hidden layer too. The importance of a column is the penalty at which it leaves;
    the higher, the longer it was needed. The package has no way to ask for a number of columns;
    `n_features_to_select` takes those that leave last. A category column leaves with the last of its columns of 0
    and 1. Columns and values are standardised first; a tenth of the samples tells when to stop training.

    It runs on the CPU, so that a seed has one answer.

    Parameters
    ----------
    n_units : int, default=100
        Units of the hidden layer.
    M : float, default=10
        The hierarchy parameter: how much a column may weigh in the hidden layer, relative to its weight in the skip
        connection.
    lambda_start : float or "auto", default="auto"
        The first penalty; ``"auto"`` lets the package look for it, which takes its time.
    path_multiplier : float, default=1.02
        Factor by which the penalty grows.
    n_features_to_select : int, float or None, default=None
        The last so many features to leave, or the last share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    random_state : int, RandomState or None, default=None
        Seed of the weights and of the samples held out.

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
    >>> selector = LassoNet(n_units=10, lambda_start=10, path_multiplier=1.2, n_features_to_select=2, random_state=0)
    >>> selector.fit(X, 3 * X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "M": [Interval(Real, 0, None, closed="neither")],
        "lambda_start": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "path_multiplier": [Interval(Real, 1, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_units: int = 100,
        M: float = 10,
        lambda_start: float | str = "auto",
        path_multiplier: float = 1.02,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_units = n_units
        self.M = M
        self.lambda_start = lambda_start
        self.path_multiplier = path_multiplier
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.random_state = random_state

    def _column_importances(self, data: TrainingData) -> FloatArray:
        require("torch", "LassoNet")
        require("lassonet", "LassoNet")
        import torch
        from lassonet import LassoNetClassifier, LassoNetRegressor

        from ngp.kernels.networks import seeded
        from ngp.predictors.networks import one_torch_thread

        if not np.ptp(data.targets, axis=0).any():  # any order would be made up
            return np.zeros(data.X.shape[1])
        X, y = data.standardised, standardised_targets(data)
        if data.classes is not None:
            y = np.searchsorted(data.classes, y)
        train, test = held_out_rows(data, HELD_OUT, "LassoNet", least=1)
        network = (LassoNetRegressor if data.classes is None else LassoNetClassifier)(
            hidden_dims=(self.n_units,),
            M=self.M,
            lambda_start=self.lambda_start,
            path_multiplier=self.path_multiplier,
            device=torch.device("cpu"),
            verbose=0,
        )
        with seeded(data.seed), one_torch_thread(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "lambda_start=", UserWarning)  # that it might be too large
            network.path(X[train], y[train], X_val=X[test], y_val=y[test])
        penalties = network.feature_importances_.numpy().astype(np.float64)
        return np.where(strongest_columns(penalties, data.origin), penalties, 0.0)
