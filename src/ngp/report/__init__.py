"""Pictures of a pursuit, of a comparison of methods, and of ROAR's curves; and the report, a single HTML file."""

from ngp.report.candidates_plot import plot_candidates
from ngp.report.comparison_plot import plot_comparison
from ngp.report.fit_plot import plot_fit
from ngp.report.html import write_report
from ngp.report.pixels_plot import plot_pixels
from ngp.report.plots import plot_path
from ngp.report.ranking_plot import plot_ranking, plot_runners_up, plot_stability
from ngp.report.roar_plot import plot_roar

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
