"""A little of the work of a fit, to see how long all of it takes and how much memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.greedy.calibration import Cost, clock, runs, settled_clock, timed, traced_bytes
from ngp.greedy.candidates import Candidates
from ngp.greedy.screening import Screening
from ngp.predictors.base import ColumnSets, Scorer

__all__ = ["Rehearsal"]

# Time for each sample of candidates. Where the smallest one takes longer than half of it, the middle of the fit stands
# for all of it, with one larger sample as far as LARGER_SECONDS allow. Beyond SLOW_SECONDS the estimate is called
# rough. The very first sample, with what is done once, is the only one where it takes HOPELESS_SECONDS.
SAMPLE_SECONDS = 0.25
LARGER_SECONDS = 1.5
SLOW_SECONDS = 1.0
HOPELESS_SECONDS = 10.0
# Of a predictor that slow: how many candidates' time the final one takes.
FINAL_FITS = 2
# What takes longer isn't done a second time to see its memory.
TRACED_SECONDS = 0.5
# Neighbouring columns that are sampled together.
RUN_LENGTH = 256


@dataclass(frozen=True)
class _Scene:
    """A moment of a fit: random columns are selected, and candidates wait to be scored."""

    problem: Problem
    scorer: Scorer
    selected: IntArray
    candidates: ColumnSets

    def sample(self, number: int) -> ColumnSets:
        """Some of the candidates; the same ones whenever it is asked for so many."""
        length = RUN_LENGTH if self.problem.groups.is_single else 1
        return self.candidates.take(runs(len(self.candidates), number, length))

    def score(self, number: int) -> None:
        """Score some candidates, and the selection as it is."""
        sample = self.sample(number)
        self.scorer.add_losses(self.selected, sample.with_empty() if len(self.selected) else sample)

    def screen(self, screening: Screening, number: int) -> None:
        """Rank some candidates by the cheap pass."""
        screening.promises(self.problem, self.selected, self.sample(number))


@dataclass(frozen=True)
class Rehearsal:
    """Tries the first, the middle and the last step of a fit, on samples of the candidates."""

    problem: Problem  # whose columns have been looked at
    scorer: Scorer  # what scores
    screening: Screening | None  # what screens
    fixed: IntArray  # columns that are selected from the start
    n_steps: int  # of the fit
    pool: slice  # columns that samples are taken from
    n_jobs: int | None  # as everywhere in scikit-learn

    @cached_property
    def scenes(self) -> dict[int, _Scene]:
        """By the number of groups that are selected, rising."""
        first = self._in_pool(self.fixed)
        order = np.random.default_rng(0).permutation(len(first))
        # Some candidates must be left; a path through all columns makes most of its fits in its first half.
        last = max(0, min(self.n_steps - 1, len(first) // 2))
        scenes = {}
        for n_groups in sorted({0, last // 2, last}):
            picked = np.unique(first.take(order[:n_groups]).columns)
            selected = np.concatenate([self.fixed, picked]).astype(np.intp)
            scorer = self.scorer.at(n_groups + 1)
            scenes[n_groups] = _Scene(self.problem, scorer, selected, self._in_pool(selected))
        return scenes

    def _in_pool(self, selected: IntArray) -> ColumnSets:
        """Candidates beside some columns; only those in the pool, if there are such."""
        sets = Candidates.beside(self.problem, selected).columns
        first, last, _ = self.pool.indices(self.problem.n_columns)
        outside = (sets.columns < first) | (sets.columns >= last)
        n_outside = np.diff(np.concatenate([[0], np.cumsum(outside)])[sets.bounds])
        return sets.take(np.flatnonzero(n_outside == 0)) if (n_outside == 0).any() else sets

    @cached_property
    def tasks(self) -> int:
        """How many run side by side."""
        return int(effective_n_jobs(self.n_jobs))

    @cached_property
    def _first_seconds(self) -> float:
        """Time of a first, small sample, with all that is done once: workers start, a GPU gets its columns."""
        scene = self.scenes[0]
        if self.device != "cpu":  # what is compiled is compiled once for all fits
            replace(scene, scorer=copy(scene.scorer)).score(self._fewest(scene))
        return clock(lambda: scene.score(self._fewest(scene)))

    @property
    def _clock(self) -> Callable[[Callable[[], Any]], float]:
        return clock if self.device == "cpu" else settled_clock

    def _fewest(self, scene: _Scene) -> int:
        """A candidate a job, or more where the scorer asks for it; if there are so many."""
        return min(self.tasks * getattr(scene.scorer, "timed_per_job", 1), len(scene.candidates))

    @cached_property
    def _unit(self) -> tuple[int, float]:
        """Size and time of a small sample, in the middle of the fit."""
        scene = self.scenes[self._middle]
        number, seconds = self._fewest(scene), self._first_seconds
        return number, self._clock(lambda: scene.score(number)) if seconds < HOPELESS_SECONDS else seconds

    @property
    def _middle(self) -> int:
        return list(self.scenes)[len(self.scenes) // 2]

    @property
    def slow(self) -> bool:
        """Whether even a few candidates take long."""
        return self._unit[1] > SLOW_SECONDS

    @cached_property
    def _points(self) -> dict[int, list[tuple[int, float]]]:
        """Numbers of candidates and the time to score them, by the number of selected groups."""
        number, seconds = self._unit
        if seconds > SAMPLE_SECONDS / 2:
            scene = self.scenes[self._middle]
            larger = min(len(scene.candidates), int(number * LARGER_SECONDS / seconds))
            if larger > number:  # what it takes a candidate is then taken for true: two points would tell noise
                return {self._middle: [(larger, self._clock(lambda: scene.score(larger)))]}
            return {self._middle: [self._unit]}
        return {
            n_groups: timed(scene.score, self._fewest(scene), len(scene.candidates), SAMPLE_SECONDS, self._clock)
            for n_groups, scene in self.scenes.items()
        }

    @cached_property
    def scoring(self) -> dict[int, Cost]:
        """Cost of a step by the number of selected groups, screening aside."""
        return {n_groups: Cost.between(points) for n_groups, points in self._points.items()}

    @cached_property
    def once_seconds(self) -> float:
        """What the first step takes longer than others like it."""
        few = self._fewest(self.scenes[0])
        return max(0.0, self._first_seconds - Cost.interpolated(self.scoring, 0).of(few))

    @cached_property
    def ranking(self) -> dict[int, Cost]:
        """Cost of the cheap pass by the number of selected groups."""
        if self.screening is None:
            return {0: Cost(0.0, 0.0)}
        costs = {}
        for n_groups, scene in self.scenes.items():
            rank = partial(scene.screen, self.screening)
            costs[n_groups] = Cost.between(timed(rank, 8 * self.tasks, len(scene.candidates), SAMPLE_SECONDS / 2))
        return costs

    def step_seconds(self, n_groups: int, n_candidates: int, n_scored: int) -> float:
        """Time of a step."""
        selection = int(n_groups > 0 or len(self.fixed) > 0)  # is scored, too
        seconds = Cost.interpolated(self.scoring, n_groups).of(n_scored + selection)
        if n_scored < n_candidates:
            seconds += Cost.interpolated(self.ranking, n_groups).of(n_candidates)
        return seconds

    @cached_property
    def device(self) -> str:
        """Where candidates are scored; several where members of a committee differ."""
        members = getattr(self._final_scorer, "scorers", [self._final_scorer])
        return " and ".join(sorted({_device(member) for member in members}))

    @cached_property
    def final_seconds(self) -> float:
        """Time to train the final predictor."""
        unit = self.tasks * Cost.interpolated(self.scoring, self.n_steps).of(1)
        members = getattr(self._final_scorer, "scorers", [self._final_scorer])  # any of which may win
        judging = unit if len(members) > 1 else 0.0
        return judging + max(self._fit_seconds(member, unit) for member in members)

    @property
    def _final_scorer(self) -> Any:
        return self.scorer.at(max(1, self.n_steps))

    @property
    def _final_columns(self) -> IntArray:
        """As many as will be selected in the end, or nearly; at least one."""
        scene = self._last
        return np.concatenate([scene.selected, scene.sample(1).columns]) if self.n_steps else scene.selected

    @property
    def _last(self) -> _Scene:
        return list(self.scenes.values())[-1]

    def _fit_seconds(self, scorer: Any, unit: float) -> float:
        if hasattr(scorer, "fit_seconds"):
            return float(scorer.fit_seconds(self._final_columns))
        return FINAL_FITS * unit if self.slow else clock(lambda: scorer.fit(self._final_columns))

    def n_bytes(self, n_candidates: int) -> int:
        """Memory for a step or for the final predictor, whichever needs more; as far as numpy allocates it."""
        each = 8 * (len(self.problem.part_weights) + 4)  # parts, mean, number, place, column of a candidate
        number, seconds = self._points[self._middle][-1]
        if seconds > TRACED_SECONDS:
            return each * n_candidates
        traced = traced_bytes(partial(self.scenes[self._middle].score, number))
        return max(traced + each * (n_candidates - number), self._final_bytes)

    @property
    def _final_bytes(self) -> int:
        if self.final_seconds > TRACED_SECONDS:
            return 0
        return traced_bytes(partial(self._final_scorer.fit, self._final_columns))


def _device(scorer: Any) -> str:
    """Where a scorer works: the CPU, if it doesn't say."""
    algebra = getattr(scorer, "algebra", None)
    return str(getattr(scorer, "gpu", None) or getattr(scorer, "device", None) or getattr(algebra, "device", "cpu"))
