"""Plot of ROAR's curves: how much is lost when the features that a ranking puts first are removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ngp.report.style import COLOURS, MARKERS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ngp.baselines import RoarCurve

__all__ = ["plot_roar"]


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
    if ax is None:
        ax = new_axes("plot_roar", 6.4, 4.4)
    for number, (label, curve) in enumerate(curves.items()):
        ax.errorbar(
            100 * curve.shares,
            curve.losses,
            yerr=curve.standard_errors,
            label=label,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            elinewidth=1.0,
        )
    ax.set_xlabel("features removed, most important first (%)")
    ax.set_ylabel("validation loss after retraining ± standard error")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax
