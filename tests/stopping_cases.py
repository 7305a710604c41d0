"""Made-up steps for stop rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ngp.greedy.stopping import Stop, StopRule


def two_equal_folds() -> npt.NDArray[np.float64]:
    return np.array([0.5, 0.5])


@dataclass(frozen=True)
class FakeStep:
    before: float
    loss: float
    fold_losses: npt.NDArray[np.float64]
    n_selected: int
    n_columns: int
    fold_weights: npt.NDArray[np.float64] = field(default_factory=two_equal_folds)
    n_fits: int = 10
    seconds: float = 1.0
    action: str = "add"
    chance: float = float("nan")
    ahead: float = float("nan")
    n_ahead: int = 1


def path(losses: Sequence[float], spread: float = 0.0, columns_per_step: int = 1) -> list[FakeStep]:
    """Return steps with two folds, whose losses have the standard error `spread`."""
    return [
        FakeStep(before, loss, np.array([loss - spread, loss + spread]), k, k * columns_per_step)
        for k, (before, loss) in enumerate(zip([float("nan"), *losses], losses, strict=False))
    ]


def run(rule: StopRule, steps: Sequence[FakeStep]) -> tuple[int, Stop | None]:
    """Ask the rule after every step, as a pursuit does; return the number of additions and the answer."""
    for k in range(len(steps)):
        stop = rule.check(steps[: k + 1])
        if stop is not None:
            return k, stop
    return len(steps) - 1, rule.check(steps, exhausted=True)
