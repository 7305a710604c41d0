"""Tasks side by side: threads of our own, or the joblib backend that the caller has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

__all__ = ["run_tasks"]

Result = TypeVar("Result")


def run_tasks(task: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None) -> list[Result]:
    """Call a task with each tuple of arguments; the results come in that order.

    joblib's own threads are waited for in sleeps of ten milliseconds, as long as many a step of a pursuit. So
    joblib is left to what only it can do: the backends of ``joblib.parallel_config``.

    Parameters
    ----------
    task : callable
        A function of a module, so that it can travel to other processes.
    arguments : iterable of tuples
        One tuple for each call.
    n_jobs : int or None
        As everywhere in scikit-learn.

    Examples
    --------
    >>> run_tasks(pow, [(2, 3), (3, 2)], n_jobs=2)
    [8, 9]
    """
    backend, _ = get_active_backend(prefer="threads")
    if not isinstance(backend, SequentialBackend | ThreadingBackend):
        results: list[Result] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(task)(*each) for each in arguments)
        return results
    n_threads = int(effective_n_jobs(n_jobs))
    if n_threads == 1:
        return [task(*each) for each in arguments]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(task, *each) for each in arguments]
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C too: what hasn't begun needn't
            pool.shutdown(wait=False, cancel_futures=True)
            raise
