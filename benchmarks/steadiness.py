"""Are the same columns selected again: python -m benchmarks.steadiness.

The default selects on the same table with other seeds, then with one seed and the rows or the columns in another
order.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit

TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer, "diabetes": load_diabetes}
CHANGES = ("seed", "rows", "columns")
ALIKE = 0.9  # share of the seeds whose numbers of columns are to differ by one at most


def run(table: str, change: str, number: int) -> dict[str, Any]:
    """Select with another seed, or with seed 0 and another order; number 0 changes nothing."""
    X, y = TABLES[table](return_X_y=True)
    rows, columns = np.arange(X.shape[0]), np.arange(X.shape[1])
    if number and change != "seed":
        np.random.default_rng(number).shuffle(rows if change == "rows" else columns)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        selector = NeuralGreedyPursuit(random_state=number if change == "seed" else 0, n_jobs=1)
        selector.fit(X[np.ix_(rows, columns)], y[rows])
    found = sorted(columns[selector.support_].tolist())
    return {"number": number, "columns": found, "seconds": perf_counter() - start}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How many runs select the columns of the first one, how alike any two are, and how alike their numbers."""
    sets = [set(each["columns"]) for each in runs]
    sizes = [len(each) for each in sets]
    likenesses = [jaccard(a, b) for a, b in combinations(sets, 2)]
    alike = max(sum(size in (least, least + 1) for size in sizes) for least in sizes)
    return {
        "n_runs": len(runs),
        "n_same": sum(each == sets[0] for each in sets[1:]),
        "n_selected": sizes,
        "n_alike": alike,
        "numbers_alike": alike >= ALIKE * len(runs),
        "jaccard": float(np.mean(likenesses)) if likenesses else 1.0,
        "jaccard_least": min(likenesses, default=1.0),
        "runs": runs,
    }


def jaccard(a: set[int], b: set[int]) -> float:
    """Share of the columns of either set that are in both; 1 of two empty ones."""
    return len(a & b) / len(a | b) if a | b else 1.0


def show(table: str, change: str, found: dict[str, Any]) -> None:
    sizes = " ".join(map(str, found["n_selected"]))
    same = f"{found['n_same']} of {found['n_runs'] - 1}"
    alike = f"{found['n_alike']} of {found['n_runs']}" + ("" if found["numbers_alike"] else " (too few)")
    print(
        f"{table:15s}{change:9s}{same:>10s}{found['jaccard']:9.3f}{found['jaccard_least']:8.3f}  {alike:20s}{sizes}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steadiness", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, and of orders")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {"machine": machine_facts(), "tables": {}}
    print_facts(results["machine"])
    print(f"\n{'':15s}{'another':9s}{'same':>10s}{'Jaccard':>9s}{'least':>8s}  {'numbers alike':20s}numbers of columns")
    for table in options.tables:
        results["tables"][table] = {}
        for change in CHANGES:
            runs = joblib.Parallel(n_jobs=options.jobs)(
                joblib.delayed(run)(table, change, number) for number in range(options.seeds)
            )
            results["tables"][table][change] = found = summary(runs)
            show(table, change, found)
        save_json(options.json, results)


if __name__ == "__main__":
    main()
