"""Tables in, numbers out: data frames as arrays of numbers, checks of the training data, tables reduced to a selection.

Data frames are read through narwhals, which imports neither pandas nor polars by itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ngp._formatting import listed
from ngp._types import AnyArray, BoolArray, IntArray
from ngp.data.folds import is_validation_set
from ngp.data.sources import ColumnSource, FewColumns, as_columns, refuse_gaps

__all__ = ["ColumnEncoder", "TableSelector", "briefly_refused_gaps", "check_training_data", "checked_cv"]

Frame = nw.DataFrame[Any]

# A table of these becomes an array as it is; with booleans, decimals or 128-bit integers it is cast first.
_PLAIN_NUMBERS = (
    nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64
)  # fmt: skip


@contextmanager
def briefly_refused_gaps() -> Iterator[None]:
    """Replace scikit-learn's long message about missing values by one sentence."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        raise ValueError(
            "Input X contains NaN: drop rows or columns with gaps, or fill them (sklearn.impute)."
        ) from None


class ColumnEncoder:
    """Turn the columns of a data frame into numbers; anything else is returned as it is.

    Numbers stay (missing ones become NaN), booleans become 0 and 1, and a category column becomes one column
    of 0 and 1 per category seen in `fit`, in sorted order; a category unknown to `fit` gives zeros in all of
    them. Shape and finiteness are not checked here.
    """

    n_features_in_: int  # number of original columns
    feature_names_: list[str] | None  # names of the original columns; None if X has none, or not only strings
    feature_groups_: tuple[IntArray, ...] | None  # for each original column the encoded columns it became
    categories_: dict[int, list[Any]]  # of each category column, by its position, in the order of the encoded columns

    def fit(self, X: Any) -> ColumnEncoder:
        """Learn the names of the columns and the categories in them."""
        frame = _as_frame(X)
        self.categories_ = {}
        self.feature_groups_ = None
        if frame is None:
            self.n_features_in_ = _n_columns(X)
            self.feature_names_ = X.names if isinstance(X, ColumnSource) else None
            return self
        self.n_features_in_ = len(frame.columns)
        self.feature_names_ = _string_names(frame)
        self.categories_ = _find_categories(frame)
        widths = [len(self.categories_[i]) if i in self.categories_ else 1 for i in range(self.n_features_in_)]
        self._ends = np.cumsum(widths, dtype=np.intp)
        if self.categories_:
            self.feature_groups_ = tuple(np.split(np.arange(sum(widths)), self._ends[:-1]))
        return self

    def transform(self, X: Any) -> Any:
        """Return the encoded columns."""
        frame = _as_frame(X)
        if frame is None:
            if self.categories_:
                raise ValueError(
                    f"X is a {type(X).__name__}, but fit saw a data frame with category columns: "
                    "pass a data frame with the same columns."
                )
            return X
        self._check_same_columns(frame)
        numbers = [i for i in range(len(frame.columns)) if i not in self.categories_]
        block = _numbers(frame, numbers)
        if not self.categories_:
            return block
        encoded = np.zeros((len(frame), self._ends[-1]), dtype=block.dtype)
        encoded[:, self._ends[numbers] - 1] = block
        _refuse_missing(frame, self.categories_)
        for i, categories in self.categories_.items():
            places = {category: place for place, category in enumerate(categories)}
            found = np.array([places.get(value, -1) for value in _column(frame, i).to_list()], dtype=np.intp)
            rows = np.flatnonzero(found >= 0)
            encoded[rows, self._ends[i] - len(places) + found[rows]] = 1
        return encoded

    def is_like(self, other: ColumnEncoder) -> bool:
        """Whether columns and categories are the same, so that the encoded columns are."""
        return (self.n_features_in_, self.feature_names_, self.categories_) == (
            other.n_features_in_,
            other.feature_names_,
            other.categories_,
        )

    def _check_same_columns(self, frame: Frame) -> None:
        if len(frame.columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(frame.columns)} columns, but fit saw {self.n_features_in_}: pass the same columns."
            )
        names = _string_names(frame)
        if self.feature_names_ is None or names is None or names == self.feature_names_:
            return
        seen = set(self.feature_names_)
        unknown = [repr(name) for name in names if name not in seen]
        if unknown:
            raise ValueError(f"X has columns that fit did not see, {listed(unknown, 8)}: pass the same columns.")
        raise ValueError(
            f"X has its columns in another order than in fit, where {self.feature_names_[0]!r} came first: "
            "pass them in that order."
        )


def _as_frame(X: Any) -> Frame | None:
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError:
        raise ValueError("X has several columns of the same name: give each a name of its own.") from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is a lazy {type(X).__name__}: pass X.collect() instead.")
    return frame if isinstance(frame, nw.DataFrame) else None


def _n_columns(X: Any) -> int:
    # Not np.shape(X): some objects refuse numpy functions.
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return int(shape[1]) if len(shape) > 1 else 1


def _string_names(frame: Frame) -> list[str] | None:
    return list(frame.columns) if all(isinstance(name, str) for name in frame.columns) else None


def _column(frame: Frame, position: int) -> nw.Series[Any]:
    return frame[:, position]


