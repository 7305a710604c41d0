"""``ngp compare``: methods of feature selection side by side on the user's data."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ngp.cli.files import check_outputs, read_table, require, writing
from ngp.cli.messages import Refusal, in_words, note
from ngp.cli.options import CHOSEN_COLUMNS, DATA, WORK, duration, file, names, validation, with_options
from ngp.cli.preparing import prepare
from ngp.io import markdown_table, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["compare"]

METHODS = "all,ngp,lasso-cv,random-forest,mutual-information"
EPILOG = """\b
Examples:
  ngp compare houses.csv --target price
  ngp compare houses.csv -t price --methods ngp,gam,boruta --features 5 --out plot.png

\b
DATA is as in ngp select. In each fold every method selects on the training rows; then the same
predictors are trained on what it selected, and judged on the rest. Scores are R² for numbers
and the accuracy for classes, mean ± standard deviation over the folds."""


# fmt: off
OPTIONS = (
    *DATA,
    click.option("--methods", type=names, default=METHODS, show_default=True, metavar="NAMES",
                 help="Methods, separated by commas; all is no selection, for reference. Others: correlation, lasso, "
                 "gam, recursive-elimination, permutation, drop-one-out, roar, bart, boruta, mrmr, deeplift, "
                 "lassonet."),
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
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but the table and errors."),
)
# fmt: on


@click.command(short_help="Compare methods of selection on your data.", epilog=EPILOG)
@with_options(*OPTIONS)
def compare(
    data: str,
    target: tuple[str, ...],
    sheet: str | None,
    methods: list[str],
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
        with redirect_stdout(StringIO() if quiet else sys.stderr):
            table = run(
                samples.X, samples.y, methods, k=features, cv=samples.splits(seed), task=samples.task,
                max_time=max_time, n_jobs=jobs or -1, verbose=1, random_state=seed,
            )  # fmt: skip
    except (ValueError, TypeError, ImportError) as error:
        raise Refusal(in_words(error)) from error
    text = _markdown(table)
    click.echo(text)
    for path in out:
        with writing(path):
            write_whole(path, _content(path, table, text))
        note(f"Written: {path}", quiet)


def _markdown(table: DataFrame) -> str:
    """The table in short: a score with its standard deviation in one cell."""
    scores = [name for name in table.columns if f"{name}_std" in table.columns]
    header = ["method", "status", "features", *scores, "agreement", "seconds"]
    rows = []
    for method, row in table.iterrows():
        cells = [_score(row[name], row[f"{name}_std"]) for name in scores]
        numbers = [f"{row[name]:.{digits}f}" if row[name] == row[name] else "" for name, digits in
                   (("n_selected", 1), ("agreement", 2), ("seconds", 1))]  # fmt: skip
        status = " ".join(str(row["status"]).replace("|", "\\|").split())
        rows.append([str(method), status, numbers[0], *cells, *numbers[1:]])
    return markdown_table(header, rows)


def _score(mean: float, deviation: float) -> str:
    """A single fold has no deviation, and a method that failed no score."""
    spread = f" ± {deviation:.3f}" if deviation == deviation else ""
    return f"{mean:.3f}{spread}" if mean == mean else ""


def _content(path: Path, table: DataFrame, text: str) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".md":
        return f"{text}\n".encode()
    if suffix == ".csv":
        lists = {name: table[name].map(partial(json.dumps, ensure_ascii=False)) for name in ("selected", "warnings")}
        return str(table.assign(**lists).to_csv()).encode()
    from matplotlib.figure import Figure

    from ngp.report import plot_comparison

    figure = Figure(figsize=(9.0, 1.5 + 0.6 * len(table)), layout="constrained")
    plot_comparison(table, ax=figure.add_subplot())
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
