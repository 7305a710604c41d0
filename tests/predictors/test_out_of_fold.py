"""What a scorer predicts out of fold is what it judges; accuracy and R² are those of these predictions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scorer_cases import PROBLEMS, SELECTED, make_case
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ngp import NeuralGreedyPursuit
from ngp.data.problem import Problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import MLP, SSFN, ColumnSets, Kernel, ssfn
from ngp.predictors.committee import Committee, Schedule
from ngp.predictors.estimator import Estimator

CONDITIONS: dict[str, Any] = {"random_state": 5, "n_jobs": 1, "device": "cpu"}
NOTHING = np.zeros(0, np.intp)


def tree(problem: Problem) -> Estimator:
    kind = DecisionTreeRegressor if problem.classes is None else DecisionTreeClassifier
    return Estimator(kind(max_depth=2))


def small(**settings: Any) -> SSFN:
    return SSFN(n_units=12, n_draws=3, **settings)


FAMILIES: dict[str, Any] = {
    "ssfn": lambda problem: small(),
    "kernel": lambda problem: Kernel(),
    "landmarks": lambda problem: Kernel(landmarks=9),
    "mlp": lambda problem: MLP(n_units=6, epochs=2, n_draws=2),
    "two layers": lambda problem: MLP(n_units=6, n_layers=2, epochs=2, n_draws=1),
    "tree": tree,
    "committee": lambda problem: Committee([small(), Kernel()]),
    "schedule": lambda problem: Schedule(lambda step: Kernel()),
}
SOME = ["regression", "several outputs, sample weights", "classes, hinge", "repeated folds", "explicit, classes"]


def check(scorer: Any, problem: Problem, selected: Any, new: Any) -> None:
    predictions = scorer.out_of_fold(selected, new)
    assert [values.shape for values in predictions] == [(len(r.rows), problem.n_outputs) for r in problem.rounds]
    found = problem.part_losses(values[None] for values in predictions)[0]
    expected = scorer.add_losses(selected, ColumnSets.of([new])).parts[0]
    weights = problem.part_weights > 0
    np.testing.assert_allclose(found[weights], expected[weights], rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("case", SOME)
def test_out_of_fold_predictions_are_those_that_are_judged(family: str, case: str) -> None:
    problem = make_case(**PROBLEMS[case])
    scorer = FAMILIES[family](problem).bind(problem, **CONDITIONS)
    check(scorer, problem, SELECTED, np.array([0, 3]))
    check(scorer, problem, NOTHING, np.array([2]))


@pytest.mark.parametrize("case", PROBLEMS)
def test_those_of_an_ssfn_in_any_validation(case: str) -> None:
    problem = make_case(**PROBLEMS[case])
    check(small().bind(problem, **CONDITIONS), problem, SELECTED, np.array([0]))


def test_those_of_an_ssfn_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssfn, "BLOCK_ROWS", 17)
    problem = make_case("outputs", weighted=True)
    check(small().bind(problem, **CONDITIONS), problem, SELECTED, np.array([0]))


def test_the_last_stage_of_a_race_remembers_them() -> None:
    problem = make_case("classes")
    scorer = small().bind(problem, **CONDITIONS)
    stages, candidates = scorer.stages, ColumnSets.of([[0], [2], [3]])
    for stage in stages:
        stage.add_losses(SELECTED, candidates)
    (remembered,) = stages[-1].out_of_fold(SELECTED, np.array([2]))
    (computed,) = scorer.out_of_fold(SELECTED, np.array([2]))
    np.testing.assert_allclose(remembered, computed, atol=1e-5)


def pursued(problem: Problem, predictor: Any) -> Any:
    bind = partial(predictor.bind, **CONDITIONS)
    return pursue(Search(problem, bind, scoring=predictor.scoring), MaxFeatures(2), fixed=NOTHING).steps


@pytest.mark.parametrize("family", ["ssfn", "kernel", "tree", "committee"])
@pytest.mark.parametrize("case", ["classes, hinge", "binary, squared_error", "classes, weights, hinge"])
def test_the_score_of_classes_is_the_accuracy(family: str, case: str) -> None:
    problem = make_case(**PROBLEMS[case])
    predictor = FAMILIES[family](problem)
    start, first, _ = pursued(problem, predictor)
    (round_,) = problem.rounds
    judged, weights = round_.rows[round_.segments[1] :], problem.weights
    classes = np.searchsorted(problem.classes, problem.y)
    constant = np.full(len(judged), np.bincount(classes, weights).argmax())
    assert start.score == pytest.approx(accuracy_score(classes[judged], constant, sample_weight=weights[judged]))
    nothing, sets = NOTHING, ColumnSets.of([first.columns])
    scorer = predictor.bind(problem, **CONDITIONS).tuned(nothing, sets)
    predicted = scorer.out_of_fold(nothing, first.columns)[0][round_.segments[1] :]
    labels = predicted.argmax(axis=1) if problem.n_outputs > 1 else predicted[:, 0] > 0.5
    assert scorer.add_losses(nothing, sets).means[0] == pytest.approx(first.loss)
    assert first.score == pytest.approx(accuracy_score(classes[judged], labels, sample_weight=weights[judged]))
    assert 0 < first.score_error < 0.2


@pytest.mark.parametrize("cv", ["loo", 5])
def test_of_classes_that_are_as_frequent_the_constant_prediction_hits_one(cv: Any) -> None:
    """Though without a row of it, each class is rarer than the others."""
    selector = NeuralGreedyPursuit("kernel", cv=cv, n_features_to_select=1).fit(*load_iris(return_X_y=True))
    assert selector.path_[0].score == pytest.approx(1 / 3)


@pytest.mark.parametrize("case", ["regression", "several outputs, sample weights", "ShuffleSplit", "leave-one-out"])
def test_the_score_of_numbers_is_the_share_of_the_constants_loss_that_is_taken_away(case: str) -> None:
    problem = make_case(**PROBLEMS[case])
    start, first, second = pursued(problem, small())
    assert start.score == 0
    for step in (first, second):
        assert step.score == pytest.approx(1 - step.loss / start.loss)
        assert step.score_error == pytest.approx(step.standard_error / start.loss)


def test_r2_is_nearly_that_of_scikit_learn() -> None:
    """Which takes the mean of all rows for the constant prediction, and not that of each fold's training rows."""
    problem = make_case("regression", cv="loo")
    scorer = Kernel(ridge=0.1).bind(problem, **CONDITIONS)
    _, first, _ = pursued(problem, Kernel(ridge=0.1))
    (predicted,) = scorer.out_of_fold(NOTHING, first.columns)
    n, truth = problem.n_samples, problem.targets[problem.rounds[0].rows]
    expected = 1 - (1 - r2_score(truth, predicted)) * ((n - 1) / n) ** 2
    assert first.score == pytest.approx(expected, abs=1e-5)


def test_r2_needs_no_squared_error_to_be_the_loss() -> None:
    problem = make_case("regression")
    plain, judged = (
        Estimator(DecisionTreeRegressor(max_depth=2), scoring=way) for way in (None, "neg_mean_squared_error")
    )
    first, other = pursued(problem, plain)[1], pursued(problem, judged)[1]
    assert first.group == other.group
    assert other.score == pytest.approx(first.score)


def test_a_scorer_that_predicts_nothing_has_no_accuracy() -> None:
    problem = make_case("classes")
    predictor = small()

    class Silent(ssfn.SSFNScorer):
        def out_of_fold(self, selected: Any, new: Any) -> None:  # type: ignore[override]
            return None

    def bind(problem: Problem) -> Any:
        scorer = predictor.bind(problem, **CONDITIONS)
        return Silent(predictor, problem, 5, 1, scorer.n_layers, scorer.ridge)

    steps = pursue(Search(problem, bind), MaxFeatures(1), fixed=NOTHING).steps
    assert np.isnan([steps[1].score, steps[1].score_error]).all()
