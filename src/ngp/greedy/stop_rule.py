"""The contract between the pursuit and the rules of `ngp.greedy.stopping`, which say when it has selected enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ngp._types import FloatArray

__all__ = ["StepLike", "Stop", "StopRule"]


class StepLike(Protocol):
    """What a stop rule reads of a step."""

    @property
    def action(self) -> str:
        """Whether it was an addition ("add") or something else."""

    @property
    def before(self) -> float:
        """Validation loss of the selection before the step, comparable with `loss`; unused at the start."""

    @property
    def loss(self) -> float:
        """Validation loss after the step."""

    @property
    def fold_losses(self) -> FloatArray:
        """Loss in every part of the validation, folds or pieces of them; the same parts in every step."""

    @property
    def fold_weights(self) -> FloatArray:
        """Share of each part in `loss`; they sum to 1."""

    @property
    def n_columns(self) -> int:
        """Number of columns selected after the step."""

    @property
    def n_selected(self) -> int:
        """Number of features (groups of columns) selected after the step."""

    @property
    def n_fits(self) -> int:
        """Number of selections scored in the step."""

    @property
    def seconds(self) -> float:
        """Duration of the step."""

    @property
    def chance(self) -> float:
        """Probability of gains as large by chance, of this step and of those before that may have been chance."""

    @property
    def ahead(self) -> float:
        """Loss that looking ahead has found; NaN where nobody looked."""

    @property
    def n_ahead(self) -> int:
        """Number of additions, this one among them, that lead to it."""


@dataclass(frozen=True)
class Stop:
    """The decision to stop.

    Attributes
    ----------
    reason : str
        Why, in words.
    keep : int
        Number of steps to keep, the start not counted: the selection is the one after ``steps[keep]``, later
        steps are taken back.
    partial : bool
        Whether the pursuit was cut short, and could have gone on.
    """

    reason: str
    keep: int
    partial: bool = False


@runtime_checkable
class StopRule(Protocol):
    """A rule that is asked after every step, the start included."""

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Say whether to stop, and how much to keep.

        Parameters
        ----------
        steps : sequence of steps
            All steps so far; ``steps[0]`` is the start.
        exhausted : bool
            True when no candidate is left. The path ends then in any case; a rule may still take additions
            back, and None means that all are kept.

        Returns
        -------
        Stop or None
            None to go on.
        """
