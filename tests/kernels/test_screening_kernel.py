"""The gains of the cheap pass: compiled, in numpy, and as plain least squares with rows for the penalties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngp.kernels import screening
from ngp.kernels.scoring import padded_width
from ngp.kernels.screening import SINGLE, gains, screen_task

try:
    from ngp.kernels import _kernels
except ImportError:
    _kernels = None

RIDGE = 2.0
SIZES = st.fixed_dictionaries(
    {
        "n_rows": st.integers(2, 450),
        "n_units": st.integers(1, 20),
        "n_new": st.integers(1, 5),
        "n_outputs": st.integers(1, 4),
        "n_candidates": st.integers(1, 40),
        "weighted": st.booleans(),
        "seed": st.integers(0, 2**16),
    }
)


@pytest.fixture(params=["avx512", "avx2", "plain", "numpy"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "numpy":
        monkeypatch.setattr(screening, "_kernels", None)
        yield
        return
    if _kernels is None:
        pytest.skip("the compiled module isn't built")
    if _kernels.use(request.param)[0] != request.param:
        pytest.skip(f"this processor has no {request.param}")
    yield
    _kernels.use("")


def draw(
    n_rows: int, n_units: int, n_new: int, n_outputs: int, n_candidates: int, weighted: bool, seed: int
) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0, 2, n_rows) if weighted else np.ones(n_rows)
    base, slots = rng.normal(size=(n_rows, n_units)), rng.normal(size=(n_new, n_units))
    return base, slots, rng.normal(size=(n_rows, n_outputs)), weights, rng.normal(size=(n_candidates, n_new, n_rows))


def plain_gain(base: Any, slots: Any, residuals: Any, weights: Any, new: Any) -> float:
    """Squares before the regression less squares and penalties after it, by least squares with rows for the ridge."""
    units = np.maximum(base + new.T @ slots, 0) - np.maximum(base, 0)
    design = np.hstack([units, new.T, np.ones((len(base), 1))])
    n_params = design.shape[1]
    penalty = np.sqrt(RIDGE) * np.eye(n_params)[:-1]  # none for the intercept
    rows = np.vstack([design * np.sqrt(weights)[:, None], penalty])
    wanted = np.vstack([residuals * np.sqrt(weights)[:, None], np.zeros((len(penalty), residuals.shape[1]))])
    left = wanted - rows @ np.linalg.lstsq(rows, wanted)[0]
    return float((wanted**2).sum() - (left**2).sum())


@settings(max_examples=30, deadline=None)
@given(sizes=SIZES)
@pytest.mark.usefixtures("kernel")
def test_gains_are_those_of_plain_least_squares(sizes: dict[str, Any]) -> None:
    base, slots, residuals, weights, columns = draw(**sizes)
    found = gains(screen_task(base, slots, residuals, weights, RIDGE), columns)
    expected = [plain_gain(base, slots, residuals, weights, new) for new in columns]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * (weights @ residuals**2).sum())


@pytest.mark.usefixtures("kernel")
def test_no_gain_depends_on_the_other_candidates() -> None:
    base, slots, residuals, weights, columns = draw(400, 13, 1, 1, 50, True, 0)
    task = screen_task(base, slots, residuals, weights, RIDGE)
    together = gains(task, columns)
    apart = [float(gains(task, columns[i : i + 1])[0]) for i in range(50)]
    assert together.tolist() == apart
    assert gains(task, columns[::-1]).tolist() == apart[::-1]


def test_tasks_may_come_from_machines_with_shorter_vectors(instruction_set: str) -> None:
    base, slots, residuals, weights, columns = draw(60, 13, 1, 2, 5, True, 0)
    expected = gains(screen_task(base, slots, residuals, weights, RIDGE), columns)
    _kernels.use("plain")
    task = screen_task(base, slots, residuals, weights, RIDGE)
    _kernels.use(instruction_set)
    assert (task.base.shape[1] % padded_width(1, SINGLE) == 0) == (instruction_set == "plain")
    np.testing.assert_array_equal(gains(task, columns), expected)


@pytest.mark.usefixtures("kernel")
def test_columns_that_repeat_each_other_do_no_harm() -> None:
    base, slots, residuals, weights, columns = draw(60, 13, 3, 1, 2, False, 0)
    columns[:, 2] = columns[:, 1]
    found = gains(screen_task(base, slots, residuals, weights, 1e-6), columns)
    assert np.isfinite(found).all()
    assert (found <= (residuals**2).sum() * 1.001).all()
