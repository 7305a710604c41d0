"""Figure 3: the number of samples from which all relevant features are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.greedy.stopping import MaxFeatures
from ngp.paper.curves import LAWS
from ngp.paper.experiment import Cell, Column, Experiment, Plan, Protocol, Record, ResultTable, Trial, cell
from ngp.paper.metrics import false_negative_rate
from ngp.paper.published import CURVE_SIZES, FNSR_CURVES, PHASE_CHANGE
from ngp.predictors import SSFN
from ngp.report.style import COLOURS, MARKERS, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIG_3", "missed_shares", "phase_change"]

# Average FNSR that counts as recovery.
LOW = 0.005
DATA = ("planck", "ohm", "gravitation", "artificial")
# By which the authors choose features of the artificial data, however few train.
VALIDATION_ROWS = 300
# Right end of the pictures.
END = 750

LAW_SIZES = tuple(range(20, 701, 10))
ARTIFICIAL_SIZES = (*range(50, 201, 10), 220, 250, 300, 350, 400, 500, 600, 700)


def missed_shares(
    *, data: str, n_samples: int, n_features: int, protocol: str, first_seed: int, runs: int, n_jobs: int
) -> Record:
    """Share of the relevant features that is missed when their number is known, a figure a run."""
    seeds = range(first_seed, first_seed + runs)
    return {"fnsr": [_missed(data, n_samples, n_features, protocol, seed, n_jobs) for seed in seeds]}


def _missed(data: str, n_samples: int, n_features: int, protocol: str, seed: int, n_jobs: int) -> float:
    cv: Any = 5 if protocol == "sound" else 0.1
    if data in LAWS:
        X, y, truth = LAWS[data](n_samples, n_features, random_state=seed)
    elif protocol == "sound":
        X, y, truth = make_artificial(n_samples, n_features, noise="none", random_state=seed)
    else:
        n_train = round(0.9 * n_samples)
        X, y, truth = make_artificial(n_train + VALIDATION_ROWS, n_features, noise="none", random_state=seed)
        X, y, cv = X[:n_train], y[:n_train], (X[n_train:], y[n_train:])
    selector = NeuralGreedyPursuit(SSFN(), stop=MaxFeatures(len(truth)), cv=cv, n_jobs=n_jobs, random_state=seed)
    return false_negative_rate(selector.fit(X, y).order_, truth)


def phase_change(sizes: Sequence[int], rates: Sequence[float]) -> int | None:
    """Smallest number of samples from which the average FNSR stays at 0.005 or below; None if there is none."""
    found = None
    for size, rate in zip(reversed(sizes), reversed(rates), strict=True):
        if rate > LOW:
            break
        found = size
    return found


def _trials(plan: Plan) -> list[Trial]:
    law_sizes = plan.pick(LAW_SIZES, (20, 30, 40, 50, 70, 100, 150, 200, 300), (20, 50, 100))
    artificial_sizes = plan.pick(ARTIFICIAL_SIZES, (50, 75, 100, 150, 200, 300), (50, 150))
    laws = [(data, size, 10, plan.runs) for data in LAWS for size in law_sizes]
    artificial = [("artificial", size, plan.pick(500, 100, 20), 10) for size in artificial_sizes]  # a minute or less
    return [
        Trial(
            missed_shares,
            {
                "data": data,
                "n_samples": size,
                "n_features": n_features,
                "protocol": plan.protocol,
                "first_seed": first,
                "runs": min(block, plan.seeds.stop - first),
            },
        )
        for data, size, n_features, block in [*artificial, *laws]  # the longest ones first
        for first in plan.seeds[::block]
    ]


def _curves(records: list[Record]) -> Mapping[str, Mapping[int, list[float]]]:
    """FNSR of all runs by data and number of samples."""
    curves: dict[str, dict[int, list[float]]] = {data: {} for data in DATA}
    for record in records:
        curves[record["data"]].setdefault(record["n_samples"], []).extend(record["fnsr"])
    return curves


def _means(curve: Mapping[int, list[float]]) -> list[float]:
    return [float(np.mean(rates)) for rates in curve.values()]


def _table(plan: Plan, records: list[Record]) -> ResultTable:
    widths = {record["data"]: record["n_features"] for record in records}
    rows = []
    for data, curve in _curves(records).items():
        change = phase_change(list(curve), _means(curve))
        cells = {
            "features": Cell(widths[data]),
            "phase_change": Cell(nan if change is None else change, published=PHASE_CHANGE[data]),
            "same_rule": Cell(phase_change(CURVE_SIZES, FNSR_CURVES[data]) or nan),
            "fnsr_at_50": cell(curve[50], FNSR_CURVES[data][CURVE_SIZES.index(50)]),
            "runs": Cell(plan.runs),
        }
        rows.append(([data], cells))
    columns = [
        Column("features", "features", 0),
        Column("phase_change", f"FNSR ≤ {LOW} from J (published)", 0),
        Column("same_rule", "the authors' curve by the same rule", 0),
        Column("fnsr_at_50", "FNSR at J = 50 (published)", 3),
        Column("runs", "runs", 0),
    ]
    return ResultTable(["data"], columns, rows, _note(plan, widths["artificial"]))


PROTOCOLS: Mapping[Protocol, str] = {
    "published": "As in the authors' code: of the J samples 90 % train and 10 % choose the features; for the "
    f"artificial data {VALIDATION_ROWS} further rows choose them, the whole test set.",
    "sound": "Features are chosen by 5-fold cross-validation on the J samples and on nothing else.",
}


def _note(plan: Plan, n_features: int) -> str:
    note = (
        "Average FNSR with N known and without noise. The phase change is at the smallest J tried from which the "
        f"average stays at {LOW} or below. The published ones don't follow from the curves in the authors' code by "
        "that rule: the column beside says what does."
    )
    if plan.protocol == "sound":
        note += f" The published figures of the artificial data had {VALIDATION_ROWS} further rows to choose by."
    return note + ("" if n_features == 500 else " The published artificial data have 500 features.")


def _curve(plan: Plan, records: list[Record]) -> ResultTable:
    published = {data: dict(zip(CURVE_SIZES, curve, strict=True)) for data, curve in FNSR_CURVES.items()}
    rows = [
        ([data, str(size)], {"fnsr": cell(rates, published[data].get(size))})
        for data, curve in _curves(records).items()
        for size, rates in curve.items()
    ]
    return ResultTable(["data", "samples"], [Column("fnsr", "FNSR", 4)], rows)


def _draw(figure: Figure, plan: Plan, records: list[Record]) -> None:
    figure.set_size_inches(10.5, 4.6)
    rates, phases = figure.subplots(1, 2)
    curves = _curves(records)
    _draw_rates(rates, curves)
    _draw_phases(phases, curves)
    for ax in (rates, phases):
        ax.set_xscale("log")
        ax.set_xlim(18, END)
        ax.set_xticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
        ax.minorticks_off()
        ax.set_xlabel("number of samples J")
        clean(ax)
    phases.grid(axis="y", visible=False)
    figure.suptitle(f"NGP against the number of samples, {plan.protocol} protocol, {plan.runs} runs")


def _draw_rates(ax: Axes, curves: Mapping[str, Mapping[int, list[float]]]) -> None:
    for (data, curve), colour, marker in zip(curves.items(), COLOURS, MARKERS, strict=False):
        ax.plot(list(curve), _means(curve), color=colour, marker=marker, markersize=4, label=data.capitalize())
        ax.plot(CURVE_SIZES, FNSR_CURVES[data], "--", color=colour, linewidth=1, alpha=0.6)
    ax.plot([], [], "--", linewidth=1, color="#707070", label="published")
    ax.legend(frameon=False)
    ax.set_title("(a) Features that are missed")
    ax.set_ylabel("average FNSR")


def _draw_phases(ax: Axes, curves: Mapping[str, Mapping[int, list[float]]]) -> None:
    """A strip for each data set, in which the line is up where all features are found."""
    height = 0.6
    for row, ((data, curve), colour) in enumerate(zip(curves.items(), COLOURS, strict=False)):
        ground = len(curves) - 1 - row
        found = [ground + height * (rate <= LOW) for rate in _means(curve)]
        end = max(curve) * END / LAW_SIZES[-1]  # so that the last one is seen
        ax.step([*curve, end], [*found, found[-1]], where="post", color=colour, linewidth=2.2)
        change, steps = PHASE_CHANGE[data], [ground, ground, ground + height, ground + height]
        ax.plot([min(curve), change, change, END], steps, "--", color=colour, linewidth=1.2, alpha=0.7)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 1}  # our line may pass behind
        ax.annotate(
            str(change), (change, ground), (4, 4), textcoords="offset points", color=colour, fontsize=9, bbox=box
        )
    ax.plot([], [], color="#707070", linewidth=2.2, label="ours")
    ax.plot([], [], "--", color="#707070", linewidth=1.2, label="published")
    ax.set_ylim(-0.7, None)
    ax.legend(frameon=False, loc="lower left", ncols=2)
    ax.set_yticks([len(curves) - 1 - row + height / 2 for row in range(len(curves))], [d.capitalize() for d in curves])
    ax.set_title(f"(b) Phase transition: up where FNSR ≤ {LOW}")


FIG_3 = Experiment(
    name="fig3",
    title="Figure 3: features that are missed against the number of samples",
    runs={"full": 100, "fast": 20, "tiny": 4},
    needs=(),
    trials=_trials,
    table=_table,
    draw=_draw,
    curve=_curve,
    protocols=PROTOCOLS,
)
