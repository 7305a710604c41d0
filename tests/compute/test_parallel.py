"""Tasks run everywhere in the same order, and their errors come through."""

import threading

import joblib
import pytest

from ngp.compute.parallel import run_tasks


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
    assert sorted(run_tasks(lambda: barrier.wait(timeout=10), [(), ()], n_jobs=2)) == [0, 1]
    assert run_tasks(threading.current_thread, [()] * 3, n_jobs=1) == [threading.current_thread()] * 3


def test_an_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_tasks(divmod, [(1, 1), (1, 0)], n_jobs=2)
