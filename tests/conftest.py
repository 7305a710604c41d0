"""What holds for all tests."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def own_random_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's generator begins anew for each test: what it draws depends on no test that ran before."""
    for name in ("RNG", "rng"):
        if hasattr(request.module, name):
            # Not the seed of the module's own data, which would be drawn again.
            monkeypatch.setattr(request.module, name, np.random.default_rng(1))
