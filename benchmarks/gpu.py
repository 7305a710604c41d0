"""SSFN candidates on a CUDA device: python -m benchmarks.gpu [--only NAME] [--json FILE].

All of MNIST's pixels one by one, and very many columns. A first fit on the same shapes goes before each
(kernels are compiled for each shape once, and kept on disk): `first_fit_s` tells what it took. A final predictor as
wide as the scored ones is trained, on the CPU; `tuned_fit_s` is of a fit that tries several, as is the default.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.data import make_wide_data
from ngp import NGPClassifier, NGPRegressor
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.datasets import load_mnist
from ngp.predictors import SSFN, ColumnSets

N_UNITS = 100


def peak_tflops(tf32: bool, size: int = 8192) -> float:
    """Best rate of a float32 matrix product, in 10¹² operations a second."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a = torch.randn(size, size, device="cuda")
    seconds = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = perf_counter()
        a @ a
        torch.cuda.synchronize()
        seconds.append(perf_counter() - start)
    torch.backends.cuda.matmul.allow_tf32 = False
    return 2 * size**3 / min(seconds[1:]) / 1e12  # the first warms up


def mnist(n_images: int) -> tuple[Any, Any]:
    images, labels = load_mnist(subset="train")
    rows = np.random.default_rng(0).permutation(len(images))[:n_images]
    return images[rows].reshape(n_images, -1).astype(np.float32) / 255, labels[rows]


def pursue(
    X: Any, y: Any, device: str = "cuda", refit_units: Any = N_UNITS, dtype: str = "float32", **settings: Any
) -> tuple[NGPClassifier | NGPRegressor, float]:
    """A fitted selector, and the seconds of the whole fit."""
    predictor = SSFN(n_draws=1, n_units=N_UNITS, refit_units=refit_units, dtype=dtype)
    kind = NGPClassifier if np.issubdtype(y.dtype, np.integer) else NGPRegressor
    selector = kind(predictor, random_state=0, device=device, n_jobs=-1, **settings)
    start = perf_counter()
    selector.fit(X, y)
    return selector, perf_counter() - start


def measured(X: Any, y: Any, n_outputs: int, share_trained: float, **settings: Any) -> dict[str, Any]:
    """Figures of a fit, of the one before it, and of one after it."""
    first = pursue(X, y, **settings)[1]
    torch.cuda.reset_peak_memory_stats()
    selector, seconds = pursue(X, y, **settings)
    tuned = pursue(X, y, refit_units="auto", **settings)[1]
    n_fits = sum(step.n_fits for step in selector.path_)
    unknowns = N_UNITS + 1 + 2 * n_outputs
    operations = 2.0 * n_fits * len(X) * share_trained * unknowns**2
    pursuit = sum(step.seconds for step in selector.path_)
    return {
        "rows": len(X), "columns": X.shape[1], "steps": len(selector.path_) - 1, "fits": n_fits,
        "first_fit_s": first, "fit_s": seconds, "tuned_fit_s": tuned, "pursuit_s": pursuit,
        "gram_operations": operations, "gram_tflops": operations / pursuit / 1e12,
        "gpu_gb": torch.cuda.max_memory_allocated() / 1e9,
        "order": selector.order_.tolist()[:10], "loss": selector.path_[-1].loss,
    }  # fmt: skip


def all_of_mnist() -> dict[str, Any]:
    return measured(*mnist(60_000), n_outputs=10, share_trained=0.8, n_features_to_select=0.4, cv=0.2)


def some_of_mnist() -> dict[str, Any]:
    return measured(*mnist(1_000), n_outputs=10, share_trained=0.8, n_features_to_select=0.4, cv=0.2)


def million_columns() -> dict[str, Any]:
    X, y = make_wide_data(300, 1_000_000, "float32")
    return measured(X, y, n_outputs=1, share_trained=1, n_features_to_select=5, cv=5)


def agreement() -> dict[str, Any]:
    """Single precision on the GPU against double precision on the CPU."""
    X, y = mnist(1_000)
    varied = np.argsort(-X.var(axis=0))[:120]
    gpu, _ = pursue(X[:, varied], y, n_features_to_select=20, cv=0.2)
    cpu, _ = pursue(X[:, varied], y, "cpu", n_features_to_select=20, cv=0.2, dtype="float64")
    differences = np.abs(gpu.losses_ / cpu.losses_ - 1)
    same = int(np.cumprod(gpu.order_ == cpu.order_).sum())
    return {"picks": len(cpu.order_), "same_picks_from_the_first": same,
            "largest_relative_difference": float(np.nanmax(differences[:same]))}  # fmt: skip


def precision() -> dict[str, Any]:
    """One step with products of each precision that the kernels could use: losses beside double precision, seconds."""
    from ngp.kernels import scoring_triton

    X, y = mnist(10_000)
    order = np.argsort(-X.var(axis=0))
    problem = make_problem(X, y, groups=make_groups(None, X.shape[1]), task="classification", cv=0.2)
    config, candidates = SSFN(n_draws=1, n_units=N_UNITS), ColumnSets.singles(order[100:600])
    double = SSFN(n_draws=1, n_units=N_UNITS, dtype="float64").bind(problem, random_state=0, device="cuda")
    exact = double.add_losses(order[:100], candidates).means
    chosen, results = scoring_triton.PRECISION, {}
    for name in ("tf32x3", "tf32", "ieee"):
        scoring_triton.PRECISION = name
        scorer, seconds = config.bind(problem, random_state=0, device="cuda"), []
        for _ in range(4):
            start = perf_counter()
            losses = scorer.add_losses(order[:100], candidates).means
            seconds.append(perf_counter() - start)
        results[name] = {"step_s": min(seconds), "largest_difference": float(np.abs(losses / exact - 1).max())}
    scoring_triton.PRECISION = chosen
    return {"rows": len(X), "candidates": len(candidates), "chosen": chosen, **results}


TASKS: dict[str, Callable[[], dict[str, Any]]] = {
    "agreement": agreement,
    "precision": precision,
    "mnist, 1,000 images": some_of_mnist,
    "mnist, 60,000 images": all_of_mnist,
    "1,000,000 columns": million_columns,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(TASKS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    facts = machine_facts() | {"peak_fp32_tflops": peak_tflops(False), "peak_tf32_tflops": peak_tflops(True)}
    print_facts(facts)
    results = {}
    for name, task in TASKS.items():
        if arguments.only in (None, name):
            results[name] = task()
            print(f"\n{name}")
            for key, value in results[name].items():
                print(f"  {key:28s} {value:.4g}" if isinstance(value, float) else f"  {key:28s} {value}", flush=True)
    save_json(arguments.json, {"machine": facts, "results": results})


if __name__ == "__main__":
    main()
