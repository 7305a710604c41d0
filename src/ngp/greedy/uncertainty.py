"""How sure a validation loss is, and a comparison of two."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
from scipy.special import stdtr

from ngp._types import FloatArray
from ngp.predictors.base import Losses

__all__ = ["certainty", "standard_error"]


def standard_error(fold_losses: FloatArray, fold_weights: FloatArray) -> float:
    r"""Return the standard error of the weighted mean of the folds' losses.

    It is :math:`\sqrt{\frac{n}{n-1} \sum_f w_f^2 (l_f - \bar l)^2}` with :math:`\bar l = \sum_f w_f l_f`,
    over the n folds of positive weight. For equal weights this is the usual ``std(ddof=1) / sqrt(n)``; a
    large fold counts by its share in the mean.
    """
    n = int(np.count_nonzero(fold_weights))
    if n < 2:
        raise ValueError(
            f"standard_errors needs at least 2 parts of the validation, but there is {n}: "
            "use more folds, such as cv=5, or Plateau(standard_errors=0)."
        )
    deviations = fold_weights * (fold_losses - fold_weights @ fold_losses)
    return sqrt(n / (n - 1) * float(deviations @ deviations))


def certainty(scored: Losses, better: int, other: int | None) -> float:
    """Probability that one of several selections is better than another, from the paired differences of their parts."""
    n_parts = np.count_nonzero(scored.weights)
    if other is None or n_parts < 2:
        return nan
    differences = scored.parts[other] - scored.parts[better]
    mean, error = float(differences @ scored.weights), standard_error(differences, scored.weights)
    if error == 0:
        return 0.5 if mean == 0 else float(mean > 0)
    return float(stdtr(n_parts - 1, mean / error))
