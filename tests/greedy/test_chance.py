"""What a step gains by chance, and the rule that stops there."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from chance_cases import SELECTED, correlated, problem_of, redrawn
from scipy.sparse import csc_array
from sklearn.linear_model import Ridge

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy import significance as chance
from ngp.greedy.candidates import Search
from ngp.greedy.path import Step
from ngp.greedy.significance import Chance, Draws, RedrawnColumns, tail_probability
from ngp.greedy.stopping import BeyondChance, FirstOf, MaxFeatures
from ngp.predictors import SSFN, ColumnSets
from ngp.report.result import Result

QUICK = {"predictor": SSFN(n_units=20, n_draws=1), "random_state": 0}


def known_of(X: Any, selected: Any, squares: bool = True) -> Any:
    """What an ordinary regression on the selected columns, and on their squares, knows of all others."""
    chosen = X[:, selected]
    scaled = (chosen - chosen.mean(axis=0)) / chosen.std(axis=0)
    known = np.column_stack([np.ones(len(X)), chosen, *[np.clip(scaled, -3, 3) ** 2] * squares])
    others = np.delete(X, selected, axis=1)
    return known @ np.linalg.lstsq(known, others, rcond=None)[0]


@pytest.mark.parametrize("selected", [[], [4, 1], [0, 3, 4, 5, 9]])
@pytest.mark.parametrize("n_rows", [200, 30])  # too few rows for so many squares
def test_what_is_known_stays_and_the_rest_goes_to_other_rows(selected: list[int], n_rows: int) -> None:
    X, squares = correlated(n_rows), n_rows == 200 or len(selected) < 4
    new = redrawn(problem_of(X), np.array(selected, dtype=np.intp))
    np.testing.assert_array_equal(new[:, selected], X[:, selected])
    others = np.setdiff1d(np.arange(12), selected)
    np.testing.assert_allclose(new[:, others].mean(axis=0), X[:, others].mean(axis=0), rtol=1e-10)
    known = known_of(X, selected, squares)
    before, n_known = X[:, others] - known, (1 + squares) * len(selected)
    after = (new[:, others] - known) / np.sqrt((n_rows - 1) / (n_rows - 1 - n_known))
    order = [int(np.argmin(np.abs(before - row).sum(axis=1))) for row in after]  # all columns move together
    np.testing.assert_allclose(after, before[order], atol=1e-9)
    assert sorted(order) == list(range(n_rows))
    assert np.mean(np.array(order) == np.arange(n_rows)) < 0.1


def test_columns_that_depend_on_the_selection_by_their_squares_say_nothing_new() -> None:
    """Without them, a real column knows more of the selection than a drawn one, and is selected."""

    def n_selected(seed: int) -> int:
        rng = np.random.default_rng(seed)
        relevant = rng.normal(size=(150, 1))
        X = np.hstack([relevant, relevant**2 * (1 + 0.5 * rng.normal(size=(150, 20))) + rng.normal(size=(150, 20))])
        y = np.tanh(2 * relevant[:, 0]) + 0.3 * rng.normal(size=150)
        return len(NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y).order_)

    assert sum(n_selected(seed) > 1 for seed in range(12)) <= 1


def test_no_answer_depends_on_what_is_read_together() -> None:
    source = RedrawnColumns(problem_of(correlated()), SELECTED, (0, 2, 1))
    whole = source.read(np.arange(12))
    for column in range(12):
        np.testing.assert_array_equal(source.read(np.array([column]))[0], whole[column])
    np.testing.assert_array_equal(source.read(np.array([7, 1]), slice(20, 30)), whole[[7, 1], 20:30])


def test_each_draw_is_another_one_and_always_the_same() -> None:
    problem = problem_of(correlated())
    keys = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
    draws = [redrawn(problem, key=key) for key in keys]
    for i, draw in enumerate(draws):
        np.testing.assert_array_equal(draw, redrawn(problem, key=keys[i]))
        assert all((draw != other).any() for other in draws[:i])


def test_rows_that_judge_only_stay_among_themselves() -> None:
    X = correlated(60)
    X[40:] += 1000  # these judge
    cv = [(np.arange(40), np.arange(40, 60))]
    new = redrawn(problem_of(X, cv=cv), SELECTED[:0])
    assert (new[:40] < 500).all()
    assert (new[40:] > 500).all()


def test_rows_of_weight_zero_have_no_say_in_what_is_known() -> None:
    X = correlated(80)
    weights = np.r_[np.ones(40), np.zeros(40)]
    source = RedrawnColumns(problem_of(X, sample_weight=weights), SELECTED, (0, 0, 0))
    X[40:] *= -7
    again = RedrawnColumns(problem_of(X, sample_weight=weights), SELECTED, (0, 0, 0))
    np.testing.assert_allclose(again._basis[:, :40] ** 2, source._basis[:, :40] ** 2)


@pytest.mark.parametrize("n_draws", [6, 40])
def test_the_tail_is_that_of_the_largest_of_many(n_draws: int) -> None:
    rng = np.random.default_rng(0)
    largest = rng.exponential(size=(2000, n_draws + 1, 100)).max(axis=2)
    probabilities = np.array([tail_probability(each[1:], each[0])[1] for each in largest])
    assert 0.005 < np.mean(probabilities < 0.02) < 0.06
    assert 0.4 < np.mean(probabilities < 0.5) < 0.6


def test_gains_that_are_all_the_same() -> None:
    assert tail_probability(np.array([0.1, 0.1]), 0.1) == (0.0, 1.0)
    assert tail_probability(np.array([0.1, 0.1]), 0.2) == (np.inf, 0.0)


def test_gains_far_below_all_others_are_chance() -> None:
    assert tail_probability(np.array([0.1, 0.1 + 1e-12]), -1e6)[1] == 1


@pytest.mark.parametrize(
    ("gain", "n_draws"), [(90.0, chance.FEWEST_DRAWS), (0.0, chance.DRAWS_TO_TELL), (3.0, chance.MOST_DRAWS)]
)
def test_there_are_as_many_draws_as_it_takes(gain: float, n_draws: int) -> None:
    rng, problem = np.random.default_rng(0), problem_of(correlated())

    class Gains:
        def best(self, *_: Any) -> Any:
            loss, candidates = 1 - float(rng.normal()), SimpleNamespace(columns=ColumnSets.of([[0]]))
            return SimpleNamespace(before=1.0, final_loss=loss, diverged=False, candidates=candidates, best=0, n_fits=7)

    draws = Draws(Chance(lambda _: cast(Search, Gains()), 0, 0.01), problem, SELECTED, 1)
    probability = draws.probability(1.0, 1 - gain)
    assert len(draws.first_gains) == n_draws
    assert draws.n_fits == 7 * n_draws
    assert (probability < 0.2) == (gain > 1)


def test_several_steps_together_gain_what_pursuits_gain_on_drawn_columns() -> None:
    """Against the plain loop: draw by draw, three greedy steps on X with the other columns drawn anew."""
    rng, X = np.random.default_rng(1), correlated(80, 6)
    problem = make_problem(X, rng.normal(size=80), groups=make_groups(None, 6), task="regression", random_state=0)
    predictor = SSFN(n_units=10, n_draws=1)

    def search(problem: Problem) -> Search:
        return Search(problem, predictor.bind(problem, random_state=0))

    draws = Draws(Chance(search, seed=5, level=0.01), problem, SELECTED, 3)
    losses, n_draws = [1.0, 0.7, 0.75, 0.69], []
    for before, loss in pairwise(losses):
        found = draws.probability(before, loss)
        n_draws.append(len(draws.first_gains))
        gains = []
        for draw in range(n_draws[-1]):
            on_drawn = search(replace(problem, X=redrawn(problem, key=(5, 3, draw))))
            selected, first, lowest = SELECTED, 0.0, np.inf
            for step in range(draws.n_steps):
                best = on_drawn.best(selected, 3 + step)
                selected, first = np.append(selected, best.candidates.names[best.best]), first or best.before
                lowest = min(lowest, best.final_loss)
            gains.append(1 - lowest / first)
        assert found == pytest.approx(
            tail_probability(np.array(gains), 1 - min(losses[: draws.n_steps + 1]))[1], rel=1e-6
        )
    assert n_draws == sorted(n_draws)
    assert draws.n_fits >= n_draws[-1] * (4 + 3 + 2)


def test_a_draw_that_diverges_gains_nothing_more() -> None:
    class Diverging:
        def best(self, selected: Any, *_: Any) -> Any:
            candidates = SimpleNamespace(columns=ColumnSets.of([[0]]))
            diverged = len(selected) > 2
            return SimpleNamespace(
                before=1.0, final_loss=0.5, diverged=diverged, candidates=candidates, best=0, n_fits=1
            )

    draws = Draws(Chance(lambda _: cast(Search, Diverging()), 0, 0.01), problem_of(correlated()), SELECTED, 1)
    assert draws.probability(1.0, 0.4) == 0
    assert draws.probability(0.4, 0.5) == 0  # as before: the second step has changed nothing


def planted(n_columns: int = 30, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, n_columns)) + rng.normal(size=(200, 1))
    return X, np.abs(X[:, 3]) + np.tanh(X[:, 8]) + 0.1 * rng.normal(size=200)


def test_what_matters_is_selected_and_nothing_else() -> None:
    X, y = planted()
    selector = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    assert sorted(selector.order_) == [3, 8]
    assert [step.kept for step in selector.path_] == [True, True, True, False]
    assert [step.chance <= 0.01 for step in selector.path_[1:]] == [True, True, False]
    assert "by chance" in selector.stop_reason_
    assert all(step.n_fits >= 28 * (1 + chance.FEWEST_DRAWS) for step in selector.path_[1:])


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_nothing_is_selected_where_there_is_nothing() -> None:
    runs = [NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, np.random.default_rng(100 + seed).normal(size=200))
            for seed, (X, _) in ((seed, planted(seed=seed)) for seed in range(10))]  # fmt: skip
    assert sum(len(run.order_) > 0 for run in runs) <= 1


@pytest.mark.parametrize(
    "settings", [{"n_jobs": 2}, {"predictor": SSFN(n_units=20, n_draws=1, dtype="float64")}], ids=["jobs", "double"]
)
def test_neither_jobs_nor_precision_change_the_picks(settings: dict[str, Any]) -> None:
    X, y = planted()
    one, other = (NeuralGreedyPursuit(stop="auto", **QUICK | each).fit(X, y) for each in ({}, settings))
    np.testing.assert_array_equal(one.order_, other.order_)
    chances = [[step.chance for step in each.path_[1:]] for each in (one, other)]
    np.testing.assert_allclose(chances[1], chances[0], rtol=0 if "n_jobs" in settings else 1e-2, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"predictor": Ridge()},
        {"groups": np.arange(30) // 2},
        {"screen": 10},
        {"fixed": [8]},
        {"n_features_to_select": 1},
    ],
    ids=["an estimator", "groups", "screening", "fixed columns", "a number beside it"],
)
def test_it_works_with_everything(settings: dict[str, Any]) -> None:
    X, y = planted(seed=1)
    selector = NeuralGreedyPursuit(**{**QUICK, "stop": "auto", **settings}).fit(X, y + X[:, 3])
    assert len(selector.order_) in (1, 2)
    assert np.isfinite([step.chance for step in selector.path_[1:]]).all()


def test_columns_that_are_not_kept_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = planted()
    kept = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    monkeypatch.setattr(chance, "KEPT_BYTES", 0)
    streamed = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    assert [step.chance for step in streamed.path_[1:]] == [step.chance for step in kept.path_[1:]]


def test_a_sparse_X_gives_the_same() -> None:
    X, y = planted()
    X[np.abs(X) < 0.5] = 0
    dense, sparse = (NeuralGreedyPursuit(stop="auto", **QUICK).fit(each, y) for each in (X, csc_array(X)))
    assert [step.chance for step in dense.path_[1:]] == [step.chance for step in sparse.path_[1:]]


def test_a_killed_run_goes_on_to_the_same(tmp_path: Path) -> None:
    X, y = planted()
    whole = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    file = tmp_path / "checkpoint"
    settings = {**QUICK, "stop": "auto", "checkpoint": file}
    NeuralGreedyPursuit(**settings, callback=lambda step: step.n_selected == 1).fit(X, y)
    resumed = NeuralGreedyPursuit(**settings).fit(X, y)
    assert [step.chance for step in resumed.path_[1:]] == [step.chance for step in whole.path_[1:]]


def test_it_is_written_down(tmp_path: Path) -> None:
    X, y = planted()
    selector = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    result = Result.of(selector, X, y)
    assert json.loads(result.to_json())["path"][0]["chance"] is None
    assert [step.chance for step in result.path[1:]] == [step.chance for step in selector.path_[1:]]
    selector.save(tmp_path / "saved")
    loaded = NeuralGreedyPursuit.load(tmp_path / "saved")
    assert [step.chance for step in loaded.path_[1:]] == [step.chance for step in selector.path_[1:]]


def test_an_estimate_counts_the_draws() -> None:
    X, y = planted()
    plain, auto = (NeuralGreedyPursuit(**rule, **QUICK).estimate(X, y) for rule in ({"tol": 0.1}, {"stop": "auto"}))
    assert auto.n_fits == (1 + chance.FEWEST_DRAWS) * plain.n_fits


def test_an_estimate_counts_the_columns_of_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(400, 20_000))  # 64 MB
    y = X[:, 0]

    def memory() -> int:
        selector = NeuralGreedyPursuit(SSFN(n_units=5, n_draws=1), n_features_to_select=1, stop="auto", random_state=0)
        return selector.estimate(X, y).memory

    assert memory() > X.nbytes
    monkeypatch.setattr(chance, "KEPT_BYTES", 0)
    assert memory() < X.nbytes


def test_it_is_the_default() -> None:
    X, y = planted()
    default, auto = (NeuralGreedyPursuit(**QUICK, **rule).fit(X, y) for rule in ({}, {"stop": "auto"}))
    assert [step.chance for step in default.path_[1:]] == [step.chance for step in auto.path_[1:]]
    for rule in ({"n_features_to_select": 2}, {"tol": 0.1}, {"stop": "plateau"}):
        assert np.isnan(NeuralGreedyPursuit(**QUICK, **rule).fit(X, y).path_[1].chance)


@pytest.mark.parametrize(
    ("level", "message"), [(0, "level=0 must be"), (1, "level=1 is no probability"), ("x", "level='x'")]
)
def test_levels_that_are_none(level: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BeyondChance(level)


def weak(seed: int) -> tuple[Any, Any]:
    """Six columns that say a little each, among thirty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 30))
    return X, X[:, :6].sum(axis=1) + 4 * rng.normal(size=200)


