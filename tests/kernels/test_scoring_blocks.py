"""Rows that come in blocks give the numbers of all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, Case, draw, losses, plain_predictions, segment_bounds, tolerance
from layer_tasks import DTYPES, make_case
from threadpoolctl import threadpool_limits

from ngp.kernels import fallback, scoring
from ngp.kernels.scoring import LayerTask, LinearFit, score_blocks, score_chunk, segment_moments

Blocked = Callable[[bool], Iterator[tuple[LayerTask, Any]]]


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):  # more are slow on the small matrices of the plain loop
        yield


def make_blocks(case: Case, task: LayerTask, columns: Any, members: list[Any]) -> Blocked:
    """Cut a task into blocks of rows, each in fold order; the regressions are those of sums over the blocks."""
    numbers, bounds = draw(case), segment_bounds(case)
    parts = []
    for rows in members:
        data = numbers["selected"][:, rows], numbers["targets"][rows], numbers["weights"][rows]
        parts.append((*data, np.searchsorted(rows, bounds)))
    moments = np.sum([segment_moments(*part) for part in parts], axis=0)
    fit = LinearFit.of(moments, case.n_selected, ridge=case.linear_ridge, centred=case.intercept)

    def blocks(layers: bool) -> Iterator[tuple[LayerTask, Any]]:
        for rows, part in zip(members, parts, strict=True):
            base = np.ascontiguousarray(task.base[..., rows if layers else rows[:0], :])
            yield (
                replace(
                    task, segments=part[-1], weights=task.weights[rows], targets=task.targets[rows], base=base,
                    linear=None if task.linear is None else fit.state(*part),
                ),
                columns[:, :, rows],
            )  # fmt: skip

    return blocks


def blocked_predictions(case: Case, task: LayerTask, columns: Any, n_blocks: int) -> Any:
    """Predictions with every row in a block drawn at random; some blocks may lack a fold."""
    owner = np.random.default_rng(case.seed).integers(n_blocks, size=case.n_rows)
    members = [rows for block in range(n_blocks) if len(rows := np.flatnonzero(owner == block))]
    result = np.zeros((len(columns), *task.targets.shape), task.targets.dtype)
    for rows, part in zip(members, score_blocks(make_blocks(case, task, columns, members), len(columns)), strict=True):
        result[:, rows] = part
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_blocked_kernel_equals_plain_loop(name: str, dtype: str, instruction_set: str) -> None:
    case = CASES[name]
    predictions = blocked_predictions(case, *make_case(case, dtype, instruction_set), n_blocks=3)
    assert predictions.dtype == dtype
    expected = losses(plain_predictions(case), case)
    np.testing.assert_allclose(losses(predictions, case), expected, rtol=tolerance(case, dtype))


@pytest.mark.usefixtures("numpy_twin")
@pytest.mark.parametrize("name", CASES)
def test_blocked_numpy_twin_equals_plain_loop(name: str) -> None:
    case = CASES[name]
    predictions = blocked_predictions(case, *make_case(case), n_blocks=3)
    np.testing.assert_allclose(losses(predictions, case), losses(plain_predictions(case), case), rtol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_blocks_gives_the_same_numbers(dtype: str) -> None:
    case = Case(n_rows=700, n_units=33, n_draws=2, n_outputs=3, weights="real")
    task, columns = make_case(case, dtype)
    whole = score_chunk(task, columns)
    for n_blocks in (1, 2, 7, 90):
        parts = blocked_predictions(case, task, columns, n_blocks)
        np.testing.assert_allclose(parts, whole, atol=1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("own_base", [False, True])
def test_chunks_never_matter(own_base: bool, dtype: str, instruction_set: str) -> None:
    case = Case(
        n_rows=1500, n_units=100, n_candidates=7, own_base=own_base, n_draws=2
    )  # rows enough for groups of four
    task, columns = make_case(case, dtype, instruction_set)
    whole = blocked_predictions(case, task, columns, n_blocks=2)
    for size in (1, 3):
        for start in range(0, len(columns), size):
            some = slice(start, start + size)
            own = replace(task, base=task.base[some]) if own_base else task
            assert np.array_equal(blocked_predictions(case, own, columns[some], n_blocks=2), whole[some])


def test_single_precision_holds_over_many_rows() -> None:
    case = Case(n_rows=200_000, n_units=60, n_selected=1, ridge=0.01, noise=0.01, n_candidates=2)
    exact = losses(score_chunk(*make_case(case)), case)
    task, columns = make_case(case, "float32")
    np.testing.assert_allclose(losses(blocked_predictions(case, task, columns, 12), case), exact, rtol=5e-7)
    # Sums that are kept in single precision would be noticed.
    assert np.abs(losses(score_chunk(task, columns), case) / exact - 1).max() > 5e-7


def test_a_state_of_other_sizes_is_refused() -> None:
    if scoring._kernels is fallback:
        pytest.skip("the compiled module isn't built")
    (task, columns), (_, more) = make_case(Case()), make_case(Case(n_candidates=4))
    state = scoring._kernels.make_state(*scoring._sizes(task, columns))
    for other in (bytearray(3), b"", state):
        with pytest.raises(ValueError, match="state must come from make_state, called with the same sizes"):
            scoring._call(task, more, fallback.Phase.LINEAR_SUMS, other, np.zeros(0))
