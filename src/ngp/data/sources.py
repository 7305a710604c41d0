"""X that need not fit in memory: memory-mapped arrays, sparse matrices, Zarr, Arrow and Parquet.

Columns are what is streamed: a source hands out a few at a time, as rows of an array, and is never asked for all of
them at once.
"""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ngp._formatting import listed
from ngp._types import AnyArray, BoolArray, IntArray

__all__ = [
    "ColumnSource",
    "FewColumns",
    "StackedRows",
    "as_columns",
    "between",
    "in_memory",
    "open_columns",
    "read_columns",
    "refuse_gaps",
    "refuse_sources",
]

ALL_ROWS = slice(None)


class ColumnSource(ABC):
    """A matrix of numbers that is read a few columns at a time, by several threads at once if need be.

    A source can be pickled: one on disk by its path, one in memory with its numbers.
    """

    shape: tuple[int, int]  # number of samples and of columns
    dtype: np.dtype[Any]  # of the numbers that are read
    names: list[str] | None = None  # of the columns, if they have any
    by_rows: bool = False  # whether the numbers of a row are side by side: many rows are then better read in parts
    advice: str | None = None  # how to store X instead, if it is slow to read

    @abstractmethod
    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array that the caller must not change."""

    def __len__(self) -> int:
        return self.shape[0]


def as_columns(X: Any) -> Any:
    """Make a source of an X that need not fit in memory; anything else is returned as it is."""
    if isinstance(X, ColumnSource):
        return X
    if isinstance(X, np.memmap):
        # Changes to a copy-on-write mapping are in no file. Other dtypes and shapes are refused as those of arrays are.
        fits = X.ndim == 2 and X.dtype.kind in "fiub" and X.mode != "c" and X.filename is not None
        return MappedColumns(X) if fits else X
    if issparse(X):
        return SparseColumns(X)
    zarr, pyarrow = sys.modules.get("zarr"), sys.modules.get("pyarrow")  # X can't be theirs unless they are loaded
    if zarr is not None and isinstance(X, zarr.Array):
        return ZarrColumns(X)
    if pyarrow is not None and isinstance(X, pyarrow.Table) and ArrowColumns.takes(X):
        return ArrowColumns(X)
    return X


def read_columns(X: AnyArray | ColumnSource, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
    """Columns of an array or a source as rows of an array, which may be a view of X."""
    if isinstance(X, ColumnSource):
        return X.read(columns, rows)
    run = _run(columns)  # much faster than picking them one by one
    taken: AnyArray = X[rows, run] if run is not None else X[rows][:, columns]
    return taken.T


def in_memory(X: Any) -> Any:
    """X as it is, or all columns of a source as one array."""
    return X.read(np.arange(X.shape[1])).T if isinstance(X, ColumnSource) else X


def between(rows: IntArray) -> tuple[slice, IntArray]:
    """The slice from the first to the last of some rows, and their places in it."""
    if not len(rows):
        return slice(0, 0), rows
    first = int(rows.min())
    return slice(first, int(rows.max()) + 1), rows - first


def refuse_gaps(finite: BoolArray, columns: IntArray, names: Sequence[str] | None) -> None:
    """Refuse an X with NaN or infinity in some columns."""
    if not finite.all():
        column = int(columns[np.argmin(finite)])
        raise ValueError(
            f"X has NaN or infinity in the column {names[column] if names else f'x{column}'!r}: "
            "drop rows or columns with gaps, or fill them (sklearn.impute)."
        )


def refuse_sources(X: Any, what: str) -> None:
    """Refuse an X that may not fit in memory."""
    if isinstance(X, ColumnSource) or issparse(X):
        raise TypeError(
            f"{what} needs X as an array in memory, and X is a {type(X).__name__}: give an array, such as X.toarray() "
            "of a sparse matrix."
        )


def _run(columns: IntArray) -> slice | None:
    """Columns as a slice if they are neighbours in ascending order."""
    if len(columns) and columns[-1] - columns[0] == len(columns) - 1 and (np.diff(columns) == 1).all():
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return None


class StackedRows(ColumnSource):
    """Arrays or sources with the same columns, one below the other."""

    def __init__(self, parts: Sequence[AnyArray | ColumnSource]) -> None:
        self.parts = tuple(parts)
        self.shape = (sum(len(part) for part in parts), int(parts[0].shape[1]))
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.names = getattr(parts[0], "names", None)
        self.by_rows = any(getattr(part, "by_rows", False) for part in parts)

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns."""
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
    """A matrix of which only a few columns were read: those that a fitted predictor needs.

    It is indexed as an array is, by rows, or by all rows and some of the columns that were read.
    """

    values: AnyArray
    places: IntArray  # numbers of the columns that were read, ascending
    n_columns: int  # with those that were not read

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


