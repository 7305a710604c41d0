"""Tables of Arrow, and Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ngp._formatting import listed
from ngp._types import AnyArray, IntArray
from ngp.data.sources.base import ALL_ROWS, ColumnSource

__all__ = ["ArrowColumns", "ParquetColumns", "open_columns"]

OTHERWISE = "open .npy by numpy.load(path, mmap_mode='r') and Zarr by zarr.open_array(path), and give the result to fit"


class ArrowColumns(ColumnSource):
    """A table of Arrow that holds nothing but numbers; it may be mapped into memory from a file."""

    def __init__(self, table: Any) -> None:
        self.table, self.names = table, list(table.column_names)
        self.shape = (int(table.num_rows), len(self.names))
        self.dtype = _common_type(table.schema.types)

    @staticmethod
    def takes(table: Any) -> bool:
        """Whether a table holds nothing but numbers, under names of their own."""
        return len(set(table.column_names)) == table.num_columns and all(map(_is_number, table.schema.types))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
        first, last, _ = rows.indices(len(self))
        out = np.empty((len(columns), max(0, last - first)), self.dtype)
        for values, column in zip(out, columns.tolist(), strict=True):
            values[:] = _numbers(self.table.column(column).slice(first, max(0, last - first)))
        return out


class ParquetColumns(ColumnSource):
    """Columns of Parquet files, read when they are asked for; pickled by the paths."""

    def __init__(self, paths: Sequence[str], names: list[str]) -> None:
        self._open(paths, names)

    def _open(self, paths: Sequence[str], names: list[str]) -> None:
        from pyarrow.parquet import ParquetFile

        self.paths, self.names, self._lock = tuple(paths), names, Lock()
        self._files = [ParquetFile(path) for path in paths]
        schemas = [file.schema_arrow for file in self._files]
        self.dtype = _common_type(schema.field(name).type for schema in schemas for name in names)
        self.shape = (sum(file.metadata.num_rows for file in self._files), len(names))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
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

    def __getstate__(self) -> Any:
        return self.paths, self.names

    def __setstate__(self, state: Any) -> None:
        self._open(*state)


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
        A file; a folder, of which all files ``*.parquet`` are taken in the order of their names; or several files. What
        several files hold is put one below the other, and all must have the same columns.
    columns : sequence of str, optional
        The columns to take, in this order; all of them if not given.
    exclude : sequence of str
        Columns to leave out, such as the target.

    Returns
    -------
    ColumnSource
        To be given to ``fit``, ``transform`` and ``predict`` of `ngp.NeuralGreedyPursuit`.

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
        _check_numbers(file, schema, names)
    return ParquetColumns(list(map(str, files)), names)


def _parquet_files(path: Any) -> list[Path]:
    if isinstance(path, str | PathLike):
        given = Path(path)
        if given.is_dir():
            files = sorted(given.glob("*.parquet"))
            if not files:
                raise ValueError(f"path={str(path)!r} is a folder without files *.parquet: {OTHERWISE}.")
            return [file.absolute() for file in files]
        path = [path]
    files = [Path(each).absolute() for each in path]
    if not files:
        raise ValueError("path is an empty list: give at least one Parquet file.")
    return files


def _schema(file: Path) -> Any:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import read_schema

    try:
        return read_schema(file)
    except OSError as error:
        raise type(error)(f"path={str(file)!r} can't be read: {(error.strerror or str(error)).lower()}.") from error
    except ArrowInvalid as error:
        raise ValueError(f"path={str(file)!r} is no Parquet file: {OTHERWISE}.") from error


def _chosen_names(known: list[str], columns: Sequence[str] | None, exclude: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or isinstance(exclude, str):
        raise TypeError(f"columns={columns!r} and exclude={exclude!r} must be lists of names.")
    chosen, in_file = list(known if columns is None else columns), set(known)
    for parameter, given in (("columns", chosen), ("exclude", exclude)):
        if unknown := [name for name in given if name not in in_file]:
            raise ValueError(
                f"{parameter} names columns that the file doesn't have, {unknown[:3]}: it has {listed(known, 8)}."
            )
    left = set(exclude)
    names = [name for name in chosen if name not in left]
    if not names:
        raise ValueError("open_columns is left without columns: exclude fewer.")
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise ValueError(f"the column {twice[0]!r} is there twice: give each a name of its own, and name it once.")
    return names


def _check_numbers(file: Path, schema: Any, names: Sequence[str]) -> None:
    types = {field.name: field.type for field in schema}
    if odd := [f"{name!r} ({types[name]})" for name in names if not _is_number(types[name])]:
        raise ValueError(
            f"{file} has columns that are no numbers, {listed(odd, 8)}: exclude them, or give fit a data frame, "
            "which may hold categories."
        )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _common_type(kinds: Iterable[Any]) -> np.dtype[Any]:
    """float32 where all columns are, as for data frames; float64 otherwise."""
    from pyarrow import types

    return np.dtype(np.float32 if all(map(types.is_float32, kinds)) else np.float64)


def _numbers(values: Any) -> AnyArray:
    """A column as an array; what is missing becomes NaN."""
    import pyarrow

    if pyarrow.types.is_boolean(values.type):
        values = values.cast(pyarrow.uint8())
    elif pyarrow.types.is_decimal(values.type):
        values = values.cast(pyarrow.float64())
    numbers: AnyArray = values.to_numpy()
    return numbers
