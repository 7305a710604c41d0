"""Arrays of Zarr: compressed chunks, each of which is unpacked as a whole."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np

from ngp._types import AnyArray, IntArray
from ngp.data.sources.base import ALL_ROWS, ColumnSource

__all__ = ["ZarrColumns"]

# Bytes of unpacked columns that are kept, because the next request is likely to ask for their neighbours.
KEPT_BYTES = 2**28


class ZarrColumns(ColumnSource):
    """An array of Zarr.

    The columns of a chunk, from top to bottom, are a stripe: it is unpacked as a whole, and the last ones are kept.
    """

    def __init__(self, array: Any) -> None:
        if len(array.shape) != 2 or np.dtype(array.dtype).kind not in "fiub":
            raise ValueError(
                f"X is a Zarr array of {len(array.shape)} dimensions and type {array.dtype}: "
                "give one of two dimensions that holds real numbers."
            )
        self._set(array)

    def _set(self, array: Any) -> None:
        self.array, self.dtype = array, np.dtype(array.dtype)
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self._width = max(1, min(int(array.chunks[1]), self.shape[1]))
        self._n_kept = KEPT_BYTES // max(1, self.shape[0] * self._width * self.dtype.itemsize)
        if not self._n_kept:
            self.advice = (
                f"The chunks of X are {self._width} columns wide, too many to be kept in memory: each is unpacked many "
                f"times. Store X in chunks of fewer columns, as chunks=({self.shape[0]}, 100)."
            )
        self._stripes: OrderedDict[int, AnyArray] = OrderedDict()
        self._lock = Lock()

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
        stripes, places = np.divmod(columns, self._width)
        out = np.empty((len(columns), self.shape[0]), self.dtype)
        for number in np.unique(stripes):
            mine = np.flatnonzero(stripes == number)
            if self._n_kept:
                out[mine] = self._stripe(int(number)).T[places[mine]]
            else:
                out[mine] = self.array.oindex[:, columns[mine]].T
        return out[:, rows]

    def _stripe(self, number: int) -> AnyArray:
        """The columns of a chunk; those asked for last are kept."""
        with self._lock:  # nobody unpacks what somebody else is unpacking
            if number not in self._stripes:
                first = number * self._width
                self._stripes[number] = np.asarray(self.array[:, first : first + self._width])
            self._stripes.move_to_end(number)
            while len(self._stripes) > self._n_kept:
                self._stripes.popitem(last=False)
            return self._stripes[number]

    def __getstate__(self) -> Any:
        return self.array  # which travels by its path, if it has one

    def __setstate__(self, array: Any) -> None:
        self._set(array)
