"""Pictures of a pursuit, and of a comparison of methods."""

from ngp.report.comparison_plot import plot_comparison
from ngp.report.plots import plot_path

__all__ = ["plot_comparison", "plot_path"]
