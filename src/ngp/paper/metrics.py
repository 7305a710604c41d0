"""Measures of the paper: how right a selection is, and how large an error is.

The definitions are those of Das, Javid, Gohain, Eldar, Chatterjee, "Neural Greedy Pursuit for Feature Selection".
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["false_negative_rate", "false_positive_rate", "normalized_mean_error_db", "paper_mse"]


def false_positive_rate(selected: Iterable[int], truth: Iterable[int]) -> float:
    """Share of the selected features that are not relevant (FPSR).

    Parameters
    ----------
    selected, truth : iterable of int, or mask of bool
        The selected and the relevant features, as column indices or as a mask over all columns.

    Returns
    -------
    float
        ``|selected - truth| / |selected|``, between 0 and 1; 0 if nothing is selected.

    Examples
    --------
    >>> from ngp.paper.metrics import false_positive_rate
    >>> false_positive_rate([0, 1, 7, 9], truth=[0, 1, 2])
    0.5
    >>> false_positive_rate([True, False, True], truth=[0, 1])
    0.5
    """
    chosen, relevant = _feature_sets(selected, truth)
    return len(chosen - relevant) / len(chosen) if chosen else 0.0


def false_negative_rate(selected: Iterable[int], truth: Iterable[int]) -> float:
    """Share of the relevant features that were not selected (FNSR).

    This is ``|truth - selected| / |truth|``, 0 if no feature is relevant. The parameters and the result are those of
    `ngp.paper.metrics.false_positive_rate`.
    """
    chosen, relevant = _feature_sets(selected, truth)
    return len(relevant - chosen) / len(relevant) if relevant else 0.0


def normalized_mean_error_db(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Normalised error in decibel (NME).

    This is :math:`20 \log_{10}(\|Y - T\|_F / \|T\|_F)` for targets :math:`T` and predictions :math:`Y`. The
    targets are not centred, as in the paper: predicting zero gives 0 dB, and adding a constant to targets
    and predictions changes the value.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets and predictions, of the same shape.

    Returns
    -------
    float
        The error in dB, lower is better; minus infinity for a perfect prediction.

    Examples
    --------
    >>> from ngp.paper.metrics import normalized_mean_error_db
    >>> round(normalized_mean_error_db([10.0, 20.0], [9.0, 18.0]), 6)
    -20.0
    """
    target, error = _target_and_error(y_true, y_pred)
    scale = np.linalg.norm(target)
    if scale == 0:
        raise ValueError("y_true is zero everywhere, so that an error relative to it is not defined.")
    with np.errstate(divide="ignore"):
        return float(20 * np.log10(np.linalg.norm(error) / scale))


def paper_mse(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    r"""Error that the paper's tables call MSE: :math:`\|Y - T\|_F / J` over :math:`J` samples.

    It is not a mean squared error, because the norm is not squared. It serves to compare with the published
    tables; use :func:`sklearn.metrics.mean_squared_error` for anything else.

    The parameters and the result are those of `ngp.paper.metrics.normalized_mean_error_db`.
    """
    _, error = _target_and_error(y_true, y_pred)
    return float(np.linalg.norm(error) / len(error))


def _feature_sets(selected: Iterable[int], truth: Iterable[int]) -> tuple[set[int], set[int]]:
    """Both arguments as sets of column indices."""
    sets = []
    for name, features in (("selected", selected), ("truth", truth)):
        array = features if isinstance(features, np.ndarray) else np.asarray(list(features))
        if array.dtype == bool:
            array = np.flatnonzero(array)
        elif array.ndim != 1 or (array.size and not (np.issubdtype(array.dtype, np.integer) and array.min() >= 0)):
            raise ValueError(f"{name} is neither a list of column indices nor a boolean mask: give one of them.")
        sets.append({int(index) for index in array})
    return sets[0], sets[1]


def _target_and_error(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Targets and prediction errors in double precision, checked."""
    target, prediction = np.asarray(y_true, np.float64), np.asarray(y_pred, np.float64)
    if target.shape != prediction.shape or not target.size:
        raise ValueError(
            f"y_true has shape {target.shape} and y_pred {prediction.shape}: give arrays of the same shape, not empty."
        )
    if not (np.isfinite(target).all() and np.isfinite(prediction).all()):
        raise ValueError("y_true or y_pred contains NaN or infinity: remove those samples first.")
    return target, prediction - target
