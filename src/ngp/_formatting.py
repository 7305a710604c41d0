"""Values as words, for messages and reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from typing import Any

__all__ = ["counted", "described", "duration", "listed", "number", "probability", "with_error"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str], most: int = 5) -> str:
    """Items one after the other; of many only the first few."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def described(value: Any) -> str:
    """A function by its name, anything else as it shows itself, without the address that changes from run to run."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def probability(value: float | None) -> str:
    """A probability with two digits; nothing where there is none."""
    if value is None or value != value:
        return ""
    return f"{value:.2g}" if value >= 1e-3 else "<0.001"


def number(value: float | None) -> str:
    """A number with four digits, as one would write it."""
    if value is None or value != value:
        return "–"
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def with_error(value: float | None, error: float | None) -> str:
    """A number and its standard error, to the same digit."""
    if value is None or not error or not error > 1e-9 * abs(value):  # none, or rounding
        return number(value)
    digits = max(0, 1 - floor(log10(error)))
    if digits > 7 or error >= 1e9:
        return f"{number(value)} ± {number(error)}"
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
