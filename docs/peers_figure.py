"""The picture of NGP beside its peers: what is found, and the time it takes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.peer_tables import NGP, RULES
from ngp.report.style import COLOURS, GREY, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(design: Mapping[str, Any], limit: float) -> bytes:
    """The picture as a PNG that says what it was drawn from."""
    target = io.BytesIO()
    about = {"Software": None, "Description": description(design, limit)}
    make_figure(design, limit).savefig(target, format="png", dpi=130, metadata=about)
    return target.getvalue()


def description(design: Mapping[str, Any], limit: float) -> str:
    """What is drawn, in words."""
    return "; ".join(f"{row['method']} ({row['rule']}): {said(row, limit)}" for row in design["rows"])


def said(row: Mapping[str, Any], limit: float) -> str:
    """What stands at the end of a bar."""
    if not row["f1"]:
        return f"not ended within {limit:g} s"
    seconds = row["seconds"]["mean"]
    return f"{row['f1']['mean']:.2f} in {seconds:.{0 if seconds >= 10 else 1 if seconds >= 0.1 else 2}f} s"


def make_figure(design: Mapping[str, Any], limit: float) -> Figure:
    """A panel for each rule, of a design whose relevant columns are known; the best method is on top."""
    from matplotlib.figure import Figure

    rows = {rule: ranked([row for row in design["rows"] if row["rule"] == rule]) for rule in RULES}
    figure = Figure(figsize=(10.5, 0.6 + 0.27 * max(map(len, rows.values()))), layout="constrained")
    for ax, (rule, words) in zip(figure.subplots(1, len(RULES)), RULES.items(), strict=True):
        _bars(ax, rows[rule], limit)
        ax.set_title(words[0].upper() + words[1:], fontsize=11)
        ax.set_xlabel("F1 of the relevant columns")
    return figure


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows, those that find most first."""
    return sorted(rows, key=lambda row: -row["f1"]["mean"] if row["f1"] else 1)


def _bars(ax: Any, rows: Sequence[Mapping[str, Any]], limit: float) -> None:
    places, colours = range(len(rows)), [COLOURS[1] if row["method"] == NGP else COLOURS[0] for row in rows]
    values = [row["f1"]["mean"] if row["f1"] else 0.0 for row in rows]
    ax.barh(places, values, height=0.66, color=colours)
    for place, row, value in zip(places, rows, values, strict=True):
        colour = "black" if row["f1"] else GREY
        ax.text(value + 0.02, place, said(row, limit), va="center", fontsize=8.5, color=colour)
    ax.set_yticks(places, [row["method"] for row in rows])
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row["method"] == NGP else "normal")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.32)
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    clean(ax)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
