"""Taking back what was selected: drop what no longer pays, exchange one feature for another, or for several.

Greedy selection can begin with a feature that others, together, make useless. After each addition, what is selected is
scored without each of its parts, and the least of them is dropped if it no longer pays. In the end, each part is
exchanged for each candidate, until no exchange lowers the loss; then each part is left out, and others are added
instead, as long as they may still reach a lower loss without it. A group is dropped only once, and each exchange lowers
the loss, so that there is an end to it.

Selections are compared by their losses as a whole, scored from nothing: these are comparable with each other, whatever
the order in which the parts came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.candidates import Candidates, Search, by_group
from ngp.greedy.path import Step, chosen, columns_of, scored_step
from ngp.greedy.rule_parts import Most
from ngp.greedy.significance import share_taken, tail_probability
from ngp.greedy.uncertainty import certainty
from ngp.predictors.base import ColumnSets, Losses, Scorer

__all__ = ["Bar", "Pays", "Regrowth", "find_drop", "find_regrowth", "find_swap"]

# How many more groups than were selected may be added to do without one of them.
MORE_GROWN = 5


class Bar(NamedTuple):
    """What a group must gain to pay."""

    least_gain: float  # the least relative gain
    level: float = 1.0  # the largest probability of such a gain by chance
    gains: FloatArray | None = None  # what the best of all candidates gained by chance, when one was last asked

    def chance(self, without: float, together: float) -> float:
        """How probable it is that a candidate gains as much by chance; NaN if nobody asks."""
        return nan if self.gains is None else tail_probability(self.gains, share_taken(without, together))[1]

    def is_met(self, without: float, together: float) -> bool:
        """Whether a group that lowers the loss in that way pays."""
        if self.gains is not None:
            return self.chance(without, together) <= self.level
        return without > together and without - together >= self.least_gain * together


ANY_GAIN = Bar(0.0)
# Whether a selected group still pays, given the steps, the group, and the losses without it and with it.
Pays = Callable[[Sequence[Step], int, float, float], bool]


def find_drop(search: Search, steps: Sequence[Step], pays: Pays) -> tuple[Step | None, int]:
    """The drop of the group that is worth least, if it no longer pays; else how many selections were scored.

    The last group that was added is spared.
    """
    problem, begin, selected, last = search.problem, perf_counter(), chosen(steps), steps[-1]
    groups = [group for group in _droppable(problem, steps) if group != last.group]
    if not groups or (len(selected) == 2 and not len(selected[None])):  # nothing would be left
        return None, 0
    losses = _without_each(search, steps, groups)
    means = losses.comparable
    weakest, together = int(np.argmin(means[:-1])), float(means[-1])
    group = groups[weakest]
    if pays(steps, group, float(means[weakest]), together):
        return None, len(means)
    step = scored_step(
        losses,
        weakest,
        action="drop",
        group=None,
        name=problem.groups.names[group],
        columns=selected[group],
        before=together,
        runner_up=None,
        runner_up_loss=nan,
        seconds=perf_counter() - begin,
        n_fits=len(means),
        n_selected=last.n_selected - 1,
        n_columns=last.n_columns - len(selected[group]),
        losses=by_group(problem, np.array(groups), means[:-1]),
        predictor=search.predictor,
        dropped=group,
    )
    return step, 0


def find_swap(search: Search, steps: Sequence[Step], most: Most) -> tuple[Step | None, int]:
    """An exchange that lowers the loss, if there is one; and how many selections were scored to see that there is none.

    Groups are tried from the one that is worth least on; each for all candidates that cost no more and don't lead
    to more columns than there may be.
    """
    groups, n_fits = _removable(search.problem, steps), 0
    if len(groups) > 1:
        losses = _without_each(search, steps, groups)
        order = np.argsort(losses.comparable[:-1], kind="stable")
        groups, n_fits = [groups[place] for place in order], len(losses.parts)
    for group in groups:
        step, n_tried = _best_swap(search, steps, group, most)
        n_fits += n_tried
        if step:
            return replace(step, n_fits=n_fits), 0
    return None, n_fits


def _best_swap(search: Search, steps: Sequence[Step], group: int, most: Most) -> tuple[Step | None, int]:
    """The exchange of one group that lowers the loss most, if any does; and how many selections were scored."""
    problem, selected, last = search.problem, chosen(steps), steps[-1]
    own = selected.pop(group)
    rest = columns_of(selected)
    candidates, place = _instead(search, rest, group, most)
    sets = [np.sort(np.concatenate([rest, candidates.columns[i]])) for i in range(len(candidates.names))]
    losses = _scorer(search, steps).add_losses(rest[:0], ColumnSets.of([*sets, *[np.sort(rest)] * (len(rest) > 0)]))
    means = losses.comparable
    without = float(means[-1]) if len(rest) else float(search.scorer.at(1).constant_losses(problem).means[0])
    means = means[: len(sets)]
    best = int(np.argmin(means))
    if not means[best] < means[place]:
        return None, len(losses.parts)
    new = candidates.columns[best].copy()
    step = scored_step(
        losses,
        best,
        action="swap",
        group=int(candidates.names[best]),
        name=problem.groups.names[int(candidates.names[best])],
        columns=new,
        before=without,
        runner_up=group,
        runner_up_loss=float(means[place]),
        seconds=0.0,
        n_fits=0,
        n_selected=last.n_selected,
        n_columns=last.n_columns + len(new) - len(own),
        losses=by_group(problem, candidates.names, means),
        predictor=search.predictor,
        dropped=group,
        certainty=certainty(losses, best, place),
    )
    return step, len(losses.parts)


def find_regrowth(search: Search, steps: Sequence[Step], bar: Bar, pays: Pays, most: Most) -> tuple[list[Step], int]:
    """Steps that leave a group out and add others instead, if that is better; else how many selections were scored."""
    n_fits = 0
    for group in _droppable(search.problem, steps):
        trial = Regrowth(replace(search, look_ahead=1), list(steps), group, bar, pays, most)
        found = trial.grow() and trial.trim() and trial.is_better()
        n_fits += trial.n_fits
        if found:
            first, *others = trial.new
            return [replace(first, n_fits=n_fits - sum(step.n_fits for step in others)), *others], 0
    return [], n_fits


@dataclass
class Regrowth:
    """A selection without one of its groups, and with others instead."""

    search: Search  # scores selections
    steps: list[Step]  # which led to the selection; more are made
    group: int  # what is left out
    bar: Bar  # what a group must gain to be added
    pays: Pays  # says whether a group pays that was added before
    most: Most  # how many features and columns there may be

    def __post_init__(self) -> None:
        self.n_made, self.n_fits = len(self.steps), 1
        self.target = float(self._losses(self.steps).comparable[0])

    @property
    def new(self) -> list[Step]:
        """The steps that were made."""
        return self.steps[self.n_made :]

    def grow(self) -> bool:
        """Add as long as each addition pays and may lead to a lower loss; whether it does."""
        for left in reversed(range(len(chosen(self.steps)) - 1 + MORE_GROWN)):
            selected = chosen(self.steps)
            selected.pop(self.group, None)
            found = self.search.best(columns_of(selected), len(selected), without={self.group})
            self.n_fits += found.n_fits
            if found.diverged or not self.bar.is_met(found.before, found.final_loss):
                return False
            step = found.step(self.search, self.steps[-1])
            step = replace(step, chance=self.bar.chance(step.before, step.loss))
            if not self.new:
                own = len(chosen(self.steps)[self.group])
                n_selected, n_columns = step.n_selected - 1, step.n_columns - own
                step = replace(step, action="swap", dropped=self.group, n_selected=n_selected, n_columns=n_columns)
            self.steps.append(step)
            if step.loss < self.target:
                if len(self.new) > 1:  # what the first of them was made for
                    self.steps[self.n_made] = replace(self.new[0], ahead=step.loss, n_ahead=len(self.new))
                return True
            if step.loss - left * (step.before - step.loss) >= self.target:  # if all others gain as much
                return False
        return False

    def trim(self) -> bool:
        """Drop what doesn't pay, and what is too many; whether few enough are left."""
        while True:
            too_many = self.most.exceeded(self.steps[-1])
            if not too_many and self.bar == ANY_GAIN:  # so many are wanted, whether they pay or not
                return True
            step, n_tried = find_drop(self.search, self.steps, (lambda *_: False) if too_many else self.pays)
            self.n_fits += step.n_fits if step else n_tried
            if step is None:
                return not too_many
            self.steps.append(step)

    def is_better(self) -> bool:
        """Whether the loss is lower, and by enough if there are more features; as many may not cost more."""
        loss = float(self._losses(self.steps).comparable[0])
        self.n_fits += 1
        if self.steps[-1].n_selected > self.steps[self.n_made - 1].n_selected:
            return self.bar.is_met(self.target, loss)
        return loss < self.target and self._cost(self.steps) <= self._cost(self.steps[: self.n_made])

    def _cost(self, steps: Sequence[Step]) -> float:
        return float(sum(self.search.problem.groups.costs[group] for group in chosen(steps) if group is not None))

    def _losses(self, steps: Sequence[Step]) -> Losses:
        columns = np.sort(columns_of(chosen(steps)))
        return _scorer(self.search, steps).add_losses(columns[:0], ColumnSets.of([columns]))


