"""DeepLIFT: what each input contributes to the outputs of a network, measured from baselines.

The rescale rule of Shrikumar et al., "Learning important features through propagating activation differences" (2017).
A multiplier says how much of an output's difference from the baseline comes from each unit of an input's difference;
multipliers chain from layer to layer like derivatives. Those of a linear layer are its weights, that of a ReLU is the
ratio of its differences. A maximum hands its difference to one input, as in shap's DeepExplainer: where it has risen
from the baseline to the sample's largest input, otherwise to the baseline's largest. No multiplier of a ReLU or a
maximum is beyond 0 and 1, so that no tolerance is needed, and contributions add up to the difference of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv2d_input

__all__ = ["attributions", "explainable_layers"]

# Numbers in the multipliers of the widest layer that are held together: what stays in the cache.
MOST_NUMBERS = 1 << 21


@torch.no_grad()
def attributions(network: nn.Module, inputs: Tensor, baselines: Tensor) -> Tensor:
    """Contributions of the inputs to the outputs, averaged over baselines."""
    layers = explainable_layers(network)
    if inputs.shape[1:] != baselines.shape[1:] or not len(baselines):
        raise ValueError(
            f"baselines of shape {tuple(baselines.shape)} don't fit inputs of shape {tuple(inputs.shape)}: "
            "give at least one sample of the inputs' kind."
        )
    like = next(network.parameters(), inputs)
    inputs, baselines = inputs.to(like), baselines.to(like)
    activations = _activations(layers, baselines[:1])
    if activations[-1].ndim != 2:
        raise ValueError(f"network returns {tuple(activations[-1].shape)} for one sample: it must return one row.")
    n_outputs, widest = activations[-1].shape[1], max(layer.numel() for layer in activations)
    n_pairs = max(1, MOST_NUMBERS // (n_outputs * widest))
    n_baselines = min(n_pairs, len(baselines))
    n_inputs = n_pairs // n_baselines
    total = inputs.new_zeros(len(inputs), n_outputs, *inputs.shape[1:])
    for own, x in zip(total.split(n_inputs), inputs.split(n_inputs), strict=True):
        for base in baselines.split(n_baselines):
            own += _contributions(layers, x, base)
    return total / len(baselines)


def explainable_layers(network: nn.Module) -> list[nn.Module]:
    """The layers of a network, or an error where there is no rule for one of them."""
    if type(network) is nn.Sequential:
        return [layer for part in network for layer in explainable_layers(part)]
    odd_margin = isinstance(network, nn.Conv2d) and (
        isinstance(network.padding, str) or network.padding_mode != "zeros"
    )
    if type(network) not in RULES or odd_margin or getattr(network, "return_indices", False):
        raise ValueError(
            f"network holds {network}, and there is no DeepLIFT rule for that: give an nn.Sequential of Linear, Conv2d "
            "(with a number of zeros as padding), ReLU, MaxPool2d, Dropout and Flatten."
        )
    return [network]


def _activations(layers: list[nn.Module], x: Tensor) -> list[Tensor]:
    """The inputs of all layers, and the outputs of the last one."""
    values = [x]
    for layer in layers:
        if isinstance(layer, nn.ReLU):
            x = torch.relu(x)  # never in place
        elif not isinstance(layer, nn.Dropout):
            x = layer(x)
        values.append(x)
    return values


def _contributions(layers: list[nn.Module], x: Tensor, base: Tensor) -> Tensor:
    """Contributions (n_inputs, n_outputs, ...), summed over the baselines."""
    of_x, of_base = _activations(layers, x), _activations(layers, base)
    n_outputs = of_x[-1].shape[1]
    multipliers = torch.eye(n_outputs, dtype=x.dtype, device=x.device).expand(len(x) * len(base), -1, -1)
    for layer, x_before, base_before in zip(layers[::-1], of_x[-2::-1], of_base[-2::-1], strict=True):
        multipliers = RULES[type(layer)](layer, multipliers, x_before, base_before)
    differences = x[:, None] - base
    return (multipliers.reshape(*differences.shape[:2], n_outputs, *x.shape[1:]) * differences[:, :, None]).sum(dim=1)


# The rules: multipliers (n_pairs, n_outputs, ...) of a layer's inputs from those of its outputs. The pairs are those of
# all samples with all baselines, whose inputs to the layer are given.


def _linear(layer: nn.Linear, multipliers: Tensor, x: Tensor, base: Tensor) -> Tensor:
    return multipliers @ layer.weight


def _convolution(layer: nn.Conv2d, multipliers: Tensor, x: Tensor, base: Tensor) -> Tensor:
    flat = multipliers.flatten(0, 1)
    size = (len(flat), *x.shape[1:])
    back: Tensor = conv2d_input(size, layer.weight, flat, layer.stride, layer.padding, layer.dilation, layer.groups)
    return back.reshape(*multipliers.shape[:2], *x.shape[1:])


def _relu(layer: nn.ReLU, multipliers: Tensor, x: Tensor, base: Tensor) -> Tensor:
    x, base = _paired(x, base)
    difference = x - base
    ratio = (torch.relu(x) - torch.relu(base)) / difference
    slope = (base > 0).to(ratio)  # where there is no difference
    return multipliers * torch.where(difference == 0, slope, ratio)[:, None]


def _max_pool(layer: nn.MaxPool2d, multipliers: Tensor, x: Tensor, base: Tensor) -> Tensor:
    geometry = (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode)
    of_x, of_base = (functional.max_pool2d(each, *geometry, return_indices=True) for each in (x, base))
    largest_x, largest_base = _paired(of_x[0], of_base[0])
    where_x, where_base = _paired(of_x[1], of_base[1])
    risen = (largest_x - largest_base).flatten(2)
    receivers = torch.where(risen > 0, where_x.flatten(2), where_base.flatten(2))
    x, base = _paired(x, base)
    ratio = risen / (x - base).flatten(2).gather(2, receivers)
    shares = multipliers.flatten(3) * torch.where(risen == 0, 0, ratio)[:, None]
    back = multipliers.new_zeros(*multipliers.shape[:3], x[0, 0].numel())
    back.scatter_add_(3, receivers[:, None].expand_as(shares), shares)
    return back.reshape(*multipliers.shape[:2], *x.shape[1:])


def _unchanged(layer: nn.Module, multipliers: Tensor, x: Tensor, base: Tensor) -> Tensor:
    return multipliers.reshape(*multipliers.shape[:2], *x.shape[1:])


def _paired(x: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of a sample and a baseline."""
    return x.repeat_interleave(len(base), dim=0), base.repeat(len(x), *[1] * (base.ndim - 1))


RULES: dict[type[nn.Module], Callable[..., Tensor]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.ReLU: _relu,
    nn.MaxPool2d: _max_pool,
    nn.Dropout: _unchanged,
    nn.Flatten: _unchanged,
}
