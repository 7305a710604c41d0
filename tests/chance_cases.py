"""Columns that are drawn anew, for the tests of chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.significance import RedrawnColumns

SELECTED = np.array([4, 1])


def correlated(n_rows: int = 200, n_columns: int = 12, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return 3 + rng.normal(size=(n_rows, n_columns)) @ rng.normal(size=(n_columns, n_columns))


def problem_of(X: Any, **settings: Any) -> Problem:
    return make_problem(X, np.zeros(X.shape[0]), groups=make_groups(None, X.shape[1]), task="regression", **settings)


def redrawn(problem: Problem, selected: Any = SELECTED, key: tuple[int, int, int] = (0, 0, 0)) -> Any:
    return RedrawnColumns(problem, selected, key).read(np.arange(problem.n_columns)).T
