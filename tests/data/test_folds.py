"""Rounds: every split is kept as it is, whatever gave it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from ngp.data.folds import LEAST_PARTS, Round, make_rounds

N = 47
X = np.random.default_rng(0).normal(size=(N, 3))
CLASSES = np.arange(N) % 3
GROUPS = np.random.default_rng(1).integers(0, 8, size=N)
FOLDS_OR_NEVER = np.random.default_rng(2).integers(-1, 4, size=N)


def rounds_of(cv: Any, y: Any = CLASSES, *, classification: bool = False, seed: int = 7) -> tuple[Round, ...]:
    groups = GROUPS if isinstance(cv, GroupKFold) else None  # other splitters warn about groups
    return make_rounds(cv, y[:, None], y, classification=classification, random_state=seed, groups=groups)


def splits_of(rounds: tuple[Round, ...]) -> list[tuple[list[int], list[int]]]:
    """Return all training and validation sets in their order, each sorted."""
    return [
        (sorted(round_.training(f).tolist()), sorted(round_.validation(f).tolist()))
        for round_ in rounds
        for f in range(round_.n_folds)
    ]


def expected_splits(splitter: Any) -> list[tuple[list[int], list[int]]]:
    return [(sorted(train.tolist()), sorted(test.tolist())) for train, test in splits_by(splitter)]


def splits_by(splitter: Any) -> list[Any]:
    return list(splitter.split(X, CLASSES, GROUPS if isinstance(splitter, GroupKFold) else None))


SPLITTERS = {  # with the number of rounds that they must take
    "K folds": (KFold(5), 1),
    "stratified": (StratifiedKFold(5, shuffle=True, random_state=3), 1),
    "groups": (GroupKFold(3), 1),
    "repeated": (RepeatedKFold(n_splits=4, n_repeats=3, random_state=3), 3),
    "shuffle": (ShuffleSplit(6, test_size=0.4, random_state=3), 6),
    "time series": (TimeSeriesSplit(5), 5),
    "predefined": (PredefinedSplit(FOLDS_OR_NEVER), 1),
    "leave one out": (LeaveOneOut(), 1),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_every_split_is_reproduced(name: str) -> None:
    splitter, n_rounds = SPLITTERS[name]
    for cv in (splitter, splits_by(splitter)):
        rounds = rounds_of(cv)
        assert splits_of(rounds) == expected_splits(splitter)
        assert len(rounds) == n_rounds


def test_short_ways_to_say_it() -> None:
    for cv, classification, splitter in [
        (5, False, KFold(5, shuffle=True, random_state=7)),
        (np.int64(5), True, StratifiedKFold(5, shuffle=True, random_state=7)),
        (N, True, KFold(N, shuffle=True, random_state=7)),  # too few members of a class to stratify
        (0.3, False, ShuffleSplit(1, test_size=14, random_state=7)),
        (np.float32(0.3), True, StratifiedShuffleSplit(1, test_size=14, random_state=7)),
        (0.03, True, ShuffleSplit(1, test_size=1, random_state=7)),  # too few rows for one of each class
        ("loo", True, LeaveOneOut()),
    ]:
        rounds = rounds_of(cv, classification=classification)
        assert splits_of(rounds) == expected_splits(splitter)
        assert len(rounds) == 1


def test_masks_generators_and_tuples_of_splits() -> None:
    test = np.arange(N) < 9
    by_number = [(np.flatnonzero(~test), np.flatnonzero(test)), (np.arange(9), np.arange(9, N))]
    expected = splits_of(rounds_of(by_number))
    assert splits_of(rounds_of([(~test, test), (test, ~test)])) == expected
    assert splits_of(rounds_of(tuple(by_number))) == expected
    assert splits_of(rounds_of(split for split in by_number)) == expected
    assert splits_of(rounds_of([(list(train), list(test)) for train, test in by_number])) == expected


def test_rare_class_is_not_stratified() -> None:
    y = np.array([0] * 20 + [1])
    (round_,) = rounds_of(5, y, classification=True)
    assert sorted(round_.rows) == list(range(21))


@st.composite
def any_splits(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Label the rows of each split: folds may be disjoint or overlap, and rows may be left out."""
    n = draw(st.integers(2, 12))
    splits = []
    for _ in range(draw(st.integers(1, 5))):
        labels = draw(st.lists(st.sampled_from(["train", "test", "neither"]), min_size=n, max_size=n))
        labels[0], labels[1] = draw(st.permutations(["train", "test"]))
        splits.append(tuple([i for i in range(n) if labels[i] == kind] for kind in ("train", "test")))
    return [*splits, ([0], list(range(1, n))), (list(range(1, n)), [0])]


@given(any_splits())
def test_any_splits_are_reproduced(splits: list[tuple[list[int], list[int]]]) -> None:
    rounds = make_rounds(splits, X, np.zeros(12), classification=False, random_state=0)
    assert splits_of(rounds) == splits
    for round_ in rounds:
        assert len(np.unique(round_.rows)) == len(round_.rows)


