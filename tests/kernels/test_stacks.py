"""Stacked networks against plain torch modules: every copy has the outputs and gradients of a network of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stack_cases import (
    CHANNELS,
    COLS,
    IMAGE,
    N_COPIES,
    ROWS,
    Branches,
    assert_like_plain,
    assert_same,
    make_inputs,
    make_stack,
    plain_copies,
    randn,
    with_output,
)
from torch import Tensor, nn

from ngp.kernels.networks import StackedNetwork

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Residual(nn.Module):
    """No Sequential: a way around a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x + torch.tanh(self.first(x)))


class Bare(nn.Module):
    """Parameters without layers."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(4, 3), torch.randn(3, 2)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.weights[0]) @ self.weights[1]


def convolution(**options: Any) -> nn.Module:
    return with_output(nn.Conv2d(CHANNELS, 3, **{"kernel_size": 3, **options}))


def tied() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(4, 2))


# What is evaluated layer by layer. Inputs are four numbers, or images where there is a layer for images.
BY_LAYERS: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 2),
    "hidden layers": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 2)),
    "no bias": lambda: nn.Sequential(nn.Linear(4, 6, bias=False), nn.ReLU(), nn.Linear(6, 2, bias=False)),
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 6), nn.Sequential(nn.ReLU())), nn.Linear(6, 2)),
    "in place": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)),
    "flattened images": lambda: with_output(),
    "convolution": convolution,
    "stride": lambda: convolution(stride=2),
    "uneven stride": lambda: convolution(stride=(3, 2)),
    "padding": lambda: convolution(padding=1),
    "uneven padding": lambda: convolution(padding=(0, 2)),
    "rectangular filter": lambda: convolution(kernel_size=(2, 5)),
    "filter of one pixel": lambda: convolution(kernel_size=1),
    "convolution without bias": lambda: convolution(bias=False),
    "everything": lambda: convolution(kernel_size=(4, 3), stride=(2, 3), padding=(2, 1), bias=False),
    "two convolutions": lambda: with_output(nn.Conv2d(CHANNELS, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 2), nn.ReLU()),
    "maximum": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d(2)),
    "overlapping maxima": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d(3, stride=1, padding=1)),
    "uneven maxima": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d((2, 3), stride=(1, 2))),
    "dilated maxima": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d(2, stride=1, dilation=2)),
    "ReLU before the maximum": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.ReLU(), nn.MaxPool2d(2)),
    "ReLU before two maxima": lambda: with_output(
        nn.Conv2d(CHANNELS, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 1, padding=1), nn.MaxPool2d(2)
    ),
    "maximum of the image": lambda: with_output(nn.MaxPool2d(2), nn.Conv2d(CHANNELS, 3, 2), nn.ReLU()),
}
# What goes through vmap.
BY_VMAP: dict[str, Callable[[], nn.Module]] = {
    "way around a layer": Residual,
    "parameters without layers": Bare,
    "other activation": lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2)),
    "normalised layer": lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 2)),
    "padding by name": lambda: convolution(padding="same"),
    "circular padding": lambda: convolution(padding=1, padding_mode="circular"),
    "dilated filter": lambda: convolution(dilation=2),
    "groups of channels": lambda: with_output(nn.Conv2d(CHANNELS, 4, 3, groups=2)),
    "normalised groups": lambda: with_output(nn.Conv2d(CHANNELS, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()),
    "rounded-up maxima": lambda: with_output(nn.Conv2d(CHANNELS, 3, 2), nn.MaxPool2d(2, ceil_mode=True)),
    "means": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.AvgPool2d(2)),
    "flattened in part": lambda: nn.Sequential(nn.Flatten(2), nn.Flatten(), nn.Linear(CHANNELS * ROWS * COLS, 2)),
}
OTHERS: dict[str, Callable[[], nn.Module]] = {
    "a layer used twice": tied,
    "linear in the columns of an image": lambda: nn.Sequential(
        nn.Linear(COLS, 2), nn.Flatten(), nn.Linear(CHANNELS * ROWS * 2, 2)
    ),
    "decides by its numbers": Branches,
}


@pytest.fixture
def vmap_calls(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    calls: list[None] = []
    vmap = torch.func.vmap

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(None)
        return vmap(*args, **options)

    monkeypatch.setattr(torch.func, "vmap", counted)
    return calls


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", BY_LAYERS.values(), ids=BY_LAYERS)
def test_usual_layers_are_those_of_plain_modules(
    make: Callable[[], nn.Module], training: bool, vmap_calls: list[None]
) -> None:
    module = make()
    stack = make_stack(module)
    assert_like_plain(stack, plain_copies(stack, module), make_inputs(module), training=training)
    assert not vmap_calls


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", BY_VMAP.values(), ids=BY_VMAP)
def test_other_networks_are_batched_by_vmap(
    make: Callable[[], nn.Module], training: bool, vmap_calls: list[None]
) -> None:
    module = make()
    stack = make_stack(module)
    assert_like_plain(stack, plain_copies(stack, module), make_inputs(module), training=training)
    assert len(vmap_calls) == 1


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_unusual_networks_are_those_of_plain_modules(make: Callable[[], nn.Module]) -> None:
    module = make()
    stack = make_stack(module)
    assert_like_plain(stack, plain_copies(stack, module), make_inputs(module))


def test_a_network_that_cannot_be_batched_is_tried_once(vmap_calls: list[None]) -> None:
    stack = make_stack(module := Branches())
    inputs = make_inputs(module)
    inputs[0], inputs[1] = inputs[0].abs(), -inputs[1].abs()  # so that both branches are taken
    for _ in range(2):
        assert_like_plain(stack, plain_copies(stack, module), inputs)
    assert len(vmap_calls) == 1


@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    channels=st.integers(1, 3),
    image=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    bias=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_every_geometry_of_a_convolution(
    kernel: Any, stride: Any, padding: Any, channels: int, image: Any, bias: bool
) -> None:
    module = with_output(nn.Conv2d(channels, 2, kernel, stride, padding, bias=bias), image=(channels, *image))
    stack = make_stack(module, 2)
    assert_like_plain(stack, plain_copies(stack, module), randn(2, 3, channels, *image))


@pytest.mark.parametrize("side", [10, 12, 18])
def test_large_images(side: int) -> None:
    """Products over thousands of patches may be cut into pieces."""
    module = with_output(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 3, 1), image=(1, side, side))
    stack = make_stack(module, 2)
    assert_like_plain(stack, plain_copies(stack, module), randn(2, 16, 1, side, side))


def test_flattened_images_have_channels_first() -> None:
    image = torch.arange(CHANNELS * ROWS * COLS, dtype=torch.float64).reshape(1, 1, *IMAGE)
    module = nn.Sequential(nn.MaxPool2d(1), nn.Flatten())
    found = StackedNetwork(module, 1, dtype=torch.float64)(image)
    assert found[0, 0].tolist() == list(range(CHANNELS * ROWS * COLS))


def test_equal_values_share_their_derivatives_as_in_torch() -> None:
    """ReLU and maximum change places: zeros, ties and windows of negative numbers are where that could show."""
    module = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    inputs = torch.randint(-2, 3, (1, 64, 1, 4, 4), generator=torch.Generator().manual_seed(0)).double()
    assert_like_plain(StackedNetwork(module, 1, dtype=torch.float64), [module], inputs)


def test_copies_begin_with_the_parameters_of_the_module() -> None:
    module = with_output(nn.Conv2d(CHANNELS, 3, 3), nn.ReLU(), nn.MaxPool2d(2))
    stack = StackedNetwork(module, N_COPIES, dtype=torch.float64)
    inputs = make_inputs(module)
    for index in range(N_COPIES):
        assert_same(stack(inputs)[index], deepcopy(module).double()(inputs[index]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [BY_LAYERS["convolution"], Residual])
def test_the_precision_is_the_one_that_was_asked_for(make: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    stack = StackedNetwork(module := make(), 2, dtype=dtype)
    assert {parameter.dtype for parameter in stack.parameters} == {dtype}
    assert stack(make_inputs(module, 2).to(dtype)).dtype == dtype


@pytest.mark.parametrize("make", [BY_LAYERS["hidden layers"], Residual, lambda: nn.Sequential(nn.BatchNorm1d(4))])
def test_the_module_itself_is_not_changed(make: Callable[[], nn.Module]) -> None:
    module = make()
    before = deepcopy(module.state_dict())
    stack = make_stack(module)
    stack(make_inputs(module), training=True).sum().backward()
    assert all(torch.equal(values, module.state_dict()[name]) for name, values in before.items())
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("make", [BY_LAYERS["everything"], Residual, tied])
def test_copy_into_gives_one_copy_to_a_module(make: Callable[[], nn.Module]) -> None:
    module = make()
    stack = make_stack(module)
    for index, expected in enumerate(plain_copies(stack, module)):
        given_back = make().double()
        assert stack.copy_into(index, given_back) is given_back
        for own, other in zip(given_back.parameters(), expected.parameters(), strict=True):
            assert torch.equal(own, other)


# Settings of torch


def test_threads_leave_the_settings_of_torch_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    module = with_output(nn.Conv2d(CHANNELS, 3, 3))
    inputs = make_inputs(module)
    product = torch.baddbmm

    def slow_product(*args: Any) -> Tensor:
        time.sleep(0.002)  # another thread comes in between
        return product(*args)

    monkeypatch.setattr(torch, "baddbmm", slow_product)
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: make_stack(module)(inputs), range(20)))
        assert torch.backends.cuda.matmul.allow_tf32 == before
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="this torch has no such setting")
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_the_precision_of_torch_may_be_set_in_the_new_way(precision: str) -> None:
    module = with_output(nn.Conv2d(CHANNELS, 3, 3))
    setting = torch.backends.cudnn.conv
    before = setting.fp32_precision
    setting.fp32_precision = precision
    try:
        make_stack(module)(make_inputs(module), training=True).sum().backward()
        assert setting.fp32_precision == precision
    finally:
        setting.fp32_precision = before


# Networks with running statistics

NORMALISED: dict[str, Callable[[], nn.Module]] = {
    "numbers": lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2)),
    "images": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.BatchNorm2d(3), nn.ReLU()),
    "without scales": lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, affine=False), nn.Linear(3, 2)),
}


@pytest.mark.parametrize("make", NORMALISED.values(), ids=NORMALISED)
def test_every_copy_has_running_statistics_of_its_own(make: Callable[[], nn.Module], vmap_calls: list[None]) -> None:
    module = make()
    stack = make_stack(module)
    copies = plain_copies(stack, module)
    for seed in range(3):
        assert_like_plain(stack, copies, make_inputs(module, seed=seed), training=True)
    assert_like_plain(stack, copies, make_inputs(module, seed=9), training=False)
    assert not vmap_calls
    for index, copy in enumerate(copies):
        state = stack.copy_into(index, make().double()).state_dict()
        for name, values in copy.state_dict().items():
            assert_same(state[name].double(), values.double())
    means = [copy.state_dict()["1.running_mean"] for copy in copies]
    assert not torch.equal(means[0], means[1])
