from math import exp, sin

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ngp.datasets import Dataset, make_artificial, make_gravitation, make_ohm, make_planck

LAWS = {
    make_ohm: (2, lambda x: x[0] / x[1]),
    make_planck: (2, lambda x: 2 * x[0] ** 3 / (exp(x[0] / x[1]) - 1)),
    make_gravitation: (3, lambda x: x[0] * x[1] / x[2] ** 2),
}
GENERATORS = [*LAWS, make_artificial]


def artificial_target(x):
    x1, x2, x3, x4, x5 = x[:5]
    return (
        (10 * sin(max(x1, x2)) + max(x3, x4, x5) ** 3) / (1 + (x1 + x5) ** 2)
        + sin(0.5 * x3) * (1 + exp(x4 - 0.5 * x3))
        + x3**2
        + 2 * sin(x4)
        + 2 * x5
    )


@pytest.mark.parametrize("make", LAWS)
def test_law(make):
    n_relevant, law = LAWS[make]
    X, y, truth = make(random_state=3)
    assert X.shape == (1000, 10)
    assert_array_equal(truth, range(n_relevant))
    assert_allclose(y, [law(row) for row in X], rtol=1e-12)


@pytest.mark.parametrize("make", LAWS)
def test_features_of_the_laws_are_uniform(make):
    X = make(5000, random_state=0).X
    assert X.min() >= 10
    assert X.max() < 20
    assert_allclose(np.quantile(X, [0.1, 0.5, 0.9], axis=0).T, np.tile([11, 15, 19], (10, 1)), atol=0.4)


def test_artificial_model():
    X, y, truth = make_artificial(noise="none", random_state=5)
    assert X.shape == (600, 500)
    assert_array_equal(truth, range(5))
    assert_allclose(y, [artificial_target(row) for row in X], rtol=1e-10, atol=1e-12)


def test_artificial_features_are_correlated():
    X = make_artificial(20_000, 8, random_state=0).X
    assert_allclose(X.mean(axis=0), 0, atol=0.03)
    assert_allclose(np.cov(X.T), np.full((8, 8), 0.25) + 0.25 * np.eye(8), atol=0.02)


def test_artificial_noise():
    X, clean, _ = make_artificial(4000, 6, noise="none", random_state=1)
    sample = make_artificial(4000, 6, noise="sample", random_state=1)
    offset = make_artificial(4000, 6, noise="offset", random_state=1)
    assert_array_equal(sample.X, X)
    assert_array_equal(offset.X, X)
    noise = sample.y - clean
    assert abs(noise.mean()) < 0.06
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert np.abs(np.corrcoef(noise, X.T)[0, 1:]).max() < 0.06
    assert np.ptp(offset.y - clean) < 1e-12
    assert abs(offset.y[0] - clean[0]) > 1e-3


def test_artificial_offset_differs_from_seed_to_seed():
    offsets = [
        make_artificial(1, 5, noise="offset", random_state=seed).y[0]
        - make_artificial(1, 5, noise="none", random_state=seed).y[0]
        for seed in range(400)
    ]
    assert np.mean(offsets) == pytest.approx(0, abs=0.2)
    assert np.std(offsets) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("make", GENERATORS)
def test_seed_decides_everything(make):
    first, again = make(20, 7, random_state=0), make(20, 7, random_state=0)
    other, generator = make(20, 7, random_state=1), make(20, 7, random_state=np.random.RandomState(0))
    assert isinstance(first, Dataset)
    assert first._fields == ("X", "y", "truth")
    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)
    assert_array_equal(first.X, generator.X)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("make", GENERATORS)
def test_more_samples_keep_the_first_ones(make):
    few, many = make(10, 6, random_state=2), make(30, 6, random_state=2)
    assert_array_equal(many.X[:10], few.X)
    assert_array_equal(many.y[:10], few.y)


@pytest.mark.parametrize(
    ("make", "least"), [(make_ohm, 2), (make_planck, 2), (make_gravitation, 3), (make_artificial, 5)]
)
def test_sizes_are_checked(make, least):
    assert make(1, least).X.shape == (1, least)
    with pytest.raises(ValueError, match=f"n_features={least - 1} is too small; .* at least {least}"):
        make(10, least - 1)
    with pytest.raises(ValueError, match="n_samples=0 is too small"):
        make(0)
    with pytest.raises(TypeError, match=r"n_samples=10\.0 is not an integer"):
        make(10.0)


def test_unknown_noise():
    with pytest.raises(ValueError, match="noise='loud' is unknown; use 'sample', 'offset' or 'none'"):
        make_artificial(noise="loud")
