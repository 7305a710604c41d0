"""``ngp select``: choose the columns of a table that predict another one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ngp._formatting import (
    counted,
    cuts_in_words,
    left_behind,
    listed,
    named_score,
    nearest_in_words,
    p_value,
    score,
    share_with_error,
    visible,
)
from ngp.cli.files import (
    REDUCED,
    Table,
    check_outputs,
    read_table,
    require,
    require_for_report,
    write_reduced,
    writing,
)
from ngp.cli.messages import Failure, Refusal, command_with, in_words, note, warnings_as_notes
from ngp.cli.options import CHOSEN_COLUMNS, DATA, WORK, duration, file, screening, share, validation, with_options
from ngp.cli.preparing import Samples, chosen_columns, prepare, read_groups
from ngp.cli.progress import Progress

if TYPE_CHECKING:
    from ngp import NGPClassifier, NGPRegressor

__all__ = ["select"]

EPILOG = """\b
Examples:
  ngp select houses.csv --target price
  ngp select houses.csv --target price --features 5 --hold-out 0.2 --report houses.html
  ngp select data.parquet -t sick --drop id --missing impute --max-time 10m --out result.json
  cat houses.csv | ngp select - --target price --json > result.json
  ngp select wide.parquet -t sick --features 20 --dry-run

\b
DATA is a .csv, .tsv (also .gz), .xlsx, .parquet or .feather table with names of columns, a .npz
file with arrays X and y (and feature_names), a .npy array of rows and columns (--target -1 is its
last column), or - for CSV on standard input. Text columns become categories, one-hot as a group,
and dates days since the first.
What it says while it runs goes to standard error, the answer to standard output.

