"""A fit with very many rows: python -m benchmarks.many_rows --rows 2000000 --columns 200 --selected 5."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, matmul_gflops, print_facts, save_json
from benchmarks.memory import peak_mb, status_mb
from benchmarks.speed import operations
from ngp._types import AnyArray, FloatArray

BLOCK = 2**16  # rows that are drawn together


def make_rows(n_rows: int, n_columns: int, dtype: str) -> tuple[AnyArray, FloatArray]:
    """Normal columns, of which the first five matter: less and less, and not linearly."""
    rng = np.random.default_rng(0)
    X, y = np.empty((n_rows, n_columns), dtype), np.empty(n_rows)
    for start in range(0, n_rows, BLOCK):
        rows = X[start : start + BLOCK]
        rows[:] = rng.standard_normal(rows.shape, dtype=np.float32)
        a, b, c, d, e = (rows[:, i].astype(np.float64) for i in range(5))
        signal = 2 * np.tanh(a) + b * np.abs(c) + np.cos(d) + 0.3 * e
        y[start : start + BLOCK] = signal + 0.5 * rng.standard_normal(len(rows))
    return X, y


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fit, in this process; what it held before counts as the data's."""
    from ngp import NGPRegressor
    from ngp.predictors import SSFN

    X, y = make_rows(options.rows, options.columns, options.dtype)
    predictor = SSFN(n_draws=options.draws)
    selector = NGPRegressor(predictor, n_features_to_select=options.selected, n_jobs=-1, random_state=0)
    before = status_mb("VmRSS") or peak_mb()
    start = perf_counter()
    selector.fit(X, y)
    seconds = perf_counter() - start
    return {
        "order": selector.order_.tolist(),
        "fit_seconds": seconds,
        "steps_seconds": [step.seconds for step in selector.path_[1:]],
        "x_mb": X.nbytes / 2**20,
        "beside_x_mb": peak_mb() - before,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit in a fresh process, between two measurements of the peak."""
    sizes = ("rows", "columns", "selected", "draws", "dtype")
    command = [sys.executable, "-m", "benchmarks.many_rows", "--here"]
    command += [f"--{name}={getattr(options, name)}" for name in sizes]
    peaks = [matmul_gflops(options.peak_size)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    peaks.append(matmul_gflops(options.peak_size))
    fit = json.loads(done.stdout)
    n_candidates = sum(options.columns - step for step in range(options.selected))
    work = n_candidates * options.draws * operations(options.rows)
    return {
        "machine": machine_facts(),
        **{name: getattr(options, name) for name in sizes},
        "fit": fit,
        "peak_gflops": {"before_after": peaks, "taken": max(peaks)},
        "share_of_peak": work / sum(fit["steps_seconds"]) / 1e9 / max(peaks),
    }


def report(results: dict[str, Any]) -> None:
    fit = results["fit"]
    print_facts(results["machine"])
    print(f"{'rows x columns':22s} {results['rows']} x {results['columns']}, {results['dtype']}")
    print(f"{'draws':22s} {results['draws']}")
    print(f"{'selected':22s} {fit['order']}")
    print(f"{'fit':22s} {fit['fit_seconds']:.1f} s, of which steps {sum(fit['steps_seconds']):.1f} s")
    print(f"{'memory of X':22s} {fit['x_mb']:.0f} MB")
    print(f"{'peak beside X':22s} {fit['beside_x_mb']:.0f} MB")
    print(f"{'float32 matmul peak':22s} {results['peak_gflops']['taken']:.0f} GFLOP/s, all cores, in this run")
    print(f"{'share of it, in steps':22s} {results['share_of_peak']:.1%}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--selected", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="of X")
    parser.add_argument("--peak-size", type=int, default=4096, help="of the matrix product")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--here", action="store_true", help="fit in this process, and print no more than its figures")
    options = parser.parse_args(arguments)
    if options.here:
        print(json.dumps(measure(options)))
        return
    results = run(options)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
