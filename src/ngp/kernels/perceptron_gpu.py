"""Perceptrons with one hidden layer on a GPU, by a Triton kernel: each is trained from start to end by one program.

The same training as `ngp.kernels.networks`, which is its twin in the tests, without its trips to memory; but for the
hinge loss, which is left to the twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources

from ngp._types import AnyArray, IntArray
from ngp.kernels.networks import LOSS_NUMBERS

__all__ = ["OutOfResources", "fits", "train_perceptrons"]

WARPS = 4
MOST_NUMBERS = 1 << 15  # hidden units times rows of a batch: what the registers of a program hold
MOST_OUTPUTS = 64


@triton.jit
def _adam(parameters, means, squares, at, gradient, mask, rate, kept, root_scale):  # type: ignore[no-untyped-def]
    m = tl.load(means + at, mask=mask, other=0.0)
    v = tl.load(squares + at, mask=mask, other=0.0)
    p = tl.load(parameters + at, mask=mask, other=0.0)
    m += 0.1 * (gradient - m)
    v = 0.999 * v + 0.001 * gradient * gradient
    tl.store(means + at, m, mask=mask)
    tl.store(squares + at, v, mask=mask)
    tl.store(parameters + at, p * kept - rate * m / (tl.sqrt(v) * root_scale + 1e-8), mask=mask)


@triton.jit
def _hidden(inputs, parameters, row, n_inputs, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    unit = tl.arange(0, WIDTH)
    z = tl.load(parameters + n_inputs * WIDTH + unit)[None, :] + tl.zeros_like(row).to(tl.float32)[:, None]
    for k in range(n_inputs):
        x = tl.load(inputs + row * n_inputs + k)
        z += x[:, None] * tl.load(parameters + k * WIDTH + unit)[None, :]
    return tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _derivatives(y, t, share, real, n_outputs, LOSS: tl.constexpr, SINGLE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Derivatives of the losses (batch, outputs) by the outputs; columns beyond the real ones are zero."""
    if LOSS == 0:
        e = (y - t) * (2.0 / n_outputs)
    elif SINGLE:
        e = 1 / (1 + tl.exp(-y)) - t
    else:
        shifted = tl.where(real, y, float("-inf"))
        shifted = tl.exp(shifted - tl.max(shifted, axis=1)[:, None])
        e = shifted / tl.sum(shifted, axis=1)[:, None] - t
    return tl.where(real, e, 0.0) * share[:, None]


@triton.jit
def _train(  # type: ignore[no-untyped-def]
    inputs, targets, parameters, averages, rows, shares, paces, judged, outputs,
    n_rows, n_inputs, n_outputs, n_splits, n_steps, batch, n_judged, size,
    WIDTH: tl.constexpr, BATCH: tl.constexpr, OUTPUTS: tl.constexpr, LOSS: tl.constexpr,
):  # fmt: skip
    network = tl.program_id(0).to(tl.int64)
    split = network % n_splits
    inputs += network // n_splits * n_rows * n_inputs
    parameters += network * size
    means = averages + 2 * network * size
    squares = means + size
    unit, output, place = tl.arange(0, WIDTH), tl.arange(0, OUTPUTS), tl.arange(0, BATCH)
    SINGLE: tl.constexpr = OUTPUTS == 1
    real = (output < n_outputs)[None, :]
    out = (n_inputs + 1) * WIDTH  # where the output layer begins
    weights_at = out + output[:, None] * WIDTH + unit[None, :]
    weights_real = (output < n_outputs)[:, None] & (unit >= 0)[None, :]
    bias_at = out + n_outputs * WIDTH + output
    for step in range(n_steps):
        at = (step * n_splits + split) * batch + place
        row = tl.load(rows + at, mask=place < batch, other=0)
        share = tl.load(shares + at, mask=place < batch, other=0.0)
        rate, kept = tl.load(paces + step * 5), tl.load(paces + step * 5 + 1)
        later_rate, later_kept = tl.load(paces + step * 5 + 2), tl.load(paces + step * 5 + 3)
        root_scale = tl.load(paces + step * 5 + 4)
        hidden = _hidden(inputs, parameters, row, n_inputs, WIDTH)
        weights = tl.load(parameters + weights_at, mask=weights_real, other=0.0)
        biases = tl.load(parameters + bias_at, mask=output < n_outputs, other=0.0)
        t = tl.load(targets + row[:, None] * n_outputs + output[None, :], mask=real, other=0.0)
        if SINGLE:
            y = tl.sum(hidden * weights, axis=1)[:, None] + biases[None, :]
            e = _derivatives(y, t, share, real, n_outputs, LOSS, SINGLE)
            slopes = e * weights
            gradient = tl.sum(e * hidden, axis=0)[None, :]
        else:
            y = tl.dot(hidden, tl.trans(weights), input_precision="ieee") + biases[None, :]
            e = _derivatives(y, t, share, real, n_outputs, LOSS, SINGLE)
            slopes = tl.dot(e, weights, input_precision="ieee")
            gradient = tl.dot(tl.trans(e), hidden, input_precision="ieee")
        slopes = tl.where(hidden > 0, slopes, 0.0)
        tl.debug_barrier()  # all has been read before anything is written
        _adam(parameters, means, squares, weights_at, gradient, weights_real, later_rate, later_kept, root_scale)
        known = output < n_outputs
        _adam(parameters, means, squares, bias_at, tl.sum(e, axis=0), known, later_rate, later_kept, root_scale)
        every = unit >= 0
        hidden_bias = n_inputs * WIDTH + unit
        _adam(parameters, means, squares, hidden_bias, tl.sum(slopes, axis=0), every, rate, kept, root_scale)
        for k in range(n_inputs):
            x = tl.load(inputs + row * n_inputs + k)
            total = tl.sum(x[:, None] * slopes, axis=0)
            _adam(parameters, means, squares, k * WIDTH + unit, total, every, rate, kept, root_scale)
        tl.debug_barrier()
    weights = tl.load(parameters + weights_at, mask=weights_real, other=0.0)
    biases = tl.load(parameters + bias_at, mask=output < n_outputs, other=0.0)
    for start in range(0, n_judged, BATCH):
        known = start + place < n_judged
        row = tl.load(judged + split * n_judged + start + place, mask=known, other=0)
        hidden = _hidden(inputs, parameters, row, n_inputs, WIDTH)
        if SINGLE:
            y = tl.sum(hidden * weights, axis=1)[:, None] + biases[None, :]
        else:
            y = tl.dot(hidden, tl.trans(weights), input_precision="ieee") + biases[None, :]
        at = (network * n_judged + start + place)[:, None] * n_outputs + output[None, :]
        tl.store(outputs + at, y, mask=known[:, None] & real)


