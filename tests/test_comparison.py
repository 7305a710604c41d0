"""Methods side by side: what may be given, the same folds for all, the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from comparison_cases import First, Spy, make_data, ridge, splits
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import ShuffleSplit

import ngp
from ngp import baselines, comparison
from ngp.comparison import compare, summarise

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _forget() -> None:
    for memory in (First.seen, Spy.trained, Spy.asked):
        memory.clear()


@pytest.mark.parametrize("cv", [ShuffleSplit(3, test_size=0.3, random_state=1), splits(60, 3, 5), 0.25])
def test_folds_may_be_a_splitter_splits_or_a_share(cv: Any) -> None:
    X, y = make_data()
    folds = compare(X, y, First(), cv=cv, downstream=Spy(), per_fold=True, random_state=0)
    expected = list(cv.split(X)) if hasattr(cv, "split") else cv
    if isinstance(expected, float):
        assert [len(asked) for asked in Spy.asked] == [15]
        return
    assert len(folds) == 3
    for (train, test), (seen, _), asked in zip(expected, First.seen, Spy.asked, strict=True):
        np.testing.assert_array_equal(seen[:, 0], np.sort(train))
        np.testing.assert_array_equal(asked[:, 0], test)


def test_a_scorer_may_be_given() -> None:
    X, y = make_data()
    table = compare(X, y, "all", cv=3, downstream="ridge", scoring="neg_mean_squared_error", random_state=0)
    errors = [
        np.mean((ridge().fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2) for train, test in splits(60, 3, 0)
    ]
    assert table.loc["all", "ridge"] == pytest.approx(-np.mean(errors))


def test_k_goes_to_names_and_to_selectors_without_a_number() -> None:
    X, y = make_data()
    lasso = baselines.registry["lasso"]
    methods = {"name": "lasso", "free": lasso(), "set": lasso(n_features_to_select=1), "first": First(4), "all": "all"}
    table = compare(X, y, methods, k=3, cv=3, downstream=["own"], random_state=0)
    assert table["n_selected"].tolist() == [3, 3, 1, 4, 6]
    share = compare(X, y, ["lasso"], k=0.5, cv=3, downstream=["own"], random_state=0)
    assert share["n_selected"].tolist() == [3]
    free = compare(X, y, {"name": "lasso", "free": lasso()}, cv=3, downstream=["own"], random_state=0)
    assert free.loc["name", "n_selected"] == free.loc["free", "n_selected"]


def test_given_selectors_and_estimators_stay_untouched() -> None:
    X, y = make_data()
    lasso, estimator = baselines.registry["lasso"](), LinearRegression()
    compare(X, y, [lasso], k=2, cv=3, downstream=[estimator], random_state=0)
    assert lasso.n_features_to_select is None
    assert not hasattr(lasso, "support_")
    assert not hasattr(estimator, "coef_")


def test_all_known_methods_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: baselines.registry[name] for name in ("correlation", "lasso")}
    monkeypatch.setattr(comparison, "registry", few)
    X, y = make_data()
    table = compare(X, y, k=1, cv=2, downstream=["ridge"], random_state=0)
    assert table.index.tolist() == ["all", "ngp", "correlation", "lasso"]
    assert table.index.name == "method"
    assert (table["status"] == "ok").all()


def test_named_methods_get_task_seed_and_jobs() -> None:
    X, y = make_data()
    made = comparison._make_selector(
        "random-forest", {"n_features_to_select": 2, "task": "regression", "n_jobs": 2, "random_state": 5}
    )
    assert (made.n_features_to_select, made.task, made.n_jobs, made.random_state) == (2, "regression", 2, 5)
    table = compare(
        X, y.round(), {"a": "random-forest"}, k=2, cv=2, downstream="own", task="regression", random_state=0
    )
    assert table["status"].tolist() == ["ok"]
    assert table.loc["a", "own"] > 0.5


def test_one_seed_one_answer() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {"methods": ["ngp", "random-forest"], "k": 2, "cv": 2, "downstream": "own"}
    tables = [compare(X, y, **settings, random_state=seed).drop(columns="seconds") for seed in (3, 3, 4)]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    assert tables[0]["own"].tolist() != tables[2]["own"].tolist()
    settings["methods"] = "random-forest"
    drawn = [compare(X, y, **settings, random_state=np.random.RandomState(0)).drop(columns="seconds") for _ in "ab"]
    pd.testing.assert_frame_equal(*drawn)


def test_only_failing_methods_make_a_table_too() -> None:
    table = compare(*make_data(), {"bad": First(error=ValueError("No."))}, cv=2, random_state=0)
    assert table["status"].tolist() == ["ValueError: No."]
    assert table[["own", "ridge", "seconds"]].isna().all(axis=None)


class Fickle(First):
    """Fails on the second fold."""

    def fit(self, X: Any, y: Any) -> First:
        super().fit(X, y)
        if len(First.seen) == 2:
            raise RuntimeError("Not today.")
        return self


def test_a_row_that_fails_on_some_folds_has_no_mean_over_the_others() -> None:
    X, y = make_data()
    folds = compare(X, y, Fickle(), cv=3, downstream=["ridge"], per_fold=True, random_state=0)
    assert folds["status"].tolist() == ["ok", "RuntimeError: Not today.", "ok"]
    assert folds["ridge"].isna().tolist() == [False, True, False]
    row = summarise(folds).loc["Fickle"]
    assert row["status"] == "RuntimeError: Not today. (1 of 3 folds missing)"
    assert np.isnan(row["ridge"])
    assert (row["n_selected"], row["agreement"], row["selected"]) == (2, 1, [0, 1])


def stability(selections: list[list[int]], n_features: int) -> float:
    """Definition 4 and Theorem 1 of Nogueira et al., with the matrix of selections."""
    chosen = np.zeros((len(selections), n_features))
    for fold, columns in enumerate(selections):
        chosen[fold, columns] = 1
    mean_size = chosen.sum(axis=1).mean()
    return float(1 - chosen.var(axis=0, ddof=1).mean() / (mean_size / n_features * (1 - mean_size / n_features)))


def folds_of(selections: list[list[int]], n_features: int) -> Any:
    return pd.DataFrame(
        {
            "method": "m", "fold": range(len(selections)), "status": "ok", "n_features": n_features,
            "n_selected": [len(columns) for columns in selections], "ridge": 0.5, "seconds": 0.1,
            "selected": selections, "warnings": [[] for _ in selections],
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "selections", [[[0, 1], [0, 2], [0, 1, 3]], [[0], [1], [2]], [[0, 1], [0, 1]], [[], [2, 3], [2]], [[0, 1, 2], [1]]]
)
def test_agreement_is_the_stability_of_nogueira_et_al(selections: list[list[int]]) -> None:
    assert summarise(folds_of(selections, 5)).loc["m", "agreement"] == pytest.approx(stability(selections, 5))


def test_agreement_is_corrected_for_chance() -> None:
    assert summarise(folds_of([[0, 3], [0, 3]], 4)).loc["m", "agreement"] == 1
    rng = np.random.default_rng(0)
    random = [rng.choice(10, 8, replace=False).tolist() for _ in range(400)]
    assert abs(summarise(folds_of(random, 10)).loc["m", "agreement"]) < 0.01


@pytest.mark.parametrize("selections", [[[0, 1], [0, 1]], [[], []], [[0]]])
def test_agreement_is_missing_where_there_is_no_choice(selections: list[list[int]]) -> None:
    assert math.isnan(summarise(folds_of(selections, 2)).loc["m", "agreement"])


def test_features_of_more_than_half_of_the_folds_are_selected_the_most_frequent_first() -> None:
    table = summarise(folds_of([[0, 1, 2], [2, 3], [1, 2], [1, 4]], 6))
    assert table.loc["m", "selected"] == [1, 2]
    assert summarise(folds_of([[1, 2], [2, 4]], 6)).loc["m", "selected"] == [2]


def test_scores_are_numbers_even_where_there_are_none() -> None:
    folds = compare(*make_data(), First(), cv=2, downstream="own", per_fold=True, random_state=0)
    assert folds["own"].dtype == float


def test_folds_and_their_summary_belong_together() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {"methods": ["lasso", "all"], "k": 2, "cv": 3, "downstream": ["own", "ridge"]}
    folds = compare(X, y, **settings, per_fold=True, random_state=0)
    table = compare(X, y, **settings, random_state=0)
    pd.testing.assert_frame_equal(summarise(folds).drop(columns="seconds"), table.drop(columns="seconds"))
    assert set(folds[["n_selected", "own", "ridge", "seconds"]].dtypes) == {np.dtype(float)}
    assert folds["method"].tolist() == ["lasso"] * 3 + ["all"] * 3
    assert folds["fold"].tolist() == [0, 1, 2] * 2
    assert folds["selected"].tolist() == [[1, 2]] * 3 + [[0, 1, 2, 3, 4, 5]] * 3
    assert table.columns.tolist() == [
        "status", "n_selected", "own", "own_std", "ridge", "ridge_std", "seconds", "agreement", "selected", "warnings"
    ]  # fmt: skip


def test_a_column_of_targets_is_as_good_as_a_vector() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {"methods": "lasso", "k": 2, "cv": 2, "downstream": "random-forest", "random_state": 0}
    one, other = (compare(X, each, **settings).drop(columns="seconds") for each in (y, y[:, None]))
    pd.testing.assert_frame_equal(one, other)
    assert one.loc["lasso", "warnings"] == []


def test_verbose_prints_a_line_per_method_and_fold(capsys: pytest.CaptureFixture[str]) -> None:
    methods = {"first": First(), "bad": First(error=ValueError("No."))}
    compare(*make_data(), methods, cv=2, downstream=["own", "ridge"], verbose=1, random_state=0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("[ngp] first            fold 2 of 2  2 selected  0.0 s  ridge -0.")
    assert lines[2] == "[ngp] bad              fold 1 of 2  ValueError: No."
    compare(*make_data(), First(), cv=2, downstream=["ridge"], random_state=0)
    assert not capsys.readouterr().out


def test_the_package_shows_it() -> None:
    assert ngp.compare is compare
    assert ngp.baselines is baselines


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"methods": "lassso"}, ValueError, r"methods has 'lassso', which is unknown: use one of all, ngp, drop"),
        ({"methods": 3}, TypeError, "methods=3 is neither a list nor a mapping: give one of them"),
        ({"methods": []}, ValueError, "methods is empty: give at least one"),
        ({"methods": [LinearRegression()]}, TypeError, r"methods has LinearRegression\(\), which is no selector: give"),
        ({"methods": [SelectKBest]}, TypeError, "which is no selector: give names, or objects with get_support"),
        ({"methods": ["ngp", "ngp"]}, ValueError, "methods has two of the name 'ngp': give a mapping with labels"),
        ({"downstream": ["svm"]}, ValueError, "downstream has 'svm', which predicts nothing: use own, ridge, ran"),
        ({"downstream": [Spy]}, ValueError, "which predicts nothing: use own, ridge, random-forest, ssfn or est"),
        ({"downstream": {"status": Spy()}}, ValueError, "downstream has the label 'status', which is a column of"),
        ({"downstream": {"a": Spy(), "a_std": Spy()}}, ValueError, "downstream has the label 'a_std', which is a"),
        ({"k": 7}, ValueError, "k=7 is more than the 6 features of X: give at most 6"),
        ({"k": 0}, ValueError, "k=0 is no number of features: give a whole number, a share up to 1.0, or None"),
        ({"k": 1.5}, ValueError, "k=1.5 is no number of features"),
        ({"k": True}, ValueError, "k=True is no number of features"),
        ({"k": "few"}, ValueError, "k='few' is no number of features"),
        ({"max_time": 0}, ValueError, "max_time=0 is no time limit: give seconds above 0, or None"),
        ({"max_time": "1 h"}, ValueError, "max_time='1 h' is no time limit"),
        ({"task": "ranking"}, ValueError, "task='ranking' is unknown: use 'auto', 'regression' or 'classification'"),
        ({"scoring": "goodness"}, ValueError, "scoring='goodness' is unknown: sklearn.metrics.get_scorer_names"),
        ({"cv": 100}, ValueError, "cv=100 folds don't fit 60 samples"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_at_once(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compare(*make_data(), **{"methods": First(), "random_state": 0, **settings})
    assert not First.seen


def test_unsuitable_data_are_refused_at_once() -> None:
    X, y = make_data()
    gap = X.copy()
    gap[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN: drop rows or columns with gaps, or fill them"):
        compare(gap, y, First())
    with pytest.raises(ValueError, match="Input y contains NaN"):
        compare(X, np.where(y > 1, np.nan, y), First())
    with pytest.raises(ValueError, match="y holds a single value, 'a': there are no classes to tell apart"):
        compare(X, np.full(60, "a"), First())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare(X, y[1:], First())
    with pytest.raises(ValueError, match="neither numbers nor categories, 'a'"):
        compare(pd.DataFrame({"a": ["u", "v"] * 30}), y, First())
    assert not First.seen


def test_without_pandas_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngp.baselines.base.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r"ngp.compare needs pandas: install it with pip install 'neural-greedy-p.*\]'\."
    ):
        compare(*make_data())
