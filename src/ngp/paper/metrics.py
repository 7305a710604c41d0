"""Measures of the paper: how right a selection is, and how large an error is.

The definitions are those of Das, Javid, Gohain, Eldar, Chatterjee, "Neural Greedy Pursuit for Feature
Selection". What scikit-learn has, the ordinary mean squared error and the accuracy, is here too, as it is there.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, mean_squared_error

__all__ = [
    "accuracy_score",
    "false_negative_rate",
    "false_positive_rate",
    "mean_squared_error",
    "normalized_mean_error_db",
    "paper_mse",
]


def false_positive_rate(selected: Iterable[int], truth: Iterable[int]) -> float:
    """Share of the selected features that are not relevant (FPSR).

    Parameters
    ----------
    selected, truth : iterable of int, or mask of bool
        The selected and the relevant features, each as column indices or as a mask over all columns.
        Order and repetitions don't matter.

    Returns
    -------
    float
        ``|selected - truth| / |selected|``, between 0 and 1; 0 if nothing is selected.

    See Also
    --------
    false_negative_rate : Share of the relevant features that were missed.

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

    Parameters
    ----------
    selected, truth : iterable of int, or mask of bool
        The selected and the relevant features, each as column indices or as a mask over all columns.
        Order and repetitions don't matter.

    Returns
    -------
    float
        ``|truth - selected| / |truth|``, between 0 and 1; 0 if no feature is relevant.

    See Also
    --------
    false_positive_rate : Share of the selected features that are not relevant.

    Examples
    --------
    >>> from ngp.paper.metrics import false_negative_rate
    >>> false_negative_rate([0, 7], truth=[0, 1, 2, 3])
    0.75
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

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets and predictions, of the same shape.

    Returns
    -------
    float
        The Frobenius norm of the error divided by the number of samples.

    Examples
    --------
    >>> from ngp.paper.metrics import paper_mse
    >>> paper_mse([1.0, 2.0], [4.0, 6.0])
    2.5
    """
    _, error = _target_and_error(y_true, y_pred)
    return float(np.linalg.norm(error) / len(error))


def _feature_sets(selected: Iterable[int], truth: Iterable[int]) -> tuple[set[int], set[int]]:
    """Both arguments as sets of column indices."""
    sets, widths = [], []
    for name, features in (("selected", selected), ("truth", truth)):
        array = features if isinstance(features, np.ndarray) else np.asarray(list(features))
        if array.ndim != 1:
            raise ValueError(f"{name} has {array.ndim} dimensions; give a flat list of indices or a mask.")
        if array.dtype == bool:
            widths.append(array.size)
            array = np.flatnonzero(array)
        elif array.size and not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"{name} holds {array.dtype} values; give column indices or a boolean mask.")
        if array.size and array.min() < 0:
            raise ValueError(f"{name} holds the index {array.min()}; count columns from 0.")
        sets.append({int(index) for index in array})
    if len(widths) == 2 and widths[0] != widths[1]:
        raise ValueError(
            f"selected is a mask over {widths[0]} columns and truth one over {widths[1]}; "
            "give masks over the same columns."
        )
    return sets[0], sets[1]


def _target_and_error(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Targets and prediction errors in double precision, checked."""
    target, prediction = np.asarray(y_true, np.float64), np.asarray(y_pred, np.float64)
    if target.shape != prediction.shape:
        raise ValueError(
            f"y_true has shape {target.shape} and y_pred {prediction.shape}; give arrays of the same shape."
        )
    if target.ndim not in (1, 2) or target.size == 0:
        raise ValueError(f"y_true has shape {target.shape}; give (n_samples,) or (n_samples, n_outputs), not empty.")
    for name, array in (("y_true", target), ("y_pred", prediction)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity; remove those samples first.")
    return target, prediction - target
