"""The methods that NGP competes with, each a scikit-learn selector; `registry` has them by name."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from ngp.baselines import others
from ngp.baselines.bart import BART
from ngp.baselines.base import Baseline
from ngp.baselines.deeplift import DeepLIFT
from ngp.baselines.elimination import ROAR, DropOneOut, RoarCurve, roar_curve
from ngp.baselines.others import OtherMethod
from ngp.baselines.simple import GAM, Correlation, Lasso, RandomForest

__all__ = [
    "BART",
    "GAM",
    "ROAR",
    "Baseline",
    "Correlation",
    "DeepLIFT",
    "DropOneOut",
    "Lasso",
    "RandomForest",
    "RoarCurve",
    "packages",
    "registry",
    "roar_curve",
]

# The paper's eight methods are classes; the others take the common parameters only: n_features_to_select, threshold,
# task, n_jobs and random_state. Those with a threshold of their own choose before it.
registry: Mapping[str, Callable[..., Baseline]] = MappingProxyType(
    {
        "drop-one-out": DropOneOut,
        "roar": ROAR,
        "correlation": Correlation,
        "lasso": Lasso,
        "lasso-cv": partial(Lasso, alpha="cv"),
        "random-forest": RandomForest,
        "gam": GAM,
        "bart": BART,
        "deeplift": DeepLIFT,
        "mutual-information": partial(OtherMethod, rate=others.mutual_information),
        "mrmr": partial(OtherMethod, rate=others.mrmr, threshold=0.0),
        "recursive-elimination": partial(OtherMethod, rate=others.recursive_elimination, threshold=0.0),
        "permutation": partial(OtherMethod, rate=others.permutation),
        "boruta": partial(OtherMethod, rate=others.boruta, threshold=0.0),
        "lassonet": partial(OtherMethod, rate=others.lassonet),
    }
)

# Packages that methods need beside scikit-learn.
packages: Mapping[str, str] = MappingProxyType(
    {
        "bart": "stochtree",
        "deeplift": "torch",
        "mrmr": "feature_engine",
        "boruta": "boruta",
        "lassonet": "lassonet",
    }
)
