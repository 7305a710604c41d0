"""Networks trained by gradient descent, the multilayer perceptron and the convolutional network of the paper.

All candidates of a step are trained together: they begin with the same weights and see the same batches.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby, pairwise, product
from math import ceil, inf, isfinite, isqrt, prod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._progress import counted_in
from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.problem import Problem, root_mean_square
from ngp.kernels.devices import require_torch, resolve_device
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.kernels.parallel import run_tasks
from ngp.kernels.scoring import _kernels
from ngp.predictors.base import BoundScorer, ColumnSets, Losses, Predictor, ScaledColumns, scaled_columns

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ngp.kernels.networks import Inputs, StackedNetwork, Targets

__all__ = ["CNN", "MLP", "NetworkPredictor", "one_torch_thread"]

# Numbers in the layers of the networks that are trained together: what stays in the cache of a core, or a share of
# the free memory of a GPU (four bytes each, and several times as many for gradients and what autograd keeps).
CPU_NUMBERS = 1 << 20
GPU_SHARE = 1 / 40
SHORT_TRAINING = 0.3  # share of the epochs, in the first stage of a race
# Rows that are predicted together.
PREDICTED_ROWS = 256
# Keys of the random order of rows: in the steps of a pursuit, and for the final network.
STEP_STREAM, FINAL_STREAM = range(2)

Split = tuple[int, int]  # a round, and a fold in it
CONSTRAINTS: dict[str, list[Any]] = {
    "epochs": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "n_draws": [Interval(Integral, 1, None, closed="left")],
    "refit_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "dtype": [StrOptions({"float32", "float64"})],
}


class MLP(Predictor, BaseEstimator):  # type: ignore[misc]
    """A multilayer perceptron, trained by Adam.

    All candidates of a step begin with the same weights and see the same batches. The learning rate falls to zero
    in the course of the training.

    Parameters
    ----------
    n_units : int, default=500
        Number of ReLU units in a hidden layer.
    n_layers : int, default=1
        Number of hidden layers.
    epochs : int, default=10
        Passes over the training rows.
    batch_size : int, default=32
        The largest number of rows in a step of the optimiser; an epoch is cut into batches as even as possible.
    learning_rate : float, default=0.05
        Of the first step, and for up to ten inputs. Layers with more of them learn more slowly, since all their
        weights act together: the first layer 10 / d times as fast, with d the number of columns that are selected
        and those of a typical candidate, a layer fed by units 50 / n_units times.
    weight_decay : float, default=0.0
        Decay of the weights, apart from the gradients (AdamW).
    n_draws : int, default=2
        Number of networks, each with random numbers of its own, whose predictions are averaged. All candidates of a
        step are first trained with one, for three tenths of the epochs; those that may still be the best with all.
    clip : float or None, default=4.0
        Standardised inputs are held within so many deviations.
    refit_epochs : int or "auto", default="auto"
        Epochs of the final network; ``"auto"`` takes `epochs` or three times as many, whichever does better on the
        folds.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the training.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, _ = make_ohm(300, random_state=0)
    >>> selector = NeuralGreedyPursuit(MLP(n_units=50), n_features_to_select=2, random_state=0).fit(X, y)
    >>> sorted(selector.order_.tolist())
    [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
    }
    classification_loss = "cross_entropy"
    uses_gpu = True

    def __init__(
        self,
        *,
        n_units: int = 500,
        n_layers: int = 1,
        epochs: int = 10,
        batch_size: int = 32,
        learning_rate: float = 0.05,
        weight_decay: float = 0.0,
        n_draws: int = 2,
        clip: float | None = 4.0,
        refit_epochs: int | Literal["auto"] = "auto",
        dtype: str = "float32",
    ) -> None:
        self.n_units = n_units
        self.n_layers = n_layers
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.n_draws = n_draws
        self.clip = clip
        self.refit_epochs = refit_epochs
        self.dtype = dtype

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> MLPScorer:
        """Prepare for one problem."""
        self._validate_params()
        require_torch("predictor='mlp'")
        device = resolve_device(device, self.dtype)
        work = ceil(self.n_draws * self.epochs / short_training(self.epochs))
        return MLPScorer(self, problem, random_state, n_jobs, device, work)


