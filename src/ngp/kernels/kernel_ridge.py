r"""Out-of-fold predictions of kernel ridge regressions, for a chunk of candidates at a time.

With the kernel matrix K of the training rows, sample weights W, a ridge λ, targets y and an intercept that is not
penalised, the coefficients of the functions that are centred at the rows are P y, where

.. math:: C = K + \lambda W^{-1}, \qquad u = C^{-1} 1, \qquad P = C^{-1} - u u^T / (1^T u).

One factorisation with all rows gives the errors in every fold f of the regressions on all other rows. They are
:math:`P_{ff}^{-1} (P y)_f`, exactly. For many rows there is Nyström's approximation: functions are centred at
some of the rows only, the landmarks, and the regressions are linear ones on as many features.

The kernel is the arc-cosine kernel of order one of (1, √s x), with a scale s. Of rows whose norms are p and q and whose
angle is θ, it is p q (sin θ + (π - θ) cos θ) / π. Inner products and squared lengths are sums over the columns, so that
a candidate only adds those of its own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import get_lapack_funcs

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = [
    "Algebra", "Candidates", "KernelTask", "NumpyAlgebra", "TorchAlgebra", "jitter", "kernel_matrix", "score_chunk",
    "train_kernel",
]  # fmt: skip

Array = Any  # of numpy or of torch
Coefficients = tuple[Array, Array]  # of the functions (centres, outputs), and the intercept (1, outputs)
Block = Callable[[slice, slice], Array]  # rows and columns of each matrix of a stack, in a new array

# Rows whose kernel is computed together where there are many.
PIECE_ROWS = 1024
# Rows of a matrix that are eliminated together: enough for quick products, few enough for LAPACK's slow corners.
BLOCK_ROWS = 32
# How often the jitter of landmarks' kernel matrices is made ten times larger before one is given up.
MOST_ATTEMPTS = 10
EVERY = slice(None)


# ---------------------------------------------------------------- stacks of positive definite matrices


def jitter(attempt: int, size: int, dtype: str) -> float:
    """What is added to the diagonal of a matrix that rounding made indefinite: size · ε · 10^attempt."""
    return size * float(np.finfo(dtype).eps) * 10.0**attempt


class NumpyAlgebra:
    """Arrays on the CPU.

    This class and `TorchAlgebra` have the same methods, so that formulas that only need these, ``@``, ``.mT``, slices
    and functions that both libraries have (as ``xp.sqrt``) are written once. The first axis of all arrays runs over
    the matrices of a stack.
    """

    xp: Any = np
    # Numbers in the matrices of one stack: few enough for memory and cache, but enough for calls so long that threads
    # seldom wait for one another. And numbers in the inputs and outputs of a task.
    stack_numbers = 2**21
    chunk_numbers = 2**22

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype).name

    def array(self, values: AnyArray) -> AnyArray:
        """Put numbers where they are computed with."""
        return np.ascontiguousarray(values, dtype=self.dtype)

    def numpy(self, values: AnyArray) -> AnyArray:
        """Fetch them."""
        return values

    def inverse_root(self, block: Block, diagonal: AnyArray) -> AnyArray:
        """Upper triangular R with R Rᵀ = A⁻¹ for each matrix A, which `block` gives but for an addend `diagonal`.

        It is NaN where rounding made A indefinite. Block after block, there are rows of the Cholesky factor U
        (A = UᵀU) and columns of its inverse R. The products are numpy's: quicker than LAPACK's inversion, and other
        threads run meanwhile. SciPy's LAPACK keeps them waiting, but only for the small blocks on the diagonal.
        """
        length, size = diagonal.shape
        upper, root = np.zeros((2, length, size, size), self.dtype)
        failed = np.zeros(length, dtype=bool)
        for start in range(0, size, BLOCK_ROWS):
            end = min(start + BLOCK_ROWS, size)
            before, own, after = slice(0, start), slice(start, end), slice(start, size)
            rows = block(own, after)
            rows[:, np.arange(end - start), np.arange(end - start)] += diagonal[:, own]
            rows -= upper[:, before, own].mT @ upper[:, before, after]
            corners = self._inverse_factors(rows[:, :, : end - start], failed)
            np.matmul(corners, rows[:, :, end - start :], out=upper[:, own, end:])
            root[:, own, own] = corners.mT
            np.matmul(root[:, before, before] @ upper[:, before, own], -corners.mT, out=root[:, before, own])
        root[failed] = np.nan
        return root

    def _inverse_factors(self, matrices: AnyArray, failed: BoolArray) -> AnyArray:
        """Inverses of the lower Cholesky factors of small matrices; one that fails is marked."""
        potrf, trtri = get_lapack_funcs(("potrf", "trtri"), dtype=self.dtype)
        inverses = np.empty_like(matrices)
        for i, matrix in enumerate(matrices):
            factor, info = potrf(matrix.T, lower=1, clean=1)
            failed[i] |= info > 0
            inverses[i] = trtri(factor, lower=1, overwrite_c=1)[0] if info == 0 else np.eye(len(matrix))
        return inverses

    def solve(self, matrix: AnyArray, right: AnyArray) -> AnyArray:
        """Solve systems with positive definite matrices; NaN where rounding made one indefinite."""
        (posv,) = get_lapack_funcs(("posv",), dtype=self.dtype)
        solutions = np.empty_like(right)
        for i in range(len(matrix)):
            _, solutions[i], failed = posv(matrix[i].T, right[i])
            if failed:
                solutions[i] = np.nan
        return solutions


class TorchAlgebra:
    """Tensors of torch (see `NumpyAlgebra`)."""

    # As above; a gigabyte in single precision, enough to keep a GPU busy.
    stack_numbers = 2**28
    chunk_numbers = 2**26

    def __init__(self, device: str, dtype: DTypeLike) -> None:
        import torch

        self.xp: Any = torch
        self.device, self.dtype = device, np.dtype(dtype).name

    def array(self, values: AnyArray) -> Array:
        """Put numbers where they are computed with."""
        return self.xp.tensor(np.asarray(values, dtype=self.dtype), device=self.device)

    def numpy(self, values: Array) -> AnyArray:
        """Fetch them."""
        fetched: AnyArray = values.cpu().numpy()
        return fetched

    def inverse_root(self, block: Block, diagonal: Array) -> Array:
        """Upper triangular R with R Rᵀ = A⁻¹ (see `NumpyAlgebra.inverse_root`)."""
        every = slice(0, diagonal.shape[1])
        matrix = block(every, every)
        matrix.diagonal(dim1=-2, dim2=-1).add_(diagonal)
        return self.xp.linalg.solve_triangular(self._factor(matrix).mT, self._identity(matrix), upper=True)

    def _identity(self, matrix: Array) -> Array:
        return self.xp.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)

    def _factor(self, matrix: Array) -> Array:
        """Lower Cholesky factors; NaN where there is none."""
        factor, info = self.xp.linalg.cholesky_ex(matrix)
        return self.xp.where((info > 0)[:, None, None], np.nan, factor)

    def solve(self, matrix: Array, right: Array) -> Array:
        """Solve systems with positive definite matrices."""
        return self.xp.cholesky_solve(right, self._factor(matrix))


Algebra = NumpyAlgebra | TorchAlgebra


# ---------------------------------------------------------------- regressions


@dataclass(frozen=True)
class KernelTask:
    """What the candidates of one step share in one round; made by `of`.

    Shapes for J rows in fold order, c centres and Q outputs.
    """

    algebra: Algebra  # what computes
    scale: float  # factor of inner products, so that these needn't grow with the columns
    ridge: float  # the ridge λ
    segments: tuple[int, ...]  # bounds of the rows that always train, then of the folds. A single fold never trains
    centres: slice | IntArray  # the rows that functions are centred at: those that train, or the landmarks
    landmarks: bool  # whether the centres are landmarks
    base: Array  # inner products of centres and rows in the selected columns, times `scale`, plus one
    lengths: Array  # squared lengths of the rows, likewise
    right: Array  # ones, and the targets
    weights: Array  # sample weights, all positive
    sign: Literal[1, -1]  # whether candidates add their columns, or take them away from the selected ones

    @classmethod
    def of(
        cls,
        algebra: Algebra,
        selected: FloatArray,
        targets: FloatArray,
        weights: FloatArray,
        segments: IntArray,
        *,
        scale: float,
        ridge: float,
        landmarks: IntArray | None = None,
        sign: Literal[1, -1] = 1,
    ) -> KernelTask:
        """Prepare for candidates that join or leave the columns `selected` (k, J)."""
        bounds = tuple(int(bound) for bound in segments)
        centres = slice(0, bounds[1] if len(bounds) == 3 else bounds[-1]) if landmarks is None else landmarks
        columns = algebra.array(selected)
        scaled = columns * scale**0.5
        return cls(
            algebra=algebra,
            scale=scale,
            ridge=ridge,
            segments=bounds,
            centres=centres,
            landmarks=landmarks is not None,
            base=scaled[:, centres].mT @ scaled + 1,
            lengths=_squared_lengths(scale, columns) + 1,
            right=algebra.array(np.concatenate([np.ones((len(targets), 1)), targets], axis=1)),
            weights=algebra.array(weights),
            sign=sign,
        )

    @property
    def folds(self) -> list[slice]:
        """The folds that have rows."""
        return [slice(start, end) for start, end in pairwise(self.segments[1:]) if end > start]


def kernel_matrix(scale: float, first: FloatArray, second: FloatArray) -> FloatArray:
    """Kernel between all rows of two sets, given as columns."""
    products = 1 + (first * scale**0.5).T @ (second * scale**0.5)
    norms = [np.sqrt(1 + _squared_lengths(scale, columns)) for columns in (first, second)]
    values: FloatArray = _evaluate(np, products, norms[0][:, None] * norms[1])
    return values


def _squared_lengths(scale: float, columns: Array) -> Array:
    return scale * (columns * columns).sum(-2)


def _evaluate(xp: Any, products: Array, norms: Array) -> Array:
    """Kernel from the inner products, which are overwritten, and the products of the norms."""
    cosines = xp.clip(xp.divide(products, norms, out=products), -1, 1)
    sines = xp.sqrt(1 - cosines * cosines)
    return norms * (sines + (np.pi - xp.arccos(cosines)) * cosines) / np.pi


class Candidates:
    """The kernel of the selected columns together with each candidate's, or without them."""

    def __init__(self, task: KernelTask, columns: Array) -> None:
        self.task, self.algebra, self.xp = task, task.algebra, task.algebra.xp
        self.length = len(columns)
        self.rows = columns * task.scale**0.5
        self.centres = task.sign * self.rows[..., task.centres]
        self.norms = self.xp.sqrt(task.lengths + task.sign * _squared_lengths(task.scale, columns))

    def kernel(self, centres: slice, rows: slice | IntArray) -> Array:
        """Kernel (n_candidates, …) between some of the centres and some rows, in a new array."""
        products = self.centres[..., centres].mT @ self.rows[..., rows]
        products += self.task.base[centres][:, rows]
        norms = self.norms[:, self.task.centres][:, centres, None] * self.norms[:, None, rows]
        return _evaluate(self.xp, products, norms)


