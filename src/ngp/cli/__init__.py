"""The command line.

A command's module is imported when it is needed, and modules of commands import little: ``ngp --help`` is quick.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from ngp import __version__
from ngp.cli.messages import Refusal

__all__ = ["cli"]

COMMANDS = {
    "select": "Choose the columns that predict another one.",
    "compare": "Compare methods of selection on your data.",
    "report": "Make a report of a result.",
    "demo": "Try it on data that come along.",
    "reproduce": "Reproduce tables and figures of the paper.",
    "completion": "Print what your shell needs to complete ngp.",
}
EPILOG = """\b
A first try, on a table that has a column named price:
  ngp select houses.csv --target price --report houses.html

\b
Exit status: 0 done, 1 something failed while running, 2 wrong usage or bad input,
130 stopped by Ctrl-C."""


class Group(click.Group):
    """Imports commands lazily, reports a mistake in one sentence, and exits with 130 after Ctrl-C."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"ngp.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command."""
        found = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Read what stands before the command."""
        with _one_sentence():
            return super().make_context(*args, **settings)

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


cli.commands = dict.fromkeys(COMMANDS, cli)  # their names alone, which click suggests for a misspelt one
