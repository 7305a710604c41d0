"""p-values: columns drawn anew, what is gained on them by chance, and the default stop rule on data."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from greedy_cases import OnStep, fake_step, make_fake, run, seen, stop_after, weights_loss
from scipy.sparse import csc_array
from sklearn.linear_model import Ridge

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.data.sources import ColumnSource
from ngp.greedy import significance
from ngp.greedy.candidates import Search, Tally
from ngp.greedy.significance import Draws, RedrawnColumns, SignificanceTest, tail_probability
from ngp.greedy.stopping import FirstOf, MaxFeatures, Significance
from ngp.predictors import SSFN, ColumnSets

QUICK: dict[str, Any] = {"predictor": SSFN(n_units=20, n_draws=1), "random_state": 0}
SELECTED = np.array([4, 1])


def correlated(n_rows: int = 200, n_columns: int = 12) -> Any:
    rng = np.random.default_rng(0)
    return 3 + rng.normal(size=(n_rows, n_columns)) @ rng.normal(size=(n_columns, n_columns))


def problem_of(X: Any, **settings: Any) -> Problem:
    y = settings.pop("y", np.zeros(X.shape[0]))
    return make_problem(X, y, groups=make_groups(None, X.shape[1]), task="regression", **settings)


def redrawn(problem: Problem, selected: Any = SELECTED, key: tuple[int, int, int] = (0, 0, 0)) -> Any:
    return RedrawnColumns(problem, selected, key).read(np.arange(problem.n_columns)).T


# ---------------------------------------------------------------- columns drawn anew


# In the last case there are too few rows for so many squares.
@pytest.mark.parametrize(("n_rows", "selected"), [(200, []), (200, [4, 1]), (30, [0, 3, 4, 5, 9])])
def test_what_is_known_stays_and_the_rest_goes_to_other_rows(n_rows: int, selected: list[int]) -> None:
    X, squares = correlated(n_rows), n_rows == 200 or len(selected) < 4
    new = redrawn(problem_of(X), np.array(selected, dtype=np.intp))
    np.testing.assert_array_equal(new[:, selected], X[:, selected])
    others = np.setdiff1d(np.arange(12), selected)
    np.testing.assert_allclose(new[:, others].mean(axis=0), X[:, others].mean(axis=0), rtol=1e-10)
    # What an ordinary regression on the selected columns, and on their squares, knows of all others.
    scaled = (X[:, selected] - X[:, selected].mean(axis=0)) / X[:, selected].std(axis=0)
    design = np.column_stack([np.ones(n_rows), X[:, selected], *[np.clip(scaled, -3, 3) ** 2] * squares])
    known = design @ np.linalg.lstsq(design, X[:, others], rcond=None)[0]
    before, n_known = X[:, others] - known, (1 + squares) * len(selected)
    after = (new[:, others] - known) / np.sqrt((n_rows - 1) / (n_rows - 1 - n_known))
    order = [int(np.argmin(np.abs(before - row).sum(axis=1))) for row in after]  # all columns move together
    np.testing.assert_allclose(after, before[order], atol=1e-9)
    assert sorted(order) == list(range(n_rows))
    assert np.mean(np.array(order) == np.arange(n_rows)) < 0.1


def test_correlations_with_the_selection_are_kept_and_those_with_the_target_lost() -> None:
    X = correlated(2000)
    y = X[:, 7] - X[:, :7] @ np.linalg.lstsq(X[:, :7], X[:, 7], rcond=None)[0]  # what only column 7 knows
    new = redrawn(problem_of(X))
    kept, was = (np.corrcoef(each.T)[SELECTED] for each in (new, X))
    np.testing.assert_allclose(kept, was, atol=0.06)
    assert abs(np.corrcoef(X[:, 7], y)[0, 1]) > 0.1
    assert abs(np.corrcoef(new[:, 7], y)[0, 1]) < 0.06


def test_no_answer_depends_on_the_columns_that_are_read_together() -> None:
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


def test_rows_that_only_judge_stay_among_themselves() -> None:
    X = correlated(60)
    X[40:] += 1000  # these judge
    cv = [(np.arange(40), np.arange(40, 60))]
    new = redrawn(problem_of(X, cv=cv), SELECTED[:0])
    assert (new[:40] < 500).all()
    assert (new[40:] > 500).all()


def test_rows_of_weight_zero_dont_count_in_what_is_known() -> None:
    X = correlated(80)
    weights = np.r_[np.ones(40), np.zeros(40)]
    source = RedrawnColumns(problem_of(X, sample_weight=weights), SELECTED, (0, 0, 0))
    X[40:] *= -7
    again = RedrawnColumns(problem_of(X, sample_weight=weights), SELECTED, (0, 0, 0))
    np.testing.assert_allclose(again._basis[:, :40] ** 2, source._basis[:, :40] ** 2)


# ---------------------------------------------------------------- gains by chance


@pytest.mark.parametrize("n_draws", [6, 40])
def test_the_tail_is_that_of_the_largest_of_many(n_draws: int) -> None:
    rng = np.random.default_rng(0)
    largest = rng.exponential(size=(2000, n_draws + 1, 100)).max(axis=2)
    probabilities = np.array([tail_probability(each[1:], each[0])[1] for each in largest])
    assert 0.005 < np.mean(probabilities < 0.02) < 0.06
    assert 0.4 < np.mean(probabilities < 0.5) < 0.6


def test_gains_that_are_all_the_same_or_far_below() -> None:
    assert tail_probability(np.array([0.1, 0.1]), 0.1) == (0.0, 1.0)
    assert tail_probability(np.array([0.1, 0.1]), 0.2) == (np.inf, 0.0)
    assert tail_probability(np.array([0.1, 0.1 + 1e-12]), -1e6)[1] == 1


class MadeUpSearch:
    """Finds gains that a function makes up."""

    def __init__(self, gain: Any, diverges_from: int = 99) -> None:
        self.problem, self.tally, self.gain, self.diverges_from = problem_of(correlated()), Tally(), gain, diverges_from

    def on(self, problem: Problem) -> MadeUpSearch:
        return self

    def best(self, selected: Any, *_: Any) -> Any:
        self.tally.n_fits += 7
        candidates, diverged = SimpleNamespace(columns=ColumnSets.of([[0]])), len(selected) >= self.diverges_from
        loss = 1 - self.gain()
        return SimpleNamespace(before=1.0, final_loss=loss, diverged=diverged, candidates=candidates, best=0)


@pytest.mark.parametrize(
    ("gain", "n_draws"),
    [(90.0, significance.FEWEST_DRAWS), (0.0, significance.DRAWS_TO_TELL), (3.0, significance.MOST_DRAWS)],
)
def test_as_many_draws_are_made_as_it_takes(gain: float, n_draws: int) -> None:
    search = MadeUpSearch(np.random.default_rng(0).normal)
    draws = Draws(SignificanceTest(cast(Search, search), Significance(), 0), SELECTED, 1)
    p_value = draws.see(fake_step(1 - gain, before=1.0))
    assert len(draws.first_gains) == n_draws
    assert search.tally.n_fits == 7 * n_draws
    assert (p_value < 0.2) == (gain > 1)


def test_a_draw_that_diverges_gains_nothing_more() -> None:
    search = MadeUpSearch(lambda: 0.5, diverges_from=3)
    draws = Draws(SignificanceTest(cast(Search, search), Significance(), 0), SELECTED, 1)
    assert draws.see(fake_step(0.4, before=1.0)) == 0
    assert draws.see(fake_step(0.5, before=0.4)) == 0  # as before: the second step has changed nothing


def search_on(problem: Problem) -> Search:
    return Search(problem, lambda problem: SSFN(n_units=10, n_draws=1).bind(problem, random_state=0))


def test_several_steps_together_gain_what_pursuits_gain_on_drawn_columns() -> None:
    """Against the plain loop: draw by draw, three greedy steps on X with the other columns drawn anew."""
    problem = problem_of(correlated(80, 6), y=np.random.default_rng(1).normal(size=80), random_state=0)
    test = SignificanceTest(search_on(problem), Significance(), seed=5)
    draws, losses, n_draws = Draws(test, SELECTED, 3), [1.0, 0.7, 0.75, 0.69], []
    for before, loss in pairwise(losses):
        found = draws.see(fake_step(loss, before=before))
        n_draws.append(len(draws.first_gains))
        gains = []
        for draw in range(n_draws[-1]):
            on_drawn = search_on(replace(problem, X=redrawn(problem, key=(5, 3, draw))))
            selected, first, lowest = SELECTED, 0.0, np.inf
            for step in range(draws.n_steps):
                best = on_drawn.best(selected, 3 + step)
                selected, first = np.append(selected, best.candidates.names[best.best]), first or best.before
                lowest = min(lowest, best.final_loss)
            gains.append(1 - lowest / first)
        expected = tail_probability(np.array(gains), 1 - min(losses[: draws.n_steps + 1]))[1]
        assert found == pytest.approx(expected, rel=1e-6)
    assert n_draws == sorted(n_draws)
    assert test.search.tally.n_fits >= n_draws[-1] * (4 + 3 + 2)


class Watched(ColumnSource):
    """Knows which columns were read."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape, self.dtype, self.seen = X, X.shape, X.dtype, set[int]()

    def read(self, columns: Any, rows: slice = slice(None)) -> Any:
        self.seen.update(columns.tolist())
        return self.X[rows, columns].T


