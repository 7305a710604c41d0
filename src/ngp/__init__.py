"""Neural Greedy Pursuit: choose the few inputs that matter for a non-linear prediction."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ngp import baselines, datasets, groups, metrics, predictors, report, stopping
    from ngp.comparison import compare
    from ngp.selector import NeuralGreedyPursuit
    from ngp.sources import open_columns
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
    "open_columns",
    "predictors",
    "report",
    "stopping",
]

# Where these are. Whatever isn't here, but in __all__, is a module.
_HOMES = {
    "NeuralGreedyPursuit": "ngp.selector",
    "SSFNClassifier": "ngp.ssfn",
    "SSFNRegressor": "ngp.ssfn",
    "compare": "ngp.comparison",
    "open_columns": "ngp.sources",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: scikit-learn takes a second that ``ngp --help`` can spare."""
    if name not in __all__:
        raise AttributeError(f"module 'ngp' has no attribute {name!r}")
    home = _HOMES.get(name)
    try:
        value = import_module(f"ngp.{name}") if home is None else getattr(import_module(home), name)
    except AttributeError as error:  # which Python would take for "no such name", and hide
        raise ImportError(f"ngp.{name} can't be imported: {error}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
