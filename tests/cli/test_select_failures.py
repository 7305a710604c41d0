"""``ngp select`` that is cut short or fails: it keeps what it has, and says in a sentence what went wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ngp import NGPRegressor
from ngp.cli.select import select as select_command
from ngp.predictors.kernel import KernelScorer
from ngp.report.result import Result

Call = Callable[..., Any]
NGP = [sys.executable, "-m", "ngp"]


def test_budgets_end_it_with_a_partial_result(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    options = ["--features", "4", "--out", "out.json", "--max-time", "0.001s"]
    result = call("select", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 0
    assert "Why it stopped: the time of 0.001 seconds is up; the path is partial." in result.stdout
    assert Result.read(folder / "out.json").answer.partial is True


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for single processes")
def test_ctrl_c_keeps_what_is_there(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 80))
    np.save("data.npy", np.column_stack([X, X[:, 3] ** 2 + rng.normal(size=2000)]))
    command = [*NGP, "select", "data.npy", "-t", "-1", "--features", "80", "--jobs", "1", "--out", "out.json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        for line in process.stderr:
            if line.startswith("step 2"):
                process.send_signal(signal.SIGINT)
                break
        said = process.stderr.read()
        answer = process.stdout.read()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "Why it stopped: interrupted" in answer
    found = Result.read(folder / "out.json")
    assert found.answer.partial is True
    assert 2 <= len(found.order) < 80


def test_ctrl_c_before_the_first_step(houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[select_command.callback.__module__], "read_table", interrupt)
    result = call("select", "houses.csv", "-t", "price")
    assert result.exit_code == 130
    assert result.stderr == "Stopped.\n"


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_in_the_first_step(
    houses: pd.DataFrame, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelScorer, "add_losses", interrupt)
    result = call("select", "houses.csv", "-t", "price", "--out", "out.json")
    assert result.exit_code == 130
    assert result.stdout.startswith("Selected none of 5 features.")
    assert "Why it stopped: interrupted before anything was selected." in result.stdout
    assert "pays" not in result.output
    answer = Result.read(folder / "out.json").answer
    assert (answer.stop_reason, answer.partial) == ("interrupted before anything was selected", True)


FILES = ["out.json", "report.html", "few.csv"]


@pytest.mark.parametrize("options", [[], ["--hold-out", "0.2"]])
def test_ctrl_c_in_the_training_of_the_final_predictor(
    houses: pd.DataFrame, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setattr(KernelScorer, "fit", interrupt)
    options = [*options, "--out", FILES[0], "--report", FILES[1], "--reduced", FILES[2]]
    result = call("select", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 130
    assert "Note: Interrupted while the final predictor was trained: the selection is kept" in result.stderr
    assert all(name in result.stdout for name in ["Selected", "town", "size", *FILES])
    found = Result.read(folder / "out.json")
    assert set(found.order) == {"size", "town"}
    assert found.fit is None
    assert "size" in (folder / "report.html").read_text(encoding="utf-8")
    assert set(pd.read_csv(folder / "few.csv").columns) == {"size", "town", "price"}


def test_ctrl_c_in_the_selections_on_halves(
    houses: pd.DataFrame, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NGPRegressor, "measure_stability", interrupt)
    result = call("select", "houses.csv", "-t", "price", "--resamples", "4", "--out", "out.json")
    assert result.exit_code == 130
    assert "Note: Stability was not measured: interrupted." in result.stderr
    assert set(Result.read(folder / "out.json").order) == {"size", "town"}


def test_halves_for_which_there_is_no_time_cost_no_selection(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    options = ["--max-time", "0.001s", "--resamples", "4", "--out", "out.json"]
    result = call("select", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 0
    assert "Note: No selection on a half of the rows was finished: the time of 0.001 seconds is up" in result.stderr
    assert (folder / "out.json").exists()


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (MemoryError(), 1, "There is not enough memory for these data: select from fewer columns or rows."),
        (RuntimeError("the device\nis lost"), 1, "the device is lost"),
        (OSError("disk full"), 1, "disk full"),
        (ImportError("predictor='mlp' needs torch."), 2, "--predictor 'mlp' needs torch."),
    ],
)
def test_failures_while_running(
    error: Exception, status: int, message: str, houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(NGPRegressor, "fit", fail)
    result = call("select", "houses.csv", "-t", "price")
    assert result.exit_code == status
    assert result.stderr.splitlines()[-1] == f"Error: {message}"


def test_a_file_that_cannot_be_written(houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ngp.cli.files.write_whole", refuse)
    result = call("select", "houses.csv", "-t", "price", "--features", "1", "--reduced", "few.csv")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Error: few.csv can't be written: No space left on device."


def test_a_report_that_cannot_be_written(houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ngp.report.write_report", refuse)
    result = call("select", "houses.csv", "-t", "price", "--features", "1", "--report", "one.html")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Error: one.html can't be written: No space left on device."


def test_a_folder_that_is_locked(houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = call("select", "houses.csv", "-t", "price", "--out", "out.json")
    assert result.exit_code == 2
    assert "--out out.json: the folder . can't be written to." in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_pipe_is_not_replaced(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    os.mkfifo(folder / "pipe.html")
    result = call("select", "houses.csv", "-t", "price", "--features", "1", "--report", "pipe.html")
    assert result.exit_code == 2
    assert result.stderr == "Error: --report pipe.html is no plain file: give a file.\n"
    assert (folder / "pipe.html").is_fifo()


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("--report", ["select", "houses.csv", "--target", "price", "--report", "one.html"]),
        ("ngp report", ["report", "out.json"]),
        ("ngp demo", ["demo"]),
    ],
)
def test_what_a_report_needs_is_asked_for_before_the_work(
    what: str, arguments: list[str], houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ngp.cli.files.find_spec", lambda name: None if name == "jinja2" else True)
    result = call(*arguments)
    assert result.exit_code == 2
    install = "install it with pip install 'neural-greedy-pursuit[report]'."
    assert result.stderr == f"Error: {what} needs jinja2: {install}\n"
