"""Table 1: the right data, the right measures, nothing chosen where it must not be."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.metrics import mean_squared_error
from sklearn.preprocessing import StandardScaler

from ngp.baselines import registry
from ngp.datasets import make_artificial
from ngp.paper import regression
from ngp.paper.experiment import reproduce
from ngp.paper.published import TABLE_1 as PUBLISHED
from ngp.paper.regression import ETA, METHODS, TABLE_1, artificial_split, regression_trial


def test_artificial_data_have_the_noise_of_the_protocol() -> None:
    clean = make_artificial(600, 10, noise="none", random_state=3).y
    for protocol, n_values in (("published", 1), ("sound", 600)):
        split = artificial_split(protocol, 3, 10)
        noise = np.concatenate([split.y, split.y_test]) - clean
        assert len(np.unique(noise.round(9))) == n_values
        assert split.X.shape == split.X_test.shape == (300, 10)


@pytest.mark.skipif(not Path(os.environ.get("NGP_DATA", ""), "boston.csv").is_file(), reason="needs boston.csv")
def test_boston_has_the_sizes_of_the_paper() -> None:
    first, second, other = (regression.boston_split(*seeds) for seeds in ((0,), (1,), (0, 5)))
    assert first.X.shape == (339, 113)
    assert first.X_test.shape == (167, 113)
    assert first.truth.tolist() == list(range(13))
    np.testing.assert_array_equal(first.X[:, :13], second.X[:, :13])  # the split of the paper
    assert not np.array_equal(first.X[:, 13:], second.X[:, 13:])
    assert not np.array_equal(first.y, other.y)


def test_the_test_rows_have_a_say_only_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(protocol: str, seed: int, n_features: int) -> regression.Split:
        split = artificial_split(protocol, seed, n_features)
        return split._replace(y_test=split.X_test[:, 7] + 20)

    monkeypatch.setattr(regression, "artificial_split", spoilt)
    assert regression_trial("artificial", "ngp-ssfn", "sound", 0, 10)["selected"] == [1, 0, 2, 3, 4]
    assert regression_trial("artificial", "ngp-ssfn", "published", 0, 10, ETA)["selected"] != [1, 0, 2, 3, 4]


def test_a_number_of_features_instead_of_a_threshold() -> None:
    few, many = (regression_trial("artificial", "ngp-ssfn", "published", 0, 20, number=number) for number in (2, 7))
    assert (few["n_selected"], many["n_selected"]) == (2, 7)
    assert many["selected"][:2] == few["selected"]


def test_lasso_by_hand() -> None:
    split = artificial_split("sound", 0, 20)
    found = regression_trial("artificial", "lasso", "sound", 0, 20)
    weights = np.abs(Lasso(0.01).fit(StandardScaler().fit_transform(split.X), split.y).coef_)
    selected = np.flatnonzero(weights > 0.01 * weights.sum())
    assert found["selected"] == selected.tolist()
    scaler = StandardScaler().fit(split.X[:, selected])
    model = Lasso(0.01).fit(scaler.transform(split.X[:, selected]), split.y)
    predictions = model.predict(scaler.transform(split.X_test[:, selected]))
    assert found["p_mean_square"] == pytest.approx(mean_squared_error(split.y_test, predictions), rel=1e-6)
    assert found["p_mse"] == pytest.approx(np.sqrt(found["p_mean_square"] / 300))
    assert found["p_nme"] == pytest.approx(10 * np.log10(found["p_mean_square"] / np.mean(split.y_test**2)))


def test_methods_without_a_predictor_have_no_errors() -> None:
    found = regression_trial("artificial", "correlation", "sound", 0, 20)
    assert found["p_nme"] is found["f_mse"] is None
    assert found["fnsr"] == 0


def test_an_empty_selection_predicts_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression, "registry", {"lasso": lambda task: Nothing()})
    found = regression_trial("artificial", "lasso", "sound", 0, 20)
    split = artificial_split("sound", 0, 20)
    assert found["selected"] == []
    assert found["f_mean_square"] == pytest.approx(np.var(split.y))


def test_the_rule_of_the_paper_is_one_per_cent_unless_a_method_has_a_rule() -> None:
    rules = {name: regression.with_paper_rule(method()).threshold for name, method in registry.items()}
    assert rules["random-forest"] == rules["lasso"] == rules["gam"] == rules["correlation"] == 0.01
    assert rules["drop-one-out"] is None
    assert "mean" not in rules.values()


class Nothing:
    threshold = None

    def get_params(self) -> dict[str, object]:
        return {}

    def fit(self, X: object, y: object) -> Nothing:
        return self

    def get_support(self, indices: bool) -> np.ndarray:
        return np.array([], dtype=int)

    def own_estimator(self) -> Lasso:
        return Lasso()


@pytest.mark.parametrize("protocol", ["published", "sound"])
def test_table(tmp_path: Path, protocol: str) -> None:
    plan = TABLE_1.plan(protocol, "tiny", runs=2)  # type: ignore[arg-type]
    files = {path.suffix: path for path in reproduce(TABLE_1, plan, tmp_path, n_jobs=2)}
    assert set(files) == {".csv", ".md"}
    lines = files[".csv"].read_text().splitlines()
    assert lines[0].startswith(f"# ngp reproduce table1 --protocol {protocol} --runs 2 --seed 0 ")
    rows = {row["method"]: row for row in csv.DictReader(lines[1:])}
    assert len(rows) == len({trial.parameters["method"] for trial in TABLE_1.trials(plan)})
    for row in rows.values():
        assert 0 <= float(row["fpsr"]) <= 1
        assert 0 <= float(row["fnsr"]) <= 1
        assert row["p_nme"] == "" or -40 < float(row["p_nme"]) < 0
    text = files[".md"].read_text()
    assert "0.000 ± 0.000 (0.016)" in text  # nothing false among 20 columns, beside the paper's figure
    again = reproduce(TABLE_1, plan, tmp_path / "one job", n_jobs=1)
    assert {path.name: path.read_bytes() for path in again} == {path.name: path.read_bytes() for path in files.values()}


def test_full_plan_has_the_rows_of_the_paper_and_three_ways_to_stop_on_boston() -> None:
    published = TABLE_1.trials(TABLE_1.plan("published"))
    assert len(published) == 10 * (len(METHODS) + len(METHODS) + 6)
    for data, rows in PUBLISHED.items():
        found = {trial.parameters["method"] for trial in published if trial.parameters["data"] == data}
        assert set(rows) <= found
    sound = TABLE_1.trials(TABLE_1.plan("sound"))
    assert len(sound) == 10 * 3 * len(METHODS)
    assert {trial.parameters["eta"] for trial in sound} == {None}
    assert {trial.parameters["seed"] for trial in TABLE_1.trials(replace(TABLE_1.plan("sound"), seed=4, runs=2))} == {
        4,
        5,
    }
