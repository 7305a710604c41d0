"""A generalised additive model: one spline per column."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData

__all__ = ["GAM"]

DEGREE = 3
PENALTIES = np.logspace(-3, 3, 13)


class GAM(Baseline):
    """Rate each column by the spread of its own curve in an additive model.

    Each column has a cubic spline; all are fitted together by ridge regression, whose penalty is chosen by exact
    leave-one-out. The importance of a column is the standard deviation of its curve over the samples (the root of
    the variances summed over outputs). Made of scikit-learn's ``SplineTransformer`` and ``RidgeCV``. The knots are
    evenly spaced from the smallest value of a column to the largest, so that an outlier far off takes the bends away
    from all others: clip it first.

    Parameters
    ----------
    n_splines : int, default=5
        Splines per column.
    n_features_to_select : int, float or None, default=None
        The best so many features, or the best share of them; None leaves the choice to `threshold`.
    threshold : float, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.

    Attributes
    ----------
    importances_ : float array of shape (`n_features_in_`,)
        They sum to one.
    support_ : bool array of shape (`n_features_in_`,)
        The selected features.
    penalty_ : float
        The ridge penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> GAM(n_features_to_select=1).fit(X, X[:, 2] ** 2).get_support(indices=True)
    array([2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_splines": [Interval(Integral, DEGREE + 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_splines: int = 5,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
    ) -> None:
        self.n_splines = n_splines
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task

    def own_estimator(self) -> Any:
        """Make an additive model."""
        check_is_fitted(self)
        ridge = RidgeCV if self.task_ == "regression" else RidgeClassifierCV
        return make_pipeline(self._splines(), ridge(alphas=PENALTIES))

    def _splines(self) -> SplineTransformer:
        return SplineTransformer(n_knots=self.n_splines - DEGREE + 1, degree=DEGREE)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        splines = self._splines().fit_transform(data.X)
        ridge = RidgeCV(alphas=PENALTIES).fit(splines, data.scaled_targets)
        self.penalty_ = float(ridge.alpha_)
        curves = splines.reshape(len(splines), -1, self.n_splines)
        weights = np.atleast_2d(ridge.coef_).reshape(-1, curves.shape[1], self.n_splines)
        variance = np.stack([np.einsum("jps,ps->jp", curves, output).var(axis=0) for output in weights])
        result: FloatArray = np.sqrt(variance.sum(axis=0))
        return result
