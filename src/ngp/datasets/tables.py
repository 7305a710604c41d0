"""Loaders for tables: samples in rows, features in columns."""

import csv
from io import BytesIO
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch, check_random_state

from ngp.datasets.locate import load

__all__ = ["Table", "load_airfoil", "load_boston", "load_isolet", "load_mice", "load_vowel"]

_BOSTON = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")
_AIRFOIL = (
    "Frequency",
    "AngleOfAttack",
    "ChordLength",
    "FreeStreamVelocity",
    "SuctionSideDisplacementThickness",
)
_VOWELS = ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed")


class Table(NamedTuple):
    """Real data; ``X, y, *_ = load_airfoil()`` takes what is needed most.

    Attributes
    ----------
    X : float array of shape (n_samples, n_features)
        Features.
    y : float or int array of shape (n_samples,)
        Targets, or the classes counted from 0.
    truth : int array
        Indices of the real columns, ascending: all of them, unless noise columns were added.
    feature_names : tuple of str
        Names of the columns.
    class_names : tuple of str
        Names of the classes; empty for a regression.
    groups : int array of shape (n_samples,) or None
        Number of the individual that a sample was taken from, for splits by individual; None if not known.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    truth: NDArray[np.intp]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    groups: NDArray[np.intp] | None = None


def load_boston(*, n_noise: int = 100, random_state: int | np.random.RandomState | None = None) -> Table:
    """Prices of houses in Boston, with columns of noise behind the 13 real ones, as in the paper.

    The file ``boston.csv`` is looked for in the folder named by the environment variable ``NGP_DATA``, then in
    the folder ``ngp`` of scikit-learn's data home (see :func:`sklearn.datasets.get_data_home`). If it is in
    neither, scikit-learn fetches the data from OpenML, and keeps them for the next time.

    The column ``B`` is built on the share of Black people in a town. Use the data to reproduce published
    results, and for nothing else.

    Parameters
    ----------
    n_noise : int, default=100
        Number of noise columns, drawn from U(10, 20).
    random_state : int, RandomState or None, default=None
        Seed or generator of the noise; an int gives the same data every time.

    Returns
    -------
    Table
        ``X`` of shape (506, 13 + n_noise), ``y`` in thousands of dollars, and ``truth``, the real columns.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_boston
    >>> X, y, truth, *_ = load_boston(random_state=0)  # doctest: +SKIP
    >>> X.shape, truth.size  # doctest: +SKIP
    ((506, 113), 13)
    """
    if not isinstance(n_noise, Integral):
        raise TypeError(f"n_noise={n_noise!r} is not an integer; give a whole number.")
    if n_noise < 0:
        raise ValueError(f"n_noise={n_noise} is negative; give 0 or more.")

    def convert(data: Bunch) -> Table:
        X = data.data.astype(np.float64)
        for name, values in data.categories.items():
            column = list(data.feature_names).index(name)
            X[:, column] = np.array(values, dtype=np.float64)[X[:, column].astype(np.intp)]
        return _plain_table(X, data.target.astype(np.float64), _BOSTON)

    # Public scripts use OpenML's "boston", version 1. CHAS and RAD are said to be nominal there; `convert` takes them
    # either way.
    real = load("Boston housing", "boston.csv", _parse_regression, "boston", 1, convert)
    noise = check_random_state(random_state).uniform(10, 20, (real.y.size, n_noise))
    names = real.feature_names + tuple(f"noise_{number}" for number in range(n_noise))
    return real._replace(X=np.hstack([real.X, noise]), feature_names=names)


def load_airfoil() -> Table:
    """Noise of airfoils in a wind tunnel (NASA): 1,503 samples of 5 features.

    The file ``airfoil.csv`` is looked for in the same folders as that of :func:`load_boston`, and fetched from
    OpenML if it is in none.

    Returns
    -------
    Table
        ``X`` of shape (1503, 5) and ``y``, the sound pressure level in dB.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_airfoil
    >>> X, y, *_ = load_airfoil()  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (1503, 5)
    """

    def convert(data: Bunch) -> Table:
        return _plain_table(data.data.astype(np.float64), data.target.astype(np.float64), _AIRFOIL)

    # Public scripts use OpenML's "airfoil_self_noise", version 1, with the target "pressure".
    return load("Airfoil self-noise", "airfoil.csv", _parse_regression, "airfoil_self_noise", 1, convert)


def load_vowel(*, subset: Literal["train", "test", "all"] = "all") -> Table:
    """Vowels of British English (Deterding): 11 classes, 10 features of the sound.

    The file ``vowel.mat`` is looked for in the same folders as that of :func:`load_boston`, and fetched from
    OpenML if it is in none.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        The 528 training samples, the 462 test samples, which other people spoke, or both in this order.

    Returns
    -------
    Table
        ``X`` of shape (n_samples, 10), ``y`` from 0 to 10, and ``class_names``, words with the vowels.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_vowel
    >>> load_vowel(subset="train").X.shape  # doctest: +SKIP
    (528, 10)
    """
    if subset not in ("train", "test", "all"):
        raise ValueError(f"subset={subset!r} is unknown; use 'train', 'test' or 'all'.")
    names = tuple(f"feature_{number}" for number in range(10))

    def parse(content: bytes) -> Table:
        data = loadmat(BytesIO(content))
        return _plain_table(data["featureMat"].T, data["labelMat"].argmax(axis=0), names, _VOWELS)

    def convert(data: Bunch) -> Table:
        columns = [list(data.feature_names).index(f"Feature_{number}") for number in range(10)]
        y = np.array([_VOWELS.index(word) for word in data.target], dtype=np.intp)
        return _plain_table(data.data[:, columns].astype(np.float64), y, names, _VOWELS)

    # OpenML's page of "vowel" (id 307; version 2 in public scripts) says 990 samples, 10 numeric features and 3
    # nominal ones, which tell the subset, the speaker and the sex, and are left out here.
    table = load("Vowel", "vowel.mat", parse, "vowel", 2, convert)
    rows = {"train": slice(528), "test": slice(528, None), "all": slice(None)}[subset]
    return table._replace(X=table.X[rows], y=table.y[rows])


def load_isolet() -> Table:
    """Letters spoken by 30 people (ISOLET): 26 classes, 617 features of the sound.

    These are the 1,560 samples that are common in feature selection, 60 of each letter, out of 7,797. The file
    ``fs/Isolet.mat`` is looked for in the same folders as that of :func:`load_boston`, and fetched from OpenML
    if it is in none.

    Returns
    -------
    Table
        ``X`` of shape (1560, 617), ``y`` from 0 to 25, in ascending order, and ``class_names``, the letters.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_isolet
    >>> load_isolet().X.shape  # doctest: +SKIP
    (1560, 617)
    """
    names, letters = tuple(f"f{number}" for number in range(1, 618)), tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

    def parse(content: bytes) -> Table:
        data = loadmat(BytesIO(content))
        return _plain_table(data["X"].astype(np.float64), data["Y"].ravel().astype(np.intp) - 1, names, letters)

    def convert(data: Bunch) -> Table:
        y = data.target[:1560].astype(np.float64).astype(np.intp) - 1
        order = np.argsort(y, kind="stable")
        return _plain_table(data.data[:1560][order].astype(np.float64), y[order], names, letters)

    # Public scripts use OpenML's "isolet", version 1, which has all 7,797 samples. That the first 1,560 are those of
    # the file, sorted by letter there, is a guess; other data are refused.
    return load("ISOLET", "fs/Isolet.mat", parse, "isolet", 1, convert)


def load_mice(*, missing: Literal["keep", "mean", "drop"] = "keep") -> Table:
    """Proteins in the brains of 72 mice: 8 classes, 77 features, 15 samples of each mouse.

    The file ``fs/Data_Cortex_Nuclear.csv`` is looked for in the same folders as that of :func:`load_boston`,
    and fetched from OpenML if it is in none.

    Samples of one mouse are alike: split by mouse, with the help of ``groups``, to measure what holds for
    others.

    Parameters
    ----------
    missing : {"keep", "mean", "drop"}, default="keep"
        What to do with the 1,396 missing values: leave them as NaN, put the mean of the column, or drop the
        528 samples that have some. The mean is that of all samples; to keep test samples out of it, leave the
        values missing and impute after the split, for instance with :class:`sklearn.impute.SimpleImputer`.

    Returns
    -------
    Table
        ``X`` of shape (1080, 77), or (552, 77) without incomplete samples, ``y`` from 0 to 7, ``class_names``
        (genotype, behaviour, treatment), and ``groups``, the mice, from 0 to 71.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_mice
    >>> from sklearn.model_selection import StratifiedGroupKFold
    >>> mice = load_mice(missing="mean")  # doctest: +SKIP
    >>> splits = StratifiedGroupKFold(5).split(mice.X, mice.y, mice.groups)  # doctest: +SKIP
    """
    if missing not in ("keep", "mean", "drop"):
        raise ValueError(f"missing={missing!r} is unknown; use 'keep', 'mean' or 'drop'.")

    def table(X: NDArray[np.float64], names: list[str], classes: list[str], samples: list[str]) -> Table:
        class_names, y = np.unique(classes, return_inverse=True)
        _, mice = np.unique([sample.rsplit("_", 1)[0] for sample in samples], return_inverse=True)
        return _plain_table(X, y, tuple(names), tuple(map(str, class_names)))._replace(groups=mice)

    def parse(content: bytes) -> Table:
        header, *rows = csv.reader(content.decode().splitlines())
        X = np.array([[float(cell or "nan") for cell in row[1:78]] for row in rows])
        return table(X, header[1:78], [row[-1] for row in rows], [row[0] for row in rows])

    def convert(data: Bunch) -> Table:
        classes, samples = data.target.T
        return table(data.data.astype(np.float64), list(data.feature_names), list(classes), list(samples))

    # scikit-learn's own tests carry the description and the first 7 rows of OpenML's "MiceProtein", version 4: the
    # features, their names and the two targets are those of the file.
    mice = load(
        "Mice protein expression",
        "fs/Data_Cortex_Nuclear.csv",
        parse,
        "MiceProtein",
        4,
        convert,
        ["class", "MouseID"],
    )
    absent = np.isnan(mice.X)
    if missing == "mean":
        return mice._replace(X=np.where(absent, np.nanmean(mice.X, axis=0), mice.X))
    if missing == "drop":
        rows = ~absent.any(axis=1)
        return mice._replace(X=mice.X[rows], y=mice.y[rows], groups=np.asarray(mice.groups)[rows])
    return mice


def _parse_regression(content: bytes) -> Table:
    """Table of a CSV file with a header, target in the last column."""
    header, *rows = csv.reader(content.decode().splitlines())
    values = np.array(rows, dtype=np.float64)
    return _plain_table(values[:, :-1], values[:, -1].copy(), tuple(header[:-1]))


def _plain_table(
    X: NDArray[np.float64], y: NDArray[Any], feature_names: tuple[str, ...], class_names: tuple[str, ...] = ()
) -> Table:
    """A table whose columns are all real."""
    return Table(np.ascontiguousarray(X), y, np.arange(X.shape[1]), feature_names, class_names)
