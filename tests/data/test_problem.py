"""Problems: scales that see no validation rows, losses that average to the total."""

from __future__ import annotations

import re
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, code_targets, detect_task, make_problem

RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, size=(40, 5))
Y = X[:, 0] + RNG.normal(size=40)


def problem_of(X: Any = X, y: Any = Y, **options: Any) -> Problem:
    return make_problem(X, y, groups=make_groups(None, X.shape[1]), **options)


# --- Columns and their scales


@pytest.mark.parametrize("dtype", [np.float32, bool])
def test_memory_order_and_type_change_no_bit(dtype: Any) -> None:
    values = RNG.integers(0, 2 if dtype is bool else 200, size=(50, 259)).astype(dtype)
    plain = problem_of(values.astype(np.float64), np.arange(50.0))
    some, rows = np.array([4, 0, 257]), np.array([7, 3, 3, 49])
    for other in (values, np.asfortranarray(values), np.repeat(values, 2, axis=0)[::2]):
        problem = problem_of(other, np.arange(50.0))
        for ours, theirs in zip(problem.column_scales, plain.column_scales, strict=True):
            assert np.array_equal(ours, theirs)
        assert np.array_equal(problem.columns(some), values[:, some].T)
        ours, theirs = (p.columns(some, rows) for p in (problem, plain))
        assert ours.dtype == np.float64
        assert ours.flags.c_contiguous
        assert np.array_equal(ours, theirs)


