"""The demonstration tells the truth, and leaves a whole report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import report_cases as cases
from sklearn.datasets import load_diabetes, load_digits

from ngp.cli import demo


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


def test_scores() -> None:
    truth = np.arange(100) % 4
    assert demo.accuracy(truth, truth) == "100.0% ± 0.0%"
    assert demo.accuracy(truth, np.zeros(100)) == "25.0% ± 4.3%"
    assert demo.r2(truth, truth) == "1.000 ± 0.000"
    assert demo.r2(truth, np.full(100, 1.5)).startswith("0.000 ± ")


def test_report_says_what_was_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "show_diabetes", lambda: ("first part", cases.nothing().result))
    monkeypatch.setattr(demo, "show_digits", lambda: ("second part", cases.nothing().result))
    folder = tmp_path / "new" / "folder"
    demo.run(folder)
    printed = capsys.readouterr().out
    assert (folder / "report.md").read_text().split("\n\n")[1:] == ["first part", "second part\n"]
    for name, text in (("diabetes", "first part"), ("digits", "second part")):
        assert f"{text}\n\nReport: {folder / name}.html\n" in printed
        assert "<html" in (folder / f"{name}.html").read_text()
    assert printed.endswith(f"Text: {folder / 'report.md'}\n")


def test_the_selection_among_noise() -> None:
    text, result = demo.show_diabetes()
    assert "bmi" in result.order
    assert "Noise columns among them: 0 of 90." in text
    assert "| 1    | bmi " in text


def test_the_selection_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda **_: (X[:450], y[:450]))  # to be quick
    text, result = demo.show_digits()
    assert len(result.order) == 6
    assert "24 in 6 windows" in text
