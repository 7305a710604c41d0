"""Convolutional networks that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

__all__ = ["NETWORKS", "paper_network", "strong_network"]


def paper_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make the paper's network: two convolutions, each with ReLU and a 2 x 2 maximum, dropout and a linear layer.

    Parameters
    ----------
    image : tuple of three int
        Channels, rows and columns.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> import torch
    >>> paper_network((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    return _convolutional(image, n_outputs, filters=(32, 64), padding=0)


def strong_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make a stronger network: three convolutions, with a margin of zeros, so that the edges of an image count too.

    Parameters
    ----------
    image : tuple of three int
        Channels, rows and columns.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> import torch
    >>> strong_network((3, 16, 16), 1)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 1])
    """
    return _convolutional(image, n_outputs, filters=(32, 64, 128), padding=1)


NETWORKS: dict[str, Callable[[tuple[int, int, int], int], nn.Module]] = {
    "paper": paper_network,
    "strong": strong_network,
}


def _convolutional(image: tuple[int, int, int], n_outputs: int, filters: Sequence[int], padding: int) -> nn.Module:
    """Put a network together; a maximum is left out where the image has become too small for it."""
    layers: list[nn.Module] = []
    channels, rows, cols = image
    for n in filters:
        layers += [nn.Conv2d(channels, n, 3, padding=padding), nn.ReLU()]
        channels, rows, cols = n, rows - 2 + 2 * padding, cols - 2 + 2 * padding
        if min(rows, cols) < 1:
            raise ValueError(
                f"image_shape: images of {image[1]} x {image[2]} pixels are too small for this network: give larger "
                "ones, or a network of your own."
            )
        if min(rows, cols) > 1:
            layers.append(nn.MaxPool2d(2))
            rows, cols = rows // 2, cols // 2
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Flatten(), nn.Linear(channels * rows * cols, n_outputs))
