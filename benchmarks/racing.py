"""Does a race change what is selected: python -m benchmarks.racing.

In every step of a fit, all candidates are also trained with all layers, from the same selection and with the same
ridge; of an MLP, with all networks and epochs. Counted are the kept steps whose pick is the same.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.designs import DESIGNS
from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, IntArray
from ngp.datasets import load_wide
from ngp.greedy.candidates import Found, Search

TABLES: dict[str, Callable[[], Any]] = {
    "wine": partial(load_wine, return_X_y=True),
    "breast cancer table": partial(load_breast_cancer, return_X_y=True),
    "diabetes table": partial(load_diabetes, return_X_y=True),
    "digits": partial(load_digits, return_X_y=True),
    "lymphoma": lambda: load_wide("lymphoma")[:2],
}

Race = Callable[..., Found]


def data_of(name: str, seed: int) -> tuple[AnyArray, AnyArray, str]:
    if name in TABLES:
        return *TABLES[name](), "auto"
    data = DESIGNS[name].draw(seed)
    return data.X, data.y, DESIGNS[name].task


def run(name: str, predictor: str, seed: int) -> dict[str, Any]:
    """One fit: for each kept step whether the pick is that of all layers, and by how much its loss is higher."""
    X, y, task = data_of(name, seed)
    races: list[tuple[frozenset[int], int, int, float]] = []
    race: Race = Search._race

    def both(self: Search, scorer: Any, selected: IntArray, candidates: Any, *others: Any) -> Found:
        found = race(self, scorer, selected, candidates, *others)
        with patch.object(type(scorer), "stages", property(lambda self: (self,))):
            whole = race(self, scorer, selected, candidates, others[0], None)
        means = whole.losses.means
        picks = (int(candidates.names[each.best]) for each in (found, whole))
        races.append((frozenset(selected.tolist()), *picks, float(means[found.best] / means[whole.best] - 1)))
        return found

    with warnings.catch_warnings(), patch.object(Search, "_race", both):
        warnings.simplefilter("ignore")
        selector = NeuralGreedyPursuit(predictor, task=task, cv=5, device="cpu", n_jobs=1, random_state=seed)
        selector.fit(X, y)
    steps, selected = [], frozenset[int]()
    for group in selector.order_.tolist():
        last = [each for each in races if each[:2] == (selected, group)]
        steps += [{"same": each[1] == each[2], "excess": each[3]} for each in last[-1:]]
        selected |= {group}
    return {"seed": seed, "steps": steps}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.racing", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--designs", nargs="+", choices=[*DESIGNS, *TABLES], default=[*DESIGNS, *TABLES])
    parser.add_argument("--predictor", choices=["ssfn", "mlp"], default="ssfn")
    parser.add_argument("--runs", type=int, default=5, help="of each design, and seeds of each table")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {"machine": machine_facts(), "designs": {}}
    print_facts(results["machine"])
    print(f"\n{'':22s}{'kept steps':>12s}{'same pick':>12s}{'largest excess':>16s}")
    seeds = range(options.first_seed, options.first_seed + options.runs)
    for name in options.designs:
        tasks = (joblib.delayed(run)(name, options.predictor, seed) for seed in seeds)
        runs = joblib.Parallel(n_jobs=options.jobs)(tasks)
        results["designs"][name] = {**summary(runs), "runs": runs}
        show(name, results["designs"][name])
        save_json(options.json, results)
    results["all"] = summary([each for found in results["designs"].values() for each in found["runs"]])
    show("all", results["all"])
    save_json(options.json, results)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many kept steps there are, how many have the pick of all layers, and the largest relative excess loss."""
    steps = [step for each in runs for step in each["steps"]]
    excess = float(np.max([step["excess"] for step in steps], initial=0))
    return {"n_steps": len(steps), "n_same": sum(step["same"] for step in steps), "largest_excess": excess}


def show(name: str, found: dict[str, Any]) -> None:
    print(f"{name:22s}{found['n_steps']:12d}{found['n_same']:12d}{found['largest_excess']:16.1%}", flush=True)


if __name__ == "__main__":
    main()
