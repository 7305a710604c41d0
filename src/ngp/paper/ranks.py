"""Figure 5: how NGP behaves on the artificial data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ngp.greedy.stopping import RelativeImprovement
from ngp.paper.experiment import Experiment, Plan
from ngp.paper.metrics import false_negative_rate, false_positive_rate
from ngp.paper.paths import MEANS, draw_errors, knee, nested_errors, pursue, size_by_rule
from ngp.paper.published import ETA_RATES, RANK_NME
from ngp.paper.regression import artificial_split
from ngp.paper.rules import PublishedRule
from ngp.paper.tables import Cell, Column, Table, cell
from ngp.paper.trials import Record, Trial
from ngp.report.style import COLOURS, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ETAS", "FIG_5", "behaviour"]

ETAS = tuple(round(0.01 * i, 2) for i in range(1, 11))
N_RELEVANT = 5
# Features that are selected; predictors are trained on the first of them.
LONGEST_PATH = 12
LONGEST_CURVE = 10


def behaviour(*, n_rows: int, n_features: int, protocol: str, seed: int, n_jobs: int) -> Record:
    """One pursuit on the artificial data, and all that figure 5 shows of it."""
    published = protocol == "published"
    split = artificial_split(protocol, seed, n_features, n_rows)
    steps = pursue(split, min(LONGEST_PATH, n_features), protocol=protocol, seed=seed, n_jobs=n_jobs)
    order = [step.group for step in steps[1:] if step.group is not None]
    mean_square = float(np.mean(split.y_test**2))
    rules = [PublishedRule(mean_square, eta) if published else RelativeImprovement(eta) for eta in ETAS]
    train, test = nested_errors(split, order[:LONGEST_CURVE], seed)
    first = order[:N_RELEVANT]
    shuffled = np.random.default_rng(seed).permutation(first)
    return {
        "order": order,
        "train_nme": train,
        "test_nme": test,
        "reversed_nme": nested_errors(split, first[::-1], seed)[1],
        "random_nme": nested_errors(split, shuffled, seed)[1],
        "sizes": [size_by_rule(steps, rule) for rule in rules],
    }


def _trials(plan: Plan) -> list[Trial]:
    size = {"n_rows": plan.pick(300, 300, 150), "n_features": plan.pick(500, 100, 10)}
    return [Trial(behaviour, {"seed": seed, "protocol": plan.protocol, **size}) for seed in plan.seeds]


COLUMNS = (
    Column("knee", "runs with the knee here", 0),
    Column("train_nme", "training NME, dB"),
    Column("test_nme", "test NME, dB"),
    Column("random_nme", "random order, dB"),
    Column("reversed_nme", "reversed order, dB"),
    Column("fpsr", "FPSR"),
    Column("fnsr", "FNSR"),
)
PUBLISHED_ORDERS = {"test_nme": "ngp", "random_nme": "random", "reversed_nme": "reversed"}


def _errors(records: list[Record], size: int) -> Mapping[str, Cell]:
    """The cells of the first so many features."""
    cells = {"knee": Cell(sum(knee(run["test_nme"]) == size for run in records))}
    for key in ("train_nme", "test_nme", "random_nme", "reversed_nme"):
        if size < len(records[0][key]):
            order = PUBLISHED_ORDERS.get(key)
            published = RANK_NME[order][size - 1] if order and size <= N_RELEVANT else None
            cells[key] = cell([run[key][size] for run in records], published)
    return cells


def _rates(records: list[Record], number: int) -> Mapping[str, Cell]:
    """The cells of one of the thresholds."""
    selections = [run["order"][: run["sizes"][number]] for run in records]
    truth = range(N_RELEVANT)
    fpsr, fnsr = ETA_RATES.get(ETAS[number], (None, None))
    return {
        "fpsr": cell([false_positive_rate(selection, truth) for selection in selections], fpsr),
        "fnsr": cell([false_negative_rate(selection, truth) for selection in selections], fnsr),
    }


def _table(plan: Plan, records: list[Record]) -> Table:
    sizes = range(1, len(records[0]["test_nme"]))
    rows: list[tuple[Sequence[str], Mapping[str, Cell]]] = [
        *(([f"{size} feature{'s' * (size > 1)}"], _errors(records, size)) for size in sizes),
        *(([f"η = {eta:.2f}"], _rates(records, number)) for number, eta in enumerate(ETAS)),
    ]
    return Table(["with"], COLUMNS, rows, _note(plan, records[0]))


def _note(plan: Plan, record: Record) -> str:
    if plan.protocol == "published":
        noise, rule = "one random number added to all targets", "change of the NME in dB, as in the authors' rule"
    else:
        noise, rule = "a random number for each target", "improvement of the validation loss"
    note = (
        f"{record['n_rows']} training and as many test rows, {record['n_features']} features of which {N_RELEVANT} are "
        f"relevant; {plan.runs} runs; noise: {noise}. The random and the reversed order are of the first {N_RELEVANT} "
        f"features that NGP selects. η is the least relative {rule}; at most {len(record['order'])} features are "
        "selected. In brackets: published, where the paper can be read."
    )
    return note + ("" if record["n_features"] == 500 else " The published data have 500 features.")


def _draw(figure: Figure, plan: Plan, records: list[Record]) -> None:
    figure.set_size_inches(12, 4.2)
    errors, rates, ranks = figure.subplots(1, 3)
    errors.axvline(N_RELEVANT, color="#707070", linewidth=1, linestyle=":", label=f"relevant features: {N_RELEVANT}")
    draw_errors(errors, [run["train_nme"] for run in records], COLOURS[1], label="training", style="--")
    draw_errors(errors, [run["test_nme"] for run in records], COLOURS[0], label="test")
    errors.set_title("(a) Error against features")
    _draw_rates(rates, records)
    _draw_ranks(ranks, records)
    for ax in (errors, ranks):
        ax.set_ylabel("NME, dB" if ax is errors else "test NME, dB")
        ax.legend(edgecolor="none", framealpha=1)
    figure.suptitle(f"NGP on the artificial data, {plan.protocol} protocol, {plan.runs} runs {MEANS}")


def _draw_rates(ax: Axes, records: list[Record]) -> None:
    means = [_rates(records, number) for number in range(len(ETAS))]
    for key, colour, marker in (("fpsr", COLOURS[1], "s"), ("fnsr", COLOURS[0], "o")):
        ax.plot(ETAS, [cells[key].mean for cells in means], color=colour, marker=marker, label=key.upper())
        published = [np.nan if (rate := cells[key].published) is None else rate for cells in means]
        ax.plot(ETAS, published, marker, color=colour, markersize=9, markerfacecolor="none")
    ax.plot([], [], "o", markersize=9, markerfacecolor="none", color="#707070", label="published")
    ax.set_title("(b) False selections against η")
    ax.set_xlabel("threshold η")
    ax.set_ylabel("average rate")
    ax.legend(frameon=False)
    clean(ax)


def _draw_ranks(ax: Axes, records: list[Record]) -> None:
    colours = {"random_nme": COLOURS[2], "reversed_nme": COLOURS[1], "test_nme": COLOURS[0]}
    sizes = range(1, N_RELEVANT + 1)
    for key, colour in colours.items():
        name = PUBLISHED_ORDERS[key]
        means = [np.mean([run[key][size] for run in records]) for size in sizes]
        ax.plot(sizes, means, color=colour, marker="o", markersize=4, label=name.replace("ngp", "NGP"))
        ax.plot(sizes, RANK_NME[name], "--", color=colour, alpha=0.5)
    ax.plot([], [], "--", color="#707070", alpha=0.7, label="published")
    ax.set_xticks(sizes)
    ax.set_title("(c) Order of the features")
    ax.set_xlabel("number of features")
    clean(ax)


FIG_5 = Experiment(
    name="fig5",
    title="Figure 5: NGP on the artificial data",
    runs={"full": 10, "fast": 6, "tiny": 2},
    needs=(),
    trials=_trials,
    table=_table,
    draw=_draw,
)
