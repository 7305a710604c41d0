"""Trials run once, in any order, and go on where they stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ngp.paper import experiment as module
from ngp.paper.experiment import Trial, run_trials, stored_results


def square(number: int, n_jobs: int) -> dict[str, Any]:
    return {"square": number**2}


def cores(number: int, n_jobs: int) -> dict[str, Any]:
    return {"n_jobs": n_jobs}


def broken(number: int, n_jobs: int) -> dict[str, Any]:
    if number == 2:
        raise ZeroDivisionError("no such trial")
    return {"square": number**2}


def squares(numbers: list[int]) -> list[Trial]:
    return [Trial(square, {"number": number}) for number in numbers]


def without_seconds(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_records_come_in_the_order_of_the_trials(tmp_path: Path, n_jobs: int) -> None:
    records = run_trials(squares([3, 1, 2, 3]), tmp_path / "trials.jsonl", n_jobs=n_jobs)
    expected = [{"number": number, "square": number**2} for number in (3, 1, 2, 3)]
    assert without_seconds(records) == expected
    assert all(record["seconds"] >= 0 for record in records)


def test_each_trial_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = tmp_path / "trials.jsonl", []
    first = run_trials(squares([1, 2, 2]), path, on_done=done.append)
    assert len(path.read_text().splitlines()) == 2
    assert len(done) == 2
    monkeypatch.setattr(module, "_run", None)  # nothing is left to run
    assert run_trials(squares([1, 2, 2]), path, on_done=done.append) == first
    assert len(done) == 5


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    some = [Trial(broken, {"number": number}) for number in (1, 2, 3)]
    with pytest.raises(ZeroDivisionError):
        run_trials(some, path)
    assert [json.loads(line)["trial"]["number"] for line in path.read_text().splitlines()] == [1]
    records = run_trials([some[0], some[2]], path)
    assert [record["square"] for record in records] == [1, 9]


@pytest.mark.parametrize("n_characters", [1, 20, 60])
def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path, n_characters: int) -> None:
    path = tmp_path / "trials.jsonl"
    whole = run_trials(squares([1, 2]), path)
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0]}\n{lines[1][:n_characters]}")
    assert list(stored_results(path)) == [squares([1])[0].key]
    assert without_seconds(run_trials(squares([1, 2]), path)) == without_seconds(whole)
    assert len(stored_results(path)) == 2  # the new line isn't lost in the torn one


def test_other_parameters_functions_and_versions_are_other_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trial(square, {"number": 1})
    keys = {one.key, Trial(cores, {"number": 1}).key, Trial(square, {"number": 2}).key}
    monkeypatch.setattr(module, "__version__", "another")
    assert len(keys | {one.key}) == 4


@pytest.mark.parametrize(("wide", "expected"), [(False, 1), (True, 2)])
def test_only_wide_trials_get_all_cores(tmp_path: Path, wide: bool, expected: int) -> None:
    some = [Trial(cores, {"number": number}, wide) for number in (1, 2)]
    records = run_trials(some, tmp_path / "trials.jsonl", n_jobs=2)
    assert [record["n_jobs"] for record in records] == [expected] * 2


def test_a_trial_that_is_alone_gets_all_cores(tmp_path: Path) -> None:
    records = run_trials([Trial(cores, {"number": 1})], tmp_path / "trials.jsonl", n_jobs=2)
    assert records[0]["n_jobs"] == 2
