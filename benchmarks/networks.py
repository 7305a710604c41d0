"""One step of a pursuit with an MLP, a kernel or a CNN, beside plain loops: python -m benchmarks.networks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_limits
from torch import nn
from torch.nn import functional

from benchmarks.common import machine_facts, print_facts, save_json
from ngp._types import FloatArray, IntArray
from ngp.data.groups import image_windows, make_groups
from ngp.data.problem import Problem, make_problem
from ngp.datasets import make_artificial
from ngp.kernels.devices import resolve_device
from ngp.kernels.kernel_ridge import kernel_matrix
from ngp.predictors import CNN, MLP, Kernel
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import convolutional

BATCH = 32
SELECTED = {"mlp": 4, "kernel": 4, "cnn": 1}  # features that are in before the step


def matmul_peak(device: str, size: int) -> float:
    """Best rate of a float32 matrix product on the device, in 10⁹ operations a second."""
    a = torch.randn(size, size, device=device)
    seconds = [timed(lambda: a @ a, device) for _ in range(6)]
    return 2 * size**3 / min(seconds[1:]) / 1e9


def timed(task: Callable[[], Any], device: str) -> float:
    start = perf_counter()
    task()
    if device == "cuda":
        torch.cuda.synchronize()
    return perf_counter() - start


def mlp_problem(n_samples: int, n_features: int) -> Problem:
    X, y, _ = make_artificial(n_samples, n_features, random_state=0)
    return make_problem(X, y, groups=make_groups(None, n_features))


def cnn_problem(n_samples: int) -> Problem:
    """Noise in the shape of MNIST: the time of a training doesn't depend on what is learned."""
    rng = np.random.default_rng(0)
    X, y = rng.random((n_samples, 784)), rng.integers(0, 10, n_samples)
    return make_problem(X, y, groups=image_windows((28, 28), 4), loss="cross_entropy")


def candidates_of(problem: Problem, n_selected: int) -> tuple[IntArray, ColumnSets]:
    """The first groups are in, all others are candidates, beside the selection as it is."""
    groups = [problem.groups.columns[i] for i in range(problem.groups.n_groups)]
    selected = np.concatenate([np.zeros(0, np.intp), *groups[:n_selected]])
    return selected, ColumnSets.of(groups[n_selected:]).with_empty()


def plain_training(
    module: nn.Module,
    inputs: FloatArray,
    targets: FloatArray,
    rows: IntArray,
    *,
    epochs: int,
    device: str,
    fused: bool,
    classes: bool,
) -> None:
    """What a user writes: one network, one split."""
    module = module.to(device)
    x = torch.from_numpy(inputs[rows]).float().to(device)
    t = torch.from_numpy(targets[rows]).float().to(device)
    optimizer = torch.optim.Adam(module.parameters(), fused=fused)
    for _ in range(epochs):
        for batch in torch.randperm(len(x), device=device).split(BATCH):
            optimizer.zero_grad()
            outputs = module(x[batch])
            loss = functional.cross_entropy(outputs, t[batch]) if classes else functional.mse_loss(outputs, t[batch])
            loss.backward()
            optimizer.step()


def mlp_loop(problem: Problem, n: int, epochs: int, units: int, device: str, fused: bool) -> None:
    selected, _ = candidates_of(problem, SELECTED["mlp"])
    for candidate in range(n):
        columns = np.append(selected, len(selected) + candidate % (problem.n_columns - len(selected)))
        rows = problem.rounds[0].training(0)
        module = nn.Sequential(nn.Linear(len(columns), units), nn.ReLU(), nn.Linear(units, 1))
        settings = {"epochs": epochs, "device": device, "fused": fused, "classes": False}
        plain_training(module, problem.X[:, columns], problem.targets, rows, **settings)


def cnn_loop(problem: Problem, n: int, epochs: int, device: str, fused: bool) -> None:
    selected, sets = candidates_of(problem, SELECTED["cnn"])
    for candidate in range(n):
        mask = np.zeros(784)
        mask[np.append(selected, sets[candidate])] = 1
        images = (problem.X * mask).reshape(-1, 1, 28, 28)
        rows = problem.rounds[0].training(0)
        settings = {"epochs": epochs, "device": device, "fused": fused, "classes": True}
        plain_training(
            convolutional("paper", (1, 28, 28), problem.n_outputs), images, problem.targets, rows, **settings
        )


def kernel_loop(problem: Problem, n: int) -> None:
    """The same regressions, but for the intercept, by scikit-learn: fitted on a fold's training rows.

    The kernel is given, since scikit-learn would call a function of its user for one pair of rows after the other.
    """
    selected, _ = candidates_of(problem, SELECTED["kernel"])
    train, test = problem.rounds[0].training(0), problem.rounds[0].validation(0)
    for candidate in range(n):
        columns = np.append(selected, len(selected) + candidate % (problem.n_columns - len(selected)))
        inputs = problem.X[:, columns].T
        kernels = [kernel_matrix(1 / len(columns), inputs[:, rows], inputs[:, train]) for rows in (train, test)]
        KernelRidge(alpha=0.1, kernel="precomputed").fit(kernels[0], problem.targets[train]).predict(kernels[1])


