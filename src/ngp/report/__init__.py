"""Plots of a selection, of a comparison of methods and of ROAR's curves, and the report: a single HTML file."""

from ngp.report.comparison_plots import plot_comparison, plot_roar
from ngp.report.html import write_report
from ngp.report.plots import plot_path, plot_pixels

__all__ = ["plot_comparison", "plot_path", "plot_pixels", "plot_roar", "write_report"]
