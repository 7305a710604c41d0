"""How an `SSFN` scores candidates, and what it predicts with in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.compute.layers import Network, Penalties, draw_biases, draw_weights
from ngp.compute.parallel import run_tasks
from ngp.compute.scoring import LayerTask, LinearState, linear_state, padded_width, score_chunk
from ngp.losses import mistakes
from ngp.predictors.base import ColumnSets, Losses
from ngp.predictors.scaling import ScaledColumns, scaled_columns
from ngp.problem import Problem
from ngp.validation import Round, make_rounds

if TYPE_CHECKING:
    from ngp.predictors.ssfn import SSFN

__all__ = ["SSFNPredictor", "SSFNScorer"]

# Numbers in the columns that one task gets: enough for its overhead not to count, few enough for memory; in between,
# so many tasks that none of the threads waits long for the last one.
FEWEST_NUMBERS = 2**13
CHUNK_NUMBERS = 2**18
CHUNKS_PER_JOB = 32
# Sizes of the final predictor that are tried: multiples of the scored one's width and ridge, as long as training one
# layer takes no more operations than this.
WIDTH_FACTORS = (1, 4, 16, 32)
RIDGE_FACTORS = (1.0, 3.0, 10.0, 30.0, 100.0)
MOST_REFIT_OPERATIONS = 3e10
WIDEST = 8  # units per training row
REFIT_FOLDS = 5
# Layers of the scored networks are numbered by the size of the selection; the final predictor's stand apart.
REFIT_LAYER = 2**63


@dataclass(frozen=True)
class SSFNScorer:
    """An `SSFN` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: SSFN
    problem: Problem
    seed: int
    n_jobs: int | None
    dtype: np.dtype[Any]

    def penalties(self, n_columns: int) -> Penalties:
        """The configuration's penalties with so many columns, and the norm bound as a number."""
        config, bound = self.config, self.config.norm_bound
        if bound == "auto":
            bound = 2 * np.sqrt(2 * self.problem.n_outputs)
        # However many columns share the signal, what the linear part is expected to explain stays the same.
        linear = config.linear_ridge * max(1, n_columns) if config.standardize else config.linear_ridge
        return Penalties(config.ridge, linear, bound, config.bias, config.unit_norm)

    @cached_property
    def target_scales(self) -> tuple[FloatArray, float]:
        """Mean of each target and one common deviation, over the rows that train the final predictor."""
        targets, rows = self.problem.targets, slice(self.problem.n_fit)
        mean, scale = np.zeros(targets.shape[1]), 1.0
        weights = self.problem.weights[rows]
        if self.config.bias:
            mean = np.average(targets[rows], axis=0, weights=weights)
        if self.config.standardize:
            scale = float(np.sqrt(np.average((targets[rows] - mean) ** 2, axis=0, weights=weights).mean()))
        return mean, scale if scale > 0 else 1.0

    def inputs(self, columns: IntArray, rows: IntArray) -> FloatArray:
        """Columns as rows of an array, scaled as the network wants them."""
        if not self.config.standardize:
            return self.problem.columns(columns, rows)
        return scaled_columns(self.problem, columns, rows, self.config.clip)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        states = [self._linear_state(fold, selected) for fold in self.problem.rounds]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        for members, columns in candidates.by_size():
            first = 0
            for losses in self._equal_sizes(selected, columns, states):
                parts[members[first : first + len(losses)]] = losses
                first += len(losses)
        return Losses(parts, self.problem.part_weights)

    def _equal_sizes(self, selected: IntArray, candidates: IntArray, states: list[LinearState]) -> list[FloatArray]:
        """Losses of candidates that all add equally many columns, one chunk of them a task."""
        folds = zip(self.problem.rounds, states, strict=True)
        tasks = [self._shared_task(fold, selected, candidates.shape[1], state) for fold, state in folds]
        length = self._chunk_length(*candidates.shape)
        starts = range(0, len(candidates), length)
        arguments = [(self, tasks, selected, candidates[start : start + length]) for start in starts]
        return run_tasks(_chunk_losses, arguments, self.n_jobs)

    def _scaled_targets(self, rows: IntArray) -> FloatArray:
        mean, scale = self.target_scales
        return (self.problem.targets[rows] - mean) / scale

    def _linear_state(self, fold: Round, selected: IntArray) -> LinearState:
        return linear_state(
            self.inputs(selected, fold.rows),
            self._scaled_targets(fold.rows),
            self.problem.weights[fold.rows],
            fold.segments,
            ridge=self.penalties(len(selected)).linear_ridge,
            centred=self.config.bias,
        )

    def _chunk_length(self, n_candidates: int, n_new: int) -> int:
        """Number of candidates a task: no answer depends on it."""
        numbers = len(self.problem.X) * max(1, n_new)
        fair = -(-n_candidates // (CHUNKS_PER_JOB * int(effective_n_jobs(self.n_jobs))))
        return max(1, min(max(fair, FEWEST_NUMBERS // numbers), CHUNK_NUMBERS // numbers))

    def _shared_task(self, fold: Round, selected: IntArray, n_new: int, state: LinearState) -> LayerTask:
        """What all candidates of a step have in common in one round."""
        config, inputs = self.config, self.inputs(selected, fold.rows)
        width = padded_width(config.n_units, self.dtype)
        base = np.zeros((config.n_draws, len(fold.rows), width), self.dtype)
        slots = np.zeros((config.n_draws, n_new, width), self.dtype)
        for draw in range(config.n_draws):
            random, biases = self.layer((draw, len(selected), 0), len(selected) + n_new, config.n_units)
            base[draw, :, : config.n_units] = inputs.T @ random[: len(selected)] + biases
            slots[draw, :, : config.n_units] = random[len(selected) :]
        targets = self._scaled_targets(fold.rows).astype(self.dtype)
        weights = self.problem.weights[fold.rows]
        penalties = self.penalties(len(selected))  # the same for all candidates of a step
        return LayerTask(fold.segments, weights, targets, base, slots, state, config.n_units, penalties)

    def layer(self, number: tuple[int, int, int], n_slots: int, n_units: int) -> tuple[FloatArray, FloatArray]:
        """Random weights and biases of the layer (draw, size of the selection, candidate)."""
        config = self.config
        weights = draw_weights(self.seed, number, n_slots, n_units, config.distribution)
        if config.standardize and n_slots:
            weights /= np.sqrt(n_slots)
        biases = draw_biases(self.seed, number, n_units, config.distribution) if config.bias else np.zeros(n_units)
        return weights, biases

    def fit(self, selected: IntArray) -> SSFNPredictor:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        width, n_draws, ridge = self._refit_size(selected)
        networks = self._train(selected, np.arange(self.problem.n_fit), width, n_draws, [ridge])[0]
        reader = ScaledColumns.as_they_are(selected)
        if self.config.standardize:
            reader = ScaledColumns.of(self.problem, selected, self.config.clip)
        return SSFNPredictor(reader, networks, *self.target_scales)

    def _train(
        self, selected: IntArray, rows: IntArray, width: int, n_draws: int, ridges: Sequence[float]
    ) -> list[tuple[Network, ...]]:
        """Networks on some rows: for each ridge one network a draw."""
        data = self.inputs(selected, rows).T, self._scaled_targets(rows), self.problem.weights[rows]
        layers = [self.layer((draw, REFIT_LAYER, 0), len(selected), width) for draw in range(n_draws)]
        penalties = self.penalties(len(selected))
        if len(ridges) == 1:
            only = replace(penalties, ridge=ridges[0])
            return [tuple(Network.train(*data, *layer, only) for layer in layers)]
        paths = [Network.train_path(*data, *layer, penalties, ridges) for layer in layers]
        return list(zip(*paths, strict=True))

    def _refit_size(self, selected: IntArray) -> tuple[int, int, float]:
        """Width, number and ridge of the final predictor's layers."""
        config = self.config
        if config.refit_units != "auto":
            return config.refit_units, config.n_draws, config.ridge
        n_rows = self.problem.n_fit
        tunable = config.ridge > 0 and config.norm_bound is None
        ridges = [config.ridge * factor for factor in RIDGE_FACTORS] if tunable else [config.ridge]
        sizes = []
        for factor in WIDTH_FACTORS:
            width, n_draws = config.n_units * factor, -(-config.n_draws // factor)
            small, large = sorted([width, n_rows])
            affordable = small**2 * (large + 10 * small) <= MOST_REFIT_OPERATIONS and width <= WIDEST * n_rows
            if factor == 1 or affordable:
                losses = self._refit_losses(selected, width, n_draws, ridges)
                sizes += [(*loss, width, n_draws, ridge) for loss, ridge in zip(losses.T, ridges, strict=True)]
        return min(sizes)[2:]

    def _refit_losses(self, selected: IntArray, width: int, n_draws: int, ridges: list[float]) -> FloatArray:
        """What counts of final predictors of one size, and the loss, which decides a tie: (2, n_ridges)."""
        n_folds = sum(fold.n_folds for fold in self.problem.rounds)
        rounds = self.problem.rounds if n_folds <= 2 * REFIT_FOLDS else self._few_folds  # leave-one-out has too many
        splits = [(fold.training(f), fold.validation(f)) for fold in rounds for f in range(fold.n_folds)]
        arguments = [(selected, train, test, width, n_draws, ridges) for train, test in splits]
        sums = run_tasks(self._refit_split, arguments, self.n_jobs)
        total: FloatArray = np.sum(sums, axis=0)
        return total / sum(float(self.problem.weights[test].sum()) for _, test in splits)

    def _refit_split(
        self, selected: IntArray, train: IntArray, test: IntArray, width: int, n_draws: int, ridges: list[float]
    ) -> FloatArray:
        """The same, summed over one split."""
        mean, scale = self.target_scales
        inputs, weights = self.inputs(selected, test).T, self.problem.weights[test]
        by_mistakes = self.problem.classes is not None and self.problem.loss == "squared_error"
        sums = np.zeros((2, len(ridges)))
        for i, networks in enumerate(self._train(selected, train, width, n_draws, ridges)):
            outputs = np.mean([network.predict(inputs) for network in networks], axis=0) * scale + mean
            losses = self.problem.row_losses(outputs, test)
            # Squared errors of indicators flatter small networks, which hardly dare to tell classes apart.
            counts = mistakes(outputs, self.problem.targets[test]) if by_mistakes else losses
            sums[:, i] = np.array([counts, losses]) @ weights
        return sums

    @cached_property
    def _few_folds(self) -> tuple[Round, ...]:
        n_fit, seed = self.problem.n_fit, self.seed % 2**32
        X, y = self.problem.X[:n_fit], np.zeros(n_fit)
        return make_rounds(min(REFIT_FOLDS, n_fit), X, y, classification=False, random_state=seed)


def _chunk_losses(scorer: SSFNScorer, tasks: list[LayerTask], selected: IntArray, candidates: IntArray) -> FloatArray:
    """Losses of a few candidates (n, m) in all parts of the validation."""
    mean, scale = scorer.target_scales

    def predictions() -> Iterator[AnyArray]:
        for fold, task in zip(scorer.problem.rounds, tasks, strict=True):
            columns = scorer.inputs(candidates.ravel(), fold.rows).reshape(*candidates.shape, len(fold.rows))
            if scorer.config.redraw:
                task = _redrawn(scorer, task, fold, selected, candidates, columns)
            yield score_chunk(task, columns).astype(np.float64) * scale + mean

    return scorer.problem.part_losses(predictions())


def _redrawn(
    scorer: SSFNScorer,
    task: LayerTask,
    fold: Round,
    selected: IntArray,
    candidates: IntArray,
    columns: FloatArray,
) -> LayerTask:
    """The task with complete pre-activations of its own for each candidate, from weights of its own."""
    n_draws, n_rows, width = task.base.shape
    known, n_units = scorer.inputs(selected, fold.rows), task.n_units
    base = np.zeros((len(candidates), n_draws, n_rows, width), task.base.dtype)
    for i, (names, new) in enumerate(zip(candidates, columns, strict=True)):
        inputs = np.concatenate([known, new])
        for draw in range(n_draws):
            number = (draw, len(selected), 1 + int(names[0]) if len(names) else 0)
            weights, biases = scorer.layer(number, len(inputs), n_units)
            base[i, draw, :, :n_units] = inputs.T @ weights + biases
    return task.with_base(base)


@dataclass(frozen=True)
class SSFNPredictor:
    """The final predictor: the mean of a few networks on the selected columns."""

    reader: ScaledColumns
    networks: tuple[Network, ...]
    target_mean: FloatArray
    target_scale: float

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        inputs = self.reader(X)
        outputs: FloatArray = np.mean([network.predict(inputs) for network in self.networks], axis=0)
        return outputs * self.target_scale + self.target_mean
