"""The SSFN's scorer by torch gives the losses of the compiled one, on the CPU and on a CUDA device."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from scorer_cases import CANDIDATES, PROBLEMS, SELECTED, SSFN_SETTINGS, make_case
from sklearn.model_selection import RepeatedKFold

from ngp import NeuralGreedyPursuit
from ngp._types import IntArray
from ngp.data.problem import Problem
from ngp.datasets import make_artificial
from ngp.kernels import devices
from ngp.predictors import SSFN, ColumnSets, ssfn
from ngp.predictors.networks import one_torch_thread
from ngp.predictors.ssfn import SSFNGpuScorer, SSFNScorer

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():  # more are slow on matrices this small
        yield


def both(problem: Problem, device: str, dtype: str = "float64", **settings: Any) -> tuple[SSFNScorer, SSFNScorer]:
    """The compiled scorer and the one by torch."""
    config = SSFN(dtype=dtype, **{"n_units": 12, "n_draws": 2, "ridge": 1.0, **settings})
    arguments = (config, problem, 11, None, config.n_draws, float(config.ridge))
    return SSFNScorer(*arguments), SSFNGpuScorer(*arguments, device)


def assert_same(scorers: tuple[SSFNScorer, SSFNScorer], rtol: float = 1e-9, selected: Any = SELECTED) -> None:
    candidates = CANDIDATES if len(selected) else ColumnSets.of([[0], [2], [3, 5], [6, 2, 0]])
    expected, losses = (scorer.add_losses(selected, candidates) for scorer in scorers)
    np.testing.assert_allclose(losses.means, expected.means, rtol=rtol)
    np.testing.assert_allclose(losses.parts, expected.parts, rtol=rtol, atol=rtol * expected.means.max())
    np.testing.assert_array_equal(losses.weights, expected.weights)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_the_same_losses_for_all_problems(case: dict[str, Any], device: str) -> None:
    assert_same(both(make_case(**case), device))
    assert_same(both(make_case(**case), device, "float32"), 1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_the_same_out_of_fold_predictions(case: dict[str, Any], device: str) -> None:
    problem, new = make_case(**case), np.array([0, 3])
    expected, found = (scorer.out_of_fold(SELECTED, new) for scorer in both(problem, device))
    for round_, own, other in zip(problem.rounds, found, expected, strict=True):
        judged = round_.segments[1]  # rows before that always train
        np.testing.assert_allclose(own[judged:], other[judged:], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("settings", SSFN_SETTINGS.values(), ids=SSFN_SETTINGS)
def test_the_same_losses_for_all_settings(settings: dict[str, Any], device: str) -> None:
    assert_same(both(make_case("outputs"), device, **settings))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("selected", [[], [6, 0, 3, 1, 2]], ids=["none", "five"])
def test_first_step_and_long_selections(selected: list[int], device: str) -> None:
    assert_same(both(make_case("classes", weighted=True), device), selected=np.array(selected, dtype=np.intp))


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_losses_in_every_stage_of_a_race(device: str) -> None:
    compiled, scorer = both(make_case("outputs"), device, n_draws=3)
    for stages in zip(compiled.stages, scorer.stages, strict=True):
        assert isinstance(stages[1], SSFNGpuScorer)
        assert_same(stages)
    assert scorer.stages[0]._resident is scorer.stages[-1]._resident  # type: ignore[attr-defined]


STEPS = {
    "outputs": {},
    "outputs, weights": {"kind": "outputs", "weighted": True},
    "classes, hold-out": {"kind": "classes", "cv": 0.3},
    "repeated folds": {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)},
}


def pursuit_steps(n_selected: int = 4) -> Iterator[tuple[IntArray, ColumnSets]]:
    """Steps as a pursuit makes them."""
    order = np.random.default_rng(0).permutation(7)
    for k in range(1, n_selected + 1):
        yield order[:k], ColumnSets.singles(np.sort(order[k:])).with_empty()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", STEPS.values(), ids=STEPS)
def test_the_same_losses_in_every_step_of_a_pursuit(case: dict[str, Any], device: str) -> None:
    compiled, scorer = both(make_case(**case), device, "float32")
    for selected, candidates in pursuit_steps():
        losses, expected = scorer.add_losses(selected, candidates), compiled.add_losses(selected, candidates)
        np.testing.assert_allclose(losses.means, expected.means, rtol=1e-4)
        np.testing.assert_allclose(losses.parts, expected.parts, rtol=1e-4, atol=1e-4 * expected.means.max())
        np.testing.assert_array_equal(scorer.add_losses(selected, candidates).parts, losses.parts)


@pytest.mark.parametrize("device", DEVICES)
def test_a_scorer_leaves_nothing_behind(device: str) -> None:
    scorer: Any = both(make_case(), device, "float32")[1]
    for selected, candidates in pursuit_steps():
        scorer.add_losses(selected, candidates)
    left = weakref.ref(scorer)
    gc.disable()  # a device's memory is needed at once
    try:
        del scorer
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("free", [0, 40_000], ids=["none", "little"])
def test_the_same_losses_however_little_memory_is_free(free: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case("outputs", cv=0.3)
    scorers = both(problem, device)
    monkeypatch.setattr(SSFNGpuScorer, "_free_memory", lambda self, share: int(share * free))
    monkeypatch.setattr(ssfn, "SMALL_MEMORY", 1)
    assert_same(scorers)


def test_all_columns_stay_on_the_device_only_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert both(make_case(), "cpu")[1]._resident is not None  # type: ignore[attr-defined]
    monkeypatch.setattr(ssfn, "CPU_MEMORY", 10)
    assert both(make_case(), "cpu")[1]._resident is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_picks_as_on_the_cpu(dtype: str, device: str) -> None:
    X, y, _ = make_artificial(150, 60, random_state=0)
    paths = [
        NeuralGreedyPursuit(SSFN(dtype=dtype), n_features_to_select=6, device=where, random_state=0).fit(X, y)
        for where in ("cpu", device)
    ]
    np.testing.assert_array_equal(paths[0].order_, paths[1].order_)
    losses = [[step.loss for step in path.path_] for path in paths]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize(
    "search",
    [
        {"stop": "auto"},
        {"stop": "auto", "floating": True},
        {"stop": "auto", "screen": "auto"},
        {"n_features_to_select": 4, "floating": True},
        {"tol": 0.05, "n_features_to_select": 4},
    ],
    ids=str,
)
@pytest.mark.parametrize("device", [pytest.param("cuda", marks=GPU)])
def test_every_search_finds_what_it_finds_on_the_cpu(search: dict[str, Any], device: str) -> None:
    X, y, _ = make_artificial(100, 16, random_state=0)
    here, there = (
        NeuralGreedyPursuit(SSFN(refit_units=50, dtype="float64"), device=where, random_state=0, **search).fit(X, y)
        for where in ("cpu", device)
    )
    assert [(step.action, step.group) for step in there.path_] == [(step.action, step.group) for step in here.path_]
    assert [step.n_fits for step in there.path_] == [step.n_fits for step in here.path_]
    np.testing.assert_allclose([s.loss for s in there.path_], [s.loss for s in here.path_], rtol=1e-9)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make believe that there is a CUDA device."""
    monkeypatch.setattr(devices, "has_nvidia_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


def bound(device: str = "auto") -> SSFNScorer:
    return SSFN().bind(make_case(), random_state=0, device=device)


@pytest.mark.usefixtures("cuda")
def test_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(bound(), SSFNGpuScorer)  # so small a problem isn't worth it
    assert isinstance(bound("cuda"), SSFNGpuScorer)
    monkeypatch.setattr(ssfn, "GPU_FROM_OPERATIONS", 1e3)
    assert isinstance(bound(), SSFNGpuScorer)
    assert not isinstance(bound("cpu"), SSFNGpuScorer)


def test_a_device_that_no_ssfn_runs_on() -> None:
    with pytest.raises(ValueError, match="device='mps' can't run an SSFN: use device='cpu' or 'auto'"):
        bound("mps")
