"""Numbers and durations as one would write them."""

from __future__ import annotations

import pytest

from ngp._formatting import duration, number, with_error


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.25, "0.25 s"),
        (4, "4 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.7, "1 min 0 s"),
        (119.7, "2 min 0 s"),
        (3599.8, "1 h 0 min"),
        (86400, "24 h 0 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3321.4, 212.3, "3,321 ± 212"),
        (0.019876, 0.00423, "0.0199 ± 0.0042"),
        (0.5, float("nan"), "0.5"),
        (0.5, 0.0, "0.5"),
        (0.5, None, "0.5"),
        (None, 0.1, "–"),
        (2.0, 1e-12, "2"),
        (3e-9, 2e-10, "3.00e-09 ± 2.00e-10"),
        (5e12, 2e11, "5.00e+12 ± 2.00e+11"),
    ],
)
def test_numbers_with_their_errors(value: float | None, error: float | None, text: str) -> None:
    assert with_error(value, error) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (float("nan"), "–"), (999.96, "1000"), (1234.5, "1,234"), (-2e-5, "-2.00e-05")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text
