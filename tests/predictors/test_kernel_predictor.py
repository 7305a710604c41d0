"""The kernel predictor's final fit against the plainest one, where it runs, and its settings."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_cases import NOTHING, bind, kernel_by_hand, nystroem_by_hand, scaled_by_hand, train_by_hand
from scorer_cases import CANDIDATES, N_COLUMNS, SELECTED, make_case
from sklearn.base import clone

from ngp.kernels import algebra
from ngp.kernels.algebra import NumpyAlgebra
from ngp.predictors import ColumnSets, kernel, kernel_predictor
from ngp.predictors.kernel import Kernel, KernelScorer


@pytest.mark.parametrize("settings", [{}, {"kernel": "arc-cosine"}, {"clip": 0.7}, {"landmarks": 15}])
@pytest.mark.parametrize("cv", [3, "explicit"])
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(cv: Any, settings: dict[str, Any]) -> None:
    problem = make_case("outputs", cv=cv, weighted=True)
    scorer = bind(problem, "float32", **settings)
    tuned = scorer._tuned(SELECTED)
    X, centre, spread = scaled_by_hand(problem, scorer.config.clip)
    X, weights, targets = X[:, SELECTED], problem.weights[:48], (problem.targets[:48] - centre) / spread
    rows = np.flatnonzero(weights > 0)
    landmarks = scorer._landmarks(rows, scorer.config.landmarks)
    if landmarks is None:
        centres = np.arange(48)
        values = kernel_by_hand(tuned.config, X[centres], X[centres])
        coefficients, intercept = train_by_hand(values, weights, targets, tuned.config.ridge)
    else:
        centres = rows[landmarks]
        cross = kernel_by_hand(tuned.config, X[centres], X[:48])
        coefficients, intercept = nystroem_by_hand(cross, weights, targets, tuned.config.ridge, centres, "float64")
    expected = (kernel_by_hand(tuned.config, X, X[centres]) @ coefficients + intercept) * spread + centre
    predictor = scorer.fit(SELECTED)
    predicted = predictor.predict(problem.X)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9 if landmarks is None else 1e-6)
    unread = problem.X.copy()
    unread[:, np.setdiff1d(np.arange(N_COLUMNS), SELECTED)] = np.nan
    np.testing.assert_array_equal(predictor.predict(unread), predicted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict(problem.X), predicted)


def test_predictions_dont_depend_on_how_many_rows_are_predicted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs")
    predictor = bind(problem).fit(SELECTED)
    expected = predictor.predict(problem.X)
    monkeypatch.setattr(kernel_predictor, "PREDICT_NUMBERS", 100)
    np.testing.assert_allclose(predictor.predict(problem.X), expected, rtol=1e-12)
    assert predictor.predict(problem.X[:0]).shape == (0, 3)


def test_a_final_predictor_of_nothing_predicts_the_mean() -> None:
    problem = make_case("outputs", weighted=True)
    expected = np.average(problem.targets, axis=0, weights=problem.weights)
    np.testing.assert_allclose(bind(problem).fit(NOTHING).predict(problem.X), np.tile(expected, (48, 1)), rtol=1e-9)


@pytest.mark.parametrize("kernel_name", ["rbf", "arc-cosine"])
@pytest.mark.parametrize("cv", [3, "loo", "explicit"])
def test_the_final_predictors_penalty_is_the_best_of_those_tried(cv: Any, kernel_name: str) -> None:
    def loss(scorer: KernelScorer) -> float:
        return float(scorer.add_losses(NOTHING, ColumnSets.of([SELECTED])).means[0])

    scorer = bind(make_case("outputs", cv=cv), kernel=kernel_name)
    best = loss(scorer._tuned(SELECTED))
    assert best <= loss(scorer)
    for ridge in kernel.RIDGE_FACTORS:
        for gamma in kernel.GAMMA_FACTORS:
            config = clone(scorer.config).set_params(ridge=0.1 * ridge, gamma=0.5 * gamma)
            assert best <= loss(replace(scorer, config=config)) * (1 + 1e-9)


def test_the_final_predictor_has_landmarks_where_training_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case("outputs"))
    assert scorer.fit(SELECTED).centres.shape == (2, 48)
    monkeypatch.setattr(kernel, "MOST_REFIT_OPERATIONS", 48 * 10.5**2)
    assert scorer.fit(SELECTED).centres.shape == (2, 10)


def test_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = make_case(), []

    def resolve(device: str, dtype: str) -> str:
        asked.append((device, dtype))
        return "mps" if device == "auto" else device

    monkeypatch.setattr(kernel, "resolve_device", resolve)
    monkeypatch.setattr(kernel, "TorchAlgebra", lambda device, dtype: (device, dtype))

    def algebra_of(device: str) -> Any:
        return Kernel().bind(problem, random_state=0, device=device).algebra

    assert isinstance(algebra_of("cpu"), NumpyAlgebra)
    assert isinstance(algebra_of("auto"), NumpyAlgebra)  # Apple's GPU isn't chosen by itself
    assert algebra_of("cuda") == ("cuda", "float32")
    assert asked[0] == ("cpu", "float32")


def test_the_cpu_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    scorer = Kernel().bind(make_case(), random_state=0, device="cpu")
    assert np.isfinite(scorer.add_losses(SELECTED, CANDIDATES).parts).all()
    assert np.isfinite(scorer.fit(SELECTED).predict(scorer.problem.X)).all()


BAD_SETTINGS = {
    "kernel": "linear", "gamma": 0.0, "ridge": 0.0, "clip": 0.0, "landmarks": 0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS.items())
def test_bad_settings_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Kernel must be"):
        bind(make_case(), **{name: value})


def test_settings_are_parameters_of_scikit_learn() -> None:
    config = Kernel(kernel="arc-cosine", gamma=2.0, ridge=0.3, clip=None, landmarks=7, dtype="float64")
    assert clone(config).get_params() == config.get_params()
    assert repr(Kernel()) == "Kernel()"
    assert algebra.BLOCK_ROWS < 48  # so that the tests of losses eliminate more than one block
