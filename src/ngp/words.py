"""Values as words, for messages and reports."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["counted", "described"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts.

    Examples
    --------
    >>> counted(1, "row"), counted(5000, "row")
    ('1 row', '5,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
