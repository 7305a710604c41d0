"""Adapters to methods of other packages: what all of them must do, their estimators, and mistakes."""

from __future__ import annotations

import pickle
import random
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from ngp.baselines import base
from ngp.baselines.base import Baseline, TrainingData
from ngp.baselines.boruta import Boruta
from ngp.baselines.lassonet import LassoNet
from ngp.baselines.mrmr import MRMR
from ngp.baselines.mutual_information import MutualInformation
from ngp.baselines.permutation import PermutationImportance
from ngp.baselines.preparation import held_out_rows
from ngp.baselines.recursive_elimination import RecursiveElimination

METHODS: dict[str, Baseline] = {
    "mutual-information": MutualInformation(random_state=0),
    "mrmr": MRMR(random_state=0),
    "mrmr-mid": MRMR(method="MID", random_state=0),
    "recursive-elimination": RecursiveElimination(cv=2, random_state=0),
    "recursive-elimination-2": RecursiveElimination(n_features_to_select=2, random_state=0),
    "permutation": PermutationImportance(n_repeats=2, random_state=0),
    "boruta": Boruta(n_estimators=10, max_iter=20, random_state=0),
    "lassonet": LassoNet(n_units=5, lambda_start=30, path_multiplier=2, random_state=0),
}
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 5))
X[:, 3] = 0.1
GOOD, CONSTANT, SECOND = 1, 3, 4
SIGNAL = X[:, GOOD] + 0.1 * rng.normal(size=90)
TARGETS = {
    "regression": SIGNAL,
    "outputs": np.column_stack([SIGNAL, X[:, SECOND] + 0.1 * rng.normal(size=90), np.full(90, 0.3)]),
    "binary": np.where(SIGNAL > 0, "yes", "no"),
    "classes": np.array(["low", "middle", "high"])[np.digitize(SIGNAL, [-0.5, 0.5])],
}
each_method = pytest.mark.parametrize("name", list(METHODS))
each_kind = pytest.mark.parametrize("kind", list(TARGETS))


