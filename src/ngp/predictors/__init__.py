"""What can stand inside the pursuit."""

from ngp.predictors.base import ColumnSets, FittedPredictor, Losses, Predictor, Scorer
from ngp.predictors.estimator import Estimator
from ngp.predictors.kernel import Kernel
from ngp.predictors.networks import CNN, MLP
from ngp.predictors.ssfn import SSFN

__all__ = [
    "CNN", "MLP", "SSFN", "ColumnSets", "Estimator", "FittedPredictor", "Kernel", "Losses", "Predictor", "Scorer",
]  # fmt: skip