@pytest.mark.parametrize("own", [[7], [3, 9, 8]])
def test_to_test_a_selected_group_its_own_columns_alone_are_drawn_anew(own: list[int]) -> None:
    X = correlated(80)
    source = Watched(X)
    problem = replace(problem_of(source), targets=X[:, [7]])
    assert problem.varies.all()
    source.seen.clear()
    steps = [
        fake_step(3.0, action="start", group=None, columns=SELECTED),
        fake_step(1.5, before=2.0, group=0, columns=np.array(own)),
    ]
    found = SignificanceTest(search_on(problem), Significance(), 5).p_value_of_selected(steps, 0, 2.0, 1.5)
    assert source.seen == {*SELECTED.tolist(), *own}
    selection, gains = ColumnSets.of([sorted([*SELECTED, *own])]), []
    for draw in range(significance.OWN_DRAWS):
        changed = X.copy()
        changed[:, own] = redrawn(problem, key=(5, 1, significance.MOST_DRAWS + draw))[:, own]
        scorer = search_on(replace(problem, X=changed)).scorer.at(1)
        gains.append(1 - float(scorer.add_losses(SELECTED[:0], selection).means[0]) / 2.0)
    assert found == tail_probability(np.array(gains), 0.25)[1]


def test_fits_on_drawn_columns_count() -> None:
    path = run(make_fake(4, weights_loss([4, 2, 1e-4, 0])), Significance())
    assert path.columns.tolist() == [0, 1]
    assert path.steps[1].n_fits >= 4 * (1 + significance.FEWEST_DRAWS)


