"""The base class of all competing methods, and their predictors as scikit-learn estimators."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted, column_or_1d, validate_data

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.encoding import ColumnEncoder, TableSelector, briefly_refused_gaps
from ngp.data.groups import make_groups
from ngp.data.losses import labels, probabilities
from ngp.data.problem import Problem, code_targets, detect_task, differ, make_problem
from ngp.data.sources import refuse_sources
from ngp.kernels.parallel import one_blas_thread
from ngp.predictors.base import Predictor
from ngp.predictors.committee import bind_predictor, resolve_predictor

__all__ = [
    "Baseline",
    "PredictorEstimator",
    "TrainingData",
    "best_features",
    "column_problem",
    "normalised",
    "require",
]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked data without constant columns, as all methods take them."""

    X: FloatArray  # the columns that vary, categories as one column of 0 and 1 each
    targets: FloatArray  # numbers; 0 and 1 for two classes, one column per class for more
    classes: AnyArray | None  # the classes; None for regression
    origin: IntArray  # the feature that each column stands for
    n_features: int  # number of features, constant ones among them
    seed: int  # for everything random

    @property
    def y(self) -> AnyArray:
        """The targets as estimators take them: classes as labels, a single output as a vector."""
        if self.classes is not None:
            return labels(self.targets, self.classes)
        return self.targets[:, 0] if self.targets.shape[1] == 1 else self.targets

    @property
    def outputs(self) -> list[AnyArray]:
        """The labels, or each output that varies, standardised."""
        if self.classes is not None:
            return [self.y]
        return [each / each.std() for each in self.scaled_targets.T if each.any()]

    @property
    def standardised(self) -> FloatArray:
        """The columns with mean zero and variance one."""
        centred = self.X - self.X.mean(axis=0)
        centred /= np.abs(centred).max(axis=0)  # first, so that squares neither vanish nor overflow
        scaled: FloatArray = centred / centred.std(axis=0)
        return scaled

    @property
    def scaled_targets(self) -> FloatArray:
        """The targets with mean zero, all divided by one number: of moderate size, whatever their unit."""
        centred = self.targets - self.targets.mean(axis=0)
        centred[:, np.ptp(self.targets, axis=0) == 0] = 0  # a mean is rounded
        largest = np.abs(centred).max()
        scaled: FloatArray = centred / largest if largest > 0 else centred
        return scaled


def require(package: str, what: str) -> None:
    """Raise an error that says how to install a package, unless it is installed."""
    if find_spec(package) is None:
        raise ImportError(f"{what} needs {package}: install it with pip install 'neural-greedy-pursuit[baselines]'.")


def normalised(importances: npt.ArrayLike) -> FloatArray:
    """Importances that sum to one; all zeros stay as they are."""
    given = np.asarray(importances, dtype=np.float64)
    # A power of two changes no digit, and keeps the sum from overflow.
    values: FloatArray = np.ldexp(given, -np.frexp(given.max())[1])
    total = values.sum()
    return values / total if total > 0 else values


def column_problem(X: AnyArray, y: AnyArray, predictor: Predictor, *, task: str, cv: Any, seed: int) -> Problem:
    """The problem in which every column is a candidate."""
    groups, loss = make_groups(None, X.shape[1]), predictor.classification_loss
    return make_problem(X, y, groups=groups, task=task, cv=cv, classification_loss=loss, random_state=seed)


