"""Looking ahead: which candidate to begin with, if several are to be added.

Of two features whose product matters, neither says anything by itself. So sets of several candidates are scored like
single ones, all sets where there aren't too many, else those that extend the best smaller ones. The first of the best
set is what a step adds; the next step looks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, isfinite
from numbers import Integral
from typing import NamedTuple

import numpy as np

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.screening import Screening
from ngp.predictors.base import ColumnSets, Scorer

__all__ = ["Ahead", "LookAhead", "Outlook", "best_ahead", "n_sets", "worth"]

# Sets of candidates that are scored in a step at most, and that are screened at most, which is far quicker.
MOST_SETS = 50_000
MOST_SCREENED = 2_000_000
MOST_FEATURES = 5


@dataclass(frozen=True)
class LookAhead:
    """How far a step looks ahead.

    Parameters
    ----------
    n_features : int
        How many features are added tentatively to find the best one to begin with, 1 to 5; 1 doesn't look ahead.
    beam_width : int or None
        How many of the best smaller sets are extended by all candidates. None scores all sets, or as many as 50,000
        trainings a step allow.

    Examples
    --------
    The authors' way: go one step further with each of the two best candidates.

    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> look_ahead = LookAhead(2, beam_width=2)
    >>> NeuralGreedyPursuit(look_ahead=look_ahead, n_features_to_select=2, random_state=0).fit(X, y).order_
    array([1, 0])
    """

    n_features: int
    beam_width: int | None = None

    def __post_init__(self) -> None:
        if not _is_count(self.n_features) or self.n_features > MOST_FEATURES:
            raise ValueError(f"look_ahead={self.n_features!r} must be an integer from 1 to {MOST_FEATURES}.")
        if self.beam_width is not None and not _is_count(self.beam_width):
            raise ValueError(f"beam_width={self.beam_width!r} must be a positive integer, or None for all sets.")


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


class Ahead(NamedTuple):
    """What was seen ahead: the candidate to begin with, and the loss in the end."""

    first: int
    loss: float


@dataclass
class Outlook:
    """Scores sets of candidates beside a selection."""

    problem: Problem  # the data
    scorer: Scorer  # says what each set is worth
    screening: Screening | None  # says which sets are worth scoring
    selected: IntArray  # the selected columns
    columns: ColumnSets  # what each candidate adds to them
    costs: FloatArray  # what each candidate costs
    before: float  # loss of the selection as it is
    beam_width: int | None  # how many sets are extended
    n_fits: int = 0  # how many sets were scored

    def larger(self, sets: IntArray, values: FloatArray, size: int) -> IntArray:
        """Sets (n, size) of candidates that are worth looking at, given smaller ones (m, size - 1)."""
        width = n_extended(len(self.columns), size, self.beam_width, self.screening is not None)
        if width is None:
            return all_sets(len(self.columns), size)
        return extended(sets[np.argsort(values, kind="stable")[:width]], len(self.columns))

    def screened(self, sets: IntArray) -> IntArray:
        """Those of the sets that are worth scoring."""
        if self.screening is None:
            return sets
        costs = self.costs[sets].sum(axis=1)
        return sets[self.screening.best(self.problem, self.selected, self._columns(sets), costs)]

    def losses(self, sets: IntArray) -> FloatArray:
        """Validation loss with each set."""
        self.n_fits += len(sets)
        return self.scorer.add_losses(self.selected, self._columns(sets)).comparable

    def worth(self, sets: IntArray, losses: FloatArray) -> FloatArray:
        """What the sets are compared by: the lower, the better."""
        return worth(losses, self.before, self.costs[sets].sum(axis=1))

    def _columns(self, sets: IntArray) -> ColumnSets:
        n, size = sets.shape
        if (self.columns.sizes == 1).all():
            return ColumnSets(self.columns.columns[sets].ravel(), np.arange(n + 1) * size)
        return ColumnSets.of([np.unique(self.columns.take(members).columns) for members in sets])


def best_ahead(outlook: Outlook, singles: FloatArray, depth: int) -> Ahead | None:
    """Find the best set of candidates, and which of them to begin with; None where no loss is a finite number."""
    n = len(singles)
    sets, values = np.arange(n)[:, None], singles
    all_at_once = n_extended(n, depth, outlook.beam_width, outlook.screening is not None) is None
    for size in range(depth if all_at_once else 2, depth + 1):
        sets = outlook.screened(outlook.larger(sets, values, size))
        losses = outlook.losses(sets)
        values = outlook.worth(sets, losses)
    best = int(np.argmin(values))
    members, loss = sets[best], float(losses[best])
    while len(members) > 2:  # whatever can be spared at the least loss isn't the one to begin with
        sets = np.array(list(combinations(members, len(members) - 1)))
        members = sets[np.argmin(outlook.worth(sets, outlook.losses(sets)))]
    first = int(members[np.argmin(singles[members])])
    return Ahead(first, loss) if isfinite(loss) else None


def n_extended(n: int, size: int, beam_width: int | None, screened: bool) -> int | None:
    """How many sets are extended to sets of a size; None where all sets of that size are looked at."""
    most = MOST_SCREENED if screened else MOST_SETS
    if beam_width is None and comb(n, size) <= most:
        return None
    return beam_width or max(1, most // n)


def n_sets(n: int, depth: int, beam_width: int | None, screened: bool) -> int:
    """How many sets are looked at in a step, at most."""
    if depth > 1 and n_extended(n, depth, beam_width, screened) is None:
        return comb(n, depth)
    widths = [(size, n_extended(n, size, beam_width, screened)) for size in range(2, depth + 1)]
    return sum(comb(n, size) if width is None else width * n for size, width in widths)


def all_sets(n: int, size: int) -> IntArray:
    """All sets of so many out of n, one a row, in ascending order."""
    flat = (member for members in combinations(range(n), size) for member in members)
    return np.fromiter(flat, dtype=np.intp, count=comb(n, size) * size).reshape(-1, size)


def extended(sets: IntArray, n: int) -> IntArray:
    """All sets with one more out of n, one a row, none of them twice."""
    added = np.tile(np.arange(n), len(sets))[:, None]
    larger = np.hstack([np.repeat(sets, n, axis=0), added])
    new = (larger[:, :-1] != added).all(axis=1)
    return np.unique(np.sort(larger[new], axis=1), axis=0)


def worth(losses: FloatArray, before: float, costs: FloatArray) -> FloatArray:
    """What candidates are compared by: losses, or improvements per cost where costs differ; the lower, the better.

    On a loss that isn't finite all improve without end, whatever they cost.
    """
    if (costs == costs[0]).all() or not isfinite(before):
        return losses
    change = losses - before
    return np.where(change < 0, change / costs, change)
