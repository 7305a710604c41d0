"""One look for all pictures: colours, shapes, and what to say where matplotlib is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "GREY", "GRID", "MARKERS", "NARROW", "clean", "figure_width", "new_axes", "shown_name", "visible"]

# Okabe and Ito's colours, which colour-blind readers can tell apart, each with a shape of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
GREY, GRID = "#6B6B6B", "#E4E4E4"
# Figures of fewer inches have shorter labels.
NARROW = 5.0


def new_axes(what: str, width: float, height: float) -> Axes:
    """Axes of a new figure, or how to install matplotlib."""
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


def clean(ax: Axes) -> None:
    """Leave out the lines that carry nothing, and put a light grid behind the rest."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def visible(text: str) -> str:
    r"""Write characters that can't be seen, such as line breaks, in the way of Python."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def shown_name(name: str, longest: int = 24) -> str:
    r"""A user's name as a label: visible, not too long, and never read as a formula."""
    name = visible(name) or "(no name)"
    if len(name) > longest:
        end = longest // 3
        name = f"{name[: longest - 1 - end]}…{name[-end:]}"
    return name.replace("$", r"\$")
