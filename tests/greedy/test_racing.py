"""Racing and the ridge from the data, against the plain way: all layers for all candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy import candidates
from ngp.greedy.candidates import Search, survivors
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import SSFN, ColumnSets, Kernel
from ngp.predictors.base import Losses
from ngp.predictors.ssfn import LEAST_RIDGE, RIDGES, TUNING_LAYERS

NOTHING = np.zeros(0, np.intp)


def data(seed: int = 0, n_rows: int = 150, n_columns: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, 0] + np.abs(X[:, 1]) + np.tanh(2 * X[:, 2]) + 0.5 * rng.normal(size=n_rows)


def problem_of(X: Any, y: Any, **others: Any) -> Problem:
    return make_problem(X, y, groups=make_groups(None, X.shape[1]), task="regression", random_state=0, **others)


def search_of(problem: Problem, predictor: Any = None, n_jobs: int | None = None) -> Search:
    return Search(problem, lambda on: (predictor or SSFN()).bind(on, random_state=0, n_jobs=n_jobs))


def plain_best(search: Search, selected: Any) -> tuple[int, float]:
    """The best candidate with all layers, by one call that trains everything."""
    scorer = search.scorer_of(selected, len(selected) + 1)
    others = np.setdiff1d(np.arange(search.problem.n_columns), selected)
    if not len(selected):  # the first ridge is the leaders'
        quick = scorer.stages[0].add_losses(selected, ColumnSets.singles(others)).means
        scorer = scorer.tuned(selected, ColumnSets.singles(others[np.sort(np.argsort(quick)[: candidates.N_LEADERS])]))
    losses = scorer.add_losses(selected, ColumnSets.singles(others)).means
    return int(others[np.argmin(losses)]), float(losses.min())


@pytest.mark.parametrize(
    "predictor", [SSFN(), SSFN(ridge=0.03, n_draws=4), Kernel()], ids=["default", "ridge", "kernel"]
)
def test_where_a_step_pays_the_winner_is_that_of_all_layers(predictor: Any) -> None:
    for seed in range(3):
        search = search_of(problem_of(*data(seed)), predictor)
        selected = NOTHING
        for _ in range(3):
            found = search.best(selected, len(selected) + 1)
            winner = int(found.candidates.names[found.best])
            shared = float(found.losses.means[found.best])
            assert (winner, pytest.approx(shared, rel=1e-6)) == plain_best(search, selected)
            assert found.loss <= shared  # with the ridge that suits the winner
            selected = np.append(selected, winner)
        assert sorted(selected) == [0, 1, 2]


def test_losses_say_how_many_layers_they_come_from() -> None:
    X, y = data()
    selector = NeuralGreedyPursuit(SSFN(n_draws=8), n_features_to_select=2, random_state=0).fit(X, y)
    for step in selector.path_[1:]:
        tried = ~np.isnan(step.losses)
        assert set(step.layers[tried]) <= {1, 2, 4, 8}
        assert not step.layers[~tried].any()
        assert step.layers[step.group] == step.layers[step.runner_up] == 8
        assert (step.layers == 1).sum() > 20  # most drop out after the first
        scorer = SSFN(n_draws=8).bind(problem_of(X, y), random_state=0)
        assert step.ridge in scorer.ridges_of(RIDGES, LEAST_RIDGE)


def test_a_single_part_of_the_validation_still_races() -> None:
    X, y = data()
    cv = [(np.arange(100), np.arange(100, 150))]
    search = search_of(problem_of(X, y, cv=cv))
    found = search.best(np.array([0]), 2)
    assert plain_best(search, np.array([0]))[0] == found.candidates.names[found.best]


def test_preferred_candidates_win_even_if_others_are_better() -> None:
    search = search_of(problem_of(*data()))
    preferred = np.zeros(40, dtype=bool)
    preferred[[1, 7]] = True
    found = search.best(NOTHING, 1, preferred=preferred)
    assert found.candidates.names[found.best] == 1
    assert np.isfinite(found.losses.means).all()  # all were trained
    assert found.losses.means.argmin() != found.best
    nobody = search.best(NOTHING, 1, preferred=np.zeros(40, dtype=bool))
    assert nobody.candidates.names[nobody.best] == 0


def test_chunks_and_jobs_change_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(*data())
    expected = search_of(problem).best(np.array([3]), 2)
    for n_jobs, numbers in ((2, 2**18), (1, 600)):
        monkeypatch.setattr("ngp.predictors.ssfn.CHUNK_NUMBERS", numbers)
        found = search_of(problem, n_jobs=n_jobs).best(np.array([3]), 2)
        np.testing.assert_array_equal(found.losses.parts, expected.losses.parts)
        np.testing.assert_array_equal(found.layers, expected.layers)
        assert found.ridge == expected.ridge


def test_survivors_are_near_the_best_few_and_two_at_least() -> None:
    parts = np.array([[1.0, 1.2, 1.1], [1.0, 1.3, 1.05], [1.5, 1.7, 1.6], [9.0, 9.2, 9.1], [1.0, 1.25, 1.1]])
    losses = Losses(parts, np.full(3, 1 / 3))
    assert survivors(losses, losses.means, 5).tolist() == [0, 1, 4]
    assert survivors(losses, losses.means, 2).tolist() == [0, 1]  # the fourth is third, by a little
    clear = Losses(parts[[0, 2, 3]], losses.weights)
    assert survivors(clear, clear.means, 3).tolist() == [0, 1]  # a runner-up is always there
    single = Losses(parts[:, :1], np.ones(1))
    assert survivors(single, single.means, 3).tolist() == [0, 1, 4]
    assert survivors(single, single.means, 9).tolist() == [0, 1, 2, 3, 4]  # nothing is known of errors


@pytest.mark.parametrize("n_rows", [60, 150, 3000])
def test_the_ridge_is_the_one_with_the_lowest_loss_of_the_selection(n_rows: int) -> None:
    problem = problem_of(*data(n_rows=n_rows))
    search = search_of(problem)
    selected = np.array([0, 1])
    ridges = sorted({min(RIDGES[-1], max(ridge, LEAST_RIDGE * 40 / n_rows**3)) for ridge in RIDGES})
    losses = [
        SSFN(ridge=ridge, n_draws=TUNING_LAYERS)
        .bind(problem, random_state=0)
        .add_losses(selected, ColumnSets.of([[]]))
        .means[0]
        for ridge in ridges
    ]
    assert search.best(selected, 3).ridge == search.scorer_of(selected, 3).ridge == ridges[int(np.argmin(losses))]
    assert search_of(problem, SSFN(ridge=7.0)).best(selected, 3).ridge == 7.0


def test_linear_data_get_a_larger_ridge_than_wild_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    noisy, wild = X @ [1, 1, 1] + 2 * rng.normal(size=400), np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1])
    ridges = [search_of(problem_of(X, y)).scorer_of(np.arange(2), 2).ridge for y in (noisy, wild)]
    assert ridges[0] > ridges[1]


def test_a_number_given_by_a_rule_is_the_papers_algorithm() -> None:
    """No p-values, no pairs: with one layer and a given ridge, every pick is the argmin of one call."""
    X, y = data()
    predictor = SSFN(ridge=0.003, n_draws=1)
    selector = NeuralGreedyPursuit(predictor, stop=MaxFeatures(4), random_state=0).fit(X, y)
    for step in selector.path_[1:]:
        assert step.group == np.nanargmin(step.losses)
        assert np.isnan(step.p_value)
