"""The scikit-learn face with networks, and with several predictors in one pursuit, from end to end."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import Tensor, nn

from ngp import NeuralGreedyPursuit
from ngp.groups import image_windows
from ngp.losses import LOSSES
from ngp.predictors import CNN, MLP, SSFN
from ngp.predictors.base import ColumnSets, Losses
from ngp.problem import Problem

FAST_SSFN = SSFN(n_units=12, n_draws=1, refit_units=12)
FAST_MLP = MLP(n_units=16, epochs=6, batch_size=16, n_draws=1, refit_epochs=6)
N_COLUMNS = 5


def tiny_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    layers = [nn.Conv2d(image[0], 3, (1, 2)), nn.Tanh(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(3 * image[1] * (image[2] - 1), n_outputs))


FAST_CNN = CNN(network=tiny_network, image_shape=(1, 5), epochs=2, refit_epochs=2)


@pytest.fixture(scope="module", autouse=True)
def one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slow on tensors this small
    yield
    torch.set_num_threads(before)


def make_data(kind: str = "regression", n_samples: int = 70, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 3 and 1, the former more important."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, N_COLUMNS))
    signal = 2 * X[:, 3] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n_samples)
    y = {
        "regression": signal,
        "outputs": np.stack([signal, -X[:, 3]], axis=1),
        "binary": np.where(signal > 0.5, "up", "down"),
        "classes": np.array(["a", "b", "c"])[np.digitize(signal, [-1, 1.5])],
    }[kind]
    return X, y


def make_selector(predictor: Any, **settings: Any) -> NeuralGreedyPursuit:
    common = {"n_features_to_select": 2, "cv": 3, "device": "cpu", "random_state": 0}
    return NeuralGreedyPursuit(predictor, **{**common, **settings})


def fit(predictor: Any, kind: str = "regression", **settings: Any) -> NeuralGreedyPursuit:
    return make_selector(predictor, **settings).fit(*make_data(kind))


def names(selector: NeuralGreedyPursuit) -> list[str]:
    return [step.predictor for step in selector.path_[1:]]


TINY_MLP = MLP(n_units=4, epochs=1, n_draws=1, refit_epochs=1)


@parametrize_with_checks(
    [
        NeuralGreedyPursuit(TINY_MLP, n_features_to_select=1, cv=2, device="cpu"),
        NeuralGreedyPursuit([FAST_SSFN, TINY_MLP], n_features_to_select=1, cv=2, device="cpu"),
    ],
    expected_failed_checks=lambda selector: (
        {
            f"check_sample_weight_equivalence_on_{kind}_data": "a row given twice may be in two batches"
            for kind in ("dense", "sparse")
        }
        if isinstance(selector.predictor, MLP)
        else {}
    ),
)
@pytest.mark.filterwarnings("ignore:Nothing was", "ignore:No features were", "ignore:X has constant features")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


# Networks


@pytest.mark.parametrize("kind", ["regression", "outputs", "binary", "classes"])
def test_an_mlp_finds_the_columns_and_predicts(kind: str) -> None:
    X, _ = make_data(kind)
    selector = fit(FAST_MLP, kind)
    assert selector.order_.tolist() == [3, 1]
    assert names(selector) == ["MLP", "MLP"]
    others, truth = make_data(kind, seed=1)
    assert selector.predict(others).shape == truth.shape
    assert selector.score(others, truth) > 0.7
    if kind in ("binary", "classes"):
        probabilities = selector.predict_proba(others)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert probabilities.min() >= 0
    changed = others.copy()
    changed[:, [0, 2, 4]] = 77.0
    np.testing.assert_array_equal(selector.predict(changed), selector.predict(others))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(selector)).predict(X), selector.predict(X))


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_a_cnn_selects_windows_and_predicts(kind: str) -> None:
    X, y = make_data(kind)
    images = np.concatenate([X, np.zeros_like(X), X[:, :2]], axis=1)  # with a dark part
    predictor = clone(FAST_CNN).set_params(image_shape=(3, 4))
    selector = make_selector(predictor, groups=image_windows((3, 4), (1, 2)), n_features_to_select=2)
    with pytest.warns(UserWarning, match="X has constant features"):
        selector.fit(images, y)
    assert selector.support_.sum() == 4
    assert names(selector) == ["CNN", "CNN"]
    assert selector.predict(images).shape == y.shape
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(selector)).predict(images), selector.predict(images))


@pytest.mark.parametrize("predictor", [FAST_MLP, FAST_CNN, [FAST_MLP, FAST_CNN]], ids=["MLP", "CNN", "both"])
@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_the_automatic_loss_of_networks_is_the_cross_entropy_for_classes(predictor: Any, kind: str) -> None:
    automatic, known, other = (
        fit(predictor, kind, loss=loss, n_features_to_select=1).losses_
        for loss in ("auto", "cross_entropy", "squared_error")
    )
    np.testing.assert_array_equal(automatic, known)
    assert (automatic != other).any()


@pytest.mark.parametrize(
    ("predictor", "kind"),
    [
        (FAST_MLP, "regression"),
        (FAST_MLP, "outputs"),
        (FAST_CNN, "regression"),
        (FAST_SSFN, "classes"),
        ([FAST_SSFN, FAST_MLP], "classes"),  # which differ
        (lambda step: [FAST_MLP, FAST_SSFN][step - 1], "regression"),
    ],
)
def test_the_automatic_loss_is_the_squared_error_elsewhere(predictor: Any, kind: str) -> None:
    automatic, known = (fit(predictor, kind, loss=loss, n_features_to_select=1) for loss in ("auto", "squared_error"))
    np.testing.assert_array_equal(automatic.losses_, known.losses_)


def test_the_automatic_loss_of_a_schedule_is_that_of_its_first_step() -> None:
    for first, loss in [(FAST_MLP, "cross_entropy"), (FAST_SSFN, "squared_error")]:
        automatic, known = (
            fit(lambda step, first=first: first if step == 1 else FAST_MLP, "classes", loss=loss)
            for loss in ("auto", loss)
        )
        np.testing.assert_array_equal(automatic.losses_, known.losses_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_every_loss_of_classes(loss: str, kind: str) -> None:
    selector = fit(FAST_MLP, kind, loss=loss)
    assert 3 in selector.order_
    assert selector.score(*make_data(kind, seed=1)) > 0.6


def test_settings_of_the_selector_reach_the_network() -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=70)
    base = fit(FAST_MLP)
    X, y = make_data()
    np.testing.assert_array_equal(fit(FAST_MLP, n_jobs=2).losses_, base.losses_)
    np.testing.assert_allclose(fit(FAST_MLP, dtype="float64").losses_, base.losses_, rtol=1e-3)
    assert (fit(FAST_MLP, random_state=1).losses_ != base.losses_).all(where=~np.isnan(base.losses_))
    weighted = make_selector(FAST_MLP).fit(X, y, sample_weight=weights)
    assert (weighted.losses_ != base.losses_).all(where=~np.isnan(base.losses_))


def test_names_of_networks() -> None:
    """With the package's own settings, on next to nothing."""
    X, y = make_data(n_samples=24)
    selector = make_selector("mlp", n_features_to_select=1, cv=0.5).fit(X[:, 2:], y)
    assert names(selector) == ["MLP"]
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(8, 100)), np.arange(8) % 2
    images[:, 2:] = 0
    with pytest.warns(UserWarning, match="X has constant features, 98 of 100"):
        selector = make_selector("cnn", n_features_to_select=1, cv=0.5).fit(images, labels)
    assert names(selector) == ["CNN"]


