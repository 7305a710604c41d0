"""Stacked networks against plain torch modules: every copy has the outputs and gradients of a network of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from ngp.compute.stacks import StackedNetwork

N_COPIES, BATCH = 3, 5
CHANNELS, ROWS, COLS = 2, 7, 9
IMAGE = (CHANNELS, ROWS, COLS)


@pytest.fixture(scope="module", autouse=True)
def one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slow on tensors this small
    yield
    torch.set_num_threads(before)


class Residual(nn.Module):
    """No Sequential: a way around a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x + torch.tanh(self.first(x)))


class Branches(nn.Module):
    """Looks at its numbers to decide what to do, which can't be batched."""

    def __init__(self, n_outputs: int = 2) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, n_outputs), nn.Linear(4, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) if x.sum() > 0 else self.other(x)


class Bare(nn.Module):
    """Parameters without layers."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(4, 3), torch.randn(3, 2)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.weights[0]) @ self.weights[1]


def with_output(*layers: nn.Module, image: tuple[int, ...] = IMAGE) -> nn.Module:
    """Make a network with two outputs of layers for images."""
    features = nn.Sequential(*layers, nn.Flatten()).eval()
    return nn.Sequential(*features, nn.Linear(features(torch.zeros(1, *image)).shape[1], 2)).train()


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
IMAGE_LAYERS = (nn.Conv2d, nn.MaxPool2d, nn.Flatten)


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


# Dropout


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
