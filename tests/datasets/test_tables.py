import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupKFold
from sklearn.utils import Bunch

from ngp.datasets import load_airfoil, load_boston, load_mice, load_vowel, load_wide
from ngp.datasets.loaders import _AIRFOIL, _BOSTON, _VOWELS

MICE = ["7_1,1,,c-CS-s", "7_2,2,4,c-CS-s", "J9_1,,6,t-CS-s", "J9_2,6,8,t-CS-s"]


def boston(n_samples=4):
    return np.random.default_rng(0).integers(0, 100, (n_samples, 14)) / 4


def csv(names, values):
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in values)]).encode()


@pytest.fixture
def boston_file(folders, put):
    values = boston()
    put(folders[0], "boston.csv", csv([*_BOSTON, "MEDV"], values))
    return values


def test_boston_with_noise(boston_file):
    table = load_boston(random_state=0)
    assert table.X.shape == (4, 113)
    assert_array_equal(table.X[:, :13], boston_file[:, :13])
    assert_array_equal(table.y, boston_file[:, 13])
    assert_array_equal(table.truth, np.arange(13))
    noise = table.X[:, 13:]
    assert noise.min() >= 10
    assert noise.max() <= 20
    assert noise.mean() == pytest.approx(15, abs=1)
    assert table.feature_names[:13] == _BOSTON
    assert table.feature_names[13] == "noise_0"
    assert len(table.feature_names) == 113
    assert table.class_names == ()
    assert table.groups is None


def test_boston_seeds(boston_file):
    first = load_boston(random_state=3)
    assert_array_equal(first.X, load_boston(random_state=3).X)
    assert_array_equal(first.X, load_boston(random_state=np.random.RandomState(3)).X)
    assert not np.array_equal(first.X, load_boston(random_state=4).X)
    assert not np.array_equal(load_boston().X, load_boston().X)


def test_boston_bad_noise():
    for value in (1.5, -1):
        with pytest.raises(
            ValueError, match=f"n_noise={value} is no number of columns; give a whole number, 0 or more"
        ):
            load_boston(n_noise=value)


def test_boston_nominal_columns_from_openml(folders, openml):
    values = boston(506)
    codes = values[:, :13].copy()
    codes[:, 8] = np.arange(506) % 3
    values[:, 8] = np.array([1, 5, 24])[np.arange(506) % 3]
    calls = openml(
        Bunch(data=codes, target=values[:, 13], feature_names=list(_BOSTON), categories={"RAD": ["1", "5", "24"]})
    )
    assert_array_equal(load_boston(n_noise=0).X, values[:, :13])
    assert calls == [("boston", 1)]


def test_airfoil_names(folders, put):
    put(folders[0], "airfoil.csv", csv([*_AIRFOIL, "level"], [[1, 2, 3, 4, 5, 6]]))
    table = load_airfoil()
    assert table.feature_names == _AIRFOIL
    assert_array_equal(table.truth, np.arange(5))
    assert_array_equal(pickle.loads(pickle.dumps(table)).X, table.X)


def vowels():
    X = np.random.default_rng(0).normal(size=(990, 10))
    return X, np.arange(990) % 11


@pytest.mark.parametrize(
    ("subset", "rows"), [("train", slice(528)), ("test", slice(528, None)), ("all", slice(None)), (None, slice(None))]
)
def test_vowel_subsets(folders, put, make_mat, subset, rows):
    X, y = vowels()
    put(folders[0], "vowel.mat", make_mat(featureMat=X.T, labelMat=np.eye(11, dtype=np.uint8)[y].T))
    table = load_vowel(subset=subset) if subset else load_vowel()
    assert_array_equal(table.X, X[rows])
    assert_array_equal(table.y, y[rows])
    assert table.X.flags.c_contiguous
    assert len(table.feature_names) == 10
    assert table.class_names == _VOWELS


def test_vowel_from_openml(folders, openml):
    X, y = vowels()
    others = ["Train_or_Test", "Speaker_Number", "Sex"]
    calls = openml(
        Bunch(
            data=np.hstack([np.ones((990, 3)), X]),
            target=np.array(_VOWELS, dtype=object)[y],
            feature_names=others + [f"Feature_{number}" for number in range(10)],
            categories={name: ["a", "b"] for name in others},
        )
    )
    table = load_vowel(subset="test")
    assert_array_equal(table.X, X[528:])
    assert_array_equal(table.y, y[528:])
    assert calls == [("vowel", 2)]


def test_vowel_unknown_subset():
    with pytest.raises(ValueError, match="subset='half' is unknown; use 'train', 'test' or 'all'"):
        load_vowel(subset="half")


@pytest.fixture
def mice_file(folders, put):
    header = ["MouseID", *(f"p{number}" for number in range(77)), "Genotype", "Treatment", "Behavior", "class"]
    rows = []
    for line in MICE:
        mouse, first, second, name = line.split(",")
        rows.append([mouse, first, second, *["0"] * 75, "-", "-", "-", name])
    put(folders[0], "fs/Data_Cortex_Nuclear.csv", csv(header, rows))


