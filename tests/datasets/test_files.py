import gzip
import hashlib
import os
import struct
from urllib.error import URLError

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ngp.datasets import files, load_mnist

PREFIXES = {"train": "train", "test": "t10k"}


def idx(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def offline(*args, **kwargs):
    raise URLError("no network")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty NGP_DATA and an empty data home; no network."""
    data, home = tmp_path / "data", tmp_path / "home"
    data.mkdir()
    monkeypatch.setenv("NGP_DATA", str(data))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    monkeypatch.setattr(files, "fetch_openml", offline)
    return data, home / "ngp"


@pytest.fixture
def put(monkeypatch):
    """Writes a tiny MNIST into a folder, and makes its checksums the expected ones."""

    def write(folder, subset="train", n_images=3, seed=0):
        rng = np.random.default_rng(seed)
        images = rng.integers(0, 256, (n_images, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, n_images, dtype=np.uint8)
        (folder / "mnist").mkdir(parents=True, exist_ok=True)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            name = f"mnist/{PREFIXES[subset]}-{kind}-ubyte.gz"
            (folder / name).write_bytes(idx(array))
            monkeypatch.setitem(files._CHECKSUMS, name, hashlib.sha256(idx(array)).hexdigest())
        return images, labels

    return write


@pytest.mark.parametrize("where", [0, 1], ids=["NGP_DATA", "data home"])
def test_files_are_found(folders, put, where):
    for seed, subset in enumerate(PREFIXES):
        images, labels = put(folders[where], subset, n_images=3 + seed, seed=seed)
        found_images, found_labels = load_mnist(subset=subset)
        assert_array_equal(found_images, images)
        assert_array_equal(found_labels, labels)
        assert found_images.dtype == found_labels.dtype == np.uint8
        assert found_images.flags.writeable


def test_train_is_the_default(folders, put):
    images, _ = put(folders[0], "train")
    put(folders[0], "test", seed=1)
    assert_array_equal(load_mnist()[0], images)


def test_ngp_data_comes_first(folders, put):
    put(folders[1], seed=0)
    images, _ = put(folders[0], seed=1)
    assert_array_equal(load_mnist()[0], images)


def test_data_home_serves_without_ngp_data(folders, put, monkeypatch):
    monkeypatch.delenv("NGP_DATA")
    images, _ = put(folders[1])
    assert_array_equal(load_mnist()[0], images)


@pytest.mark.parametrize("kind", ["images-idx3", "labels-idx1"])
def test_damaged_file_is_named(folders, put, kind):
    put(folders[0])
    path = folders[0] / f"mnist/train-{kind}-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"{path.name} is damaged or another file: its sha256 is"):
        load_mnist()


@pytest.mark.parametrize("half", [False, True], ids=["nothing", "images only"])
def test_missing_data_says_what_to_do(folders, put, half):
    if half:
        put(folders[0], "test")
        (folders[0] / "mnist/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(OSError, match="set NGP_DATA to a folder that holds mnist/t10k-images") as caught:
        load_mnist(subset="test")
    assert "no network" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_openml_is_asked_last(folders, monkeypatch):
    labels = np.arange(70_000) % 10
    calls = []

    def fetch(name, **options):
        calls.append((name, options["version"]))
        pixels = np.zeros((70_000, 784), dtype=np.int16)
        pixels[:, 30] = labels
        return pixels, labels.astype(str).astype(object)

    monkeypatch.setattr(files, "fetch_openml", fetch)
    for subset, rows in (("train", slice(60_000)), ("test", slice(60_000, None))):
        images, digits = load_mnist(subset=subset)
        assert images.shape == (labels[rows].size, 28, 28)
        assert images.dtype == digits.dtype == np.uint8
        assert_array_equal(digits, labels[rows])
        assert_array_equal(images[:, 1, 2], labels[rows])
    assert calls == [("mnist_784", 1)] * 2


def test_unknown_subset():
    with pytest.raises(ValueError, match="subset='all' is unknown; use 'train' or 'test'"):
        load_mnist(subset="all")


@pytest.mark.skipif("NGP_DATA" not in os.environ, reason="NGP_DATA names no folder with the MNIST files")
@pytest.mark.parametrize(
    ("subset", "counts"),
    [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        ("test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ],
)
def test_real_mnist(subset, counts):
    images, labels = load_mnist(subset=subset)
    assert images.shape == (sum(counts), 28, 28)
    assert_array_equal(np.bincount(labels), counts)
    if subset == "train":
        assert images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
        assert images.std() / 255 == pytest.approx(0.3081, abs=5e-5)