def _instead(search: Search, rest: IntArray, group: int, most: Most) -> tuple[Candidates, int]:
    """What a group may be exchanged for, itself among them, and its place."""
    problem = search.problem
    candidates = Candidates.beside(problem, rest)
    fits = candidates.costs(problem) <= problem.groups.costs[group]
    fits &= (len(rest) + candidates.columns.sizes <= most.columns) | (candidates.names == group)
    candidates = candidates.take(np.flatnonzero(fits))
    if search.screening:
        best = search.screening.best(problem, rest, candidates.columns, candidates.costs(problem))
        candidates = candidates.take(np.union1d(best, np.flatnonzero(candidates.names == group)))
    return candidates, int(np.flatnonzero(candidates.names == group)[0])


def _droppable(problem: Problem, steps: Sequence[Step]) -> list[int]:
    """Selected groups that share no column with others, but for those that were dropped before and came back."""
    before = {step.dropped for step in steps}
    return [group for group in _removable(problem, steps) if group not in before]


def _removable(problem: Problem, steps: Sequence[Step]) -> list[int]:
    """Selected groups that share no column with others."""
    selected = chosen(steps)
    groups = [group for group in selected if group is not None]
    if problem.groups.is_single:
        return groups
    uses = np.zeros(problem.n_columns, dtype=np.intp)
    uses[selected[None]] += 1
    for group in groups:
        uses[problem.groups.columns[group]] += 1
    return [group for group in groups if (uses[problem.groups.columns[group]] == 1).all()]


def _without_each(search: Search, steps: Sequence[Step], groups: Sequence[int]) -> Losses:
    """Losses of the selection without each of some groups, and, at the end, with all."""
    selected = chosen(steps)
    columns = columns_of(selected)
    return _scorer(search, steps).drop_losses(columns, ColumnSets.of([selected[g] for g in groups]).with_empty())


def _scorer(search: Search, steps: Sequence[Step]) -> Scorer:
    """What scores selections of that size."""
    return search.scorer.at(max(1, len(chosen(steps)) - 1))
