"""The figures of the report: each one wide and narrow, for large and small screens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ngp.greedy.path import additions
from ngp.report.candidates_plot import candidates_height, candidates_shown, plot_candidates
from ngp.report.fit_plot import plot_fit
from ngp.report.pixels_plot import plot_pixels
from ngp.report.plots import plot_path
from ngp.report.ranking_plot import MOST_BARS, MOST_PAIRS, bars_height, plot_ranking, plot_runners_up, plot_stability
from ngp.report.svg import draw_svg

if TYPE_CHECKING:
    from ngp.report.result import Result

__all__ = ["draw_figures"]

# Inches; of 96 pixels each, the narrow ones fit a telephone of 360 pixels.
WIDE, NARROW, SQUARE = 8.6, 3.15, 4.8


def draw_figures(result: Result) -> dict[str, list[tuple[str, str]]]:
    """All figures, by name: for each the SVG and the screens that it is for, "wide", "narrow" or "all"."""
    steps = result.steps
    figures = {}
    if len(steps) > 1:
        figures["path"] = _pair(
            lambda ax: _without_title(plot_path(result, ax=ax)), 4.4, 4.6, "path", "Validation loss along the path",
            "The loss after each step with its standard error, the steps that were undone, and the runners-up.",
        )  # fmt: skip
        height = candidates_height(len(candidates_shown(steps[1:])))
        wide = min(WIDE, max(SQUARE, 3.2 + 0.5 * len(steps)))
        figures["candidates"] = _pair(
            lambda ax: plot_candidates(result, ax=ax), height, height, "candidates",
            "All candidates in all steps", "How near each candidate came to the one that was picked.", wide,
        )  # fmt: skip
    n_ranked = len(additions(steps))
    if n_ranked:
        height = bars_height(min(n_ranked, MOST_BARS)) - 0.3
        figures["ranking"] = _pair(
            lambda ax: _without_title(plot_ranking(result, ax=ax)), height, height, "ranking",
            "What each feature added", "The share of the loss at the start that each selected feature took away.",
        )  # fmt: skip
    n_pairs = sum(step.runner_up is not None for step in steps)
    if n_pairs:
        height = bars_height(min(n_pairs, MOST_PAIRS), lines=2) - 0.3
        figures["gaps"] = _pair(
            lambda ax: _without_title(plot_runners_up(result, ax=ax)), height, height, "gaps",
            "How far the runner-up was behind", "The gap between the losses of the winner and the runner-up.",
        )  # fmt: skip
    shares = stable_shares(result)
    if shares:
        height = bars_height(min(len(shares), MOST_BARS)) - 0.3
        figures["stability"] = _pair(
            lambda ax: _without_title(plot_stability(shares, ax=ax)), height, height, "stability",
            "How stable the selection is", "The share of the halves of the rows on which each feature was selected.",
        )  # fmt: skip
    return figures | _square_figures(result)


def stable_shares(result: Result) -> dict[str, float]:
    """Names of what was selected on some half, and on how large a share of them; nothing where nobody asked."""
    if result.stability is None:
        return {}
    shares = zip(result.groups["names"], result.stability["frequencies"], strict=True)
    return {name: share for name, share in shares if share > 0}


def _square_figures(result: Result) -> dict[str, list[tuple[str, str]]]:
    figures, picture = {}, result.image
    if picture is not None:
        rows, cols = picture["shape"][:2]
        figures["pixels"] = _single(
            lambda ax: _without_title(plot_pixels(result, picture["shape"], picture["mean"], ax=ax)),
            SQUARE - 0.8, (SQUARE - 0.8) * min(2.0, max(0.2, rows / cols)), "pixels", "Selected pixels",
            "The mean image with the selected pixels, and their ranks.",
        )  # fmt: skip
    title, confusion = "Predictions and truth", result.fit["confusion"]
    if confusion is None:
        text = "Each row's predicted value against its true value."
        figures["fit"] = _pair(
            lambda ax: plot_fit(result, ax=ax), SQUARE, NARROW, "fit", title, text, SQUARE
        )  # fmt: skip
    else:
        size = min(WIDE, max(SQUARE, 1.6 + 0.3 * len(confusion["classes"])))
        figures["fit"] = _pair(
            lambda ax: plot_fit(result, ax=ax), size, NARROW, "fit", title,
            "Confusion matrix: how often each class was predicted as each class.", size,
        )  # fmt: skip
    return figures


def _pair(
    draw: Callable[[Any], object],
    wide_height: float,
    narrow_height: float,
    name: str,
    title: str,
    text: str,
    wide: float = WIDE,
) -> list[tuple[str, str]]:
    """One figure for each kind of screen, of which the page shows the one that fits."""
    sizes = {"wide": (wide, wide_height), "narrow": (NARROW, narrow_height)}
    return [
        (draw_svg(draw, *size, name=f"{name}-{screen}", title=title, description=text), screen)
        for screen, size in sizes.items()
    ]


def _single(
    draw: Callable[[Any], object], width: float, height: float, name: str, title: str, text: str
) -> list[tuple[str, str]]:
    """One figure for all screens."""
    return [(draw_svg(draw, width, height, name=name, title=title, description=text), "all")]


def _without_title(ax: Any) -> None:
    """The page has a heading in its place."""
    ax.set_title("", loc="left")
    ax.set_title("")
