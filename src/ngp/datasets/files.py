"""Loaders for real data, from files on disk or from OpenML."""

import gzip
import hashlib
import os
from collections.abc import Iterator
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home

__all__ = ["load_mnist"]

# sha256 of every file that a loader may find on disk
_CHECKSUMS = {
    "mnist/train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "mnist/train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "mnist/t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "mnist/t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


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
    if subset not in ("train", "test"):
        raise ValueError(f"subset={subset!r} is unknown; use 'train' or 'test'.")
    prefix = "train" if subset == "train" else "t10k"
    names = f"mnist/{prefix}-images-idx3-ubyte.gz", f"mnist/{prefix}-labels-idx1-ubyte.gz"
    paths = _find(names[0]), _find(names[1])
    if paths[0] and paths[1]:
        return _parse_idx(_read(paths[0], names[0])), _parse_idx(_read(paths[1], names[1]))

    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        pixels, labels = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True, parser=parser)
    except (OSError, ValueError, HTTPException) as error:
        raise OSError(
            f"MNIST is not on disk and could not be fetched from OpenML ({error}); "
            f"set NGP_DATA to a folder that holds {names[0]} and {names[1]}."
        ) from error
    rows = slice(60_000) if subset == "train" else slice(60_000, None)
    return pixels[rows].astype(np.uint8).reshape(-1, 28, 28), labels[rows].astype(np.uint8)


def _folders() -> Iterator[Path]:
    """Folders to look in, first one first."""
    if folder := os.environ.get("NGP_DATA"):
        yield Path(folder).expanduser()
    yield Path(get_data_home()) / "ngp"


def _find(name: str) -> Path | None:
    """Where the file is, or None."""
    return next((folder / name for folder in _folders() if (folder / name).is_file()), None)


def _read(path: Path, name: str) -> bytes:
    """Content of the file, once its checksum is right."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _CHECKSUMS[name]:
        raise ValueError(
            f"{path} is damaged or another file: its sha256 is {found}, expected {_CHECKSUMS[name]}; "
            "replace it by the original."
        )
    return content


def _parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Array of a gzipped idx file: two zeros, type 8, number of dimensions, sizes, bytes."""
    data = gzip.decompress(content)
    n_dimensions = data[3]
    shape = np.frombuffer(data, dtype=">u4", count=n_dimensions, offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * n_dimensions).reshape(shape).copy()
