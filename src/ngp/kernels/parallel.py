"""Tasks side by side: threads of our own, or the joblib backend that the caller has chosen.

Other processes are joblib's own, a Dask cluster's or a Ray cluster's. What all tasks share is sent once: loky's
processes map a file into their memory, Dask scatters the data over its workers, Ray has an object store. A task itself
is then a name of a function and a few small arrays. Dask and Ray get the tasks from the client of the joblib backend,
not from `joblib.Parallel`: both run the tasks of a dead worker again by themselves, where `joblib.Parallel` gives up or
waits without end.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import sys
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice, repeat
from typing import Any, Literal, TypeVar

import cloudpickle
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import (
    BACKENDS,
    LokyBackend,
    MultiprocessingBackend,
    ParallelBackendBase,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from threadpoolctl import OpenBLASController, ThreadpoolController

from ngp._progress import counted_in

__all__ = ["chunk_length", "keep_workers", "on_cluster", "one_blas_thread", "run_tasks"]

Result = TypeVar("Result")
Key = tuple[type[ParallelBackendBase], int]
# What a task gets beside the shared objects, by the number of the task.
Arguments = Mapping[int, tuple[Any, ...]]
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
    counts: Iterable[int] = repeat(0),
) -> list[Result]:
    """Call a task with each tuple of arguments; the results come in that order.

    Each result counts as so many candidates for whoever watches the progress.

    joblib's own threads are waited for in sleeps of ten milliseconds, as long as many a step of a pursuit. So
    joblib is left to what only it can do: the backends of ``joblib.parallel_config``.

    A worker process that dies changes nothing: what it was to do is done again.
    """
    backend, _ = get_active_backend(prefer=prefer)
    jobs = int(effective_n_jobs(n_jobs))
    if _cluster(backend) or (jobs > 1 and not isinstance(backend, SequentialBackend | ThreadingBackend)):
        arguments = list(arguments)
        if _cluster(backend) or len(arguments) > 1:
            return _run_elsewhere(backend, jobs, task, shared, arguments, list(islice(counts, len(arguments))))
        jobs = 1  # another process of this machine would only take what is sent to it
    if jobs == 1:
        return [counted_in(task(*shared, *each), count) for each, count in zip(arguments, counts, strict=False)]
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(task, *shared, *each) for each in arguments]
        try:
            return [counted_in(future.result(), count) for future, count in zip(futures, counts, strict=False)]
        except BaseException:  # Ctrl-C too: what hasn't begun needn't
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def chunk_length(n_candidates: int, n_jobs: int | None, most: int) -> int:
    """Number of candidates in a task: no worker waits long for the last one, and there are never more than `most`."""
    jobs = int(effective_n_jobs(n_jobs))
    return max(1, min(n_candidates if jobs == 1 else -(-n_candidates // (8 * jobs)), most))


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
    return bool(_cluster(get_active_backend(prefer="threads")[0]))


def _run_elsewhere(
    backend: ParallelBackendBase,
    n_jobs: int,
    task: Callable[..., Result],
    shared: tuple[Any, ...],
    arguments: list[tuple[Any, ...]],
    counts: list[int],
) -> list[Result]:
    """Run tasks in other processes; those that die with a worker are run again."""
    together = -(-len(arguments) // (8 * n_jobs))  # several calls become one task: to send it takes milliseconds
    if together > 1:
        some = [slice(start, start + together) for start in range(0, len(arguments), together)]
        bundles, sums = [(arguments[each],) for each in some], [sum(counts[each]) for each in some]
        return list(chain.from_iterable(_run_elsewhere(backend, n_jobs, partial(_calls, task), shared, bundles, sums)))
    results: dict[int, Result] = {}
    losses, key = 0, (type(backend), n_jobs)
    with keep_workers() as kept:
        while len(results) < len(arguments):
            if key not in kept:
                kept[key] = find_workers(backend, n_jobs)
            n_before = len(results)
            missing = {i: each for i, each in enumerate(arguments) if i not in results}
            try:
                for number, result in kept[key].results(task, shared, missing):
                    results[number] = counted_in(result, counts[number])
            except WorkersLost as error:
                kept.pop(key).close()
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


# ---------------------------------------------------------------- other processes


class WorkersLost(Exception):
    """Some worker died, and with it a task or shared data; what is missing can be asked for again."""


class Workers(ABC):
    """Processes that stay ready from call to call, and keep what they were sent."""

    def __init__(self, backend: Any, n_jobs: int) -> None:
        self.backend, self.n_jobs = backend, n_jobs
        self._sent: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def results(
        self, task: Callable[..., Any], shared: tuple[Any, ...], arguments: Arguments
    ) -> Iterator[tuple[int, Any]]:
        """Call a task with the shared objects and each tuple of arguments; numbered results, as they come."""
        for thing in shared:
            if thing not in self._sent:
                self._sent[thing] = self.send(thing)
        return self.submit(task, tuple(self._sent[thing] for thing in shared), arguments)

    def close(self) -> None:
        """Let the workers go."""
        self._sent.clear()

    @abstractmethod
    def send(self, thing: Any) -> Any:
        """Put an object where all workers find it, and return what stands for it in a task's arguments."""

    @abstractmethod
    def submit(
        self, task: Callable[..., Any], shared: tuple[Any, ...], arguments: Arguments
    ) -> Iterator[tuple[int, Any]]:
        """Run the tasks; raise their errors as they are, or `WorkersLost`."""


