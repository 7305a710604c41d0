"""The demonstration tells the truth, and leaves a whole report."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import report_cases as cases
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.svm import SVR

from ngp import NGPRegressor
from ngp.cli import demo

ROW = re.compile(
    r"^\| (the same network|SVM, tuned|random forest) +\| ([\d.]+) ± ([\d.]+)%? +\| ([\d.]+) ±", re.MULTILINE
)


def test_scores() -> None:
    truth, guess = np.arange(100) % 4, np.zeros(100)
    assert demo.new_score(truth, truth, "classification") == (1, 0)
    assert demo.new_score(truth, guess, "classification") == pytest.approx((0.25, (0.25 * 0.75 / 100) ** 0.5))
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(1000, 200))  # a column is a table
    found = [demo.new_score(column, 0.5 * column, "regression") for column in truth.T]
    assert found[0][0] == pytest.approx(r2_score(truth[:, 0], 0.5 * truth[:, 0]))
    noisy = truth + rng.normal(size=truth.shape)
    values, errors = np.transpose([demo.new_score(*pair, "regression") for pair in zip(noisy.T, truth.T, strict=True)])
    assert np.std(values) == pytest.approx(errors.mean(), rel=0.3)


def test_report_says_what_was_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "show_table", lambda: ("first part", cases.nothing().result))
    monkeypatch.setattr(demo, "show_images", lambda: ("second part", cases.nothing().result))
    folder = tmp_path / "new" / "folder"
    demo.run(folder)
    printed = capsys.readouterr().out
    assert (folder / "report.md").read_text().split("\n\n")[1:] == ["first part", "second part\n"]
    for name, text in (("table", "first part"), ("images", "second part")):
        assert f"{text}\n\nReport: {folder / name}.html\n" in printed
        assert "<html" in (folder / f"{name}.html").read_text()
    assert printed.endswith(f"Text: {folder / 'report.md'}\n")


def test_it_says_so_where_selecting_does_not_pay() -> None:
    X = np.random.default_rng(0).normal(size=(200, 5))
    selector = NGPRegressor(n_features_to_select=2, random_state=0)
    forest = RandomForestRegressor(5, random_state=0)
    text, result = demo.compared("About", selector, SVR(), forest, X, X.sum(axis=1), 100)
    _, before, _, after = ROW.findall(text)[0]
    assert result.fit is not None
    assert after == f"{result.fit.r2:.3f}" < before
    assert f"\n2 of 5 columns, selected on 100 rows: R² {after} instead of {before} with all of them.\n" in text
    assert "predictor: Kernel; validation: leave one out." in text
    assert all(f"\n| {name} " in text for name in result.order)


def test_selecting_pays_on_the_table() -> None:
    text, result = demo.show_table(seed=1)
    assert sorted(result.order) == ["x0", "x1", "x2", "x3", "x4"]
    taken_back = [step for step in result.path if not step.kept]
    assert taken_back
    assert f"taken back: {len(taken_back)}." in text
    assert not any(f"| {step.name} " in text for step in taken_back)
    assert_it_pays(text)


def test_selecting_pays_on_the_images() -> None:
    text, result = demo.show_images(seed=1)
    assert all(16 <= column % 32 < 24 for column in np.flatnonzero(result.answer.support))
    assert text.count("\n| rows ") == len(result.order) == 8
    assert_it_pays(text)


def assert_it_pays(text: str) -> None:
    """Every predictor gains more than it could by chance."""
    rows = ROW.findall(text)
    assert len(rows) == 3
    for name, before, error, after in rows:
        assert float(after) - float(before) > 2 * float(error), name
