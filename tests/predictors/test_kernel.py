"""The kernel predictor against the plainest loop: each regression solved anew, one after the other."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scorer_cases import (
    CANDIDATES,
    N_COLUMNS,
    SELECTED,
    average_by_hand,
    check_answers_depend_on_the_question_alone,
    inputs_by_hand,
    largest_difference,
    make_case,
    make_data,
    target_scales_by_hand,
    training_weight,
)
from scorer_cases import PROBLEMS as SHARED_PROBLEMS
from sklearn.model_selection import KFold, TimeSeriesSplit

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.kernel_ridge import NumpyAlgebra, TorchAlgebra, jitter
from ngp.predictors import SSFN, ColumnSets, kernel
from ngp.predictors.kernel import REFIT_FACTORS, Kernel, KernelScorer

NOTHING = np.zeros(0, np.intp)
PRECISIONS = [("float64", 1e-9), ("float32", 1e-4)]


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> KernelScorer:
    return Kernel(dtype=dtype, **{"ridge": 0.003, **settings}).bind(
        problem, random_state=11, n_jobs=n_jobs, device="cpu"
    )


def scaled_by_hand(problem: Problem, clip: float | None) -> tuple[Any, Any, Any]:
    """Inputs, mean and deviation of the targets."""
    return inputs_by_hand(problem, clip), *target_scales_by_hand(problem)


def kernel_by_hand(first: Any, second: Any, n_columns: int | None = None) -> Any:
    """Arc-cosine kernel of all pairs of rows."""
    n_columns = n_columns or max(1, first.shape[1])
    first, second = (np.column_stack([X / np.sqrt(n_columns), np.ones(len(X))]) for X in (first, second))
    lengths = np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    angles = np.arccos(np.clip(first @ second.T / lengths, -1, 1))
    return lengths * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi


def train_by_hand(values: Any, weights: Any, targets: Any, ridge: float) -> tuple[Any, Any]:
    """Coefficients and intercept from the bordered system; rows of weight zero don't train."""
    rows = np.flatnonzero(weights > 0)
    n = len(rows)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = values[np.ix_(rows, rows)] + ridge * np.diag(1 / weights[rows])
    system[n, n] = 0
    solution = np.linalg.solve(system, np.concatenate([targets[rows], np.zeros((1, targets.shape[1]))]))
    coefficients = np.zeros((len(weights), targets.shape[1]))
    coefficients[rows] = solution[:n]
    return coefficients, solution[n]


def nystroem_by_hand(
    cross: Any, weights: Any, targets: Any, ridge: float, landmarks: Any, dtype: str
) -> tuple[Any, Any]:
    """Subset of regressors: coefficients of some functions (kernel `cross` with all rows), and the intercept."""
    features = np.concatenate([cross, np.ones((1, cross.shape[1]))]).T
    penalty = np.zeros((len(cross) + 1, len(cross) + 1))
    penalty[:-1, :-1] = ridge * (cross[:, landmarks] + jitter(0, len(cross), dtype) * np.eye(len(cross)))
    system = (features.T * weights) @ features + penalty
    solution = np.linalg.lstsq(system, (features.T * weights) @ targets, rcond=1e-14)[0]
    return solution[:-1], solution[-1]


def losses_by_hand(scorer: KernelScorer, selected: Any, new: Any) -> tuple[float, Any]:
    """The loss of one candidate and its parts; a selection as it is may be scaled as its candidates are."""
    sizes = [len(selected) + len(new)] if len(new) else [len(selected), len(selected) + 1]
    return min((losses_of_size(scorer, selected, new, size) for size in sizes), key=lambda result: result[0])


def losses_of_size(scorer: KernelScorer, selected: Any, new: Any, n_columns: int) -> tuple[float, Any]:
    """The loss of one candidate and its parts, one regression after the other."""
    problem, config = scorer.problem, scorer.config
    X, centre, spread = scaled_by_hand(problem, config.clip)
    X, targets = X[:, [*selected, *new]], (problem.targets - centre) / spread
    values = kernel_by_hand(X, X, n_columns)
    assert len(scorer.parts) == len(problem.rounds)

    def predict(r: int, f: int) -> Any:
        train, judge, kept = problem.rounds[r].training(f), problem.rounds[r].validation(f), scorer.parts[r]
        places = scorer._landmarks(kept.rows[: kept.n_training], config.landmarks)
        ridge = scorer.ridge * training_weight(problem, r)
        data = problem.weights[train], targets[train], ridge
        if places is None:
            centres = train
            coefficients, intercept = train_by_hand(values[np.ix_(train, train)], *data)
        else:
            centres = kept.rows[places]
            inner = np.concatenate([train, centres])  # landmarks may be in the fold
            cross, weights = values[np.ix_(centres, inner)], np.append(data[0], np.zeros(len(centres)))
            fake = np.concatenate([data[1], np.zeros((len(centres), problem.n_outputs))])
            mine = np.arange(len(train), len(inner))
            coefficients, intercept = nystroem_by_hand(cross, weights, fake, ridge, mine, scorer.algebra.dtype)
        return (values[np.ix_(judge, centres)] @ coefficients + intercept) * spread + centre

    return average_by_hand(problem, predict)


