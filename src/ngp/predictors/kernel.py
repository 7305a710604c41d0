"""Kernel ridge regression as a predictor, all candidates of a step scored together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._progress import counted_in
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.data.problem import Problem
from ngp.kernels.devices import resolve_device
from ngp.kernels.kernel_ridge import (
    Algebra,
    KernelTask,
    NumpyAlgebra,
    TorchAlgebra,
    kernel_matrix,
    score_chunk,
    train_kernel,
)
from ngp.kernels.parallel import chunk_length, run_tasks
from ngp.predictors.base import BoundScorer, ColumnSets, Losses, Predictor, ScaledColumns, scaled_columns

__all__ = ["Kernel"]

# Ridges that a step chooses from, the one before there is anything to choose by, and what the final predictor tries.
RIDGES = (3e-5, 0.0003, 0.003, 0.03, 0.3)
FIRST_RIDGE = 0.0003
REFIT_FACTORS = (1.0, 0.001, 0.01, 0.1, 10.0, 100.0, 1000.0)
LEAST_RIDGE = 10.0  # see `BoundScorer.ridges_of`
# Rows in a round up to which landmarks gain nothing, and their number beyond.
MOST_EXACT_ROWS, AUTO_LANDMARKS = 1000, 300
# Most operations that the training of the final predictor may take before landmarks are used.
MOST_REFIT_OPERATIONS = 3e10
# Key of the random order of rows, of which the first ones are landmarks.
LANDMARK_STREAM = 0x4C616E64


class Kernel(Predictor, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression with the arc-cosine kernel: an `SSFN` with infinitely many random units.

    The kernel of two rows is the inner product of the outputs of infinitely many ReLU units with random weights and
    biases, which has a closed form. The regression on all these units is solved in the dual, with one coefficient for
    each training row: nothing is random, and there is no width to choose. The inner products of the selected columns
    are kept, so that a candidate only adds its own; one factorisation gives the errors of all folds, leave-one-out
    included. Columns and targets are scaled to mean zero and deviation one, the intercept is not penalised. Classes
    are predicted by regression on their codes.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Ridge penalty: what the squared norm of the function costs, beside the weighted mean of the squared errors.
        ``"auto"`` chooses it in each step, for all candidates alike: of 0.00003, 0.0003, …, 0.3 that with the lowest
        validation loss of the selection as it stands; before the first step, of the leading candidates. Many
        candidates and few rows exclude the small ones.
    clip : float or None, default=4.0
        Standardised columns are clipped at this many deviations, so that no outlier, in training or later, dominates
        the inner products. None doesn't clip.
    landmarks : int, "auto" or None, default="auto"
        Number of rows at which functions are centred (Nyström's approximation). Where there are no more rows than
        landmarks, or with None, functions are centred at all rows, and a candidate takes about as many operations as
        the cube of their number. ``"auto"`` uses 300 landmarks where there are more than 1000 rows.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the scoring.

    Notes
    -----
    A row x of k columns enters the kernel as z = (1, x / √k). With θ the angle between z and z', the arc-cosine kernel
    of order one is ‖z‖ ‖z'‖ (sin θ + (π - θ) cos θ) / π, twice the mean of max(w·z, 0) max(w·z', 0) over random
    normal vectors w. These are the random units of an `SSFN`: n of them with the ridge n/2 · ridge predict the same in
    the limit, without the linear part of an `SSFN`. The kernel needs none, since max(w·z, 0) - max(-w·z, 0) = w·z.

    With K the kernel matrix, the coefficients a and the intercept b solve (K + ridge W⁻¹) a + b = y, sum(a) = 0,
    where W holds the sample weights as shares of their sum: a weight of two counts as the row given twice, a weight of
    zero as the row left out.

    The final predictor's ridge is chosen around the given one, or around 0.0003, on the folds of the pursuit. With
    ``landmarks="auto"`` it has as many as its training, which is done only once, can afford.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(Kernel(), n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.order_
    array([1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "landmarks": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "dtype": [StrOptions({"float32", "float64"})],
    }

    uses_gpu = True

    def __init__(
        self,
        *,
        ridge: float | Literal["auto"] = "auto",
        clip: float | None = 4.0,
        landmarks: int | Literal["auto"] | None = "auto",
        dtype: str = "float32",
    ) -> None:
        self.ridge = ridge
        self.clip = clip
        self.landmarks = landmarks
        self.dtype = dtype

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> KernelScorer:
        """Prepare for one problem."""
        self._validate_params()
        found = resolve_device(device, self.dtype)
        # By itself only CUDA is chosen: torch's linear algebra for Apple's GPUs is young.
        if found == "cpu" or (found == "mps" and device == "auto"):
            algebra: Algebra = NumpyAlgebra(self.dtype)
        else:
            algebra = TorchAlgebra(found, self.dtype)
        ridge = FIRST_RIDGE if self.ridge == "auto" else float(self.ridge)
        return KernelScorer(self, problem, random_state, n_jobs, algebra, ridge)


@dataclass(frozen=True)
class _Part:
    """A round without the rows of weight zero, which neither train nor judge."""

    places: IntArray  # the rows that are left, as places in the round
    rows: IntArray  # their numbers
    segments: IntArray  # bounds of the rows that always train and of the folds, among them

    @classmethod
    def of(cls, round_: Round, weights: FloatArray) -> _Part:
        useful = weights[round_.rows] > 0
        counts = np.concatenate([[0], np.cumsum(useful)])
        return cls(np.flatnonzero(useful), round_.rows[useful], counts[round_.segments])

    @property
    def n_training(self) -> int:
        """Number of rows that ever train, the first ones."""
        return int(self.segments[1] if len(self.segments) == 3 else self.segments[-1])


@dataclass(frozen=True, eq=False)
class KernelScorer(BoundScorer):
    """A `Kernel` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: Kernel
    algebra: Algebra
    ridge: float = field()  # without the default of `Scorer`
    searches: bool = True  # whether the final predictor's ridge is another one, if that does better

    def tuned(self, selected: IntArray, candidates: ColumnSets) -> KernelScorer:
        """The scorer with the ridge for which the best of some candidates has the lowest loss."""
        if self.config.ridge != "auto":
            return self
        scorers = [replace(self, ridge=ridge) for ridge in self.ridges_of(RIDGES, LEAST_RIDGE)]
        losses = [scorer.add_losses(selected, candidates).comparable.min() for scorer in scorers]
        best = scorers[int(np.argmin(losses))]
        return self if best.ridge == self.ridge else best

    @cached_property
    def parts(self) -> tuple[_Part, ...]:
        """The rounds without rows of weight zero."""
        return tuple(_Part.of(round_, self.problem.weights) for round_ in self.problem.rounds)

    def inputs(self, columns: IntArray, rows: IntArray) -> FloatArray:
        """Columns as rows of an array, standardised and clipped."""
        return scaled_columns(self.problem, columns, rows, self.config.clip)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        for members, columns in candidates.by_size():
            parts[members] = self._equal_sizes(selected, columns, len(selected) + columns.shape[1])
            if columns.shape[1] == 0:
                parts[members] = self._as_it_is(selected, parts[members])
        return Losses(parts, self.problem.part_weights)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out."""
        selected, new = (np.asarray(columns, dtype=np.intp) for columns in (selected, new))
        tasks = self._tasks(selected, len(selected) + len(new))
        return [values[0] for values in _predictions(self.problem, self, _Step(tasks), new[None])]

    def drop_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S - g: twice as fast as by scoring what remains if there are hundreds of columns."""
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        for members, columns in candidates.by_size():
            n_left = len(selected) - columns.shape[1]
            if n_left > columns.shape[1]:
                parts[members] = self._equal_sizes(selected, columns, n_left, sign=-1)
            else:  # less is left than dropped, and rounding counts for less if that is added up
                parts[members] = super().drop_losses(selected, candidates.take(members)).parts
        return Losses(parts, self.problem.part_weights)

    def _as_it_is(self, selected: IntArray, parts: FloatArray) -> FloatArray:
        """Losses of the selection with its own scale or that of its candidates, whichever does better.

        A candidate also changes the scale, and that alone must not pass for a gain.
        """
        n_columns = len(selected) + self.problem.groups.typical_size
        others = self._equal_sizes(selected, np.zeros((1, 0), dtype=np.intp), n_columns)
        better = Losses(others, self.problem.part_weights).means < Losses(parts, self.problem.part_weights).means
        return np.where(better[:, None], others, parts)

    def _equal_sizes(
        self, selected: IntArray, candidates: IntArray, n_columns: int, sign: Literal[1, -1] = 1
    ) -> FloatArray:
        """Losses of candidates that all add (or drop) equally many columns, one chunk of them a task."""
        shared = self.problem, self, _Step(self._tasks(selected, n_columns, sign))
        length = self._chunk_length(*candidates.shape)
        starts = range(0, len(candidates), length)
        chunks = [candidates[start : start + length] for start in starts]
        if isinstance(self.algebra, NumpyAlgebra):
            arguments, counts = [(chunk,) for chunk in chunks], map(len, chunks)
            return np.concatenate(run_tasks(_chunk_losses, arguments, self.n_jobs, shared=shared, counts=counts))
        # A GPU gains nothing from threads.
        return np.concatenate([counted_in(_chunk_losses(*shared, chunk), len(chunk)) for chunk in chunks])

    def _chunk_length(self, n_candidates: int, n_new: int) -> int:
        """Number of candidates a task: no answer depends on it."""
        numbers = self.problem.n_samples * (n_new + 3 * self.problem.n_outputs)
        return chunk_length(n_candidates, self.n_jobs, self.algebra.chunk_numbers // numbers)

    def _tasks(self, selected: IntArray, n_columns: int, sign: Literal[1, -1] = 1) -> list[KernelTask]:
        """What all candidates of a step have in common, for each round."""
        weights = self.problem.weights
        landmarks = [self._landmarks(part.rows[: part.n_training], self.config.landmarks) for part in self.parts]
        return [
            self._task(part.rows, part.segments, selected, n_columns, own, round_.training_weight(weights), sign)
            for part, own, round_ in zip(self.parts, landmarks, self.problem.rounds, strict=True)
        ]

    def _task(
        self,
        rows: IntArray,
        segments: IntArray,
        selected: IntArray,
        n_columns: int,
        landmarks: IntArray | None,
        training_weight: float,
        sign: Literal[1, -1] = 1,
    ) -> KernelTask:
        """What all candidates of a step have in common in one round."""
        mean, scale = self.problem.target_scales
        return KernelTask.of(
            self.algebra,
            self.inputs(selected, rows),
            (self.problem.targets[rows] - mean) / scale,
            self.problem.weights[rows],
            segments,
            scale=1 / max(1, n_columns),
            ridge=self.ridge * training_weight,
            landmarks=landmarks,
            sign=sign,
        )

    def _landmarks(self, rows: IntArray, n_landmarks: int | str | None) -> IntArray | None:
        """Places of landmarks among some rows, or None where all rows are centres."""
        if n_landmarks == "auto":
            n_landmarks = None if len(rows) <= MOST_EXACT_ROWS else AUTO_LANDMARKS
        if n_landmarks is None or int(n_landmarks) >= len(rows):
            return None
        first = np.argsort(self._row_order[rows])[: int(n_landmarks)]
        return np.sort(first)

    @cached_property
    def _row_order(self) -> IntArray:
        """Rank of each row of positive weight for becoming a landmark: the same in all steps and for all candidates."""
        order, useful = np.zeros(self.problem.n_samples, np.intp), self.problem.useful
        order[useful] = np.random.default_rng([self.seed, LANDMARK_STREAM]).permutation(len(useful))
        return order

    def without_search(self, ridge: float) -> KernelScorer:
        """The scorer whose final predictor has a given ridge."""
        return replace(self, ridge=self.ridge if isnan(ridge) else ridge, searches=False)

    def fit(self, selected: IntArray) -> KernelPredictor:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        final = self._tuned(selected)
        rows = np.flatnonzero(self.problem.weights[: self.problem.n_fit] > 0)
        n_landmarks: int | str | None = self.config.landmarks
        if n_landmarks == "auto":
            n_landmarks = int((MOST_REFIT_OPERATIONS / len(rows)) ** 0.5)
        landmarks = final._landmarks(rows, n_landmarks)
        weight = float(self.problem.weights[rows].sum())
        task = final._task(rows, np.array([0, len(rows)]), selected, len(selected), landmarks, weight)
        coefficients, intercept = train_kernel(task)
        centres = self.inputs(selected, rows if landmarks is None else rows[landmarks])
        reader = ScaledColumns.of(self.problem, selected, self.config.clip)
        return KernelPredictor(reader, task.scale, centres, coefficients, intercept, *self.problem.target_scales)

    def _tuned(self, selected: IntArray) -> KernelScorer:
        """The scorer, in double precision on the CPU, with the ridge that has the lowest validation loss."""
        plain = replace(self, n_jobs=1, algebra=NumpyAlgebra("float64"))
        if not self.searches:
            return plain
        ridge = FIRST_RIDGE if self.config.ridge == "auto" else self.config.ridge
        scorers = [replace(plain, ridge=ridge * factor) for factor in REFIT_FACTORS]
        arguments = [(scorer, selected) for scorer in scorers]
        losses = run_tasks(_selection_loss, arguments, self.n_jobs, shared=(self.problem,))
        return scorers[int(np.argmin(np.nan_to_num(losses, nan=np.inf)))]


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: a task a round."""

    tasks: list[KernelTask]


def _chunk_losses(problem: Problem, scorer: KernelScorer, step: _Step, candidates: IntArray) -> FloatArray:
    """Losses of a few candidates (n, m) in all parts of the validation."""
    return problem.part_losses(_predictions(problem, scorer.on(problem), step, candidates))


def _predictions(problem: Problem, scorer: KernelScorer, step: _Step, candidates: IntArray) -> Iterator[AnyArray]:
    """Out-of-fold predictions with a few candidates (n, m) in each round."""
    mean, scale = problem.target_scales
    for round_, part, task in zip(problem.rounds, scorer.parts, step.tasks, strict=True):
        columns = scorer.inputs(candidates.ravel(), part.rows).reshape(*candidates.shape, len(part.rows))
        outputs = np.zeros((len(candidates), len(round_.rows), problem.n_outputs))
        outputs[:, part.places] = score_chunk(task, columns) * np.float64(scale) + mean
        yield outputs


def _selection_loss(problem: Problem, scorer: KernelScorer, selected: IntArray) -> float:
    """Validation loss of a selection, scaled as for the final predictor."""
    return float(scorer.on(problem).add_losses(selected[:0], ColumnSets.of([selected])).means[0])


@dataclass(frozen=True)
class KernelPredictor:
    """The final predictor: a combination of kernel functions of the selected columns."""

    reader: ScaledColumns  # the columns that are read, and how they are standardised
    scale: float  # see `ngp.kernels.kernel_ridge.kernel_matrix`
    centres: FloatArray  # where the functions are centred
    coefficients: FloatArray
    intercept: FloatArray
    target_mean: FloatArray  # how targets were standardised
    target_scale: float

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        outputs = np.empty((len(X), len(self.intercept)))
        length = max(1, 2**20 // len(self.coefficients))  # so that memory stays bounded
        for start in range(0, len(X), length):
            rows = slice(start, start + length)
            values = kernel_matrix(self.scale, self.reader(X[rows]).T, self.centres)
            outputs[rows] = values @ self.coefficients + self.intercept
        return outputs * self.target_scale + self.target_mean
