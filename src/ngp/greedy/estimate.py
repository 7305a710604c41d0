"""What a fit would cost: a sample of its work is timed, and multiplied.

The sample is taken from the middle of the path: some columns, drawn at random, are selected, and a few candidates are
scored, tested and paired beside them. So it takes a small part of the time of the fit.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ngp._formatting import counted, duration
from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.greedy.candidates import Candidates, Search, most_kept
from ngp.greedy.screening import n_scored
from ngp.greedy.significance import LOOKS, TRIED_LOOKS, SignificanceTest
from ngp.greedy.stability import half_problem
from ngp.greedy.stopping import FirstOf, MaxColumns, MaxFeatures, MaxFits, MaxTime, StopRule
from ngp.predictors.base import ColumnSets

__all__ = ["Estimate", "estimate_pursuit"]

# Steps of fits whose data decide how many there are, in eight of ten cases (`python -m benchmarks.estimates`); without
# p-values, at least.
USUAL_STEPS, LEAST_STEPS = (6, 30), 2
# Tests of candidates that are in doubt take up to five times as long as the shortest, which is timed, and of a usual
# path all together as long as so many of the shortest; those of clear ones take a fifth.
LONGEST_TEST, USUAL_TESTS, CLEAR_TEST = 5.0, (2.0, 40.0), 0.2
# Each so many columns are scored together, to see how long all of them take: that grows with their square, at most.
SCORED_TOGETHER = 4
# Candidates that are timed, of all candidates of all steps, at least, and seconds after which there are no more.
SAMPLE_SHARE, LEAST_SAMPLE, SAMPLE_SECONDS = 0.02, 8, 0.2
TESTED, PAIRED = 128, 512  # of more candidates, some are tested and paired
# Steps' worth of candidates that floating scores for each feature, measured on ten fits: 2 to 6.
MOST_EXCHANGES = 6
# How much longer or shorter than its sample work may take: machines are noisy, and caches fill.
SPREAD = 1.3
# If one candidate takes longer, no other is tried, nor the final predictor.
SLOW_SECONDS = 1.0
# The final predictor is trained on a share of few rows, and of many rows on so many, since networks try their widest
# layers on some hundred. It takes so many times as long on all rows, measured, or as long as so many candidates.
FEW_ROWS, FINAL_SHARE, FINAL_ROWS, FINAL_FITS = 1700, 0.25, 100, 5
FINAL_TIMES = {True: (1.0, 20.0), False: (2.0, 14.0)}  # by whether there are few
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
    n_steps : tuple of int
        How many steps are assumed, at least and at most: if the data decide, what is usual.
    n_fits : tuple of int
        How many candidates are scored in them, at least and at most, each on all folds.
    device : str
        Where candidates are scored.

    Examples
    --------
    >>> import numpy as np
    >>> from ngp import NeuralGreedyPursuit
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> estimate = NeuralGreedyPursuit(n_features_to_select=3, random_state=0).estimate(X, X[:, 0])
    >>> estimate.n_fits
    (57, 57)
    >>> print(estimate)
    Between ... and ... for 3 steps with 57 fits on the cpu, and about ... MB of memory beside X.
    """

    seconds: tuple[float, float]
    memory: int
    n_steps: tuple[int, int]
    n_fits: tuple[int, int]
    device: str

    def __str__(self) -> str:
        low, high = map(duration, self.seconds)
        work = f"{_range(self.n_steps, 'step')} with {_range(self.n_fits, 'fit')} on the {self.device}"
        assumed = "" if self.n_steps[0] == self.n_steps[1] else " (as usual: how many pay, only the fit can tell)"
        number = float(f"{self.memory / 1e6:.2g}")
        memory = f"{number:,.0f} MB" if number < 1000 else f"{number / 1000:g} GB"
        return f"Between {low} and {high} for {work}{assumed}, and about {memory} of memory beside X."


def _range(numbers: tuple[int, int], noun: str) -> str:
    low, high = numbers
    return counted(high, noun) if low == high else f"{low:,} to {counted(high, noun)}"


