"""Means and variances of all columns, in one pass over an X of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.data.sources import ColumnSource, read_columns

__all__ = ["Moments", "column_moments"]

# What is looked at together: enough columns to be quick, few enough numbers to need little memory. Neighbouring chunks
# of columns share the pages of a file that is stored row by row; those of so few rows are still in memory.
SCAN_COLUMNS = 256
SCAN_NUMBERS = 2**22
# Rows whose means and variances are taken together: bits depend on it, so it is the same for all kinds of X.
SCAN_ROWS = 2**16


class Moments(NamedTuple):
    """Weighted means and variances of columns."""

    mean: FloatArray
    variance: FloatArray


class _Slab(NamedTuple):
    """Neighbouring rows."""

    rows: slice  # which
    weights: FloatArray  # their weights, which sum to one
    share: float  # what they weigh among all rows down to the last of them


def column_moments(X: AnyArray | ColumnSource, weights: FloatArray, columns: slice = slice(None)) -> Moments:
    """Weighted mean and variance of each column.

    A column with NaN or infinity anywhere, also in rows of weight zero, has a mean that isn't finite.
    """
    n_samples, n_columns = X.shape
    first, last, _ = columns.indices(n_columns)
    moments, slabs = Moments(np.zeros(last - first), np.zeros(last - first)), list(_slabs(weights))
    if by_rows := len(slabs) > 1 and _is_stored_by_rows(X):
        visits = [[slab] for slab in slabs]
    else:
        visits = [slabs]
    length = max(1, min(SCAN_COLUMNS, SCAN_NUMBERS // (SCAN_ROWS if by_rows else n_samples)))
    for visit in visits:
        top, bottom = visit[0].rows.start, visit[-1].rows.stop
        for start in range(first, last, length):
            numbers = np.arange(start, min(start + length, last))
            values = read_columns(X, numbers, slice(top, bottom))
            places = slice(start - first, start - first + len(numbers))
            for slab in visit:
                _add(moments, places, values[:, slab.rows.start - top : slab.rows.stop - top], slab)
    return moments


def _slabs(weights: FloatArray) -> Iterator[_Slab]:
    total = 0.0
    for start in range(0, len(weights), SCAN_ROWS):
        own = weights[start : start + SCAN_ROWS]
        weight = own.sum()
        total += weight
        if weight > 0:
            yield _Slab(slice(start, start + len(own)), own / weight, weight / total)
        else:  # nothing but the numbers' finiteness counts
            yield _Slab(slice(start, start + len(own)), np.full(len(own), 1 / len(own)), 0.0)


def _is_stored_by_rows(X: AnyArray | ColumnSource) -> bool:
    return X.by_rows if isinstance(X, ColumnSource) else abs(X.strides[1]) < abs(X.strides[0])


def _add(moments: Moments, columns: slice, values: AnyArray, slab: _Slab) -> None:
    """Add some rows of some columns (n_columns, n_rows) to what the rows above have given."""
    own = np.array(values, dtype=np.float64, order="C")
    with np.errstate(invalid="ignore"):  # of columns that aren't finite
        mean = (own * slab.weights).sum(axis=1)
        own -= mean[:, None]
        variance = (np.square(own, out=own) * slab.weights).sum(axis=1)
        before = Moments(moments.mean[columns], moments.variance[columns])
        change, rest = mean - before.mean, 1 - slab.share
        moments.mean[columns] = before.mean + slab.share * change
        moments.variance[columns] = rest * before.variance + slab.share * variance + rest * slab.share * change**2
