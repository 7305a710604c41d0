"""The compiled scorer; `ngp.compute.fallback` is its readable twin."""

from typing import Any

def score(
    arrays: tuple[Any, ...],
    sizes: tuple[int, ...],
    flags: tuple[bool, ...],
    ridge: float,
    linear_ridge: float,
    norm_bound: float,
) -> None: ...
def use(name: str) -> tuple[str, int]: ...
def current() -> tuple[str, int]: ...
def gather(X: Any, rows: Any, columns: Any, mean: Any, scale: Any, bound: float, out: Any) -> None: ...
