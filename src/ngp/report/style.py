"""One look for all pictures: colours, shapes, and what to say where matplotlib is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "MARKERS", "clean", "new_axes"]

# Okabe and Ito's colours, which colour-blind readers can tell apart, each with a shape of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


def new_axes(what: str, width: float, height: float) -> Axes:
    """Axes of a new figure, or how to install matplotlib.

    Parameters
    ----------
    what : str
        The function that draws, for the message.
    width, height : float
        Size of the figure in inches.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{what} needs matplotlib, which is not installed: run pip install neural-greedy-pursuit[plot]."
        ) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def clean(ax: Axes) -> None:
    """Leave out the lines that carry nothing, and put a light grid behind the rest."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#E4E4E4", linewidth=0.6)
    ax.set_axisbelow(True)