difference_from_twin = partial(largest_difference, losses_by_hand)


# Losses

PROBLEMS = {
    **SHARED_PROBLEMS,
    "pairs": {"cv": KFold(24), "weighted": True},
    "leave-one-out, weights": {"cv": "loo", "weighted": True},
}
SETTINGS = {
    "small ridge": {"ridge": 0.01},
    "large ridge": {"ridge": 30.0},
    "narrow clip": {"clip": 1.0},
    "no clip": {"clip": None},
    "exact": {"landmarks": None},
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_regressions_solved_one_by_one(case: dict[str, Any]) -> None:
    for dtype, bound in PRECISIONS:
        assert difference_from_twin(bind(make_case(**case), dtype)) <= bound


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_with_other_settings(settings: dict[str, Any]) -> None:
    for dtype, bound in PRECISIONS:
        assert difference_from_twin(bind(make_case("outputs"), dtype, **settings)) <= bound


@pytest.mark.parametrize(
    ("name", "landmarks"),
    [
        ("several outputs, sample weights", 5),
        ("classes, cross_entropy", 20),
        ("repeated folds", 5),
        ("TimeSeriesSplit", 20),
        ("uneven folds", 20),
        ("pairs", 20),
        ("explicit validation set", 5),
        ("leave-one-out, weights", 20),
    ],
)
def test_losses_with_landmarks(name: str, landmarks: int) -> None:
    problem = make_case(**PROBLEMS[name])  # type: ignore[arg-type]
    for dtype, bound in [("float64", 1e-7), ("float32", 1e-3)]:
        assert difference_from_twin(bind(problem, dtype, landmarks=landmarks)) <= bound


def test_first_step_and_long_selections() -> None:
    scorer = bind(make_case("outputs", weighted=True))
    assert difference_from_twin(scorer, NOTHING) <= 1e-9
    assert difference_from_twin(scorer, np.array([6, 0, 3, 1, 2]), ColumnSets.of([[4], [5, 4], []])) <= 1e-9


def test_a_network_with_many_random_units_has_almost_the_same_losses() -> None:
    problem, n_units = make_case("outputs"), 500
    candidates = CANDIDATES.take(np.flatnonzero(CANDIDATES.sizes))
    network = SSFN(n_units=n_units, n_draws=8, ridge=0.003 * n_units / 2, linear_ridge=1e9)
    found = network.bind(problem, random_state=0, device="cpu").add_losses(SELECTED, candidates).means
    np.testing.assert_allclose(found, bind(problem, ridge=0.003).add_losses(SELECTED, candidates).means, rtol=0.02)


def test_the_loss_of_a_set_doesnt_depend_on_what_was_selected_first() -> None:
    scorer = bind(make_case("outputs", weighted=True))
    whole = scorer.add_losses(NOTHING, ColumnSets.of([[4, 1, 0]])).parts
    np.testing.assert_allclose(scorer.add_losses(SELECTED, ColumnSets.of([[0]])).parts, whole, rtol=1e-9)
    np.testing.assert_allclose(scorer.add_losses(np.array([0, 4]), ColumnSets.of([[1]])).parts, whole, rtol=1e-9)


def test_no_columns_predict_the_mean() -> None:
    problem = make_case("outputs", weighted=True)
    parts = bind(problem).add_losses(NOTHING, ColumnSets.of([[]])).parts[0]
    np.testing.assert_allclose(parts, problem.constant_losses, rtol=1e-9)


@pytest.mark.parametrize("landmarks", [None, 10])
def test_a_weight_of_zero_is_a_row_left_out_and_a_weight_of_two_a_row_twice(landmarks: int | None) -> None:
    X, y = make_data("regression")
    validation = make_data("regression", n_rows=20, seed=2)
    counts = np.random.default_rng(0).integers(0, 3, size=len(X))
    counts[:10] = 1

    def losses(rows: Any, weights: Any) -> Any:
        groups = make_groups(None, N_COLUMNS)
        problem = make_problem(X[rows], y[rows], groups=groups, cv=validation, sample_weight=weights)
        scorer = bind(problem, landmarks=landmarks)
        order = np.arange(len(problem.X))  # the same landmarks: the first rows, of weight one
        object.__setattr__(scorer, "_row_order", order)
        return scorer.add_losses(SELECTED, CANDIDATES).parts

    weighted, repeated = losses(np.arange(len(X)), counts), losses(np.repeat(np.arange(len(X)), counts), None)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9 if landmarks is None else 1e-7)


