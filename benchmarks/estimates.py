"""What `estimate` predicts beside what then happens: python -m benchmarks.estimates.

Each setting runs in two processes of its own: one estimates, one fits. The time should be in the predicted range;
memory is that of the process beside X, at its peak.
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
from benchmarks.memory import peak_mb, status_mb
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
    begin, before = perf_counter(), status_mb("VmRSS") or peak_mb()
    if what == "fit":
        selector.fit(X, y)
        return {"seconds": perf_counter() - begin, "mb": peak_mb() - before}
    found = selector.estimate(X, y)
    took = perf_counter() - begin
    seconds = [float(each) for each in found.seconds]
    return {"seconds": seconds, "mb": found.memory / 1e6, "estimate_seconds": took, "n_fits": found.n_fits}


def elsewhere(name: str, what: str) -> dict[str, Any]:
    """Do it in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.estimates", "--settings", name, "--only", what]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def compare(name: str) -> dict[str, Any]:
    """Prediction and truth of one setting."""
    predicted, measured = (elsewhere(name, what) for what in ("estimate", "fit"))
    low, high = predicted["seconds"]
    ratio = predicted["mb"] / max(measured["mb"], LEAST_BYTES / 1e6)  # less than that is never predicted
    right = {"seconds": low <= measured["seconds"] <= high, "mb": 1 / FACTOR <= ratio <= FACTOR}
    return {"setting": name, "predicted": predicted, "measured": measured, "right": right}


def print_row(row: dict[str, Any]) -> None:
    predicted, measured = row["predicted"], row["measured"]
    low, high = predicted["seconds"]
    in_time, in_memory = ("yes" if right else "no" for right in row["right"].values())
    print(
        f"{row['setting']:30s} {low:8.2f} to {high:8.2f} {measured['seconds']:9.2f} {in_time:>5s} "
        f"{predicted['mb']:9.0f} {measured['mb']:9.0f} {in_memory:>5s} {predicted['estimate_seconds']:9.1f}",
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
    print(f"\n{'':30s} {'seconds: predicted, measured':>37s} {'MB: predicted, measured':>27s} {'estimate took':>15s}")
    rows = []
    for name in options.settings:
        if name == "MLP" and find_spec("torch") is None:
            continue
        rows.append(compare(name))
        print_row(rows[-1])
    counts = {key: sum(row["right"][key] for row in rows) for key in ("seconds", "mb")}
    print(f"in the range: {counts['seconds']} of {len(rows)}; memory within a factor of {FACTOR}: {counts['mb']}")
    save_json(options.json, {"machine": facts, "factor": FACTOR, "right": counts, "settings": rows})


if __name__ == "__main__":
    main()
