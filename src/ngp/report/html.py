"""The report: a result as one HTML file that needs nothing else."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from ngp.greedy.path import additions
from ngp.io import write_whole
from ngp.report import plots
from ngp.report.page import describe, seen
from ngp.report.result import Result
from ngp.report.style import COLOURS, GREY, GRID

__all__ = ["write_report"]

# Inches, of 96 pixels each: the narrow figures fit a telephone of 360 pixels.
WIDE, NARROW, SQUARE = 8.6, 3.15, 4.8
SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
# Colours that are replaced by the page's own, which are different on light and on dark screens.
THEME = {
    "#000000": "--ink",
    "#ffffff": "--card",
    GREY.lower(): "--muted",
    "#8c8c8c": "--muted",
    GRID.lower(): "--line",
    COLOURS[0].lower(): "--blue",
    COLOURS[1].lower(): "--orange",
}


def write_report(result: Result, path: str | PathLike[str]) -> None:
    """Write a report that any browser opens, without a network.

    Parameters
    ----------
    result : Result
        What `ngp.report.result.Result.of` gathered or `ngp.report.result.Result.read` read.
    path : path
        The HTML file; its folder exists.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> from ngp.report.result import Result
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> write_report(Result.of(selector, X, y, target="current"), "report.html")  # doctest: +SKIP
    """
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ImportError(
            f"A report needs {' and '.join(missing)}: install with pip install 'neural-greedy-pursuit[report]'."
        )
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    # Names come from users: everything is escaped except for the figures and the style, which are made here.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seen"] = seen
    folder = files("ngp.report")
    template = environment.from_string(folder.joinpath("template.html").read_text(encoding="utf-8"))
    figures = {
        figure.name: {screen: Markup(svg) for screen, svg in _draw(figure).items()} for figure in _figures(result)
    }
    style = Markup(folder.joinpath("style.css").read_text(encoding="utf-8"))
    write_whole(Path(path), template.render(describe(result), figures=figures, style=style).encode("utf-8"))


class Figure(NamedTuple):
    """A plot of the report."""

    name: str
    title: str
    text: str  # for those who can't see it
    draw: Callable[..., object]
    height: float
    narrow_height: float
    width: float = WIDE


def _figures(result: Result) -> list[Figure]:
    steps, fit, image = result.path, result.fit, result.image
    size = SQUARE if fit.classes is None else min(WIDE, max(SQUARE, 1.6 + 0.3 * len(fit.classes)))
    text = "Each row's predicted value against its true value."
    if fit.classes is not None:
        text = "Confusion matrix: how often each class was predicted as each class."
    found = [Figure("fit", "Predictions and truth", text, partial(plots.plot_fit, result), size, NARROW, size)]
    if len(steps) > 1:
        text = "The loss after each step with its standard error, the steps that were undone, and the runners-up."
        draw: Callable[..., object] = partial(plots.plot_path, result)
        found.append(Figure("path", "Validation loss along the path", text, draw, 4.4, 4.6))
        text = "How close each candidate came to the one that was picked."
        draw, n_shown = partial(plots.plot_candidates, result), len(plots.candidates_shown(steps[1:]))
        height = plots.candidates_height(n_shown)
        width = min(WIDE, max(SQUARE, 3.2 + 0.5 * len(steps)))
        found.append(Figure("candidates", "All candidates in all steps", text, draw, height, height, width))
    if n_ranked := len(additions(steps)):
        text = "The share of the loss at the start that each selected feature took away."
        draw, height = partial(plots.plot_ranking, result), _bars_height(n_ranked, plots.MOST_BARS)
        found.append(Figure("ranking", "What each feature added", text, draw, height, height))
    if n_pairs := sum(step.runner_up is not None for step in steps):
        text = "The gap between the losses of the winner and the runner-up."
        draw, height = partial(plots.plot_runners_up, result), _bars_height(n_pairs, plots.MOST_PAIRS, lines=2)
        found.append(Figure("calls", "How far the runner-up was behind", text, draw, height, height))
    if result.stability is not None and any(result.stability.frequencies):
        text = "The share of the halves of the rows on which each feature was selected."
        shares = zip(result.groups.names, result.stability.frequencies, strict=True)
        positive = {name: share for name, share in shares if share > 0}
        draw, height = partial(plots.plot_stability, positive), _bars_height(len(positive), plots.MOST_BARS)
        found.append(Figure("stability", "How stable the selection is", text, draw, height, height))
    if image is not None:
        text = "The mean image with the selected pixels, and their ranks."
        draw, ratio = partial(plots.plot_pixels, result, image.shape, image.mean), image.shape[0] / image.shape[1]
        ratio = min(2.0, max(0.2, ratio))
        found.append(Figure("pixels", "Selected pixels", text, draw, 4 * ratio, NARROW * ratio, 4))
    return found


def _bars_height(n_bars: int, most: int, lines: int = 1) -> float:
    return plots.bars_height(min(n_bars, most), lines) - 0.3  # the page has a heading instead of the title


def _draw(figure: Figure) -> dict[str, str]:
    """SVG for wide and for narrow screens."""
    return {
        "wide": draw_svg(figure, f"{figure.name}-wide", figure.width, figure.height),
        "narrow": draw_svg(figure, f"{figure.name}-narrow", NARROW, figure.narrow_height),
    }


def draw_svg(figure: Figure, name: str, width: float, height: float) -> str:
    """A figure as an element of the page: with ids of its own, and the page's font and colours."""
    from matplotlib import style
    from matplotlib.figure import Figure as Canvas

    look = {"svg.fonttype": "none", "svg.hashsalt": name, "axes.titlesize": "medium", "font.size": 9.5}
    file = BytesIO()
    with style.context(["default", look]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has other fonts
        canvas = Canvas(figsize=(width, height), layout="constrained")
        ax = canvas.add_subplot()
        figure.draw(ax=ax)
        for side in ("left", "center"):
            ax.set_title("", loc=side)
        canvas.savefig(
            file, format="svg", facecolor="none", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    root = ElementTree.fromstring(file.getvalue())
    _adapt(root, name)
    for place, (tag, text) in enumerate((("title", figure.title), ("desc", figure.text))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(place, element)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-labelledby": f"{name}-title {name}-desc"})
    root.set("style", f"max-width: {width * 96:.0f}px")
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(root: ElementTree.Element, name: str) -> None:
    """Make ids unique and colours the page's, and remove styles that would change the page as a whole."""
    for parent in root.iter():
        for child in [child for child in parent if child.tag in (f"{{{SVG}}}style", f"{{{SVG}}}metadata")]:
            parent.remove(child)
        link = parent.attrib.pop(LINK, None)
        if link is not None:
            parent.set("href", f"#{name}-{link[1:]}" if link.startswith("#") else link)
        for key, value in parent.attrib.items():
            if key == "id":
                parent.set(key, f"{name}-{value}")
            elif key in ("style", "clip-path"):
                parent.set(key, _recoloured(value.replace("url(#", f"url(#{name}-")))


def _recoloured(style: str) -> str:
    style = re.sub(r"font-family: [^;]*;? ?", "", style)
    style = re.sub(r"font: ([^;]*?)(\d[\d.]*px) [^;]*", r"font-size: \2", style)
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: f"var({THEME[match[0]]})" if match[0] in THEME else match[0], style)
