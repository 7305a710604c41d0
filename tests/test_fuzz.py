"""A few of the random cases that `make fuzz` draws, and what it says of errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("torch")
pytest.importorskip("ngp.kernels._kernels", reason="the compiled module isn't built")

import fuzz


@pytest.fixture(autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def test_random_cases_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.run(0, 20) == []
    counts = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert dict(counts) == {kind.__name__: str(2 * fuzz.KINDS.count(kind)) for kind in fuzz.KINDS}


def test_a_case_depends_on_its_number_alone_and_an_error_is_reported_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = fuzz.gather_columns
    monkeypatch.setattr(fuzz, "gather_columns", lambda *arguments: 1.001 * exact(*arguments))
    failures = fuzz.run(0, 30, only="gathers")
    assert [failure.split(",")[0] for failure in failures] == ["case 9", "case 19", "case 29"]
    assert fuzz.run(19, 1) == failures[1:2]
    assert "'rows': " in failures[1]
    assert " apart, 0 is allowed" in failures[1]


def test_an_exception_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "gather_columns", None)
    (failure,) = fuzz.run(9, 1)
    assert "TypeError" in failure
