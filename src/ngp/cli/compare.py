"""``ngp compare``: methods of feature selection side by side on the user's data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ngp._formatting import listed, visible
from ngp.cli.files import check_outputs, read_table, require, writing
from ngp.cli.messages import Refusal, in_words, note
from ngp.cli.options import CHOSEN_COLUMNS, DATA, WORK, duration, file, names, validation, with_options
from ngp.cli.preparing import prepare
from ngp.io import markdown_table, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["compare"]

Plan = Sequence[tuple[str, int]]
Rows = Sequence[dict[str, Any]]
LISTS = ("within_error", "selected", "warnings")

METHODS = "all,ngp,lasso-cv,random-forest,mutual-information,mrmr"
# What a predictor with a name is.
PREDICTORS = {
    "logistic": "a logistic regression",
    "ridge": "a ridge regression",
    "random-forest": "a random forest",
    "ssfn": "a network",
}
EPILOG = """\b
Examples:
  ngp compare houses.csv --target price
  ngp compare houses.csv -t price --methods ngp,gam,boruta --features 5 --out plot.png

\b
DATA is as in ngp select. In each fold every method selects on the training rows; then the same
predictors are trained on what it selected, and judged on the rest by R² (numbers) or the accuracy
(classes). The output says which differences are within error, and explains the table.

