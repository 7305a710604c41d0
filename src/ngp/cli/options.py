"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ngp.cli.values import data, validation

__all__ = ["CHOSEN_COLUMNS", "DATA", "WORK", "with_options"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DATA: tuple[Decorator, ...] = (
    click.argument("data", type=data, metavar="DATA"),
    click.option(
        "--target",
        "-t",
        multiple=True,
        required=True,
        metavar="COLUMN",
        help="The column to predict. May be given several times, for numbers.",
    ),
)
CHOSEN_COLUMNS: tuple[Decorator, ...] = (
    click.option("--drop", multiple=True, metavar="COLUMN", help="A column to leave out. May be given several times."),
    click.option(
        "--task",
        type=click.Choice(["auto", "regression", "classification"]),
        default="auto",
        show_default=True,
        help="What the target is. auto takes text, true/false and whole numbers with at most 20 values for classes.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop", "impute"]),
        default="error",
        show_default=True,
        help="Missing values: refuse them, drop the rows, or fill them with the median or the most frequent category "
        "of all rows (so that a fold sees a little of the others). Rows without target are never filled.",
    ),
)
WORK: tuple[Decorator, ...] = (
    click.option(
        "--cv",
        type=validation,
        default="5",
        show_default=True,
        metavar="FOLDS",
        help="How columns are judged: a number of folds, a share of the rows such as 0.2, or loo (leave one out).",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        default=0,
        show_default=True,
        metavar="N",
        help="Seed of everything random.",
    ),
    click.option(
        "--jobs", type=click.IntRange(min=1), metavar="N", help="Cores to use; all by default. No result depends on it."
    ),
)


def with_options(*options: Decorator) -> Decorator:
    """Apply options to a command, the first one first in its help."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
