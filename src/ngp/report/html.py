"""The report of a result: one HTML file that needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ngp.io import write_whole

if TYPE_CHECKING:
    from ngp.report.result import Result

__all__ = ["write_report"]


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
    write_whole(Path(path), _render(result).encode("utf-8"))


def _render(result: Result) -> str:
    missing = [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]
    if missing:
        raise ImportError(
            f"A report needs {' and '.join(missing)}: install with pip install 'neural-greedy-pursuit[report]'."
        )
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from ngp.report.figures import draw_figures
    from ngp.report.page import describe, seen

    # Names come from users: everything is escaped, but for the figures and the style, which are made here.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seen"] = seen
    folder = files("ngp.report")
    template = environment.from_string(folder.joinpath("template.html").read_text(encoding="utf-8"))
    figures = {
        name: [(Markup(svg), screen) for svg, screen in variants] for name, variants in draw_figures(result).items()
    }
    style = Markup(folder.joinpath("style.css").read_text(encoding="utf-8"))
    return template.render(describe(result), figures=figures, style=style)
