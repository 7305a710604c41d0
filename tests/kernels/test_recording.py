"""A recorded function gives what the function gives."""

from __future__ import annotations

import pytest
import torch

from ngp.kernels.recording import Recorder

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


class Product:
    """The product of two matrices and a constant one; counts how often it is asked for."""

    def __init__(self, device: str) -> None:
        self.constant = torch.arange(6.0, device=device).reshape(2, 3)
        self.n_calls = 0

    def __call__(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        self.n_calls += 1
        return (left @ right) @ self.constant + 1


def plainly(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return Product("cpu")(left, right)


def drawn(seed: int, n_rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_rows, 5, generator=generator), torch.randn(5, 2, generator=generator)


@pytest.mark.parametrize("device", DEVICES)
def test_each_call_has_its_own_answer(device: str) -> None:
    recorder, product = Recorder(device), Product(device)
    for seed in range(12):  # four shapes by turns
        arguments = drawn(seed, 4 + seed % 4)
        answer = recorder(product, *arguments)
        assert answer.device.type == device
        torch.testing.assert_close(answer.cpu(), plainly(*arguments))


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
def test_from_the_third_call_on_nothing_is_computed_in_python(device: str) -> None:
    recorder, product = Recorder(device), Product(device)
    for seed in range(6):
        recorder(product, *drawn(seed))
    assert product.n_calls == 2
    recorder(product, *drawn(0, 7))
    assert product.n_calls == 3


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
def test_what_cannot_be_recorded_runs_as_it_is(device: str) -> None:
    recorder, product = Recorder(device), Product(device)

    def waits(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return product(left, right) * float(left.abs().max())

    for seed in range(5):
        arguments = drawn(seed)
        expected = plainly(*arguments) * arguments[0].abs().max()
        torch.testing.assert_close(recorder(waits, *arguments).cpu(), expected)
    assert product.n_calls == 5 + 1  # and one that was in vain
