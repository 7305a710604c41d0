"""Neural Greedy Pursuit: choose the few inputs that matter for a non-linear prediction."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ngp import baselines, datasets, predictors, report
    from ngp.comparison import compare
    from ngp.data.groups import image_windows
    from ngp.data.sources import open_columns
    from ngp.predictors.ssfn_estimators import SSFNClassifier, SSFNRegressor
    from ngp.selector import NeuralGreedyPursuit, NGPClassifier, NGPRegressor

try:
    __version__ = version("neural-greedy-pursuit")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "NGPClassifier",
    "NGPRegressor",
    "NeuralGreedyPursuit",
    "SSFNClassifier",
    "SSFNRegressor",
    "__version__",
    "baselines",
    "compare",
    "datasets",
    "image_windows",
    "open_columns",
    "predictors",
    "report",
]

# Module of each name; the others in __all__ are modules themselves.
_HOMES = {
    "NGPClassifier": "ngp.selector",
    "NGPRegressor": "ngp.selector",
    "NeuralGreedyPursuit": "ngp.selector",
    "SSFNClassifier": "ngp.predictors.ssfn_estimators",
    "SSFNRegressor": "ngp.predictors.ssfn_estimators",
    "compare": "ngp.comparison",
    "image_windows": "ngp.data.groups",
    "open_columns": "ngp.data.sources",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: scikit-learn takes a second that ``ngp --help`` does not need."""
    if name not in __all__:
        raise AttributeError(f"module 'ngp' has no attribute {name!r}")
    try:
        home = _HOMES.get(name)
        value = import_module(f"ngp.{name}") if home is None else getattr(import_module(home), name)
    except AttributeError as error:  # which Python would take for "no such name", and hide
        raise ImportError(f"ngp.{name} can't be imported: {error}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