def test_scales_from_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    values = RNG.normal(size=(50, 6)) + np.array([0, 1e6, 3, 0, 0, 1e3])
    values[:, 2] = 0.1
    values[:, 3] += np.arange(50)  # the first block is far from the mean
    weights = RNG.integers(0, 3, size=50) * 1.0
    weights[:7] = 0
    mean, deviation = problem_of(values, np.arange(50.0), sample_weight=weights).column_statistics
    monkeypatch.setattr("ngp.data.problem.SCAN_ROWS", 7)
    blocked = problem_of(values, np.arange(50.0), sample_weight=weights).column_statistics
    np.testing.assert_allclose(blocked[0], mean, rtol=1e-14)
    np.testing.assert_allclose(blocked[1], deviation, rtol=1e-9)
    assert blocked[1][2] == 0
    expected = np.average(values, axis=0, weights=weights)
    np.testing.assert_allclose(blocked[0], expected, rtol=1e-13)
    spread = np.sqrt(np.average((values - expected) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(blocked[1], np.where(np.arange(6) == 2, 0, spread), rtol=1e-9)


def test_columns_are_copies() -> None:
    X_before, problem = X.copy(), problem_of()
    problem.columns(np.arange(5))[:] = 0
    assert np.array_equal(X, X_before)


def test_scales_are_weighted_means_and_deviations() -> None:
    counts = RNG.integers(0, 3, size=40)
    mean, scale = problem_of(sample_weight=counts, cv=5).column_scales
    np.testing.assert_allclose(mean, np.repeat(X, counts, axis=0).mean(axis=0))
    np.testing.assert_allclose(scale, np.repeat(X, counts, axis=0).std(axis=0))


def test_scales_survive_a_mean_far_from_zero() -> None:
    mean, scale = problem_of(1e6 + 1e-3 * X).column_scales
    np.testing.assert_allclose(mean, 1e6 + 1e-3 * X.mean(axis=0))
    np.testing.assert_allclose(scale, 1e-3 * X.std(axis=0), rtol=1e-6)


@given(
    offset=st.sampled_from([0.0, 1e6, -1e10, 1e15]),
    unit=st.sampled_from([1e-300, 1e-160, 1e-12, 1.0, 1e12, 1e160, 1e290]),
    rows=st.integers(5, 50),
)
def test_scales_whatever_the_mean_and_the_unit(offset: float, unit: float, rows: int) -> None:
    whole = np.rint(100 * X)
    weights = np.arange(40) % 3 * 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ngp.data.problem.SCAN_ROWS", rows)
        plain = problem_of(whole, sample_weight=weights).column_scales
        mean, scale = problem_of((offset + whole) * unit, sample_weight=weights).column_scales
    rounding = 1e-15 * abs(offset)
    np.testing.assert_allclose(mean / unit, offset + plain[0], rtol=1e-15, atol=2e-14 * plain[1].min())
    np.testing.assert_allclose(scale / unit, plain[1], rtol=1e-9 + rounding)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_large_whole_numbers_vary(dtype: Any) -> None:
    """Identifiers and times in nanoseconds: doubles hold them in steps of some hundreds."""
    values = (2**61 + 2**20 * np.arange(40)).astype(dtype)[:, None] + np.zeros((40, 2), dtype)
    problem = problem_of(values)
    assert problem.varies.all()
    np.testing.assert_allclose(problem.column_scales[1], 2**20 * np.arange(40).std(), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1e17, -1.7e308])
def test_rows_of_weight_zero_do_not_count(value: float) -> None:
    weights = np.arange(40) % 4 * 1.0
    changed = X.copy()
    changed[weights == 0] = value
    for ours, theirs in zip(
        problem_of(sample_weight=weights).column_scales,
        problem_of(changed, sample_weight=weights).column_scales,
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_what_rounding_explains_is_constant() -> None:
    values = np.column_stack([X, np.where(X[:, 0] > 3, 0.1 + 0.2, 0.3), 1e16 + 2 * (X[:, 0] > 3), 1e15 + X[:, 0]])
    assert problem_of(values).varies.tolist() == [True] * 5 + [False, False, True]


@given(value=st.sampled_from([0.0, 0.1, -7.3e8, 1e-300]))
def test_constant_columns_have_scale_one(value: float) -> None:
    constant = X.copy()
    constant[:, 2] = value
    problem = problem_of(constant)
    assert problem.column_scales[1][2] == 1
    np.testing.assert_allclose(problem.column_scales[0][2], value, rtol=1e-7)
    assert not problem.varies[2]
    assert problem.varies[[0, 1, 3, 4]].all()


@given(cv=st.sampled_from([0.25, [(np.arange(30), np.arange(30, 40))], [(np.arange(20), np.arange(20, 40))] * 2]))
def test_scales_never_see_rows_that_only_judge(cv: Any) -> None:
    problem = problem_of(cv=cv)
    judges = problem.rounds[0].validation(0)
    changed = X.copy()
    changed[judges] = 1e3 * RNG.normal(size=(len(judges), 5))
    for ours, theirs in zip(problem.column_scales, problem_of(changed, cv=cv).column_scales, strict=True):
        assert np.array_equal(ours, theirs)
    train = problem.rounds[0].training(0)
    np.testing.assert_allclose(problem.column_scales[0], X[train].mean(axis=0))


def test_scales_of_an_explicit_validation_set() -> None:
    problem = problem_of(X[:30], Y[:30], cv=(1e6 * X[30:], Y[30:]))
    np.testing.assert_allclose(problem.column_scales[0], X[:30].mean(axis=0))
    np.testing.assert_allclose(problem.column_scales[1], X[:30].std(axis=0))


@given(columns=st.lists(st.integers(0, 4), unique=True))
def test_statistics_of_changed_columns_are_those_from_scratch(columns: list[int]) -> None:
    """To the bit, and no other columns are read."""
    options = {"sample_weight": RNG.integers(0, 3, size=40) * 1.0, "cv": 0.25}
    problem = problem_of(**options)
    changed = X.copy()
    changed[:, columns] = 7 + 2 * RNG.normal(size=(40, len(columns)))
    expected = problem_of(changed, **options)
    unread = np.where(np.isin(np.arange(5), columns), changed, np.nan)
    for each in (changed, unread):
        found = problem.with_changed(np.array(columns, dtype=np.intp), each)
        np.testing.assert_array_equal(found.column_statistics, expected.column_statistics)
        assert found.X is each
    np.testing.assert_array_equal(problem.column_statistics, problem_of(**options).column_statistics)


# --- Targets


def test_the_task_is_seen() -> None:
    classes: list[Any] = [
        ["a", "b", "b"],
        np.array(["a", "b"], dtype=object),
        [True, False],
        [0, 1, 1, 0],
        [0.0, 1.0, 1.0, 0.0],
        [[0], [1], [1], [0]],
        np.arange(20).repeat(2),
    ]
    quantities: list[Any] = [
        np.arange(21).repeat(2),  # more than 20 values
        [0, 1, 2],  # seen once each
        [0.0, 1.0, 1.0, 0.5],
        [[0, 1], [1, 0], [1, 0], [0, 1]],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {detect_task(np.asarray(y)) for y in classes} == {"classification"}
        assert {detect_task(np.asarray(y)) for y in quantities} == {"regression"}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_two_classes_are_one_column() -> None:
    for y in ([1, 0, 1, 1], [[1], [0], [1], [1]], ["p", "n", "p", "p"], [True, False, True, True]):
        targets, classes = code_targets(np.asarray(y), "classification")
        assert targets.tolist() == [[1], [0], [1], [1]]
        assert classes is not None
        assert classes[targets[:, 0].astype(int)].tolist() == np.ravel(y).tolist()


@given(st.lists(st.sampled_from("abcdef"), min_size=3))
def test_more_classes_are_a_column_each(labels: list[str]) -> None:
    labels = [*labels, "a", "b", "c"]
    targets, classes = code_targets(np.array(labels), "classification")
    assert classes is not None
    assert classes.tolist() == sorted(set(labels))
    assert (targets.sum(axis=1) == 1).all()
    assert set(targets.ravel()) == {0.0, 1.0}
    assert classes[targets.argmax(axis=1)].tolist() == labels


def test_quantities_stay_as_they_are() -> None:
    for shape, dtype in product([(6,), (6, 1), (6, 3)], [np.int32, np.float32, object]):
        y = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        targets, classes = code_targets(y, "regression")
        assert classes is None
        assert targets.dtype == np.float64
        assert np.array_equal(targets, y.reshape(6, -1).astype(float))


@given(offset=st.sampled_from([0.0, -1e9, 1e15]), unit=st.sampled_from([1e-60, 1.0, 1e60]))
def test_target_scales_whatever_the_mean_and_the_unit(offset: float, unit: float) -> None:
    whole = np.rint(np.column_stack([100 * Y, 10 * X[:, 1]]))
    mean, scale = problem_of(y=(offset + whole) * unit).target_scales
    np.testing.assert_allclose(mean / unit, offset + whole.mean(axis=0), rtol=1e-15, atol=1e-13)
    rounding = 1e-15 * abs(offset)
    np.testing.assert_allclose(scale / unit, np.sqrt(whole.var(axis=0).mean()), rtol=1e-9 + rounding)


def test_targets_that_differ_by_rounding_alone_are_constant() -> None:
    targets = problem_of(y=np.column_stack([np.where(X[:, 0] > 3, 0.1 + 0.2, 0.3), Y])).targets
    assert (targets[:, 0] == 0.3).all()
    np.testing.assert_array_equal(targets[:, 1], Y)


@pytest.mark.parametrize("unit", [1e-310, 1e-160, 1e-71, 1e71, 1e160, 1e307])
def test_targets_whose_losses_have_no_precision_are_refused(unit: float) -> None:
    with pytest.raises(ValueError, match=r"y has a standard deviation of \d.*, beyond .*: divide y by a constant"):
        problem_of(y=Y * unit)


# --- Losses in parts

CVS = [
    5,
    0.3,
    "loo",
    RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    TimeSeriesSplit(3),
    ShuffleSplit(2),
]


@given(cv=st.sampled_from(CVS), loss=st.sampled_from(list(LOSSES)), seed=st.integers(0, 2**32 - 1))
def test_part_losses_average_to_the_total(cv: Any, loss: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, size=40) + 0.5
    problem = problem_of(y=np.arange(40) % 3, cv=cv, loss=loss, sample_weight=weights)
    predictions = [rng.normal(size=(2, len(round_.rows), 3)) for round_ in problem.rounds]
    parts = problem.part_losses(iter(predictions))
    assert parts.shape == (2, len(problem.part_weights))
    assert problem.part_weights.sum() == pytest.approx(1)

    rows = np.concatenate([round_.rows[round_.segments[1] :] for round_ in problem.rounds])
    judged = [values[:, round_.segments[1] :] for round_, values in zip(problem.rounds, predictions, strict=True)]
    row_losses = LOSSES[loss](np.concatenate(judged, axis=1), problem.targets[rows])
    expected = np.average(row_losses, axis=1, weights=weights[rows])
    np.testing.assert_allclose((parts * problem.part_weights).sum(axis=1), expected)


@given(cv=st.sampled_from(CVS))
def test_constant_losses_by_hand(cv: Any) -> None:
    weights = RNG.uniform(0.5, 2, size=40)
    problem = problem_of(cv=cv, sample_weight=weights)
    errors, shares = [], []
    for round_ in problem.rounds:
        for f in range(round_.n_folds):
            train, test = round_.training(f), round_.validation(f)
            errors.append((Y[test] - np.average(Y[train], weights=weights[train])) ** 2)
            shares.append(weights[test])
    expected = np.average(np.concatenate(errors), weights=np.concatenate(shares))
    assert problem.constant_losses @ problem.part_weights == pytest.approx(expected)


# --- Rows and targets for estimators


def test_estimators_get_labels_as_they_were_given() -> None:
    for labels in (["p", "n"], ["c", "a", "b"], [2.0, 0.0, 7.0], [True, False], np.array(["x", "y"], dtype=object)):
        y = np.resize(np.array(labels), 40)
        problem = problem_of(y=y, task="classification", cv=2)
        assert problem.y.dtype == y.dtype
        assert problem.y.tolist() == y.tolist()


def test_a_single_output_is_a_vector() -> None:
    assert np.array_equal(problem_of(y=Y[:, None]).y, Y)
    both = np.stack([Y, -Y], axis=1)
    assert np.array_equal(problem_of(y=both).y, both)


@given(cv=st.sampled_from(CVS))
def test_splits_are_the_folds_without_rows_of_weight_zero(cv: Any) -> None:
    weights = np.arange(40) % 3 / 2.0
    problem = problem_of(cv=cv, sample_weight=weights)
    for round_ in problem.rounds:
        for f, (train, test) in enumerate(problem.splits(round_)):
            assert train.tolist() == sorted(row for row in round_.training(f) if weights[row])
            assert test.tolist() == [row for row in round_.validation(f) if weights[row]]


def test_zeros_and_ones_are_no_weights() -> None:
    weights = (None, np.ones(40), np.arange(40) % 2, np.full(40, 2.0))
    assert [problem_of(sample_weight=each).is_weighted for each in weights] == [False, False, False, True]


def test_only_a_few_columns() -> None:
    problem = problem_of(y=np.arange(40) % 3, sample_weight=RNG.uniform(size=40))
    small = problem.only(np.array([3, 0, 3]))
    assert np.array_equal(small.X, X[:, [3, 0, 3]])
    assert small.groups.n_groups == 3
    assert all(getattr(small, name) is getattr(problem, name) for name in ("targets", "weights", "rounds"))


# --- Putting a problem together


def test_explicit_validation_set() -> None:
    weights = np.full(30, 2.0)
    problem = problem_of(X[:30], Y[:30], cv=(X[30:], Y[30:, None]), sample_weight=weights)
    (round_,) = problem.rounds
    assert problem.n_fit == 30
    assert round_.training(0).tolist() == list(range(30))
    assert round_.validation(0).tolist() == list(range(30, 40))
    assert np.array_equal(problem.X, X)
    assert np.array_equal(problem.targets[:, 0], Y)
    assert problem.weights.tolist() == [2.0] * 40


def test_a_pair_of_splits_is_no_validation_set() -> None:
    halves = (np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))
    uneven = (np.arange(10), np.arange(10, 40)), (np.arange(10, 40), np.arange(10))
    for cv in (halves, uneven):
        (round_,) = problem_of(cv=cv).rounds
        assert [round_.validation(f).tolist() for f in range(2)] == [test.tolist() for _, test in cv]


def test_task_and_attributes() -> None:
    labels = np.array(["x", "y", "z", "y"] * 10)
    problem = problem_of(y=labels, loss="hinge")
    assert problem.classes is not None
    assert problem.classes.tolist() == ["x", "y", "z"]
    assert (problem.n_outputs, problem.n_columns, problem.n_fit) == (3, 5, 40)
    assert problem_of(y=np.arange(40) % 2, task="regression").classes is None
    assert problem_of(y=np.arange(40) // 2, task="classification").n_outputs == 20


def test_the_automatic_loss() -> None:
    assert problem_of().loss == "squared_error"
    assert problem_of(y=np.arange(40) % 2).loss == "squared_error"
    assert problem_of(y=np.arange(40) % 2, classification_loss="hinge").loss == "hinge"
    assert problem_of(classification_loss="hinge").loss == "squared_error"


def test_mistakes() -> None:
    for options, message in [
        (
            {"y": np.ones((40, 2)), "task": "classification"},
            "A classification takes one column of classes",
        ),
        ({"y": np.array(["a"] * 40)}, "y holds a single value"),
        (
            {"loss": "hinge"},
            "loss='hinge' is for classes, and this is a regression: use loss='squared_error'",
        ),
        ({"loss": "cross_entropy"}, "loss='cross_entropy' is for classes"),
        ({"cv": (X[:, :3], Y)}, "cv=(X, y) of shapes (40, 3) and (40,) doesn't fit X with 5 columns"),
        ({"cv": (X, Y[:9])}, "cv=(X, y) of shapes (40, 5) and (9,) doesn't fit"),
        ({"cv": (X, np.ones((40, 2)))}, "their targets in the shape of y"),
        ({"cv": (X[:0], Y[:0])}, "cv=(X, y) of shapes (0, 5) and (0,) doesn't fit"),
        ({"y": np.arange(40) % 2, "cv": (X, np.full(40, 7))}, "cv holds classes that y doesn't: [7]."),
        (
            {"cv": [(np.arange(20), np.arange(20, 40))], "sample_weight": np.arange(40) >= 20},
            "sample_weight is zero on all training rows of a fold",
        ),
        (
            {"cv": [(np.arange(20), np.arange(20, 40))], "sample_weight": np.arange(40) < 20},
            "sample_weight is zero on all validation rows",
        ),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            problem_of(**options)
