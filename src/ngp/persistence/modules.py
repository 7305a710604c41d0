"""Trained torch networks as settings and arrays; torch is imported only where there are such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ngp._types import AnyArray, FloatArray
from ngp.data.losses import LOSSES
from ngp.kernels.devices import require_torch
from ngp.predictors.networks import NetworkPredictor

if TYPE_CHECKING:
    from torch import nn

__all__ = ["flat_layers", "network_fields", "network_predictor"]

# Layers of `torch.nn` that a saved network may have, and the settings that make up each.
LAYERS: dict[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features", "bias"),
    "Conv2d": (
        "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias", "padding_mode"
    ),
    "BatchNorm1d": ("num_features", "eps", "momentum", "affine", "track_running_stats"),
    "BatchNorm2d": ("num_features", "eps", "momentum", "affine", "track_running_stats"),
    "MaxPool2d": ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"),
    "AvgPool2d": ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
    "AdaptiveAvgPool2d": ("output_size",),
    "Dropout": ("p",),
    "Dropout2d": ("p",),
    "Flatten": ("start_dim", "end_dim"),
    "Identity": (),
    "ReLU": (),
    "LeakyReLU": ("negative_slope",),
    "ELU": ("alpha",),
    "GELU": ("approximate",),
    "SiLU": (),
    "Tanh": (),
    "Sigmoid": (),
}  # fmt: skip


def flat_layers(module: nn.Module) -> Iterator[nn.Module]:
    """Go through the layers of a network, those of nested sequences one after the other."""
    from torch import nn

    if type(module) is nn.Sequential:
        for layer in module:
            yield from flat_layers(layer)
    else:
        yield module


def network_fields(predictor: NetworkPredictor) -> dict[str, Any]:
    """Take networks apart."""
    return {
        "reader": predictor.reader,
        "networks": [[_layer_parts(layer) for layer in flat_layers(module)] for module in predictor.modules],
        "loss": predictor.loss,
        "target_mean": predictor.target_mean,
        "target_scale": predictor.target_scale,
    }


def _layer_parts(layer: nn.Module) -> list[Any]:
    """Name, settings and weights of a layer."""
    from torch import nn

    name = type(layer).__name__
    if name not in LAYERS or type(layer) is not getattr(nn, name):
        raise ValueError(f"a network with a {name} (only a Sequential of {', '.join(LAYERS)} can be saved)")
    settings = {setting: getattr(layer, setting) for setting in LAYERS[name]}
    if "bias" in settings:
        settings["bias"] = layer.bias is not None
    return [name, settings, {key: tensor.cpu().numpy() for key, tensor in layer.state_dict().items()}]


def network_predictor(
    reader: Callable[[AnyArray], FloatArray],
    networks: list[list[tuple[str, dict[str, Any], dict[str, AnyArray]]]],
    loss: str,
    target_mean: FloatArray,
    target_scale: float,
) -> NetworkPredictor:
    """Put networks together."""
    require_torch("A selector with torch networks")
    from torch import nn

    if loss not in LOSSES or not callable(reader):
        raise ValueError("a network has no inputs or no loss")
    modules = tuple(nn.Sequential(*(_make_layer(*layer) for layer in layers)).eval() for layers in networks)
    return NetworkPredictor(reader, modules, loss, target_mean, target_scale)


def _make_layer(name: str, settings: dict[str, Any], weights: dict[str, AnyArray]) -> nn.Module:
    import torch
    from torch import nn

    if name not in LAYERS or set(settings) != set(LAYERS[name]):
        raise ValueError(f"a network has an unknown layer {name!r}")
    with torch.device("meta"):  # draws no random numbers, and needs no memory
        layer: nn.Module = getattr(nn, name)(**settings)
    # Cloned, since torch aligns its own memory, and sums can depend on that in their last bits.
    layer.load_state_dict({key: torch.from_numpy(array).clone() for key, array in weights.items()}, assign=True)
    return layer
