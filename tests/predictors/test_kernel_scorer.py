"""The kernel predictor's batched losses against the plainest loop: solve each regression anew, predict, average."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from kernel_cases import NOTHING, PRECISIONS, bind, difference_from_twin
from scorer_cases import (
    CANDIDATES,
    N_COLUMNS,
    SELECTED,
    check_answers_depend_on_the_question_alone,
    make_case,
    make_data,
)
from scorer_cases import PROBLEMS as SHARED_PROBLEMS
from sklearn.model_selection import KFold, TimeSeriesSplit

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.datasets import make_artificial
from ngp.kernels.algebra import NumpyAlgebra, TorchAlgebra
from ngp.predictors import ColumnSets, kernel
from ngp.predictors.kernel import Kernel

PROBLEMS = {
    **SHARED_PROBLEMS,
    "pairs": {"cv": KFold(24), "weighted": True},
    "leave-one-out, weights": {"cv": "loo", "weighted": True},
}
SETTINGS = {
    "arc-cosine": {"kernel": "arc-cosine"},
    "narrow": {"gamma": 3.0},
    "wide": {"gamma": 0.01},
    "small ridge": {"ridge": 0.01},
    "large ridge": {"ridge": 30.0},
    "narrow clip": {"clip": 1.0},
    "no clip": {"clip": None},
    "exact": {"landmarks": None},
}


@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_regressions_solved_one_by_one(case: dict[str, Any], dtype: str, bound: float) -> None:
    assert difference_from_twin(bind(make_case(**case), dtype)) <= bound


@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
@pytest.mark.parametrize("kind", ["regression", "outputs"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_with_other_settings(settings: dict[str, Any], kind: str, dtype: str, bound: float) -> None:
    assert difference_from_twin(bind(make_case(kind), dtype, **settings)) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-7), ("float32", 1e-3)])
@pytest.mark.parametrize("kernel_name", ["rbf", "arc-cosine"])
@pytest.mark.parametrize(
    "name",
    [
        "several outputs, sample weights", "classes, cross_entropy", "repeated folds", "TimeSeriesSplit",
        "PredefinedSplit", "uneven folds", "pairs", "explicit validation set", "leave-one-out, weights",
    ],
)  # fmt: skip
@pytest.mark.parametrize("landmarks", [5, 20])
def test_losses_with_landmarks(landmarks: int, name: str, kernel_name: str, dtype: str, bound: float) -> None:
    scorer = bind(make_case(**PROBLEMS[name]), dtype, landmarks=landmarks, kernel=kernel_name)  # type: ignore[arg-type]
    assert difference_from_twin(scorer) <= bound


@pytest.mark.parametrize("kernel_name", ["rbf", "arc-cosine"])
def test_first_step_and_long_selections(kernel_name: str) -> None:
    scorer = bind(make_case("outputs", weighted=True), kernel=kernel_name)
    assert difference_from_twin(scorer, NOTHING) <= 1e-9
    assert difference_from_twin(scorer, np.array([6, 0, 3, 1, 2]), ColumnSets.of([[4], [5, 4], []])) <= 1e-9


def test_the_loss_of_a_set_doesnt_depend_on_what_was_selected_first() -> None:
    scorer = bind(make_case("outputs", weighted=True))
    whole = scorer.add_losses(NOTHING, ColumnSets.of([[4, 1, 0]])).parts
    np.testing.assert_allclose(scorer.add_losses(SELECTED, ColumnSets.of([[0]])).parts, whole, rtol=1e-9)
    np.testing.assert_allclose(scorer.add_losses(np.array([0, 4]), ColumnSets.of([[1]])).parts, whole, rtol=1e-9)


def test_no_columns_predict_the_mean() -> None:
    for name in ("rbf", "arc-cosine"):
        problem = make_case("outputs", weighted=True)
        parts = bind(problem, kernel=name).add_losses(NOTHING, ColumnSets.of([[]])).parts[0]
        np.testing.assert_allclose(parts, problem.constant_losses(), rtol=1e-9)


@pytest.mark.parametrize("landmarks", [None, 10])
def test_a_weight_of_zero_is_a_row_left_out_and_a_weight_of_two_a_row_twice(landmarks: int | None) -> None:
    X, y = make_data("regression")
    validation = make_data("regression", n_rows=20, seed=2)
    counts = np.random.default_rng(0).integers(0, 3, size=len(X))
    counts[:10] = 1

    def losses(rows: Any, weights: Any) -> Any:
        groups = make_groups(None, N_COLUMNS)
        problem = make_problem(X[rows], y[rows], groups=groups, cv=validation, sample_weight=weights)
        scorer = bind(problem, landmarks=landmarks)
        order = np.arange(len(problem.X))  # the same landmarks: the first rows, of weight one
        object.__setattr__(scorer, "_row_order", order)
        return scorer.add_losses(SELECTED, CANDIDATES).parts

    weighted, repeated = losses(np.arange(len(X)), counts), losses(np.repeat(np.arange(len(X)), counts), None)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9 if landmarks is None else 1e-7)


def test_rows_of_weight_zero_may_fill_a_fold() -> None:
    X, y = make_data("regression")
    weights = np.ones(len(X))
    weights[:12] = 0
    groups = make_groups(None, N_COLUMNS)
    rows = np.arange(48)
    idle = [(np.delete(rows, test), test) for test in (rows[:6], rows[6:12])]  # a round that has no say
    for cv in (KFold(4), KFold(8), [(rows[12:], rows[:12]), (rows[24:], rows[:24])], [*idle, (rows[24:], rows[:24])]):
        problem = make_problem(X, y, groups=groups, cv=cv, sample_weight=weights)
        for landmarks in (None, 10):
            assert difference_from_twin(bind(problem, landmarks=landmarks)) <= 1e-7


CV_FOR_BITS = {"folds": 3, "hold-out": 0.3, "loo": "loo", "time": TimeSeriesSplit(3)}


@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cv", CV_FOR_BITS.values(), ids=CV_FOR_BITS)
def test_the_same_bits_for_every_number_of_jobs_and_chunk_size(
    cv: Any, dtype: str, landmarks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case("classes", cv=cv, weighted=True)
    expected = bind(problem, dtype, landmarks=landmarks).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs in (1, 2, 4):
        for numbers, per_job, stack in [(1, 1, 1), (2**9, 1, 2**13), (2**30, 1, 2**30), (2**30, 3, 1)]:
            monkeypatch.setattr(NumpyAlgebra, "chunk_numbers", numbers)
            monkeypatch.setattr(kernel, "CHUNKS_PER_JOB", per_job)
            monkeypatch.setattr(NumpyAlgebra, "stack_numbers", stack)
            parts = bind(problem, dtype, n_jobs, landmarks=landmarks).add_losses(SELECTED, CANDIDATES).parts
            np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_bits_for_every_backend(backend: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs")
    expected = bind(problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(NumpyAlgebra, "chunk_numbers", 1)
    with parallel_config(backend=backend, n_jobs=2):
        parts = bind(problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("landmarks", [None, 10])
def test_answers_depend_on_the_question_alone(landmarks: int | None) -> None:
    check_answers_depend_on_the_question_alone(partial(bind, dtype="float32", landmarks=landmarks))


@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
def test_permuting_columns_permutes_losses(dtype: str, bound: float) -> None:
    X, _ = make_data("regression")
    order = np.random.default_rng(5).permutation(N_COLUMNS)
    place = np.argsort(order)  # where a column is found after the permutation
    expected = bind(make_case("outputs"), dtype).add_losses(SELECTED, CANDIDATES).parts
    permuted = ColumnSets.of([place[CANDIDATES[i]][::-1] for i in range(len(CANDIDATES))])
    parts = bind(make_case("outputs", X=X[:, order]), dtype).add_losses(place[SELECTED][::-1], permuted).parts
    np.testing.assert_allclose(parts, expected, rtol=bound)


def test_landmarks_depend_on_the_seed_alone() -> None:
    problem = make_case("outputs")
    rows = np.arange(48)
    first, same = (bind(problem, dtype)._landmarks(rows, 10) for dtype in ("float32", "float64"))
    assert first is not None
    assert same is not None
    np.testing.assert_array_equal(first, same)
    assert len(np.unique(first)) == 10
    other = replace(bind(problem), seed=12)._landmarks(rows, 10)
    assert other is not None
    assert (first != other).any()
    longer = bind(problem)._landmarks(rows, 20)
    assert longer is not None
    assert set(first) <= set(longer)


def test_landmarks_are_used_where_there_are_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case())
    assert scorer._landmarks(np.arange(48), "auto") is None
    assert scorer._landmarks(np.arange(48), 48) is None
    monkeypatch.setattr(kernel, "MOST_EXACT_ROWS", 40)
    monkeypatch.setattr(kernel, "AUTO_LANDMARKS", 9)
    landmarks = scorer._landmarks(np.arange(48), "auto")
    assert landmarks is not None
    assert len(landmarks) == 9
    assert scorer._landmarks(np.arange(48), None) is None


@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("kernel_name", ["rbf", "arc-cosine"])
@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
@pytest.mark.parametrize("cv", [3, "loo", 0.3])
def test_torch_agrees_with_numpy(cv: Any, dtype: str, bound: float, kernel_name: str, landmarks: int | None) -> None:
    pytest.importorskip("torch")
    scorer = bind(make_case("classes", cv=cv, weighted=True), dtype, kernel=kernel_name, landmarks=landmarks)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    other = replace(scorer, algebra=TorchAlgebra("cpu", dtype))
    np.testing.assert_allclose(other.add_losses(SELECTED, CANDIDATES).parts, expected, rtol=10 * bound, atol=bound)


def test_chunks_dont_matter_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    scorer = replace(bind(make_case("outputs")), algebra=TorchAlgebra("cpu", "float64"))
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(TorchAlgebra, "stack_numbers", 1)
    np.testing.assert_allclose(scorer.add_losses(SELECTED, CANDIDATES).parts, expected, rtol=1e-9)


def test_columns_that_are_nearly_constant_or_repeated_give_numbers() -> None:
    X, _ = make_data("regression")
    X[:, 0] = np.arange(48) == 7
    X[:, 2] = X[:, 4]
    X[:, 3] = np.arange(48) % 2
    for settings in ({}, {"landmarks": 30}, {"kernel": "arc-cosine"}, {"ridge": 1e-9}, {"gamma": 1e-9}):
        for dtype in ("float32", "float64"):
            scorer = bind(make_case(X=X), dtype, **settings)
            for selected in (NOTHING, np.array([3]), SELECTED):
                assert np.isfinite(scorer.add_losses(selected, CANDIDATES).parts).all()


def test_the_median_heuristic_makes_the_median_exponent_one() -> None:
    X, y, _ = make_artificial(200, 6, random_state=0)
    problem = make_problem(X, y, groups=make_groups(None, 6))
    scorer = Kernel(gamma="median").bind(problem, random_state=0)
    selected = np.array([1, 4, 0])
    Z = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -4, 4)[:, selected]
    distances = np.sort(((Z[:, None] - Z[None]) ** 2).sum(axis=-1)[np.triu_indices(200, 1)])
    found = np.searchsorted(distances, 1 / scorer._scale(selected, 3)) / len(distances)
    assert found == pytest.approx(0.5, abs=0.05)  # of a sample of pairs


def test_the_median_heuristic_sees_no_rows_of_weight_zero() -> None:
    X, y, _ = make_artificial(80, 6, random_state=0)
    weights = np.repeat([2.0, 0.0], 40)
    X[40:] *= 0.1  # nearer to each other

    def gamma(rows: slice, sample_weight: Any, selected: Any) -> float:
        problem = make_problem(X[rows], y[rows], groups=make_groups(None, 6), sample_weight=sample_weight)
        return Kernel(gamma="median").bind(problem, random_state=0)._gamma(selected)

    for selected in (NOTHING, np.array([2, 3])):
        found, without = gamma(slice(None), weights, selected), gamma(slice(40), None, selected)
        assert found == pytest.approx(without, rel=1e-9)


def test_the_median_heuristic_is_the_same_as_its_number() -> None:
    X, y, _ = make_artificial(80, 6, random_state=0)
    problem = make_problem(X, y, groups=make_groups(None, 6))
    for selected in (np.array([], dtype=np.intp), np.array([2, 3])):
        median = Kernel(gamma="median", dtype="float64").bind(problem, random_state=0)
        number = Kernel(gamma=median._gamma(selected), dtype="float64").bind(problem, random_state=0)
        sets = ColumnSets.of([[0], [1], [4, 5]])
        np.testing.assert_array_equal(median.add_losses(selected, sets).parts, number.add_losses(selected, sets).parts)


def test_the_median_heuristic_bears_columns_that_hardly_vary() -> None:
    X = np.zeros((60, 3))
    X[:2, 0], X[5, 1] = 1, 1
    X[:, 2] = np.arange(60)
    problem = make_problem(X, X[:, 2] + X[:, 0], groups=make_groups(None, 3))
    scorer = Kernel(gamma="median").bind(problem, random_state=0)
    assert np.isfinite(scorer.add_losses(np.array([0, 1]), ColumnSets.of([[2], []])).parts).all()
    assert np.isfinite(scorer.fit(np.array([0])).predict(X)).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_useless_column_gains_nothing_by_widening_the_kernel(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(80, 6))
    selector = NeuralGreedyPursuit(Kernel(), device="cpu", random_state=seed).fit(X, X[:, 0] - X[:, 3])
    assert sorted(selector.order_) == [0, 3]