def find_workers(backend: ParallelBackendBase, n_jobs: int) -> Workers:
    """Return the workers that a joblib backend stands for."""
    kinds = {"dask": DaskWorkers, "ray": RayWorkers}
    return kinds.get(_cluster(backend), JoblibWorkers)(backend, n_jobs)


def _cluster(backend: ParallelBackendBase) -> str:
    """Return "dask" or "ray", whose workers may be on other machines, or nothing; neither is imported to find out."""
    return next((name for name in ("dask", "ray") if type(backend) is BACKENDS.get(name)), "")


@lru_cache(maxsize=6)  # a problem, a scorer, a step, and as many again for another fit
def _fetch(reference: StoredObject | RayObject) -> Any:
    """Fetch a shared object, or take the one that this process has fetched before."""
    return reference.load()


def call(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a worker, where other tasks may run beside it."""
    arguments = tuple(_fetch(each) if isinstance(each, StoredObject | RayObject) else each for each in arguments)
    with one_blas_thread, parallel_config(backend="threading", n_jobs=1):
        return task(*arguments)


class _OneBlasThread:
    """One BLAS thread, for fits and their tasks: small matrix products are slower with more, and rounded differently.

    The limit holds for the whole process. So the first of several users sets it, and the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                _let_any_thread_set_limits()
                self._limits = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _let_any_thread_set_limits()
                self._limits.unregister()
                _let_any_thread_set_limits()


one_blas_thread = _OneBlasThread()


def _let_any_thread_set_limits() -> None:
    """Since threadpoolctl 3.8, the limits of all threads but the first one to set any are silently ignored."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Look for BLAS libraries, which takes milliseconds: only where modules, and libraries with them, were imported."""
    return ThreadpoolController()


# ---------------------------------------------------------------- processes of this machine


class JoblibWorkers(Workers):
    """The workers of `joblib.Parallel`."""

    def __init__(self, backend: ParallelBackendBase, n_jobs: int) -> None:
        super().__init__(backend, n_jobs)
        # A file serves where all processes are on this machine; what other backends do with arguments is up to them.
        self._local = isinstance(backend, LokyBackend | MultiprocessingBackend)
        self._folder = tempfile.TemporaryDirectory(prefix="ngp-", dir=os.environ.get("JOBLIB_TEMP_FOLDER"))
        return_as = "generator_unordered" if backend.supports_return_generator else "list"
        self._parallel = Parallel(n_jobs=n_jobs, backend=backend, return_as=return_as)
        self._parallel.__enter__()

    def close(self) -> None:
        """Let the workers go, and remove the files."""
        super().close()
        self._parallel.__exit__(None, None, None)
        with suppress(OSError):  # where files can't be removed while a process maps them
            self._folder.cleanup()

    def send(self, thing: Any) -> Any:
        """Write a file for all processes."""
        return StoredObject.write(thing, self._folder.name) if self._local else thing

    def submit(
        self, task: Callable[..., Any], shared: tuple[Any, ...], arguments: Arguments
    ) -> Iterator[tuple[int, Any]]:
        """Run the tasks; joblib has new processes after one has died, but the tasks of the call are lost."""
        calls = (delayed(_numbered)(number, task, *shared, *each) for number, each in arguments.items())
        try:
            yield from self._parallel(calls)
        except BrokenProcessPool as error:
            raise WorkersLost from error


def _numbered(number: int, *arguments: Any) -> tuple[int, Any]:
    return number, call(*arguments)


@dataclass(frozen=True)
class StoredObject:
    """An object in a file; the arrays in it are mapped into the memory of whoever loads it, read-only."""

    path: str
    start: int  # where its description begins, behind the arrays

    @classmethod
    def write(cls, thing: Any, folder: str) -> StoredObject:
        """Store an object until nobody in this process has the reference any more."""
        buffers: list[pickle.PickleBuffer] = []
        description = cloudpickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
        spans = []
        number, path = tempfile.mkstemp(dir=folder)
        with os.fdopen(number, "wb") as file:
            for buffer in buffers:
                file.seek(-file.tell() % 64, os.SEEK_CUR)  # arrays begin at whole cache lines
                with buffer.raw() as raw:
                    spans.append((file.tell(), file.tell() + raw.nbytes))
                    file.write(raw)
            start = file.tell()
            pickle.dump((description, spans), file)
        stored = cls(path, start)
        weakref.finalize(stored, _remove, path)
        return stored

    def load(self) -> Any:
        """Map the file."""
        with open(self.path, "rb") as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        description, spans = pickle.loads(content[self.start :])
        return pickle.loads(description, buffers=[content[first:last] for first, last in spans])


def _remove(path: str) -> None:
    with suppress(OSError):  # gone with its folder, or still mapped where that forbids it
        os.unlink(path)


# ---------------------------------------------------------------- clusters


class DaskWorkers(Workers):
    """The workers of a Dask cluster."""

    def send(self, thing: Any) -> Any:
        """Scatter an object over all workers, which may later fetch it from each other."""
        return self.backend.client.scatter(thing, broadcast=True, hash=False)

    def submit(
        self, task: Callable[..., Any], shared: tuple[Any, ...], arguments: Arguments
    ) -> Iterator[tuple[int, Any]]:
        """Run the tasks; Dask runs those of a dead worker again, unless it lost shared data or worker after worker."""
        from dask.distributed import KilledWorker, as_completed

        client, options = self.backend.client, self.backend.submit_kwargs
        numbers = {
            client.submit(call, task, *shared, *each, pure=False, **options): number
            for number, each in arguments.items()
        }
        done = as_completed(list(numbers), loop=client.loop, with_results=True, raise_errors=False)
        try:
            with self.backend.retrieval_context():  # makes room for the tasks, where this is a task itself
                for future, result in done:
                    error = result[1] if future.status == "error" else result
                    if future.status == "cancelled" or isinstance(error, KilledWorker):
                        raise WorkersLost from error
                    if future.status == "error":
                        raise error
                    yield numbers.pop(future), result
        finally:
            if numbers:
                client.cancel(list(numbers))


class RayWorkers(Workers):
    """The workers of a Ray cluster, as many at a time as there are jobs."""

    def __init__(self, backend: Any, n_jobs: int) -> None:
        import ray

        super().__init__(backend, n_jobs)
        if not ray.is_initialized():
            ray.init()
        self._call = ray.remote(call).options(**(backend.ray_remote_args or {}))

    def send(self, thing: Any) -> Any:
        """Put an object into the object store."""
        import ray

        return RayObject(ray.put(thing))

    def submit(
        self, task: Callable[..., Any], shared: tuple[Any, ...], arguments: Arguments
    ) -> Iterator[tuple[int, Any]]:
        """Run the tasks; Ray runs those of a dead worker again, a few times."""
        import ray

        waiting = iter(arguments.items())
        running: dict[Any, int] = {}
        try:
            while True:
                for number, each in islice(waiting, self.n_jobs - len(running)):
                    running[self._call.remote(task, *shared, *each)] = number
                if not running:
                    return
                for done in ray.wait(list(running))[0]:
                    number = running.pop(done)
                    try:
                        result = ray.get(done)
                    except ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except ray.exceptions.RayError as error:
                        raise WorkersLost from error
                    yield number, result
        finally:
            for left in running:
                ray.cancel(left)


@dataclass(frozen=True)
class RayObject:
    """An object in Ray's store; the arrays in it are mapped into the memory of whoever loads it, read-only."""

    reference: Any

    def load(self) -> Any:
        """Fetch it."""
        import ray

        return ray.get(self.reference)
