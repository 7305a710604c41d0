"""Algorithm 1 of the paper: add, in each step, the candidate whose retrained predictor has the lowest loss."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from ngp._types import FloatArray, IntArray
from ngp.groups import Groups
from ngp.predictors.base import ColumnSets, Losses, ScheduledScorer, Scorer, scorer_at
from ngp.problem import Problem
from ngp.screening import Screening
from ngp.stopping import Stop, StopRule, standard_error

if TYPE_CHECKING:
    from ngp.chance import Chance

__all__ = ["Candidates", "Observer", "Path", "Step", "choose", "pursue", "score"]

DIVERGED = (
    "the loss of every candidate is NaN or infinite (give the predictor a lower learning rate, or scale the data)"
)


@dataclass(frozen=True)
class Step:
    """One step of a pursuit. Step 0 is the start: the constant prediction, or the fixed columns.

    Attributes
    ----------
    action : {"start", "add"}
    group : int or None
        The group that was added.
    name : str
        Its name.
    columns : int array
        The columns that it added.
    before : float
        Validation loss of the selection before the step, under the conditions of the step: a predictor with random
        parts may draw them anew in each step, so this can differ from the last step's `loss`.
    loss : float
        Validation loss after the step.
    standard_error : float
        Of that loss, over the parts of the validation.
    gain : float
        Relative improvement, (before - loss) / loss.
    runner_up : int or None
        The group that came second.
    runner_up_loss : float
        The loss it would have led to; NaN where there was none.
    seconds : float
    n_fits : int
        Number of candidates that were scored, those among them that only chance made; screening leaves some out.
    n_selected, n_columns : int
        Features (groups, fixed columns) and columns selected after the step.
    fold_losses, fold_weights : float arrays
        Loss in every part of the validation, and the parts' shares.
    losses : float array
        Loss of every group as a candidate; NaN where not tried.
    predictor : str
        What predicted: of several predictors the one that won.
    kept : bool
        Whether the step is part of the final selection.
    chance : float
        Probability of a gain as large by chance (see `ngp.chance`); NaN where nobody asked.
    """

    action: Literal["start", "add"]
    group: int | None
    name: str
    columns: IntArray
    before: float
    loss: float
    standard_error: float
    gain: float
    runner_up: int | None
    runner_up_loss: float
    seconds: float
    n_fits: int
    n_selected: int
    n_columns: int
    fold_losses: FloatArray
    fold_weights: FloatArray
    losses: FloatArray
    predictor: str
    kept: bool = True
    chance: float = nan


@dataclass(frozen=True)
class Path:
    """All steps of a pursuit, and why it ended.

    Attributes
    ----------
    steps : tuple of Step
        The start, then the additions; those at the end that did not pay are marked as not kept.
    reason : str
        Why the pursuit ended.
    partial : bool
        Whether it was cut short, and could have gone on.
    """

    steps: tuple[Step, ...]
    reason: str
    partial: bool = False

    @property
    def kept(self) -> tuple[Step, ...]:
        """The additions that make up the selection."""
        return tuple(step for step in self.steps[1:] if step.kept)

    @property
    def columns(self) -> IntArray:
        """The selected columns, fixed ones first, then in the order of their selection."""
        return np.concatenate([self.steps[0].columns, *(step.columns for step in self.kept)])


class Observer(Protocol):
    """Whoever is told of the steps as they are made."""

    def begin(self) -> None:
        """Take notice that a step begins; the start isn't announced."""

    def end(self, steps: Sequence[Step]) -> bool:
        """Take notice of all steps so far, of which the last one is new, and say whether to stop."""


def pursue(
    problem: Problem,
    scorer: Scorer | ScheduledScorer,
    rule: StopRule,
    *,
    fixed: IntArray,
    n_fixed: int | None = None,
    predictor: str = "",
    screening: Screening | None = None,
    chance: Chance | None = None,
    made: Sequence[Step] = (),
    observer: Observer | None = None,
) -> Path:
    """Select features greedily.

    Ctrl-C gives up the step that is being made and keeps those before.

    Parameters
    ----------
    problem : Problem
        The data and the candidates.
    scorer : Scorer or ScheduledScorer
        Says what each candidate is worth.
    rule : StopRule
        Says when to stop.
    fixed : int array
        Columns that are selected from the start.
    n_fixed : int, optional
        How many features they are, where that is not their number: a category is one feature of several columns.
    predictor : str
        Name of what predicts, for the record.
    screening : Screening, optional
        Says which candidates are worth scoring; without it all are.
    chance : Chance, optional
        Says how probable each gain is by chance.
    made : sequence of Step
        Steps that an earlier pursuit made, with which to go on.
    observer : Observer, optional
        Who is told of each step, the start among them.
    """
    steps = list(made)
    try:
        if not steps:
            n_fixed = len(fixed) if n_fixed is None else n_fixed
            steps.append(_start(problem, scorer_at(scorer, 1), fixed, n_fixed, predictor))
            if observer and observer.end(steps):
                return _path(steps, _asked_to_stop(steps))
        while True:
            candidates = Candidates.beside(problem, np.concatenate([step.columns for step in steps]))
            if stop := _end(rule, steps, exhausted=len(candidates.names) == 0):
                return _path(steps, stop)
            if observer:
                observer.begin()
            now = scorer_at(scorer, len(steps))
            steps.append(_next(problem, now, screening, steps, candidates, predictor, chance))
            if observer and observer.end(steps):
                return _path(steps, _asked_to_stop(steps))
    except _Diverged:
        warnings.warn(f"Step {len(steps)} ends the pursuit: {DIVERGED}.", stacklevel=2)
        return _path(steps, Stop(DIVERGED, len(steps) - 1))
    except KeyboardInterrupt:
        if not steps:
            raise
        return _path(steps, Stop("interrupted; the path is partial", len(steps) - 1, partial=True))


