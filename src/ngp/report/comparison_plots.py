"""Plots of several methods side by side; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp._types import FloatArray
from ngp.report.style import COLOURS, MARKERS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from ngp.baselines import RoarCurve

__all__ = ["plot_comparison", "plot_roar"]

DARK, MIDDLE, FAINT = "#707070", "#D8D8D8", "#F2F2F2"
LONGEST_LABEL = 32


def plot_comparison(table: DataFrame, *, ax: Axes | None = None) -> Axes:
    """Plot the scores of methods side by side.

    A row per method, a mark per downstream predictor; the bars are one standard error over the folds, and hollow
    marks are worse than the best of their predictor by more than the error. On the right: how many features were
    selected, how long that took, and how well the folds agree. A method without scores shows its status instead.

    Parameters
    ----------
    table : pandas DataFrame
        What `ngp.compare` returns; sort its rows as you like.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from ngp import compare
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> table = compare(X, y, ["ngp", "lasso"], cv=3, downstream=["ridge"], random_state=0)
    >>> plot_comparison(table.sort_values("ridge", ascending=False)).get_xlabel()
    'R², mean ± standard error over the folds (hollow: worse than the best beyond error)'
    """
    columns = list(getattr(table, "columns", ()))
    predictors = [name for name in columns if f"{name}_se" in columns]
    if not predictors or "status" not in columns or not len(table):
        raise TypeError("table has no scores to plot: give what ngp.compare returns, one row per method.")
    ax = ax or new_axes("plot_comparison", 8.4, 1.4 + len(table) * max(0.32, 0.1 + 0.11 * len(predictors)))
    _draw_bands(ax, len(table))
    _draw_scores(ax, table, predictors)
    _write_status(ax, table, predictors)
    _label_rows(ax, table, predictors)
    scoring = table.attrs.get("scoring", "score")
    ax.set_xlabel(
        f"{'R²' if scoring == 'r2' else scoring}, mean ± standard error over the folds (hollow: worse than the best "
        "beyond error)"
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, handletextpad=0.3, columnspacing=1.2)
    return ax


def _draw_bands(ax: Axes, n_rows: int) -> None:
    for row in range(0, n_rows, 2):
        ax.axhspan(row - 0.5, row + 0.5, color=FAINT, zorder=0, linewidth=0)
    ax.set_ylim(n_rows - 0.5, -0.5)  # the first row on top
    ax.grid(axis="x", color=MIDDLE, linewidth=0.6)
    ax.set_axisbelow(True)


def _draw_scores(ax: Axes, table: DataFrame, predictors: list[str]) -> None:
    lowest = _lowest_shown(table[predictors].to_numpy(dtype=np.float64))
    for i, name in enumerate(predictors):
        color, shape = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        scores, spread = (table[column].to_numpy(dtype=np.float64) for column in (name, f"{name}_se"))
        heights = np.arange(len(table)) + 0.8 * ((i + 0.5) / len(predictors) - 0.5)
        shown = np.where(scores < lowest, np.nan, scores)
        ax.errorbar(
            shown, heights, xerr=np.nan_to_num(spread), fmt=shape, color=color, markersize=5, elinewidth=1.0, label=name
        )
        close = np.array([repr(name) in str(names).replace('"', "'") for names in table["within_error"]])
        ax.plot(shown[~close], heights[~close], shape, color="white", markersize=2.5, zorder=3)
        for row in np.flatnonzero(scores < lowest):
            _write(ax, heights[row], f"◂ {scores[row]:.3g}", fontsize="x-small", color=color)


def _lowest_shown(scores: FloatArray) -> float:
    """The score at the left edge; scores far below the others would squeeze these together."""
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return -np.inf
    middle = np.median(scores)
    lowest = float(middle - 10 * (scores.max() - middle))
    return lowest if scores.min() < lowest < middle else -np.inf


def _write_status(ax: Axes, table: DataFrame, predictors: list[str]) -> None:
    """Write why a method has no scores in their place."""
    for row, missing in enumerate(table[predictors].isna().all(axis=1)):
        if missing:
            text = _shortened(str(table["status"].iloc[row]), 72)
            _write(ax, row, text, fontsize="small", color=DARK)


def _write(ax: Axes, height: float, text: str, **look: Any) -> None:
    """Write at the left edge; a long text may cross the right one."""
    ax.text(0.01, height, text, transform=ax.get_yaxis_transform(), va="center", **look).set_in_layout(False)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _label_rows(ax: Axes, table: DataFrame, predictors: list[str]) -> None:
    """Write the methods on the left, what they selected on the right."""
    rows, without = range(len(table)), table[predictors].isna().all(axis=1)
    ax.set_yticks(rows, [_shortened(str(label), LONGEST_LABEL) for label in table.index])
    ax.tick_params(axis="y", length=0)
    for text, missing in zip(ax.get_yticklabels(), without, strict=True):
        text.set_color(DARK if missing else "black")
    right = ax.secondary_yaxis("right")
    facts = zip(_facts(table), without, strict=True)
    right.set_yticks(rows, ["" if missing else text for text, missing in facts])
    right.tick_params(length=0, labelsize="small", labelcolor=DARK)
    right.spines["right"].set_visible(False)


def _facts(table: DataFrame) -> list[str]:
    """Number of features, seconds and agreement of each row, and what went wrong."""
    numbers = _padded(table["n_selected"], "{:.3g}")
    seconds = _padded(table["seconds"], "{:.2f}")
    facts = []
    for row, (agreement, status) in enumerate(zip(table["agreement"], table["status"], strict=True)):
        text = f"{numbers[row]} features, {seconds[row]} s"
        text += f", agreement {agreement:.2f}" if np.isfinite(agreement) else ""
        facts.append(text if status == "ok" else f"{text}\n{_shortened(status, LONGEST_LABEL)}")
    return facts


def _padded(values: Iterable[float], form: str) -> list[str]:
    """Numbers of the same width, padded with spaces as wide as a digit; blanks for NaN."""
    texts = [form.format(value) if np.isfinite(value) else "" for value in values]
    width = max(map(len, texts))
    return [text.rjust(width, "\u2007") for text in texts]


def plot_roar(curves: Mapping[str, RoarCurve], *, ax: Axes | None = None) -> Axes:
    """Plot the validation loss against the share of the features that are removed, most important first.

    The steeper a curve rises, the better the ranking: what it puts first can't be replaced by the rest. Error bars
    are one standard error.

    Parameters
    ----------
    curves : mapping of labels to RoarCurve
        One curve for each ranking, made on the same data (see `ngp.baselines.roar_curve`).
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from ngp.baselines import Correlation, roar_curve
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> ranking = Correlation().fit(X, y)
    >>> curve = roar_curve(X, y, ranking, shares=(0, 0.1, 0.2), random_state=0)
    >>> plot_roar({"correlation": curve}).get_xlabel()
    'features removed, most important first (%)'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError("curves must be a mapping of labels to curves, such as {'ngp': roar_curve(X, y, selector)}.")
    ax = ax or new_axes("plot_roar", 6.4, 4.4)
    for number, (label, curve) in enumerate(curves.items()):
        colour, mark = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        x, y, errors = 100 * curve.shares, curve.losses, curve.standard_errors
        ax.errorbar(x, y, yerr=errors, label=label, color=colour, marker=mark, elinewidth=1.0)
    ax.set_xlabel("features removed, most important first (%)")
    ax.set_ylabel("validation loss after retraining ± standard error")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax
