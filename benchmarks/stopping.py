"""When does stop="auto" stop: python -m benchmarks.stopping.

Without any signal it should select nothing; on the paper's artificial data the five relevant columns and no others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import FloatArray
from ngp.datasets import make_artificial
from ngp.paper.metrics import false_negative_rate, false_positive_rate

N_COLUMNS = 500
DESIGNS = ("no signal", "no signal, correlated", "artificial, J=300", "artificial, J=150")


def make_data(design: str, seed: int) -> tuple[FloatArray, FloatArray, list[int]]:
    """X, y and the relevant columns."""
    if design.startswith("artificial"):
        X, y, truth = make_artificial(int(design.partition("=")[2]), N_COLUMNS, noise="sample", random_state=seed)
        return X, y, truth.tolist()
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, N_COLUMNS))
    if design.endswith("correlated"):  # by 1/2, as the artificial data
        X = (X + rng.normal(size=(300, 1))) / 2
    return X, rng.normal(size=300), []


def run(design: str, seed: int) -> dict[str, Any]:
    """One fit; how many times as many trainings it took as the same steps would have taken without the rule."""
    X, y, truth = make_data(design, seed)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        selector = NeuralGreedyPursuit(stop="auto", random_state=seed, device="cpu").fit(X, y)
    seconds, steps = perf_counter() - start, selector.path_[1:]
    plain = sum(N_COLUMNS - k for k in range(len(steps)))
    return {
        "seed": seed,
        "order": selector.order_.tolist(),
        "p_values": [step.p_value for step in steps],
        "fpsr": false_positive_rate(selector.order_, truth),
        "fnsr": false_negative_rate(selector.order_, truth) if truth else 0.0,
        "times_a_plain_run": sum(step.n_fits for step in steps) / plain,
        "seconds": seconds,
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    means = {name: float(np.mean([run[name] for run in runs])) for name in ("fpsr", "fnsr", "times_a_plain_run")}
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
    print(f"\n{'':24s}{'runs':>6s}{'nothing':>9s}{'FPSR':>8s}{'FNSR':>8s}  times a plain run")
    for design in options.designs:
        seeds = range(options.first_seed, options.first_seed + options.runs)
        runs = joblib.Parallel(n_jobs=options.jobs)(joblib.delayed(run)(design, seed) for seed in seeds)
        results["designs"][design] = found = summary(runs)
        print(
            f"{design:24s}{found['n_runs']:6d}{found['nothing_selected']:9d}{found['fpsr']:8.4f}{found['fnsr']:8.4f}"
            f"{found['times_a_plain_run']:8.1f}",
            flush=True,
        )
        save_json(options.json, results)


if __name__ == "__main__":
    main()
