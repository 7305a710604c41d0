"""Whole fits of this tree beside those of another revision, for benchmarks.speed --beside REV and benchmarks.default.

Each side is a process that imports `ngp` from its own tree. Both hold the same data and fit in turn, A B, B A, A B, so
that a slow spell of the machine hits both. Everything goes through the public API, so that revisions with other modules
can be compared. There are several pairs of processes, because a process can be slow by chance (its memory's layout).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter, process_time
from typing import IO, Any

ROOT = Path(__file__).parents[1]


def one_draw() -> Any:
    from ngp.predictors import SSFN

    return SSFN(n_draws=1)


def small_mlp() -> Any:
    from ngp.predictors import MLP

    return MLP(n_units=100, epochs=3)


# A case: J, P and the number of classes (0: regression), the selector's parameters, its predictor or how to make it.
Case = tuple[tuple[int, int, int], Mapping[str, Any], Any]
QUICK_CASES: dict[str, Case] = {
    "J=300 P=500 N=5": ((300, 500, 0), {"n_features_to_select": 5}, one_draw),
    "J=300 P=500 N=5, one thread": ((300, 500, 0), {"n_features_to_select": 5, "n_jobs": 1}, one_draw),
    "J=300 P=5000 N=1": ((300, 5000, 0), {"n_features_to_select": 1}, one_draw),
    "J=2000 P=300 N=2": ((2000, 300, 0), {"n_features_to_select": 2}, one_draw),
    "J=150 P=20, all defaults": ((150, 20, 0), {}, "ssfn"),
    "J=300 P=200 N=2, 4 classes": ((300, 200, 4), {"n_features_to_select": 2}, one_draw),
}
CASES: dict[str, Case] = QUICK_CASES | {
    "J=300 P=50000 N=1": ((300, 50_000, 0), {"n_features_to_select": 1}, one_draw),
    "J=20000 P=100 N=1": ((20_000, 100, 0), {"n_features_to_select": 1}, one_draw),
    "J=60 P=1000 N=2": ((60, 1000, 0), {"n_features_to_select": 2}, "ssfn"),
    "J=300 P=300 N=2, leave-one-out": ((300, 300, 0), {"n_features_to_select": 2, "cv": "loo"}, one_draw),
    "J=300 P=100 N=4, floating": ((300, 100, 0), {"n_features_to_select": 4, "floating": True}, "ssfn"),
    "J=300 P=20000 N=3, screened": ((300, 20_000, 0), {"n_features_to_select": 3, "screen": "auto"}, "ssfn"),
    "J=300 P=100 N=2, kernel": ((300, 100, 0), {"n_features_to_select": 2}, "kernel"),
    "J=200 P=20 N=1, MLP": ((200, 20, 0), {"n_features_to_select": 1}, small_mlp),
}

# A selector, X and y, and X and y of held-out rows if there are some.
Prepared = tuple[Any, Any, Any, tuple[Any, Any] | None]


# ---------------------------------------------------------------- one side, in a process of its own


def serve(source: Path) -> None:
    """Fit what standard input asks for, and answer with the seconds; nothing of `benchmarks` is imported here."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not end up among the answers
    import ngp

    if not Path(ngp.__file__).is_relative_to(source):
        raise SystemExit(f"ngp was imported from {ngp.__file__}, not from {source}")
    prepared: dict[str, Prepared] = {}
    for line in sys.stdin:
        name, number = json.loads(line)
        if name not in prepared:
            prepared[name] = prepare(CASES[name]) if name in CASES else read_case(Path(name))
        selector, X, y, test = prepared[name]
        start, cpu_start = perf_counter(), process_time()
        for _ in range(number):
            selector.fit(X, y)
        answer = {
            "fit": (perf_counter() - start) / number,
            "cpu": (process_time() - cpu_start) / number,
            "steps": sum(step.seconds for step in selector.path_),
            "order": selector.order_.tolist(),
            "score": None if test is None else selector.score(*test),
        }
        print(json.dumps(answer), file=answers, flush=True)


def prepare(case: Case) -> Prepared:
    """A selector and random data."""
    import numpy as np

    (n_samples, n_features, n_classes), parameters, predictor = case
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    signal = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + np.abs(X[:, 4])
    y: Any = signal + 0.3 * rng.standard_normal(n_samples)
    if n_classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    made = predictor() if callable(predictor) else predictor
    return make_selector(y, predictor=made, **{"n_jobs": -1, "random_state": 0} | dict(parameters)), X, y, None


def make_selector(y: Any, **parameters: Any) -> Any:
    """A selector that predicts; NeuralGreedyPursuit did in trees that have no others."""
    import ngp

    kind = "NGPClassifier" if y.dtype.kind in "iu" else "NGPRegressor"
    return getattr(ngp, kind, ngp.NeuralGreedyPursuit)(**parameters)


def write_case(file: Path, parameters: Mapping[str, Any], X: Any, y: Any, test: tuple[Any, Any] | None) -> None:
    """Write a case with data of its own, whose name is that of the file."""
    import numpy as np

    held_out = {} if test is None else {"X_test": test[0], "y_test": test[1]}
    np.savez(file, parameters=json.dumps(dict(parameters)), X=X, y=y, **held_out)


