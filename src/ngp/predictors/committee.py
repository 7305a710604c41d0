"""Several predictors in one pursuit: the best one wins a step, or each step has its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.predictors.base import ColumnSets, FittedPredictor, Losses, Predictor, Scorer

__all__ = ["Committee", "Schedule", "check_loss", "predictor_names"]


class Committee:
    """Predictors that are all trained in every step; the lowest loss of any of them wins.

    Losses are comparable, since all members are judged by the same loss on the same folds.
    """

    def __init__(self, members: Sequence[Predictor]) -> None:
        self.members = tuple(members)

    @property
    def names(self) -> tuple[str, ...]:
        """One name a member; members of the same kind are numbered."""
        return predictor_names(self.members)

    @property
    def losses(self) -> frozenset[str]:
        """The losses that every member can score."""
        return frozenset.intersection(*(member.losses for member in self.members))

    @property
    def classification_loss(self) -> str:
        """What all members prefer, or the squared error where they differ."""
        preferred = {getattr(member, "classification_loss", "squared_error") for member in self.members}
        return preferred.pop() if len(preferred) == 1 else "squared_error"

    def bind(self, problem: Problem, **conditions: Any) -> CommitteeScorer:
        """Prepare for one problem."""
        scorers = []
        for member in self.members:
            check_loss(member, problem)
            own = (
                conditions if hasattr(member, "device") else conditions | {"device": "auto"}
            )  # for those that have one
            scorers.append(member.bind(problem, **own))
        return CommitteeScorer(tuple(scorers), np.array(self.names))  # type: ignore[arg-type]


@dataclass(frozen=True)
class CommitteeScorer:
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


class Schedule:
    """Another predictor in another step."""

    def __init__(self, predictor_of: Callable[[int], Predictor]) -> None:
        self.predictor_of = predictor_of

    @property
    def losses(self) -> frozenset[str]:
        """The losses that the first step's predictor can score; those of later steps are checked when they begin."""
        return self.predictor_of(1).losses

    @property
    def classification_loss(self) -> str:
        """What the first step's predictor prefers."""
        return getattr(self.predictor_of(1), "classification_loss", "squared_error")

    def bind(self, problem: Problem, **conditions: Any) -> ScheduleScorer:
        """Prepare for one problem."""
        return ScheduleScorer(self.predictor_of, problem, conditions)


@dataclass(frozen=True)
class ScheduleScorer:
    """A `Schedule` bound to a problem (see `ngp.predictors.base.ScheduledScorer`)."""

    predictor_of: Callable[[int], Predictor]
    problem: Problem
    conditions: dict[str, Any]

    def at(self, step: int) -> Scorer:
        """Return the scorer of a step, which says what predicted."""
        predictor = self.predictor_of(step)
        committee = predictor if isinstance(predictor, Committee) else Committee([predictor])
        return committee.bind(self.problem, **self.conditions)


def predictor_names(predictors: Sequence[Predictor]) -> tuple[str, ...]:
    """Name predictors for the record, numbered where several have the same name."""
    plain = [str(getattr(predictor, "name", type(predictor).__name__)) for predictor in predictors]
    return tuple(
        f"{name} {plain[: i + 1].count(name)}" if plain.count(name) > 1 else name for i, name in enumerate(plain)
    )


def check_loss(predictor: Predictor, problem: Problem) -> None:
    """Refuse a loss that a predictor can't score."""
    if problem.loss in predictor.losses:
        return
    name = predictor_names([predictor])[0]
    if problem.loss == "scoring":
        raise ValueError(f"scoring is for scikit-learn estimators, and {name} is none: use loss instead.")
    known = ", ".join(sorted(predictor.losses - {"scoring"}))
    raise ValueError(f"loss={problem.loss!r} can't be scored by {name}: use one of {known}.")
