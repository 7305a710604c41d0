"""scikit-learn's own checks of every class."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from ngp.baselines import BART, GAM, ROAR, Correlation, DeepLIFT, DropOneOut, Lasso, RandomForest, registry
from ngp.baselines.bart import BARTEstimator
from ngp.baselines.base import PredictorEstimator
from ngp.predictors import MLP, SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)
TREES = {"n_trees": 5, "n_sweeps": 4, "n_burn_in": 2}
ESTIMATORS = [
    Correlation(),
    Lasso(),
    RandomForest(n_estimators=5),
    GAM(),
    DropOneOut(step=0.5, cv=2),
    ROAR(step=0.5, cv=2),
    DeepLIFT(predictor=MLP(n_units=5, n_draws=1, epochs=2)),
    registry["mutual-information"](),
    PredictorEstimator(FAST, task="regression"),
    PredictorEstimator(FAST, task="classification"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_scikit_learn_conventions(estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator)


def test_most_conventions_hold_for_bart() -> None:
    """The checks that remain fit fewer samples than its leaves need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in (BART(**TREES), BARTEstimator(**TREES)):
            results = check_estimator(estimator, on_fail=None)
            failed = {each["check_name"]: str(each["exception"]) for each in results if each["status"] == "failed"}
            assert {name: text for name, text in failed.items() if "BART needs at least 11" not in text} == {}
