"""The methods that NGP competes with, each a scikit-learn selector; `registry` has them by name."""

from ngp.baselines.correlation import Correlation
from ngp.baselines.drop_one_out import DropOneOut
from ngp.baselines.gam import GAM
from ngp.baselines.lasso import Lasso, LassoCV
from ngp.baselines.methods import registry
from ngp.baselines.random_forest import RandomForest
from ngp.baselines.roar import ROAR, RoarCurve, roar_curve

__all__ = [
    "GAM",
    "ROAR",
    "Correlation",
    "DropOneOut",
    "Lasso",
    "LassoCV",
    "RandomForest",
    "RoarCurve",
    "registry",
    "roar_curve",
]
