"""LASSO: least squares with an ℓ1 penalty."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData

__all__ = ["Lasso", "LassoCV"]

N_FOLDS = 5


class Lasso(Baseline):
    """Rate each column by its coefficient in a linear fit with an ℓ1 penalty.

    Columns are standardised first, so that coefficients can be compared; targets are centred alone. Several outputs
    share their columns (scikit-learn's ``MultiTaskLasso``), and so do the indicators of more than two classes. The
    importance is the absolute coefficient, summed over the outputs.

    Parameters
    ----------
    alpha : float or "cv", default=0.01
        Weight of the penalty; ``"cv"`` finds it by five-fold cross-validation.
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
    alpha_ : float
        The weight of the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> Lasso().fit(X, 3 * X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"cv"})],
    }

    def __init__(
        self,
        *,
        alpha: float | str = 0.01,
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task

    def _model(self, several: bool) -> Any:
        if self.alpha == "cv":
            # Shuffled, because rows often come sorted by y. The same folds each time: there is no seed to give.
            folds = KFold(N_FOLDS, shuffle=True, random_state=0)
            return (linear_model.MultiTaskLassoCV if several else linear_model.LassoCV)(cv=folds)
        return (linear_model.MultiTaskLasso if several else linear_model.Lasso)(alpha=self.alpha)

    def own_estimator(self) -> Any:
        """Make a LASSO on standardised columns, or a ridge classifier for classes."""
        check_is_fitted(self)
        model = RidgeClassifierCV() if self.task_ == "classification" else self._model(self._several)
        return make_pipeline(StandardScaler(), model)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        if self.alpha == "cv" and len(data.X) < N_FOLDS:
            raise ValueError(
                f"alpha='cv' needs at least {N_FOLDS} samples, and X has {len(data.X)}: give alpha as a number."
            )
        several = self._several = data.targets.shape[1] > 1
        model = self._model(several)
        model.fit(data.standardised, data.targets if several else data.targets[:, 0])
        self.alpha_ = float(model.alpha_ if self.alpha == "cv" else self.alpha)
        importances: FloatArray = np.abs(np.atleast_2d(model.coef_)).sum(axis=0)
        return importances


class LassoCV(Lasso):
    """`Lasso` with the weight of its penalty found by cross-validation: another default, nothing else.

    Parameters
    ----------
    alpha : float or "cv", default="cv"
        Weight of the penalty; ``"cv"`` finds it by five-fold cross-validation.
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
    alpha_ : float
        The weight of the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> LassoCV().fit(X, 3 * X[:, 2] - X[:, 0]).get_support(indices=True)
    array([0, 2])
    """

    def __init__(
        self,
        *,
        alpha: float | str = "cv",
        n_features_to_select: int | float | None = None,
        threshold: float = 0.01,
        task: str = "auto",
    ) -> None:
        super().__init__(alpha=alpha, n_features_to_select=n_features_to_select, threshold=threshold, task=task)
