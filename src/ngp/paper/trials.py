"""Monte Carlo loops: trials in parallel, each stored as soon as it is done, so that a stopped run goes on."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from ngp import __version__

__all__ = ["Record", "Trial", "TrialStore", "run_trials"]

# Parameters and results of a trial in one mapping, all of them JSON values.
Record = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One run of an experiment."""

    run: Callable[..., Record]  # A function of a module
    parameters: Record  # JSON values. They, the function and the version of the package say which trial it is
    wide: bool = False  # whether the trial keeps several cores busy by itself: then it is run alone

    @property
    def key(self) -> str:
        """What the trial is stored by."""
        name = f"{self.run.__module__}.{self.run.__qualname__}"
        return json.dumps({"trial": name, "version": __version__, **self.parameters}, sort_keys=True)


@dataclass
class TrialStore:
    """Results of trials in a file, a line each.

    Lines are only added. What was cut off in the middle of a line is run again.
    """

    path: Path
    results: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.results.update(self._read())

    def _read(self) -> Iterator[tuple[str, Record]]:
        for line in self.path.read_text().splitlines():
            try:
                stored = json.loads(line)
                yield json.dumps(stored["trial"], sort_keys=True), stored["result"]
            except (ValueError, KeyError, TypeError):
                continue  # cut off while it was written

    def add(self, trial: Trial, result: Record) -> None:
        """Keep a result, on the disk too."""
        self.results[trial.key] = result
        line = json.dumps({"trial": json.loads(trial.key), "result": result})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():  # a line that was cut off ends here
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else f"\n{line}"
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())


def run_trials(
    trials: Sequence[Trial],
    store: TrialStore,
    *,
    n_jobs: int = 1,
    on_done: Callable[[Trial], None] | None = None,
) -> list[Record]:
    """Run what is not in the store yet, and return the records of all trials in their order."""
    waiting = {trial.key: trial for trial in trials if trial.key not in store.results}
    for trial in trials:
        if on_done and trial.key not in waiting:
            on_done(trial)
    for trial, result in _results(list(waiting.values()), n_jobs):
        store.add(trial, result)
        if on_done:
            on_done(trial)
    return [{**trial.parameters, **store.results[trial.key]} for trial in trials]


def _results(trials: list[Trial], n_jobs: int) -> Iterator[tuple[Trial, Record]]:
    """Results as they come: narrow trials side by side, then the wide ones, one after the other."""
    narrow = [trial for trial in trials if not trial.wide]
    if n_jobs == 1 or len(narrow) < 2:
        yield from ((trial, _run(trial, n_jobs)) for trial in narrow)
    else:
        with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
            pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all")
            yield from pool(joblib.delayed(_run_named)(trial) for trial in narrow)
    yield from ((trial, _run(trial, n_jobs)) for trial in trials if trial.wide)


def _run_named(trial: Trial) -> tuple[Trial, Record]:
    return trial, _run(trial, 1)


def _run(trial: Trial, n_jobs: int) -> Record:
    """Run with one BLAS thread, since their number can change the last digits."""
    start = perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore")  # constant pixels, empty selections, LASSO's iterations: the tables show them
        result = trial.run(**trial.parameters, n_jobs=n_jobs)
    return {**result, "seconds": perf_counter() - start}
