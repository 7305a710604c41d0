"""The scikit-learn face with networks, and with several predictors in one pursuit, from end to end."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictor_cases import FAST_CNN, FAST_MLP, FAST_SSFN, OnlySquares, fit, make_data, make_selector, names
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from ngp import NeuralGreedyPursuit, NGPRegressor
from ngp.data.groups import image_windows
from ngp.greedy.stopping import MaxFeatures, Significance
from ngp.predictors import MLP, SSFN, Kernel

pytestmark = pytest.mark.usefixtures("one_torch_thread")

TINY_MLP = MLP(n_units=4, epochs=1, n_draws=1, refit_epochs=1)


@parametrize_with_checks([NeuralGreedyPursuit([FAST_SSFN, TINY_MLP], n_features_to_select=1, cv=2, device="cpu")])
@pytest.mark.filterwarnings("ignore:Nothing was", "ignore:No features were", "ignore:X has constant features")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


# Networks


@pytest.mark.parametrize("kind", ["outputs", "classes"])
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
    selector = make_selector(predictor, kind, groups=image_windows((3, 4), (1, 2)), n_features_to_select=2)
    with pytest.warns(UserWarning, match="X has constant features"):
        selector.fit(images, y)
    assert selector.support_.sum() == 4
    assert names(selector) == ["CNN", "CNN"]
    assert selector.predict(images).shape == y.shape
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(selector)).predict(images), selector.predict(images))


@pytest.mark.parametrize("predictor", [FAST_MLP, [FAST_MLP, FAST_CNN]], ids=["MLP", "both"])
def test_the_automatic_loss_of_networks_is_the_cross_entropy_for_classes(predictor: Any) -> None:
    kind = "classes"
    automatic, known, other = (
        fit(predictor, kind, loss=loss, n_features_to_select=1).losses_
        for loss in ("auto", "cross_entropy", "squared_error")
    )
    np.testing.assert_array_equal(automatic, known)
    assert (automatic != other).any()


@pytest.mark.parametrize(
    ("predictor", "kind"),
    [
        (FAST_MLP, "outputs"),
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


def test_settings_of_the_selector_reach_the_network() -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=70)
    base = fit(FAST_MLP)
    X, y = make_data()
    np.testing.assert_array_equal(fit(FAST_MLP, n_jobs=2).losses_, base.losses_)
    np.testing.assert_allclose(fit(clone(FAST_MLP).set_params(dtype="float64")).losses_, base.losses_, rtol=1e-3)
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


@pytest.mark.parametrize("predictor", [FAST_CNN, [FAST_SSFN, FAST_MLP]])
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


@pytest.mark.parametrize("predictor", [[FAST_SSFN, FAST_MLP, Ridge()], alternating, FAST_CNN])
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


def test_a_predictor_of_ones_own() -> None:
    selector = fit(OnlySquares(), stop=MaxFeatures(2))
    assert selector.order_.tolist() == [0, 1]
    assert fit(OnlySquares(), stop=Significance()).order_.tolist() == [3, 1]  # significant columns come first
    assert names(selector) == ["OnlySquares", "OnlySquares"]
    assert (selector.predict(make_data()[0]) == 1).all()


# What doesn't count


@pytest.mark.parametrize("predictor", [FAST_SSFN, Kernel(landmarks=20), FAST_MLP, Ridge()], ids=str)
def test_rows_of_weight_zero_may_as_well_be_absent(predictor: Any) -> None:
    X, y = make_data("regression")
    n_rows, rng = len(X), np.random.default_rng(0)
    more, other = np.r_[X, 9 * rng.normal(size=(30, X.shape[1]))], np.r_[y, 9 * rng.normal(size=30)]
    weights = np.r_[np.ones(n_rows), np.zeros(30)]
    rows = np.arange(n_rows)
    selector = NGPRegressor(predictor, cv=[(rows[40:], rows[:40]), (rows[:-40], rows[-40:])], random_state=0)
    alone, beside = clone(selector).fit(X, y), clone(selector).fit(more, other, sample_weight=weights)
    assert alone.order_.tolist() == beside.order_.tolist()
    for name in ("loss", "p_value"):
        found, expected = ([getattr(step, name) for step in each.path_] for each in (beside, alone))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(beside.predict(X), alone.predict(X), rtol=1e-5, atol=1e-5)
    chance = beside.measure_chance(more, other, sample_weight=weights)
    np.testing.assert_allclose(chance, alone.measure_chance(X, y), rtol=1e-4)


def test_rows_of_weight_zero_make_no_table_large() -> None:
    X, y = make_data("regression")
    more, other = np.r_[X, np.ones((1000, X.shape[1]))], np.r_[y, np.zeros(1000)]
    alone = NGPRegressor(p_values=None).fit(X, y)
    beside = NGPRegressor(p_values=None).fit(more, other, sample_weight=np.r_[np.ones(len(X)), np.zeros(1000)])
    np.testing.assert_allclose([step.loss for step in beside.path_], [step.loss for step in alone.path_], rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.data())
@pytest.mark.parametrize("predictor", [FAST_SSFN, Kernel()], ids=str)
def test_units_and_zeros_of_the_scales_do_not_count(predictor: Any, data: Any) -> None:
    """Whatever X and y are measured in, selection, p-values, R² and predictions are the same."""
    X, y = make_data("regression")
    X, y = np.rint(X * 2**10), np.rint(y * 2**10)
    units = data.draw(st.lists(st.sampled_from([1e-300, 1e-12, 1.0, 1e12, 1e160]), min_size=5, max_size=5))
    zeros = data.draw(st.lists(st.sampled_from([0.0, -(2.0**20), 2.0**40]), min_size=5, max_size=5))
    unit, zero = data.draw(st.sampled_from([1e-60, 1e-12, 1.0, 1e12, 1e60])), data.draw(st.sampled_from([0.0, 2.0**30]))
    units, zeros = np.resize(units, X.shape[1]), np.resize(zeros, X.shape[1])
    selector = NGPRegressor(predictor, random_state=0)
    expected, found = clone(selector).fit(X, y), selector.fit((X + zeros) * units, (y + zero) * unit)
    assert found.order_.tolist() == expected.order_.tolist()
    for name in ("p_value", "score"):
        values, others = ([getattr(step, name) for step in each.path_] for each in (found, expected))
        np.testing.assert_allclose(values, others, rtol=1e-3, atol=1e-4)
    predicted = found.predict((X + zeros) * units) / unit - zero
    np.testing.assert_allclose(predicted, expected.predict(X), atol=1e-3 * y.std())
