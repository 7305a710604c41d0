"""How an `SSFN` scores candidates, and what it predicts with in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import KFold

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.data.losses import mistakes
from ngp.data.problem import Problem
from ngp.kernels.layers import Network, Penalties, draw_biases, draw_weights
from ngp.kernels.parallel import run_tasks
from ngp.kernels.scoring import LinearFit
from ngp.predictors.base import ColumnSets, Losses, ScaledColumns, Scorer, scaled_columns
from ngp.predictors.recipe import Recipe
from ngp.predictors.ssfn_blocks import RoundTask, RowBlock, linear_fit, row_blocks

if TYPE_CHECKING:
    from ngp.predictors.ssfn import SSFN

__all__ = ["SSFNPredictor", "SSFNScorer"]

# Numbers in the columns that one task gets: enough for its overhead not to count, few enough for memory; in between,
# so many tasks that none of the threads waits long for the last one.
FEWEST_NUMBERS = 2**13
CHUNK_NUMBERS = 2**18
CHUNKS_PER_JOB = 32
# More rows than these are worked on in blocks; from one to the next, a chunk of candidates keeps so many bytes.
BLOCK_ROWS = 2**14
CHUNK_BYTES = 2**27
LONG_CHUNKS_PER_JOB = 4
LEAST_LONG_CHUNK = 4
# Numbers in a layer of the final predictor that are computed at a time, and rows that it predicts.
LAYER_NUMBERS = 2**18
PREDICTED_ROWS = 2**12
# Sizes of the final predictor that are tried: multiples of the scored one's width and ridge, as long as training one
# layer takes no more operations than this.
WIDTH_FACTORS = (1, 4, 16, 32)
RIDGE_FACTORS = (1.0, 3.0, 10.0, 30.0, 100.0)
MOST_REFIT_OPERATIONS = 3e10
WIDEST = 8  # units per training row
# They are judged on so many splits of the pursuit at most; more folds of a round are put together to so many.
MOST_REFIT_SPLITS = 10
REFIT_FOLDS = 5
# `fit_seconds` runs `fit` itself where there are few rows, and trains on no more than so many of them elsewhere.
FEW_ROWS = 2**13
TIMED_ROWS = 2**15
# Layers of the scored networks are numbered by the size of the selection; the final predictor's stand apart.
REFIT_LAYER = 2**63


@dataclass(frozen=True)
class SSFNScorer(Scorer):
    """An `SSFN` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: SSFN
    problem: Problem
    seed: int
    n_jobs: int | None
    dtype: np.dtype[Any]

    @cached_property
    def recipe(self) -> Recipe[SSFNScorer]:
        """What other processes make the scorer of."""
        return Recipe.of(self)

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
        fits = [linear_fit(self, blocks, selected) for blocks in self._blocks]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        for members, columns in candidates.by_size():
            first = 0
            for losses in self._equal_sizes(selected, columns, fits):
                parts[members[first : first + len(losses)]] = losses
                first += len(losses)
        return Losses(parts, self.problem.part_weights)

    def _equal_sizes(self, selected: IntArray, candidates: IntArray, fits: list[LinearFit]) -> list[FloatArray]:
        """Losses of candidates that all add equally many columns, one chunk of them a task."""
        rounds, n_new = zip(self.problem.rounds, self._blocks, fits, strict=True), candidates.shape[1]
        tasks = [RoundTask(round_, blocks, selected, n_new, fit).prepared(self) for round_, blocks, fit in rounds]
        shared = self.problem, self.recipe, _Step(tasks)
        length = self._chunk_length(*candidates.shape)
        chunks = [(candidates[start : start + length],) for start in range(0, len(candidates), length)]
        return run_tasks(_chunk_losses, chunks, self.n_jobs, shared=shared)

    @cached_property
    def _blocks(self) -> list[list[RowBlock]]:
        """The rows of each round, block by block."""
        blocks = []
        for round_ in self.problem.rounds:
            fits = self._state_bytes(round_) <= CHUNK_BYTES  # the sums of leave-one-out would outgrow its rows
            blocks.append(row_blocks(round_, BLOCK_ROWS if fits else len(round_.rows)))
        return blocks

    def _state_bytes(self, round_: Round) -> int:
        """Memory for a candidate's sums over blocks, about."""
        n_shared = self.config.n_units + 1 + self.problem.n_outputs
        n_linear = 2 * self.problem.n_outputs * round_.n_folds
        return 8 * self.config.n_draws * ((round_.n_folds + 1) * n_shared**2 + (n_shared + n_linear) * n_linear)

    def scaled_targets(self, rows: IntArray) -> FloatArray:
        """Targets (len(rows), n_outputs) as the network sees them."""
        mean, scale = self.target_scales
        return (self.problem.targets[rows] - mean) / scale

    def _chunk_length(self, n_candidates: int, n_new: int) -> int:
        """Number of candidates a task: no answer depends on it."""
        n_jobs = int(effective_n_jobs(self.n_jobs))
        blocked = [round_ for round_, blocks in zip(self.problem.rounds, self._blocks, strict=True) if len(blocks) > 1]
        if blocked:  # long chunks, since each goes through all rows by itself
            own = 8 * BLOCK_ROWS * (n_new + 4 * self.problem.n_outputs)
            if self.config.redraw:
                own += BLOCK_ROWS * self.config.n_draws * self.config.n_units * self.dtype.itemsize
            most = CHUNK_BYTES // (own + max(map(self._state_bytes, blocked)))
            least = min(LEAST_LONG_CHUNK, -(-n_candidates // n_jobs))
            fair = max(-(-n_candidates // (LONG_CHUNKS_PER_JOB * n_jobs)), least)
            return max(1, min(fair, most))
        numbers = self.problem.n_samples * max(1, n_new)
        fair = -(-n_candidates // (CHUNKS_PER_JOB * n_jobs))
        return max(1, min(max(fair, FEWEST_NUMBERS // numbers), CHUNK_NUMBERS // numbers))

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
        layers = [self.layer((draw, REFIT_LAYER, 0), len(selected), width) for draw in range(n_draws)]
        penalties = self.penalties(len(selected))
        if len(rows) > max(BLOCK_ROWS, width):
            pieces = self._pieces(np.sort(rows), width)
            paths = [
                Network.train_blocks(
                    lambda: (self._data(selected, piece) for piece in pieces), *layer, penalties, ridges
                )
                for layer in layers
            ]
            return list(zip(*paths, strict=True))
        data = self._data(selected, rows)
        if len(ridges) == 1:
            only = replace(penalties, ridge=ridges[0])
            return [tuple(Network.train(*data, *layer, only) for layer in layers)]
        paths = [Network.train_path(*data, *layer, penalties, ridges) for layer in layers]
        return list(zip(*paths, strict=True))

    def _data(self, selected: IntArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Inputs (n_rows, n_inputs), targets and weights of some rows."""
        return self.inputs(selected, rows).T, self.scaled_targets(rows), self.problem.weights[rows]

    def _pieces(self, rows: IntArray, width: int) -> list[IntArray]:
        """Rows cut into pieces whose layers take little memory."""
        return np.array_split(rows, -(-len(rows) * width // LAYER_NUMBERS))

    def _refit_size(self, selected: IntArray) -> tuple[int, int, float]:
        """Width, number and ridge of the final predictor's layers."""
        config = self.config
        if config.refit_units != "auto":
            return config.refit_units, config.n_draws, config.ridge
        ridges, found = self._refit_ridges, []
        for width, n_draws in self._refit_widths:
            losses = self._refit_losses(selected, width, n_draws, ridges)
            found += [(*loss, width, n_draws, ridge) for loss, ridge in zip(losses.T, ridges, strict=True)]
        return min(found)[2:]

    @property
    def _refit_widths(self) -> list[tuple[int, int]]:
        """Widths of layers that the final predictor may have, and how many layers of them."""
        config, n_rows = self.config, int(np.count_nonzero(self.problem.weights[: self.problem.n_fit]))
        if config.refit_units != "auto":
            return [(config.refit_units, config.n_draws)]
        sizes = []
        for factor in WIDTH_FACTORS:
            width, n_draws = config.n_units * factor, -(-config.n_draws // factor)
            small, large = sorted([width, n_rows])
            affordable = small**2 * (large + 10 * small) <= MOST_REFIT_OPERATIONS and width <= WIDEST * n_rows
            if factor == 1 or affordable:
                sizes.append((width, n_draws))
        return sizes

    @property
    def _refit_ridges(self) -> list[float]:
        """Ridges that the final predictor may have."""
        config = self.config
        tunable = config.refit_units == "auto" and config.ridge > 0 and config.norm_bound is None
        return [config.ridge * factor for factor in RIDGE_FACTORS] if tunable else [config.ridge]

    def _refit_losses(self, selected: IntArray, width: int, n_draws: int, ridges: list[float]) -> FloatArray:
        """What counts of final predictors of one size, and the loss, which decides a tie: (2, n_ridges)."""
        splits = self._refit_splits
        arguments = [(selected, train, test, width, n_draws, ridges) for train, test in splits]
        sums = run_tasks(_refit_split, arguments, self.n_jobs, shared=(self.problem, self.recipe))
        total: FloatArray = np.sum(sums, axis=0)
        return total / sum(float(self.problem.weights[test].sum()) for _, test in splits)

    @property
    def _refit_splits(self) -> list[tuple[IntArray, IntArray]]:
        """Rows that train and that judge the final predictor's sizes.

        They are the pursuit's, or made of them where there are many: whatever those keep apart, groups or the past
        and the future, stays apart.
        """
        splits: list[tuple[Round, int]] = []
        for round_ in self.problem.rounds:
            judging = np.flatnonzero(round_.fold_weights(self.problem.weights))
            if len(judging) > MOST_REFIT_SPLITS:  # as of leave-one-out
                drawn = KFold(REFIT_FOLDS, shuffle=True, random_state=self.seed % 2**32).split(judging)
                merged = round_.merged([judging[together] for _, together in drawn])
                splits += [(merged, f) for f in range(merged.n_folds)]
            else:
                splits += [(round_, int(f)) for f in judging]
        some = np.linspace(0, len(splits) - 1, min(len(splits), MOST_REFIT_SPLITS)).round().astype(np.intp)
        return [(round_.training(f), round_.validation(f)) for round_, f in (splits[place] for place in some)]

    def refit_split(
        self, selected: IntArray, train: IntArray, test: IntArray, width: int, n_draws: int, ridges: list[float]
    ) -> FloatArray:
        """What counts of final predictors of one size, and the loss, summed over one split: (2, n_ridges)."""
        mean, scale = self.target_scales
        by_mistakes = self.problem.classes is not None and self.problem.loss == "squared_error"
        sums = np.zeros((2, len(ridges)))
        trained = self._train(selected, train, width, n_draws, ridges)
        for rows in self._pieces(test, width):
            inputs, weights = self.inputs(selected, rows).T, self.problem.weights[rows]
            for i, networks in enumerate(trained):
                outputs = np.mean([network.predict(inputs) for network in networks], axis=0) * scale + mean
                losses = self.problem.row_losses(outputs, rows)
                # Squared errors of indicators flatter small networks, which hardly dare to tell classes apart.
                counts = mistakes(outputs, self.problem.targets[rows]) if by_mistakes else losses
                sums[:, i] += np.array([counts, losses]) @ weights
        return sums


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: a task a round."""

    tasks: list[RoundTask]


def _chunk_losses(problem: Problem, recipe: Recipe[SSFNScorer], step: _Step, candidates: IntArray) -> FloatArray:
    """Losses of a few candidates (n, m) in all parts of the validation."""
    scorer = recipe.make(problem)
    return np.concatenate([task.part_losses(scorer, candidates) for task in step.tasks], axis=1)


def _refit_split(problem: Problem, recipe: Recipe[SSFNScorer], *arguments: Any) -> FloatArray:
    return recipe.make(problem).refit_split(*arguments)


@dataclass(frozen=True)
class SSFNPredictor:
    """The final predictor: the mean of a few networks on the selected columns."""

    reader: ScaledColumns
    networks: tuple[Network, ...]
    target_mean: FloatArray
    target_scale: float

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        outputs = np.empty((len(X), len(self.target_mean)))
        for start in range(0, len(X), PREDICTED_ROWS):
            some = slice(start, start + PREDICTED_ROWS)
            inputs = self.reader(X[some])
            outputs[some] = np.mean([network.predict(inputs) for network in self.networks], axis=0)
        outputs *= self.target_scale
        outputs += self.target_mean
        return outputs
