"""Plots of the path of a pursuit; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ngp._formatting import group_names, only_additions, taken_back
from ngp._types import FloatArray, IntArray
from ngp.greedy.path import Step, additions
from ngp.report.sources import steps_of
from ngp.report.style import COLOURS, GREY, NARROW, figure_width, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_path"]

KEPT, STOP, TAKEN_BACK, RUNNER_UP = *COLOURS[:2], GREY, "#8C8C8C"
# How steps are shown, with their marks in the order of the legend: sign, colour, face.
MARKS = {
    "selected": ("o", KEPT, KEPT),
    "dropped": ("v", KEPT, KEPT),
    "undone later": ("o", KEPT, "white"),
    "taken back": ("o", TAKEN_BACK, "white"),
}
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

    Where features were dropped or exchanged, the loss is plotted against the number of the step. A triangle is a drop;
    hollow blue circles are additions that a later step has undone.

    Parameters
    ----------
    path : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector, its result, or the steps of one (its `path_`).
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> plot_path(selector).get_ylabel()
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
    places, losses, errors = _columns(steps)
    kinds = _kinds(steps)
    stood = np.flatnonzero(kinds != "taken back")
    # A stretch that was taken back goes off from the last step that stood.
    for first, end in zip(stood, [*stood[1:], len(steps)], strict=True):
        if first + 1 < end:
            ax.plot(places[first:end], losses[first:end], color=TAKEN_BACK, linewidth=1.0, zorder=2)
    ax.plot(places[stood], losses[stood], color=KEPT, linewidth=1.8, zorder=2)
    size = 6.0 if len(steps) <= MOST_LABELS else 4.5
    for kind, (mark, color, face) in MARKS.items():
        part = kinds == kind
        if part.any():
            ax.errorbar(
                places[part], losses[part], yerr=errors[:, part], fmt=mark, color=color, markerfacecolor=face,
                markersize=size, elinewidth=1.0, label=kind, zorder=3,
            )  # fmt: skip
    start = "fixed columns" if len(steps[0].columns) else "constant prediction"
    ax.axhline(losses[0], color="black", linestyle="--", linewidth=0.8, label=start, zorder=1)


def _kinds(steps: Sequence[Step]) -> npt.NDArray[np.str_]:
    """What each step is shown as: one of `MARKS`."""
    back = taken_back(steps)
    return np.array([
        "taken back" if number in back
        else "undone later" if not step.kept
        else "dropped" if step.action == "drop"
        else "selected"
        for number, step in enumerate(steps)
    ])  # fmt: skip


def _places(steps: Sequence[Step]) -> IntArray:
    """Where each step is drawn: at its number of features or, as that can also fall, at its own number."""
    return np.array([step.n_selected for step in steps]) if only_additions(steps) else np.arange(len(steps))


def _columns(steps: Sequence[Step]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places, losses, and the lengths of the error bars downwards and upwards."""
    losses = np.array([step.loss for step in steps])
    errors = np.nan_to_num(np.array([step.standard_error for step in steps]))
    # No bar reaches down to zero, where a logarithmic axis ends.
    bars = np.array([np.minimum(errors, 0.9 * np.abs(losses)), errors])
    return _places(steps).astype(np.float64), losses, bars


def _draw_runners_up(ax: Axes, steps: Sequence[Step]) -> None:
    places = _places(steps) + 0.22
    losses = np.array([step.runner_up_loss for step in steps])
    if np.isfinite(losses).any():
        ax.plot(places, losses, "_", color=RUNNER_UP, markersize=7, markeredgewidth=1.8, label="runner-up", zorder=2)


def _mark_stop(ax: Axes, steps: Sequence[Step]) -> None:
    number = max(number for number, step in enumerate(steps) if step.kept)
    last, place = steps[number], _places(steps)[number]
    label = f"the selection: {last.n_selected} feature{'' if last.n_selected == 1 else 's'}"
    ax.axvline(place, color=STOP, linewidth=1.0, alpha=0.5, zorder=1)
    ax.plot(place, last.loss, "o", color=STOP, markersize=13, markerfacecolor="none", markeredgewidth=1.8, label=label)


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
    ordered = sorted(marks, key=lambda mark: mark[1] not in MARKS)
    if figure_width(ax) < NARROW:  # where it would hide the path
        ax.figure.legend(*zip(*ordered, strict=True), loc="outside lower left", **COMPACT)
    else:
        ax.legend(*zip(*ordered, strict=True), edgecolor="none", framealpha=0.9)


def _label_steps(ax: Axes, steps: Sequence[Step]) -> None:
    """Write what was added or dropped below the axis (of a long path every so many steps), and the numbers above."""
    room = min(1.0, figure_width(ax) / USUAL_WIDTH)
    every = -(-len(steps) // int(MOST_LABELS * room))
    shown, places = steps[::every], _places(steps)
    names = _tick_names(steps, shown, longest=24 if len(shown) <= 12 * room else 18)
    look: dict[str, Any] = {}
    letters = 15 * (figure_width(ax) - 1)  # that fit beside one another, about
    gap = 0 if only_additions(steps) else 1  # so that no sign is read with the name before it
    if (max(map(len, names)) + gap) * len(names) > letters:
        look = (
            {"rotation": 90} if len(shown) > 12 * room else {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
        )
    ax.set_xticks(places[::every], names, **look)
    for kind, text in zip(_kinds(steps)[::every], ax.get_xticklabels(), strict=True):
        text.set_color(TAKEN_BACK if kind == "taken back" else "black")
    what = "feature added"
    if not only_additions(steps):
        what = "added (+) or dropped (−)" if room < 1 else "feature added (+), dropped (−) or exchanged"
    ax.set_xlabel(what if every == 1 else f"{what} (every {_ordinal(every)} is named)")
    _number_steps(ax, steps, every=-(-len(steps) // int(20 * room)))


def _tick_names(steps: Sequence[Step], shown: Sequence[Step], longest: int) -> list[str]:
    """What each step did, in a few letters; where features are only added, their names are enough."""
    added, plus = group_names(steps), "" if only_additions(steps) else "+ "

    def label(step: Step) -> str:
        if step.action == "start":
            return "fixed" if len(step.columns) else "none"
        if step.action == "swap" and step.dropped is not None:
            return f"{shown_name(step.name, longest // 2)} for {shown_name(added[step.dropped], longest // 2)}"
        return f"{'− ' if step.action == 'drop' else plus}{shown_name(step.name, longest)}"

    return [label(step) for step in shown]


def _number_steps(ax: Axes, steps: Sequence[Step], every: int) -> None:
    """Write the numbers of features above the plot."""
    above, numbers = ax.secondary_xaxis("top"), [step.n_selected for step in steps]
    labels = None if only_additions(steps) else [str(number) for number in numbers[::every]]
    above.set_xticks(_places(steps)[::every], labels)
    above.tick_params(length=0, labelsize="small", labelcolor=TAKEN_BACK)
    above.spines["top"].set_visible(False)
    above.set_xlabel("number of features", fontsize="small", color=TAKEN_BACK)


def _ordinal(number: int) -> str:
    return f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _title(steps: Sequence[Step]) -> str:
    n_added, n_fixed = len(additions(steps)), steps[0].n_selected
    title = f"{n_added} of {len(steps[0].losses)} candidates selected"
    return f"{title}, beside {n_fixed} fixed columns" if n_fixed else title
