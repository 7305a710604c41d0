"""Columns that matter only together: python -m benchmarks.nonlinear.

The data of Passemiers et al., "A quantitative benchmark of neural network feature selection methods for detecting
nonlinear signals", Scientific Reports 2024: the class depends on a ring, an exclusive or and a sum of a few of up to
2,048 columns. Columns are selected on five of six parts of the rows. What counts is the share of the p relevant columns
among the first p, and among the first 2p.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.model_selection import KFold

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.rankings import METHODS, installed, timed
from ngp._types import BoolArray, FloatArray, IntArray

SAMPLES = (1000, 500, 250)
COLUMNS = (2, 4, 6, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
N_FOLDS = 6
PEERS = ("forest", "mrmr", "tree-shap", "lassonet", "boruta", "k-nn")
MEASURES = ("best_p", "best_2p", "seconds")
# Shares among the first p, means over all numbers of columns. Of fewer than 1,000 samples the best method's alone.
PUBLISHED = {
    1000: {
        "random forest": (1.0, 0.545, 0.888, 0.853),
        "TreeSHAP": (1.0, 0.402, 0.817, 0.783),
        "mRMR": (1.0, 0.114, 0.817, 0.747),
        "LassoNet": (0.348, 0.818, 0.446, 0.642),
        "Relief": (0.402, 0.727, 0.371, 0.439),
        "DeepPINK": (0.212, 0.341, 0.212, 0.483),
    },
    500: {"best": (0.985, 0.727, 0.658, 0.644)},
    250: {"best": (0.879, 0.636, 0.383, 0.514)},
}

Found = dict[str, Any]


class Generator(NamedTuple):
    """The number of relevant columns, which come first, and the class of each row."""

    n_relevant: int
    label: Callable[[FloatArray, np.random.Generator], BoolArray]


def in_ring(a: FloatArray, b: FloatArray, width: float) -> BoolArray:
    inside: BoolArray = np.abs(np.hypot(a - 0.5, b - 0.5) - 0.35) <= width
    return inside


def in_corners(a: FloatArray, b: FloatArray, least: float) -> BoolArray:
    inside: BoolArray = (a - 0.5) * (0.5 - b) >= least
    return inside


def ring(X: FloatArray, rng: np.random.Generator) -> BoolArray:
    return in_ring(X[:, 0], X[:, 1], 0.1151)


def xor(X: FloatArray, rng: np.random.Generator) -> BoolArray:
    return in_corners(X[:, 0], X[:, 1], 0.0)


def ring_xor(X: FloatArray, rng: np.random.Generator) -> BoolArray:
    return in_ring(X[:, 0], X[:, 1], 0.0704) | in_corners(X[:, 2], X[:, 3], 0.0337)


def ring_xor_sum(X: FloatArray, rng: np.random.Generator) -> BoolArray:
    total = X[:, 4] + X[:, 5] + 0.2 * rng.normal(size=len(X))
    return in_ring(X[:, 0], X[:, 1], 0.0479) | in_corners(X[:, 2], X[:, 3], 0.0598) | (total >= 1.4074)


GENERATORS: dict[str, Generator] = {
    "ring": Generator(2, ring),
    "xor": Generator(2, xor),
    "ring+xor": Generator(4, ring_xor),
    "ring+xor+sum": Generator(6, ring_xor_sum),
}


def draw(name: str, n: int, m: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Columns from -1 to 1, and classes."""
    rng = np.random.default_rng([seed, n, m])
    X = rng.random((n, m))
    return 2 * X - 1, GENERATORS[name].label(X, rng).astype(np.intp)


def run(method: str, name: str, n: int, m: int, fold: int, seed: int) -> Found:
    """Select on all rows but one part; the columns are in another order each time."""
    X, y = draw(name, n, m, seed)
    train, _ = list(KFold(N_FOLDS).split(X))[fold]
    columns = np.random.default_rng([seed, n, m, fold]).permutation(m)
    p = GENERATORS[name].n_relevant
    ranked, seconds = timed(method, X[np.ix_(train, columns)], y[train], min(2 * p, m), fold)
    order = columns[ranked].tolist()
    shares = {f"best_{title}": sum(c < p for c in order[:k]) / p for title, k in (("p", p), ("2p", 2 * p))}
    return {**shares, "seconds": seconds, "order": order}


