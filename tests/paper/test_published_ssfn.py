"""The network of the authors' code: each candidate's against one that is written down step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scorer_cases import CANDIDATES, SELECTED, average_by_hand, check_answers_depend_on_the_question_alone, make_case

from ngp.kernels.layers import WEIGHT_STREAM, random_stream
from ngp.paper.published_ssfn import PublishedScorer, PublishedSSFN


def bind(problem: Any, n_units: int = 20, n_jobs: int | None = None) -> PublishedScorer:
    return PublishedSSFN(n_units=n_units).bind(problem, random_state=11, n_jobs=n_jobs)


def bounded(layer: Any, T: Any, weights: Any, bound: float) -> Any:
    """Least squares, or the ridge regression whose coefficients have the largest norm that is allowed."""
    gram, right = layer.T @ (weights[:, None] * layer), layer.T @ (weights[:, None] * T)

    def solve(exponent: float) -> Any:
        return np.linalg.solve(gram + np.exp(exponent) * np.eye(len(gram)), right)

    def excess(exponent: float) -> float:
        return float(np.linalg.norm(solve(exponent)) / bound - 1)

    return solve(brentq(excess, -25, 20, xtol=1e-14) if excess(-25) > 0 else -25)


@pytest.mark.parametrize(
    "case", [{}, {"kind": "outputs", "weighted": True}, {"kind": "classes", "cv": 0.3}, {"kind": "binary", "cv": "loo"}]
)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any]) -> None:
    scorer = bind(problem := make_case(**case))
    found = scorer.add_losses(SELECTED, CANDIDATES)
    bound = 2 * np.sqrt(2 * problem.n_outputs)
    for i in range(len(CANDIDATES)):
        columns, new = [*SELECTED, *CANDIDATES[i]], CANDIDATES[i]
        stream = random_stream(11, WEIGHT_STREAM, (0, 2, 1 + int(new[0]) if len(new) else 0))
        X, R = problem.X[:, columns], stream.uniform(-1, 1, (len(columns), 20))
        Z = X @ R
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)

        def predict(r: int, f: int, X: Any = X, Z: Any = Z) -> Any:
            train, judge = problem.rounds[r].training(f), problem.rounds[r].validation(f)
            T, weights = problem.targets[train], problem.weights[train]
            weighted = X[train] * weights[:, None]
            slopes = np.linalg.solve(X[train].T @ weighted + 100 * np.eye(X.shape[1]), weighted.T @ T)
            layer = np.maximum(np.hstack([X @ slopes, -X @ slopes, Z]), 0)
            return layer[judge] @ bounded(layer[train], T, weights, bound)

        expected, parts = average_by_hand(problem, predict)
        assert found.means[i] == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(found.parts[i], parts, rtol=1e-4, atol=1e-5 * expected)


def test_answers_depend_on_the_question_alone() -> None:
    check_answers_depend_on_the_question_alone(bind)


def test_the_bound_holds_for_the_final_predictor() -> None:
    problem = make_case("outputs")
    predictor = bind(problem).fit(SELECTED)
    (network,) = predictor.networks
    norm = np.linalg.norm(network.layers[0].coef)
    assert norm == pytest.approx(2 * np.sqrt(6))
    assert not network.intercept.any()
    np.testing.assert_array_equal(predictor.predict(problem.X), network.predict(problem.X[:, SELECTED]))
