"""A method on a fold: nothing seen of the test rows, scores as by hand, a row for every failure."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison_cases import ALPHAS, FAST, First, Spy, make_data, ridge, splits
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import RFE, SelectKBest, SelectorMixin, f_classif
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifierCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit, baselines, compare, comparison
from ngp.baselines.base import require
from ngp.baselines.downstream import PredictorEstimator

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _forget() -> None:
    for memory in (First.seen, Spy.trained, Spy.asked):
        memory.clear()


def test_all_methods_select_on_the_same_training_rows_and_are_judged_on_the_others() -> None:
    X, y = make_data()
    compare(X, y, {"a": First(2), "b": First(3)}, cv=4, downstream={"spy": Spy()}, random_state=7)
    folds = splits(60, 4, 7)
    assert len(First.seen) == len(Spy.trained) == len(Spy.asked) == 8
    for call in range(8):
        train, test = folds[call % 4]
        columns = slice(2 if call < 4 else 3)
        np.testing.assert_array_equal(First.seen[call][0], X[train])
        np.testing.assert_array_equal(First.seen[call][1], y[train])
        np.testing.assert_array_equal(Spy.trained[call], X[train, columns])
        np.testing.assert_array_equal(Spy.asked[call], X[test, columns])


def test_scores_of_a_regression_are_those_by_hand() -> None:
    X, y = make_data()
    table = compare(X, y, ["lasso"], k=2, cv=3, random_state=0)
    by_hand: dict[str, list[float]] = {"own": [], "ridge": [], "random-forest": [], "ssfn": []}
    for train, test in splits(60, 3, 0):
        lasso = baselines.registry["lasso"](n_features_to_select=2).fit(X[train], y[train])
        estimators = {
            "own": lasso.own_estimator(),
            "ridge": ridge(),
            "random-forest": RandomForestRegressor(100, random_state=0),
            "ssfn": PredictorEstimator("ssfn", random_state=0),
        }
        for name, estimator in estimators.items():
            predictions = estimator.fit(lasso.transform(X[train]), y[train]).predict(lasso.transform(X[test]))
            by_hand[name].append(float(r2_score(y[test], predictions)))
    for name, scores in by_hand.items():
        assert table.loc["lasso", name] == pytest.approx(np.mean(scores))
        assert table.loc["lasso", f"{name}_std"] == pytest.approx(np.std(scores, ddof=1))
    assert table.loc["lasso", ["status", "n_selected", "agreement"]].tolist() == ["ok", 2, 1]
    assert table.loc["lasso", "selected"] == [1, 2]
    assert table.loc["lasso", "seconds"] > 0


def test_scores_of_classes_are_those_by_hand() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], np.array(["bad", "good"])[y[:150]]
    table = compare(X, y, SelectKBest(k=4), cv=3, downstream="ridge", random_state=1)
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        chosen = np.argsort(-f_classif(X[train], y[train])[0])[:4]
        classifier = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=ALPHAS)).fit(
            X[train][:, chosen], y[train]
        )
        scores.append(np.mean(classifier.predict(X[test][:, chosen]) == y[test]))
    assert table.loc["SelectKBest", "ridge"] == pytest.approx(np.mean(scores))
    assert table.loc["SelectKBest", "ridge"] > 0.8


def test_the_own_predictor_of_a_selector_that_predicts_is_the_selector() -> None:
    X, y = make_data()
    pursuit = NeuralGreedyPursuit(FAST, n_features_to_select=2, random_state=0)
    methods = {"pursuit": pursuit, "rfe": RFE(LinearRegression(), n_features_to_select=2)}
    table = compare(X, y, methods, cv=3, downstream="own", random_state=0)
    for label, selector in methods.items():
        fits = [(selector.fit(X[train], y[train]).predict(X[test]), y[test]) for train, test in splits(60, 3, 0)]
        assert table.loc[label, "own"] == pytest.approx(np.mean([r2_score(truth, found) for found, truth in fits]))


def test_methods_without_a_predictor_have_no_own_score() -> None:
    X, y = make_data()
    table = compare(X, y, ["correlation", "all", First()], cv=3, downstream=["own"], random_state=0)
    assert table["own"].isna().all()
    assert table["own_std"].isna().all()
    assert table["status"].tolist() == ["ok"] * 3


def test_scorers_of_probabilities_reach_the_pursuit_too() -> None:
    X, y = make_data(80)
    y = np.where(y > 0, "yes", "no")
    pursuit = NeuralGreedyPursuit(FAST, n_features_to_select=1, random_state=0)
    downstream = ["own", "ridge", "ssfn"]
    table = compare(X, y, [pursuit], cv=2, downstream=downstream, scoring="roc_auc", random_state=0)
    areas = []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        probabilities = pursuit.fit(X[train], y[train]).predict_proba(X[test])
        areas.append(roc_auc_score(y[test] == "yes", probabilities[:, 1]))
    assert table.loc["NeuralGreedyPursuit", "own"] == pytest.approx(np.mean(areas))
    assert table["status"].tolist() == ["ok"]
    assert (table[["ridge", "ssfn"]] > 0.8).all(axis=None)


def frame_with_categories(kind: str) -> Any:
    rng = np.random.default_rng(0)
    columns = {
        "noise": rng.normal(size=90),
        "town": rng.choice(["Bonn", "Kiel", "Ulm"], 90),
        "age": rng.integers(20, 60, 90),
        "flag": rng.random(90) > 0.5,
    }
    if kind == "pandas":
        return pd.DataFrame(columns).astype({"town": "category"})
    polars = pytest.importorskip("polars")
    return polars.DataFrame(columns).with_columns(polars.col("town").cast(polars.Categorical))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_with_categories(kind: str) -> None:
    X = frame_with_categories(kind)
    y = 5.0 * (np.asarray(X["town"]).astype(str) == "Kiel") + 0.1 * np.asarray(X["age"])
    methods = ["ngp", "lasso", "all", SelectKBest(k=1)]
    table = compare(X, y, methods, k=2, cv=3, downstream=["own", "ridge"], random_state=0)
    assert table["status"].tolist()[:3] == ["ok"] * 3
    assert table["status"].tolist()[3].startswith("ValueError: ")  # it takes no categories
    assert sorted(table.loc["ngp", "selected"]) == sorted(table.loc["lasso", "selected"]) == ["age", "town"]
    assert table.loc["all", "selected"] == ["noise", "town", "age", "flag"]
    encoded = np.column_stack(
        [np.asarray(X["age"]), *(np.asarray(X["town"]).astype(str) == t for t in ["Bonn", "Kiel", "Ulm"])]
    )
    scores = [
        r2_score(y[test], ridge().fit(encoded[train], y[train]).predict(encoded[test]))
        for train, test in splits(90, 3, 0)
    ]
    assert table.loc["ngp", "ridge"] == pytest.approx(np.mean(scores))


def test_a_category_that_the_training_rows_lack_does_no_harm() -> None:
    X = pd.DataFrame({"a": pd.Categorical(["u", "v"] * 9 + ["w", "w"]), "b": np.arange(20.0)})
    folds = [(np.arange(15), np.arange(15, 20))]
    table = compare(X, np.arange(20.0), "all", cv=folds, downstream=["ridge", "random-forest"], random_state=0)
    assert table["status"].tolist() == ["ok"]


def test_several_outputs() -> None:
    X, y = make_data()
    Y = np.column_stack([y, X[:, 3]])
    methods = ["ngp", "lasso", "random-forest", "gam", "correlation"]
    table = compare(X, Y, methods, k=3, cv=2, downstream=["own", "ridge"], random_state=0)
    assert (table["status"] == "ok").all()
    assert sorted(table.loc["lasso", "selected"]) == [1, 2, 3]
    scores = [
        r2_score(Y[test], ridge().fit(X[train, 1:4], Y[train]).predict(X[test, 1:4]))
        for train, test in splits(60, 2, 0)
    ]
    assert table.loc["lasso", "ridge"] == pytest.approx(np.mean(scores))


def test_several_classes() -> None:
    X, y = make_data(90)
    labels = np.digitize(y, [-2, 2])
    methods = [NeuralGreedyPursuit(FAST), "lasso", "random-forest", "gam"]
    table = compare(X, labels, methods, k=2, cv=2, downstream=["own", "ridge", "ssfn"], random_state=0)
    assert (table["status"] == "ok").all()
    assert (table[["own", "ridge", "ssfn"]] > 0.5).all(axis=None)


def test_where_nothing_is_selected_a_constant_is_predicted() -> None:
    X, y = make_data()
    table = compare(X, y, First(0), cv=3, downstream=["ridge", "ssfn"], random_state=0)
    scores = [r2_score(y[test], np.full(len(test), y[train].mean())) for train, test in splits(60, 3, 0)]
    assert table["status"].tolist() == ["ok"]
    assert table[["ridge", "ssfn"]].to_numpy() == pytest.approx(np.mean(scores))
    frame = pytest.importorskip("polars").DataFrame(X)
    pd.testing.assert_frame_equal(
        compare(frame, y, First(0), cv=3, downstream=["ridge", "ssfn"], random_state=0).drop(columns="seconds"),
        table.drop(columns="seconds"),
    )
    labels = np.where(y > -1, "often", "seldom")
    classes = compare(X, labels, First(0), cv=3, downstream=["ridge", "ssfn"], random_state=0)
    assert classes["ridge"].tolist() == pytest.approx([np.mean(labels == "often")], abs=0.03)


def test_constant_columns_are_no_reason_to_stop() -> None:
    X, y = make_data()
    X[:, 4] = 1.0
    table = compare(
        X, y, ["ngp", "lasso", "correlation", "all"], k=2, cv=2, downstream=["ridge", "ssfn"], random_state=0
    )
    assert (table["status"] == "ok").all()
    assert "constant features" in table.loc["lasso", "warnings"][0]


def test_a_method_that_fails_is_a_row_and_harms_no_other() -> None:
    X, y = make_data()
    methods = {"bad": First(error=ValueError("No.\nNot at all.")), "good": First(), "mute": First(error=KeyError())}
    table = compare(X, y, methods, cv=3, downstream=["ridge"], random_state=0)
    assert table["status"].tolist() == ["ValueError: No.", "ok", "KeyError"]
    alone = compare(X, y, {"good": First()}, cv=3, downstream=["ridge"], random_state=0)
    pd.testing.assert_frame_equal(table.loc[["good"]].drop(columns="seconds"), alone.drop(columns="seconds"))
    assert table.loc["bad", ["n_selected", "ridge", "ridge_std", "seconds", "agreement"]].isna().all()
    assert table.loc["bad", "selected"] == []


def test_a_predictor_that_fails_is_said_and_harms_no_other() -> None:
    downstream = {"odd": LogisticRegression(), "ridge": ridge()}
    table = compare(*make_data(), First(), cv=3, downstream=downstream, random_state=0)
    assert table.loc["First", "status"].startswith("odd: ValueError: Unknown label type: continuous")
    assert table["odd"].isna().all()
    assert table["ridge"].notna().all()


def test_an_interrupt_goes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        compare(*make_data(), First(error=KeyboardInterrupt()), cv=2, random_state=0)


class Needy(baselines.Correlation):
    """Needs a package that nobody has."""

    def fit(self, X: Any, y: Any) -> Any:
        require("no_such_package", "Needy")


def test_a_method_whose_package_is_missing_is_a_row_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "registry", {"needy": Needy})
    table = compare(*make_data(), ["needy"], cv=2, random_state=0)
    expected = "needs no_such_package: install it with pip install 'neural-greedy-pursuit[baselines]'."
    assert table["status"].tolist() == [f"ImportError: Needy {expected}"]


def make_slow(folder: Path) -> Any:
    """A selector that takes its time; its class is made here, so that it travels to other processes as a whole."""

    class Slow(SelectorMixin, BaseEstimator):  # type: ignore[misc]
        def __init__(self, seconds: float = 0, way: str = "return") -> None:
            self.seconds = seconds
            self.way = way

        def fit(self, X: Any, y: Any) -> Any:
            (folder / f"{self.way} {self.seconds}").write_text(str(os.getpid()))
            if self.way == "die":
                os._exit(1)
            time.sleep(self.seconds)
            self.n_features_in_ = X.shape[1]
            return self

        def _get_support_mask(self) -> Any:
            return np.arange(self.n_features_in_) < 2

        def __getstate__(self) -> Any:
            if self.way == "stay":
                raise TypeError("It stays where it is.")
            return super().__getstate__()

    return Slow


def is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    return True


def test_a_method_out_of_its_time_is_killed_and_a_row_that_says_so(tmp_path: Path) -> None:
    X, y = make_data()
    slow = make_slow(tmp_path)
    good = {"quick": slow(), "lasso": "lasso"}
    bad = {"stuck": slow(way="stay"), "late": slow(2), "fatal": slow(way="die")}
    table = compare(X, y, {**bad, **good}, cv=2, downstream=["own", "ridge"], max_time=3, random_state=0)
    statuses = table["status"].tolist()
    assert statuses[0].startswith("PicklingError: ")
    assert statuses[1:] == [
        "out of time: killed after 3 s (1 of 2 folds missing)",
        "crashed: its process died",
        "ok",
        "ok",
    ]
    assert table.loc[list(bad), ["own", "ridge"]].isna().all(axis=None)
    processes = [path.read_text() for path in tmp_path.iterdir()]
    assert len(processes) == 3
    assert str(os.getpid()) not in processes
    assert not any(map(is_running, processes))
    unlimited = compare(X, y, good, cv=2, downstream=["own", "ridge"], random_state=0)
    pd.testing.assert_frame_equal(table.loc[list(good)].drop(columns="seconds"), unlimited.drop(columns="seconds"))
    assert (tmp_path / "return 0").read_text() == str(os.getpid())


def test_warnings_are_kept_and_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    table = compare(*make_data(), First(warning="Call {} was odd.\nVery."), cv=3, downstream="ridge", random_state=0)
    assert table["warnings"].tolist() == [["UserWarning: Call 1 was odd."]]
    assert not [warning for warning in recwarn if "odd" in str(warning.message)]