def _is_number(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_numeric() or dtype == nw.Boolean


def _find_categories(frame: Frame) -> dict[int, list[Any]]:
    dtypes = frame.schema
    odd = [
        f"{name!r} ({type(dtype).__name__})"
        for name, dtype in dtypes.items()
        if not _is_number(dtype) and dtype not in (nw.Categorical, nw.Enum)
    ]
    if odd:
        dated = any(dtype.is_temporal() for dtype in dtypes.values())
        raise ValueError(
            f"X has columns that are neither numbers nor categories, {listed(odd, 8)}: make "
            f"{'dates numbers, such as days since the first, and text' if dated else 'them'} categories "
            'with astype("category") in pandas or cast(pl.Categorical) in polars, or drop them.'
        )
    positions = [i for i, dtype in enumerate(dtypes.values()) if not _is_number(dtype)]
    _refuse_missing(frame, positions)
    # Sorted, because the order inside a polars Categorical depends on what else the process has read. The name of the
    # type goes first, because pandas allows categories of several types, which don't compare.
    return {
        i: sorted(set(_column(frame, i).to_list()), key=lambda value: (type(value).__name__, value)) for i in positions
    }


def _refuse_missing(frame: Frame, positions: Iterable[int]) -> None:
    missing = [repr(frame.columns[i]) for i in positions if _column(frame, i).is_null().any()]
    if missing:
        raise ValueError(
            f"X has missing values in the category columns {listed(missing, 8)}: "
            "drop these rows, or make missing a category of its own."
        )


def _numbers(frame: Frame, positions: list[int]) -> npt.NDArray[np.floating[Any]]:
    if not positions:
        return np.empty((len(frame), 0))
    if len(positions) < len(frame.columns):
        frame = frame[:, positions]
    dtypes = frame.schema
    odd = [f"{name!r} ({type(dtype).__name__})" for name, dtype in dtypes.items() if not _is_number(dtype)]
    if odd:
        raise ValueError(f"X has columns that held numbers in fit but not here, {listed(odd, 8)}: convert them.")
    if any(dtype not in _PLAIN_NUMBERS for dtype in dtypes.values()):
        frame = frame.select(nw.all().cast(nw.Float64))
    block = frame.to_numpy()
    return block if block.dtype in (np.float32, np.float64) else block.astype(np.float64)


def check_training_data(selector: Any, X: Any, y: npt.ArrayLike) -> tuple[AnyArray | ColumnSource, AnyArray]:
    """X as numbers and y as an array; sets the selector's encoder, and the names and number of its features."""
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
    """Check y, and the shape of X, which is not read yet."""
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


def checked_cv(selector: Any, cv: Any) -> Any:
    """A way of validation, an explicit validation set encoded and checked as X was."""
    if not is_validation_set(cv):
        return cv
    X = selector.encoder_.transform(as_columns(cv[0]))
    if not isinstance(X, ColumnSource):
        X = check_array(X, input_name="cv[0]", estimator=selector)
    return X, check_array(cv[1], ensure_2d=False, dtype=None, input_name="cv[1]")


class TableSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A selector whose `support_` says which columns of an array or a data frame are kept."""

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "support_")
        mask: BoolArray = self.support_
        return mask

    def transform(self, X: npt.ArrayLike) -> Any:
        """Reduce X to the selected columns: a data frame stays one, unless `set_output` asks for something else."""
        check_is_fitted(self, "support_")
        if issparse(X):
            return self._selected_sparse(X)
        if (few := self._few_columns(X)) is not None:
            return few.values
        output = _get_output_config("transform", estimator=self)["dense"]
        kind = "pandas" if is_pandas_df(X) else "polars" if is_polars_df(X) else None
        if kind is not None and output in ("default", kind):
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
            if not self.support_.any():
                warnings.warn("No features were selected: the table has no columns.", stacklevel=3)
            places = self.get_support(indices=True).tolist()
            frame: Any = X
            return frame.iloc[:, places] if kind == "pandas" else frame[:, places]
        with briefly_refused_gaps():
            return super().transform(X)

    def _few_columns(self, X: Any) -> FewColumns | None:
        """The selected columns of an X that need not fit in memory; no other ones are read. None for other kinds."""
        places = self.get_support(indices=True)
        if issparse(X):
            return FewColumns(self._selected_sparse(X).toarray(), places, X.shape[1])
        X = as_columns(X)
        if not isinstance(X, ColumnSource):
            return None
        _check_n_features(self, X, reset=False)
        expected = getattr(self, "feature_names_in_", None)
        if X.names is not None and expected is not None and X.names != expected.tolist():
            first = next(pair for pair in zip(X.names, expected, strict=True) if pair[0] != pair[1])
            raise ValueError(f"X has the column {first[0]!r} where fit saw {first[1]!r}: pass the same columns.")
        values = X.read(places)
        refuse_gaps(np.asarray(np.isfinite(values).all(axis=1)), places, X.names)
        return FewColumns(values.T, places, X.shape[1])

    def _selected_sparse(self, X: Any) -> Any:
        """The selected columns of a sparse matrix, by rows."""
        _check_n_features(self, X, reset=False)
        places = self.get_support(indices=True)
        chosen = (X if X.format in ("csr", "csc") else X.tocsr())[:, places].tocsr()
        finite = np.ones(len(places), dtype=bool)
        finite[chosen.indices[~np.isfinite(chosen.data)]] = False
        refuse_gaps(finite, places, None)
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.categorical = True
        return tags
