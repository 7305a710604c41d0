"""SSFN's batched losses against the plainest loop: train each network anew, predict, average the losses."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scorer_cases import (
    CANDIDATES,
    N_COLUMNS,
    PROBLEMS,
    SELECTED,
    SSFN_SETTINGS,
    average_by_hand,
    check_answers_depend_on_the_question_alone,
    inputs_by_hand,
    largest_difference,
    make_case,
    make_data,
    target_scales_by_hand,
    training_weight,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from ngp import NeuralGreedyPursuit, NGPRegressor
from ngp.data.groups import make_groups
from ngp.data.losses import labels
from ngp.data.problem import Problem, make_problem
from ngp.kernels.layers import Network, draw_biases, draw_weights, train_networks
from ngp.kernels.scoring import Penalties
from ngp.predictors import SSFN, ColumnSets, Kernel, ssfn
from ngp.predictors.ssfn import FIRST_RIDGE, REFIT_LAYER, REFIT_RIDGES, SSFNScorer


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> SSFNScorer:
    config = SSFN(dtype=dtype, **{"n_units": 12, "n_draws": 2, "ridge": 1.0, **settings})
    return config.bind(problem, random_state=11, n_jobs=n_jobs)


def train(inputs: Any, targets: Any, weights: Any, layer: tuple[Any, Any], penalties: Any) -> Network:
    ridges = {"linear_ridge": penalties.linear_ridge, "ridges": [penalties.ridge]}
    ((network,),) = train_networks(
        lambda: [(inputs, targets, weights)], [layer], **ridges, intercept=penalties.intercept
    )
    return network


def scaled_by_hand(problem: Problem, config: SSFN) -> tuple[Any, Any, Any]:
    """Inputs, mean and deviation of the targets."""
    X = inputs_by_hand(problem, config.clip) if config.standardize else problem.X
    centre, spread = target_scales_by_hand(problem, config.bias)
    return X, centre, spread if config.standardize else 1.0


def losses_by_hand(scorer: SSFNScorer, selected: Any, new: Any) -> tuple[float, Any]:
    """The loss of one candidate and its parts, one network after the other."""
    problem, config = scorer.problem, scorer.config
    X, centre, spread = scaled_by_hand(problem, config)
    columns = [*selected, *new]
    linear_ridge = config.linear_ridge * max(1, len(selected)) if config.standardize else config.linear_ridge

    def predict(r: int, f: int) -> Any:
        rows, judge = problem.rounds[r].training(f), problem.rounds[r].validation(f)
        weight, outputs = training_weight(problem, r), []
        penalties = Penalties(scorer.ridge * weight, linear_ridge * weight, config.bias)
        for draw in range(scorer.n_layers):
            layer = scorer.layer(draw, len(selected), len(columns), config.n_units)
            targets = (problem.targets[rows] - centre) / spread
            network = train(X[rows][:, columns], targets, problem.weights[rows], layer, penalties)
            outputs.append(network.predict(X[judge][:, columns]) * spread + centre)
        return np.mean(outputs, axis=0)

    return average_by_hand(problem, predict)


difference_from_twin = partial(largest_difference, losses_by_hand)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any], dtype: str, bound: float) -> None:
    assert difference_from_twin(bind(make_case(**case), dtype)) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("settings", SSFN_SETTINGS.values(), ids=SSFN_SETTINGS)
def test_losses_of_other_networks(settings: dict[str, Any], dtype: str, bound: float) -> None:
    assert difference_from_twin(bind(make_case("outputs"), dtype, **settings)) <= bound


def test_losses_before_the_ridge_is_chosen_and_with_fewer_layers() -> None:
    scorer = bind(make_case("outputs"), ridge="auto", n_draws=3)
    assert scorer.ridge == FIRST_RIDGE
    assert [stage.n_layers for stage in scorer.stages] == [1, 2, 3]
    for stage in scorer.stages:
        assert difference_from_twin(stage) <= 1e-9


@pytest.mark.parametrize("case", [{"kind": "outputs"}, {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)}])
def test_a_stage_only_adds_layers_to_those_of_the_last_one(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[tuple[int, int]] = []

    def chunk_losses(self: SSFNScorer, step: Any, candidates: Any, *others: Any) -> Any:
        trained.append((len(step.draws), len(candidates)))
        return original(self, step, candidates, *others)

    original = SSFNScorer.chunk_losses
    monkeypatch.setattr(SSFNScorer, "chunk_losses", chunk_losses)
    problem, some = make_case(**case), CANDIDATES.take(np.array([0, 2, 3]))
    stages = bind(problem, n_draws=6).stages
    stages[0].add_losses(SELECTED, CANDIDATES)
    for stage, n_new in zip(stages[1:], (1, 2, 2), strict=True):
        trained.clear()
        found = stage.add_losses(SELECTED, some).parts
        assert {n for n, _ in trained} == {n_new}
        fresh = bind(problem, n_draws=stage.n_layers).add_losses(SELECTED, some).parts
        np.testing.assert_allclose(found, fresh, rtol=1e-9)


def test_first_step_and_long_selections() -> None:
    scorer = bind(make_case("outputs", weighted=True))
    nonempty = ColumnSets.of([[0], [2], [3, 5], [6, 2, 0]])
    assert difference_from_twin(scorer, np.zeros(0, np.intp), nonempty) <= 1e-9
    assert difference_from_twin(scorer, np.array([6, 0, 3, 1, 2]), ColumnSets.of([[4], [5, 4]])) <= 1e-9


def test_layers_are_prefixes_of_longer_ones_scaled_by_their_number_of_columns() -> None:
    scorer = bind(make_case())
    (short, biases), (long, same) = (scorer.layer(1, 3, n_slots, 12) for n_slots in (2, 8))
    np.testing.assert_allclose(short * np.sqrt(2), long[:2] * np.sqrt(8))
    np.testing.assert_array_equal(biases, same)
    np.testing.assert_array_equal(biases, draw_biases(scorer.seed, (1, 3, 0), 12))
    assert (np.abs(long) * np.sqrt(8)).mean() == pytest.approx(np.sqrt(2 / np.pi), rel=0.2)  # standard normal, scaled
    weights, biases = bind(make_case(), standardize=False, bias=False).layer(1, 3, 8, 12)
    np.testing.assert_allclose(weights, long * np.sqrt(8))
    assert not biases.any()
    others = [scorer.layer(*number, 8, 12)[0] for number in ((0, 3), (1, 2))]
    assert all((other != long).all() for other in others)


def test_a_weight_of_zero_is_a_row_left_out_and_a_weight_of_two_a_row_twice() -> None:
    X, y = make_data("regression")
    validation = make_data("regression", n_rows=20, seed=2)
    counts = np.random.default_rng(0).integers(0, 3, size=len(X))

    def losses(rows: Any, weights: Any) -> Any:
        groups = make_groups(None, N_COLUMNS)
        problem = make_problem(X[rows], y[rows], groups=groups, cv=validation, sample_weight=weights)
        return bind(problem).add_losses(SELECTED, CANDIDATES).parts

    weighted, repeated = losses(np.arange(len(X)), counts), losses(np.repeat(np.arange(len(X)), counts), None)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


CV_FOR_BITS = {"folds": 3, "hold-out": 0.3, "loo": "loo", "time": TimeSeriesSplit(3)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cv", CV_FOR_BITS.values(), ids=CV_FOR_BITS)
def test_the_same_bits_for_every_number_of_jobs_and_chunk_size(
    cv: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case("classes", cv=cv, weighted=True)
    expected = bind(problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs in (1, 2, 4):
        for numbers in (1, 2**8, 2**30):
            monkeypatch.setattr(ssfn, "CHUNK_NUMBERS", numbers)
            parts = bind(problem, dtype, n_jobs).add_losses(SELECTED, CANDIDATES).parts
            np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_bits_for_every_backend(backend: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs")
    expected = bind(problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(ssfn, "CHUNK_NUMBERS", 1)
    with parallel_config(backend=backend, n_jobs=2):
        parts = bind(problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    np.testing.assert_array_equal(parts, expected)


def test_answers_depend_on_the_question_alone() -> None:
    check_answers_depend_on_the_question_alone(partial(bind, dtype="float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_permuting_columns_permutes_losses(dtype: str) -> None:
    X, _ = make_data("regression")
    order = np.random.default_rng(5).permutation(N_COLUMNS)
    place = np.argsort(order)  # where a column is found after the permutation
    expected = bind(make_case("outputs"), dtype).add_losses(SELECTED, CANDIDATES).parts
    permuted = ColumnSets.of([place[CANDIDATES[i]] for i in range(len(CANDIDATES))])
    parts = bind(make_case("outputs", X=X[:, order]), dtype).add_losses(place[SELECTED], permuted).parts
    np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_order_and_type_of_x_change_nothing(dtype: str) -> None:
    X = np.round(make_data("regression")[0] * 8)
    expected = bind(make_case(X=X), dtype).add_losses(SELECTED, CANDIDATES).parts
    wide = np.zeros((len(X), 2 * N_COLUMNS))
    wide[:, ::2] = X
    others = [np.asfortranarray(X), wide[:, ::2], X.astype(np.float32), X.astype(np.int64), X.astype(np.int16)]
    for other in others:
        np.testing.assert_array_equal(bind(make_case(X=other), dtype).add_losses(SELECTED, CANDIDATES).parts, expected)


@pytest.mark.parametrize("settings", [{}, {"clip": 0.7}, {"standardize": False, "bias": False}])
@pytest.mark.parametrize("cv", [3, "explicit"])
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(cv: Any, settings: dict[str, Any]) -> None:
    problem = make_case("outputs", cv=cv, weighted=True)
    scorer = bind(problem, refit_units=25, **settings)
    X, centre, spread = scaled_by_hand(problem, scorer.config)
    rows = slice(48)
    targets = (problem.targets[rows] - centre) / spread
    weight = problem.weights[rows].sum()
    outputs = [
        train(
            X[rows][:, SELECTED],
            targets,
            problem.weights[rows],
            scorer.layer(draw, REFIT_LAYER, len(SELECTED), 25),
            scorer.penalties(len(SELECTED), weight),
        ).predict(X[:, SELECTED])
        for draw in range(2)
    ]
    predicted = scorer.fit(SELECTED).predict(problem.X)
    np.testing.assert_allclose(predicted, np.mean(outputs, axis=0) * spread + centre, rtol=1e-9, atol=1e-12)
    unread = problem.X.copy()
    unread[:, np.setdiff1d(np.arange(N_COLUMNS), SELECTED)] = np.nan
    np.testing.assert_array_equal(scorer.fit(SELECTED).predict(unread), predicted)


@pytest.mark.parametrize("cv", [3, "loo", "explicit"])
def test_the_automatic_size_is_at_least_as_good_as_the_scored_one(cv: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssfn, "MOST_LIMIT_ROWS", 0)
    scorer = bind(make_case("outputs", cv=cv))
    width, n_draws, ridge = scorer._refit_size(SELECTED)
    chosen = scorer._refit_losses(SELECTED, width, n_draws, [ridge])[1, 0]
    plain = scorer._refit_losses(SELECTED, scorer.config.n_units, scorer.config.n_draws, [scorer.config.ridge])[1, 0]
    assert chosen <= plain * (1 + 1e-9)
    factor = width // scorer.config.n_units
    assert n_draws == -(-scorer.config.n_draws // factor)  # the number of units stays until one layer is left
    networks = scorer.fit(SELECTED).networks
    assert [network.layers[0].weights.shape for network in networks] == [(len(SELECTED), width)] * n_draws


def test_with_few_rows_the_final_predictor_has_infinitely_many_units() -> None:
    problem = make_case("outputs")
    limit = Kernel().bind(problem, random_state=0, n_jobs=1, device="cpu").fit(SELECTED).predict(problem.X)
    np.testing.assert_array_equal(bind(problem).fit(SELECTED).predict(problem.X), limit)
    wide = bind(problem, refit_units=3000, ridge=300.0).fit(SELECTED).predict(problem.X)
    assert np.corrcoef(wide[:, 0], limit[:, 0])[0, 1] > 0.95


def test_larger_ridges_are_tried_unless_the_size_is_given() -> None:
    assert bind(make_case(), ridge=0.5)._refit_ridges == [0.5, 1.5, 5.0, 15.0, 50.0]
    assert bind(make_case(), ridge=0.5, refit_units=8)._refit_ridges == [0.5]
    for units in (8, "auto"):
        assert bind(make_case(), ridge="auto", refit_units=units)._refit_ridges == list(REFIT_RIDGES)


@pytest.mark.parametrize("limit", ["MOST_REFIT_OPERATIONS", "WIDEST"])
def test_wider_layers_are_tried_where_they_cost_little(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case(), n_units=10, n_draws=6)
    assert scorer._refit_widths == [(10, 6), (40, 2), (160, 1), (320, 1)]
    monkeypatch.setattr(ssfn, limit, 0)
    assert scorer._refit_widths == [(10, 6)]


GROUPS = np.arange(48) % 16
CV_FOR_REFIT = {
    "folds": KFold(10),
    "many folds": KFold(24),
    "leave-one-out": "loo",
    "groups": list(LeaveOneGroupOut().split(GROUPS, groups=GROUPS)),
    "groups together": list(GroupKFold(12).split(GROUPS, groups=GROUPS)),
    "pairs of groups": list(LeavePGroupsOut(2).split(GROUPS, groups=GROUPS)),
    "time": TimeSeriesSplit(12),
    "shuffles": ShuffleSplit(25, test_size=0.3, random_state=0),
    "repeated folds": RepeatedKFold(n_splits=5, n_repeats=3, random_state=0),
    "many folds, repeated": RepeatedKFold(n_splits=12, n_repeats=3, random_state=0),
    "some rows always train": PredefinedSplit(np.arange(48) % 16 - 1),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", CV_FOR_REFIT.values(), ids=CV_FOR_REFIT)
def test_the_size_is_judged_by_networks_that_see_no_more_than_in_the_pursuit(cv: Any, weighted: bool) -> None:
    problem = make_case(cv=cv, weighted=weighted)
    given = [(set(train), set(test)) for round_ in problem.rounds for train, test in problem.splits(round_)]
    splits = [tuple(rows[problem.weights[rows] > 0] for rows in split) for split in bind(problem)._refit_splits]
    assert len(splits) <= 10
    for train, test in splits:
        assert len(train)
        assert len(test)
        for row in test:
            assert any(row in judged and set(train) <= trained for trained, judged in given)


@pytest.mark.parametrize("cv", [KFold(10), TimeSeriesSplit(10), RepeatedKFold(n_splits=5, n_repeats=2, random_state=0)])
def test_up_to_ten_splits_judge_the_size_as_they_judge_the_pursuit(cv: Any) -> None:
    problem = make_case(cv=cv)
    given = [(round_.training(f), round_.validation(f)) for round_ in problem.rounds for f in range(round_.n_folds)]
    for ours, theirs in zip(bind(problem)._refit_splits, given, strict=True):
        np.testing.assert_array_equal(np.concatenate(ours), np.concatenate(theirs))


@pytest.mark.parametrize("name", ["groups", "groups together", "many folds", "leave-one-out"])
def test_all_rows_judge_the_size_where_folds_are_put_together(name: str) -> None:
    splits = bind(make_case(cv=CV_FOR_REFIT[name]))._refit_splits
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(48))
    assert len(splits) == 5


def test_neither_groups_nor_time_are_mixed_where_the_size_is_judged() -> None:
    for name in ("groups", "groups together", "pairs of groups"):
        for train, test in bind(make_case(cv=CV_FOR_REFIT[name]))._refit_splits:
            assert not set(GROUPS[train]) & set(GROUPS[test])
    for train, test in bind(make_case(cv=TimeSeriesSplit(12)))._refit_splits:
        assert train.max() < test.min()


@pytest.mark.parametrize("cv", [list(KFold(3).split(np.arange(40))), "loo"], ids=["folds", "leave-one-out"])
def test_rows_of_weight_zero_leave_the_final_predictor_as_it_is(cv: Any) -> None:
    """Though with so many more rows, wider layers than otherwise would be tried, and win."""
    X = np.random.default_rng(4).normal(size=(300, N_COLUMNS))
    y, weights = np.sin(3 * X[:, 4]) * X[:, 1], np.repeat([1.0, 0.0], [40, 260])

    def predicted(rows: slice) -> Any:
        groups = make_groups(None, N_COLUMNS)
        problem = make_problem(X[rows], y[rows], groups=groups, cv=cv, sample_weight=weights[rows])
        return bind(problem, n_units=20).fit(SELECTED).predict(X)

    np.testing.assert_allclose(predicted(slice(None)), predicted(slice(40)), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["binary", "classes"])
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_the_size_for_classes_makes_the_fewest_mistakes_unless_another_loss_is_asked_for(kind: str, loss: str) -> None:
    scorer = bind(make_case(kind, loss=loss, weighted=True))
    problem, (round_,) = scorer.problem, scorer.problem.rounds
    mean, scale = scorer.target_scales
    width, n_draws, ridge = scorer._refit_size(SELECTED)
    counted, losses = scorer._refit_losses(SELECTED, width, n_draws, [ridge])[:, 0]
    wrong = 0.0
    for f in range(round_.n_folds):
        rows = round_.validation(f)
        (networks,) = scorer._train(SELECTED, round_.training(f), width, n_draws, [ridge])
        outputs = np.mean([network.predict(scorer.inputs(SELECTED, rows).T) for network in networks], axis=0)
        found = labels(outputs * scale + mean, problem.classes)
        wrong += problem.weights[rows] @ (found != labels(problem.targets[rows], problem.classes))
    mistakes = wrong / problem.weights.sum()
    assert counted == pytest.approx(mistakes if loss == "squared_error" else losses)
    for factor in (1, 4):
        others = scorer._refit_losses(
            SELECTED, scorer.config.n_units * factor, -(-scorer.config.n_draws // factor), [ridge]
        )
        assert counted <= others[0, 0] + 1e-12


@pytest.mark.parametrize("predictor", [SSFN(), SSFN(dtype="float64"), Kernel(), Kernel(landmarks=20)])
@pytest.mark.parametrize("cv", [3, make_data("regression", n_rows=20, seed=2)], ids=["folds", "explicit"])
def test_weights_of_any_scale_give_the_same_answer(predictor: SSFN | Kernel, cv: Any) -> None:
    X, y = make_data("regression")
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    answers = []
    for scale in (1.0, 1e-6, 1e4, 1e12):
        selector = NGPRegressor(predictor, n_features_to_select=3, cv=cv, device="cpu", random_state=0)
        answers.append(selector.fit(X, y, sample_weight=weights * scale))
    for other in answers[1:]:
        ridges = [[step.ridge for step in each.path_[1:]] for each in (other, answers[0])]
        np.testing.assert_allclose(*ridges, rtol=1e-9)
        np.testing.assert_allclose(other.losses_, answers[0].losses_, rtol=1e-3)
        np.testing.assert_allclose(other.predictor_.predict(X), answers[0].predictor_.predict(X), rtol=1e-3)


@pytest.mark.parametrize("predictor", [SSFN(dtype="float64"), Kernel(dtype="float64")])
def test_a_row_of_weight_two_is_a_row_given_twice(predictor: SSFN | Kernel) -> None:
    X, y = make_data("regression")
    weights, folds = np.random.default_rng(1).integers(1, 4, size=len(y)), np.arange(len(y)) % 4
    losses = []
    for times, own in ((np.ones_like(weights), weights), (weights, None)):
        rows = np.repeat(np.arange(len(y)), times)
        problem = make_problem(
            X[rows], y[rows], groups=make_groups(None, N_COLUMNS), cv=PredefinedSplit(folds[rows]), sample_weight=own
        )
        scorer = predictor.bind(problem, random_state=0, device="cpu")
        losses.append(scorer.add_losses(SELECTED, CANDIDATES).means)
        losses.append(scorer.fit(SELECTED).predict(X)[:, 0])
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-9)
    np.testing.assert_allclose(losses[3], losses[1], rtol=1e-9)


def test_a_ridge_beyond_the_precision_is_no_answer() -> None:
    X, y = make_data("regression")
    X = np.hstack([X, X])  # the linear part is the same with every other column
    selector = NeuralGreedyPursuit(SSFN(ridge=1e-12, n_units=60, n_draws=1), n_features_to_select=2, device="cpu")
    with pytest.warns(UserWarning, match=r"a larger ridge|no finite number"):
        selector.fit(X, y)
    assert np.isfinite(selector.path_[-1].loss)


def test_columns_that_repeat_leave_the_linear_part_as_it_is() -> None:
    rng = np.random.default_rng(0)
    few = rng.normal(size=(60, 3))
    y, slopes = few @ [1.0, -2.0, 0.5] + rng.normal(size=60), []
    for times in (1, 7):
        X = np.tile(few, times)
        groups = make_groups(None, X.shape[1])
        problem = make_problem(X, y, groups=groups, task="regression", cv=3, random_state=0)
        scorer = SSFN(n_draws=1, refit_units=10, linear_ridge=0.1, dtype="float64").bind(problem, random_state=0)
        (network,) = scorer.fit(np.arange(X.shape[1])).networks
        slopes.append(network.coef.reshape(times, 3).sum(axis=0))
        np.testing.assert_allclose(scorer.penalties(X.shape[1], 50.0).linear_ridge, 15.0 * times)
    np.testing.assert_allclose(slopes[1], slopes[0])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_units", [5, 80])
def test_a_path_of_ridges_is_each_ridge_alone(n_units: int, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    inputs, targets, weights = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.integers(0, 3, size=40) * 1.0
    layer = draw_weights(0, (0, 0, 0), 3, n_units), draw_biases(0, (0, 0, 0), n_units)
    ridges, data = [0.1, 1.0, 30.0], (inputs, targets, weights)
    path = train_networks(lambda: [data], [layer], linear_ridge=1.0, ridges=ridges, intercept=intercept)
    for ridge, (network,) in zip(ridges, path, strict=True):
        alone = train(*data, layer, Penalties(ridge, 1.0, intercept))
        np.testing.assert_allclose(network.predict(inputs), alone.predict(inputs), rtol=1e-8, atol=1e-10)


BAD_SETTINGS = {
    "n_units": 0, "n_draws": 0, "ridge": 0.0, "linear_ridge": -1.0, "bias": "yes", "clip": 0.0, "standardize": 2.5,
    "refit_units": "many",
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS.items())
def test_bad_settings_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of SSFN must be"):
        bind(make_case(), **{name: value})