class _Diverged(ArithmeticError):
    """No candidate of a step has a finite loss."""


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
        if groups.is_single and groups.n_groups == problem.n_columns:
            names = np.flatnonzero(problem.varies & ~selected)
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


def _asked_to_stop(steps: Sequence[Step]) -> Stop:
    return Stop("a callback asked to stop; the path is partial", len(steps) - 1, partial=True)


def _end(rule: StopRule, steps: Sequence[Step], exhausted: bool) -> Stop | None:
    """What ends the pursuit: its rule, or the lack of candidates."""
    stop = rule.check(steps, exhausted=exhausted)
    return Stop("no candidate is left", len(steps) - 1) if exhausted and stop is None else stop


def _next(
    problem: Problem,
    scorer: Scorer,
    screening: Screening | None,
    steps: Sequence[Step],
    candidates: Candidates,
    predictor: str,
    chance: Chance | None,
) -> Step:
    """Score every candidate, or those that promise most, and add the best one."""
    begin = perf_counter()
    selected = np.concatenate([step.columns for step in steps])
    if screening:
        candidates = candidates.take(screening.best(problem, selected, candidates.columns, candidates.costs(problem)))
    before, losses = score(problem, scorer, selected, candidates.columns)  # S_{k-1}, and S_{k-1} + i for all i in A
    if not np.isfinite(losses.means).any():
        raise _Diverged
    best, second = choose(losses, before, candidates.costs(problem))
    step = _addition(steps[-1], before, problem.groups, candidates, losses, best, second)
    if chance:
        found = chance.verdict(problem, selected, len(steps), before, step.loss)
        step = replace(step, chance=found.probability, n_fits=step.n_fits * (1 + found.n_draws))
    winner = predictor if losses.predictors is None else str(losses.predictors[best])
    return replace(step, seconds=perf_counter() - begin, predictor=winner)


def _start(problem: Problem, scorer: Scorer, fixed: IntArray, n_fixed: int, predictor: str) -> Step:
    begin = perf_counter()
    if len(fixed):
        losses = scorer.add_losses(fixed[:0], ColumnSets.of([fixed]))
        parts, predictor = losses.parts[0], predictor if losses.predictors is None else str(losses.predictors[0])
    else:
        parts, predictor = problem.constant_losses(), "constant"
    weights = problem.part_weights
    return Step(
        action="start",
        group=None,
        name="",
        columns=fixed,
        before=float("nan"),
        loss=float(parts @ weights),
        standard_error=_standard_error(parts, weights),
        gain=float("nan"),
        runner_up=None,
        runner_up_loss=float("nan"),
        seconds=perf_counter() - begin,
        n_fits=int(len(fixed) > 0),
        n_selected=n_fixed,
        n_columns=len(fixed),
        fold_losses=parts,
        fold_weights=weights,
        losses=np.full(problem.groups.n_groups, np.nan),
        predictor=predictor,
    )


def score(problem: Problem, scorer: Scorer, selected: IntArray, candidates: ColumnSets) -> tuple[float, Losses]:
    """Loss of the selection as it is and losses of all candidates, side by side under the same conditions."""
    if not len(selected):
        return float(problem.constant_losses() @ problem.part_weights), scorer.add_losses(selected, candidates)
    losses = scorer.add_losses(selected, candidates.with_empty())
    predictors = None if losses.predictors is None else losses.predictors[:-1]
    before = float(losses.means[-1])
    return before if isfinite(before) else inf, Losses(losses.parts[:-1], losses.weights, predictors)


def choose(losses: Losses, before: float, costs: FloatArray) -> tuple[int, int | None]:
    """The two candidates with the lowest losses; where costs differ, with the largest improvements per cost."""
    means = losses.means
    bad = ~np.isfinite(means)
    if bad.any():
        warnings.warn(f"{bad.sum()} candidates have a loss that is no finite number: they lose.", stacklevel=4)
        means = np.where(bad, np.inf, means)
    if (costs != costs[0]).any():
        change = means - before
        means = np.where(change < 0, change / costs, change)
    best = int(np.argmin(means))
    others = np.delete(means, best)
    if not (others < np.inf).any():
        return best, None
    second = int(np.argmin(others))
    return best, second + (second >= best)


def _addition(
    last: Step,
    before: float,
    groups: Groups,
    candidates: Candidates,
    losses: Losses,
    best: int,
    second: int | None,
) -> Step:
    names, columns = candidates
    means, parts = losses.means, losses.parts[best].copy()  # a view would keep the parts of all candidates
    loss = float(means[best])
    all_losses = np.full(groups.n_groups, np.nan)
    all_losses[names] = means
    return Step(
        action="add",
        group=int(names[best]),
        name=groups.names[int(names[best])],
        columns=columns[best].copy(),
        before=before,
        loss=loss,
        standard_error=_standard_error(parts, losses.weights),
        gain=(before - loss) / loss if loss != 0 else float("inf"),
        runner_up=None if second is None else int(names[second]),
        runner_up_loss=float("nan") if second is None else float(means[second]),
        seconds=0.0,
        n_fits=len(columns),
        n_selected=last.n_selected + 1,
        n_columns=last.n_columns + len(columns[best]),
        fold_losses=parts,
        fold_weights=losses.weights,
        losses=all_losses,
        predictor="",
    )


def _standard_error(parts: FloatArray, weights: FloatArray) -> float:
    return standard_error(parts, weights) if np.count_nonzero(weights) > 1 else float("nan")


def _path(steps: list[Step], stop: Stop) -> Path:
    marked = [replace(step, kept=number <= stop.keep) for number, step in enumerate(steps)]
    return Path(tuple(marked), stop.reason, stop.partial)
