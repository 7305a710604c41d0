"""Values as words, for messages and reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from typing import Any

__all__ = ["counted", "described", "duration", "listed", "number", "probability", "with_error"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts.

    Examples
    --------
    >>> counted(1, "row"), counted(5000, "row")
    ('1 row', '5,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str], most: int = 5) -> str:
    """Items one after the other; of many only the first few.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def described(value: Any) -> str:
    """A function by its name, anything else as it shows itself, without the address that changes from run to run.

    Examples
    --------
    >>> described(len), described(0.5), described(object())
    ('builtins.len', '0.5', '<object object>')
    """
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def probability(value: float | None) -> str:
    """A probability with two digits; nothing where there is none.

    Examples
    --------
    >>> probability(0.4321), probability(0.0123), probability(1e-20), probability(None)
    ('0.43', '0.012', '<0.001', '')
    """
    if value is None or value != value:
        return ""
    return f"{value:.2g}" if value >= 1e-3 else "<0.001"


def number(value: float | None) -> str:
    """A number with four digits, as one would write it.

    Examples
    --------
    >>> number(12345.6), number(0.0123456), number(None)
    ('12,346', '0.01235', '–')
    """
    if value is None or value != value:
        return "–"
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def with_error(value: float | None, error: float | None) -> str:
    """A number and its standard error, to the same digit.

    Examples
    --------
    >>> with_error(0.0154712, 0.000527), with_error(3299.4, 246.2), with_error(1.5, None)
    ('0.01547 ± 0.00053', '3,299 ± 246', '1.5')
    """
    if value is None or not error or not error > 1e-9 * abs(value):  # none, or rounding
        return number(value)
    digits = max(0, 1 - floor(log10(error)))
    if digits > 7 or error >= 1e9:
        return f"{number(value)} ± {number(error)}"
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best.

    Examples
    --------
    >>> duration(0.25), duration(90), duration(7260)
    ('0.25 s', '1 min 30 s', '2 h 1 min')
    """
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
