"""The methods that NGP competes with, each a scikit-learn selector; `registry` has them by name."""

from ngp.baselines.correlation import Correlation
from ngp.baselines.gam import GAM
from ngp.baselines.lasso import Lasso, LassoCV
from ngp.baselines.methods import registry
from ngp.baselines.random_forest import RandomForest

__all__ = ["GAM", "Correlation", "Lasso", "LassoCV", "RandomForest", "registry"]
