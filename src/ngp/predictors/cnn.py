"""Convolutional networks on images of which only the selected pixels are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.devices import require_torch, resolve_device
from ngp.predictors.base import Predictor
from ngp.predictors.networks import NetworkScorer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ngp.kernels.stacks import StackedNetwork
    from ngp.kernels.training import Inputs

__all__ = ["CNN"]


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
    epochs : int, default=10
        Passes over the training rows.
    batch_size : int, default=32
        The largest number of rows in a step of the optimiser; an epoch is cut into batches as even as possible.
    learning_rate : float, default=0.003
        Of the first step; it falls to zero in the course of the training.
    weight_decay : float, default=0.0
        Decay of the weights, apart from the gradients (AdamW).
    n_draws : int, default=1
        Number of networks, each with random numbers of its own, whose predictions are averaged.
    warm_start : bool, default=False
        Whether candidates begin with the trained network of the selection so far, the winner of the last step.
    refit_epochs : int or "auto", default="auto"
        Epochs of the final network; ``"auto"`` takes `epochs` or three times as many, whichever does better on the
        folds.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the training.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "network": [StrOptions({"paper", "strong"}), callable],
        "image_shape": [tuple, list, None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "refit_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "dtype": [StrOptions({"float32", "float64"})],
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
        warm_start: bool = False,
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
        self.warm_start = warm_start
        self.refit_epochs = refit_epochs
        self.dtype = dtype

    def bind(
        self,
        problem: Problem,
        *,
        random_state: int,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> CNNScorer:
        """Prepare for one problem."""
        self._validate_params()
        require_torch("predictor='cnn'")
        shape = _image_shape(self.image_shape, problem.n_columns)
        device = resolve_device(device, self.dtype)
        scorer = CNNScorer(self, problem, random_state, n_jobs, device, shape)
        scorer.check_network()
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


@dataclass(frozen=True)
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
        from ngp.kernels.stacks import seeded

        with seeded(self.number(n_selected, draw)):
            return self.architecture(n_columns)()

    def check_network(self) -> None:
        """Refuse a network that doesn't return one row of outputs for each image."""
        import torch

        rows, cols, channels = self.shape
        module = self.module(0, 0, 0).eval()
        images = torch.zeros(2, channels, rows, cols)
        with torch.no_grad():
            outputs = module(images)
        expected = (2, self.problem.n_outputs)
        if not isinstance(outputs, torch.Tensor) or tuple(outputs.shape) != expected:
            found = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
            raise ValueError(
                f"network returned {found} for images of shape {tuple(images.shape)}: it must return {expected}, "
                "one row of outputs for each image."
            )

    @cached_property
    def _numbers_an_image(self) -> int:
        """Numbers in the outputs of all layers, and in the patches of the convolutions."""
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
        module = self.module(0, 0, 0).eval()
        for each in module.modules():
            each.register_forward_hook(count)
        with torch.no_grad():
            module(torch.zeros(1, channels, rows, cols))
        return max(1, total)

    def numbers(self, n_columns: int) -> int:
        """About how many numbers the layers of one network hold while it is trained with a batch."""
        return self._numbers_an_image * self.config.batch_size

    @cached_property
    def scale(self) -> float:
        """What all pixels are divided by: their root mean square, where they vary."""
        mean, deviation = self.problem.column_statistics
        varies = self.problem.varies
        return float(np.sqrt((mean[varies] ** 2 + deviation[varies] ** 2).mean()))

    @cached_property
    def images(self) -> Tensor:
        """All images on the device."""
        return self.tensor(np.asarray(self.problem.array, dtype=self.dtype) / np.asarray(self.scale, dtype=self.dtype))

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

    def adapt(self, network: StackedNetwork, sizes: IntArray, start: list[Tensor] | None) -> None:
        """Begin with a warm start, where there is one."""
        import torch

        with torch.no_grad():
            for own, given in zip(network.parameters, start or (), strict=start is not None):
                own.copy_(given.repeat(len(own) // len(given), *[1] * (own.ndim - 1)))


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

        from ngp.kernels.convolutional import NETWORKS

        make = NETWORKS[self.network] if isinstance(self.network, str) else self.network
        module = make(self.image, self.n_outputs)
        if not isinstance(module, nn.Module):
            raise TypeError(f"network returned a {type(module).__name__}: it must return a torch.nn.Module.")
        return module
