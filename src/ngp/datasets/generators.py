"""Artificial data with known relevant features, as in the paper.

Das, Javid, Gohain, Eldar, Chatterjee, "Neural Greedy Pursuit for Feature Selection". The relevant features
are always the first columns.
"""

from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["Dataset", "make_artificial", "make_gravitation", "make_ohm", "make_planck"]


class Dataset(NamedTuple):
    """Data with known relevant features; unpacks as ``X, y, truth``.

    Attributes
    ----------
    X : float array of shape (n_samples, n_features)
        Features.
    y : float array of shape (n_samples,)
        Targets.
    truth : int array
        Indices of the relevant columns, ascending.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: NDArray[np.intp]


def make_ohm(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Ohm's law: the current ``V / R``.

    All features are drawn from U(10, 20). Columns 0 and 1 are ``V`` and ``R``; the others are irrelevant.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    n_features : int, default=10
        Number of features, at least as many as are relevant.
    random_state : int, RandomState or None, default=None
        Seed or generator; an int gives the same data every time.

    Returns
    -------
    Dataset
        ``X``, ``y`` and ``truth``, the indices of the relevant columns.

    Examples
    --------
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(n_samples=200, random_state=0)
    >>> X.shape, y.shape, truth.tolist()
    ((200, 10), (200,), [0, 1])
    """
    X = _uniform_features(n_samples, n_features, 2, random_state)
    return Dataset(X, X[:, 0] / X[:, 1], np.arange(2))


def make_planck(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Planck's law: the spectral radiance ``2 ν³ / (exp(ν / T) - 1)``.

    Columns 0 and 1 are the frequency ``ν`` and the temperature ``T``; physical constants are 1. The parameters, the
    other columns and the result are those of `ngp.datasets.make_ohm`.
    """
    X = _uniform_features(n_samples, n_features, 2, random_state)
    frequency, temperature = X[:, 0], X[:, 1]
    return Dataset(X, 2 * frequency**3 / np.expm1(frequency / temperature), np.arange(2))


def make_gravitation(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Law of gravitation: the force ``m1 m2 / r²``.

    Columns 0, 1 and 2 are the masses ``m1`` and ``m2`` and the distance ``r``; the gravitational constant is 1. The
    parameters, the other columns and the result are those of `ngp.datasets.make_ohm`.
    """
    X = _uniform_features(n_samples, n_features, 3, random_state)
    return Dataset(X, X[:, 0] * X[:, 1] / X[:, 2] ** 2, np.arange(3))


def make_artificial(
    n_samples: int = 600,
    n_features: int = 500,
    *,
    noise: Literal["sample", "offset", "none"] = "sample",
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Nonlinear model of five out of many mutually correlated features.

    Every feature is ``x_i = (e + z_i) / 2`` with ``e`` (shared by the features of a sample) and ``z_i`` from
    N(0, 1), so that any two features have correlation 1/2. With ``max`` for the larger of its arguments, and
    features counted from 1, the target is::

        (10 sin(max(x1, x2)) + max(x3, x4, x5)³) / (1 + (x1 + x5)²)
        + sin(x3 / 2) (1 + exp(x4 - x3 / 2)) + x3² + 2 sin(x4) + 2 x5 + noise

    Parameters
    ----------
    n_samples : int, default=600
        Number of samples.
    n_features : int, default=500
        Number of features, at least 5.
    noise : {"sample", "offset", "none"}, default="sample"
        Where the N(0, 1) noise goes: a number for every sample, one number added to all targets, or nowhere.
        With the same seed, ``X`` is the same for all three.
    random_state : int, RandomState or None, default=None
        Seed or generator; an int gives the same data every time.

    Returns
    -------
    Dataset
        ``X``, ``y`` and ``truth``, the indices of the relevant columns.

    References
    ----------
    Ye and Sun, "Variable Selection via Penalized Neural Network: a Drop-Out-One Loss Approach", ICML 2018.

    Examples
    --------
    >>> from ngp.datasets import make_artificial
    >>> X, y, truth = make_artificial(noise="none", random_state=0)
    >>> X.shape, truth.tolist()
    ((600, 500), [0, 1, 2, 3, 4])
    """
    if noise not in ("sample", "offset", "none"):
        raise ValueError(f"noise={noise!r} is unknown; use 'sample', 'offset' or 'none'.")
    _check_sizes(n_samples, n_features, 5)
    draws = check_random_state(random_state).standard_normal((n_samples, n_features + 2))
    shared, own, epsilon = draws[:, :1], draws[:, 1:-1], draws[:, -1]
    X = (shared + own) / 2
    x1, x2, x3, x4, x5 = X[:, :5].T
    y = (
        (10 * np.sin(np.maximum(x1, x2)) + X[:, 2:5].max(axis=1) ** 3) / (1 + (x1 + x5) ** 2)
        + np.sin(0.5 * x3) * (1 + np.exp(x4 - 0.5 * x3))
        + x3**2
        + 2 * np.sin(x4)
        + 2 * x5
    )
    if noise == "sample":
        y += epsilon
    elif noise == "offset":
        y += epsilon[0]
    return Dataset(X, y, np.arange(5))


def _uniform_features(
    n_samples: int,
    n_features: int,
    n_relevant: int,
    random_state: int | np.random.RandomState | None,
) -> NDArray[np.float64]:
    """Features of the physical laws, drawn from U(10, 20)."""
    _check_sizes(n_samples, n_features, n_relevant)
    X: NDArray[np.float64] = check_random_state(random_state).uniform(10, 20, (n_samples, n_features))
    return X


def _check_sizes(n_samples: int, n_features: int, n_relevant: int) -> None:
    for name, value, least in (("n_samples", n_samples, 1), ("n_features", n_features, n_relevant)):
        if not isinstance(value, Integral):
            raise TypeError(f"{name}={value!r} is not an integer; give a whole number.")
        if value < least:
            raise ValueError(f"{name}={value} is too small; this data needs at least {least}.")
