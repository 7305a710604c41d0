"""The search for the best candidate of a step."""

from __future__ import annotations

import numpy as np
from greedy_cases import NEVER, make_fake, random_loss, run, search_of, weights_loss
from hypothesis import given
from hypothesis import strategies as st

from ngp.greedy.candidates import Candidates, two_best

NOTHING = np.zeros(0, np.intp)


def test_candidates_add_something_that_varies() -> None:
    scorer = make_fake(4, weights_loss([1, 9, 2, 9]), constant=[1, 3])
    path = run(scorer, NEVER)
    assert path.columns.tolist() == [2, 0]
    assert np.isnan(path.steps[1].losses).tolist() == [False, True, False, True]
    grouped = make_fake(4, weights_loss([1, 9, 2, 9]), constant=[1, 3], groups=[[0, 1], [3], [2]]).problem
    assert Candidates.beside(grouped, NOTHING).names.tolist() == [0, 2]
    left = Candidates.beside(grouped, np.array([0]))  # column 1 alone is constant
    assert (left.names.tolist(), left.columns[0].tolist()) == ([2], [2])


def test_costs_never_let_a_harmful_candidate_win() -> None:
    weights = [-1.0, 0.5, -0.25, 6.0]
    scorer = make_fake(4, weights_loss(weights), costs=[0.001, 100.0, 1000.0, 1.0])
    path = run(scorer, NEVER, fixed=[3])
    # One that helps a little at a high price, then the one that harms least, whatever it costs.
    assert [step.group for step in path.steps[1:]] == [1, 2, 0]
    assert [step.runner_up for step in path.steps[1:]] == [2, 0, None]


def test_some_groups_may_be_left_out() -> None:
    search = search_of(make_fake(4, weights_loss([1, 2, 3, 4])))
    found = search.best(NOTHING, 1, without={3, 1})
    assert found.candidates.names.tolist() == [0, 2]
    assert found.candidates.names[found.best] == 2
    assert search.best(NOTHING, 1, without=range(4)).diverged  # nothing is left
    assert search.tally.n_fits == 2


def test_the_same_search_on_other_data_counts_in_the_same_tally() -> None:
    scorer = make_fake(4, weights_loss([1, 2, 3, 4]))
    search, other = search_of(scorer), make_fake(4, random_loss(0)).problem
    search.best(NOTHING, 1)
    moved = search.on(other)
    assert moved.problem is other
    assert moved.scorer is not search.scorer
    moved.best(np.array([2]), 2)
    assert search.tally.n_fits == 4 + 3


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, np.inf]), min_size=1, max_size=6))
def test_the_two_best_are_the_first_two_of_a_stable_sort(values: list[float]) -> None:
    order = sorted(range(len(values)), key=lambda place: values[place])
    best, second = two_best(np.array(values))
    assert best == order[0]
    assert second == next((place for place in order[1:] if np.isfinite(values[place])), None)
