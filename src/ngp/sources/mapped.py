"""Arrays in files, mapped into memory by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ngp._types import AnyArray, IntArray
from ngp.sources.base import ALL_ROWS, ColumnSource, read_columns

__all__ = ["MappedColumns"]


class MappedColumns(ColumnSource):
    """A ``numpy.memmap``, whole or a part of one, in any memory order.

    numpy would pickle its numbers; this is pickled by the path of the file and the place in it.

    Parameters
    ----------
    array : memmap of shape (n_samples, n_columns)
        Numbers.
    """

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        self._set(np.asarray(array))
        root: Any = array
        while isinstance(root.base, np.memmap):
            root = root.base
        # A part of a mapping says the offset of the whole.
        self._place = (str(array.filename), int(root.offset) + _address(array) - _address(root))

    def _set(self, array: AnyArray) -> None:
        self.array, self.dtype = array, array.dtype
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.by_rows = abs(array.strides[1]) < abs(array.strides[0])

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`); neighbours are a view of the mapping."""
        return read_columns(self.array, columns, rows)

    def __getstate__(self) -> tuple[Any, ...]:
        return (*self._place, self.dtype, self.shape, self.array.strides)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        path, offset, dtype, shape, strides = state
        self._place = (path, offset)
        self._set(np.ndarray(shape, dtype, buffer=np.memmap(path, mode="r"), offset=offset, strides=strides))


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
