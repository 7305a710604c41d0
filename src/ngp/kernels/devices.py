"""Where torch runs, and what to say where it isn't installed."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec

__all__ = ["has_nvidia_driver", "require_torch", "resolve_device"]


def require_torch(what: str) -> None:
    """Say how to install torch if something needs it and it isn't there."""
    if find_spec("torch") is None:
        raise ImportError(f"{what} needs torch: install it with pip install 'neural-greedy-pursuit[torch]'.")


def has_nvidia_driver() -> bool:
    """Whether there is a driver for CUDA devices: to ask torch would take a second or two just to import it."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def resolve_device(device: str, dtype: str) -> str:
    """The device to run on; "auto" is the best there is."""
    if device == "cpu" or (device == "auto" and not _may_have_gpu()):
        return "cpu"
    require_torch(f"device={device!r}")
    import torch

    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available() and dtype == "float32",
        "cpu": True,
    }
    if device == "auto":
        return next(name for name, there in available.items() if there)
    if not available[device]:
        raise ValueError(f"device={device!r} isn't available here for dtype={dtype!r}: use device='cpu' or 'auto'.")
    return device


def _may_have_gpu() -> bool:
    return find_spec("torch") is not None and (sys.platform == "darwin" or has_nvidia_driver())