def compare(
    problem: Problem,
    scorer: Any,
    n_selected: int,
    loop: Callable[[int, bool], None],
    *,
    n_loop: int,
    repetitions: int,
    device: str,
    n_draws: int = 1,
) -> dict[str, Any]:
    """A step, beside a loop over some candidates in one fold, in turn; the loop's best way counts."""
    selected, sets = candidates_of(problem, n_selected)
    n_folds = sum(round_.n_folds for round_ in problem.rounds)
    ways = [(fused, threads) for fused in (False, True) for threads in ([1, None] if device == "cpu" else [None])]
    seconds: dict[Any, list[float]] = {"step": []} | {way: [] for way in ways}
    scorer.add_losses(selected, sets)
    loop(1, False)
    threads = torch.get_num_threads()
    for _ in range(repetitions):
        seconds["step"].append(timed(lambda: scorer.add_losses(selected, sets), device))
        for fused, limit in ways:
            torch.set_num_threads(limit or threads)
            seconds[fused, limit].append(timed(lambda fused=fused: loop(n_loop, fused), device))
            torch.set_num_threads(threads)
    best = min(ways, key=lambda way: median(seconds[way]))
    per_training = median(seconds[best]) / n_loop
    step, n_trainings = median(seconds["step"]), len(sets) * n_folds * n_draws
    return {
        "n_candidates": len(sets),
        "n_folds": n_folds,
        "n_draws": n_draws,
        "step_seconds": step,
        "step_seconds_all": seconds["step"],
        "milliseconds_per_training": 1e3 * step / n_trainings,
        "loop_milliseconds_per_training": 1e3 * per_training,
        "loop_way": {"fused_adam": best[0], "threads": best[1] or threads},
        "loop_trainings_timed": n_loop * repetitions,
        "ratio": per_training * n_trainings / step,
    }


def mlp_operations(n_rows: int, n_inputs: int, units: int, epochs: int) -> float:
    """Of one training with one output: forward, and backward for the weights of both layers and the hidden units."""
    return epochs * n_rows * units * (2 * n_inputs + 2 + 2 + 2 + 2 * n_inputs)


def cnn_operations(n_rows: int, epochs: int) -> float:
    """Of one training of the paper's network; the first layer needs no gradient of its inputs."""
    first, second, dense = 26 * 26 * 32 * 9 * 2, 11 * 11 * 64 * 288 * 2, 1600 * 10 * 2
    return epochs * n_rows * (2 * first + 3 * second + 3 * dense)


def measure_mlp(device: str, n_features: int, repetitions: int) -> dict[str, Any]:
    problem, epochs, units = mlp_problem(300, n_features), 10, 500
    mlp = MLP(n_units=units, epochs=epochs)
    scorer = mlp.bind(problem, random_state=0, n_jobs=-1, device=device)
    result = compare(
        problem,
        scorer,
        SELECTED["mlp"],
        lambda n, fused: mlp_loop(problem, n, epochs, units, device, fused),
        n_loop=5,
        repetitions=repetitions,
        device=device,
        n_draws=mlp.n_draws,
    )
    n_rows = len(problem.rounds[0].training(0))
    return result | {"operations_per_training": mlp_operations(n_rows, SELECTED["mlp"] + 1, units, epochs)}


def measure_kernel(device: str, n_features: int, repetitions: int) -> dict[str, Any]:
    problem = mlp_problem(300, n_features)
    scorer = Kernel().bind(problem, random_state=0, n_jobs=-1, device=device)
    with threadpool_limits(1, user_api="blas"):  # as in the selector
        result = compare(
            problem,
            scorer,
            SELECTED["kernel"],
            lambda n, fused: kernel_loop(problem, n),
            n_loop=20,
            repetitions=repetitions,
            device=device,
        )
    n_rows = len(problem.X)  # one inverse for all folds, and the solution of a system for each
    n_folds = result["n_folds"]
    operations = n_rows**3 + n_folds * (n_rows / n_folds) ** 3 / 3
    return result | {"operations_per_training": operations / n_folds}


def measure_cnn(device: str, n_samples: int, repetitions: int, epochs: int) -> dict[str, Any]:
    problem = cnn_problem(n_samples)
    scorer = CNN(epochs=epochs).bind(problem, random_state=0, n_jobs=-1, device=device)
    result = compare(
        problem,
        scorer,
        SELECTED["cnn"],
        lambda n, fused: cnn_loop(problem, n, epochs, device, fused),
        n_loop=1,
        repetitions=repetitions,
        device=device,
    )
    n_rows = len(problem.rounds[0].training(0))
    return result | {"epochs": epochs, "operations_per_training": cnn_operations(n_rows, epochs)}


def report(results: dict[str, Any]) -> None:
    print(f"\nmatrix-product peak {results['peak_gflops']:.0f} GFLOP/s")
    for name in ("mlp", "kernel", "cnn"):
        if name not in results:
            continue
        row = results[name]
        share = row["operations_per_training"] / row["milliseconds_per_training"] / 1e6 / results["peak_gflops"]
        row["share_of_peak"] = share
        print(
            f"{name}: {row['n_candidates']} candidates x {row['n_folds']} folds x {row['n_draws']} draws in "
            f"{row['step_seconds']:.3f} s, "
            f"{row['milliseconds_per_training']:.3f} ms a training ({share:.1%} of the peak); a loop "
            f"{row['loop_milliseconds_per_training']:.1f} ms a training: {row['ratio']:.1f} times as long"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--features", type=int, default=500, help="columns that MLP and kernel select from")
    parser.add_argument("--samples", type=int, default=1000, help="images that the CNN is trained on")
    parser.add_argument("--cnn-epochs", type=int, default=10, help="0 leaves the CNN out")
    options = parser.parse_args(arguments)
    device = resolve_device(options.device, "float32")
    facts = machine_facts() | {"device": device}
    print_facts(facts)
    results = {"machine": facts, "peak_gflops": matmul_peak(device, 8192 if device == "cuda" else 2048)}
    results["mlp"] = measure_mlp(device, options.features, options.repetitions)
    results["kernel"] = measure_kernel(device, options.features, options.repetitions)
    if options.cnn_epochs:
        results["cnn"] = measure_cnn(device, options.samples, min(3, options.repetitions), options.cnn_epochs)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
