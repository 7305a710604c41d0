r"""Linear regressions of all candidates in closed form.

Let X be the selected columns in training, centred, G those of a candidate and T the targets. The ridge regression on
X and G is the one on X, plus what the part of G that X can't tell says about the errors of X:

.. math:: \hat Y + (G - X A^{-1} X^T G) \, (G^T R + \alpha I)^{-1} \, G^T (T - \hat Y), \qquad
          A = X^T X + \alpha I, \quad R = G - X A^{-1} X^T G.

So a candidate costs about as many operations as the selected columns have numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.parallel import run_tasks
from ngp.predictors.base import ColumnSets

__all__ = ["LinearModel", "closed_form", "linear_losses"]

# Rounding is multiplied by the condition number of the columns' matrix of inner products, columns scaled to norm one.
# Up to this bound, losses agree with scikit-learn's to nine digits; beyond it, candidates are left to the estimator.
MOST_CONDITION = 1e6
# Centring costs a column as many digits as its mean is larger than its deviations. Beyond this factor that counts: the
# condition number is multiplied by the square of the excess.
MOST_SHIFT = 1e2
# LinearRegression leaves out small singular values, of columns that aren't scaled; where one is within this factor of
# that, all is left to it. Below the least cutoff, its own singular values have lost too many digits.
CUTOFF_MARGIN = 10.0
LEAST_CUTOFF = 1e-6
EXACT_SOLVERS = ("auto", "cholesky")
# Most numbers in the columns that one task gets: few enough for the cache.
CHUNK_NUMBERS = 2**18


@dataclass(frozen=True)
class LinearModel:
    """A linear regression that has a closed form."""

    penalties: FloatArray  # ridge penalty for each output
    intercept: bool  # whether columns and targets are centred
    scaled: bool  # whether a `StandardScaler` comes first
    cutoff: float  # directions whose singular value is below this share of the largest one are left out


def closed_form(estimator: Any, n_outputs: int) -> LinearModel | None:
    """Return the linear regression that an estimator stands for, or None where there is no closed form.

    `Ridge` and `LinearRegression` have one, also behind a `StandardScaler`, but none of their subclasses, and not with
    positive coefficients or solvers other than Cholesky's.
    """
    scaled = type(estimator) is Pipeline and len(estimator.steps) == 2 and _is_plain_scaler(estimator.steps[0][1])
    if scaled:
        estimator = estimator.steps[1][1]
    if type(estimator) not in (Ridge, LinearRegression) or estimator.positive:
        return None
    estimator._validate_params()
    if type(estimator) is LinearRegression:
        return LinearModel(
            np.zeros(n_outputs), estimator.fit_intercept, scaled, max(float(estimator.tol), LEAST_CUTOFF)
        )
    penalties = np.ravel(np.asarray(estimator.alpha, dtype=np.float64))
    if estimator.solver not in EXACT_SOLVERS or len(penalties) not in (1, n_outputs):
        return None
    return LinearModel(np.broadcast_to(penalties, n_outputs), estimator.fit_intercept, scaled, 0.0)


def _is_plain_scaler(step: Any) -> bool:
    return type(step) is StandardScaler and step.with_mean and step.with_std


def linear_losses(
    problem: Problem, model: LinearModel, selected: IntArray, candidates: ColumnSets, n_jobs: int | None
) -> tuple[FloatArray, BoolArray]:
    """Validation losses of S + g for the new columns g of every candidate, and whether they are exact."""
    tasks, owners, jobs = [], [], int(effective_n_jobs(n_jobs))
    for members, columns in candidates.by_size():
        numbers = problem.n_samples * max(1, columns.shape[1])
        length = max(1, min(CHUNK_NUMBERS // numbers, -(-len(members) // jobs)))
        for start in range(0, len(members), length):
            owners.append(members[start : start + length])
            tasks.append((columns[start : start + length],))
    parts, exact = np.empty((len(candidates), len(problem.part_weights))), np.empty(len(candidates), dtype=bool)
    results = run_tasks(_chunk_losses, tasks, n_jobs, shared=(problem, _Step(model, selected)))
    for chunk, result in zip(owners, results, strict=True):
        parts[chunk], exact[chunk] = result
    return parts, exact


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: the model and the selected columns."""

    model: LinearModel
    selected: IntArray


