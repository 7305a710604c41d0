"""Options that several commands have, and the types of values that click doesn't know."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any

import click

__all__ = [
    "CHOSEN_COLUMNS", "DATA", "WORK", "duration", "file", "names", "screening", "share", "validation",
    "with_options",
]  # fmt: skip

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def duration(text: str) -> float:
    """Seconds."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s?([smh]?)", text.strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} is no duration above zero: write 30s, 10m or 1.5h.")
    return seconds


def validation(text: str) -> int | float | str:
    """A number of folds, a hold-out share, loo, time or auto."""
    if text in ("auto", "loo", "time"):
        return text
    if re.fullmatch("[0-9]{1,9}", text) and int(text) >= 2:
        return int(text)
    try:
        return share(text)
    except click.BadParameter:
        raise click.BadParameter(
            f"{text!r} is no way of validation: give a number of folds from 2 on, a share such as 0.2, loo or time."
        ) from None


def screening(text: str) -> int | str:
    """A number of candidates, or auto."""
    if text == "auto":
        return text
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise click.BadParameter(f"{text!r} is no number of candidates: give one from 1 on, or auto.")
    return int(text)


def share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        part = float(text)
    except ValueError:
        part = 0.0
    if not 0 < part < 1:
        raise click.BadParameter(f"{text!r} is no share: give a number between 0 and 1, such as 0.2.")
    return part


def file(text: str) -> Path:
    """A path that the system can look for."""
    try:
        if not text or "\0" in text or not Path(text).name:
            raise ValueError(text)
        os.stat(text)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == ENAMETOOLONG:
            raise click.BadParameter(f"{text[:60]!r}… is too long for the name of a file: give another.") from None
        raise click.BadParameter(f"{text[:60]!r} is no name of a file: give one.") from None
    return Path(text)


def data(text: str) -> str:
    """A file, or - for standard input."""
    return text if text == "-" else str(file(text))


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found) or len(set(found)) < len(found):
        raise click.BadParameter(f"{text!r} has an empty name or one twice: write each once, as in ngp,lasso-cv.")
    return found


# fmt: off
DATA: tuple[Decorator, ...] = (
    click.argument("data", type=data, metavar="DATA"),
    click.option("--target", "-t", multiple=True, required=True, metavar="COLUMN",
                 help="The column to predict. May be given several times, for numbers."),
    click.option("--sheet", metavar="NAME", help="Which sheet of an Excel workbook; the first one by default."),
)
CHOSEN_COLUMNS: tuple[Decorator, ...] = (
    click.option("--drop", multiple=True, metavar="COLUMN", help="A column to leave out. May be given several times."),
    click.option("--task", type=click.Choice(["auto", "regression", "classification"]), default="auto",
                 show_default=True,
                 help="Kind of the target. auto takes text, true/false and whole numbers with at most 20 values for "
                 "classes."),
    click.option("--missing", type=click.Choice(["error", "drop", "impute"]), default="error", show_default=True,
                 help="Missing values: refuse them, drop the rows, or fill them with the median or the most frequent "
                 "category of all rows (so that a fold sees a little of the others). Rows without target are never "
                 "filled."),
    click.option("--cv-groups", metavar="COLUMN",
                 help="Rows with the same value in this column, such as a patient, stay together wherever rows are "
                 "split. The column itself can't be selected."),
)
WORK: tuple[Decorator, ...] = (
    click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, metavar="N",
                 help="Seed of everything random."),
    click.option("--jobs", type=click.IntRange(min=1), metavar="N",
                 help="Cores to use; all by default. No result depends on it."),
)
# fmt: on


def with_options(*options: Decorator) -> Decorator:
    """Apply options to a command, in the order of its help."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
