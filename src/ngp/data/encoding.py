"""Tables in, numbers out: the columns of a data frame as one array of numbers.

Data frames are read through narwhals, which scikit-learn depends on too, and which imports neither pandas nor
polars by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import DuplicateError

from ngp._formatting import listed
from ngp._types import IntArray
from ngp.data.sources import ColumnSource

__all__ = ["ColumnEncoder", "briefly_refused_gaps"]

Frame = nw.DataFrame[Any]

# A table of these becomes an array as it is; with booleans, decimals or 128-bit integers it is cast first.
_PLAIN_NUMBERS = (
    nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64
)  # fmt: skip


@contextmanager
def briefly_refused_gaps() -> Iterator[None]:
    """Put scikit-learn's page about missing values, where it would be raised, into one sentence."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        raise ValueError(
            "Input X contains NaN: drop rows or columns with gaps, or fill them (sklearn.impute)."
        ) from None


class ColumnEncoder:
    """Turn the columns of a data frame into numbers; leave everything that is no data frame alone.

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
    # The shape is asked for only as an attribute, because np.shape runs into objects that refuse numpy
    # functions.
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
        raise ValueError(
            f"X has columns that are neither numbers nor categories, {listed(odd, 8)}: make them categories "
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
