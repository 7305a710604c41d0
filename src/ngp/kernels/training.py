"""Training of many torch networks together: the same batches and the same optimiser for all of them.

The networks of a stack are all pairs of a candidate and a split (a fold's training rows), candidate after candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ngp._types import FloatArray, IntArray
from ngp.kernels.stacks import StackedNetwork

__all__ = ["Inputs", "Targets", "n_batches", "plan_batches", "predict", "train"]

# Inputs of a stack, (candidates, splits, batch, ...), for row numbers (splits, batch).
Inputs = Callable[[Tensor], Tensor]


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
    number = n_batches(len(splits[0]), batch_size)
    longest = max(-(-len(split) // number) for split in splits)
    rows = np.zeros((epochs, number, len(splits), longest), dtype=np.intp)
    shares = np.zeros(rows.shape)
    for epoch in range(epochs):
        order = np.random.default_rng((*key, epoch)).permutation(len(weights))
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
        outputs = network(_flat(x), training=True)
        parts = outputs.detach().reshape(*x.shape[:3], -1)
        optimizer.zero_grad()
        outputs.backward(targets.gradients(parts, rows[step], shares[step]).reshape(outputs.shape))
        optimizer.step()


def _flat(x: Tensor) -> Tensor:
    """Candidates and splits as one dimension."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


@torch.no_grad()
def predict(network: StackedNetwork, inputs: Inputs, targets: Targets, rows: IntArray, length: int) -> FloatArray:
    """Estimates of the coded targets, (candidates, splits, n_rows, n_outputs), for row numbers (splits, n_rows)."""
    results = []
    for start in range(0, rows.shape[1], length):
        x = inputs(torch.from_numpy(rows[:, start : start + length]).to(targets.values.device))
        outputs = network(_flat(x)).reshape(*x.shape[:3], -1)
        results.append(targets.coded(outputs).cpu().double().numpy())
    return np.concatenate(results, axis=2)
