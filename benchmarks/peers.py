"""NGP beside its peers, as they come from PyPI: python -m benchmarks.peers.

The same work: forward selection with a network of the paper's size, by scikit-learn's and mlxtend's sequential
selectors and by NGP (benchmarks.peer_work). Then selections on the same data and folds, with the number of columns
told, or by each method's own rule (benchmarks.peer_methods): what is found, how well the same trees predict fresh rows
with it, time and memory. benchmarks.peer_tables makes tables of what is written.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.common import machine_facts, mean_and_error, print_facts, save_json
from benchmarks.designs import Real
from benchmarks.peer_methods import METHODS, is_installed, versions
from benchmarks.peer_runs import DESIGNS, USUAL, Task, import_once, run
from benchmarks.peer_tables import NGP, ROUNDING, design_text, work_text
from benchmarks.peer_work import PEERS, Work, same_work

MEASURES = ("fpsr", "fnsr", "f1", "n_selected", "score", "seconds", "mb")
COMPARED = ("f1", "score")

Found = dict[str, Any]


class Ledger:
    """What each method has used up on a design: none begins again that is over its limit or its budget."""

    def __init__(self, limit: float, budget: float) -> None:
        self.limit, self.budget = limit, budget
        self.spent: Counter[tuple[str, ...]] = Counter()
        self.lock = Lock()

    def run(self, task: Task) -> Found | None:
        with self.lock:
            if self.spent[task[:-1]] >= self.budget:
                return None
        found = run(task, self.limit)
        with self.lock:
            # What didn't end in one run isn't tried in the next: it would take as long for nothing.
            self.spent[task[:-1]] += float("inf") if found["status"] == "not ended" else found.get("seconds", 0.0)
        return found


def measure(name: str, methods: Sequence[str], seeds: range, ledger: Ledger, jobs: int) -> Found:
    """All methods on a design, in turn for each seed."""
    design, told = DESIGNS[name]
    fitting = [method for method in methods if design.task in METHODS[method].tasks]
    rows = [(method, rule) for method in fitting for rule in METHODS[method].rules]
    tasks = [Task(name, method, rule, seed) for seed in seeds for method, rule in rows]
    with ThreadPoolExecutor(jobs) as pool:
        runs = [found for found in pool.map(ledger.run, tasks) if found is not None]
    X, _, relevant, *_ = design.draw(seeds[0])
    return {
        "n_rows": len(X),
        "n_columns": X.shape[1],
        "n_relevant": len(relevant),
        "known": not isinstance(design, Real),
        "task": design.task,
        "told": told,
        "rows": [summary(method, rule, runs) for method, rule in rows],
        "comparisons": comparisons(runs, rows),
        "runs": runs,
    }


def summary(method: str, rule: str, runs: Sequence[Found]) -> Found:
    """Means over the runs that ended, and what became of the others."""
    own = of_row(runs, method, rule)
    ended = [each for each in own if each["status"] == "ended"]
    means = {measure: mean_and_error([each[measure] for each in ended]) for measure in MEASURES}
    return {
        "method": method,
        "rule": rule,
        "n_runs": len(ended),
        "n_not_ended": sum(each["status"] == "not ended" for each in own),
        "n_failed": sum(each["status"] == "failed" for each in own),
        "error": next((each["error"] for each in own if each["status"] == "failed"), None),
        **means,
    }


def of_row(runs: Sequence[Found], method: str, rule: str) -> list[Found]:
    return [each for each in runs if (each["method"], each["rule"]) == (method, rule)]


def comparisons(runs: Sequence[Found], rows: Sequence[tuple[str, str]]) -> list[Found]:
    """Each peer less NGP that is told as much, over the runs that both have ended."""
    found = []
    for method, rule in rows:
        ours = {each["seed"]: each for each in of_row(runs, NGP, rule) if each["status"] == "ended"}
        theirs = [each for each in of_row(runs, method, rule) if each["status"] == "ended" and each["seed"] in ours]
        for measure in COMPARED:
            pairs = [(each[measure], ours[each["seed"]][measure]) for each in theirs]
            if method == NGP or not pairs or pairs[0][0] is None:
                continue
            difference = mean_and_error([peer - ngp for peer, ngp in pairs])
            assert difference is not None
            better = difference["mean"] > ROUNDING
            row = {"method": method, "rule": rule, "measure": measure, "n_runs": len(pairs)}
            found.append({**row, **difference, "better": better})
    return found


def without_missing(methods: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The methods that can run, and a line for each package that isn't installed."""
    modules = {METHODS[name].package: METHODS[name].module for name in methods}
    lines = {
        package: f"{package}: not installed (pip install {package}), left out"
        for package, module in modules.items()
        if not is_installed(module)
    }
    return [name for name in methods if METHODS[name].package not in lines], lines


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    methods, left_out = without_missing(options.methods)
    import_once(methods)
    results: Found = {
        "machine": machine_facts() | versions(methods),
        "settings": {
            name: getattr(options, name) for name in ("runs", "first_seed", "limit", "budget", "jobs", "repetitions")
        },
        "methods": {name: settings(name) for name in methods},
        "left_out": left_out,
        "designs": {},
    }
    print_facts(results["machine"])
    print(*left_out.values(), sep="\n", flush=True)
    if options.repetitions:
        work = Work(repetitions=options.repetitions, is_whole=options.whole, device=options.device)
        results["same_work"] = same_work(work)
        print(work_text(results["same_work"]), flush=True)
    save_json(options.json, results)
    seeds = range(options.first_seed, options.first_seed + options.runs)
    for name in options.designs if options.runs else ():
        ledger = Ledger(options.limit, options.budget)
        found = measure(name, methods, seeds, ledger, options.jobs)
        results["designs"][name] = {key: value for key, value in found.items() if key != "runs"}  # they'd be most of it
        print(design_text(name, results), flush=True)
        save_json(options.json, results)


def settings(name: str) -> dict[str, str]:
    method = METHODS[name]
    return {"package": method.package, "version": versions([name])[method.package], "settings": method.settings}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(USUAL))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=int, default=10, help="of each method on each design; 0: the same work alone")
    parser.add_argument("--first-seed", type=int, default=9000, help="the runs have this seed and those that follow")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a selection may take")
    parser.add_argument(
        "--budget", type=float, default=100, help="seconds of a method on a design after which it begins no further run"
    )
    parser.add_argument("--jobs", type=int, default=1, help="selections at a time, each with one thread")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=3,
        help=f"of the same work, by NGP and {' and '.join(PEERS)}; 0 leaves it out",
    )
    parser.add_argument("--whole", action="store_true", help="peers do the same work in full, too: 15 minutes")
    parser.add_argument("--device", default="cpu", help="of NGP in the same work; the selections are made on the CPU")
    options = parser.parse_args(arguments)
    if NGP not in options.methods:
        print(f"{NGP} is not among the methods: nothing is compared with it", file=sys.stderr)
    return options


if __name__ == "__main__":
    main()
