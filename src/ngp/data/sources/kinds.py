"""Which sources there are, and what is made one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ngp.data.sources.base import ColumnSource
from ngp.data.sources.mapped import MappedColumns
from ngp.data.sources.sparse import SparseColumns
from ngp.data.sources.tables import ArrowColumns
from ngp.data.sources.zarrs import ZarrColumns

__all__ = ["as_columns", "refuse_sources"]


def as_columns(X: Any) -> Any:
    """Make a source of what need not fit in memory; everything else comes back as it is."""
    if isinstance(X, ColumnSource):
        return X
    if isinstance(X, np.memmap):
        # What was written to a copy-on-write mapping is in no file. The rest is refused as arrays of its kind are.
        fits = X.ndim == 2 and X.dtype.kind in "fiub" and X.mode != "c" and X.filename is not None
        return MappedColumns(X) if fits else X
    if issparse(X):
        return SparseColumns(X)
    # Nothing is of a kind whose package isn't loaded.
    zarr, pyarrow = sys.modules.get("zarr"), sys.modules.get("pyarrow")
    if zarr is not None and isinstance(X, zarr.Array):
        return ZarrColumns(X)
    if pyarrow is not None and isinstance(X, pyarrow.Table) and ArrowColumns.takes(X):
        return ArrowColumns(X)
    return X


def refuse_sources(X: Any, what: str) -> None:
    """Refuse an X that may not fit in memory."""
    if isinstance(X, ColumnSource) or issparse(X):
        raise TypeError(
            f"{what} needs X as an array in memory, and X is a {type(X).__name__}: give an array, such as X.toarray() "
            "of a sparse matrix."
        )
