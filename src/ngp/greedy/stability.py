"""How stable a selection is: what is selected on halves of the rows, and how much of it may be false.

The rows are split at random into two halves, again and again, and features are selected on each half alone (the
complementary pairs of Shah and Samworth, 2013). Whatever is selected on most halves is no accident of single rows. How
many of such features are expected to be false is bounded: by Meinshausen and Bühlmann's bound, which takes false
features for exchangeable, and by Shah and Samworth's, which takes the distribution of simultaneous selections for
unimodal, and calls those features false that are selected less often than at random.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ngp._types import BoolArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.data.problem import Problem
from ngp.greedy.path import Path

__all__ = ["STABLE_FROM", "Stability", "half_problem", "halves", "selections_on_halves"]

# Groups that are selected on a smaller share of the halves, or left out on a smaller one, stand in for nothing.
SELDOM = 0.1
FAR_FROM_CHANCE = 3.5  # deviations of a correlation of independent selections
# What is selected on so large a share of the halves counts as stable.
STABLE_FROM = 0.75
STREAM = 0x48616C  # of random numbers, so that no other part of a fit draws the same ones


@dataclass(frozen=True)
class Stability:
    """How often each candidate was selected on halves of the rows.

    Attributes
    ----------
    selections : tuple of int arrays
        The groups that were selected on each half.
    n_groups : int
        How many groups there are.
    n_candidates : int
        How many of them could be selected.

    Examples
    --------
    >>> stability = Stability((np.array([0, 1]), np.array([0, 2]), np.array([1, 0]), np.array([0])), 4, 200)
    >>> stability.frequencies, stability.n_selected
    (array([1.  , 0.5 , 0.25, 0.  ]), 1.75)
    >>> stability.stable(), round(stability.expected_false(1.0), 4)
    (array([0]), 0.0102)
    """

    selections: tuple[IntArray, ...]
    n_groups: int
    n_candidates: int

    @property
    def n_halves(self) -> int:
        """How many halves there were, in pairs."""
        return len(self.selections)

    @cached_property
    def frequencies(self) -> FloatArray:
        """Share of the halves on which each group was selected."""
        return np.bincount(np.concatenate(self.selections), minlength=self.n_groups) / self.n_halves

    @property
    def n_selected(self) -> float:
        """Mean number of groups that were selected on a half."""
        return sum(map(len, self.selections)) / self.n_halves

    def stable(self, threshold: float = STABLE_FROM) -> IntArray:
        """Find the groups that were selected on most halves.

        Parameters
        ----------
        threshold : float
            The least share of the halves.

        Returns
        -------
        int array
            The groups, the most frequent first.
        """
        order = np.argsort(-self.frequencies, kind="stable")
        return order[self.frequencies[order] >= threshold]

    def stand_ins(self) -> list[tuple[int, int, float]]:
        """Find pairs of groups that stand in for each other: on most halves exactly one of the two was selected.

        Returns
        -------
        list of (int, int, float)
            Both groups, and the correlation of being selected, over the halves; the most negative first. Only
            correlations are listed that are -0.5 or less, and so far from zero that chance can't do it: it takes 13
            halves or more.
        """
        often = np.flatnonzero((self.frequencies >= SELDOM) & (self.frequencies <= 1 - SELDOM))
        chosen = np.array([np.isin(often, selected) for selected in self.selections], dtype=np.float64)
        chosen = (chosen - chosen.mean(axis=0)) / chosen.std(axis=0)
        correlations = chosen.T @ chosen / self.n_halves
        limit = -max(0.5, FAR_FROM_CHANCE / self.n_halves**0.5)
        pairs = [
            (int(often[i]), int(often[j]), float(correlations[i, j]))
            for i, j in zip(*np.triu_indices(len(often), 1), strict=True)
            if correlations[i, j] <= limit
        ]
        return sorted(pairs, key=lambda pair: pair[2])

    def expected_false(self, threshold: float = STABLE_FROM) -> float:
        """Bound the number of false groups that are expected among those that are `stable`.

        Parameters
        ----------
        threshold : float
            As of `stable`; more than one half.

        Returns
        -------
        float
            The lower one of two bounds (see `ngp.greedy.stability`), and never more than `n_selected`.
        """
        if not 0.5 < threshold <= 1:
            raise ValueError(f"threshold={threshold!r} must be more than 0.5 and at most 1: no bound holds for others.")
        if self.n_selected == 0:
            return 0.0
        squared = self.n_selected**2 / self.n_candidates
        return min(squared / (2 * threshold - 1), squared * self._unimodal_factor(threshold), self.n_selected)

    def _unimodal_factor(self, threshold: float) -> float:
        """Shah and Samworth's factor (their theorem 2); infinite where it doesn't hold."""
        half = 1 / self.n_halves  # 1 / 2B for B pairs
        share = self.n_selected / self.n_candidates
        lowest = 0.5 + min(share**2, half + 0.75 * share**2)
        if share > 3**-0.5 or threshold <= lowest:
            return np.inf
        if threshold <= 0.75:
            return 1 / (2 * (2 * threshold - 1 - half)) if 2 * threshold - 1 > half else np.inf
        return 4 * (1 - threshold + half) / (1 + 2 * half)


def halves(problem: Problem, n_halves: int, seed: int) -> Iterator[BoolArray]:
    """Masks of the rows that are in a half, one after the other, every two of them complementary.

    Rows of an explicit validation set are in all of them, rows of weight zero in none. Classes are halved one by one.
    """
    judges = np.arange(problem.n_samples) >= problem.n_fit
    useful = np.flatnonzero((problem.weights > 0) & ~judges)
    classes = np.zeros(len(useful), dtype=np.intp)
    if problem.classes is not None:
        classes = np.unique(problem.y[useful], return_inverse=True)[1]
    key = np.array([seed, STREAM], dtype=np.uint64)
    for pair in range(n_halves // 2):
        generator = np.random.Generator(np.random.Philox(key=key, counter=[0, pair, 0, 0]))
        shuffled = generator.permutation(len(useful))
        # One after the other, class after class, rows go to this half and to the other.
        ordered = useful[shuffled[np.argsort(classes[shuffled], kind="stable")]]
        for first in range(2):
            mask = judges & (problem.weights > 0)
            mask[ordered[first::2]] = True
            yield mask


def selections_on_halves(
    problem: Problem, n_halves: int, seed: int, select: Callable[[Problem], Path]
) -> tuple[IntArray, ...]:
    """The groups that are selected on each half, pair by pair, until a pursuit is cut short."""
    selections = []
    for rows in halves(problem, n_halves, seed):
        path = select(half_problem(problem, rows))
        if path.partial:
            break
        selections.append(np.array([step.group for step in path.kept], dtype=np.intp))
    del selections[len(selections) // 2 * 2 :]  # half a pair
    if not selections:
        raise ValueError(f"No selection on a half of the rows was finished: {path.reason}.")
    if len(selections) < n_halves:
        reason = path.reason.partition(";")[0]
        warnings.warn(f"Stability is from {len(selections)} of {n_halves} halves of the rows: {reason}.", stacklevel=4)
    return tuple(selections)


def half_problem(problem: Problem, mask: BoolArray) -> Problem:
    """The problem of some of the rows: all others neither train nor judge."""
    rounds = tuple(restricted for round_ in problem.rounds if (restricted := _restricted(round_, mask)) is not None)
    return replace(problem, weights=np.where(mask, problem.weights, 0.0), rounds=rounds)


def _restricted(round_: Round, mask: BoolArray) -> Round | None:
    """The same folds with fewer rows; those that have none left are left out."""
    inside = mask[round_.rows]
    counts = np.add.reduceat(np.append(inside, False), round_.segments[:-1]) * (np.diff(round_.segments) > 0)
    counts = np.concatenate([counts[:1], counts[1:][counts[1:] > 0]])
    if len(counts) == 1:
        return None
    return Round(round_.rows[inside], np.concatenate([[0], np.cumsum(counts)]))
