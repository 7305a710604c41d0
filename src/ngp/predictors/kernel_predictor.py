"""What a kernel ridge regression predicts with in the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ngp._types import AnyArray, FloatArray
from ngp.kernels.kernel_functions import KernelName, kernel_matrix
from ngp.predictors.base import ScaledColumns

__all__ = ["KernelPredictor"]

# Numbers in the kernel matrix of the rows that are predicted together.
PREDICT_NUMBERS = 2**20


@dataclass(frozen=True)
class KernelPredictor:
    """The final predictor: a combination of kernel functions of the selected columns."""

    reader: ScaledColumns  # the columns that are read, and how they are standardised
    kernel: KernelName  # see `ngp.kernels.kernel_functions.kernel_matrix`
    factor: float  # see `ngp.kernels.kernel_functions.kernel_matrix`
    centres: FloatArray  # where the functions are centred
    coefficients: FloatArray  # the combination
    intercept: FloatArray  # the combination
    target_mean: FloatArray  # how targets were standardised
    target_scale: float  # how targets were standardised

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        outputs = np.empty((len(X), len(self.intercept)))
        length = max(1, PREDICT_NUMBERS // len(self.coefficients))
        for start in range(0, len(X), length):
            rows = slice(start, start + length)
            values = kernel_matrix(self.kernel, self.factor, self.reader(X[rows]).T, self.centres)
            outputs[rows] = values @ self.coefficients + self.intercept
        return outputs * self.target_scale + self.target_mean
