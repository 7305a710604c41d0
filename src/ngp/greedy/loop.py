"""Algorithm 1 of the paper: add, in each step, the candidate whose retrained predictor has the lowest loss.

Beyond the paper, a pursuit can look ahead (`ngp.greedy.look_ahead`), undo what no longer pays
(`ngp.greedy.floating`), and ask whether a gain is more than chance (`ngp.greedy.significance`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from time import perf_counter
from typing import Protocol

import numpy as np

from ngp._types import IntArray
from ngp.greedy.candidates import Candidates, Search
from ngp.greedy.floating import Bar, find_drop, find_regrowth, find_swap
from ngp.greedy.path import Path, Step, chosen, columns_of, finished, scored_step
from ngp.greedy.rule_parts import least_gain, most_selected, n_unproven, room_left, spent_budget
from ngp.greedy.significance import OWN_DRAWS, Chance, Draws
from ngp.greedy.stopping import NO_CANDIDATE_LEFT, Stop, StopRule
from ngp.predictors.base import ColumnSets

__all__ = ["Observer", "pursue"]

DIVERGED = (
    "the loss of every candidate is NaN or infinite (give the predictor a lower learning rate, or scale the data)"
)
ASKED_TO_STOP = "a callback asked to stop; the path is partial"


class Observer(Protocol):
    """Whoever is told of the steps as they are made."""

    def begin(self) -> None:
        """Take notice that a step begins; the start isn't announced."""

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        """Take notice of all steps so far, of which the last ones are new, and say whether to stop."""


def pursue(
    search: Search,
    rule: StopRule,
    *,
    fixed: IntArray,
    n_fixed: int | None = None,
    floating: bool = False,
    chance: Chance | None = None,
    made: Sequence[Step] = (),
    observer: Observer | None = None,
) -> Path:
    """Select features greedily.

    Ctrl-C gives up the step that is being made and keeps those before. However a pursuit is cut short, the last steps
    are taken back if they may be chance.
    """
    pursuit = _Pursuit(search, rule, floating, chance, observer, list(made))
    steps = pursuit.steps
    try:
        if not steps:
            steps.append(_start(search, fixed, len(fixed) if n_fixed is None else n_fixed))
            if observer and observer.end(steps, 1):
                return finished(steps, ASKED_TO_STOP, partial=True)
        return pursuit.run()
    except _Diverged:
        warnings.warn(f"Step {len(steps)} ends the pursuit: {DIVERGED}.", stacklevel=2)
        return finished(pursuit.proven(), DIVERGED)
    except KeyboardInterrupt:
        if not steps:
            raise
        return finished(pursuit.proven(), "interrupted; the path is partial", partial=True)


class _Diverged(ArithmeticError):
    """No candidate of a step has a finite loss."""


