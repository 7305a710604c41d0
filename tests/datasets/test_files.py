import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from ngp import datasets
from ngp.datasets import load_airfoil, loaders

CSV = b"a,b,level\n1,2,3\n4,5,6\n"
OTHER = b"a,b,level\n7,8,9\n0,1,2\n"

LOADERS = {
    "load_boston": "boston.csv",
    "load_airfoil": "airfoil.csv",
    "load_vowel": "vowel.mat",
    "load_mice": "fs/Data_Cortex_Nuclear.csv",
    "load_coil20": "fs/COIL20.mat",
    "load_fashion_mnist": "fs/fashion-mnist/t10k-images-idx3-ubyte.gz",
    "load_mnist": "mnist/train-images-idx3-ubyte.gz",
    "load_wide": "fs/wide/leukemia.mat",
}
ARGUMENTS = {"load_wide": ["leukemia"]}
FILES_ONLY = ("load_coil20", "load_wide")


def openml_airfoil():
    return Bunch(
        data=np.arange(7515.0).reshape(1503, 5), target=np.arange(1503.0), feature_names=["f"] * 5, categories={}
    )


@pytest.mark.parametrize("where", [0, 1], ids=["NGP_DATA", "cache"])
def test_file_is_found(folders, put, where):
    put(folders[where], "airfoil.csv", CSV)
    assert_array_equal(load_airfoil().y, [3, 6])


def test_ngp_data_comes_before_the_cache(folders, put):
    put(folders[1], "airfoil.csv", OTHER)
    put(folders[0], "airfoil.csv", CSV)
    assert_array_equal(load_airfoil().y, [3, 6])


@pytest.mark.parametrize("value", [None, ""])
def test_cache_serves_without_ngp_data(folders, put, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("NGP_DATA")
    else:
        monkeypatch.setenv("NGP_DATA", value)
    put(folders[1], "airfoil.csv", CSV)
    assert_array_equal(load_airfoil().y, [3, 6])


def test_files_come_before_openml(folders, put, openml, capsys):
    calls = openml(openml_airfoil())
    put(folders[1], "airfoil.csv", CSV)
    load_airfoil()
    assert calls == []
    assert capsys.readouterr().err == ""


def test_openml_comes_last_and_says_so(folders, openml, capsys):
    data = openml_airfoil()
    calls = openml(data)
    assert_array_equal(load_airfoil().X, data.data)
    assert calls == [("airfoil_self_noise", 1)]
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == "ngp: fetching Airfoil self-noise from OpenML (scikit-learn keeps it for the next time)\n"


@pytest.mark.parametrize("change", ["rows", "words"])
def test_other_data_from_openml_are_refused(folders, openml, change):
    data = openml_airfoil()
    if change == "rows":
        data.data, data.target = data.data[:-1], data.target[:-1]
    else:
        data.target = np.array(["loud"] * 1503, dtype=object)
    openml(data)
    with pytest.raises(
        ValueError,
        match=r"OpenML's airfoil_self_noise \(version 1\) is not the Airfoil self-noise that is expected here; "
        r"set NGP_DATA to a folder that holds airfoil\.csv\.",
    ):
        load_airfoil()


@pytest.mark.parametrize(("loader", "name"), LOADERS.items())
def test_damaged_file_is_named(folders, loader, name):
    for file in loaders.CHECKSUMS:
        (folders[0] / file).parent.mkdir(parents=True, exist_ok=True)
        (folders[0] / file).write_bytes(b"nothing")
    with pytest.raises(
        ValueError, match=r"is damaged or another file: its sha256 is .*, expected .*; replace"
    ) as caught:
        getattr(datasets, loader)(*ARGUMENTS.get(loader, []))
    assert str(folders[0] / name) in str(caught.value)


@pytest.mark.parametrize(("loader", "name"), LOADERS.items())
def test_missing_data_say_what_to_do(folders, loader, name):
    with pytest.raises(OSError, match="is not on disk") as caught:
        getattr(datasets, loader)(*ARGUMENTS.get(loader, []))
    message = str(caught.value)
    assert f"set NGP_DATA to a folder that holds {name}" in message
    assert "could not be fetched from OpenML (<urlopen error no network>)" in message or loader in FILES_ONLY
    assert "\n" not in message
    assert message.endswith(".")


def test_every_loader_is_tried():
    assert set(LOADERS) == {name for name in datasets.__all__ if name.startswith("load_")}
