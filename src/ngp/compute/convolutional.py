"""Convolutional networks that come with the package."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

__all__ = ["NETWORKS", "paper_network", "strong_network"]


def paper_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make the paper's network.

    Parameters
    ----------
    image : tuple of three int
        Channels, rows and columns.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> paper_network((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    return _with_output(
        [
            *_block(image[0], 32, 1),
            *_block(32, 64, 1),
            nn.Dropout(0.5),
            nn.Flatten(),
        ],
        image,
        n_outputs,
    )


def strong_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make a network with two padded convolutions before each maximum, and a hidden layer after them.

    Parameters
    ----------
    image : tuple of three int
        Channels, rows and columns.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> strong_network((3, 16, 16), 1)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 1])
    """
    return _with_output(
        [
            *_block(image[0], 32, 2, padding=1),
            nn.Dropout(0.25),
            *_block(32, 64, 2, padding=1),
            nn.Dropout(0.5),
            nn.Flatten(),
        ],
        image,
        n_outputs,
    )


NETWORKS: dict[str, Callable[[tuple[int, int, int], int], nn.Module]] = {
    "paper": paper_network,
    "strong": strong_network,
}


def _block(channels: int, filters: int, n_convolutions: int, padding: int = 0) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for _ in range(n_convolutions):
        layers += [nn.Conv2d(channels, filters, 3, padding=padding), nn.ReLU()]
        channels = filters
    return [*layers, nn.MaxPool2d(2)]


def _with_output(layers: list[nn.Module], image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Append a linear layer that fits."""
    features = nn.Sequential(*layers).eval()
    try:
        with torch.no_grad():
            n_features = features(torch.zeros(1, *image)).shape[1]
    except RuntimeError as error:
        raise ValueError(
            f"image_shape: images of {image[1]} x {image[2]} pixels are too small for this network: give a network of "
            "your own."
        ) from error
    return nn.Sequential(*layers, nn.Linear(n_features, n_outputs)).train()
