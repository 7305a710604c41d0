"""Adapters to methods of other packages: held against the packages called by hand, and on problems easy for them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from boruta import BorutaPy
from feature_engine.selection import MRMR as FeatureEngineMRMR
from lassonet import LassoNetClassifier, LassoNetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import RFE, RFECV, mutual_info_classif, mutual_info_regression
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import scale

from ngp.baselines import Correlation, RandomForest
from ngp.baselines.base import TrainingData, normalised
from ngp.baselines.boruta import Boruta
from ngp.baselines.lassonet import LassoNet
from ngp.baselines.mrmr import MRMR
from ngp.baselines.mutual_information import MutualInformation
from ngp.baselines.permutation import PermutationImportance
from ngp.baselines.preparation import standardised_targets
from ngp.baselines.recursive_elimination import RecursiveElimination
from ngp.predictors.networks import one_torch_thread

SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # as scikit-learn seeds


def make_data(n_rows: int = 90, n_columns: int = 6) -> tuple[Any, dict[str, Any]]:
    """Draw y from columns 1 and 4; column 5 repeats column 1, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 5] = X[:, 1] + 0.5 * X[:, 5]
    y = X[:, 1] - 0.8 * X[:, 4] + 0.3 * rng.normal(size=n_rows)
    return X, {
        "regression": y,
        "outputs": np.column_stack([y, X[:, 0] ** 2 + X[:, 4]]),
        "binary": np.where(y > 0, "yes", "no"),
        "classes": np.digitize(y, [-0.7, 0.7]),
    }


X, TARGETS = make_data()


def training_data(targets: Any) -> TrainingData:
    return TrainingData(X, targets, None, np.arange(6), 6, SEED)


# The same to the last bit: forests decide between equal splits by rounding.
SCALED = training_data(np.zeros((len(X), 1))).standardised
each_kind = pytest.mark.parametrize("kind", list(TARGETS))


def has_classes(kind: str) -> bool:
    return kind in ("binary", "classes")


def codes(kind: str) -> Any:
    return np.unique(TARGETS[kind], return_inverse=True)[1]


def scaled_target(kind: str) -> Any:
    """Values of variance one, as estimators are given them; classes as they are."""
    target = TARGETS[kind]
    return target if has_classes(kind) else standardised_targets(training_data(target.reshape(len(X), -1)))


def outputs(kind: str) -> list[Any]:
    """What methods for one output are given, one by one."""
    return [codes(kind)] if has_classes(kind) else list(TARGETS[kind].reshape(len(X), -1).T)


@pytest.mark.parametrize("unit", [1e-200, 1, 1e9])
def test_targets_have_moderate_size_whatever_their_unit(unit: float) -> None:
    values = TARGETS["outputs"] * unit
    scaled = standardised_targets(training_data(values))
    assert scaled.std() == pytest.approx(1)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.corrcoef(scaled.T, TARGETS["outputs"].T)[[0, 1], [2, 3]], 1)
    ratio = scaled.std(axis=0) / TARGETS["outputs"].std(axis=0)
    assert ratio[0] == pytest.approx(ratio[1])
    single = standardised_targets(training_data(values[:, :1]))
    assert single.shape == (90,)
    assert single.std() == pytest.approx(1)


# The packages called by hand


@each_kind
@pytest.mark.parametrize("n_neighbors", [3, 6])
def test_mutual_information_is_scikit_learns(kind: str, n_neighbors: int) -> None:
    estimate = mutual_info_classif if has_classes(kind) else mutual_info_regression
    expected = sum(estimate(X, output, n_neighbors=n_neighbors, random_state=SEED) for output in outputs(kind))
    selector = MutualInformation(n_neighbors=n_neighbors, random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(expected))


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_mutual_information_of_a_category_is_that_of_its_levels(kind: str) -> None:
    level = np.digitize(X[:, 1], [-0.5, 0.5])
    frame = pd.DataFrame({"a": X[:, 0], "level": pd.Categorical(np.array(["x", "y", "z"])[level]), "b": X[:, 2]})
    estimate = mutual_info_classif if has_classes(kind) else mutual_info_regression
    columns = np.column_stack([X[:, 0], level, X[:, 2]])
    expected = estimate(columns, TARGETS[kind], discrete_features=[False, True, False], random_state=SEED)
    selector = MutualInformation(random_state=0).fit(frame, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(expected))
    assert selector.importances_.argmax() == 1


