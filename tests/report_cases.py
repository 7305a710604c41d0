"""Results of small selections that tests of the result and of the report share."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from ngp import NGPClassifier, NGPRegressor
from ngp.data.groups import image_windows
from ngp.predictors import SSFN
from ngp.report.result import Result

QUICK = SSFN(n_units=20, n_draws=1, ridge=1 / 160, linear_ridge=3 / 160, refit_units=20)
NASTY = [
    "<script>alert(1)</script>",
    "two\nlines",
    "</svg><img src=x onerror=alert(2)>",
    "\"quotes\" & 'apostrophes'",
    "$\\frac{broken$ and $x_1$",
    "名前",
    "a" * 120,
    "",
    "\u202eright to left",
    "{{ 7*7 }}",
    'id="x" url(#y)',
]


class Case:
    """A fitted selector with its data, and the result."""

    def __init__(
        self, selector: NGPClassifier | NGPRegressor, X: Any, y: Any, n_halves: int = 0, **options: Any
    ) -> None:
        self.selector, self.X, self.y = selector.fit(X, y), X, y
        if n_halves:
            selector.measure_stability(X, y, n_halves=n_halves)
        self.result = Result.of(selector, X, y, **options)

    def document(self) -> dict[str, Any]:
        """The JSON document of the result, as a reader gets it."""
        read: dict[str, Any] = json.loads(self.result.to_json(), parse_constant=pytest.fail)
        return read


@cache
def regression() -> Case:
    """Three of eight columns matter; rows are held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 8))
    X[:, 7] = X[:, 0] + 0.3 * rng.normal(size=160)
    y = 3 * X[:, 0] + X[:, 1] ** 2 + X[:, 2] + 0.1 * rng.normal(size=160)
    selector = NGPRegressor(QUICK, random_state=0)
    return Case(selector, X[:120], y[:120], target="yield", held_out=(X[120:], y[120:]))


@cache
def categories() -> Case:
    """A data frame with categories and a fixed column; no rows are held out."""
    rng = np.random.default_rng(1)
    town, smoker = rng.choice(["Bonn", "Kiel", "Ulm"], 150), rng.choice(["yes", "no"], 150)
    age = rng.normal(50, 10, 150)
    table = {"town": pd.Categorical(town), "age": age, "smoker": pd.Categorical(smoker), "noise": rng.normal(size=150)}
    y = np.where(age / 10 + 2 * (smoker == "yes") + (town == "Ulm") + 0.3 * rng.normal(size=150) > 6, "high", "low")
    return Case(NGPClassifier(QUICK, fixed=["age"], stop="plateau", random_state=0), pd.DataFrame(table), y)


@cache
def digits() -> Case:
    """Windows of an image."""
    X, y = load_digits(return_X_y=True)
    X = X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)  # so that no pixel is constant
    selector = NGPClassifier(QUICK, groups=image_windows((8, 8), 2), n_features_to_select=3, random_state=0)
    return Case(selector, X[:300], y[:300], target="digit", held_out=(X[300:500], y[300:500]), image_shape=(8, 8))


@cache
def many() -> Case:
    """More candidates than a heat map can show."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(100, 300)), columns=[f"gene_{i:04d}_expression_level" for i in range(300)])
    y = X.iloc[:, :6].sum(axis=1) + 0.1 * rng.normal(size=100)
    return Case(NGPRegressor(QUICK, n_features_to_select=7, cv=2, random_state=0), X, y)


@cache
def nasty() -> Case:
    """Names that would break a page or a picture if they were not escaped."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(100, len(NASTY))), columns=NASTY)
    y = X.to_numpy() @ np.linspace(3, 1, len(NASTY))
    selector = NGPRegressor(QUICK, n_features_to_select=9, random_state=0)
    return Case(selector, X, y, target='<b>target</b>\n"; DROP')


@cache
def nothing() -> Case:
    """A threshold that no feature meets."""
    rng = np.random.default_rng(4)
    selector = NGPRegressor(QUICK, tol=9.0, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Nothing was selected")
        return Case(selector, rng.normal(size=(60, 4)), rng.normal(size=60))


@cache
def decoy() -> Case:
    """A column that tells a little of four others comes in first, and is dropped when all of them are in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    total = X[:, :4].sum(axis=1)
    X[:, 4] = total + rng.normal(size=300)
    y = total + 0.3 * rng.normal(size=300)
    return Case(NGPRegressor(tol=0.05, floating=True, random_state=0), X, y)


@cache
def exchanges() -> Case:
    """Two decoys: steps are taken back in the middle of the path, and one column is exchanged and dropped later."""
    return Case(NGPRegressor(QUICK, tol=0.05, floating=True, random_state=0), *_two_decoys(3))


@cache
def fluctuations() -> Case:
    """What was dropped comes back in an exchange; drops are taken back, too."""
    return Case(NGPRegressor(QUICK, stop="plateau", floating=True, random_state=0), *_two_decoys(0))


def _two_decoys(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 10))
    total = X[:, :3].sum(axis=1)
    X[:, 3] = total + 0.8 * rng.normal(size=200)
    X[:, 4] = total + rng.normal(size=200)
    return X, total + 0.3 * rng.normal(size=200)


FLOATING = {case.__name__: case for case in (decoy, exchanges, fluctuations)}


@cache
def halved() -> Case:
    """Two of six columns matter, and a third says what one of them says; selected on halves of the rows, too."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 6))
    X[:, 5] = X[:, 0] + 0.1 * rng.normal(size=200)
    y = np.tanh(X[:, 0]) + np.abs(X[:, 3]) + 0.1 * rng.normal(size=200)
    return Case(NGPRegressor(QUICK, n_features_to_select=2, random_state=0), X, y, n_halves=30)


CASES = {case.__name__: case for case in (regression, categories, digits, many, nasty, nothing, halved)} | FLOATING
