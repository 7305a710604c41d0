"""Pictures of a pursuit, of a comparison of methods, and of ROAR's curves."""

from ngp.report.comparison_plot import plot_comparison
from ngp.report.plots import plot_path
from ngp.report.roar_plot import plot_roar

__all__ = ["plot_comparison", "plot_path", "plot_roar"]
