"""One look for all plots: colours, shapes, axes and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ngp._formatting import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "GREY",
    "GRID",
    "MARKERS",
    "PALETTE",
    "THEME",
    "clean",
    "figure_width",
    "is_narrow",
    "new_axes",
    "shown_name",
]

# Okabe and Ito's colours, which colour-blind readers can tell apart, each with a shape of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
GREY, GRID = "#6B6B6B", "#E4E4E4"
# Colours that are replaced by a page's own, which are different on light and on dark screens.
THEME = {
    "#000000": "--ink",
    "#ffffff": "--card",
    GREY.lower(): "--muted",
    "#8c8c8c": "--muted",
    GRID.lower(): "--line",
    COLOURS[0].lower(): "--blue",
    COLOURS[1].lower(): "--orange",
}
PALETTE = [f"var({THEME[colour.lower()]})" if colour.lower() in THEME else colour for colour in COLOURS]


def new_axes(what: str, width: float, height: float) -> Axes:
    """Axes of a new figure; an ImportError says how to install matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{what} needs matplotlib, which is not installed: run pip install neural-greedy-pursuit[plot]."
        ) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def figure_width(ax: Axes) -> float:
    """Width in inches of the figure that the axes are in."""
    figure: Any = ax.get_figure(root=True)
    return float(figure.get_figwidth())


def is_narrow(ax: Axes) -> bool:
    """Whether a figure needs short labels."""
    return figure_width(ax) < 5


def clean(ax: Axes) -> None:
    """Remove the upper and right lines, and put a light grid behind the rest."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def shown_name(name: str, longest: int = 24) -> str:
    r"""A name as a label: visible, not too long, and never read as a formula."""
    name = visible(name) or "(no name)"
    if len(name) > longest:
        end = longest // 3
        name = f"{name[: longest - 1 - end]}…{name[-end:]}"
    return name.replace("$", r"\$")
