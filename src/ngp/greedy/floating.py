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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ngp._progress import phase
from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.greedy.candidates import Candidates, Search, by_group
from ngp.greedy.path import Step, chosen, columns_of, scored_step
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stopping import StopRule
from ngp.predictors.base import ColumnSets, Losses, Scorer

__all__ = ["Floating"]

# How many more groups than were selected may be added to do without one of them.
MORE_GROWN = 5


@dataclass(frozen=True)
class Floating:
    """Drops and exchanges groups that were selected."""

    search: Search  # scores selections
    rule: StopRule  # says what a group must gain, and how much may be selected
    test: SignificanceTest | None  # says what is significant, if nothing else may be selected

    def drop(self, steps: Sequence[Step], even_if_it_pays: bool = False) -> Step | None:
        """The drop of the group that is worth least, if it no longer pays; the last one added is spared.

        The steps are those that weren't taken back.
        """
        problem, selected, last = self.search.problem, chosen(steps), steps[-1]
        groups = [group for group in _droppable(problem, steps) if group != last.group]
        if not groups or (len(selected) == 2 and not len(selected[None])):  # nothing would be left
            return None
        scorer = self._scorer(steps)
        losses = self._without_each(scorer, steps, groups)
        means = losses.comparable
        weakest, together = int(np.argmin(means[:-1])), float(means[-1])
        group = groups[weakest]
        if not even_if_it_pays and self._still_pays(steps, group, float(means[weakest]), together):
            return None
        rest = np.setdiff1d(columns_of(selected), selected[group], assume_unique=True)
        return scored_step(
            losses,
            weakest,
            action="drop",
            group=None,
            name=problem.groups.names[group],
            columns=selected[group],
            before=last.loss,
            paired=together,
            score=self.search.score(scorer, rest[:0], rest, Losses(losses.parts[[weakest]], losses.weights)),
            n_selected=last.n_selected - 1,
            n_columns=last.n_columns - len(selected[group]),
            losses=by_group(problem, np.array(groups), means[:-1]),
            layers=by_group(problem, np.array(groups), np.full(len(groups), scorer.n_layers), 0),
            ridge=scorer.ridge,
            predictor=self.search.predictor,
            dropped=group,
        )

    def drops(self, steps: Sequence[Step]) -> list[Step]:
        """Drops of all groups that no longer pay, one after the other."""
        made: list[Step] = []
        while step := self.drop([*steps, *made]):
            made.append(step)
        return made

    def exchange(self, steps: Sequence[Step]) -> list[Step]:
        """Steps that make a finished selection better: an exchange of one for one, or of one for several.

        No selection is exchanged twice.
        """
        standing = [step for step in steps if step.kept]
        exchanged = [chosen(standing[:n]).keys() for n, step in enumerate(standing) if step.action == "swap"]
        if len(chosen(standing)) == 1 or chosen(standing).keys() in exchanged:
            return []
        swap = self._swap(standing)
        return [swap] if swap else self._regrowth(standing)

    def _still_pays(self, steps: Sequence[Step], group: int, without: float, together: float) -> bool:
        """Whether a selected group still pays, given the losses without it and with it."""
        if self.test is None:
            return self._gains(without, together)
        selected = chosen(steps)
        own = selected.pop(group)
        return bool(self.test.p_values(columns_of(selected), ColumnSets.of([own]))[0] <= self.test.level)

    def _gains(self, without: float, together: float) -> bool:
        """Whether a loss is lowered by as much as the rule asks for."""
        return without > together and without - together >= self.rule.least_gain * together

    def _swap(self, steps: Sequence[Step]) -> Step | None:
        """An exchange that lowers the loss, if there is one; the group that is worth least is tried first."""
        groups, scorer = _removable(self.search.problem, steps), self._scorer(steps)
        if len(groups) > 1:
            order = np.argsort(self._without_each(scorer, steps, groups).comparable[:-1], kind="stable")
            groups = [groups[place] for place in order]
        return next((step for group in groups if (step := self._best_swap(scorer, steps, group))), None)

    def _best_swap(self, scorer: Scorer, steps: Sequence[Step], group: int) -> Step | None:
        """The exchange of one group that lowers the loss most, if any does."""
        search, selected, last = self.search, chosen(steps), steps[-1]
        problem, own = search.problem, selected.pop(group)
        rest = columns_of(selected)
        candidates, place = self._instead_of(group, rest)
        sets = [np.sort(np.concatenate([rest, candidates.columns[i]])) for i in range(len(candidates.names))]
        losses = self._score(scorer, [*sets, *[np.sort(rest)] * (len(rest) > 0)])
        means = losses.comparable
        without = float(means[-1]) if len(rest) else float(search.scorer.at(1).constant_losses(problem).means[0])
        means = means[: len(sets)]
        best = int(np.argmin(means))
        if not means[best] < means[place]:
            return None
        new = candidates.columns[best].copy()
        return scored_step(
            losses,
            best,
            action="swap",
            group=int(candidates.names[best]),
            name=problem.groups.names[int(candidates.names[best])],
            columns=new,
            before=last.loss,
            paired=without,
            score=search.score(scorer, rest[:0], sets[best], Losses(losses.parts[[best]], losses.weights)),
            runner_up=group,
            runner_up_loss=float(means[place]),
            n_selected=last.n_selected,
            n_columns=last.n_columns + len(new) - len(own),
            losses=by_group(problem, candidates.names, means),
            layers=by_group(problem, candidates.names, np.full(len(means), scorer.n_layers), 0),
            ridge=scorer.ridge,
            predictor=search.predictor,
            dropped=group,
        )

    def _instead_of(self, group: int, rest: IntArray) -> tuple[Candidates, int]:
        """What costs no more than a group and isn't too large, the group among it, and its place."""
        problem, screening = self.search.problem, self.search.screening
        candidates = Candidates.beside(problem, rest)
        fits = candidates.costs(problem) <= problem.groups.costs[group]
        fits &= (len(rest) + candidates.columns.sizes <= self.rule.max_columns) | (candidates.names == group)
        candidates = candidates.take(np.flatnonzero(fits))
        if screening:
            best = screening.best(problem, rest, candidates.columns, candidates.costs(problem))
            candidates = candidates.take(np.union1d(best, np.flatnonzero(candidates.names == group)))
        return candidates, int(np.flatnonzero(candidates.names == group)[0])

    def _regrowth(self, steps: Sequence[Step]) -> list[Step]:
        """Steps that leave a group out and add others instead, if that is better."""
        target = self._loss(steps)
        for group in _droppable(self.search.problem, steps):
            grown = self._trimmed(self._grown(steps, group, target))
            if grown and self._is_better(steps, grown, target):
                return grown[len(steps) :]
        return []

    def _grown(self, steps: Sequence[Step], left_out: int, target: float) -> list[Step]:
        """The steps with others after them that do without a group, each of which pays; empty if they don't pay off."""
        grown, first = list(steps), len(steps)
        for left in reversed(range(len(chosen(steps)) - 1 + MORE_GROWN)):
            selected = chosen(grown)
            own = selected.pop(left_out, None)
            columns = columns_of(selected)
            found = self.search.best(columns, len(selected), without={left_out})
            if found.diverged:
                return []
            step = found.step(self.search, grown[-1])
            if self.test is not None:
                p_values = self.test.p_values(columns, found.candidates.columns)
                step = replace(step, p_value=float(p_values[found.best]))
                if not step.p_value <= self.test.level:
                    return []
            elif not self._gains(step.paired, step.loss):
                return []
            if own is not None:
                n_selected, n_columns = step.n_selected - 1, step.n_columns - len(own)
                step = replace(step, action="swap", dropped=left_out, n_selected=n_selected, n_columns=n_columns)
            grown.append(step)
            if step.loss < target:
                if len(grown) > first + 1:  # what the first of them was made for
                    grown[first] = replace(grown[first], ahead=step.loss, n_ahead=len(grown) - first)
                return grown
            if step.loss - left * (step.paired - step.loss) >= target:  # if all others gain as much
                return []
        return []

    def _trimmed(self, steps: list[Step]) -> list[Step]:
        """The steps, and drops of what doesn't pay or is too much; empty if too much is left."""
        while steps:
            too_many = self.rule.exceeded(steps[-1])
            if not too_many and self.test is None and self.rule.least_gain == 0:
                return steps  # the number is given, whether they pay or not
            step = self.drop(steps, even_if_it_pays=too_many)
            if step is None:
                return [] if too_many else steps
            steps.append(step)
        return []

    def _is_better(self, steps: Sequence[Step], grown: Sequence[Step], target: float) -> bool:
        """Whether the loss is lower, and by enough if there are more features; as many may not cost more."""
        loss = self._loss(grown)
        if grown[-1].n_selected > steps[-1].n_selected:
            return self._gains(target, loss)
        return loss < target and self._cost(grown) <= self._cost(steps)

    def _cost(self, steps: Sequence[Step]) -> float:
        return float(sum(self.search.problem.groups.costs[group] for group in chosen(steps) if group is not None))

    def _loss(self, steps: Sequence[Step]) -> float:
        return float(self._score(self._scorer(steps), [np.sort(columns_of(chosen(steps)))]).comparable[0])

    def _score(self, scorer: Scorer, selections: Sequence[IntArray]) -> Losses:
        """Losses of selections, from nothing."""
        self.search.tally.n_fits += len(selections)
        with phase("exchanging", len(selections)):
            return scorer.add_losses(np.zeros(0, np.intp), ColumnSets.of(selections))

    def _without_each(self, scorer: Scorer, steps: Sequence[Step], groups: Sequence[int]) -> Losses:
        """Losses of the selection without each of some groups, and, at the end, with all."""
        selected = chosen(steps)
        sets = ColumnSets.of([selected[group] for group in groups]).with_empty()
        self.search.tally.n_fits += len(sets)
        return scorer.drop_losses(columns_of(selected), sets)

    def _scorer(self, steps: Sequence[Step]) -> Scorer:
        """The scorer of selections of that size, tuned to this one."""
        selected = chosen(steps)
        return self.search.scorer_of(columns_of(selected), max(1, len(selected) - 1))


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
