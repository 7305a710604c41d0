"""Whether a selected group still pays: its own columns alone are drawn anew, and nothing else is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chance_cases import SELECTED, correlated, problem_of, redrawn

from ngp.data.problem import Problem
from ngp.data.sources import ColumnSource
from ngp.greedy import significance as chance
from ngp.greedy.candidates import Search
from ngp.greedy.significance import Chance, RedrawnColumns, tail_probability
from ngp.predictors import SSFN, ColumnSets


class Watched(ColumnSource):
    """Knows which columns were read."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape, self.dtype, self.seen = X, X.shape, X.dtype, set[int]()

    def read(self, columns: Any, rows: slice = slice(None)) -> Any:
        self.seen.update(columns.tolist())
        return self.X[rows, columns].T


def search(problem: Problem) -> Search:
    return Search(problem, SSFN(n_units=10, n_draws=1).bind(problem, random_state=0))


def test_the_other_columns_stay_as_they_are() -> None:
    X = correlated()
    problem, own = problem_of(X), np.array([7, 3])
    some = RedrawnColumns(problem, SELECTED, (0, 2, 1), own).read(np.arange(12)).T
    np.testing.assert_array_equal(some[:, own], redrawn(problem, key=(0, 2, 1))[:, own])
    assert (some[:, own] != X[:, own]).any()
    np.testing.assert_array_equal(np.delete(some, own, axis=1), np.delete(X, own, axis=1))


def test_no_columns_are_read_but_the_selected_ones() -> None:
    X = Watched(correlated(60, 40))
    problem = problem_of(X)
    assert problem.varies.all()
    assert len(X.seen) == 40  # once for all draws: what is to be known of the real columns
    X.seen.clear()
    Chance(search, seed=5, level=0.01).still_pays(problem, SELECTED, np.array([17, 3]), 2, 1.0, 0.5)
    assert X.seen == {4, 1, 17, 3}


@pytest.mark.parametrize("own", [[7], [3, 9, 8]])
def test_the_probability_is_that_of_trainings_from_scratch(own: list[int]) -> None:
    X = correlated(80)
    problem = replace(problem_of(X), targets=X[:, [7]])
    selection, gains = ColumnSets.of([sorted([*SELECTED, *own])]), []
    for draw in range(chance.OWN_DRAWS):
        changed = X.copy()
        changed[:, own] = redrawn(problem, key=(5, 2, chance.MOST_DRAWS + draw))[:, own]
        losses = search(replace(problem, X=changed)).scorer.add_losses(SELECTED[:0], selection)
        gains.append(1 - float(losses.means[0]) / 2.0)
    found = Chance(search, seed=5, level=0.01).still_pays(problem, SELECTED, np.array(own), 2, 2.0, 1.5)
    assert found == tail_probability(np.array(gains), 0.25)[1]