class MappedColumns(ColumnSource):
    """A ``numpy.memmap``, whole or a part of one, in any memory order; pickled by its path, not by its numbers."""

    # Bytes after which pages are released: the system would do so only when all memory is full, and until then they
    # count as memory of the process.
    MOST_MAPPED = 2**30

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        root: Any = array
        while isinstance(root.base, np.memmap):
            root = root.base
        # The offset of a part of a mapping is that of the whole.
        self._place = (str(array.filename), int(root.offset) + _address(array) - _address(root))
        self._set(np.asarray(array), root.base)

    def _set(self, array: AnyArray, mapping: mmap.mmap) -> None:
        self.array, self.dtype = array, array.dtype
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.by_rows = abs(array.strides[1]) < abs(array.strides[0])
        self._mapping, self._n_mapped = mapping, 0

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns; neighbours are a view of the mapping."""
        taken = read_columns(self.array, columns, rows)
        # Each number of a scattered column may be in a page of its own.
        self._n_mapped += taken.nbytes if _run(columns) else taken.size * mmap.PAGESIZE
        if self._n_mapped > self.MOST_MAPPED and hasattr(mmap, "MADV_DONTNEED"):
            self._n_mapped = 0
            self._mapping.madvise(mmap.MADV_DONTNEED)  # pages still in use are mapped again, from the system's cache
        return taken

    def __getstate__(self) -> tuple[Any, ...]:
        return (*self._place, self.dtype, self.shape, self.array.strides)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        path, offset, dtype, shape, strides = state
        mapped: Any = np.memmap(path, mode="r")
        self._place = (path, offset)
        self._set(np.ndarray(shape, dtype, buffer=mapped, offset=offset, strides=strides), mapped.base)


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])


class SparseColumns(ColumnSource):
    """A sparse matrix or array of scipy, kept by columns (CSC); other formats are converted, once."""

    def __init__(self, matrix: Any) -> None:
        _check_matrix("sparse", matrix)
        self.matrix = matrix.tocsc()  # the same object if it is CSC already
        self.dtype = self.matrix.dtype
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns."""
        run = _run(columns)
        dense: AnyArray = self.matrix[:, columns if run is None else run].T.toarray()
        return np.ascontiguousarray(dense)[:, rows]


