"""The contract between the pursuit and what predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem

__all__ = ["ColumnSets", "FittedPredictor", "Losses", "Predictor", "Scorer"]

MEANS_AT_ONCE = 2**12


@dataclass(frozen=True)
class ColumnSets:
    """Many small sets of columns in two flat arrays, so that a million candidates stay cheap.

    Attributes
    ----------
    columns : int array
        All sets one after the other.
    bounds : int array
        Set i is ``columns[bounds[i]:bounds[i + 1]]``.

    Examples
    --------
    >>> sets = ColumnSets.of([[3], [1, 4]])
    >>> len(sets), sets[1], sets.sizes
    (2, array([1, 4]), array([1, 2]))
    """

    columns: IntArray
    bounds: IntArray

    @classmethod
    def of(cls, sets: Sequence[Sequence[int] | IntArray]) -> ColumnSets:
        """Gather sets that are given one by one.

        Parameters
        ----------
        sets : sequence of sequences of int
            The columns of each set.

        Returns
        -------
        ColumnSets
            The same sets, in the same order.
        """
        bounds = np.cumsum([0, *(len(columns) for columns in sets)], dtype=np.intp)
        flat = np.concatenate([np.zeros(0, np.intp), *(np.asarray(columns, dtype=np.intp) for columns in sets)])
        return cls(flat, bounds)

    @classmethod
    def singles(cls, columns: IntArray) -> ColumnSets:
        """Make every column a set of its own.

        Parameters
        ----------
        columns : int array
            The columns.

        Returns
        -------
        ColumnSets
            As many sets as there are columns.
        """
        return cls(columns, np.arange(len(columns) + 1))

    def with_empty(self) -> ColumnSets:
        """Append the empty set, which stands for the selection as it is.

        Returns
        -------
        ColumnSets
            One set more.
        """
        return ColumnSets(self.columns, np.append(self.bounds, self.bounds[-1]))

    def take(self, positions: IntArray) -> ColumnSets:
        """Take some of the sets.

        Parameters
        ----------
        positions : int array
            Which ones.

        Returns
        -------
        ColumnSets
            Those, in the order of the positions.

        Examples
        --------
        >>> ColumnSets.of([[3], [1, 4], [2]]).take(np.array([2, 1])).columns
        array([2, 1, 4])
        """
        sizes = self.sizes[positions]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[positions] - bounds[:-1], sizes)
        return ColumnSets(self.columns[places], bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> IntArray:
        return self.columns[self.bounds[index] : self.bounds[index + 1]]

    def part(self, start: int, stop: int) -> ColumnSets:
        """Take the sets from one number to before another.

        Parameters
        ----------
        start, stop : int
            The first set that is taken, and the first one after it that isn't.

        Returns
        -------
        ColumnSets
            The sets between.

        Examples
        --------
        >>> ColumnSets.of([[3], [1, 4], [2]]).part(1, 3).columns
        array([1, 4, 2])
        """
        bounds = self.bounds[start : stop + 1]
        return ColumnSets(self.columns[bounds[0] : bounds[-1]], bounds - bounds[0])

    @property
    def sizes(self) -> IntArray:
        """Number of columns of each set."""
        return np.diff(self.bounds)

    def by_size(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Go through the sets of one size after the other.

        Yields
        ------
        numbers : int array of shape (n_sets,)
            Which sets are of that size.
        columns : int array of shape (n_sets, size)
            Their columns.
        """
        sizes = self.sizes
        for size in np.unique(sizes):
            members = np.flatnonzero(sizes == size)
            yield members, self.columns[self.bounds[members][:, None] + np.arange(size)]


