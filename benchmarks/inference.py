"""p-values: do they hold, and do they find what matters? python -m benchmarks.inference.

The data of PermFIT (Mi et al., Nature Communications 2021): ten blocks of normal columns with a correlation inside each
block, and y = x1 + 2 log(1 + 2 x2² + (x3 + 1)²) + x4 x5 + noise, where x1 to x5 are the first columns of five blocks.
Counted are the columns without information that are rejected at a level of 5 %, and the relevant ones that are found;
and at a false discovery rate of 10 % what `significant` says. Besides, fits on rows that depend on each other, none of
which should select anything: random walks, and clusters.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.model_selection import TimeSeriesSplit
from threadpoolctl import threadpool_limits

from benchmarks.common import machine_facts, mean_and_error, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import FloatArray
from ngp.baselines import registry

SIZES, CORRELATIONS = ((300, 100), (500, 200)), (0.0, 0.2, 0.5, 0.8)
LEVEL, FDR = 0.05, 0.1
RELEVANT = ("linear", "square", "shifted square", "product, first", "product, second")
# At a correlation of 0 and, of null columns in the blocks of relevant ones, 0.5; shares of 1.
PUBLISHED = {
    "300 x 100": {
        "PermFIT-DNN": {"power": [0.54, 0.46], "null": 0.05, "null in blocks, 0.5": 0.091},
        "HRT-DNN": {"power": [0.71, 0.61], "null": 0.165},
        "PermFIT-RF": {"power": [0.09, 0.09], "null": 0.053},
    },
    "500 x 200": {"PermFIT-DNN": {"power": [0.83, 0.89], "null": 0.055}},
}

Found = dict[str, Any]


def draw(n: int, p: int, correlation: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """The table of a run, and its target."""
    rng, size = np.random.default_rng([seed, n, p]), p // 10
    common, own = rng.normal(size=(n, 10, 1)), rng.normal(size=(n, 10, size))
    X = (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own).reshape(n, p)
    x1, x2, x3, x4, x5 = X[:, : 5 * size : size].T
    return X, x1 + 2 * np.log(1 + 2 * x2**2 + (x3 + 1) ** 2) + x4 * x5 + rng.normal(size=n)


def ngp(X: FloatArray, y: FloatArray, seed: int) -> tuple[FloatArray, Iterable[int]]:
    selector = NeuralGreedyPursuit(p_values="all", random_state=seed).fit(X, y)
    return selector.p_values_, selector.significant(FDR)


def d0crt(X: FloatArray, y: FloatArray, seed: int) -> tuple[FloatArray, Iterable[int]]:
    """The distilled conditional randomisation test of hidimstat, with its lasso."""
    from hidimstat import D0CRT

    test = D0CRT(LassoCV(), random_state=seed)
    test.fit_importance(X, y)
    return np.asarray(test.pvalues_), np.flatnonzero(test.fdr_selection(fdr=FDR))


def boruta(X: FloatArray, y: FloatArray, seed: int) -> tuple[FloatArray, Iterable[int]]:
    """What Boruta confirms counts as rejected; it has no p-values."""
    support = registry["boruta"](task="regression", random_state=seed).fit(X, y).support_
    return np.where(support, 0.0, 1.0), np.flatnonzero(support)


METHODS: dict[str, Callable[[FloatArray, FloatArray, int], tuple[FloatArray, Iterable[int]]]] = {
    "ngp": ngp,
    "d0crt": d0crt,
    "boruta": boruta,
}


def run(method: str, n: int, p: int, correlation: float, seed: int) -> Found:
    """One table: what is rejected."""
    X, y = draw(n, p, correlation, seed)
    relevant = np.arange(5) * (p // 10)
    useless = np.setdiff1d(np.arange(p), relevant)
    start = perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p_values, discovered = METHODS[method](X, y, seed)
    seconds, rejected = perf_counter() - start, np.nan_to_num(p_values, nan=1.0) <= LEVEL
    found = list(discovered)
    return {
        "null": float(rejected[useless].mean()),
        "null_in_blocks": float(rejected[useless[useless < p // 2]].mean()),
        "power": rejected[relevant].astype(float).tolist(),
        "discovered": float(np.isin(relevant, found).mean()),
        "false_discoveries": float(np.mean(~np.isin(found, relevant))) if found else 0.0,
        "seconds": seconds,
    }


def measure(method: str, n: int, p: int, correlation: float, n_runs: int, options: argparse.Namespace) -> Found:
    """All runs of a cell."""
    runs = joblib.Parallel(n_jobs=options.jobs)(
        joblib.delayed(run)(method, n, p, correlation, options.first_seed + seed) for seed in range(n_runs)
    )
    measures = {name: mean_and_error([each[name] for each in runs]) for name in runs[0] if name != "power"}
    power = np.mean([each["power"] for each in runs], axis=0).tolist()
    return {"method": method, "n": n, "p": p, "correlation": correlation, "n_runs": n_runs, "power": power, **measures}


def selects(kind: str, seed: int) -> bool:
    """Whether a default fit selects anything where there is nothing: random walks, or clusters of rows."""
    rng = np.random.default_rng(seed)
    if kind == "random walks":
        X, y = rng.normal(size=(300, 20)).cumsum(axis=0), rng.normal(size=300).cumsum()
        selector, rows = NeuralGreedyPursuit(cv=TimeSeriesSplit(5), random_state=seed), {}
    else:
        groups = np.repeat(np.arange(30), rng.integers(5, 16, size=30))
        X = rng.normal(size=(30, 20))[groups] + 0.3 * rng.normal(size=(len(groups), 20))
        y = 2 * rng.normal(size=30)[groups] + rng.normal(size=len(groups))
        selector, rows = NeuralGreedyPursuit(random_state=seed), {"cv_groups": groups}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        return len(selector.fit(X, y, **rows).order_) > 0


def table(cells: Iterable[Found]) -> list[str]:
    """The cells as Markdown; shares in per cent."""
    lines = [
        "| rows, columns | correlation | method | runs | null columns rejected | … in blocks of relevant ones | power: "
        + ", ".join(RELEVANT)
        + " | at an FDR of 10 %: found | false | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        power = ", ".join(f"{100 * each:.0f}" for each in cell["power"])
        shares = [f"{100 * cell[name]['mean']:.1f}" for name in ("null", "null_in_blocks")]
        found = [f"{100 * cell[name]['mean']:.1f}" for name in ("discovered", "false_discoveries")]
        parts = [f"{cell['n']}, {cell['p']}", f"{cell['correlation']:g}", cell["method"], f"{cell['n_runs']}"]
        lines.append("| " + " | ".join([*parts, *shares, power, *found, f"{cell['seconds']['mean']:.1f}"]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--peers", nargs="*", choices=[*METHODS][1:], default=[], help="other methods on the same data")
    parser.add_argument("--n", nargs="*", type=int, default=[n for n, _ in SIZES], help="numbers of rows: 300, 500")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peer-runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args()
    results: Found = {"machine": machine_facts(), "published": PUBLISHED, "cells": [], "dependent": {}}
    print_facts(results["machine"])
    for kind in ("random walks", "clusters"):
        found = joblib.Parallel(n_jobs=options.jobs)(
            joblib.delayed(selects)(kind, options.first_seed + seed) for seed in range(options.runs)
        )
        results["dependent"][kind] = {"n_runs": options.runs, "selected_something": int(np.sum(found))}
        print(f"{kind}: {np.sum(found)} of {options.runs} fits select something", flush=True)
    for n, p in SIZES:
        for correlation in CORRELATIONS if n in options.n else ():
            for method in ("ngp", *options.peers):
                n_runs = options.runs if method == "ngp" else options.peer_runs
                results["cells"].append(measure(method, n, p, correlation, n_runs, options))
                print(table(results["cells"])[-1], flush=True)
                if options.json:
                    save_json(options.json, results)


if __name__ == "__main__":
    main()
