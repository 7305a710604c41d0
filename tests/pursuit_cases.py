"""Pursuits with made-up losses, for tests of the search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path, Step
from ngp.greedy.stopping import StopRule
from ngp.predictors import ColumnSets, Losses, Scorer

N_ROWS, N_FOLDS = 8, 4


@dataclass
class FakeScorer(Scorer):
    """Looks losses up; `calls` keeps the questions."""

    problem: Problem
    loss: Callable[[frozenset[int]], float]
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


def make_fake(
    n_columns: int,
    loss: Callable[[frozenset[int]], float],
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


def run(scorer: FakeScorer, rule: StopRule, fixed: Sequence[int] = (), **options: Any) -> Path:
    ways = {
        name: options.pop(name) for name in ("predictor", "screening", "look_ahead", "beam_width") if name in options
    }
    return pursue(Search(scorer.problem, scorer, **ways), rule, fixed=np.array(fixed, dtype=np.intp), **options)


def random_loss(seed: int, decimals: int = 6) -> Callable[[frozenset[int]], float]:
    """A loss with no structure at all; few decimals make ties."""

    def loss(columns: frozenset[int]) -> float:
        rng = np.random.default_rng([seed, *sorted(columns)])
        return round(float(rng.uniform(1, 2)), decimals)

    return loss


def weights_loss(weights: Sequence[float]) -> Callable[[frozenset[int]], float]:
    """Each column takes its weight from the loss."""
    return lambda columns: 10 - sum(weights[column] for column in sorted(columns))


@dataclass
class WithinBudget:
    """An observer that fails where a step, or an exchange of several, began when the fits were used up."""

    max_fits: int
    spent: int = 0  # before the first step

    def begin(self) -> None: ...

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        assert self.spent + sum(step.n_fits for step in steps[:-n_new]) < self.max_fits
        return False


class Never:
    """Go on as long as there is a candidate."""

    def check(self, steps: Any, exhausted: bool = False) -> None:
        return None
