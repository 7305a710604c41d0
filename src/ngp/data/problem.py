"""A selection problem: checked data, coded targets, sample weights, folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.folds import Round, is_validation_set, make_rounds
from ngp.data.groups import Groups, make_groups
from ngp.data.losses import CLASSIFICATION_LOSSES, LOSSES, labels, mistakes, squared_error
from ngp.data.sources import ColumnSource, StackedRows, between, in_memory, read_columns, refuse_gaps

__all__ = [
    "Problem",
    "code_targets",
    "detect_task",
    "differ",
    "make_problem",
    "root_mean_square",
    "warn_of_constant_features",
]


@dataclass(frozen=True, eq=False)
class Problem:
    """The data that the pursuit and the predictors work on; made by `make_problem`."""

    X: AnyArray | ColumnSource  # numbers, in any memory order and type; never copied or changed here
    targets: FloatArray  # coded targets (see `code_targets`)
    weights: FloatArray  # sample weights
    groups: Groups  # the candidates
    rounds: tuple[Round, ...]  # the folds
    classes: AnyArray | None  # the classes that the columns of the targets stand for; None for regression
    loss: str  # name of the validation loss, a key of `ngp.data.losses.LOSSES`
    n_fit: int  # the first n_fit rows train the final predictor; the rest is an explicit validation set
    together: IntArray | None = None  # numbers of groups of rows that depend on each other, if there are such
    in_time: bool = False  # whether each row depends on those before it

    @property
    def n_samples(self) -> int:
        """Number of rows of X."""
        return len(self.targets)

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of columns of the coded targets."""
        return int(self.targets.shape[1])

    def columns(self, indices: IntArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Columns of X as rows of a new double array, so that the samples are contiguous."""
        whole, places = (rows, None) if isinstance(rows, slice) else between(rows)
        taken = read_columns(self.X, indices, whole)
        values = np.array(taken, dtype=np.float64, order="C")  # a copy in any case: the caller may change it
        return values if places is None else np.take(values, places, axis=1)

    @property
    def array(self) -> AnyArray:
        """X as an array, for callers that need all columns; a source is read completely."""
        return cast(AnyArray, in_memory(self.X))

    def only(self, columns: IntArray) -> Problem:
        """The problem with a few of its columns, numbered from 0: small enough to be sent to another process."""
        return self.with_columns(self.columns(columns))

    def with_columns(self, columns: FloatArray) -> Problem:
        """The problem with other columns (n, J), each of which is a candidate."""
        return replace(self, X=columns.T, groups=make_groups(None, len(columns)))

    def with_changed(self, columns: IntArray, X: AnyArray | ColumnSource) -> Problem:
        """The problem with an X that differs in a few columns; the others are not read again for their statistics."""
        other = replace(self, X=X)
        mean, deviation = (each.copy() for each in self.column_statistics)
        mean[columns], deviation[columns] = other.only(columns).column_statistics
        vars(other)["column_statistics"] = mean, deviation  # where the cached property is kept
        return other

    @cached_property
    def y(self) -> AnyArray:
        """The targets as estimators take them: classes as labels, a single output as a vector."""
        if self.classes is not None:
            return labels(self.targets, self.classes)
        return self.targets[:, 0] if self.n_outputs == 1 else self.targets

    @cached_property
    def is_weighted(self) -> bool:
        """Whether rows of positive weight differ in weight from 1; rows of weight zero can be left out."""
        return bool((self.weights[self.useful] != 1).any())

    @cached_property
    def useful(self) -> IntArray:
        """Rows of positive weight."""
        return np.flatnonzero(self.weights > 0)

    @cached_property
    def n_counted(self) -> float:
        """Number of rows, where one with k times the lightest weight counts as k: as if it had been given k times."""
        weights = self.weights[self.useful]
        return float(weights.sum() / weights.min())

    @cached_property
    def trains(self) -> BoolArray:
        """Which rows are training rows in any fold; with K folds all are."""
        trains = np.zeros(self.n_samples, dtype=bool)
        for round_ in self.rounds:
            trains[round_.rows if round_.n_folds > 1 else round_.training(0)] = True
        return trains

    def splits(self, round_: Round) -> Iterator[tuple[IntArray, IntArray]]:
        """Training rows, in the order of the data, and validation rows of each fold; only those of positive weight."""
        useful = self.weights > 0
        for fold in range(round_.n_folds):
            train, test = np.sort(round_.training(fold)), round_.validation(fold)
            yield train[useful[train]], test[useful[test]]

    @cached_property
    def column_statistics(self) -> tuple[FloatArray, FloatArray]:
        """Weighted mean and standard deviation of each column over all training rows.

        Rows of an explicit validation or hold-out set don't count. The deviation of a constant column is exactly zero.
        X is read once, and NaN or infinity in it is refused.
        """
        return self.statistics_of(slice(None))

    def statistics_of(self, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of neighbouring columns; no others are read."""
        moments = column_moments(self.X, np.where(self.trains, self.weights, 0), columns)
        numbers, names = np.arange(self.n_columns)[columns], getattr(self.X, "names", None)
        refuse_gaps(np.isfinite(moments.low) & np.isfinite(moments.high), numbers, names)
        _refuse_large(moments, numbers, names)
        return moments.mean, np.where(differ(moments.low, moments.high), moments.deviation, 0)

    @cached_property
    def varies(self) -> BoolArray:
        """Whether a column has more than one value in the training rows; a constant one is never selected."""
        return self.column_statistics[1] > 0

    def n_candidates(self, selected: IntArray) -> int:
        """Number of groups with a varying column beside the selected ones."""
        free = self.varies.copy()
        free[selected] = False
        return int(self._groups_with(free).sum())

    def _groups_with(self, columns: BoolArray) -> BoolArray:
        """Which groups have at least one of the columns in a mask."""
        if self.groups.are_columns:
            return columns
        return np.array([columns[own].any() for own in self.groups.columns], dtype=bool)

    @cached_property
    def column_scales(self) -> tuple[FloatArray, FloatArray]:
        """Mean of each column, and its deviation, or 1 if it is constant: what standardises the column."""
        mean, deviation = self.column_statistics
        return mean, np.where(self.varies, deviation, 1)

    @cached_property
    def target_scales(self) -> tuple[FloatArray, float]:
        """Mean of each target and one common deviation, over the rows that train the final predictor."""
        moments = column_moments(self.targets[: self.n_fit], self.weights[: self.n_fit])
        return moments.mean, root_mean_square(moments.deviation) or 1.0

    def row_losses(self, predictions: AnyArray, rows: IntArray) -> FloatArray:
        """Losses of predictions (..., len(rows), n_outputs) for some rows."""
        return LOSSES[self.loss](predictions, self.targets[rows])

    def part_losses(self, predictions: Iterator[AnyArray]) -> FloatArray:
        """Losses in every part of the validation, from each round's out-of-fold predictions."""
        parts = [
            round_.part_losses(self.row_losses(values, round_.rows), self.weights)
            for round_, values in zip(self.rounds, predictions, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def part_errors(self, predictions: Iterable[AnyArray]) -> FloatArray:
        """Share of mistakes, or squared error of numbers, in every part of the validation.

        It takes each round's out-of-fold predictions (n_rows, n_outputs).
        """
        judge = squared_error if self.classes is None else mistakes
        parts = [
            round_.part_losses(judge(values, self.targets[round_.rows]), self.weights)
            for round_, values in zip(self.rounds, predictions, strict=True)
        ]
        return np.concatenate(parts)

    @cached_property
    def part_weights(self) -> FloatArray:
        """Share of each part of the validation in the total loss."""
        weights: FloatArray = np.concatenate([round_.part_weights(self.weights) for round_ in self.rounds])
        weights /= weights.sum()
        return weights

    @cached_property
    def constant_losses(self) -> FloatArray:
        """Losses of the constant prediction in every part."""
        losses: FloatArray = self.part_losses(values[None] for values in self.constant_predictions())[0]
        return losses

    @cached_property
    def majority_errors(self) -> FloatArray:
        """Share of mistakes in every part if the most frequent class is predicted.

        It is that of all training rows: without a row of it, another of as many classes would be the most frequent.
        """
        mean, _ = self.target_scales
        return self.part_errors(np.tile(mean, (len(round_.rows), 1)) for round_ in self.rounds)

    def constant_predictions(self) -> Iterator[FloatArray]:
        """The best constant prediction, the weighted mean of each fold's training targets, in each round."""
        for round_ in self.rounds:
            predictions = np.zeros((len(round_.rows), self.n_outputs))
            for fold in range(round_.n_folds):
                start, end = round_.segments[fold + 1 : fold + 3]
                train = round_.training(fold)
                predictions[start:end] = np.average(self.targets[train], axis=0, weights=self.weights[train])
            yield predictions


def make_problem(
    X: AnyArray | ColumnSource,
    y: AnyArray,
    *,
    groups: Groups,
    task: str = "auto",
    cv: Any = 5,
    loss: str = "auto",
    classification_loss: str = "squared_error",
    sample_weight: FloatArray | None = None,
    cv_groups: AnyArray | None = None,
    random_state: int = 0,
) -> Problem:
    """Put a problem together from checked arrays."""
    n_fit = X.shape[0]
    weights = np.ones(n_fit) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    task = detect_task(y) if task == "auto" else task
    held_out = _explicit_validation_set(cv, X, y)
    if held_out is not None:
        X_val, y_val = held_out
        weights = np.concatenate([weights, np.full(len(X_val), weights.mean())])  # on their scale
        both = isinstance(X, np.ndarray) and isinstance(X_val, np.ndarray)
        X = np.concatenate([X, X_val]) if both else StackedRows([X, X_val])
        if task == "classification" and len(unknown := np.setdiff1d(y_val, y)):
            raise ValueError(f"cv holds classes that y doesn't: {unknown[:3].tolist()}.")
        y = np.concatenate([y, y_val.reshape(len(y_val), *y.shape[1:])])
        cv = [(np.arange(n_fit), np.arange(n_fit, len(X)))]
    together = None if cv_groups is None else np.unique(cv_groups, return_inverse=True)[1].ravel()
    in_time = isinstance(cv, TimeSeriesSplit)
    targets, classes = code_targets(y, task)
    targets = np.where(differ(low := targets.min(axis=0), targets.max(axis=0)), targets, low)
    if loss == "auto":
        loss = "squared_error" if classes is None else classification_loss
    if loss in CLASSIFICATION_LOSSES and classes is None:
        raise ValueError(f"loss={loss!r} is for classes, and this is a regression: use loss='squared_error'.")
    table = X if isinstance(X, np.ndarray) else np.zeros((len(X), 0))  # splitters get no columns of a source
    rounds = make_rounds(cv, table, y, classification=classes is not None, random_state=random_state, groups=cv_groups)
    if any(weights[round_.training(fold)].sum() <= 0 for round_ in rounds for fold in range(round_.n_folds)):
        raise ValueError("sample_weight is zero on all training rows of a fold: use fewer folds or other weights.")
    if sum(round_.part_weights(weights).sum() for round_ in rounds) <= 0:
        raise ValueError("sample_weight is zero on all validation rows: use another cv or other weights.")
    problem = Problem(X, targets, weights, groups, rounds, classes, loss, n_fit, together, in_time)
    if classes is None and not 1 / MOST_SPREAD < (spread := problem.target_scales[1]) < MOST_SPREAD:
        raise ValueError(
            f"y has a standard deviation of {spread:.2g}, beyond the precision of squared errors: divide y by a "
            "constant, so that it is closer to one."
        )
    return problem


def _explicit_validation_set(
    cv: Any, X: AnyArray | ColumnSource, y: AnyArray
) -> tuple[AnyArray | ColumnSource, AnyArray] | None:
    """The rows of a validation set that the user gave, checked; None if cv is something else."""
    if not is_validation_set(cv):
        return None
    X_val = cv[0] if isinstance(cv[0], ColumnSource) else np.asarray(cv[0])
    y_val = np.asarray(cv[1])
    n_val, n_outputs = len(X_val), y[:1].size
    if X_val.shape[1] != X.shape[1] or len(y_val) != n_val or y_val.size != n_val * n_outputs or not n_val:
        raise ValueError(
            f"cv=(X, y) of shapes {X_val.shape} and {y_val.shape} doesn't fit X with {X.shape[1]} columns: "
            "give validation rows with the same columns, and their targets in the shape of y."
        )
    return X_val, y_val


def warn_of_constant_features(problem: Problem, fixed: IntArray) -> None:
    """Warn of features that can't be selected because none of their columns varies."""
    useful = problem.varies.copy()
    useful[fixed] = True
    constant = np.flatnonzero(~problem._groups_with(useful))
    if len(constant):
        groups = problem.groups
        some = ", ".join(groups.names[int(group)] for group in constant[:3])
        warnings.warn(
            f"X has constant features, {len(constant)} of {groups.n_groups} "
            f"({some}{', …' if len(constant) > 3 else ''}): they are never selected.",
            stacklevel=5,
        )


def detect_task(y: AnyArray) -> str:
    """Whether y holds classes or quantities: the task for ``task="auto"``.

    Text, booleans, and whole numbers with at most 20 different values, each twice on average, are classes.
    """
    if y.ndim == 2 and y.shape[1] > 1:
        return "regression"
    if y.dtype.kind in "OUSTb":
        return "classification"
    with np.errstate(invalid="ignore"):  # numbers that no integer can hold
        whole = type_of_target(y) in ("binary", "multiclass")
    n_values = len(np.unique(y))
    return "classification" if whole and n_values <= min(20, len(y) / 2) else "regression"


def code_targets(y: AnyArray, task: str) -> tuple[FloatArray, AnyArray | None]:
    """Targets as columns of numbers, and the classes they stand for: None for regression.

    Quantities stay as they are. Classes become a 0/1 column per class, two classes a single 0/1 column.
    """
    if task == "regression":
        try:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1), None
        except ValueError as error:
            if y.ndim == 2 and y.shape[1] > 1:
                raise ValueError(
                    "y has several columns, and not all hold numbers: several outputs have to be numbers, and classes "
                    "have to be in one column."
                ) from error
            raise ValueError(
                "A regression needs numbers in y: give numbers, or select for classes (NGPClassifier or "
                "task='classification')."
            ) from error
    try:
        check_classification_targets(y)
    except TypeError as error:
        raise ValueError("y holds labels that can't be sorted, such as text beside None: give one type.") from error
    if y.ndim == 2:
        if y.shape[1] > 1:
            raise ValueError("A classification takes one column of classes: y has several outputs.")
        y = column_or_1d(y, warn=True)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        value = classes.tolist()[0]
        raise ValueError(f"y holds a single value, {value!r}: there are no classes to tell apart, nothing to predict.")
    if len(classes) == 2:
        return codes[:, None].astype(np.float64), classes
    return np.eye(len(classes))[codes], classes


# Losses are squares of targets, and their variances squares of losses.
MOST_SPREAD = 1e70


class Moments(NamedTuple):
    """Weighted means and deviations of columns, and their smallest and largest values in rows of positive weight.

    A column with NaN or infinity anywhere, also in rows of weight zero, has a smallest value that is NaN.
    """

    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray


# Rows whose means and deviations are taken together: results depend on it, so it is the same for all kinds of X.
SCAN_ROWS = 2**16
# Values that differ by so many units in the last place of the larger one may be the same but for rounding.
ROUNDING = 8


def differ(low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether the smallest and the largest value of a column differ by more than rounding."""
    with np.errstate(over="ignore"):
        different: BoolArray = high - low > ROUNDING * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return different


def root_mean_square(values: FloatArray) -> float:
    """Root of the mean square, also of numbers whose squares overflow or vanish."""
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(((values / largest) ** 2).mean())) if 0 < largest < np.inf else largest


class _Slab(NamedTuple):
    """Neighbouring rows."""

    rows: slice
    used: IntArray | slice  # those of positive weight, among them
    unused: IntArray
    weights: FloatArray  # of those used; they sum to one
    share: float  # weight of the slab divided by that of all rows down to its last one


def column_moments(X: AnyArray | ColumnSource, weights: FloatArray, columns: slice = slice(None)) -> Moments:
    """Moments of each column, in one pass over an X of any kind."""
    n_samples, n_columns = X.shape
    first, last, _ = columns.indices(n_columns)
    # Means are differences from those of the first slab, so that a large mean costs no digits.
    origin, moments = np.zeros(last - first), Moments(*np.full((4, last - first), [[0], [0], [np.inf], [-np.inf]]))
    slabs = list(_slabs(weights))
    # Neighbouring chunks of columns share the pages of a file that is stored row by row; the pages of one slab are
    # still in memory when the next chunk is read.
    by_rows = len(slabs) > 1 and _is_stored_by_rows(X)
    visits = [[slab] for slab in slabs] if by_rows else [slabs]
    # Enough columns at a time to be fast, few enough numbers to need little memory.
    length = max(1, min(256, 2**22 // (SCAN_ROWS if by_rows else n_samples)))
    for visit in visits:
        top, bottom = visit[0].rows.start, visit[-1].rows.stop
        for start in range(first, last, length):
            numbers = np.arange(start, min(start + length, last))
            values = read_columns(X, numbers, slice(top, bottom))
            places = slice(start - first, start - first + len(numbers))
            own = Moments(*(each[places] for each in moments))
            for slab in visit:
                _add(own, origin[places], values[:, slab.rows.start - top : slab.rows.stop - top], slab)
    return moments._replace(mean=origin + moments.mean)


def _slabs(weights: FloatArray) -> Iterator[_Slab]:
    total = 0.0
    for start in range(0, len(weights), SCAN_ROWS):
        own = weights[start : start + SCAN_ROWS]
        weight = own.sum()
        total += weight
        used, unused = np.flatnonzero(own > 0), np.flatnonzero(own <= 0)
        shares = own[used] / weight if len(used) else np.zeros(0)
        rows = slice(start, start + len(own))
        yield _Slab(rows, used if len(unused) else slice(None), unused, shares, weight / total if len(used) else 0.0)


def _is_stored_by_rows(X: AnyArray | ColumnSource) -> bool:
    return X.by_rows if isinstance(X, ColumnSource) else abs(X.strides[1]) < abs(X.strides[0])


def _add(moments: Moments, origin: FloatArray, values: AnyArray, slab: _Slab) -> None:
    """Add a slab of some columns (n_columns, n_rows) to the moments of the rows above."""
    moments.low[~np.isfinite(values[:, slab.unused]).all(axis=1)] = np.nan
    if not slab.share:
        return
    own = np.array(values[:, slab.used], dtype=np.float64, order="C")
    low, high = own.min(axis=1), own.max(axis=1)
    np.minimum(moments.low, low, out=moments.low)
    np.maximum(moments.high, high, out=moments.high)
    with np.errstate(invalid="ignore", over="ignore"):  # columns that are refused later
        if slab.share == 1:
            origin[:] = (own * slab.weights).sum(axis=1)
        own -= origin[:, None]
        # A power of two changes no digit, and squares neither overflow nor vanish.
        exponents = np.frexp(np.maximum(high - origin, origin - low))[1]
        scale = np.ldexp(1.0, np.clip(exponents, -1022, 1022))
        own /= scale[:, None]
        mean = (own * slab.weights).sum(axis=1)
        own -= mean[:, None]
        deviation = scale * np.sqrt((np.square(own, out=own) * slab.weights).sum(axis=1))
        change, rest = scale * mean - moments.mean, 1 - slab.share
        parts = sqrt(rest) * moments.deviation, sqrt(slab.share) * deviation, sqrt(rest * slab.share) * change
        moments.mean[:] += slab.share * change
        moments.deviation[:] = np.hypot(np.hypot(parts[0], parts[1]), parts[2])


def _refuse_large(moments: Moments, columns: IntArray, names: Sequence[str] | None) -> None:
    """Refuse columns whose standardised values can't be represented."""
    mean, deviation, low, high = moments
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(high - mean, mean - low) / np.where(deviation > 0, deviation, 1)
    if not np.isfinite(largest).all():
        place = int(np.argmin(np.isfinite(largest)))
        column = int(columns[place])
        raise ValueError(
            f"X has numbers from {low[place]:.2g} to {high[place]:.2g} in the column "
            f"{names[column] if names else f'x{column}'!r}, too far apart for double precision: divide the column by "
            "a constant."
        )
