"""The compiled scorer against its numpy twin, and both against the plainest loop that computes the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layer_cases import (
    CASES,
    SINGLE_CASES,
    Case,
    draw,
    losses,
    plain_predictions,
    plain_ridge,
    segment_bounds,
    tolerance,
)
from layer_tasks import DTYPES, make_case
from threadpoolctl import threadpool_limits

from ngp.kernels import scoring
from ngp.kernels.scoring import score_chunk

try:
    from ngp.kernels import _kernels
except ImportError:
    _kernels = None


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):  # more are slow on the small matrices of the plain loop
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_kernel_equals_plain_loop(name: str, dtype: str, instruction_set: str) -> None:
    case = CASES[name]
    predictions = score_chunk(*make_case(case, dtype, instruction_set))
    assert predictions.dtype == dtype
    expected = losses(plain_predictions(case), case)
    np.testing.assert_allclose(losses(predictions, case), expected, rtol=tolerance(case, dtype))


@pytest.mark.usefixtures("numpy_twin")
@pytest.mark.parametrize("name", CASES)
def test_numpy_twin_equals_plain_loop(name: str) -> None:
    case = CASES[name]
    predictions = score_chunk(*make_case(case))
    np.testing.assert_allclose(losses(predictions, case), losses(plain_predictions(case), case), rtol=1e-9)


GAPS = {  # a weight of rounding errors; the inverse of a singular matrix plus jitter, good to seven digits
    "a unit is dead in a fold's training rows": Case(ridge=0.0, n_selected=6, linear=False),
    "selected columns repeat": Case(columns="duplicated", n_new=2, linear_ridge=0.0, n_selected=3),
}


@pytest.mark.parametrize("reason", GAPS)
def test_gaps_without_ridge(reason: str, instruction_set: str) -> None:
    case = GAPS[reason]
    predictions = score_chunk(*make_case(case, "float64", instruction_set))
    # Without a ridge, singular equations get the smallest ridge that can be factored, not the pseudo-inverse.
    tolerance = 1e-4 if "dead" in reason else 1e-9
    np.testing.assert_allclose(losses(predictions, case), losses(plain_predictions(case), case), rtol=tolerance)


def test_padded_width_switches_nothing(instruction_set: str) -> None:
    if _kernels.use("")[0] == instruction_set:
        pytest.skip("nothing to switch to")
    _, vector_bytes = _kernels.use(instruction_set)
    scoring.padded_width(1, np.dtype("float64"))
    assert scoring.padded_width(1, np.dtype("float64")) == vector_bytes // 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_tasks_may_come_from_machines_with_shorter_vectors(dtype: str, instruction_set: str) -> None:
    case = Case(n_units=9)  # no whole number of vectors in any set but the plain one
    expected = score_chunk(*make_case(case, dtype, instruction_set))
    task, columns = make_case(case, dtype, "plain")
    _kernels.use(instruction_set)
    np.testing.assert_array_equal(score_chunk(task, columns), expected)


def test_cases_are_what_they_are_called() -> None:
    def loss(case: Case) -> Any:
        return losses(plain_predictions(case), case)

    bounded = SINGLE_CASES["bound active"]
    assert np.all(loss(bounded) != loss(replace(bounded, norm_bound=None)))
    loose = SINGLE_CASES["bound inactive"]
    assert np.array_equal(loss(loose), loss(replace(loose, norm_bound=None)))
    for name in ("little noise", "little noise, Q=3"):
        quiet = SINGLE_CASES[name]
        assert np.all(loss(quiet) < 2e-3 * draw(quiet)["targets"].var(axis=0).mean())
    for name in ("groups", "groups, own base"):
        case = SINGLE_CASES[name]
        assert case.n_rows * case.n_units * 4 > 400e3  # GROUP_FROM_BYTES


CHUNKED = {
    "small": Case(n_candidates=7, n_draws=3, n_outputs=3, weights="real"),
    "own base": Case(n_candidates=7, own_base=True),
    "groups": Case(n_rows=1200, n_units=100, n_candidates=7),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_never_matter(name: str, dtype: str, instruction_set: str) -> None:
    task, columns = make_case(CHUNKED[name], dtype, instruction_set)
    whole = score_chunk(task, columns)

    def scored(members: Any) -> Any:
        own = replace(task, base=task.base[members]) if task.base.ndim == 4 else task
        return score_chunk(own, columns[members])

    order = np.random.default_rng(0).permutation(len(columns))
    assert np.array_equal(scored(order), whole[order])
    for size in (1, 2, 3):
        chunks = np.split(np.arange(len(columns)), range(size, len(columns), size))
        assert np.array_equal(np.concatenate([scored(chunk) for chunk in chunks]), whole)


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_threads_give_the_same_bits(dtype: str, instruction_set: str) -> None:
    task, columns = make_case(Case(n_rows=300, n_units=100, n_candidates=8), dtype, instruction_set)
    alone = score_chunk(task, columns)
    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(lambda _: score_chunk(task, columns), range(6)):
            assert np.array_equal(together, alone)


@pytest.mark.parametrize("fold", range(3))
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_folds_own_targets_have_no_say(n_outputs: int, fold: int, instruction_set: str) -> None:
    case = Case(n_outputs=n_outputs, folds="folds + training rows", n_new=2)
    targets, bounds = draw(case)["targets"], segment_bounds(case)
    own = slice(bounds[fold + 1], bounds[fold + 2])
    changed = targets.copy()
    changed[own] += np.random.default_rng(1).normal(size=changed[own].shape)
    (task, columns), (other, _) = (make_case(case, "float64", instruction_set, T) for T in (targets, changed))
    before, after = score_chunk(task, columns), score_chunk(other, columns)
    # Training sums are total minus fold sums, so that a fold's own targets leave a trace of rounding errors.
    np.testing.assert_allclose(after[:, own], before[:, own], rtol=0, atol=1e-12)
    judged = np.arange(case.n_rows) >= bounds[1]
    judged[own] = False
    assert np.all(np.abs(after - before)[:, judged].max(axis=2) > 1e-6)  # and the other folds do see them
    # A linear part that was trained on all rows would be noticed.
    X, linear = draw(case)["selected"].T, other.linear
    leak = plain_ridge(X, changed, np.ones(case.n_rows), 1.0, True, None)(X).T
    leaky = replace(linear, prediction=np.broadcast_to(leak, linear.prediction.shape).copy())
    leaking = score_chunk(replace(other, linear=leaky), columns)
    assert np.abs(leaking - before)[:, own].max() > 1e-6


@pytest.mark.parametrize("folds", ["hold-out", "folds + training rows"])
def test_rows_that_always_train_get_zero(folds: str, instruction_set: str) -> None:
    case = Case(folds=folds, n_draws=3)
    predictions = score_chunk(*make_case(case, "float32", instruction_set))
    first = segment_bounds(case)[1]
    assert first > 0
    assert not predictions[:, :first].any()
    assert predictions[:, first:].all()