class ZarrColumns(ColumnSource):
    """An array of Zarr: compressed chunks, each of which is unpacked as a whole.

    The columns of a chunk, from top to bottom, are a stripe. The last stripes that were read are kept, up to
    `KEPT_BYTES`, because the next request is likely to be for their neighbours.
    """

    KEPT_BYTES = 2**28

    def __init__(self, array: Any) -> None:
        _check_matrix("Zarr", array)
        self.__setstate__(array)

    def __getstate__(self) -> Any:
        return self.array  # which is pickled by its path, if it has one

    def __setstate__(self, array: Any) -> None:
        self.array, self.dtype = array, np.dtype(array.dtype)
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self._width = max(1, min(int(array.chunks[1]), self.shape[1]))
        self._n_kept = self.KEPT_BYTES // max(1, self.shape[0] * self._width * self.dtype.itemsize)
        if not self._n_kept:
            self.advice = (
                f"The chunks of X are {self._width} columns wide, too many to be kept in memory: each is unpacked many "
                f"times. Store X in chunks of fewer columns, as chunks=({self.shape[0]}, 100)."
            )
        self._stripes: OrderedDict[int, AnyArray] = OrderedDict()
        self._lock = Lock()

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns."""
        stripes, places = np.divmod(columns, self._width)
        out = np.empty((len(columns), self.shape[0]), self.dtype)
        for number in np.unique(stripes):
            own = np.flatnonzero(stripes == number)
            if self._n_kept:
                out[own] = self._stripe(int(number)).T[places[own]]
            else:
                out[own] = self.array.oindex[:, columns[own]].T
        return out[:, rows]

    def _stripe(self, number: int) -> AnyArray:
        with self._lock:  # no two threads unpack the same stripe
            if number not in self._stripes:
                first = number * self._width
                self._stripes[number] = np.asarray(self.array[:, first : first + self._width])
            self._stripes.move_to_end(number)
            while len(self._stripes) > self._n_kept:
                self._stripes.popitem(last=False)
            return self._stripes[number]


def _check_matrix(kind: str, array: Any) -> None:
    if len(array.shape) != 2 or np.dtype(array.dtype).kind not in "fiub":
        raise ValueError(
            f"X is a {kind} array of {len(array.shape)} dimensions and type {array.dtype}: "
            "give one of two dimensions that holds real numbers."
        )


class ArrowColumns(ColumnSource):
    """A table of Arrow with nothing but numbers; it may be mapped into memory from a file."""

    def __init__(self, table: Any) -> None:
        self.table, self.names = table, list(table.column_names)
        self.shape = (int(table.num_rows), len(self.names))
        self.dtype = _common_type(table.schema.types)

    @staticmethod
    def takes(table: Any) -> bool:
        """Whether all columns are numbers, and their names differ."""
        return len(set(table.column_names)) == table.num_columns and all(map(_is_number, table.schema.types))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns."""
        first, last, _ = rows.indices(len(self))
        out = np.empty((len(columns), max(0, last - first)), self.dtype)
        for values, column in zip(out, columns.tolist(), strict=True):
            values[:] = _numbers(self.table.column(column).slice(first, max(0, last - first)))
        return out


