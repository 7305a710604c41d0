"""What `estimate` predicts beside what then happens: python -m benchmarks.estimates.

Each setting runs in two processes of its own: one is asked for the estimate, one fits. Memory is that of the process
beside X, without files that it maps, at its peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.data import make_wide_data
from ngp.greedy.calibration import watched_memory
from ngp.greedy.estimate import LEAST_BYTES

FACTOR = 2


def ssfn(n_draws: int) -> Any:
    from ngp.predictors import SSFN

    return SSFN(n_draws=n_draws)


def forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(30)


def neighbours() -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor()


def ridge() -> Any:
    from sklearn.linear_model import Ridge

    return Ridge()


@dataclass(frozen=True)
class Setting:
    """What is fitted: J samples, P columns, N steps."""

    shape: tuple[int, int]
    n_steps: int
    predictor: Callable[[], Any] = lambda: ssfn(8)
    options: dict[str, Any] = field(default_factory=dict)
    classes: bool = False
    in_groups_of: int = 1

    def data(self) -> tuple[Any, Any]:
        X, y = make_wide_data(*self.shape, "float64")
        return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])) if self.classes else y

    def selector(self) -> Any:
        from ngp import NeuralGreedyPursuit

        options = dict(self.options)
        if self.in_groups_of > 1:
            options["groups"] = (np.arange(self.shape[1]) // self.in_groups_of).tolist()
        common = {"n_jobs": -1, "random_state": 0, "device": "cpu"}
        return NeuralGreedyPursuit(self.predictor(), n_features_to_select=self.n_steps, **(common | options))


SETTINGS = {
    "SSFN": Setting((300, 500), 5),
    "SSFN, one draw": Setting((300, 500), 5, partial(ssfn, 1)),
    "SSFN, one job": Setting((300, 500), 5, options={"n_jobs": 1}),
    "SSFN, leave one out": Setting((200, 50), 3, options={"cv": "loo"}),
    "SSFN, 40 steps": Setting((300, 500), 40, partial(ssfn, 1)),
    "SSFN, three classes": Setting((300, 500), 5, classes=True),
    "SSFN, groups of 5": Setting((300, 500), 5, in_groups_of=5),
    "SSFN, many columns": Setting((300, 20_000), 2),
    "SSFN, one draw, many columns": Setting((300, 20_000), 3, partial(ssfn, 1)),
    "SSFN, screened": Setting((300, 20_000), 5, options={"screen": "auto"}),
    "SSFN, one draw, screened": Setting((300, 50_000), 5, partial(ssfn, 1), options={"screen": "auto"}),
    "SSFN, 5,000 rows": Setting((5000, 200), 5),
    "SSFN, 60,000 rows, hold-out": Setting((60_000, 50), 3, options={"cv": 0.2}),
    "SSFN, 60,000 rows": Setting((60_000, 50), 2, partial(ssfn, 1)),
    "Kernel": Setting((300, 500), 5, lambda: "kernel"),
    "Kernel, landmarks": Setting((2000, 100), 3, lambda: "kernel"),
    "MLP": Setting((300, 100), 3, lambda: "mlp"),
    "SSFN and Kernel": Setting((300, 200), 3, lambda: ["ssfn", "kernel"]),
    "random forest": Setting((300, 20), 3, forest),
    "random forest, one job": Setting((300, 20), 2, forest, options={"n_jobs": 1}),
    "nearest neighbours": Setting((300, 200), 3, neighbours),
    "ridge": Setting((300, 200), 10, ridge),
}


def here(name: str, what: str) -> dict[str, Any]:
    """Do it in this process."""
    setting = SETTINGS[name]
    X, y = setting.data()
    selector = setting.selector()
    begin = perf_counter()
    if what == "fit":
        with watched_memory() as growth:
            selector.fit(X, y)
        return {"seconds": perf_counter() - begin, "mb": growth[0] / 1e6}
    found = selector.estimate(X, y)
    own = {"estimate_seconds": perf_counter() - begin, "rough": found.rough, "n_fits": found.n_fits}
    return {"seconds": found.seconds, "mb": found.memory / 1e6} | own


def elsewhere(name: str, what: str) -> dict[str, Any]:
    """Do it in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.estimates", "--settings", name, "--only", what]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def compare(name: str) -> dict[str, Any]:
    """Prediction and truth of one setting, and how many times too large the prediction is."""
    predicted, measured = (elsewhere(name, what) for what in ("estimate", "fit"))
    known = measured | {"mb": max(measured["mb"], LEAST_BYTES / 1e6)}  # less than that is never predicted
    ratio = {key: predicted[key] / known[key] for key in ("seconds", "mb")}
    return {"setting": name, "predicted": predicted, "measured": measured, "ratio": ratio}


def within(rows: Sequence[dict[str, Any]], key: str) -> int:
    """How many predictions are within the factor."""
    return sum(1 / FACTOR <= row["ratio"][key] <= FACTOR for row in rows)


def print_row(row: dict[str, Any]) -> None:
    predicted, measured, ratio = row["predicted"], row["measured"], row["ratio"]
    print(
        f"{row['setting']:30s} {predicted['seconds']:9.2f} {measured['seconds']:9.2f} {ratio['seconds']:7.2f} "
        f"{predicted['mb']:9.0f} {measured['mb']:9.0f} {ratio['mb']:7.2f} {predicted['estimate_seconds']:9.1f}"
        f"{'  rough' if predicted['rough'] else ''}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--only", choices=["estimate", "fit"], help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args(arguments)
    if options.only:
        print(json.dumps(here(options.settings[0], options.only)))
        return
    facts = machine_facts()
    print_facts(facts)
    print(f"\n{'':30s} {'seconds, predicted, measured':>27s} {'MB, predicted, measured':>27s} {'estimate took':>15s}")
    rows = []
    for name in options.settings:
        if name == "MLP" and find_spec("torch") is None:
            continue
        rows.append(compare(name))
        print_row(rows[-1])
    counts = {key: within(rows, key) for key in ("seconds", "mb")}
    print(f"within a factor of {FACTOR}: time {counts['seconds']} of {len(rows)}, memory {counts['mb']} of {len(rows)}")
    save_json(options.json, {"machine": facts, "factor": FACTOR, "within": counts, "settings": rows})


if __name__ == "__main__":
    main()
