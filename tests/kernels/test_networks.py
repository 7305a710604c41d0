"""Stacked networks against plain torch: outputs and gradients of modules, and the training loop of every tutorial."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from ngp.data.losses import LOSSES
from ngp.kernels.networks import Inputs, StackedNetwork, Targets, n_batches, plan_batches, predict, train

pytestmark = pytest.mark.usefixtures("one_torch_thread")

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


def make_batch(module: nn.Module, n_copies: int = N_COPIES, seed: int = 0) -> Tensor:
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
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 6), nn.Sequential(nn.ReLU())), nn.Linear(6, 2)),
    "in place": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)),
    "flattened images": lambda: with_output(),
    "convolution": convolution,
    "padding": lambda: convolution(padding=1),
    "filter of one pixel": lambda: convolution(kernel_size=1),
    "everything": lambda: convolution(kernel_size=(4, 3), stride=(2, 3), padding=(2, 1), bias=False),
    "two convolutions": lambda: with_output(nn.Conv2d(CHANNELS, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 2), nn.ReLU()),
    "maximum": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d(2)),
    "overlapping maxima": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.MaxPool2d(3, stride=1, padding=1)),
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
    "padding by name": lambda: convolution(padding="same"),
    "dilated filter": lambda: convolution(dilation=2),
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


@pytest.mark.parametrize("make", BY_LAYERS.values(), ids=BY_LAYERS)
def test_usual_layers_are_those_of_plain_modules(make: Callable[[], nn.Module], vmap_calls: list[None]) -> None:
    module = make()
    stack = make_stack(module)
    for training in (False, True):
        assert_like_plain(stack, plain_copies(stack, module), make_batch(module), training=training)
    assert not vmap_calls


@pytest.mark.parametrize("make", BY_VMAP.values(), ids=BY_VMAP)
def test_other_networks_are_batched_by_vmap(make: Callable[[], nn.Module], vmap_calls: list[None]) -> None:
    module = make()
    stack = make_stack(module)
    for training in (False, True):
        assert_like_plain(stack, plain_copies(stack, module), make_batch(module), training=training)
    assert len(vmap_calls) == 2


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_unusual_networks_are_those_of_plain_modules(make: Callable[[], nn.Module]) -> None:
    module = make()
    stack = make_stack(module)
    assert_like_plain(stack, plain_copies(stack, module), make_batch(module))


def test_a_network_that_cannot_be_batched_is_tried_once(vmap_calls: list[None]) -> None:
    stack = make_stack(module := Branches())
    inputs = make_batch(module)
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


@pytest.mark.parametrize("side", [10, 18])
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


@pytest.mark.parametrize("make", [BY_LAYERS["hidden layers"], Residual, lambda: nn.Sequential(nn.BatchNorm1d(4))])
def test_the_module_itself_is_not_changed(make: Callable[[], nn.Module]) -> None:
    module = make()
    before = deepcopy(module.state_dict())
    stack = make_stack(module)
    stack(make_batch(module), training=True).sum().backward()
    assert all(torch.equal(values, module.state_dict()[name]) for name, values in before.items())
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("make", [BY_LAYERS["everything"], tied])
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
    inputs = make_batch(module)
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
        make_stack(module)(make_batch(module), training=True).sum().backward()
        assert setting.fp32_precision == precision
    finally:
        setting.fp32_precision = before


# Networks with running statistics

NORMALISED: dict[str, Callable[[], nn.Module]] = {
    "numbers": lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2)),
    "images": lambda: with_output(nn.Conv2d(CHANNELS, 3, 3), nn.BatchNorm2d(3), nn.ReLU()),
}


@pytest.mark.parametrize("make", NORMALISED.values(), ids=NORMALISED)
def test_every_copy_has_running_statistics_of_its_own(make: Callable[[], nn.Module], vmap_calls: list[None]) -> None:
    module = make()
    stack = make_stack(module)
    copies = plain_copies(stack, module)
    for seed in range(3):
        assert_like_plain(stack, copies, make_batch(module, seed=seed), training=True)
    assert_like_plain(stack, copies, make_batch(module, seed=9), training=False)
    assert not vmap_calls
    for index, copy in enumerate(copies):
        state = stack.copy_into(index, make().double()).state_dict()
        for name, values in copy.state_dict().items():
            assert_same(state[name].double(), values.double())
    means = [copy.state_dict()["1.running_mean"] for copy in copies]
    assert not torch.equal(means[0], means[1])


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
    inputs = make_batch(module)
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
    inputs = make_batch(module, 1).expand(N_COPIES, -1, -1)

    def outputs(seed: int, n_calls: int = 1, training: bool = True) -> Tensor:
        stack = StackedNetwork(module, N_COPIES, dtype=torch.float64, seed=seed)
        return [stack(inputs, training=training) for _ in range(n_calls)][-1].detach()

    before = torch.get_rng_state()
    dropped = outputs(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert 0.3 < (dropped == 0).double().mean() < 0.7
    assert torch.equal(dropped, dropped[:1].expand_as(dropped))
    assert torch.equal(dropped, outputs(1))
    assert not torch.equal(dropped == 0, outputs(2) == 0)  # another seed
    assert not torch.equal(dropped == 0, outputs(1, n_calls=2) == 0)  # another call
    assert (outputs(1, training=False) != 0).all()
    assert torch.equal(outputs(1, training=False), outputs(2, training=False))


# Training

N_ROWS, N_COLUMNS = 23, 5
CANDIDATES = ([0, 1], [2, 4], [3, 1])
# Two of them with fill-up rows in their batches, beside the third.
SPLITS = [np.arange(16), np.array([20, 3, 5, 7, 11, 13, 17, 19, 2, 22, 8, 1, 0, 21]), np.arange(8, 23)]
CODED = {
    "squared error": ("squared_error", "numbers", 1),
    "squared error, outputs": ("squared_error", "numbers", 3),
    "cross-entropy, two classes": ("cross_entropy", "classes", 1),
    "cross-entropy, classes": ("cross_entropy", "classes", 3),
    "hinge, two classes": ("hinge", "classes", 1),
    "hinge, classes": ("hinge", "classes", 3),
}


# Batches


@st.composite
def split_cases(draw: st.DrawFn) -> tuple[list[Any], int, int, int]:
    """Splits of different sizes that all make the same number of batches; and rows, batch size, epochs."""
    number, batch_size = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    sizes = draw(st.lists(st.integers((number - 1) * batch_size + 1, number * batch_size), min_size=1, max_size=4))
    n_rows = max(sizes) + draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    return [rng.permutation(n_rows)[:size] for size in sizes], n_rows, batch_size, draw(st.integers(1, 3))


@given(case=split_cases())
@settings(deadline=None)
def test_an_epoch_has_every_row_of_a_split_once_in_even_batches(case: Any) -> None:
    splits, n_rows, batch_size, epochs = case
    rows, shares = plan_batches(splits, np.ones(n_rows), batch_size, epochs, (3, 1))
    number = n_batches(len(splits[0]), batch_size)
    assert rows.shape == shares.shape
    assert rows.shape[:2] == (epochs * number, len(splits))
    assert rows.shape[2] <= batch_size
    assert rows.min() >= 0
    for f, split in enumerate(splits):
        for epoch in range(epochs):
            own = slice(epoch * number, (epoch + 1) * number)
            real = shares[own, f] > 0
            assert sorted(rows[own, f][real].tolist()) == sorted(split.tolist())
            assert set(rows[own, f].ravel().tolist()) <= set(split.tolist())  # also what only fills up
            sizes = real.sum(axis=1)
            assert sizes.max() - sizes.min() <= 1
            assert sizes.max() <= batch_size
    np.testing.assert_allclose(shares.sum(axis=2), 1)


@given(case=split_cases())
@settings(deadline=None)
def test_the_order_of_a_split_does_not_depend_on_the_others(case: Any) -> None:
    splits, n_rows, batch_size, epochs = case
    rows, shares = plan_batches(splits, np.ones(n_rows), batch_size, epochs, (3, 1))
    for f, split in enumerate(splits):
        alone, own_shares = plan_batches([split], np.ones(n_rows), batch_size, epochs, (3, 1))
        for step in range(len(rows)):
            real = own_shares[step, 0] > 0
            np.testing.assert_array_equal(rows[step, f][shares[step, f] > 0], alone[step, 0][real])
            np.testing.assert_array_equal(shares[step, f][shares[step, f] > 0], own_shares[step, 0][real])


def test_every_epoch_and_every_key_has_an_order_of_its_own() -> None:
    def order(*key: int) -> Any:
        return plan_batches([np.arange(40)], np.ones(40), 8, 2, key)[0].reshape(2, 40)

    np.testing.assert_array_equal(order(1, 2), order(1, 2))
    assert (order(1, 2)[0] != order(1, 2)[1]).any()
    assert (order(1, 2) != order(2, 1)).any()


def test_weights_are_shares_in_a_batch_and_one_on_average() -> None:
    weights = np.random.default_rng(0).uniform(0.5, 3, size=20)
    split = np.arange(2, 19)
    rows, shares = plan_batches([split], weights, 5, 2, (0,))
    for batch, own in zip(rows[:, 0], shares[:, 0], strict=True):
        real = own > 0
        np.testing.assert_allclose(own[real], weights[batch[real]] / weights[split].mean() / real.sum())
    equal = plan_batches([split], np.full(20, 7.0), 5, 2, (0,))
    np.testing.assert_allclose(equal[1].sum(axis=2), 1)


# Losses


def make_targets(kind: str, n_outputs: int, n_rows: int = N_ROWS, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if kind == "numbers":
        return rng.normal(size=(n_rows, n_outputs))
    labels = rng.integers(0, max(2, n_outputs), size=n_rows)
    return labels[:, None].astype(float) if n_outputs == 1 else np.eye(n_outputs)[labels]


def plain_loss(loss: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """Loss of each row by torch's own functions."""
    if loss == "squared_error":
        return functional.mse_loss(outputs, targets, reduction="none").mean(dim=-1)
    if loss == "cross_entropy":
        if targets.shape[1] == 1:
            return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")[:, 0]
        return functional.cross_entropy(outputs, targets.argmax(dim=1), reduction="none")
    if targets.shape[1] == 1:
        outputs, targets = torch.cat([1 - outputs, outputs], 1), torch.cat([1 - targets, targets], 1)
    own = (outputs * targets).sum(dim=1)
    others = torch.where(targets > 0, -torch.inf, outputs)
    return torch.relu(1 - own + others.max(dim=1).values)


