"""Methods of other packages: the same as the packages called by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import boruta
import lassonet
import numpy as np
import pandas as pd
import pytest
from boruta import BorutaPy
from feature_engine.selection import MRMR
from scipy.stats import zscore
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import RFE, RFECV, mutual_info_classif, mutual_info_regression
from sklearn.model_selection import KFold, StratifiedKFold

from ngp.baselines import registry
from ngp.baselines.base import TrainingData, normalised

SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # as scikit-learn seeds
OTHERS = ["mutual-information", "mrmr", "recursive-elimination", "permutation", "boruta", "lassonet"]

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 6))
X[:, 5] = X[:, 1] + 0.5 * X[:, 5]  # redundant
SIGNAL = X[:, 1] - 0.8 * X[:, 4] + 0.3 * rng.normal(size=90)
TARGETS = {"regression": SIGNAL, "classes": np.array(["a", "b", "c"])[np.digitize(SIGNAL, [-0.7, 0.7])]}
# The same to the last bit: forests decide between equal splits by rounding.
DATA = TrainingData(X, SIGNAL[:, None], None, np.arange(6), 6, SEED)
each_kind = pytest.mark.parametrize("kind", list(TARGETS))


def by_kind(kind: str, regression: Any, classes: Any) -> Any:
    return regression if kind == "regression" else classes


def target(kind: str) -> Any:
    return by_kind(kind, DATA.outputs[0], TARGETS["classes"])


@each_kind
def test_mutual_information(kind: str) -> None:
    estimate = by_kind(kind, mutual_info_regression, mutual_info_classif)
    selector = registry["mutual-information"](random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_allclose(selector.importances_, normalised(estimate(X, TARGETS[kind], random_state=SEED)))


@each_kind
@pytest.mark.parametrize("number", [2, None])
def test_recursive_elimination(kind: str, number: int | None) -> None:
    trees = by_kind(kind, ExtraTreesRegressor, ExtraTreesClassifier)(50, max_features="sqrt", random_state=SEED)
    folds = by_kind(kind, KFold, StratifiedKFold)(5, shuffle=True, random_state=SEED)
    by_hand = RFECV(trees, cv=folds) if number is None else RFE(trees, n_features_to_select=number)
    selector = registry["recursive-elimination"](n_features_to_select=number, random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_array_equal(selector.support_, by_hand.fit(DATA.standardised, target(kind)).support_)


@each_kind
@pytest.mark.parametrize("number", [1, 3, None])
def test_mrmr(kind: str, number: int | None) -> None:
    by_hand = MRMR(method="FCQ", max_features=number if number != 1 else 2, regression=kind == "regression")
    y = pd.Series(by_kind(kind, SIGNAL, pd.factorize(TARGETS["classes"], sort=True)[0]))
    expected = by_hand.fit(pd.DataFrame(X), y).get_support(indices=True).tolist()
    if number == 1:
        expected = [by_hand.relevance_.argmax()]
    selector = registry["mrmr"](n_features_to_select=number).fit(X, TARGETS[kind])
    assert selector.get_support(indices=True).tolist() == expected


@each_kind
def test_boruta_confirms_the_same_columns(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boruta, "BorutaPy", partial(BorutaPy, max_iter=12))
    forest = by_kind(kind, RandomForestRegressor, RandomForestClassifier)(max_depth=5, max_features="sqrt")
    by_hand = BorutaPy(forest, n_estimators=100, max_iter=12, random_state=SEED).fit(DATA.standardised, target(kind))
    selector = registry["boruta"](random_state=0).fit(X, TARGETS[kind])
    np.testing.assert_array_equal(selector.support_, by_hand.ranking_ == 1)
    assert registry["boruta"](n_features_to_select=5, random_state=0).fit(X, TARGETS[kind]).support_.sum() == 5


@pytest.mark.parametrize("name", ["permutation", "lassonet"])
@each_kind
def test_the_columns_that_count_come_first(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"hidden_dims": (5,), "lambda_start": 20, "path_multiplier": 1.5, "n_iters": (200, 20)}
    for network in ("LassoNetRegressor", "LassoNetClassifier"):
        monkeypatch.setattr(lassonet, network, partial(getattr(lassonet, network), **small))
    columns = X[:, :5]
    fits = [registry[name](n_features_to_select=2, random_state=0).fit(columns, TARGETS[kind]) for _ in range(2)]
    assert fits[0].get_support(indices=True).tolist() == [1, 4]
    np.testing.assert_array_equal(fits[0].importances_, fits[1].importances_)


@pytest.mark.parametrize("name", OTHERS)
def test_a_constant_target_has_no_important_column_and_a_single_column_is_important(name: str) -> None:
    with pytest.warns(UserWarning, match="Nothing was selected"):
        assert not registry[name](task="regression").fit(X, np.full(90, 0.1)).importances_.any()
    assert registry[name]().fit(X[:, [1]], SIGNAL).support_.tolist() == [True]


@pytest.mark.parametrize("unit", [1e-200, 1e9])
def test_outputs_have_variance_one_whatever_their_unit(unit: float) -> None:
    values = np.column_stack([SIGNAL, np.full(90, 0.1), 100 * X[:, 0]]) * unit
    scaled = TrainingData(X, values, None, np.arange(6), 6, SEED).outputs
    np.testing.assert_allclose(scaled, zscore(np.array([SIGNAL, X[:, 0]]), axis=1))
