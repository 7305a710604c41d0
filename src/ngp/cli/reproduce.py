"""``ngp reproduce``: tables and figures of the paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ngp.cli.messages import Refusal
from ngp.cli.options import with_options

if TYPE_CHECKING:
    from ngp.paper.experiment import Experiment, Plan, Protocol

__all__ = ["reproduce"]

# As in ngp.paper, which is imported only when it is needed.
NAMES = ("table1", "table2", "fig1", "fig3", "fig4", "fig5", "fig6")
PROTOCOLS = ("published", "sound")


# fmt: off
OPTIONS = (
    click.argument("names", nargs=-1, required=True, type=click.Choice([*NAMES, "all"]), metavar="NAME..."),
    click.option("--protocol", type=click.Choice(PROTOCOLS), default="published", show_default=True,
                 help="published: as in the authors' code, where features are chosen on the test data. "
                 "sound: nothing is chosen on test data."),
    click.option("--runs", type=click.IntRange(min=1), help="Monte Carlo runs; by default as many as in the paper."),
    click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Seed of the first run."),
    click.option("--fast", is_flag=True, help="Smaller data and fewer runs: a minute or two each."),
    click.option("--jobs", type=click.IntRange(min=1),
                 help="Processes; all cores by default. No figure depends on it."),
    click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("reproduction"),
                 show_default=True,
                 help="Folder for tables and figures. Finished runs are kept there, too: a stopped command goes on."),
)
# fmt: on


@click.command(
    short_help="Reproduce tables and figures of the paper.",
    epilog="\b\nExample, a minute or two:\n  ngp reproduce table1 --fast",
)
@with_options(*OPTIONS)
def reproduce(
    names: tuple[str, ...], protocol: Protocol, runs: int | None, seed: int, fast: bool, jobs: int | None, out: Path
) -> None:
    """Reproduce tables and figures of the paper: table1, table2, fig1, fig3, fig4, fig5, fig6, or all.

    Each gives a Markdown and a CSV table with the published figures beside ours, and a picture as PNG and SVG.
    """
    from joblib import cpu_count

    from ngp.paper.catalogue import EXPERIMENTS, missing_packages

    chosen = [EXPERIMENTS[name] for name in (EXPERIMENTS if "all" in names else dict.fromkeys(names))]
    missing = sorted({package for experiment in chosen for package in missing_packages(experiment)})
    if missing:
        raise Refusal(f"{', '.join(missing)} not installed: run pip install 'neural-greedy-pursuit[paper]'.")
    for experiment in chosen:
        plan = experiment.plan(protocol, "fast" if fast else "full", runs, seed)
        _reproduce_one(experiment, plan, out, jobs or cpu_count())


def _reproduce_one(experiment: Experiment, plan: Plan, out: Path, n_jobs: int) -> None:
    """Run with a progress bar, then say where the files are."""
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    from ngp.datasets.loaders import WrongData
    from ngp.paper import experiment as paper

    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    click.echo(experiment.title)
    try:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(experiment.name, total=len(experiment.trials(plan)))
            files = paper.reproduce(experiment, plan, out, n_jobs=n_jobs, on_done=lambda _: progress.advance(task))
    except KeyboardInterrupt:
        click.echo(f"\nStopped. What is finished is kept in {out}: the same command goes on from there.", err=True)
        sys.exit(130)
    except (OSError, WrongData) as error:
        raise Refusal(str(error)) from error
    for file in files:
        click.echo(f"  {file}")
