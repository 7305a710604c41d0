import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from ngp.datasets import load_coil20, load_fashion_mnist, load_mnist

PREFIXES = {"train": "train", "test": "t10k"}
LOADERS = {"mnist": load_mnist, "fs/fashion-mnist": load_fashion_mnist}
FILES = [("mnist", "train"), ("mnist", "test"), ("fs/fashion-mnist", "test")]


@pytest.fixture
def put_images(put, make_idx):
    """Writes a tiny set of images into a folder."""

    def write(folder, name, subset, n_images=3, seed=0):
        rng = np.random.default_rng(seed)
        images = rng.integers(0, 256, (n_images, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, n_images, dtype=np.uint8)
        put(folder, f"{name}/{PREFIXES[subset]}-images-idx3-ubyte.gz", make_idx(images))
        put(folder, f"{name}/{PREFIXES[subset]}-labels-idx1-ubyte.gz", make_idx(labels))
        return images, labels

    return write


@pytest.mark.parametrize(("name", "subset"), FILES)
def test_files_are_read(folders, put_images, name, subset):
    images, labels = put_images(folders[0], name, subset)
    found_images, found_labels = LOADERS[name](subset=subset)
    assert_array_equal(found_images, images)
    assert_array_equal(found_labels, labels)
    assert found_images.dtype == found_labels.dtype == np.uint8
    assert found_images.flags.writeable


def test_default_subsets(folders, put_images):
    images, _ = put_images(folders[0], "mnist", "train")
    put_images(folders[0], "mnist", "test", seed=1)
    assert_array_equal(load_mnist()[0], images)
    images, _ = put_images(folders[0], "fs/fashion-mnist", "test", seed=2)
    assert_array_equal(load_fashion_mnist()[0], images)


@pytest.mark.parametrize("kind", ["images-idx3", "labels-idx1"])
def test_damaged_file_is_named(folders, put_images, kind):
    put_images(folders[0], "mnist", "train")
    path = folders[0] / f"mnist/train-{kind}-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"{path.name} is damaged or another file: its sha256 is"):
        load_mnist()


def test_images_without_labels_are_missing(folders, put_images):
    put_images(folders[0], "mnist", "test")
    (folders[0] / "mnist/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(OSError, match=r"holds mnist/t10k-images.* and mnist/t10k-labels"):
        load_mnist(subset="test")


def test_fashion_training_images_come_from_openml_only(folders, put_images):
    put_images(folders[0], "fs/fashion-mnist", "train")
    with pytest.raises(OSError, match="connect to the network and try again, as its training images come from OpenML"):
        load_fashion_mnist(subset="train")


@pytest.mark.parametrize(("loader", "name"), [(load_mnist, "mnist_784"), (load_fashion_mnist, "Fashion-MNIST")])
def test_openml_images(folders, openml, loader, name):
    labels = np.arange(70_000) % 10
    pixels = np.zeros((70_000, 784), dtype=np.uint8)
    pixels[:, 30] = labels
    calls = openml(Bunch(data=pixels, target=labels.astype(str).astype(object)))
    for subset, rows in (("train", slice(60_000)), ("test", slice(60_000, None))):
        images, found = loader(subset=subset)
        assert images.shape == (labels[rows].size, 28, 28)
        assert images.dtype == found.dtype == np.uint8
        assert_array_equal(found, labels[rows])
        assert_array_equal(images[:, 1, 2], labels[rows])
    assert calls == [(name, 1)] * 2


def test_other_images_from_openml_are_refused(folders, openml):
    openml(Bunch(data=np.zeros((5, 784)), target=np.zeros(5)))
    with pytest.raises(
        ValueError,
        match=r"OpenML's mnist_784 \(version 1\) is not the MNIST that is expected here; set",
    ):
        load_mnist()


@pytest.mark.parametrize("loader", LOADERS.values())
def test_unknown_subset(loader):
    with pytest.raises(ValueError, match="subset='all' is unknown; use 'train' or 'test'"):
        loader(subset="all")


def coil(n_images=3):
    pixels = np.random.default_rng(0).integers(0, 256, (n_images, 1024)) / 255
    return pixels, np.arange(1, n_images + 1, dtype=np.uint8)


def test_coil20_is_upright(folders, put, make_mat):
    pixels, objects = coil()
    put(folders[0], "fs/COIL20.mat", make_mat(X=pixels, Y=objects[:, None]))
    images, labels = load_coil20()
    assert images.shape == (3, 32, 32)
    assert images.dtype == np.float64
    assert labels.dtype == np.uint8
    assert_array_equal(labels, [0, 1, 2])
    assert_array_equal(images[:, 1, 0], pixels[:, 1])
    assert_array_equal(images.transpose(0, 2, 1).reshape(3, -1), pixels)


@pytest.mark.parametrize(
    ("name", "subset", "counts", "mean", "std"),
    [
        ("mnist", "train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], 0.1307, 0.3081),
        ("mnist", "test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], None, None),
        ("fs/fashion-mnist", "test", [1000] * 10, 0.2868, 0.3524),
    ],
)
def test_real_images(real_files, name, subset, counts, mean, std):
    real_files(*(f"{name}/{PREFIXES[subset]}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")))
    images, labels = LOADERS[name](subset=subset)
    assert images.shape == (sum(counts), 28, 28)
    assert_array_equal(np.bincount(labels), counts)
    if mean:
        assert images.mean() / 255 == pytest.approx(mean, abs=5e-5)
        assert images.std() / 255 == pytest.approx(std, abs=5e-5)


def test_real_coil20(real_files):
    real_files("fs/COIL20.mat")
    images, labels = load_coil20()
    assert images.shape == (1440, 32, 32)
    assert_array_equal(np.bincount(labels), [72] * 20)
    assert images.min() == 0
    assert images.max() == 1
    # a duck, which is wider at the bottom than at the top
    assert np.count_nonzero(images[0, 24] > 0.2) > np.count_nonzero(images[0, 4] > 0.2)
