"""What the best of as many useless candidates would gain in each step of a path.

Some candidates are drawn and their rows permuted, so that they know nothing, and the predictor is trained with each of
them. Their gains have about a gamma distribution, which says what the best of all candidates would gain by chance: on
data without a signal, the step's own loss is in the range in about 8 of 10 cases (tests/greedy/test_chance.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from math import isfinite
from typing import Any, cast

import numpy as np
from scipy.stats import pearson3

from ngp._formatting import standing
from ngp._types import FloatArray, IntArray
from ngp.data.groups import make_groups
from ngp.greedy.candidates import Candidates, Search
from ngp.greedy.path import Step, chosen, columns_of
from ngp.predictors.base import ColumnSets

__all__ = ["chance_losses"]

N_DRAWN = 40  # candidates that are permuted, in each step
TAIL = 0.02  # share of the cases on each side of the range, if mean and deviation were known
SKEWNESS = 1.0  # of the gains; 40 of them don't tell it
STREAM = 0x63686E63  # of random numbers


def chance_losses(search: Search, steps: Sequence[Step], seed: int) -> FloatArray:
    """Range (n_steps, 2) of the loss after each addition, had all its candidates been useless.

    It is NaN for other steps.
    """
    ranges = np.full((len(steps), 2), np.nan)
    for number, step in enumerate(steps):
        if step.action == "add" and isfinite(step.before) and step.before > 0:
            selected = chosen([steps[before] for before in standing(steps[: number + 1])[:-1]])
            candidates = Candidates.beside(search.problem, columns_of(selected)).columns
            gains = _useless_gains(search, columns_of(selected), candidates, len(selected), step.ridge, seed)
            # Quantiles of the best of all are those of a single one, farther out.
            spread = pearson3.ppf(np.array([1 - TAIL, TAIL]) ** (1 / len(candidates)), SKEWNESS)
            ranges[number] = step.before * (1 - gains.mean() - gains.std(ddof=1) * spread).clip(min=0)
    return ranges


def _useless_gains(
    search: Search, selected: IntArray, candidates: ColumnSets, number: int, ridge: float, seed: int
) -> FloatArray:
    """By which share of the loss some candidates lower it, their rows permuted."""
    problem = search.problem
    key = np.array([seed, STREAM], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=[0, number, 0, 0]))
    drawn = candidates.take(generator.choice(len(candidates), N_DRAWN, replace=len(candidates) < N_DRAWN))
    permuted = [problem.columns(drawn[i]) for i in range(N_DRAWN)]
    for columns in permuted:  # rows of weight zero stay where they are
        columns[:, problem.useful] = columns[:, generator.permutation(problem.useful)]
    X = np.concatenate([problem.columns(selected), *permuted]).T
    own = np.arange(len(selected))
    sets = ColumnSets(np.arange(len(own), X.shape[1]), drawn.bounds)
    groups = make_groups([*own[:, None].tolist(), *(sets[i].tolist() for i in range(N_DRAWN))], X.shape[1])
    scorer = search.bind(replace(problem, X=X, groups=groups)).at(number)
    if is_dataclass(scorer) and isfinite(ridge):
        scorer = replace(cast(Any, scorer), ridge=ridge)  # that of the real candidates
    last = scorer.stages[-1]
    losses = last.add_losses(own, sets.with_empty() if len(own) else sets).comparable
    before = losses[-1] if len(own) else float(last.constant_losses(problem).means[0])
    gains: FloatArray = 1 - losses[:N_DRAWN] / before
    return gains
