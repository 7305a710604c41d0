"""Pursuits with made-up losses, made-up steps, and callbacks, for the tests of the greedy room.

p-values come from data, not from losses: those of pursuits with made-up losses mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path, Step
from ngp.greedy.stopping import StopRule
from ngp.predictors.base import ColumnSets, Losses, Scorer

Loss = Callable[[frozenset[int]], float]
N_ROWS, N_FOLDS = 8, 4
NEVER = StopRule()  # goes on as long as there is a candidate


@dataclass
class FakeScorer(Scorer):
    """Looks losses up; `calls` keeps the questions."""

    problem: Problem
    loss: Loss
    luck: Callable[[int], float] = lambda size: 0.0  # differs from step to step, as fresh random layers do
    calls: list[tuple[list[int], list[list[int]]]] = field(default_factory=list)

    def add_losses(self, selected: Any, candidates: ColumnSets) -> Losses:
        sets = [candidates[i].tolist() for i in range(len(candidates))]
        self.calls.append((selected.tolist(), sets))
        assert all(len(set(new)) == len(new) and not set(new) & set(selected.tolist()) for new in sets)
        totals = [self.loss(frozenset(selected.tolist()) | frozenset(new)) + self.luck(len(selected)) for new in sets]
        weights = self.problem.part_weights
        wave = np.cos(np.arange(len(weights)))
        wave -= weights @ wave  # parts differ, their mean is the loss
        return Losses(np.array(totals)[:, None] * (1 + 0.1 * wave), weights)

    def fit(self, selected: Any) -> Any:
        raise AssertionError("the pursuit doesn't fit")

    def on(self, problem: Problem) -> FakeScorer:
        """The same on other data; losses are what they were."""
        return self if problem is self.problem else replace(self, problem=problem, calls=[])


def make_fake(
    n_columns: int,
    loss: Loss,
    *,
    groups: Any = None,
    costs: Any = None,
    constant: Collection[int] = (),
    luck: Callable[[int], float] = lambda size: 0.0,
) -> FakeScorer:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n_columns))
    X[:, list(constant)] = 1.0
    y = 100 * rng.normal(size=N_ROWS)
    problem = make_problem(X, y, groups=make_groups(groups, n_columns, None, costs), task="regression", cv=N_FOLDS)
    return FakeScorer(problem, loss, luck)


def search_of(scorer: FakeScorer, **ways: Any) -> Search:
    return Search(scorer.problem, scorer.on, **ways)


def run(scorer: FakeScorer, rule: StopRule, fixed: Sequence[int] = (), **options: Any) -> Path:
    names = ("predictor", "screening")
    search = search_of(scorer, **{name: options.pop(name) for name in names if name in options})
    return pursue(search, rule, fixed=np.array(fixed, dtype=np.intp), **options)


def seen(steps: Sequence[Step]) -> list[Any]:
    """What steps have found, without their duration."""
    return [
        (each.action, each.group, each.dropped, each.loss, each.kept, each.n_fits, repr(each.p_value)) for each in steps
    ]


def random_loss(seed: int, decimals: int = 6) -> Loss:
    """A loss with no structure at all; few decimals make ties."""

    def loss(columns: frozenset[int]) -> float:
        rng = np.random.default_rng([seed, *sorted(columns)])
        return round(float(rng.uniform(1, 2)), decimals)

    return loss


def weights_loss(weights: Sequence[float]) -> Loss:
    """Each column takes its weight from the loss."""
    return lambda columns: 10 - sum(weights[column] for column in sorted(columns))


def decoy_loss(columns: frozenset[int]) -> float:
    """Column 0 hides 1 to 4: beside it none of them pays, but together they are better."""
    parts = len(columns & {1, 2, 3, 4})
    return min(2.0 if 0 in columns else 10.0, 10.0 - 2.4 * parts) + 0.01 * len(columns)


def fake_step(loss: float, before: float = nan, spread: float = 0.0, **others: Any) -> Step:
    """A step with two folds, whose losses have the standard error `spread`; nothing was drawn anew."""
    settings: dict[str, Any] = {
        "action": "add",
        "group": 0,
        "name": "",
        "columns": np.zeros(0, np.intp),
        "standard_error": spread,
        "gain": (before - loss) / before if before else nan,
        "paired": before,
        "n_selected": 0,
        "n_columns": 0,
        "fold_losses": np.array([loss - spread, loss + spread]),
        "fold_weights": np.array([0.5, 0.5]),
        "losses": np.zeros(0),
        "predictor": "",
        "n_fits": 10,
        "seconds": 1.0,
    }
    return Step(before=before, loss=loss, **{**settings, **others})


def fake_steps(losses: Sequence[float], spread: float = 0.0, columns_per_step: int = 1) -> list[Step]:
    """The start, and an addition for each further loss."""
    start = fake_step(losses[0], spread=spread, action="start", group=None)
    return [
        start,
        *(
            fake_step(loss, before, spread, group=k, n_selected=k, n_columns=k * columns_per_step)
            for k, (before, loss) in enumerate(pairwise(losses), 1)
        ),
    ]


class Observes:
    """An observer of a pursuit that calls a function with all steps and the number of new ones."""

    def __init__(self, function: Callable[[Sequence[Step], int], Any]) -> None:
        self.function = function

    def begin(self) -> None: ...

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        return bool(self.function(steps, n_new))


class OnStep:
    """A callback of scikit-learn's that calls a function with all steps so far; what it returns may stop the fit."""

    def __init__(self, function: Callable[[Sequence[Step]], Any]) -> None:
        self.function = function

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        return context.task_name == "step" and bool(self.function(estimator.path_))


def stop_after(n: int, how: BaseException | None = None) -> Callable[..., bool]:
    """For both: stop, or raise, once so many steps were made, the start not counted."""

    def function(steps: Sequence[Step], n_new: int = 1) -> bool:
        if len(steps) > n and how:
            raise how
        return len(steps) > n

    return function
