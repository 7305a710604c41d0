"""What one sees while the selector runs: a live table, or lines where nobody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ngp.cli.saying import is_terminal, printable
from ngp.words import duration, with_error

if TYPE_CHECKING:
    from rich.table import Table

    from ngp.path import Step

__all__ = ["Progress"]

LONGEST_NAME = 40


class Progress:
    """Shows steps as they come; to be given to the selector as its callback.

    Parameters
    ----------
    n_features : int or None
        How many features are asked for, where that is known.
    n_fixed : int
        How many of them are in from the start.
    max_time : float or None
        Seconds after which no step begins.
    quiet : bool
        Whether to show nothing.
    """

    def __init__(self, n_features: int | None, n_fixed: int, max_time: float | None, quiet: bool) -> None:
        self._n_features, self._n_fixed, self._max_time = n_features, n_fixed, max_time
        self._quiet = quiet
        self._steps: list[Step] = []
        self._begin = perf_counter()
        self._live: Any = None
        self._finished = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a live table where somebody watches, for as long as the work takes."""
        self._begin = perf_counter()
        if self._quiet or not is_terminal():
            yield
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        # The newest steps, where the terminal is too low for all of them.
        most = max(3, console.height - 4)
        with Live(console=console, get_renderable=lambda: self._table(most), refresh_per_second=4) as self._live:
            yield
            most = len(self._steps)
            self._finished = True

    def __call__(self, step: Step) -> None:
        """Take notice of a step."""
        self._steps.append(step)
        if self._live is not None:
            self._live.refresh()
        elif not self._quiet:
            number, name, loss, gain, left = self._cells(step)
            parts = [f"step {number}", f"add {name}" if gain else name, f"loss {loss}"]
            parts += [f"gain {gain}"] * bool(gain) + [f"{left} left"] * bool(left)
            click.echo("  ".join(parts), err=True)

    def _cells(self, step: Step) -> list[str]:
        """Number of the step, feature, loss ± its error, gain, time that is left."""
        number = str(step.n_selected - self._n_fixed)
        loss = with_error(step.loss, step.standard_error)
        if step.action == "start":
            return [number, "(fixed columns)" if self._n_fixed else "(constant prediction)", loss, "", ""]
        name = printable(step.name)
        if len(name) > LONGEST_NAME:
            name = f"{name[: LONGEST_NAME - 1]}…"
        gain = f"{step.gain:.1%}" if step.gain < 10 else f"{step.gain:,.0%}"
        left = self._seconds_left()
        return [number, name, loss, gain, f"about {duration(round(left))}" if left and left >= 0.5 else ""]

    def _seconds_left(self) -> float | None:
        """As long as the last step, for each that is to come; unknown where a threshold decides."""
        estimates = []
        last = self._steps[-1]
        if self._n_features is not None:
            estimates.append(max(0, self._n_features - last.n_selected) * last.seconds)
        if self._max_time is not None:
            estimates.append(max(0.0, self._max_time - (perf_counter() - self._begin)))
        return min(estimates, default=None)

    def _table(self, most: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, caption_justify="left")
        for title in ("step", "feature", "loss ± se", "gain", "time left"):
            table.add_column(title, justify="left" if title == "feature" else "right", no_wrap=title != "feature")
        for step in self._steps[-most:]:
            *cells, left = self._cells(step)
            table.add_row(*map(Text, [*cells, left if step is self._steps[-1] else ""]))
        so_far = duration(round(perf_counter() - self._begin))
        table.caption = so_far if self._finished else f"{so_far} so far; Ctrl-C keeps what is there"
        return table
