"""``ngp demo``: a demonstration on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import click

from ngp.cli.saying import Failure

__all__ = ["demo"]


@click.command(short_help="Try it on data that come along.", epilog="\b\nExample:\n  ngp demo --out try")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    metavar="FOLDER",
    help="Folder for the reports.",
)
def demo(out: Path) -> None:
    """Select features on two small data sets, and write reports of it.

    It needs no data of yours, and takes a minute or so.
    """
    from ngp.cli.demonstration import run

    try:
        run(out)
    except OSError as error:
        raise Failure(f"{out} can't be written: {error.strerror or error}.") from error
