"""How long a unit of work takes, and how much memory: what estimates are made of."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.data.sources import ColumnSource

__all__ = [
    "Cost",
    "Scan",
    "clock",
    "look_at_columns",
    "runs",
    "settled_clock",
    "timed",
    "traced_bytes",
    "watched_memory",
]

# A scan of X may take so many seconds; of what takes longer, only a part is looked at.
SCAN_SECONDS = 0.7
FIRST_COLUMNS = 64
# More columns than these to take samples from would tell no more, and take memory of their own.
POOL_COLUMNS = 2**16
# From one sample of candidates to the next, their number grows by no more than this factor.
GROWTH = 8
# What takes longer isn't run a third time for a second opinion.
QUICK_SECONDS = 0.1
# Seconds between two looks at the memory.
BETWEEN_LOOKS = 0.005


@dataclass(frozen=True)
class Cost:
    """What some work costs: so much in any case, and so much for each thing that is worked on."""

    fixed: float
    each: float

    def of(self, number: int) -> float:
        """For so many things."""
        return self.fixed + self.each * number

    @classmethod
    def between(cls, points: Sequence[tuple[int, float]]) -> Cost:
        """The line through the first and the last of some points (number, cost); neither part of it is negative."""
        (few, low), (many, high) = points[0], points[-1]
        each = (high - low) / (many - few) if many > few else 0.0
        fixed = low - each * few
        if each <= 0 or fixed < 0:  # noise, or a sample too small to keep all threads busy
            return cls(0.0, high / max(1, many))
        return cls(fixed, each)

    @classmethod
    def interpolated(cls, costs: Mapping[int, Cost], place: int) -> Cost:
        """What work costs at a place between some where that is known, in rising order."""
        fixed, each = zip(*((cost.fixed, cost.each) for cost in costs.values()), strict=True)
        places = list(costs)
        return cls(float(np.interp(place, places, fixed)), float(np.interp(place, places, each)))


def clock(task: Callable[[], Any]) -> float:
    """Seconds that a task takes."""
    begin = perf_counter()
    task()
    return perf_counter() - begin


def settled_clock(task: Callable[[], Any]) -> float:
    """Seconds that a task takes when it has been run before: a GPU loads and compiles for every new size."""
    taken = [clock(task), clock(task)]
    return min(taken if taken[1] > QUICK_SECONDS else [*taken, clock(task)])


def timed(
    task: Callable[[int], Any],
    fewest: int,
    most: int,
    seconds: float,
    clock: Callable[[Callable[[], Any]], float] = clock,
) -> list[tuple[int, float]]:
    """Time a task with more and more things to do, until that takes long enough."""
    number, points = min(fewest, most), []
    while True:
        took = clock(partial(task, number))
        points.append((number, took))
        if number == most or took > seconds / 2:
            return points
        number = min(most, max(number + 1, int(number * min(GROWTH, seconds / took))))


# ---------------------------------------------------------------- the scan


@dataclass(frozen=True)
class Scan:
    """A first look at X."""

    seconds: float  # how long a look at all columns takes
    columns: slice  # what to take samples from


def look_at_columns(problem: Problem) -> Scan:
    """Let a problem know its columns' means and deviations; of an X that takes too long, only of the first few.

    All others then count as if they had mean zero and deviation one. NaN and infinity are refused where they are seen.
    """
    n_columns, seen, seconds, parts = problem.n_columns, 0, 0.0, []
    while seen < n_columns and (not seen or seconds < SCAN_SECONDS):
        some = slice(seen, min(n_columns, max(FIRST_COLUMNS, 2 * seen)))
        begin = perf_counter()
        parts.append(problem.statistics_of(some))
        seconds, seen = seconds + perf_counter() - begin, some.stop
    unknown = np.zeros(n_columns - seen), np.ones(n_columns - seen)
    mean, deviation = (np.concatenate(each) for each in zip(*parts, unknown, strict=True))
    vars(problem)["column_statistics"] = mean, deviation  # where the problem itself would keep them
    # What has just been read may still be in memory, and what a step reads of a larger file never is.
    beyond = isinstance(problem.X, ColumnSource) and _bytes(problem.X) > _machine_bytes()
    first = seen if beyond and seen < n_columns else 0
    last = min(n_columns if first else seen, first + POOL_COLUMNS)
    return Scan(seconds * n_columns / seen, slice(first, last))


def _bytes(X: ColumnSource) -> int:
    return X.shape[0] * X.shape[1] * X.dtype.itemsize


def _machine_bytes() -> float:
    """Memory of the machine, where the system says."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return np.inf


def runs(length: int, number: int, run: int) -> IntArray:
    """Random runs of neighbours, in rising order: files and memory are read as if all were asked for."""
    starts = np.random.default_rng(0).permutation(np.arange(0, length, run))
    taken = (starts[: number // run + 2, None] + np.arange(run)).ravel()
    return np.sort(taken[taken < length][:number])


# ---------------------------------------------------------------- memory


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """Note by how many bytes the resident memory of the process grows to its peak; in a list, where the system says."""
    growth: list[int] = []
    begin, done = _resident(), threading.Event()
    if begin is None:
        yield growth
        return

    def watch() -> None:
        most = 0
        while True:
            ended = done.wait(BETWEEN_LOOKS)
            most = max(most, (_resident() or 0) - begin)
            if ended:
                growth.append(most)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield growth
    finally:
        done.set()
        thread.join()


def _resident() -> int | None:
    """Bytes of this process in memory, without files; None where the system doesn't say."""
    try:
        resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    except OSError:
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def traced_bytes(task: Callable[[], Any]) -> int:
    """Most bytes that Python and numpy hold for a task at once; what was there before doesn't count."""
    if tracemalloc.is_tracing():  # somebody else is: leave it alone
        task()
        return 0
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