@pytest.mark.parametrize("kind", ["regression", "binary", "classes"])
@pytest.mark.parametrize("method", ["FCQ", "FCD", "MID"])
def test_features_rank_as_feature_engine_takes_them(kind: str, method: str) -> None:
    selector = MRMR(method=method, random_state=0).fit(X, TARGETS[kind])
    order = np.argsort(-selector.importances_)
    np.testing.assert_allclose(selector.importances_[order], normalised(1 / np.arange(1, 7)))
    for number in range(2, 6):
        by_hand = FeatureEngineMRMR(
            method=method, max_features=number, regression=not has_classes(kind), random_state=SEED
        )
        by_hand.fit(pd.DataFrame(X), pd.Series(codes(kind) if has_classes(kind) else TARGETS[kind]))
        assert set(order[:number]) == set(range(6)) - set(by_hand.features_to_drop_)
    assert order[0] == by_hand.relevance_.argmax()


def test_by_default_as_many_features_are_taken_as_feature_engine_takes() -> None:
    rng = np.random.default_rng(1)
    for n_columns in (2, 5, 9, 15, 20):
        data = rng.normal(size=(40, n_columns))
        by_hand = FeatureEngineMRMR(method="FCQ", regression=True).fit(pd.DataFrame(data), pd.Series(data[:, 0]))
        expected = sorted(set(range(n_columns)) - set(by_hand.features_to_drop_))
        assert MRMR().fit(data, data[:, 0]).get_support(indices=True).tolist() == expected


def test_several_outputs_have_orders_of_their_own_which_are_summed() -> None:
    by_output = [MRMR().fit(X, output).importances_ for output in outputs("outputs")]
    np.testing.assert_allclose(MRMR().fit(X, TARGETS["outputs"]).importances_, normalised(sum(by_output)))


@each_kind
@pytest.mark.parametrize("number", [1, 3, None])
def test_ranks_are_those_of_scikit_learns_elimination(kind: str, number: int | None) -> None:
    trees = ExtraTreesClassifier if has_classes(kind) else ExtraTreesRegressor
    estimator = trees(n_estimators=50, max_features="sqrt", random_state=SEED)
    if number is None:
        folds = StratifiedKFold if has_classes(kind) else KFold
        by_hand = RFECV(estimator, cv=folds(2, shuffle=True, random_state=SEED))
    else:
        by_hand = RFE(estimator, n_features_to_select=number)
    by_hand.fit(SCALED, scaled_target(kind))
    selector = RecursiveElimination(n_features_to_select=number, cv=2, random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(1 / by_hand.ranking_))
    np.testing.assert_array_equal(selector.support_, by_hand.support_)


@pytest.mark.parametrize("step", [2, 0.4])
@pytest.mark.parametrize("number", [1, None])
def test_elimination_drops_so_many_columns_at_once(step: float, number: int | None) -> None:
    folds = KFold(5, shuffle=True, random_state=SEED)
    by_hand = RFECV(Ridge(), step=step, cv=folds) if number is None else RFE(Ridge(), n_features_to_select=1, step=step)
    ranking = by_hand.fit(SCALED, scaled_target("regression")).ranking_
    assert len(np.unique(ranking)) < 6 - by_hand.n_features_ + 1
    selector = RecursiveElimination(estimator=Ridge(), step=step, n_features_to_select=number, random_state=0)
    np.testing.assert_allclose(selector.fit(X, TARGETS["regression"]).importances_, normalised(1 / ranking))


