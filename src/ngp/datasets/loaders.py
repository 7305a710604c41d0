"""Loaders of real data: from a folder that the user names, a cache folder, or OpenML."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from http.client import HTTPException
from importlib.util import find_spec
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch, check_random_state

__all__ = [
    "RealDataset",
    "WrongData",
    "load_airfoil",
    "load_boston",
    "load_coil20",
    "load_fashion_mnist",
    "load_mice",
    "load_mnist",
    "load_vowel",
    "load_wide",
]

# sha256 of the files
CHECKSUMS = {
    "boston.csv": "79ac716620024011b03c0c44d2bf99069b8173649181926d9109c25475a3804c",
    "airfoil.csv": "fb151b0cbec217a33731fa35b220a7e70f1ae3bbe820dfe7c9ff0883562f4152",
    "vowel.mat": "321bd5d0fc34824ffc4302b59d549aa06e07d3df9f589b74b47d2c2fab010053",
    "mnist/train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "mnist/train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "mnist/t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "mnist/t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "fs/fashion-mnist/t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "fs/fashion-mnist/t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    "fs/Data_Cortex_Nuclear.csv": "1d6722b089db85dccfcb84d62e7299dcffd17b41223c3da54321890b63fff7ad",
    "fs/COIL20.mat": "4595ebdda07f47b0eb014fcfaddc22b452f9aed9c1d9261a0d5bc336c1ee1344",
    "fs/wide/GLIOMA.mat": "c31cd32edd770c7a102729839e670e588bc959a591e0eae5a0676c9ca11d4c4f",
    "fs/wide/leukemia.mat": "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d",
    "fs/wide/lymphoma.mat": "bd834ed911d47ecf2e07625ed77617d514d89ee398fa2e7a787230f7cf5243f8",
    "fs/wide/lung_small.mat": "93c6a65eb1f6f9f95ac897010c337254a57c57e7f8c0c9a7963a0e03de8233f4",
    "fs/wide/nci9.mat": "e336aa43eaf3103803252604375a89141043994a54f93222f7ccc12b5b910789",
    "fs/wide/BASEHOCK.mat": "e0452e0f3c0fefdc5cb6352165e4ba4a25c3a2a7b5a5b4d44e103742d6317aa0",
    "fs/wide/warpAR10P.mat": "92b5f7e72b5715ada8f2df16e6d8e5effd8e0034a53a656ed9ef76e3f727d413",
}


_BOSTON = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")
_AIRFOIL = ("Frequency", "AngleOfAttack", "ChordLength", "FreeStreamVelocity", "SuctionSideDisplacementThickness")
_WIDE = ("GLIOMA", "leukemia", "lymphoma", "lung_small", "nci9", "BASEHOCK", "warpAR10P")
_VOWELS = ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed")


class WrongData(ValueError):
    """Data that exist, but are not the original ones."""


class RealDataset(NamedTuple):
    """Real data; unpack them as ``X, y, *_ = load_airfoil()``.

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
        Individual that a sample was taken from, for splits by individual; None if not known.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    truth: NDArray[np.intp]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    groups: NDArray[np.intp] | None = None


def load_boston(*, n_noise: int = 100, random_state: int | np.random.RandomState | None = None) -> RealDataset:
    """Prices of houses in Boston, with columns of noise behind the 13 real ones, as in the paper.

    The file is ``boston.csv`` (see `ngp.datasets` for the folders). The column ``B`` is built on the share of Black
    people in a town. Use the data only to reproduce published results.

    Parameters
    ----------
    n_noise : int, default=100
        Number of noise columns, drawn from U(10, 20).
    random_state : int, RandomState or None, default=None
        Seed or generator of the noise; an int gives the same data every time.

    Returns
    -------
    RealDataset
        ``X`` of shape (506, 13 + n_noise), ``y`` in thousands of dollars, and ``truth``, the real columns.
    """
    if not isinstance(n_noise, Integral) or n_noise < 0:
        raise ValueError(f"n_noise={n_noise!r} is no number of columns; give a whole number, 0 or more.")

    def convert(data: Bunch) -> RealDataset:
        X = data.data.astype(np.float64)  # with CHAS and RAD as positions in a list of categories
        for name, values in data.categories.items():
            column = list(data.feature_names).index(name)
            X[:, column] = np.array(values, dtype=np.float64)[X[:, column].astype(np.intp)]
        return _plain(X, data.target.astype(np.float64), _BOSTON)

    real = _load("Boston housing", "boston.csv", _parse_regression, "boston", 1, convert, (506, 13))
    noise = check_random_state(random_state).uniform(10, 20, (real.y.size, n_noise))
    names = real.feature_names + tuple(f"noise_{number}" for number in range(n_noise))
    return real._replace(X=np.hstack([real.X, noise]), feature_names=names)


