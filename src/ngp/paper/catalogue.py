"""All experiments by name."""

from __future__ import annotations

from importlib.util import find_spec

from ngp.paper.experiment import Experiment
from ngp.paper.regression import TABLE_1

__all__ = ["EXPERIMENTS", "missing_packages"]

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (TABLE_1,)}


def missing_packages(experiment: Experiment) -> list[str]:
    """Packages that an experiment needs and that are not installed.

    Parameters
    ----------
    experiment : Experiment
        What is to be run.
    """
    needed = [*experiment.needs, *(["matplotlib"] if experiment.draw else [])]
    return [package for package in needed if find_spec(package) is None]
