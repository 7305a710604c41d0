"""Which rows are copies of each other: repeated to give them weight, or drawn twice, they say nothing twice.

For chance, such rows count once. To repeat a row is then the same as to give it a weight.
"""

from __future__ import annotations

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray

__all__ = ["LOOKED_AT", "row_units"]

# Copies agree in all columns; so many of them are looked at.
LOOKED_AT = 16
# Rows of few numbers may agree without being copies. They are none, unless some column of fractions tells nearly all
# others apart.
TELLING = 0.9
STREAM = 0x436F70  # of random numbers, so that no other part of a fit draws the same ones


def row_units(columns: FloatArray, targets: FloatArray, rows: IntArray) -> IntArray:
    """Numbers of some rows, the same for copies; they depend on what the rows hold, not on their order."""
    values = [column[rows] for column in (*targets.T, *columns)]
    factors = np.random.Generator(np.random.Philox(STREAM)).standard_normal(len(values))
    keys = np.zeros(len(rows))
    for factor, column in zip(factors, values, strict=True):  # one by one: the same bits wherever a row is
        keys += factor * column
    units: IntArray = np.unique(keys, return_inverse=True)[1]
    n_units = int(units.max(initial=-1)) + 1
    if n_units < len(rows) and max(map(_n_values, values)) < TELLING * n_units:
        units[np.argsort(keys, kind="stable")] = np.arange(len(rows))
    return units


def _n_values(column: AnyArray) -> int:
    """How many values a column has; none of whole numbers counts."""
    values = np.unique(column)
    return len(values) if (values != np.round(values)).any() else 0