@pytest.mark.parametrize("cv", ["loo", [(np.arange(30), np.arange(30, 48))]])
def test_landmarks_are_the_same_without_rows_of_weight_zero(cv: Any) -> None:
    X, y = make_data("regression")
    groups, weights = make_groups(None, N_COLUMNS), np.repeat([1.0, 0.0], [len(X), 7])
    scorers = [
        bind(make_problem(*data, groups=groups, cv=cv, sample_weight=each), landmarks=10)
        for data, each in (((X, y), None), ((np.r_[X, X[:7] + 1], np.r_[y, y[:7]]), weights))
    ]
    alone, beside = (scorer.add_losses(SELECTED, CANDIDATES).means for scorer in scorers)
    np.testing.assert_allclose(beside, alone, rtol=1e-9)
    alone, beside = (scorer.fit(SELECTED).predict(X) for scorer in scorers)
    np.testing.assert_allclose(beside, alone, rtol=1e-7)


def test_rows_of_weight_zero_may_fill_a_fold() -> None:
    X, y = make_data("regression")
    weights = np.ones(len(X))
    weights[:12] = 0
    groups = make_groups(None, N_COLUMNS)
    rows = np.arange(48)
    idle = [(np.delete(rows, test), test) for test in (rows[:6], rows[6:12])]  # a round that has no say
    for cv in (KFold(4), KFold(8), [(rows[12:], rows[:12]), (rows[24:], rows[:24])], [*idle, (rows[24:], rows[:24])]):
        problem = make_problem(X, y, groups=groups, cv=cv, sample_weight=weights)
        for landmarks in (None, 10):
            assert difference_from_twin(bind(problem, landmarks=landmarks)) <= 1e-7


@pytest.mark.parametrize(
    ("cv", "dtype", "landmarks"), [(3, "float32", None), ("loo", "float32", 10), (TimeSeriesSplit(3), "float64", 10)]
)
def test_the_same_bits_for_every_number_of_jobs_and_chunk_size(
    cv: Any, dtype: str, landmarks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case("classes", cv=cv, weighted=True)
    expected = bind(problem, dtype, landmarks=landmarks).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs in (1, 2):
        for numbers, stack in [(1, 1), (2**9, 2**13), (2**30, 2**30)]:
            monkeypatch.setattr(NumpyAlgebra, "chunk_numbers", numbers)
            monkeypatch.setattr(NumpyAlgebra, "stack_numbers", stack)
            parts = bind(problem, dtype, n_jobs, landmarks=landmarks).add_losses(SELECTED, CANDIDATES).parts
            np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_same_bits_for_every_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs")
    expected = bind(problem, "float32").add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(NumpyAlgebra, "chunk_numbers", 1)
    with parallel_config(backend=backend, n_jobs=2):
        parts = bind(problem, "float32").add_losses(SELECTED, CANDIDATES).parts
    np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("landmarks", [None, 10])
def test_answers_depend_on_the_question_alone(landmarks: int | None) -> None:
    check_answers_depend_on_the_question_alone(partial(bind, dtype="float32", landmarks=landmarks))


@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
def test_permuting_columns_permutes_losses(dtype: str, bound: float) -> None:
    X, _ = make_data("regression")
    order = np.random.default_rng(5).permutation(N_COLUMNS)
    place = np.argsort(order)  # where a column is found after the permutation
    expected = bind(make_case("outputs"), dtype).add_losses(SELECTED, CANDIDATES).parts
    permuted = ColumnSets.of([place[CANDIDATES[i]][::-1] for i in range(len(CANDIDATES))])
    parts = bind(make_case("outputs", X=X[:, order]), dtype).add_losses(place[SELECTED][::-1], permuted).parts
    np.testing.assert_allclose(parts, expected, rtol=bound)


def test_landmarks_depend_on_the_seed_alone() -> None:
    problem = make_case("outputs")
    rows = np.arange(48)
    first, same = (bind(problem, dtype)._landmarks(rows, 10) for dtype in ("float32", "float64"))
    assert first is not None
    assert same is not None
    np.testing.assert_array_equal(first, same)
    assert len(np.unique(first)) == 10
    other = replace(bind(problem), seed=12)._landmarks(rows, 10)
    assert other is not None
    assert (first != other).any()
    longer = bind(problem)._landmarks(rows, 20)
    assert longer is not None
    assert set(first) <= set(longer)


def test_landmarks_are_used_where_there_are_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case())
    assert scorer._landmarks(np.arange(48), "auto") is None
    assert scorer._landmarks(np.arange(48), 48) is None
    monkeypatch.setattr(kernel, "MOST_EXACT_ROWS", 40)
    monkeypatch.setattr(kernel, "AUTO_LANDMARKS", 9)
    landmarks = scorer._landmarks(np.arange(48), "auto")
    assert landmarks is not None
    assert len(landmarks) == 9
    assert scorer._landmarks(np.arange(48), None) is None


