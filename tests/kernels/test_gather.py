"""The compiled gathering of columns does what numpy does, bit for bit."""

from typing import Any

import numpy as np
import pytest

from ngp.kernels.plain import gather
from ngp.kernels.scoring import gather_columns

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(37, 21)) * 10.0 ** RNG.integers(-3, 4, size=21)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", ">f8", "bool"])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_every_layout_gives_the_same_bits(dtype: str, order: Any) -> None:
    X, rows = VALUES.astype(dtype), RNG.permutation(37)[:30]
    X = np.repeat(X, 2, axis=1)[:, ::2] if order == "strided" else np.array(X, order=order)
    for columns in (np.arange(21), np.array([20, 3, 3, 0]), np.array([5]), np.zeros(0, dtype=int)):
        mean, scale = RNG.normal(size=len(columns)), RNG.uniform(0.5, 2, size=len(columns))
        for bound in (2.0, np.inf):
            expected = np.empty((len(columns), 30))
            gather(np.asarray(VALUES.astype(dtype), dtype=np.float64), rows, columns, mean, scale, bound, expected)
            result = gather_columns(X, rows, columns, mean, scale, bound)
            np.testing.assert_array_equal(result, expected)
            assert np.abs(result).max(initial=0) <= bound


def test_data_that_may_only_be_read() -> None:
    X = VALUES.copy()
    X.flags.writeable = False
    result = gather_columns(X, np.arange(37), np.arange(2), np.zeros(2), np.ones(2), np.inf)
    np.testing.assert_array_equal(result, VALUES[:, :2].T)
