"""An experiment of the paper: trials of a plan, a table beside the published figures, and a picture.

Trials run in parallel, and each is stored as soon as it is done, so that a stopped experiment can go on.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from math import nan
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import joblib
import numpy as np

from ngp import __version__
from ngp.io import markdown_table, write_whole
from ngp.kernels.parallel import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Plan", "Protocol", "Record", "ResultTable", "Trial", "reproduce"]

Protocol = Literal["published", "sound"]
Size = Literal["full", "fast", "tiny"]
T = TypeVar("T")
# Parameters and results of a trial in one mapping of JSON values.
Record = dict[str, Any]

PROTOCOLS: Mapping[Protocol, str] = {
    "published": "As in the authors' code: features, and where to stop, are chosen on the test data.",
    "sound": "Nothing is chosen on test data: features are selected by 5-fold cross-validation on the training rows.",
}


@dataclass(frozen=True)
class Plan:
    """How an experiment is run."""

    protocol: Protocol = "published"
    size: Size = "full"  # as in the paper, a minute or two, or just enough to see that it works
    runs: int = 10  # Monte Carlo runs
    seed: int = 0  # of the first run; the others have those that follow

    @property
    def seeds(self) -> range:
        """One seed a run."""
        return range(self.seed, self.seed + self.runs)

    def pick(self, full: T, fast: T, tiny: T) -> T:
        """Choose what fits the size."""
        return {"full": full, "fast": fast, "tiny": tiny}[self.size]


@dataclass(frozen=True)
class Trial:
    """One run of an experiment."""

    run: Callable[..., Record]  # a function of a module
    parameters: Record  # JSON values; with the function and the version of the package they identify the trial
    wide: bool = False  # whether the trial uses several cores by itself: then it is run alone

    @property
    def key(self) -> str:
        """The text by which the trial is stored."""
        name = f"{self.run.__module__}.{self.run.__qualname__}"
        return json.dumps({"trial": name, "version": __version__, **self.parameters}, sort_keys=True)


def stored_results(path: Path) -> dict[str, Record]:
    """Results in a file by the keys of their trials; a line that was cut off while it was written doesn't count."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError, KeyError, TypeError):
            stored = json.loads(line)
            results[json.dumps(stored["trial"], sort_keys=True)] = stored["result"]
    return results


def run_trials(
    trials: Sequence[Trial], path: Path, *, n_jobs: int = 1, on_done: Callable[[Trial], None] = lambda trial: None
) -> list[Record]:
    """Run the trials that are not in the file yet, and return the records of all trials in their order."""
    results = stored_results(path)
    waiting = {trial.key: trial for trial in trials if trial.key not in results}
    for trial in trials:
        if trial.key not in waiting:
            on_done(trial)
    for trial, result in _results(list(waiting.values()), n_jobs):
        results[trial.key] = result
        with path.open("a") as file:
            # The line break comes first, since the last line may have been cut off.
            file.write("\n" * (file.tell() > 0) + json.dumps({"trial": json.loads(trial.key), "result": result}))
        on_done(trial)
    return [{**trial.parameters, **results[trial.key]} for trial in trials]


def _results(trials: list[Trial], n_jobs: int) -> Iterator[tuple[Trial, Record]]:
    """Results as they come: narrow trials side by side, then the wide ones, one after the other."""
    narrow = [trial for trial in trials if not trial.wide]
    if n_jobs == 1 or len(narrow) < 2:
        yield from (_run(trial, n_jobs) for trial in narrow)
    else:
        with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
            pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all")
            yield from pool(joblib.delayed(_run)(trial, 1) for trial in narrow)
    yield from (_run(trial, n_jobs) for trial in trials if trial.wide)


def _run(trial: Trial, n_jobs: int) -> tuple[Trial, Record]:
    """Run with one BLAS thread, since their number can change the last digits."""
    start = perf_counter()
    with warnings.catch_warnings(), one_blas_thread:
        warnings.simplefilter("ignore")  # constant pixels, empty selections, LASSO's iterations: the tables show them
        result = trial.run(**trial.parameters, n_jobs=n_jobs)
    return trial, {**result, "seconds": perf_counter() - start}


@dataclass(frozen=True)
class Cell:
    """One figure over all runs, and what the paper says."""

    mean: float  # NaN if there is no such figure
    spread: float = nan  # standard deviation over the runs; NaN for a single one
    published: float | None = None  # the paper's figure, if it has one


def cell(values: Sequence[float | None], published: float | None = None) -> Cell:
    """Mean and spread of some runs; runs without a figure don't count."""
    known = [value for value in values if value is not None]
    spread = float(np.std(known, ddof=1)) if len(known) > 1 else nan
    return Cell(float(np.mean(known)) if known else nan, spread, published)


@dataclass(frozen=True)
class Column:
    """A column of figures."""

    key: str  # its name in the CSV
    label: str  # its name in the Markdown, with the unit
    digits: int = 2  # behind the point