def measure(method: str, name: str, n: int, m: int, options: argparse.Namespace) -> Found:
    """All folds of a cell."""
    folds = joblib.Parallel(n_jobs=options.jobs)(
        joblib.delayed(run)(method, name, n, m, fold, options.seed) for fold in range(options.folds)
    )
    means = {measure: float(np.mean([each[measure] for each in folds])) for measure in MEASURES}
    return {"method": method, "generator": name, "n": n, "m": m, **means, "folds": folds}


def measure_columns(method: str, name: str, n: int, options: argparse.Namespace) -> list[Found]:
    """All numbers of columns, in ascending order, until a selection takes too long."""
    cells: list[Found] = []
    for m in sorted(options.m):
        if m < GENERATORS[name].n_relevant:
            continue
        slowest = max((fold["seconds"] for fold in cells[-1]["folds"]), default=0.0) if cells else 0.0
        if slowest > options.most_seconds:
            print(f"{n:6d} {name:14s}{METHODS[method].title:26s}{m:6d}  left out: {slowest:.0f} s with fewer columns")
            break
        cells.append(cell := measure(method, name, n, m, options))
        print(
            f"{n:6d} {name:14s}{METHODS[method].title:26s}{m:6d}{cell['best_p']:8.1%}{cell['best_2p']:8.1%}"
            f"{cell['seconds']:9.1f}",
            flush=True,
        )
    return cells


def summary(cells: Sequence[Found]) -> list[Found]:
    """Means over the numbers of columns."""
    rows = []
    for n, name, method in dict.fromkeys((cell["n"], cell["generator"], cell["method"]) for cell in cells):
        own = [cell for cell in cells if (cell["n"], cell["generator"], cell["method"]) == (n, name, method)]
        means = {measure: float(np.mean([cell[measure] for cell in own])) for measure in MEASURES}
        rows.append({"n": n, "generator": name, "method": method, "m": [cell["m"] for cell in own], **means})
    return rows


def report(results: Found) -> None:
    """Print the means; a star marks those over fewer numbers of columns than NGP's."""
    rows = {(row["n"], row["generator"], row["method"]): row for row in results["means"]}
    for n in dict.fromkeys(row["n"] for row in results["means"]):
        print(f"\n{n} samples: share among the first p / 2p, %, mean over the numbers of columns")
        print(" " * 26 + "".join(f"{name:>16s}" for name in GENERATORS))
        for method in dict.fromkeys(row["method"] for row in results["means"]):
            cells = [cell(rows.get((n, name, method)), rows.get((n, name, "ngp"))) for name in GENERATORS]
            print(f"{METHODS[method].title:26s}" + "".join(f"{each:>16s}" for each in cells))
        for title, shares in PUBLISHED.get(n, {}).items():
            published = "".join(f"{100 * share:10.1f}      " for share in shares)
            print(f"{'published: ' + title:26s}" + published.rstrip())
    print("* not with as many columns as NGP, as that would have taken too long")


def cell(row: Found | None, ngp: Found | None) -> str:
    if row is None:
        return "–"
    star = "*" if ngp is not None and row["m"] != ngp["m"] else " "
    return f"{100 * row['best_p']:.1f} / {100 * row['best_2p']:.1f}{star}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--generators", nargs="+", choices=GENERATORS, default=list(GENERATORS))
    parser.add_argument("--n", type=int, nargs="+", default=list(SAMPLES), help="numbers of samples")
    parser.add_argument("--m", type=int, nargs="+", default=list(COLUMNS), help="numbers of columns")
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS, help="how many of the six")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=[], help="other methods on the same data")
    parser.add_argument("--most-seconds", type=float, default=600, help="a slower method gets no more columns")
    parser.add_argument("--seed", type=int, default=0, help="of the data")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    plan = {name: getattr(options, name) for name in ("folds", "most_seconds", "seed")}
    results: Found = {"machine": machine_facts(), "plan": plan, "published": PUBLISHED, "means": [], "cells": []}
    print_facts(results["machine"])
    methods = installed(["ngp", *options.peers])
    print(f"\n{'n':>6s} {'':40s}{'m':>6s}{'p':>8s}{'2p':>8s}{'seconds':>9s}")
    for n in options.n:
        for name in options.generators:
            for method in methods:
                results["cells"] += measure_columns(method, name, n, options)
                results["means"] = summary(results["cells"])
                save_json(options.json, results)
    report(results)


if __name__ == "__main__":
    main()