@given(
    always=st.integers(0, 40),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=40),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_lie_within_folds_and_average_to_the_whole(always: int, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    segments = np.cumsum([0, always, *sizes])
    round_ = Round(rng.permutation(segments[-1]), segments)
    assert (np.diff(round_.parts) > 0).all()
    assert set(segments[1:]) <= set(round_.parts)  # no part reaches over the bound of a fold
    n_judging = segments[-1] - segments[1]
    assert round_.n_folds <= len(round_.parts) - 1 <= max(n_judging, round_.n_folds)
    if min(sizes) >= LEAST_PARTS:
        assert len(round_.parts) - 1 >= LEAST_PARTS

    weights = rng.integers(0, 3, size=segments[-1]).astype(float)
    row_losses = rng.normal(size=(4, segments[-1]))
    parts, part_weights = round_.part_losses(row_losses, weights), round_.part_weights(weights)
    for i, (first, last) in enumerate(pairwise(round_.parts)):
        own = weights[round_.rows[first:last]]
        assert part_weights[i] == own.sum()
        expected = np.average(row_losses[:, first:last], axis=1, weights=own) if own.any() else np.zeros(4)
        np.testing.assert_allclose(parts[:, i], expected, atol=1e-12)
    total = (row_losses * weights[round_.rows])[:, segments[1] :].sum(axis=1)
    np.testing.assert_allclose((parts * part_weights).sum(axis=1), total, atol=1e-10)


@given(
    always=st.integers(0, 9),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=20),
    seed=st.integers(0, 2**32 - 1),
)
def test_folds_put_together_see_no_more_than_each_of_them(always: int, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    round_ = Round(rng.permutation(always + sum(sizes)), np.cumsum([0, always, *sizes]))
    used = rng.permutation(len(sizes))[: rng.integers(2, len(sizes) + 1)]
    parts = np.array_split(used, 2)
    merged = round_.merged(parts)
    assert merged.n_folds == 2
    for f, part in enumerate(parts):
        judged = np.concatenate([round_.validation(own) for own in part])
        assert sorted(merged.validation(f)) == sorted(judged)
        assert all(set(merged.training(f)) <= set(round_.training(own)) for own in part)
        others = np.concatenate([round_.validation(own) for own in parts[1 - f]])
        assert sorted(merged.training(f)) == sorted([*round_.rows[:always], *others])


def test_weights_of_folds() -> None:
    round_ = Round(np.array([3, 0, 4, 1, 2]), np.array([0, 1, 3, 5]))
    assert round_.fold_weights(np.array([1.0, 2.0, 4.0, 8.0, 16.0])).tolist() == [17.0, 6.0]


def test_row_losses_of_training_rows_are_ignored() -> None:
    round_ = Round(np.arange(6), np.array([0, 2, 4, 6]))
    losses = np.array([[np.nan, np.nan, 1.0, 2.0, 3.0, 4.0]])
    assert round_.part_losses(losses, np.ones(6)).tolist() == [[1.0, 2.0, 3.0, 4.0]]


def test_mistakes() -> None:
    for cv, error, message in [
        ("kfold", ValueError, "cv='kfold' is unknown: give a number of folds"),
        (
            48,
            ValueError,
            "cv=48 folds don't fit 47 samples: give at least 2 folds and at most one per sample",
        ),
        (0.001, ValueError, "cv=0.001 is no hold-out share"),
        (0.999, ValueError, "leaves rows on both sides"),
        (True, TypeError, "cv=True is no way of validation"),
        (None, TypeError, "cv=None is no way of validation"),
        (
            KFold(50),
            ValueError,
            "cv=KFold(n_splits=50, random_state=None, shuffle=False) can't split these 47",
        ),
        ([], ValueError, "cv gives no splits"),
        ([([0, 1], [])], ValueError, "no training rows, no validation rows, or rows that are both"),
        ([([0, 1], [1, 2])], ValueError, "no training rows, no validation rows, or rows that are both"),
        ([([0, 1], [47])], ValueError, "cv must hold pairs of training and validation rows"),
        ([([0, 1], [2, 2])], ValueError, "without repetitions"),
        ([([0.0, 1.0], [2.0])], ValueError, "given by numbers below 47 or by masks"),
        ([1, 2], ValueError, "cv must hold pairs of training and validation rows"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            rounds_of(cv)


def test_one_sample_cannot_be_left_out() -> None:
    for cv in ("loo", LeaveOneOut()):
        with pytest.raises(ValueError, match="leaves no training rows: give at least 2 samples"):
            rounds_of(cv, np.zeros(1))


def test_splitter_without_its_groups() -> None:
    with pytest.raises(ValueError, match=r"cv=GroupKFold.* keeps groups of rows .* as cv_groups, or give the"):
        make_rounds(GroupKFold(3), X, CLASSES, classification=False, random_state=0)


@pytest.mark.parametrize("cv", [2, 4, 0.3, "loo"])
@pytest.mark.parametrize("classification", [False, True])
def test_groups_of_rows_stay_together(cv: Any, classification: bool) -> None:
    rounds = make_rounds(cv, X, CLASSES, classification=classification, random_state=7, groups=GROUPS)
    splits = splits_of(rounds)
    assert len(splits) == {0.3: 1, "loo": 8}.get(cv, cv)
    for train, test in splits:
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert len(train) + len(test) == N
    if cv != 0.3:
        assert sorted(row for _, test in splits for row in test) == list(range(N))


def test_more_folds_than_groups() -> None:
    with pytest.raises(ValueError, match=r"cv=9 folds don't fit 8 groups: give at least 2 folds and at most one per g"):
        make_rounds(9, X, CLASSES, classification=False, random_state=0, groups=GROUPS)
