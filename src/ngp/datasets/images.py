"""Loaders for images."""

import gzip
from importlib.util import find_spec
from io import BytesIO
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from ngp.datasets.locate import WrongData, fetch, load, read_files

__all__ = ["load_coil20", "load_fashion_mnist", "load_mnist"]


def load_mnist(*, subset: Literal["train", "test"] = "train") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Handwritten digits (MNIST): 60,000 training and 10,000 test images.

    The original files, such as ``mnist/train-images-idx3-ubyte.gz``, are looked for in the folder named by
    the environment variable ``NGP_DATA``, then in the folder ``ngp`` of scikit-learn's data home (see
    :func:`sklearn.datasets.get_data_home`). If they are in neither, scikit-learn fetches the data from
    OpenML, and keeps them for the next time.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Which images to load.

    Returns
    -------
    images : ndarray of shape (n_images, 28, 28), dtype uint8
        Grey values, 0 for the background.
    labels : ndarray of shape (n_images,), dtype uint8
        The digits, 0 to 9.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If a file on disk is not the original one.

    Examples
    --------
    >>> from ngp.datasets import load_mnist
    >>> images, labels = load_mnist(subset="test")  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (10000, 28, 28)
    """
    return _load_idx("MNIST", "mnist", "mnist_784", subset)


def load_fashion_mnist(*, subset: Literal["train", "test"] = "test") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures of clothes (Fashion-MNIST): 60,000 training and 10,000 test images.

    The original files of the test images, such as ``fs/fashion-mnist/t10k-images-idx3-ubyte.gz``, are looked
    for in the same folders as those of :func:`load_mnist`, and fetched from OpenML if they are in none. The
    training images come from OpenML only.

    Parameters
    ----------
    subset : {"train", "test"}, default="test"
        Which images to load. Papers on feature selection often use the 10,000 test images only; they are the
        default for that reason.

    Returns
    -------
    images : ndarray of shape (n_images, 28, 28), dtype uint8
        Grey values, 0 for the background.
    labels : ndarray of shape (n_images,), dtype uint8
        The kinds of clothes, 0 to 9: T-shirt, trousers, pullover, dress, coat, sandal, shirt, sneaker, bag,
        ankle boot.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If a file on disk is not the original one.

    Examples
    --------
    >>> from ngp.datasets import load_fashion_mnist
    >>> images, labels = load_fashion_mnist()  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (10000, 28, 28)
    """
    return _load_idx("Fashion-MNIST", "fs/fashion-mnist", "Fashion-MNIST", subset, train_files=False)


def load_coil20() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Photographs of 20 objects on a turntable (COIL-20): 72 images of each, 5 degrees apart.

    This is the version with 32 x 32 pixels that is common in feature selection. Its file, ``fs/COIL20.mat``,
    is looked for in the same folders as those of :func:`load_mnist`, and fetched from OpenML if it is in none.

    Returns
    -------
    images : ndarray of shape (1440, 32, 32), dtype float64
        Grey values from 0, the background, to 1; not of 8 bits, as each is the mean of 4 x 4 original pixels.
        The file's order of pixels, column by column, is ``images.transpose(0, 2, 1).reshape(1440, -1)``.
    labels : ndarray of shape (1440,), dtype uint8
        The objects, 0 to 19.

    Raises
    ------
    OSError
        If the data are not on disk and can't be fetched.
    ValueError
        If the file on disk is not the original one, or OpenML has other data.

    Examples
    --------
    >>> from ngp.datasets import load_coil20
    >>> images, labels = load_coil20()  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (1440, 32, 32)
    """

    def parse(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        data = loadmat(BytesIO(content))
        return data["X"].astype(np.float64), data["Y"].ravel().astype(np.uint8) - 1

    def convert(data: Bunch) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        pixels = data.data.astype(np.float64)
        return pixels / (255 if pixels.max() > 1 else 1), data.target.astype(np.float64).astype(np.uint8) - 1

    # Public scripts use OpenML's "COIL-20", version 1, as 1440 x 1024 grey values. Its scale and order of pixels
    # are not known, and nothing could be fetched to see; what isn't the same as the file is refused.
    pixels, labels = load("COIL-20", "fs/COIL20.mat", parse, "COIL-20", 1, convert)
    return np.ascontiguousarray(pixels.reshape(-1, 32, 32).transpose(0, 2, 1)), labels


def _load_idx(
    title: str, folder: str, openml_name: str, subset: str, *, train_files: bool = True
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels from a pair of idx files, or from OpenML; `train_files` says if there are some for training."""
    if subset not in ("train", "test"):
        raise ValueError(f"subset={subset!r} is unknown; use 'train' or 'test'.")
    prefix = "train" if subset == "train" else "t10k"
    names = f"{folder}/{prefix}-images-idx3-ubyte.gz", f"{folder}/{prefix}-labels-idx1-ubyte.gz"
    if subset == "test" or train_files:
        contents = read_files(*names)
        if contents is not None:
            return _parse_idx(contents[0]), _parse_idx(contents[1])
        remedy = f"set NGP_DATA to a folder that holds {names[0]} and {names[1]}"
    else:
        remedy = "connect to the network and try again, as its training images come from OpenML only"

    # Nothing could be fetched to check this. Public scripts use version 1 of both, 70,000 rows of 784 pixels; that the
    # training images of Fashion-MNIST come first, as those of MNIST do, is taken for granted. pandas is preferred
    # here because liac-arff is slow on so many numbers.
    parser: Literal["pandas", "liac-arff"] = "pandas" if find_spec("pandas") else "liac-arff"
    data = fetch(title, openml_name, 1, remedy, parser=parser)
    if data.data.shape != (70_000, 784):
        raise WrongData(
            f"OpenML's {openml_name} (version 1) is not the {title} that is expected here: its shape is "
            f"{data.data.shape}; {remedy}."
        )
    rows = slice(60_000) if subset == "train" else slice(60_000, None)
    return data.data[rows].astype(np.uint8).reshape(-1, 28, 28), data.target[rows].astype(np.uint8)


def _parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Array of a gzipped idx file: two zeros, type 8, number of dimensions, sizes, bytes."""
    data = gzip.decompress(content)
    n_dimensions = data[3]
    shape = np.frombuffer(data, dtype=">u4", count=n_dimensions, offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * n_dimensions).reshape(shape).copy()
