"""What `fit` is given, checked."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, check_consistent_length, validate_data

from ngp._types import AnyArray, IntArray
from ngp.data.encoding import ColumnEncoder, briefly_refused_gaps
from ngp.data.folds import is_validation_set
from ngp.data.problem import Problem
from ngp.data.sources import ColumnSource, as_columns

__all__ = ["check_columns", "check_training_data", "checked_cv"]


def check_training_data(selector: Any, X: Any, y: npt.ArrayLike) -> tuple[AnyArray | ColumnSource, AnyArray]:
    """X as numbers and y as an array; the selector learns the names and the number of its features."""
    X = as_columns(X)
    selector.encoder_ = ColumnEncoder().fit(X)
    if isinstance(X, ColumnSource):
        return X, _check_source(selector, X, y)
    encoded = selector.encoder_.transform(X)
    with briefly_refused_gaps():
        data, targets = validate_data(selector, encoded, y, multi_output=True, reset=True, ensure_min_samples=2)
        if data.dtype.kind == "O":  # lists with None in them
            data = check_array(data, dtype=np.float64, input_name="X")
    if hasattr(X, "columns"):
        _check_feature_names(selector, X, reset=True)
        selector.n_features_in_ = selector.encoder_.n_features_in_
    return data, targets


def _check_source(selector: Any, X: ColumnSource, y: npt.ArrayLike) -> AnyArray:
    """Check y, and what can be said of X without reading it."""
    targets: AnyArray = validate_data(selector, "no_validation", y, multi_output=True, reset=True)
    check_consistent_length(X, targets)
    if X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"X has the shape {X.shape}: give at least 2 samples and 1 feature.")
    if X.advice is not None:
        warnings.warn(X.advice, stacklevel=7)
    selector.n_features_in_ = X.shape[1]
    if X.names is not None:
        selector.feature_names_in_ = np.array(X.names, dtype=object)
    return targets


def checked_cv(selector: Any) -> Any:
    """The cv parameter, with an explicit validation set encoded and checked as X was."""
    cv = selector.cv
    if not is_validation_set(cv):
        return cv
    X = selector.encoder_.transform(as_columns(cv[0]))
    if not isinstance(X, ColumnSource):
        X = check_array(X, input_name="cv[0]", estimator=selector)
    return X, check_array(cv[1], ensure_2d=False, dtype=None, input_name="cv[1]")


def check_columns(problem: Problem, fixed: IntArray) -> None:
    """Say which features can't be selected, since none of their columns varies."""
    if not problem.varies.any():
        raise ValueError("X has only constant columns: there is nothing to select from.")
    groups, useful = problem.groups, problem.varies.copy()
    useful[fixed] = True
    if groups.are_columns:
        constant = np.flatnonzero(~useful[: groups.n_groups])
    else:
        varies = (useful[columns].any() for columns in groups.columns)
        constant = np.flatnonzero(~np.fromiter(varies, dtype=bool, count=groups.n_groups))
    if len(constant):
        some = ", ".join(groups.names[int(group)] for group in constant[:3])
        warnings.warn(
            f"X has constant features, {len(constant)} of {groups.n_groups} "
            f"({some}{', …' if len(constant) > 3 else ''}): they are never selected.",
            stacklevel=5,
        )
