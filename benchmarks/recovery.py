"""Are the relevant features found, and no others: python -m benchmarks.recovery."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.paper.curves import LAWS
from ngp.paper.metrics import false_negative_rate, false_positive_rate
from ngp.paper.phase import phase_change
from ngp.paper.published import PHASE_CHANGE
from ngp.paper.regression import TOL

LARGEST_RATE = 0.01  # mean FPSR and mean FNSR on the artificial data, each
LAW_SIZES = (30, 40, 50, 60, 80, 100, 130)


def run_artificial(seed: int) -> dict[str, Any]:
    """Select by the paper's rule; all else is as by default."""
    X, y, truth = make_artificial(300, 500, noise="sample", random_state=seed)
    start = perf_counter()
    order = NeuralGreedyPursuit(tol=TOL, random_state=seed).fit(X, y).order_
    return {
        "seed": seed,
        "order": order.tolist(),
        "fpsr": false_positive_rate(order, truth),
        "fnsr": false_negative_rate(order, truth),
        "seconds": perf_counter() - start,
    }


def artificial(seeds: range, n_jobs: int) -> dict[str, Any]:
    runs = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(run_artificial)(seed) for seed in seeds)
    return {
        "mean_fpsr": float(np.mean([run["fpsr"] for run in runs])),
        "mean_fnsr": float(np.mean([run["fnsr"] for run in runs])),
        "sizes": [len(run["order"]) for run in runs],
        "median_seconds": float(np.median([run["seconds"] for run in runs])),
        "runs": runs,
    }


def run_law(name: str, n_samples: int, seed: int) -> float:
    """Share of the relevant features that is missed when their number is known."""
    X, y, truth = LAWS[name](n_samples, random_state=seed)
    selector = NeuralGreedyPursuit(n_features_to_select=len(truth), random_state=seed).fit(X, y)
    return false_negative_rate(selector.order_, truth)


def laws(seeds: range, n_jobs: int) -> dict[str, Any]:
    tasks = [(name, size, seed) for name in LAWS for size in LAW_SIZES for seed in seeds]
    rates = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(run_law)(*task) for task in tasks)
    means = np.reshape(rates, (len(LAWS), len(LAW_SIZES), len(seeds))).mean(axis=2)
    return {
        name: {
            "fnsr": dict(zip(map(str, LAW_SIZES), row.tolist(), strict=True)),
            "threshold": phase_change(LAW_SIZES, row.tolist()),
            "published_threshold": PHASE_CHANGE[name],
        }
        for name, row in zip(LAWS, means, strict=True)
    }


def report(results: dict[str, Any]) -> None:
    found = results["artificial"]
    low, high = min(found["sizes"]), max(found["sizes"])
    print(
        f"\nartificial data (J=300, P=500, noise on each sample), tol={TOL}, else the defaults, "
        f"{len(found['runs'])} runs\n"
        f"  mean FPSR {found['mean_fpsr']:.4f}, mean FNSR {found['mean_fnsr']:.4f} "
        f"(bars: {LARGEST_RATE} each)\n"
        f"  features selected: {low} to {high} (5 are relevant); "
        f"{found['median_seconds']:.2f} s a fit with one thread (median)"
    )
    print(f"\naverage FNSR with N known, {results['n_law_runs']} runs")
    sizes = list(next(iter(results["laws"].values()))["fnsr"])
    print(f"{'J':>12s}" + "".join(f"{size:>8s}" for size in sizes) + "    ≤ 0.005 from J (published)")
    for name, law in results["laws"].items():
        rates = "".join(f"{rate:8.4f}" for rate in law["fnsr"].values())
        print(f"{name:>12s}{rates}    {law['threshold'] or 'none'} ({law['published_threshold']})")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--runs", type=int, default=100, help="runs of each law (the artificial data: at most 20)")
    parser.add_argument("--first-seed", type=int, default=0, help="the runs have this seed and those that follow")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    first = options.first_seed
    results = {
        "machine": facts,
        "first_seed": first,
        "n_law_runs": options.runs,
        "artificial": artificial(range(first, first + min(20, options.runs)), options.jobs),
        "laws": laws(range(first, first + options.runs), options.jobs),
    }
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