@pytest.mark.parametrize("predictor", [FAST_MLP, FAST_CNN, [FAST_SSFN, FAST_MLP], [FAST_MLP, FAST_CNN]])
def test_fixed_columns(predictor: Any) -> None:
    selector = fit(predictor, fixed=[0, 4], n_features_to_select=3)
    assert selector.order_.tolist() == [3]
    assert np.flatnonzero(selector.support_).tolist() == [0, 3, 4]
    assert selector.path_[0].predictor in ("SSFN", "MLP", "CNN")


def test_a_number_of_units_can_be_searched() -> None:
    X, y = make_data()
    search = GridSearchCV(make_selector(FAST_MLP, n_features_to_select=1), {"predictor__n_units": [4, 8]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["predictor__n_units"] in (4, 8)


# Several predictors


def test_a_list_takes_the_best_of_its_members() -> None:
    alone = [fit(member) for member in (FAST_SSFN, FAST_MLP)]
    selector = fit([FAST_SSFN, FAST_MLP])
    first = np.array([each.path_[1].losses for each in alone])
    np.testing.assert_allclose(selector.path_[1].losses, first.min(axis=0), rtol=1e-12)
    winner = selector.path_[1].group
    assert selector.path_[1].predictor == ["SSFN", "MLP"][first[:, winner].argmin()]
    assert set(names(selector)) <= {"SSFN", "MLP"}
    assert selector.score(*make_data(seed=1)) > 0.7


def test_members_of_a_list_may_be_names_objects_and_estimators() -> None:
    X, y = make_data()
    linear = X[:, 0] - X[:, 2] + 0.01 * y  # what a linear regression can do best
    selector = make_selector(["ssfn", FAST_MLP, LinearRegression(), Ridge(100.0)]).fit(X, linear)
    assert names(selector)[-1] == "LinearRegression"
    assert sorted(selector.order_.tolist()) == [0, 2]
    assert selector.score(X, linear) > 0.95
    assert names(fit([FAST_SSFN, SSFN(n_units=5, n_draws=1, refit_units=5)]))[0] in ("SSFN 1", "SSFN 2")


def test_classes_may_be_predicted_by_networks_and_estimators() -> None:
    selector = fit([FAST_MLP, LogisticRegression()], "classes")
    assert set(names(selector)) <= {"MLP", "LogisticRegression"}
    assert selector.score(*make_data("classes", seed=1)) > 0.6


def test_the_predictor_of_the_best_member_is_kept() -> None:
    assert fit([FAST_SSFN, MLP(n_units=1, epochs=1, learning_rate=1e-6, n_draws=1)]).predictor_.networks  # the SSFN's
    assert fit([SSFN(n_units=1, n_draws=1, ridge=1e9, linear_ridge=1e9), FAST_MLP]).predictor_.modules  # the MLP's


def alternating(step: int) -> Any:
    return FAST_SSFN if step % 2 else FAST_MLP


def test_a_callable_gives_each_step_its_predictor() -> None:
    asked = []

    def predictor(step: int) -> Any:
        asked.append(step)
        return alternating(step)

    selector = fit(predictor, n_features_to_select=3)
    assert names(selector) == ["SSFN", "MLP", "SSFN"]
    assert sorted(set(asked)) == [1, 2, 3]
    alone = fit(FAST_SSFN, n_features_to_select=1)
    np.testing.assert_array_equal(selector.path_[1].losses, alone.path_[1].losses)


@pytest.mark.parametrize(("number", "attribute"), [(1, "networks"), (2, "modules"), (3, "networks")])
def test_the_final_predictor_is_that_of_the_last_step(number: int, attribute: str) -> None:
    assert hasattr(fit(alternating, n_features_to_select=number).predictor_, attribute)


def test_a_step_that_is_taken_back_does_not_choose_the_final_predictor() -> None:
    selector = fit(lambda step: FAST_MLP if step < 3 else FAST_SSFN, n_features_to_select=None, tol=0.2)
    kept = [step.predictor for step in selector.path_[1:] if step.kept]
    assert kept == ["MLP", "MLP"]
    assert names(selector) == ["MLP", "MLP", "SSFN"]
    assert hasattr(selector.predictor_, "modules")


def test_a_callable_may_return_lists() -> None:
    selector = fit(lambda step: [FAST_SSFN, FAST_MLP] if step == 1 else "ssfn")
    assert names(selector)[0] in ("SSFN", "MLP")
    assert names(selector)[1] == "SSFN"


def test_fixed_columns_are_scored_by_the_callables_first_predictor() -> None:
    selector = fit(alternating, fixed=[0], n_features_to_select=3)
    assert [step.predictor for step in selector.path_] == ["SSFN", "SSFN", "MLP"]
    assert hasattr(selector.predictor_, "modules")


@pytest.mark.parametrize("predictor", [[FAST_SSFN, FAST_MLP], alternating, FAST_MLP, FAST_CNN, ["ssfn", Ridge()]])
def test_cloning_and_pickling(predictor: Any) -> None:
    selector = make_selector(predictor, n_features_to_select=1)
    copy = clone(selector)
    assert repr(copy.get_params()) == repr(selector.get_params())
    if isinstance(predictor, list):
        assert [type(member) for member in copy.predictor] == [type(member) for member in predictor]
    X, y = make_data()
    selector.fit(X, y)
    np.testing.assert_array_equal(copy.fit(X, y).losses_, selector.losses_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(selector)).predict(X), selector.predict(X))
    assert repr(selector.predictor) == repr(predictor)  # nothing was changed by the fit


# What goes wrong


class OnlySquares:
    """A predictor of the user's own, which can't do every loss."""

    losses = frozenset({"squared_error"})

    def bind(self, problem: Problem, **conditions: Any) -> Any:
        assert set(conditions) == {"random_state", "n_jobs", "dtype", "device"}
        return self

    def add_losses(self, selected: Any, candidates: ColumnSets) -> Losses:
        return Losses(1.0 + np.arange(len(candidates))[:, None], np.ones(1))

    def fit(self, selected: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.ones((len(X), 1))


def test_a_predictor_of_ones_own() -> None:
    selector = fit(OnlySquares())
    assert selector.order_.tolist() == [0, 1]
    assert names(selector) == ["OnlySquares", "OnlySquares"]
    assert (selector.predict(make_data()[0]) == 1).all()


@pytest.mark.parametrize(
    "predictor", [OnlySquares(), [FAST_MLP, OnlySquares()], lambda step: FAST_MLP if step == 1 else OnlySquares()]
)
@pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
def test_a_loss_that_a_predictor_cannot_score(predictor: Any, loss: str) -> None:
    with pytest.raises(ValueError, match=f"^loss='{loss}' can't be scored by OnlySquares: use one of squared_error"):
        fit(predictor, "classes", loss=loss)


def test_a_loss_that_the_first_predictor_of_a_callable_cannot_score_names_the_predictor() -> None:
    with pytest.raises(ValueError, match="loss='hinge' can't be scored by OnlySquares: use one of squared_error"):
        fit(lambda step: OnlySquares(), "classes", loss="hinge")


@pytest.mark.parametrize(
    "predictor", [FAST_MLP, [FAST_MLP, FAST_SSFN], [Ridge(), FAST_MLP]], ids=["MLP", "networks", "with an estimator"]
)
def test_scoring_is_for_estimators(predictor: Any) -> None:
    with pytest.raises(ValueError, match="scoring is for scikit-learn estimators, and MLP is none: use loss instead"):
        fit(predictor, scoring="r2")


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": ("forest", ValueError, "The 'predictor' parameter .* must be a str among .* Got 'forest' instead"),
    "unknown name in a list": ([FAST_SSFN, "forest"], ValueError, "predictor='forest' is unknown: use one of ssfn"),
    "empty list": ([], ValueError, r"predictor=\[\] is empty: give at least one predictor"),
    "class": (MLP, TypeError, r"predictor=MLP is a class: give an object, made with MLP\(…\)"),
    "class in a list": ([FAST_MLP, SSFN], TypeError, r"predictor=SSFN is a class: give an object"),
    "something else": (5, ValueError, "The 'predictor' parameter of NeuralGreedyPursuit must be .* Got 5 instead"),
    "something else in a list": ([FAST_SSFN, 5], TypeError, "predictor=5 can't predict: give a name"),
    "callable of callables": (
        lambda step: lambda step: "ssfn",
        TypeError,
        "predictor.* returned a callable for step 1: it must return a predictor",
    ),
    "callable of nothing": (lambda step: None, TypeError, "predictor=None can't predict"),
    "later step": (
        lambda step: FAST_SSFN if step == 1 else "forest",
        ValueError,
        "predictor='forest' is unknown: use one of ssfn, mlp, cnn, kernel",
    ),
    "no square image": ("cnn", ValueError, "image_shape=None, and X with 5 columns is no square image"),
    "bad setting": (MLP(n_units=0), ValueError, "The 'n_units' parameter of MLP must be"),
    "bad setting in a list": ([FAST_SSFN, MLP(epochs=0)], ValueError, "The 'epochs' parameter of MLP must be"),
}


@pytest.mark.parametrize(("predictor", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(predictor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(predictor)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("predictor", [FAST_MLP, FAST_CNN, [FAST_MLP, FAST_CNN]], ids=["MLP", "CNN", "both"])
def test_a_device_that_is_not_there(predictor: Any) -> None:
    with pytest.raises(ValueError, match=r"device='cuda' isn't available here .*: use device='cpu' or 'auto'"):
        fit(predictor, device="cuda")
    own = clone(FAST_MLP).set_params(device="cuda")
    with pytest.raises(ValueError, match="device='cuda' isn't available here"):
        fit(own, device="auto")
    assert fit(clone(FAST_MLP).set_params(device="cpu"), device="cuda", n_features_to_select=1).order_.tolist() == [3]


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_a_diverging_training_ends_the_pursuit() -> None:
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="Step 1 ends the pursuit: the loss of every"):
        selector = fit(clone(FAST_MLP).set_params(learning_rate=1e30))
    assert len(selector.order_) == 0


def test_a_diverging_member_leaves_the_pursuit_to_the_others() -> None:
    with np.errstate(all="ignore"):
        selector = fit([clone(FAST_MLP).set_params(learning_rate=1e30), FAST_SSFN])
    assert names(selector) == ["SSFN", "SSFN"]
    assert np.isfinite(selector.predict(make_data()[0])).all()


class Sightless(nn.Module):
    """No number as soon as the first pixel is seen."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(image[1] * image[2], n_outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x[:, 0, 0, :1] != 0, torch.nan, self.layers(x))


def test_a_diverging_candidate_loses_with_a_warning() -> None:
    predictor = CNN(network=Sightless, image_shape=(1, 5), epochs=2, refit_epochs=2)
    with pytest.warns(UserWarning, match="^1 candidates have a loss that is no finite number: they lose"):
        selector = fit(predictor)
    assert 0 not in selector.order_
    assert np.isnan(selector.losses_[:, 0]).all()
    assert np.isfinite(selector.predict(make_data()[0])).all()
