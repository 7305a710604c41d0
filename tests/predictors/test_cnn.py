"""Convolutional networks against their plain twin: one network trained after the other."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit
from torch import Tensor, nn

from ngp import NGPClassifier, NGPRegressor
from ngp.data.groups import image_windows, make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.networks import Targets
from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import CNN, FINAL_STREAM, STEP_STREAM, CNNScorer

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SHAPE = (5, 6, 2)  # rows, cols, channels
N_ROWS, N_COLUMNS = 22, 60
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([34, 7])
CANDIDATES = ColumnSets.of([[0], [20, 21, 22, 23], [], [59], [12, 3]])
Factory = Callable[[tuple[int, int, int], int], nn.Module]

# Networks: functions of this module, so that they can be pickled


def with_output(image: tuple[int, int, int], n_outputs: int, *layers: nn.Module) -> nn.Module:
    features = nn.Sequential(*layers, nn.Flatten())
    n_features = features.eval()(torch.zeros(1, *image)).shape[1]
    return nn.Sequential(*features, nn.Linear(n_features, n_outputs)).train()


def small(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.MaxPool2d(2))


def smooth(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # goes through vmap
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.Tanh(), nn.AvgPool2d(2))


def dropping(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.Dropout(0.4))


def dropping_channels(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # goes through vmap
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.Dropout2d(0.4))


def normalised(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # one copy after the other
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU())


KINDS: dict[str, dict[str, Any]] = {
    "small": {},
    "through vmap": {"network": smooth},
    "dropout": {"network": dropping},
    "dropout through vmap": {"network": dropping_channels},
    "running statistics": {"network": normalised},
    "dropout, draws": {"network": dropping, "n_draws": 2},
}


def make_data(kind: str, n_rows: int = N_ROWS, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 255, size=(n_rows, N_COLUMNS)) * (rng.uniform(size=(n_rows, N_COLUMNS)) < 0.7)
    signal = X[:, [0, 7, 21]] / 100 + 0.4 * rng.normal(size=(n_rows, 3))
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > signal[:, 1], "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(
    kind: str = "classes", cv: Any = 3, loss: str = "cross_entropy", weighted: bool = False, data: Any = None
) -> Problem:
    X, y = make_data(kind) if data is None else data
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2 if weighted else None
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=9, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    groups = make_groups(None, X.shape[1])
    return make_problem(X, y, groups=groups, task=task, cv=cv, loss=loss, sample_weight=weights, random_state=3)


def make_cnn(**settings: Any) -> CNN:
    fast = {"network": small, "image_shape": SHAPE, "epochs": 2, "batch_size": 6, "learning_rate": 0.02}
    return CNN(**{**fast, "refit_epochs": 3, **settings})


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> CNNScorer:
    return make_cnn(dtype=dtype, **settings).bind(problem, random_state=11, n_jobs=n_jobs, device="cpu")


def images_by_hand(problem: Problem, columns: Any, X: Any = None) -> Tensor:
    """Images as torch has them, with nothing but the given pixels, and one scale for all of them."""
    ever_train = sorted(
        {int(row) for round_ in problem.rounds for f in range(round_.n_folds) for row in round_.training(f)}
    )
    train, weights = problem.X[ever_train], problem.weights[ever_train]
    varies = train[weights > 0].std(axis=0) > 0
    scale = np.sqrt(np.average(train[:, varies] ** 2, axis=0, weights=weights).mean())
    X = problem.X if X is None else X
    rows, cols, channels = SHAPE
    images = np.zeros((len(X), channels, rows, cols))
    for column in columns:
        row, col, channel = np.unravel_index(column, SHAPE)
        images[:, channel, row, col] = X[:, column] / scale
    return torch.from_numpy(images)


def initial_network(scorer: CNNScorer, n_selected: int, draw: int) -> nn.Module:
    rows, cols, channels = SHAPE
    with torch.random.fork_rng():
        torch.manual_seed(scorer.number(n_selected, draw))
        return scorer.config.network((channels, rows, cols), scorer.problem.n_outputs).double()


def train_plainly(
    scorer: CNNScorer, network: nn.Module, images: Tensor, rows: Any, n_selected: int, draw: int, **plan: Any
) -> None:
    """Train one network on some rows; the gradients of the losses have tests of their own."""
    config, problem = scorer.config, scorer.problem
    mean, spread = scorer.target_scales
    targets = Targets(torch.from_numpy((problem.targets - mean) / spread), problem.loss)
    epochs, stream = plan.get("epochs", config.epochs), plan.get("stream", STEP_STREAM)
    batches, shares = scorer.plan([rows], epochs, n_selected, draw, stream)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    falls = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(batches))
    network.train()
    for batch, share in zip(batches[:, 0], shares[:, 0], strict=True):
        own, weights = torch.from_numpy(batch[share > 0]), torch.from_numpy(share[share > 0])
        outputs = network(images[own])
        optimizer.zero_grad()
        outputs.backward(targets.gradients(outputs.detach(), own, weights))
        optimizer.step()
        falls.step()


def predict_plainly(scorer: CNNScorer, network: nn.Module, images: Tensor) -> Any:
    mean, spread = scorer.target_scales
    with torch.no_grad():
        outputs = Targets(torch.zeros(0), scorer.problem.loss).coded(network.eval()(images))
    return outputs.numpy() * spread + mean


# Losses


def losses_by_hand(scorer: CNNScorer, selected: Any, new: Any) -> Any:
    """Parts of the loss of one candidate, one network after the other."""
    problem, config = scorer.problem, scorer.config
    images = images_by_hand(problem, [*selected, *new])
    predictions = []
    for round_ in problem.rounds:
        predicted = np.zeros((1, len(problem.X), problem.n_outputs))
        for f in range(round_.n_folds):
            rows, judge = round_.training(f), round_.validation(f)
            rows = rows[problem.weights[rows] > 0]
            for draw in range(config.n_draws):
                network = initial_network(scorer, len(selected), draw)
                train_plainly(scorer, network, images, rows, len(selected), draw)
                predicted[0, judge] += predict_plainly(scorer, network, images[judge]) / config.n_draws
        predictions.append(predicted[:, round_.rows])
    return problem.part_losses(iter(predictions))[0]


def check_against_twin(scorer: CNNScorer, selected: Any = SELECTED, candidates: ColumnSets = CANDIDATES) -> None:
    losses = scorer.add_losses(selected, candidates)
    np.testing.assert_array_equal(losses.weights, scorer.problem.part_weights)
    for i in range(len(candidates)):
        expected = losses_by_hand(scorer, selected, candidates[i])
        np.testing.assert_allclose(losses.parts[i], expected, rtol=1e-9, atol=1e-9 * expected.mean())


PROBLEMS = {
    "regression": {"kind": "regression", "loss": "squared_error"},
    "several outputs, sample weights": {"kind": "outputs", "loss": "squared_error", "weighted": True},
    "binary": {"kind": "binary"},
    "binary, hinge": {"kind": "binary", "loss": "hinge"},
    "classes, sample weights": {"weighted": True},
    "classes, hinge": {"loss": "hinge"},
    "repeated folds": {"cv": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)},
    "TimeSeriesSplit": {"cv": TimeSeriesSplit(2)},
    "uneven folds": {"cv": KFold(4)},
    "hold-out share": {"cv": 0.3},
    "explicit validation set": {"cv": "explicit", "weighted": True},
}
SETTINGS = {
    "two draws": {"n_draws": 2},
    "weight decay": {"weight_decay": 0.3},
    "one batch": {"batch_size": 100},
    "single rows": {"batch_size": 1, "epochs": 1},
    "through vmap": {"network": smooth},
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any]) -> None:
    check_against_twin(bind(make_case(**case)))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_of_other_networks(settings: dict[str, Any]) -> None:
    check_against_twin(bind(make_case("outputs", loss="squared_error"), **settings))


def test_the_first_step_and_the_empty_image() -> None:
    check_against_twin(bind(make_case()), NOTHING)


# Answers depend on the question alone


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    bound = {"float64": 1e-9, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * np.abs(expected).mean())


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_candidates_together_are_candidates_alone(settings: dict[str, Any]) -> None:
    dtype = "float64"
    scorer = bind(make_case(cv=KFold(4), weighted=True), dtype, **settings)
    for selected in (SELECTED, NOTHING):
        together = scorer.add_losses(selected, CANDIDATES).parts
        for i in range(len(CANDIDATES)):
            assert_close(scorer.add_losses(selected, ColumnSets.of([CANDIDATES[i]])).parts[0], together[i], dtype)


@pytest.mark.parametrize("network", ["paper", "strong"])
def test_networks_of_the_package_together_and_alone(network: str) -> None:
    side = {"paper": 8, "strong": 6}[network]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, side * side)), rng.integers(0, 3, size=12)
    scorer = bind(make_case(cv=2, data=(X, y)), network=network, image_shape=None, epochs=1, batch_size=3)
    candidates = ColumnSets.of([[0], [9, 10, 11]])
    together = scorer.add_losses(SELECTED, candidates).parts
    for i in range(2):
        assert_close(scorer.add_losses(SELECTED, ColumnSets.of([candidates[i]])).parts[0], together[i], "float64")
    assert scorer.fit(SELECTED).predict(X).shape == (12, 3)


@pytest.mark.parametrize("settings", [KINDS["small"], KINDS["running statistics"], KINDS["dropout, draws"]])
def test_jobs_and_chunks_change_nothing(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case(cv=TimeSeriesSplit(2))
    expected = bind(problem, **settings).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs, numbers in [(1, 1), (2, 2**13), (2, 2**30)]:
        monkeypatch.setattr(networks, "CPU_NUMBERS", numbers)
        found = bind(problem, n_jobs=n_jobs, **settings).add_losses(SELECTED, CANDIDATES).parts
        assert_close(found, expected, "float64")


def slow_to_draw(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    layers, channels = [], image[0]
    for _ in range(3):
        layers += [nn.Conv2d(channels, 6, 1), nn.ReLU()]
        channels = 6
        time.sleep(0.005)  # another thread may come in between
    return with_output(image, n_outputs, *layers)


def slow_to_drop(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            time.sleep(0.002)
            return torch.tanh(x)

    return with_output(image, n_outputs, Slow(), nn.Dropout(0.5), Slow(), nn.Dropout(0.5))


@pytest.mark.parametrize("network", [slow_to_draw, slow_to_drop])
def test_threads_do_not_share_random_numbers(network: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and dropout come from torch's global generator, which all threads have in common."""
    problem = make_case(cv=0.3)
    expected = bind(problem, network=network, epochs=1).add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(networks, "CPU_NUMBERS", 1)  # one candidate a task
    for _ in range(3):
        found = bind(problem, n_jobs=4, network=network, epochs=1).add_losses(SELECTED, CANDIDATES).parts
        assert_close(found, expected, "float64")


