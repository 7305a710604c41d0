"""The kernel, inverse roots and Nyström's approximation against their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ngp.kernels import kernel_ridge
from ngp.kernels.kernel_ridge import (
    Algebra,
    Candidates,
    KernelTask,
    NumpyAlgebra,
    TorchAlgebra,
    kernel_matrix,
    score_chunk,
    train_kernel,
)

LIBRARIES = ["numpy", "torch"]
N_ROWS = 60
SEGMENTS = {
    "folds": [0, 0, 20, 40, 60],
    "rows that always train": [0, 10, 25, 40, 60],
    "small folds": [0, 4, *range(8, 61, 4)],
    "leave-one-out": [0, *range(61)],
    "hold-out": [0, 45, 60],
    "an empty fold": [0, 0, 20, 20, 60],
}


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def make_algebra(library: str, dtype: str = "float64") -> Algebra:
    if library == "numpy":
        return NumpyAlgebra(dtype)
    pytest.importorskip("torch")
    return TorchAlgebra("cpu", dtype)


def positive_definite(size: int, n_matrices: int = 3, seed: int = 0) -> Any:
    factors = np.random.default_rng(seed).normal(size=(n_matrices, size, size + 2))
    return factors @ factors.mT / size


def blocks_of(algebra: Algebra, matrices: Any) -> Callable[..., Any]:
    return lambda rows, columns: algebra.array(matrices[:, rows, columns].copy())


def inverse_root(algebra: Algebra, matrices: Any, diagonal: Any = 0.0) -> Any:
    added = algebra.array(np.broadcast_to(diagonal, matrices.shape[:2]))
    return algebra.numpy(algebra.inverse_root(blocks_of(algebra, matrices), added)).copy()


def make_task(
    algebra: Algebra,
    segments: list[int],
    landmarks: Any = None,
    ridge: float = 0.1,
    selected: int = 2,
) -> tuple[KernelTask, Any]:
    """A task with random columns, and those of four candidates."""
    rng = np.random.default_rng(5)
    n_rows = segments[-1]
    columns, new = rng.normal(size=(selected, n_rows)), rng.normal(size=(4, 1, n_rows))
    targets = np.sin(columns.sum(axis=0) + new[0, 0])[:, None] + 0.1 * rng.normal(size=(n_rows, 2))
    weights = rng.uniform(0.5, 2, size=n_rows)
    scale = 0.5 / (selected + 1)
    settings: dict[str, Any] = {"scale": scale, "ridge": ridge, "landmarks": landmarks}
    return KernelTask.of(algebra, columns, targets, weights, np.array(segments), **settings), new


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", [1, 32, 33, 71])
def test_inverse_roots(size: int, library: str) -> None:
    matrices, diagonal = positive_definite(size), np.random.default_rng(1).uniform(1, 2, size=(3, size))
    root = inverse_root(make_algebra(library), matrices, diagonal)
    whole = matrices + diagonal[:, None] * np.eye(size)
    np.testing.assert_allclose(root @ root.mT @ whole, np.broadcast_to(np.eye(size), root.shape), atol=1e-10)
    np.testing.assert_array_equal(root, np.triu(root))
    assert (np.diagonal(root, axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_hopeless_matrix_gives_no_number_and_no_other_matrix_suffers(library: str) -> None:
    good = positive_definite(40, 1) + np.eye(40)
    algebra = make_algebra(library)
    root = inverse_root(algebra, np.concatenate([good, -1e6 * good, good]))
    np.testing.assert_array_equal(np.isnan(root).all(axis=(1, 2)), [False, True, False])
    np.testing.assert_array_equal(root[[0, 2]], inverse_root(algebra, np.concatenate([good, good])))
    matrices = algebra.array(np.concatenate([good, -1e6 * good, good]))
    solution = algebra.numpy(algebra.solve(matrices, algebra.array(np.ones((3, 40, 1)))))
    np.testing.assert_array_equal(np.isnan(solution).all(axis=(1, 2)), [False, True, False])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions(dtype: str, library: str) -> None:
    algebra = make_algebra(library, dtype)
    matrices, right = positive_definite(50) + np.eye(50), np.random.default_rng(0).normal(size=(3, 50, 2))
    solution = algebra.numpy(algebra.solve(algebra.array(matrices), algebra.array(right)))
    np.testing.assert_allclose(matrices @ solution, right, atol=1e-9 if dtype == "float64" else 1e-4)


def test_the_kernel_is_the_mean_over_random_relu_units() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(3, 6)), rng.normal(size=(3, 4))
    scale, n_units = 0.4, 400_000
    weights, biases = rng.normal(size=(n_units, 3)), rng.normal(size=(n_units, 1))
    units = [np.maximum(np.sqrt(scale) * weights @ columns + biases, 0) for columns in (first, second)]
    expected = 2 * units[0].T @ units[1] / n_units
    np.testing.assert_allclose(kernel_matrix(scale, first, second), expected, atol=0.03)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-6), ("float64", 1e-14)])
def test_the_kernel_of_equal_rows_is_their_squared_length(dtype: str, bound: float, library: str) -> None:
    columns = np.random.default_rng(0).normal(size=(40, 100)).astype("float32").repeat(2, axis=1)
    algebra, ones = make_algebra(library, dtype), np.ones(200)
    task = KernelTask.of(algebra, columns[:20], ones[:, None], ones, np.array([0, 200]), scale=0.1, ridge=1.0)
    values = algebra.numpy(Candidates(task, algebra.array(columns[None, 20:])).kernel(slice(None), slice(None)))[0]
    expected = 1 + 0.1 * (columns.astype("float64") ** 2).sum(axis=0)
    np.testing.assert_allclose(np.diag(values), expected, rtol=bound)
    np.testing.assert_allclose(np.diag(values, 1)[::2], expected[::2], rtol=bound)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("selected", "n_new"), [(0, 1), (2, 0), (3, 4)])
def test_a_candidates_kernel_is_that_of_all_columns(selected: int, n_new: int, library: str) -> None:
    rng = np.random.default_rng(0)
    columns, new = rng.normal(size=(selected, 9)), rng.normal(size=(2, n_new, 9))
    algebra, ones = make_algebra(library), np.ones(9)
    task = KernelTask.of(algebra, columns, ones[:, None], ones, np.array([0, 6, 9]), scale=0.3, ridge=1.0)
    values = algebra.numpy(Candidates(task, algebra.array(new)).kernel(slice(1, 6), slice(2, 9)))
    assert values.shape == (2, 5, 7)
    for mine, extra in zip(values, new, strict=True):
        whole = np.concatenate([columns, extra])
        np.testing.assert_allclose(mine, kernel_matrix(0.3, whole, whole)[1:6, 2:], rtol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("segments", SEGMENTS.values(), ids=SEGMENTS)
def test_landmarks_at_all_rows_are_no_approximation(segments: list[int], library: str) -> None:
    algebra = make_algebra(library)
    n_training = segments[1] if len(segments) == 3 else N_ROWS
    exact, columns = make_task(algebra, segments)
    approximate, _ = make_task(algebra, segments, np.arange(n_training))
    expected = score_chunk(exact, columns)
    np.testing.assert_allclose(score_chunk(approximate, columns), expected, atol=1e-7)
    assert not expected[:, : segments[1]].any()
    assert (expected[:, segments[1] :] != 0).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_factorisation_or_one_a_fold(library: str) -> None:
    algebra = make_algebra(library)
    task, columns = make_task(algebra, SEGMENTS["small folds"], np.arange(0, 60, 3))
    candidates = Candidates(task, algebra.array(columns))
    small = dict(_joined(algebra, kernel_ridge._small_folds(candidates)))
    large = dict(_joined(algebra, kernel_ridge._large_folds(candidates)))
    assert sorted(small) == sorted(large) == list(range(4, 60))
    np.testing.assert_allclose([small[row] for row in small], [large[row] for row in small], atol=1e-9)


def _joined(algebra: Algebra, pieces: Any) -> Iterator[tuple[int, Any]]:
    for rows, values in pieces:
        for i, row in enumerate(range(rows.start, rows.stop)):
            yield row, algebra.numpy(values)[:, i].copy()


@pytest.mark.parametrize("landmarks", [None, np.arange(0, 45, 2)])
@pytest.mark.parametrize("kind", ["rows that always train", "small folds", "hold-out"])
def test_pieces_change_nothing_but_rounding(kind: str, landmarks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, columns = make_task(NumpyAlgebra("float64"), SEGMENTS[kind], landmarks)
    expected = score_chunk(task, columns)
    for rows, block in [(1, 1), (7, 16), (1000, 1000)]:
        monkeypatch.setattr(kernel_ridge, "PIECE_ROWS", rows)
        monkeypatch.setattr(kernel_ridge, "BLOCK_ROWS", block)
        np.testing.assert_allclose(score_chunk(task, columns), expected, atol=1e-9)


@pytest.mark.parametrize("landmarks", [None, np.arange(0, 45, 2)])
def test_the_trained_coefficients_make_the_predictions_of_a_hold_out_set(landmarks: Any) -> None:
    task, _ = make_task(NumpyAlgebra("float64"), SEGMENTS["hold-out"], landmarks)
    coefficients, intercept = train_kernel(task)
    columns = np.random.default_rng(5).normal(size=(2, N_ROWS))
    centres = columns[:, :45] if landmarks is None else columns[:, landmarks]
    expected = kernel_matrix(task.scale, columns[:, 45:], centres) @ coefficients + intercept
    predicted = score_chunk(task, np.zeros((1, 0, N_ROWS)))
    np.testing.assert_allclose(predicted[0, 45:], expected, rtol=1e-10)


def test_coefficients_of_the_exact_regression_sum_to_zero_and_solve_the_equations() -> None:
    task, _ = make_task(NumpyAlgebra("float64"), [0, N_ROWS])
    coefficients, intercept = train_kernel(task)
    columns = np.random.default_rng(5).normal(size=(2, N_ROWS))
    predicted = kernel_matrix(task.scale, columns, columns) @ coefficients + intercept
    np.testing.assert_allclose(coefficients.sum(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(predicted + 0.1 * coefficients / task.weights[:, None], task.right[:, 1:], atol=1e-10)


def test_the_columns_are_left_as_they_were() -> None:
    for landmarks in (None, np.arange(0, 60, 2)):
        task, columns = make_task(NumpyAlgebra("float64"), SEGMENTS["folds"], landmarks)
        copies = columns.copy(), task.base.copy(), task.right.copy(), task.weights.copy()
        first = score_chunk(task, columns)
        for now, before in zip((columns, task.base, task.right, task.weights), copies, strict=True):
            np.testing.assert_array_equal(now, before)
        np.testing.assert_array_equal(score_chunk(task, columns), first)
