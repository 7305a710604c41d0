"""Heat map of all candidates in all steps; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp._formatting import taken_back, undone
from ngp._types import FloatArray, IntArray
from ngp.greedy.path import Step
from ngp.report.sources import names_of, steps_of
from ngp.report.style import GREY, NARROW, figure_width, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_CANDIDATES", "candidates_height", "candidates_shown", "plot_candidates"]

MOST_CANDIDATES, FEW_CANDIDATES = 60, 20
# Of many candidates those are left out that never came nearer than this share of the winner's improvement.
FAR = 0.2
N_SHADES = 5
# Transparent to blue, so that what brought nothing fades into any background.
BLUE = (0.09, 0.50, 0.78)


def plot_candidates(source: Any, *, ax: Axes | None = None) -> Axes:
    """Plot, for every step, how near each candidate came to the one that was picked.

    A cell is the candidate's improvement of the loss as a share of the winner's: full colour is the winner (with a
    dot), no colour brought nothing. A line follows where the candidate is in, up to a cross where it was dropped. Of
    many candidates those that were picked, and those that came nearest to it, are shown: at most 60.

    Parameters
    ----------
    source : NeuralGreedyPursuit or Result
        A fitted selector, or its result.
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
    >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, y)
    >>> [label.get_text() for label in plot_candidates(selector).get_yticklabels()][:2]
    ['x1', 'x0']
    """
    from matplotlib.colors import LinearSegmentedColormap

    names, steps = names_of(source), steps_of(source)[1:]
    shares = improvement_shares(steps)
    rows = candidates_shown(steps, shares)
    ax = ax or new_axes("plot_candidates", 6.4, candidates_height(len(rows)))
    colours = LinearSegmentedColormap.from_list("share", [(*BLUE, 0.04), (*BLUE, 1.0)], N=N_SHADES)
    picture = ax.imshow(
        shares[:, rows].T, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="none",
        extent=(0.5, len(steps) + 0.5, len(rows) - 0.5, -0.5),
    )  # fmt: skip
    _mark_winners(ax, steps_of(source), rows)
    narrow = figure_width(ax) < NARROW
    longest = 18 if narrow else 30
    size = "x-small" if len(rows) > 30 else "small"
    ax.set_yticks(range(len(rows)), [shown_name(names[group], longest) for group in rows], fontsize=size)
    ax.set_xticks(range(1, len(steps) + 1, -(-len(steps) // (8 if narrow else 20))))
    ax.set_xlabel("step")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(picture, ax=ax, location="top", aspect=40, pad=0.01, fraction=0.05, shrink=0.9)
    bar.set_label("improvement, as a share of the winner's (%)", fontsize="small", loc="right" if narrow else "center")
    ticks = [shade / N_SHADES for shade in range(N_SHADES + 1)]
    bar.set_ticks(ticks, labels=[f"{100 * tick:.0f}" for tick in ticks])
    bar.ax.tick_params(labelsize="small", length=0)
    bar.outline.set_visible(False)
    return ax


def candidates_height(n_rows: int) -> float:
    """Height in inches of a figure with so many candidates."""
    return 1.4 + (0.165 if n_rows > 30 else 0.24) * max(n_rows, 2)


def improvement_shares(steps: Sequence[Step]) -> FloatArray:
    """Improvement of the loss as a share of the winner's, one row a step; NaN where not tried.

    In a step that improved nothing, the worst candidate takes the place of the loss before. A drop has no candidates
    to be added.
    """
    rows = []
    for step in steps:
        if step.action == "drop":
            rows.append(np.full(len(step.losses), np.nan))
            continue
        losses = np.where(np.isfinite(step.losses), step.losses, np.nan)
        best = step.loss
        reference = step.before if step.before > best else np.nanmax(losses)
        span = reference - best if np.isfinite(reference) and reference > best else 1.0
        rows.append(np.clip((best + span - losses) / span, 0, 1))
    return np.array(rows).reshape(len(steps), -1)


def candidates_shown(steps: Sequence[Step], shares: FloatArray | None = None) -> IntArray:
    """Those that were picked, in order, then those that came nearest to it; none that was never tried."""
    if not steps:
        return np.zeros(0, dtype=np.intp)
    nearest = np.nan_to_num((improvement_shares(steps) if shares is None else shares), nan=-1.0).max(axis=0)
    picked = [step.group for step in steps if step.group is not None]
    nearest[picked] = np.inf
    others = [int(g) for g in np.argsort(-nearest, kind="stable") if 0 <= nearest[g] < np.inf]
    order = [*dict.fromkeys(picked), *others]
    n_near = len(order) - len(others) + sum(nearest[g] >= FAR for g in others)
    return np.array(order[: min(MOST_CANDIDATES, max(FEW_CANDIDATES, n_near))], dtype=np.intp)


def _mark_winners(ax: Axes, steps: Sequence[Step], rows: IntArray) -> None:
    """A dot where a candidate was picked (hollow if taken back), a line while it is in, a cross where it is dropped."""
    places = {int(group): row for row, group in enumerate(rows)}
    size = min(5.0, max(1.5, 30 * figure_width(ax) / max(len(steps) - 1, 1)))  # so that it fits its cell
    drops, back = undone(steps), taken_back(steps)
    for number, step in enumerate(steps):
        row = places.get(-1 if step.group is None else step.group)
        if row is None:
            continue
        face = "none" if number in back else "#FDFDFD"
        ax.plot(number, row, "o", markersize=size, markerfacecolor=face, markeredgecolor="#FDFDFD", clip_on=False)
        end = drops.get(number, len(steps))
        if number not in back and number + 1 < end:
            ax.plot([number + 0.5, end - 0.5], [row, row], color=GREY, linewidth=1.0, alpha=0.6)
        if end < len(steps):
            ax.plot(end, row, "x", markersize=size + 1, markeredgewidth=1.5, color="#000000", clip_on=False)