@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("cv", [3, "loo", 0.3])
def test_torch_agrees_with_numpy(cv: Any, landmarks: int | None) -> None:
    pytest.importorskip("torch")
    for dtype, bound in PRECISIONS:
        scorer = bind(make_case("classes", cv=cv, weighted=True), dtype, landmarks=landmarks)
        other = replace(scorer, algebra=TorchAlgebra("cpu", dtype))
        expected, found = (each.add_losses(SELECTED, CANDIDATES).parts for each in (scorer, other))
        np.testing.assert_allclose(found, expected, rtol=10 * bound, atol=bound)
        if dtype == "float64":
            expected, found = (each.drop_losses(ALL, LEAVING).parts for each in (scorer, other))
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_chunks_dont_matter_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    scorer = replace(bind(make_case("outputs")), algebra=TorchAlgebra("cpu", "float64"))
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(TorchAlgebra, "stack_numbers", 1)
    np.testing.assert_allclose(scorer.add_losses(SELECTED, CANDIDATES).parts, expected, rtol=1e-9)


def test_columns_that_are_nearly_constant_or_repeated_give_numbers() -> None:
    X, _ = make_data("regression")
    X[:, 0] = np.arange(48) == 7
    X[:, 2] = X[:, 4]
    X[:, 3] = np.arange(48) % 2
    for ridge, dtype in ((0.003, "float32"), (0.003, "float64"), (1e-9, "float64")):
        for landmarks in (None, 30):
            scorer = bind(make_case(X=X), dtype, ridge=ridge, landmarks=landmarks)
            for selected in (NOTHING, np.array([3]), SELECTED):
                assert np.isfinite(scorer.add_losses(selected, CANDIDATES).parts).all()


@pytest.mark.parametrize("seed", range(2))
def test_a_useless_column_gains_nothing_by_the_scale(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(80, 6))
    selector = NeuralGreedyPursuit(Kernel(), device="cpu", random_state=seed).fit(X, X[:, 0] - X[:, 3])
    assert sorted(selector.order_) == [0, 3]


# What is left of a selection

ALL = np.arange(N_COLUMNS)[::-1]
LEAVING = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0], [1, 2, 3, 4, 5, 6]])
REST = ColumnSets.of([ALL[~np.isin(ALL, LEAVING[i])] for i in range(len(LEAVING))])


@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("cv", [4, "loo"])
def test_a_kernel_takes_columns_away(cv: Any, landmarks: int | None) -> None:
    problem = make_case("outputs", cv, weighted=True)
    for dtype, bound in PRECISIONS:
        scorer = bind(problem, dtype, landmarks=landmarks)
        expected, slack = scorer.add_losses(NOTHING, REST).parts, 10 if landmarks else 1
        found = scorer.drop_losses(ALL, LEAVING).parts
        np.testing.assert_allclose(found, expected, rtol=slack * bound, atol=slack * bound)


def test_one_column_is_left_of_many_in_single_precision() -> None:
    X = np.random.default_rng(0).normal(size=(60, 300))
    scorer = bind(make_problem(X, X[:, 7] ** 2, groups=make_groups(None, 300), cv=3), "float32")
    rest = ColumnSets.of([np.delete(np.arange(300), 7)])
    expected = scorer.add_losses(NOTHING, ColumnSets.of([[7]])).means
    np.testing.assert_allclose(scorer.drop_losses(np.arange(300), rest).means, expected, rtol=2e-3)


# The final predictor


