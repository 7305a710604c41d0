"""Wrong picks taken back, and features that only work together: python -m benchmarks.searching.

A decoy is the sum of the four relevant columns, plus noise: plain greedy selection begins with it. Of an exclusive or,
no column says anything by itself. The paper's algorithm, which computes no p-values, looks at no pairs and takes
nothing back, is held against the default, or against `floating` where the number of columns is given.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray
from ngp.greedy.stopping import MaxFeatures, RelativeImprovement

DECOY = 4  # the column after the four relevant ones


class Design(NamedTuple):
    """Data, and the parameters of the plain selector and those that the one which searches more has instead."""

    kind: str
    n_rows: int
    n_columns: int
    n_relevant: int
    plain: dict[str, Any]
    more: dict[str, Any]


DESIGNS = {
    "decoy": Design("decoy", 500, 50, 4, {"n_features_to_select": 4}, {"floating": True}),
    "decoy, auto": Design("decoy", 500, 50, 4, {"stop": RelativeImprovement(0.01)}, {"stop": "auto"}),
    "xor": Design("bits", 1000, 200, 2, {"stop": MaxFeatures(2)}, {"n_features_to_select": 2, "stop": None}),
    "xor, normal": Design("normal", 1000, 200, 2, {"stop": MaxFeatures(2)}, {"n_features_to_select": 2, "stop": None}),
    "xor, auto": Design("bits", 1000, 200, 2, {"stop": MaxFeatures(2)}, {"stop": "auto"}),
    "xor, screened": Design("bits", 1000, 200, 2, {"stop": MaxFeatures(2)}, {"stop": "auto", "screen": "auto"}),
}


def make_data(design: Design, seed: int) -> tuple[FloatArray, AnyArray]:
    """X and y; the relevant columns are the first ones."""
    rng, shape, relevant = np.random.default_rng(seed), (design.n_rows, design.n_columns), slice(design.n_relevant)
    if design.kind == "bits":
        X = rng.integers(0, 2, size=shape).astype(np.float64)
        return X, (X[:, relevant].sum(axis=1) % 2).astype(np.intp)
    X = rng.normal(size=shape)
    if design.kind == "normal":
        return X, (X[:, relevant].prod(axis=1) > 0).astype(np.intp)
    total = X[:, relevant].sum(axis=1)
    X[:, DECOY] = total + rng.normal(size=len(X))
    return X, total + 0.5 * rng.normal(size=len(X))


def run(name: str, seed: int) -> dict[str, Any]:
    """The plain selector and the one that searches more, on the same data."""
    design = DESIGNS[name]
    X, y = make_data(design, seed)
    found: dict[str, Any] = {"seed": seed}
    for way, parameters in (("plain", design.plain), ("more", design.plain | design.more)):
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Nothing was selected")
            selector = NeuralGreedyPursuit(random_state=seed, device="cpu", **parameters).fit(X, y)
        found[way] = {
            "order": selector.order_.tolist(),
            "seconds": perf_counter() - start,
            "n_fits": sum(step.n_fits for step in selector.path_),
        }
    return found


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How often the relevant columns were found, alone or not, and how often the decoy was."""
    design, result = DESIGNS[name], {"n_runs": len(runs)}
    relevant = set(range(design.n_relevant))
    for way in ("plain", "more"):
        orders = [set(run[way]["order"]) for run in runs]
        result[way] = {
            "found": sum(order >= relevant for order in orders),
            "found_alone": sum(order == relevant for order in orders),
            "with_decoy": sum(DECOY in order for order in orders) if design.kind == "decoy" else None,
        }
    for what in ("n_fits", "seconds"):
        result[f"times_the_{what}"] = float(np.mean([run["more"][what] / run["plain"][what] for run in runs]))
    return result | {"runs": runs}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searching", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0, help="the runs have this seed and those that follow")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {"machine": machine_facts(), "first_seed": options.first_seed, "designs": {}}
    print_facts(results["machine"])
    print("\nof all runs those that found the relevant columns (alone) and the decoy; then the same with more search")
    for name in options.designs:
        seeds = range(options.first_seed, options.first_seed + options.runs)
        runs = joblib.Parallel(n_jobs=options.jobs)(joblib.delayed(run)(name, seed) for seed in seeds)
        results["designs"][name] = found = summary(name, runs)
        counts = [
            f"{found[way]['found']:4d} ({found[way]['found_alone']:d})"
            + ("" if found[way]["with_decoy"] is None else f", decoy {found[way]['with_decoy']:d}")
            for way in ("plain", "more")
        ]
        times = f"{found['times_the_n_fits']:.1f} times the trainings, {found['times_the_seconds']:.1f} times the time"
        print(f"{name:16s} of {found['n_runs']:3d}: {counts[0]:>22s} | {counts[1]:>22s}; {times}", flush=True)
        save_json(options.json, results)


if __name__ == "__main__":
    main()
