"""Neural Greedy Pursuit: choose the few inputs that matter for a non-linear prediction."""

from importlib.metadata import PackageNotFoundError, version

from ngp import datasets, groups, metrics, predictors, stopping
from ngp.selector import NeuralGreedyPursuit
from ngp.ssfn import SSFNClassifier, SSFNRegressor

try:
    __version__ = version("neural-greedy-pursuit")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "NeuralGreedyPursuit",
    "SSFNClassifier",
    "SSFNRegressor",
    "__version__",
    "datasets",
    "groups",
    "metrics",
    "predictors",
    "stopping",
]
