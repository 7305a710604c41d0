"""Hand-written kernels beside the plain torch operations that would replace them: python -m benchmarks.triton.

One step of a pursuit at several sizes, by each path in turn. SSFN on a GPU: the Triton kernels and plain operations.
MLP: the Triton kernel (the C kernel with ``--device cpu``) and stacked networks. `ratio` is the time of the plain path
over that of our own kernel; `first_s` is the first call, which compiles and loads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.common import machine_facts, print_facts, save_json, side_by_side
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.scoring_torch import LayerStack
from ngp.predictors import MLP, SSFN, ColumnSets
from ngp.predictors.networks import MLPScorer, NetworkScorer
from ngp.predictors.ssfn import SSFNGpuScorer

N_SELECTED = 10
# Each path runs for about so many seconds at a size, and at least twice after its warm-up.
SECONDS, MOST_REPETITIONS = 2.0, 30


class Size(NamedTuple):
    predictor: SSFN | MLP
    rows: int
    columns: int
    classes: int = 0  # of a classification
    cv: Any = 5


def ssfn(n_draws: int, *size: int, **settings: Any) -> Size:
    return Size(SSFN(n_draws=n_draws), *size, **settings)


SIZES = {
    "SSFN, J=300, P=500, 1 layer": ssfn(1, 300, 500),
    "SSFN, J=300, P=500, 8 layers": ssfn(8, 300, 500),
    "SSFN, J=1000, P=784, Q=10, 1 layer": ssfn(1, 1000, 784, 10),
    "SSFN, J=1000, P=784, Q=10, 8 layers": ssfn(8, 1000, 784, 10),
    "SSFN, J=5000, P=500, 1 layer": ssfn(1, 5000, 500),
    "SSFN, J=5000, P=500, 8 layers": ssfn(8, 5000, 500),
    "SSFN, J=60000, P=784, Q=10, 1 layer": ssfn(1, 60_000, 784, 10, cv=0.2),
    "SSFN, J=300, P=100000, 1 layer": ssfn(1, 300, 100_000),
    "SSFN, J=300, P=100000, 8 layers": ssfn(8, 300, 100_000),
    "MLP, J=300, P=500, 100 units": Size(MLP(n_units=100), 300, 500),
    "MLP, J=300, P=500, 500 units": Size(MLP(n_units=500), 300, 500),
    "MLP, J=300, P=500, Q=10, 100 units": Size(MLP(n_units=100), 300, 500, 10),
}
TINY = {
    "SSFN, J=60, P=20, 2 layers": ssfn(2, 60, 20),
    "MLP, J=300, P=200, 100 units": Size(MLP(n_units=100), 300, 200),
}


def problem_of(size: Size) -> Problem:
    """Noise: the time of a step doesn't depend on what is learned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size.rows, size.columns), dtype=np.float32)
    y = rng.integers(0, size.classes, size.rows) if size.classes else rng.standard_normal(size.rows)
    is_mlp = size.classes and isinstance(size.predictor, MLP)
    loss = "cross_entropy" if is_mlp else "squared_error"
    return make_problem(X, y, groups=make_groups(None, size.columns), cv=size.cv, loss=loss)


def ssfn_paths(device: str) -> dict[str, dict[str, Any]]:
    """Methods of the scorer that force each path."""
    paths = {"torch": {"_stack_class": lambda *_: LayerStack}}
    if device == "cuda":
        from ngp.kernels.scoring_triton import FusedStack

        paths["Triton"] = {"_stack_class": lambda *_: FusedStack}
    return paths


def step_of(size: Size, problem: Problem, device: str, methods: dict[str, Any]) -> Callable[[], Any]:
    """One step by one path, with a scorer of its own."""
    seed = 0
    if isinstance(size.predictor, MLP):
        owner: type = MLPScorer
        scorer: Any = MLPScorer(size.predictor, problem, seed, 1, device)
    else:
        owner, scorer = SSFNGpuScorer, SSFNGpuScorer(size.predictor, problem, seed, 1, device)
    selected = np.arange(N_SELECTED)
    candidates = ColumnSets.singles(np.arange(N_SELECTED, size.columns)).with_empty()

    def step() -> Any:
        with patch.multiple(owner, **methods) if methods else nullcontext():
            losses = scorer.add_losses(selected, candidates).means
        if device == "cuda":
            torch.cuda.synchronize()
        return losses

    return step


def measure(size: Size, device: str) -> dict[str, Any]:
    """First call, best and median seconds of each path, and how far the losses are apart."""
    problem, kernel = problem_of(size), "Triton" if device == "cuda" else "C"
    if isinstance(size.predictor, MLP):
        paths: dict[str, dict[str, Any]] = {"torch": {"estimates": NetworkScorer.estimates}, kernel: {}}
    else:
        paths = ssfn_paths(device)
    steps = {name: step_of(size, problem, device, methods) for name, methods in paths.items()}
    first, losses, warm = {}, {}, {}
    for name, step in steps.items():
        start = perf_counter()
        losses[name] = step()
        first[name] = perf_counter() - start
        start = perf_counter()
        step()
        warm[name] = perf_counter() - start
    repetitions = int(np.clip(SECONDS / max(warm.values()), 2, MOST_REPETITIONS))
    seconds = side_by_side(steps, repetitions)
    best = {name: min(each) for name, each in seconds.items()}
    return {
        "seconds": best,
        "median_s": {name: float(np.median(each)) for name, each in seconds.items()},
        "first_s": first,
        "repetitions": repetitions,
        "largest_difference": max(float(np.abs(each / losses["torch"] - 1).max()) for each in losses.values()),
        "ratio": best["torch"] / best[kernel] if kernel in best else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: two small sizes only")
    parser.add_argument("--only", help="sizes whose name contains this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    facts, results = machine_facts(), {}
    print_facts(facts)
    sizes = SIZES if options.device == "cuda" else TINY
    for name, size in sizes.items():
        if options.only in (None, "") or options.only in name:
            results[name] = found = measure(size, options.device)
            print(f"\n{name} ({found['repetitions']} times, losses within {found['largest_difference']:.1e})")
            for path, best in found["seconds"].items():
                print(f"  {path:20s} {best:10.5f} s, median {found['median_s'][path]:10.5f} s, "
                      f"first call {found['first_s'][path]:8.3f} s")  # fmt: skip
            if found["ratio"] is not None:
                print(f"  plain / own kernels  {found['ratio']:10.2f}", flush=True)
    save_json(options.json, {"machine": facts, "results": results})


if __name__ == "__main__":
    main()
