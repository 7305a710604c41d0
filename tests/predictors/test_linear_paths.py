"""Linear regressions in closed form against clones fitted one by one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, LinearRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.predictors import linear
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import EstimatorPredictor, EstimatorScorer, Trainer
from ngp.predictors.linear import closed_form, linear_losses

N_COLUMNS = 10
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([7, 0, 3])
CANDIDATES = ColumnSets.of([[1], [2], [4, 5], [], [6], [8, 9, 1], [5], [9, 2]])
ESTIMATORS: dict[str, Any] = {
    "ridge": Ridge(),
    "weak ridge": Ridge(1e-4),
    "strong ridge, no intercept": Ridge(100.0, fit_intercept=False),
    "ridge by Cholesky": Ridge(0.1, solver="cholesky"),
    "a ridge of zero": Ridge(0.0),
    "least squares": LinearRegression(),
    "least squares, no intercept": LinearRegression(fit_intercept=False),
    "scaled ridge": make_pipeline(StandardScaler(), Ridge(0.5)),
    "scaled ridge, no intercept": make_pipeline(StandardScaler(), Ridge(fit_intercept=False)),
    "scaled least squares": make_pipeline(StandardScaler(), LinearRegression()),
}
CVS: dict[str, Any] = {
    "folds": 3,
    "uneven folds": KFold(5),
    "hold-out": 0.3,
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "loo": "loo",
    "time": TimeSeriesSplit(2, test_size=4),
    "ShuffleSplit": ShuffleSplit(2, test_size=0.4, random_state=0),
}


def make_case(
    cv: Any = 3,
    *,
    seed: int = 0,
    n_rows: int = 40,
    n_outputs: int = 1,
    weighted: bool = False,
    spread: float = 0.0,
    corners: tuple[str, ...] = (),
) -> Problem:
    """Random data; spread is the range of the columns' scales and means in powers of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS)) + rng.normal(size=N_COLUMNS)
    if "equal columns" in corners:
        X[:, 4] = X[:, 5]
    if "a selected column again" in corners:
        X[:, 1] = X[:, 7]
    if "a sum of columns" in corners:
        X[:, 2] = X[:, 0] - 2 * X[:, 3]
    if "nearly a selected column" in corners:
        X[:, 6] = X[:, 0] + 10 ** rng.uniform(-9, -1) * rng.normal(size=n_rows)
    if "a constant column" in corners:
        X[:, 8] = rng.choice([0.0, 0.1, -3.7])
    if "a selected constant" in corners:
        X[:, 3] = 0.3
    if "a single one" in corners:
        X[:, 9] = np.arange(n_rows) == rng.integers(n_rows)
    signal = X[:, [0, 1, 5]] @ rng.normal(size=(3, n_outputs)) + 2
    y = signal + rng.uniform(0.1, 3) * rng.normal(size=(n_rows, n_outputs))
    if "an outlier" in corners:
        X[rng.integers(n_rows), 1] = 1e7
    X = X * 10 ** rng.uniform(-spread, spread, size=N_COLUMNS)
    X += rng.normal(size=N_COLUMNS) * np.abs(X).mean(axis=0) * 10 ** rng.uniform(-1, spread)
    weights = np.where(np.arange(n_rows) % 3, rng.integers(0, 4, size=n_rows) / 2, 0.8) if weighted else None
    groups = make_groups(None, N_COLUMNS)
    return make_problem(X, y, groups=groups, task="regression", cv=cv, sample_weight=weights, random_state=seed)


def bind(estimator: Any, problem: Problem, n_jobs: int | None = None) -> EstimatorScorer:
    return EstimatorPredictor(estimator).bind(problem, random_state=0, n_jobs=n_jobs)


def check(
    scorer: EstimatorScorer, selected: Any = SELECTED, candidates: ColumnSets = CANDIDATES, bound: float = 1e-9
) -> None:
    assert scorer.linear is not None
    losses = scorer.add_losses(selected, candidates)
    plain = scorer._fit_all(selected, candidates)
    expected = plain @ losses.weights
    np.testing.assert_allclose(losses.means, expected, rtol=bound)
    differences = losses.weights * np.abs(losses.parts - plain) / expected[:, None]
    assert differences.max() <= bound


