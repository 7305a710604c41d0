"""Dropout in stacked networks: all copies drop the same units, and torch's own random numbers stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from stack_cases import (
    CHANNELS,
    N_COPIES,
    Branches,
    assert_like_plain,
    make_inputs,
    make_stack,
    plain_copies,
    with_output,
)
from torch import Tensor, nn
from torch.nn import functional

from ngp.kernels.networks import StackedNetwork

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class GivenDropout(nn.Module):
    """Dropout that draws from a generator of its own, as a plain twin."""

    def __init__(self, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.share, self.generator = share, generator

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return x * (torch.rand(x.shape, generator=self.generator) >= self.share) / (1 - self.share)


def dropout_layers(dropout: Callable[[float], nn.Module], images: bool) -> nn.Module:
    if images:
        return with_output(dropout(0.2), nn.Conv2d(CHANNELS, 3, 3), nn.ReLU(), dropout(0.5))
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), dropout(0.5), nn.Linear(8, 2))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("images", [False, True])
def test_dropout_is_that_of_plain_modules_with_the_same_masks(images: bool, training: bool) -> None:
    module = dropout_layers(nn.Dropout, images)
    stack = make_stack(module, seed=3)
    inputs = make_inputs(module)
    copies = plain_copies(stack, module)
    for copy in copies:
        generator = torch.Generator().manual_seed(3)
        for number, layer in enumerate(copy):
            if isinstance(layer, nn.Dropout):
                copy[number] = GivenDropout(layer.p, generator)
    for _ in range(2):  # the second time with other masks
        assert_like_plain(stack, copies, inputs, training=training)


def noisy_branches() -> nn.Module:
    class Noisy(Branches):
        def forward(self, x: Tensor) -> Tensor:
            return functional.dropout(super().forward(x), 0.5, self.training)

    return Noisy(50)


DROPOUTS: dict[str, Callable[[], nn.Module]] = {
    "by layers": lambda: nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5)),
    "by vmap": lambda: nn.Sequential(nn.Linear(4, 50), nn.Tanh(), nn.Dropout(0.5)),
    "one by one": noisy_branches,
    "with buffers": lambda: nn.Sequential(nn.Linear(4, 50), nn.BatchNorm1d(50), nn.Dropout(0.5)),
}


@pytest.mark.parametrize("make", DROPOUTS.values(), ids=DROPOUTS)
def test_all_copies_drop_the_same_units(make: Callable[[], nn.Module]) -> None:
    module = make()
    inputs = make_inputs(module, 1).expand(N_COPIES, -1, -1)

    def outputs(seed: int, n_calls: int = 1, training: bool = True) -> Tensor:
        stack = StackedNetwork(module, N_COPIES, dtype=torch.float64, seed=seed)
        return [stack(inputs, training=training) for _ in range(n_calls)][-1].detach()

    dropped = outputs(1)
    assert 0.3 < (dropped == 0).double().mean() < 0.7
    assert torch.equal(dropped, dropped[:1].expand_as(dropped))
    assert torch.equal(dropped, outputs(1))
    assert not torch.equal(dropped == 0, outputs(2) == 0)  # another seed
    assert not torch.equal(dropped == 0, outputs(1, n_calls=2) == 0)  # another call
    assert (outputs(1, training=False) != 0).all()
    assert torch.equal(outputs(1, training=False), outputs(2, training=False))


@pytest.mark.parametrize("make", DROPOUTS.values(), ids=DROPOUTS)
def test_torch_keeps_its_own_random_numbers(make: Callable[[], nn.Module]) -> None:
    stack = make_stack(module := make())
    before = torch.get_rng_state()
    stack(make_inputs(module), training=True)
    assert torch.equal(torch.get_rng_state(), before)
