"""The compiled kernels; `ngp.kernels.plain` and `ngp.kernels.training` are their readable twins."""

from typing import Any

def score(
    arrays: tuple[Any, ...],
    sizes: tuple[int, ...],
    flags: tuple[bool, ...],
    ridge: float,
    linear_ridge: float,
    phases: int,
    state: Any,
) -> None: ...
def make_state(sizes: tuple[int, ...], flags: tuple[bool, ...]) -> Any: ...
def perceptron(
    arrays: tuple[Any, ...],
    sizes: tuple[int, ...],
    rates: tuple[float, float],
    decay: float,
    loss: int,
    single: bool,
) -> None: ...
def screen(arrays: tuple[Any, ...], sizes: tuple[int, ...]) -> None: ...
def use(name: str) -> tuple[str, int]: ...
def current() -> tuple[str, int]: ...
def gather(X: Any, rows: Any, columns: Any, mean: Any, scale: Any, bound: float, out: Any) -> None: ...
