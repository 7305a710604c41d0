"""Many copies of one torch network, each with parameters of its own, evaluated and trained together.

A `torch.nn.Sequential` of the usual layers is evaluated by batched matrix products, with the copies as one more
dimension of every tensor. Any other network goes through `torch.func.vmap`, and what that can't batch (a network
with running statistics, say) through a loop over the copies.

In training, the copies are all pairs of a candidate and a split (a fold's training rows), candidate after candidate;
they see the same batches and have the same optimiser. A perceptron with one hidden layer can also be trained by the
compiled kernel, one copy at a time within the cache, or by that of `ngp.kernels.perceptron_gpu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.kernels.scoring import _kernels, padded_width

__all__ = [
    "LOSS_NUMBERS", "Inputs", "StackedNetwork", "Targets", "n_batches", "pack_parameters", "plan_batches", "predict",
    "seeded", "train", "train_perceptron",
]  # fmt: skip

# A layer of the stack: its inputs, the parameters of its own, and whether it is training; images have channels last.
Layer = Callable[..., Tensor]
# Inputs of a stack, (candidates, splits, batch, ...), for row numbers (splits, batch).
Inputs = Callable[[Tensor], Tensor]

RANDOM_NUMBERS = Lock()
LOSS_NUMBERS = {"squared_error": 0, "cross_entropy": 1, "hinge": 2}  # as in _task.h


@dataclass(frozen=True)
class Targets:
    """What the networks learn."""

    values: Tensor  # coded targets
    loss: str  # A key of `ngp.data.losses.LOSSES`

    def gradients(self, outputs: Tensor, rows: Tensor, shares: Tensor) -> Tensor:
        """Derivatives of the weighted loss of a batch by the outputs (candidates, splits, batch, n_outputs)."""
        targets = self.values[rows]
        if self.loss == "squared_error":
            errors = (outputs - targets) * (2 / targets.shape[-1])
        elif self.loss == "cross_entropy":
            errors = self.coded(outputs) - targets
        else:
            errors = _hinge_gradients(outputs, targets)
        return errors * shares[..., None]

    def coded(self, outputs: Tensor) -> Tensor:
        """Estimates of the coded targets from the outputs of a network."""
        if self.loss != "cross_entropy":
            return outputs
        return torch.sigmoid(outputs) if outputs.shape[-1] == 1 else torch.softmax(outputs, dim=-1)


def _hinge_gradients(outputs: Tensor, targets: Tensor) -> Tensor:
    """Of the hinge loss of the margin between the true class and the best other one."""
    if outputs.shape[-1] == 1:  # one column p stands for the two columns 1 - p and p
        signs = 2 * targets - 1
        margins = signs * (2 * outputs - 1)
        return torch.where(margins < 1, -2 * signs, torch.zeros_like(outputs))
    rivals = torch.where(targets > 0, -torch.inf, outputs)
    best = rivals.amax(dim=-1, keepdim=True)
    own = (outputs * targets).sum(dim=-1, keepdim=True)
    rival = torch.nn.functional.one_hot(rivals.argmax(dim=-1), outputs.shape[-1]).to(outputs.dtype)
    return torch.where(own - best < 1, rival - targets, torch.zeros_like(outputs))


def n_batches(n_rows: int, batch_size: int) -> int:
    """Number of steps of the optimiser in an epoch."""
    return -(-n_rows // batch_size)


def plan_batches(
    splits: Sequence[IntArray], weights: FloatArray, batch_size: int, epochs: int, key: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """Rows of every split in a random order for each epoch, cut into batches as even as possible."""
    number, useful = n_batches(len(splits[0]), batch_size), np.flatnonzero(weights > 0)
    longest = max(-(-len(split) // number) for split in splits)
    rows = np.zeros((epochs, number, len(splits), longest), dtype=np.intp)
    shares = np.zeros(rows.shape)
    for epoch in range(epochs):
        order = np.random.default_rng((*key, epoch)).permutation(useful)
        for f, split in enumerate(splits):
            chosen = np.zeros(len(weights), dtype=bool)
            chosen[split] = True
            own = order[chosen[order]]
            bounds = np.linspace(0, len(own), number + 1).round().astype(np.intp)
            places = bounds[:-1, None] + np.arange(longest)
            real = places < bounds[1:, None]
            rows[epoch, :, f] = own[np.where(real, places, 0)]
            sizes = np.diff(bounds)[:, None] * weights[split].mean()
            shares[epoch, :, f] = np.where(real, weights[rows[epoch, :, f]], 0) / sizes
    steps = (epochs * number, *rows.shape[2:])
    return rows.reshape(steps), shares.reshape(steps)


def train(
    network: StackedNetwork,
    inputs: Inputs,
    targets: Targets,
    plan: tuple[IntArray, FloatArray],
    *,
    rates: Sequence[float],
    weight_decay: float = 0.0,
) -> None:
    """Train all networks of a stack by Adam, with learning rates that fall linearly to zero."""
    values = targets.values
    rows, shares = (torch.from_numpy(each).to(values.device) for each in plan)
    shares = shares.to(values.dtype)
    groups = [{"params": [p], "rate": rate} for p, rate in zip(network.parameters, rates, strict=True)]
    optimizer = torch.optim.AdamW(groups, lr=rates[0], weight_decay=weight_decay, fused=True)
    for step in range(len(rows)):
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * (1 - step / len(rows))
        x = inputs(rows[step])
        outputs = network(_joined(x), training=True)
        parts = outputs.detach().reshape(*x.shape[:3], -1)
        optimizer.zero_grad()
        outputs.backward(targets.gradients(parts, rows[step], shares[step]).reshape(outputs.shape))
        optimizer.step()


def _joined(x: Tensor) -> Tensor:
    """Candidates and splits as one dimension."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


