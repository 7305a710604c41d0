"""Values of options that click doesn't know: durations, ways of validation and screening, shares, lists of names."""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path

import click

__all__ = ["data", "duration", "file", "names", "number", "screening", "share", "validation"]

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def duration(text: str) -> float:
    """Seconds."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s?([smh]?)", text.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is no duration above zero: write 30s, 10m or 1.5h.")
    return seconds


def validation(text: str) -> int | float | str:
    """A number of folds, a hold-out share, or loo."""
    if text == "loo":
        return text
    if re.fullmatch("[0-9]{1,9}", text) and int(text) >= 2:
        return int(text)
    part = _finite(text)
    if not 0 < part < 1:
        raise click.BadParameter(
            f"{text!r} is no way of validation: give a number of folds from 2 on, a share such as 0.2, or loo."
        )
    return part


def screening(text: str) -> int | str:
    """A number of candidates, or auto."""
    if text == "auto":
        return text
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise click.BadParameter(f"{text!r} is no number of candidates: give one from 1 on, or auto.")
    return int(text)


def share(text: str) -> float:
    """A number between 0 and 1."""
    part = _finite(text)
    if not 0 < part < 1:
        raise click.BadParameter(f"{text!r} is no share: give a number between 0 and 1, such as 0.2.")
    return part


def number(text: str) -> float:
    """A finite number, zero or more."""
    value = _finite(text)
    if value < 0:
        raise click.BadParameter(f"{text!r} is no number from zero on: give one such as 0.05.")
    return value


def file(text: str) -> Path:
    """A path that the system can look for."""
    try:
        if not text or "\0" in text or not Path(text).name:
            raise ValueError(text)
        Path(text).exists()
    except (OSError, ValueError):
        raise click.BadParameter(f"{text[:60]!r} is no name of a file: give one.") from None
    return Path(text)


def data(text: str) -> str:
    """A file, or - for standard input."""
    return text if text == "-" else str(file(text))


def names(text: str) -> list[str]:
    """Names with commas between them."""
    found = [name.strip() for name in text.split(",")]
    if not all(found) or len(set(found)) < len(found):
        raise click.BadParameter(f"{text!r} has an empty name or one twice: write each once, as in ngp,lasso-cv.")
    return found


def _finite(text: str) -> float:
    """The number that a text says; -1 for all that is none."""
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if isfinite(value) else -1.0
