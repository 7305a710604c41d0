"""Training of stacks against the loop of every torch tutorial: one network, one batch after the other."""

from __future__ import annotations

from collections.abc import Callable
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


def test_the_order_within_a_split_does_not_matter() -> None:
    plans = [plan_batches([split], np.ones(9), 4, 2, (0,)) for split in (np.array([3, 8, 1, 5, 0]), np.arange(9)[::-1])]
    for split, (rows, _) in zip(([0, 1, 3, 5, 8], range(9)), plans, strict=True):
        np.testing.assert_array_equal(rows, plan_batches([np.array(split)], np.ones(9), 4, 2, (0,))[0])


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
def test_gradients_are_those_of_the_plainly_written_loss(loss: str, kind: str, n_outputs: int) -> None:
    values = torch.from_numpy(make_targets(kind, n_outputs))
    outputs, rows, shares = make_outputs(n_outputs)
    found = Targets(values, loss).gradients(outputs, rows, shares)
    assert found.shape == outputs.shape
    for c in range(3):
        for f in range(2):
            own = outputs[c, f].clone().requires_grad_()
            (plain_loss(loss, own, values[rows[f]]) * shares[f]).sum().backward()
            torch.testing.assert_close(found[c, f], own.grad, rtol=1e-12, atol=1e-14)


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


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["layers", "vmap"])
@pytest.mark.parametrize(("loss", "targets", "n_outputs"), CODED.values(), ids=CODED)
def test_training_is_the_plain_loop(loss: str, targets: str, n_outputs: int, kind: str, decay: float) -> None:
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
@pytest.mark.parametrize(("loss", "targets", "n_outputs"), CODED.values(), ids=CODED)
def test_networks_trained_together_are_those_trained_alone(
    loss: str, targets: str, n_outputs: int, kind: str, dtype: torch.dtype, bound: float
) -> None:
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


@pytest.mark.parametrize("length", [1, 7, 23, 100])
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
