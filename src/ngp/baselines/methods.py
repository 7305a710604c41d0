"""Names of the methods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ngp.baselines.base import Baseline
from ngp.baselines.correlation import Correlation
from ngp.baselines.gam import GAM
from ngp.baselines.lasso import Lasso, LassoCV
from ngp.baselines.random_forest import RandomForest

__all__ = ["registry"]

registry: Mapping[str, type[Baseline]] = MappingProxyType(
    {
        "correlation": Correlation,
        "lasso": Lasso,
        "lasso-cv": LassoCV,
        "random-forest": RandomForest,
        "gam": GAM,
    }
)
