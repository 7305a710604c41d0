"""What a step of a pursuit looks for: the candidate that lowers the loss most.

Candidates race. All are trained with the predictor's quickest stage (an SSFN with a single random layer); those that
may still be the best go on to the next stage, which has twice the layers, until the last. Differences between
candidates are paired: all share their random layers, their ridge and their folds. A candidate drops out if its loss
exceeds the lowest one by more than three standard errors of the paired difference over the parts of the validation, as
one winner in 700 would if layers mattered as much as rows do, or if too many are ahead of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from ngp._progress import phase
from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.path import Score, Step, scored_step, standard_errors
from ngp.greedy.screening import Screening
from ngp.predictors.base import ColumnSets, Losses, Scorer

__all__ = ["Candidates", "Found", "Search", "Tally", "by_group"]

# A race keeps candidates within so many standard errors of the best, ...
KEPT_ERRORS = 3.0
# ... at most this share of all, or so many if there are few, and fewer the more layers they were trained with.
KEPT_SHARE = 1 / 16
LEAST_KEPT = 24
# All columns together are scored if they hold no more numbers, and are no more.
MOST_NUMBERS, MOST_COLUMNS = 2**22, 1000
# Candidates that choose the ridge of the first step.
N_LEADERS = 3


@dataclass
class Tally:
    """How many selections were scored so far."""

    n_fits: int = 0


@dataclass(frozen=True)
class Search:
    """What all steps of a pursuit have in common: it finds the best candidate of each."""

    problem: Problem
    bind: Callable[[Problem], Scorer]  # makes what scores the candidates of a problem
    screening: Screening | None = None  # says which candidates are worth scoring; without it all are
    predictor: str = ""  # name of what predicts, for the record
    scoring: Any = None  # what judges it in place of a loss
    tally: Tally = field(default_factory=Tally)
    tuned: dict[str, Any] = field(default_factory=dict)  # the scorer of the last selection, and what that is
    scorer: Scorer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", self.bind(self.problem))

    def on(self, problem: Problem) -> Search:
        """The same search on other data."""
        return replace(self, problem=problem, tuned={})

    def scorer_of(self, selected: IntArray, number: int, likely: ColumnSets | None = None) -> Scorer:
        """The scorer of a step, tuned to the selection as it stands, or with what is likely to be added."""
        if likely is not None:
            return self.scorer.at(number).tuned(selected, likely)
        key = number, tuple(selected.tolist())
        if self.tuned.get("key") != key:
            scorer = self.scorer.at(number)
            if len(selected):
                scorer = scorer.tuned(selected, ColumnSets.of([selected[:0]]))
            self.tuned.update(key=key, scorer=scorer)
        tuned: Scorer = self.tuned["scorer"]
        return tuned

    def best(
        self,
        selected: IntArray,
        number: int,
        *,
        preferred: BoolArray | None = None,
        without: Collection[int] = (),
        likely: ColumnSets | None = None,
    ) -> Found:
        """Score all candidates, or those that promise most, and find the best one, of the preferred groups if any."""
        problem = self.problem
        candidates = Candidates.beside(problem, selected)
        if without:
            candidates = candidates.take(np.flatnonzero(~np.isin(candidates.names, list(without))))
        if not len(candidates.names):
            nothing = Losses(np.empty((0, len(problem.part_weights))), problem.part_weights)
            return Found(candidates, inf, nothing, np.zeros(0, np.intp), nan, 0, None, selected, self.scorer, nothing)
        if self.screening:
            costs = candidates.costs(problem)
            candidates = candidates.take(self.screening.best(problem, selected, candidates.columns, costs))
        eligible = None if preferred is None else preferred[candidates.names]
        if eligible is not None and not eligible.any():
            eligible = None
        scorer, first = self.scorer_of(selected, number, likely), None
        if likely is None and not len(selected):
            scorer, first = self._tuned_by_leaders(scorer, candidates)
        return self._race(scorer, selected, candidates, eligible, first)

    def _race(
        self,
        scorer: Scorer,
        selected: IntArray,
        candidates: Candidates,
        eligible: BoolArray | None,
        first: tuple[float, Losses] | None,
    ) -> Found:
        """All candidates, then fewer and fewer of the eligible ones, with more and more layers."""
        n, columns, costs = len(candidates.names), candidates.columns, candidates.costs(self.problem)
        racing, layers = np.arange(n), np.zeros(n, np.intp)
        stages = scorer.stages
        for place, stage in enumerate(stages):
            doing = "racing" if place else "scoring"
            before, losses = first or self._score(stage, selected, columns.take(racing), doing)
            if place == 0:
                _warn_of_lost(losses)
                latest = losses
            latest.parts[racing], layers[racing], first = losses.parts, stage.n_layers, None
            if latest.predictors is not None and losses.predictors is not None:
                latest.predictors[racing] = losses.predictors
            if place == 0 and eligible is not None:
                losses = Losses(losses.parts[eligible], losses.weights)
                racing = racing[eligible]
            values = worth(losses.comparable, before, costs[racing])
            if place + 1 < len(stages):
                racing = racing[survivors(losses, values, most_kept(n, stage.n_layers))]
        best, second = two_best(values)
        final = Losses(latest.parts, latest.weights, latest.predictors)  # whose means are not those of the first stage
        winner, runner_up = int(racing[best]), None if second is None else int(racing[second])
        own = Losses(final.parts[[winner]], final.weights)
        found = self._settled(scorer, selected, columns.take(racing[[best]]), stage, own)
        return Found(candidates, before, final, layers, scorer.ridge, winner, runner_up, selected, *found)

    def _settled(
        self, scorer: Scorer, selected: IntArray, winner: ColumnSets, last: Scorer, losses: Losses
    ) -> tuple[Scorer, Losses]:
        """Losses with the winner, by a scorer tuned to it, as those before it are by one tuned to the selection."""
        tuned = scorer.tuned(selected, winner)
        if tuned is scorer:
            return last, losses
        again = tuned.stages[-1]  # which remembers what it predicts, as the last stage of the race does
        found = again.add_losses(selected, winner)
        return (again, found) if found.comparable[0] < losses.comparable[0] else (last, losses)

    def score_of_all(self, every: int = 1) -> float:
        """Accuracy or R² of all columns together, which a selection is held against; NaN if that would take long.

        With `every`, it is that of each so many columns, to see how long it takes.
        """
        columns = np.flatnonzero(self.problem.varies)
        if len(columns) * self.problem.n_samples > MOST_NUMBERS or len(columns) > MOST_COLUMNS:
            return nan
        columns = columns[::every]
        scorer = self.scorer_of(columns, 1)
        losses = scorer.add_losses(columns, ColumnSets.of([columns[:0]]))
        return self.score(scorer, columns, columns[:0], losses).value

    def score(self, scorer: Scorer, selected: IntArray, new: IntArray, losses: Losses) -> Score:
        """Accuracy or R² of the predictor with the given losses."""
        problem, worst = self.problem, 1.0
        if problem.classes is not None or self.scoring is not None:  # the losses don't say it
            predictions = scorer.out_of_fold(selected, new)
            if predictions is None:
                return Score()
            losses = Losses(problem.part_errors(predictions)[None], problem.part_weights)
        if problem.classes is None:
            worst = float(problem.constant_losses @ problem.part_weights)
        return Score.of(losses, worst)

    def _tuned_by_leaders(self, scorer: Scorer, candidates: Candidates) -> tuple[Scorer, tuple[float, Losses] | None]:
        """The scorer of the first step, tuned to its leaders, and what is known of its first stage already."""
        nothing = np.zeros(0, np.intp)
        found = self._score(scorer.stages[0], nothing, candidates.columns)
        leaders = np.argsort(found[1].comparable, kind="stable")[:N_LEADERS]
        tuned = scorer.tuned(nothing, candidates.columns.take(np.sort(leaders)))
        return tuned, found if tuned is scorer else None

    def _score(
        self, scorer: Scorer, selected: IntArray, candidates: ColumnSets, doing: str = "scoring"
    ) -> tuple[float, Losses]:
        """Loss of the selection as it is and losses of candidates, side by side under the same conditions."""
        self.tally.n_fits += len(candidates)
        with phase(doing, len(candidates)):
            losses = scorer.add_losses(selected, candidates.with_empty() if len(selected) else candidates)
        if not len(selected):
            return float(scorer.constant_losses(self.problem).means[0]), losses
        predictors = None if losses.predictors is None else losses.predictors[:-1]
        before = float(losses.means[-1])
        return before if isfinite(before) else inf, Losses(losses.parts[:-1], losses.weights, predictors)


class Candidates(NamedTuple):
    """Groups that would add something that varies, and the columns they would add."""

    names: IntArray
    columns: ColumnSets

    @classmethod
    def beside(cls, problem: Problem, columns: IntArray) -> Candidates:
        """Those that are left when some columns are selected."""
        selected = np.zeros(problem.n_columns, dtype=bool)
        selected[columns] = True
        groups = problem.groups
        if groups.are_columns:
            names = np.flatnonzero((problem.varies & ~selected)[: groups.n_groups])
            return cls(names, ColumnSets.singles(names))
        sets = [groups.new_columns(group, selected) for group in range(groups.n_groups)]
        names = np.array([g for g, columns in enumerate(sets) if problem.varies[columns].any()], dtype=np.intp)
        return cls(names, ColumnSets.of([sets[group] for group in names]))

    def take(self, positions: IntArray) -> Candidates:
        """Some of them."""
        return Candidates(self.names[positions], self.columns.take(positions))

    def costs(self, problem: Problem) -> FloatArray:
        """What each of them costs."""
        return problem.groups.costs[self.names]


class Found(NamedTuple):
    """What a step has found."""

    candidates: Candidates  # what was scored
    before: float  # loss of the selection as it is
    losses: Losses  # with each candidate, those of the last stage it was in
    layers: IntArray  # random layers of each candidate's losses
    ridge: float  # that all of them share
    best: int  # position of the best candidate
    second: int | None  # of the one that comes next
    selected: IntArray  # columns that were selected before
    scorer: Scorer  # tuned to the best candidate
    settled: Losses  # with the best candidate alone, by this scorer

    @property
    def diverged(self) -> bool:
        """Whether no candidate has a finite loss, or there is none."""
        return not np.isfinite(self.losses.means).any()

    @property
    def loss(self) -> float:
        """Loss with the best candidate, by a scorer that is tuned to it."""
        return float(self.settled.means[0])

    def step(self, search: Search, last: Step) -> Step:
        """The step that adds the best candidate."""
        groups, means, best = search.problem.groups, self.losses.means, self.best
        names, columns = self.candidates
        predictors = None if self.losses.predictors is None else self.losses.predictors[[best]]
        return scored_step(
            replace(self.settled, predictors=predictors),
            0,
            action="add",
            group=int(names[best]),
            name=groups.names[int(names[best])],
            columns=columns[best].copy(),
            before=last.loss,
            paired=self.before,
            score=search.score(self.scorer, self.selected, columns[best], self.settled),
            runner_up=None if self.second is None else int(names[self.second]),
            runner_up_loss=nan if self.second is None else float(means[self.second]),
            n_selected=last.n_selected + 1,
            n_columns=last.n_columns + len(columns[best]),
            losses=by_group(search.problem, names, means),
            layers=by_group(search.problem, names, self.layers, 0),
            ridge=self.ridge,
            predictor=search.predictor,
        )


def most_kept(n_candidates: int, n_layers: int) -> int:
    """How many candidates of all are trained again, at most, after a stage with so many layers."""
    return max(2, int(max(LEAST_KEPT, KEPT_SHARE * n_candidates) / n_layers**0.75))


def survivors(losses: Losses, values: FloatArray, most: int) -> IntArray:
    """Places, in ascending order, of the candidates that may still be the best; at least two, if there are two."""
    order = np.argsort(values, kind="stable")
    kept = order[:most]
    n_parts = int(np.count_nonzero(losses.weights))
    if n_parts > 1 and np.array_equal(values, losses.comparable):  # no costs
        differences = losses.parts[kept] - losses.parts[order[0]]
        errors = standard_errors(differences, losses.weights)
        near = ~(differences @ losses.weights > KEPT_ERRORS * errors)
        near[:2] = True
        kept = kept[near]
    return np.sort(kept)


def worth(losses: FloatArray, before: float, costs: FloatArray) -> FloatArray:
    """What candidates are compared by: losses, or improvements per cost where costs differ; the lower, the better.

    On a loss that isn't finite all improve without end, whatever they cost.
    """
    if (costs == costs[0]).all() or not isfinite(before):
        return losses
    change = losses - before
    return np.where(change < 0, change / costs, change)


def by_group(problem: Problem, groups: IntArray, values: AnyArray, otherwise: float = nan) -> AnyArray:
    """Values of some groups among all."""
    found = np.full(problem.groups.n_groups, otherwise, dtype=values.dtype)
    found[groups] = values
    return found


def two_best(values: FloatArray) -> tuple[int, int | None]:
    """Positions of the lowest value and of the one that comes next, if it is a number."""
    best = int(np.argmin(values))
    others = np.delete(values, best)
    if not (others < np.inf).any():
        return best, None
    second = int(np.argmin(others))
    return best, second + (second >= best)


def _warn_of_lost(losses: Losses) -> None:
    bad = ~np.isfinite(losses.means)
    if bad.any() and not bad.all():  # if all are, there is more to say
        warnings.warn(f"{bad.sum()} candidates have a loss that is no finite number: they lose.", stacklevel=6)
