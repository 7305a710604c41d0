"""Sparse matrices and arrays of scipy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ngp._types import AnyArray, IntArray
from ngp.data.sources.base import ALL_ROWS, ColumnSource, neighbours

__all__ = ["SparseColumns"]


class SparseColumns(ColumnSource):
    """A sparse matrix, kept by columns (CSC); what comes in another format is converted, once."""

    def __init__(self, matrix: Any) -> None:
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise ValueError(
                f"X is a sparse array of {matrix.ndim} dimensions and type {matrix.dtype}: "
                "give a sparse matrix of real numbers."
            )
        self.matrix = matrix.tocsc()  # the same object where it is CSC already
        self.dtype = self.matrix.dtype
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))

    def read(self, columns: IntArray, rows: slice = ALL_ROWS) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
        beside = neighbours(columns)
        taken = self.matrix[:, columns if beside is None else beside]
        dense: AnyArray = taken.T.toarray()
        return np.ascontiguousarray(dense)[:, rows]
