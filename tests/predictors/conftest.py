"""How many threads the tests of predictors may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):  # more are slow on matrices this small
        yield


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """For the files that train with torch, which the others needn't import."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slow on tensors this small
    yield
    torch.set_num_threads(before)
