"""How stable a selection is: what is selected on halves of the rows, and how much of it may be false.

The rows are split at random into two halves, again and again, and features are selected on each half alone (the
complementary pairs of Shah and Samworth, 2013). Whatever is selected on most halves is no accident of single rows. How
many of such features are expected to be false is bounded: by Meinshausen and Bühlmann's bound, which takes false
features for exchangeable, and by Shah and Samworth's, which takes the distribution of simultaneous selections for
unimodal, and calls those features false that are selected less often than at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ngp._types import BoolArray, FloatArray, IntArray
from ngp.problem import Problem
from ngp.validation import Round

__all__ = ["Stability", "half_problem", "halves"]

STREAM = 0x48616C  # of random numbers, so that no other part of a fit draws the same ones


@dataclass(frozen=True)
class Stability:
    """How often each candidate was selected on halves of the rows.

    Attributes
    ----------
    frequencies : float array
        Share of the halves on which each group was selected.
    n_halves : int
        How many halves there were, in pairs.
    n_selected : float
        Mean number of groups that were selected on a half.
    n_candidates : int
        How many there were to choose from.

    Examples
    --------
    >>> stability = Stability(np.array([1.0, 0.9, 0.1, 0.0]), 100, 2.0, 200)
    >>> stability.stable()
    array([0, 1])
    >>> round(stability.expected_false(0.9), 4)
    0.0086
    """

    frequencies: FloatArray
    n_halves: int
    n_selected: float
    n_candidates: int

    @classmethod
    def of(cls, selections: Iterable[IntArray], n_groups: int, n_candidates: int) -> Stability:
        """Count what was selected on each half.

        Parameters
        ----------
        selections : iterable of int arrays
            The groups that were selected on each half.
        n_groups : int
            How many groups there are.
        n_candidates : int
            How many of them could be selected.
        """
        counts, n_halves = np.zeros(n_groups), 0
        for selected in selections:
            counts[selected] += 1
            n_halves += 1
        return cls(counts / n_halves, n_halves, float(counts.sum() / n_halves), n_candidates)

    def stable(self, threshold: float = 0.75) -> IntArray:
        """Groups that were selected on at least so large a share of the halves, the most frequent first.

        Parameters
        ----------
        threshold : float
            The share.
        """
        order = np.argsort(-self.frequencies, kind="stable")
        return order[self.frequencies[order] >= threshold]

    def expected_false(self, threshold: float = 0.75) -> float:
        """Bound on the expected number of false groups among those that are `stable`.

        Parameters
        ----------
        threshold : float
            As of `stable`; more than one half.
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

    Parameters
    ----------
    problem : Problem
        The rows.
    n_halves : int
        An even number.
    seed : int
        Of the splits.
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


def half_problem(problem: Problem, mask: BoolArray) -> Problem:
    """The problem of some of the rows: all others neither train nor judge.

    Parameters
    ----------
    problem : Problem
        With all rows.
    mask : bool array
        Which rows have a say.
    """
    rounds = tuple(restricted for fold in problem.rounds if (restricted := _restricted(fold, mask)) is not None)
    return replace(problem, weights=np.where(mask, problem.weights, 0.0), rounds=rounds)


def _restricted(fold: Round, mask: BoolArray) -> Round | None:
    """The same folds with fewer rows; those that have none left are left out."""
    inside = mask[fold.rows]
    counts = np.add.reduceat(np.append(inside, False), fold.segments[:-1]) * (np.diff(fold.segments) > 0)
    counts = np.concatenate([counts[:1], counts[1:][counts[1:] > 0]])
    if len(counts) == 1:
        return None
    return Round(fold.rows[inside], np.concatenate([[0], np.cumsum(counts)]))
