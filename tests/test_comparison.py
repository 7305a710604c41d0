"""Methods side by side: the same folds for all, test rows unseen, scores as by hand, a row for every failure."""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SelectorMixin, f_classif
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit, baselines, comparison
from ngp.baselines.base import PredictorEstimator
from ngp.comparison import compare, summarise
from ngp.predictors import SSFN

pd = pytest.importorskip("pandas")

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)
ALPHAS = np.logspace(-3, 3, 13)


class First(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects the first so many columns, and remembers what it was given."""

    seen: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(self, number: int = 2, error: BaseException | None = None, warning: str = "") -> None:
        self.number = number
        self.error = error
        self.warning = warning

    def fit(self, X: Any, y: Any) -> First:
        self.n_features_in_ = X.shape[1]
        First.seen.append((np.asarray(X), np.asarray(y)))
        if self.warning:
            warnings.warn(self.warning.format(len(First.seen)), stacklevel=2)
        if self.error is not None:
            raise self.error
        return self

    def _get_support_mask(self) -> Any:
        return np.arange(self.n_features_in_) < self.number


class Spy(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts zero, and remembers what it was trained on and asked for."""

    trained: ClassVar[list[Any]] = []
    asked: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any) -> Spy:
        Spy.trained.append(np.asarray(X))
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        Spy.asked.append(np.asarray(X))
        return np.zeros(len(X))


