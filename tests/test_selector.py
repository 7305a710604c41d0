"""The scikit-learn face: conventions, attributes, parameters."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ngp import NeuralGreedyPursuit
from ngp.data.groups import image_windows, make_groups
from ngp.datasets import make_artificial, make_gravitation
from ngp.greedy.stopping import MaxColumns, RelativeImprovement
from ngp.predictors import SSFN
from ngp.report.result import correlations

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)


@parametrize_with_checks(
    [
        NeuralGreedyPursuit(),
        NeuralGreedyPursuit(SSFN(n_units=10, n_draws=1)),
        NeuralGreedyPursuit(FAST, n_features_to_select=1, cv=0.4, n_jobs=2),
        NeuralGreedyPursuit(FAST, tol=0.0, cv="loo", max_fits=20),
        NeuralGreedyPursuit(FAST, tol=0.09, task="classification"),
        NeuralGreedyPursuit(FAST, tol=0.09, task="regression"),
    ],
    # As with scikit-learn's own estimators that resample: the rows of the redrawn columns are permuted one by one.
    expected_failed_checks=lambda selector: (
        {
            f"check_sample_weight_equivalence_on_{kind}_data": "p-values count a repeated row as several"
            for kind in ("dense", "sparse")
        }
        if selector.tol is None and selector.n_features_to_select is None
        else {}
    ),
)
@pytest.mark.filterwarnings("ignore:Nothing was", "ignore:No features were", "ignore:X has constant features")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def make_data(n_samples: int = 80, n_columns: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Draw y from columns 4 and 1, the former more important."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_columns))
    return X, 2 * X[:, 4] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n_samples)


def make_selector(*args: Any, **settings: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(*(args or (FAST,)), **{"random_state": 0, **settings})


def fit(*args: Any, **settings: Any) -> NeuralGreedyPursuit:
    return make_selector(*args, **settings).fit(*make_data())


def test_attributes_agree_with_each_other() -> None:
    X, y = make_data()
    selector = make_selector(tol=0.05).fit(X, y)
    steps, order = selector.path_, selector.order_
    assert order.tolist()[:2] == [4, 1]
    assert selector.support_.dtype == bool
    assert selector.support_.shape == (6,)
    assert sorted(order) == np.flatnonzero(selector.support_).tolist()
    assert [step.group for step in steps if step.kept and step.action == "add"] == order.tolist()
    assert selector.losses_.shape == (len(steps) - 1, 6)
    for k, step in enumerate(steps[1:]):
        np.testing.assert_array_equal(selector.losses_[k], step.losses)
        earlier = {s.group for s in steps[1 : k + 1]}
        assert {int(c) for c in np.flatnonzero(np.isnan(step.losses))} == earlier
        assert np.nanmin(step.losses) == step.loss
        assert step.predictor == "SSFN"
    importances = selector.feature_importances_
    assert importances.shape == (6,)
    np.testing.assert_array_equal(importances > 0, selector.support_)
    for step in steps[1:]:
        if step.kept:
            assert importances[step.group] == pytest.approx((step.before - step.loss) / steps[0].loss)
    assert importances.sum() <= 1
    assert steps[0].loss == pytest.approx(np.var(y), rel=0.1)
    assert "no relative improvement of at least 0.05" in selector.stop_reason_
    assert (selector.task_, selector.n_features_in_) == ("regression", 6)
    assert not hasattr(selector, "classes_")
    assert not hasattr(selector, "feature_names_in_")
    assert selector.groups_.n_groups == 6
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])
    assert selector.get_feature_names_out().tolist() == [f"x{c}" for c in sorted(order)]
    assert selector.get_support(indices=True).tolist() == sorted(order)
    assert selector.score(X, y) > 0.9
    np.testing.assert_array_equal(selector.predictor_.predict(X)[:, 0], selector.predict(X))


def test_prediction_reads_selected_columns_only() -> None:
    X, y = make_data()
    selector = make_selector(n_features_to_select=2).fit(X, y)
    other = np.where(selector.support_, X, 1e6)
    np.testing.assert_array_equal(selector.predict(other), selector.predict(X))


def test_a_number_alone_is_that_number_even_if_nothing_pays() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    for number in range(1, 6):
        selector = make_selector(n_features_to_select=number).fit(X, y)
        assert len(selector.order_) == selector.support_.sum() == number


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_features_to_select": 1, "tol": 0.05}, 1),
        ({"n_features_to_select": 6, "tol": 0.05}, 2),
        ({"tol": 0.05}, 2),
        ({}, 2),
        ({"tol": 1e3}, 0),
        ({"n_features_to_select": 6, "stop": "plateau"}, 2),
        ({"stop": RelativeImprovement(0.05, patience=2)}, 2),
        ({"stop": MaxColumns(3)}, 3),
        ({"n_features_to_select": 0.5}, 3),
        ({"n_features_to_select": 0.01}, 1),
        ({"n_features_to_select": 1.0}, 6),
        ({"n_features_to_select": 0.5, "tol": 0.05}, 2),
    ],
)
@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_number_share_tolerance_and_rule_combine(settings: dict[str, Any], expected: int) -> None:
    selector = fit(SSFN(n_units=30, n_draws=2), **settings)
    assert selector.order_.tolist()[:2] == [4, 1][:expected]
    assert selector.support_.sum() == expected


def test_nothing_is_a_valid_selection() -> None:
    X, y = make_data()
    with pytest.warns(UserWarning, match=r"Nothing was selected \(no .*\): the prediction is constant") as caught:
        selector = make_selector(tol=1e6).fit(X, y)
    assert caught[0].filename == __file__  # it points at the user's line
    assert len(selector.order_) == selector.support_.sum() == selector.feature_importances_.sum() == 0
    np.testing.assert_allclose(selector.predict(X[:7]), np.full(7, y.mean()))
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (80, 0)
    labels = np.where(np.arange(80) % 4 > 0, "often", "rare")
    with pytest.warns(UserWarning, match="Nothing was selected"):
        classifier = make_selector(tol=1e6).fit(X, labels)
    np.testing.assert_allclose(classifier.predict_proba(X), np.tile([0.75, 0.25], (80, 1)))
    assert (classifier.predict(X) == "often").all()


@pytest.mark.parametrize("fixed", [[5, 0], [True, False, False, False, False, True], np.array([0, 5])])
def test_fixed_columns_are_selected_without_rank(fixed: Any) -> None:
    selector = fit(n_features_to_select=3, fixed=fixed)
    assert np.flatnonzero(selector.support_).tolist() == [0, 4, 5]
    assert selector.order_.tolist() == [4]
    assert sorted(selector.path_[0].columns) == [0, 5]
    assert selector.predict(make_data()[0]).shape == (80,)


GROUPINGS = {
    "labels": ["a", "b", "a", "b", "c", "c"],
    "numbers": [7, 1, 7, 1, 0, 0],
    "lists": [[0, 2], [1, 3], [4, 5]],
    "mapping": {"a": [0, 2], "b": [1, 3], "c": [4, 5]},
    "object": make_groups([[0, 2], [1, 3], [4, 5]], 6),
}


@pytest.mark.parametrize("groups", GROUPINGS.values(), ids=GROUPINGS)
def test_groups_enter_together(groups: Any) -> None:
    selector = fit(n_features_to_select=2, groups=groups)
    assert selector.order_.tolist() == [2, 1]
    assert selector.support_.tolist() == [False, True, False, True, True, True]
    assert selector.losses_.shape == (2, 3)
    importances = selector.feature_importances_
    assert importances[4] == importances[5] > importances[1] == importances[3] > 0
    assert fit(n_features_to_select=0.4, groups=groups).support_.sum() == 2


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]])
def test_groups_of_one_column_each_are_the_columns_in_whatever_order(order: list[int]) -> None:
    X, y = make_data()
    X[:, 5], costs = 3.7, np.array([1.0, 3.0, 1.0, 1.0, 5.0, 1.0])
    groups = {f"x{column}": [column] for column in order}
    ways: list[dict[str, Any]] = [
        {"groups": make_groups(None, 6, costs=costs)},
        {"groups": make_groups(groups, 6, costs=costs[order])},
    ]
    found = []
    for way in ways:
        with pytest.warns(UserWarning, match=r"X has constant features, 1 of 6 \(x5\): they are never selected"):
            found.append(make_selector(n_features_to_select=2, **way).fit(X, y))
    plain, grouped = found
    assert [step.name for step in grouped.path_] == [step.name for step in plain.path_]
    assert [order[group] for group in grouped.order_] == plain.order_.tolist()
    np.testing.assert_array_equal(grouped.losses_, plain.losses_[:, order])
    for one, other in zip(correlations(grouped, X), correlations(plain, X), strict=True):
        assert [order[group] for group in one.groups] == other.groups


def test_image_windows_are_groups() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 16))
    y = X[:, [10, 11, 14, 15]].sum(axis=1)
    selector = make_selector(n_features_to_select=1, groups=image_windows((4, 4), 2)).fit(X, y)
    assert selector.groups_.names[selector.order_[0]] == "rows 2-3, cols 2-3"
    assert np.flatnonzero(selector.support_).tolist() == [10, 11, 14, 15]


def test_costs_change_the_choice() -> None:
    X, _ = make_data()
    y = 2 * X[:, 4] + X[:, 1]
    for costs, first in [(None, 4), ([1, 1, 1, 1, 2, 1], 4), ([1, 1, 1, 1, 1e3, 1], 1)]:
        assert make_selector(n_features_to_select=1, groups=make_groups(None, 6, costs=costs)).fit(
            X, y
        ).order_.tolist() == [first]


def test_clone_pickle_and_parameters() -> None:
    X, y = make_data()
    selector = make_selector(n_features_to_select=2)
    assert selector.get_params()["predictor__n_units"] == 15
    copy = clone(selector).set_params(predictor__n_units=9, tol=0.5)
    assert (copy.predictor.n_units, copy.tol, selector.predictor.n_units) == (9, 0.5, 15)
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.predict(X)
    labels = y > 1
    selector.fit(X, labels)
    again = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(again.predict_proba(X), selector.predict_proba(X))
    np.testing.assert_array_equal(again.losses_, selector.losses_)
    np.testing.assert_array_equal(clone(selector).fit(X, labels).losses_, selector.losses_)


def test_inside_a_search_over_a_pipeline() -> None:
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), make_selector())
    grid = {"neuralgreedypursuit__n_features_to_select": [1, 2], "neuralgreedypursuit__predictor__n_units": [5, 20]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_["neuralgreedypursuit__n_features_to_select"] == 2
    assert search.best_estimator_[-1].order_.tolist() == [4, 1]


def test_the_result_depends_on_the_data_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, size=(60, 7))
    y = X[:, 3] + np.abs(X[:, 5]) + 0.1 * rng.normal(size=60)
    base = make_selector(n_features_to_select=5).fit(X, y)

    def assert_same(other: Any) -> None:
        np.testing.assert_array_equal(other.order_, base.order_)
        np.testing.assert_array_equal(other.losses_, base.losses_)

    for other in (X.astype(float), X.astype(np.float32), np.asfortranarray(X), X.tolist(), X.astype(np.int8)):
        assert_same(make_selector(n_features_to_select=5).fit(other, y))
    for n_jobs in (1, 2, -1):
        assert_same(make_selector(n_features_to_select=5, n_jobs=n_jobs).fit(X, y))
    with parallel_config(backend="loky", n_jobs=2):
        assert_same(make_selector(n_features_to_select=5).fit(X, y))
    assert_same(base.fit(X, y))
    order = rng.permutation(7)
    permuted = make_selector(n_features_to_select=5).fit(X[:, order], y)
    np.testing.assert_array_equal(order[permuted.order_], base.order_)
    np.testing.assert_array_equal(permuted.losses_, base.losses_[:, order])
    different = make_selector(n_features_to_select=5, random_state=1).fit(X, y)
    assert (different.losses_[0] != base.losses_[0]).all()


def test_precisions_agree() -> None:
    predictors = (clone(FAST).set_params(dtype=dtype) for dtype in ("float32", "float64"))
    single, double = (fit(predictor, n_features_to_select=3) for predictor in predictors)
    assert single.order_.tolist()[:2] == double.order_.tolist()[:2] == [4, 1]
    np.testing.assert_allclose(single.losses_[:2], double.losses_[:2], rtol=1e-4)
    assert (single.losses_[:2] != double.losses_[:2])[:, [0, 2, 3, 5]].all()


def test_budgets_stop_early() -> None:
    fits = fit(n_features_to_select=6, max_fits=8)
    assert len(fits.order_) == 2
    assert sum(step.n_fits for step in fits.path_) >= 8
    assert "the path is partial" in fits.stop_reason_
    with pytest.warns(UserWarning, match=r"Nothing was selected \(the time of 1e-09 seconds is up"):
        assert len(fit(n_features_to_select=6, max_time=1e-9).order_) == 0
    assert len(fit(n_features_to_select=6, max_time=60).order_) == 6


def test_verbose_prints_a_line_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    selector = fit(n_features_to_select=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(selector.path_) == 3
    assert all(line.startswith("[ngp] ") and " loss " in line for line in lines)
    assert ["start" in lines[0], "add x4" in lines[1], "add x1" in lines[2]] == [True] * 3
    fit(n_features_to_select=1)
    assert capsys.readouterr().out == ""


ROWS = np.arange(80)
WAYS_OF_VALIDATION = {
    "folds": 3,
    "share": 0.3,
    "leave-one-out": "loo",
    "splitter": KFold(4),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random splits": ShuffleSplit(3, random_state=0),
    "time": TimeSeriesSplit(3),
    "splits": [(ROWS[:50], ROWS[50:])],
    "a pair of splits": ((ROWS[:40], ROWS[40:]), (ROWS[40:], ROWS[:40])),
    "a pair of uneven splits": ((ROWS[:50], ROWS[50:]), (ROWS[30:], ROWS[:30])),
    "masks": [(ROWS < 50, ROWS >= 50)],
    "explicit": make_data(30, seed=1),
}


@pytest.mark.parametrize("cv", WAYS_OF_VALIDATION.values(), ids=WAYS_OF_VALIDATION)
def test_every_way_of_validation(cv: Any) -> None:
    selector = fit(n_features_to_select=2, cv=cv)
    assert selector.order_.tolist() == [4, 1]
    assert np.isfinite([step.standard_error for step in selector.path_]).all()


def test_groups_of_samples_are_kept_together() -> None:
    X, y = make_data()
    together = np.arange(80) // 8
    by_group = make_selector(n_features_to_select=2, cv=GroupKFold(5)).fit(X, y, cv_groups=together)
    splits = list(GroupKFold(5).split(X, y, together))
    by_hand = make_selector(n_features_to_select=2, cv=splits).fit(X, y)
    np.testing.assert_array_equal(by_group.losses_, by_hand.losses_)


def test_an_explicit_validation_set_judges_and_does_not_train() -> None:
    X, y = make_data()
    X_val, _ = make_data(40, seed=1)
    # Half of the weight in training lies on a column that means nothing in validation.
    y_train, y_val = y + 2 * X[:, 0], 2 * X_val[:, 4] + np.abs(X_val[:, 1])
    selector = make_selector(n_features_to_select=1, cv=(X_val, y_val)).fit(X, y_train)
    assert selector.order_.tolist() == [4]
    # The final predictor is the same whatever the validation targets, as long as the choice is.
    other = make_selector(n_features_to_select=1, cv=(X_val[:25], 3 * y_val[:25])).fit(X, y_train)
    assert other.order_.tolist() == [4]
    np.testing.assert_array_equal(selector.predict(X), other.predict(X))


def test_recovery_on_known_laws() -> None:
    for seed in range(5):
        X, y, truth = make_gravitation(150, random_state=seed)
        selector = NeuralGreedyPursuit(n_features_to_select=3, random_state=seed).fit(X, y)
        assert sorted(selector.order_) == truth.tolist()
    for seed in range(2):
        X, y, truth = make_artificial(300, 60, random_state=seed)
        assert sorted(NeuralGreedyPursuit(random_state=seed).fit(X, y).order_) == truth.tolist()


def test_fewer_features_than_asked_for_are_told() -> None:
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))
    selector = NeuralGreedyPursuit(FAST, groups=[[0, 1], [1, 2], [0, 2]], n_features_to_select=3, random_state=0)
    with pytest.warns(UserWarning, match="Only 2 of 3 features were selected: the others share all their") as caught:
        selector.fit(X, y.sum(axis=1))
    assert caught[0].filename == __file__
    assert len(selector.order_) == 2
