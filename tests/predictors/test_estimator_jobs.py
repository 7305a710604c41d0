"""scikit-learn estimators in tasks side by side: the same picks, each warning once, and errors that say where."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from estimator_cases import CANDIDATES, NOTHING, SELECTED, bind, make_case
from joblib import parallel_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import estimator as module
from ngp.predictors.base import ColumnSets
from ngp.predictors.estimator import EstimatorPredictor

# --- Tasks side by side


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_the_same_bits_for_every_chunk_size(scoring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("classes", weighted=True, scoring=scoring)
    expected = bind(LogisticRegression(), problem).add_losses(SELECTED, CANDIDATES).parts
    for numbers in (1, 2**9, 2**30):
        monkeypatch.setattr(module, "CHUNK_NUMBERS", numbers)
        parts = bind(LogisticRegression(), problem).add_losses(SELECTED, CANDIDATES).parts
        np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize(
    "estimator", [make_pipeline(StandardScaler(), SVR()), RandomForestRegressor(3), Ridge()], ids=str
)
def test_the_same_picks_for_every_number_of_jobs_and_backend(estimator: Any) -> None:
    problem = make_case()

    def picks(n_jobs: int | None) -> tuple[list[int], list[float]]:
        path = pursue(Search(problem, bind(estimator, problem, n_jobs)), MaxFeatures(3), fixed=NOTHING)
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
        bind(Broken(), make_case(scoring="r2")).add_losses(NOTHING, ColumnSets.of([[6]]))
    assert "on the columns 6 of X" in caught.value.__notes__[0]
    wide = np.zeros((6, 12))
    problem = make_problem(wide, np.arange(6.0), groups=make_groups(None, 12), cv=2)
    with pytest.raises(ArithmeticError) as caught:
        bind(Broken(), problem).fit(np.arange(12))
    assert "on the columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … of X" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("estimator", "case", "device", "message"),
    [
        (SVC(), {"kind": "classes"}, "cuda", "device='cuda' can't run SVC: use device='cpu' or 'auto'."),
        (
            SVC(),
            {},
            "auto",
            "predictor=SVC is a classifier, and y holds quantities: "
            "give a regressor, or task='classification' if y holds classes.",
        ),
        (
            make_pipeline(MinMaxScaler(), SVR()),
            {"kind": "binary"},
            "cpu",
            "predictor=Pipeline is a regressor, and y holds classes: "
            "give a classifier, or task='regression' if y holds quantities.",
        ),
        (
            KNeighborsRegressor(),
            {"weighted": True},
            "auto",
            "sample_weight can't be used by KNeighborsRegressor, whose fit takes none: leave it out, or give another",
        ),
        (
            make_pipeline(MinMaxScaler(), KNeighborsRegressor()),
            {"weighted": True},
            "auto",
            "sample_weight can't be used by Pipeline, whose fit takes none",
        ),
    ],
)
def test_mistakes(estimator: Any, case: dict[str, Any], device: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        EstimatorPredictor(estimator).bind(make_case(**case), random_state=0, device=device)