# ---------------------------------------------------------------- data


def planted(n_columns: int = 30, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, n_columns)) + rng.normal(size=(200, 1))
    return X, np.abs(X[:, 3]) + np.tanh(X[:, 8]) + 0.1 * rng.normal(size=200)


def p_values(selector: NeuralGreedyPursuit) -> list[float]:
    return [step.p_value for step in selector.path_[1:]]


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_without_a_signal_p_values_are_roughly_uniform() -> None:
    found = []
    for seed in range(40):
        X, y = np.split(np.random.default_rng(seed).normal(size=(60, 9)), [8], axis=1)
        rule = FirstOf([MaxFeatures(1), Significance(level=0.3)])
        found += p_values(
            NeuralGreedyPursuit(SSFN(n_units=10, n_draws=1), stop=rule, random_state=seed).fit(X, y[:, 0])
        )
    shares = [np.mean(np.array(found) <= level) for level in (0.05, 0.25, 0.5, 0.75)]
    np.testing.assert_allclose(shares, [0.05, 0.25, 0.5, 0.75], atol=0.17)


def test_features_that_matter_are_selected_and_nothing_else() -> None:
    X, y = planted()
    selector = NeuralGreedyPursuit(**QUICK).fit(X, y)
    assert sorted(selector.order_) == [3, 8]
    assert [step.kept for step in selector.path_] == [True, True, True, False]
    assert [each <= 0.01 for each in p_values(selector)] == [True, True, False]
    assert "the last step is not significant, p = " in selector.stop_reason_
    for settings in ({"n_features_to_select": 2}, {"tol": 0.1}, {"stop": "plateau"}):
        assert np.isnan(p_values(NeuralGreedyPursuit(**QUICK, **settings).fit(X, y))).all()


