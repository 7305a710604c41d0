"""``ngp report``: a result as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from ngp.cli.files import check_outputs, require_for_report, writing
from ngp.cli.messages import Refusal, in_words
from ngp.cli.options import file

__all__ = ["report"]


@click.command(
    short_help="Make a report of a result.",
    epilog="\b\nExample:\n  ngp select houses.csv --target price --out houses.json\n  ngp report houses.json",
)
@click.argument("result", type=file)
@click.option("--out", type=file, metavar="FILE", help="The report; by default beside RESULT, with the suffix .html.")
def report(result: Path, out: Path | None) -> None:
    """Make a report of RESULT, a file that ngp select --out wrote.

    It is one HTML file that needs no network: what was asked, the answer, the path, the close calls, the fit.
    """
    out = out or result.with_suffix(".html")
    check_outputs({"RESULT": result}, {"--out": (out, (".html", ".htm"))})
    require_for_report("ngp report")
    from ngp.report import write_report
    from ngp.report.result import Result

    try:
        found = Result.read(result)
    except ValueError as error:
        raise Refusal(in_words(error)) from error
    try:
        with writing(out):
            write_report(found, out)
    except click.ClickException:
        raise
    except Exception as error:  # of any kind: numpy, matplotlib and jinja2 each have their own
        raise Refusal(f"{result} is a damaged result, whose parts don't fit together: select again.") from error
    click.echo(f"Report: {out}")