def load_airfoil() -> RealDataset:
    """Noise of airfoils in a wind tunnel (NASA): 1,503 samples of 5 features.

    The file is ``airfoil.csv`` (see `ngp.datasets` for the folders).

    Returns
    -------
    RealDataset
        ``X`` of shape (1503, 5) and ``y``, the sound pressure level in dB.
    """

    def convert(data: Bunch) -> RealDataset:
        return _plain(data.data.astype(np.float64), data.target.astype(np.float64), _AIRFOIL)

    return _load("Airfoil self-noise", "airfoil.csv", _parse_regression, "airfoil_self_noise", 1, convert, (1503, 5))


def load_vowel(*, subset: Literal["train", "test", "all"] = "all") -> RealDataset:
    """Vowels of British English (Deterding): 11 classes, 10 features of the sound.

    The file is ``vowel.mat`` (see `ngp.datasets` for the folders).

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        The 528 training samples, the 462 test samples, which other people spoke, or both in this order.

    Returns
    -------
    RealDataset
        ``X`` of shape (n_samples, 10), ``y`` from 0 to 10, and ``class_names``, words with the vowels.
    """
    if subset not in ("train", "test", "all"):
        raise ValueError(f"subset={subset!r} is unknown; use 'train', 'test' or 'all'.")
    names = tuple(f"feature_{number}" for number in range(10))

    def parse(content: bytes) -> RealDataset:
        data = loadmat(BytesIO(content))
        return _plain(data["featureMat"].T, data["labelMat"].argmax(axis=0), names, _VOWELS)

    def convert(data: Bunch) -> RealDataset:
        columns = [list(data.feature_names).index(f"Feature_{number}") for number in range(10)]
        y = np.array([_VOWELS.index(word) for word in data.target], dtype=np.intp)
        return _plain(data.data[:, columns].astype(np.float64), y, names, _VOWELS)

    # OpenML's copy has columns for the subset, the speaker and the sex too, which are left out here.
    table = _load("Vowel", "vowel.mat", parse, "vowel", 2, convert, (990, 10))
    rows = {"train": slice(528), "test": slice(528, None), "all": slice(None)}[subset]
    return table._replace(X=table.X[rows], y=table.y[rows])


def load_mice(*, missing: Literal["keep", "mean"] = "keep") -> RealDataset:
    """Proteins in the brains of 72 mice: 8 classes, 77 features, 15 samples of each mouse.

    The file is ``fs/Data_Cortex_Nuclear.csv`` (see `ngp.datasets` for the folders). Samples of one mouse are alike:
    split by mouse, with ``groups``, to test on other mice.

    Parameters
    ----------
    missing : {"keep", "mean"}, default="keep"
        Whether the 1,396 missing values stay NaN or become the mean of their column over all samples. To keep test
        samples out of the mean, impute after the split (:class:`sklearn.impute.SimpleImputer`).

    Returns
    -------
    RealDataset
        ``X`` of shape (1080, 77), ``y`` from 0 to 7, ``class_names`` (genotype, behaviour, treatment), and
        ``groups``, the mice, from 0 to 71.
    """
    if missing not in ("keep", "mean"):
        raise ValueError(f"missing={missing!r} is unknown; use 'keep' or 'mean'.")

    def table(X: NDArray[np.float64], names: list[str], classes: list[str], samples: list[str]) -> RealDataset:
        class_names, y = np.unique(classes, return_inverse=True)
        _, mice = np.unique([sample.rsplit("_", 1)[0] for sample in samples], return_inverse=True)
        return _plain(X, y, tuple(names), tuple(map(str, class_names)))._replace(groups=mice)

    def parse(content: bytes) -> RealDataset:
        header, *rows = csv.reader(content.decode().splitlines())
        X = np.array([[float(cell or "nan") for cell in row[1:78]] for row in rows])
        return table(X, header[1:78], [row[-1] for row in rows], [row[0] for row in rows])

    def convert(data: Bunch) -> RealDataset:
        classes, samples = data.target.T
        return table(data.data.astype(np.float64), list(data.feature_names), list(classes), list(samples))

    title, file, targets = "Mice protein expression", "fs/Data_Cortex_Nuclear.csv", ["class", "MouseID"]
    mice = _load(title, file, parse, "MiceProtein", 4, convert, (1080, 77), targets)
    if missing == "keep":
        return mice
    return mice._replace(X=np.where(np.isnan(mice.X), np.nanmean(mice.X, axis=0), mice.X))