def test_mice_missing_values(mice_file):
    assert_array_equal(load_mice().X[:, :2], [[1, np.nan], [2, 4], [np.nan, 6], [6, 8]])
    assert_array_equal(load_mice(missing="mean").X[:, :2], [[1, 6], [2, 4], [3, 6], [6, 8]])
    with pytest.raises(ValueError, match="missing='zero' is unknown; use 'keep' or 'mean'"):
        load_mice(missing="zero")


def test_mice_classes_and_groups(mice_file):
    table = load_mice()
    assert table.class_names == ("c-CS-s", "t-CS-s")
    assert_array_equal(table.y, [0, 0, 1, 1])
    assert_array_equal(table.groups, [0, 0, 1, 1])
    assert table.feature_names == tuple(f"p{number}" for number in range(77))


def test_mice_from_openml(folders, openml):
    X = np.random.default_rng(0).normal(size=(1080, 77))
    X[0, 1] = np.nan
    names = [f"p{number}" for number in range(77)]
    target = np.array([["t-CS-s", "J9_1"], ["t-CS-s", "J9_2"], ["c-CS-s", "7_1"]] * 360, dtype=object)
    calls = openml(Bunch(data=X, target=target, feature_names=names))
    table = load_mice()
    assert_array_equal(table.X, X)
    assert_array_equal(table.y, [1, 1, 0] * 360)
    assert_array_equal(table.groups, [1, 1, 0] * 360)
    assert table.feature_names == tuple(names)
    assert calls == [("MiceProtein", 4)]


def test_wide_classes_are_counted_from_zero(folders, put, make_mat):
    X = np.array([[-2, 0, 2], [0, 0, 2]], dtype=np.int16)
    put(folders[0], "fs/wide/leukemia.mat", make_mat(X=X, Y=np.array([[1], [-1]], dtype=np.int16)))
    table = load_wide("leukemia")
    assert table.X.dtype == np.float64
    assert_array_equal(table.X, X)
    assert_array_equal(table.y, [1, 0])
    assert table.class_names == ("-1", "1")
    assert table.feature_names == ("feature_0", "feature_1", "feature_2")


def test_wide_unknown_table():
    with pytest.raises(ValueError, match="name='colon' is unknown; use one of 'GLIOMA', 'leukemia'"):
        load_wide("colon")


def test_real_boston(real_files):
    real_files("boston.csv")
    table = load_boston(random_state=0)
    assert table.X.shape == (506, 113)
    assert table.feature_names[:13] == _BOSTON
    assert table.y.mean() == pytest.approx(22.5328, abs=5e-5)
    assert table.y.std(ddof=1) == pytest.approx(9.1971, abs=5e-5)
    assert table.X[:, 3].sum() == 35


def test_real_airfoil(real_files):
    real_files("airfoil.csv")
    table = load_airfoil()
    assert table.X.shape == (1503, 5)
    assert table.feature_names == _AIRFOIL
    assert (table.X[:, 0].min(), table.X[:, 0].max()) == (200, 20000)
    assert (table.X[:, 1].min(), table.X[:, 1].max()) == (0, 22.2)
    assert (table.y.min(), table.y.max()) == (103.38, 140.987)


def test_real_vowel(real_files):
    real_files("vowel.mat")
    train, test = load_vowel(subset="train"), load_vowel(subset="test")
    assert_array_equal(np.bincount(train.y), [48] * 11)
    assert_array_equal(np.bincount(test.y), [42] * 11)
    X = load_vowel().X
    assert X.shape == (990, 10)
    assert_allclose([X.min(), X.max()], [-5.211, 5.074])


def test_real_mice(real_files):
    real_files("fs/Data_Cortex_Nuclear.csv")
    table = load_mice()
    assert table.X.shape == (1080, 77)
    assert np.isnan(table.X).sum() == 1396
    assert not np.isnan(load_mice(missing="mean").X).any()
    assert sorted(np.bincount(table.y)) == [105, 135, 135, 135, 135, 135, 150, 150]
    assert_array_equal(np.bincount(table.groups), [15] * 72)
    for train, test in GroupKFold(4).split(table.X, table.y, table.groups):
        assert not set(table.groups[train]) & set(table.groups[test])


@pytest.mark.parametrize(
    ("name", "n_features", "counts"),
    [
        ("GLIOMA", 4434, [14, 7, 14, 15]),
        ("leukemia", 7070, [47, 25]),
        ("lymphoma", 4026, [46, 10, 9, 11, 6, 6, 4, 2, 2]),
        ("lung_small", 325, [6, 5, 5, 16, 7, 13, 21]),
        ("nci9", 9712, [9, 9, 8, 5, 7, 6, 8, 6, 2]),
        ("BASEHOCK", 4862, [994, 999]),
        ("warpAR10P", 2400, [13] * 10),
    ],
)
def test_real_wide_tables(real_files, name, n_features, counts):
    real_files(f"fs/wide/{name}.mat")
    table = load_wide(name)
    assert table.X.shape == (sum(counts), n_features)
    assert_array_equal(np.bincount(table.y), counts)
