"""DeepLIFT: what each input contributes to the outputs of a network, measured from baselines.

The rescale rule of Shrikumar et al., "Learning important features through propagating activation differences" (2017).
A multiplier says how much of an output's difference from the baseline comes from each unit of an input's difference;
multipliers chain from layer to layer like derivatives, so that autograd chains them. Those of linear layers are their
derivatives; the functions below have multipliers in place of derivatives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["attributions", "explainable_layers"]

# Pairs of a sample and a baseline that are explained together.
MOST_PAIRS = 32


def attributions(network: nn.Module, inputs: Tensor, baselines: Tensor) -> Tensor:
    """Contributions (n_inputs, n_outputs, ...) of the inputs to the outputs, averaged over baselines."""
    layers = explainable_layers(network)
    if inputs.shape[1:] != baselines.shape[1:] or not len(baselines):
        raise ValueError(
            f"baselines of shape {tuple(baselines.shape)} don't fit inputs of shape {tuple(inputs.shape)}: "
            "give at least one sample of the inputs' kind."
        )
    like = next(network.parameters(), inputs)
    inputs, baselines = inputs.detach().to(like), baselines.detach().to(like)
    n_baselines = min(MOST_PAIRS, len(baselines))
    totals = []
    for x in inputs.split(MOST_PAIRS // n_baselines):
        parts = [_contributions(layers, x, base) for base in baselines.split(n_baselines)]
        totals.append(torch.stack(parts).sum(dim=0))
    return torch.cat(totals) / len(baselines)


def explainable_layers(network: nn.Module) -> list[nn.Module]:
    """The layers of a network that do something in the end, or an error where there is no rule for one of them."""
    if type(network) is nn.Sequential:
        return [layer for part in network for layer in explainable_layers(part)]
    if type(network) not in (nn.Linear, nn.Conv2d, nn.ReLU, nn.MaxPool2d, nn.Dropout, nn.Flatten):
        raise ValueError(
            f"network holds {network}, and there is no DeepLIFT rule for that: give an nn.Sequential of Linear, "
            "Conv2d, ReLU, MaxPool2d, Dropout and Flatten."
        )
    return [] if isinstance(network, nn.Dropout) else [network]


def _contributions(layers: list[nn.Module], x: Tensor, base: Tensor) -> Tensor:
    """Contributions (n_inputs, n_outputs, ...), summed over the baselines."""
    n, m = len(x), len(base)
    pairs = x.repeat_interleave(m, dim=0).requires_grad_()  # of all samples with all baselines
    values, of_base = pairs, base
    for layer in layers:
        if isinstance(layer, nn.ReLU | nn.MaxPool2d):
            repeated = of_base.repeat(n, *[1] * (of_base.ndim - 1))
            rule = _ReLU if isinstance(layer, nn.ReLU) else _MaxPool
            values = rule.apply(values, repeated, layer)  # type: ignore[no-untyped-call]
        else:
            values = layer(values)
        with torch.no_grad():
            of_base = torch.relu(of_base) if isinstance(layer, nn.ReLU) else layer(of_base)  # never in place
    if values.ndim != 2:
        raise ValueError(f"network returns {(1, *values.shape[1:])} for one sample: it must return one row.")
    sums = values.sum(dim=0)
    multipliers = [torch.autograd.grad(total, pairs, retain_graph=True)[0] for total in sums]
    differences = (x[:, None] - base)[:, :, None]  # (n, m, 1, ...)
    return (torch.stack(multipliers, dim=1).reshape(n, m, len(sums), *x.shape[1:]) * differences).sum(dim=1)


class _ReLU(torch.autograd.Function):
    """Its multiplier is the ratio of its differences, which is never beyond 0 and 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, base: Tensor, layer: nn.ReLU) -> Tensor:
        ctx.save_for_backward(x, base)
        return torch.relu(x)

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor | None, ...]:
        x, base = ctx.saved_tensors
        ratio = torch.where(x == base, (base > 0).to(x), (torch.relu(x) - torch.relu(base)) / (x - base))
        return multipliers[0] * ratio, None, None


class _MaxPool(torch.autograd.Function):
    """A maximum hands its difference to one input, as in shap's DeepExplainer.

    To the sample's largest input if the maximum has risen from the baseline, otherwise to the baseline's largest.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, base: Tensor, layer: nn.MaxPool2d) -> Tensor:
        geometry = (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode)
        (largest, where), (before, where_before) = (
            functional.max_pool2d(each, *geometry, return_indices=True) for each in (x, base)
        )
        receivers = torch.where(largest > before, where, where_before).flatten(2)
        risen, differences = (largest - before).flatten(2), (x - base).flatten(2).gather(2, receivers)
        ctx.save_for_backward(receivers, torch.where(risen == 0, 0, risen / differences))
        ctx.shape = x.shape
        return largest

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor | None, ...]:
        receivers, ratio = ctx.saved_tensors
        back = multipliers[0].new_zeros(ctx.shape).flatten(2)
        back.scatter_add_(2, receivers, multipliers[0].flatten(2) * ratio)
        return back.reshape(ctx.shape), None, None
