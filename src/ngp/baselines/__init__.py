"""The methods that NGP competes with, each a scikit-learn selector; `registry` has them by name."""

from ngp.baselines.bart import BART
from ngp.baselines.boruta import Boruta
from ngp.baselines.correlation import Correlation
from ngp.baselines.deeplift import DeepLIFT
from ngp.baselines.drop_one_out import DropOneOut
from ngp.baselines.gam import GAM
from ngp.baselines.lasso import Lasso, LassoCV
from ngp.baselines.lassonet import LassoNet
from ngp.baselines.methods import registry
from ngp.baselines.mrmr import MRMR
from ngp.baselines.mutual_information import MutualInformation
from ngp.baselines.permutation import PermutationImportance
from ngp.baselines.random_forest import RandomForest
from ngp.baselines.recursive_elimination import RecursiveElimination
from ngp.baselines.roar import ROAR, RoarCurve, roar_curve

__all__ = [
    "BART",
    "GAM",
    "MRMR",
    "ROAR",
    "Boruta",
    "Correlation",
    "DeepLIFT",
    "DropOneOut",
    "Lasso",
    "LassoCV",
    "LassoNet",
    "MutualInformation",
    "PermutationImportance",
    "RandomForest",
    "RecursiveElimination",
    "RoarCurve",
    "registry",
    "roar_curve",
]
