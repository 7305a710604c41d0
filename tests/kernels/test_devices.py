"""Where torch runs, whatever this machine has: what is available is made up here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ngp.kernels import devices
from ngp.kernels.devices import require_torch, resolve_device


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make believe that there are GPUs."""

    def has(*names: str) -> None:
        monkeypatch.setattr(devices, "_may_have_gpu", lambda: bool(names))
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in names)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in names)

    return has


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("there", "dtype", "best"),
    [
        ((), "float32", "cpu"),
        (("cuda",), "float32", "cuda"),
        (("cuda",), "float64", "cuda"),
        (("mps",), "float32", "mps"),
        (("mps",), "float64", "cpu"),  # which has no double
        (("cuda", "mps"), "float32", "cuda"),
    ],
)
def test_auto_takes_the_best_device_there_is(machine: Any, there: tuple[str, ...], dtype: str, best: str) -> None:
    machine(*there)
    assert resolve_device("auto", dtype) == best


def test_any_device_can_be_chosen(machine: Any) -> None:
    machine("cuda", "mps")
    assert [resolve_device(name, "float32") for name in ("mps", "cpu", "cuda")] == ["mps", "cpu", "cuda"]


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there(machine: Any, device: str) -> None:
    machine()
    message = f"device='{device}' isn't available here for dtype='float32': use device='cpu' or 'auto'"
    with pytest.raises(ValueError, match=message):
        resolve_device(device, "float32")


def test_apples_gpus_have_no_double(machine: Any) -> None:
    machine("mps")
    with pytest.raises(ValueError, match="device='mps' isn't available here for dtype='float64'"):
        resolve_device("mps", "float64")


@pytest.mark.usefixtures("without_torch")
def test_without_torch_there_is_the_cpu() -> None:
    assert resolve_device("auto", "float32") == "cpu"
    assert resolve_device("cpu", "float32") == "cpu"
    with pytest.raises(ImportError, match=r"device='cuda' needs torch: .*pip install 'neural-greedy-pursuit\[torch\]'"):
        resolve_device("cuda", "float32")


@pytest.mark.usefixtures("without_torch")
def test_what_needs_torch_says_how_to_install_it() -> None:
    message = r"^predictor='mlp' needs torch: install it with pip install 'neural-greedy-pursuit\[torch\]'\.$"
    with pytest.raises(ImportError, match=message):
        require_torch("predictor='mlp'")


def test_with_torch_nothing_is_said() -> None:
    require_torch("predictor='mlp'")


def test_without_a_driver_torch_is_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "has_nvidia_driver", lambda: False)
    monkeypatch.setattr(devices.sys, "platform", "linux")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: pytest.fail("torch was asked"))
    assert resolve_device("auto", "float32") == "cpu"


def test_the_driver_is_looked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(devices.ctypes, "CDLL", asked.append)
    assert devices.has_nvidia_driver()
    monkeypatch.setattr(devices.sys, "platform", "win32")
    assert devices.has_nvidia_driver()
    assert asked == ["libcuda.so.1", "nvcuda.dll"]

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(devices.ctypes, "CDLL", missing)
    assert not devices.has_nvidia_driver()