def best_features(importances: FloatArray, number: int) -> BoolArray:
    """Mask of the largest importances, without zeros; the first of equal ones are preferred."""
    mask = np.zeros(len(importances), dtype=bool)
    mask[np.argsort(-importances, kind="stable")[:number]] = True
    mask &= importances > 0
    return mask


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(TableSelector):
    """Base class of the competing methods: a subclass computes the importance of each column.

    Methods that draw random numbers have a parameter `random_state`, those that can use several processes `n_jobs`.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number or share of the features to select; None selects by `threshold`.
    threshold : float or "mean", default="mean"
        Features with a larger importance are selected. ``"mean"`` are those that are at least as important as the
        average feature, as in scikit-learn's ``SelectFromModel``; the rule of the paper is 0.01.
    task : {"auto", "regression", "classification"}, default="auto"
        Kind of targets.

    Attributes
    ----------
    importances_ : float array of shape (`n_features_in_`,)
        Importances, which sum to one.
    support_ : bool array of shape (`n_features_in_`,)
        Mask of the selected features.

    Examples
    --------
    >>> import numpy as np
    >>> from ngp.baselines import GAM
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> GAM(n_features_to_select=1).fit(X, X[:, 2] ** 2).get_support(indices=True)
    array([2])
    """

    n_features_to_select: int | float | None = None
    threshold: float | str | None = "mean"
    task: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "threshold": [Interval(Real, 0, 1, closed="left"), StrOptions({"mean"})],
        "task": [StrOptions({"auto", "regression", "classification"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _column_importances(self, data: TrainingData) -> FloatArray:
        """Importance of each column of ``data.X``, none negative, on any scale."""

    def own_estimator(self) -> Any:
        """Make the method's own predictor, to be trained on the selected columns; None if it has none."""
        return None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Rate all features and choose some."""
        data = self._training_data(X, y)
        number = self._number_to_select(data)
        by_column = self._column_importances(data)
        if not np.isfinite(by_column).all():
            raise ValueError(f"{type(self).__name__} finds importances that aren't finite: rescale X and y.")
        total = np.bincount(data.origin, weights=by_column, minlength=data.n_features)
        self.importances_: FloatArray = normalised(total)
        self.support_ = self._choose(number)
        found = int(self.support_.sum())
        if not found:
            warnings.warn("Nothing was selected: no feature is important enough.", stacklevel=3)
        elif number is not None and found < number:
            warnings.warn(
                f"n_features_to_select={self.n_features_to_select} asks for {number} features, but only {found} "
                "have an importance above zero: only these are selected.",
                stacklevel=3,
            )
        return self

    def _choose(self, number: int | None) -> BoolArray:
        if number is not None:
            return best_features(self.importances_, number)
        average = (1 - 1e-9) / self.n_features_in_  # rounding may put equal importances below their mean
        mask: BoolArray = self.importances_ > (average if self.threshold == "mean" else float(self.threshold or 0))
        return mask

    def _number_to_select(self, data: TrainingData) -> int | None:
        number = self.n_features_to_select
        if number is None:
            return None
        most = len(np.unique(data.origin))
        if not isinstance(number, Integral):
            return min(most, max(1, round(float(number) * data.n_features)))
        if number > most:
            raise ValueError(
                f"n_features_to_select={number} is more than the {most} features that vary: give at most {most}."
            )
        return int(number)

    def _training_data(self, X: npt.ArrayLike, y: npt.ArrayLike) -> TrainingData:
        refuse_sources(X, type(self).__name__)
        encoder = ColumnEncoder().fit(X)
        encoded = encoder.transform(X)
        with briefly_refused_gaps():
            values, targets = validate_data(
                self, encoded, y, multi_output=True, reset=True, ensure_min_samples=2, dtype=np.float64
            )
        if hasattr(X, "columns"):
            _check_feature_names(self, X, reset=True)
            self.n_features_in_ = encoder.n_features_in_
        task = detect_task(targets) if self.task == "auto" else self.task
        coded, classes = code_targets(targets, task)
        self.task_ = task
        origin = np.arange(values.shape[1])
        if encoder.feature_groups_ is not None:
            sizes = [len(block) for block in encoder.feature_groups_]
            origin = np.repeat(np.arange(len(sizes)), sizes)
        varies = self._varying_columns(values, origin, encoder.feature_names_)
        seed = check_random_state(getattr(self, "random_state", None)).randint(np.iinfo(np.int32).max)
        return TrainingData(values[:, varies], coded, classes, origin[varies], self.n_features_in_, seed)

    def _varying_columns(self, X: FloatArray, origin: IntArray, names: list[str] | None) -> BoolArray:
        """Mask of the columns that vary by more than rounding; warns of constant features."""
        high, low = X.max(axis=0), X.min(axis=0)
        varies = differ(low, high)
        if not varies.any():
            raise ValueError("X has only constant columns: there is nothing to select from.")
        constant = np.setdiff1d(origin, origin[varies])
        if len(constant):
            some = ", ".join(names[i] if names else f"x{i}" for i in constant[:3])
            warnings.warn(
                f"X has constant features, {len(constant)} of {self.n_features_in_} "
                f"({some}{', …' if len(constant) > 3 else ''}): they are never selected.",
                stacklevel=5,
            )
        return varies


class PredictorEstimator(BaseEstimator):  # type: ignore[misc]
    """A predictor of `ngp.predictors`, trained on all columns of X."""

    def __init__(self, predictor: Any = "ssfn", *, task: str = "auto", random_state: Any = None) -> None:
        self.predictor = predictor
        self.task = task
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on all columns."""
        X, y = validate_data(self, X, y, multi_output=True, ensure_min_samples=2)
        if self.task == "classification" and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        predictor = resolve_predictor(self.predictor)
        # By these folds a predictor finds its own size.
        problem = column_problem(X, y, predictor, task=self.task, cv=min(5, len(X)), seed=seed)
        scorer = bind_predictor(predictor, problem, random_state=seed, n_jobs=None, device="auto")
        with one_blas_thread:
            self.predictor_ = scorer.at(1).fit(np.arange(X.shape[1]))
        self._remember_targets(y, problem.classes)
        return self

    def _remember_targets(self, y: AnyArray, classes: AnyArray | None) -> None:
        self.task_ = "regression" if classes is None else "classification"
        self.__dict__.pop("classes_", None)
        if classes is not None:
            self.classes_ = classes
        self._single_output = y.ndim == 1

    def _predict_coded(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        coded: FloatArray = self.predictor_.predict(validate_data(self, X, reset=False))
        return coded

    def predict(self, X: Any) -> AnyArray:
        """Predict values or classes."""
        coded = self._predict_coded(X)
        if self.task_ == "regression":
            return coded[:, 0] if self._single_output else coded
        return labels(coded, self.classes_)

    @available_if(lambda self: self.task_ == "classification")
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, of shape (n_samples, n_classes)."""
        return probabilities(self._predict_coded(X))

    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the predicted classes, or R² of the predicted values."""
        return float((accuracy_score if self.task_ == "classification" else r2_score)(y, self.predict(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        task = getattr(self, "task_", self.task)
        tags.target_tags.multi_output = task != "classification"
        if task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
