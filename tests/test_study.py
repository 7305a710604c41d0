"""The designs of benchmarks.study are what they say, and so are its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from benchmarks import designs, study, study_tables

ROOT = Path(__file__).parents[1]


DRAWN = ("linear", "additive", "interactions", "parity", "correlated blocks", "heavy tails", "classes", "many columns",
         "no signal", "weak", "artificial", "discrete")  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_designs_are_what_they_say(name: str) -> None:
    design = designs.DESIGNS[name]
    data = design.draw(3)
    assert data.X.shape == (design.n_rows, design.n_columns)
    assert data.X_test.shape == (designs.N_TEST, design.n_columns)
    assert len(data.y) == design.n_rows
    assert len(data.y_test) == designs.N_TEST
    assert set(data.relevant) <= set(range(design.n_columns))
    assert len(np.unique(data.y)) == (3 if design.task == "classification" else design.n_rows)
    for column in [*data.relevant, design.n_columns - 1]:  # the same law
        assert ks_2samp(data.X[:, column], data.X_test[:, column]).pvalue > 0.001
    assert ks_2samp(data.y, data.y_test).pvalue > 0.001
    assert not np.isin(data.y_test, data.y).any() or design.task == "classification"  # other rows
    for again, given in zip(design.draw(3), data, strict=True):
        np.testing.assert_array_equal(again, given)
    assert not np.array_equal(design.draw(4).X, data.X)


@pytest.mark.parametrize("name", DRAWN)
def test_designs_are_neither_hopeless_nor_trivial(name: str) -> None:
    design = designs.DESIGNS[name]
    data = design.draw(5)
    kind = RandomForestClassifier if design.task == "classification" else RandomForestRegressor
    irrelevant = np.setdiff1d(np.arange(design.n_columns), data.relevant)[-4:]
    scores = [
        kind(50, min_samples_leaf=3, random_state=0).fit(data.X[:, few], data.y).score(data.X_test[:, few], data.y_test)
        for few in (data.relevant, irrelevant)
        if len(few)
    ]
    if data.relevant:
        assert scores[0] < 0.95
        assert scores[0] > max(scores[1], 0) + 0.1
    else:
        assert scores[0] < 0.1


@pytest.mark.parametrize("name", ["diabetes", "breast cancer", "airfoil", "boston", "vowel"])
def test_real_tables_have_noise_behind_their_columns(name: str) -> None:
    design = designs.DESIGNS[name]
    if name not in ("diabetes", "breast cancer"):  # their files aren't everywhere
        rng = np.random.default_rng(0)
        design = design._replace(load=lambda: (rng.normal(size=(100, 4)), rng.integers(0, 3, size=100)))
    data = design.draw(1)
    real = len(data.relevant)
    assert data.X.shape[1] == data.X_test.shape[1] == 3 * real
    assert data.relevant == list(range(real))
    rows = np.vstack([data.X, data.X_test])
    assert len(data.X_test) == np.ceil(0.3 * len(rows))
    np.testing.assert_array_equal(np.sort(rows[:, :real], axis=0), np.sort(rows[:, real : 2 * real], axis=0))
    assert not np.array_equal(rows[:, :real], rows[:, real : 2 * real])


@pytest.mark.parametrize("tol", [0.01, 0.09, 0.3])
def test_study_replays_what_a_threshold_selects(tol: float) -> None:
    data = study.DESIGNS["linear"]._replace(n_rows=100, n_columns=12).draw(0)
    judge = study.make_judge(study.DESIGNS["linear"], data, 0)
    path = study.pursue(data, "regression", 0, tol=0.01, most=15)
    found = study.by_thresholds(path, judge)[study.threshold(tol)]
    selector = study.pursue(data, "regression", 0, tol=tol)
    assert found["columns"] == selector.order_.tolist()
    assert found["n_fits"] == sum(step.n_fits for step in selector.path_)


def test_study_predicts_a_constant_without_columns() -> None:
    data = study.DESIGNS["classes"].draw(0)
    share = np.mean(data.y_test == np.bincount(data.y).argmax())
    assert study.held_out_score("classification", data, [], 0) == share
    assert study.f1([], []) == 1
    assert study.f1([1, 2, 7], [1]) == 0.5
    assert study.f1([3], []) == 0


def test_study_calls_a_single_bad_run_no_proof() -> None:
    def runs(auto: list[float]) -> list[dict[str, object]]:
        return [{"variants": {"auto": {"score": each}, "η = 0.09": {"score": 0.7}}} for each in auto]

    def verdict(auto: list[float]) -> bool:
        return study.compared(runs(auto), "auto", "η = 0.09", "score")["not_worse"]

    assert verdict([0.7] * 6 + [0.1])  # its mean is as large as its error
    assert not verdict([0.7] * 5 + [0.1, 0.2])
    assert verdict([0.7])
    assert not verdict([0.6])


def measured(auto: float, best: float, known: bool = True) -> dict[str, Any]:
    """A design with two runs of some variants, as the study writes it."""
    scores = {"η = 0.03": best, "auto": auto, "plateau": 0.5, "lasso-cv": 0.4, "random-forest": 0.45}
    scores |= dict.fromkeys(("relevant columns", "all columns"), 0.9)
    means = {
        name: {measure: {"mean": value, "standard_error": 0.01} for measure in ("score", "f1", "fpsr", "fnsr")}
        | {"n_fits": {"mean": 70.0 if name == "auto" else 10.0}}
        for name, value in scores.items()
    }
    if not known:
        means["auto"]["f1"] = None
    comparisons = [
        {"variant": "auto", "measure": measure, "threshold": "η = 0.03", "mean": auto - best, "standard_error": 0.01}
        | {"not_worse": auto >= best}
        for measure in ("score", "f1")
    ]
    return {"n_runs": 20, "variants": means, "comparisons": comparisons}


def test_tables_say_where_the_default_is_worse() -> None:
    designs = {"linear": measured(0.8, 0.7), "boston": measured(0.6, 0.7, known=False)}
    linear, boston = (line.split("|") for line in study_tables.score_table(designs).splitlines()[2:])
    told = ["linear", "20", "0.700 (η = 0.03)", "0.800", "+0.1000 ± 0.0100", "–", "0.500", "0.450 (random-forest)"]
    assert [cell.strip() for cell in linear[1:-1]] == [*told, "0.900", "0.900", "7.0"]
    assert boston[5].strip() == "-0.1000 ± 0.0100 *"
    assert len(study_tables.recovery_table(designs).splitlines()) == 3  # of a real table nobody knows what is relevant


def test_tables_of_a_single_run_have_no_error() -> None:
    once = measured(0.8, 0.7)
    once["comparisons"] = [each | {"standard_error": None} for each in once["comparisons"]]
    for table in (study_tables.score_table({"linear": once}), study_tables.recovery_table({"linear": once})):
        assert "| +0.1000 " in table
        assert "±" not in table


def test_no_design_is_in_two_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps({"designs": {"weak": {}}}))
    with pytest.raises(ValueError, match="weak: measured twice"):
        study_tables.read([tmp_path / "a", tmp_path / "b"])