def read_case(file: Path) -> Prepared:
    """A selector and the data in a file."""
    import numpy as np

    with np.load(file) as case:
        test = (case["X_test"], case["y_test"]) if "X_test" in case else None
        return make_selector(case["y"], **json.loads(str(case["parameters"]))), case["X"], case["y"], test


class Side:
    """A process that fits with the `ngp` of one tree."""

    def __init__(self, tree: Path) -> None:
        source = tree / "src"
        # -P: the folder of this file is no place to import from
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(source)],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fit(self, name: str, number: int) -> dict[str, Any]:
        """Seconds of a fit, of its steps alone and of the processor, the order of what was selected, the score."""
        requests, answers = self._pipes()
        requests.write(json.dumps([name, number]) + "\n")
        requests.flush()
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"the process that fits {name!r} ended with status {self._process.wait()}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def close(self) -> None:
        for pipe in self._pipes():
            pipe.close()
        self._process.wait()


# ---------------------------------------------------------------- both sides


def compare(revision: str, *, quick: bool, repetitions: int | None = None) -> dict[str, Any]:
    """Time all cases with this tree and with a revision; ratios below 1 mean that this tree is faster."""
    cases = QUICK_CASES if quick else CASES
    processes, turns = (2, repetitions or 4) if quick else (4, repetitions or 8)
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
    build(ROOT)
    with checkout(revision) as tree:
        build(tree)
        for process in range(processes):
            with both_sides(tree) as sides:
                for name in cases:
                    taken[name] += take_turns(sides, name, turns, warm_up(sides, name))
                    print(f"\r{process + 1} of {processes}: {name:40s}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    commit = git("rev-parse", "--short", revision)
    return {
        "beside": commit,
        "processes": processes,
        "turns": turns,
        "cases": {n: summary(t) for n, t in taken.items()},
    }


@contextmanager
def both_sides(tree: Path) -> Iterator[dict[str, Side]]:
    """Processes of this tree and of another one, for the time being."""
    sides = {"this": Side(ROOT), "other": Side(tree)}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.close()


def warm_up(sides: Mapping[str, Side], name: str) -> int:
    """Fit once, for data, compilation and caches; how often quick fits are to be repeated to take 0.1 s."""
    first = max(side.fit(name, 1)["fit"] for side in sides.values())
    return max(1, round(0.1 / first)) if first < 0.1 else 1


def take_turns(sides: Mapping[str, Side], name: str, turns: int, number: int = 1) -> list[dict[str, Any]]:
    """Fit by both sides, `turns` times, each time `number` fits; whoever is first is second the next time."""
    found = []
    for turn in range(turns):
        order = list(sides) if turn % 2 == 0 else list(sides)[::-1]
        answers = {side: sides[side].fit(name, number) for side in order}
        found.append(answers)
    return found


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of both sides, and the ratios of this tree to the other one: of pairs, their median; of the quickest."""

    def ratios(part: str) -> dict[str, Any]:
        this, other = ([turn[side][part] for turn in turns] for side in ("this", "other"))
        pairs = sorted(a / b for a, b in zip(this, other, strict=True))
        return {
            "seconds": median(this),
            "other_seconds": median(other),
            "ratio": median(pairs),
            "quartiles": [pairs[len(pairs) // 4], pairs[-1 - len(pairs) // 4]],
            "ratio_of_quickest": min(this) / min(other),
        }

    same = all(turn["this"]["order"] == turn["other"]["order"] for turn in turns)
    return {part: ratios(part) for part in ("fit", "steps", "cpu")} | {"same_order": same}


def report(results: Mapping[str, Any]) -> None:
    """Print a line a case. On a busy machine the processor's seconds and the quickest fits say more than medians."""
    print(f"\nThis tree beside {results['beside']}: ratios of time, below 1 where this tree is faster.")
    print(
        f"{results['processes']} processes a side, {results['turns']} fits each, in turn; steps: without the final fit."
    )
    head = f"{'':32s} {'ms':>8s} {'other':>8s} | {'fit: median [quartiles]':24s} {'min':>6s}"
    print(head + "".join(f" | {part:>6s} {'min':>6s}" for part in ("steps", "cpu")))
    for name, case in results["cases"].items():
        fit = case["fit"]
        quartiles = "[{:.3f}, {:.3f}]".format(*fit["quartiles"])
        line = f"{name:32s} {fit['seconds'] * 1e3:8.1f} {fit['other_seconds'] * 1e3:8.1f} | "
        line += f"{fit['ratio']:7.3f} {quartiles:16s} {fit['ratio_of_quickest']:6.3f}"
        for part in ("steps", "cpu"):
            line += f" | {case[part]['ratio']:6.3f} {case[part]['ratio_of_quickest']:6.3f}"
        print(line + ("" if case["same_order"] else "  other features are selected"))
    quickest = geometric_mean(case["fit"]["ratio_of_quickest"] for case in results["cases"].values())
    print(f"{'geometric mean':32s} {'':17s} | {'':24s} {quickest:6.3f}")


# ---------------------------------------------------------------- trees


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A worktree of the revision, for the time being."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree").resolve()
        git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def build(tree: Path) -> None:
    """Compile the kernel of a tree into it, and make sure that it is there."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, stdout=subprocess.DEVNULL, check=True)
    if not [*tree.glob("src/ngp/**/_kernels*.so"), *tree.glob("src/ngp/**/_kernels*.pyd")]:
        raise RuntimeError(f"no compiled kernel in {tree}: is there a C compiler?")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
