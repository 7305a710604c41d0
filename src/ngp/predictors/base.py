"""The contract between the pursuit and what predicts, and what all predictors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import nan
from typing import Any, Protocol, Self

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem
from ngp.data.sources import between
from ngp.kernels.scoring import gather_columns

__all__ = [
    "BoundScorer", "ColumnSets", "Constant", "FittedPredictor", "Losses", "Predictor", "ScaledColumns", "Scorer",
    "scaled_columns",
]  # fmt: skip


@dataclass(frozen=True)
class ColumnSets:
    """Many small sets of columns in two flat arrays, so that a million candidates stay cheap.

    Set i is ``columns[bounds[i]:bounds[i + 1]]``, or ``sets[i]``.

    Examples
    --------
    >>> sets = ColumnSets.of([[3], [1, 4], [2]])
    >>> len(sets), sets[1], sets.sizes, sets.take(np.array([2, 1])).columns
    (3, array([1, 4]), array([1, 2, 1]), array([2, 1, 4]))
    """

    columns: IntArray
    bounds: IntArray

    @classmethod
    def of(cls, sets: Sequence[Sequence[int] | IntArray]) -> ColumnSets:
        """Gather sets that are given one by one."""
        bounds = np.cumsum([0, *(len(columns) for columns in sets)], dtype=np.intp)
        flat = np.concatenate([np.zeros(0, np.intp), *(np.asarray(columns, dtype=np.intp) for columns in sets)])
        return cls(flat, bounds)

    @classmethod
    def singles(cls, columns: IntArray) -> ColumnSets:
        """Make every column a set of its own."""
        return cls(columns, np.arange(len(columns) + 1))

    def with_empty(self) -> ColumnSets:
        """Append the empty set, which stands for the selection as it is."""
        return ColumnSets(self.columns, np.append(self.bounds, self.bounds[-1]))

    def take(self, positions: IntArray) -> ColumnSets:
        """Take some of the sets, in the order of the positions."""
        sizes = self.sizes[positions]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(bounds[-1]) + np.repeat(self.bounds[positions] - bounds[:-1], sizes)
        return ColumnSets(self.columns[places], bounds)

    def part(self, start: int, stop: int) -> ColumnSets:
        """Take the sets from one position to before another."""
        bounds = self.bounds[start : stop + 1]
        return ColumnSets(self.columns[bounds[0] : bounds[-1]], bounds - bounds[0])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> IntArray:
        return self.columns[self.bounds[index] : self.bounds[index + 1]]

    @property
    def sizes(self) -> IntArray:
        """Number of columns of each set."""
        return np.diff(self.bounds)

    def by_size(self) -> Iterator[tuple[IntArray, IntArray]]:
        """For each size, the positions of the sets of that size and their columns (n_sets, size)."""
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
        means, length = np.empty(len(self.parts)), 2**12  # the products of all would be as large as the parts
        for start in range(0, len(means), length):
            chunk = slice(start, start + length)
            means[chunk] = (self.parts[chunk] * self.weights).sum(axis=1)
        return means

    @property
    def comparable(self) -> FloatArray:
        """Total losses, infinite where they are not finite: such candidates lose."""
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

    Attributes
    ----------
    n_layers : int
        Random layers that a loss comes from, or what else says how long it takes, by default 1.
    ridge : float
        Ridge penalty, NaN if there is none.
    """

    n_layers: int = 1
    ridge: float = nan

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
            What each candidate adds to them: ``candidates[i]`` is an array of columns.

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

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray] | None:
        """Predict the rows that a fold's training left out: what `add_losses` judges.

        By default None: it can't say, and no accuracy is shown. A regression is asked only if it has a `scoring`.

        Parameters
        ----------
        selected, new : int arrays
            The columns S, and what is added to them.

        Returns
        -------
        sequence of float arrays of shape (n_rows, n_outputs), or None
            Coded predictions of each round of the problem, in the order of its rows; those of rows that always train
            have no meaning.
        """
        return None

    def drop_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Score S - g for the columns g of every candidate, all of them in S.

        By default what remains is scored as a set of its own; override it if there is a quicker way. Arguments and
        result are those of `add_losses`.
        """
        rest = [np.setdiff1d(selected, candidates[i], assume_unique=True) for i in range(len(candidates))]
        return self.add_losses(selected[:0], ColumnSets.of(rest))

    def constant_losses(self, problem: Problem) -> Losses:
        """Score the constant prediction, from which the first feature gains: `Losses` with a single row.

        By default the problem's loss judges it.
        """
        return Losses(problem.constant_losses[None], problem.part_weights)

    @property
    def stages(self) -> Sequence[Scorer]:
        """Scorers for a race: quick ones for all candidates first, this one for the leaders last; by default it alone.

        Each has the attribute `n_layers`, which says how much work a loss is made of.
        """
        return (self,)

    def tuned(self, selected: IntArray, candidates: ColumnSets) -> Scorer:
        """Return the scorer with the settings for which the best of some candidates has the lowest loss.

        It is this one itself if these are its settings: what it has scored needn't be scored again. By default it has
        nothing to choose. Arguments are those of `add_losses`.
        """
        return self

    def without_search(self, ridge: float) -> Scorer:
        """Return a scorer whose `fit` is quick: with this ridge (NaN if there is none) rather than a search.

        By default it is this one itself: its `fit` searches for nothing.
        """
        return self

    def at(self, step: int) -> Scorer:
        """Return the scorer of a step, by default this one for all steps.

        The first addition is step 1, and fixed columns are scored as in it.
        """
        return self


@dataclass(frozen=True, eq=False)
class BoundScorer(Scorer):
    """A scorer that other processes can share.

    It travels without its problem, which is sent once for all scorers, and without what it has computed for itself.
    """

    config: Any  # the predictor
    problem: Problem
    seed: int
    n_jobs: int | None

    def ridges_of(self, grid: Sequence[float], least: float) -> list[float]:
        """Ridges that a step may have: of many columns and few rows no small ones, since these rows chose the columns.

        `least` is the smallest one, times the cube of the number of rows, divided by the number of candidates.
        """
        least *= self.problem.groups.n_groups / self.problem.n_counted**3
        return sorted({min(grid[-1], max(ridge, least)) for ridge in grid})

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "problem"}

    def on(self, problem: Problem) -> Self:
        """Return the scorer itself, in another process with the problem that was sent beside it."""
        vars(self).setdefault("problem", problem)
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
    scoring : str, callable or None
        A scikit-learn scorer that judges the predictor in place of a loss, by default None (see `Estimator`).
    uses_gpu : bool
        Whether the predictor can run on a GPU, by default False: ``device="cuda"`` and ``"mps"`` are then refused.
    name : str
        What the predictor is called in `Step.predictor`, by default the name of its class.
    """

    losses: frozenset[str] = frozenset(LOSSES)
    classification_loss: str = "squared_error"
    scoring: Any = None
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