class CNN(Predictor, BaseEstimator):  # type: ignore[misc]
    """A convolutional network on images; pixels that aren't selected are zero.

    The columns of X are the pixels of the images in C order. All candidates of a step begin with the same weights,
    see the same batches and drop the same units.

    Parameters
    ----------
    network : {"paper", "strong"} or callable, default="paper"
        ``"paper"`` is the paper's network: two convolutions with 32 and 64 filters of 3 x 3, each with ReLU and a
        2 x 2 maximum, then dropout and a linear layer. ``"strong"`` has a third one with 128 filters, larger filters
        at first, and a margin of zeros, so that the edges of an image count too; it takes longer. A callable is given
        the image's shape as (channels, rows, cols) and the number of outputs, and returns a `torch.nn.Module` that
        maps images (batch, channels, rows, cols) to outputs (batch, n_outputs): class scores before any softmax, or
        values. It must draw its initial weights from torch's global generator, which is seeded. Layers with batch
        statistics work, but their statistics include rows that only fill up a batch.
    image_shape : tuple of int or None, default=None
        Rows and cols, or rows, cols and channels. None takes the images for square with one channel.
    epochs, batch_size
        As of `MLP`.
    learning_rate : float, default=0.003
        Of the first step; it falls to zero in the course of the training.
    weight_decay
        As of `MLP`.
    n_draws : int, default=1
        Number of networks, each with random numbers of its own, whose predictions are averaged.
    refit_epochs, dtype
        As of `MLP`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.data.groups import image_windows
    >>> X, y = load_digits(return_X_y=True)
    >>> selector = NeuralGreedyPursuit(
    ...     CNN(image_shape=(8, 8), epochs=2), groups=image_windows((8, 8), 4), n_features_to_select=1, random_state=0
    ... ).fit(X[:300], y[:300])
    >>> int(selector.support_.sum())
    16
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {
        "network": [StrOptions({"paper", "strong"}), callable],
        "image_shape": [tuple, list, None],
    }
    classification_loss = "cross_entropy"
    uses_gpu = True

    def __init__(
        self,
        *,
        network: str | Callable[[tuple[int, int, int], int], nn.Module] = "paper",
        image_shape: tuple[int, ...] | None = None,
        epochs: int = 10,
        batch_size: int = 32,
        learning_rate: float = 0.003,
        weight_decay: float = 0.0,
        n_draws: int = 1,
        refit_epochs: int | Literal["auto"] = "auto",
        dtype: str = "float32",
    ) -> None:
        self.network = network
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.n_draws = n_draws
        self.refit_epochs = refit_epochs
        self.dtype = dtype

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> CNNScorer:
        """Prepare for one problem."""
        self._validate_params()
        require_torch("predictor='cnn'")
        shape = _image_shape(self.image_shape, problem.n_columns)
        device = resolve_device(device, self.dtype)
        scorer = CNNScorer(self, problem, random_state, n_jobs, device, shape)
        scorer.numbers(0)  # refuses a network that returns something else
        return scorer


def _image_shape(given: Sequence[int] | None, n_columns: int) -> tuple[int, int, int]:
    """Rows, columns and channels of the images."""
    if given is None:
        side = isqrt(n_columns)
        if side * side != n_columns:
            raise ValueError(f"image_shape=None, and X with {n_columns} columns is no square image: give image_shape.")
        return side, side, 1
    if len(given) not in (2, 3) or not all(isinstance(n, Integral) and n > 0 for n in given):
        raise ValueError(f"image_shape={given!r} must be (rows, cols) or (rows, cols, channels).")
    if prod(given) != n_columns:
        raise ValueError(
            f"image_shape={tuple(given)!r} has {prod(given)} pixels, and X has {n_columns} columns: "
            "give the shape of the images whose pixels the columns are."
        )
    rows, cols, channels = (*given, 1)[:3]
    return rows, cols, channels


def short_training(epochs: int) -> int:
    """Epochs after which it is known which candidates may be the best."""
    return ceil(SHORT_TRAINING * epochs)


@dataclass(frozen=True)
class Run:
    """One training of the candidates of a step."""

    selected: IntArray  # S, the columns that are selected already
    draw: int  # number of the draw, which the initial weights and the batches depend on
    splits: list[Split]  # the splits in which the networks are trained, each a round and a fold in it
    plan: tuple[IntArray, FloatArray]  # the batches (see `ngp.kernels.networks.plan_batches`)


@dataclass(frozen=True, eq=False)
class NetworkScorer(BoundScorer):
    """A torch network bound to a problem (see `ngp.predictors.base.Scorer`)."""

    device: str

    @abstractmethod
    def module(self, n_columns: int, n_selected: int, draw: int) -> nn.Module:
        """Make a network of the step after `n_selected` columns, with the initial weights that candidates share."""

    @abstractmethod
    def architecture(self, n_columns: int) -> Callable[[], nn.Module]:
        """Make what makes a network of so many inputs, with weights of no meaning."""

    @abstractmethod
    def inputs(self, selected: IntArray, candidates: Sequence[IntArray]) -> Inputs:
        """What the networks of S + g see."""

    @abstractmethod
    def numbers(self, n_columns: int) -> int:
        """About how many numbers the layers of one network hold while it is trained with a batch."""

    @abstractmethod
    def reader(self, selected: IntArray) -> Callable[[AnyArray], FloatArray]:
        """Make the picklable function from X to the inputs of the final network."""

    @cached_property
    def target_scales(self) -> tuple[FloatArray, float]:
        """Mean of each target and one common deviation; classes under a loss of their own stay as they are."""
        if self.problem.loss != "squared_error":
            return np.zeros(self.problem.n_outputs), 1.0
        return self.problem.target_scales

    @cached_property
    def targets(self) -> Targets:
        """Scaled targets on the device."""
        from ngp.kernels.networks import Targets

        mean, scale = self.target_scales
        return Targets(self.tensor((self.problem.targets - mean) / scale), self.problem.loss)

    def tensor(self, values: AnyArray) -> Tensor:
        """Put numbers on the device, in the precision of the networks."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(values, dtype=self.config.dtype)).to(self.device)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        with one_torch_thread():
            step = _Step.of(self, selected, self.config.epochs)
            shared = self.problem, self, step
            order = np.argsort(candidates.sizes, kind="stable")  # so that candidates of one size are together
            length = self._chunk_length(len(candidates), len(selected) + int(candidates.sizes.max()))
            chunks = [order[i : i + length] for i in range(0, len(order), length)]
            arguments = [([candidates[i] for i in chunk],) for chunk in chunks]
            if self.device == "cpu":
                losses = run_tasks(_step_losses, arguments, self.n_jobs, shared=shared, counts=map(len, chunks))
            else:  # a GPU gains nothing from threads
                losses = [counted_in(_step_losses(*shared, *each), len(each[0])) for each in arguments]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        parts[order] = np.concatenate(losses)
        return Losses(parts, self.problem.part_weights)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out."""
        selected, new = (np.asarray(columns, dtype=np.intp) for columns in (selected, new))
        with one_torch_thread():
            step = _Step.of(self, selected, self.config.epochs)
            return [values[0] for values in _predictions(self.problem, self, step, [new])]

    def _chunk_length(self, n_candidates: int, n_columns: int) -> int:
        """Number of candidates that are trained together; it doesn't depend on the number of jobs."""
        import torch

        n_splits = max(len(group) for group in self.split_groups)
        most = CPU_NUMBERS // (n_splits * self.numbers(n_columns))
        if self.device == "cpu":
            return max(1, min(most, -(-n_candidates // 16)))  # so that its cores have something to share
        if self.device == "cuda":
            most = int(torch.cuda.mem_get_info()[0] * GPU_SHARE) // (4 * n_splits * self.numbers(n_columns))
        return max(1, most)

    @cached_property
    def split_groups(self) -> list[list[Split]]:
        """Splits that take equally many steps of the optimiser, and so can be trained together."""
        rounds = self.problem.rounds
        splits = [(r, f) for r, round_ in enumerate(rounds) for f in range(round_.n_folds)]
        ordered = sorted(splits, key=self._n_batches)  # stable
        return [list(group) for _, group in groupby(ordered, key=self._n_batches)]

    def _n_batches(self, split: Split) -> int:
        from ngp.kernels.networks import n_batches

        return n_batches(len(self.training_rows(split)), self.config.batch_size)

    def training_rows(self, split: Split) -> IntArray:
        """Rows of a split that train; those without weight have no say."""
        rows = self.problem.rounds[split[0]].training(split[1])
        return rows[self.problem.weights[rows] > 0]

    def plan(
        self, splits: list[IntArray], epochs: int, n_selected: int, draw: int, stream: int = STEP_STREAM
    ) -> tuple[IntArray, FloatArray]:
        """Cut the training rows into batches."""
        from ngp.kernels.networks import plan_batches

        key = self.seed, stream, n_selected, draw
        return plan_batches(splits, self.problem.weights, self.config.batch_size, epochs, key)

    def trained(self, run: Run, candidates: Sequence[IntArray], inputs: Inputs) -> StackedNetwork:
        """Networks of all candidates, trained in each split of a run."""
        from ngp.kernels.networks import train

        network = self.untrained(run, candidates)
        rates = self.rates(len(run.selected), len(network.parameters))
        train(network, inputs, self.targets, run.plan, rates=rates, weight_decay=self.config.weight_decay)
        return network

    def untrained(self, run: Run, candidates: Sequence[IntArray]) -> StackedNetwork:
        """Networks of all candidates for each split of a run, as they begin."""
        import torch

        from ngp.kernels.networks import StackedNetwork

        n_selected, dtype = len(run.selected), getattr(torch, self.config.dtype)
        sizes = np.repeat([n_selected + len(new) for new in candidates], run.plan[0].shape[1])
        module, seed = self.module(int(sizes.max()), n_selected, run.draw), self.number(n_selected, run.draw)
        network = StackedNetwork(module, len(sizes), device=self.device, dtype=dtype, seed=seed)
        with torch.no_grad():
            self.adapt(network, sizes)
        return network

    def adapt(self, network: StackedNetwork, sizes: IntArray) -> None:
        """Make the initial weights fit candidates of several sizes."""

    def estimates(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """Train, and estimate the scaled targets of rows (splits, rows): (candidates, splits, rows, outputs)."""
        from ngp.kernels.networks import predict

        inputs = self.inputs(run.selected, candidates)
        return predict(self.trained(run, candidates, inputs), inputs, self.targets, rows, PREDICTED_ROWS)

    def rates(self, n_selected: int, n_parameters: int) -> list[float]:
        """Learning rate of each parameter in the step after `n_selected` columns."""
        return [self.config.learning_rate] * n_parameters

    def number(self, *key: int) -> int:
        """A seed for torch, made of the pursuit's and a key."""
        return int(np.random.SeedSequence([self.seed, *key]).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def without_search(self, ridge: float) -> Self:
        """The scorer whose final network is trained for as many epochs as in the pursuit, unless these are given."""
        config = self.config
        epochs = config.epochs if config.refit_epochs == "auto" else config.refit_epochs
        return replace(self, config=clone(config).set_params(refit_epochs=epochs))

    def fit(self, selected: IntArray) -> NetworkPredictor:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        with one_torch_thread():
            epochs = self._refit_epochs(selected)
            modules = tuple(self._final_module(selected, epochs, draw) for draw in range(self.config.n_draws))
        architecture = self.architecture(len(selected))
        return NetworkPredictor(self.reader(selected), architecture, modules, self.problem.loss, *self.target_scales)

    def _final_module(self, selected: IntArray, epochs: int, draw: int) -> nn.Module:
        rows, size = np.flatnonzero(self.problem.weights[: self.problem.n_fit] > 0), len(selected)
        run = Run(selected, draw, [], self.plan([rows], epochs, size, draw, FINAL_STREAM))
        nothing = [selected[:0]]
        network = self.trained(run, nothing, self.inputs(selected, nothing))
        module = self.module(size, size, draw).to(network.parameters[0].dtype)
        return network.copy_into(0, module).eval()

    def _refit_epochs(self, selected: IntArray) -> int:
        """For how many epochs to train the final network."""
        config = self.config
        if config.refit_epochs != "auto":
            return int(config.refit_epochs)
        losses = []
        for factor in (1, 3):
            step = _Step.of(self, selected, config.epochs * factor)
            parts = _step_losses(self.problem, self, step, [selected[:0]])[0]
            loss = float(parts @ self.problem.part_weights)
            losses.append((loss if isfinite(loss) else inf, factor))
        return int(config.epochs * min(losses)[1])


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: how they are trained."""

    runs: list[Run]

    @classmethod
    def of(cls, scorer: NetworkScorer, selected: IntArray, epochs: int) -> _Step:
        runs = []
        for splits, draw in product(scorer.split_groups, range(scorer.config.n_draws)):
            plan = scorer.plan([scorer.training_rows(split) for split in splits], epochs, len(selected), draw)
            runs.append(Run(selected, draw, splits, plan))
        return cls(runs)


def _step_losses(problem: Problem, scorer: NetworkScorer, step: _Step, candidates: list[IntArray]) -> FloatArray:
    """Losses of a few candidates in all parts of the validation."""
    return problem.part_losses(iter(_predictions(problem, scorer.on(problem), step, candidates)))


def _predictions(problem: Problem, scorer: NetworkScorer, step: _Step, candidates: list[IntArray]) -> list[FloatArray]:
    """Out-of-fold predictions with a few candidates in each round; draws are averaged."""
    rounds = problem.rounds
    predictions = [np.zeros((len(candidates), len(round_.rows), problem.n_outputs)) for round_ in rounds]
    mean, scale = scorer.target_scales
    with one_torch_thread():
        for run in step.runs:
            judged = [rounds[r].validation(f) for r, f in run.splits]
            rows = np.zeros((len(judged), max(map(len, judged))), dtype=np.intp)
            for own, known in zip(rows, judged, strict=True):
                own[: len(known)] = known
            outputs = scorer.estimates(run, candidates, rows) * (scale / scorer.config.n_draws)
            for i, (r, f) in enumerate(run.splits):
                first, last = rounds[r].segments[f + 1 : f + 3]
                predictions[r][:, first:last] += outputs[:, i, : last - first]
    return [values + mean for values in predictions]


class _OneTorchThread:
    """Tasks run side by side, each in a thread of its own: torch needs no more of them.

    The number of torch's threads is that of the thread that sets it and of those that begin later. So each thread
    gets back what the first of them found.
    """

    def __init__(self) -> None:
        self._lock, self._own, self._users = threading.Lock(), threading.local(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        import torch

        if getattr(self._own, "inside", False):
            yield
            return
        with self._lock:
            found = torch.get_num_threads()  # asked for always: a thread's first question would undo what it has set
            if self._users == 0:
                self._before = found
            self._users += 1
            torch.set_num_threads(1)
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            with self._lock:
                self._users -= 1
                torch.set_num_threads(self._before)


one_torch_thread = _OneTorchThread()


@dataclass(frozen=True, eq=False)
class MLPScorer(NetworkScorer):
    """An `MLP` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: MLP
    n_layers: int = 1  # how many short trainings take as long

    @property
    def stages(self) -> Sequence[MLPScorer]:
        """A short training of one network for all candidates, whole trainings for the leaders."""
        if self.n_layers == 1:
            return (self,)
        config = clone(self.config).set_params(epochs=short_training(self.config.epochs), n_draws=1)
        return replace(self, config=config, n_layers=1), self

    def architecture(self, n_columns: int) -> Perceptron:
        """Make what makes a network of so many inputs, with weights of no meaning."""
        return Perceptron((n_columns, *[self.config.n_units] * self.config.n_layers, self.problem.n_outputs))

    def module(self, n_columns: int, n_selected: int, draw: int) -> nn.Module:
        """Make a network of the step after `n_selected` columns, with the initial weights that candidates share."""
        import torch
        from torch import nn

        module, n_units = self.architecture(n_columns)(), self.config.n_units
        *hidden, output = (layer for layer in module if isinstance(layer, nn.Linear))
        with torch.no_grad():
            for number, layer in enumerate(hidden):
                key = (draw, n_selected, number)
                gain = 1 if number == 0 else 2  # half of the units of a layer are zero
                weights = draw_weights(self.seed, key, layer.in_features, n_units)
                layer.weight.copy_(torch.from_numpy(weights.T * np.sqrt(gain / max(1, layer.in_features))))
                if number == 0:  # kinks all over the range of the inputs
                    layer.bias.copy_(torch.from_numpy(draw_biases(self.seed, key, n_units)))
                else:
                    layer.bias.zero_()
            output.weight.zero_()  # begins as the constant prediction: nothing random has to be unlearned
            output.bias.zero_()
        return module

    def rates(self, n_selected: int, n_parameters: int) -> list[float]:
        """Learning rate of each parameter in the step after `n_selected` columns."""
        n_inputs = n_selected + self.problem.groups.typical_size
        first, later = min(1, 10 / n_inputs), min(1, 50 / self.config.n_units)
        return [self.config.learning_rate * rate for rate in [first] * 2 + [later] * (n_parameters - 2)]

    def adapt(self, network: StackedNetwork, sizes: IntArray) -> None:
        """Scale the first layer by the number of columns that a copy sees."""
        network.parameters[0].mul_(self.tensor(np.sqrt(sizes.max() / np.maximum(sizes, 1)))[:, None, None])

    def estimates(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """Train, and estimate the scaled targets of rows (splits, rows): (candidates, splits, rows, outputs)."""
        config = self.config
        if config.n_layers == 1 and self.device == "cpu" and _kernels is not None:
            return self._estimates_cpu(run, candidates, rows)
        if config.n_layers == 1 and self.device == "cuda" and config.dtype == "float32" and find_spec("triton"):
            from ngp.kernels.perceptron_gpu import OutOfResources, fits

            if fits(config.n_units, run.plan[0].shape[2], self.problem.n_outputs, self.problem.loss):
                with suppress(OutOfResources):  # of a smaller GPU
                    return self._estimates_gpu(run, candidates, rows)
        return super().estimates(run, candidates, rows)

    def _settings(self, run: Run) -> dict[str, Any]:
        rates = self.rates(len(run.selected), 4)[1:3]
        return {"rates": rates, "weight_decay": self.config.weight_decay, "loss": self.problem.loss}

    def _estimates_cpu(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """By the compiled kernel, one network at a time."""
        import torch

        from ngp.kernels.networks import pack_parameters, train_perceptron

        dtype, known, targets = self.config.dtype, self._scaled(run.selected), self.targets.values.numpy()

        def start(n_new: int) -> AnyArray:
            module = self.module(len(run.selected) + n_new, len(run.selected), run.draw)
            return pack_parameters([p.detach().numpy() for p in module.parameters()], dtype)

        starts = {n_new: start(n_new) for n_new in {len(new) for new in candidates}}
        settings = self._settings(run) | {"n_units": self.config.n_units}
        plans = list(zip(*(np.ascontiguousarray(each.swapaxes(0, 1)) for each in run.plan), strict=True))
        outputs = np.empty((len(candidates), *rows.shape, targets.shape[1]), dtype)
        for own, new in zip(outputs, candidates, strict=True):
            inputs = np.ascontiguousarray(np.concatenate([known, self._scaled(new)]).T, dtype)
            for split, judged in enumerate(rows):
                own[split] = train_perceptron(inputs, targets, starts[len(new)], plans[split], judged, **settings)
        return self.targets.coded(torch.from_numpy(outputs)).double().numpy()

    def _estimates_gpu(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """By the Triton kernel, all networks at once."""
        import torch

        from ngp.kernels.perceptron_gpu import train_perceptrons

        every = torch.arange(self.problem.n_samples, device=self.device)
        inputs = self.inputs(run.selected, candidates)(every[None])[:, 0]
        layers = [p.detach() for p in self.untrained(run, candidates).parameters]
        outputs = train_perceptrons(inputs, self.targets.values, layers, run.plan, rows, **self._settings(run))
        return self.targets.coded(outputs).cpu().double().numpy()

    def numbers(self, n_columns: int) -> int:
        """About how many numbers the layers of one network hold while it is trained with a batch."""
        config, n_samples = self.config, self.problem.n_samples
        return config.n_layers * config.n_units * config.batch_size + (config.n_units + n_samples) * n_columns

    def inputs(self, selected: IntArray, candidates: Sequence[IntArray]) -> Inputs:
        """What the networks of S + g see; columns of zeros fill up the smaller ones."""
        import torch

        known = self.tensor(self._scaled(selected).T)
        widest = max(map(len, candidates))
        new = np.zeros((len(candidates), widest, self.problem.n_samples))
        sizes = np.array([len(columns) for columns in candidates])
        new[np.arange(widest) < sizes[:, None]] = self._scaled(np.concatenate(candidates))
        added = self.tensor(new.transpose(0, 2, 1))

        def take(rows: Tensor) -> Tensor:
            shared = known[rows].expand(len(candidates), -1, -1, -1)
            return torch.cat([shared, added[:, rows]], dim=-1)

        return take

    def _scaled(self, columns: IntArray) -> FloatArray:
        return scaled_columns(self.problem, columns, np.arange(self.problem.n_samples), self.config.clip)

    def reader(self, selected: IntArray) -> Callable[[AnyArray], FloatArray]:
        """Make the picklable function from X to the inputs of the final network."""
        return ScaledColumns.of(self.problem, selected, self.config.clip)


@dataclass(frozen=True, eq=False)
class CNNScorer(NetworkScorer):
    """A `CNN` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: CNN
    shape: tuple[int, int, int]

    def architecture(self, n_columns: int) -> ImageNetwork:
        """Make what makes a network, with weights of no meaning."""
        rows, cols, channels = self.shape
        return ImageNetwork(self.config.network, (channels, rows, cols), self.problem.n_outputs)

    def module(self, n_columns: int, n_selected: int, draw: int) -> nn.Module:
        """Make a network of the step after `n_selected` columns, with the initial weights that candidates share."""
        from ngp.kernels.networks import seeded

        with seeded(self.number(n_selected, draw)):
            return self.architecture(n_columns)()

    @cached_property
    def _numbers_an_image(self) -> int:
        """Numbers in the outputs of all layers, and in the patches of the convolutions; a wrong network is refused."""
        import torch
        from torch import nn

        total = 0

        def count(module: nn.Module, inputs: Any, outputs: Any) -> None:
            nonlocal total
            if isinstance(outputs, torch.Tensor) and not list(module.children()):
                total += outputs.numel()
                if isinstance(module, nn.Conv2d):
                    total += outputs.numel() // module.out_channels * module.weight[0].numel()

        rows, cols, channels = self.shape
        images, module = torch.zeros(2, channels, rows, cols), self.module(0, 0, 0).eval()
        for each in module.modules():
            each.register_forward_hook(count)
        with torch.no_grad():
            outputs = module(images)
        expected = (2, self.problem.n_outputs)
        if not isinstance(outputs, torch.Tensor) or tuple(outputs.shape) != expected:
            found = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
            raise ValueError(
                f"network returned {found} for images of shape {tuple(images.shape)}: it must return {expected}, "
                "one row of outputs for each image."
            )
        return max(1, total // len(images))

    def numbers(self, n_columns: int) -> int:
        """About how many numbers the layers of one network hold while it is trained with a batch."""
        return self._numbers_an_image * self.config.batch_size

    @cached_property
    def scale(self) -> float:
        """What all pixels are divided by: their root mean square, where they vary."""
        mean, deviation = (each[self.problem.varies] for each in self.problem.column_statistics)
        return root_mean_square(np.hypot(mean, deviation))

    @cached_property
    def images(self) -> Tensor:
        """All images on the device."""
        dtype = np.dtype(self.config.dtype)
        X = self.problem.array
        return self.tensor(np.divide(X, self.scale, dtype=np.result_type(X, dtype)).astype(dtype, copy=False))

    def inputs(self, selected: IntArray, candidates: Sequence[IntArray]) -> Inputs:
        """What the networks of S + g see."""
        rows, cols, channels = self.shape
        masks = np.zeros((len(candidates), self.problem.n_columns))
        masks[:, selected] = 1
        for mask, new in zip(masks, candidates, strict=True):
            mask[new] = 1
        seen = self.tensor(masks)[:, None, None]
        images = self.images

        def take(numbers: Tensor) -> Tensor:
            pixels = images[numbers] * seen
            return pixels.reshape(*pixels.shape[:3], rows, cols, channels).permute(0, 1, 2, 5, 3, 4)

        return take

    def reader(self, selected: IntArray) -> Callable[[AnyArray], FloatArray]:
        """Make the picklable function from X to the inputs of the final network."""
        seen = np.zeros(self.problem.n_columns, dtype=bool)
        seen[selected] = True
        return SeenPixels(seen, self.scale, self.shape)


@dataclass(frozen=True)
class NetworkPredictor:
    """The final networks, on the CPU; their predictions are averaged."""

    reader: Callable[[AnyArray], FloatArray]
    architecture: Callable[[], nn.Module]  # makes a network like the others
    modules: tuple[nn.Module, ...]
    loss: str
    target_mean: FloatArray
    target_scale: float

    def __getstate__(self) -> dict[str, Any]:
        """Weights as plain arrays, since a file that may hold torch's own objects could run any code."""
        weights = [{name: values.numpy() for name, values in module.state_dict().items()} for module in self.modules]
        return vars(self) | {"modules": weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import torch

        from ngp.kernels.networks import seeded

        modules = []
        for weights in state["modules"]:
            with seeded(0):  # whatever is drawn is replaced
                module = state["architecture"]()
            # Copied, since torch aligns its own memory, and sums can depend on that in their last bits.
            module.load_state_dict({name: torch.tensor(values) for name, values in weights.items()}, assign=True)
            modules.append(module.eval())
        vars(self).update(state, modules=tuple(modules))

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        import torch

        from ngp.kernels.networks import Targets

        dtype = next(self.modules[0].parameters()).dtype
        targets = Targets(torch.zeros(0), self.loss)
        results = []
        with torch.no_grad():
            for start in range(0, len(X), PREDICTED_ROWS):
                x = torch.from_numpy(self.reader(X[start : start + PREDICTED_ROWS])).to(dtype)
                results.append(np.mean([targets.coded(module(x)).double().numpy() for module in self.modules], axis=0))
        return np.concatenate(results) * self.target_scale + self.target_mean


@dataclass(frozen=True)
class Perceptron:
    """Makes perceptrons whose weights are still to be set."""

    sizes: tuple[int, ...]  # of the inputs, the hidden layers and the output

    def __call__(self) -> nn.Sequential:
        """Make one."""
        import torch
        from torch import nn
        from torch.nn.utils import skip_init  # torch's own random numbers are left alone

        layers: list[nn.Module] = []
        for n_inputs, n_units in pairwise(self.sizes):
            layers += [skip_init(nn.Linear, n_inputs, n_units, dtype=torch.float64), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


@dataclass(frozen=True)
class SeenPixels:
    """Takes the selected pixels of X, and puts zeros for the others."""

    seen: BoolArray
    scale: float
    shape: tuple[int, int, int]

    def __call__(self, X: AnyArray) -> FloatArray:
        """Images of shape (n_samples, channels, rows, cols)."""
        pixels = np.zeros(X.shape, X.dtype)
        pixels[:, self.seen] = X[:, np.flatnonzero(self.seen)]
        pixels = pixels / self.scale
        return np.ascontiguousarray(pixels.reshape(-1, *self.shape).transpose(0, 3, 1, 2))


@dataclass(frozen=True)
class ImageNetwork:
    """Makes networks by the name or the function that `CNN` was given."""

    network: str | Callable[[tuple[int, int, int], int], nn.Module]
    image: tuple[int, int, int]
    n_outputs: int

    def __call__(self) -> nn.Module:
        """Make one, with weights from torch's global generator."""
        from torch import nn

        if isinstance(self.network, str):
            return convolutional(self.network, self.image, self.n_outputs)
        module = self.network(self.image, self.n_outputs)
        if not isinstance(module, nn.Module):
            raise TypeError(f"network returned a {type(module).__name__}: it must return a torch.nn.Module.")
        return module


def convolutional(name: str, image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make the network "paper" or "strong" (see `CNN`); a maximum is left out where the image is too small for it."""
    from torch import nn

    filters, margin = (((32, 3), (64, 3)), False) if name == "paper" else (((32, 5), (64, 3), (128, 3)), True)
    layers: list[nn.Module] = []
    channels, rows, cols = image
    for n, size in filters:
        lost = 0 if margin else size - 1
        layers += [nn.Conv2d(channels, n, size, padding=size // 2 if margin else 0), nn.ReLU()]
        channels, rows, cols = n, rows - lost, cols - lost
        if min(rows, cols) < 1:
            raise ValueError(
                f"image_shape: images of {image[1]} x {image[2]} pixels are too small for this network: give larger "
                "ones, or a network of your own."
            )
        if min(rows, cols) > 1:
            layers.append(nn.MaxPool2d(2))
            rows, cols = rows // 2, cols // 2
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Flatten(), nn.Linear(channels * rows * cols, n_outputs))
