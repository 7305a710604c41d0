"""``ngp completion``: the script with which a shell completes the commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ngp.cli.messages import Failure

__all__ = ["completion"]

EPILOG = """\b
Examples:
  ngp completion bash > ~/.local/share/bash-completion/completions/ngp
  ngp completion zsh > ~/.ngp-complete.zsh     and in ~/.zshrc: source ~/.ngp-complete.zsh
  ngp completion fish > ~/.config/fish/completions/ngp.fish"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes ngp's commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None  # click has these three
    root = click.get_current_context().find_root().command
    try:
        click.echo(kind(root, {}, "ngp", "_NGP_COMPLETE").source())
    except RuntimeError as error:
        raise Failure(" ".join(str(error).split())) from error
