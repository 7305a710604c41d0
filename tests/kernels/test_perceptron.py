"""The compiled perceptron against the torch training, for every instruction set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ngp.data.losses import LOSSES
from ngp.kernels.networks import (
    LOSS_NUMBERS,
    StackedNetwork,
    Targets,
    pack_parameters,
    plan_batches,
    train,
    train_perceptron,
)
from ngp.kernels.scoring import _kernels, padded_width

pytestmark = [
    pytest.mark.skipif(_kernels is None, reason="the compiled module isn't built"),
    pytest.mark.usefixtures("one_torch_thread"),
]

INSTRUCTION_SETS = ("avx512", "avx2", "plain")
N_ROWS = 23
SIZES = [(1, 1), (2, 37), (7, 16), (8, 3), (9, 100), (17, 37)]  # inputs and units
CODED = {
    "squared error": ("squared_error", 1),
    "squared error, outputs": ("squared_error", 3),
    "cross-entropy, two classes": ("cross_entropy", 1),
    "cross-entropy, classes": ("cross_entropy", 3),
    "hinge, two classes": ("hinge", 1),
    "hinge, classes": ("hinge", 3),
}


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    in_use, _ = _kernels.use(request.param)
    if in_use != request.param:
        _kernels.use("")
        pytest.skip(f"this processor has no {request.param}")
    yield in_use
    _kernels.use("")


@dataclass(frozen=True)
class Case:
    loss: str = "squared_error"
    n_outputs: int = 1
    n_inputs: int = 3
    n_units: int = 10
    batch_size: int = 9  # batches of eight and of seven rows
    epochs: int = 2
    decay: float = 0.0
    rates: tuple[float, float] = (0.05, 0.03)
    weighted: bool = True
    dtype: str = "float64"
    seed: int = 0


def make_numbers(case: Case) -> dict[str, Any]:
    """Inputs, targets, initial parameters as torch has them, batches, and rows to predict."""
    rng = np.random.default_rng(case.seed)
    labels = rng.integers(0, max(2, case.n_outputs), size=N_ROWS)
    coded = labels[:, None].astype(float) if case.n_outputs == 1 else np.eye(case.n_outputs)[labels]
    if case.loss == "squared_error":
        coded = rng.normal(size=(N_ROWS, case.n_outputs))
    inputs = rng.normal(size=(N_ROWS, case.n_inputs))
    shapes = [(case.n_units, case.n_inputs), (case.n_units,), (case.n_outputs, case.n_units), (case.n_outputs,)]
    weights = rng.uniform(0.5, 2, size=N_ROWS) if case.weighted else np.ones(N_ROWS)
    return {
        "inputs": inputs.astype(case.dtype),
        "targets": coded.astype(case.dtype),
        "layers": [rng.normal(size=shape) / np.sqrt(shape[-1] or 1) for shape in shapes],
        "plan": plan_batches([np.arange(1, N_ROWS)], weights, case.batch_size, case.epochs, (0,)),
        "judged": np.array([0, 5, 5, 22, 1, 17, 3, 2, 9, 10, 11]),
    }


def by_kernel(case: Case, numbers: dict[str, Any]) -> Any:
    rows, shares = numbers["plan"]
    return train_perceptron(
        numbers["inputs"],
        numbers["targets"],
        pack_parameters(numbers["layers"], case.dtype),
        (rows[:, 0], shares[:, 0]),
        numbers["judged"],
        n_units=case.n_units,
        rates=case.rates,
        weight_decay=case.decay,
        loss=case.loss,
    )


def train_by_torch(case: Case, numbers: dict[str, Any]) -> Any:
    module = nn.Sequential(
        nn.utils.skip_init(nn.Linear, case.n_inputs, case.n_units, dtype=torch.float64),
        nn.ReLU(),
        nn.utils.skip_init(nn.Linear, case.n_units, case.n_outputs, dtype=torch.float64),
    )
    with torch.no_grad():
        for parameter, values in zip(module.parameters(), numbers["layers"], strict=True):
            parameter.copy_(torch.from_numpy(values))
    inputs = torch.from_numpy(numbers["inputs"])
    stack = StackedNetwork(module, 1, dtype=inputs.dtype)
    targets = Targets(torch.from_numpy(numbers["targets"]), case.loss)
    rates = [rate for rate in case.rates for _ in range(2)]
    train(stack, lambda rows: inputs[rows][None], targets, numbers["plan"], rates=rates, weight_decay=case.decay)
    return stack(inputs[numbers["judged"]][None])[0].detach().numpy()


@cache
def by_torch(case: Case) -> Any:
    return train_by_torch(case, make_numbers(case))


def difference(case: Case) -> float:
    """Largest one between kernel and torch, relative to the largest output."""
    expected = by_torch(case)
    found = by_kernel(case, make_numbers(case))
    assert found.dtype == expected.dtype
    return float(np.abs(found - expected).max() / max(1, np.abs(expected).max()))


def test_every_loss_has_a_number() -> None:
    assert set(LOSS_NUMBERS) == set(LOSSES)


@pytest.mark.parametrize(("loss", "n_outputs"), CODED.values(), ids=CODED)
def test_training_is_that_of_torch(loss: str, n_outputs: int, instruction_set: str) -> None:
    for n_inputs, n_units in SIZES:
        assert difference(Case(loss, n_outputs, n_inputs, n_units)) <= 1e-9
    for n_inputs, n_units in SIZES[::2]:
        assert difference(Case(loss, n_outputs, n_inputs, n_units, dtype="float32")) <= 1e-4


OTHERS = {
    "weight decay": Case(decay=0.3),
    "weight decay, outputs": Case(decay=0.3, n_outputs=2, n_units=21),
    "one rate": Case(rates=(0.02, 0.02)),
    "output layer alone": Case(rates=(0.0, 0.1)),
    "no weights": Case(weighted=False),
    "many steps": Case(epochs=20, n_units=33),
    "many outputs": Case("cross_entropy", 19, n_units=5),
}


def test_other_conditions(instruction_set: str) -> None:
    for case in OTHERS.values():
        assert difference(case) <= 1e-9


def test_no_inputs_are_inputs_of_zeros(instruction_set: str) -> None:
    case = Case("cross_entropy", 3, n_inputs=1)
    numbers = make_numbers(case)
    weights, *others = numbers["layers"]
    expected = train_by_torch(case, {**numbers, "inputs": np.zeros((N_ROWS, 1))})
    none = {**numbers, "inputs": np.zeros((N_ROWS, 0)), "layers": [weights[:, :0], *others]}
    np.testing.assert_allclose(by_kernel(replace(case, n_inputs=0), none), expected, rtol=1e-9, atol=1e-12)


def test_batches_of_every_size(instruction_set: str) -> None:
    for batch_size in (1, 2, 3, 4, 5, 8, 11, 22, 50):
        assert difference(Case(batch_size=batch_size, n_inputs=9)) <= 1e-9


def test_the_same_training_gives_the_same_bits_and_leaves_its_start_alone(instruction_set: str) -> None:
    dtype = "float32"
    case = Case("cross_entropy", 3, 9, 37, dtype=dtype)
    numbers = make_numbers(case)
    start = pack_parameters(numbers["layers"], dtype)
    before = start.copy()
    rows, shares = numbers["plan"]
    options = {"n_units": 37, "rates": (0.05, 0.03), "weight_decay": 0.0, "loss": case.loss}
    given = numbers["inputs"], numbers["targets"], start, (rows[:, 0], shares[:, 0]), numbers["judged"]
    first, second = (train_perceptron(*given, **options) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(start, before)


def test_judged_rows_are_predicted_one_by_one(instruction_set: str) -> None:
    """Also where they are fewer or more than the rows of a batch, and one of them comes twice."""
    case = Case("cross_entropy", 3, 5, 11)
    numbers = make_numbers(case)
    every = by_kernel(case, {**numbers, "judged": np.arange(N_ROWS)})
    for judged in ([], [7], [3, 1, 4, 1, 5, 9, 2, 6, 5], [*range(N_ROWS), *range(N_ROWS)]):
        found = by_kernel(case, {**numbers, "judged": np.array(judged, dtype=np.intp)})
        np.testing.assert_allclose(found, every[judged], rtol=1e-12, atol=1e-14)


def test_rows_that_only_fill_up_teach_nothing(instruction_set: str) -> None:
    case = Case("squared_error", 2, 4, 13, dtype="float32")
    numbers = make_numbers(case)
    rows, shares = numbers["plan"]
    assert (shares == 0).any()
    found = [by_kernel(case, {**numbers, "plan": (np.where(shares > 0, rows, other), shares)}) for other in (2, 9)]
    np.testing.assert_array_equal(*found)


def test_packed_parameters_hold_the_layers_and_zeros(instruction_set: str) -> None:
    rng = np.random.default_rng(0)
    layers = [rng.normal(size=shape) for shape in ((5, 3), (5,), (2, 5), (2,))]
    width = padded_width(5, np.dtype("float64"))
    packed = pack_parameters(layers, "float64")
    rows, last = packed[: 6 * width].reshape(6, width), packed[6 * width :]
    np.testing.assert_array_equal(rows[:3, :5], layers[0].T)
    np.testing.assert_array_equal(rows[3, :5], layers[1])
    np.testing.assert_array_equal(rows[4:, :5], layers[2])
    np.testing.assert_array_equal(last, layers[3])
    assert not rows[:, 5:].any()


def test_a_training_that_overflows_is_no_number_where_torch_has_none(instruction_set: str) -> None:
    """A candidate whose training diverges must lose, not be judged by what looks like numbers."""
    for (loss, n_outputs), rate in product(CODED.values(), 10.0 ** np.array([2, 10, 18, 19, 20, 35])):
        case = Case(loss, n_outputs, epochs=4, rates=(rate, rate), dtype="float32")
        assert np.isfinite(by_kernel(case, make_numbers(case))).all() == np.isfinite(by_torch(case)).all()


def test_a_decay_that_overflows_is_no_number_where_torch_has_none(instruction_set: str) -> None:
    case = Case(epochs=4, rates=(1e4, 1e5), decay=1e-3, dtype="float32")
    assert not np.isfinite(by_torch(case)).all()
    assert not np.isfinite(by_kernel(case, make_numbers(case))).all()


def test_a_parameter_that_is_no_number_spoils_the_outputs(instruction_set: str) -> None:
    for (loss, n_outputs), layer in product(CODED.values(), range(4)):
        case = Case(loss, n_outputs)
        numbers = make_numbers(case)
        numbers["layers"][layer].flat[0] = np.nan
        assert np.isnan(train_by_torch(case, numbers)).any()
        assert np.isnan(by_kernel(case, numbers)).any()


def test_threads_can_train_side_by_side(instruction_set: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    cases = [replace(Case("cross_entropy", 3, epochs=10), n_inputs=n) for n in (1, 4, 9, 17)] * 3
    expected = [by_kernel(case, make_numbers(case)) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda case: by_kernel(case, make_numbers(case)), cases))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(find_spec("triton") is None, reason="triton isn't installed")
@pytest.mark.skipif(torch.cuda.is_available(), reason="there its kernels are compiled, and tested as such")
@pytest.mark.parametrize(
    ("loss", "n_outputs"), [coded for coded in CODED.values() if coded[0] != "hinge"], ids=lambda each: str(each)
)
def test_the_triton_kernel_as_it_is_interpreted_is_that_of_torch(loss: str, n_outputs: int) -> None:
    from ngp.kernels.perceptron_gpu import fits, train_perceptrons

    case = Case(loss, n_outputs, 3, 10, decay=0.1, dtype="float32")
    numbers = make_numbers(case)
    assert fits(case.n_units, case.batch_size, n_outputs, loss)
    found = train_perceptrons(
        torch.from_numpy(numbers["inputs"])[None],
        torch.from_numpy(numbers["targets"]),
        [layer[None] for layer in numbers["layers"]],
        numbers["plan"],
        numbers["judged"][None],
        rates=case.rates,
        weight_decay=case.decay,
        loss=loss,
    )
    np.testing.assert_allclose(found[0, 0], by_torch(case), atol=1e-4)
