"""The authors' rule for when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ngp.greedy.path import Step
from ngp.greedy.stopping import Stop, StopRule

__all__ = ["ETA", "TOL", "PublishedRule"]

# As published: of the change of an NME in dB.
ETA = 0.06
# The same idea for `NeuralGreedyPursuit`: what a step must gain, relative to the loss that is left. It suits the
# paper's artificial data, on which it was chosen; what it selects there is printed by python -m benchmarks.recovery.
TOL = 0.09


@dataclass(frozen=True)
class PublishedRule(StopRule):
    """Stop when the validation NME, in dB, changes by less than a share of itself, or rises.

    The step that didn't pay is taken back. Both values are taken under the random numbers of the step.
    """

    mean_square: float
    eta: float = ETA

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Compare the last step with the selection before it; the constant prediction has no say in it."""
        if len(steps) < 3:
            return None
        last, now = (10 * np.log10(loss / self.mean_square) for loss in (steps[-1].before, steps[-1].loss))
        if now < last and abs(now - last) >= self.eta * abs(last):
            return None
        return Stop(f"the NME changed by less than {self.eta} of itself", keep=len(steps) - 2)
