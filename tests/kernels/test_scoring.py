"""The compiled scorer against its numpy twin, and the twin against scikit-learn's ridge regressions."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from layer_cases import (
    CASES,
    DTYPES,
    SAMPLE,
    Case,
    draw,
    in_blocks,
    losses,
    make_task,
    segment_bounds,
    tolerance,
    twin_losses,
)
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from ngp.kernels import plain, scoring
from ngp.kernels.scoring import LinearFit, Phase, score_blocks, score_chunk, segment_moments

try:
    from ngp.kernels import _kernels
except ImportError:
    _kernels = None


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):  # more are slow on the small matrices of the twin
        yield


def ridge_predictions(case: Case) -> Any:
    """Train every network of a case as a user of scikit-learn would."""
    numbers, bounds = draw(case), segment_bounds(case)
    T, weights, selected = numbers["targets"], numbers["weights"], numbers["selected"]
    result = np.zeros((case.n_candidates, case.n_rows, case.n_outputs))

    def predicted(X: Any, train: Any, ridge: float) -> Any:
        model = Ridge(alpha=ridge, fit_intercept=case.intercept, solver="cholesky")
        return model.fit(X[train], T[train], weights[train]).predict(X).reshape(T.shape)

    for candidate, new in enumerate(numbers["columns"]):
        X = np.concatenate([selected, new]).T
        for first, last in pairwise(bounds[1:]):
            train = np.delete(np.arange(case.n_rows), np.arange(first, last))
            Y = predicted(X, train, case.linear_ridge)
            for R, bias in zip(numbers["R"], numbers["bias"], strict=True):
                layer = np.maximum(np.hstack([X @ R + bias, Y, -Y]), 0)
                result[candidate, first:last] += predicted(layer, train, case.ridge)[first:last] / case.n_draws
    return result


@pytest.mark.parametrize("name", [*SAMPLE, "random 3", "random 8"])
def test_numpy_twin_trains_ridge_regressions(name: str) -> None:
    case = CASES[name]
    expected = losses(ridge_predictions(case), case)
    np.testing.assert_allclose(twin_losses(case), expected, rtol=1e-9)
    blocked = in_blocks(plain.score_blocks, case, *make_task(case))
    np.testing.assert_allclose(losses(blocked, case), expected, rtol=1e-9)


def test_without_a_compiler_the_twin_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["draws"]
    monkeypatch.setattr(scoring, "_kernels", None)
    task, columns = make_task(case, "float32")
    whole, blocked = score_chunk(task, columns), in_blocks(score_blocks, case, task, columns)
    assert whole.dtype == blocked.dtype == np.float32
    for predictions in (whole, blocked):
        np.testing.assert_allclose(losses(predictions, case), twin_losses(case), rtol=1e-5)


def check(case: Case, dtype: str, instruction_set: str = "") -> None:
    task, columns = make_task(case, dtype, instruction_set)
    for predictions in (score_chunk(task, columns), in_blocks(score_blocks, case, task, columns)):
        assert predictions.dtype == dtype
        np.testing.assert_allclose(losses(predictions, case), twin_losses(case), rtol=tolerance(case, dtype))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_kernel_equals_numpy_twin_whole_and_in_blocks(name: str, dtype: str) -> None:
    check(CASES[name], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SAMPLE)
def test_every_instruction_set_equals_numpy_twin(name: str, dtype: str, instruction_set: str) -> None:
    check(CASES[name], dtype, instruction_set)


def test_cases_are_what_they_are_called() -> None:
    for name in ("little noise", "little noise, Q=3"):
        quiet = CASES[name]
        assert np.all(twin_losses(quiet) < 2e-3 * draw(quiet)["targets"].var(axis=0).mean())
    case = CASES["groups"]
    assert case.n_rows * case.n_units * 4 > 400e3  # GROUP_FROM_BYTES


def test_padded_width_switches_nothing(instruction_set: str) -> None:
    if _kernels.use("")[0] == instruction_set:
        pytest.skip("nothing to switch to")
    _, vector_bytes = _kernels.use(instruction_set)
    scoring.padded_width(1, np.dtype("float64"))
    assert scoring.padded_width(1, np.dtype("float64")) == vector_bytes // 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_tasks_may_come_from_machines_with_shorter_vectors(dtype: str, instruction_set: str) -> None:
    case = Case(n_units=9)  # no whole number of vectors in any set but the plain one
    expected = score_chunk(*make_task(case, dtype, instruction_set))
    task, columns = make_task(case, dtype, "plain")
    _kernels.use(instruction_set)
    np.testing.assert_array_equal(score_chunk(task, columns), expected)


CHUNKED = {
    "small": Case(n_candidates=7, n_draws=3, n_outputs=3, weights="real"),
    "groups": Case(n_rows=1200, n_units=100, n_candidates=7),
}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_never_matter(name: str, dtype: str, blocked: bool) -> None:
    case = CHUNKED[name]
    task, columns = make_task(case, dtype)
    scored = partial(in_blocks, score_blocks, case, task, n_blocks=2) if blocked else partial(score_chunk, task)
    whole = scored(columns=columns)
    order = np.random.default_rng(0).permutation(len(columns))
    assert np.array_equal(scored(columns=columns[order]), whole[order])
    for size in (1, 2, 3):
        chunks = np.split(columns, range(size, len(columns), size))
        assert np.array_equal(np.concatenate([scored(columns=chunk) for chunk in chunks]), whole)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", DTYPES)
def test_two_threads_give_the_same_bits(dtype: str) -> None:
    task, columns = make_task(Case(n_rows=300, n_units=100, n_candidates=8), dtype)
    alone = score_chunk(task, columns)
    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(lambda _: score_chunk(task, columns), range(6)):
            assert np.array_equal(together, alone)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_folds_own_targets_change_none_of_its_predictions(n_outputs: int) -> None:
    case = Case(n_outputs=n_outputs, folds="folds + training rows", n_new=2)
    targets, bounds = draw(case)["targets"], segment_bounds(case)
    before = score_chunk(*make_task(case))
    for first, last in pairwise(bounds[1:]):
        own, changed = slice(first, last), targets.copy()
        changed[own] += np.random.default_rng(1).normal(size=changed[own].shape)
        task, columns = make_task(case, targets=changed)
        after = score_chunk(task, columns)
        # Training sums are total minus fold sums, so that a fold's own targets leave a trace of rounding errors.
        np.testing.assert_allclose(after[:, own], before[:, own], rtol=0, atol=1e-12)
        judged = np.arange(case.n_rows) >= bounds[1]
        judged[own] = False
        assert np.all(np.abs(after - before)[:, judged].max(axis=2) > 1e-6)  # and the other folds do see them
        # A linear part that was trained on all rows would be noticed.
        X = draw(case)["selected"].T
        leak = Ridge(alpha=1.0).fit(X, changed).predict(X).reshape(changed.shape).T
        leaky = replace(task.linear, prediction=np.broadcast_to(leak, task.linear.prediction.shape).copy())
        if _kernels is not None:
            leaking = score_chunk(replace(task, linear=leaky), columns)
            assert np.abs(leaking - before)[:, own].max() > 1e-6


@pytest.mark.parametrize("folds", ["hold-out", "folds + training rows"])
def test_rows_that_always_train_get_zero(folds: str) -> None:
    case = Case(folds=folds, n_draws=3)
    predictions, first = score_chunk(*make_task(case, "float32")), segment_bounds(case)[1]
    assert first > 0
    assert not predictions[:, :first].any()
    assert predictions[:, first:].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_blocks_gives_the_same_numbers(dtype: str) -> None:
    case = Case(n_rows=700, n_units=33, n_draws=2, n_outputs=3, weights="real")
    task, columns = make_task(case, dtype)
    whole = score_chunk(task, columns)
    for n_blocks in (1, 2, 7, 90):
        parts = in_blocks(score_blocks, case, task, columns, n_blocks)
        np.testing.assert_allclose(parts, whole, atol=1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.usefixtures("compiled")
def test_single_precision_holds_over_many_rows() -> None:
    case = Case(n_rows=200_000, n_units=60, n_selected=1, ridge=0.01, noise=0.01, n_candidates=2)
    exact = losses(score_chunk(*make_task(case)), case)
    task, columns = make_task(case, "float32")
    np.testing.assert_allclose(losses(in_blocks(score_blocks, case, task, columns, 12), case), exact, rtol=5e-7)
    # Sums that are kept in single precision would be noticed.
    assert not np.abs(losses(score_chunk(task, columns), case) / exact - 1).max() <= 5e-7


@pytest.mark.usefixtures("compiled")
def test_no_predictions_where_rounding_makes_a_system_indefinite() -> None:
    case = Case(n_units=100, ridge=1e-9, columns="duplicated", n_selected=3)
    assert np.isnan(score_chunk(*make_task(case, "float32"))).any()
    assert np.isfinite(score_chunk(*make_task(replace(case, ridge=0.1), "float32"))).all()


@pytest.mark.usefixtures("compiled")
def test_a_state_of_other_sizes_is_refused() -> None:
    (task, columns), (_, more) = make_task(Case()), make_task(Case(n_candidates=4))
    state = _kernels.make_state(*scoring._sizes(task, columns))
    for other in (bytearray(3), b"", state):
        with pytest.raises(ValueError, match="state must come from make_state, called with the same sizes"):
            scoring._call(task, more, Phase.LINEAR_SUMS, other, np.zeros(0))


def test_selected_columns_may_repeat_at_a_scale_where_the_ridge_is_a_rounding_error() -> None:
    rng = np.random.default_rng(0)
    column, targets = 1e12 * rng.normal(size=30), rng.normal(size=(30, 2))

    def prediction(*columns: Any) -> Any:
        rows = np.array(columns), targets, np.ones(30), np.array([0, 0, 15, 30])
        return LinearFit.of(segment_moments(*rows), len(columns), ridge=1.0, centred=True).state(*rows).prediction

    np.testing.assert_allclose(prediction(column, column), prediction(column), rtol=1e-9, atol=1e-12)
