"""The artificial data with any predictor, as published and as it should be: python -m benchmarks.artificial."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NGPRegressor
from ngp.datasets import make_artificial
from ngp.paper.metrics import false_negative_rate, false_positive_rate, normalized_mean_error_db
from ngp.paper.regression import TOL, PublishedRule

N_TRAIN, N_TEST, N_FEATURES = 300, 300, 500
# FPSR, FNSR and P-NME in the paper's first table.
PUBLISHED = {"ssfn": (0.016, 0.0, -12.01), "mlp": (0.0, 0.02, -10.57)}


def run(predictor: str, protocol: str, seed: int, n_features: int, n_jobs: int) -> dict[str, Any]:
    """One pursuit; `published` chooses the features, and when to stop, by the test data."""
    published = protocol == "published"
    noise = "offset" if published else "sample"
    X, y, truth = make_artificial(N_TRAIN + N_TEST, n_features, noise=noise, random_state=seed)
    train, test = (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:])
    settings: dict[str, Any] = {"tol": TOL}
    if published:
        settings = {"cv": test, "stop": PublishedRule(float(np.mean(test[1] ** 2)))}
    start = perf_counter()
    selector = NGPRegressor(predictor, random_state=seed, n_jobs=n_jobs, **settings).fit(*train)
    return {
        "seed": seed,
        "order": selector.order_.tolist(),
        "gains": [step.gain for step in selector.path_[1:]],
        "fpsr": false_positive_rate(selector.order_, truth),
        "fnsr": false_negative_rate(selector.order_, truth),
        "train_nme_db": normalized_mean_error_db(train[1], selector.predict(train[0])),
        "test_nme_db": normalized_mean_error_db(test[1], selector.predict(test[0])),
        "seconds": perf_counter() - start,
        "step_seconds": [step.seconds for step in selector.path_[1:]],
    }


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    keys = ("fpsr", "fnsr", "train_nme_db", "test_nme_db", "seconds")
    return {f"mean_{key}": float(np.mean([each[key] for each in runs])) for key in keys}


def report(results: dict[str, Any]) -> None:
    means = results["means"]
    print(
        f"\n{results['predictor']}, {results['protocol']} protocol, {len(results['runs'])} runs from seed "
        f"{results['first_seed']}: FPSR {means['mean_fpsr']:.4f}, FNSR {means['mean_fnsr']:.4f}, "
        f"F-NME {means['mean_train_nme_db']:.2f} dB, P-NME {means['mean_test_nme_db']:.2f} dB, "
        f"{means['mean_seconds']:.1f} s a fit"
    )
    if results["predictor"] in PUBLISHED:
        print("in the paper: FPSR {}, FNSR {}, P-NME {} dB".format(*PUBLISHED[results["predictor"]]))
    for each in results["runs"]:
        gains = " ".join(f"{gain:.2f}" for gain in each["gains"])
        print(f"  seed {each['seed']}: {each['order']}, gains {gains}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.artificial", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--predictor", default="mlp", help="name of the predictor")
    parser.add_argument("--protocol", choices=("sound", "published"), default="sound")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="the runs have this seed and those that follow")
    parser.add_argument("--features", type=int, default=N_FEATURES, help="number of columns")
    parser.add_argument("--jobs", type=int, default=-1, help="parallel tasks; all cores by default")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    seeds = range(options.first_seed, options.first_seed + options.runs)
    runs = [run(options.predictor, options.protocol, seed, options.features, options.jobs) for seed in seeds]
    results = {
        "machine": facts,
        "predictor": options.predictor,
        "protocol": options.protocol,
        "first_seed": options.first_seed,
        "means": summary(runs),
        "runs": runs,
    }
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
