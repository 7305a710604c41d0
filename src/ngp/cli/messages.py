"""Messages of the commands: refusals, failures, notes, and names that are safe to print."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from ngp._formatting import listed, visible

__all__ = [
    "WORDS", "Failure", "Refusal", "command_with", "drop_options", "in_words", "note", "quoted", "warnings_as_notes"
]  # fmt: skip

LONGEST_NAME = 60
WORDS = "ngp.words"  # what the user typed after ngp, in the context of click


class Refusal(click.ClickException):
    """Wrong usage or bad input, in one sentence."""

    exit_code = 2


class Failure(click.ClickException):
    """Something that went wrong while running, in one sentence."""

    exit_code = 1


def note(text: str, quiet: bool = False) -> None:
    """Print one line to standard error."""
    if not quiet:
        click.echo(" ".join(text.split()), err=True)


def quoted(names: Sequence[str], most: int = 5) -> str:
    """Names in quotes; of many, only the first few."""
    return listed([repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…") for name in names], most)


def drop_options(names: Sequence[str]) -> str:
    """The options that leave columns out, as typed in a shell."""
    return " ".join(f"--drop {_word(name)}" for name in names)


def command_with(options: str = "") -> str:
    """What the user typed, if need be with more options."""
    context = click.get_current_context(silent=True)
    words = [_word(word) for word in context.meta.get(WORDS, ())] if context else []
    end = words.index("--") if "--" in words else len(words)  # options come before that
    return " ".join(filter(None, ["ngp", *words[:end], options, *words[end:]]))


def _word(text: str) -> str:
    """A word as typed in a shell."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + visible(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def in_words(error: BaseException) -> str:
    """The message of an error in one line, with options in place of parameters."""
    text = re.sub(r"\bn_features_to_select=", "--features ", " ".join(str(error).split()))
    return re.sub(r"\b(methods|cv|device|predictor|task)=", r"--\1 ", text)


@contextmanager
def warnings_as_notes(quiet: bool) -> Iterator[None]:
    """Collect warnings, and print each once after the work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, UserWarning)):
        note(f"Note: {text}", quiet)
