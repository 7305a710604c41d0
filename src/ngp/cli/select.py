"""``ngp select``: choose the columns of a table that predict another one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ngp._formatting import counted, left_behind, listed
from ngp.cli.options import CHOSEN_COLUMNS, DATA, WORK, with_options
from ngp.cli.preparing import Samples, prepare, read_groups
from ngp.cli.progress import Progress
from ngp.cli.reading import Table, read_table
from ngp.cli.saying import Failure, Refusal, in_words, note, printable, quoted, warnings_as_notes
from ngp.cli.values import duration, file, number, screening, share
from ngp.cli.writing import REDUCED, check_outputs, check_reduced, require_for_report, save, write_reduced

if TYPE_CHECKING:
    from ngp import NeuralGreedyPursuit
    from ngp.greedy.path import Step

__all__ = ["select"]

EPILOG = """\b
Examples:
  ngp select houses.csv --target price
  ngp select houses.csv --target price --features 5 --hold-out 0.2 --report houses.html
  ngp select data.parquet -t sick --drop id --missing impute --max-time 10m --out result.json
  cat houses.csv | ngp select - --target price --json > result.json
  ngp select wide.parquet -t sick --features 20 --dry-run

\b
DATA is a .csv, .tsv, .parquet or .feather table with names of columns, a .npz file with arrays
X and y (and feature_names), a .npy array of rows and columns (--target -1 is its last column),
or - for CSV on standard input. Text columns become categories, one-hot as a group.
What it says while it runs goes to standard error, the answer to standard output.

\b
Exit status: 0 done (also when --max-time ended it), 1 something failed while
running, 2 wrong usage or bad input, 130 stopped by Ctrl-C: what was found so far is written."""


@click.command(epilog=EPILOG, short_help="Choose the columns that predict another one.")
@with_options(
    *DATA,
    click.option(
        "--features",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many to select. Without it, as many as --stop or --tol say.",
    ),
    click.option(
        "--tol",
        type=number,
        metavar="SHARE",
        help="Stop when a step lowers the loss by less than this share; the fastest way, if you know the share.",
    ),
    click.option(
        "--stop",
        type=click.Choice(["auto", "plateau"]),
        help="Instead of --tol: auto stops when steps gain no more than chance may, and takes several times as long; "
        "plateau stops when the loss has not fallen for three steps, and keeps the fewest columns that are as good. "
        "Without --features and --tol, auto is the default.",
    ),
    click.option(
        "--floating",
        is_flag=True,
        help="Take back wrong picks: drop what no longer pays, and exchange columns in the end. Takes longer.",
    ),
    click.option(
        "--look-ahead",
        type=click.IntRange(1, 5),
        default=1,
        show_default=True,
        metavar="N",
        help="Try so many candidates together in each step, up to 5: 2 finds pairs that only work together. Takes far "
        "longer.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Select once more on N random halves of the rows, an even number, to see how stable the selection is.",
    ),
    click.option(
        "--predictor",
        type=click.Choice(["ssfn", "mlp", "cnn", "kernel"]),
        default="ssfn",
        show_default=True,
        help="What is retrained for every candidate. mlp and cnn need torch.",
    ),
    click.option(
        "--groups",
        type=file,
        metavar="FILE",
        help='Columns that enter together, as JSON: {"size": ["length", "width"]}. Columns in no group stay single.',
    ),
    click.option(
        "--fixed",
        multiple=True,
        metavar="COLUMN",
        help="A column that is in from the start. May be given several times; counts among --features.",
    ),
    *CHOSEN_COLUMNS,
    click.option(
        "--hold-out",
        type=share,
        metavar="SHARE",
        help="Set this share of the rows aside before anything is "
        "learned; result and report then show the fit on them.",
    ),
    *WORK,
    click.option(
        "--screen",
        type=screening,
        metavar="N",
        help="For very many columns: rank them by a cheap pass in each step and score only the N best, or auto for a "
        "number that grows with theirs. Much quicker; can miss a column.",
    ),
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default="auto",
        show_default=True,
        help="Where networks and kernels are trained.",
    ),
    click.option(
        "--max-time", type=duration, metavar="TIME", help="Begin no step after this time, such as 30s, 10m or 1.5h."
    ),
    click.option(
        "--checkpoint", type=file, metavar="FILE", help="Keep the state in this file; the same command goes on from it."
    ),
    click.option("--out", type=file, metavar="FILE", help="Write the result as JSON."),
    click.option("--report", type=file, metavar="FILE", help="Write a report as one HTML file."),
    click.option(
        "--reduced",
        type=file,
        metavar="FILE",
        help="Write the data with the selected columns and the target "
        "alone, all rows as they were (.csv, .tsv, .parquet, .feather, .npz).",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Say how long it would take and how much memory, and select and write nothing."
    ),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors."),
    click.option(
        "--json", "as_json", is_flag=True, help="Write the result to standard output, and nothing else there."
    ),
)
def select(
    data: str,
    target: tuple[str, ...],
    drop: tuple[str, ...],
    task: str,
    missing: str,
    hold_out: float | None,
    seed: int,
    quiet: bool,
    **settings: Any,
) -> None:
    """Choose the few columns of a table that predict another one."""
    _check_rules(settings)
    check_outputs(data, _outputs(settings))
    if settings["report"]:
        require_for_report("--report")
    table = read_table(data)
    samples = prepare(table, target, drop=drop, task=task, missing=missing, hold_out=hold_out, seed=seed)
    check_reduced(settings["reduced"], samples.X)
    columns = _columns(table, samples, settings)
    note(samples.summary, quiet)
    for text in samples.notes:
        note(text, quiet)
    if settings["dry_run"]:
        estimate = _estimate(samples, columns, seed, quiet, settings)
        if settings["as_json"] or not quiet:
            click.echo(estimate)
        return
    selector = _fit(samples, columns, seed, quiet, settings)
    written = _write(selector, table, samples, settings)
    if not settings["as_json"] and not quiet:
        click.echo(_answer(selector, samples))
        for path in written:
            click.echo(f"  {path}")
    if selector.stop_reason_.startswith("interrupted"):
        click.get_current_context().exit(130)


def _check_rules(settings: dict[str, Any]) -> None:
    """Refuse options that don't go together, before anything is read."""
    if settings["tol"] is not None and settings["stop"] is not None:
        raise Refusal("--tol and --stop are two rules for one thing: give one of them.")
    if settings["resamples"] % 2:
        raise Refusal(f"--resamples {settings['resamples']} is odd, but halves come in pairs: give an even number.")


