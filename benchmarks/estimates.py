"""Ranges that `estimate` predicts beside the time of the fit: python -m benchmarks.estimates.

Seconds are the processor's for this process, so that other work on the machine doesn't matter.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.ensemble import RandomForestRegressor

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.data import make_wide_data
from benchmarks.designs import DESIGNS, Table
from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.predictors import SSFN

CLOCKS = ("selector", "greedy.estimate", "greedy.loop")
SEED = 77  # of the data; the estimate's constants were chosen on others


def design(name: str) -> Table:
    """A design of the study."""
    data = DESIGNS[name].draw(SEED)
    return data.X, data.y


def readme() -> Table:
    """README's example."""
    X, y, _ = make_artificial(600, 500, random_state=0)
    return X[:300], y[:300]


def many_weak(n_rows: int, n_columns: int) -> Table:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n_rows, n_columns))
    return X, 0.15 * X @ rng.normal(size=n_columns) + rng.normal(size=n_rows)


def classes(n_rows: int, n_columns: int, n_informative: int, n_classes: int) -> Table:
    X, y = make_classification(
        n_rows, n_columns, n_informative=n_informative, n_redundant=5, n_classes=n_classes, random_state=SEED
    )
    return X, y


def friedman(n_rows: int, n_columns: int) -> Table:
    X, y = make_friedman1(n_rows, n_columns, noise=1, random_state=SEED)
    return X, y


def wide(n_rows: int, n_columns: int) -> Table:
    X, y = make_wide_data(n_rows, n_columns, "float64")
    return X, y


Load = Callable[[], Table]
REAL = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes, "breast cancer": load_breast_cancer}
# With all settings as they are: the data decide how many steps there are.
BY_DEFAULT: dict[str, Load] = {
    **{f"study: {name}": partial(design, name) for name in DESIGNS},
    **{name: partial(load, return_X_y=True) for name, load in REAL.items()},
    "digits": partial(load_digits, return_X_y=True),
    "README's example": readme,
    "120 x 8": partial(friedman, 120, 8),
    "500 x 20": partial(friedman, 500, 20),
    "1200 x 25": partial(friedman, 1200, 25),
    "6000 x 30": partial(friedman, 6000, 30),
    "20000 x 12": partial(friedman, 20_000, 12),
    "many weak, 2500 x 30": partial(many_weak, 2500, 30),
    "2 classes, 250 x 60": partial(classes, 250, 60, 5, 2),
    "5 classes, 2000 x 50": partial(classes, 2000, 50, 12, 5),
    "wide, 120 x 3000": partial(wide, 120, 3000),
    "wide, 400 x 1500": partial(wide, 400, 1500),
}
# With a number of features, or another rule, predictor or search.
GIVEN: dict[str, tuple[Load, dict[str, Any]]] = {
    "1 of 10": (partial(friedman, 300, 10), {"n_features_to_select": 1}),
    "SSFN": (partial(wide, 300, 500), {"n_features_to_select": 5}),
    "SSFN, one draw, 40 steps": (
        partial(wide, 300, 500),
        {"predictor": SSFN(n_draws=1), "n_features_to_select": 40},
    ),
    "SSFN, many columns": (partial(wide, 300, 20_000), {"n_features_to_select": 2}),
    "SSFN, screened": (partial(wide, 300, 20_000), {"n_features_to_select": 5, "screen": "auto"}),
    "SSFN, many rows": (partial(wide, 20_000, 50), {"n_features_to_select": 3}),
    "SSFN, two jobs": (partial(wide, 3000, 200), {"n_features_to_select": 8, "n_jobs": 2}),
    "floating": (partial(wide, 300, 200), {"n_features_to_select": 4, "floating": True}),
    "tol": (partial(wide, 300, 500), {"tol": 0.05}),
    "plateau": (partial(wide, 300, 200), {"stop": "plateau"}),
    "five seconds": (partial(wide, 3000, 2000), {"max_time": 5.0}),
    "Kernel": (partial(wide, 300, 500), {"predictor": "kernel", "n_features_to_select": 5}),
    "MLP": (partial(wide, 300, 50), {"predictor": "mlp", "n_features_to_select": 2}),
    "random forest": (
        partial(wide, 300, 20),
        {"predictor": RandomForestRegressor(30), "n_features_to_select": 2},
    ),
}
FITS = {**{name: (load, {}) for name, load in BY_DEFAULT.items()}, **GIVEN}


def compare(name: str) -> dict[str, Any]:
    """Prediction and truth of one fit."""
    load, parameters = FITS[name]
    X, y = load()
    selector = NeuralGreedyPursuit(**{"random_state": 0, "device": "cpu", **parameters})
    clocks = [patch(f"ngp.{module}.perf_counter", process_time) for module in CLOCKS]
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", UserWarning)
        for clock in clocks:
            stack.enter_context(clock)
        selector.estimate(X, y)  # loads what is loaded once in a process
        begin = process_time()
        found = selector.estimate(X, y)
        asked = process_time()
        selector.fit(X, y)
        seconds, (low, high) = process_time() - asked, map(float, found.seconds)
    return {
        "fit": name,
        "by_default": not parameters,
        "shape": list(X.shape),
        "predicted": [low, high],
        "seconds": seconds,
        "inside": low <= seconds <= high,
        "predicted_steps": list(found.n_steps),
        "steps": len(selector.path_) - 1,
        "n_fits": list(found.n_fits),
        "estimate_seconds": asked - begin,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("--fits", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    print(f"\n{'seconds of a fit':28s}{'predicted':>20s}{'measured':>10s}  inside{'steps':>7s}{'to estimate':>13s}")
    rows = []
    for name in options.fits:
        if name == "MLP" and find_spec("torch") is None:
            continue
        rows.append(row := compare(name))
        low, high = row["predicted"]
        print(
            f"{name:28s}{low:8.2f} to {high:8.2f}{row['seconds']:10.2f}  {'yes' if row['inside'] else 'no':6s}"
            f"{row['steps']:7d}{row['estimate_seconds'] / row['seconds']:13.0%}",
            flush=True,
        )
    counts = {}
    for what, by_default in (("with default settings", True), ("with others", False)):
        some = [row for row in rows if row["by_default"] == by_default]
        inside = sum(row["inside"] for row in some)
        longest = max((row["estimate_seconds"] / row["seconds"] for row in some), default=0)
        counts[what] = {"inside": inside, "fits": len(some), "largest_share_of_time": longest}
        print(f"{inside} of {len(some)} fits {what} are inside the range; to estimate took {longest:.0%} at most")
    save_json(options.json, {"machine": facts, "counts": counts, "fits": rows})


if __name__ == "__main__":
    main()
