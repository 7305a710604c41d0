"""One worker and two, as threads, processes, a Dask cluster and a Ray cluster: python -m benchmarks.workers."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import cloudpickle
from joblib import parallel_config
from joblib.parallel import get_active_backend

from benchmarks.common import machine_facts, print_facts, save_json, side_by_side
from benchmarks.data import make_wide_data
from ngp import NGPRegressor
from ngp._types import AnyArray, FloatArray
from ngp.kernels.parallel import Workers, find_workers
from ngp.predictors import SSFN

BACKENDS = ("threading", "loky", "dask", "ray")
WORKERS = (1, 2)
N_TASKS = 200  # that do nothing

Fit = Callable[[], NGPRegressor]


def fit(X: AnyArray, y: FloatArray, n_features: int, **config: Any) -> NGPRegressor:
    selector = NGPRegressor(SSFN(n_draws=1), n_features_to_select=n_features, random_state=0)
    with parallel_config(**config):
        return selector.fit(X, y)


@contextmanager
def open_backends(backends: Sequence[str]) -> Iterator[dict[str, dict[str, Any]]]:
    """Settings of every backend and number of workers; clusters are started before, and stay idle between fits."""
    settings: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        for backend in backends:
            if backend == "ray":
                stack.enter_context(ray_cluster(max(WORKERS)))
            for n_workers in WORKERS:
                config: dict[str, Any] = {"backend": backend, "n_jobs": n_workers}
                if backend == "dask":
                    config["client"] = stack.enter_context(dask_cluster(n_workers))
                settings[f"{backend} {n_workers}"] = config
        yield settings


@contextmanager
def dask_cluster(n_workers: int) -> Iterator[Any]:
    from dask.distributed import Client, LocalCluster

    address = None  # no web page
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=address) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def ray_cluster(n_workers: int) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


def task_seconds(config: dict[str, Any]) -> float:
    """Seconds that a task takes to be handed out and its result to come back, where it does nothing."""
    with parallel_config(**config):
        workers = find_workers(get_active_backend(prefer="threads")[0], config["n_jobs"])
        seconds = []
        for _ in range(3):
            start = perf_counter()
            for _ in workers.results(abs, (), {i: (i,) for i in range(N_TASKS)}):
                pass
            seconds.append(perf_counter() - start)
        workers.close()
    return min(seconds) / N_TASKS


def count_bytes(one_fit: Fit) -> dict[str, Any]:
    """Sizes of what workers are given in a fit: each shared object once, and the arguments of all tasks."""
    shared: list[int] = []
    tasks: list[int] = []
    original = Workers.results

    def results(workers: Workers, task: Any, things: Any, arguments: Any) -> Any:
        shared.extend(len(cloudpickle.dumps(thing)) for thing in things if thing not in workers._sent)
        tasks.extend(len(cloudpickle.dumps((task, *each))) for each in arguments.values())
        return original(workers, task, things, arguments)

    Workers.results = results  # type: ignore[method-assign]
    try:
        one_fit()
    finally:
        Workers.results = original  # type: ignore[method-assign]
    return {
        "n_objects": len(shared),
        "largest_object_mb": max(shared) / 1e6,
        "other_objects_mb": (sum(shared) - max(shared)) / 1e6,
        "n_tasks": len(tasks),
        "all_tasks_mb": sum(tasks) / 1e6,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    X, y = make_wide_data(options.samples, options.columns, "float64")
    with open_backends(options.backends) as settings:
        fits: dict[str, Fit] = {
            name: partial(fit, X, y, options.selected, **config) for name, config in settings.items()
        }
        found = {name: one_fit() for name, one_fit in fits.items()}  # which also starts processes, and loads code
        orders = {name: selector.order_.tolist() for name, selector in found.items()}
        losses = {selector.losses_.tobytes() for selector in found.values()}
        seconds = side_by_side(fits, options.repetitions)
        elsewhere = [name for name in fits if not name.startswith("threading") and name.endswith("2")]
        sent = {name: count_bytes(fits[name]) for name in elsewhere}
        handed_out = {name: task_seconds(settings[name]) for name in elsewhere}
    return {
        "machine": machine_facts() | {name: version(name) for name in ("joblib", "distributed", "ray")},
        "n_samples": options.samples,
        "n_features": options.columns,
        "n_selected": options.selected,
        "x_mb": X.nbytes / 1e6,
        "orders": orders,
        "same_bits": len(losses) == 1,
        "seconds": seconds,
        "ratios": {
            backend: min(seconds[f"{backend} {WORKERS[0]}"]) / min(seconds[f"{backend} {WORKERS[1]}"])
            for backend in options.backends
        },
        "sent": sent,
        "task_seconds": handed_out,
    }


def report(results: dict[str, Any]) -> None:
    print_facts(results["machine"])
    print(
        f"\nfit: J={results['n_samples']}, P={results['n_features']}, N={results['n_selected']}, one draw; "
        f"X has {results['x_mb']:.0f} MB"
    )
    print(f"all losses the same to the last bit: {results['same_bits']}")
    print(f"{'backend, workers':20s} {'best':>8s} {'worst':>8s}  seconds")
    for name, seconds in results["seconds"].items():
        print(f"{name:20s} {min(seconds):8.2f} {max(seconds):8.2f}")
    for backend, ratio in results["ratios"].items():
        print(f"{backend}: two workers {ratio:.2f} times as fast as one")
    for name, sent in results["sent"].items():
        print(
            f"{name.split()[0]}: {sent['n_objects']} objects sent once, the largest {sent['largest_object_mb']:.1f} MB "
            f"and the others {sent['other_objects_mb']:.1f} MB; "
            f"{sent['n_tasks']} tasks, {sent['all_tasks_mb']:.1f} MB together; "
            f"{1000 * results['task_seconds'][name]:.2f} ms for a task that does nothing"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--selected", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    options = parser.parse_args(arguments)
    results = run(options)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
