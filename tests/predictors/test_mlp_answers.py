"""What the MLP's losses depend on: the question alone, whichever way the networks are trained."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from joblib import parallel_config
from mlp_cases import (
    CANDIDATES,
    N_COLUMNS,
    N_ROWS,
    NOTHING,
    SELECTED,
    TOLERANCES,
    assert_close,
    bind,
    make_case,
    make_data,
)
from sklearn.model_selection import RepeatedKFold, TimeSeriesSplit

from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.kernels.perceptron import is_compiled
from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import FINAL_STREAM

pytestmark = pytest.mark.usefixtures("one_torch_thread")
CV_KINDS = {"folds": 3, "hold-out": 0.3, "time": TimeSeriesSplit(3)}


@pytest.fixture(params=["compiled", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Train by the compiled kernel, or as if it weren't there."""
    if request.param == "torch":
        monkeypatch.setattr(networks, "is_compiled", lambda: False)
    elif not is_compiled():
        pytest.skip("the compiled module isn't built")
    return str(request.param)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("cv", CV_KINDS.values(), ids=CV_KINDS)
def test_candidates_together_are_candidates_alone(cv: Any, dtype: str, warm_start: bool, way: str) -> None:
    scorer = bind(make_case("classes", cv=cv, loss="cross_entropy", weighted=True), dtype, warm_start=warm_start)
    for selected in (SELECTED, NOTHING):
        together = scorer.add_losses(selected, CANDIDATES).parts
        for i in range(len(CANDIDATES)):
            if len(selected) or len(CANDIDATES[i]):
                assert_close(scorer.add_losses(selected, ColumnSets.of([CANDIDATES[i]])).parts[0], together[i], dtype)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_no_column_at_all_can_be_scored(way: str) -> None:
    scorer = bind(make_case())
    alone = scorer.add_losses(NOTHING, ColumnSets.of([[]])).parts[0]
    beside_others = scorer.add_losses(NOTHING, ColumnSets.of([[2], []])).parts[1]
    np.testing.assert_allclose(alone, beside_others, rtol=1e-9)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize("settings", [{}, {"n_layers": 2}, {"warm_start": True, "n_draws": 2}])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_jobs_and_chunks_change_nothing(
    dtype: str, settings: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case("classes", cv=TimeSeriesSplit(3), loss="cross_entropy", weighted=True)
    expected = bind(problem, dtype, **settings).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs in (1, 2, 4):
        for numbers in (1, 2**11, 2**30):
            monkeypatch.setattr(networks, "CPU_NUMBERS", numbers)
            parts = bind(problem, dtype, n_jobs, **settings).add_losses(SELECTED, CANDIDATES).parts
            if way == "compiled" and "n_layers" not in settings:
                np.testing.assert_array_equal(parts, expected)
            else:
                assert_close(parts, expected, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_every_backend_gives_the_same(backend: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs")
    expected = bind(problem).add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.setattr(networks, "CPU_NUMBERS", 1)
    with parallel_config(backend=backend, n_jobs=2):
        assert_close(bind(problem).add_losses(SELECTED, CANDIDATES).parts, expected, "float64")


@pytest.mark.parametrize("settings", [{}, {"warm_start": True}, {"n_draws": 2, "n_layers": 2}])
def test_earlier_calls_change_nothing(settings: dict[str, Any], way: str) -> None:
    problem = make_case("outputs", cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    scorer = bind(problem, "float32", **settings)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    other = bind(problem, "float32", **settings)
    other.fit(np.array([0]))
    other.add_losses(np.array([2]), ColumnSets.of([[1], [3]]))
    torch.manual_seed(99)
    np.testing.assert_array_equal(other.add_losses(SELECTED, CANDIDATES).parts, expected)
    np.testing.assert_array_equal(other.add_losses(SELECTED, CANDIDATES).parts, expected)
    copy = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_array_equal(copy.add_losses(SELECTED, CANDIDATES).parts, expected)
    reverse = ColumnSets.of([CANDIDATES[i] for i in reversed(range(len(CANDIDATES)))])
    assert_close(other.add_losses(SELECTED, reverse).parts[::-1], expected, "float32")


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_permuting_columns_permutes_losses(dtype: str, way: str) -> None:
    X, y = make_data("outputs")
    order = np.random.default_rng(5).permutation(N_COLUMNS)
    place = np.argsort(order)  # where a column is found after the permutation
    expected = bind(make_case("outputs"), dtype).add_losses(SELECTED, CANDIDATES).parts
    permuted = ColumnSets.of([place[CANDIDATES[i]] for i in range(len(CANDIDATES))])
    problem = make_case("outputs", data=(X[:, order], y))
    np.testing.assert_array_equal(bind(problem, dtype).add_losses(place[SELECTED], permuted).parts, expected)


def test_memory_order_and_type_of_x_change_nothing(way: str) -> None:
    X, y = make_data("regression")
    X = np.round(X * 8)
    expected = bind(make_case(data=(X, y))).add_losses(SELECTED, CANDIDATES).parts
    wide = np.zeros((len(X), 2 * N_COLUMNS))
    wide[:, ::2] = X
    for other in [np.asfortranarray(X), wide[:, ::2], X.astype(np.float32), X.astype(np.int16)]:
        parts = bind(make_case(data=(other, y))).add_losses(SELECTED, CANDIDATES).parts
        np.testing.assert_array_equal(parts, expected)


@pytest.mark.parametrize("cv", [3, "explicit"])
def test_rows_without_weight_have_no_say(cv: Any, way: str) -> None:
    """Neither in training nor in validation: what they hold doesn't matter."""
    X, y = make_data("regression")
    without = np.flatnonzero(make_case(weighted=True).weights == 0)
    assert len(without)
    spoiled, wrong = X.copy(), y.copy()
    spoiled[without] = -50.0
    wrong[without] = 1e4
    expected, found = (bind(make_case(cv=cv, weighted=True, data=data)) for data in [(X, y), (spoiled, wrong)])
    losses = expected.add_losses(SELECTED, CANDIDATES)
    np.testing.assert_allclose(found.add_losses(SELECTED, CANDIDATES).means, losses.means, rtol=1e-9)
    np.testing.assert_allclose(found.fit(SELECTED).predict(X), expected.fit(SELECTED).predict(X), rtol=1e-9)


def test_weights_count_only_beside_each_other(way: str) -> None:
    X, y = make_data("outputs")
    weights = np.random.default_rng(0).uniform(0.5, 2, size=N_ROWS)

    def losses(factor: float) -> Any:
        problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=3, sample_weight=factor * weights)
        return bind(problem).add_losses(SELECTED, CANDIDATES).means

    np.testing.assert_allclose(losses(3.0), losses(1.0), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1e6])
def test_scales_of_inputs_and_targets_do_not_matter(scale: float, way: str) -> None:
    X, y = make_data("outputs")
    expected = bind(make_case("outputs")).add_losses(SELECTED, CANDIDATES).means
    found = bind(make_case("outputs", data=(7 + scale * X, scale * y - 3))).add_losses(SELECTED, CANDIDATES).means
    np.testing.assert_allclose(found, expected * scale**2, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_torch_keeps_its_number_of_threads(n_jobs: int, way: str) -> None:
    scorer = bind(make_case(), n_jobs=n_jobs)
    torch.set_num_threads(2)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_torch_keeps_its_own_random_numbers(way: str) -> None:
    scorer = bind(make_case())
    before = torch.get_rng_state()
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_and_steps_have_networks_of_their_own() -> None:
    scorer = bind(make_case(), n_layers=2)

    def weights(n_columns: int, n_selected: int, draw: int) -> Any:
        return [p.detach().numpy() for p in scorer.module(n_columns, n_selected, draw).parameters()]

    base = weights(3, 2, 0)
    for other in (weights(3, 1, 0), weights(3, 2, 1)):
        assert (base[0] != other[0]).all()
        assert (base[2] != other[2]).all()
    longer = weights(5, 2, 0)
    np.testing.assert_allclose(base[0] * np.sqrt(3), longer[0][:, :3] * np.sqrt(5))  # slots keep their numbers
    np.testing.assert_array_equal(base[2], longer[2])
    assert not base[4].any()
    assert not base[5].any()


def test_draws_steps_and_the_final_network_have_batches_of_their_own() -> None:
    scorer, rows = bind(make_case()), [np.arange(N_ROWS)]
    first = scorer.plan(rows, 2, 1, 0)[0]
    np.testing.assert_array_equal(scorer.plan(rows, 2, 1, 0)[0], first)
    others = [scorer.plan(rows, 2, 2, 0), scorer.plan(rows, 2, 1, 1), scorer.plan(rows, 2, 1, 0, FINAL_STREAM)]
    assert all((other[0] != first).any() for other in others)


def test_a_diverging_training_has_no_finite_loss(way: str) -> None:
    with np.errstate(all="ignore"):
        losses = bind(make_case(), "float32", learning_rate=1e30).add_losses(SELECTED, CANDIDATES)
    assert not np.isfinite(losses.means).any()