def test_small_gains_add_up() -> None:
    X, y = weak(8)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        alone = NeuralGreedyPursuit(stop=BeyondChance(patience=1), **QUICK).fit(X, y)
    together = NeuralGreedyPursuit(stop="auto", **QUICK).fit(X, y)
    assert len(alone.order_) == 0
    assert set(together.order_) <= set(range(6))
    proven = [step.chance <= BeyondChance().level for step in together.path_[1:]]
    assert proven == [False, False, True, False, False, False]
    assert [step.kept for step in together.path_[1:]] == [True, True, True, False, False, False]


def test_steps_that_nothing_follows_are_taken_back() -> None:
    """Where another part of the rule ends the pursuit, what isn't proven is not selected."""
    X, y = weak(8)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        few = NeuralGreedyPursuit(n_features_to_select=2, stop="auto", **QUICK).fit(X, y)
    assert [step.kept for step in few.path_] == [True, False, False]
    assert few.stop_reason_ == "2 of at most 2 features are selected"


@pytest.mark.parametrize("floating", [False, True])
def test_a_run_that_was_cut_off_before_gains_had_added_up_goes_on_to_the_same(tmp_path: Path, floating: bool) -> None:
    X, y = weak(8)
    settings = {**QUICK, "floating": floating}
    whole = NeuralGreedyPursuit(**settings).fit(X, y)

    def cut_off(step: Step) -> bool:
        if step.n_selected == n_made and interrupt:
            raise KeyboardInterrupt
        return step.n_selected == n_made

    for n_made, interrupt in product((1, 2), (False, True)):
        file = tmp_path / f"after {n_made} {interrupt}"
        with pytest.warns(UserWarning, match="Nothing was selected"):
            cut = NeuralGreedyPursuit(**settings, checkpoint=file, callback=cut_off).fit(X, y)
        assert [step.kept for step in cut.path_] == [True] + [False] * n_made  # they may be chance, as yet
        resumed = NeuralGreedyPursuit(**settings, checkpoint=file).fit(X, y)
        for name in ("action", "group", "chance", "n_fits", "kept"):
            found, expected = ([getattr(step, name) for step in each.path_[1:]] for each in (resumed, whole))
            assert found == expected, name
        np.testing.assert_array_equal(resumed.order_, whole.order_)
        np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))


def test_a_rule_beside_others() -> None:
    X, y = planted()
    rule = FirstOf([MaxFeatures(5), BeyondChance(level=0.3)])
    assert np.isfinite(NeuralGreedyPursuit(stop=rule, **QUICK).fit(X, y).path_[1].chance)