def test_columns_that_depend_on_the_selection_by_their_squares_say_nothing_new() -> None:
    """Without them, a real column knows more of the selection than a drawn one, and is selected."""

    def n_selected(seed: int) -> int:
        rng = np.random.default_rng(seed)
        relevant = rng.normal(size=(150, 1))
        X = np.hstack([relevant, relevant**2 * (1 + 0.5 * rng.normal(size=(150, 20))) + rng.normal(size=(150, 20))])
        y = np.tanh(2 * relevant[:, 0]) + 0.3 * rng.normal(size=150)
        return len(NeuralGreedyPursuit(**QUICK).fit(X, y).order_)

    assert sum(n_selected(seed) > 1 for seed in range(8)) <= 1


@pytest.mark.parametrize(
    "settings",
    [
        {"predictor": Ridge()},
        {"groups": np.arange(30) // 2},
        {"screen": 10},
        {"fixed": [8]},
        {"n_features_to_select": 1, "stop": "auto"},
    ],
    ids=["an estimator", "groups", "screening", "fixed columns", "a number beside it"],
)
def test_it_works_with_everything(settings: dict[str, Any]) -> None:
    X, y = planted(seed=1)
    selector = NeuralGreedyPursuit(**{**QUICK, **settings}).fit(X, y + X[:, 3])
    assert len(selector.order_) in (1, 2)
    assert np.isfinite(p_values(selector)).all()


def test_jobs_storage_and_memory_change_no_p_value(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = planted()
    X[np.abs(X) < 0.5] = 0
    expected = p_values(NeuralGreedyPursuit(**QUICK).fit(X, y))
    assert p_values(NeuralGreedyPursuit(**QUICK).fit(csc_array(X), y)) == expected
    assert p_values(NeuralGreedyPursuit(**QUICK, n_jobs=2).fit(X, y)) == expected
    monkeypatch.setattr(significance, "KEPT_BYTES", 0)  # columns are drawn whenever they are read
    assert p_values(NeuralGreedyPursuit(**QUICK).fit(X, y)) == expected


def weak(seed: int) -> tuple[Any, Any]:
    """Six columns that say a little each, among thirty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 30))
    return X, X[:, :6].sum(axis=1) + 4 * rng.normal(size=200)


def test_small_gains_add_up() -> None:
    X, y = weak(8)
    with pytest.warns(UserWarning, match="Nothing was selected"):
        alone = NeuralGreedyPursuit(stop=Significance(patience=1), **QUICK).fit(X, y)
    together = NeuralGreedyPursuit(**QUICK).fit(X, y)
    assert len(alone.order_) == 0
    assert set(together.order_) <= set(range(6))
    assert [each <= 0.01 for each in p_values(together)] == [False, False, True, False, False, False]
    assert [step.kept for step in together.path_[1:]] == [True, True, True, False, False, False]
    # If another part of the rule ends the pursuit before, steps that aren't proven are not selected.
    with pytest.warns(UserWarning, match="Nothing was selected"):
        few = NeuralGreedyPursuit(n_features_to_select=2, stop="auto", **QUICK).fit(X, y)
    assert [step.kept for step in few.path_] == [True, False, False]
    assert few.stop_reason_ == "2 of at most 2 features are selected"


def test_draws_go_on_after_a_checkpoint_to_the_same_p_values(tmp_path: Path) -> None:
    X, y = weak(8)
    whole = NeuralGreedyPursuit(**QUICK).fit(X, y)
    for n_made, how in ((1, None), (2, KeyboardInterrupt())):
        file = tmp_path / f"after {n_made}"
        selector = NeuralGreedyPursuit(**QUICK, checkpoint=file).set_callbacks(OnStep(stop_after(n_made, how)))
        with pytest.warns(UserWarning, match="Nothing was selected"):
            cut = selector.fit(X, y)
        assert [step.kept for step in cut.path_] == [True] + [False] * n_made  # they aren't proven yet
        resumed = NeuralGreedyPursuit(**QUICK, checkpoint=file).fit(X, y)
        assert seen(resumed.path_) == seen(whole.path_)
        np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
