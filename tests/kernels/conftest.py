"""What the tests of the scorers of layers run on."""

from collections.abc import Iterator

import pytest

try:
    from ngp.kernels import _kernels
except ImportError:
    _kernels = None

INSTRUCTION_SETS = ("avx512", "avx2", "plain")


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    if _kernels is None:
        pytest.skip("the compiled module isn't built")
    in_use, _ = _kernels.use(request.param)
    if in_use != request.param:
        pytest.skip(f"this processor has no {request.param}")
    yield in_use
    _kernels.use("")


@pytest.fixture
def compiled() -> None:
    if _kernels is None:
        pytest.skip("the compiled module isn't built")
