"""Drop-one-out and ROAR: each step does what a plain loop over retrained predictors would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit

from ngp.baselines import ROAR, DropOneOut, Lasso, roar_curve
from ngp.baselines.elimination import EliminationStep
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.datasets import make_gravitation, make_ohm
from ngp.predictors import ColumnSets, Kernel

BOTH = pytest.mark.parametrize("method", [DropOneOut, ROAR])


def small_problem(n_rows: int = 60, n_columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, np.sin(X[:, 1]) + X[:, 4] * X[:, 2] + 0.1 * rng.normal(size=n_rows)


def kernel_loss(X: Any, y: Any, columns: Any) -> float:
    """Validation loss of a kernel predictor on some columns, scored from the empty set."""
    problem = make_problem(X, y, groups=make_groups(None, X.shape[1]), cv=[*KFold(3).split(X)])
    scorer = Kernel(dtype="float64").bind(problem, random_state=0)
    return float(scorer.add_losses(np.zeros(0, np.intp), ColumnSets.of([columns])).means[0])


def test_drop_one_out_drops_what_a_plain_loop_would() -> None:
    X, y = small_problem()
    path = DropOneOut(cv=KFold(3), random_state=0).fit(X, y).path_
    assert [len(step.features) for step in path] == [6, 5, 4, 3, 2, 1]
    for step in path[:-1]:
        without = [kernel_loss(X, y, np.setdiff1d(step.features, feature)) for feature in step.features]
        assert step.loss == pytest.approx(kernel_loss(X, y, step.features), rel=1e-4)
        assert step.removed.tolist() == [step.features[np.argmin(without)]]
        assert step.rises == pytest.approx([min(without) - step.loss], rel=1e-3, abs=1e-4)
    assert path[-1].rises[0] == pytest.approx(
        np.mean((y - np.concatenate([np.full(len(b), y[a].mean()) for a, b in KFold(3).split(y)])) ** 2)
        - path[-1].loss,
        rel=1e-4,
    )


def plain_occlusion(X: Any, y: Any, features: Any) -> tuple[float, list[float]]:
    """Loss of a ridge regression on held-out rows, as they are and with each feature at its mean."""
    errors = np.zeros((len(features) + 1, len(y)))
    for train, test in KFold(4).split(X):
        model = Ridge().fit(X[np.ix_(train, features)], y[train])
        for i in range(len(features) + 1):
            rows = X[np.ix_(test, features)]
            if i < len(features):
                rows[:, i] = X[train, features[i]].mean()
            errors[i, test] = (model.predict(rows) - y[test]) ** 2
    means = errors.mean(axis=1)
    return float(means[-1]), means[:-1].tolist()


def test_roar_removes_what_a_plain_loop_would() -> None:
    X, y = small_problem()
    path = ROAR(predictor=Ridge(), cv=KFold(4), step=2, random_state=0).fit(X, y).path_
    assert [len(step.features) for step in path] == [6, 4, 2, 1]
    for step in path[:-1]:
        loss, without = plain_occlusion(X, y, step.features)
        order = np.argsort(without)[: len(step.removed)]
        assert step.loss == pytest.approx(loss)
        assert step.removed.tolist() == step.features[order].tolist()
        assert step.rises == pytest.approx(np.array(without)[order] - loss)


@BOTH
def test_a_law_with_few_features_is_found(method: Any) -> None:
    X, y, truth = make_ohm(150, random_state=1)
    assert method(random_state=0).fit(X, y).get_support(indices=True).tolist() == truth.tolist()


@BOTH
def test_a_nonlinear_signal_without_any_correlation_is_found(method: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 8))
    y = X[:, 2] * X[:, 5]
    selector = method(random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 5]
    assert Lasso().fit(X, y).get_support(indices=True).tolist() != [2, 5]


@BOTH
def test_importances_rank_as_the_features_left(method: Any) -> None:
    X, y = small_problem()
    selector = method(random_state=0).fit(X, y)
    by_rank = selector.importances_[np.argsort(selector.ranking_)]
    assert (np.diff(by_rank) <= 0).all()
    assert sorted(selector.ranking_) == [1, 2, 3, 4, 5, 6]
    assert [step.removed[0] for step in selector.path_][::-1] == np.argsort(selector.ranking_).tolist()


@BOTH
@pytest.mark.parametrize(("step", "sizes"), [(4, [6, 2, 1]), (0.5, [6, 3, 2, 1])])
def test_step_says_how_many_leave(method: Any, step: Any, sizes: list[int]) -> None:
    X, y = small_problem()
    path = method(step=step, random_state=0).fit(X, y).path_
    assert [len(each.features) for each in path] == sizes
    assert sum(len(each.removed) for each in path) == 6


@BOTH
@pytest.mark.parametrize("number", [1, 3])
def test_the_last_k_are_selected(method: Any, number: int) -> None:
    X, y = small_problem()
    selector = method(n_features_to_select=number, random_state=0).fit(X, y)
    assert (selector.support_ == (selector.ranking_ <= number)).all()
    assert selector.support_.sum() == number


def with_path(sizes: list[int], losses: list[float], error: float) -> Any:
    """A fitted elimination of six features with a path of given losses."""
    selector = DropOneOut(random_state=0).fit(*small_problem())
    order = np.argsort(-selector.ranking_)
    nothing = np.zeros(0)
    selector.path_ = tuple(
        EliminationStep(order[6 - size :], loss, error, order[:0], nothing)
        for size, loss in zip(sizes, losses, strict=True)
    )
    return selector


@pytest.mark.parametrize(
    ("losses", "error", "expected"),
    [  # of 6, 5, 4, 3, 2, 1 features
        ([1.0, 1.0, 1.0, 1.0, 1.0, 5.0], 0.1, 2),  # the smallest of equals
        ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], 0.05, 6),  # each one pays
        ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], 0.4, 1),  # too little to be sure
        ([1.0, 1.0, 1.0, 5.0, 5.0, 5.0], 0.1, 4),  # three that only help together
        ([0.1, 1.2, 1.2, 1.2, 1.0, 3.0], 0.1, 2),  # a large set that looks better has no say
        ([np.nan, np.nan, 1.0, 1.2, np.nan, 3.0], 0.1, 4),  # nor has one that diverged
    ],
)
def test_the_validation_loss_says_where_to_stop(losses: list[float], error: float, expected: int) -> None:
    selector = with_path([6, 5, 4, 3, 2, 1], losses, error)
    assert selector._best_size() == expected


@BOTH
def test_a_category_leaves_as_one(method: Any) -> None:
    rng = np.random.default_rng(1)
    town = rng.integers(0, 3, 120)
    X = pd.DataFrame(
        {"noise": rng.normal(size=120), "town": pd.Categorical(np.array(["A", "B", "C"])[town]), "one": np.ones(120)}
    )
    with pytest.warns(UserWarning, match="constant features, 1 of 3 .one."):
        selector = method(random_state=0).fit(X, np.array([0.0, 5.0, 1.0])[town] + 0.01 * rng.normal(size=120))
    assert selector.get_feature_names_out().tolist() == ["town"]
    assert [step.removed.tolist() for step in selector.path_] == [[0], [1]]
    assert selector.ranking_.tolist() == [2, 1, 3]
    rises = np.maximum.accumulate(np.maximum([step.rises[0] for step in selector.path_], 0))
    assert selector.importances_ == pytest.approx([*rises / rises.sum(), 0])


@BOTH
def test_of_equals_the_first_stays(method: Any) -> None:
    X, y = small_problem()
    X[:, 2] = X[:, 4] = X[:, 1]
    ranking = method(random_state=0).fit(X, y).ranking_
    assert ranking[1] < ranking[2] < ranking[4]


@BOTH
@pytest.mark.parametrize("predictor", ["ssfn", ["kernel", Ridge()]])
def test_any_predictor_can_judge(method: Any, predictor: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    y = 3 * X[:, 1] + 0.1 * rng.normal(size=80)
    assert method(predictor=predictor, random_state=0).fit(X, y).get_support(indices=True).tolist() == [1]


@BOTH
def test_neither_jobs_nor_a_second_fit_change_anything(method: Any) -> None:
    X, y = small_problem()
    selectors = [method(n_jobs=n_jobs, random_state=5).fit(X, y) for n_jobs in (1, 2)]
    assert (selectors[0].importances_ == selectors[1].importances_).all()
    assert (selectors[0].fit(X, y).importances_ == selectors[1].importances_).all()


@BOTH
@pytest.mark.parametrize("cv", [0.3, "loo", ShuffleSplit(3, test_size=0.3, random_state=0)])
def test_any_way_of_validation(method: Any, cv: Any) -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    selector = method(cv=cv, random_state=0).fit(X, np.sin(2 * X[:, 1]) + X[:, 3])
    assert selector.get_support(indices=True).tolist() == [1, 3]


@BOTH
def test_classes_that_a_fold_lacks_do_no_harm(method: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] > 0, "b", "a")
    y[:2] = "c"
    selector = method(n_features_to_select=1, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1]


class Diverging(BaseEstimator):
    """Predicts zero, or NaN without the first of three columns."""

    def fit(self, X: Any, y: Any) -> Diverging:
        self.bad_ = X.shape[1] == 2 and (X[:, 0] < 5).all()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), np.nan if self.bad_ else 0.0)


def test_a_feature_without_which_training_diverges_stays() -> None:
    X, y = small_problem()
    X = X[:, :3] + [10, 0, 0]
    path = DropOneOut(predictor=Diverging(), random_state=0).fit(X, y).path_
    assert path[0].removed.tolist() != [0]
    assert np.isfinite(path[0].rises).all()


# The curve


def test_the_curve_is_that_of_predictors_without_the_first_features() -> None:
    X, y = small_problem()
    curve = roar_curve(X, y, [3, 1, 1, 0, 9, 1], shares=(0, 0.4, 1), cv=KFold(3), random_state=0)
    assert curve.n_removed.tolist() == [0, 2, 6]
    expected = [kernel_loss(X, y, np.arange(6)), kernel_loss(X, y, np.array([1, 2, 3, 5]))]
    assert curve.losses[:2] == pytest.approx(expected, rel=1e-4)
    assert curve.losses[2] == pytest.approx(np.var(y), rel=0.1)
    assert (curve.standard_errors > 0).all()


def test_a_good_ranking_has_the_steeper_curve() -> None:
    X, y, _ = make_gravitation(150, random_state=0)
    good = DropOneOut(random_state=0).fit(X, y)
    bad = 1 - good.importances_
    curves = [roar_curve(X, y, each, shares=(0.1, 0.2, 0.3), random_state=0).losses for each in (good, bad)]
    assert (curves[0] > 2 * curves[1]).all()


def test_the_curve_takes_categories_as_one() -> None:
    rng = np.random.default_rng(1)
    town = rng.integers(0, 3, 90)
    X = pd.DataFrame({"x": rng.normal(size=90), "town": pd.Categorical(np.array(["A", "B", "C"])[town])})
    curve = roar_curve(X, town.astype(float) + 0.01 * X["x"], [0, 1], shares=(0, 0.5), random_state=0)
    assert curve.losses[1] > 10 * curve.losses[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"importances": [1, 2]}, r"importances of shape \(2,\) must be one finite number for each of the 6"),
        ({"importances": [1, 2, 3, 4, 5, np.nan]}, r"importances of shape \(6,\) must be one finite number"),
        ({"shares": (0.5, 1.5)}, r"shares=\(0.5, 1.5\) must be numbers from 0 to 1"),
        ({"shares": ()}, r"shares=\(\) must be numbers from 0 to 1"),
    ],
)
def test_what_the_curve_refuses(arguments: dict[str, Any], message: str) -> None:
    X, y = small_problem()
    with pytest.raises(ValueError, match=message):
        roar_curve(X, y, **{"importances": np.arange(6), **arguments})


def test_the_curve_refuses_gaps_in_one_sentence() -> None:
    X, y = small_problem()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"^Input X contains NaN: drop rows .*\.$"):
        roar_curve(X, y, np.arange(6))