class ParquetColumns(ColumnSource):
    """Columns of Parquet files, read when they are needed; pickled by the paths."""

    def __init__(self, paths: Sequence[str], names: list[str]) -> None:
        from pyarrow.parquet import ParquetFile

        self.paths, self.names, self._lock = tuple(paths), names, Lock()
        self._files = [ParquetFile(path) for path in paths]
        schemas = [file.schema_arrow for file in self._files]
        self.dtype = _common_type(schema.field(name).type for schema in schemas for name in names)
        self.shape = (sum(file.metadata.num_rows for file in self._files), len(names))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns."""
        assert self.names is not None
        out, top = np.empty((len(columns), self.shape[0]), self.dtype), 0
        wanted = [self.names[column] for column in columns.tolist()]
        for file in self._files:
            with self._lock:  # a file has one position
                table = file.read(columns=list(dict.fromkeys(wanted)))
            for values, name in zip(out, wanted, strict=True):
                values[top : top + table.num_rows] = _numbers(table.column(name))
            top += table.num_rows
        return out[:, rows]

    def __reduce__(self) -> Any:
        return ParquetColumns, (self.paths, self.names)


def open_columns(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
) -> ColumnSource:
    """Open Parquet files as an X that need not fit in memory.

    Only the columns that are needed are read, when they are needed. Their names become the names of the features.

    Parameters
    ----------
    path : path, or sequence of paths
        A file; a folder, of which all files ``*.parquet`` are taken in the order of their names; or several files.
        The rows of several files are stacked, and all must have the same columns.
    columns : sequence of str, optional
        The columns to take, in this order; all of them if not given.
    exclude : sequence of str
        Columns to leave out, such as the target.

    Returns
    -------
    ColumnSource
        To be passed to ``fit``, ``transform`` and ``predict`` of `ngp.NGPRegressor` and others.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow, pyarrow.parquet
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "measured.parquet"
    ...     pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": [0.5, 1.5], "target": [3, 4]}), file)
    ...     X = open_columns(file, exclude=["target"])
    >>> X.shape, X.names
    ((2, 2), ['a', 'b'])
    """
    if find_spec("pyarrow") is None:
        raise ImportError("open_columns needs pyarrow: install it with pip install 'neural-greedy-pursuit[parquet]'.")
    files = _parquet_files(path)
    schemas = [_schema(file) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        if schema.names != schemas[0].names:
            raise ValueError(f"{file} has other columns than {files[0]}: give files with the same columns.")
    names = _chosen_names(schemas[0].names, columns, exclude)
    for file, schema in zip(files, schemas, strict=True):
        types = {field.name: field.type for field in schema}
        if odd := [f"{name!r} ({types[name]})" for name in names if not _is_number(types[name])]:
            raise ValueError(
                f"{file} has columns that are no numbers, {listed(odd, 8)}: exclude them, or give fit a data frame, "
                "which may hold categories."
            )
    return ParquetColumns(list(map(str, files)), names)


_OTHER_FORMATS = (
    "open .npy by numpy.load(path, mmap_mode='r') and Zarr by zarr.open_array(path), and give the result to fit"
)


def _parquet_files(path: Any) -> list[Path]:
    files = [Path(path)] if isinstance(path, str | PathLike) else list(map(Path, path))
    if not files:
        raise ValueError("path is an empty list: give at least one Parquet file.")
    if isinstance(path, str | PathLike) and files[0].is_dir():
        files = sorted(files[0].glob("*.parquet"))
        if not files:
            raise ValueError(f"path={str(path)!r} is a folder without files *.parquet: {_OTHER_FORMATS}.")
    return [file.absolute() for file in files]


def _schema(file: Path) -> Any:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import read_schema

    try:
        return read_schema(file)
    except OSError as error:
        raise type(error)(f"path={str(file)!r} can't be read: {(error.strerror or str(error)).lower()}.") from error
    except ArrowInvalid as error:
        raise ValueError(f"path={str(file)!r} is no Parquet file: {_OTHER_FORMATS}.") from error


def _chosen_names(known: list[str], columns: Sequence[str] | None, exclude: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or isinstance(exclude, str):
        raise TypeError(f"columns={columns!r} and exclude={exclude!r} must be lists of names.")
    chosen, in_file = list(known if columns is None else columns), set(known)
    for parameter, given in (("columns", chosen), ("exclude", exclude)):
        if unknown := [name for name in given if name not in in_file]:
            raise ValueError(
                f"{parameter} names columns that the file doesn't have, {unknown[:3]}: it has {listed(known, 8)}."
            )
    left_out = set(exclude)
    names = [name for name in chosen if name not in left_out]
    if not names:
        raise ValueError("open_columns is left without columns: exclude fewer.")
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise ValueError(f"the column {twice[0]!r} is there twice: give each a name of its own, and name it once.")
    return names


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _common_type(kinds: Iterable[Any]) -> np.dtype[Any]:
    """float32 if all columns are, as for data frames; float64 otherwise."""
    from pyarrow import types

    return np.dtype(np.float32 if all(map(types.is_float32, kinds)) else np.float64)


def _numbers(values: Any) -> AnyArray:
    """A column as an array; missing values become NaN."""
    import pyarrow

    if pyarrow.types.is_boolean(values.type):
        values = values.cast(pyarrow.uint8())
    elif pyarrow.types.is_decimal(values.type):
        values = values.cast(pyarrow.float64())
    numbers: AnyArray = values.to_numpy()
    return numbers
