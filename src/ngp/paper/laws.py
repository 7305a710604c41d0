"""Figure 4: the error against the number of features, for three physical laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ngp.datasets import Dataset, make_gravitation, make_ohm, make_planck
from ngp.paper.experiment import Experiment, Plan
from ngp.paper.paths import MEANS, draw_errors, knee, nested_errors, pursue
from ngp.paper.regression import Split
from ngp.paper.tables import Cell, Column, Table, cell
from ngp.paper.trials import Record, Trial
from ngp.report.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIG_4", "LAWS", "errors_of_law"]

LAWS: Mapping[str, Callable[..., Dataset]] = {
    "planck": make_planck,
    "ohm": make_ohm,
    "gravitation": make_gravitation,
}


def errors_of_law(
    *, law: str, n_train: int, n_test: int, n_features: int, protocol: str, seed: int, n_jobs: int
) -> Record:
    """Select all features of a law one by one; training and test NME of every selection on the way."""
    X, y, truth = LAWS[law](n_train + n_test, n_features, random_state=seed)
    split = Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:], truth)
    steps = pursue(split, n_features, protocol=protocol, seed=seed, n_jobs=n_jobs)
    order = [step.group for step in steps[1:] if step.group is not None]
    train, test = nested_errors(split, order, seed)
    return {"order": order, "n_relevant": len(truth), "train_nme": train, "test_nme": test}


def _trials(plan: Plan) -> list[Trial]:
    n_train = plan.pick(900, 450, 200)
    # The test rows that choose features are as few as in the paper; a fair test may as well be a larger one.
    n_test = n_train // 9 if plan.protocol == "published" else plan.pick(1000, 1000, 200)
    size = {"n_train": n_train, "n_test": n_test, "n_features": plan.pick(10, 10, 4), "protocol": plan.protocol}
    return [Trial(errors_of_law, {"law": law, "seed": seed, **size}) for seed in plan.seeds for law in LAWS]


def _by_law(records: list[Record]) -> dict[str, list[Record]]:
    return {law: [record for record in records if record["law"] == law] for law in LAWS}


def _table(plan: Plan, records: list[Record]) -> Table:
    rows = []
    for law, runs in _by_law(records).items():
        true = runs[0]["n_relevant"]
        cells = {
            "relevant": Cell(true),
            "knees": Cell(sum(knee(run["test_nme"]) == true for run in runs)),
            "runs": Cell(len(runs)),
            "nme_before": cell([run["test_nme"][true - 1] for run in runs]),
            "nme": cell([run["test_nme"][true] for run in runs]),
            "nme_after": cell([run["test_nme"][true + 1] for run in runs]),
        }
        rows.append(([law], cells))
    columns = [
        Column("relevant", "relevant features N", 0),
        Column("knees", "runs with the knee at N", 0),
        Column("runs", "runs", 0),
        Column("nme_before", "test NME with N − 1, dB", 1),
        Column("nme", "with N, dB", 1),
        Column("nme_after", "with N + 1, dB", 1),
    ]
    first = records[0]
    note = (
        f"{first['n_train']} training and {first['n_test']} test rows. The knee is where the curve of the test NME "
        "bends most: what the last feature gained, less what the next one gains. The paper's is at N for every law."
    )
    return Table(["law"], columns, rows, note)


def _curve(plan: Plan, records: list[Record]) -> Table:
    columns = [Column("train_nme", "training NME, dB"), Column("test_nme", "test NME, dB")]
    rows = [
        ([law, str(size)], {column.key: cell([run[column.key][size] for run in runs]) for column in columns})
        for law, runs in _by_law(records).items()
        for size in range(len(runs[0]["test_nme"]))
    ]
    return Table(["law", "features"], columns, rows)


def _draw(figure: Figure, plan: Plan, records: list[Record]) -> None:
    figure.set_size_inches(11, 4)
    for ax, (law, runs) in zip(figure.subplots(1, len(LAWS)), _by_law(records).items(), strict=True):
        true, sizes = runs[0]["n_relevant"], {knee(run["test_nme"]) for run in runs}
        ax.axvline(true, color="#707070", linewidth=1, linestyle=":", label=f"relevant features: {true}")
        draw_errors(ax, [run["train_nme"] for run in runs], COLOURS[1], label="training", style="--")
        draw_errors(ax, [run["test_nme"] for run in runs], COLOURS[0], label="test")
        ax.set_title(f"{law.capitalize()}: knee at {' or '.join(map(str, sorted(sizes)))}")
        ax.legend(frameon=False, loc="upper right")
        ax.set_ylabel("NME, dB")
    figure.suptitle(f"NME against the number of features, {plan.protocol} protocol, {plan.runs} runs {MEANS}")


FIG_4 = Experiment(
    name="fig4",
    title="Figure 4: normalised error against the number of features, three physical laws",
    runs={"full": 10, "fast": 3, "tiny": 2},
    needs=(),
    trials=_trials,
    table=_table,
    draw=_draw,
    curve=_curve,
)
