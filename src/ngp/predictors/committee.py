"""From what users write to a predictor: names, estimators, lists of which the best wins, callables of the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ngp._progress import phase
from ngp._types import AnyArray, IntArray
from ngp.data.problem import Problem
from ngp.predictors.base import ColumnSets, FittedPredictor, Losses, Predictor, Scorer
from ngp.predictors.estimator import Estimator
from ngp.predictors.kernel import Kernel
from ngp.predictors.networks import CNN, MLP
from ngp.predictors.ssfn import SSFN

__all__ = ["PREDICTORS", "Committee", "Schedule", "bind_predictor", "predictor_names", "resolve_predictor", "settled"]

PREDICTORS: dict[str, Callable[[], Predictor]] = {"ssfn": SSFN, "mlp": MLP, "cnn": CNN, "kernel": Kernel}
# A table is small if it has no more rows, and if a step with kernels takes no more operations, about: a third of a
# second.
MOST_SMALL_ROWS = 1000
MOST_SMALL_OPERATIONS = 6e9


def settled(predictor: Any, cv: Any, *, n_rows: int, n_candidates: int) -> tuple[Predictor, Any]:
    """The predictor and the way of validation that "auto" stands for.

    On small tables these are kernels and leave-one-out, which leave nothing to chance: every seed leads to the same
    selection, and so does every order of the rows.
    """
    small = n_rows <= MOST_SMALL_ROWS and n_candidates * n_rows**3 <= MOST_SMALL_OPERATIONS
    if isinstance(predictor, str) and predictor == "auto":
        predictor = "kernel" if small else "ssfn"
    resolved = resolve_predictor(predictor)
    if isinstance(cv, str) and cv == "auto":
        cv = "loo" if small and isinstance(resolved, Kernel) else 5
    return resolved, cv


def resolve_predictor(given: Any) -> Predictor:
    """Make a predictor of a name, a predictor, a scikit-learn estimator, a list of those, or a callable."""
    if isinstance(given, list | tuple):
        if not given:
            raise ValueError("predictor=[] is empty: give at least one predictor.")
        return Committee([_resolve_one(member) for member in given])
    if callable(given) and not any(hasattr(given, name) for name in ("bind", "fit", "forward", "__mro__")):
        return Schedule(lambda step: _of_step(given, step))
    return _resolve_one(given)


def _of_step(given: Callable[[int], Any], step: int) -> Predictor:
    predictor = resolve_predictor(given(step))
    if isinstance(predictor, Schedule):
        raise TypeError(f"predictor(step) returned a callable for step {step}: it must return a predictor.")
    return predictor


def _resolve_one(given: Any) -> Predictor:
    if isinstance(given, type):
        raise TypeError(f"predictor={given.__name__} is a class: give an object, made with {given.__name__}(…).")
    if isinstance(given, str):
        if given not in PREDICTORS:
            raise ValueError(f"predictor={given!r} is unknown: use one of {', '.join(PREDICTORS)}.")
        return PREDICTORS[given]()
    if isinstance(given, Predictor):
        return given
    if hasattr(given, "bind"):
        raise TypeError(f"predictor={given!r} is no ngp.predictors.Predictor: let its class inherit from that.")
    if hasattr(given, "fit") and hasattr(given, "predict"):
        return Estimator(given)
    if hasattr(given, "forward"):
        raise TypeError(
            f"predictor={type(given).__name__} is a torch module: give CNN(network=…) a function that makes such."
        )
    raise TypeError(
        f"predictor={given!r} can't predict: give a name ({', '.join(PREDICTORS)}), an object of ngp.predictors, "
        "a scikit-learn estimator, a list of those, or a callable that returns one for each step."
    )


def bind_predictor(
    predictor: Predictor, problem: Problem, *, random_state: int, n_jobs: int | None, device: str
) -> Scorer:
    """Bind a predictor, unless it can't be judged by the problem's loss or run on the device."""
    if not isinstance(predictor, Committee | Schedule):  # which check their members
        if problem.loss not in predictor.losses:
            known = ", ".join(sorted(predictor.losses))
            raise ValueError(f"loss={problem.loss!r} can't be scored by {predictor.name}: use one of {known}.")
        if device in ("cuda", "mps") and not predictor.uses_gpu:
            raise ValueError(f"device={device!r} can't run {predictor.name}: use device='cpu' or 'auto'.")
    return predictor.bind(problem, random_state=random_state, n_jobs=n_jobs, device=device)


def predictor_names(predictors: Sequence[Predictor]) -> tuple[str, ...]:
    """Name predictors for the record, numbered where several have the same name."""
    plain = [predictor.name for predictor in predictors]
    return tuple(
        f"{name} {plain[: i + 1].count(name)}" if plain.count(name) > 1 else name for i, name in enumerate(plain)
    )


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
        self.scoring = self.members[0].scoring
        for member in self.members:
            _check_same_scoring(self.scoring, member)

    def bind(self, problem: Problem, **conditions: Any) -> CommitteeScorer:
        """Prepare for one problem."""
        on_cpu = conditions | {"device": "cpu"}
        scorers = [bind_predictor(each, problem, **(conditions if each.uses_gpu else on_cpu)) for each in self.members]
        return CommitteeScorer(tuple(scorers), np.array(self.names))


def _check_same_scoring(scoring: Any, other: Predictor) -> None:
    if other.scoring != scoring:
        raise ValueError(
            f"predictor: {other.name} is judged by scoring={other.scoring!r} and another one by scoring={scoring!r}: "
            "give all of them the same."
        )


@dataclass(frozen=True)
class CommitteeScorer(Scorer):
    """A `Committee` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    scorers: tuple[Scorer, ...]
    names: np.ndarray[Any, np.dtype[np.str_]]

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g, each by the member that does best on it."""
        losses = []
        for scorer, name in zip(self.scorers, self.names, strict=True):
            with phase(f"scoring with {name}", len(candidates)):
                losses.append(scorer.add_losses(selected, candidates))
        best = np.array([each.comparable for each in losses]).argmin(axis=0)
        parts = np.array([each.parts for each in losses])[best, np.arange(len(candidates))]
        return Losses(parts, losses[0].weights, self.names[best])

    @property
    def stages(self) -> Sequence[CommitteeScorer]:
        """Members race side by side; one that has fewer stages is itself in the last ones."""
        stages = [scorer.stages for scorer in self.scorers]
        numbers = range(max(map(len, stages)))
        return [replace(self, scorers=tuple(each[min(i, len(each) - 1)] for each in stages)) for i in numbers]

    @property
    def n_layers(self) -> int:  # type: ignore[override]
        """Random layers, at most."""
        return max(scorer.n_layers for scorer in self.scorers)

    def tuned(self, selected: IntArray, candidates: ColumnSets) -> CommitteeScorer:
        """Tune every member."""
        tuned = tuple(scorer.tuned(selected, candidates) for scorer in self.scorers)
        same = all(now is before for now, before in zip(tuned, self.scorers, strict=True))
        return self if same else replace(self, scorers=tuned)

    def without_search(self, ridge: float) -> CommitteeScorer:
        """Let no member search."""
        return replace(self, scorers=tuple(scorer.without_search(ridge) for scorer in self.scorers))

    def constant_losses(self, problem: Problem) -> Losses:
        """Losses of the constant prediction, the same for all members."""
        return self.scorers[0].constant_losses(problem)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray] | None:
        """Predictions of the rows that a fold's training left out, by the member that does best."""
        return self._winner(selected, new).out_of_fold(selected, new)

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the member that has the lowest validation loss on the selection."""
        return self._winner(selected[:0], selected).fit(selected)

    def _winner(self, selected: IntArray, new: IntArray) -> Scorer:
        """The member that has the lowest validation loss on S and the columns that are new."""
        if len(self.scorers) == 1:
            return self.scorers[0]
        losses = [scorer.add_losses(selected, ColumnSets.of([new])).comparable[0] for scorer in self.scorers]
        return self.scorers[int(np.argmin(losses))]


class Schedule(Predictor):
    """Another predictor in another step."""

    def __init__(self, predictor_of: Callable[[int], Predictor]) -> None:
        self.predictor_of = predictor_of
        first = predictor_of(1)  # whether later predictors can be judged by the same loss is checked in their steps
        self.losses, self.classification_loss, self.scoring = first.losses, first.classification_loss, first.scoring

    def bind(self, problem: Problem, **conditions: Any) -> ScheduleScorer:
        """Prepare for one problem."""
        return ScheduleScorer(self, problem, conditions)


@dataclass(frozen=True)
class ScheduleScorer(Scorer):
    """A `Schedule` bound to a problem: each step has a scorer of its own, which says what predicted."""

    schedule: Schedule
    problem: Problem
    conditions: dict[str, Any]

    def at(self, step: int) -> Scorer:
        """Return the scorer of a step."""
        predictor = self.schedule.predictor_of(step)
        _check_same_scoring(self.schedule.scoring, predictor)
        committee = predictor if isinstance(predictor, Committee) else Committee([predictor])
        return committee.bind(self.problem, **self.conditions)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Score as in the first step."""
        return self.at(1).add_losses(selected, candidates)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray] | None:
        """Predict as in the first step."""
        return self.at(1).out_of_fold(selected, new)

    def constant_losses(self, problem: Problem) -> Losses:
        """Losses of the constant prediction."""
        return self.at(1).constant_losses(problem)

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the predictor of the first step."""
        return self.at(1).fit(selected)
