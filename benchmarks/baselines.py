"""False and missed selections of all methods on the artificial data: python -m benchmarks.baselines."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp.baselines import registry
from ngp.datasets import make_artificial
from ngp.paper.metrics import false_negative_rate, false_positive_rate
from ngp.paper.regression import TOL, with_paper_rule

N_SAMPLES, N_FEATURES = 300, 500
# FPSR and FNSR in the paper's first table, with the sets that its code selected.
PUBLISHED = {
    "ngp": (0.016, 0.0),
    "drop-one-out": (0.038, 0.0),
    "correlation": (0.99, 0.0),
    "lasso": (0.959, 0.0),
    "random-forest": (0.06, 0.18),
    "bart": (0.991, 0.0),
    "gam": (0.985, 0.0),
}


def run(method: str, noise: str, seed: int, n_features: int, threshold: float) -> dict[str, Any]:
    """Select once, by the method's own rule if it has one; the paper's rule and the ranking are judged beside it."""
    X, y, truth = make_artificial(N_SAMPLES, n_features, noise=noise, random_state=seed)
    selector = NeuralGreedyPursuit(tol=TOL) if method == "ngp" else with_paper_rule(registry[method]())
    if "random_state" in selector.get_params():
        selector.set_params(random_state=seed)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(X, y)
    seconds = perf_counter() - start
    importances = selector.feature_importances_ if method == "ngp" else selector.importances_
    first = np.argsort(-importances, kind="stable")[: len(truth)]
    sets = {"own": np.flatnonzero(selector.support_), "rule": np.flatnonzero(importances > threshold)}
    rates = {
        f"{name}_{key}": rate(chosen, truth)
        for name, chosen in sets.items()
        for key, rate in (("fpsr", false_positive_rate), ("fnsr", false_negative_rate))
    }
    return {
        "method": method,
        "seed": seed,
        **rates,
        "own_selected": len(sets["own"]),
        "rule_selected": len(sets["rule"]),
        "found_in_first": len(np.intersect1d(first, truth)) / len(truth),
        "seconds": seconds,
    }


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    means: dict[str, dict[str, float]] = {}
    for method in dict.fromkeys(each["method"] for each in runs):
        own = [each for each in runs if each["method"] == method]
        means[method] = {key: float(np.mean([each[key] for each in own])) for key in own[0] if key != "method"}
        del means[method]["seed"]
    return means


def report(results: dict[str, Any]) -> None:
    print(f"\nnoise: {results['noise']}, {results['runs_per_method']} runs from seed {results['first_seed']}")
    rule = f"{100 * results['threshold']:g} % rule"
    print(f"                       {rule:^21s}     own rule             true among  published")
    print("method                 FPSR  FNSR features   FPSR  FNSR features    first 5    FPSR   FNSR  seconds")
    for method, mean in results["means"].items():
        published = "{:7.3f}{:7.2f}".format(*PUBLISHED[method]) if method in PUBLISHED else " " * 14
        print(
            f"{method:21s}{mean['rule_fpsr']:6.3f}{mean['rule_fnsr']:6.2f}{mean['rule_selected']:9.1f}"
            f"{mean['own_fpsr']:7.3f}{mean['own_fnsr']:6.2f}{mean['own_selected']:9.1f}"
            f"{mean['found_in_first']:11.2f} {published}{mean['seconds']:9.1f}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--methods", nargs="+", default=["ngp", *registry], choices=["ngp", *registry])
    parser.add_argument(
        "--noise", choices=("sample", "offset"), default="sample", help="offset: as in the authors' code"
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="the runs have this seed and those that follow")
    parser.add_argument("--features", type=int, default=N_FEATURES, help="number of columns")
    parser.add_argument("--threshold", type=float, default=0.01, help="of the paper's rule, 0.01 there")
    parser.add_argument("--jobs", type=int, default=-1, help="parallel runs; all cores by default")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    seeds = range(options.first_seed, options.first_seed + options.runs)
    tasks = [(method, seed) for method in options.methods for seed in seeds]
    runs = Parallel(n_jobs=options.jobs, batch_size=1, verbose=1)(
        delayed(run)(method, options.noise, seed, options.features, options.threshold) for method, seed in tasks
    )
    results = {
        "machine": facts,
        "noise": options.noise,
        "threshold": options.threshold,
        "first_seed": options.first_seed,
        "runs_per_method": options.runs,
        "means": summary(runs),
        "runs": runs,
    }
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
