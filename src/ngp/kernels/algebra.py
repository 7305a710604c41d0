"""Positive definite matrices with numpy and with torch, behind the same few methods.

Formulas that only need these methods, ``@``, ``.mT``, slices and functions that both libraries have (as ``xp.exp``) are
written once. The first axis of all arrays runs over the matrices of a stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import lapack

from ngp._types import AnyArray, BoolArray

__all__ = ["Algebra", "Array", "NumpyAlgebra", "TorchAlgebra", "jitter"]

Array = Any  # of numpy or of torch
Block = Callable[[slice, slice, Any], Array]

# Rows of a matrix that are eliminated together: enough for quick products, few enough for LAPACK's slow corners.
BLOCK_ROWS = 32
# How often the jitter is made ten times larger before a matrix is given up.
MOST_ATTEMPTS = 10
LAPACK = {
    "float32": (lapack.spotrf, lapack.strtri, lapack.sposv),
    "float64": (lapack.dpotrf, lapack.dtrtri, lapack.dposv),
}


def jitter(attempt: int, size: int, dtype: str) -> float:
    """What is added to the diagonal of a matrix that rounding made indefinite: size · ε · 10^attempt."""
    return size * float(np.finfo(dtype).eps) * 10.0**attempt


class NumpyAlgebra:
    """Arrays on the CPU.

    Large arrays are kept from call to call, since asking the system for memory can take longer than a product. So an
    object serves one thread at a time, and what `inverse_root` returns lasts until the next call for the same shape.
    """

    xp: Any = np
    # Numbers in the matrices of one stack: few enough for memory and cache, but enough for calls so long that threads
    # seldom wait for one another. And numbers in the inputs and outputs of a task.
    stack_numbers = 2**21
    chunk_numbers = 2**22

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype).name
        self._kept: dict[tuple[str | int, ...], AnyArray] = {}

    def fresh(self) -> NumpyAlgebra:
        """Return an object for another thread."""
        return NumpyAlgebra(self.dtype)

    def array(self, values: AnyArray) -> AnyArray:
        """Put numbers where they are computed with."""
        return np.ascontiguousarray(values, dtype=self.dtype)

    def numpy(self, values: AnyArray) -> AnyArray:
        """Fetch them."""
        return values

    def inverse_root(self, block: Block, diagonal: AnyArray) -> AnyArray:
        """Upper triangular R with R Rᵀ = A⁻¹ for each positive definite matrix A of a stack."""
        size = diagonal.shape[1]
        for attempt in range(MOST_ATTEMPTS):
            root, failed = self._eliminate(block, diagonal)
            if not failed.any():
                return root
            extra = failed * jitter(attempt, size, self.dtype)
            diagonal = diagonal + extra[:, None].astype(self.dtype)
        return np.where(failed[:, None, None], np.asarray(np.nan, self.dtype), root)

    def _eliminate(self, block: Block, diagonal: AnyArray) -> tuple[AnyArray, BoolArray]:
        """Block after block, rows of the Cholesky factor U (A = UᵀU) and columns of its inverse R.

        The products are numpy's: quicker than LAPACK's inversion, and other threads run meanwhile. SciPy's LAPACK
        keeps them waiting, but only for the small blocks on the diagonal.
        """
        length, size = diagonal.shape
        upper, root = self._keep("upper", length, size, size), self._keep("root", length, size, size)
        space, other_space = (self._keep(name, length * BLOCK_ROWS * size) for name in ("first", "second"))
        failed = np.zeros(length, dtype=bool)
        for start in range(0, size, BLOCK_ROWS):
            end = min(start + BLOCK_ROWS, size)
            before, own, after = slice(0, start), slice(start, end), slice(start, size)
            shape = (length, end - start, size - start)
            rows = block(own, after, _view(space, *shape))
            rows[:, np.arange(end - start), np.arange(end - start)] += diagonal[:, own]
            rows -= np.matmul(upper[:, before, own].mT, upper[:, before, after], out=_view(other_space, *shape))
            corners = self._inverse_factors(rows[:, :, : end - start], failed)
            np.matmul(corners, rows[:, :, end - start :], out=upper[:, own, end:])
            root[:, own, own] = corners.mT
            products = _view(other_space, length, start, end - start)
            np.matmul(root[:, before, before], upper[:, before, own], out=products)
            np.matmul(products, -corners.mT, out=root[:, before, own])
        return root, failed

    def _inverse_factors(self, matrices: AnyArray, failed: BoolArray) -> AnyArray:
        """Inverses of the lower Cholesky factors of small matrices; one that fails is marked."""
        potrf, trtri, _ = LAPACK[self.dtype]
        inverses = np.empty_like(matrices)
        for i, matrix in enumerate(matrices):
            factor, info = potrf(matrix.T, lower=1, clean=1)
            failed[i] |= info > 0
            inverses[i] = trtri(factor, lower=1, overwrite_c=1)[0] if info == 0 else np.eye(len(matrix))
        return inverses

    def _keep(self, name: str, *shape: int) -> AnyArray:
        """The array of a name and a shape: zeros the first time, then as it was left."""
        if (name, *shape) not in self._kept:
            self._kept[name, *shape] = np.zeros(shape, self.dtype)
        return self._kept[name, *shape]

    def solve(self, matrix: AnyArray, right: AnyArray) -> AnyArray:
        """Solve systems with positive definite matrices."""
        posv = LAPACK[self.dtype][2]
        solutions, failed = np.empty_like(right), np.zeros(len(matrix), dtype=bool)
        for i in range(len(matrix)):
            _, solutions[i], failed[i] = posv(matrix[i].T, right[i])
        if failed.any():
            rest = matrix[failed]
            root = self.fresh().inverse_root(lambda rows, columns, _: rest[:, rows, columns].copy(), 0 * rest[:, 0])
            solutions[failed] = root @ (root.mT @ right[failed])
        return solutions


class TorchAlgebra:
    """Tensors of torch, stacks of matrices at a time."""

    # As above; a gigabyte in single precision, enough to keep a GPU busy.
    stack_numbers = 2**28
    chunk_numbers = 2**26

    def __init__(self, device: str, dtype: DTypeLike) -> None:
        import torch

        self.xp: Any = torch
        self.device, self.dtype = device, np.dtype(dtype).name

    def fresh(self) -> TorchAlgebra:
        """Return the object itself: it keeps nothing."""
        return self

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
        matrix = block(every, every, None)
        matrix.diagonal(dim1=-2, dim2=-1).add_(diagonal)
        identity = self._identity(matrix)
        return self.xp.linalg.solve_triangular(self._factor(matrix).mT, identity, upper=True)

    def _identity(self, matrix: Array) -> Array:
        return self.xp.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)

    def _factor(self, matrix: Array) -> Array:
        """Lower Cholesky factors, with as little jitter as each matrix needs."""
        for attempt in range(MOST_ATTEMPTS):
            factor, info = self.xp.linalg.cholesky_ex(matrix)
            failed = (info > 0)[:, None, None]
            if not bool(failed.any()):
                return factor
            matrix = matrix + failed * jitter(attempt, matrix.shape[-1], self.dtype) * self._identity(matrix)
        return self.xp.where(failed, np.nan, factor)

    def solve(self, matrix: Array, right: Array) -> Array:
        """Solve systems with positive definite matrices."""
        return self.xp.cholesky_solve(right, self._factor(matrix))


Algebra = NumpyAlgebra | TorchAlgebra


def _view(space: AnyArray, *shape: int) -> AnyArray:
    """The first numbers of a long array, in another shape."""
    return space[: int(np.prod(shape))].reshape(shape)