def _outputs(settings: dict[str, Any]) -> dict[str, tuple[Path | None, tuple[str, ...]]]:
    return {
        "--out": (settings["out"], ()),
        "--report": (settings["report"], (".html", ".htm")),
        "--reduced": (settings["reduced"], REDUCED),
        "--checkpoint": (settings["checkpoint"], ()),
    }


def _columns(table: Table, samples: Samples, settings: dict[str, Any]) -> dict[str, Any]:
    """Fixed columns and groups, as the selector takes them."""
    names = [str(name) for name in samples.X.columns]
    fixed = [table.column(name, "--fixed") for name in settings["fixed"]]
    if wrong := [name for name in fixed if name not in samples.X.columns]:
        raise Refusal(f"--fixed {quoted(wrong)} is a target or left out with --drop: take another column.")
    if twice := sorted({name for name in fixed if fixed.count(name) > 1}):
        raise Refusal(f"--fixed names {quoted(twice)} twice: name each once.")
    groups = read_groups(settings["groups"], table, names) if settings["groups"] else None
    return {"fixed": fixed or None, "groups": groups}


def _fit(
    samples: Samples, columns: dict[str, Any], seed: int, quiet: bool, settings: dict[str, Any]
) -> NeuralGreedyPursuit:
    """Run the selector under the eyes of the user."""
    n_fixed = len(columns["fixed"] or ())
    with _errors_in_words():
        progress = Progress(settings["features"], n_fixed, settings["max_time"], quiet, _made(settings["checkpoint"]))
        selector = _selector(samples, columns, seed, settings)
        selector.set_callbacks(progress)
        with warnings_as_notes(quiet), progress.shown():
            selector.fit(samples.X, samples.y)
        if settings["resamples"]:
            selector.measure_stability(samples.X, samples.y, n_halves=settings["resamples"])
    return selector


def _made(checkpoint: Path | None) -> Sequence[Step]:
    """The steps that are made already."""
    from ngp.greedy.checkpoint import Checkpoint

    saved = Checkpoint.read(checkpoint) if checkpoint else None
    return saved.steps if saved else ()


