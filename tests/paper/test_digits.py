"""The trials on handwritten digits, on scikit-learn's small ones."""

import json

import numpy as np
import pytest

from ngp.data.groups import image_windows
from ngp.paper import digits
from ngp.paper.digits import SHARES, Method, digit_trial, setting_of, shown_digits, whole_groups
from ngp.paper.experiment import Plan, run_trials

PIXELS = Method("ngp-ssfn")
TILES = Method("ngp-ssfn", 2, 2)
SLIDING = Method("ngp-ssfn", 2, 1)
QUICK = [PIXELS, TILES, SLIDING, Method("ngp-ssfn-authors", 2, 2), Method("lasso"), Method("random-forest")]
SLOW = [
    pytest.param(Method("ngp-cnn", 2, 2), marks=pytest.mark.slow),
    pytest.param(Method("deeplift"), marks=pytest.mark.slow),
    pytest.param(Method("bart"), marks=pytest.mark.slow),
]
NEEDS = {"ngp-cnn": "torch", "deeplift": "torch", "bart": "stochtree"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a method once for all tests."""
    store = tmp_path_factory.mktemp("digits") / "trials.jsonl"

    def run(method, protocol="sound", seed=5000):
        if method.name in NEEDS:
            pytest.importorskip(NEEDS[method.name])
        return run_trials([digit_trial(Plan(protocol, "tiny"), method, seed)], store)[0]

    return run


@pytest.mark.parametrize("method", [*QUICK, *SLOW])
def test_a_trial_tells_digits_apart_by_few_pixels(run, method):
    result = run(method, "published" if method == SLIDING else "sound")
    assert len(set(result["pixels"])) == len(result["pixels"]) == sum(result["sizes"]) <= round(SHARES[-1] * 64)
    assert len(result["order"]) == len(result["sizes"])
    assert [each["share"] for each in result["accuracies"]] == list(SHARES)
    for each in result["accuracies"]:
        assert 0 < each["n_pixels"] <= round(each["share"] * 64)
        assert all(0 <= each[key] <= 1 for key in ("train", "test", "common"))
    best = result["accuracies"][-1]
    assert min(best["train"], best["test"], best["common"]) > 0.2  # by chance 0.1


@pytest.mark.parametrize("method", [PIXELS, TILES, SLIDING])
def test_selections_are_whole_windows(run, method):
    result = run(method)
    windows = image_windows((8, 8), method.window, method.stride).columns
    selected: set[int] = set()
    start = 0
    for window, size in zip(result["order"], result["sizes"], strict=True):
        added = set(windows[window].tolist()) - selected
        assert set(result["pixels"][start : start + size]) == added
        selected |= added
        start += size
    edges = np.cumsum(result["sizes"])
    assert all(each["n_pixels"] in edges for each in result["accuracies"])


def test_a_share_takes_as_many_whole_windows_as_fit_in():
    assert whole_groups([16] * 19, 784) == [48, 112, 176, 240, 304]
    assert whole_groups([1] * 314, 784) == [63, 125, 188, 251, 314]
    assert whole_groups([1] * 100, 784) == [63, 100, 100, 100, 100]
    assert whole_groups([], 784) == [0] * 5


@pytest.mark.parametrize("method", [TILES, Method("random-forest")])
def test_results_do_not_depend_on_the_number_of_jobs(run, tmp_path, method):
    alone = run(method)
    # Two trials, so that narrow ones go to other processes.
    trials = [digit_trial(Plan("sound", "tiny"), method, seed) for seed in (5000, 5001)]
    together = run_trials(trials, tmp_path / "trials.jsonl", n_jobs=2)[0]
    assert {**alone, "seconds": 0} == {**together, "seconds": 0}


def test_runs_differ_in_their_images(run):
    assert run(PIXELS, seed=5000)["pixels"] != run(PIXELS, seed=5001)["pixels"]


def test_published_images_are_inverted_and_pursuits_choose_on_test_images(monkeypatch):
    seen = {}

    class Spy(digits.NeuralGreedyPursuit):
        def fit(self, X, y):
            seen.update(X=X, cv=self.cv)
            return super().fit(X, y)

    monkeypatch.setattr(digits, "NeuralGreedyPursuit", Spy)
    for protocol in ("sound", "published"):
        trial = digit_trial(Plan(protocol, "tiny"), TILES, 5000)
        trial.run(**trial.parameters, n_jobs=1)
        train, test = digits._drawn_images(setting_of(Plan(protocol, "tiny")), 5000)
        if protocol == "sound":
            np.testing.assert_array_equal(seen["X"], train.X)
            assert seen["cv"] == 5
        else:
            np.testing.assert_array_equal(seen["X"], 1 - train.X)
            np.testing.assert_array_equal(seen["cv"][0], 1 - test.X)
            np.testing.assert_array_equal(seen["cv"][1], test.y)


def test_images_are_drawn_without_replacement():
    setting = setting_of(Plan(size="tiny"))
    everything = setting._replace(n_train=1000, n_test=797)
    train, test = digits._drawn_images(everything, 5000)
    images = digits.load_digits().images.reshape(-1, 64) / 16
    for drawn, pool in ((train, images[:1000]), (test, images[1000:])):
        assert sorted(map(tuple, drawn.X)) == sorted(map(tuple, pool))
    assert train.X.min() == 0
    assert train.X.max() == 1


def test_networks_that_see_images_see_selected_pixels_only():
    train, test = digits._drawn_images(setting_of(Plan(size="tiny")), 5000)
    seen = []

    class Spy:
        def fit(self, X, y):
            seen.append(X)

        def predict(self, X):
            seen.append(X)
            return np.zeros(len(X))

    pixels = [20, 35, 36]
    for whole in (True, False):
        digits._accuracies(Spy(), train, test, pixels, whole)
    whole, cut = seen[0], seen[3]
    np.testing.assert_array_equal(whole[:, pixels], train.X[:, pixels])
    assert np.count_nonzero(np.delete(whole, pixels, axis=1)) == 0
    np.testing.assert_array_equal(cut, train.X[:, pixels])


def test_full_trials_are_as_large_as_in_the_paper():
    setting = setting_of(Plan())
    assert (setting.source, setting.n_train, setting.n_test, setting.epochs) == ("mnist", 1000, 10_000, 10)


def test_trials_are_json_and_pursuits_are_run_alone(run):
    trial = digit_trial(Plan("sound", "tiny"), TILES, 5000)
    assert json.loads(json.dumps(trial.parameters)) == trial.parameters
    assert trial.wide
    assert not digit_trial(Plan("sound", "tiny"), Method("lasso"), 5000).wide
    assert json.loads(json.dumps(run(TILES))) == run(TILES)


def test_where_there_is_no_mnist_its_loader_says_what_to_do(monkeypatch):
    def missing(subset):
        raise OSError("set NGP_DATA to a folder")

    monkeypatch.setattr(digits, "load_mnist", missing)
    trial = digit_trial(Plan("sound", "fast"), PIXELS, 5000)
    with pytest.raises(OSError, match="set NGP_DATA"):
        trial.run(**trial.parameters, n_jobs=1)


def test_one_image_of_each_digit_is_shown():
    images = shown_digits("digits")
    data = digits.load_digits()
    for digit, image in enumerate(images):
        first = np.flatnonzero(data.target[1000:] == digit)[0] + 1000
        np.testing.assert_array_equal(image * 16, data.images[first])
