"""Several predictors in one pursuit: the best one wins a step, or each step has its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.predictors.base import ColumnSets, FittedPredictor, Losses, Predictor, Scorer

__all__ = ["Committee", "Schedule", "bind_predictor", "predictor_names"]


class Committee(Predictor):
    """Predictors that are all trained in every step; the lowest loss of any of them wins.

    Losses are comparable, since all members are judged by the same loss on the same folds.
    """

    def __init__(self, members: Sequence[Predictor]) -> None:
        self.members = tuple(members)
        self.names = predictor_names(self.members)
        self.losses = frozenset.intersection(*(member.losses for member in self.members))
        preferred = {member.classification_loss for member in self.members}
        self.classification_loss = preferred.pop() if len(preferred) == 1 else "squared_error"

    def bind(self, problem: Problem, **conditions: Any) -> CommitteeScorer:
        """Prepare for one problem."""
        on_cpu = conditions | {"device": "cpu"}
        scorers = [bind_predictor(each, problem, **(conditions if each.uses_gpu else on_cpu)) for each in self.members]
        return CommitteeScorer(tuple(scorers), np.array(self.names))


@dataclass(frozen=True)
class CommitteeScorer(Scorer):
    """A `Committee` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    scorers: tuple[Scorer, ...]
    names: np.ndarray[Any, np.dtype[np.str_]]

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g, each by the member that does best on it."""
        losses = [scorer.add_losses(selected, candidates) for scorer in self.scorers]
        means = np.array([each.means for each in losses])
        best = np.where(np.isfinite(means), means, np.inf).argmin(axis=0)
        parts = np.array([each.parts for each in losses])[best, np.arange(len(candidates))]
        return Losses(parts, losses[0].weights, self.names[best])

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the member that has the lowest validation loss on the selection."""
        winner = 0
        if len(self.scorers) > 1:
            sets = ColumnSets.of([selected])
            means = [float(scorer.add_losses(selected[:0], sets).means[0]) for scorer in self.scorers]
            winner = int(np.argmin(np.where(np.isfinite(means), means, np.inf)))
        return self.scorers[winner].fit(selected)


class Schedule(Predictor):
    """Another predictor in another step."""

    def __init__(self, predictor_of: Callable[[int], Predictor]) -> None:
        self.predictor_of = predictor_of
        first = predictor_of(1)  # whether later predictors can be judged by the same loss is checked in their steps
        self.losses, self.classification_loss = first.losses, first.classification_loss

    def bind(self, problem: Problem, **conditions: Any) -> ScheduleScorer:
        """Prepare for one problem."""
        return ScheduleScorer(self.predictor_of, problem, conditions)


@dataclass(frozen=True)
class ScheduleScorer(Scorer):
    """A `Schedule` bound to a problem: each step has a scorer of its own."""

    predictor_of: Callable[[int], Predictor]
    problem: Problem
    conditions: dict[str, Any]

    def at(self, step: int) -> Scorer:
        """Return the scorer of a step, which says what predicted."""
        predictor = self.predictor_of(step)
        committee = predictor if isinstance(predictor, Committee) else Committee([predictor])
        return committee.bind(self.problem, **self.conditions)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Score as in the first step."""
        return self.at(1).add_losses(selected, candidates)

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the predictor of the first step."""
        return self.at(1).fit(selected)


def predictor_names(predictors: Sequence[Predictor]) -> tuple[str, ...]:
    """Name predictors for the record, numbered where several have the same name."""
    plain = [predictor.name for predictor in predictors]
    return tuple(
        f"{name} {plain[: i + 1].count(name)}" if plain.count(name) > 1 else name for i, name in enumerate(plain)
    )


def bind_predictor(
    predictor: Predictor, problem: Problem, *, random_state: int, n_jobs: int | None, device: str
) -> Scorer:
    """Bind a predictor, unless it can't be judged by the problem's loss or run on the device."""
    if not isinstance(predictor, Committee | Schedule):  # which check their members
        _check_loss(predictor, problem)
        if device in ("cuda", "mps") and not predictor.uses_gpu:
            raise ValueError(f"device={device!r} can't run {predictor.name}: use device='cpu' or 'auto'.")
    return predictor.bind(problem, random_state=random_state, n_jobs=n_jobs, device=device)


def _check_loss(predictor: Predictor, problem: Problem) -> None:
    if problem.loss in predictor.losses:
        return
    if problem.loss == "scoring":
        raise ValueError(f"scoring is for scikit-learn estimators, and {predictor.name} is none: use loss instead.")
    known = ", ".join(sorted(predictor.losses - {"scoring"}))
    raise ValueError(f"loss={problem.loss!r} can't be scored by {predictor.name}: use one of {known}.")
