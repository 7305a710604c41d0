"""The same picks in threads, in loky's processes, on a Dask and on a Ray cluster; workers may die on the way."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeRegressor

from ngp import NGPRegressor
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy import significance
from ngp.kernels import parallel
from ngp.kernels.devices import has_nvidia_driver
from ngp.kernels.parallel import keep_workers, run_tasks
from ngp.paper.published_ssfn import PublishedSSFN
from ngp.predictors import MLP, SSFN, ColumnSets, Kernel, ssfn
from ngp.predictors.ssfn import SSFNClusterScorer, SSFNGpuScorer, SSFNScorer

X = np.random.default_rng(0).standard_normal((60, 24))
Y = X[:, 3] * X[:, 7] + X[:, 3]
PREDICTORS = {
    "ssfn": SSFN(n_draws=2, n_units=20),
    "published": PublishedSSFN(n_units=20),
    "kernel": Kernel(),
    "mlp": MLP(n_units=8, epochs=2, n_draws=1),
    "tree": DecisionTreeRegressor(max_depth=4),
}
ELSEWHERE = ["loky", "dask", "ray"]


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    import dask
    from dask.distributed import Client, LocalCluster

    dask.config.set({"distributed.comm.timeouts.connect": "120s", "distributed.comm.timeouts.tcp": "120s"})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, timeout=120) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        yield client


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    import ray
    from ray.util.joblib import register_ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    register_ray()
    yield
    ray.shutdown()


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a backend that is ready for use."""
    name: str = request.param
    if name == "dask":
        request.getfixturevalue("dask_client")
    if name == "ray":
        request.getfixturevalue("ray_cluster")
    return name


def using(backend: str, **options: Any) -> Any:
    """Tasks run in a backend; workers may take long to start, or to start again, on a busy machine."""
    if backend == "dask":
        options["wait_for_workers_timeout"] = 120
    return parallel_config(backend=backend, **options)


def fit(predictor: str = "ssfn", n_features: int = 3) -> NGPRegressor:
    return NGPRegressor(PREDICTORS[predictor], n_features_to_select=n_features, random_state=0).fit(X, Y)


@cache
def plain_fit(predictor: str) -> NGPRegressor:
    return fit(predictor)


