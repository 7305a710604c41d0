"""Names of the methods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ngp.baselines.bart import BART
from ngp.baselines.base import Baseline
from ngp.baselines.boruta import Boruta
from ngp.baselines.correlation import Correlation
from ngp.baselines.deeplift import DeepLIFT
from ngp.baselines.drop_one_out import DropOneOut
from ngp.baselines.gam import GAM
from ngp.baselines.lasso import Lasso, LassoCV
from ngp.baselines.lassonet import LassoNet
from ngp.baselines.mrmr import MRMR
from ngp.baselines.mutual_information import MutualInformation
from ngp.baselines.permutation import PermutationImportance
from ngp.baselines.random_forest import RandomForest
from ngp.baselines.recursive_elimination import RecursiveElimination
from ngp.baselines.roar import ROAR

__all__ = ["registry"]

registry: Mapping[str, type[Baseline]] = MappingProxyType(
    {
        "drop-one-out": DropOneOut,
        "roar": ROAR,
        "correlation": Correlation,
        "lasso": Lasso,
        "lasso-cv": LassoCV,
        "random-forest": RandomForest,
        "gam": GAM,
        "bart": BART,
        "deeplift": DeepLIFT,
        "mutual-information": MutualInformation,
        "mrmr": MRMR,
        "recursive-elimination": RecursiveElimination,
        "permutation": PermutationImportance,
        "boruta": Boruta,
        "lassonet": LassoNet,
    }
)