@each_kind
@pytest.mark.parametrize("test_size", [0.25, 0.5])
def test_permutation_importances_are_scikit_learns(kind: str, test_size: float) -> None:
    forest = RandomForestClassifier if has_classes(kind) else RandomForestRegressor
    target = scaled_target(kind)
    stratify = target if has_classes(kind) else None
    train, test, y_train, y_test = train_test_split(
        SCALED, target, test_size=test_size, stratify=stratify, random_state=SEED
    )
    model = forest(random_state=SEED).fit(train, y_train)
    fall = permutation_importance(model, test, y_test, n_repeats=4, random_state=SEED).importances_mean
    assert fall.min() < 0 or kind != "regression"
    selector = PermutationImportance(test_size=test_size, n_repeats=4, random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(np.maximum(fall, 0)), rtol=1e-6, atol=1e-9)


@each_kind
def test_boruta_is_the_packages(kind: str) -> None:
    forest = RandomForestClassifier if has_classes(kind) else RandomForestRegressor
    importances, confirmed = np.zeros(6), np.zeros(6, dtype=bool)
    targets = (
        outputs(kind) if has_classes(kind) else scale(training_data(TARGETS[kind].reshape(90, -1)).scaled_targets).T
    )
    for target in targets:
        model = forest(max_depth=4, max_features="sqrt")
        boruta = BorutaPy(model, n_estimators=10, alpha=0.1, max_iter=30, random_state=SEED).fit(SCALED, target)
        importances += np.nan_to_num(boruta.importance_history_[1:]).mean(axis=0)
        confirmed |= boruta.support_
    assert 0 < confirmed.sum() < 6
    settings: dict[str, Any] = {"n_estimators": 10, "max_depth": 4, "alpha": 0.1, "max_iter": 30, "random_state": 0}
    selector = Boruta(**settings).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(importances), rtol=1e-6)
    np.testing.assert_array_equal(selector.support_, confirmed)


def test_tentative_columns_are_left_out_also_where_the_package_lets_them_in() -> None:
    data, target = X[:, [1, 4]], TARGETS["regression"]
    boruta = BorutaPy(RandomForestRegressor(), n_estimators=10, max_iter=4, random_state=SEED).fit(data, target)
    assert boruta.support_.all()
    assert (boruta.ranking_ == 2).all()
    with pytest.warns(UserWarning, match="Nothing was selected"):
        assert not Boruta(n_estimators=10, max_iter=4, random_state=0).fit(data, target).support_.any()


