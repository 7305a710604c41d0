"""The network of the authors' code, as it is printed: the default `ngp.predictors.SSFN` is an improvement on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.layers import WEIGHT_STREAM, Network, random_stream, train_networks
from ngp.kernels.parallel import run_tasks
from ngp.predictors.base import BoundScorer, ColumnSets, Losses, Predictor, ScaledColumns
from ngp.predictors.ssfn import REFIT_LAYER, SSFNPredictor

__all__ = ["PublishedSSFN"]

LINEAR_RIDGE = 100.0


class PublishedSSFN(Predictor, BaseEstimator):  # type: ignore[misc]
    """One-layer SSFN as in the authors' code, trained in plain numpy.

    Features aren't standardised, nothing has a bias, each sample's random projections are scaled to unit norm, and
    the norm of the output weights is at most 2 sqrt(2 n_outputs). Random weights are drawn anew for each candidate, so
    that candidates differ by luck as well as by worth. The authors solve for the output weights by ADMM; here the
    solution is exact.

    Parameters
    ----------
    n_units : int, default=100
        Random units in the layer.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_units": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, *, n_units: int = 100) -> None:
        self.n_units = n_units

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> PublishedScorer:
        """Prepare for one problem."""
        self._validate_params()
        return PublishedScorer(self, problem, random_state, n_jobs)


@dataclass(frozen=True, eq=False)
class PublishedScorer(BoundScorer):
    """A `PublishedSSFN` bound to a problem."""

    config: PublishedSSFN

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        arguments = [(selected, candidates[i]) for i in range(len(candidates))]
        parts = run_tasks(_losses, arguments, self.n_jobs, shared=(self.problem, self))
        return Losses(np.array(parts), self.problem.part_weights)

    def losses(self, selected: IntArray, new: IntArray) -> FloatArray:
        """Losses of one candidate in all parts of the validation."""
        problem, columns = self.problem, np.concatenate([selected, new]).astype(np.intp)
        inputs = problem.columns(columns, np.arange(problem.n_samples)).T
        weights = self._weights(len(selected), 1 + int(new[0]) if len(new) else 0, len(columns))

        def predictions() -> Iterator[FloatArray]:
            for round_ in problem.rounds:
                outputs = np.zeros((problem.n_samples, problem.n_outputs))
                for fold in range(round_.n_folds):
                    judging = round_.validation(fold)
                    network = self._train(inputs, round_.training(fold), weights)
                    outputs[judging] = network.predict(inputs[judging])
                yield outputs[None, round_.rows]

        losses: FloatArray = problem.part_losses(predictions())[0]
        return losses

    def fit(self, selected: IntArray) -> SSFNPredictor:
        """Train the final predictor on all rows that may train."""
        selected, rows = np.asarray(selected, dtype=np.intp), np.arange(self.problem.n_fit)
        weights = self._weights(REFIT_LAYER, 0, len(selected))
        network = self._train(self.problem.columns(selected, rows).T, rows, weights)
        no_offset = np.zeros(self.problem.n_outputs)
        return SSFNPredictor(ScaledColumns.as_they_are(selected), (network,), no_offset, 1.0)

    def _weights(self, n_selected: int, candidate: int, n_columns: int) -> FloatArray:
        stream = random_stream(self.seed, WEIGHT_STREAM, (0, n_selected, candidate))
        return stream.uniform(-1, 1, (n_columns, self.config.n_units))

    def _train(self, inputs: FloatArray, rows: IntArray, weights: FloatArray) -> Network:
        data = inputs[rows], self.problem.targets[rows], self.problem.weights[rows]
        (((network,),)) = train_networks(
            lambda: [data],
            [(weights, np.zeros(self.config.n_units))],
            linear_ridge=LINEAR_RIDGE,
            ridges=[0.0],
            intercept=False,
            norm_bound=2 * np.sqrt(2 * self.problem.n_outputs),
            unit_norm=True,
        )
        return network


def _losses(problem: Problem, scorer: PublishedScorer, selected: IntArray, new: IntArray) -> FloatArray:
    return scorer.on(problem).losses(selected, new)
