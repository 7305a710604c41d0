"""What can stand inside the pursuit."""

from ngp.predictors.base import ColumnSets, FittedPredictor, Losses, Predictor, Scorer
from ngp.predictors.ssfn import SSFN

__all__ = ["SSFN", "ColumnSets", "FittedPredictor", "Losses", "Predictor", "Scorer"]
