"""scikit-learn estimators: losses, and what estimators are given, against the plainest loop of clones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from estimator_cases import (
    CANDIDATES,
    N_COLUMNS,
    N_ROWS,
    NOTHING,
    ROW_ORDER,
    SELECTED,
    bind,
    check,
    coded_by_hand,
    make_case,
    make_data,
)
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import make_problem
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import EstimatorPredictor

# --- Losses of predictions

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "SVR": (SVR(), {}),
    "a pipeline": (make_pipeline(MinMaxScaler(), SVR()), {}),
    "a tree": (DecisionTreeRegressor(max_depth=3, random_state=0), {"cv": KFold(5)}),
    "several outputs": (KNeighborsRegressor(), {"kind": "outputs"}),
    "repeated folds": (KNeighborsRegressor(), {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)}),
    "ShuffleSplit": (KNeighborsRegressor(), {"cv": ShuffleSplit(3, test_size=0.3, random_state=0)}),
    "TimeSeriesSplit": (KNeighborsRegressor(), {"cv": TimeSeriesSplit(3)}),
    "hold-out share": (SVR(), {"cv": 0.3}),
    "explicit validation set": (SVR(), {"cv": "explicit"}),
    "leave-one-out": (KernelRidge(), {"cv": "loo"}),
    "SVC, which has no probabilities": (SVC(), {"kind": "binary"}),
    "SVC, three classes": (SVC(), {"kind": "classes"}),
    "RidgeClassifier": (RidgeClassifier(), {"kind": "classes"}),
    **{f"binary, {loss}": (GaussianNB(), {"kind": "binary", "loss": loss}) for loss in LOSSES},
    **{f"classes, {loss}": (GaussianNB(), {"kind": "classes", "loss": loss}) for loss in LOSSES},
    "leave-one-out, classes": (GaussianNB(), {"kind": "classes", "cv": "loo", "loss": "cross_entropy"}),
    "explicit, classes": (KNeighborsClassifier(), {"kind": "classes", "cv": "explicit"}),
}


@pytest.mark.parametrize(("estimator", "case"), CASES.values(), ids=CASES)
def test_losses_are_those_of_clones_fitted_one_by_one(estimator: Any, case: dict[str, Any]) -> None:
    check(estimator, make_case(**case))


def test_training_rows_come_in_the_order_of_the_data() -> None:
    check(ROW_ORDER, make_case(cv=4))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fold_may_lack_a_class(loss: str) -> None:
    y = np.repeat(["a", "b", "c"], 16)
    X = make_data("classes")[0]
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=KFold(3), loss=loss)
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


def test_gradient_boosting_runs() -> None:
    problem = make_case()
    means = bind(HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3), problem).add_losses(
        SELECTED, CANDIDATES
    )
    assert np.isfinite(means.means).all()


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


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float64])
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


LABELS = [["b", "a", "c"], [7, -2, 30], [3.0, 2.0, -1.0], [True, False, True], np.array(["x", "y", "z"], dtype=object)]


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


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (make_pipeline(StandardScaler(), RandomForestRegressor(3)), "regression"),
        (Ridge(), "outputs"),
        (SVC(), "classes"),
    ],
    ids=str,
)
def test_only_clones_are_fitted(estimator: Any, kind: str) -> None:
    parts = [estimator, *dict(getattr(estimator, "steps", ())).values()]
    before = [(part.get_params(), dict(vars(part))) for part in parts]
    predictor = EstimatorPredictor(estimator)
    scorer = predictor.bind(make_case(kind), random_state=0)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert predictor.estimator is estimator
    assert [(part.get_params(), vars(part)) for part in parts] == before
    with pytest.raises(NotFittedError):
        check_is_fitted(parts[-1])


def test_a_predictor_is_plain_configuration() -> None:
    predictor = EstimatorPredictor(SVC(C=3))
    assert predictor.name == "SVC"
    assert predictor.get_params()["estimator__C"] == 3
    copy = clone(predictor).set_params(estimator__C=4)
    assert (copy.estimator.C, predictor.estimator.C) == (4, 3)
    assert predictor.losses == {"squared_error", "cross_entropy", "hinge", "scoring"}
    assert EstimatorPredictor(estimator=make_pipeline(SVC())).name == "Pipeline"


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_classes_without_probabilities_have_a_fair_start(kind: str) -> None:
    assert EstimatorPredictor(make_pipeline(StandardScaler(), GaussianNB())).classification_loss == "squared_error"
    predictor = EstimatorPredictor(make_pipeline(StandardScaler(), SVC()))
    assert predictor.classification_loss == "hinge"
    X, y = make_data(kind, n_rows=100)
    problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), classification_loss="hinge")
    scorer = predictor.bind(problem, random_state=0)
    errors = 1 - cross_val_score(predictor.estimator, X[:, [0]], y, cv=list(problem.splits(problem.rounds[0])))
    losses = scorer.add_losses(NOTHING, ColumnSets.of([[0]]))
    assert losses.means[0] == pytest.approx(2 * errors.mean())
    assert losses.means[0] < problem.constant_losses() @ problem.part_weights


def test_pandas_is_not_needed() -> None:
    program = """
import sys

class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoPandas())
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from ngp.data.groups import make_groups
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import EstimatorPredictor
from ngp.data.problem import make_problem

X = np.random.default_rng(0).normal(size=(20, 3))
problem = make_problem(X, X[:, 0] > 0, groups=make_groups(None, 3))
scorer = EstimatorPredictor(make_pipeline(StandardScaler(), SVC())).bind(problem, random_state=0)
scorer.add_losses(np.arange(1), ColumnSets.of([[1], [2]]))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# --- One seed, one answer


@pytest.mark.parametrize(
    "wrap", [lambda estimator: estimator, lambda estimator: make_pipeline(MinMaxScaler(), estimator)]
)
def test_open_random_states_follow_the_seed(wrap: Any) -> None:
    estimator, problem = wrap(RandomForestClassifier(5)), make_case("classes", loss="cross_entropy")
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


@pytest.mark.parametrize("cv", [3, "explicit"])
@pytest.mark.parametrize(("estimator", "kind"), [(SVR(), "regression"), (GaussianNB(), "binary"), (SVC(), "classes")])
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