@dataclass(frozen=True)
class ResultTable:
    """Rows with labels and figures."""

    labels: Sequence[str]  # names of the labels, such as "data" and "method"
    columns: Sequence[Column]  # the figures
    rows: Sequence[tuple[Sequence[str], Mapping[str, Cell]]]  # labels, and cells by the key of their column
    note: str = ""  # explanations, one paragraph or more

    def to_markdown(self) -> str:
        """One line a row: mean ± standard deviation over the runs (published figure)."""
        header = [*self.labels, *(column.label for column in self.columns)]
        body = [
            [*labels, *(_text(cells.get(column.key), column.digits) for column in self.columns)]
            for labels, cells in self.rows
        ]
        return markdown_table(header, body)

    def to_csv(self, comment: str = "") -> str:
        """Three columns a figure: mean, standard deviation over the runs, published; a comment above the header."""
        text = StringIO()
        if comment:
            text.write(f"# {comment}\n")
        writer = csv.writer(text, lineterminator="\n")
        keys = [f"{column.key}{ending}" for column in self.columns for ending in ("", "_sd", "_published")]
        writer.writerow([*self.labels, *keys])
        for labels, cells in self.rows:
            figures = [figure for column in self.columns for figure in _figures(cells.get(column.key))]
            writer.writerow([*labels, *figures])
        return text.getvalue()


def _figures(found: Cell | None) -> list[str]:
    """Mean, spread and published figure; empty if there is none."""
    if found is None:
        return ["", "", ""]
    return [
        "" if each is None or np.isnan(each) else f"{each:.6g}" for each in (found.mean, found.spread, found.published)
    ]


def _text(found: Cell | None, digits: int) -> str:
    if found is None:
        return ""
    text = "–" if np.isnan(found.mean) else f"{found.mean:.{digits}f}"
    if not np.isnan(found.spread):
        text += f" ± {found.spread:.{digits}f}"
    if found.published is not None:
        text += f" ({found.published:.{digits}f})"
    return text.replace("-", "−")


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str  # such as "table1"
    title: str  # what it shows
    runs: Mapping[Size, int]  # Monte Carlo runs, unless the user says how many
    needs: Sequence[str]  # packages beside the package's own requirements
    trials: Callable[[Plan], list[Trial]]  # the trials of a plan
    table: Callable[[Plan, list[Record]], ResultTable]  # the table of a plan and the records of its trials
    draw: Callable[[Figure, Plan, list[Record]], None] | None = None
    curve: Callable[[Plan, list[Record]], ResultTable] | None = None  # a second, longer table, only as CSV
    protocols: Mapping[Protocol, str] = field(default_factory=lambda: PROTOCOLS)  # their meaning here

    def plan(self, protocol: Protocol, size: Size = "full", runs: int | None = None, seed: int = 0) -> Plan:
        """A plan with this experiment's number of runs, unless another is given."""
        return Plan(protocol, size, self.runs[size] if runs is None else runs, seed)

    def command(self, plan: Plan) -> str:
        """The command that gives the same result."""
        size = {"full": "", "fast": " --fast", "tiny": " (tiny)"}[plan.size]
        return f"ngp reproduce {self.name} --protocol {plan.protocol} --runs {plan.runs} --seed {plan.seed}{size}"


def reproduce(
    experiment: Experiment,
    plan: Plan,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_done: Callable[[Trial], None] = lambda trial: None,
) -> list[Path]:
    """Run an experiment and write its table and its figure."""
    folder.mkdir(parents=True, exist_ok=True)
    records = run_trials(experiment.trials(plan), folder / "trials.jsonl", n_jobs=n_jobs, on_done=on_done)
    table = experiment.table(plan, records)
    stem, origin = f"{experiment.name}-{plan.protocol}", f"{experiment.command(plan)} (ngp {__version__})"
    files = {f"{stem}.csv": table.to_csv(origin).encode()}
    if experiment.curve:
        files[f"{stem}-curve.csv"] = experiment.curve(plan, records).to_csv(origin).encode()
    parts = [
        f"# {experiment.title}",
        f"`{experiment.command(plan)}`, ngp {__version__}. {experiment.protocols[plan.protocol]}",
    ]
    parts += [table.to_markdown()] + [table.note] * bool(table.note)
    if experiment.draw is not None:
        for kind in ("png", "svg"):
            files[f"{stem}.{kind}"] = _picture(experiment.draw, plan, records, kind, origin)
        parts.append(f"![{experiment.title}]({stem}.png)")
    files[f"{stem}.md"] = ("\n\n".join(parts) + "\n").encode()
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]


def _picture(
    draw: Callable[[Figure, Plan, list[Record]], None], plan: Plan, records: list[Record], kind: str, origin: str
) -> bytes:
    """Draw without a window: the same bytes for the same figures."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    content = BytesIO()
    metadata = {"Description": origin} | ({"Date": None} if kind == "svg" else {})
    with matplotlib.rc_context({"font.size": 10, "axes.titlesize": 11, "svg.hashsalt": "ngp"}):
        draw(figure, plan, records)
        figure.savefig(content, format=kind, dpi=130, metadata=metadata)
    return content.getvalue()
