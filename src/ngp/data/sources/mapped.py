"""Arrays in files, mapped into memory by numpy."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from ngp._types import AnyArray, IntArray
from ngp.data.sources.base import ALL_ROWS, ColumnSource, neighbours, read_columns

__all__ = ["MappedColumns"]

# Bytes that may be read before the pages that hold them are let go. The system would do so by itself, but only when all
# memory is full, and until then they count as memory of the process.
MOST_MAPPED = 2**30


class MappedColumns(ColumnSource):
    """A ``numpy.memmap``, whole or a part of one, in any memory order.

    numpy would pickle its numbers; this is pickled by the path of the file and the place in it.
    """

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        root: Any = array
        while isinstance(root.base, np.memmap):
            root = root.base
        # A part of a mapping says the offset of the whole.
        self._place = (str(array.filename), int(root.offset) + _address(array) - _address(root))
        self._set(np.asarray(array), root.base)

    def _set(self, array: AnyArray, mapping: mmap.mmap) -> None:
        self.array, self.dtype = array, array.dtype
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.by_rows = abs(array.strides[1]) < abs(array.strides[0])
        self._mapping, self._n_mapped = mapping, 0

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`); neighbours are a view of the mapping."""
        taken = read_columns(self.array, columns, rows)
        # Each number of a scattered column may lie in a page of its own.
        self._n_mapped += taken.nbytes if neighbours(columns) else taken.size * mmap.PAGESIZE
        if self._n_mapped > MOST_MAPPED and hasattr(mmap, "MADV_DONTNEED"):
            self._n_mapped = 0
            self._mapping.madvise(mmap.MADV_DONTNEED)  # what is still in use is mapped again, from the system's cache
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
