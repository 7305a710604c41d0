"""The demonstration tells the truth, and leaves a whole report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_cases as cases
from sklearn.datasets import load_diabetes

from ngp import NeuralGreedyPursuit
from ngp.cli import demo
from ngp.report.result import Result

ROOT = Path(__file__).parents[2]


def test_noise_columns_are_noise() -> None:
    X_train, X_test, y_train, y_test = demo.noisy_diabetes()
    assert X_train.equals(demo.noisy_diabetes()[0])
    assert list(X_train.columns[:2]) == load_diabetes().feature_names[:2]
    assert not set(X_train.index) & set(X_test.index)
    X, y = np.concatenate([X_train, X_test]), np.concatenate([y_train, y_test])
    correlations = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    assert correlations[10:].max() < 0.2 < np.sort(correlations[:10])[4]
    # A shuffled copy has the values of its column, in another order.
    assert np.array_equal(np.sort(X[:, 0]), np.sort(X[:, 10]))


def test_steps_table_says_what_was_dropped_and_exchanged() -> None:
    steps = cases.exchanges().selector.path_
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in demo.steps_table(steps).splitlines()[2:]]
    assert [row[1] for row in rows] == [
        "(constant prediction)",
        "x3 (dropped in step 8)",
        "x4 (exchanged in step 7)",
        "x1",
        "x2",
        "x0",
        "x6 (taken back)",
        "swap x6 in, x4 out (dropped in step 9)",
        "drop x3",
        "drop x6",
        "x8",
        "x5 (taken back)",
    ]
    assert [row[4] == "" for row in rows] == [step.runner_up is None for step in steps]


def test_scores() -> None:
    truth = np.arange(100) % 4
    assert demo.accuracy(truth, truth) == "100.0% ± 0.0%"
    assert demo.accuracy(truth, np.zeros(100)) == "25.0% ± 4.3%"
    assert demo.r2(truth, truth) == "1.000 ± 0.000"
    assert demo.r2(truth, np.full(100, 1.5)).startswith("0.000 ± ")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> demo.Part:
    """Make both parts of the demonstration short."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    selector = NeuralGreedyPursuit(random_state=0).fit(X, X[:, 0])

    def part(text: str) -> demo.Part:
        return demo.Part(text, lambda ax: ax.set_title(text), Result.of(selector, X, X[:, 0]))

    monkeypatch.setattr(demo, "show_diabetes", lambda: part("first part"))
    monkeypatch.setattr(demo, "show_digits", lambda: part("second part"))
    return part("")


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("with_matplotlib", [True, False])
def test_report_says_what_was_printed(
    with_matplotlib: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not with_matplotlib:
        monkeypatch.setattr(demo, "find_spec", lambda name: None)
    folder = tmp_path / "new" / "folder"
    demo.run(folder)
    printed = capsys.readouterr().out
    report = (folder / "report.md").read_text()
    assert printed.splitlines()[-3:] == [
        f"Text: {folder / 'report.md'}",
        f"Report: {folder / 'diabetes.html'}",
        f"Report: {folder / 'digits.html'}",
    ]
    assert all(text in printed and text in report for text in ("first part", "second part"))
    assert all("<html" in (folder / name).read_text() for name in ("diabetes.html", "digits.html"))
    pictures = {path.name for path in folder.glob("*.png")}
    assert pictures == ({"path.png", "pixels.png"} if with_matplotlib else set())
    assert set(re.findall(r"\]\(([^)]+)\)", report)) == pictures
    assert ("not installed" in printed) is not with_matplotlib


@pytest.mark.usefixtures("shown")
def test_without_what_reports_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise ImportError("A report needs jinja2.")

    monkeypatch.setattr(demo, "write_report", refuse)
    demo.run(tmp_path)
    assert capsys.readouterr().out.endswith("No digits.html: A report needs jinja2.\n")


@pytest.mark.slow
def test_whole_demonstration(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "error", "-m", "ngp", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("Report: demo-report/digits.html\n")
    report = (tmp_path / "demo-report" / "report.md").read_text()
    files = {path.name for path in (tmp_path / "demo-report").iterdir()}
    assert files == {"path.png", "pixels.png", "report.md", "diabetes.html", "digits.html"}
    assert re.search(r"Selected: .*\bbmi\b", report)
    assert "Noise columns among them: 0 of 90." in report
    assert "24 in 6 windows" in report