def make_data(n_samples: int = 60, n_columns: int = 6) -> tuple[Any, Any]:
    """Column 0 numbers the rows; y comes from columns 1 and 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_columns))
    X[:, 0] = np.arange(n_samples)
    return X, 3 * X[:, 2] + X[:, 1] + 0.1 * rng.normal(size=n_samples)


def splits(n_samples: int, n_folds: int, seed: int) -> list[tuple[Any, Any]]:
    return list(KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros((n_samples, 1))))


def ridge() -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS))


@pytest.fixture(autouse=True)
def _forget() -> None:
    for memory in (First.seen, Spy.trained, Spy.asked):
        memory.clear()


# A method on a fold


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


def test_the_same_columns_are_judged_once() -> None:
    table = compare(*make_data(), {"a": First(2), "b": First(2), "c": First(3)}, cv=4, downstream=Spy(), random_state=7)
    assert len(Spy.trained) == 8
    assert table.loc["a", "Spy"] == table.loc["b", "Spy"]


def test_scores_of_a_regression_are_those_by_hand() -> None:
    X, y = make_data()
    table = compare(X, y, ["lasso"], n_features_to_select=2, cv=3, random_state=0)
    by_hand: dict[str, list[float]] = {"ridge": [], "random-forest": [], "ssfn": []}
    for train, test in splits(60, 3, 0):
        lasso = baselines.registry["lasso"](n_features_to_select=2).fit(X[train], y[train])
        estimators = {
            "ridge": ridge(),
            "random-forest": RandomForestRegressor(100, random_state=0),
            "ssfn": PredictorEstimator("ssfn", random_state=0),
        }
        for name, estimator in estimators.items():
            predictions = estimator.fit(lasso.transform(X[train]), y[train]).predict(lasso.transform(X[test]))
            by_hand[name].append(float(r2_score(y[test], predictions)))
    for name, scores in by_hand.items():
        assert table.loc["lasso", name] == pytest.approx(np.mean(scores))
        assert table.loc["lasso", f"{name}_se"] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(3))
    assert table.loc["lasso", ["status", "n_selected", "agreement"]].tolist() == ["ok", 2, 1]
    assert table.loc["lasso", "selected"] == [1, 2]
    assert table.loc["lasso", "seconds"] > 0


def test_scores_of_classes_are_those_by_hand() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], np.array(["bad", "good"])[y[:150]]
    table = compare(X, y, SelectKBest(k=4), cv=3, downstream="logistic", random_state=1)
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        chosen = np.argsort(-f_classif(X[train], y[train])[0])[:4]
        classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train][:, chosen], y[train])
        scores.append(np.mean(classifier.predict(X[test][:, chosen]) == y[test]))
    assert table.loc["SelectKBest", "logistic"] == pytest.approx(np.mean(scores))
    assert table.loc["SelectKBest", "logistic"] > 0.8


def test_scorers_of_probabilities() -> None:
    X, y = make_data(80)
    y = np.where(y > 0, "yes", "no")
    table = compare(X, y, [First(3)], cv=2, scoring="roc_auc", random_state=0)
    areas = []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train, :3], y[train])
        areas.append(roc_auc_score(y[test] == "yes", classifier.predict_proba(X[test, :3])[:, 1]))
    assert table["logistic"].tolist() == pytest.approx([np.mean(areas)])
    assert table["status"].tolist() == ["ok"]
    assert (table[["random-forest", "ssfn"]] > 0.8).all(axis=None)


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
    table = compare(X, y, methods, n_features_to_select=2, cv=3, downstream=["ridge"], random_state=0)
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


def test_several_classes() -> None:
    X, y = make_data(90)
    labels = np.digitize(y, [-2, 2])
    methods = [NeuralGreedyPursuit(FAST), "lasso", "random-forest", "gam"]
    table = compare(X, labels, methods, n_features_to_select=2, cv=2, random_state=0)
    assert (table["status"] == "ok").all()
    assert (table[["logistic", "random-forest", "ssfn"]] > 0.5).all(axis=None)


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
    classes = compare(X, labels, First(0), cv=3, downstream=["logistic", "ssfn"], random_state=0)
    assert classes["logistic"].tolist() == pytest.approx([np.mean(labels == "often")], abs=0.03)


def test_constant_columns_are_no_reason_to_stop() -> None:
    X, y = make_data()
    X[:, 4] = 1.0
    table = compare(
        X,
        y,
        ["ngp", "lasso", "correlation", "all"],
        n_features_to_select=2,
        cv=2,
        downstream=["ridge", "ssfn"],
        random_state=0,
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
    assert table.loc["bad", ["n_selected", "ridge", "ridge_se", "seconds", "agreement"]].isna().all()
    assert table.loc["bad", "selected"] == []


def test_a_predictor_that_fails_is_said_and_harms_no_other() -> None:
    downstream = {"odd": LogisticRegression(), "ridge": ridge()}
    table = compare(*make_data(), First(), cv=3, downstream=downstream, random_state=0)
    assert table.loc["First", "status"].startswith("odd: ValueError: Unknown label type: continuous")
    assert table["odd"].isna().all()
    assert table["ridge"].notna().all()


def test_an_interrupt_ends_the_comparison_with_what_is_there() -> None:
    methods = {"good": First(), "stopped": First(error=KeyboardInterrupt()), "late": First()}
    table = compare(*make_data(), methods, cv=2, downstream="ridge", random_state=0)
    assert table["status"].tolist() == ["ok", "interrupted", "interrupted"]
    assert table["ridge"].notna().tolist() == [True, False, False]
    with pytest.raises(KeyboardInterrupt):  # nothing is there
        compare(*make_data(), First(error=KeyboardInterrupt()), cv=2, random_state=0)


def test_part_of_a_pursuit_is_no_selection() -> None:
    class Stopped(First):
        """Keeps what it has found when it is interrupted, as the pursuit does."""

        stop_reason_ = "interrupted; the path is partial"

    table = compare(*make_data(), {"good": First(), "part": Stopped()}, cv=2, downstream="ridge", random_state=0)
    assert table["status"].tolist() == ["ok", "interrupted"]


def test_a_method_whose_package_is_missing_is_left_out_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "packages", {"mrmr": "no_such_package"})
    needs = "mrmr needs no_such_package: install it with pip install 'neural-greedy-pursuit[baselines]'."
    X, y = make_data()
    table = compare(X, y, n_features_to_select=2, cv=2, downstream="ridge", random_state=0)
    assert table.index.tolist() == list(comparison.METHODS)
    assert table["status"].tolist() == ["ok"] * 5 + [f"left out: {needs}"]
    with pytest.raises(ImportError, match=re.escape(needs)):
        compare(X, y, [First(), "mrmr"], cv=2)
    assert not First.seen


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
    slow = make_slow(tmp_path)
    table = compare(*make_data(), {"late": slow(300)}, cv=2, downstream=["ridge"], max_time=3, random_state=0)
    assert table["status"].tolist() == ["out of time: killed after 3 s"]
    assert table["ridge"].isna().all()
    (process,) = [path.read_text() for path in tmp_path.iterdir()]
    assert not is_running(process)


def test_with_a_time_limit_methods_run_in_another_process(tmp_path: Path) -> None:
    X, y = make_data()
    slow = make_slow(tmp_path)
    good, bad = {"quick": slow(), "lasso": "lasso"}, {"stuck": slow(way="stay"), "fatal": slow(way="die")}
    settings: dict[str, Any] = {"cv": 2, "downstream": ["ridge"], "random_state": 0}
    table = compare(X, y, {**bad, **good}, max_time=300, **settings)
    statuses = table["status"].tolist()
    assert statuses[0].startswith("PicklingError: ")
    assert statuses[1:] == ["crashed: its process died", "ok", "ok"]
    processes = [path.read_text() for path in tmp_path.iterdir()]
    assert str(os.getpid()) not in processes
    assert not any(map(is_running, processes))
    unlimited = compare(X, y, good, **settings)
    pd.testing.assert_frame_equal(table.loc[list(good)].drop(columns="seconds"), unlimited.drop(columns="seconds"))
    assert (tmp_path / "return 0").read_text() == str(os.getpid())


def test_warnings_are_kept_and_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    table = compare(*make_data(), First(warning="Call {} was odd.\nVery."), cv=3, downstream="ridge", random_state=0)
    assert table["warnings"].tolist() == [["UserWarning: Call 1 was odd."]]
    assert not [warning for warning in recwarn if "odd" in str(warning.message)]


# The table


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


def test_k_goes_to_names_and_to_selectors_without_a_number() -> None:
    X, y = make_data()
    lasso = baselines.registry["lasso"]
    methods = {"name": "lasso", "free": lasso(), "set": lasso(n_features_to_select=1), "first": First(4), "all": "all"}
    table = compare(X, y, methods, n_features_to_select=3, cv=3, downstream=["ridge"], random_state=0)
    assert table["n_selected"].tolist() == [3, 3, 1, 4, 6]
    share = compare(X, y, ["lasso"], n_features_to_select=0.5, cv=3, downstream=["ridge"], random_state=0)
    assert share["n_selected"].tolist() == [3]
    free = compare(X, y, {"name": "lasso", "free": lasso()}, cv=3, downstream=["ridge"], random_state=0)
    assert free.loc["name", "n_selected"] == free.loc["free", "n_selected"]


def test_k_goes_to_selectors_of_scikit_learn() -> None:
    X, y = make_data()
    methods = {
        "RFE": RFE(LinearRegression()),
        "model": SelectFromModel(LinearRegression(), threshold=-np.inf),
        "univariate": SelectKBest(k=4),
    }
    for k in (2, 0.4):
        table = compare(X, y, methods, n_features_to_select=k, cv=3, downstream=["ridge"], random_state=0)
        assert table["status"].tolist() == ["ok"] * 3
        assert table["n_selected"].tolist() == [2, 2, 4]


def test_given_selectors_and_estimators_stay_untouched() -> None:
    X, y = make_data()
    lasso, estimator = baselines.registry["lasso"](), LinearRegression()
    compare(X, y, [lasso], n_features_to_select=2, cv=3, downstream=[estimator], random_state=0)
    assert lasso.n_features_to_select is None
    assert not hasattr(lasso, "support_")
    assert not hasattr(estimator, "coef_")


def test_the_default_takes_seconds() -> None:
    X, y = load_iris(return_X_y=True)
    start = time.process_time()
    table = compare(X, y, n_jobs=-1, random_state=0)
    assert time.process_time() - start < 10
    assert (table["status"] == "ok").all()
    assert (table["n_selected"].drop("all") < 4).all()


def test_named_methods_get_task_seed_and_jobs() -> None:
    X, y = make_data()
    made = comparison._make_selector(
        "random-forest", {"n_features_to_select": 2, "task": "regression", "n_jobs": 2, "random_state": 5}, 6
    )
    assert (made.n_features_to_select, made.task, made.n_jobs, made.random_state) == (2, "regression", 2, 5)
    table = compare(
        X, y.round(), {"a": "random-forest"}, n_features_to_select=2, cv=2, task="regression", random_state=0
    )
    assert table["status"].tolist() == ["ok"]
    assert table.loc["a", "ridge"] > 0.5


def test_one_seed_one_answer() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {"methods": ["ngp", "random-forest"], "n_features_to_select": 2, "cv": 2}
    tables = [compare(X, y, **settings, random_state=seed).drop(columns="seconds") for seed in (3, 3, 4)]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    assert tables[0]["ridge"].tolist() != tables[2]["ridge"].tolist()
    settings["methods"] = "random-forest"
    drawn = [compare(X, y, **settings, random_state=np.random.RandomState(0)).drop(columns="seconds") for _ in "ab"]
    pd.testing.assert_frame_equal(*drawn)


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


def scores_of(**scores: list[float]) -> Any:
    """A table of folds with these scores by a predictor."""
    parts = [folds_of([[0]] * len(each), 5).assign(method=name, ridge=each) for name, each in scores.items()]
    return pd.concat(parts, ignore_index=True)


def test_methods_within_error_of_the_best_are_marked() -> None:
    best = np.array([0.9, 0.5, 0.8, 0.6])
    folds = scores_of(
        slightly_less=best - 0.01,  # in every fold, whose difficulty differs far more
        best=best,
        sometimes_better=best - [0.1, -0.05, 0.1, 0],
        same=best,
        failed=[0.99, np.nan, 0.99, 0.99],
    )
    marked = summarise(folds)["within_error"]
    assert marked[["best", "sometimes_better", "same"]].tolist() == [["ridge"]] * 3
    assert marked[["slightly_less", "failed"]].tolist() == [[]] * 2
    difference = np.array([0.1, -0.05, 0.1, 0])
    assert difference.mean() <= 2 * np.std(difference, ddof=1) / 2
    assert summarise(scores_of(a=[0.5], b=[0.4]))["within_error"].tolist() == [["ridge"], []]  # a fold has no error
    assert summarise(scores_of(a=[np.nan, 1.0]))["within_error"].tolist() == [[]]


def test_features_of_more_than_half_of_the_folds_are_selected_the_most_frequent_first() -> None:
    table = summarise(folds_of([[0, 1, 2], [2, 3], [1, 2], [1, 4]], 6))
    assert table.loc["m", "selected"] == [1, 2]
    assert summarise(folds_of([[1, 2], [2, 4]], 6)).loc["m", "selected"] == [2]


def test_folds_and_their_summary_belong_together() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {"methods": ["lasso", "all"], "n_features_to_select": 2, "cv": 3, "downstream": "ridge"}
    folds = compare(X, y, **settings, per_fold=True, random_state=0)
    table = compare(X, y, **settings, random_state=0)
    pd.testing.assert_frame_equal(summarise(folds).drop(columns="seconds"), table.drop(columns="seconds"))
    assert set(folds[["n_selected", "ridge", "seconds"]].dtypes) == {np.dtype(float)}
    assert folds["method"].tolist() == ["lasso"] * 3 + ["all"] * 3
    assert folds["fold"].tolist() == [0, 1, 2] * 2
    assert folds["selected"].tolist() == [[1, 2]] * 3 + [[0, 1, 2, 3, 4, 5]] * 3
    assert table.columns.tolist() == [
        "status", "n_selected", "ridge", "ridge_se", "seconds", "agreement", "within_error", "selected", "warnings"
    ]  # fmt: skip


def test_a_column_of_targets_is_as_good_as_a_vector() -> None:
    X, y = make_data()
    settings: dict[str, Any] = {
        "methods": "lasso",
        "n_features_to_select": 2,
        "cv": 2,
        "downstream": "random-forest",
        "random_state": 0,
    }
    one, other = (compare(X, each, **settings).drop(columns="seconds") for each in (y, y[:, None]))
    pd.testing.assert_frame_equal(one, other)
    assert one.loc["lasso", "warnings"] == []


def test_a_callback_sees_the_plan_and_every_row() -> None:
    seen: list[Any] = []

    def see(plan: Any, rows: Any) -> None:
        seen.append((list(plan), [(row["method"], row["fold"]) for row in rows]))

    methods = {"first": First(), "bad": First(error=ValueError("No."))}
    compare(*make_data(), methods, cv=2, downstream=["ridge"], callback=see, random_state=0)
    plan = [("first", 0), ("first", 1), ("bad", 0), ("bad", 1)]
    assert seen == [(plan, plan[:done]) for done in range(5)]


def test_verbose_prints_a_line_per_method_and_fold(capsys: pytest.CaptureFixture[str]) -> None:
    methods = {"first": First(), "bad": First(error=ValueError("No."))}
    compare(*make_data(), methods, cv=2, downstream=["ridge"], verbose=1, random_state=0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("[ngp] first            fold 2 of 2  2 selected  0.0 s  ridge -0.")
    assert lines[2] == "[ngp] bad              fold 1 of 2  ValueError: No."
    compare(*make_data(), First(), cv=2, downstream=["ridge"], random_state=0)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"methods": "lassso"}, ValueError, r"methods has 'lassso', which is unknown: use one of all, ngp, drop"),
        ({"methods": 3}, TypeError, "methods=3 is neither a list nor a mapping: give one of them"),
        ({"methods": []}, ValueError, "methods is empty: give at least one"),
        ({"methods": [LinearRegression()]}, TypeError, r"methods has LinearRegression\(\), which is no selector: give"),
        ({"methods": [SelectKBest]}, TypeError, "which is no selector: give names, or objects with get_support"),
        ({"methods": ["ngp", "ngp"]}, ValueError, "methods has two of the name 'ngp': give a mapping with labels"),
        ({"downstream": ["svm"]}, ValueError, "downstream has 'svm', which is no predictor of numbers"),
        ({"downstream": "logistic"}, ValueError, "of numbers: use ridge, random-forest, ssfn or est"),
        ({"downstream": [Spy]}, ValueError, "which is no predictor of numbers: use ridge"),
        ({"downstream": {"status": Spy()}}, ValueError, "downstream has the label 'status', which is a column of"),
        ({"downstream": {"a": Spy(), "a_se": Spy()}}, ValueError, "downstream has the label 'a_se', which is a"),
        ({"n_features_to_select": 7}, ValueError, "n_features_to_select=7 is more than the 6 features"),
        ({"n_features_to_select": 0}, ValueError, "The 'n_features_to_select' parameter of compare must be an int"),
        ({"n_features_to_select": 1.5}, ValueError, "The 'n_features_to_select' parameter of compare must be an int"),
        ({"max_time": 0}, ValueError, "The 'max_time' parameter of compare must be a float"),
        ({"max_time": "1 h"}, ValueError, "The 'max_time' parameter of compare must be a float"),
        ({"task": "ranking"}, ValueError, "The 'task' parameter of compare must be a str among"),
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
