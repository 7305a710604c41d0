"""What holds for all tests, and what many of them use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("busy machines", deadline=None)
settings.load_profile("busy machines")


@pytest.fixture(autouse=True)
def own_random_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's generator begins anew for each test: what it draws depends on no test that ran before."""
    for name in ("RNG", "rng"):
        if hasattr(request.module, name):
            # Not the seed of the module's own data, which would be drawn again.
            monkeypatch.setattr(request.module, name, np.random.default_rng(1))


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """For the files that train with torch, which the others needn't import."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slow on tensors this small
    yield
    torch.set_num_threads(before)
