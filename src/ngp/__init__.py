"""Neural Greedy Pursuit: choose the few inputs that matter for a non-linear prediction."""

from importlib.metadata import PackageNotFoundError, version

from ngp import baselines, datasets, groups, metrics, predictors, report, stopping
from ngp.comparison import compare
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
    "baselines",
    "compare",
    "datasets",
    "groups",
    "metrics",
    "predictors",
    "report",
    "stopping",
]