\b
Exit status: 0 done (also when --max-time ended it), 1 something failed while
running, 2 wrong usage or bad input, 130 stopped by Ctrl-C: what was found so far is written."""


MOST_LISTED = 20  # columns in the answer's table
# What the answers that a path can be cut at are called, and the stop rule that cuts there.
CUTS: dict[str | None, Literal["auto", "plateau"]] = {"significant": "auto", "best": "plateau"}

# fmt: off
OPTIONS = (
    *DATA,
    click.option("--features", type=click.IntRange(min=1), metavar="N",
                 help="How many to select. Without it, as many as --cut or --tol say."),
    click.option("--tol", type=click.FloatRange(min=0), metavar="SHARE",
                 help="Stop when a step lowers the loss by less than this share of the new loss; the fastest way, if "
                 "you know the share."),
    click.option("--cut", type=click.Choice(["significant", "best"]),
                 help="Instead of --tol: significant keeps the columns that are beyond chance; best the fewest whose "
                 "loss is within a standard error of the lowest. Without --features and --tol, significant is the "
                 "default, and the answer says what the other one would keep."),
    click.option("--floating", is_flag=True,
                 help="Take back wrong picks: drop what no longer pays, and exchange columns in the end. Takes "
                 "longer."),
    click.option("--resamples", type=click.IntRange(min=0), default=0, metavar="N",
                 help="Select once more on N random halves of the rows, an even number, to see how stable the "
                 "selection is."),
    click.option("--predictor", type=click.Choice(["auto", "ssfn", "mlp", "cnn", "kernel"]), default="auto",
                 show_default=True, help="What is retrained for every candidate; auto takes kernels for small tables "
                 "and ssfn for others. mlp and cnn need torch."),
    click.option("--groups", type=file, metavar="FILE",
                 help='Columns that enter together, as JSON: {"size": ["length", "width"]}. Columns in no group stay '
                 "single."),
    click.option("--p-values", type=click.Choice(["selected", "all"]), default="selected", show_default=True,
                 help="Which columns get a p-value: those that are selected, given the others, or all of them."),
    click.option("--fixed", multiple=True, metavar="COLUMN",
                 help="A column that is in from the start. May be given several times; counts among --features."),
    *CHOSEN_COLUMNS,
    click.option("--hold-out", type=share, metavar="SHARE",
                 help="Set this share of the rows aside before anything is learned; result and report then show the "
                 "fit on them."),
    click.option("--cv", type=validation, default="auto", show_default=True, metavar="FOLDS",
                 help="How columns are judged: a number of folds, a share of the rows such as 0.2, loo (leave one "
                 "out), or time (later rows from earlier ones, by the column of dates or else the order of the rows; "
                 "--hold-out takes the last). auto is loo for small tables and 5 folds for others."),
    *WORK,
    click.option("--screen", type=screening, metavar="N",
                 help="For very many columns: rank them by a cheap pass in each step and score only the N best, or "
                 "auto for a number that grows with theirs. Much quicker; can miss a column."),
    click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
                 help="Where networks and kernels are trained."),
    click.option("--max-time", type=duration, metavar="TIME",
                 help="Begin no step after this time, such as 30s, 10m or 1.5h."),
    click.option("--checkpoint", type=file, metavar="FILE",
                 help="Keep the state in this file; the same command goes on from it."),
    click.option("--out", type=file, metavar="FILE", help="Write the result as JSON."),
    click.option("--report", type=file, metavar="FILE", help="Write a report as one HTML file."),
    click.option("--reduced", type=file, metavar="FILE",
                 help="Write the data with the selected columns and the target alone, all rows as they were (.csv, "
                 ".tsv, .parquet, .feather)."),
    click.option("--dry-run", is_flag=True,
                 help="Say how long it would take and how much memory, and select and write nothing."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors."),
    click.option("--json", "as_json", is_flag=True,
                 help="Write the result to standard output, and nothing else there."),
)
# fmt: on


@click.command(short_help="Choose the columns that predict another one.", epilog=EPILOG)
@with_options(*OPTIONS)
def select(data: str, target: tuple[str, ...], quiet: bool, as_json: bool, **settings: Any) -> None:
    """Choose the few columns of a table that predict another one."""
    _check(data, settings)
    table = read_table(data, settings["sheet"])
    chosen = {name: settings[name] for name in ("drop", "task", "missing", "hold_out", "seed", "cv", "cv_groups")}
    samples = prepare(table, target, **chosen)
    fixed = chosen_columns(table, settings["fixed"], "--fixed", samples.X.columns) or None
    groups = read_groups(settings["groups"], table, samples.X.columns) if settings["groups"] else None
    for text in (samples.summary, *samples.notes):
        note(text, quiet)
    with _errors_in_words():
        selector = _selector(samples.task, settings).set_params(fixed=fixed, groups=groups, cv=samples.cv)
        if settings["dry_run"]:
            with warnings_as_notes(quiet):
                estimate = selector.estimate(samples.X, samples.y, cv_groups=samples.cv_groups)
            if as_json or not quiet:
                click.echo(json.dumps(asdict(estimate), indent=1) if as_json else str(estimate))
            return
        settings["documented"] = as_json or settings["out"] or settings["report"]
        interrupted = _fit(selector, samples, quiet, settings)
    written = _write(selector, table, samples, as_json, settings)
    if not as_json and not quiet:
        click.echo("\n".join([_answer(selector, samples), *(f"  {path}" for path in written)]))
    if interrupted:
        click.get_current_context().exit(130)


def _check(data: str, settings: dict[str, Any]) -> None:
    """Refuse options that don't go together, and outputs that can't be written, before anything is read."""
    if settings["tol"] is not None and settings["cut"] is not None:
        raise Refusal("--tol and --cut are two rules for one thing: give one of them.")
    if settings["resamples"] % 2:
        raise Refusal(f"--resamples {settings['resamples']} is odd, but halves come in pairs: give an even number.")
    suffixes = {"out": (".json",), "report": (".html", ".htm"), "reduced": REDUCED, "checkpoint": ()}
    outputs = {f"--{name}": (settings[name], allowed) for name, allowed in suffixes.items()}
    check_outputs({"DATA": data, "--groups": settings["groups"]}, outputs)
    if settings["report"]:
        require_for_report("--report")
    if settings["reduced"] and settings["reduced"].suffix.lower() in (".parquet", ".feather"):
        require("pyarrow", "--reduced", "parquet")


def _selector(task: str, settings: dict[str, Any]) -> NGPClassifier | NGPRegressor:
    from ngp import NGPClassifier, NGPRegressor

    same = ("predictor", "tol", "floating", "screen", "max_time", "device", "checkpoint", "p_values")
    return (NGPClassifier if task == "classification" else NGPRegressor)(
        **{name: settings[name] for name in same},
        stop=CUTS.get(settings["cut"]),
        n_features_to_select=settings["features"],
        n_jobs=settings["jobs"] or -1,
        random_state=settings["seed"],
    )


def _fit(selector: NGPClassifier | NGPRegressor, samples: Samples, quiet: bool, settings: dict[str, Any]) -> bool:
    """Run the selector with progress output, and return whether Ctrl-C ended it."""
    from ngp.greedy.checkpoint import Checkpoint

    saved = Checkpoint.read(settings["checkpoint"]) if settings["checkpoint"] else None
    progress = Progress(settings["features"], settings["max_time"], quiet, saved.steps if saved else ())
    selector.set_callbacks(progress)
    with warnings_as_notes(quiet):
        with progress.shown():
            selector.fit(samples.X, samples.y, cv_groups=samples.cv_groups)
        if "interrupted" in selector.stop_reason_:
            return True
        rows, what = (samples.X, samples.y, None, samples.cv_groups), "Stability"
        try:
            if halves := settings["resamples"]:
                selector.measure_stability(*rows, n_halves=halves)
            what = "Chance"
            if settings["documented"] and not selector.partial_:
                selector.measure_chance(*rows)
        except (KeyboardInterrupt, ValueError) as error:  # the selection itself is finished
            said = str(error) or f"{what} was not measured: interrupted."
            warnings.warn(said, stacklevel=2)
            return "interrupted" in said
    return False


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn exceptions of the selector into refusals and failures."""
    try:
        yield
    except MemoryError as error:
        raise Failure("There is not enough memory for these data: select from fewer columns or rows.") from error
    except (ValueError, TypeError, ImportError) as error:
        raise Refusal(in_words(error)) from error
    except (OSError, RuntimeError) as error:
        raise Failure(in_words(error)) from error


