"""Pictures of a pursuit."""

from ngp.report.plots import plot_path

__all__ = ["plot_path"]