def _chunk_losses(problem: Problem, step: _Step, candidates: IntArray) -> tuple[FloatArray, BoolArray]:
    """Losses of a few candidates (n, m) in all parts of the validation, and whether they are exact."""
    model, selected = step.model, step.selected
    exact = np.ones(len(candidates), dtype=bool)

    def predictions() -> Iterator[AnyArray]:
        for round_ in problem.rounds:
            outputs = np.zeros((len(candidates), len(round_.rows), problem.n_outputs))
            known, targets = problem.columns(selected, round_.rows), problem.targets[round_.rows].T
            new = problem.columns(candidates.ravel(), round_.rows)
            for f in range(round_.n_folds):
                judges = slice(*round_.segments[f + 1 : f + 3])
                split = _Split.of(problem.weights[round_.rows], judges)
                for penalty in np.unique(model.penalties):
                    mine = np.flatnonzero(model.penalties == penalty)
                    state = _State.of(split, model, penalty, known, targets[mine])
                    values, good = state.add(new.reshape(*candidates.shape, len(round_.rows)))
                    outputs[:, judges, mine] = values
                    exact[:] &= good
            yield outputs

    with np.errstate(all="ignore"):  # what overflows or divides by zero isn't exact, and found out
        parts = problem.part_losses(predictions())
    return parts, exact


@dataclass(frozen=True)
class _Split:
    """Training and validation rows of one split, among the rows of its round."""

    roots: FloatArray  # square roots of the weights in training; zero where a row doesn't train
    judges: slice  # the validation rows

    @classmethod
    def of(cls, weights: FloatArray, judges: slice) -> _Split:
        roots = np.sqrt(weights)
        roots[judges] = 0
        return cls(roots, judges)

    def prepare(self, columns: FloatArray, model: LinearModel) -> tuple[FloatArray, FloatArray]:
        """Scale and centre columns (..., n_rows) as the model does."""
        weights = np.square(self.roots)
        taken = np.zeros(columns.shape[:-1])
        if model.scaled:
            counts = (self.roots > 0).astype(np.float64)  # the scaler knows no weights
            columns, means = _centre(columns, counts)
            deviations = np.sqrt(np.vecdot(columns**2, counts / counts.sum()))
            columns /= deviations[..., None]
            taken += np.abs(means) / deviations
        if model.intercept:
            columns, means = _centre(columns, weights)
            taken += np.abs(means)
        return columns, taken * np.sqrt(weights.sum())


