"""The scikit-learn face: one path, cut elsewhere without a new search, and the ranks of all columns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_cases import FLOATING

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor
from ngp.greedy.candidates import Search
from ngp.greedy.stopping import Cut, FirstOf, MaxFeatures, MaxFits, Plateau, Significance
from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 7))
Y = 3 * X[:, 4] + np.abs(X[:, 1]) + 0.3 * X[:, 6] + 0.2 * rng.normal(size=90)


def make(kind: type[NeuralGreedyPursuit] = NGPRegressor, **settings: Any) -> Any:
    return kind(FAST, **{"random_state": 0, **settings})


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_cut_is_the_selector_that_a_fit_of_that_size_gives(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = make(stop=MaxFeatures(number)).fit(X, Y)
    whole = make(stop=MaxFeatures(5)).fit(X, Y)
    before = repr(whole.path_), whole.predict(X)
    monkeypatch.setattr(Search, "best", lambda *_: pytest.fail("a cut searches again"))
    found = whole.cut(number, X, Y)
    assert type(found) is NGPRegressor
    assert found.order_.tolist() == expected.order_.tolist() == whole.order_[:number].tolist()
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_array_equal(found.feature_importances_, expected.feature_importances_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(found.losses_, whole.losses_)
    assert [step.kept for step in found.path_] == [place <= number for place in range(6)]
    assert repr(found.path_).count("taken back") == 5 - number
    assert (repr(whole.path_), whole.predict(X).tolist()) == (before[0], before[1].tolist())
    np.testing.assert_array_equal(found.cut(5, X, Y).predict(X), whole.predict(X))  # nothing of the path is lost


def test_what_only_selects_is_cut_without_data() -> None:
    selector = make(NeuralGreedyPursuit, n_features_to_select=4).fit(X, Y)
    selector.measure_stability(X, Y, n_halves=2)
    two = selector.cut(2)
    assert type(two) is NeuralGreedyPursuit
    np.testing.assert_array_equal(two.transform(X), X[:, np.sort(selector.order_[:2])])
    assert selector.support_.sum() == 4
    assert not hasattr(two, "stability_")  # it is that of the other selection
    assert selector.cut(0).support_.sum() == 0
    beside = make(NeuralGreedyPursuit, n_features_to_select=4, fixed=[0]).fit(X, Y).cut(2)
    assert np.flatnonzero(beside.support_).tolist() == [0, 4]  # fixed columns count


def test_both_answers_of_the_default_path_are_known() -> None:
    noisy = Y + 2 * np.random.default_rng(1).normal(size=90)
    selector = make().fit(X, noisy)
    assert list(selector.cuts_) == ["significant", "best"]
    assert selector.cuts_["significant"] == len(selector.order_)
    best = make(stop="plateau").fit(X, noisy)
    assert best.cuts_ == selector.cuts_
    assert selector.cut("best", X, noisy).order_.tolist() == best.order_.tolist()
    assert best.cut("significant", X, noisy).order_.tolist() == selector.order_.tolist()
    assert selector.cuts_["best"] == len(best.order_)
    classes = np.where(noisy > 0, "high", "low")
    classifier = make(NGPClassifier).fit(X, classes)
    other = classifier.cut("best", X, classes)
    assert other.predict_proba(X).shape == (90, 2)
    assert other.support_.sum() == classifier.cuts_["best"]


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_cuts_that_no_rule_knows_are_absent() -> None:
    assert make(n_features_to_select=2).fit(X, Y).cuts_ == {}
    assert make(tol=0.1).fit(X, Y).cuts_ == {}
    assert list(make(stop=Plateau()).fit(X, Y).cuts_) == ["best"]
    early = make(stop=FirstOf([Cut([Significance(), Plateau()]), MaxFits(1)])).fit(X, Y)
    assert early.partial_
    assert early.cuts_ == {}
    every = make(stop=Cut([Significance(), Plateau()])).fit(X[:, [1, 4]], Y)  # no candidate is left
    assert every.cuts_ == {"significant": 2, "best": 2}


@pytest.mark.parametrize("name", FLOATING)
def test_a_path_with_drops_and_exchanges_is_cut_at_selections_that_stood(name: str) -> None:
    case = FLOATING[name]()
    whole, sizes = case.selector, {step.n_selected for step in case.selector.path_}
    for size in sizes:
        found = whole.cut(size, case.X, case.y)
        assert len(found.order_) == found.support_.sum() == size
        assert sorted(found.order_) == np.flatnonzero(found.support_).tolist()
        end = max(number for number, step in enumerate(found.path_) if step.kept)
        assert found.path_[end].n_selected == size
    same = whole.cut(len(whole.order_), case.X, case.y)
    assert same.order_.tolist() == whole.order_.tolist()
    assert [step.kept for step in same.path_] == [step.kept for step in whole.path_]
    for cut, size in whole.cuts_.items():
        assert len(whole.cut(cut, case.X, case.y).order_) == size


def test_the_final_predictor_of_a_cut_is_that_of_the_fit_whatever_its_seed() -> None:
    for seed in (None, np.random.RandomState(3)):
        selector = make(random_state=seed, n_features_to_select=3).fit(X, Y)
        np.testing.assert_array_equal(selector.cut(3, X, Y).predict(X), selector.predict(X))


def test_a_cut_shares_nothing_that_can_be_set() -> None:
    for kind, data in ((NGPRegressor, (X, Y)), (NeuralGreedyPursuit, ())):
        whole = make(kind, n_features_to_select=2).set_output(transform="default").fit(X, Y)
        whole.cut(1, *data).set_output(transform="pandas")
        assert type(whole.transform(X)) is np.ndarray


def test_a_path_of_other_candidates_is_refused() -> None:
    others: list[dict[str, Any]] = [
        {"groups": [[column] for column in range(6, -1, -1)]},
        {"groups": [[0, 1], [4], [6]]},
        {"groups": None, "fixed": [0]},
    ]
    for settings in others:
        selector = make(n_features_to_select=2).fit(X, Y).set_params(**settings)
        for use in (partial(selector.cut, 1), selector.measure_chance, partial(selector.measure_stability, n_halves=2)):
            with pytest.raises(ValueError, match=r"^groups or fixed are others than in fit: set them to what they"):
                use(X, Y)
    with pytest.raises(ValueError, match="X has other columns or categories than in fit"):
        make(n_features_to_select=2).fit(X, Y).measure_chance(X[:, :4], Y)


def test_what_cannot_be_cut_is_refused() -> None:
    selector = make(n_features_to_select=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"NGPRegressor\.cut trains the predictor again, .*: give X and y\.$"):
        selector.cut(2)
    with pytest.raises(ValueError, match=r"k=4 is no number of features on this path: give one from 0 to 3, or fit"):
        selector.cut(4, X, Y)
    for k in (-1, 1.5, None):
        with pytest.raises(ValueError, match=f"k={k} is no number of features on this path"):
            selector.cut(k, X, Y)
    with pytest.raises(ValueError, match=r"k='best' is no cut that the stop rule .* knows: give a number of features"):
        selector.cut("best", X, Y)
    with pytest.raises(ValueError, match=r"k='last' is no cut .* knows: give 'significant' or 'best' or a number"):
        make().fit(X, Y).cut("last", X, Y)
    with pytest.raises(ValueError, match="X has other columns or categories than in fit"):
        selector.cut(2, X[:, :6], Y)
    frame = pd.DataFrame({"town": pd.Categorical(["a", "b", "c"] * 30), "x": X[:, 4]})
    towns = make(n_features_to_select=2).fit(frame, Y)
    with pytest.raises(ValueError, match="X has other columns or categories than in fit"):
        towns.cut(1, frame.assign(town=pd.Categorical(["a", "b"] * 45)), Y)


# ---------------------------------------------------------------- ranks


def test_ranks_go_on_from_the_order_by_the_loss_after_the_selection() -> None:
    selector = make(tol=0.05).fit(X, Y)
    number, after = len(selector.order_), selector.losses_[len(selector.order_)]
    assert sorted(selector.ranking_) == list(range(1, 8))
    assert np.argsort(selector.ranking_)[:number].tolist() == selector.order_.tolist()
    others = np.flatnonzero(np.isfinite(after))
    assert np.argsort(selector.ranking_)[number:].tolist() == others[np.argsort(after[others])].tolist()
    exact = make(n_features_to_select=2).fit(X, Y)  # there is no step after the selection
    last = exact.losses_[-1].copy()
    last[exact.order_[-1]] = np.nan
    assert np.argsort(exact.ranking_)[2:].tolist() == np.argsort(last)[:5].tolist()
    assert exact.cut(1, X, Y).ranking_[exact.order_[1]] <= 3


def test_groups_share_ranks_and_what_is_no_candidate_comes_last() -> None:
    grouped = make(groups=[[4, 0], [1], [2, 3], [6, 5]], n_features_to_select=2).fit(X, Y)
    ranks = grouped.ranking_
    assert ranks[4] == ranks[0] == 1
    assert ranks[1] == 2
    assert sorted({ranks[2], ranks[6]}) == [3, 4]
    assert (ranks[2], ranks[6]) == (ranks[3], ranks[5])
    with pytest.warns(UserWarning, match="constant features"):
        fixed = make(fixed=[0], n_features_to_select=3).fit(np.column_stack([X, np.ones(90)]), Y)
    assert fixed.ranking_[0] == fixed.ranking_[fixed.order_[0]] == 1
    assert fixed.ranking_[fixed.order_[1]] == 2
    assert fixed.ranking_.argmax() == 7
    outside = make(groups=[[4], [1]], n_features_to_select=1).fit(X, Y)
    assert outside.ranking_.tolist() == [3, 2, 3, 3, 1, 3, 3]
    shared = make(groups=[[4, 1], [1, 0], [2, 3]], n_features_to_select=1).fit(X, Y)
    assert shared.ranking_[[4, 1]].tolist() == [1, 1]
    assert set(shared.ranking_[[0, 2]]) == {2, 3}


# ---------------------------------------------------------------- the path as a table


def test_the_path_is_a_sequence_and_a_table() -> None:
    selector = make(tol=0.05).fit(X, Y)
    path = selector.path_
    assert len(path) == len(list(path)) == len(selector.losses_) + 1
    assert path[-1] is list(path)[-1]
    assert path[1:3] == (path[1], path[2])
    table = path.to_frame()
    assert table.index.name == "step"
    assert table["name"].tolist() == [step.name for step in path]
    np.testing.assert_array_equal(table["loss"], [step.loss for step in path])
    assert table.query("kept")["group"].dropna().tolist() == selector.order_.tolist()
    assert not {"losses", "columns", "fold_losses"} & set(table.columns)
    lines = repr(path).splitlines()
    assert lines[0] == f"Path of {len(path) - 1} steps (loss ± standard error):"
    assert [line.split()[:3] for line in lines[2:]] == [[str(k), "add", s.name] for k, s in enumerate(path[1:], 1)]
    assert [line.endswith("taken back") for line in lines[1:]] == [not step.kept for step in path]


def test_a_step_has_a_short_repr_however_many_rows_there_are() -> None:
    step = make(NeuralGreedyPursuit, n_features_to_select=1, cv="loo").fit(X, Y).path_[1]
    assert step.fold_losses.shape == (90,)
    assert "name='x4'" in repr(step)
    assert len(repr(step)) < 800


def test_a_long_path_has_a_short_repr() -> None:
    wide = np.random.default_rng(0).normal(size=(40, 30))
    path = make(NeuralGreedyPursuit, n_features_to_select=30, cv=2).fit(wide, wide[:, 0]).path_
    lines = repr(path).splitlines()
    assert len(lines) == 22
    assert [line.split()[0] for line in lines[9:13]] == ["8", "9", "…", "21"]
    assert max(map(len, lines)) < 80


def test_a_table_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(n_features_to_select=1).fit(X, Y).path_
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^path_\.to_frame\(\) needs pandas: install it with pip install pandas\.$"):
        path.to_frame()
