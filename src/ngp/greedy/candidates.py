"""What a step of a pursuit looks for: the candidate that lowers the loss most, by itself or with others to come."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan, nan
from typing import NamedTuple

import numpy as np

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.look_ahead import Ahead, LookAhead, Outlook, best_ahead, worth
from ngp.greedy.path import Step, certainty, scored_step
from ngp.greedy.screening import Screening
from ngp.predictors.base import ColumnSets, Losses, Scorer

__all__ = ["Candidates", "Found", "Search", "Tally", "by_group"]


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
    look_ahead: LookAhead = field(default_factory=lambda: LookAhead(1))
    predictor: str = ""  # name of what predicts, for the record
    tally: Tally = field(default_factory=Tally)
    scorer: Scorer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", self.bind(self.problem))

    def on(self, problem: Problem) -> Search:
        """The same search on other data."""
        return replace(self, problem=problem)

    def depth(self, n_candidates: int, room: int | None) -> int:
        """How many candidates are added tentatively in a step, if so many may be added at all."""
        most = self.look_ahead.n_features
        return min(most, n_candidates, most if room is None else max(1, room))

    def best(self, selected: IntArray, number: int, room: int | None = None, without: Collection[int] = ()) -> Found:
        """Score all candidates, or those that promise most, and find the best one."""
        problem, scorer = self.problem, self.scorer.at(number)
        candidates = Candidates.beside(problem, selected)
        if without:
            candidates = candidates.take(np.flatnonzero(~np.isin(candidates.names, list(without))))
        if not len(candidates.names):
            return Found(
                candidates, inf, Losses(np.empty((0, len(problem.part_weights))), problem.part_weights), 0, None
            )
        depth = self.depth(len(candidates.names), room)
        if self.screening and depth == 1:  # else sets are screened, of which there are more
            costs = candidates.costs(problem)
            candidates = candidates.take(self.screening.best(problem, selected, candidates.columns, costs))
        costs = candidates.costs(problem)
        before, losses = score(problem, scorer, selected, candidates.columns)
        self.tally.n_fits += len(candidates.names)
        _warn_of_lost(losses)
        values = worth(losses.comparable, before, costs)
        best, second = two_best(values)
        found = Found(candidates, before, losses, best, second)
        if depth == 1 or found.diverged:
            return found
        width = self.look_ahead.beam_width
        outlook = Outlook(problem, scorer, self.screening, selected, candidates.columns, costs, before, width)
        ahead = best_ahead(outlook, values, depth)
        self.tally.n_fits += outlook.n_fits
        return found if ahead is None else found.led_by(ahead, depth)


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
    losses: Losses  # with each candidate
    best: int  # position of the best candidate
    second: int | None  # of the one that comes next
    ahead: float = nan  # loss of the best selection that was found by looking ahead; NaN if there is none
    n_ahead: int = 1  # how many groups it adds

    @property
    def diverged(self) -> bool:
        """Whether no candidate has a finite loss, or there is none."""
        return not np.isfinite(self.losses.means).any()

    @property
    def final_loss(self) -> float:
        """Loss with the best candidate and whatever was seen ahead of it."""
        return float(self.losses.means[self.best]) if isnan(self.ahead) else self.ahead

    def step(self, search: Search, last: Step) -> Step:
        """The step that adds the best candidate."""
        groups, means, best = search.problem.groups, self.losses.means, self.best
        names, columns = self.candidates
        return scored_step(
            self.losses,
            best,
            action="add",
            group=int(names[best]),
            name=groups.names[int(names[best])],
            columns=columns[best].copy(),
            before=self.before,
            runner_up=None if self.second is None else int(names[self.second]),
            runner_up_loss=nan if self.second is None else float(means[self.second]),
            n_selected=last.n_selected + 1,
            n_columns=last.n_columns + len(columns[best]),
            losses=by_group(search.problem, names, means),
            predictor=search.predictor,
            ahead=self.ahead,
            n_ahead=self.n_ahead,
            certainty=certainty(self.losses, best, self.second),
        )

    def led_by(self, ahead: Ahead, depth: int) -> Found:
        """The same with the candidate that looking ahead found."""
        second = self.second if ahead.first == self.best else None
        return self._replace(best=ahead.first, second=second, ahead=ahead.loss, n_ahead=depth)


def score(problem: Problem, scorer: Scorer, selected: IntArray, candidates: ColumnSets) -> tuple[float, Losses]:
    """Loss of the selection as it is and losses of all candidates, side by side under the same conditions."""
    if not len(selected):
        return float(scorer.constant_losses(problem).means[0]), scorer.add_losses(selected, candidates)
    losses = scorer.add_losses(selected, candidates.with_empty())
    predictors = None if losses.predictors is None else losses.predictors[:-1]
    before = float(losses.means[-1])
    return before if isfinite(before) else inf, Losses(losses.parts[:-1], losses.weights, predictors)


def by_group(problem: Problem, groups: IntArray, losses: FloatArray) -> FloatArray:
    """Losses of some groups among all; NaN for the others."""
    found = np.full(problem.groups.n_groups, np.nan)
    found[groups] = losses
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
        warnings.warn(f"{bad.sum()} candidates have a loss that is no finite number: they lose.", stacklevel=5)
