"""All experiments by name."""

from __future__ import annotations

from importlib.util import find_spec

from ngp.paper.curves import FIG_4, FIG_5
from ngp.paper.digits import FIG_1, FIG_6, TABLE_2
from ngp.paper.experiment import Experiment
from ngp.paper.phase import FIG_3
from ngp.paper.regression import TABLE_1

__all__ = ["EXPERIMENTS", "missing_packages"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (TABLE_1, TABLE_2, FIG_1, FIG_3, FIG_4, FIG_5, FIG_6)
}


def missing_packages(experiment: Experiment) -> list[str]:
    """Packages that an experiment needs and that are not installed."""
    needed = [*experiment.needs, *(["matplotlib"] if experiment.draw else [])]
    return [package for package in needed if find_spec(package) is None]
