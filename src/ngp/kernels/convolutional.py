"""Convolutional networks that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

__all__ = ["NETWORKS", "paper_network", "strong_network"]


def paper_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make the paper's network: two convolutions, each with ReLU and a 2 x 2 maximum, dropout and a linear layer."""
    return _convolutional(image, n_outputs, filters=((32, 3), (64, 3)), margin=False)


def strong_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    """Make a stronger network: three convolutions, the first with filters of 5 x 5, all with a margin of zeros."""
    return _convolutional(image, n_outputs, filters=((32, 5), (64, 3), (128, 3)), margin=True)


NETWORKS: dict[str, Callable[[tuple[int, int, int], int], nn.Module]] = {
    "paper": paper_network,
    "strong": strong_network,
}


def _convolutional(
    image: tuple[int, int, int], n_outputs: int, filters: Sequence[tuple[int, int]], margin: bool
) -> nn.Module:
    """Put a network together, of convolutions with so many filters of such a size.

    A maximum is left out where the image has become too small for it.
    """
    layers: list[nn.Module] = []
    channels, rows, cols = image
    for n, size in filters:
        lost = 0 if margin else size - 1
        layers += [nn.Conv2d(channels, n, size, padding=size // 2 if margin else 0), nn.ReLU()]
        channels, rows, cols = n, rows - lost, cols - lost
        if min(rows, cols) < 1:
            raise ValueError(
                f"image_shape: images of {image[1]} x {image[2]} pixels are too small for this network: give larger "
                "ones, or a network of your own."
            )
        if min(rows, cols) > 1:
            layers.append(nn.MaxPool2d(2))
            rows, cols = rows // 2, cols // 2
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Flatten(), nn.Linear(channels * rows * cols, n_outputs))
