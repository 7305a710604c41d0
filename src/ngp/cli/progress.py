"""Progress of a selection: a live table in a terminal, lines of text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ngp._formatting import duration, loss_change, metric, p_value, score, step_in_words, visible, with_error
from ngp._progress import Phase, watched

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from ngp.greedy.path import Step

__all__ = ["Progress"]

LONGEST_NAME = 40


class Progress:
    """Shows steps as they come: a callback of scikit-learn's kind."""

    def __init__(self, n_features: int | None, max_time: float | None, quiet: bool, made: Sequence[Step] = ()) -> None:
        self._n_features, self._max_time, self._quiet = n_features, max_time, quiet
        self._made = made  # steps of an earlier run
        self._steps: list[Step] = []
        self._task = ""
        self._begin = perf_counter()
        self._live: Any = None
        self._phase: Phase | None = None
        self._finished = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a live table during the work if standard error is a terminal."""
        self._begin = perf_counter()
        if self._quiet or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        # The newest steps, where the terminal is too low for all of them.
        most = max(3, console.height - 4)
        live = Live(console=console, get_renderable=lambda: self._shown(most), refresh_per_second=4)
        with live as self._live, watched(self._watch):
            yield
            most = len(self._steps)
            self._finished = True

    def _watch(self, phase: Phase) -> None:
        """Remember what is done now: the live table is drawn several times a second anyway."""
        self._phase = phase

    def _shown(self, most: int) -> Group:
        """The table, and below it what is done now."""
        from rich.console import Group

        return Group(self._table(most), *[str(self._phase)] * (self._phase is not None and not self._finished))

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is needed before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Show the steps that no task has shown."""
        self._see(estimator)

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Show the start, which is no task of its own."""
        self._see(estimator)

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        """Show the steps that were made."""
        self._see(estimator)
        return False

    def _see(self, estimator: Any) -> None:
        path, self._task = getattr(estimator, "path_", ()), estimator.task_
        for step in path[len(self._made) + len(self._steps) :]:
            self._show(step)

    def _show(self, step: Step) -> None:
        self._steps.append(step)
        if self._live is not None:
            self._live.refresh()
        elif not self._quiet:
            number, what, score, loss, change, p, left = self._cells(len(self._steps) - 1)
            parts = [f"step {number}", what, score and f"{metric(self._task)} {score}"]
            parts += [f"loss {loss}" + (change and f" ({change})"), p and f"p {p}", left and f"{left} left"]
            click.echo("  ".join(filter(None, parts)), err=True)

    def _cells(self, place: int) -> list[str]:
        """Number of a step, action, score, loss, both ± their errors, change of the loss, p-value, remaining time."""
        step, number = self._steps[place], str(len(self._made) + place)
        what = step_in_words(step, [*self._made, *self._steps], _short)
        scored, loss = score(step.score, step.score_error, self._task), with_error(step.loss, step.standard_error)
        left = None if step.action == "start" else self._seconds_left()
        remaining = f"about {duration(round(left))}" if left and left >= 0.5 else ""
        return [number, what, scored, loss, loss_change(step.gain), p_value(step.p_value), remaining]

    def _seconds_left(self) -> float | None:
        """The time of the last addition for each that is to come; None if their number is unknown."""
        estimates = []
        last = self._steps[-1]
        if self._n_features is not None:
            seconds = next((step.seconds for step in reversed(self._steps) if step.action == "add"), last.seconds)
            estimates.append(max(0, self._n_features - last.n_selected) * seconds)
        if self._max_time is not None:
            estimates.append(max(0.0, self._max_time - (perf_counter() - self._begin)))
        return min(estimates, default=None)

    def _table(self, most: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, caption_justify="left")
        titles = ("step", "feature", metric(self._task), "loss ± se", "change", "p", "time left")
        known = {
            "p": any(step.p_value >= 0 for step in self._steps),
            metric(self._task): any(step.score == step.score for step in self._steps),
        }
        shown = [title for title in titles if known.get(title, True)]
        for title in shown:
            table.add_column(title, justify="left" if title == "feature" else "right", no_wrap=title != "feature")
        for place in range(max(0, len(self._steps) - most), len(self._steps)):
            *cells, left = self._cells(place)
            cells.append(left if place == len(self._steps) - 1 else "")
            table.add_row(*(Text(cell) for title, cell in zip(titles, cells, strict=True) if title in shown))
        so_far = duration(round(perf_counter() - self._begin))
        table.caption = so_far if self._finished else f"{so_far} so far; Ctrl-C keeps what is there"
        return table


def _short(name: str) -> str:
    """A name that is safe to print and fits a line."""
    name = visible(name)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
