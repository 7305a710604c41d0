"""Plots of a selection, of a comparison of methods and of ROAR's curves, and the report: a single HTML file."""

from ngp.report.comparison_plots import plot_comparison, plot_roar
from ngp.report.html import write_report
from ngp.report.plots import (
    plot_candidates,
    plot_fit,
    plot_path,
    plot_pixels,
    plot_ranking,
    plot_runners_up,
    plot_stability,
)

__all__ = [
    "plot_candidates",
    "plot_comparison",
    "plot_fit",
    "plot_path",
    "plot_pixels",
    "plot_ranking",
    "plot_roar",
    "plot_runners_up",
    "plot_stability",
    "write_report",
]
