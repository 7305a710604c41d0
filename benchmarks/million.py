"""A million columns: time, picks and peak memory of whole fits, exact and screened: python -m benchmarks.million.

Each fit runs in a process of its own that holds X before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.data import make_additive
from benchmarks.memory import peak_mb, status_mb

N_SELECTED = 5


def fit_once(n_samples: int, n_features: int, screen: Literal["auto"] | None) -> dict[str, Any]:
    """One fit in this process."""
    from ngp import NeuralGreedyPursuit
    from ngp.predictors import SSFN

    X, y = make_additive(n_samples, n_features, seed=0)
    selector = NeuralGreedyPursuit(
        SSFN(n_draws=1), n_features_to_select=N_SELECTED, screen=screen, n_jobs=-1, random_state=0
    )
    before, start = status_mb("VmRSS") or peak_mb(), perf_counter()
    selector.fit(X, y)
    return {
        "seconds": perf_counter() - start,
        "order": selector.order_.tolist(),
        "n_fits": sum(step.n_fits for step in selector.path_),
        "x_mb": X.nbytes / 2**20,
        "beside_x_mb": peak_mb() - before,
    }


def fit_apart(n_samples: int, n_features: int, way: str) -> dict[str, Any]:
    """The same in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.million", "--samples", str(n_samples), "--features", str(n_features)]
    root = Path(__file__).parents[1]
    done = subprocess.run([*command, "--only", way], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--ways", nargs="+", choices=["exact", "screened"], default=["screened", "exact"])
    parser.add_argument("--only", choices=["exact", "screened"], help="fit once, in this process")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.only:
        print(json.dumps(fit_once(options.samples, options.features, "auto" if options.only == "screened" else None)))
        return
    results: dict[str, Any] = {"machine": machine_facts()}
    print_facts(results["machine"])
    print(f"\n{options.samples} samples, {options.features:,} columns, the first {N_SELECTED} planted, one draw")
    for way in options.ways:
        found = results[way] = fit_apart(options.samples, options.features, way)
        print(
            f"{way:9s} {found['seconds']:8.1f} s, selected {found['order']}, {found['n_fits']:,} candidates scored, "
            f"peak memory {found['beside_x_mb']:.0f} MB beside X of {found['x_mb']:.0f} MB",
            flush=True,
        )
    save_json(options.json, results)


if __name__ == "__main__":
    main()
