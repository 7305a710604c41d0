"""Few samples of many columns: python -m benchmarks.wide.

Columns are selected on the training rows of repeated stratified folds. Three classifiers are trained on the same rows
with these columns, and their accuracy on the rows that are left counts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import machine_facts, mean_and_error, print_facts, save_json
from benchmarks.rankings import METHODS, installed, timed
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.datasets import RealDataset, load_wide

TABLES = ("GLIOMA", "leukemia", "lymphoma", "lung_small", "nci9", "BASEHOCK", "warpAR10P")
OURS = "ngp"
PEERS = ("anova", "forest", "logistic", "mrmr", "lassonet")
SIZES = (10, 30)
N_FOLDS = 4
BEHIND = 0.02

Found = dict[str, Any]


def classifiers(seed: int) -> dict[str, Any]:
    return {
        "ExtraTrees": ExtraTreesClassifier(random_state=seed),
        "k-NN": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "SVC": make_pipeline(StandardScaler(), SVC()),
    }


def run(method: str, table: RealDataset, train: IntArray, test: IntArray, fold: int) -> Found:
    """Rank columns on the training rows, and score the classifiers with the first of them."""
    X, y = table.X, table.y
    order, seconds = timed(method, X[train], y[train], max(SIZES), fold)
    scores = {k: accuracies(X[:, order[:k]], y, train, test, fold) for k in SIZES}
    return {"method": method, "fold": fold, "scores": scores, "seconds": seconds, "order": order}


def accuracies(X: FloatArray, y: AnyArray, train: IntArray, test: IntArray, seed: int) -> dict[str, float]:
    return {
        name: float(model.fit(X[train], y[train]).score(X[test], y[test])) for name, model in classifiers(seed).items()
    }


def measure(table: RealDataset, methods: Sequence[str], options: argparse.Namespace) -> Found:
    """All methods on the same folds."""
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=options.repeats, random_state=options.seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        splits = list(folds.split(table.X, table.y))
    runs = joblib.Parallel(n_jobs=options.jobs)(
        joblib.delayed(run)(method, table, train, test, fold)
        for fold, (train, test) in enumerate(splits)
        for method in methods
    )
    return {"rows": len(table.X), "columns": table.X.shape[1], **summary(runs, methods), "runs": runs}


def summary(runs: Sequence[Found], methods: Sequence[str]) -> Found:
    """Mean accuracies over folds and classifiers by number of columns, and mean seconds, of each method."""
    found: Found = {"accuracy": {k: {} for k in SIZES}, "seconds": {}}
    for method in methods:
        own = [each for each in runs if each["method"] == method]
        for k in SIZES:
            found["accuracy"][k][method] = mean_and_error([float(np.mean(list(e["scores"][k].values()))) for e in own])
        found["seconds"][method] = float(np.mean([each["seconds"] for each in own]))
    return found


def overall(tables: Found, methods: Sequence[str]) -> dict[str, float]:
    """Mean over all tables and numbers of columns."""
    cells = [found["accuracy"][k] for found, k in product(tables.values(), SIZES)]
    return {method: float(np.mean([cell[method]["mean"] for cell in cells])) for method in methods}


def behind(tables: Found, methods: Sequence[str]) -> list[Found]:
    """Where the best of the other methods is better by more than `BEHIND`."""
    found = []
    for name, k in product(tables, SIZES):
        means = {method: tables[name]["accuracy"][k][method]["mean"] for method in methods}
        best = max((method for method in methods if method != OURS), key=means.__getitem__, default=OURS)
        if means[best] - means[OURS] > BEHIND:
            found.append({"table": name, "k": k, "best": best, "difference": means[OURS] - means[best]})
    return found


def show(name: str, found: Found, methods: Sequence[str]) -> None:
    for k in SIZES:
        means = "".join(f"{found['accuracy'][k][method]['mean']:>11.3f}" for method in methods)
        print(f"{name:12s}{k:4d}{means}")
    print(f"{'':9s}seconds" + "".join(f"{found['seconds'][method]:>11.1f}" for method in methods), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="other methods")
    parser.add_argument("--repeats", type=int, default=2, help=f"of {N_FOLDS} folds")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    plan = {"repeats": options.repeats, "folds": N_FOLDS, "seed": options.seed}
    results: Found = {"machine": machine_facts(), "plan": plan, "left_out": {}, "tables": {}}
    print_facts(results["machine"])
    methods = installed([OURS, *options.peers])
    print(f"\n{'':12s}{'k':>4s}" + "".join(f"{method:>11s}" for method in methods))
    for name in options.tables:
        try:
            table = load_wide(name)
        except OSError as error:
            results["left_out"][name] = str(error)
            print(f"{name}: LEFT OUT. {error}", flush=True)
            continue
        results["tables"][name] = measure(table, methods, options)
        show(name, results["tables"][name], methods)
        results |= {"overall": overall(results["tables"], methods), "behind": behind(results["tables"], methods)}
        save_json(options.json, results)
    if results["tables"]:
        print(f"{'mean':16s}" + "".join(f"{results['overall'][method]:>11.3f}" for method in methods))
    for each in results.get("behind", []):
        best = METHODS[each["best"]].title
        print(f"NGP is behind: {each['table']}, k = {each['k']}: {each['difference']:+.3f} to {best}")


if __name__ == "__main__":
    main()