def _centre(columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Take the weighted means away from columns (..., n_rows), and return both."""
    means = np.vecdot(columns, weights / weights.sum())
    return columns - means[..., None], means


@dataclass(frozen=True)
class _State:
    """The regression on the selected columns in one split: what all candidates build on."""

    split: _Split
    model: LinearModel
    penalty: float
    basis: FloatArray
    judged_basis: FloatArray  # the same combinations in the validation rows
    errors: FloatArray  # errors of the predictions in training, weighted likewise
    predictions: FloatArray  # predictions of the validation rows
    norms: FloatArray  # norms of the selected columns, with the penalty
    inverse_trace: float  # trace of the inverse of their matrix of inner products, once they have norm one
    shift: float  # largest ratio of a column's mean and its deviations

    @classmethod
    def of(cls, split: _Split, model: LinearModel, penalty: float, columns: FloatArray, targets: FloatArray) -> _State:
        """Train on the selected columns (n_selected, n_rows)."""
        columns, means = split.prepare(columns, model)
        intercepts = np.zeros(len(targets))
        if model.intercept:
            targets, intercepts = _centre(targets, np.square(split.roots))
        weighted, targets = columns * split.roots, targets * split.roots
        gram = weighted @ weighted.T + penalty * np.eye(len(columns))
        norms = np.sqrt(np.diag(gram))
        whitening, trace = _whitening(gram, norms)
        basis, judged_basis = whitening @ weighted, whitening @ columns[:, split.judges]
        parts = targets @ basis.T
        errors, predictions = targets - parts @ basis, parts @ judged_basis + intercepts[:, None]
        shift = (means / norms).max(initial=0)
        return cls(split, model, penalty, basis, judged_basis, errors, predictions, norms, trace, shift)

    def add(self, columns: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Predictions (n, n_judges, n_outputs) after adding columns (n, m, n_rows), and whether they are exact.

        Every candidate has matrix products of its own, stacked: one large product would be rounded differently
        depending on what else is in it.
        """
        n_new = columns.shape[1]
        columns, means = self.split.prepare(columns, self.model)
        weighted, judged = columns * self.split.roots, columns[..., self.split.judges]
        products = weighted @ np.concatenate([self.basis, self.errors]).T
        known, moments = np.split(products, [len(self.basis)], axis=2)
        gram = weighted @ weighted.swapaxes(1, 2) + self.penalty * np.eye(n_new)
        norms = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
        inverse, traces = _inverses((gram - known @ known.swapaxes(1, 2)) / (norms[:, :, None] * norms[:, None]))
        coefficients = inverse @ (moments / norms[..., None]) / norms[..., None]
        residuals = judged - known @ self.judged_basis
        values = self.predictions + coefficients.swapaxes(1, 2) @ residuals
        shifts = (means / norms).max(axis=1, initial=self.shift)
        return values.swapaxes(1, 2), self._exact(norms, traces, shifts)

    def _exact(self, norms: FloatArray, traces: FloatArray, shifts: FloatArray) -> BoolArray:
        """Whether bounds of condition numbers are low enough, for candidates of given norms and inverses' traces."""
        traces = self.inverse_trace + traces * (1 + self.inverse_trace)  # of the inverse for all columns, at most
        every = np.concatenate([np.broadcast_to(self.norms, (len(norms), len(self.norms))), norms], axis=1)
        exact: BoolArray = traces * every.shape[1] * np.maximum(1, shifts / MOST_SHIFT) ** 2 <= MOST_CONDITION
        total = (every**2).sum(axis=1)
        if every.shape[1] > np.count_nonzero(self.split.roots):  # solved by inner products of rows, which aren't scaled
            exact &= total <= MOST_CONDITION * self.penalty
        if self.model.cutoff > 0:
            ratio = total / every.min(axis=1, initial=np.inf) ** 2
            exact &= traces * ratio <= (CUTOFF_MARGIN * self.model.cutoff) ** -2
        return exact


def _whitening(gram: FloatArray, norms: FloatArray) -> tuple[FloatArray, float]:
    """From columns with these inner products to a basis; and the inverse's trace, once they have norm one."""
    try:
        root = cholesky(gram / np.outer(norms, norms), lower=True)
    except (LinAlgError, ValueError):  # singular, or no numbers
        return np.zeros_like(gram), np.inf
    inverse = solve_triangular(root, np.eye(len(gram)), lower=True)
    return inverse / norms, float((inverse**2).sum())


def _inverses(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverses of symmetric matrices and their traces, which are infinite where there is no inverse."""
    sound: BoolArray = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    values, vectors = np.linalg.eigh(np.where(sound[:, None, None], matrices, 0))
    sound &= (values > 0).all(axis=1)
    inverse_values = np.where(sound[:, None], 1 / values, 0)
    inverses = (vectors * inverse_values[:, None]) @ vectors.swapaxes(1, 2)
    return inverses, np.where(sound, inverse_values.sum(axis=1), np.inf)
