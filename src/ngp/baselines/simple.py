"""The paper's competitors that scikit-learn fits: correlation, LASSO, random forest, generalised additive model."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn import linear_model
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ngp._types import FloatArray
from ngp.baselines.base import Baseline, TrainingData

__all__ = ["GAM", "Correlation", "Lasso", "RandomForest"]


class Correlation(Baseline):
    """Rate each column by its linear correlation with the targets.

    The importance of a column is the root of its squared correlations, summed over the outputs (over the classes,
    if there are more than two): with a single output the absolute correlation.

    The parameters and attributes are those of `ngp.baselines.Baseline`.
    """

    def _column_importances(self, data: TrainingData) -> FloatArray:
        targets = data.scaled_targets
        spread = targets.std(axis=0)
        useful = spread > 0  # a constant output correlates with nothing
        correlations = data.standardised.T @ (targets[:, useful] / spread[useful]) / len(targets)
        result: FloatArray = np.sqrt((correlations**2).sum(axis=1))
        return result


@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(Baseline):
    """Rate each column by its coefficient in a linear fit with an ℓ1 penalty.

    Columns are standardised first, so that coefficients can be compared; targets are only centred. Several outputs
    share their columns (scikit-learn's ``MultiTaskLasso``), and so do the indicators of more than two classes. The
    importance is the absolute coefficient, summed over the outputs.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    alpha : float or "cv", default=0.01
        Weight of the penalty; ``"cv"`` finds it by five-fold cross-validation.
    threshold : float or "mean", default=0.01
        Features with a larger importance are selected: the rule of the paper.

    Attributes
    ----------
    alpha_ : float
        Weight of the penalty.
    """

    alpha: float | str = 0.01
    threshold: float | str | None = 0.01  # the penalty has chosen already

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"cv"})],
    }

    def _model(self, several: bool) -> Any:
        if self.alpha == "cv":
            folds = KFold(5, shuffle=True, random_state=0)  # shuffled, because rows often come sorted by y
            return (linear_model.MultiTaskLassoCV if several else linear_model.LassoCV)(cv=folds)
        return (linear_model.MultiTaskLasso if several else linear_model.Lasso)(alpha=self.alpha)

    def own_estimator(self) -> Any:
        """Make a LASSO on standardised columns, or a ridge classifier for classes."""
        check_is_fitted(self)
        model = RidgeClassifierCV() if self.task_ == "classification" else self._model(self._several)
        return make_pipeline(StandardScaler(), model)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        if self.alpha == "cv" and len(data.X) < 5:
            raise ValueError(f"alpha='cv' needs at least 5 samples, and X has {len(data.X)}: give alpha as a number.")
        several = self._several = data.targets.shape[1] > 1
        model = self._model(several)
        model.fit(data.standardised, data.targets if several else data.targets[:, 0])
        self.alpha_ = float(model.alpha_ if self.alpha == "cv" else self.alpha)
        importances: FloatArray = np.abs(np.atleast_2d(model.coef_)).sum(axis=0)
        return importances


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForest(Baseline):
    """Rate each column by how much it lowers the impurity in the trees of a random forest.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    n_jobs : int or None, default=None
        Number of trees that are grown in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the forest.
    """

    n_estimators: int = 100
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
    }

    def own_estimator(self) -> Any:
        """Make a random forest, on standardised columns and targets."""
        check_is_fitted(self)
        forest = self._forest()
        if self.task_ == "regression":
            forest = TransformedTargetRegressor(forest, transformer=StandardScaler())
        return make_pipeline(StandardScaler(), forest)

    def _forest(self) -> Any:
        forest = RandomForestRegressor if self.task_ == "regression" else RandomForestClassifier
        return forest(n_estimators=self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        # scikit-learn's trees ignore differences below 1e-7 in single precision, and variances of y below 1e-16.
        # Only the order of a column's values counts, so that ranks give the same splits; so does a power of two.
        ranks = rankdata(data.X, method="dense", axis=0)
        y = data.y
        if data.classes is None:
            y = np.ldexp(y, -np.frexp(np.ptp(data.targets, axis=0).max())[1])
        importances: FloatArray = self._forest().fit(ranks, y).feature_importances_
        return importances


@dataclass(kw_only=True, eq=False, repr=False)
class GAM(Baseline):
    """Rate each column by the spread of its curve in a generalised additive model.

    Each column has a cubic spline; all are fitted together by ridge regression, with a penalty chosen by exact
    leave-one-out. The importance of a column is the standard deviation of its curve over the samples (the root of
    the variances summed over outputs). The knots are evenly spaced from the smallest value of a column to the
    largest: clip distant outliers first.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    n_splines : int, default=5
        Splines per column.

    Attributes
    ----------
    penalty_ : float
        The ridge penalty.
    """

    n_splines: int = 5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "n_splines": [Interval(Integral, 4, None, closed="left")],
    }

    def own_estimator(self) -> Any:
        """Make an additive model."""
        check_is_fitted(self)
        ridge = RidgeCV if self.task_ == "regression" else RidgeClassifierCV
        return make_pipeline(self._splines(), ridge(alphas=np.logspace(-3, 3, 13)))

    def _splines(self) -> SplineTransformer:
        return SplineTransformer(n_knots=self.n_splines - 2, degree=3)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        splines = self._splines().fit_transform(data.X)
        ridge = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(splines, data.scaled_targets)
        self.penalty_ = float(ridge.alpha_)
        curves = splines.reshape(len(splines), -1, self.n_splines)
        weights = np.atleast_2d(ridge.coef_).reshape(-1, curves.shape[1], self.n_splines)
        variance = np.stack([np.einsum("jps,ps->jp", curves, output).var(axis=0) for output in weights])
        result: FloatArray = np.sqrt(variance.sum(axis=0))
        return result
