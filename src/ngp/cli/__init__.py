"""The command line. Modules of commands import little, so that ``ngp --help`` is quick."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ngp import __version__
from ngp.cli import compare, demo, report, reproduce, select
from ngp.cli.messages import WORDS, Refusal

__all__ = ["cli"]

EPILOG = """\b
A first try, on a table that has a column named price:
  ngp select houses.csv --target price --report houses.html

\b
Exit status: 0 done, 1 something failed while running, 2 wrong usage or bad input,
130 stopped by Ctrl-C."""


class Group(click.Group):
    """Reports a mistake in one sentence, and exits with 130 after Ctrl-C."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, most used first."""
        return list(self.commands)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read what stands before the command, and remember all the words."""
        words = list(args)
        with _one_sentence():
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[WORDS] = words
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with _one_sentence():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            ctx.exit(130)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Leave out the usage lines that click puts before its message: the help has them."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        text = " ".join(error.format_message().split()).rstrip(".")
        command = error.ctx.command_path if error.ctx else "ngp"
        raise Refusal(f"{text} (see {command} --help).") from error


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="ngp")
def cli() -> None:
    """Neural Greedy Pursuit: choose the few inputs that matter for a non-linear prediction."""


for command in (select.select, compare.compare, report.report, demo.demo, reproduce.reproduce):
    cli.add_command(command)