def _estimate(samples: Samples, columns: dict[str, Any], seed: int, quiet: bool, settings: dict[str, Any]) -> str:
    """What the selection would cost, in words or, with --json, as JSON."""
    with _errors_in_words(), warnings_as_notes(quiet):
        found = _selector(samples, columns, seed, settings).estimate(samples.X, samples.y)
    return json.dumps(asdict(found), indent=1) if settings["as_json"] else str(found)


def _selector(samples: Samples, columns: dict[str, Any], seed: int, settings: dict[str, Any]) -> NeuralGreedyPursuit:
    """Make the selector that the options ask for."""
    from ngp import NeuralGreedyPursuit

    return NeuralGreedyPursuit(
        settings["predictor"],
        n_features_to_select=settings["features"],
        tol=settings["tol"],
        stop=settings["stop"],
        floating=settings["floating"],
        look_ahead=settings["look_ahead"],
        **columns,
        cv=settings["cv"],
        task=samples.task,
        screen=settings["screen"],
        max_time=settings["max_time"],
        n_jobs=settings["jobs"] or -1,
        device=settings["device"],
        checkpoint=settings["checkpoint"],
        random_state=seed,
    )


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn what the selector raises into refusals and failures."""
    try:
        yield
    except MemoryError as error:
        raise Failure("There is not enough memory for these data: select from fewer columns or rows.") from error
    except (ValueError, TypeError, ImportError) as error:
        raise Refusal(in_words(error)) from error
    except (OSError, RuntimeError) as error:
        raise Failure(in_words(error)) from error


def _write(selector: NeuralGreedyPursuit, table: Table, samples: Samples, settings: dict[str, Any]) -> list[Path]:
    """Write what was asked for, and return the files."""
    written: list[Path] = []
    if settings["out"] or settings["report"] or settings["as_json"]:
        from ngp.report.result import Result

        target = ", ".join(samples.targets)
        result = Result.of(selector, samples.X, samples.y, target=target, held_out=samples.held_out)
        if settings["out"]:
            save(settings["out"], result.to_json().encode("utf-8", "backslashreplace"))
            written.append(settings["out"])
        if settings["report"]:
            written.append(write_html(result, settings["report"]))
        if settings["as_json"]:
            click.echo(result.to_json(), nl=False)
    if settings["reduced"]:
        chosen = [*samples.X.columns[selector.support_], *samples.targets]
        write_reduced(settings["reduced"], table.frame[chosen], samples.targets)
        written.append(settings["reduced"])
    return written


def write_html(result: Any, path: Path) -> Path:
    """Write a report, or say why not."""
    from ngp.report import write_report

    try:
        write_report(result, path)
    except ImportError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Failure(f"{path} can't be written: {error.strerror or error}.") from error
    return path


def _answer(selector: NeuralGreedyPursuit, samples: Samples) -> str:
    """What was found, in words."""
    names = [printable(selector.groups_.names[int(group)]) for group in selector.order_]
    fixed = [printable(str(samples.X.columns[column])) for column in selector.fixed_]
    beside = f" beside the fixed {listed(fixed, most=20)}" if fixed else ""
    what = "feature" if selector.groups is None else "group"
    total = counted(selector.groups_.n_groups, what)
    lines = [
        f"Selected {len(names)} of {total}{beside}, most important first: {listed(names, most=50)}."
        if names
        else f"Selected none of {total}{beside}: no column pays."
    ]
    lines.append(f"Why it stopped: {selector.stop_reason_}.")
    dropped, tried = left_behind(selector.path_, printable)
    if dropped:
        lines.append(f"Dropped on the way: {listed(dropped)}.")
    if tried:
        lines.append(f"Tried and taken back: {listed(tried)}.")
    if selector.partial_:
        lines.append("This is a partial result: it could have gone on.")
    if stability := getattr(selector, "stability_", None):
        stable = [printable(selector.groups_.names[int(group)]) for group in stability.stable()]
        found = listed(stable, most=20) if stable else "none"
        lines.append(f"Selected on three quarters of the {stability.n_halves} halves of the rows: {found}.")
    if samples.held_out is not None:
        score = selector.score(*samples.held_out)
        text = f"{score:.1%} of them right" if samples.task == "classification" else f"R² {score:.3f}"
        lines.append(f"On the {counted(len(samples.held_out[0]), 'row')} held out: {text}.")
    return "\n".join(lines)
