"""Plot of the final predictor's fit; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ngp.report.result import Result
from ngp.report.style import COLOURS, clean, figure_width, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_fit"]

# Points of the letters in the cells; smaller ones can't be read.
LARGEST_LETTERS, SMALLEST_LETTERS = 8.5, 5.5


def plot_fit(result: Result, *, ax: Axes | None = None) -> Axes:
    """Plot predictions against the truth, or the confusion matrix of classes.

    Parameters
    ----------
    result : Result
        It says on which rows the predictor was judged.
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
    >>> from ngp.report.result import Result
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X[:150], y[:150])
    >>> result = Result.of(selector, X[:150], y[:150], target="current", held_out=(X[150:], y[150:]))
    >>> plot_fit(result).get_ylabel()
    'predicted current'
    """
    if not isinstance(result, Result):
        raise TypeError(f"result={result!r} is no result: give Result.of(selector, X, y, held_out=(X_new, y_new)).")
    if result.fit["confusion"] is not None:
        n_classes = len(result.fit["confusion"]["classes"])
        ax = ax or new_axes("plot_fit", max(4.4, 1.4 + 0.27 * n_classes), max(4.4, 1.2 + 0.27 * n_classes))
        _draw_confusion(ax, result)
    else:
        ax = ax or new_axes("plot_fit", 4.4, 4.4)
        _draw_scatter(ax, result)
    return ax


def _draw_scatter(ax: Axes, result: Result) -> None:
    scatter = result.fit["scatter"] or {"truth": [], "predicted": []}
    truth, predicted = (np.array(scatter[name], dtype=np.float64) for name in ("truth", "predicted"))
    opacity = float(np.clip(60 / max(len(truth), 1), 0.25, 0.7))
    ax.plot(truth, predicted, "o", color=COLOURS[0], markersize=4, markeredgewidth=0, alpha=opacity)
    finite = np.concatenate([truth, predicted])
    finite = finite[np.isfinite(finite)]
    if len(finite):
        ends = [float(finite.min()), float(finite.max())]
        ax.plot(ends, ends, color="black", linewidth=0.8, linestyle="--")
    ax.set_aspect("equal", adjustable="datalim")
    target = shown_name(result.asked["target"])
    ax.set_xlabel(f"true {target}")
    ax.set_ylabel(f"predicted {target}")
    clean(ax)


def _draw_confusion(ax: Axes, result: Result) -> None:
    """Counts, coloured by their share in the row, so that rare classes show as well."""
    from matplotlib.colors import LinearSegmentedColormap

    classes = result.fit["confusion"]["classes"]
    counts = np.array(result.fit["confusion"]["counts"])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    colours = LinearSegmentedColormap.from_list("share", [(0.09, 0.50, 0.78, 0.0), (0.09, 0.50, 0.78, 1.0)])
    ax.imshow(shares, cmap=colours, vmin=0, vmax=1, interpolation="none")
    names = [shown_name(name, 14) for name in classes]
    turn = 90 if max(map(len, names)) * len(names) > 40 else 0
    ax.set_xticks(range(len(classes)), names, rotation=turn)
    ax.set_yticks(range(len(classes)), names)
    ax.tick_params(length=0, labelsize="small")
    cell = 72 * (figure_width(ax) - 1.2) / len(classes)
    size = min(LARGEST_LETTERS, (cell - 3) / (0.65 * len(str(counts.max()))))
    if size >= SMALLEST_LETTERS:
        for row, col in np.argwhere(counts > 0):
            # White on blue, and on pale cells what the background asks for.
            colour = "#FDFDFD" if shares[row, col] > 0.45 else "black"
            ax.text(col, row, str(counts[row, col]), ha="center", va="center", fontsize=size, color=colour)
    ax.set_xlabel(f"predicted {shown_name(result.asked['target'])}")
    ax.set_ylabel(f"true {shown_name(result.asked['target'])}")
    ax.spines[:].set_color("#8C8C8C")