@pytest.mark.parametrize("kind", ["outputs", "classes"])
def test_penalties_are_lassonets(kind: str) -> None:
    target = scaled_target(kind)
    stratify = target if has_classes(kind) else None
    train, test, y_train, y_test = train_test_split(SCALED, target, test_size=0.1, stratify=stratify, random_state=SEED)
    settings: dict[str, Any] = {"M": 5, "lambda_start": 30, "path_multiplier": 1.5}
    network = (LassoNetClassifier if has_classes(kind) else LassoNetRegressor)(
        hidden_dims=(6,), torch_seed=SEED, verbose=0, device=torch.device("cpu"), **settings
    )
    with warnings.catch_warnings(), torch.random.fork_rng(), one_torch_thread():
        warnings.filterwarnings("ignore", "lambda_start=")
        network.path(train, y_train, X_val=test, y_val=y_test)
    expected = network.feature_importances_.numpy()
    assert len(np.unique(expected)) > 2
    selector = LassoNet(n_units=6, **settings, random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(expected), rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_a_category_leaves_lassonet_with_the_last_of_its_columns() -> None:
    level = np.digitize(X[:, 1], [-0.5, 0.5])
    frame = pd.DataFrame({"a": X[:, 0], "level": pd.Categorical(np.array(["x", "y", "z"])[level]), "b": X[:, 4]})
    columns = np.column_stack([X[:, 0], np.eye(3)[level], X[:, 4]])
    # Columns leave at the first penalty, about which the package would warn.
    network = LassoNet(n_units=6, lambda_start=60, path_multiplier=1.5, random_state=0)
    first, *levels, last = network.fit(columns, TARGETS["regression"]).importances_
    assert len(set(levels)) > 1
    expected = normalised([first, max(levels), last])
    np.testing.assert_allclose(network.fit(frame, TARGETS["regression"]).importances_, expected)


def test_lassonet_runs_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them may add numbers up in another order."""
    seen = []
    path = LassoNetRegressor.path

    def watched_path(*arguments: Any, **settings: Any) -> Any:
        seen.append(torch.get_num_threads())
        return path(*arguments, **settings)

    monkeypatch.setattr(LassoNetRegressor, "path", watched_path)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    LassoNet(n_units=2, lambda_start=500, path_multiplier=3, random_state=0).fit(X, TARGETS["regression"])
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    assert seen == [1]


# Problems that are easy for one method


def test_mutual_information_finds_a_curve_that_has_no_correlation() -> None:
    half = np.random.default_rng(0).normal(size=(150, 20))
    data = np.vstack([half, half * np.where(np.arange(20) == 7, -1, 1)])
    target = data[:, 7] ** 2
    assert Correlation().fit(data, target).importances_[7] < 1e-12
    assert MutualInformation(random_state=0).fit(data, target).importances_.argmax() == 7


@pytest.mark.parametrize("method", ["FCQ", "MID"])
def test_mrmr_passes_over_a_redundant_column(method: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 10))
    data[:, 9] = data[:, 2] + 0.2 * data[:, 9]
    target = data[:, 2] + 0.7 * data[:, 6]
    relevant = Correlation(n_features_to_select=2).fit(data, target)
    assert relevant.get_support(indices=True).tolist() == [2, 9]
    selector = MRMR(method=method, n_features_to_select=2, random_state=0).fit(data, target)
    assert selector.get_support(indices=True).tolist() in ([2, 6], [6, 9])


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.filterwarnings("error")
def test_mrmr_is_not_misled_by_columns_unrelated_to_everything(task: str) -> None:
    """In a full factorial design correlations are exactly zero: zero over zero is nothing to take first."""
    design = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    selector = MRMR(n_features_to_select=2, task=task).fit(design, design[:, 1] + 2 * design[:, 3])
    assert selector.get_support(indices=True).tolist() == [1, 3]


def test_recursive_elimination_keeps_columns_that_tell_little_alone() -> None:
    """The target is the difference of two columns that are nearly equal."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(100, 12))
    data[:, 3] = data[:, 8] + 0.1 * data[:, 3]
    target = 10 * (data[:, 8] - data[:, 3]) + 0.1 * rng.normal(size=100)
    settings: dict[str, Any] = {"n_features_to_select": 2}
    assert Correlation(**settings).fit(data, target).get_support(indices=True).tolist() != [3, 8]
    selector = RecursiveElimination(estimator=Ridge(alpha=1e-3), **settings).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [3, 8]


def test_recursive_elimination_finds_the_number_of_columns() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(150, 8))
    target = np.abs(data[:, 2]) + data[:, 5]
    selector = RecursiveElimination(random_state=0).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [2, 5]


def test_permutation_importances_are_not_taken_in_by_noise() -> None:
    """A forest that learns noise by heart uses all columns; on held-out samples that is worth nothing."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 10))
    target = 2 * data[:, 4] + rng.normal(size=200)
    assert RandomForest(random_state=0).fit(data, target).support_.all()
    selector = PermutationImportance(threshold=0.05, random_state=0).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [4]


def test_boruta_finds_all_columns_that_are_related() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 12))
    data[:, 9] = data[:, 2] + 0.3 * data[:, 9]
    target = data[:, 2] + data[:, 6] + 0.2 * rng.normal(size=200)
    selector = Boruta(n_estimators=50, max_iter=40, random_state=0).fit(data, target)
    assert selector.get_support(indices=True).tolist() == [2, 6, 9]


def test_lassonet_finds_so_many_features_of_a_sparse_curved_problem() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 10))
    target = 2 * data[:, 3] + np.abs(data[:, 8]) + data[:, 8] + 0.1 * rng.normal(size=200)
    for number in (1, 2):
        selector = LassoNet(
            n_units=20, lambda_start=50, path_multiplier=1.3, n_features_to_select=number, random_state=0
        )
        assert selector.fit(data, target).get_support(indices=True).tolist() == [3, 8][:number]