def load_mnist(*, subset: Literal["train", "test"] = "train") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Handwritten digits (MNIST): 60,000 training and 10,000 test images.

    The files are the original ones, such as ``mnist/train-images-idx3-ubyte.gz`` (see `ngp.datasets` for the folders).

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Images to load.

    Returns
    -------
    images : ndarray of shape (n_images, 28, 28), dtype uint8
        Grey values, 0 for the background.
    labels : ndarray of shape (n_images,), dtype uint8
        The digits, 0 to 9.
    """
    return _load_idx("MNIST", "mnist", "mnist_784", subset)


def load_fashion_mnist(*, subset: Literal["train", "test"] = "test") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures of clothes (Fashion-MNIST): 60,000 training and 10,000 test images.

    The files of the test images are the original ones, such as ``fs/fashion-mnist/t10k-images-idx3-ubyte.gz`` (see
    `ngp.datasets` for the folders). The training images come from OpenML only.

    Parameters
    ----------
    subset : {"train", "test"}, default="test"
        Images to load. The test images are the default, as papers on feature selection often use only those.

    Returns
    -------
    images : ndarray of shape (n_images, 28, 28), dtype uint8
        Grey values, 0 for the background.
    labels : ndarray of shape (n_images,), dtype uint8
        The kinds of clothes, 0 to 9: T-shirt, trousers, pullover, dress, coat, sandal, shirt, sneaker, bag,
        ankle boot.
    """
    return _load_idx("Fashion-MNIST", "fs/fashion-mnist", "Fashion-MNIST", subset, train_files=False)


def load_coil20() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Photographs of 20 objects on a turntable (COIL-20): 72 images of each, 5 degrees apart.

    This is the version with 32 x 32 pixels that is common in feature selection. The file is ``fs/COIL20.mat`` (see
    `ngp.datasets` for the folders), which https://github.com/jundongl/scikit-feature has in ``skfeature/data``.

    Returns
    -------
    images : ndarray of shape (1440, 32, 32), dtype float64
        Grey values from 0, the background, to 1; not of 8 bits, as each is the mean of 4 x 4 original pixels.
        The file's order of pixels, column by column, is ``images.transpose(0, 2, 1).reshape(1440, -1)``.
    labels : ndarray of shape (1440,), dtype uint8
        The objects, 0 to 19.
    """
    contents = _read_files("fs/COIL20.mat")
    if contents is None:
        raise OSError("COIL-20 is not on disk; set NGP_DATA to a folder that holds fs/COIL20.mat.")
    data = loadmat(BytesIO(contents[0]))
    images = data["X"].astype(np.float64).reshape(-1, 32, 32).transpose(0, 2, 1)
    return np.ascontiguousarray(images), data["Y"].ravel().astype(np.uint8) - 1


def load_wide(
    name: Literal["GLIOMA", "leukemia", "lymphoma", "lung_small", "nci9", "BASEHOCK", "warpAR10P"],
) -> RealDataset:
    """Seven tables with more columns than rows, which are common in feature selection.

    The files are ``fs/wide/leukemia.mat`` and so on (see `ngp.datasets` for the folders), which
    https://github.com/jundongl/scikit-feature has in ``skfeature/data``.

    Parameters
    ----------
    name : {"GLIOMA", "leukemia", "lymphoma", "lung_small", "nci9", "BASEHOCK", "warpAR10P"}
        Table to load:

        - "GLIOMA": gene expression, 50 samples, 4,434 features, 4 classes;
        - "leukemia": the same in three levels, 72 samples, 7,070 features, 2 classes;
        - "lymphoma": in three levels, 96 samples, 4,026 features, 9 classes;
        - "lung_small": in three levels, 73 samples, 325 features, 7 classes;
        - "nci9": in three levels, 60 samples, 9,712 features, 9 classes;
        - "BASEHOCK": words in messages on baseball or hockey, 1,993 samples, 4,862 features, 2 classes;
        - "warpAR10P": photographs of faces, 130 samples, 2,400 features, 10 classes.

    Returns
    -------
    RealDataset
        ``X`` of shape (n_samples, n_features), ``y`` counted from 0, and ``class_names``, the numbers in the file.
    """
    if name not in _WIDE:
        raise ValueError(f"name={name!r} is unknown; use one of {', '.join(map(repr, _WIDE))}.")
    file = f"fs/wide/{name}.mat"
    contents = _read_files(file)
    if contents is None:
        raise OSError(f"{name} is not on disk; set NGP_DATA to a folder that holds {file}.")
    data = loadmat(BytesIO(contents[0]))
    classes, y = np.unique(data["Y"], return_inverse=True)
    names = tuple(f"feature_{number}" for number in range(data["X"].shape[1]))
    return _plain(data["X"].astype(np.float64), y.ravel(), names, tuple(map(str, classes)))


def _load_idx(
    title: str, folder: str, openml_name: str, subset: str, *, train_files: bool = True
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels from a pair of idx files, or from OpenML; `train_files` says if there are some for training."""
    if subset not in ("train", "test"):
        raise ValueError(f"subset={subset!r} is unknown; use 'train' or 'test'.")
    prefix = "train" if subset == "train" else "t10k"
    names = f"{folder}/{prefix}-images-idx3-ubyte.gz", f"{folder}/{prefix}-labels-idx1-ubyte.gz"
    if subset == "test" or train_files:
        contents = _read_files(*names)
        if contents is not None:
            return _parse_idx(contents[0]), _parse_idx(contents[1])
        remedy = f"set NGP_DATA to a folder that holds {names[0]} and {names[1]}"
    else:
        remedy = "connect to the network and try again, as its training images come from OpenML only"

    # Training images come first. pandas is preferred because liac-arff is slow on 55 million numbers.
    parser: Literal["pandas", "liac-arff"] = "pandas" if find_spec("pandas") else "liac-arff"
    data = _fetch(title, openml_name, 1, remedy, parser=parser)
    if data.data.shape != (70_000, 784):
        raise _wrong_openml(openml_name, 1, title, remedy)
    rows = slice(60_000) if subset == "train" else slice(60_000, None)
    return data.data[rows].astype(np.uint8).reshape(-1, 28, 28), data.target[rows].astype(np.uint8)