@pytest.mark.parametrize(
    ("cv", "settings"),
    [(3, {}), ("explicit", {}), (3, {"clip": 0.7}), ("explicit", {"landmarks": 15})],
)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(cv: Any, settings: dict[str, Any]) -> None:
    problem = make_case("outputs", cv=cv, weighted=True)
    scorer = bind(problem, "float32", **settings)
    ridge = scorer._tuned(SELECTED).ridge * problem.weights[:48].sum()
    X, centre, spread = scaled_by_hand(problem, scorer.config.clip)
    X, weights, targets = X[:, SELECTED], problem.weights[:48], (problem.targets[:48] - centre) / spread
    rows = np.flatnonzero(weights > 0)
    landmarks = scorer._landmarks(rows, scorer.config.landmarks)
    if landmarks is None:
        centres = np.arange(48)
        values = kernel_by_hand(X[centres], X[centres])
        coefficients, intercept = train_by_hand(values, weights, targets, ridge)
    else:
        centres = rows[landmarks]
        cross = kernel_by_hand(X[centres], X[:48])
        coefficients, intercept = nystroem_by_hand(cross, weights, targets, ridge, centres, "float64")
    expected = (kernel_by_hand(X, X[centres]) @ coefficients + intercept) * spread + centre
    predictor = scorer.fit(SELECTED)
    predicted = predictor.predict(problem.X)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9 if landmarks is None else 1e-6)
    unread = problem.X.copy()
    unread[:, np.setdiff1d(np.arange(N_COLUMNS), SELECTED)] = np.nan
    np.testing.assert_array_equal(predictor.predict(unread), predicted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(predictor)).predict(problem.X), predicted)


def test_a_final_predictor_of_nothing_predicts_the_mean() -> None:
    problem = make_case("outputs", weighted=True)
    expected = np.average(problem.targets, axis=0, weights=problem.weights)
    np.testing.assert_allclose(bind(problem).fit(NOTHING).predict(problem.X), np.tile(expected, (48, 1)), rtol=1e-9)


@pytest.mark.parametrize("cv", [3, "loo", "explicit"])
def test_the_final_predictors_penalty_is_the_best_of_those_tried(cv: Any) -> None:
    def loss(scorer: KernelScorer) -> float:
        return float(scorer.add_losses(NOTHING, ColumnSets.of([SELECTED])).means[0])

    scorer = bind(make_case("outputs", cv=cv))
    best = loss(scorer._tuned(SELECTED))
    for factor in REFIT_FACTORS:
        assert best <= loss(replace(scorer, ridge=factor * scorer.ridge)) * (1 + 1e-9)


def test_the_final_predictor_without_search_has_the_given_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case("outputs"), ridge="auto")
    found = scorer.without_search(0.02).fit(SELECTED)
    assert (found.coefficients != scorer.fit(SELECTED).coefficients).all()
    monkeypatch.setattr(kernel, "REFIT_FACTORS", (1.0,))
    expected = bind(make_case("outputs"), ridge=0.02).fit(SELECTED)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_the_final_predictor_has_landmarks_where_training_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case("outputs"))
    assert scorer.fit(SELECTED).centres.shape == (2, 48)
    monkeypatch.setattr(kernel, "MOST_REFIT_OPERATIONS", 48 * 10.5**2)
    assert scorer.fit(SELECTED).centres.shape == (2, 10)


def test_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = make_case(), []

    def resolve(device: str, dtype: str) -> str:
        asked.append((device, dtype))
        return "mps" if device == "auto" else device

    monkeypatch.setattr(kernel, "resolve_device", resolve)
    monkeypatch.setattr(kernel, "TorchAlgebra", lambda device, dtype: (device, dtype))

    def algebra_of(device: str) -> Any:
        return Kernel().bind(problem, random_state=0, device=device).algebra

    assert isinstance(algebra_of("cpu"), NumpyAlgebra)
    assert isinstance(algebra_of("auto"), NumpyAlgebra)  # Apple's GPU isn't chosen by itself
    assert algebra_of("cuda") == ("cuda", "float32")
    assert asked[0] == ("cpu", "float32")


def test_the_cpu_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    scorer = Kernel().bind(make_case(), random_state=0, device="cpu")
    assert np.isfinite(scorer.add_losses(SELECTED, CANDIDATES).parts).all()
    assert np.isfinite(scorer.fit(SELECTED).predict(scorer.problem.X)).all()


@pytest.mark.parametrize("name", ["ridge", "clip", "landmarks"])
def test_bad_settings_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Kernel must be"):
        bind(make_case(), **{name: 0})


def test_a_scorer_without_a_way_of_its_own_scores_what_is_left() -> None:
    scorer = SSFN(n_units=10, n_draws=2).bind(make_case("classes"), random_state=0)
    np.testing.assert_array_equal(scorer.drop_losses(ALL, LEAVING).parts, scorer.add_losses(NOTHING, REST).parts)
