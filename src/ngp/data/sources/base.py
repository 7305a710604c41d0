"""What a source of columns is, and how arrays and sources are read alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ngp._types import AnyArray, BoolArray, IntArray

__all__ = [
    "ALL_ROWS",
    "ColumnSource",
    "FewColumns",
    "StackedRows",
    "between",
    "in_memory",
    "neighbours",
    "read_columns",
    "refuse_gaps",
]

ALL_ROWS = slice(None)


class ColumnSource(ABC):
    """A matrix of numbers that is read a few columns at a time.

    A source can be pickled. One on disk travels by its path, and is read by whoever gets it; one in memory travels
    with its numbers. It may be read by several threads at once.
    """

    shape: tuple[int, int]  # number of samples and of columns
    dtype: np.dtype[Any]  # of the numbers that are read
    names: list[str] | None = None  # names of the columns, where they have some
    # whether the numbers of a row lie side by side, so that what has many rows is better read some rows at a time
    by_rows: bool = False
    advice: str | None = None  # what to do about it, where a source is slow to read

    @abstractmethod
    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array that the caller must not change."""

    def __len__(self) -> int:
        return self.shape[0]


def neighbours(columns: IntArray) -> slice | None:
    """Columns as a slice, where they are neighbours in rising order."""
    if len(columns) and columns[-1] - columns[0] == len(columns) - 1 and (np.diff(columns) == 1).all():
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return None


def between(rows: IntArray) -> tuple[slice, IntArray]:
    """The rows from the first to the last of some, and where these are among them."""
    if not len(rows):
        return slice(0, 0), rows
    first = int(rows.min())
    return slice(first, int(rows.max()) + 1), rows - first


def read_columns(X: AnyArray | ColumnSource, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
    """Columns of an array or a source as rows of an array, which may be a view of X."""
    if isinstance(X, ColumnSource):
        return X.read(columns, rows)
    beside = neighbours(columns)  # much quicker than picking them one by one
    taken: AnyArray = X[rows, beside] if beside is not None else X[rows][:, columns]
    return taken.T


def in_memory(X: Any) -> Any:
    """X as it is, or all columns of a source as one array."""
    return X.read(np.arange(X.shape[1])).T if isinstance(X, ColumnSource) else X


def refuse_gaps(finite: BoolArray, columns: IntArray, names: Sequence[str] | None) -> None:
    """Refuse an X with NaN or infinity in some columns."""
    if not finite.all():
        column = int(columns[np.argmin(finite)])
        raise ValueError(
            f"X has NaN or infinity in the column {names[column] if names else f'x{column}'!r}: "
            "drop rows or columns with gaps, or fill them (sklearn.impute)."
        )


class StackedRows(ColumnSource):
    """Arrays or sources with the same columns, one below the other."""

    def __init__(self, parts: Sequence[AnyArray | ColumnSource]) -> None:
        self.parts = tuple(parts)
        self.shape = (sum(len(part) for part in parts), int(parts[0].shape[1]))
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.names = getattr(parts[0], "names", None)
        self.by_rows = any(getattr(part, "by_rows", False) for part in parts)

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
        first, last, _ = rows.indices(len(self))
        taken, top = [], 0
        for part in self.parts:
            own = slice(max(0, first - top), max(0, min(len(part), last - top)))
            if own.start < own.stop:
                taken.append(read_columns(part, columns, own))
            top += len(part)
        return np.concatenate([np.zeros((len(columns), 0), self.dtype), *taken], axis=1)


@dataclass(frozen=True)
class FewColumns:
    """A matrix of which only a few columns are known: all that a fitted predictor reads of a source.

    It is indexed as an array is, by rows, or by all rows and some of its known columns.
    """

    values: AnyArray  # the numbers
    places: IntArray  # the numbers of the known columns, rising
    n_columns: int  # how many there are with the unknown ones

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns."""
        return len(self.values), self.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, columns = key
            return self.values[rows][:, np.searchsorted(self.places, columns)]
        return FewColumns(self.values[key], self.places, self.n_columns)
