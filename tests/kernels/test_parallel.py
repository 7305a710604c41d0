"""Tasks run everywhere in the same order, and their errors come through."""

from __future__ import annotations

import threading
from pathlib import Path
from time import sleep
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from threadpoolctl import threadpool_info, threadpool_limits

from ngp.kernels.parallel import StoredObject, Workers, one_blas_thread, run_tasks


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
@pytest.mark.parametrize("backend", [None, "threading", "loky"])
def test_results_come_in_order(n_jobs: int | None, backend: str | None) -> None:
    arguments = [(2, n) for n in range(20)]
    if backend is None:
        assert run_tasks(pow, arguments, n_jobs) == [2**n for n in range(20)]
        return
    with joblib.parallel_config(backend=backend):
        assert run_tasks(pow, arguments, n_jobs) == [2**n for n in range(20)]


def test_the_number_of_threads_is_respected() -> None:
    barrier = threading.Barrier(2)  # passes only if two tasks run at once
    assert sorted(run_tasks(lambda: barrier.wait(timeout=60), [(), ()], n_jobs=2)) == [0, 1]
    assert run_tasks(threading.current_thread, [()] * 3, n_jobs=1) == [threading.current_thread()] * 3


def test_an_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_tasks(divmod, [(1, 1), (1, 0)], n_jobs=2)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_shared_arguments_come_first(backend: str) -> None:
    class Shared:
        base = 3

    def power(shared: Shared, exponent: int) -> int:
        return int(shared.base**exponent)

    with joblib.parallel_config(backend=backend):
        assert run_tasks(power, [(1,), (2,)], 2, shared=(Shared(),)) == [3, 9]


@pytest.mark.parametrize("n_calls", [0, 1, 16, 17, 100])
def test_many_calls_become_few_tasks(n_calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    original = Workers.results

    def results(self: Workers, task: Any, shared: Any, arguments: Any) -> Any:
        sent.append(len(arguments))
        return original(self, task, shared, arguments)

    monkeypatch.setattr(Workers, "results", results)
    with joblib.parallel_config(backend="loky"):
        assert run_tasks(divmod, [(n, 7) for n in range(n_calls)], 2) == [divmod(n, 7) for n in range(n_calls)]
    assert sum(sent) == {100: 15, 17: 9, 1: 0}.get(n_calls, n_calls)


TYPES = st.sampled_from(["f4", "f8", "i8", "?", ">f8", "U3"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    things=st.lists(arrays.arrays(TYPES, arrays.array_shapes(min_side=0, max_side=4)), max_size=4),
    order=st.sampled_from("CFT"),
)
def test_stored_objects_come_back(things: list[Any], order: str, tmp_path: Path) -> None:
    things = [each[::-1, ...].T if order == "T" else np.array(each, order=order) for each in things]
    stored = StoredObject.write({"things": things, "text": "ä"}, str(tmp_path))
    found = stored.load()
    assert found["text"] == "ä"
    for one, other in zip(things, found["things"], strict=True):
        np.testing.assert_array_equal(one, other)
        if order in "CF":  # others are copied, in the order and the byte order that numpy likes
            assert one.dtype == other.dtype
            assert one.flags.f_contiguous == other.flags.f_contiguous


def test_arrays_of_stored_objects_are_mapped_and_read_only(tmp_path: Path) -> None:
    stored = StoredObject.write([np.arange(5.0), np.ones((2, 3), order="F")], str(tmp_path))
    for found in stored.load():
        assert not found.flags.writeable
        assert not found.flags.owndata
        assert found.ctypes.data % 64 == 0
    del stored
    assert not list(tmp_path.iterdir())


def test_the_last_of_several_tasks_lifts_the_limit_of_blas_threads() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread:
            with one_blas_thread:
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}


def test_an_error_in_one_task_spares_the_others() -> None:
    done: list[int] = []
    started = threading.Event()

    def task(number: int) -> None:
        if number == 0:
            started.wait(60)
            raise KeyboardInterrupt
        started.set()
        sleep(0.01)
        done.append(number)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(task, [(i,) for i in range(1000)], n_jobs=2)
    assert len(done) < 500
