"""Folds: which rows train, which rows judge.

Splits are arranged in rounds. In a round the validation sets don't overlap and each split trains on all the other
rows of the round, so that sums over rows (Gram matrices) of the whole round and of one fold give the training sums
of every split: K folds for the price of one. K folds, leave-one-out, a hold-out share and an explicit validation set
are a single round; repeated K folds are one round a repetition; splitters of any other kind one round a split.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from ngp._types import AnyArray, FloatArray, IntArray

__all__ = ["Round", "is_validation_set", "make_rounds"]

# Folds are judged in pieces, so many in all at least (as far as there are rows), since standard errors and paired
# comparisons need several.
LEAST_PARTS = 30


@dataclass(frozen=True)
class Round:
    """Splits that share their rows."""

    rows: IntArray  # row numbers: first those that always train, then fold after fold
    segments: IntArray

    @property
    def n_folds(self) -> int:
        """Number of splits in the round."""
        return len(self.segments) - 2

    @cached_property
    def parts(self) -> IntArray:
        """Bounds in `rows` of the parts whose losses are kept apart: each fold in equally many pieces."""
        pieces = -(-LEAST_PARTS // self.n_folds)
        bounds = [
            np.linspace(first, last, min(pieces, last - first) + 1).astype(np.intp)[:-1]
            for first, last in pairwise(self.segments[1:])
        ]
        return np.concatenate([*bounds, self.segments[-1:]])

    def training(self, fold: int) -> IntArray:
        """Rows that train in a fold."""
        start, end = self.segments[fold + 1 : fold + 3]
        return np.concatenate([self.rows[:start], self.rows[end:]])

    def validation(self, fold: int) -> IntArray:
        """Rows that judge in a fold."""
        start, end = self.segments[fold + 1 : fold + 3]
        return self.rows[start:end]

    def merged(self, parts: Iterable[IntArray]) -> Round:
        """Put folds together: each part names those that make up one of the new ones, others are left out.

        No new fold trains on rows that one of its own folds doesn't train on.
        """
        folds = [np.concatenate([self.validation(int(fold)) for fold in part]) for part in parts]
        always = self.rows[: self.segments[1]]
        return Round(np.concatenate([always, *folds]), np.cumsum([0, len(always), *map(len, folds)]))

    def fold_weights(self, sample_weight: FloatArray) -> FloatArray:
        """Sum of the sample weights of each fold's validation set."""
        return _sums(sample_weight[self.rows], self.segments[1:])

    def training_weight(self, sample_weight: FloatArray) -> float:
        """Sum of the sample weights of the rows that train, mean over the folds that judge."""
        folds, always = self.fold_weights(sample_weight), sample_weight[self.rows[: self.segments[1]]]
        return float(always.sum() + folds.sum() * (1 - 1 / max(1, int(np.count_nonzero(folds)))))

    def part_weights(self, sample_weight: FloatArray) -> FloatArray:
        """Sum of the sample weights in each part."""
        return _sums(sample_weight[self.rows], self.parts)

    def part_losses(self, row_losses: FloatArray, sample_weight: FloatArray) -> FloatArray:
        """Mean loss of each part, from the losses of the rows in fold order."""
        weights = self.part_weights(sample_weight)
        sums = _sums(row_losses * sample_weight[self.rows], self.parts)
        return sums / np.where(weights > 0, weights, 1)


def _sums(values: AnyArray, bounds: IntArray) -> FloatArray:
    result: FloatArray = np.add.reduceat(values[..., : bounds[-1]], bounds[:-1], axis=-1)
    return result


def is_validation_set(cv: Any) -> bool:
    """Whether a way of validation is an explicit set (X, y), and no pair of splits."""
    return isinstance(cv, tuple) and len(cv) == 2 and len(getattr(cv[0], "shape", ())) == 2