@dataclass
class _Pursuit:
    """The steps of a pursuit, and all that makes more of them."""

    search: Search
    rule: StopRule
    floating: bool
    chance: Chance | None
    observer: Observer | None
    steps: list[Step]
    draws: dict[int, Draws] = field(default_factory=dict)  # the last one, by the number of its first step
    n_redrawn: int = 0  # trainings to see whether selected groups still pay, in the step that is being made

    @property
    def standing(self) -> list[Step]:
        """The steps that weren't taken back."""
        return [step for step in self.steps if step.kept]

    def run(self) -> Path:
        """Add, and drop, until the rule says stop; then exchange what is better exchanged, and go on."""
        steps = self.steps
        while True:
            stop = self._stop()
            if stop:
                steps[:] = _taken_back(steps, stop.keep)
                if not self.floating or stop.partial or self._is_back():
                    return finished(steps, stop.reason, stop.partial)
                if spent := spent_budget(self.rule, steps):
                    return finished(steps, spent.reason, partial=True)
                if not (new := self._exchange()):
                    return finished(steps, stop.reason)
            if self.observer:
                self.observer.begin()
            if not stop:
                new = [self._next()]
            self.n_redrawn = 0
            steps.extend(new)
            if self.observer and self.observer.end(steps, len(new)):
                return finished(self.proven(), ASKED_TO_STOP, partial=True)

    def proven(self) -> list[Step]:
        """The steps if none follows: the last ones are taken back if they may be chance, as when a budget is spent."""
        stop, standing = self._stop(), self.standing
        keep = stop.keep if stop else len(standing) - 1 - n_unproven(self.rule, standing)
        return _taken_back(self.steps, keep)

    def _is_back(self) -> bool:
        """Whether the selection is one that was exchanged before."""
        steps = self.standing
        before = [chosen(steps[:number]).keys() for number, step in enumerate(steps) if step.action == "swap"]
        return chosen(steps).keys() in before

    def _stop(self) -> Stop | None:
        """What ends the additions: the rule, or the lack of candidates."""
        steps = self.standing
        exhausted = len(Candidates.beside(self.search.problem, columns_of(chosen(steps))).names) == 0
        stop = self.rule.check(steps, exhausted=exhausted)
        if stop is None and exhausted:
            return Stop(NO_CANDIDATE_LEFT, len(steps) - 1)
        stop = stop or spent_budget(self.rule, self.steps)  # what was taken back has cost something, too
        if stop is None:
            return None
        # Where another part of the rule stops, nothing follows any more that could prove the last steps.
        return replace(stop, keep=min(stop.keep, len(steps) - 1 - n_unproven(self.rule, steps)))

    def _next(self) -> Step:
        """Drop what no longer pays, or score every candidate, or those that promise most, and add the best one."""
        begin, steps, n_tried = perf_counter(), self.standing, 0
        if self.floating and len(steps) > 2 and not n_unproven(self.rule, steps):
            drop, n_tried = find_drop(self.search, steps, self._pays)
            if drop:
                return replace(drop, n_fits=drop.n_fits + self.n_redrawn)
        selected = chosen(steps)
        found = self.search.best(columns_of(selected), len(selected), room_left(self.rule, steps[-1]))
        if found.diverged:
            raise _Diverged
        step = found.step(self.search, steps[-1])
        if self.chance:
            draws = self._draws_of(len(self.steps), len(self.steps))
            n_before = draws.n_fits
            probability = _judge(draws, step)
            step = replace(step, chance=probability, n_fits=step.n_fits + draws.n_fits - n_before)
        return replace(step, seconds=perf_counter() - begin, n_fits=step.n_fits + n_tried + self.n_redrawn)

    def _draws_of(self, number: int, end: int) -> Draws:
        """What the addition with that number is held against, and with it those directly before that may be chance.

        The draws have seen the steps up to the end; those of an earlier process they see anew.
        """
        assert self.chance
        first = number - n_unproven(self.rule, self.steps[:number])
        if first not in self.draws:
            selected = chosen([step for step in self.steps[:first] if step.kept])
            self.draws = {first: Draws(self.chance, self.search.problem, columns_of(selected), len(selected))}
        draws = self.draws[first]
        for step in self.steps[first + draws.n_steps : end]:
            _judge(draws, step)
        return draws

    def _pays(self, steps: Sequence[Step], group: int, without: float, together: float) -> bool:
        """Whether a selected group still pays."""
        if not self.chance:
            return self._bar().is_met(without, together)
        selected = chosen(steps)
        own, number, problem = selected.pop(group), len(selected), self.search.problem
        self.n_redrawn += OWN_DRAWS
        rest = columns_of(selected)
        return self.chance.still_pays(problem, rest, own, number, without, together) <= self.chance.level

    def _bar(self) -> Bar:
        """What a group must gain to be added."""
        if not self.chance:
            return Bar(least_gain(self.rule))
        number = max(number for number, step in enumerate(self.steps) if step.action == "add")
        return Bar(least_gain(self.rule), self.chance.level, self._draws_of(number, number + 1).first_gains)

    def _exchange(self) -> list[Step]:
        """Steps that make a finished selection better: an exchange of one for one, or of one for several."""
        begin, steps, n_fits = perf_counter(), self.standing, 0
        if len(chosen(steps)) == 1:
            return []
        for find in (self._swap, self._regrowth):
            new, n_tried = find(steps)
            n_fits += n_tried
            if new:
                seconds = perf_counter() - begin - sum(step.seconds for step in new[1:])
                n_fits += new[0].n_fits + self.n_redrawn
                return [replace(new[0], n_fits=n_fits, seconds=seconds), *new[1:]]
        last, n_fits = self.steps[-1], n_fits + self.n_redrawn  # to have looked in vain is part of it
        self.steps[-1] = replace(last, n_fits=last.n_fits + n_fits, seconds=last.seconds + perf_counter() - begin)
        return []

    def _swap(self, steps: Sequence[Step]) -> tuple[list[Step], int]:
        swap, n_tried = find_swap(self.search, steps, most_selected(self.rule))
        return [swap] if swap else [], n_tried

    def _regrowth(self, steps: Sequence[Step]) -> tuple[list[Step], int]:
        return find_regrowth(self.search, steps, self._bar(), self._pays, most_selected(self.rule))


def _judge(draws: Draws, step: Step) -> float:
    """How probable it is that all steps seen by the draws, with this one, gain as much by chance."""
    return draws.probability(step.before, step.loss if isnan(step.ahead) else step.ahead, step.n_ahead)


def _taken_back(steps: Sequence[Step], keep: int) -> list[Step]:
    """The same steps, of which only so many that stood before are left standing; but no exchange is taken back."""
    standing = [number for number, step in enumerate(steps) if step.kept]
    actions = [steps[number].action for number in standing]
    for place in range(len(standing)):
        if actions[place] == "swap":
            end = place + steps[standing[place]].n_ahead  # of one for several
            while actions[end : end + 1] == ["drop"]:
                end += 1
            keep = max(keep, end - 1)
    return [replace(step, kept=step.kept and number <= standing[keep]) for number, step in enumerate(steps)]


def _start(search: Search, fixed: IntArray, n_fixed: int) -> Step:
    problem, predictor, begin = search.problem, search.predictor, perf_counter()
    if len(fixed):
        losses = search.scorer.at(1).add_losses(fixed[:0], ColumnSets.of([fixed]))
    else:
        losses, predictor = search.scorer.at(1).constant_losses(problem), "constant"
    step = scored_step(
        losses,
        0,
        action="start",
        group=None,
        name="",
        columns=fixed,
        before=nan,
        runner_up=None,
        runner_up_loss=nan,
        seconds=perf_counter() - begin,
        n_fits=int(len(fixed) > 0),
        n_selected=n_fixed,
        n_columns=len(fixed),
        losses=np.full(problem.groups.n_groups, np.nan),
        predictor=predictor,
    )
    return replace(step, gain=nan)