def estimate_pursuit(
    search: Search,
    rule: StopRule,
    fixed: IntArray,
    n_fixed: int,
    floating: bool,
    seconds_before: float,
    predicts: bool = True,
    max_time: float | None = None,
) -> Estimate:
    """Predict what a pursuit and, if it predicts, the final predictor cost, after some seconds that it took already."""
    candidates = Candidates.beside(search.problem, fixed)
    few, many = _n_steps(rule, candidates, n_fixed, len(fixed))
    left = len(candidates.names) - np.arange(many)
    scored = left if search.screening is None else np.array([n_scored(search.screening.screen, int(n)) for n in left])
    moment = _Moment.of(search, candidates, fixed, max(1, (few + many) // 2), int(scored[:few].sum()))
    once, each = moment.candidate_seconds
    steps = once + (scored + 1) * each  # and the selection as it is
    if search.screening:
        fixed_seconds, ranked = moment.screening_seconds()
        steps = steps + fixed_seconds + left * ranked
    leaders = each * np.array([_n_raced(search, n) for n in scored]).reshape(-1, 2)
    low = float((steps + leaders @ [0.75, 0.25])[:few].sum())
    high = float((steps + leaders @ [0.25, 0.75]).sum() + steps[:1].sum())  # the first may be scored twice
    if rule.level is not None and many:
        test, pair = moment.test_seconds(rule.level)
        low += (USUAL_TESTS[0] * test + pair / 2) * (few < many)
        high += (min(USUAL_TESTS[1], LONGEST_TEST * many) + CLEAR_TEST * many) * test + pair
    if floating:  # at the end each feature is exchanged for all others, and left out, with others in its place
        high += MOST_EXCHANGES * many * float((steps + leaders[:, 1]).max(initial=0))
    if max_time is not None:  # no step begins after it, and the last one is finished
        low, high = min(low, max_time), min(high, max_time + float(2 * (steps + leaders[:, 1]).max(initial=0)))
    if many:
        together = moment.together_seconds()
        low, high = low + together * (max_time is None), high + SCORED_TOGETHER**2 * together
    final = moment.final_seconds() if many and predicts else (0.0, 0.0)
    if few < many:  # nothing may be selected
        final = 0.0, final[1]
    return Estimate(
        seconds=(seconds_before + (low + final[0]) / SPREAD, seconds_before + (high + final[1]) * SPREAD),
        memory=int(max(LEAST_BYTES, moment.n_bytes())),
        n_steps=(few, many),
        n_fits=(int(scored[:few].sum()), int(scored.sum())),
        device=_device(search.scorer),
    )


def _n_steps(rule: StopRule, candidates: Candidates, n_fixed: int, n_fixed_columns: int) -> tuple[int, int]:
    """How many steps a fit makes, at least and at most."""
    n, size = len(candidates.names), max(1.0, float(candidates.columns.sizes.mean()) if len(candidates.names) else 1.0)
    limit = min(rule.max_features - n_fixed, (rule.max_columns - n_fixed_columns) / size)
    most = int(min(n, max(0, limit)))
    rules = rule.rules if isinstance(rule, FirstOf) else [rule]
    if limit < np.inf and all(isinstance(each, MaxFeatures | MaxColumns | MaxTime | MaxFits) for each in rules):
        return most, most
    low, high = USUAL_STEPS
    return min(most, LEAST_STEPS if rule.level is None else low), min(most, high)


def _n_raced(search: Search, n: int) -> tuple[float, float]:
    """How many candidates of the first stage the later stages take as long as, at least and at most."""
    layers = [stage.n_layers for stage in search.scorer.stages]
    kept = [min(n, most_kept(n, each)) for each in layers[:-1]]
    least = 2 * (layers[-1] - layers[0])  # if the layers before are remembered
    return least, sum(a * b for a, b in zip(kept, layers[1:], strict=True))


@dataclass(frozen=True)
class _Moment:
    """A moment of a fit: some columns are selected, and candidates wait to be scored."""

    search: Search
    selected: IntArray
    candidates: ColumnSets
    number: int  # of the step
    n_sampled: int  # candidates that may be timed

    @classmethod
    def of(cls, search: Search, candidates: Candidates, fixed: IntArray, number: int, n_fits: int) -> _Moment:
        """Some step of a path with so many fits."""
        order = np.random.default_rng(0).permutation(len(candidates.names))[: number - 1]
        selected = np.unique(np.concatenate([fixed, candidates.columns.take(order).columns]))
        left = Candidates.beside(search.problem, selected).columns
        return cls(search, selected, left, number, max(LEAST_SAMPLE, int(SAMPLE_SHARE * n_fits)))

    def _sample(self, number: int) -> ColumnSets:
        n = len(self.candidates)
        places = np.random.default_rng(0).choice(n, min(number, n), replace=False)
        return self.candidates.take(np.sort(places))

    @property
    def _scorer(self) -> Any:
        return self.search.scorer.at(self.number)

    @cached_property
    def candidate_seconds(self) -> tuple[float, float]:
        """Time of a step without candidates, and of one candidate in the first stage."""
        n_jobs, stage = int(effective_n_jobs(self._n_jobs)), self._scorer.stages[0]
        once, each = _seconds(
            lambda number: stage.add_losses(self.selected, self._sample(number)),
            min(len(self.candidates), self.n_sampled),
            n_jobs,
        )
        if each <= SLOW_SECONDS and len(self.selected):  # a step tunes to the selection, and to the winner
            once += 2 * _clock(lambda: stage.tuned(self.selected, self._sample(1)))
        return once, each

    @property
    def _n_jobs(self) -> int | None:
        n_jobs: int | None = getattr(self.search.scorer, "n_jobs", 1)
        return n_jobs

    def screening_seconds(self) -> tuple[float, float]:
        """The same of the cheap pass."""
        screening, problem = self.search.screening, self.search.problem
        assert screening is not None
        return _seconds(
            lambda number: screening.promises(problem, self.selected, self._sample(number)), len(self.candidates)
        )

    def test_seconds(self, level: float) -> tuple[float, float]:
        """Time of the shortest test of candidates that are in doubt, and of that of all pairs."""
        problem, n = self.search.problem, len(self.candidates)
        shuffled = problem.targets[np.random.default_rng(0).permutation(problem.n_samples)]  # nothing is significant
        test = SignificanceTest(
            replace(problem, targets=shuffled), level, n_jobs=self._n_jobs, looks=LOOKS[:1], tried_looks=TRIED_LOOKS[:1]
        )

        def seconds(task: Callable[[IntArray, ColumnSets], Any], number: int) -> float:
            return _clock(lambda: task(self.selected, self._sample(number)))

        if n <= PAIRED:
            return seconds(test.p_values, n), 0.0  # pairs of so few take no time
        few, more = (seconds(test.p_values, number) for number in (TESTED, PAIRED))
        few_pairs, more_pairs = (seconds(test.pair, number) for number in (TESTED, PAIRED))
        return (
            more + (n - PAIRED) * max(0.0, (more - few) / (PAIRED - TESTED)),
            more_pairs + (n**2 - PAIRED**2) * max(0.0, (more_pairs - few_pairs) / (PAIRED**2 - TESTED**2)),
        )

    def together_seconds(self) -> float:
        """Time of the score of a part of the columns together; of few columns, that of a candidate."""
        _, each = self.candidate_seconds
        if each > SLOW_SECONDS or len(self.candidates) <= SCORED_TOGETHER**2:
            return each
        return _clock(lambda: self.search.score_of_all(SCORED_TOGETHER))

    def final_seconds(self) -> tuple[float, float]:
        """Time of the final predictor, at least and at most: it is trained on some rows."""
        _, each = self.candidate_seconds
        if each > SLOW_SECONDS:
            return 0.0, FINAL_FITS * each
        problem = self.search.problem
        are_few = problem.n_fit <= FEW_ROWS
        n_rows = int(FINAL_SHARE * problem.n_fit) if are_few else FINAL_ROWS
        scorer = self.search.on(_of_rows(problem, max(1, n_rows))).scorer.at(self.number)
        columns = np.concatenate([self.selected, self._sample(1).columns])
        taken = _clock(lambda: scorer.fit(columns))
        least, most = FINAL_TIMES[are_few]
        return least * taken, max(most * taken, FINAL_FITS * each)

    def n_bytes(self) -> int:
        """Memory that scoring all candidates takes, as far as numpy allocates it."""
        problem, n = self.search.problem, len(self.candidates)
        vectors = 8 * (3 * problem.n_columns + (self.number + 1) * problem.groups.n_groups)
        found = vectors + 8 * (len(problem.part_weights) + 4) * n  # parts, mean, number, place, column of a candidate
        if tracemalloc.is_tracing():  # somebody else is: leave it alone
            return found
        scorer, (_, each) = self._scorer.stages[-1], self.candidate_seconds  # the last stage takes most memory
        number = 1 if each > SAMPLE_SECONDS / 4 else max(1, self.n_sampled // (4 * scorer.n_layers))
        tracemalloc.start()
        try:
            scorer.add_losses(self.selected, self._sample(number))
            return found + tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def _of_rows(problem: Problem, number: int) -> Problem:
    """The problem of some of its rows, drawn at random."""
    mask = np.arange(problem.n_samples) >= problem.n_fit
    mask[np.random.default_rng(0).permutation(problem.n_fit)[:number]] = True
    return half_problem(problem, mask)


def _seconds(task: Callable[[int], Any], most: int, n_jobs: int = 1) -> tuple[float, float]:
    """Fixed time of a task with a number of things to do, and the time of each; the first call doesn't count."""
    if not most:
        return 0.0, 0.0
    first = _clock(partial(task, 1))  # loads, compiles and fills caches
    if first > SLOW_SECONDS and n_jobs == 1:
        return 0.0, first
    number, few, less = (1, 0, 0.0) if first < SAMPLE_SECONDS / 8 else (min(most, n_jobs), 0, 0.0)
    while True:
        taken = _clock(partial(task, number))
        if number == most or taken > SAMPLE_SECONDS / 4:
            break
        number, few, less = min(most, 8 * number), number, taken
    mean = taken / number
    each = min(mean, max(mean / 4, (taken - less) / (number - few)))  # clocks are noisy
    return taken - number * each, each


def _clock(task: Callable[[], Any]) -> float:
    begin = perf_counter()
    task()
    return perf_counter() - begin


def _device(scorer: Any) -> str:
    """Where a scorer works: the CPU, if it doesn't say."""
    algebra = getattr(scorer, "algebra", None)
    return str(getattr(scorer, "gpu", None) or getattr(scorer, "device", None) or getattr(algebra, "device", "cpu"))