def _write(
    selector: NGPClassifier | NGPRegressor, table: Table, samples: Samples, as_json: bool, settings: dict[str, Any]
) -> list[Path]:
    """Write the files that were asked for, and return them."""
    out, report, reduced = (settings[name] for name in ("out", "report", "reduced"))
    if out or report or as_json:
        from ngp.report import write_report
        from ngp.report.result import Result

        result = Result.of(
            selector,
            samples.X,
            samples.y,
            target=", ".join(samples.targets),
            held_out=samples.held_out,
            data=[samples.summary, *samples.notes],
            command=command_with(),
        )
        if out:
            with writing(out):
                result.write(out)
        if report:
            with writing(report):
                write_report(result, report)
        if as_json:
            click.echo(result.to_json(), nl=False)
    if reduced:
        chosen = [*samples.X.columns[selector.support_], *samples.targets]
        write_reduced(reduced, table, chosen)
    return [path for path in (out, report, reduced) if path]


def _answer(selector: NGPClassifier | NGPRegressor, samples: Samples) -> str:
    """What was found, as text."""
    names = [visible(selector.groups_.names[int(group)]) for group in selector.order_]
    fixed = [visible(str(samples.X.columns[column])) for column in selector.fixed_]
    beside = f" beside the fixed {listed(fixed, most=20)}" if fixed else ""
    what = "feature" if selector.groups is None else "group"
    total = counted(selector.groups_.n_groups, what)
    lines = [
        f"Selected {len(names)} of {total}{beside}, most important first: {listed(names, most=50)}."
        if names
        else f"Selected none of {total}{beside}{'' if selector.partial_ else ': no column pays'}."
    ]
    lines.append(_evidence(selector))
    lines.append(_score(selector, samples))
    if other := cuts_in_words(selector.cuts_, selector.path_, samples.task, selector.all_columns_score_, what):
        lines.append(f"{other}: --cut {'significant' if selector.stop == CUTS['best'] else 'best'}.")
    lines.append(f"Why it stopped: {selector.stop_reason_}.")
    dropped, tried = left_behind(selector.path_, visible)
    if dropped:
        lines.append(f"Dropped on the way: {listed(dropped)}.")
    if tried:
        lines.append(f"Tried and taken back: {listed(tried)}.")
    if stability := getattr(selector, "stability_", None):
        stable = [visible(selector.groups_.names[int(group)]) for group in stability.stable()]
        found = listed(stable, most=20) if stable else "none"
        lines.append(f"Selected on three quarters of the {stability.n_halves} halves of the rows: {found}.")
    return "\n".join(filter(None, lines))


def _evidence(selector: NGPClassifier | NGPRegressor) -> str:
    """A table of what was selected, with importances and p-values, or what came nearest."""
    if not len(selector.order_):
        return nearest_in_words(selector.path_, selector.p_values_, selector.rows_needed_)
    if isnan(selector.importances_[selector.order_[0]]):  # the path is partial
        return ""
    from ngp.greedy.evidence import known_groups

    known, n_selected = selector.p_values_, len(selector.order_)
    groups = known_groups(selector.order_, known)
    others = groups[n_selected:][:MOST_LISTED]
    groups = [*groups[:n_selected][:MOST_LISTED], *others]
    significant = set(selector.significant().tolist())
    rows = [("", "importance", "p-value", "")]
    for group in groups:
        importance = share_with_error(selector.importances_[group], selector.importance_errors_[group])
        remark = ""
        if group in others:
            remark = "significant, but not selected" if group in significant else ""
        elif known[group] >= 0 and group not in significant:
            remark = "not significant at a false discovery rate of 10%"
        rows.append((visible(selector.groups_.names[group]), importance, p_value(known[group]), remark))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows)


def _score(selector: NGPClassifier | NGPRegressor, samples: Samples) -> str:
    """How well the selection predicts rows that it wasn't trained on."""
    if samples.held_out is not None and hasattr(selector, "predictor_"):
        held_out = named_score(selector.score(*samples.held_out), nan, samples.task)
        return f"On the {counted(len(samples.held_out[0]), 'row')} held out: {held_out}."
    last = [step for step in selector.path_ if step.kept][-1]
    found = named_score(last.score, last.score_error, samples.task)
    every = score(selector.all_columns_score_, nan, samples.task)
    return found and f"In cross-validation: {found}{every and f' (all columns: {every})'}."