def which_are_exact(scorer: EstimatorScorer, candidates: ColumnSets = CANDIDATES) -> Any:
    assert scorer.linear is not None
    return linear_losses(scorer.problem, scorer.linear, SELECTED, candidates, None)[1]


@pytest.fixture
def no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a clone was fitted")

    monkeypatch.setattr(Trainer, "train", refuse)


@pytest.mark.parametrize("cv", CVS.values(), ids=CVS)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_losses_are_those_of_clones(estimator: Any, cv: Any) -> None:
    scorer = bind(estimator, make_case(cv, n_rows=24, n_outputs=2, weighted=True))
    check(scorer)
    assert which_are_exact(scorer).all()
    check(bind(estimator, make_case(cv, n_rows=18)), NOTHING, ColumnSets.of([[1], [2, 3, 7]]))


CORNERS = [
    "equal columns",
    "a selected column again",
    "a sum of columns",
    "nearly a selected column",
    "a constant column",
    "a selected constant",
    "a single one",
    "an outlier",
]


@pytest.mark.filterwarnings("ignore")  # ill-conditioned matrices, of which clones warn
@given(
    estimator=st.sampled_from(sorted(ESTIMATORS)),
    cv=st.sampled_from(sorted(set(CVS) - {"loo"})),
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(12, 60),
    n_outputs=st.integers(1, 3),
    weighted=st.booleans(),
    spread=st.sampled_from([0.0, 1.0, 2.0, 3.0]),
    corners=st.lists(st.sampled_from(CORNERS), max_size=3, unique=True),
)
@settings(max_examples=100, deadline=None)
def test_losses_in_the_corners(estimator: str, cv: str, corners: list[str], **data: Any) -> None:
    check(bind(ESTIMATORS[estimator], make_case(CVS[cv], corners=tuple(corners), **data)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ["ridge", "least squares", "scaled ridge"])
@pytest.mark.parametrize("corner", CORNERS)
def test_leave_one_out_in_the_corners(estimator: str, corner: str) -> None:
    check(bind(ESTIMATORS[estimator], make_case("loo", n_rows=18, corners=(corner,), weighted=True)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize("n_rows", [4, 6, 9])
def test_more_columns_than_rows(estimator: Any, n_rows: int) -> None:
    scorer = bind(estimator, make_case(2, n_rows=n_rows))
    candidates = ColumnSets.of([[1], [2, 4], [1, 2, 4, 5, 6, 8, 9]])
    if isinstance(estimator, LinearRegression):
        assert not which_are_exact(scorer, candidates)[2]
    expected, got = scorer._fit_all(SELECTED, candidates), scorer.add_losses(SELECTED, candidates).parts
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * expected.max())


@pytest.mark.parametrize("penalties", [[0.1, 5.0, 0.1], np.array([3.0, 0.2, 0.0]), [2.0]])
def test_a_penalty_for_each_output(penalties: Any, no_fits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(Ridge(penalties), make_case(n_outputs=3, weighted=True))
    scorer.add_losses(SELECTED, CANDIDATES)  # without a fit
    monkeypatch.undo()
    check(scorer)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_plain_data_need_no_fits(estimator: Any, no_fits: None) -> None:
    for case in ({}, {"weighted": True, "n_outputs": 2}, {"cv": "loo"}, {"spread": 1.0}):
        bind(estimator, make_case(**case)).add_losses(SELECTED, CANDIDATES)  # type: ignore[arg-type]


def test_least_squares_leaves_collinear_candidates_to_clones() -> None:
    problem = make_case(corners=("a selected column again", "a sum of columns", "equal columns"))
    for estimator in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        exact = which_are_exact(bind(estimator, problem))
        assert exact.tolist() == [False, False, False, True, True, False, True, False]
    assert which_are_exact(bind(Ridge(), problem)).all()


def test_a_collinear_selection_leaves_everything_to_clones() -> None:
    problem = make_case(corners=("a selected constant",))
    assert not which_are_exact(bind(LinearRegression(), problem)).any()
    assert which_are_exact(bind(Ridge(), problem)).all()


@pytest.mark.parametrize("tol", [0.0, 1e-6, 1e-3, 0.3])
def test_small_singular_values_are_cut_off_as_in_scikit_learn(tol: float) -> None:
    data = make_case(seed=4)
    for power in range(0, 10):
        X = data.X.copy()
        X[:, 2] *= 10.0**-power  # least squares as such wouldn't mind
        problem = make_problem(X, data.y, groups=make_groups(None, N_COLUMNS), cv=3)
        check(bind(LinearRegression(tol=tol), problem))
    assert not which_are_exact(bind(LinearRegression(tol=tol), problem))[[1, 7]].any()


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression(), make_pipeline(StandardScaler(), Ridge())], ids=str)
def test_values_too_large_to_square_are_left_to_clones(estimator: Any) -> None:
    data = make_case()
    data.X[3, 2] = 1e200
    exact = which_are_exact(bind(estimator, data))
    assert not exact[[1, 7]].any()
    assert exact[[0, 3, 4]].all()


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("cv", [3, "loo"])
@pytest.mark.parametrize("estimator", [Ridge(), make_pipeline(StandardScaler(), LinearRegression())], ids=str)
def test_the_same_bits_for_every_number_of_jobs_and_chunk_size(
    estimator: Any, cv: Any, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case(cv, n_outputs=2, weighted=True, n_rows=37)
    expected = bind(estimator, problem).add_losses(SELECTED, CANDIDATES).parts
    for numbers in (1, 100, 2**30):
        monkeypatch.setattr(linear, "CHUNK_NUMBERS", numbers)
        parts = bind(estimator, problem, n_jobs).add_losses(SELECTED, CANDIDATES).parts
        np.testing.assert_array_equal(parts, expected)


def test_equal_columns_have_equal_losses_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(53, 120))
    X[:, 20:] = X[:, [17]]
    y = X[:, 0] + X[:, 17] + rng.normal(size=53)
    problem = make_problem(X, y, groups=make_groups(None, 120), cv=5)
    means = bind(Ridge(), problem).add_losses(np.arange(3), ColumnSets.singles(np.arange(17, 120))).means
    assert (means[3:] == means[0]).all()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_same_bits_for_every_backend(backend: str) -> None:
    problem = make_case(n_outputs=2)
    expected = bind(Ridge(), problem).add_losses(SELECTED, CANDIDATES).parts
    with parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(bind(Ridge(), problem).add_losses(SELECTED, CANDIDATES).parts, expected)


class OwnRidge(Ridge):  # type: ignore[misc]
    """May do anything."""


@pytest.mark.parametrize(
    "estimator",
    [
        OwnRidge(),
        Ridge(positive=True),
        Ridge(solver="sag"),
        Ridge(solver="svd"),
        Ridge(solver="lsqr"),
        Ridge([1.0, 2.0]),  # scikit-learn says no to two penalties for three outputs
        LinearRegression(positive=True),
        RidgeClassifier(),
        Lasso(),
        make_pipeline(StandardScaler(with_mean=False), Ridge()),
        make_pipeline(StandardScaler(with_std=False), Ridge()),
        make_pipeline(PCA(1), Ridge()),
        make_pipeline(StandardScaler(), PCA(1), Ridge()),
        make_pipeline(StandardScaler(), Lasso()),
        make_pipeline(Ridge()),
    ],
    ids=str,
)
def test_all_else_has_no_closed_form(estimator: Any) -> None:
    assert closed_form(estimator, n_outputs=3) is None


def test_scorers_need_fitted_estimators() -> None:
    data = make_case()
    problem = make_problem(data.X, data.y, groups=make_groups(None, N_COLUMNS), scoring="r2")
    assert bind(Ridge(), problem).linear is None


def test_mistakes_are_scikit_learns() -> None:
    with pytest.raises(ValueError, match=re.escape("The 'alpha' parameter of Ridge must be")):
        bind(Ridge(alpha=-1.0), make_case()).add_losses(SELECTED, CANDIDATES)
    with pytest.raises(ValueError, match="Number of targets and number of penalties do not correspond"):
        bind(Ridge([1.0, 2.0]), make_case()).add_losses(SELECTED, CANDIDATES)
