"""What is being done inside a step, for whoever watches: without a watcher, nothing is counted."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import TypeVar

from ngp._formatting import duration

__all__ = ["Phase", "StatusLine", "counted_in", "phase", "watched"]

Result = TypeVar("Result")
REWRITTEN_SECONDS = 0.2  # no line is written again before
SAID_SECONDS = 0.5  # of work after which the time that is left is said


@dataclass
class Phase:
    """A part of a step: what is done, and how many candidates of all are done."""

    name: str
    total: int  # 0 if nothing is counted
    done: int = 0
    since: float = field(default_factory=perf_counter)

    @property
    def seconds_left(self) -> float | None:
        """If the rest takes as long as what is done; None if nobody knows."""
        taken = perf_counter() - self.since
        if taken < SAID_SECONDS or not 0 < self.done <= self.total:
            return None
        return taken / self.done * (self.total - self.done)

    def __str__(self) -> str:
        if not self.total:
            return self.name
        left = self.seconds_left
        text = f"{self.name} {min(self.done, self.total):,} of {self.total:,} candidates"
        return text if left is None else f"{text}, about {duration(round(left))} left"


_watcher: ContextVar[Callable[[Phase], None] | None] = ContextVar("watcher", default=None)
_phase: ContextVar[Phase | None] = ContextVar("phase", default=None)


@contextmanager
def watched(watcher: Callable[[Phase], None]) -> Iterator[None]:
    """Call a function when a phase begins, and whenever some of its candidates are done."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def phase(name: str, total: int = 0) -> Iterator[None]:
    """Tell the watcher, if there is one, what is done meanwhile."""
    watcher = _watcher.get()
    if watcher is None:
        yield
        return
    new = Phase(name, total)
    token = _phase.set(new)
    watcher(new)
    try:
        yield
    finally:
        _phase.reset(token)


def counted_in(result: Result, number: int) -> Result:
    """Count a result's candidates as done, and return it."""
    now, watcher = _phase.get(), _watcher.get()
    if now is not None and watcher is not None:
        now.done += number
        watcher(now)
    return result


class StatusLine:
    """Lines on standard output and, if that is a terminal or a notebook, below them how far the phase is."""

    def __init__(self, wanted: bool) -> None:
        self._wanted, self._width, self._written = wanted, 0, -inf

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Watch the phases."""
        if not self._wanted or not (sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel")):
            yield
            return
        with watched(self._replace):
            try:
                yield
            finally:
                self._clear()

    def end(self, text: str) -> None:
        """Print a line that stays."""
        if self._wanted:
            self._clear()
            print(text)

    def _replace(self, phase: Phase) -> None:
        """Write how far a phase is, unless something was written just now."""
        if perf_counter() - self._written >= REWRITTEN_SECONDS:
            text = f"[ngp] {phase}"[: shutil.get_terminal_size().columns - 1]
            print(f"\r{text:<{self._width}}", end="", flush=True)
            self._width, self._written = len(text), perf_counter()

    def _clear(self) -> None:
        if self._width:
            print(f"\r{'':{self._width}}\r", end="", flush=True)
        self._width = 0
