"""Figures as SVG that lives inside a page: no clashing ids, the page's font, the page's light or dark colours."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from ngp.report.style import COLOURS, GREY, GRID

__all__ = ["draw_svg"]

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
PIXELS_AN_INCH = 96
# What the page paints in a colour of its own, so that it can be read on light and on dark ground.
THEME = {
    "#000000": "--ink",
    "#ffffff": "--card",
    GREY.lower(): "--muted",
    "#8c8c8c": "--muted",
    GRID.lower(): "--line",
    COLOURS[0].lower(): "--blue",
    COLOURS[1].lower(): "--orange",
}


def draw_svg(
    draw: Callable[[Any], object], width: float, height: float, *, name: str, title: str, description: str
) -> str:
    """Draw into a new figure, and return it as an element for a page."""
    from matplotlib import style
    from matplotlib.figure import Figure

    look = {"svg.fonttype": "none", "svg.hashsalt": name, "axes.titlesize": "medium", "font.size": 9.5}
    file = BytesIO()
    with style.context(["default", look]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's browser has others
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", facecolor="none", metadata=nothing)
    root = ElementTree.fromstring(file.getvalue())
    _adapt(root, name)
    _describe(root, name, title, description)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-labelledby": f"{name}-title {name}-desc"})
    root.set("style", f"max-width: {width * PIXELS_AN_INCH:.0f}px")
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(root: ElementTree.Element, name: str) -> None:
    """Make ids this figure's own, colours the page's, and drop what styles the page as a whole."""
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


def _describe(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(place, element)
