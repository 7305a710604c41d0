"""How the pictures of the gallery look, and in which order its examples come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler

from ngp.report.style import COLOURS, GRID

LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "font.size": 11.0,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
}
# From what one looks for first to what one looks for last; others follow by name.
ORDER = (
    "knee", "digits", "phase_transition", "compare", "groups", "grid_search", "own_estimator", "committee", "stability",
    "decoy", "xor", "prices", "gpu",
)  # fmt: skip


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Give the next example the common look."""
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(LOOK)


def place(path: str) -> tuple[int, str]:
    """Where an example comes."""
    name = Path(path).stem.removeprefix("plot_")
    return ORDER.index(name) if name in ORDER else len(ORDER), name
