"""Plots of the path of a pursuit; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp._types import FloatArray
from ngp.path import Step
from ngp.report.sources import steps_of
from ngp.report.style import COLOURS, GREY, NARROW, figure_width, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_path"]

KEPT, STOP, TAKEN_BACK, RUNNER_UP = *COLOURS[:2], GREY, "#8C8C8C"
MOST_LABELS = 40
# The width in inches at which so many labels fit.
USUAL_WIDTH = 6.4
COMPACT = {"ncols": 2, "fontsize": "small", "frameon": False, "handlelength": 1.4, "columnspacing": 1.0}
# Losses that differ by more than this factor are shown on a logarithmic axis.
LOG_FROM = 10.0
# And by more than this one with labels at powers of ten alone.
MANY_DECADES = 1000.0


def plot_path(path: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the validation loss against the number of selected features.

    Error bars are one standard error. Full circles are the steps that make up the selection, hollow grey ones were
    taken back. A grey dash beside a step is the loss that the runner-up would have led to: the nearer, the closer
    the call. The axis of the losses is logarithmic where they differ by more than a factor of 10.

    Parameters
    ----------
    path : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector, its result, or the steps of one (its `path_`).
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> plot_path(selector).get_ylabel()  # doctest: +SKIP
    'validation loss ± standard error'
    """
    steps = steps_of(path)
    if ax is None:
        ax = new_axes("plot_path", min(14.0, max(6.4, 3.0 + 0.3 * len(steps))), 4.8)
    _draw_losses(ax, steps)
    _mark_stop(ax, steps)
    _draw_runners_up(ax, steps)
    _label_steps(ax, steps)
    _label_losses(ax, steps)
    ax.set_title(_title(steps))
    ax.spines[["top", "right"]].set_visible(False)
    _add_legend(ax)
    return ax


def _draw_losses(ax: Axes, steps: Sequence[Step]) -> None:
    numbers, losses, errors = _columns(steps)
    n_kept = sum(step.kept for step in steps)
    ax.plot(numbers[n_kept - 1 :], losses[n_kept - 1 :], color=TAKEN_BACK, linewidth=1.0, zorder=2)
    ax.plot(numbers[:n_kept], losses[:n_kept], color=KEPT, linewidth=1.8, zorder=2)
    size = 6.0 if len(steps) <= MOST_LABELS else 4.5
    parts = [(slice(n_kept), "selected", KEPT, KEPT), (slice(n_kept, None), "taken back", TAKEN_BACK, "white")]
    for part, label, color, face in parts:
        if len(numbers[part]):
            ax.errorbar(
                numbers[part], losses[part], yerr=errors[:, part], fmt="o", color=color, markerfacecolor=face,
                markersize=size, elinewidth=1.0, label=label, zorder=3,
            )  # fmt: skip
    start = "fixed columns" if len(steps[0].columns) else "constant prediction"
    ax.axhline(losses[0], color="black", linestyle="--", linewidth=0.8, label=start, zorder=1)


def _columns(steps: Sequence[Step]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Numbers of features, losses, and the lengths of the error bars downwards and upwards."""
    numbers = np.array([step.n_selected for step in steps], dtype=np.float64)
    losses = np.array([step.loss for step in steps])
    errors = np.nan_to_num(np.array([step.standard_error for step in steps]))
    # No bar reaches down to zero, where a logarithmic axis ends.
    return numbers, losses, np.array([np.minimum(errors, 0.9 * np.abs(losses)), errors])


def _draw_runners_up(ax: Axes, steps: Sequence[Step]) -> None:
    numbers = np.array([step.n_selected for step in steps]) + 0.22
    losses = np.array([step.runner_up_loss for step in steps])
    if np.isfinite(losses).any():
        ax.plot(numbers, losses, "_", color=RUNNER_UP, markersize=7, markeredgewidth=1.8, label="runner-up", zorder=2)


def _mark_stop(ax: Axes, steps: Sequence[Step]) -> None:
    last = [step for step in steps if step.kept][-1]
    n = last.n_selected
    label = f"the selection: {n} feature{'' if n == 1 else 's'}"
    ax.axvline(n, color=STOP, linewidth=1.0, alpha=0.5, zorder=1)
    ax.plot(n, last.loss, "o", color=STOP, markersize=13, markerfacecolor="none", markeredgewidth=1.8, label=label)


def _label_losses(ax: Axes, steps: Sequence[Step]) -> None:
    from matplotlib.ticker import LogLocator

    ax.set_ylabel("validation loss ± standard error")
    losses = np.array([step.loss for step in steps])
    if losses.min() > 0 and losses.max() > LOG_FROM * losses.min():
        ax.set_yscale("log")
        if losses.max() < MANY_DECADES * losses.min():
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.yaxis.set_minor_formatter("")


def _add_legend(ax: Axes) -> None:
    marks = zip(*ax.get_legend_handles_labels(), strict=True)
    ordered = sorted(marks, key=lambda mark: mark[1] not in ("selected", "taken back"))
    if figure_width(ax) < NARROW:  # where it would hide the path
        ax.figure.legend(*zip(*ordered, strict=True), loc="outside lower left", **COMPACT)
    else:
        ax.legend(*zip(*ordered, strict=True), edgecolor="none", framealpha=0.9)


def _label_steps(ax: Axes, steps: Sequence[Step]) -> None:
    """Write what was added below the axis (of a long path every so many steps), and the numbers above."""
    room = min(1.0, figure_width(ax) / USUAL_WIDTH)
    every = -(-len(steps) // int(MOST_LABELS * room))
    shown = steps[::every]
    start = "fixed" if len(steps[0].columns) else "none"
    longest = 24 if len(shown) <= 12 * room else 18
    names = [start if step.action == "start" else shown_name(step.name, longest) for step in shown]
    look: dict[str, Any] = {}
    letters = 15 * (figure_width(ax) - 1)  # that fit beside one another, about
    if max(map(len, names)) * len(names) > letters:
        look = (
            {"rotation": 90} if len(shown) > 12 * room else {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
        )
    ax.set_xticks([step.n_selected for step in shown], names, **look)
    for step, text in zip(shown, ax.get_xticklabels(), strict=True):
        text.set_color("black" if step.kept else TAKEN_BACK)
    ax.set_xlabel("feature added" if every == 1 else f"feature added (every {_ordinal(every)} is named)")
    above = ax.secondary_xaxis("top")
    above.set_xticks([step.n_selected for step in steps[:: -(-len(steps) // int(20 * room))]])
    above.tick_params(length=0, labelsize="small", labelcolor=TAKEN_BACK)
    above.spines["top"].set_visible(False)
    above.set_xlabel("number of features", fontsize="small", color=TAKEN_BACK)


def _ordinal(number: int) -> str:
    return f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _title(steps: Sequence[Step]) -> str:
    n_kept, n_fixed = sum(step.kept for step in steps) - 1, steps[0].n_selected
    title = f"{n_kept} of {len(steps[0].losses)} candidates selected"
    return f"{title}, beside {n_fixed} fixed columns" if n_fixed else title
