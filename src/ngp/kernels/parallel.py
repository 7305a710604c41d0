"""Tasks side by side: threads of our own, or the joblib backend that the caller has chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeVar

from joblib import effective_n_jobs
from joblib.parallel import ParallelBackendBase, SequentialBackend, ThreadingBackend, get_active_backend

from ngp.kernels.workers import Workers, WorkersLost, find_workers, is_cluster

__all__ = ["keep_workers", "on_cluster", "run_tasks"]

Result = TypeVar("Result")
Key = tuple[type[ParallelBackendBase], int]

# Other processes get several calls as one task where there are many: sending and scheduling it takes milliseconds.
TASKS_PER_WORKER = 8
# How often in a row workers may die without having finished a task.
MOST_LOSSES = 3

logger = logging.getLogger("ngp")
_kept: ContextVar[dict[Key, Workers] | None] = ContextVar("kept workers", default=None)


def run_tasks(
    task: Callable[..., Result],
    arguments: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    shared: tuple[Any, ...] = (),
    prefer: Literal["threads", "processes"] = "threads",
) -> list[Result]:
    """Call a task with each tuple of arguments; the results come in that order.

    joblib's own threads are waited for in sleeps of ten milliseconds, as long as many a step of a pursuit. So
    joblib is left to what only it can do: the backends of ``joblib.parallel_config``.

    A worker process that dies changes nothing: what it was to do is done again.
    """
    backend, _ = get_active_backend(prefer=prefer)
    jobs = int(effective_n_jobs(n_jobs))
    if is_cluster(backend) or (jobs > 1 and not isinstance(backend, SequentialBackend | ThreadingBackend)):
        return _run_elsewhere(backend, jobs, task, shared, list(arguments))
    if jobs == 1:
        return [task(*shared, *each) for each in arguments]
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(task, *shared, *each) for each in arguments]
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C too: what hasn't begun needn't
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def keep_workers() -> Iterator[dict[Key, Workers]]:
    """Keep worker processes, and what they were sent, from one call of `run_tasks` to the next."""
    outer = _kept.get()
    if outer is not None:  # somebody around keeps them anyway
        yield outer
        return
    kept: dict[Key, Workers] = {}
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)
        for workers in kept.values():
            workers.close()


def on_cluster() -> bool:
    """Whether `run_tasks` sends its tasks to workers that may have devices of their own."""
    return is_cluster(get_active_backend(prefer="threads")[0])


def _run_elsewhere(
    backend: ParallelBackendBase,
    n_jobs: int,
    task: Callable[..., Result],
    shared: tuple[Any, ...],
    arguments: list[tuple[Any, ...]],
) -> list[Result]:
    """Run tasks in other processes; those that die with a worker are run again."""
    together = -(-len(arguments) // (TASKS_PER_WORKER * n_jobs))
    if together > 1:
        bundles = [(arguments[start : start + together],) for start in range(0, len(arguments), together)]
        return list(chain.from_iterable(_run_elsewhere(backend, n_jobs, partial(_calls, task), shared, bundles)))
    results: dict[int, Result] = {}
    losses, key = 0, (type(backend), n_jobs)
    with keep_workers() as kept:
        if key not in kept:
            kept[key] = find_workers(backend, n_jobs)
        while len(results) < len(arguments):
            n_before = len(results)
            missing = {i: each for i, each in enumerate(arguments) if i not in results}
            try:
                for number, result in kept[key].results(task, shared, missing):
                    results[number] = result
            except WorkersLost as error:
                kept[key].renew()
                losses = 1 if len(results) > n_before else losses + 1
                if losses == MOST_LOSSES:
                    raise RuntimeError(
                        f"The workers of {type(backend).__name__} died {losses} times in a row with no task done in "
                        "between: most often they have too little memory, so give them more, or use fewer (n_jobs)."
                    ) from error.__cause__
                left = len(arguments) - len(results)
                logger.warning("a worker died: %d of %d tasks are run again", left, len(arguments))
    return [results[i] for i in range(len(arguments))]


def _calls(task: Callable[..., Result], *arguments: Any) -> list[Result]:
    """Call a task with shared arguments and each of a list of others."""
    *shared, bundle = arguments
    return [task(*shared, *each) for each in bundle]
