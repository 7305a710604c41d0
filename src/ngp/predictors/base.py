"""The contract between the pursuit and what predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.problem import Problem

__all__ = ["FittedPredictor", "Losses", "Predictor", "Scorer"]


@dataclass(frozen=True)
class Losses:
    """Validation losses of candidates, the parts of the validation (folds) kept apart.

    Attributes
    ----------
    parts : array of shape (n_candidates, n_parts)
        Mean loss in each part.
    weights : array of shape (n_parts,)
        Share of each part in the total; sums to one.

    Examples
    --------
    >>> Losses(np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([0.5, 0.5])).means
    array([2.  , 2.25])
    """

    parts: FloatArray
    weights: FloatArray

    @property
    def means(self) -> FloatArray:
        """Total loss of each candidate."""
        result: FloatArray = (self.parts * self.weights).sum(axis=1)
        return result


class FittedPredictor(Protocol):
    """Predicts coded targets from X, of which it looks only at the columns it was trained on."""

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""


class Scorer(Protocol):
    """A predictor bound to one problem: answers what a selection would be worth.

    Every answer depends on its arguments alone, not on earlier calls, chunks, threads or resumption.
    """

    def add_losses(self, selected: IntArray, candidates: list[IntArray]) -> Losses:
        """Losses of S + g, for every candidate's new columns g."""

    def drop_losses(self, selected: IntArray, candidates: list[IntArray]) -> Losses:
        """Losses of S - g, for every candidate's columns g of S."""

    def subset_losses(self, subsets: list[IntArray]) -> Losses:
        """Losses of the subsets themselves."""

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train on all rows that may train."""


class Predictor(Protocol):
    """Plain configuration: cheap, immutable, picklable; all work is done by what `bind` returns."""

    losses: frozenset[str]
    """Names of the validation losses that the predictor can score (keys of `ngp.losses.LOSSES`)."""

    def bind(self, problem: Problem, *, random_state: int, n_jobs: int | None = None) -> Scorer:
        """Prepare for one problem."""


def column_array(columns: object) -> IntArray:
    """Column numbers as an array, also when there are none."""
    return np.asarray(columns, dtype=np.intp).reshape(-1)
