"""Figures 4 and 5: errors along the order in which features were selected, on physical laws and artificial data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ngp import NeuralGreedyPursuit
from ngp._types import IntArray
from ngp.baselines.base import PredictorEstimator
from ngp.datasets import Dataset, make_gravitation, make_ohm, make_planck
from ngp.greedy.path import Step
from ngp.greedy.stopping import MaxFeatures, RelativeImprovement, StopRule
from ngp.paper.experiment import Cell, Column, Experiment, Plan, Record, ResultTable, Trial, cell
from ngp.paper.metrics import false_negative_rate, false_positive_rate, normalized_mean_error_db
from ngp.paper.published import ETA_RATES, RANK_NME
from ngp.paper.regression import PublishedRule, Split, artificial_split
from ngp.predictors import SSFN
from ngp.report.style import COLOURS, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIG_4", "FIG_5", "LAWS", "size_by_rule"]

LAWS: Mapping[str, Callable[..., Dataset]] = {"planck": make_planck, "ohm": make_ohm, "gravitation": make_gravitation}
ETAS = tuple(round(0.01 * i, 2) for i in range(1, 11))
N_RELEVANT = 5  # of the artificial data
# What `_draw_errors` draws, for the titles.
MEANS = "(means; shaded: lowest to highest)"


def pursue(split: Split, n_features: int, *, protocol: str, seed: int, n_jobs: int) -> tuple[Step, ...]:
    """Steps of a pursuit of `n_features` features, including the start."""
    cv = (split.X_test, split.y_test) if protocol == "published" else 5
    selector = NeuralGreedyPursuit(SSFN(), stop=MaxFeatures(n_features), cv=cv, n_jobs=n_jobs, random_state=seed)
    steps: tuple[Step, ...] = selector.fit(split.X, split.y).path_.steps
    return steps


def size_by_rule(steps: Sequence[Step], rule: StopRule) -> int:
    """Number of features that a rule would have kept of a finished pursuit; all if it would have gone on."""
    for length in range(1, len(steps) + 1):
        if stop := rule.check(steps[:length]):
            return stop.keep
    return len(steps) - 1


def nested_errors(split: Split, order: Sequence[int] | IntArray, seed: int) -> tuple[list[float], list[float]]:
    """Training and test NME in dB of an SSFN on the first 0, 1, 2, … features of an order.

    With no features the prediction is the mean of the training targets.
    """
    mean = split.y.mean()
    train = [normalized_mean_error_db(split.y, np.full_like(split.y, mean))]
    test = [normalized_mean_error_db(split.y_test, np.full_like(split.y_test, mean))]
    for size in range(1, len(order) + 1):
        columns = list(order[:size])
        network = PredictorEstimator(task="regression", random_state=seed).fit(split.X[:, columns], split.y)
        train.append(normalized_mean_error_db(split.y, network.predict(split.X[:, columns])))
        test.append(normalized_mean_error_db(split.y_test, network.predict(split.X_test[:, columns])))
    return train, test


def knee(errors: Sequence[float]) -> int:
    """Number of features at which an error curve bends most."""
    if len(errors) < 3:
        raise ValueError(f"errors has {len(errors)} values: a curve with a knee has at least 3.")
    return 1 + int(np.argmax(np.diff(errors, 2)))


def _draw_errors(ax: Axes, errors: Sequence[Sequence[float]], colour: str, *, label: str, style: str = "-") -> None:
    """Mean curve of several runs, from one feature on, with a band from the lowest to the highest."""
    runs = np.array(errors)[:, 1:]
    sizes = np.arange(1, runs.shape[1] + 1)
    ax.fill_between(sizes, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    ax.plot(sizes, runs.mean(axis=0), style, color=colour, marker="o", markersize=4, label=label)
    ax.set_xticks(sizes)
    ax.set_xlabel("number of features")
    clean(ax)


# Figure 4: physical laws


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


def _law_trials(plan: Plan) -> list[Trial]:
    n_train = plan.pick(900, 450, 140)
    # The test rows that choose features are as few as in the paper; a fair test may as well be a larger one.
    n_test = n_train // 9 if plan.protocol == "published" else plan.pick(1000, 1000, 100)
    size = {"n_train": n_train, "n_test": n_test, "n_features": plan.pick(10, 10, 4), "protocol": plan.protocol}
    return [Trial(errors_of_law, {"law": law, "seed": seed, **size}) for seed in plan.seeds for law in LAWS]


def _by_law(records: list[Record]) -> dict[str, list[Record]]:
    return {law: [record for record in records if record["law"] == law] for law in LAWS}


def _law_table(plan: Plan, records: list[Record]) -> ResultTable:
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
    return ResultTable(["law"], columns, rows, note)


def _law_curve(plan: Plan, records: list[Record]) -> ResultTable:
    columns = [Column("train_nme", "training NME, dB"), Column("test_nme", "test NME, dB")]
    rows = [
        ([law, str(size)], {column.key: cell([run[column.key][size] for run in runs]) for column in columns})
        for law, runs in _by_law(records).items()
        for size in range(len(runs[0]["test_nme"]))
    ]
    return ResultTable(["law", "features"], columns, rows)


def _draw_laws(figure: Figure, plan: Plan, records: list[Record]) -> None:
    figure.set_size_inches(11, 4)
    for ax, (law, runs) in zip(figure.subplots(1, len(LAWS)), _by_law(records).items(), strict=True):
        true, sizes = runs[0]["n_relevant"], {knee(run["test_nme"]) for run in runs}
        ax.axvline(true, color="#707070", linewidth=1, linestyle=":", label=f"relevant features: {true}")
        _draw_errors(ax, [run["train_nme"] for run in runs], COLOURS[1], label="training", style="--")
        _draw_errors(ax, [run["test_nme"] for run in runs], COLOURS[0], label="test")
        ax.set_title(f"{law.capitalize()}: knee at {' or '.join(map(str, sorted(sizes)))}")
        ax.legend(frameon=False, loc="upper right")
        ax.set_ylabel("NME, dB")
    figure.suptitle(f"NME against the number of features, {plan.protocol} protocol, {plan.runs} runs {MEANS}")


FIG_4 = Experiment(
    name="fig4",
    title="Figure 4: normalised error against the number of features, three physical laws",
    runs={"full": 10, "fast": 3, "tiny": 2},
    needs=(),
    trials=_law_trials,
    table=_law_table,
    draw=_draw_laws,
    curve=_law_curve,
)


# Figure 5: artificial data


def behaviour(*, n_rows: int, n_features: int, protocol: str, seed: int, n_jobs: int) -> Record:
    """Run a pursuit on the artificial data, and compute what figure 5 shows."""
    published = protocol == "published"
    split = artificial_split(protocol, seed, n_features, n_rows)
    steps = pursue(split, min(12, n_features), protocol=protocol, seed=seed, n_jobs=n_jobs)
    order = [step.group for step in steps[1:] if step.group is not None]
    mean_square = float(np.mean(split.y_test**2))
    rules = [PublishedRule(mean_square, eta) if published else RelativeImprovement(eta) for eta in ETAS]
    train, test = nested_errors(split, order[:10], seed)
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
    """The cells of the first `size` features."""
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


def _table(plan: Plan, records: list[Record]) -> ResultTable:
    sizes = range(1, len(records[0]["test_nme"]))
    rows: list[tuple[Sequence[str], Mapping[str, Cell]]] = [
        *(([f"{size} feature{'s' * (size > 1)}"], _errors(records, size)) for size in sizes),
        *(([f"η = {eta:.2f}"], _rates(records, number)) for number, eta in enumerate(ETAS)),
    ]
    return ResultTable(["with"], COLUMNS, rows, _note(plan, records[0]))


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
    _draw_errors(errors, [run["train_nme"] for run in records], COLOURS[1], label="training", style="--")
    _draw_errors(errors, [run["test_nme"] for run in records], COLOURS[0], label="test")
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