@pytest.mark.parametrize("settings", [KINDS["dropout through vmap"], KINDS["dropout, draws"]])
def test_earlier_calls_change_nothing(settings: dict[str, Any]) -> None:
    problem = make_case(cv=0.3)
    scorer = bind(problem, "float32", **settings)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    other = bind(problem, "float32", **settings)
    other.fit(np.array([0]))
    other.add_losses(np.array([2]), ColumnSets.of([[1], [3]]))
    torch.manual_seed(99)
    for again in (other, pickle.loads(pickle.dumps(scorer)).on(problem)):
        np.testing.assert_array_equal(again.add_losses(SELECTED, CANDIDATES).parts, expected)


@pytest.mark.parametrize("network", [small, dropping_channels, normalised])
def test_torch_keeps_its_own_random_numbers(network: Factory) -> None:
    before = torch.get_rng_state()
    scorer = bind(make_case(), network=network, epochs=1)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert torch.equal(torch.get_rng_state(), before)


def test_rows_of_weight_zero_do_not_count() -> None:
    X, y = make_data("regression")
    problem = make_case("regression", loss="squared_error", weighted=True)
    without = np.flatnonzero(problem.weights == 0)
    assert len(without)
    spoiled, wrong = X.copy(), y.copy()
    spoiled[without] = 1e3
    wrong[without] = -1e4
    other = make_case("regression", loss="squared_error", weighted=True, data=(spoiled, wrong))
    expected, found = (bind(each).add_losses(SELECTED, CANDIDATES).means for each in (problem, other))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_scale_of_the_pixels_does_not_matter() -> None:
    scale = 1e4
    X, y = make_data("classes")
    expected = bind(make_case()).add_losses(SELECTED, CANDIDATES).means
    found = bind(make_case(data=(scale * X, y))).add_losses(SELECTED, CANDIDATES).means
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# The final predictor

FINALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "classes": ({}, {"n_draws": 2}),
    "two classes": ({"kind": "binary"}, {"network": smooth}),
    "regression, sample weights": ({"kind": "outputs", "loss": "squared_error", "weighted": True}, {}),
    "explicit validation set": ({"cv": "explicit", "loss": "hinge"}, {"weight_decay": 0.1}),
}


@pytest.mark.parametrize(("case", "settings"), FINALS.values(), ids=FINALS)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(
    case: dict[str, Any], settings: dict[str, Any]
) -> None:
    epochs = 4
    scorer = bind(problem := make_case(**case), refit_epochs=epochs, **settings)
    images = images_by_hand(problem, SELECTED)
    rows, size = np.flatnonzero(problem.weights[:N_ROWS] > 0), len(SELECTED)
    outputs = []
    for draw in range(scorer.config.n_draws):
        network = initial_network(scorer, size, draw)
        train_plainly(scorer, network, images, rows, size, draw, epochs=epochs, stream=FINAL_STREAM)
        outputs.append(predict_plainly(scorer, network, images))
    found = scorer.fit(SELECTED).predict(problem.X)
    np.testing.assert_allclose(found, np.mean(outputs, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", [KINDS["running statistics"], KINDS["dropout, draws"]])
def test_pixels_that_are_not_selected_have_no_influence(settings: dict[str, Any]) -> None:
    predictor = bind(make_case(), "float32", **settings).fit(SELECTED)
    X = make_data("classes", seed=4)[0]
    expected = predictor.predict(X)
    assert expected.std(axis=0).min() > 0
    others = np.setdiff1d(np.arange(N_COLUMNS), SELECTED)
    for value in (0.0, 1e6, np.nan):
        changed = X.copy()
        changed[:, others] = value
        np.testing.assert_array_equal(predictor.predict(changed), expected)
    changed = X.copy()
    changed[:, SELECTED] += 100
    assert (predictor.predict(changed) != expected).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict(X), expected)


def test_the_final_network_has_the_statistics_of_its_training() -> None:
    module = bind(make_case(), network=normalised).fit(SELECTED).modules[0]
    assert not module.training
    statistics = module[1]
    assert (statistics.running_mean != 0).all()
    assert int(statistics.num_batches_tracked) == 3 * -(-N_ROWS // 6)  # epochs of four batches


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_an_easy_problem_is_solved(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(320, 36))
    brightness = X[:, [14, 15, 20, 21]].sum(axis=1)  # a window of two by two
    level = np.digitize(brightness, np.quantile(brightness, [1 / 3, 2 / 3] if kind == "classes" else [0.5]))
    y = brightness if kind == "regression" else np.array(["dark", "grey", "light"])[level]
    predictor = make_cnn(network=small, image_shape=None, epochs=20, refit_epochs=20, batch_size=16)
    groups = image_windows((6, 6), 2)
    selector = (NGPRegressor if kind == "regression" else NGPClassifier)(
        predictor, groups=groups, n_features_to_select=1, cv=0.3, random_state=0, device="cpu"
    ).fit(X[:120], y[:120])
    assert np.flatnonzero(selector.support_).tolist() == [14, 15, 20, 21]
    assert selector.score(X[120:], y[120:]) > {"regression": 0.8, "binary": 0.8, "classes": 0.7}[kind]


# Networks of the user's own


class Bare(nn.Module):
    """Parameters in a list, and no layers."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList([0.1 * torch.randn(int(np.prod(image)), n_outputs)])

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weights[0]


OWN: dict[str, Factory] = {"parameters in a list": Bare, "through vmap": smooth, "running statistics": normalised}


@pytest.mark.parametrize("network", OWN.values(), ids=OWN)
def test_networks_of_ones_own_select_and_predict(network: Factory) -> None:
    X, y = make_data("classes")
    predictor = make_cnn(network=network)
    selector = NGPClassifier(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0).fit(X, y)
    assert len(selector.order_) == 2
    assert set(selector.predict(X)) <= set(y)


def test_the_factory_gets_the_shape_of_the_image_as_torch_has_it() -> None:
    asked = []

    def noting(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
        asked.append((image, n_outputs))
        return small(image, n_outputs)

    bind(make_case(), network=noting)
    bind(make_case("outputs", loss="squared_error"), network=noting, image_shape=[10, 6])
    assert set(asked) == {((2, 5, 6), 3), ((1, 10, 6), 3)}


def test_a_square_image_needs_no_shape() -> None:
    data = np.random.default_rng(0).normal(size=(20, 25)), np.arange(20) % 2
    assert bind(make_case(data=data), image_shape=None).shape == (5, 5, 1)


# What goes wrong


def returning(outputs: Callable[[Tensor], Any]) -> Factory:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Any:
            return outputs(x)

    return lambda image, n_outputs: Wrong()


WRONG_NETWORKS = {
    "number of outputs": (returning(lambda x: x.flatten(1)[:, :4]), r"network returned \(2, 4\) for images of shape"),
    "a tuple": (returning(lambda x: (x, x)), r"network returned tuple for images .*: it must return \(2, 3\)"),
    "no network": (lambda image, n_outputs: "network", "network"),
}


@pytest.mark.parametrize(("network", "message"), WRONG_NETWORKS.values(), ids=WRONG_NETWORKS)
def test_a_network_that_returns_something_else(network: Factory, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        bind(make_case(), network=network)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "image_shape=None, and X with 60 columns is no square image: give image_shape"),
        (
            (7, 8),
            r"image_shape=\(7, 8\) has 56 pixels, and X has 60 columns: give the shape of the images whose pixels",
        ),
        ((60,), r"image_shape=\(60,\) must be \(rows, cols\) or \(rows, cols, channels\)"),
        ((-5, -6, 2), r"image_shape=\(-5, -6, 2\) must be"),
        ((7.5, 8), r"image_shape=\(7.5, 8\) must be"),
        (60, "The 'image_shape' parameter of CNN must be"),
    ],
)
def test_a_shape_that_does_not_fit(shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind(make_case(), image_shape=shape)


@pytest.mark.parametrize("side", [2, 7])
def test_an_image_that_is_too_small_for_the_network(side: int) -> None:
    data = np.random.default_rng(0).normal(size=(20, side * side)), np.arange(20) % 2
    message = f"image_shape: images of {side} x {side} pixels are too small for this network: give larger ones, or a"
    with pytest.raises(ValueError, match=message):
        bind(make_case(data=data), network="paper", image_shape=(side, side))


class NotANumber(nn.Module):
    """Fails as soon as it sees one of some pixels."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int, pixels: tuple[int, ...] = (3,)) -> None:
        super().__init__()
        self.layers, self.pixels = small(image, n_outputs), list(pixels)

    def forward(self, x: Tensor) -> Tensor:
        seen = (x.flatten(1)[:, self.pixels] != 0).any(dim=1, keepdim=True)
        return torch.where(seen, torch.nan, self.layers(x))


def test_a_candidate_whose_network_fails_loses() -> None:
    X, y = make_data("classes")
    scorer = bind(make_case(), network=NotANumber, image_shape=(6, 10))
    losses = scorer.add_losses(SELECTED, ColumnSets.of([[2], [3], [4, 3], []])).means
    assert np.isnan(losses).tolist() == [False, True, True, False]
    predictor = make_cnn(network=NotANumber, image_shape=(6, 10))
    selector = NGPClassifier(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0)
    with pytest.warns(UserWarning, match="^1 candidates have a loss that is no finite number: they lose"):
        selector.fit(X, y)
    assert 3 not in selector.order_
    assert np.isnan(selector.path_[1].losses[3])
    assert np.isfinite([step.loss for step in selector.path_]).all()
    assert np.isfinite(selector.predict_proba(X)).all()


def always_nan(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return NotANumber(image, n_outputs, tuple(range(N_COLUMNS)))


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@pytest.mark.parametrize("settings", [{"network": always_nan}, {"learning_rate": 1e30}])
def test_a_pursuit_in_which_every_candidate_fails_ends(settings: dict[str, Any]) -> None:
    X, y = make_data("regression")
    predictor = make_cnn(**{"image_shape": (6, 10), **settings})
    selector = NGPRegressor(predictor, n_features_to_select=2, cv=2, device="cpu", random_state=0)
    message = "Step 1 ends the pursuit: the loss of every candidate is NaN or infinite"
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match=message):
        selector.fit(X, y)
    assert len(selector.order_) == 0
    np.testing.assert_allclose(selector.predict(X), y.mean())


BAD_SETTINGS = {
    "network": "resnet", "epochs": 0, "batch_size": 0, "learning_rate": 0.0, "weight_decay": -1.0, "n_draws": 0,
    "refit_epochs": 0, "dtype": "half",
}  # fmt: skip


def test_bad_settings_are_named() -> None:
    for name, value in BAD_SETTINGS.items():
        with pytest.raises(ValueError, match=f"The '{name}' parameter of CNN must be"):
            bind(make_case(), **{name: value})


def test_the_configuration_is_cloned_and_pickled() -> None:
    config = make_cnn(n_draws=3)
    assert clone(config).get_params() == config.get_params()
    assert pickle.loads(pickle.dumps(config)).get_params() == config.get_params()
    assert config.classification_loss == "cross_entropy"