def assert_same(found: NGPRegressor, predictor: str = "ssfn") -> None:
    expected = plain_fit(predictor)
    assert found.order_.tolist() == expected.order_.tolist()
    np.testing.assert_array_equal(found.losses_, expected.losses_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@dataclass(frozen=True, eq=False)
class Numbers:
    """Something to share."""

    values: Any


# --- The same result


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("backend", ["threading", *ELSEWHERE], indirect=True)
def test_fits_are_the_same_to_the_last_bit(backend: str, predictor: str) -> None:
    with using(backend, n_jobs=2):
        found = fit(predictor)
    assert_same(found, predictor)


@pytest.mark.parametrize("backend", ["threading", *ELSEWHERE], indirect=True)
def test_the_default_stop_is_the_same(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlations, pairs, and candidates that are trained since their p-values leave it open."""
    monkeypatch.setattr(significance, "CHUNK_NUMBERS", 5 * len(X))
    noisy = Y + 1.5 * np.random.default_rng(1).standard_normal(len(Y))
    selector = NGPRegressor(PREDICTORS["ssfn"], random_state=0)
    expected = clone(selector).fit(X, noisy)
    with using(backend, n_jobs=2):
        found = selector.fit(X, noisy)
    assert found.order_.tolist() == expected.order_.tolist() == [3, 7]
    for name in ("loss", "p_value"):
        values, others = ([getattr(step, name) for step in each.path_] for each in (found, expected))
        np.testing.assert_array_equal(values, others)


@pytest.mark.parametrize("backend", ["threading", *ELSEWHERE], indirect=True)
@pytest.mark.parametrize(("numbers", "n_workers"), [(1, 2), (60 * 5, 1)])
def test_neither_chunks_nor_workers_count(
    backend: str, numbers: int, n_workers: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(ssfn, "CHUNK_NUMBERS", numbers)
    config: dict[str, Any] = {"n_jobs": n_workers}
    if backend == "dask":  # which takes all workers that it is allowed to
        config["workers"] = list(request.getfixturevalue("dask_client").nthreads())[:n_workers]
    with using(backend, **config):
        found = fit()
    assert_same(found)


@pytest.mark.parametrize("backend", ["loky", "dask"], indirect=True)
def test_fits_inside_of_tasks_are_the_same(backend: str) -> None:
    selector = NGPRegressor(PREDICTORS["ssfn"], n_features_to_select=2, random_state=0)
    expected = cross_val_score(selector, X, Y, cv=3)
    with using(backend, n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(selector, X, Y, cv=3), expected)


# --- What is sent


@pytest.mark.parametrize("backend", ELSEWHERE, indirect=True)
@pytest.mark.parametrize("predictor", ["ssfn", "kernel", "mlp", "tree"])
def test_the_problem_is_sent_once_a_fit(backend: str, predictor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    def state(problem: Problem) -> dict[str, Any]:
        sent.append(problem)
        return vars(problem)

    monkeypatch.setattr(Problem, "__getstate__", state)
    with using(backend, n_jobs=2):
        fit(predictor)
    assert len(sent) == 1


@pytest.mark.parametrize("backend", ["loky", "ray"], indirect=True)  # Dask moves copies as it likes
def test_shared_objects_are_fetched_once_by_a_process(backend: str) -> None:
    def identity(numbers: Numbers, _: int) -> tuple[int, int, bool]:
        time.sleep(0.01)
        return os.getpid(), id(numbers), bool((numbers.values == 1).all())

    shared = (Numbers(np.ones(1000)),)
    with using(backend, n_jobs=2), keep_workers():
        calls = [run_tasks(identity, [(i,) for i in range(10)], None, shared=shared) for _ in range(3)]
    found = {each for call in calls for each in call}
    assert all(same for *_, same in found)
    assert os.getpid() not in {process for process, *_ in found}
    assert len(found) == len({process for process, *_ in found})


def test_files_live_as_long_as_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))

    def files() -> int:
        return len(list(tmp_path.glob("ngp-*/*")))

    long, short = Numbers(np.ones(1000)), Numbers(np.zeros(1000))
    with parallel_config(backend="loky", n_jobs=2), keep_workers():
        for shared in [(long,), (long, short), (short, long)]:
            run_tasks(lambda *things: len(things), [(1,), (2,)], 2, shared=shared)
        assert files() == 2
        del short, shared
        assert files() == 1
    assert not list(tmp_path.glob("ngp-*"))


# --- Workers that die, and tasks that fail


@pytest.mark.parametrize("backend", ELSEWHERE, indirect=True)
def test_a_worker_killed_in_the_middle_of_a_step_changes_nothing(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, killed, home = ssfn._chunk_losses, tmp_path / "killed", os.getpid()

    def kill_one(problem: Problem, remote: Any, step: Any, candidates: Any, *others: Any) -> Any:
        if len(step.selected) == 1 and 12 in candidates and not killed.exists() and os.getpid() != home:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(problem, remote, step, candidates, *others)

    monkeypatch.setattr(ssfn, "_chunk_losses", kill_one)
    monkeypatch.setattr(ssfn, "CHUNK_NUMBERS", 5 * len(X))
    with using(backend, n_jobs=2):
        found = fit()
    assert killed.exists()
    monkeypatch.undo()
    assert_same(found)


def test_data_lost_with_all_workers_is_sent_again(dask_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    def total(numbers: Numbers, factor: int) -> float:
        return float(numbers.values.sum() * factor)

    shared, arguments = (Numbers(np.ones(100)),), [(i,) for i in range(6)]
    with using("dask"), keep_workers():
        expected = run_tasks(total, arguments, None, shared=shared)
        for process in dask_client.run(os.getpid).values():
            os.kill(process, signal.SIGKILL)
        assert run_tasks(total, arguments, None, shared=shared) == expected == [100.0 * i for i in range(6)]
    assert "a worker died: " in caplog.text


@pytest.mark.parametrize("backend", ELSEWHERE, indirect=True)
def test_workers_that_die_without_end_are_given_up(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def kill(i: int) -> int:
        if i == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return i

    monkeypatch.setattr(parallel, "MOST_LOSSES", 2)
    # Clusters try by themselves, too.
    options: dict[str, Any] = {"dask": {"retries": 0}, "ray": {"ray_remote_args": {"max_retries": 0}}}.get(backend, {})
    message = r"The workers of \w+ died 2 times in a row with no task done in between: .* use fewer \(n_jobs\)\."
    with using(backend, n_jobs=2, **options):
        with pytest.raises(RuntimeError, match=message) as caught:
            run_tasks(kill, [(0,), (1,)], None)
        assert run_tasks(kill, [(0,), (2,)], None) == [0, 2]
    assert caught.value.__cause__ is not None
    assert "tasks are run again" in caplog.text


@pytest.mark.parametrize("backend", ["threading", *ELSEWHERE], indirect=True)
def test_a_tasks_own_error_comes_as_it_is(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    def fail(i: int) -> None:
        error = KeyError("mine", i)
        error.add_note("a note")
        raise error

    with using(backend, n_jobs=2), pytest.raises(KeyError) as caught:
        run_tasks(fail, [(7,)] * 3, None)
    assert type(caught.value) is KeyError
    assert caught.value.args == ("mine", 7)
    assert caught.value.__notes__ == ["a note"]
    assert "died" not in caplog.text


@pytest.mark.parametrize("backend", ["threading", *ELSEWHERE], indirect=True)
def test_after_an_error_what_has_not_begun_is_left(backend: str, tmp_path: Path) -> None:
    def touch(i: int) -> None:
        if i == 0:
            raise ZeroDivisionError
        time.sleep(0.02)
        (tmp_path / str(i)).touch()

    with using(backend, n_jobs=2), keep_workers():
        with pytest.raises(ZeroDivisionError):
            run_tasks(touch, [(i,) for i in range(200)], None)
        assert run_tasks(pow, [(2, 3)], None) == [8]
    assert len(list(tmp_path.iterdir())) < 100


# --- One GPU a worker


@pytest.mark.parametrize("backend", ["dask", "ray"], indirect=True)
def test_workers_score_on_their_own_devices(backend: str) -> None:
    groups = make_groups([[0], [1, 2], [3], [4, 5], [7], [6]], X.shape[1])
    problem, selected = make_problem(X, Y, groups=groups), np.array([8])
    candidates = ColumnSets.of(groups.columns).with_empty()
    settings = SSFN(n_draws=2, n_units=20, dtype="float64"), problem, 3, 2, 2, 1.0
    expected = SSFNGpuScorer(*settings, gpu="cpu").add_losses(selected, candidates)
    with using(backend, n_jobs=2), keep_workers():
        found = SSFNClusterScorer(*settings, gpu="cpu").add_losses(selected, candidates)
    assert np.isfinite(expected.parts).all()
    np.testing.assert_allclose(found.parts, expected.parts, rtol=1e-12)


@pytest.mark.parametrize("backend", ["dask", "ray"], indirect=True)
def test_a_gpu_is_looked_for_in_the_worker(backend: str) -> None:
    problem = make_problem(X, Y, groups=make_groups(None, X.shape[1]))
    with using(backend, n_jobs=2), keep_workers():
        assert type(SSFN().bind(problem, random_state=0)) is SSFNScorer
        scorer = SSFN().bind(problem, random_state=0, device="cuda")
        assert type(scorer) is SSFNClusterScorer
        if not has_nvidia_driver():
            with pytest.raises(ValueError, match=r"device='cuda' isn't available here .*: use device='cpu' or 'auto'"):
                scorer.add_losses(np.array([8]), ColumnSets.singles(np.arange(3)))
