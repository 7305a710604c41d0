"""The multilayer perceptron of the paper, trained for all candidates of a step together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.devices import require_torch, resolve_device
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.kernels.perceptron import is_compiled, pack_parameters, train_perceptron
from ngp.predictors.base import Predictor, ScaledColumns, scaled_columns
from ngp.predictors.networks import NetworkScorer, Run

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ngp.kernels.stacks import StackedNetwork
    from ngp.kernels.training import Inputs

__all__ = ["MLP"]

# Inputs that a layer may have, columns or units, before its learning rate is lowered.
MOST_INPUTS, MOST_UNITS = 10, 50


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
        Number of networks, each with random numbers of its own, whose predictions are averaged.
    warm_start : bool, default=False
        Whether candidates begin with the trained network of the selection so far, the winner of the last step, and
        weights of zero for what is new, instead of random weights.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "refit_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "dtype": [StrOptions({"float32", "float64"})],
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
        warm_start: bool = False,
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
        self.warm_start = warm_start
        self.clip = clip
        self.refit_epochs = refit_epochs
        self.dtype = dtype

    def bind(
        self,
        problem: Problem,
        *,
        random_state: int,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> MLPScorer:
        """Prepare for one problem."""
        self._validate_params()
        require_torch("predictor='mlp'")
        device = resolve_device(device, self.dtype)
        return MLPScorer(self, problem, random_state, n_jobs, device)


@dataclass(frozen=True)
class MLPScorer(NetworkScorer):
    """An `MLP` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: MLP

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
        first, later = min(1, MOST_INPUTS / n_inputs), min(1, MOST_UNITS / self.config.n_units)
        return [self.config.learning_rate * rate for rate in [first] * 2 + [later] * (n_parameters - 2)]

    def adapt(self, network: StackedNetwork, sizes: IntArray, start: list[Tensor] | None) -> None:
        """Scale the first layer by the number of columns that a copy sees, or begin with a warm start."""
        import torch

        with torch.no_grad():
            if start is None:
                factors = self.tensor(np.sqrt(sizes.max() / np.maximum(sizes, 1)))
                network.parameters[0].mul_(factors[:, None, None])
                return
            for own, given in zip(network.parameters, start, strict=True):
                copies = given.repeat(len(own) // len(given), *[1] * (own.ndim - 1))
                own.zero_()
                own[..., : copies.shape[-1]] = copies  # new columns of the first layer stay at zero

    def estimates(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """Train, and estimate the scaled targets of rows (splits, rows): (candidates, splits, rows, outputs)."""
        if self.config.n_layers == 1 and self.device == "cpu" and is_compiled():
            return self._estimates_cpu(run, candidates, rows)
        if self.config.n_layers == 1 and self.device == "cuda" and self.dtype == "float32" and find_spec("triton"):
            from ngp.kernels.perceptron_gpu import OutOfResources, fits

            if fits(self.config.n_units, run.plan[0].shape[2], self.problem.n_outputs):
                with suppress(OutOfResources):  # of a smaller GPU
                    return self._estimates_gpu(run, candidates, rows)
        return super().estimates(run, candidates, rows)

    def _estimates_cpu(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """By the compiled kernel, one network at a time."""
        import torch

        targets = np.ascontiguousarray(self.targets.values.numpy())
        train = partial(
            train_perceptron,
            n_units=self.config.n_units,
            rates=self.rates(len(run.selected), 4)[1:3],
            weight_decay=self.config.weight_decay,
            loss=self.targets.loss,
        )
        starts = {size: self._packed_starts(run, size) for size in {len(new) for new in candidates}}
        plans = list(zip(*(np.ascontiguousarray(each.swapaxes(0, 1)) for each in run.plan), strict=True))
        known = self._scaled(run.selected)
        outputs = np.empty((len(candidates), *rows.shape, targets.shape[1]), self.dtype)
        for own, new in zip(outputs, candidates, strict=True):
            inputs = np.ascontiguousarray(np.concatenate([known, self._scaled(new)]).T, self.dtype)
            for f, start in enumerate(starts[len(new)]):
                own[f] = train(inputs, targets, start, plans[f], rows[f])
        return self.targets.coded(torch.from_numpy(outputs)).double().numpy()

    def _estimates_gpu(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """By the Triton kernel, all networks at once."""
        import torch

        from ngp.kernels.perceptron_gpu import train_perceptrons

        everything = torch.arange(self.problem.n_samples, device=self.device)
        outputs = train_perceptrons(
            self.inputs(run.selected, candidates)(everything[None])[:, 0],
            self.targets.values,
            [p.detach() for p in self.untrained(run, candidates).parameters],
            run.plan,
            rows,
            rates=self.rates(len(run.selected), 4)[1:3],
            weight_decay=self.config.weight_decay,
            loss=self.targets.loss,
        )
        return self.targets.coded(outputs).cpu().double().numpy()

    def _packed_starts(self, run: Run, n_new: int) -> list[AnyArray]:
        """Initial parameters of a network in each split, for the compiled kernel."""
        n_splits = run.plan[0].shape[1]
        if run.start is None:
            module = self.module(len(run.selected) + n_new, len(run.selected), run.draw)
            return [pack_parameters([p.detach().numpy() for p in module.parameters()], self.dtype)] * n_splits
        weights, *others = (p.numpy() for p in run.start)
        wider = np.pad(weights, ((0, 0), (0, 0), (0, n_new)))
        return [pack_parameters(layers, self.dtype) for layers in zip(wider, *others, strict=True)]

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
