"""Plots of the ranking, and of how close the picks were; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp.greedy.path import additions
from ngp.report.sources import names_of, steps_of
from ngp.report.style import COLOURS, GREY, NARROW, clean, figure_width, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bars_height", "plot_ranking", "plot_runners_up", "plot_stability"]

MOST_BARS, MOST_PAIRS = 60, 40
# Gaps of more standard errors than this are cut: they are clear in any case.
WIDEST_GAP = 5.0


def plot_ranking(source: Any, *, ax: Axes | None = None) -> Axes:
    """Plot what each selected feature took away of the loss, in the order of their selection.

    A bar is the drop of the validation loss in the step that added the feature, as a share of the loss at the start;
    of an exchange, the drop against the selection without either of the two. Of more than 60 features the first 60
    are shown.

    Parameters
    ----------
    source : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector, its result, or the steps of one.
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
    >>> plot_ranking(selector).get_xlabel()
    "share of the constant prediction's loss taken away (%)"
    """
    steps = steps_of(source)
    kept = additions(steps)
    start = steps[0].loss if steps[0].loss > 0 else 1.0
    longest = 18 if ax is not None and _is_narrow(ax) else 30
    shares = [100 * (step.before - step.loss) / start for step in kept[:MOST_BARS]]
    names = [f"{rank}. {shown_name(step.name, longest)}" for rank, step in enumerate(kept[:MOST_BARS], 1)]
    ax = ax or new_axes("plot_ranking", 6.4, bars_height(len(names)))
    _draw_bars(ax, names, shares, [f"{share:.1f}%" for share in shares], [COLOURS[0]] * len(names))
    what = "loss with the fixed columns" if len(steps[0].columns) else "constant prediction's loss"
    _label(ax, "share of the loss at the start (%)" if _is_narrow(ax) else f"share of the {what} taken away (%)")
    _title(ax, "What each feature added", len(names), len(kept))
    return ax


def plot_runners_up(source: Any, *, ax: Axes | None = None) -> Axes:
    """Plot how far the runner-up of each step was behind.

    A bar is the gap between the two losses in standard errors of the winner's loss (cut at 5); where it is shorter
    than one, the pick was a close call and the bar is orange. Of an exchange, the runner-up can be what was given away.
    Steps without a runner-up, such as drops, are left out; of the others the first 40 are shown. Where the validation
    has a single part there is no standard error: then the gap is shown as a share of the winner's loss.

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
    >>> plot_runners_up(selector).get_xlabel()
    'gap (standard errors)'
    """
    all_names = names_of(source)
    picks = [step for step in steps_of(source)[1:] if step.runner_up is not None]
    steps = picks[:MOST_PAIRS]
    ax = ax or new_axes("plot_runners_up", 6.4, bars_height(len(steps), lines=2))
    gaps = np.array([step.runner_up_loss - step.loss for step in steps])
    errors = np.array([step.standard_error for step in steps])
    has_errors = bool(len(steps)) and bool((errors > 0).all())
    scaled = gaps / errors if has_errors else 100 * gaps / np.array([step.loss or np.nan for step in steps])
    close = scaled < 1 if has_errors else np.zeros(len(steps), dtype=bool)
    pairs = [(step.name, all_names[step.runner_up or 0]) for step in steps]
    longest = 18 if _is_narrow(ax) else 30
    names = [f"{shown_name(winner, longest)}\nover {shown_name(second, longest)}" for winner, second in pairs]
    form = "{:.1f}" if has_errors else "{:.1f}%"
    labels = [form.format(gap) + (" close" if near else "") for gap, near in zip(scaled, close, strict=True)]
    colours = [COLOURS[1] if near else COLOURS[0] for near in close]
    _draw_bars(ax, names, np.minimum(scaled, WIDEST_GAP) if has_errors else scaled, labels, colours)
    if has_errors:
        ax.axvline(1, color="black", linewidth=0.8, linestyle="--")
    _label(ax, "gap (standard errors)" if has_errors else "gap (% of the winner's loss)")
    _title(ax, "How far the runner-up was behind", len(steps), len(picks))
    return ax


def plot_stability(frequencies: Mapping[str, float], *, ax: Axes | None = None) -> Axes:
    """Plot how often each feature was selected when the selection was repeated.

    Parameters
    ----------
    frequencies : mapping of names to shares
        From 0 to 1; the 60 largest are shown.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> plot_stability({"age": 1.0, "town": 0.35}).get_xlabel()
    'share of the repetitions that selected the feature (%)'
    """
    if not isinstance(frequencies, Mapping) or not frequencies:
        raise TypeError("frequencies must be a mapping of names to shares, such as {'age': 0.9}.")
    wrong = [name for name, share in frequencies.items() if not 0 <= share <= 1]
    if wrong:
        raise ValueError(f"frequencies has {frequencies[wrong[0]]!r} for {wrong[0]!r}: shares lie between 0 and 1.")
    ranked = sorted(frequencies.items(), key=lambda item: -item[1])[:MOST_BARS]
    names = [shown_name(str(name)) for name, _ in ranked]
    shares = [100 * share for _, share in ranked]
    ax = ax or new_axes("plot_stability", 6.4, bars_height(len(names)))
    colours = [COLOURS[0] if share >= 50 else COLOURS[5] for share in shares]
    _draw_bars(ax, names, shares, [f"{share:.0f}%" for share in shares], colours)
    ax.set_xlim(0, 112)
    ax.set_xticks(range(0, 101, 25))
    ax.axvline(50, color="black", linewidth=0.8, linestyle="--")
    _label(ax, "share of the repetitions that selected the feature (%)")
    _title(ax, "How stable the selection is", len(ranked), len(frequencies))
    return ax


def bars_height(n_bars: int, lines: int = 1) -> float:
    """Height in inches of a figure with so many bars, whose names have so many lines."""
    return 1.3 + (0.1 + 0.17 * lines) * max(n_bars, 1)


def _draw_bars(
    ax: Axes, names: Sequence[str], lengths: Sequence[float], labels: Sequence[str], colours: Sequence[str]
) -> None:
    rows = range(len(names))
    ax.barh(rows, lengths, color=colours, height=0.68)
    for row, length, label in zip(rows, lengths, labels, strict=True):
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # so that no line runs through it
        ax.annotate(
            label, (max(float(length), 0.0), row), (4, 0), textcoords="offset points", va="center", fontsize="small",
            bbox=ground,
        )  # fmt: skip
    ax.set_yticks(rows, names)
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)  # the first one on top
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.22 if _is_narrow(ax) else 0.12)
    clean(ax)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(GREY)


def _is_narrow(ax: Axes) -> bool:
    return figure_width(ax) < NARROW


def _label(ax: Axes, text: str) -> None:
    """Name the axis; in a narrow figure flush right, since there it is longer than the axis."""
    ax.set_xlabel(text, loc="right" if _is_narrow(ax) else "center", fontsize="small" if _is_narrow(ax) else "medium")


def _title(ax: Axes, title: str, n_shown: int, n_all: int) -> None:
    ax.set_title(title if n_shown == n_all else f"{title} (the first {n_shown} of {n_all})", loc="left")
