"""Networks for stacks, and their plain twins: the same networks as modules, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from ngp.kernels.networks import StackedNetwork

N_COPIES, BATCH = 3, 5
CHANNELS, ROWS, COLS = 2, 7, 9
IMAGE = (CHANNELS, ROWS, COLS)
IMAGE_LAYERS = (nn.Conv2d, nn.MaxPool2d, nn.Flatten)


class Branches(nn.Module):
    """Looks at its numbers to decide what to do, which can't be batched."""

    def __init__(self, n_outputs: int = 2) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, n_outputs), nn.Linear(4, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) if x.sum() > 0 else self.other(x)


def with_output(*layers: nn.Module, image: tuple[int, ...] = IMAGE) -> nn.Module:
    """Make a network with two outputs of layers for images."""
    features = nn.Sequential(*layers, nn.Flatten()).eval()
    return nn.Sequential(*features, nn.Linear(features(torch.zeros(1, *image)).shape[1], 2)).train()


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make_inputs(module: nn.Module, n_copies: int = N_COPIES, seed: int = 0) -> Tensor:
    sees_images = any(isinstance(layer, IMAGE_LAYERS) for layer in module.modules())
    return randn(n_copies, BATCH, *(IMAGE if sees_images else (4,)), seed=seed)


def make_stack(module: nn.Module, n_copies: int = N_COPIES, seed: int = 0) -> StackedNetwork:
    """Make copies in double precision, all with random parameters of their own."""
    stack = StackedNetwork(module, n_copies, dtype=torch.float64, seed=seed)
    with torch.no_grad():
        for number, parameter in enumerate(stack.parameters):
            parameter.copy_(randn(*parameter.shape, seed=100 + number))
    return stack


def plain_copies(stack: StackedNetwork, module: nn.Module) -> list[nn.Module]:
    """The same networks as modules, one by one."""
    copies = []
    for index in range(stack.n_copies):
        copy = deepcopy(module).double()
        with torch.no_grad():
            for own, stacked in zip(copy.parameters(), stack.parameters, strict=True):
                own.copy_(stacked[index])
        copies.append(copy)
    return copies


def assert_same(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    largest = expected.detach().abs().max()
    assert (found - expected).detach().abs().max() <= 1e-12 * max(1.0, float(largest))


def derivatives(outputs: Tensor, by: list[Tensor], slopes: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(outputs, by, slopes, allow_unused=True, materialize_grads=True)


def assert_like_plain(
    stack: StackedNetwork, copies: Sequence[nn.Module], inputs: Tensor, *, training: bool = False
) -> None:
    """Outputs, and derivatives by parameters and inputs, are those of every copy alone."""
    inputs = inputs.clone().requires_grad_()
    outputs = stack(inputs, training=training)
    slopes = randn(*outputs.shape, seed=7)
    gradients = derivatives(outputs, [inputs, *stack.parameters], slopes)
    for index, copy in enumerate(copies):
        own = inputs[index].detach().clone().requires_grad_()
        expected = copy.train(training)(own)
        assert_same(outputs[index], expected)
        expected_gradients = derivatives(expected, [own, *copy.parameters()], slopes[index])
        for found, gradient in zip(gradients, expected_gradients, strict=True):
            assert_same(found[index], gradient)