@parametrize_with_checks(
    [
        MutualInformation(),
        PermutationImportance(n_repeats=1),
        RecursiveElimination(estimator=Ridge(), cv=2, task="regression"),
        RecursiveElimination(n_features_to_select=1),
    ]
)
@pytest.mark.filterwarnings("ignore:Nothing was", "ignore:No features were", "ignore:X has constant features")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@cache
def fitted(name: str, kind: str) -> Baseline:
    """Fit once for all tests that only look."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(METHODS[name]).fit(X, TARGETS[kind])


@each_method
@each_kind
def test_the_columns_that_count_rank_first_and_constant_ones_never(name: str, kind: str) -> None:
    selector = fitted(name, kind)
    assert selector.importances_.sum() == pytest.approx(1)
    assert (selector.importances_ >= 0).all()
    first = np.argsort(-selector.importances_, kind="stable")
    assert set(first[:2]) == {GOOD, SECOND} if kind == "outputs" else first[0] == GOOD or name.endswith("-2")
    assert selector.support_[GOOD]
    assert selector.importances_[CONSTANT] == 0
    assert not selector.support_[CONSTANT]


@each_method
def test_one_seed_one_answer_without_a_word_and_without_a_trace(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    expected = fitted(name, "classes")
    np.random.seed(7)  # noqa: NPY002 whose state must stay
    torch.manual_seed(7)
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), random.getstate()  # noqa: NPY002
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X has constant features")
        selector = clone(METHODS[name]).fit(X, TARGETS["classes"])
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    assert random.getstate() == before[2]
    assert torch.get_num_threads() == threads
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(selector.importances_, expected.importances_)
    np.testing.assert_array_equal(selector.support_, expected.support_)
    loaded = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(loaded.transform(X), selector.transform(X))


@each_method
@pytest.mark.filterwarnings("ignore:X has constant features")
def test_a_category_column_counts_as_a_feature(name: str) -> None:
    town = np.array(["Bonn", "Kiel", "Ulm"] * 30)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.insert(0, "town", pd.Categorical(town))
    selector = clone(METHODS[name]).fit(frame, X[:, GOOD] + 2 * (town == "Ulm"))
    assert selector.importances_.shape == (6,)
    assert set(np.argsort(-selector.importances_, kind="stable")[:2]) == {0, 1 + GOOD}
    assert selector.importances_[1 + CONSTANT] == 0
    assert {"town", "b"} <= set(selector.get_feature_names_out())


@each_method
@pytest.mark.filterwarnings("ignore:X has constant features")
def test_units_do_not_matter(name: str) -> None:
    """Trees of scikit-learn take small differences for none, networks need numbers of moderate size."""
    selector = clone(METHODS[name]).fit(X * np.logspace(-9, 9, 5) + 5, 1e-9 * SIGNAL)
    assert selector.importances_[GOOD] == selector.importances_.max() > 0


@each_method
def test_a_single_column_is_selected_and_a_constant_target_selects_nothing(name: str) -> None:
    selector = clone(METHODS[name]).set_params(task="regression")
    with pytest.warns(UserWarning, match="Nothing was selected"):
        selector.fit(X[:, :3], np.full(90, 0.1))
    assert not selector.importances_.any()
    selector.set_params(n_features_to_select=None)
    assert selector.fit(X[:, [GOOD]], SIGNAL).support_.tolist() == [True]


@pytest.mark.parametrize(
    "method", [MRMR(), RecursiveElimination(estimator=Ridge(), task="regression"), Boruta(n_estimators=10, max_iter=20)]
)
@pytest.mark.filterwarnings("ignore:X has constant features")
def test_a_threshold_replaces_the_own_choice(method: Any) -> None:
    selector = clone(method).set_params(threshold=0.3).fit(X, SIGNAL)
    np.testing.assert_array_equal(selector.support_, selector.importances_ > 0.3)
    assert selector.support_.any()


# The estimators


@pytest.mark.parametrize("name", ["permutation", "recursive-elimination", "boruta"])
@each_kind
def test_the_own_estimator_learns_from_the_selection(name: str, kind: str) -> None:
    selector, target = fitted(name, kind), TARGETS[kind]
    estimator = selector.own_estimator().fit(selector.transform(X), target)
    assert estimator.score(selector.transform(X), target) > 0.8
    assert estimator.predict(selector.transform(X)).shape == target.shape


@pytest.mark.filterwarnings("ignore:X has constant features")
def test_estimators_are_of_the_users_choice_and_stay_as_they_are() -> None:
    ridge = Ridge(alpha=2)
    by_method = [
        PermutationImportance(estimator=ridge).fit(X, SIGNAL),
        RecursiveElimination(estimator=ridge).fit(X, SIGNAL),
    ]
    assert not hasattr(ridge, "coef_")
    for selector in by_method:
        inner = selector.own_estimator()[-1].regressor
        assert isinstance(inner, Ridge)
        assert inner.alpha == 2
        assert inner is not ridge


def test_estimators_of_their_own_are_forests() -> None:
    kinds = {
        "permutation": (RandomForestRegressor, 100),
        "recursive-elimination": (ExtraTreesRegressor, 50),
        "boruta": (RandomForestRegressor, 100),
    }
    for name, (kind, n_trees) in kinds.items():
        inner = fitted(name, "regression").own_estimator()[-1].regressor
        assert isinstance(inner, kind)
        assert inner.n_estimators == n_trees
        assert inner.random_state == 0
    assert isinstance(fitted("boruta", "binary").own_estimator()[-1], RandomForestClassifier)


@pytest.mark.parametrize("name", ["mutual-information", "mrmr", "lassonet"])
def test_others_have_none(name: str) -> None:
    assert fitted(name, "regression").own_estimator() is None


# Mistakes


@pytest.mark.parametrize(
    ("method", "package"),
    [(MRMR(), "feature_engine"), (Boruta(), "boruta"), (LassoNet(), "lassonet"), (LassoNet(), "torch")],
)
def test_without_its_package_a_method_says_how_to_install_it(
    method: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = base.find_spec
    monkeypatch.setattr(base, "find_spec", lambda name: None if name == package else find_spec(name))
    message = (
        f"{type(method).__name__} needs {package}: install it with pip install 'neural-greedy-pursuit[baselines]'."
    )
    with pytest.raises(ImportError) as caught:
        clone(method).fit(X[:, :3], SIGNAL)
    assert str(caught.value) == message


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_neighbours_must_be_there() -> None:
    MutualInformation(n_neighbors=5).fit(X[:6, :3], SIGNAL[:6])
    with pytest.raises(ValueError, match="n_neighbors=5 needs more than 5 samples, and X has 5: give fewer neighbours"):
        MutualInformation(n_neighbors=5).fit(X[:5, :3], SIGNAL[:5])


def test_folds_need_samples() -> None:
    with pytest.raises(ValueError, match="cv=7 needs at least 7 samples, and X has 6"):
        RecursiveElimination(cv=7).fit(X[:6, :3], SIGNAL[:6])


@pytest.mark.parametrize(("method", "n_rows"), [(PermutationImportance(), 4), (LassoNet(), 2)])
def test_some_samples_must_be_held_out(method: Any, n_rows: int) -> None:
    labels = ["a", "b", "c", "d"][:n_rows]
    expected = (
        rf"{type(method).__name__} holds out (10|25)% of {n_rows} samples, but none of a class it couldn't train on: "
        r"that makes 0, and it needs at least [12], so give more samples."
    )
    with pytest.raises(ValueError, match=expected):
        clone(method).set_params(task="classification").fit(X[:n_rows, :3], labels)


RARE = np.where(SIGNAL > 0, "a", "b")
RARE[-10:] = list("cdefghijkl")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("labels", "share"), [(RARE, 0.1), (RARE, 0.5), (TARGETS["classes"], 0.25), (None, 0.25)])
def test_rows_are_held_out_from_each_class_but_never_all(labels: Any, share: float, seed: int) -> None:
    classes, codes = np.unique(SIGNAL if labels is None else labels, return_inverse=True)
    targets = SIGNAL[:, None] if labels is None else np.eye(len(classes))[codes]
    data = TrainingData(X, targets, None if labels is None else classes, np.arange(5), 5, seed)
    train, test = held_out_rows(data, share, "it", least=1)
    assert sorted([*train, *test]) == list(range(90))
    if labels is None:
        assert len(test) == 23
    elif labels is RARE:
        assert set(labels[train]) == set(labels)
        assert 0.5 * share < len(test) / 90 <= share
    else:
        for label in classes:
            assert (labels[test] == label).sum() == pytest.approx(share * (labels == label).sum(), abs=1)


@pytest.mark.parametrize("name", ["permutation", "lassonet"])
def test_classes_with_a_single_sample_are_no_obstacle(name: str) -> None:
    assert clone(METHODS[name]).fit(X[:, :3], RARE).importances_.argmax() == GOOD


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        (MutualInformation, {"n_neighbors": 0}),
        (MutualInformation, {"threshold": None}),
        (MRMR, {"method": "MIQ"}),
        (RecursiveElimination, {"estimator": "forest"}),
        (RecursiveElimination, {"step": 0}),
        (RecursiveElimination, {"cv": 1}),
        (PermutationImportance, {"estimator": "svm"}),
        (PermutationImportance, {"test_size": 1.0}),
        (PermutationImportance, {"n_repeats": 0}),
        (PermutationImportance, {"threshold": None}),
        (Boruta, {"n_estimators": 0}),
        (Boruta, {"max_depth": 0}),
        (Boruta, {"max_iter": 1}),
        (Boruta, {"alpha": 0}),
        (LassoNet, {"n_units": 0}),
        (LassoNet, {"M": 0}),
        (LassoNet, {"lambda_start": 0}),
        (LassoNet, {"path_multiplier": 1}),
        (LassoNet, {"threshold": None}),
    ],
)
def test_parameters_are_checked(method: Any, setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {method.__name__} must be"):
        method(**setting).fit(X[:, :3], SIGNAL)