def _parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Array of a gzipped idx file: two zeros, type 8, number of dimensions, sizes, bytes."""
    data = gzip.decompress(content)
    n_dimensions = data[3]
    shape = np.frombuffer(data, dtype=">u4", count=n_dimensions, offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * n_dimensions).reshape(shape).copy()


def _parse_regression(content: bytes) -> RealDataset:
    """Read a CSV file with a header and the target in the last column."""
    header, *rows = csv.reader(content.decode().splitlines())
    values = np.array(rows, dtype=np.float64)
    return _plain(values[:, :-1], values[:, -1].copy(), tuple(header[:-1]))


def _plain(
    X: NDArray[np.float64], y: NDArray[Any], feature_names: tuple[str, ...], class_names: tuple[str, ...] = ()
) -> RealDataset:
    """Data without noise columns."""
    return RealDataset(np.ascontiguousarray(X), y, np.arange(X.shape[1]), feature_names, class_names)


def _read_files(*names: str) -> list[bytes] | None:
    """Contents of the files, after a check of their checksums; None if one of them is nowhere."""
    paths = [_find(name) for name in names]
    contents = []
    for name, path in zip(names, paths, strict=True):
        if path is None:
            return None
        contents.append(path.read_bytes())
        found = hashlib.sha256(contents[-1]).hexdigest()
        if found != CHECKSUMS[name]:
            raise WrongData(
                f"{path} is damaged or another file: its sha256 is {found}, expected {CHECKSUMS[name]}; "
                "replace it by the original."
            )
    return contents


def _fetch(
    title: str,
    name: str,
    version: int,
    remedy: str,
    *,
    parser: Literal["pandas", "liac-arff"] = "liac-arff",
    target: str | list[str] = "default-target",
) -> Bunch:
    """Fetch the data from OpenML; `remedy` tells the user what to do if that fails.

    The parser "liac-arff" needs no pandas, and codes nominal features as positions in ``categories``.
    """
    print(f"ngp: fetching {title} from OpenML (scikit-learn keeps it for the next time)", file=sys.stderr)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*has flag is_row_identifier")
            return fetch_openml(name, version=version, as_frame=False, parser=parser, target_column=target)
    except (OSError, ValueError, HTTPException) as error:
        reason = " ".join(str(error).split())
        raise OSError(f"{title} is not on disk and could not be fetched from OpenML ({reason}); {remedy}.") from error


def _load(
    title: str,
    file: str,
    parse: Callable[[bytes], RealDataset],
    name: str,
    version: int,
    convert: Callable[[Bunch], RealDataset],
    shape: tuple[int, int],
    target: str | list[str] = "default-target",
) -> RealDataset:
    """Parse the file, or convert OpenML's copy, of which a version never changes."""
    contents = _read_files(file)
    if contents is not None:
        return parse(contents[0])
    remedy = f"set NGP_DATA to a folder that holds {file}"
    data = _fetch(title, name, version, remedy, target=target)
    try:
        converted = convert(data)
    except (ValueError, TypeError, LookupError) as error:
        raise _wrong_openml(name, version, title, remedy) from error
    if converted.X.shape != shape:
        raise _wrong_openml(name, version, title, remedy)
    return converted


def _wrong_openml(name: str, version: int, title: str, remedy: str) -> WrongData:
    return WrongData(f"OpenML's {name} (version {version}) is not the {title} that is expected here; {remedy}.")


def _find(name: str) -> Path | None:
    """Path of a file in the first folder that has it, or None."""
    folders = [Path(get_data_home()) / "ngp"]
    if named := os.environ.get("NGP_DATA"):
        folders.insert(0, Path(named).expanduser())
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
