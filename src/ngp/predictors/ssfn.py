"""SSFN as a predictor: one layer of random ReLU units, all candidates of a step scored together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from math import isnan
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._progress import counted_in
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import Round
from ngp.data.losses import mistakes
from ngp.data.problem import Problem
from ngp.data.sources import read_columns
from ngp.kernels.devices import resolve_device
from ngp.kernels.layers import Network, draw_biases, draw_weights, train_networks
from ngp.kernels.parallel import chunk_length, on_cluster, run_tasks
from ngp.kernels.ridge import Rows
from ngp.kernels.scoring import (
    LayerTask,
    LinearFit,
    Penalties,
    padded_width,
    score_blocks,
    score_chunk,
    segment_moments,
)
from ngp.predictors.base import (
    BoundScorer,
    ColumnSets,
    FittedPredictor,
    Losses,
    Predictor,
    ScaledColumns,
    scaled_columns,
)
from ngp.predictors.kernel import Kernel

if TYPE_CHECKING:
    from torch import Tensor

    from ngp.kernels.scoring_torch import FoldRegressions, LayerStack

__all__ = ["SSFN", "SSFNClusterScorer", "SSFNGpuScorer", "SSFNPredictor", "SSFNScorer"]

# Ridges that a step chooses from, the one before there is anything to choose by, and layers that decide.
RIDGES = (3e-5, 0.0003, 0.003, 0.03, 0.3, 3.0, 30.0)
REFIT_RIDGES = (1e-6, 1e-5, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the final predictor
FIRST_RIDGE = 0.3
TUNING_LAYERS = 2
LEAST_RIDGE = 1e3  # see `BoundScorer.ridges_of`
# A GPU is chosen only if a step takes this many operations: a second or two of a CPU core, the time to start a GPU.
GPU_FROM_OPERATIONS = 1e11
# Largest number of numbers in the columns of one task.
CHUNK_NUMBERS = 2**18
# Predictions that a stage of a race leaves to the next one take this many bytes at most.
MOST_REMEMBERED = 2**26
# More rows than these are worked on in blocks; between blocks a chunk of candidates keeps this many bytes.
BLOCK_ROWS = 2**14
CHUNK_BYTES = 2**27
# Numbers in a layer of the final predictor that are computed at a time, and rows that it predicts.
LAYER_NUMBERS = 2**18
PREDICTED_ROWS = 2**12
# With up to so many rows the final predictor has infinitely many units.
MOST_LIMIT_ROWS = 1700
# Wider final predictors are tried as long as training a layer takes no more operations, and units per training row.
MOST_REFIT_OPERATIONS = 3e10
WIDEST = 8
# Splits of the pursuit that judge these sizes; if a round has more folds than that, they are merged into five.
MOST_REFIT_SPLITS = 10
# Layers of the scored networks are numbered by the size of the selection; the final predictor's have this number.
REFIT_LAYER = 2**63
# Share of a GPU's free memory for all columns, which are then read once; half of the rest is for candidates.
COLUMNS_SHARE = 0.3
# A step that takes less memory is done at once; asking how much is free would take as long as such a step.
SMALL_MEMORY = 2**30
# What counts as free where torch runs on the CPU.
CPU_MEMORY = 2**28


class SSFN(Predictor, BaseEstimator):  # type: ignore[misc]
    """One-layer self size-estimating feed-forward network, the predictor of the paper's experiments.

    Random ReLU units and the sign-split linear prediction feed a linear output layer that is solved for exactly, so
    that thousands of candidates can be retrained a second. The prediction is the mean over a few independent
    random layers. All candidates of a step share their random weights, so that they differ by worth, not by luck;
    each step has weights of its own, so that no selection is tuned to one layer's luck.

    Parameters
    ----------
    n_units : int, default=100
        Random units in a layer.
    n_draws : int, default=8
        Independent random layers whose predictions are averaged. All candidates of a step are trained with one; those
        that may still be the best with two, then four, and so on up to this number.
    ridge : float or "auto", default="auto"
        Ridge penalty of the output layer, beside the weighted mean of the squared errors. ``"auto"`` chooses it in
        each step, for all candidates alike: of 0.00003, 0.0003, …, 30 that with the lowest validation loss of the
        selection as it stands; before the first step, of the leading candidates. Many candidates and few rows
        exclude the small ones.
    linear_ridge : float, default=0.003
        Ridge penalty of the linear part, likewise, times the number of selected columns if they are standardised.
    bias : bool, default=True
        Whether units have a random bias and the outputs an intercept.
    standardize : bool, default=True
        Whether columns and targets are scaled to mean zero and deviation one, and the pre-activations divided by
        the root of the number of columns.
    clip : float or None, default=4.0
        Standardised columns are clipped at this many deviations, so that no outlier, in training or later, dominates
        the layer. None doesn't clip; columns that aren't standardised are never clipped.
    refit_units : int or "auto", default="auto"
        Width of the layers of the final predictor. With ``"auto"`` and up to 1700 rows it has infinitely many units:
        it is a `Kernel`. With more rows, ``"auto"`` also tries wider layers and larger ridges, and takes those with
        the lowest validation loss, or with the fewest mistakes if classes are judged by the squared error. They are
        judged on the splits of the pursuit, at most ten of them; more than ten folds, as of leave-one-out, are first
        merged into five, at random. Wider layers have fewer draws, so that the number of units stays the same until
        one layer is left.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the scoring.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(SSFN(n_draws=2), n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.order_
    array([1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "linear_ridge": [Interval(Real, 0, None, closed="neither")],
        "bias": ["boolean"],
        "standardize": ["boolean"],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "refit_units": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "dtype": [StrOptions({"float32", "float64"})],
    }

    uses_gpu = True

    def __init__(
        self,
        *,
        n_units: int = 100,
        n_draws: int = 8,
        ridge: float | Literal["auto"] = "auto",
        linear_ridge: float = 0.003,
        bias: bool = True,
        standardize: bool = True,
        clip: float | None = 4.0,
        refit_units: int | Literal["auto"] = "auto",
        dtype: str = "float32",
    ) -> None:
        self.n_units = n_units
        self.n_draws = n_draws
        self.ridge = ridge
        self.linear_ridge = linear_ridge
        self.bias = bias
        self.standardize = standardize
        self.clip = clip
        self.refit_units = refit_units
        self.dtype = dtype

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> SSFNScorer:
        """Prepare for one problem."""
        self._validate_params()
        kind = SSFNScorer
        if self._device(problem, device) == "cuda":
            kind = SSFNClusterScorer if on_cluster() else SSFNGpuScorer
        ridge = FIRST_RIDGE if self.ridge == "auto" else float(self.ridge)
        return kind(self, problem, random_state, n_jobs, self.n_draws, ridge)

    def _device(self, problem: Problem, asked: str) -> str:
        """Where to score: by itself on a GPU if a step is large enough."""
        if asked == "mps":
            raise ValueError("device='mps' can't run an SSFN: use device='cpu' or 'auto'.")
        if on_cluster():  # whose workers have devices of their own
            return "cpu" if asked == "auto" else asked
        if asked == "auto":
            rows = sum(len(round_.rows) for round_ in problem.rounds)
            operations = 2.0 * problem.groups.n_groups * rows * self.n_units**2
            if operations < GPU_FROM_OPERATIONS:
                return "cpu"
        return "cuda" if resolve_device(asked, self.dtype) == "cuda" else "cpu"


# ---------------------------------------------------------------- scoring on the CPU


class RowBlock(NamedTuple):
    """Rows of a round that are worked on together, in fold order."""

    places: IntArray  # where they stand in the round, ascending
    rows: IntArray  # their row numbers
    segments: IntArray  # bounds in `rows`, as in `ngp.data.folds.Round`


def row_blocks(round_: Round, most_rows: int) -> list[RowBlock]:
    """Cut a round into blocks of about equal length, each of rows that are neighbours in X."""
    n_rows = len(round_.rows)
    n_blocks = -(-n_rows // most_rows)
    if n_blocks == 1:
        return [RowBlock(np.arange(n_rows), round_.rows, round_.segments)]
    pieces = np.array_split(np.argsort(round_.rows), n_blocks)
    places = [np.sort(piece) for piece in pieces]
    return [RowBlock(own, round_.rows[own], np.searchsorted(own, round_.segments)) for own in places]


@dataclass
class _Memory:
    """Out-of-fold predictions in the last stage of a race, for each round: the next stage only adds layers to them."""

    n_layers: int = 0
    predictions: dict[bytes, Sequence[AnyArray]] = field(default_factory=dict)  # by the columns of a candidate

    def of(self, candidates: IntArray) -> list[Sequence[AnyArray]] | None:
        """Those of some candidates, if all are known."""
        found = [self.predictions.get(columns.tobytes()) for columns in candidates]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None


@dataclass(frozen=True, eq=False)
class _Step:
    """What candidates of one step that add equally many columns share."""

    selected: IntArray
    n_new: int  # number of columns that each candidate adds
    draws: range  # random layers, without those whose predictions are known
    fits: list[LinearFit]  # in each round the linear part's regressions on the selected columns
    wholes: list[LayerTask | None]  # in each round that has a single block of rows, all that its candidates share

    def penalised(self, penalties: Sequence[Penalties]) -> _Step:
        """The same with other penalties in each round."""
        both = zip(self.wholes, penalties, strict=True)
        return replace(self, wholes=[task and replace(task, penalties=own) for task, own in both])


@dataclass(frozen=True, eq=False)
class SSFNScorer(BoundScorer):
    """An `SSFN` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: SSFN
    n_layers: int = field()  # without the defaults of `Scorer`
    ridge: float = field()
    _memory: ClassVar[_Memory | None] = None  # only of the stages of a race

    def _with(self, **changes: Any) -> Self:
        """The scorer with other layers or another ridge; it keeps what was computed, which depends on neither."""
        self._warm()
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changes)
        return other

    def _warm(self) -> None:
        """Compute what all steps share."""
        _ = self.target_scales, self._blocks

    @property
    def stages(self) -> Sequence[SSFNScorer]:
        """Scorers with 1, 2, 4, … layers, as many as this one in the end."""
        numbers = [2**i for i in range(self.n_layers.bit_length()) if 2**i < self.n_layers]
        memory = _Memory()
        return [self._with(n_layers=number, _memory=memory) for number in (*numbers, self.n_layers)]

    def tuned(self, selected: IntArray, candidates: ColumnSets) -> SSFNScorer:
        """The scorer with the ridge for which the best of some candidates has the lowest loss."""
        if self.config.ridge != "auto":
            return self
        n_layers = min(TUNING_LAYERS, self.n_layers)
        ridges = self.ridges_of(RIDGES, LEAST_RIDGE)
        scorers = [self._with(ridge=ridge, n_layers=n_layers, _memory=None) for ridge in ridges]
        losses = [found.comparable.min() for found in self._side_by_side(scorers, selected, candidates)]
        ridge = scorers[int(np.argmin(losses))].ridge
        return self if ridge == self.ridge else self._with(ridge=ridge)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the scoring."""
        return np.dtype(self.config.dtype)

    def penalties(self, n_columns: int, weight: float) -> Penalties:
        """Penalties of a network on so many columns, from rows of this total weight."""
        config = self.config
        # However many columns share the signal, what the linear part is expected to explain stays the same.
        linear = config.linear_ridge * max(1, n_columns) if config.standardize else config.linear_ridge
        return Penalties(self.ridge * weight, linear * weight, config.bias)

    @cached_property
    def _training_weights(self) -> list[float]:
        """Total weight of the rows that train in each round, mean over its folds."""
        return [round_.training_weight(self.problem.weights) for round_ in self.problem.rounds]

    @cached_property
    def target_scales(self) -> tuple[FloatArray, float]:
        """Mean of each target and one common deviation, over the rows that train the final predictor."""
        mean, scale = self.problem.target_scales
        if not self.config.bias:
            targets, weights = (values[: self.problem.n_fit] for values in (self.problem.targets, self.problem.weights))
            mean, scale = 0 * mean, float(np.sqrt(np.average(targets**2, axis=0, weights=weights).mean())) or 1.0
        return mean, scale if self.config.standardize else 1.0

    def inputs(self, columns: IntArray, rows: IntArray) -> FloatArray:
        """Columns as rows of an array, scaled as the network wants them."""
        if not self.config.standardize:
            return self.problem.columns(columns, rows)
        return scaled_columns(self.problem, columns, rows, self.config.clip)

    def scaled_targets(self, rows: IntArray) -> FloatArray:
        """Targets (len(rows), n_outputs) as the network sees them."""
        mean, scale = self.target_scales
        return (self.problem.targets[rows] - mean) / scale

    def layer(self, draw: int, number: int, n_slots: int, n_units: int) -> tuple[FloatArray, FloatArray]:
        """Random weights and biases of a layer; its number is the size of the selection, or `REFIT_LAYER`."""
        weights = draw_weights(self.seed, (draw, number, 0), n_slots, n_units) / self.weight_divisor(n_slots)
        biases = draw_biases(self.seed, (draw, number, 0), n_units) if self.config.bias else np.zeros(n_units)
        return weights, biases

    def weight_divisor(self, n_slots: int) -> float:
        """What random weights are divided by."""
        return float(np.sqrt(max(1, n_slots))) if self.config.standardize else 1.0

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        return self._side_by_side([self], selected, candidates)[0]

    def _side_by_side(
        self, scorers: Sequence[SSFNScorer], selected: IntArray, candidates: ColumnSets
    ) -> Sequence[Losses]:
        """Losses by scorers that differ in their ridges alone: they share all that comes before."""
        selected = np.asarray(selected, dtype=np.intp)
        fits = self._linear_fits(selected)
        first = scorers[0]
        memory, new = first._memory or _Memory(), _Memory(first.n_layers)
        losses = [
            Losses(np.empty((len(candidates), len(self.problem.part_weights))), self.problem.part_weights)
            for _ in scorers
        ]
        for members, columns in candidates.by_size():
            known = memory.of(columns)
            draws = range(memory.n_layers if known else 0, first.n_layers)
            step = first._step(selected, columns.shape[1], fits, draws)
            for scorer, found in zip(scorers, losses, strict=True):
                penalised = step.penalised([scorer.penalties(len(selected), own) for own in self._training_weights])
                parts, predictions = scorer._equal_sizes(penalised, columns, known, first._remembers(len(candidates)))
                found.parts[members] = parts
                new.predictions.update(
                    (candidates[i].tobytes(), own) for i, own in zip(members, predictions, strict=False)
                )
        if first._memory is not None:
            vars(first._memory).update(vars(new))
        return losses

    def _equal_sizes(
        self, step: _Step, columns: IntArray, known: list[Sequence[AnyArray]] | None, remembers: bool
    ) -> tuple[FloatArray, list[Sequence[AnyArray]]]:
        """Losses of candidates that add equally many columns, and their predictions if they are remembered."""
        length = self._chunk_length(*columns.shape)
        some = [slice(start, start + length) for start in range(0, len(columns), length)]
        chunks = [(columns[each], known and known[each], remembers) for each in some]
        counts = [len(chunk[0]) for chunk in chunks]
        found = run_tasks(_chunk_losses, chunks, self.n_jobs, shared=(self.problem, self, step), counts=counts)
        parts, predictions = zip(*found, strict=True)
        return np.concatenate(parts), [own for each in predictions for own in zip(*each, strict=True)]

    def _remembers(self, n_candidates: int) -> bool:
        """Whether the predictions of so many candidates are kept for the next stage of a race."""
        n_rows = sum(len(round_.rows) for round_ in self.problem.rounds)
        n_bytes = n_candidates * n_rows * self.problem.n_outputs * self.dtype.itemsize
        small = n_bytes <= MOST_REMEMBERED and all(len(blocks) == 1 for blocks in self._blocks)
        return self._memory is not None and small

    def _linear_fits(self, selected: IntArray) -> list[LinearFit]:
        """Regressions on the selected columns in all folds of each round."""
        fits = []
        for blocks, weight in zip(self._blocks, self._training_weights, strict=True):
            moments = sum(segment_moments(*self._linear_rows(block, selected)) for block in blocks)
            ridge = self.penalties(len(selected), weight).linear_ridge
            fits.append(LinearFit.of(np.asarray(moments), len(selected), ridge=ridge, centred=self.config.bias))
        return fits

    def _linear_rows(self, block: RowBlock, selected: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Selected columns, targets, weights and segments of a block."""
        rows = block.rows
        return self.inputs(selected, rows), self.scaled_targets(rows), self.problem.weights[rows], block.segments

    def _step(self, selected: IntArray, n_new: int, fits: list[LinearFit], draws: range) -> _Step:
        step = _Step(selected, n_new, draws, fits, [])
        for number, blocks in enumerate(self._blocks):
            single = len(blocks) == 1
            step.wholes.append(self._layer_task(step, number, blocks[0], self._space(step, blocks)) if single else None)
        return step

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

    def _chunk_length(self, n_candidates: int, n_new: int) -> int:
        """Number of candidates a task: no answer depends on it."""
        blocked = [round_ for round_, blocks in zip(self.problem.rounds, self._blocks, strict=True) if len(blocks) > 1]
        if blocked:  # long chunks, since each goes through all rows by itself
            own = 8 * BLOCK_ROWS * (n_new + 4 * self.problem.n_outputs)
            most = CHUNK_BYTES // (own + max(map(self._state_bytes, blocked)))
            # Four candidates together take half the time of four alone.
            n_jobs = int(effective_n_jobs(self.n_jobs))
            fair = max(-(-n_candidates // (4 * n_jobs)), min(4, -(-n_candidates // n_jobs)))
            return max(1, min(fair, most))
        n_numbers = self.problem.n_samples * max(1, n_new, self.problem.n_outputs)
        return chunk_length(n_candidates, self.n_jobs, CHUNK_NUMBERS // n_numbers)

    def chunk_losses(
        self, step: _Step, candidates: IntArray, known: list[Sequence[AnyArray]] | None, remembers: bool
    ) -> tuple[FloatArray, list[AnyArray]]:
        """Losses of a few candidates (n, m) in all parts of the validation, and predictions to be remembered."""
        problem, (mean, scale), parts, remembered = self.problem, self.target_scales, [], []
        share = len(step.draws) / self.n_layers
        for number, (round_, blocks) in enumerate(zip(problem.rounds, self._blocks, strict=True)):
            weights = round_.part_weights(problem.weights)
            sums = np.zeros((len(candidates), len(weights)))
            for block, outputs in zip(blocks, self._predictions(step, number, candidates), strict=True):
                if known is not None:
                    outputs *= share
                    for own, earlier in zip(outputs, known, strict=True):
                        own += (1 - share) * earlier[number]
                if remembers:
                    remembered.append(outputs)
                predictions = np.multiply(outputs, scale, dtype=np.float64)
                predictions += mean
                losses = problem.row_losses(predictions, block.rows)
                losses *= problem.weights[block.rows]
                bounds = np.searchsorted(block.places, round_.parts)
                filled = np.flatnonzero(np.diff(bounds))
                if len(filled):
                    sums[:, filled] += np.add.reduceat(losses[:, : bounds[-1]], bounds[filled], axis=1)
            parts.append(sums / np.where(weights > 0, weights, 1))
        return np.concatenate(parts, axis=1), remembered

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out."""
        selected, new = (np.asarray(columns, dtype=np.intp) for columns in (selected, new))
        (mean, scale), found = self.target_scales, []
        memory = self._memory or _Memory()
        if memory.n_layers == self.n_layers and (known := memory.of(new[None])):
            return [values * np.float64(scale) + mean for values in known[0]]
        fits = self._linear_fits(selected)
        step = self._step(selected, len(new), fits, range(self.n_layers))
        for number, blocks in enumerate(self._blocks):
            found.append(np.empty((len(self.problem.rounds[number].rows), self.problem.n_outputs)))
            for block, outputs in zip(blocks, self._predictions(step, number, new[None]), strict=True):
                found[-1][block.places] = outputs[0] * np.float64(scale) + mean
        return found

    def _predictions(self, step: _Step, number: int, candidates: IntArray) -> Iterator[AnyArray]:
        """Out-of-fold predictions of one block of a round after the other, of scaled targets."""

        def columns(block: RowBlock) -> FloatArray:
            return self.inputs(candidates.ravel(), block.rows).reshape(*candidates.shape, len(block.rows))

        blocks, whole = self._blocks[number], step.wholes[number]
        if whole is not None:
            yield score_chunk(whole, columns(blocks[0]))
            return
        space = self._space(step, blocks)

        def tasks(layers: bool) -> Iterator[tuple[LayerTask, FloatArray]]:
            for block in blocks:
                yield self._layer_task(step, number, block, space, layers), columns(block)

        yield from score_blocks(tasks)

    def _space(self, step: _Step, blocks: Sequence[RowBlock]) -> AnyArray:
        """Room for the pre-activations of any block: one takes it over from the last, quicker than new memory."""
        width, n_rows = padded_width(self.config.n_units, self.dtype), max(len(block.rows) for block in blocks)
        return np.zeros(len(step.draws) * n_rows * width, self.dtype)

    def _layer_task(self, step: _Step, number: int, block: RowBlock, space: AnyArray, layers: bool = True) -> LayerTask:
        """What the candidates share in a block of a round; without `layers`, no pre-activations."""
        config, rows, n_selected = self.config, self._linear_rows(block, step.selected), len(step.selected)
        inputs, targets, weights, segments = rows
        shape = len(step.draws), len(weights) if layers else 0, padded_width(config.n_units, self.dtype)
        base = space[: int(np.prod(shape))].reshape(shape)  # zero beyond the units, wherever rows end
        slots = np.zeros((len(step.draws), step.n_new, shape[2]), self.dtype)
        for place, draw in enumerate(step.draws):
            random, biases = self.layer(draw, n_selected, n_selected + step.n_new, config.n_units)
            slots[place, :, : config.n_units] = random[n_selected:]
            for start in range(0, shape[1], 2**10):  # products of more rows would outgrow the cache
                some = slice(start, start + 2**10)
                base[place, some, : config.n_units] = inputs[:, some].T @ random[:n_selected] + biases
        penalties = self.penalties(n_selected, self._training_weights[number])  # the same for all candidates of a step
        state = step.fits[number].state(*rows)
        return LayerTask(segments, weights, targets.astype(self.dtype), base, slots, state, config.n_units, penalties)

    # ------------------------------------------------------------ the final predictor

    def without_search(self, ridge: float) -> SSFNScorer:
        """The scorer whose final predictor is as wide as in the pursuit, unless its width is given."""
        config = clone(self.config).set_params(ridge=self.ridge if isnan(ridge) else ridge)
        return self._with(config=config.set_params(refit_units=self._refit_widths[0][0]))

    def fit(self, selected: IntArray) -> FittedPredictor:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        if self._refits_the_limit:
            limit = Kernel(clip=self.config.clip)
            return limit.bind(self.problem, random_state=self.seed, n_jobs=self.n_jobs, device="cpu").fit(selected)
        width, n_draws, ridge = self._refit_size(selected)
        (networks,) = self._train(selected, np.arange(self.problem.n_fit), width, n_draws, [ridge])
        reader = ScaledColumns.as_they_are(selected)
        if self.config.standardize:
            reader = ScaledColumns.of(self.problem, selected, self.config.clip)
        return SSFNPredictor(reader, networks, *self.target_scales)

    def _train(
        self, selected: IntArray, rows: IntArray, width: int, n_draws: int, ridges: Sequence[float]
    ) -> list[tuple[Network, ...]]:
        """Networks on some rows: for each ridge one network a draw."""
        layers = [self.layer(draw, REFIT_LAYER, len(selected), width) for draw in range(n_draws)]
        if len(rows) > max(BLOCK_ROWS, width):
            pieces = self._pieces(np.sort(rows), width)
        else:
            pieces, data = [], [self._data(selected, rows)]
        weight = float(self.problem.weights[rows].sum())
        penalties = self.penalties(len(selected), weight)
        return train_networks(
            lambda: (self._data(selected, piece) for piece in pieces) if pieces else data,
            layers,
            linear_ridge=penalties.linear_ridge,
            ridges=[ridge * weight for ridge in ridges],
            intercept=penalties.intercept,
        )

    def _data(self, selected: IntArray, rows: IntArray) -> Rows:
        """Inputs (n_rows, n_inputs), targets and weights of some rows."""
        return self.inputs(selected, rows).T, self.scaled_targets(rows), self.problem.weights[rows]

    def _pieces(self, rows: IntArray, width: int) -> list[IntArray]:
        """Rows cut into pieces whose layers take little memory."""
        return np.array_split(rows, -(-len(rows) * width // LAYER_NUMBERS))

    def _refit_size(self, selected: IntArray) -> tuple[int, int, float]:
        """Width, number and ridge of the final predictor's layers."""
        ridges, widths = self._refit_ridges, self._refit_widths
        if len(ridges) == len(widths) == 1:
            return *widths[0], ridges[0]
        found: list[tuple[Any, ...]] = []  # the best of each width: wider layers are tried as long as they are better
        for width, n_draws in widths:
            losses = self._refit_losses(selected, width, n_draws, ridges)
            found.append(min((*loss, width, n_draws, ridge) for loss, ridge in zip(losses.T, ridges, strict=True)))
            if found[-1] > found[0]:
                break
            found = found[-1:]
        return min(found)[2:]

    @property
    def _refits_the_limit(self) -> bool:
        """Whether the final predictor has infinitely many units: of few rows they take less time than wide layers."""
        config = self.config
        return (
            config.refit_units == "auto"
            and config.standardize
            and config.bias
            and self.problem.n_fit <= MOST_LIMIT_ROWS
        )

    @property
    def _refit_widths(self) -> list[tuple[int, int]]:
        """Widths of layers that the final predictor may have, and how many layers of them."""
        config, n_rows = self.config, int(np.count_nonzero(self.problem.weights[: self.problem.n_fit]))
        if config.refit_units != "auto":
            return [(config.refit_units, config.n_draws)]
        sizes = []
        for factor in (1, 4, 16, 32):
            width, n_draws = config.n_units * factor, -(-config.n_draws // factor)
            small, large = sorted([width, n_rows])
            affordable = small**2 * (large + 10 * small) <= MOST_REFIT_OPERATIONS and width <= WIDEST * n_rows
            if factor == 1 or affordable:
                sizes.append((width, n_draws))
        return sizes

    @property
    def _refit_ridges(self) -> list[float]:
        """Ridges that the final predictor may have."""
        if self.config.ridge == "auto":
            return list(REFIT_RIDGES)
        factors = (1.0, 3.0, 10.0, 30.0, 100.0) if self.config.refit_units == "auto" else (1.0,)
        return [float(self.config.ridge) * factor for factor in factors]

    def _refit_losses(self, selected: IntArray, width: int, n_draws: int, ridges: list[float]) -> FloatArray:
        """What final predictors of one size are judged by, and the loss, which decides a tie: (2, n_ridges)."""
        splits = self._refit_splits
        arguments = [(selected, train, test, width, n_draws, ridges) for train, test in splits]
        sums = run_tasks(_refit_split, arguments, self.n_jobs, shared=(self.problem, self))
        total: FloatArray = np.sum(sums, axis=0)
        return total / sum(float(self.problem.weights[test].sum()) for _, test in splits)

    @property
    def _refit_splits(self) -> list[tuple[IntArray, IntArray]]:
        """Rows that train and that judge the final predictor's sizes.

        They are the pursuit's, or made of them if there are many: whatever those keep apart, groups or the past
        and the future, stays apart.
        """
        splits: list[tuple[Round, int]] = []
        for round_ in self.problem.rounds:
            judging = np.flatnonzero(round_.fold_weights(self.problem.weights))
            if len(judging) > MOST_REFIT_SPLITS:  # as of leave-one-out
                drawn = KFold(5, shuffle=True, random_state=self.seed % 2**32).split(judging)
                merged = round_.merged([judging[together] for _, together in drawn])
                splits += [(merged, f) for f in range(merged.n_folds)]
            else:
                splits += [(round_, int(f)) for f in judging]
        some = np.linspace(0, len(splits) - 1, min(len(splits), MOST_REFIT_SPLITS)).round().astype(np.intp)
        return [(round_.training(f), round_.validation(f)) for round_, f in (splits[place] for place in some)]

    def refit_split(
        self, selected: IntArray, train: IntArray, test: IntArray, width: int, n_draws: int, ridges: list[float]
    ) -> FloatArray:
        """What final predictors of one size are judged by, and the loss, summed over one split: (2, n_ridges)."""
        mean, scale = self.target_scales
        by_mistakes = self.problem.classes is not None and self.problem.loss == "squared_error"
        sums = np.zeros((2, len(ridges)))
        trained = self._train(selected, train, width, n_draws, ridges)
        for rows in self._pieces(test, width):
            inputs, weights = self.inputs(selected, rows).T, self.problem.weights[rows]
            for i, networks in enumerate(trained):
                outputs = np.mean([network.predict(inputs) for network in networks], axis=0) * scale + mean
                losses = self.problem.row_losses(outputs, rows)
                # Squared errors of indicators flatter small networks, whose predictions stay close to the mean.
                counts = mistakes(outputs, self.problem.targets[rows]) if by_mistakes else losses
                sums[:, i] += np.array([counts, losses]) @ weights
        return sums


def _chunk_losses(
    problem: Problem, scorer: SSFNScorer, step: _Step, *arguments: Any
) -> tuple[FloatArray, list[AnyArray]]:
    return scorer.on(problem).chunk_losses(step, *arguments)


def _refit_split(problem: Problem, scorer: SSFNScorer, *arguments: Any) -> FloatArray:
    return scorer.on(problem).refit_split(*arguments)


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


# ---------------------------------------------------------------- scoring on GPUs


class _RoundTensors(NamedTuple):
    """What no step changes in a round."""

    rows: Tensor  # row numbers, in fold order
    targets: Tensor  # scaled targets
    weights: Tensor  # sample weights
    weighted: bool  # whether they differ
    shares: Tensor  # share of each row that doesn't always train in the mean loss of each part


@dataclass(frozen=True, eq=False)
class SSFNGpuScorer(SSFNScorer):
    """An `SSFN` bound to a problem; candidates are scored on a GPU, the final predictor is trained on the CPU."""

    gpu: str = "cuda"

    def _warm(self) -> None:
        """Compute what all steps share, the columns in the GPU's memory above all."""
        _ = self.target_scales, self._blocks, self._rounds, self._resident

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        sizes = list(candidates.by_size())
        # The selection as it is is scored beside the first others: by itself it would take as long as many of them.
        alone = len(sizes) > 1 and len(sizes[0][0]) == 1 and sizes[0][1].size == 0
        if alone:
            (last, _), (members, columns), *others = sizes
            sizes = [(np.append(members, last), columns), *others]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        layers = self._layers(len(selected), len(selected) + int(candidates.sizes.max(initial=0)))
        regressions = [self._regressions(number, selected) for number in range(len(self._rounds))]
        for i, (members, columns) in enumerate(sizes):
            stacks = self._stacks(regressions, *layers, columns.shape[1], alone=alone and i == 0)
            parts[members] = self._chunks(columns, stacks)
        return Losses(parts, self.problem.part_weights)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out."""
        selected, new = (np.asarray(columns, dtype=np.intp) for columns in (selected, new))
        regressions = [self._regressions(number, selected) for number in range(len(self._rounds))]
        layers = self._layers(len(selected), len(selected) + len(new))
        stacks = self._stacks(regressions, *layers, len(new), alone=False)
        return [
            self._coded(number, stack.predictions(self._columns(new, number)[None]))[0]
            for number, stack in enumerate(stacks)
        ]

    def _side_by_side(
        self, scorers: Sequence[SSFNScorer], selected: IntArray, candidates: ColumnSets
    ) -> Sequence[Losses]:
        return [scorer.add_losses(selected, candidates) for scorer in scorers]

    def _layers(self, n_selected: int, n_slots: int) -> tuple[Tensor, Tensor]:
        """Random weights of so many slots, (D, n_slots, H), not yet scaled, and biases, (D, H)."""
        n_units, draws = self.config.n_units, range(self.n_layers)
        weights = [draw_weights(self.seed, (draw, n_selected, 0), n_slots, n_units) for draw in draws]
        biases = [self.layer(draw, n_selected, 0, n_units)[1] for draw in draws]
        return self._tensor(np.array(weights)), self._tensor(np.array(biases))

    def _regressions(self, number: int, selected: IntArray) -> FoldRegressions:
        """The linear parts' regressions on the selected columns, in one round."""
        from ngp.kernels.scoring_torch import FoldRegressions

        each, segments = self._rounds[number], self.problem.rounds[number].segments
        data = self._columns(selected, number), each.targets, each.weights, segments
        ridge = self.penalties(len(selected), self._training_weights[number]).linear_ridge
        return FoldRegressions(*data, ridge=ridge, centred=self.config.bias)

    def _stacks(
        self, regressions: list[FoldRegressions], weights: Tensor, biases: Tensor, n_new: int, alone: bool
    ) -> list[LayerStack]:
        """What candidates that add equally many columns share in each round; whether the selection alone is beside."""
        import torch

        n_selected, dtype = len(regressions[0].selected), getattr(torch, self.config.dtype)
        stacks = []
        scaled = [weights[:, :n] / self.weight_divisor(n) for n in (n_selected + n_new, n_selected)]
        rounds = zip(self.problem.rounds, regressions, self._rounds, self._training_weights, strict=True)
        for round_, each, tensors, weight in rounds:
            make, penalties = self._stack_class(round_.n_folds), self.penalties(n_selected, weight)
            stack, single = (make(each, slots, biases, penalties, dtype, tensors.weighted) for slots in scaled)
            stacks.append(replace(stack, alone=single) if alone else stack)
        return stacks

    def _stack_class(self, n_folds: int) -> type[LayerStack]:
        """Triton kernels if they can do it, plain operations otherwise."""
        from ngp.kernels.scoring_torch import LayerStack

        if self.gpu == "cpu" or self.dtype != np.float32 or find_spec("triton") is None:
            return LayerStack
        from ngp.kernels.scoring_triton import FusedStack, fits

        return FusedStack if fits(self.config.n_units, self.problem.n_outputs, n_folds) else LayerStack

    def _chunks(self, candidates: IntArray, stacks: list[LayerStack]) -> FloatArray:
        """Losses of candidates (n, m) that all add equally many columns, as many at a time as fit in the memory.

        Those of the selection as it is come last, if the stacks have it.
        """
        n, n_new = candidates.shape
        each, length = self._candidate_bytes(n_new), n
        if n * each > SMALL_MEMORY:
            length = max(1, self._free_memory(0.5) // each)
        chunks, alone = [], []
        for start in range(0, n, length):
            chunk = candidates[start : start + length]
            parts = []
            for number, stack in enumerate(stacks):
                columns = self._columns(chunk.ravel(), number).unflatten(0, chunk.shape)
                parts.append(self._part_losses(number, stack.predictions(columns)))
            losses = np.concatenate(parts, axis=1)
            chunks.append(counted_in(losses[: len(chunk)], len(chunk)))
            alone.append(losses[len(chunk) :])
            stacks = [replace(stack, alone=None) for stack in stacks]
        return np.concatenate([*chunks, *alone])

    def _candidate_bytes(self, n_new: int) -> int:
        """Memory that a candidate of so many columns takes, about."""
        rounds = zip(self.problem.rounds, self._rounds, strict=True)
        return max(
            self._stack_class(round_.n_folds).candidate_bytes(n_new, self.config.n_units, each.targets, round_.segments)
            for round_, each in rounds
        )

    def _part_losses(self, number: int, predictions: Tensor) -> FloatArray:
        """Losses in the parts of a round, from predictions (n, Q, J); for squared errors nothing else is fetched."""
        if self.problem.loss != "squared_error":
            round_, values = self.problem.rounds[number], self._coded(number, predictions)
            return round_.part_losses(self.problem.row_losses(values, round_.rows), self.problem.weights)
        errors = predictions.double() - self._rounds[number].targets[:, -predictions.shape[2] :]
        means: FloatArray = (errors.square_().mean(dim=1) @ self._rounds[number].shares).cpu().numpy()
        return means * self.target_scales[1] ** 2

    def _coded(self, number: int, predictions: Tensor) -> FloatArray:
        """Predictions (n, Q, J) of coded targets, in the order of a round: (n, rows, Q)."""
        mean, scale = self.target_scales
        values = predictions.mT.double().cpu().numpy() * scale + mean
        return np.pad(values, ((0, 0), (int(self.problem.rounds[number].segments[1]), 0), (0, 0)))

    def _tensor(self, values: AnyArray) -> Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self.gpu)

    def _free_memory(self, share: float) -> int:
        """Bytes to use; memory that torch keeps for itself counts as free."""
        import torch

        if self.gpu == "cpu":
            return int(share * CPU_MEMORY)
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return int(share * (torch.cuda.mem_get_info()[0] + kept))

    @cached_property
    def _rounds(self) -> list[_RoundTensors]:
        weights = self.problem.weights
        return [
            _RoundTensors(
                self._tensor(round_.rows.astype(np.int64)),
                self._tensor(self.scaled_targets(round_.rows).T),
                self._tensor(weights[round_.rows]),
                bool((weights[round_.rows] != 1).any()),
                self._tensor(_row_shares(round_, weights)),
            )
            for round_ in self.problem.rounds
        ]

    def _columns(self, columns: IntArray, number: int) -> Tensor:
        """Columns (n, J), samples in the order of a round."""
        if self._resident is None:
            return self._tensor(self.inputs(columns, self.problem.rounds[number].rows))
        return self._resident[number][self._tensor(columns.astype(np.int64))]

    @cached_property
    def _resident(self) -> list[Tensor] | None:
        """All columns for each round, samples last and in its order, if there is memory for them."""
        n_bytes = 8 * sum(len(round_.rows) for round_ in self.problem.rounds) * self.problem.n_columns
        if n_bytes > self._free_memory(COLUMNS_SHARE):
            return None
        columns = self._all_columns()
        return [columns[:, each.rows] for each in self._rounds]

    def _all_columns(self) -> Tensor:
        """All columns, scaled as `inputs` does; a plain array is scaled on the device."""
        import torch

        X, config, n_rows, n_columns = self.problem.X, self.config, self.problem.n_samples, self.problem.n_columns
        columns = torch.empty(n_columns, n_rows, dtype=torch.float64, device=self.gpu)
        length = max(1, 2**24 // n_rows)  # the GPU may have more memory than its host
        plain = isinstance(X, np.ndarray) and X.dtype in (np.float32, np.float64) and X.dtype.isnative
        for start in range(0, n_columns, length):
            chunk = np.arange(start, min(start + length, n_columns))
            if plain:
                columns[chunk[0] : chunk[-1] + 1] = self._tensor(read_columns(X, chunk).T).T
            else:
                columns[chunk[0] : chunk[-1] + 1] = self._tensor(self.inputs(chunk, np.arange(n_rows)))
        if plain and config.standardize:
            mean, scale = (self._tensor(each)[:, None] for each in self.problem.column_scales)
            bound = np.inf if config.clip is None else config.clip
            columns.sub_(mean).div_(scale).clamp_(-bound, bound)
        return columns


def _row_shares(round_: Round, weights: FloatArray) -> FloatArray:
    """Share of each row that doesn't always train in the mean loss of each part, (n_judged, n_parts)."""
    totals, judged = round_.part_weights(weights), np.arange(round_.parts[0], round_.parts[-1])
    part = np.searchsorted(round_.parts, judged, side="right") - 1
    shares = np.zeros((len(judged), len(totals)))
    shares[np.arange(len(judged)), part] = weights[round_.rows[judged]] / np.where(totals > 0, totals, 1)[part]
    return shares


@dataclass(frozen=True, eq=False)
class SSFNClusterScorer(SSFNGpuScorer):
    """An `SSFN` bound to a problem; workers of a cluster score the candidates, each on the GPU that it sees.

    A worker keeps the columns in the GPU's memory from step to step.
    """

    def _warm(self) -> None:
        """Leave it to the workers."""

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        n_chunks = 4 * int(effective_n_jobs(self.n_jobs))  # no worker waits long for the last one
        length = max(1, -(-len(candidates) // n_chunks))
        starts = range(0, len(candidates), length)
        arguments = [(selected, candidates.part(start, start + length)) for start in starts]
        counts = [len(some) for _, some in arguments]
        parts = run_tasks(_worker_losses, arguments, self.n_jobs, shared=(self.problem, self), counts=counts)
        return Losses(np.concatenate(parts), self.problem.part_weights)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out, by one of the workers."""
        return run_tasks(_worker_out_of_fold, [(selected, new)], self.n_jobs, shared=(self.problem, self))[0]


def _worker_out_of_fold(
    problem: Problem, scorer: SSFNGpuScorer, selected: IntArray, new: IntArray
) -> Sequence[AnyArray]:
    resolve_device(scorer.gpu, scorer.config.dtype)
    return SSFNGpuScorer.out_of_fold(scorer.on(problem), selected, new)


def _worker_losses(problem: Problem, scorer: SSFNGpuScorer, selected: IntArray, candidates: ColumnSets) -> FloatArray:
    resolve_device(scorer.gpu, scorer.config.dtype)  # raises an error if the worker sees no GPU
    return SSFNGpuScorer.add_losses(scorer.on(problem), selected, candidates).parts