@torch.no_grad()
def predict(network: StackedNetwork, inputs: Inputs, targets: Targets, rows: IntArray, length: int) -> FloatArray:
    """Estimates of the coded targets, (candidates, splits, n_rows, n_outputs), for row numbers (splits, n_rows)."""
    results = []
    for start in range(0, rows.shape[1], length):
        x = inputs(torch.from_numpy(rows[:, start : start + length]).to(targets.values.device))
        outputs = network(_joined(x)).reshape(*x.shape[:3], -1)
        results.append(targets.coded(outputs).cpu().double().numpy())
    return np.concatenate(results, axis=2)


class StackedNetwork:
    """Copies of a network, all with its parameters to begin with."""

    def __init__(
        self,
        module: nn.Module,
        n_copies: int,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        self.n_copies = n_copies
        self._names = [name for name, _ in module.named_parameters()]
        self.parameters = [_stacked(p, n_copies, device, dtype) for p in module.parameters()]
        self._buffers = {name: _stacked(b, n_copies, device, dtype) for name, b in module.named_buffers()}
        self._generator = torch.Generator().manual_seed(seed)
        self._module = module
        layers = None if self._buffers else _known_layers(module, partial(_dropout, self._generator))
        self._evaluate = self._by_module if layers is None else partial(_by_layers, layers, self.parameters)
        self._batched = True

    def __call__(self, inputs: Tensor, *, training: bool = False) -> Tensor:
        """Outputs (n_copies, batch, n_outputs) for inputs (n_copies, batch, ...); images as (channels, rows, cols)."""
        return self._evaluate(inputs, training)

    def copy_into(self, index: int, module: nn.Module) -> nn.Module:
        """Give the parameters of one copy to a module of the same kind."""
        with torch.no_grad():
            for own, stacked in zip(module.parameters(), self.parameters, strict=True):
                own.copy_(stacked[index])
            for name, buffer in module.named_buffers():
                buffer.copy_(self._buffers[name][index])
        return module

    def _by_module(self, inputs: Tensor, training: bool) -> Tensor:
        """Evaluate a network of any kind."""
        self._module.train(training)
        state = dict(zip(self._names, self.parameters, strict=True)) | self._buffers
        seed = int(torch.randint(2**62, (), generator=self._generator)) if training else None

        def evaluate(own: dict[str, Tensor], x: Tensor) -> Tensor:
            outputs: Tensor = torch.func.functional_call(self._module, own, (x,))
            return outputs

        if self._batched and not self._buffers:
            try:
                with seeded(seed):
                    outputs: Tensor = torch.func.vmap(evaluate, randomness="same")(state, inputs)
                return outputs
            except RuntimeError:
                self._batched = False  # this network can't be batched: one copy after the other
        copies = []
        for index in range(self.n_copies):
            with seeded(seed):
                copies.append(evaluate({name: values[index] for name, values in state.items()}, inputs[index]))
        return torch.stack(copies)


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Let torch's global generator begin with a seed, and put it back afterwards; None leaves it alone.

    There is but one such generator, so threads take turns.
    """
    if seed is None:
        yield
        return
    with RANDOM_NUMBERS, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _stacked(values: Tensor, n_copies: int, device: str, dtype: torch.dtype) -> Tensor:
    kind = dtype if values.is_floating_point() else values.dtype
    stacked = values.detach().to(device=device, dtype=kind).expand(n_copies, *values.shape).clone()
    return stacked.requires_grad_(values.requires_grad)


def _by_layers(layers: list[tuple[Layer, int]], parameters: list[Tensor], inputs: Tensor, training: bool) -> Tensor:
    """Evaluate layer after layer; each takes its number of parameters from the list."""
    x = inputs.permute(0, 1, 3, 4, 2) if inputs.ndim == 5 else inputs
    position = 0
    for layer, n_parameters in layers:
        x = layer(x, *parameters[position : position + n_parameters], training=training)
        position += n_parameters
    return x


def _known_layers(module: nn.Module, dropout: Callable[..., Tensor]) -> list[tuple[Layer, int]] | None:
    """The layers of a network in their batched form, or None if one of them has none."""
    flat = list(_flat(module))
    known = [_known_layer(layer, dropout) for layer in flat]
    layers = [layer for layer in known if layer is not None]
    if len(layers) < len(known) or len({id(layer) for layer in flat}) < len(flat):  # unknown, or used twice
        return None
    # A maximum of rectified values is the rectified maximum: a quarter of the work, the same values and gradients.
    for i in range(len(layers) - 1):
        if layers[i][0] is _relu and getattr(layers[i + 1][0], "func", None) is _max_pool:
            layers[i], layers[i + 1] = layers[i + 1], layers[i]
    return layers


def _flat(module: nn.Module) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for layer in module:
            yield from _flat(layer)
    else:
        yield module


def _known_layer(layer: nn.Module, dropout: Callable[..., Tensor]) -> tuple[Layer, int] | None:
    """The batched form of a layer, and its number of parameters."""
    kind, n_parameters = type(layer), sum(1 for _ in layer.parameters())
    if kind is nn.Linear:
        return _linear, n_parameters
    if kind is nn.ReLU:
        return _relu, 0
    if isinstance(layer, nn.Flatten) and kind is nn.Flatten:
        return (_flatten, 0) if (layer.start_dim, layer.end_dim) == (1, -1) else None
    if isinstance(layer, nn.Dropout) and kind is nn.Dropout:
        return partial(dropout, share=layer.p), 0
    if isinstance(layer, nn.MaxPool2d) and kind is nn.MaxPool2d:
        plain = not layer.ceil_mode and not layer.return_indices
        size, stride = layer.kernel_size, layer.stride
        return (
            (partial(_max_pool, size=size, stride=stride, pad=layer.padding, gap=layer.dilation), 0) if plain else None
        )
    if isinstance(layer, nn.Conv2d) and kind is nn.Conv2d:
        plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
        if plain and not isinstance(layer.padding, str):
            return partial(_convolution, stride=layer.stride, pad=layer.padding), n_parameters
    return None


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, training: bool) -> Tensor:
    if x.ndim == 5:  # of images, each row of pixels
        products = x.permute(0, 1, 4, 2, 3) @ weight.transpose(1, 2)[:, None, None]
        products = products if bias is None else products + bias[:, None, None, None]
        return products.permute(0, 1, 3, 4, 2)
    if bias is None:
        return torch.bmm(x, weight.transpose(1, 2))
    return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))


def _relu(x: Tensor, *, training: bool) -> Tensor:
    return torch.relu(x)


def _flatten(x: Tensor, *, training: bool) -> Tensor:
    if x.ndim == 5:
        x = x.permute(0, 1, 4, 2, 3)  # a network that sees its images as (channels, rows, cols) flattens them so
    return x.reshape(x.shape[0], x.shape[1], -1)


def _dropout(generator: torch.Generator, x: Tensor, *, share: float, training: bool) -> Tensor:
    """Drop the same units in all copies. They are drawn on the CPU, so that every device drops the same ones."""
    if not training or share == 0:
        return x
    shape = (x.shape[1], x.shape[4], *x.shape[2:4]) if x.ndim == 5 else x.shape[1:]
    kept = torch.rand(shape, generator=generator) >= share
    if x.ndim == 5:
        kept = kept.permute(0, 2, 3, 1)
    return x * (kept.to(device=x.device, dtype=x.dtype) / (1 - share))


def _max_pool(x: Tensor, *, size: Any, stride: Any, pad: Any, gap: Any, training: bool) -> Tensor:
    copies, batch, rows, cols, channels = x.shape
    images = x.reshape(copies * batch, rows, cols, channels).permute(0, 3, 1, 2)
    pooled = functional.max_pool2d(images, size, stride, pad, gap).permute(0, 2, 3, 1)
    return pooled.reshape(copies, batch, *pooled.shape[1:])


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    training: bool,
) -> Tensor:
    """Convolution as a matrix product of patches (copies, batch · rows · cols, size) with the filters."""
    if any(pad):
        x = functional.pad(x, (0, 0, pad[1], pad[1], pad[0], pad[0]))
    copies, filters, _, *size = weight.shape
    matrix = weight.permute(0, 3, 4, 2, 1).reshape(copies, -1, filters)
    outputs: Tensor = _Convolution.apply(x, matrix, bias, *size, *stride)  # type: ignore[no-untyped-call]
    return outputs


class _Convolution(torch.autograd.Function):
    """Products of filters, as columns of a matrix, with all patches of images (copies, batch, rows, cols, channels).

    On CUDA they are as exact as torch's own convolutions: see ``torch.backends.cudnn.allow_tf32``.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor | None, height: int, width: int, down: int, right: int
    ) -> Tensor:
        views = x.unfold(2, height, down).unfold(3, width, right)  # copies, batch, rows, cols, channels, height, width
        rows, cols = views.shape[2:4]
        patches = views.permute(0, 1, 2, 3, 5, 6, 4).reshape(len(x), -1, matrix.shape[1])
        ctx.save_for_backward(patches, matrix)
        ctx.geometry = (x.shape, rows, cols, height, width, down, right)
        with _exact_as_cudnn(x):
            flat = torch.bmm(patches, matrix) if bias is None else torch.baddbmm(bias[:, None], patches, matrix)
        return flat.reshape(*x.shape[:2], rows, cols, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        patches, matrix = ctx.saved_tensors
        flat = gradients[0].reshape(len(matrix), -1, matrix.shape[2])
        wanted_x, _, wanted_bias, *_ = ctx.needs_input_grad
        by_bias = flat.sum(dim=1) if wanted_bias else None
        by_x = None
        with _exact_as_cudnn(matrix):
            by_matrix = _long_product(patches, flat)
            if wanted_x:  # not in the first layer
                by_x = _assemble(torch.bmm(flat, matrix.transpose(1, 2)), *ctx.geometry)
        return by_x, by_matrix, by_bias, None, None, None, None


def _assemble(
    by_patches: Tensor, shape: torch.Size, rows: int, cols: int, height: int, width: int, down: int, right: int
) -> Tensor:
    """Add up what the patches say of each pixel, one position in the filter after the other."""
    parts = by_patches.reshape(*shape[:2], rows, cols, height, width, shape[-1])
    total = torch.zeros(shape, dtype=parts.dtype, device=parts.device)
    for i in range(height):
        for j in range(width):
            total[:, :, i : i + down * rows : down, j : j + right * cols : right] += parts[:, :, :, :, i, j]
    return total


def _long_product(left: Tensor, right: Tensor) -> Tensor:
    """Product of (copies, n, a) and (copies, n, b) over a long n, in pieces that can run side by side."""
    copies, n, _ = left.shape
    pieces = next((p for p in (8, 4, 2) if n % p == 0 and n // p >= 256), 1)
    parts = [each.reshape(copies * pieces, n // pieces, -1) for each in (left, right)]
    products = torch.bmm(parts[0].transpose(1, 2), parts[1])
    return products.reshape(copies, pieces, *products.shape[1:]).sum(dim=1)


@contextmanager
def _exact_as_cudnn(x: Tensor) -> Iterator[None]:
    """Let matrix products on CUDA have the precision that torch's convolutions have."""
    if not x.is_cuda:
        yield
        return
    matmul = torch.backends.cuda.matmul
    try:
        before, wanted = matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    except RuntimeError:  # set by the user in torch's newer way, which must not be mixed with this one
        yield
        return
    matmul.allow_tf32 = wanted
    try:
        yield
    finally:
        matmul.allow_tf32 = before


# ---------------------------------------------------------------- perceptrons, by the compiled kernel


def pack_parameters(layers: Sequence[AnyArray], dtype: str) -> AnyArray:
    """Parameters in the order of the kernel."""
    weights, biases, out_weights, out_biases = layers
    rows = np.concatenate([weights.T, biases[None], out_weights])
    width = padded_width(rows.shape[1], np.dtype(dtype))
    padded = np.zeros((len(rows), width), dtype)
    padded[:, : rows.shape[1]] = rows
    return np.concatenate([padded.ravel(), out_biases.astype(dtype)])


def train_perceptron(
    inputs: AnyArray,
    targets: AnyArray,
    start: AnyArray,
    plan: tuple[IntArray, AnyArray],
    judged: IntArray,
    *,
    n_units: int,
    rates: Sequence[float],
    weight_decay: float,
    loss: str,
) -> AnyArray:
    """Train one network by Adam, with learning rates that fall linearly to zero, and predict some rows."""
    dtype = inputs.dtype
    rows, shares = np.ascontiguousarray(plan[0], np.int64), np.ascontiguousarray(plan[1], dtype)
    out = np.empty((len(judged), targets.shape[1]), dtype)
    sizes = (inputs.shape[1], padded_width(n_units, dtype), targets.shape[1], *rows.shape, len(judged))
    arrays = (inputs, targets, start.copy(), rows, shares, np.ascontiguousarray(judged, np.int64), out)
    first, later = rates
    _kernels.perceptron(arrays, sizes, (first, later), weight_decay, LOSS_NUMBERS[loss], dtype == np.float32)
    return out