def make_outputs(n_outputs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (candidates, splits, batch, n_outputs), rows (splits, batch) and shares of them."""
    generator = torch.Generator().manual_seed(0)
    outputs = 0.8 * torch.randn(3, 2, 6, n_outputs, generator=generator, dtype=torch.float64)
    rows = torch.randint(N_ROWS, (2, 6), generator=generator)
    shares = torch.rand(2, 6, generator=generator, dtype=torch.float64)
    shares[0, -1] = 0
    return outputs, rows, shares


@pytest.mark.parametrize(("loss", "kind", "n_outputs"), CODED.values(), ids=CODED)
def test_gradients_are_slopes_of_the_validation_loss(loss: str, kind: str, n_outputs: int) -> None:
    values = make_targets(kind, n_outputs)
    outputs, rows, shares = make_outputs(n_outputs)
    targets = Targets(torch.from_numpy(values), loss)
    found = targets.gradients(outputs, rows, shares).numpy()

    def total(moved: Tensor) -> float:
        coded = targets.coded(moved).numpy()
        return sum(float(LOSSES[loss](coded[:, f], values[rows[f]]).sum(axis=0) @ shares[f].numpy()) for f in range(2))

    for place in np.ndindex(*outputs.shape):
        step = torch.zeros_like(outputs)
        step[place] = 1e-6
        slope = (total(outputs + step) - total(outputs - step)) / 2e-6
        assert found[place] == pytest.approx(slope, abs=1e-7)


def test_only_the_cross_entropy_turns_outputs_into_probabilities() -> None:
    outputs = torch.tensor([[2.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    for loss in LOSSES:
        coded = Targets(torch.zeros(0), loss).coded(outputs)
        if loss == "cross_entropy":
            torch.testing.assert_close(coded, outputs.softmax(dim=1))
            torch.testing.assert_close(Targets(torch.zeros(0), loss).coded(outputs[:, :1]), outputs[:, :1].sigmoid())
        else:
            assert torch.equal(coded, outputs)


# Training

Plan = tuple[Any, Any]


def make_module(n_outputs: int = 1, kind: str = "layers") -> nn.Module:
    torch.manual_seed(4)
    activation = nn.Tanh() if kind == "vmap" else nn.ReLU()
    layers = [nn.Linear(2, 6, bias=kind != "statistics"), activation, nn.Linear(6, n_outputs)]
    if kind == "statistics":  # takes away means: a bias before it would have gradients of mere rounding errors
        layers.insert(1, nn.BatchNorm1d(6))
    if kind == "dropout":
        layers.insert(2, nn.Dropout(0.3))
    return nn.Sequential(*layers)


def make_columns() -> Any:
    return np.random.default_rng(5).normal(size=(N_ROWS, N_COLUMNS))


def make_inputs(candidates: Any = CANDIDATES, dtype: torch.dtype = torch.float64) -> Inputs:
    columns = torch.from_numpy(np.array([make_columns()[:, own] for own in candidates])).to(dtype)
    return lambda rows: columns[:, rows]


def train_plainly(
    module: nn.Module, X: Tensor, values: Tensor, loss: str, plan: Plan, rates: list[float], decay: float
) -> None:
    """Train one module, with rows that only fill up left out."""
    groups = [{"params": [p], "lr": rate} for p, rate in zip(module.parameters(), rates, strict=True)]
    optimizer = torch.optim.AdamW(groups, weight_decay=decay)
    falls = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(plan[0]))
    module.train()
    for batch, shares in zip(*plan, strict=True):
        rows = torch.from_numpy(batch[shares > 0])
        optimizer.zero_grad()
        weights = torch.from_numpy(shares[shares > 0])
        (plain_loss(loss, module(X[rows]), values[rows]) * weights).sum().backward()
        optimizer.step()
        falls.step()


@pytest.mark.parametrize("kind", ["layers", "vmap"])
@pytest.mark.parametrize(("loss", "targets", "n_outputs"), CODED.values(), ids=CODED)
def test_training_is_the_plain_loop(loss: str, targets: str, n_outputs: int, kind: str) -> None:
    decay = 0.1 if kind == "layers" else 0.0
    values = torch.from_numpy(make_targets(targets, n_outputs))
    weights = np.random.default_rng(3).uniform(0.5, 2, size=N_ROWS)
    plan = plan_batches([SPLITS[1]], weights, 5, 4, (0,))
    rates = [0.05, 0.04, 0.02, 0.01]
    module = make_module(n_outputs, kind).double()
    stack = StackedNetwork(module, 1, dtype=torch.float64)
    train(stack, make_inputs(CANDIDATES[:1]), Targets(values, loss), plan, rates=rates, weight_decay=decay)
    own = torch.from_numpy(make_columns()[:, CANDIDATES[0]])
    train_plainly(module, own, values, loss, (plan[0][:, 0], plan[1][:, 0]), rates, decay)
    for found, expected in zip(stack.parameters, module.parameters(), strict=True):
        torch.testing.assert_close(found[0], expected, rtol=1e-9, atol=1e-9)
    found = predict(stack, make_inputs(CANDIDATES[:1]), Targets(values, loss), np.arange(N_ROWS)[None], N_ROWS)
    coded = {1: torch.sigmoid, 3: lambda x: x.softmax(dim=1)}[n_outputs] if loss == "cross_entropy" else lambda x: x
    np.testing.assert_allclose(found[0, 0], coded(module.eval()(own)).detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("kind", ["layers", "vmap", "dropout", "statistics"])
def test_networks_trained_together_are_those_trained_alone(kind: str, dtype: torch.dtype, bound: float) -> None:
    loss, targets, n_outputs = CODED["cross-entropy, classes" if kind == "dropout" else "squared error, outputs"]
    values = Targets(torch.from_numpy(make_targets(targets, n_outputs)).to(dtype), loss)
    plan = plan_batches(SPLITS, np.ones(N_ROWS), 8, 3, (1,))
    rows = np.tile(np.arange(N_ROWS), (len(SPLITS), 1))
    module = make_module(n_outputs, kind)
    rates = [0.03] * len(list(module.parameters()))

    def outcome(candidates: Any, plan: Plan, rows: Any) -> Any:
        stack = StackedNetwork(module, len(candidates) * len(rows), dtype=dtype, seed=2)
        inputs = make_inputs(candidates, dtype)
        train(stack, inputs, values, plan, rates=rates, weight_decay=0.01)
        return predict(stack, inputs, values, rows, 8)

    together = outcome(CANDIDATES, plan, rows)
    assert together.shape == (len(CANDIDATES), len(SPLITS), N_ROWS, n_outputs)
    for c, candidate in enumerate(CANDIDATES):
        for f in range(len(SPLITS)):
            alone = outcome([candidate], (plan[0][:, f : f + 1], plan[1][:, f : f + 1]), rows[f : f + 1])[0, 0]
            assert np.abs(together[c, f] - alone).max() <= bound * max(1, np.abs(alone).max())


@pytest.mark.parametrize("length", [1, 7, 100])
def test_rows_may_be_predicted_in_pieces(length: int) -> None:
    rows = np.random.default_rng(0).integers(0, N_ROWS, size=(2, N_ROWS))
    targets = Targets(torch.zeros(N_ROWS, 3, dtype=torch.float64), "cross_entropy")
    stack = StackedNetwork(make_module(3, "dropout"), len(CANDIDATES) * 2, dtype=torch.float64)
    whole = predict(stack, make_inputs(), targets, rows, N_ROWS)
    np.testing.assert_allclose(predict(stack, make_inputs(), targets, rows, length), whole, rtol=1e-12)
    np.testing.assert_allclose(whole.sum(axis=-1), 1)


@pytest.mark.parametrize("kind", ["layers", "vmap", "dropout"])  # batch statistics do see them, as documented
def test_rows_that_only_fill_up_teach_nothing(kind: str) -> None:
    """Their inputs and targets can be anything."""
    values = torch.from_numpy(make_targets("numbers", 1))
    plan = plan_batches(SPLITS, np.ones(N_ROWS), 8, 2, (1,))
    module = make_module(1, kind)

    def parameters(elsewhere: int) -> list[Tensor]:
        rows = np.where(plan[1] > 0, plan[0], elsewhere)
        stack = StackedNetwork(module, len(CANDIDATES) * len(SPLITS), dtype=torch.float64)
        rates = [0.03] * len(stack.parameters)
        train(stack, make_inputs(), Targets(values, "squared_error"), (rows, plan[1]), rates=rates)
        return stack.parameters

    assert (plan[1] == 0).any()
    for found, expected in zip(parameters(2), parameters(9), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_networks_without_inputs_learn_a_constant() -> None:
    values = torch.arange(6.0, dtype=torch.float64)[:, None] / 2
    targets = Targets(values, "squared_error")
    stack = StackedNetwork(nn.Linear(0, 1), 2, dtype=torch.float64)
    plan = plan_batches([np.arange(4)], np.ones(6), 4, 200, (0,))

    def nothing(rows: Tensor) -> Tensor:
        return torch.zeros(2, *rows.shape, 0, dtype=torch.float64)

    train(stack, nothing, targets, plan, rates=[0.1] * 2)
    found = predict(stack, nothing, targets, np.array([[0, 5]]), 8)
    np.testing.assert_allclose(found, np.full((2, 1, 2, 1), 0.75), atol=0.01)


def test_parameters_that_may_not_change_stay_as_they_are() -> None:
    module = make_module()
    module[0].requires_grad_(False)
    before = deepcopy(module[0])
    stack = StackedNetwork(module, len(CANDIDATES), dtype=torch.float64)
    plan = plan_batches(SPLITS[:1], np.ones(N_ROWS), 8, 2, (1,))
    targets = Targets(torch.from_numpy(make_targets("numbers", 1)), "squared_error")
    train(stack, make_inputs(), targets, plan, rates=[0.03] * 4)
    torch.testing.assert_close(stack.parameters[0][1], before.weight.double())


def learns(make: Callable[[], nn.Module], rates: int) -> float:
    """Squared error of the targets after training, where their variance is one."""
    X = torch.from_numpy(make_columns())
    values = X[:, :1] / X[:, :1].std()
    stack = StackedNetwork(make(), 1, dtype=torch.float64)
    plan = plan_batches([np.arange(N_ROWS)], np.ones(N_ROWS), 8, 40, (0,))
    targets = Targets(values, "squared_error")
    train(stack, make_inputs(CANDIDATES[:1]), targets, plan, rates=[0.02] * rates)
    found = predict(stack, make_inputs(CANDIDATES[:1]), targets, np.arange(N_ROWS)[None], N_ROWS)[0, 0]
    return float(((found - values.numpy()) ** 2).mean())


@pytest.mark.parametrize(("kind", "n_parameters"), [("layers", 4), ("vmap", 4), ("statistics", 5)])
def test_networks_learn(kind: str, n_parameters: int) -> None:
    assert learns(lambda: make_module(1, kind), n_parameters) < 0.1
