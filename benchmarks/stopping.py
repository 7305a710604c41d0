"""When does the default stop: python -m benchmarks.stopping.

Without any signal it should select nothing; on the paper's artificial data the five relevant columns and no others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray
from ngp.datasets import make_artificial
from ngp.paper.metrics import false_negative_rate, false_positive_rate

N_ROWS, N_COLUMNS = 300, 500

Table = tuple[FloatArray, AnyArray]


def normal(rng: np.random.Generator, n: int, p: int) -> Table:
    return rng.normal(size=(n, p)), rng.normal(size=n)


def correlated(rng: np.random.Generator, n: int, p: int) -> Table:
    """Any two columns by 1/2, as in the artificial data."""
    X, y = normal(rng, n, p)
    return (X + rng.normal(size=(n, 1))) / 2, y


def lognormal(rng: np.random.Generator, n: int, p: int) -> Table:
    X, y = normal(rng, n, p)
    return np.exp(X), np.exp(y)


def cauchy(rng: np.random.Generator, n: int, p: int) -> Table:
    return rng.standard_cauchy(size=(n, p)), rng.standard_cauchy(size=n)


def student(rng: np.random.Generator, n: int, p: int) -> Table:
    return rng.standard_t(1.5, size=(n, p)), rng.standard_t(1.5, size=n)


def classes(rng: np.random.Generator, n: int, p: int) -> Table:
    """Two classes, one of them with a tenth of the rows."""
    return rng.normal(size=(n, p)), rng.permutation(np.arange(n) < n // 10).astype(np.intp)


def counts(rng: np.random.Generator, n: int, p: int) -> Table:
    """Small numbers of events; the targets are such counts, too."""
    return rng.poisson(1.0, size=(n, p)).astype(np.float64), rng.poisson(5.0, size=n).astype(np.float64)


def wide(rng: np.random.Generator, n: int, p: int) -> Table:
    return normal(rng, n // 5, 2 * p)


def few_columns(rng: np.random.Generator, n: int, p: int) -> Table:
    return normal(rng, n, 5)


NO_SIGNAL: dict[str, Callable[[np.random.Generator, int, int], Table]] = {
    "no signal": normal,
    "no signal, correlated": correlated,
    "no signal, lognormal": lognormal,
    "no signal, Cauchy": cauchy,
    "no signal, t(1.5)": student,
    "no signal, classes 10:90": classes,
    "no signal, counts": counts,
    "no signal, wide": wide,
    "no signal, five columns": few_columns,
}
DESIGNS = (*NO_SIGNAL, "artificial, J=300", "artificial, J=150")


def make_data(design: str, seed: int) -> tuple[FloatArray, AnyArray, list[int]]:
    """X, y and the relevant columns."""
    if design in NO_SIGNAL:
        return *NO_SIGNAL[design](np.random.default_rng(seed), N_ROWS, N_COLUMNS), []
    X, y, truth = make_artificial(int(design.partition("=")[2]), N_COLUMNS, noise="sample", random_state=seed)
    return X, y, truth.tolist()


def run(design: str, seed: int) -> dict[str, Any]:
    """One fit."""
    X, y, truth = make_data(design, seed)
    task = "classification" if "classes" in design else "regression"
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        selector = NeuralGreedyPursuit(task=task, random_state=seed, n_jobs=1).fit(X, y)
    return {
        "seed": seed,
        "order": selector.order_.tolist(),
        "p_values": [step.p_value for step in selector.path_[1:]],
        "fpsr": false_positive_rate(selector.order_, truth),
        "fnsr": false_negative_rate(selector.order_, truth) if truth else 0.0,
        "seconds": perf_counter() - start,
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    means = {name: float(np.mean([run[name] for run in runs])) for name in ("fpsr", "fnsr", "seconds")}
    nothing = sum(not run["order"] for run in runs)
    return {"n_runs": len(runs), "nothing_selected": nothing, **means, "runs": runs}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopping", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0, help="the runs have this seed and those that follow")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {"machine": machine_facts(), "first_seed": options.first_seed, "designs": {}}
    print_facts(results["machine"])
    print(f"\n{'':26s}{'runs':>6s}{'nothing':>9s}{'FPSR':>8s}{'FNSR':>8s}{'seconds':>9s}")
    for design in options.designs:
        seeds = range(options.first_seed, options.first_seed + options.runs)
        runs = joblib.Parallel(n_jobs=options.jobs)(joblib.delayed(run)(design, seed) for seed in seeds)
        results["designs"][design] = found = summary(runs)
        print(
            f"{design:26s}{found['n_runs']:6d}{found['nothing_selected']:9d}{found['fpsr']:8.4f}{found['fnsr']:8.4f}"
            f"{found['seconds']:9.2f}",
            flush=True,
        )
        save_json(options.json, results)


if __name__ == "__main__":
    main()