@dataclass(frozen=True)
class Constant:
    """The predictor of an empty selection: the mean of the coded targets, whatever X is."""

    values: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> Constant:
        """Average the rows that train the final predictor."""
        rows = slice(problem.n_fit)
        return cls(np.average(problem.targets[rows], axis=0, weights=problem.weights[rows]))

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        return np.tile(self.values, (len(X), 1))


def scaled_columns(problem: Problem, columns: IntArray, rows: IntArray, clip: float | None) -> FloatArray:
    """Standardised columns as rows of an array, held within `clip` deviations (None: not at all)."""
    mean, scale = problem.column_scales
    columns, bound = np.ascontiguousarray(columns), np.inf if clip is None else clip
    if isinstance(problem.X, np.ndarray):
        return gather_columns(problem.X, rows, columns, mean[columns], scale[columns], bound)
    whole, rows = between(rows)
    taken = problem.X.read(columns, whole)
    return gather_columns(taken.T, rows, np.arange(len(columns)), mean[columns], scale[columns], bound)


@dataclass(frozen=True)
class ScaledColumns:
    """Takes columns of any X, and scales them as `scaled_columns` does in training; picklable."""

    columns: IntArray
    mean: FloatArray
    scale: FloatArray
    clip: float  # largest absolute value after scaling

    @classmethod
    def of(cls, problem: Problem, columns: IntArray, clip: float | None) -> ScaledColumns:
        """Scale by the statistics of a problem."""
        mean, scale = problem.column_scales
        return cls(columns, mean[columns], scale[columns], np.inf if clip is None else clip)

    @classmethod
    def as_they_are(cls, columns: IntArray) -> ScaledColumns:
        """Take columns without scaling them."""
        return cls(columns, np.zeros(len(columns)), np.ones(len(columns)), np.inf)

    def __call__(self, X: AnyArray) -> FloatArray:
        """Inputs of shape (n_samples, n_columns)."""
        values = (np.asarray(X[:, self.columns], dtype=np.float64) - self.mean) / self.scale
        return np.clip(values, -self.clip, self.clip)
