"""Algorithm 1 of the paper: add, in each step, the candidate whose retrained predictor has the lowest loss.

The letters are the paper's: S is the selection, g a candidate (a column or a group of columns), L a validation loss,
N the number of features and η the threshold of the stop rule. Beyond the paper, candidates race or are screened
(`ngp.greedy.candidates`), those that are significant are preferred and pairs are looked at (`ngp.greedy.significance`),
and picks can be undone (`ngp.greedy.floating`); without these, what follows is Algorithm 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from time import perf_counter
from typing import Protocol

import numpy as np

from ngp._types import BoolArray, IntArray
from ngp.greedy.candidates import Candidates, Search, by_group
from ngp.greedy.floating import Floating
from ngp.greedy.path import Path, Score, Step, chosen, columns_of, finished, scored_step, taken_back
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stopping import NO_CANDIDATE_LEFT, Significance, Stop, StopRule
from ngp.predictors.base import ColumnSets, Losses

__all__ = ["Observer", "pursue"]


def pursue(
    search: Search,
    rule: StopRule,
    *,
    fixed: IntArray,
    n_fixed: int | None = None,
    floating: bool = False,
    n_jobs: int | None = None,
    made: Sequence[Step] = (),
    observer: Observer | None = None,
) -> Path:
    """Select features greedily.

    Ctrl-C gives up the step that is being made and keeps those before; unproven steps are taken back even then.
    """
    test = (
        None
        if rule.level is None
        else SignificanceTest(search.problem, rule.level, n_jobs=n_jobs, quick=not rule.is_strict)
    )
    pursuit = Pursuit(search, rule, test, floating, made, observer)
    try:
        if not made:
            pursuit.append([start(search, fixed, len(fixed) if n_fixed is None else n_fixed)])
        return pursuit.run()
    except EarlyEnd as end:
        return finished(pursuit.proven(), str(end), end.partial, pursuit.cuts())
    except KeyboardInterrupt:
        if not pursuit.steps:
            raise
        nothing = len(pursuit.steps) == 1  # but the start
        reason = "interrupted before anything was selected" if nothing else "interrupted; the path is partial"
        return finished(pursuit.proven(), reason, partial=True, cuts=pursuit.cuts())


class Pursuit:
    """Algorithm 1: its steps so far, and how more are made."""

    def __init__(
        self,
        search: Search,
        rule: StopRule,
        test: SignificanceTest | None,
        floating: bool,
        made: Sequence[Step],
        observer: Observer | None,
    ) -> None:
        self.search, self.rule, self.observer, self.steps = search, rule, observer, list(made)
        self.n_restored = len(made)
        self.test = test
        self.floating, self.revision = floating, Floating(search, rule, test if rule.is_strict else None)
        self._settle()

    def run(self) -> Path:
        """Add features until the rule says stop, and take back what didn't pay."""
        while True:
            while not (stop := self.stop()):  # N features, η, significance, a budget: a rule knows only the steps
                self.begin()
                self.append(self.drop() or self.add())  # S_k = S_{k-1} ∪ {g}, or S_{k-1} without what no longer pays
            cuts = self.cuts()
            self.steps = taken_back(self.steps, stop.keep)  # S_{k-1}, if the last step didn't pay
            if not (better := self.exchange(stop)):
                return finished(self.steps, stop.reason, stop.partial, cuts)
            self.begin()
            self.append(better)

    @property
    def standing(self) -> list[Step]:
        """The steps that weren't taken back."""
        return [step for step in self.steps if step.kept]

    @property
    def exhausted(self) -> bool:
        """Whether no candidate is left."""
        return len(Candidates.beside(self.search.problem, columns_of(chosen(self.standing))).names) == 0

    def cuts(self) -> dict[str, int]:
        """What the rule calls selections of the path, and the numbers of the steps that lead to them."""
        numbers = [number for number, step in enumerate(self.steps) if step.kept]
        return {name: numbers[keep] for name, keep in self.rule.cuts(self.standing, self.exhausted).items()}

    def stop(self) -> Stop | None:
        """What ends the additions: the rule, the lack of candidates, or a budget."""
        steps, exhausted = self.standing, self.exhausted
        stop = self.rule.check(steps, exhausted=exhausted)
        if stop is None:
            stop = Stop(NO_CANDIDATE_LEFT, len(steps) - 1) if exhausted else self.spent()
        # No later step can prove the last ones any more, whatever it is that stops.
        return stop and replace(stop, keep=min(stop.keep, len(steps) - 1 - self.rule.n_unproven(steps)))

    def spent(self) -> Stop | None:
        """What the rule says of its budget: steps of an earlier run count, but took none of the time of this one."""
        restored = [replace(step, seconds=0.0) for step in self.steps[: self.n_restored]]
        return self.rule.check_budget([*restored, *self.steps[self.n_restored :]])

    def add(self) -> list[Step]:
        """The step that adds the best candidate: argmin over g of L(S ∪ {g}), every predictor retrained.

        If p-values are asked for, significant candidates come first. If there is none, a significant pair is added in
        two steps.
        """
        steps = self.standing
        columns = columns_of(chosen(steps))
        if self.test is None or not self.rule.tests(steps):
            return [self.best(steps)]
        problem, candidates = self.search.problem, Candidates.beside(self.search.problem, columns)
        found = self.test.p_values(columns, candidates.columns)
        p_values, level = by_group(problem, candidates.names, found), self.test.level
        if not found.min() <= level:
            if pair := self.pair(steps, candidates, float(found.min())):
                return pair
            level = Significance(level).allowance(steps)
        # Where costs differ and steps needn't be significant, what a candidate gains for its cost alone counts.
        priced = bool((np.diff(candidates.costs(problem)) != 0).any())
        step = self.best(steps, None if priced and not self.rule.is_strict else p_values <= level)
        return [replace(step, p_value=float(p_values[step.group]))]

    def best(self, steps: Sequence[Step], preferred: BoolArray | None = None, likely: ColumnSets | None = None) -> Step:
        """The step that adds the best candidate, of some that are preferred if there are any."""
        selected = chosen(steps)
        found = self.search.best(columns_of(selected), len(selected), preferred=preferred, likely=likely)
        if found.diverged:
            warnings.warn(f"Step {len(self.steps)} ends the pursuit: {DIVERGED}.", stacklevel=5)
            raise EarlyEnd(DIVERGED, partial=False)
        return found.step(self.search, steps[-1])

    def pair(self, steps: Sequence[Step], candidates: Candidates, single: float) -> list[Step]:
        """The steps that add the best of the leading pairs, if they are significant together.

        If steps needn't be significant, a pair with a lower p-value than all single candidates will do. Pairs are
        looked at once: a step that isn't significant was made after a look in vain.
        """
        assert self.test is not None
        room = self.rule.room(steps[-1])
        looked = len(steps) > 1 and steps[-1].action == "add" and not steps[-1].p_value <= self.test.level
        if looked or len(candidates.names) < 2 or (room is not None and room < 2):
            return []
        selected = chosen(steps)
        columns = columns_of(selected)
        found = self.test.pair(columns, candidates.columns)
        if not found.p_value <= self.test.pair_level and (self.rule.is_strict or not found.p_value < single):
            return []
        sets = ColumnSets.of([np.unique(candidates.columns.take(pair).columns) for pair in found.leading])
        losses = self.search.scorer_of(columns, len(selected), sets.take(np.arange(1))).add_losses(columns, sets)
        self.search.tally.n_fits += len(sets)
        place = np.array([np.argmin(losses.comparable)])
        both, likely = found.leading[place[0]], sets.take(place)
        preferred = np.zeros(self.search.problem.groups.n_groups, dtype=bool)
        preferred[candidates.names[both]] = True
        first = self.best(steps, preferred, likely)
        preferred[first.group] = False
        likely = ColumnSets.of([np.setdiff1d(likely.columns, first.columns)])
        second = self.best([*steps, first], preferred, likely)
        ahead = replace(first, p_value=found.p_value, ahead=second.loss, n_ahead=2)
        return [ahead, replace(second, p_value=found.p_value)]

    def drop(self) -> list[Step]:
        """The step that drops what no longer pays, if there is something; only with floating."""
        steps = self.standing
        if not self.floating or len(steps) <= 2 or self.rule.n_unproven(steps):
            return []
        step = self.revision.drop(steps)
        return [step] if step else []

    def exchange(self, stop: Stop) -> list[Step]:
        """Steps that make a finished selection better, if there are any.

        With floating, features are exchanged. Without, what is no longer significant is dropped, if all has to be: a
        decoy, say, that was selected before the columns it is made of.
        """
        if stop.partial or not (self.floating or stop.is_strict):
            return []
        if spent := self.spent():
            raise EarlyEnd(spent.reason, partial=True)
        better = self.revision.exchange(self.steps) if self.floating else self.revision.drops(self.standing)
        if not better:  # to have looked for them is part of the last step
            self.steps[-1:] = self._charged(self.steps[-1:])
        return better

    def proven(self) -> list[Step]:
        """The steps if none follows: the last ones are taken back if they haven't paid yet."""
        stop, standing = self.stop(), self.standing
        keep = stop.keep if stop else len(standing) - 1 - self.rule.n_unproven(standing)
        return taken_back(self.steps, keep)

    def begin(self) -> None:
        """Tell the observer that a step begins."""
        if self.observer:
            self.observer.begin()

    def append(self, new: list[Step]) -> None:
        """Append steps and show them to the observer, who may ask to stop."""
        self.steps += self._charged(new)
        if self.observer and self.observer.end(self.steps, len(new)):
            raise EarlyEnd("a callback asked to stop; the path is partial", partial=True)
        self._settle()

    def _settle(self) -> None:
        self._since, self._counted = perf_counter(), self.search.tally.n_fits

    def _charged(self, steps: Sequence[Step]) -> list[Step]:
        """The same steps, the first of which takes the time and the fits since the last ones were appended."""
        seconds, n_fits = perf_counter() - self._since, self.search.tally.n_fits - self._counted
        first = replace(steps[0], seconds=steps[0].seconds + seconds, n_fits=steps[0].n_fits + n_fits)
        return [first, *steps[1:]]


