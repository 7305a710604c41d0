"""Losses of what is left of a selection are those of the sets that are left, scored from nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scorer_cases import N_COLUMNS, make_data

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.algebra import TorchAlgebra
from ngp.predictors import SSFN, ColumnSets, Kernel

NOTHING = np.zeros(0, dtype=np.intp)
ALL = np.arange(N_COLUMNS)[::-1]
LEAVING = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0], [1, 2, 3, 4, 5, 6]])
REST = ColumnSets.of([ALL[~np.isin(ALL, LEAVING[i])] for i in range(len(LEAVING))])


def make_case(kind: str, cv: Any = 4, weighted: bool = False) -> Problem:
    X, y = make_data(kind)
    weights = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    return make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=cv, sample_weight=weights)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("kernel", ["rbf", "arc-cosine"])
@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("cv", [4, "loo", 0.3])
def test_a_kernel_takes_columns_away(cv: Any, landmarks: int | None, kernel: Any, dtype: str, bound: float) -> None:
    problem = make_case("outputs", cv, weighted=True)
    scorer = Kernel(kernel=kernel, landmarks=landmarks, dtype=dtype).bind(problem, random_state=0, device="cpu")
    expected = scorer.add_losses(NOTHING, REST).parts
    slack = 10 if landmarks else 1
    np.testing.assert_allclose(scorer.drop_losses(ALL, LEAVING).parts, expected, rtol=slack * bound, atol=slack * bound)


@pytest.mark.parametrize("kernel", ["rbf", "arc-cosine"])
def test_torch_takes_columns_away_as_numpy_does(kernel: Any) -> None:
    pytest.importorskip("torch")
    scorer = Kernel(kernel=kernel, dtype="float64").bind(make_case("classes"), random_state=0, device="cpu")
    expected = scorer.drop_losses(ALL, LEAVING).parts
    other = replace(scorer, algebra=TorchAlgebra("cpu", "float64"))
    np.testing.assert_allclose(other.drop_losses(ALL, LEAVING).parts, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "arc-cosine"])
def test_one_column_is_left_of_many_in_single_precision(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    problem = make_problem(X, X[:, 7] ** 2, groups=make_groups(None, 300), cv=3)
    scorer = Kernel(kernel=kernel).bind(problem, random_state=0, device="cpu")
    rest = ColumnSets.of([np.delete(np.arange(300), 7)])
    expected = scorer.add_losses(NOTHING, ColumnSets.of([[7]])).means
    np.testing.assert_allclose(scorer.drop_losses(np.arange(300), rest).means, expected, rtol=2e-3)


def test_a_scorer_without_a_way_of_its_own_scores_what_is_left() -> None:
    scorer = SSFN(n_units=10, n_draws=2).bind(make_case("classes"), random_state=0)
    np.testing.assert_array_equal(scorer.drop_losses(ALL, LEAVING).parts, scorer.add_losses(NOTHING, REST).parts)