\b
Exit status: 0 done, 1 no method succeeded, 2 wrong usage or bad input, 130 stopped by Ctrl-C:
methods that were done by then are shown."""


# fmt: off
OPTIONS = (
    *DATA,
    click.option("--methods", type=names, show_default=METHODS, metavar="NAMES",
                 help="Methods, separated by commas; all is no selection, for reference. Others: correlation, lasso, "
                 "gam, recursive-elimination, permutation, drop-one-out, roar, bart, boruta, deeplift, lassonet."),
    click.option("--features", type=click.IntRange(min=1), metavar="N",
                 help="How many each method selects; by default each follows its own rule."),
    *CHOSEN_COLUMNS,
    click.option("--cv", type=validation, default="5", show_default=True, metavar="FOLDS",
                 help="How columns are judged: a number of folds, a share of the rows such as 0.2, loo (leave one "
                 "out), or time (later rows from earlier ones, by the column of dates or else the order of the rows)."),
    *WORK,
    click.option("--max-time", type=duration, metavar="TIME",
                 help="Limit for each method, such as 30s, 10m or 1.5h."),
    click.option("--out", type=file, multiple=True, metavar="FILE",
                 help="Write the table as .csv or .md, or a plot as .png. May be given several times."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but the table and what failed."),
)
# fmt: on


@click.command(short_help="Compare methods of selection on your data.", epilog=EPILOG)
@with_options(*OPTIONS)
def compare(
    data: str,
    target: tuple[str, ...],
    sheet: str | None,
    methods: list[str] | None,
    features: int | None,
    cv: int | float | str,
    seed: int,
    jobs: int | None,
    max_time: float | None,
    out: tuple[Path, ...],
    quiet: bool,
    **chosen: Any,
) -> None:
    """Compare methods of feature selection by what can be predicted from what they select."""
    formats = (".csv", ".md", ".png")
    check_outputs({"DATA": data}, {f"--out ({i})" if i else "--out": (path, formats) for i, path in enumerate(out)})
    if any(path.suffix.lower() == ".png" for path in out):
        require("matplotlib", "A picture", "plot")
    samples = prepare(read_table(data, sheet), target, cv=cv, seed=seed, **chosen)
    folds = len(samples.y) if cv == "loo" else cv
    single = not isinstance(folds, str) and samples.cv_groups is None and folds <= len(samples.y) < 2 * folds
    if samples.task == "regression" and single:
        way_out = "a number of folds" if cv == "loo" else "fewer folds"
        raise Refusal(f"--cv {cv} leaves one row a fold, which has no R²: give {way_out}.")
    for text in (samples.summary, *samples.notes):
        note(text, quiet)
    from ngp import compare as run

    try:
        with _progress(quiet) as see:
            table = run(
                samples.X, samples.y, methods, n_features_to_select=features, cv=samples.splits(seed),
                task=samples.task, max_time=max_time, callback=see, n_jobs=jobs or -1, random_state=seed,
            )  # fmt: skip
    except (ValueError, TypeError, ImportError) as error:
        raise Refusal(in_words(error)) from error
    short = "\n\n".join(filter(None, (_markdown(table), _failures(table))))
    done = table[_predictors(table)].notna().any(axis=None)
    text = f"{short}\n\n{_explained(table)}" if done else short
    click.echo(short if quiet else text)
    for path in out:
        with writing(path):
            write_whole(path, _content(path, table, text))
        note(f"Written: {path}", quiet)
    if "interrupted" in set(table["status"]):
        click.get_current_context().exit(130)
    if not done:
        click.get_current_context().exit(1)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[Plan, Rows], None]]:
    """What shows how far the comparison is: a line for each method that is done, and in a terminal a bar below."""
    if quiet:
        yield lambda plan, rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", visible=False)

        def see(plan: Plan, rows: Rows) -> None:
            method, fold = plan[min(len(rows), len(plan) - 1)]
            doing = f"{method}, fold {fold + 1}"
            bar.update(task, total=len(plan), completed=len(rows), description=doing, visible=True, refresh=True)
            if rows and (len(rows) == len(plan) or method != rows[-1]["method"]):
                console.print(_done(rows), markup=False, highlight=False, soft_wrap=True)

        yield see


def _done(rows: Rows) -> str:
    """A line about the method of the last row."""
    from ngp.comparison import FACTS

    rows = [row for row in rows if row["method"] == rows[-1]["method"]]
    method, failed = rows[0]["method"], [row["status"] for row in rows if row["status"] != "ok"]
    if failed:
        return f"{method}: {failed[0]}"
    means = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0] if name not in FACTS}
    scores = "".join(f"  {name} {mean:.3f}" for name, mean in means.items())
    return f"{method}: {sum(row['n_selected'] for row in rows) / len(rows):.1f} columns{scores}"


def _markdown(table: DataFrame) -> str:
    """The table in short: a score with its standard error in one cell."""
    scores = _predictors(table)
    rows = []
    for method, row in table[table["n_selected"].notna()].iterrows():
        cells = [_score(row[name], row[f"{name}_se"]) for name in scores]
        agreement = f"{row['agreement']:.2f}" if row["agreement"] == row["agreement"] else ""
        rows.append([str(method), f"{row['n_selected']:.1f}", *cells, agreement, f"{row['seconds']:.2f}"])
    return markdown_table(["method", "columns", *scores, "agreement", "seconds"], rows)


def _predictors(table: DataFrame) -> list[str]:
    return [name for name in table.columns if f"{name}_se" in table.columns]


def _score(mean: float, error: float) -> str:
    """A single fold has no error, and a method that failed no score."""
    spread = f" ± {error:.3f}" if error == error else ""
    return f"{mean:.3f}{spread}" if mean == mean else ""


def _failures(table: DataFrame) -> str:
    """What went wrong, a line for each method."""
    failed = table.loc[table["status"] != "ok", "status"]
    return "\n".join(f"- {method}: {' '.join(str(status).split())}" for method, status in failed.items())


def _explained(table: DataFrame) -> str:
    """Which differences are beyond error, what was selected, and what the columns of the table are."""
    predictors = _predictors(table)
    score = {"r2": "R²"}.get(table.attrs["scoring"], table.attrs["scoring"])
    lines = [
        "Differences; within error are those whose mean over the folds is at most twice its standard error:",
        *(f"- {name}: {_verdict(table, name)}" for name in predictors),
        "",
        "Selected in more than half of the folds:",
        *(f"- {method}: {_chosen(row)}" for method, row in table.iterrows() if method != "all" and row["seconds"] >= 0),
        "",
        "The table, with means over the folds:",
        *["- all: no selection, for reference"] * ("all" in table.index),
        "- columns: how many are selected",
        f"- {', '.join(predictors)}: {score} of {', '.join(PREDICTORS[name] for name in predictors)} trained on "
        "the selected columns, ± standard error",
        "- agreement: whether the folds select the same columns; 1 always, 0 as often as by chance",
        "- seconds: time of the selection",
    ]
    return "\n".join(lines)


def _verdict(table: DataFrame, name: str) -> str:
    """Which methods are the best by a predictor, as far as that is beyond error."""
    scores = table[name].dropna().sort_values(ascending=False, kind="stable")
    if len(scores) < 2 or table.loc[scores.index, f"{name}_se"].isna().any():
        return "none known; that takes two methods and two folds"
    best, *others = scores.index
    close = [method for method in others if name in table.at[method, "within_error"]]
    worse = [method for method in others if method not in close]
    if not worse:
        return "none beyond error"
    return f"{best} is best; {f'within error of it {listed(close, 20)}; ' if close else ''}worse {listed(worse, 20)}"


def _chosen(row: Any) -> str:
    names = [visible(str(name)) for name in row["selected"]]
    return listed(names, 10) or "none"


def _content(path: Path, table: DataFrame, text: str) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".md":
        return f"{text}\n".encode()
    if suffix == ".csv":
        lists = {name: table[name].map(partial(json.dumps, ensure_ascii=False)) for name in LISTS}
        return str(table.assign(**lists).to_csv()).encode()
    from matplotlib.figure import Figure

    from ngp.report import plot_comparison

    figure = Figure(figsize=(9.0, 1.5 + 0.5 * len(table)), layout="constrained")
    plot_comparison(table, ax=figure.add_subplot())
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