def score_chunk(task: KernelTask, columns: FloatArray) -> AnyArray:
    """Out-of-fold predictions for some candidates that add equally many columns."""
    algebra = task.algebra
    out = np.zeros((len(columns), columns.shape[2], task.right.shape[1] - 1), dtype=algebra.dtype)
    length = max(1, algebra.stack_numbers // _matrix_numbers(task))
    for start in range(0, len(columns), length):
        members = slice(start, start + length)
        candidates = Candidates(task, algebra.array(columns[members]))
        for rows, values in _predictions(candidates):
            out[members, rows] = algebra.numpy(values)
    return out


def _matrix_numbers(task: KernelTask) -> int:
    """How many numbers there are in the matrices that a candidate needs at a time, about."""
    n_centres, n_rows = task.base.shape
    if task.landmarks:
        return int(n_centres * (n_centres * (len(task.segments) + 2) + 2 * min(n_rows, PIECE_ROWS)))
    return int(2 * n_centres * n_rows)


def train_kernel(task: KernelTask) -> tuple[FloatArray, FloatArray]:
    """Coefficients (c, Q) and intercept (Q,) of the selected columns alone, trained on the rows that always train."""
    nothing_new = task.algebra.array(np.zeros((1, 0, len(task.right))))
    coefficients, intercept = _train(Candidates(task, nothing_new))
    return task.algebra.numpy(coefficients)[0], task.algebra.numpy(intercept)[0, 0]


def _predictions(candidates: Candidates) -> Iterator[tuple[slice, Array]]:
    """Predictions of some rows after the other."""
    task = candidates.task
    if len(task.segments) == 3:
        coefficients = _train(candidates)
        for rows in task.folds:
            yield from _predict(candidates, coefficients, rows)
    elif not task.landmarks:
        yield slice(task.segments[1], None), _exact_folds(candidates)
    elif 2 * max(map(_size, task.folds), default=0) > len(task.base):
        yield from _large_folds(candidates)
    else:
        yield from _small_folds(candidates)


def _predict(candidates: Candidates, coefficients: Coefficients, rows: slice) -> Iterator[tuple[slice, Array]]:
    for piece in _pieces(rows):
        yield piece, candidates.kernel(EVERY, piece).mT @ coefficients[0] + coefficients[1]


def _train(candidates: Candidates) -> Coefficients:
    """Train on the rows that always train."""
    if candidates.task.landmarks:
        features = _Features(candidates)
        return features.coefficients(*features.moments(slice(0, candidates.task.segments[1])))
    _, _, coefficients, intercept = _exact(candidates)
    return coefficients, intercept


def _exact(candidates: Candidates) -> tuple[Array, Array, Array, Array]:
    """Root of C⁻¹, C⁻¹ 1, P y, and the intercept, for the rows that are centres."""
    task = candidates.task
    ridges = task.ridge / task.weights[task.centres]
    diagonal = candidates.xp.broadcast_to(ridges, (candidates.length, len(ridges)))
    root = candidates.algebra.inverse_root(candidates.kernel, diagonal)
    solved = root @ (root.mT @ task.right[task.centres])
    ones, targets = solved[..., :1], solved[..., 1:]
    intercept = targets.sum(-2, keepdims=True) / ones.sum(-2, keepdims=True)
    return root, ones, targets - ones * intercept, intercept


def _exact_folds(candidates: Candidates) -> Array:
    """Predictions of all rows that don't always train."""
    task = candidates.task
    root, ones, coefficients, _ = _exact(candidates)
    ones = ones / ones.sum(-2, keepdims=True) ** 0.5
    first = task.segments[1]

    def block(fold: slice) -> Array:
        rows = root[:, fold, fold.start :]  # what is left of them is zero
        return rows @ rows.mT - ones[:, fold] @ ones[:, fold].mT

    def diagonal() -> Array:
        return candidates.xp.linalg.vecdot(root, root)[:, first:, None] - (ones * ones)[:, first:]

    errors = _solve_folds(candidates, task.folds, block, diagonal, coefficients[:, first:])
    return task.right[first:, 1:] - errors


def _solve_folds(
    candidates: Candidates,
    folds: list[slice],
    block: Callable[[slice], Array],
    diagonal: Callable[[], Array],
    right: Array,
) -> Array:
    """Solve a system for each fold; where all have a single row, by division."""
    if all(_size(fold) == 1 for fold in folds):
        return right / diagonal()
    first = folds[0].start
    solutions = [
        candidates.algebra.solve(block(fold), right[:, fold.start - first : fold.stop - first]) for fold in folds
    ]
    return candidates.xp.concatenate(solutions, -2)


class _Features:
    """Nyström's features: linear functions of them are all combinations of the functions centred at landmarks.

    With R Rᵀ the inverse of the landmarks' kernel matrix (plus jitter), they are Rᵀ times the kernel at the
    landmarks, and a one for the intercept. Their penalty then is the ridge itself, and the matrices to be solved with
    are better conditioned than with the kernel.
    """

    def __init__(self, candidates: Candidates) -> None:
        self.candidates, self.task, self.xp = candidates, candidates.task, candidates.xp
        algebra, centres = candidates.algebra, np.asarray(self.task.centres)
        diagonal, failed = algebra.array(np.zeros((candidates.length, len(centres)))), True
        for attempt in range(MOST_ATTEMPTS):
            diagonal += failed * jitter(attempt, len(centres), algebra.dtype)
            self.root = algebra.inverse_root(lambda rows, columns: candidates.kernel(rows, centres[columns]), diagonal)
            failed = self.xp.isnan(self.root[:, :1, 0])
            if not bool(failed.any()):
                break
        self.penalty = self.xp.diag(algebra.array(np.append(np.full(len(centres), self.task.ridge), 0)))
        self.roots = self.xp.sqrt(self.task.weights)

    def of(self, rows: slice) -> Array:
        """Features of some rows (n_candidates, c + 1, n_rows), times the roots of the weights."""
        values = self.root.mT @ self.candidates.kernel(EVERY, rows)
        ones = self.xp.ones_like(values[:, :1])
        return self.xp.concatenate((values, ones), -2) * self.roots[rows]

    def targets(self, rows: slice) -> Array:
        """Targets of some rows, times the roots of the weights."""
        return self.task.right[rows, 1:] * self.roots[rows, None]

    def moments(self, rows: slice) -> tuple[Array, Array]:
        """Weighted inner products of the features, and of features and targets."""
        gram, cross = 0 * self.penalty, 0 * (self.penalty[:, :1] @ self.task.right[:1, 1:])
        for piece in _pieces(rows):
            features = self.of(piece)
            gram, cross = gram + features @ features.mT, cross + features @ self.targets(piece)
        return gram, cross

    def coefficients(self, gram: Array, cross: Array) -> Coefficients:
        """Coefficients of the functions centred at the landmarks, and the intercept."""
        solution = self.candidates.algebra.solve(gram + self.penalty, cross)
        return self.root @ solution[:, :-1], solution[:, -1:]


def _large_folds(candidates: Candidates) -> Iterator[tuple[slice, Array]]:
    """Nyström's approximation: the moments of a fold's training rows are those of all rows less its own."""
    features, task = _Features(candidates), candidates.task
    always = features.moments(slice(0, task.segments[1]))
    own = [features.moments(fold) for fold in task.folds]
    gram, cross = (sum(terms) for terms in zip(always, *own, strict=True))
    for fold, (fold_gram, fold_cross) in zip(task.folds, own, strict=True):
        yield from _predict(candidates, features.coefficients(gram - fold_gram, cross - fold_cross), fold)


def _small_folds(candidates: Candidates) -> Iterator[tuple[slice, Array]]:
    """Nyström's approximation from one factorisation.

    With H the matrix that makes predictions of targets, in training with all rows, the errors of fold f without its
    own rows are those with all rows, solved with 1 - H_ff.
    """
    features, task = _Features(candidates), candidates.task
    gram, cross = features.moments(slice(0, task.segments[-1]))
    gram = gram + features.penalty
    root = candidates.algebra.inverse_root(lambda rows, columns: gram[:, rows, columns] + 0, 0 * gram[:, 0])
    for folds in _fold_pieces(task.folds):
        rows = slice(folds[0].start, folds[-1].stop)
        scores = root.mT @ features.of(rows)
        errors = features.targets(rows) - scores.mT @ (root.mT @ cross)

        def block(fold: slice, scores: Array = scores, start: int = rows.start) -> Array:
            own = scores[..., fold.start - start : fold.stop - start]
            return candidates.algebra.array(np.eye(_size(fold))) - own.mT @ own

        def diagonal(scores: Array = scores) -> Array:
            return 1 - (scores * scores).sum(-2)[..., None]

        errors = _solve_folds(candidates, folds, block, diagonal, errors)
        yield rows, task.right[rows, 1:] - errors / features.roots[rows, None]


def _size(rows: slice) -> int:
    return int(rows.stop - rows.start)


def _pieces(rows: slice) -> Iterator[slice]:
    """Few rows at a time, so that memory stays bounded."""
    for start in range(rows.start, rows.stop, PIECE_ROWS):
        yield slice(start, min(start + PIECE_ROWS, rows.stop))


def _fold_pieces(folds: list[slice]) -> Iterator[list[slice]]:
    """Few folds at a time, likewise."""
    start = 0
    for end in range(1, len(folds) + 1):
        if end == len(folds) or folds[end].stop - folds[start].start > PIECE_ROWS:
            yield folds[start:end]
            start = end