def start(search: Search, fixed: IntArray, n_fixed: int) -> Step:
    """Step 0: S_0 holds the fixed columns; L_0 is their loss, or that of the constant prediction if there are none."""
    problem, predictor = search.problem, search.predictor
    if len(fixed):
        scorer = search.scorer_of(fixed, 1)
        losses = scorer.add_losses(fixed, ColumnSets.of([fixed[:0]]))
        score = search.score(scorer, fixed, fixed[:0], losses)
        search.tally.n_fits += 1
    else:
        losses, predictor = search.scorer.at(1).constant_losses(problem), "constant"
        score = Score(0.0)  # of R²
        if problem.classes is not None:
            score = Score.of(Losses(problem.majority_errors[None], problem.part_weights), 1.0)
    step = scored_step(
        losses,
        0,
        action="start",
        group=None,
        name="",
        columns=fixed,
        before=nan,
        paired=nan,
        score=score,
        n_selected=n_fixed,
        n_columns=len(fixed),
        losses=np.full(problem.groups.n_groups, np.nan),
        layers=np.zeros(problem.groups.n_groups, np.intp),
        predictor=predictor,
    )
    return replace(step, gain=nan)


class Observer(Protocol):
    """Sees the steps as they are made."""

    def begin(self) -> None:
        """A step begins; the start isn't announced."""

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        """Steps were made, the last `n_new` of all; whether to stop."""


class EarlyEnd(Exception):
    """The pursuit ends before its rule says so."""

    def __init__(self, reason: str, partial: bool) -> None:
        super().__init__(reason)
        self.partial = partial


DIVERGED = (
    "the loss of every candidate is NaN or infinite "
    "(give the predictor a larger ridge or a lower learning rate, or scale the data)"
)