def fits(n_units: int, batch: int, n_outputs: int, loss: str) -> bool:
    """Whether the kernel can train networks of this size with a loss."""
    numbers = triton.next_power_of_2(n_units) * max(16, triton.next_power_of_2(batch))
    return bool(numbers <= MOST_NUMBERS and n_outputs <= MOST_OUTPUTS and loss != "hinge")


def train_perceptrons(
    inputs: Tensor,
    targets: Tensor,
    layers: Sequence[AnyArray | Tensor],
    plan: tuple[IntArray, AnyArray],
    judged: IntArray,
    *,
    rates: Sequence[float],
    weight_decay: float,
    loss: str,
) -> Tensor:
    """Train networks by Adam, with learning rates that fall linearly to zero, and predict some rows."""
    device = inputs.device
    n_steps, n_splits, batch = plan[0].shape
    n_networks, n_outputs = len(inputs) * n_splits, targets.shape[1]
    width = max(16, triton.next_power_of_2(layers[1].shape[-1]))
    parameters = _packed(layers, width, device)
    averages = torch.zeros(n_networks, 2, parameters.shape[1], device=device)
    out = torch.empty(len(inputs), *judged.shape, n_outputs, device=device)
    rows, shares = (torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in plan)
    arrays = (inputs.contiguous(), targets.contiguous(), parameters, averages, rows, shares.float())
    _train[(n_networks,)](
        *arrays, _paces(n_steps, rates, weight_decay).to(device), torch.from_numpy(judged).to(device), out,
        inputs.shape[1], inputs.shape[2], n_outputs, n_splits, n_steps, batch, judged.shape[1], parameters.shape[1],
        WIDTH=width, BATCH=max(16, triton.next_power_of_2(batch)),
        OUTPUTS=1 if n_outputs == 1 else max(16, triton.next_power_of_2(n_outputs)),
        LOSS=LOSS_NUMBERS[loss], num_warps=WARPS,
    )  # fmt: skip
    return out


def _packed(layers: Sequence[Any], width: int, device: torch.device) -> Tensor:
    """Parameters of each network in one row: a row of units an input, the biases, a row an output, their biases."""
    weights, biases, out_weights, out_biases = (torch.as_tensor(each).to(device).float() for each in layers)
    units = torch.cat([weights.transpose(1, 2), biases[:, None], out_weights], dim=1)
    units = torch.nn.functional.pad(units, (0, width - units.shape[2]))
    return torch.cat([units.flatten(1), out_biases], dim=1).contiguous()


def _paces(n_steps: int, rates: Sequence[float], decay: float) -> Tensor:
    """For each step the rates over Adam's first correction, what is kept of a weight, and the second correction."""
    step = np.arange(n_steps)
    columns = []
    for rate in rates:
        now = rate * (1 - step / n_steps)
        columns += [now / (1 - 0.9 ** (step + 1)), 1 - now * decay]
    columns.append(1 / np.sqrt(1 - 0.999 ** (step + 1)))
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
