"""scikit-learn estimators against the plainest loop of clones, and against scikit-learn's own cross-validation."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, SGDRegressor
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import check_is_fitted

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import estimator as module
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import Estimator, EstimatorScorer

N_ROWS, N_COLUMNS = 48, 7
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([4, 1])
CANDIDATES = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0]])
ROW_ORDER = SGDRegressor(random_state=0, max_iter=5, tol=None, eta0=1e-3)  # for which the order of rows matters


def make_data(kind: str, n_rows: int = N_ROWS, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS)) * rng.uniform(0.5, 3, size=N_COLUMNS) + rng.normal(size=N_COLUMNS)
    signal = X[:, [0, 1, 6]] @ np.random.default_rng(9).normal(size=(3, 3)) + 0.8 * rng.normal(size=(n_rows, 3))
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > 0, "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(kind: str = "regression", cv: Any = 3, weighted: bool = False, **options: Any) -> Problem:
    X, y = make_data(kind)
    if weighted:
        options["sample_weight"] = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=20, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    return make_problem(X, y, groups=make_groups(None, N_COLUMNS), task=task, cv=cv, random_state=3, **options)


def bind(
    estimator: Any, problem: Problem, n_jobs: int | None = None, seed: int = 11, scoring: Any = None
) -> EstimatorScorer:
    return Estimator(estimator, scoring).bind(problem, random_state=seed, n_jobs=n_jobs)


def coded_by_hand(fitted: Any, X: Any, classes: Any) -> list[list[float]]:
    """Predictions of coded targets, sample by sample."""
    if classes is None:
        return [list(np.atleast_1d(row)) for row in fitted.predict(X)]
    coded = []
    for row in X:
        if hasattr(fitted, "predict_proba"):
            likely = dict(zip(fitted.classes_, fitted.predict_proba(row[None])[0], strict=True))
        else:
            likely = {fitted.predict(row[None])[0]: 1.0}
        values = [likely.get(label, 0.0) for label in classes]
        coded.append(values[1:] if len(classes) == 2 else values)
    return coded


def parts_by_hand(estimator: Any, problem: Problem, columns: list[int], fit_weights: str = "") -> Any:
    """Mean loss in every part of the validation for one set of columns."""
    classes, parts = problem.classes, []
    for round_ in problem.rounds:
        losses = np.zeros(len(round_.rows))
        for f in range(round_.n_folds):
            train = [row for row in sorted(round_.training(f)) if problem.weights[row] > 0]
            y = problem.targets if problem.n_outputs > 1 else problem.targets[:, 0]
            if classes is not None:
                y = np.array([classes[int(np.argmax(t)) if t.ndim else int(t)] for t in y])
            weights = {fit_weights: problem.weights[train]} if fit_weights else {}
            fitted = clone(estimator).fit(problem.X[train][:, columns], y[train], **weights)
            start, end = round_.segments[f + 1 : f + 3]
            rows = round_.rows[start:end]
            predictions = np.array(coded_by_hand(fitted, problem.X[rows][:, columns], classes))
            losses[start:end] = LOSSES[problem.loss](predictions, problem.targets[rows])
        for first, last in pairwise(round_.parts):
            weights = problem.weights[round_.rows[first:last]]
            parts.append(weights @ losses[first:last] / max(weights.sum(), 1e-300))
    return np.array(parts)


def check(estimator: Any, problem: Problem, fit_weights: str = "", candidates: ColumnSets = CANDIDATES) -> None:
    losses = bind(estimator, problem).add_losses(SELECTED, candidates)
    for i in range(len(candidates)):
        expected = parts_by_hand(estimator, problem, [*SELECTED, *candidates[i]], fit_weights)
        np.testing.assert_allclose(losses.parts[i], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(losses.weights, problem.part_weights)


# --- Losses of predictions

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "SVR": (SVR(), {}),
    "a pipeline": (make_pipeline(MinMaxScaler(), SVR()), {}),
    "several outputs": (KNeighborsRegressor(), {"kind": "outputs"}),
    "repeated folds": (KNeighborsRegressor(), {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)}),
    "TimeSeriesSplit": (KNeighborsRegressor(), {"cv": TimeSeriesSplit(3)}),
    "hold-out share": (SVR(), {"cv": 0.3}),
    "explicit validation set": (SVR(), {"cv": "explicit"}),
    "leave-one-out": (KernelRidge(), {"cv": "loo"}),
    "SVC, which has no probabilities": (SVC(), {"kind": "binary"}),
    **{f"binary, {loss}": (GaussianNB(), {"kind": "binary", "loss": loss}) for loss in LOSSES},
    **{f"classes, {loss}": (GaussianNB(), {"kind": "classes", "loss": loss}) for loss in LOSSES},
    "leave-one-out, classes": (GaussianNB(), {"kind": "classes", "cv": "loo", "loss": "cross_entropy"}),
}


@pytest.mark.parametrize(("estimator", "case"), CASES.values(), ids=CASES)
def test_losses_are_those_of_clones_fitted_one_by_one(estimator: Any, case: dict[str, Any]) -> None:
    check(estimator, make_case(**case))


def test_training_rows_come_in_the_order_of_the_data() -> None:
    check(ROW_ORDER, make_case(cv=4))


def test_a_fold_may_lack_a_class() -> None:
    y = np.repeat(["a", "b", "c"], 16)
    X = make_data("classes")[0]
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=KFold(3), loss="cross_entropy")
    for estimator in (GaussianNB(), SVC()):
        check(estimator, problem)


def test_predictions_that_are_no_numbers_make_losses_that_are_none() -> None:
    class Failing(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Failing:
            return self

        def predict(self, X: Any) -> Any:
            return np.full(len(X), np.nan if X.shape[1] == 3 else 1.0)

    means = bind(Failing(), make_case()).add_losses(SELECTED, CANDIDATES).means
    np.testing.assert_array_equal(np.isnan(means), CANDIDATES.sizes == 1)


def test_a_label_that_nobody_knows_counts_for_no_class() -> None:
    losses = bind(KMeans(2, n_init=1), make_case("classes")).add_losses(SELECTED, CANDIDATES)
    np.testing.assert_allclose(losses.parts, 1 / 3)


# --- What estimators are given


class Spy(BaseEstimator):  # type: ignore[misc]
    """Notes what it is fitted with."""

    seen: list[tuple[Any, Any, Any]] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Spy:
        Spy.seen.append((X, y, sample_weight))
        self.classes_ = np.unique(y)
        return self


class SpyClassifier(ClassifierMixin, Spy):  # type: ignore[misc]
    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


class SpyRegressor(RegressorMixin, Spy):  # type: ignore[misc]
    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@pytest.fixture
def seen() -> Iterator[list[tuple[Any, Any, Any]]]:
    Spy.seen.clear()
    yield Spy.seen
    Spy.seen.clear()


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_columns_come_as_contiguous_doubles_of_their_own(dtype: Any, seen: list[Any]) -> None:
    X, y = np.round(make_data("regression")[0] * 8).astype(dtype), make_data("regression")[1]
    for given in (X, np.asfortranarray(X)):
        seen.clear()
        problem = make_problem(given, y, groups=make_groups(None, N_COLUMNS), cv=[(np.arange(40), np.arange(40, 48))])
        bind(SpyRegressor(), problem).add_losses(SELECTED, CANDIDATES)
        for i, (columns, targets, weights) in enumerate(seen):
            assert columns.dtype == np.float64
            assert columns.flags.c_contiguous
            assert columns.flags.owndata
            assert columns.flags.writeable
            np.testing.assert_array_equal(columns, X[:40, [*SELECTED, *CANDIDATES[i]]])
            np.testing.assert_array_equal(targets, y[:40])
            assert weights is None


LABELS = [["b", "a", "c"], [3.0, 2.0, -1.0], [True, False, True], np.array(["x", "y", "z"], dtype=object)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_classes_come_as_the_user_gave_them(labels: Any, seen: list[Any]) -> None:
    y = np.tile(labels, 16)
    problem = make_problem(
        make_data("classes")[0], y, groups=make_groups(None, N_COLUMNS), task="classification", cv="loo"
    )
    scorer = bind(SpyClassifier(), problem)
    scorer.add_losses(NOTHING, ColumnSets.of([[2]]))
    for row, (_, given, _) in enumerate(seen):
        assert given.dtype == y.dtype
        assert given.tolist() == np.delete(y, row).tolist()


@pytest.mark.parametrize(("kind", "shape"), [("regression", (32,)), ("outputs", (32, 3))])
def test_a_single_output_is_a_vector(kind: str, shape: tuple[int, ...], seen: list[Any]) -> None:
    X, y = make_data(kind)
    y = y.reshape(len(y), -1)
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=3)

    class Zeros(SpyRegressor):
        def predict(self, X: Any) -> Any:
            return np.zeros((len(X), y.shape[1]))

    bind(Zeros(), problem).add_losses(SELECTED, CANDIDATES)
    assert {targets.shape for _, targets, _ in seen} == {shape}


# --- Sample weights


def test_weights_are_those_of_fit() -> None:
    check(KernelRidge(), make_case(weighted=True), "sample_weight")
    check(GaussianNB(), make_case("classes", weighted=True, cv="loo"), "sample_weight")
    check(make_pipeline(MinMaxScaler(), SVR()), make_case(weighted=True), "svr__sample_weight")
    nested = Pipeline([("a", MinMaxScaler()), ("b", make_pipeline(MinMaxScaler(), SVR()))])
    check(nested, make_case(weighted=True), "b__svr__sample_weight")


def test_rows_of_weight_zero_do_not_train(seen: list[Any]) -> None:
    problem = make_case(weighted=True)
    bind(SpyRegressor(), problem).add_losses(SELECTED, CANDIDATES)
    bind(SpyRegressor(), problem).fit(SELECTED)
    assert (problem.weights == 0).sum() > 5
    assert len(seen[-1][1]) == (problem.weights > 0).sum()
    for _, _, weights in seen:
        assert (weights > 0).all()


def test_weights_of_zero_and_one_leave_rows_out() -> None:
    weights = np.random.default_rng(0).integers(0, 2, size=N_ROWS)
    check(KNeighborsRegressor(3), make_case(sample_weight=weights))
    check(KNeighborsRegressor(3), make_case(sample_weight=np.ones(N_ROWS)))


def test_a_fold_without_weight_judges_nothing() -> None:
    problem = make_case(cv=KFold(4), sample_weight=np.where(np.arange(N_ROWS) < 12, 0.0, 1.0))
    losses = bind(SVR(), problem).add_losses(SELECTED, CANDIDATES)
    assert losses.weights[losses.weights > 0].sum() == pytest.approx(1)
    assert (losses.parts[:, losses.weights == 0] == 0).all()
    check(SVR(), problem)


# --- The user's object


def test_only_clones_are_fitted() -> None:
    estimator = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    parts = [estimator, *dict(getattr(estimator, "steps", ())).values()]
    before = [(part.get_params(), dict(vars(part))) for part in parts]
    predictor = Estimator(estimator)
    scorer = predictor.bind(make_case(), random_state=0)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert predictor.estimator is estimator
    assert [(part.get_params(), vars(part)) for part in parts] == before
    with pytest.raises(NotFittedError):
        check_is_fitted(parts[-1])


def test_a_predictor_is_plain_configuration() -> None:
    predictor = Estimator(SVC(C=3))
    assert predictor.name == "SVC"
    assert predictor.get_params()["estimator__C"] == 3
    copy = clone(predictor).set_params(estimator__C=4)
    assert (copy.estimator.C, predictor.estimator.C) == (4, 3)
    assert Estimator(estimator=make_pipeline(SVC())).name == "Pipeline"


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_classes_without_probabilities_have_a_fair_start(kind: str) -> None:
    assert Estimator(make_pipeline(StandardScaler(), GaussianNB())).classification_loss == "squared_error"
    predictor = Estimator(make_pipeline(StandardScaler(), SVC()))
    assert predictor.classification_loss == "hinge"
    X, y = make_data(kind, n_rows=100)
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), classification_loss="hinge")
    scorer = predictor.bind(problem, random_state=0)
    errors = 1 - cross_val_score(predictor.estimator, X[:, [0]], y, cv=list(problem.splits(problem.rounds[0])))
    losses = scorer.add_losses(NOTHING, ColumnSets.of([[0]]))
    assert losses.means[0] == pytest.approx(2 * errors.mean())
    assert losses.means[0] < problem.constant_losses @ problem.part_weights


# --- One seed, one answer


def test_open_random_states_follow_the_seed() -> None:
    estimator = make_pipeline(MinMaxScaler(), RandomForestClassifier(5))
    problem = make_case("classes", loss="cross_entropy")
    expected = bind(estimator, problem).add_losses(SELECTED, CANDIDATES).parts
    np.random.default_rng().random()
    np.testing.assert_array_equal(bind(estimator, problem).add_losses(SELECTED, CANDIDATES).parts, expected)
    assert (bind(estimator, problem, seed=12).add_losses(SELECTED, CANDIDATES).parts != expected).any()
    fits = [bind(estimator, problem).fit(SELECTED).predict(problem.X) for _ in range(2)]
    np.testing.assert_array_equal(*fits)


def test_all_candidates_share_their_random_numbers() -> None:
    X, y = make_data("regression")
    X[:, 5] = X[:, 2]
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=3)
    parts = (
        bind(RandomForestRegressor(5, max_features=1), problem).add_losses(SELECTED, ColumnSets.of([[2], [5]])).parts
    )
    np.testing.assert_array_equal(*parts)


def test_a_given_random_state_stays() -> None:
    pipe = Pipeline([("one", RandomForestRegressor(random_state=5)), ("two", RandomForestRegressor(random_state=None))])
    seeds = [bind(pipe, make_case(), seed=seed).trainer.estimator.get_params() for seed in (0, 1, 2**31 + 5)]
    assert {each["one__random_state"] for each in seeds} == {5}
    assert len({each["two__random_state"] for each in seeds}) == 3


# --- The final predictor


@pytest.mark.parametrize(
    ("estimator", "kind", "cv"), [(SVR(), "regression", 3), (GaussianNB(), "binary", "explicit"), (SVC(), "classes", 3)]
)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(estimator: Any, kind: str, cv: Any) -> None:
    problem = make_case(kind, cv=cv, weighted=True)
    X, y = make_data(kind)
    rows = problem.weights[:N_ROWS] > 0
    by_hand = clone(estimator).fit(X[rows][:, SELECTED], y[rows], sample_weight=problem.weights[:N_ROWS][rows])
    predictor = bind(estimator, problem).fit(SELECTED)
    expected = coded_by_hand(by_hand, X[:, SELECTED], problem.classes)
    np.testing.assert_allclose(predictor.predict(X), expected, rtol=1e-9, atol=1e-12)
    unread = X.copy()
    unread[:, np.setdiff1d(np.arange(N_COLUMNS), SELECTED)] = np.nan
    np.testing.assert_array_equal(predictor.predict(unread), predictor.predict(X))


# --- Tasks side by side


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_the_same_bits_for_every_chunk_size(scoring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("classes", weighted=True)
    expected = bind(LogisticRegression(), problem, scoring=scoring).add_losses(SELECTED, CANDIDATES).parts
    for numbers in (1, 2**9):
        monkeypatch.setattr(module, "CHUNK_NUMBERS", numbers)
        parts = bind(LogisticRegression(), problem, scoring=scoring).add_losses(SELECTED, CANDIDATES).parts
        np.testing.assert_array_equal(parts, expected)


def test_the_same_picks_for_every_number_of_jobs_and_backend() -> None:
    estimator, problem = RandomForestRegressor(3), make_case()

    def picks(n_jobs: int | None) -> tuple[list[int], list[float]]:
        path = pursue(Search(problem, lambda each: bind(estimator, each, n_jobs)), MaxFeatures(3), fixed=NOTHING)
        return path.columns.tolist(), [step.loss for step in path.steps]

    expected = picks(None)
    assert picks(1) == expected
    assert picks(2) == expected
    for backend in ("threading", "loky"):
        with parallel_config(backend=backend, n_jobs=2):
            assert picks(None) == expected


def test_tasks_get_the_columns_they_need() -> None:
    columns, sets = module._chunk(SELECTED, CANDIDATES, 1, 4)
    assert columns.tolist() == [4, 1, 2, 3, 5]
    assert [columns[each].tolist() for each in sets] == [[4, 1, 2], [4, 1, 3, 5], [4, 1]]


def test_answers_depend_on_the_question_alone() -> None:
    scorer = bind(RandomForestRegressor(3), make_case("outputs"))
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    scorer.fit(np.array([0]))
    copy = pickle.loads(pickle.dumps(scorer))
    for i in reversed(range(len(CANDIDATES))):
        alone = copy.add_losses(SELECTED, ColumnSets.of([CANDIDATES[i]])).parts[0]
        np.testing.assert_array_equal(alone, expected[i])
    joined = ColumnSets.of([np.concatenate([SELECTED, CANDIDATES[i]]) for i in range(len(CANDIDATES))])
    np.testing.assert_array_equal(scorer.add_losses(NOTHING, joined).parts, expected)


# --- Warnings and errors


@pytest.mark.parametrize("backend", [None, "threading", "loky"])
def test_each_warning_comes_once(backend: str | None) -> None:
    scorer = bind(Lasso(1e-9, max_iter=2), make_case("regression"))

    def messages() -> list[str]:
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            scorer.add_losses(SELECTED, CANDIDATES)
        return [str(warning.message) for warning in log if warning.category is ConvergenceWarning]

    if backend is None:
        found = messages()
    else:
        with parallel_config(backend=backend, n_jobs=2):
            found = messages()
    assert len(found) == 1  # though the duality gap in the text differs from fit to fit
    assert "Duality gap" in found[0]


def test_filters_decide_on_warnings() -> None:
    scorer = bind(Lasso(1e-9, max_iter=2), make_case())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            scorer.add_losses(SELECTED, CANDIDATES)
        warnings.simplefilter("ignore", ConvergenceWarning)
        scorer.add_losses(SELECTED, CANDIDATES)


class Broken(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Broken:
        if X.shape[1] >= 4:
            raise ArithmeticError("too many columns")
        return self

    def predict(self, X: Any) -> Any:
        if X.shape[1] == 1:
            raise ArithmeticError("too few columns")
        return np.zeros(len(X))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_errors_say_on_which_columns(n_jobs: int | None) -> None:
    scorer = bind(Broken(), make_case(), n_jobs)
    with pytest.raises(ArithmeticError, match="too many columns") as caught:
        scorer.add_losses(SELECTED, CANDIDATES)
    # Two candidates have too many columns; with several workers either may be the first to fail.
    columns = ["4, 1, 3, 5"] if n_jobs is None else ["4, 1, 3, 5", "4, 1, 6, 2, 0"]
    [note] = caught.value.__notes__
    assert note in [f"This happened to Broken on the columns {each} of X." for each in columns]
    with pytest.raises(ArithmeticError, match="too few columns") as caught:
        scorer.add_losses(NOTHING, ColumnSets.of([[6]]))
    assert caught.value.__notes__ == ["This happened to Broken on the columns 6 of X."]


def test_errors_of_scorers_and_of_the_final_fit_say_so_too() -> None:
    with pytest.raises(ArithmeticError) as caught:
        bind(Broken(), make_case(), scoring="r2").add_losses(NOTHING, ColumnSets.of([[6]]))
    assert "on the columns 6 of X" in caught.value.__notes__[0]
    wide = np.zeros((6, 12))
    problem = make_problem(wide, np.arange(6.0), groups=make_groups(None, 12), cv=2)
    with pytest.raises(ArithmeticError) as caught:
        bind(Broken(), problem).fit(np.arange(12))
    assert "on the columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … of X" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("estimator", "case", "message"),
    [
        (
            SVC(),
            {},
            "predictor=SVC is a classifier, and y holds quantities: "
            "give a regressor, or task='classification' if y holds classes.",
        ),
        (
            make_pipeline(MinMaxScaler(), SVR()),
            {"kind": "binary"},
            "predictor=Pipeline is a regressor, and y holds classes: "
            "give a classifier, or task='regression' if y holds quantities.",
        ),
        (
            KNeighborsRegressor(),
            {"weighted": True},
            "sample_weight can't be used by KNeighborsRegressor, whose fit takes none: leave it out, or give another",
        ),
        (
            make_pipeline(MinMaxScaler(), KNeighborsRegressor()),
            {"weighted": True},
            "sample_weight can't be used by Pipeline, whose fit takes none",
        ),
    ],
)
def test_mistakes(estimator: Any, case: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bind(estimator, make_case(**case))


# --- Scorers of scikit-learn


def largest_error_score(estimator: Any, X: Any, y: Any) -> float:
    return float(1 - np.abs(estimator.predict(X) - y).max())


SCORED: list[tuple[Any, str, Any, Any]] = [
    (SVC(), "binary", "roc_auc", StratifiedKFold(3, shuffle=True, random_state=0)),
    (GaussianNB(), "classes", "neg_log_loss", KFold(4)),
    (SVR(), "regression", "r2", RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)),
    (KNeighborsRegressor(), "regression", "neg_mean_absolute_error", ShuffleSplit(4, random_state=0)),
    (Ridge(), "outputs", "r2", KFold(3)),
    (make_pipeline(StandardScaler(), SVR()), "regression", make_scorer(mean_absolute_error), TimeSeriesSplit(3)),
    (SVR(), "regression", largest_error_score, KFold(3)),
]


@pytest.mark.parametrize(
    ("estimator", "kind", "scoring", "cv"), SCORED, ids=lambda value: getattr(value, "__name__", str(value)[:30])
)
def test_scores_are_those_of_cross_val_score(estimator: Any, kind: str, scoring: Any, cv: Any) -> None:
    X, y = make_data(kind)
    losses = bind(estimator, make_case(kind, cv=cv), scoring=scoring).add_losses(SELECTED, CANDIDATES)
    best = 0.0 if isinstance(scoring, str) and scoring.startswith("neg_") else 1.0
    for i in range(len(CANDIDATES)):
        scores = cross_val_score(estimator, X[:, [*SELECTED, *CANDIDATES[i]]], y, scoring=scoring, cv=cv)
        np.testing.assert_allclose(losses.parts[i], best - scores, rtol=1e-12)
        assert losses.means[i] == pytest.approx(best - scores.mean())


@pytest.mark.parametrize(
    ("estimator", "kind", "scoring"),
    [
        (SVR(), "regression", "r2"),
        (GaussianNB(), "classes", "neg_log_loss"),
        (SVC(), "binary", "roc_auc"),
    ],
    ids=str,
)
def test_picks_are_those_of_scikit_learns_forward_selection(estimator: Any, kind: str, scoring: str) -> None:
    X, y = make_data(kind)
    cv = KFold(4, shuffle=True, random_state=1)
    problem = make_case(kind, cv=cv)
    path = pursue(Search(problem, lambda each: bind(estimator, each, scoring=scoring)), MaxFeatures(4), fixed=NOTHING)
    for number in range(1, 5):
        theirs = SequentialFeatureSelector(estimator, n_features_to_select=number, scoring=scoring, cv=cv).fit(X, y)
        assert set(path.columns[:number]) == set(theirs.get_support(indices=True))


def test_scores_are_weighted() -> None:
    problem = make_case("classes", weighted=True, cv=KFold(3))
    losses = bind(GaussianNB(), problem, scoring="accuracy").add_losses(SELECTED, CANDIDATES)
    X, y = make_data("classes")
    for part, (train, test) in enumerate(KFold(3).split(X)):
        weights = problem.weights
        fitted = GaussianNB().fit(X[train][:, SELECTED], y[train], weights[train])
        hits = fitted.predict(X[test][:, SELECTED]) == y[test]
        assert losses.parts[3, part] == pytest.approx(1 - np.average(hits, weights=weights[test]))


def test_zero_weights_need_no_scorer_that_takes_weights() -> None:
    weights = np.arange(N_ROWS) % 3 > 0
    losses = bind(SVR(), make_case(cv=KFold(3), sample_weight=weights), scoring="neg_max_error")
    X, y = make_data("regression")
    cv = KFold(3).split(X)
    scores = cross_val_score(
        SVR(),
        X[:, SELECTED],
        y,
        scoring="neg_max_error",
        cv=[(train[weights[train]], test[weights[test]]) for train, test in cv],
    )
    np.testing.assert_allclose(losses.add_losses(SELECTED, CANDIDATES).parts[3], -scores)


def test_scorers_travel_to_other_processes() -> None:
    def scoring(estimator: Any, X: Any, y: Any) -> Any:
        return -abs(estimator.predict(X) - y).mean()

    one, two = (bind(SVR(), make_case(), n_jobs, scoring=scoring) for n_jobs in (1, 2))
    losses = [scorer.add_losses(SELECTED, CANDIDATES).parts for scorer in (one, two)]
    np.testing.assert_array_equal(*losses)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), TimeSeriesSplit(3), 0.25], ids=str)
@pytest.mark.parametrize(
    ("kind", "scoring", "best"),
    [
        ("regression", "neg_mean_squared_error", 0.0),
        ("outputs", "r2", 1.0),
        ("binary", "neg_log_loss", 0.0),
        ("classes", "accuracy", 1.0),
        ("regression", make_scorer(mean_absolute_error), 1.0),
    ],
    ids=str,
)
def test_the_constant_is_judged_by_the_scorer(kind: str, scoring: Any, best: float, cv: Any) -> None:
    problem, (X, y) = make_case(kind, cv=cv), make_data(kind)
    dummy, estimator = (
        (DummyRegressor(), SVR()) if problem.classes is None else (DummyClassifier(strategy="prior"), SVC())
    )
    splits = [split for round_ in problem.rounds for split in problem.splits(round_)]
    found = bind(estimator, problem, scoring=scoring).constant_losses(problem)
    np.testing.assert_allclose(found.parts[0], best - cross_val_score(dummy, X, y, scoring=scoring, cv=splits))
    assert found.weights.tolist() == [1 / len(splits)] * len(splits)


def test_the_constant_is_trained_and_judged_with_weights() -> None:
    problem = make_case(weighted=True, cv=KFold(4))
    found = bind(SVR(), problem, scoring="neg_mean_squared_error").constant_losses(problem)
    rows = np.array([problem.weights[test].sum() for _, test in KFold(4).split(problem.X)])
    expected = bind(SVR(), problem).constant_losses(problem).means[0]
    assert found.parts[0] @ (rows / rows.sum()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scoring", "case", "message"),
    [
        ("acuracy", {}, "scoring='acuracy' is unknown: sklearn.metrics.get_scorer_names() lists all names."),
        (3, {}, "scoring=3 is no scorer: give a name or a callable, scorer(estimator, X, y)."),
        (r2_score, {}, "scoring=r2_score is a metric and no scorer: give make_scorer(r2_score)."),
        (
            "r2",
            {"cv": KFold(4), "sample_weight": np.arange(N_ROWS) >= 12},
            "sample_weight is zero on all rows that scoring judges in a fold: use fewer folds or a loss.",
        ),
    ],
    ids=["unknown", "number", "metric", "weights"],
)
def test_mistakes_of_scoring(scoring: Any, case: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bind(SVR(), make_case(**case), scoring=scoring)


def test_loss_and_scoring_exclude_each_other() -> None:
    selector = NeuralGreedyPursuit(Estimator(SVR(), scoring="r2"), loss="squared_error")
    with pytest.raises(ValueError, match="loss='squared_error' and scoring='r2' exclude each other: give only one"):
        selector.fit(*make_data("regression"))
