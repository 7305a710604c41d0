"""What the paper's experiments have in common: a plan, trials, tables and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from ngp import __version__
from ngp.io import write_whole
from ngp.paper.tables import Table
from ngp.paper.trials import Record, Trial, TrialStore, run_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Plan", "Protocol", "Size", "reproduce"]

Protocol = Literal["published", "sound"]
Size = Literal["full", "fast", "tiny"]
T = TypeVar("T")
DOTS_PER_INCH = 130

PROTOCOLS: Mapping[Protocol, str] = {
    "published": "As in the authors' code: features, and where to stop, are chosen on the test data.",
    "sound": "Nothing is chosen on test data: features are selected by 5-fold cross-validation on the training rows.",
}


@dataclass(frozen=True)
class Plan:
    """How an experiment is run."""

    protocol: Protocol = "published"
    size: Size = "full"  # as in the paper, a minute or two, or just enough to see that it works
    runs: int = 10  # monte Carlo runs
    seed: int = 0  # of the first run; the others have those that follow

    @property
    def seeds(self) -> range:
        """One seed a run."""
        return range(self.seed, self.seed + self.runs)

    def pick(self, full: T, fast: T, tiny: T) -> T:
        """Choose what fits the size."""
        return {"full": full, "fast": fast, "tiny": tiny}[self.size]


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str  # such as "table1"
    title: str  # what it shows
    runs: Mapping[Size, int]  # monte Carlo runs, unless the user says how many
    needs: Sequence[str]  # packages beside the package's own requirements
    trials: Callable[[Plan], list[Trial]]  # the trials of a plan
    table: Callable[[Plan, list[Record]], Table]  # the table of a plan and the records of its trials
    draw: Callable[[Figure, Plan, list[Record]], None] | None = None  # draws the figure: (figure, plan, records)
    curve: Callable[[Plan, list[Record]], Table] | None = None  # A second, longer table, for the CSV alone
    protocols: Mapping[Protocol, str] = field(default_factory=lambda: PROTOCOLS)  # what they mean here

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
    on_done: Callable[[Trial], None] | None = None,
) -> list[Path]:
    """Run an experiment and write its table and its figure."""
    folder.mkdir(parents=True, exist_ok=True)
    store = TrialStore(folder / "trials.jsonl")
    records = run_trials(experiment.trials(plan), store, n_jobs=n_jobs, on_done=on_done)
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
        figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()
