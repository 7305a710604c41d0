"""Picture of the selected pixels of an image; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ngp._types import BoolArray, FloatArray, IntArray
from ngp.greedy.path import additions
from ngp.report.sources import steps_of
from ngp.report.style import COLOURS, figure_width, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_pixels"]

# Points that a number needs, so that it can be read within its pixels.
SMALLEST_BOX = 13.0


def plot_pixels(
    source: Any, image_shape: Sequence[int], image: npt.ArrayLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot which pixels were selected, with their rank in the order of selection where there is room for it.

    Parameters
    ----------
    source : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector whose columns are the pixels of an image in C order, its result, or its steps.
    image_shape : (rows, cols) or (rows, cols, channels)
        Shape of the image.
    image : array of shape (rows, cols), optional
        What is shown in grey behind, such as the mean of all images; the darker, the larger.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ngp import NeuralGreedyPursuit
    >>> X, y = load_digits(return_X_y=True)
    >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X[:300], y[:300])
    >>> plot_pixels(selector, (8, 8), X.mean(axis=0).reshape(8, 8)).get_title(loc="left")
    '2 of 64 pixels, in 2 steps'
    """
    steps = steps_of(source)
    kept = [steps[0], *additions(steps)]
    shape = tuple(int(size) for size in image_shape)
    highest = max((int(step.columns.max()) for step in kept if len(step.columns)), default=0)
    if len(shape) not in (2, 3) or min(shape) < 1 or highest >= np.prod(shape):
        raise ValueError(
            f"image_shape={tuple(image_shape)!r} is no shape of an image with a pixel {highest}: "
            "give (rows, cols) or (rows, cols, channels)."
        )
    ranks = np.full(np.prod(shape), np.nan)
    for rank, step in enumerate(kept):
        ranks[step.columns] = rank
    rank_image: FloatArray = np.fmin.reduce(ranks.reshape(*shape[:2], -1), axis=2)
    return _draw(rank_image, image, len(kept) - 1, ax)


def _draw(ranks: FloatArray, image: npt.ArrayLike | None, n_steps: int, ax: Axes | None) -> Axes:
    rows, cols = ranks.shape
    ax = ax or new_axes("plot_pixels", 4.4, 4.4 * min(2.0, max(0.4, rows / cols)) + 0.4)
    chosen = np.isfinite(ranks)
    ax.imshow(_coloured(chosen, image), interpolation="none")
    _outline(ax, ranks)
    box = 72 * figure_width(ax) * 0.9 / cols
    for rank in range(1, n_steps + 1):
        pixels: IntArray = np.argwhere(ranks == rank)
        if len(pixels) and box * np.sqrt(len(pixels)) >= SMALLEST_BOX:
            row, col = pixels.mean(axis=0)
            size = min(12.0, max(7.0, 0.3 * box * np.sqrt(len(pixels))))
            look = {"boxstyle": "round,pad=0.2", "facecolor": "#1A1A1A", "edgecolor": "none"}
            ax.text(col, row, str(rank), color="#FDFDFD", ha="center", va="center", fontsize=size, bbox=look)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(visible=True, color="#8C8C8C")
    n = int(chosen.sum())
    ax.set_title(f"{n} of {rows * cols} pixels, in {n_steps} step{'' if n_steps == 1 else 's'}", loc="left")
    return ax


def _outline(ax: Axes, ranks: FloatArray) -> None:
    """Draw the edges between pixels of different steps."""
    filled = np.nan_to_num(ranks, nan=-1.0)
    across = np.pad(filled, ((0, 0), (1, 1)), constant_values=-1)
    down = np.pad(filled, ((1, 1), (0, 0)), constant_values=-1)
    for row, col in np.argwhere(across[:, 1:] != across[:, :-1]):
        ax.plot([col - 0.5] * 2, [row - 0.5, row + 0.5], color=COLOURS[1], linewidth=1.8, clip_on=False)
    for row, col in np.argwhere(down[1:] != down[:-1]):
        ax.plot([col - 0.5, col + 0.5], [row - 0.5] * 2, color=COLOURS[1], linewidth=1.8, clip_on=False)


def _coloured(chosen: BoolArray, image: npt.ArrayLike | None) -> FloatArray:
    """The image, its selected pixels in shades of orange and the others in pale grey; or the selection alone."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    if image is None:
        flat = np.zeros((*chosen.shape, 4))
        flat[chosen] = to_rgba(COLOURS[1])
        return flat
    values = np.asarray(image, dtype=np.float64)
    if values.shape != chosen.shape:
        raise ValueError(
            f"image of shape {values.shape} isn't of the image_shape {chosen.shape}: give one value a pixel."
        )
    spread = float(np.ptp(values)) or 1.0
    shades = (values - values.min()) / spread
    grey, orange = colormaps["gray_r"](shades), colormaps["Oranges"](0.2 + 0.8 * shades)
    grey[..., 3] = 0.5
    mixed: FloatArray = np.where(chosen[..., None], orange, grey)
    return mixed
