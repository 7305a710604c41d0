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
from xml.etree import ElementTree

from ngp.greedy.path import additions
from ngp.io import refuse_other_suffixes, write_whole
from ngp.report import plots
from ngp.report.page import describe, seen
from ngp.report.result import Result
from ngp.report.style import THEME

__all__ = ["write_report"]

# Inches, of 96 pixels each: the narrow figures fit a telephone of 360 pixels.
WIDE, NARROW, SQUARE, SMALL = 8.6, 3.15, 4.8, (2.7, 1.9)
SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"


def write_report(result: Result, path: str | PathLike[str]) -> None:
    """Write a report that any browser opens, without a network.

    Parameters
    ----------
    result : Result
        What `ngp.report.result.Result.of` gathered or `ngp.report.result.Result.read` read.
    path : path
        The HTML file, with the suffix .html or .htm; its folder exists.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> from ngp.report.result import Result
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> write_report(Result.of(selector, X, y, target="current"), "report.html")  # doctest: +SKIP
    """
    refuse_other_suffixes(path, "a report", (".html", ".htm"))
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
    style = Markup(folder.joinpath("style.css").read_text(encoding="utf-8"))

    def draw(name: str, title: str, text: str) -> dict[str, Markup]:
        width, height, narrow_height = _size(name, result)
        sizes = {"wide": (width, height), "narrow": (NARROW, narrow_height)}
        plot = partial(PLOTS[name], result)
        return {screen: Markup(draw_svg(plot, f"{name}-{screen}", title, text, *sizes[screen])) for screen in sizes}

    def draw_curves() -> list[tuple[str, Markup]]:
        drawn = []
        for place, curve in enumerate(result.curves):
            name = result.features.names[curve.column]
            plot = partial(plots.draw_curve, result, curve)
            text = f"The average prediction for each value of {seen(name)}."
            drawn.append((name, Markup(draw_svg(plot, f"curve-{place}", seen(name), text, *SMALL))))
        return drawn

    drawing = {"draw": draw, "draw_curves": draw_curves, "style": style}
    page = template.render(describe(result), **drawing)
    write_whole(Path(path), page.encode("utf-8", "backslashreplace"))  # a name may hold half a surrogate pair


PLOTS: dict[str, Callable[..., object]] = {
    "path": plots.plot_path,
    "ranking": plots.draw_ranking,
    "calls": plots.draw_runners_up,
    "stability": plots.draw_stability,
    "candidates": plots.draw_candidates,
    "pixels": plots.draw_pixels,
    "fit": plots.draw_fit,
}


def _size(name: str, result: Result) -> tuple[float, float, float]:
    """Width, height and height on a narrow screen of a figure, in inches."""
    if name == "path":
        return WIDE, 4.4, 4.6
    if name == "fit":
        assert result.fit is not None
        size = SQUARE if result.fit.classes is None else min(WIDE, max(SQUARE, 1.6 + 0.3 * len(result.fit.classes)))
        return size, size, NARROW
    if name == "pixels":
        assert result.image is not None
        ratio = min(2.0, max(0.2, result.image.shape[0] / result.image.shape[1]))
        width = min(7.5, 4 / min(1.0, ratio) ** 0.5)
        return width, width * ratio, NARROW * ratio
    if name == "candidates":
        n_rows = len(plots.candidates_shown(plots.until_end(result.path)))
        height = 1.4 + (0.165 if n_rows > 30 else 0.24) * max(n_rows, 2)
        return min(WIDE, max(SQUARE, 3.7 + 0.5 * len(plots.until_end(result.path)))), height, height
    n_bars = {
        "ranking": min(len(additions(result.path)), plots.MOST_BARS),
        "calls": min(sum(step.runner_up is not None for step in plots.until_end(result.path)), plots.MOST_PAIRS),
        "stability": min(sum(map(bool, result.stability.frequencies)), plots.MOST_BARS) if result.stability else 0,
    }[name]
    height = 1.0 + (0.44 if name == "calls" else 0.27) * max(n_bars, 1)
    return WIDE, height, height


def draw_svg(plot: Callable[..., object], name: str, title: str, text: str, width: float, height: float) -> str:
    """A figure as an element of the page: with ids of its own, and the page's font and colours."""
    from matplotlib import style
    from matplotlib.figure import Figure

    look = {"svg.fonttype": "none", "svg.hashsalt": name, "axes.titlesize": "medium", "font.size": 9.5}
    file = BytesIO()
    with style.context(["default", look]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has other fonts
        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot()
        plot(ax=ax)
        for side in ("left", "center"):
            ax.set_title("", loc=side)  # the page has a heading instead
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", facecolor="none", metadata=nothing)
    root = ElementTree.fromstring(file.getvalue())
    _adapt(root, name)
    for place, (tag, words) in enumerate((("title", title), ("desc", text))):  # for those who can't see it
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = words
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
