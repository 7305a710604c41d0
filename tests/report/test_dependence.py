"""Curves and pairs of a report are partial dependences of the fitted predictor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence

from ngp import NGPClassifier, NGPRegressor
from ngp.predictors import SSFN
from ngp.report.result import Result

QUICK = SSFN(n_units=40, n_draws=1)


def test_a_curve_is_the_partial_dependence_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 2] ** 2
    forest = RandomForestRegressor(5, random_state=0)
    selector = NGPRegressor(forest, n_features_to_select=2, cv=2, random_state=0).fit(X, y)
    result = Result.of(selector, X, y)
    assert [curve.column for curve in result.curves] == selector.order_.tolist()
    fitted = forest.fit(X[:, selector.order_], y)
    for place, curve in enumerate(result.curves):
        grid = {place: curve.values}
        Z = X[:, selector.order_]
        expected = partial_dependence(fitted, Z, [place], custom_values=grid, method="brute")["average"][0]
        np.testing.assert_allclose(curve.averages[0], expected, rtol=1e-6)


def test_curves_of_classes_are_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    result = Result.of(NGPClassifier(QUICK, n_features_to_select=1, random_state=0).fit(X, y), X, y)
    (curve,) = result.curves
    assert curve.outputs == ["0", "1", "2"]
    np.testing.assert_allclose(np.sum(curve.averages, axis=0), 1)
    assert np.argmax(np.array(curve.averages)[:, [0, -1]], axis=0).tolist() == [0, 2]


def test_a_category_column_has_a_point_for_each_category() -> None:
    rng = np.random.default_rng(0)
    town = rng.choice(["Bonn", "Kiel", "Ulm"], 150)
    X = pd.DataFrame({"noise": rng.normal(size=150), "town": pd.Categorical(town)})
    y = (town == "Kiel") * 2.0 + 0.1 * rng.normal(size=150)
    (curve,) = Result.of(NGPRegressor(QUICK, n_features_to_select=1, random_state=0).fit(X, y), X, y).curves
    assert (curve.column, curve.categories) == (1, ["Bonn", "Kiel", "Ulm"])
    np.testing.assert_allclose(curve.averages[0], [0, 2, 0], atol=0.2)


@pytest.mark.parametrize(("kind", "low", "high"), [("product", 0.9, 1.0), ("sum", 0.0, 0.1)])
def test_pairs_that_only_work_together_are_told_from_sums(kind: str, low: float, high: float) -> None:
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(300, 5))
    X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    y = X[:, 1] * X[:, 3] if kind == "product" else X[:, 1] + X[:, 3]
    (pair,) = Result.of(NGPRegressor(n_features_to_select=2, random_state=0).fit(X, y), X, y).together
    assert sorted(pair.groups) == [1, 3]
    assert low <= pair.share <= high
    assert pair.size == pytest.approx(1, abs=0.2)


def test_the_constant_prediction_is_that_of_the_training_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] > 0.5, "rare", "frequent")
    selector = NGPClassifier(QUICK, random_state=0).fit(X[:150], y[:150])
    fit = Result.of(selector, X[:150], y[:150], held_out=(X[150:], y[150:])).fit
    assert fit is not None
    assert fit.constant == np.mean(y[150:] == "frequent")
