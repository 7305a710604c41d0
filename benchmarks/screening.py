"""Screening beside scoring every candidate: python -m benchmarks.screening.

For each design and seed both ways run in turn. Beside their times and picks stands, for every pick of the exact way,
its rank in the cheap pass given the picks before it: the share of ranks below m is what screening with m would keep.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from benchmarks.common import machine_facts, print_facts, save_json, side_by_side
from benchmarks.data import make_additive, make_correlated, make_interacting
from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.greedy.screening import Screening, n_scored
from ngp.predictors import SSFN
from ngp.predictors.base import ColumnSets

DESIGNS = {"additive": make_additive, "correlated": make_correlated, "interacting": make_interacting}
N_SELECTED = 5
KEPT = (1, 3, 10, 30, 100, 300, 1000)


def compare(X: AnyArray, y: FloatArray, seed: int, n_draws: int) -> dict[str, Any]:
    """Both ways on one data set."""
    common = {"n_features_to_select": N_SELECTED, "n_jobs": -1, "random_state": seed}
    ways = {
        "exact": NeuralGreedyPursuit(SSFN(n_draws=n_draws), **common),
        "screened": NeuralGreedyPursuit(SSFN(n_draws=n_draws), screen="auto", **common),
    }
    seconds = side_by_side({name: lambda way=way: way.fit(X, y) for name, way in ways.items()}, 1)
    exact, screened = (way.order_.tolist() for way in ways.values())
    return {
        "seed": seed,
        "exact": exact,
        "screened": screened,
        "exact_seconds": seconds["exact"][0],
        "screened_seconds": seconds["screened"][0],
        "ranks": cheap_ranks(X, y, exact, seed),
    }


def cheap_ranks(X: AnyArray, y: FloatArray, order: Sequence[int], seed: int) -> list[int]:
    """How many candidates the cheap pass puts before each pick, in the steps of a given order."""
    problem = make_problem(X, y, groups=make_groups(None, X.shape[1]))
    own_seed = check_random_state(seed).randint(np.iinfo(np.int32).max)  # as the selector makes it of its own
    ranks = []
    for step, pick in enumerate(order):
        left = np.setdiff1d(np.arange(X.shape[1]), order[:step])
        screening = Screening("auto", own_seed, n_jobs=-1)
        promises = screening.promises(problem, np.array(order[:step], dtype=np.intp), ColumnSets.singles(left))
        ranks.append(int((promises > promises[left == pick]).sum()))
    return ranks


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the runs of one design amount to."""
    ranks = np.array([run["ranks"] for run in runs])
    planted = set(range(N_SELECTED))
    return {
        "n_runs": len(runs),
        "same_picks": sum(run["exact"] == run["screened"] for run in runs),
        "exact_found_all": sum(set(run["exact"]) == planted for run in runs),
        "screened_found_all": sum(set(run["screened"]) == planted for run in runs),
        "exact_seconds": float(np.median([run["exact_seconds"] for run in runs])),
        "screened_seconds": float(np.median([run["screened_seconds"] for run in runs])),
        "ratio": float(np.median([run["exact_seconds"] / run["screened_seconds"] for run in runs])),
        "largest_rank": int(ranks.max()),
        "recall": {str(kept): float((ranks < kept).mean()) for kept in KEPT},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {
        "machine": machine_facts(),
        "plan": {k: v for k, v in vars(options).items() if k != "json"},
    }
    print_facts(results["machine"])
    kept = n_scored("auto", options.features)
    print(
        f"\n{options.samples} samples, {options.features} columns, {options.draws} draws; {kept} scored when screened"
    )
    for design in options.designs:
        runs = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            X, y = DESIGNS[design](options.samples, options.features, seed)
            runs.append(compare(X, y, seed, options.draws))
            print(f"  {design} {runs[-1]}")
        results[design] = {"summary": summary(runs), "runs": runs}
    for design in options.designs:
        show(design, results[design]["summary"])
    save_json(options.json, results)


def show(design: str, found: dict[str, Any]) -> None:
    print(
        f"\n{design}: the same picks in {found['same_picks']} of {found['n_runs']} runs; all planted features found "
        f"in {found['exact_found_all']} (exact) and {found['screened_found_all']} (screened); "
        f"{found['exact_seconds']:.2f} s and {found['screened_seconds']:.2f} s, {found['ratio']:.1f} times as long"
    )
    shares = ", ".join(f"{share:.0%} at {kept}" for kept, share in found["recall"].items())
    print(f"  exact picks among the best m of the cheap pass: {shares}; largest rank {found['largest_rank']}")


if __name__ == "__main__":
    main()
