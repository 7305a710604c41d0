"""What a fit would cost: a sample of its candidates is timed, and multiplied."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ngp._formatting import counted, duration
from ngp._types import IntArray
from ngp.greedy.candidates import Candidates, Search, most_kept
from ngp.greedy.screening import n_scored
from ngp.greedy.significance import LOOKS, SignificanceTest
from ngp.greedy.stopping import StopRule
from ngp.predictors.base import ColumnSets

__all__ = ["Estimate", "estimate_pursuit"]

# Steps at most if the losses decide how many there are: nobody knows them before.
ASSUMED_STEPS = 10
MORE_TESTING = len(LOOKS)  # times as long as testing a sample: some steps take all permutations
SAMPLE_SECONDS = 0.3  # for each of the three samples: first step, last step, screening
# Steps' worth of candidates that floating scores for each feature, measured on ten fits: 2 to 6.
MOST_EXCHANGES = 6
# How much longer or shorter than its sample work may take: machines are noisy, and caches fill.
SPREAD = 1.6
# If one candidate takes longer, the final predictor isn't trained to see how long that takes.
SLOW_SECONDS = 1.0
FINAL_FITS = 5  # candidates that take as long as such a final predictor
LEAST_BYTES = 50_000_000


@dataclass(frozen=True)
class Estimate:
    """What a fit would cost; made by `NeuralGreedyPursuit.estimate`.

    Attributes
    ----------
    seconds : tuple of float
        Range in which the time of the whole fit should be.
    memory : int
        Bytes that the process needs beside X and what it has now, at the peak; 50 MB at least. Worker processes have
        their own, and so have GPUs.
    n_steps : int
        How many steps were assumed, at most.
    n_fits : int
        How many candidates are trained in them, each on all folds; without those that test significance.
    device : str
        Where candidates are scored.

    Examples
    --------
    >>> import numpy as np
    >>> from ngp import NeuralGreedyPursuit
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> estimate = NeuralGreedyPursuit(n_features_to_select=3, random_state=0).estimate(X, X[:, 0])
    >>> estimate.n_fits
    57
    >>> print(estimate)
    Between ... and ... for 3 steps with 57 fits on the cpu, and about ... MB of memory beside X.
    """

    seconds: tuple[float, float]
    memory: int
    n_steps: int
    n_fits: int
    device: str

    def __str__(self) -> str:
        low, high = map(duration, self.seconds)
        work = f"{counted(self.n_steps, 'step')} with {counted(self.n_fits, 'fit')} on the {self.device}"
        number = float(f"{self.memory / 1e6:.2g}")
        memory = f"{number:,.0f} MB" if number < 1000 else f"{number / 1000:g} GB"
        return f"Between {low} and {high} for {work}, and about {memory} of memory beside X."


def estimate_pursuit(
    search: Search, rule: StopRule, fixed: IntArray, n_fixed: int, floating: bool, seconds_before: float
) -> Estimate:
    """Predict what a pursuit and the final predictor cost, after what has taken some seconds already."""
    candidates = Candidates.beside(search.problem, fixed)
    n_steps, is_known = _n_steps(rule, candidates, n_fixed, len(fixed))
    first = _Moment(search, fixed, candidates.columns, 1)
    order = np.random.default_rng(0).permutation(len(candidates.names))[: max(0, n_steps - 1)]
    selected = np.unique(np.concatenate([fixed, candidates.columns.take(order).columns]))
    last = _Moment(search, selected, Candidates.beside(search.problem, selected).columns, n_steps)
    costs = np.linspace(first.candidate_seconds(), last.candidate_seconds(), max(1, n_steps))
    left = len(candidates.names) - np.arange(max(1, n_steps))
    scored = left if search.screening is None else np.array([n_scored(search.screening.screen, int(n)) for n in left])
    steps, leaders = costs[:, 0] + scored * costs[:, 1], costs[:, 1] * np.array([_n_raced(search, n) for n in scored]).T
    if search.screening:
        fixed_seconds, each = first.screening_seconds()
        steps = steps + fixed_seconds + left * each
    slowest = float(costs[-1].sum())  # a single candidate of the last step
    final = last.final_seconds(slowest) if n_steps else 0.0
    low, high = (steps + leaders[0]).sum(), (steps + leaders[1]).sum() + steps[0]  # the first may be scored twice
    if rule.level is not None:
        test = max(first.test_seconds(rule.level), last.test_seconds(rule.level))
        low, high = low + test * n_steps, high + test * n_steps * MORE_TESTING
    if not is_known:
        low = steps[0] + leaders[0, 0]
    if floating:  # at the end each feature is exchanged for all others, and left out, with others in its place
        high += MOST_EXCHANGES * n_steps * (steps + leaders[1]).max()
    vectors = 8 * (3 * search.problem.n_columns + (n_steps + 1) * search.problem.groups.n_groups)
    memory = vectors + last.n_bytes(slowest)
    return Estimate(
        seconds=(seconds_before + (low + final) / SPREAD, seconds_before + (high + final) * SPREAD),
        memory=int(max(LEAST_BYTES, memory)),
        n_steps=n_steps,
        n_fits=int(scored.sum()),
        device=_device(search.scorer),
    )


def _n_steps(rule: StopRule, candidates: Candidates, n_fixed: int, n_fixed_columns: int) -> tuple[int, bool]:
    """How many steps a fit makes at most, and whether a number is given."""
    n, size = len(candidates.names), max(1.0, float(candidates.columns.sizes.mean()) if len(candidates.names) else 1.0)
    limit = min(rule.max_features - n_fixed, (rule.max_columns - n_fixed_columns) / size)
    if limit < np.inf:
        return int(min(n, max(0, limit))), rule.level is None and rule.least_gain == 0
    return min(n, ASSUMED_STEPS), False


def _n_raced(search: Search, n: int) -> tuple[float, float]:
    """How many candidates of the first stage the later stages take as long as, at least and at most."""
    layers = [stage.n_layers for stage in search.scorer.stages]
    kept = [min(n, most_kept(n, each)) for each in layers[:-1]]
    return sum(2 * each for each in layers[1:]), sum(a * b for a, b in zip(kept, layers[1:], strict=True))


@dataclass(frozen=True)
class _Moment:
    """A moment of a fit: some columns are selected, and candidates wait to be scored."""

    search: Search
    selected: IntArray
    candidates: ColumnSets
    number: int  # of the step

    def _sample(self, number: int) -> ColumnSets:
        n = len(self.candidates)
        places = np.random.default_rng(0).choice(n, min(number, n), replace=False)
        return self.candidates.take(np.sort(places))

    def _score(self, number: int, stage: int = 0) -> None:
        sample = self._sample(number)
        scorer = self.search.scorer.at(max(1, self.number)).stages[stage]
        scorer.add_losses(self.selected, sample.with_empty() if len(self.selected) else sample)

    def candidate_seconds(self) -> tuple[float, float]:
        """Time of a step without candidates, and of one candidate, from as large a sample as there is time for."""
        n_jobs = int(effective_n_jobs(getattr(self.search.scorer, "n_jobs", 1)))
        return _seconds(self._score, len(self.candidates), n_jobs)

    def test_seconds(self, level: float) -> float:
        """Time of the test of all candidates, with as many permutations as they take."""
        test = SignificanceTest(self.search.problem, level, n_jobs=getattr(self.search.scorer, "n_jobs", 1))

        def task(number: int) -> None:
            test.p_values(self.selected, self._sample(number))

        return sum(_seconds(task, len(self.candidates)))

    def screening_seconds(self) -> tuple[float, float]:
        """The same of the cheap pass."""
        screening, problem = self.search.screening, self.search.problem
        assert screening is not None
        return _seconds(
            lambda number: screening.promises(problem, self.selected, self._sample(number)), len(self.candidates)
        )

    def final_seconds(self, unit: float) -> float:
        """Time of the final predictor."""
        if unit > SLOW_SECONDS:
            return FINAL_FITS * unit
        begin = perf_counter()
        self.search.scorer.at(max(1, self.number)).fit(np.concatenate([self.selected, self._sample(1).columns]))
        return perf_counter() - begin

    def n_bytes(self, unit: float) -> int:
        """Memory that scoring all candidates takes, as far as numpy allocates it."""
        each = 8 * (len(self.search.problem.part_weights) + 4)  # parts, mean, number, place, column of a candidate
        unit *= self.search.scorer.at(max(1, self.number)).n_layers  # the last stage of a race takes most memory
        number = min(len(self.candidates), 64, max(1, int(SAMPLE_SECONDS / max(unit, 1e-9))))
        if tracemalloc.is_tracing():  # somebody else is: leave it alone
            return each * len(self.candidates)
        tracemalloc.start()
        try:
            self._score(number, -1)
            return each * len(self.candidates) + tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def _seconds(task: Callable[[int], Any], most: int, n_jobs: int = 1) -> tuple[float, float]:
    """Fixed time of a task with a number of things to do, and the time of each; the first call doesn't count."""
    if not most:
        return 0.0, 0.0

    def clock(number: int) -> float:
        begin = perf_counter()
        task(number)
        return perf_counter() - begin

    first = clock(1)  # loads, compiles and fills caches
    number, few, less = min(most, 8 if first < SAMPLE_SECONDS / 8 else n_jobs), 0, 0.0
    while True:
        taken = clock(number)
        if number == most or taken > SLOW_SECONDS or (few and taken > SAMPLE_SECONDS / 4):
            break
        number, few, less = min(most, 4 * number), number, taken
    mean = taken / number
    each = min(mean, max(mean / 4, (taken - less) / (number - few)))  # clocks are noisy
    return taken - number * each, each


def _device(scorer: Any) -> str:
    """Where a scorer works: the CPU, if it doesn't say."""
    algebra = getattr(scorer, "algebra", None)
    return str(getattr(scorer, "gpu", None) or getattr(scorer, "device", None) or getattr(algebra, "device", "cpu"))