def make_rounds(
    cv: Any,
    X: AnyArray,
    y: AnyArray,
    *,
    classification: bool,
    random_state: int,
    groups: AnyArray | None = None,
) -> tuple[Round, ...]:
    """Arrange any way of validation in rounds; with groups of rows, a number, a share and "loo" keep them together."""
    n_samples = len(y)
    if isinstance(cv, str) and cv != "loo":
        raise ValueError(f"cv={cv!r} is unknown: give a number of folds, a share, 'loo', a splitter or splits.")
    if isinstance(cv, str) and groups is not None:
        cv = LeaveOneGroupOut()
    if isinstance(cv, str | LeaveOneOut):  # straight away: the splits as such would take n_samples^2 numbers
        if n_samples < 2:
            raise ValueError(f"cv={cv!r} leaves no training rows: give at least 2 samples.")
        return (Round(np.arange(n_samples), np.concatenate([[0], np.arange(n_samples + 1)])),)
    splitter = _splitter(cv, y, classification, random_state, groups)
    if hasattr(splitter, "split"):
        try:
            splits = list(splitter.split(X, y, groups))
        except ValueError as error:
            if groups is None and "groups" in str(error):
                raise ValueError(
                    f"cv={cv!r} keeps groups of rows together: give them to fit as cv_groups, or give the splits as a "
                    "list."
                ) from error
            raise ValueError(f"cv={cv!r} can't split these {n_samples} samples: {error}") from error
    else:
        try:
            splits = [(_row_numbers(train, n_samples), _row_numbers(test, n_samples)) for train, test in splitter]
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                "cv must hold pairs of training and validation rows, "
                f"given by numbers below {n_samples} or by masks: {error}."
            ) from error
    return _arrange(splits, n_samples)


def _splitter(cv: Any, y: AnyArray, classification: bool, random_state: int, groups: AnyArray | None) -> Any:
    n_samples = len(y)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        most, unit = (n_samples, "sample") if groups is None else (len(np.unique(groups)), "group")
        if not 2 <= int(cv) <= most:
            raise ValueError(
                f"cv={cv} folds don't fit {most} {unit}s: give at least 2 folds and at most one per {unit}."
            )
        stratified = classification and bool(np.unique(y, return_counts=True)[1].min() >= cv)
        kinds = (KFold, StratifiedKFold) if groups is None else (GroupKFold, StratifiedGroupKFold)
        return kinds[stratified](int(cv), shuffle=True, random_state=random_state)
    if isinstance(cv, Real) and not isinstance(cv, bool):
        if not 0 < float(cv) < 1 or not 1 <= round(float(cv) * n_samples) < n_samples:
            raise ValueError(
                f"cv={cv} is no hold-out share of {n_samples} samples: "
                "give a number between 0 and 1 that leaves rows on both sides."
            )
        if groups is not None:
            return GroupShuffleSplit(1, test_size=float(cv), random_state=random_state)
        counts = np.unique(y, return_counts=True)[1] if classification else np.zeros(1)
        n_test = round(float(cv) * n_samples)
        if classification and counts.min() >= 2 and min(n_test, n_samples - n_test) >= len(counts):
            return StratifiedShuffleSplit(1, test_size=n_test, random_state=random_state)
        return ShuffleSplit(1, test_size=n_test, random_state=random_state)
    if hasattr(cv, "split") or isinstance(cv, Iterable):
        return cv
    raise TypeError(f"cv={cv!r} is no way of validation: give a number of folds, a share, 'loo', a splitter or splits.")


def _row_numbers(rows: Any, n_samples: int) -> IntArray:
    rows = np.asarray(rows)
    chosen: IntArray = np.arange(n_samples)[rows if rows.size else []]  # numbers from numbers or from a mask
    if chosen.ndim != 1 or len(np.unique(chosen)) < len(chosen):
        raise ValueError("rows must be a list without repetitions")
    return chosen


def _arrange(splits: Sequence[tuple[IntArray, IntArray]], n_samples: int) -> tuple[Round, ...]:
    """Gather successive splits into rounds as long as they share their rows and their validation sets are disjoint."""
    if not splits:
        raise ValueError("cv gives no splits: give at least one pair of training and validation rows.")
    rounds: list[Round] = []
    members: list[IntArray] = []
    rows = np.zeros(n_samples, dtype=bool)
    free = rows.copy()  # rows of the round in no validation set so far

    def close() -> None:
        if members:
            order = np.concatenate([np.flatnonzero(free), *members])
            sizes = [0, int(free.sum()), *(len(member) for member in members)]
            rounds.append(Round(order, np.cumsum(sizes)))

    for train, test in splits:
        mask = np.zeros(n_samples, dtype=bool)
        mask[train] = True
        if not len(train) or not len(test) or mask[test].any():
            raise ValueError("cv gives a split with no training rows, no validation rows, or rows that are both.")
        mask[test] = True
        if not (members and np.array_equal(mask, rows) and free[test].all()):
            close()
            members, rows, free = [], mask, mask.copy()
        members.append(np.asarray(test, dtype=np.intp))
        free[test] = False
    close()
    return tuple(rounds)