@dataclass(frozen=True)
class Losses:
    """Validation losses of candidates, the parts of the validation (folds) kept apart.

    Attributes
    ----------
    parts : array of shape (n_candidates, n_parts)
        Mean loss in each part.
    weights : array of shape (n_parts,)
        Share of each part in the total; sums to one.
    predictors : str array of shape (n_candidates,), optional
        What predicted, where a scorer has a choice.

    Examples
    --------
    >>> Losses(np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([0.5, 0.5])).means
    array([2.  , 2.25])
    """

    parts: FloatArray
    weights: FloatArray
    predictors: AnyArray | None = None

    @cached_property
    def means(self) -> FloatArray:
        """Total loss of each candidate."""
        means = np.empty(len(self.parts))
        for start in range(0, len(means), MEANS_AT_ONCE):  # the products of a million would be as large as the parts
            chunk = slice(start, start + MEANS_AT_ONCE)
            means[chunk] = (self.parts[chunk] * self.weights).sum(axis=1)
        return means

    @property
    def comparable(self) -> FloatArray:
        """Total losses, of which those that are no finite numbers are infinite: they lose."""
        return np.where(np.isfinite(self.means), self.means, np.inf)


class FittedPredictor(Protocol):
    """Predicts coded targets."""

    def predict(self, X: AnyArray) -> FloatArray:
        """Predict coded targets (see `ngp.data.losses`).

        Parameters
        ----------
        X : array of shape (n_samples, n_columns)
            All columns, of which only the selected ones are read.

        Returns
        -------
        float array of shape (n_samples, n_outputs)
            One column per target; one per class, or a single one if there are two classes.
        """


class Scorer(ABC):
    """A predictor bound to one problem: computes the validation loss of a selection.

    Every answer depends on its arguments alone: not on earlier calls, chunks, threads or resumption.
    """

    @abstractmethod
    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Score S + g for the selection S and the new columns g of every candidate.

        An empty g asks for S as it is. With an empty S the answer is the loss of any set of columns. All losses of one
        call are comparable; those of different S may not be if a predictor draws its random parts anew.

        Parameters
        ----------
        selected : int array
            The columns S.
        candidates : ColumnSets
            What each candidate adds to them.

        Returns
        -------
        Losses
            Validation losses, one row per candidate.
        """

    @abstractmethod
    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the final predictor on all rows that may train.

        Parameters
        ----------
        selected : int array
            The columns to train on, at least one.

        Returns
        -------
        FittedPredictor
            The trained predictor.
        """

    def drop_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Score S - g for the columns g of every candidate, all of them in S.

        By default what remains is scored as a set of its own; override it if there is a quicker way.

        Parameters
        ----------
        selected : int array
            The columns S.
        candidates : ColumnSets
            What each candidate takes away from them.

        Returns
        -------
        Losses
            Validation losses, one row per candidate.
        """
        rest = [np.setdiff1d(selected, candidates[i], assume_unique=True) for i in range(len(candidates))]
        return self.add_losses(selected[:0], ColumnSets.of(rest))

    def at(self, step: int) -> Scorer:
        """Return the scorer of a step, by default this one for all steps.

        Parameters
        ----------
        step : int
            Number of the step; the first addition is step 1, and fixed columns are scored as in it.

        Returns
        -------
        Scorer
            Scores the candidates of that step.
        """
        return self


class Predictor(ABC):
    """Plain configuration: cheap and picklable; all work is done by the scorer that `bind` returns.

    Only `bind` must be written.

    Attributes
    ----------
    losses : frozenset of str
        Names of the validation losses that the predictor can be judged by, by default all of `ngp.data.losses.LOSSES`.
    classification_loss : str
        The loss that ``loss="auto"`` stands for if the targets are classes, by default the squared error.
    uses_gpu : bool
        Whether the predictor can run on a GPU, by default False: ``device="cuda"`` and ``"mps"`` are then refused.
    name : str
        What the predictor is called in `Step.predictor`, by default the name of its class.
    """

    losses: frozenset[str] = frozenset(LOSSES)
    classification_loss: str = "squared_error"
    uses_gpu: bool = False
    name: str = ""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @abstractmethod
    def bind(self, problem: Problem, *, random_state: int, n_jobs: int | None, device: str) -> Scorer:
        """Prepare for one problem.

        Parameters
        ----------
        problem : Problem
            Data, coded targets, weights, folds and the loss (see `ngp.data.problem`).
        random_state : int
            Seed of everything random.
        n_jobs : int or None
            Parallel tasks, as everywhere in scikit-learn; no answer may depend on it.
        device : {"auto", "cpu", "cuda", "mps"}
            Where to score.

        Returns
        -------
        Scorer
            Scores candidates of this problem.
        """
