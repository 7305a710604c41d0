"""What happens after each step of a fit: it is saved, logged, printed, and told to callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ngp._formatting import group_names, step_in_words
from ngp.greedy.checkpoint import Checkpoint
from ngp.greedy.path import Step

__all__ = ["Monitor", "step_line"]

logger = logging.getLogger("ngp")
logger.addHandler(logging.NullHandler())


class Monitor:
    """The observer of a selector's pursuit (see `ngp.greedy.loop.Observer`).

    A step is saved before anybody hears of it, so that no callback can lose it.
    """

    def __init__(
        self,
        estimator: Any,
        context: Any,
        attributes: Callable[[Sequence[Step]], dict[str, Any]],
        checkpoint: Path | None,
        identity: dict[str, str],
        seed: int,
    ) -> None:
        self._estimator, self._context, self._attributes = estimator, context, attributes
        self._checkpoint, self._identity, self._seed = checkpoint, identity, seed
        self._task: Any = None

    def begin(self) -> None:
        """Tell scikit-learn's callbacks that a step begins."""
        self._task = self._context.subcontext(task_name="step").call_on_fit_task_begin(estimator=self._estimator)

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        """Save the steps, tell all who listen, and say whether a callback wants to stop."""
        if self._checkpoint:
            Checkpoint(self._identity, self._seed, steps).write(self._checkpoint)
        stop = False
        for step in steps[-n_new:]:
            line = step_line(step, steps)
            logger.info(line)
            if self._estimator.verbose:
                print(f"[ngp] {line}")
            stop |= bool(self._estimator.callback(step)) if self._estimator.callback else False
        if self._task is None:  # the start is no task of its own
            return stop
        made = tuple(steps)
        task, self._task = self._task, None
        asked = task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=lambda: self._attributes(made)
        )
        return stop or bool(asked)


def step_line(step: Step, steps: Sequence[Step] = ()) -> str:
    """A step in one line of text, which begins with the number of features that are selected then."""
    what = step_in_words(step, group_names(steps)) or "start"
    error = f" ± {step.standard_error:.2g}" if step.standard_error == step.standard_error else ""
    return f"{step.n_selected:4d}  {what:<24} loss {step.loss:.6g}{error}  {step.seconds:.1f} s"
