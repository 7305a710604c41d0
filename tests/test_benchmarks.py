"""Every benchmark starts, and its numbers come from what was run; no test looks at a time."""

from __future__ import annotations

import json
import pkgutil
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

import benchmarks
from benchmarks import (
    artificial,
    beside,
    cost_model,
    default,
    designs,
    estimates,
    fifty,
    larger_than_memory,
    many_rows,
    million,
    networks,
    nonlinear,
    peer_runs,
    peer_tables,
    peer_work,
    peers,
    racing,
    rankings,
    reading,
    recovery,
    scaling,
    screening,
    searching,
    speed,
    steadiness,
    stopping,
    study,
    study_tables,
    tabular,
    wide,
    workers,
)
from benchmarks import baselines as others
from ngp.greedy.screening import n_scored

ROOT = Path(__file__).parents[1]
README = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def results_of(benchmark: Any, folder: Path, *arguments: str) -> dict[str, Any]:
    """What a command writes."""
    file = folder / "results.json"
    benchmark.main([*arguments, "--json", str(file)])
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_every_command_is_documented_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for info in pkgutil.iter_modules(benchmarks.__path__):
        module = import_module(f"benchmarks.{info.name}")
        main = getattr(module, "main", None)
        if main is None or info.name == "memory":  # a process of others
            continue
        assert f"python -m benchmarks.{info.name}" in README
        if signature(main).parameters:
            with pytest.raises(SystemExit, match="0"):
                main(["--help"])
            assert "usage:" in capsys.readouterr().out


# ---------------------------------------------------------------- speed


def test_plain_loop_and_batched_scorer_give_the_same_losses() -> None:
    X, y, _ = speed.make_artificial(90, 30, random_state=1)
    steps = speed.sample_steps(np.array([2, 4, 3, 0]), 30, 5)
    assert max(speed.largest_difference(speed.bind(X, y), steps).values()) <= speed.AGREEMENT
    with pytest.raises(RuntimeError, match="other losses"):
        speed.largest_difference(speed.bind(X, y, n_draws=2), steps)


def test_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = speed.Plan(
        sizes=((60, 20), (60, 40)), fit_widths=(20, 40), memory_width=20, headline=(60, 20, 2), n_plain=2,
        n_sequential=3, step_seconds=0.01, repetitions=1, peak_size=64,
    )  # fmt: skip
    monkeypatch.setattr(speed, "QUICK", tiny)
    results = results_of(speed, tmp_path, "--quick")
    assert all(f"`{key}`" in README for key in results)
    assert len(results["table"]) == 2
    assert results["table"][0]["share_of_peak"] > 0
    assert results["headline"]["n_candidates"] == 20 + 19


def test_cases_may_bring_their_own_data(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    beside.write_case(tmp_path / "0.npz", {"n_features_to_select": 1, "random_state": 0}, X, X[:, 1], (X[:5], X[:5, 1]))
    selector, X_read, y_read, test = beside.read_case(tmp_path / "0.npz")
    assert selector.fit(X_read, y_read).order_.tolist() == [1]
    assert test is not None
    np.testing.assert_array_equal(test[0], X[:5])
    answer = {"fit": 1.0, "steps": 1.0, "cpu": 1.0, "order": [1], "score": 0.5}
    found = default.summary([{"this": answer, "other": answer | {"fit": 2.0, "order": [2]}}])
    assert found["fit"]["ratio"] == 0.5
    assert not found["same_order"]
    assert found["other"] == {"order": [2], "score": 0.5}


def test_missing_data_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing() -> default.Data:
        raise OSError("it is nowhere")

    monkeypatch.setitem(default.CASES, "leukemia", missing)
    files, left_out = default.prepare(["README", "leukemia"], tmp_path, 1)
    assert list(files) == ["README"]
    assert left_out == {"leukemia": "it is nowhere"}


def test_scaling_finds_its_model_again(tmp_path: Path) -> None:
    results = results_of(scaling, tmp_path, "--quick")
    assert all(f"`{key}`" in README for key in results)
    truth = cost_model.CostModel(
        {"step": 0.01, "candidate": 1e-6, "gram": 0.02, "solve": 0.03, "linear": 5.0, "selection": 0.2}
    )
    sizes = [
        cost_model.Size(many, n_samples, n_units, n_selected, n_folds, n_outputs)
        for many, n_samples in ((10, 100), (1000, 3000))
        for n_units, n_selected in ((25, 0), (200, 50))
        for n_folds, n_outputs in ((2, 1), (10, 5))
    ]
    found = cost_model.CostModel.fit(sizes, [truth.predict(size) for size in sizes])
    assert found.seconds == pytest.approx(truth.seconds, rel=1e-4)


def test_workers_of_all_backends_find_the_same(tmp_path: Path) -> None:
    sizes = ["--samples", "60", "--columns", "400", "--selected", "2", "--repetitions", "1"]
    results = results_of(workers, tmp_path, *sizes, "--backends", "threading", "loky")
    assert results["same_bits"]
    sent = results["sent"]["loky 2"]
    assert sent["largest_object_mb"] > results["x_mb"] > sent["other_objects_mb"] / 10


def test_networks_are_measured_beside_a_loop(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sizes = ["--repetitions", "1", "--features", "6", "--samples", "30", "--cnn-epochs", "0", "--device", "cpu"]
    results = results_of(networks, tmp_path, *sizes)
    assert results["mlp"]["n_candidates"] == 3  # two columns are left, and the selection as it is
    assert min(results[name]["ratio"] for name in ("mlp", "kernel")) > 0


def test_many_rows(tmp_path: Path) -> None:
    sizes = ["--rows", "1000", "--columns", "8", "--selected", "1", "--peak-size", "64"]
    results = results_of(many_rows, tmp_path, *sizes)
    assert len(results["fit"]["order"]) == len(results["fit"]["steps_seconds"]) == 1
    assert results["share_of_peak"] > 0


def test_larger_than_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(larger_than_memory, "N_NOISE", 20)
    sizes = ["--sparse-gigabytes", "0.001", "--real-gigabytes", "0.001", "--columns", "50", "--candidates", "10"]
    results = results_of(larger_than_memory, tmp_path, *sizes, "--repetitions", "1", "--folder", str(tmp_path))
    assert results["large"]["found"]
    assert all(f"`{key}`" in README for key in results)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]  # the files are gone


def test_screening_is_compared_with_scoring_all(tmp_path: Path) -> None:
    results = results_of(screening, tmp_path, "--seeds", "1", "--samples", "60", "--features", "150")
    for design in screening.DESIGNS:
        (run,) = results[design]["runs"]
        assert results[design]["summary"]["same_picks"] == (run["exact"] == run["screened"])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 30))
    assert screening.cheap_ranks(X, 3 * X[:, 4] + X[:, 9], [9, 4], 0) == [1, 0]


def test_very_many_columns() -> None:
    exact, screened = (million.fit_once(60, 400, screen) for screen in (None, "auto"))
    assert exact["n_fits"] in (n := 400 + 399 + 398 + 397 + 396, n + 400)  # the first step may change its ridge
    n = sum(n_scored("auto", n) for n in (400, 399, 398, 397, 396))
    assert screened["n_fits"] in (n, n + n_scored("auto", 400))


def test_readers_give_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK", 500)
    results = results_of(reading, tmp_path, "--gigabytes", "0.0002", "--repetitions", "1", "--folder", str(tmp_path))
    assert results["file"]["rows"] % 500 == 0
    assert results["file"]["bytes"] > 2e5
    assert {"ngp", "pandas"} <= set(results["readers"])
    for reader in results["readers"].values():
        assert reader["alike"]
        assert reader["processor_seconds"] > 0
    assert all(f"`{key}`" in README for key in ("readers", *results["readers"]))
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]  # the table is gone


def test_estimates_are_compared_with_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = partial(estimates.wide, 40, 6)
    monkeypatch.setattr(estimates, "FITS", {"tiny": (load, {"n_features_to_select": 2})})
    results = results_of(estimates, tmp_path, "--fits", "tiny")
    (row,) = results["fits"]
    assert row["n_fits"] == [11, 11]
    assert row["seconds"] > 0
    assert results["counts"]["with others"]["inside"] == row["inside"]


# ---------------------------------------------------------------- what is selected


@pytest.mark.parametrize("protocol", ["sound", "published"])
def test_artificial(protocol: str, tmp_path: Path) -> None:
    options = ["--predictor", "ssfn", "--protocol", protocol, "--runs", "1", "--features", "8"]
    results = results_of(artificial, tmp_path, *options)
    assert results["means"]["mean_fnsr"] == results["runs"][0]["fnsr"]
    assert set(results["runs"][0]["order"]) <= set(range(8))


def test_recovery(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(recovery, "LAW_SIZES", (30,))
    monkeypatch.setattr(recovery, "make_artificial", lambda n, _, **options: speed.make_artificial(n, 20, **options))
    recovery.main(["--runs", "1", "--jobs", "1"])
    assert "tol=0.09, else the defaults, 1 runs" in capsys.readouterr().out


def test_other_methods_are_judged_by_both_rules(tmp_path: Path) -> None:
    options = ["--methods", "correlation", "lasso", "ngp", "--runs", "1", "--features", "12", "--jobs", "1"]
    correlation, *_ = results_of(others, tmp_path, *options)["runs"]
    X, y, truth = others.make_artificial(others.N_SAMPLES, 12, random_state=correlation["seed"])
    assert correlation["rule_selected"] == correlation["own_selected"] == 12  # importances above one per cent
    assert correlation["rule_fpsr"] == pytest.approx(7 / 12)
    by_size = np.argsort([-abs(np.corrcoef(column, y)[0, 1]) for column in X.T])
    assert correlation["found_in_first"] == len(set(by_size[:5]) & set(truth)) / 5


def test_stopping(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stopping, "N_COLUMNS", 8)
    options = ["--runs", "1", "--jobs", "1", "--designs", *stopping.NO_SIGNAL, "artificial, J=150"]
    found = results_of(stopping, tmp_path, *options)["designs"]
    assert found.pop("artificial, J=150")["nothing_selected"] == 0
    for each in found.values():
        assert each["nothing_selected"] == sum(not run["order"] for run in each["runs"])


def test_steadiness_counts_sets_and_their_sizes(tmp_path: Path) -> None:
    runs = [{"columns": columns} for columns in ([1, 2], [1, 2], [1, 2, 3], [4])]
    found = steadiness.summary(runs)
    assert found["n_same"] == 1
    assert found["n_alike"] == 3
    assert not found["numbers_alike"]
    assert found["jaccard"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 6)
    results = results_of(steadiness, tmp_path, "--tables", "diabetes", "--seeds", "2", "--jobs", "1")
    seed, rows, columns = (results["tables"]["diabetes"][change]["runs"] for change in steadiness.CHANGES)
    assert seed[0]["columns"] == rows[0]["columns"] == columns[0]["columns"]  # the same fit


def test_racing_compares_picks_with_those_of_all_layers(tmp_path: Path) -> None:
    results = results_of(racing, tmp_path, "--designs", "linear", "--runs", "2", "--jobs", "1")
    found = results["designs"]["linear"]
    steps = [step for run in found["runs"] for step in run["steps"]]
    assert found["n_steps"] == len(steps) >= 8
    assert found["n_same"] == sum(step["same"] for step in steps)
    assert all(step["excess"] == 0 for step in steps if step["same"])
    assert results["all"]["n_steps"] == found["n_steps"]


def test_nonlinear_counts_relevant_columns(tmp_path: Path) -> None:
    for name in nonlinear.GENERATORS:
        assert nonlinear.draw(name, 4000, 6, 0)[1].mean() == pytest.approx(0.5, abs=0.03)
    options = ["--n", "100", "--m", "2", "4", "--folds", "1", "--generators", "ring", "ring+xor", "--jobs", "1"]
    results = results_of(nonlinear, tmp_path, *options, "--peers", "forest", "k-nn")
    assert [(cell["generator"], cell["m"]) for cell in results["cells"] if cell["method"] == "k-nn"] == [
        ("ring", 2), ("ring", 4), ("ring+xor", 4)
    ]  # fmt: skip
    for cell in results["cells"]:
        p = nonlinear.GENERATORS[cell["generator"]].n_relevant
        (fold,) = cell["folds"]
        assert cell["best_p"] == len(set(fold["order"][:p]) & set(range(p))) / p
        assert cell["best_2p"] == 1  # all columns


def test_a_slow_method_gets_no_more_columns(tmp_path: Path) -> None:
    options = ["--n", "60", "--m", "2", "4", "--folds", "1", "--generators", "ring", "--jobs", "1"]
    assert results_of(nonlinear, tmp_path, *options, "--most-seconds", "0")["means"][0]["m"] == [2]


@pytest.mark.parametrize("method", ["ngp", "anova", "logistic", "mrmr", "forest", "k-nn", "tree-shap"])
def test_rankings_begin_with_the_best_column(method: str) -> None:
    pytest.importorskip(rankings.METHODS[method].module)
    X = np.random.default_rng(0).normal(size=(90, 5))
    order, seconds = rankings.timed(method, X, np.digitize(X[:, 3], [-0.5, 0.5]), 2, 0)
    assert order[0] == 3
    assert len(order) == 2
    assert seconds > 0


def test_wide_says_where_it_is_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 6))
    table = wide.RealDataset(X, (X[:, 0] > 0).astype(np.intp), np.arange(6), tuple("abcdef"))
    monkeypatch.setattr(wide, "load_wide", lambda name: table)
    monkeypatch.setattr(wide, "SIZES", (1, 2))
    worst = rankings.Method("NGP", lambda X, y, number, seed: [4, 5])
    monkeypatch.setitem(rankings.METHODS, "ngp", worst)
    results = results_of(wide, tmp_path, "--tables", "nci9", "--peers", "anova", "--repeats", "1", "--jobs", "1")
    assert len(results["tables"]["nci9"]["runs"]) == 2 * wide.N_FOLDS
    assert [(each["k"], each["best"]) for each in results["behind"]] == [(1, "anova"), (2, "anova")]
    assert results["behind"][0]["difference"] < -wide.BEHIND


def test_tabular_keeps_as_many_columns_as_are_real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(150, 4))
    monkeypatch.setattr(tabular, "load", lambda name: (X, X.sum(axis=1)))
    monkeypatch.setattr(tabular, "TRAINING", tabular.TRAINING | {"widths": (8, 8), "batch": 20, "epochs": 5})
    monkeypatch.setattr(tabular, "GRID", tabular.GRID[-1:])
    worst = rankings.Method("NGP", lambda X, y, number, seed: np.argsort(abs(y @ X))[:number].tolist())
    monkeypatch.setitem(tabular.METHODS, "ngp", worst)
    options = ["--tables", "california", "--noises", "random", "--methods", "ngp", "univariate", "--seeds", "2"]
    results = results_of(tabular, tmp_path, *options, "--rows", "140", "--jobs", "1")
    assert [(cell["d"], cell["runs"][0]["n_columns"]) for cell in results["cells"]] == [(4, 8), (4, 16)]
    for cell in results["cells"]:
        methods = cell["methods"]
        assert methods["ngp"]["real"] < methods["univariate"]["real"] == 4
        assert methods["ngp"]["minus_ngp"]["mean"] == 0 > methods["univariate"]["minus_ngp"]["mean"]
        assert methods["univariate"]["rmse"] == methods["true"]["rmse"]  # the same columns in another order
    assert results["mean_ranks"] == {"ngp": 2, "univariate": 1}
    assert tabular.markdown(results["cells"]).count("%: univariate -") == 2


def test_stacked_networks_are_those_alone() -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, parts = rng.normal(size=(90, 5)), tuple(np.split(np.arange(90), [50, 70]))
    data = tabular.Data(X, np.sin(X[:, 0]), parts, np.ones(5, dtype=bool))
    sets = [[0, 1], [0, 1, 2, 3, 4], [4]]
    together, alone = (
        np.hstack([tabular.errors(data, each, tabular.GRID[1], 3, "cpu") for each in split])
        for split in ([sets], [[each] for each in sets])
    )
    np.testing.assert_allclose(together, alone, rtol=1e-3)


def test_searching(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = {name: searching.DESIGNS[name]._replace(n_rows=200, n_columns=8) for name in ("decoy", "xor")}
    monkeypatch.setattr(searching, "DESIGNS", small)
    found = results_of(searching, tmp_path, "--runs", "1", "--jobs", "1")["designs"]
    assert found["decoy"]["plain"]["with_decoy"] == 1
    assert found["decoy"]["more"] == {"found": 1, "found_alone": 1, "with_decoy": 0}
    assert found["xor"]["more"] == {"found": 1, "found_alone": 1, "with_decoy": None}


def test_fifty_selects_without_the_held_out_rows() -> None:
    X = np.random.default_rng(0).normal(size=(150, 12))
    y = (X[:, 0] > 0).astype(np.intp) + (X[:, 2] > 0)
    found = fifty.run_once(X, y, seed=1, k=2, device="cpu")
    assert set(found["order"]) == {0, 2}
    assert found["ngp"] >= found["all"] > found["random"]
    _, rows = train_test_split(np.arange(len(X)), test_size=0.2, random_state=1)
    X[rows], y[rows] = -X[rows], 3  # a class that no training row has
    other = fifty.run_once(X, y, seed=1, k=2, device="cpu")
    assert other["order"] == found["order"]
    assert other["ngp"] == other["all"] == other["random"] == 0


# ---------------------------------------------------------------- the study


@pytest.mark.parametrize("name", ["linear", "parity", "classes", "no signal", "diabetes"])
def test_designs_are_what_they_say(name: str) -> None:
    design = designs.DESIGNS[name]
    data = design.draw(3)
    assert data.X.shape[1] == data.X_test.shape[1]
    assert len(data.y) == len(data.X)
    assert set(data.relevant) <= set(range(data.X.shape[1]))
    for again, given in zip(design.draw(3), data, strict=True):
        np.testing.assert_array_equal(again, given)
    assert not np.array_equal(design.draw(4).X, data.X)


def test_study_compares_with_the_best_threshold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing() -> None:
        raise OSError("it is nowhere")

    small = study.DESIGNS["linear"]._replace(n_rows=60, n_columns=6)
    vowel = study.DESIGNS["vowel"]._replace(load=missing)
    monkeypatch.setattr(study, "DESIGNS", {"linear": small, "vowel": vowel})
    monkeypatch.setattr(study, "N_TREES", 5)
    results = results_of(study, tmp_path, "--runs", "2", "--jobs", "1", "--baselines", "lasso-cv")
    assert results["left_out"] == {"vowel": "it is nowhere"}
    found = results["designs"]["linear"]
    scores = {each: found["variants"][each]["score"]["mean"] for each in map(study.threshold, study.THRESHOLDS)}
    for each in found["comparisons"][:2]:
        assert scores[each["threshold"]] == max(scores.values())
        first, second = (
            run["variants"][each["variant"]]["score"] - run["variants"][each["threshold"]]["score"]
            for run in found["runs"]
        )
        assert each["mean"] == pytest.approx((first + second) / 2)
    table = study_tables.score_table(study_tables.read([tmp_path / "results.json"]))
    assert f"| {found['variants']['auto']['score']['mean']:.3f} " in table


def test_study_replays_what_a_threshold_selects() -> None:
    data = study.DESIGNS["linear"]._replace(n_rows=100, n_columns=12).draw(0)
    judge = study.make_judge(study.DESIGNS["linear"], data, 0)
    path = study.pursue(data, "regression", 0, tol=0.01, most=15)
    found = study.by_thresholds(path, judge)[study.threshold(0.09)]
    assert found["columns"] == study.pursue(data, "regression", 0, tol=0.09).order_.tolist()


# ---------------------------------------------------------------- other packages


def test_peers_write_what_they_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = ["NGP", "SelectFromModel, lasso"]
    options = ["--designs", "ohm-30", "--methods", *methods, "--runs", "1", "--repetitions", "0"]
    results = results_of(peers, tmp_path, *options)
    found = results["designs"]["ohm-30"]
    assert [(row["method"], row["rule"], row["n_runs"]) for row in found["rows"]] == [
        (method, rule, 1) for method in methods for rule in ("told", "own")
    ]
    assert peer_tables.design_text("ohm-30", results) in capsys.readouterr().out


def test_a_missing_package_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda module: "abess" not in module)
    results = results_of(peers, tmp_path, "--methods", "NGP", "abess", "--runs", "0", "--repetitions", "0")
    assert results["left_out"] == {"abess": "abess: not installed (pip install abess), left out"}
    assert list(results["methods"]) == ["NGP"]


def test_a_run_that_does_not_end_is_reported() -> None:
    ledger = peers.Ledger(limit=0.01, budget=60)
    found = peers.measure("ohm-30", ["scikit-learn SFS, forest"], range(3), ledger, jobs=1)
    (row,) = found["rows"]
    assert len(found["runs"]) == row["n_not_ended"] == 1  # and is not tried again
    assert row["f1"] is None


def test_runs_are_the_same_again() -> None:
    task = peer_runs.Task("ohm-30", "SelectFromModel, forest", "own", 5)
    first, again = (peer_runs.run(task, 60) for _ in range(2))
    assert first["columns"] == again["columns"]


def run_of(method: str, seed: int, f1: float | None, score: float = 0.5) -> dict[str, Any]:
    found = {"method": method, "rule": "own", "seed": seed, "status": "ended", "f1": f1, "fpsr": 0.1, "fnsr": 0.2}
    return found | {"score": score, "n_selected": 3, "seconds": 2.0, "mb": 10.0}


def test_tables_show_a_peer_that_wins() -> None:
    rows = [("NGP", "own"), ("abess", "own"), ("Boruta", "own")]
    runs = [run_of("NGP", seed, f1, 0.7) for seed, f1 in enumerate((0.8, 0.6))]
    runs += [run_of("abess", seed, f1) for seed, f1 in enumerate((0.9, 0.9))]
    runs += [run_of("Boruta", 0, 0.7)]
    sizes = {"n_rows": 30, "n_columns": 10, "n_relevant": 2, "known": True, "task": "regression", "told": 2}
    about = {name: {"package": name, "version": "1.0", "settings": ""} for name, _ in rows}
    found = {"rows": [peers.summary(*row, runs) for row in rows], "comparisons": peers.comparisons(runs, rows)}
    text = peer_tables.design_text("d", {"settings": {"limit": 9}, "methods": about, "designs": {"d": sizes | found}})
    assert "| **0.900** ± 0.000 |" in next(line for line in text.splitlines() if line.startswith("| abess "))
    assert "- F1: better than NGP: abess +0.200 ± 0.100 (2 runs)." in text
    assert "- held-out R²: no peer is better than NGP; next: abess -0.200 ± 0.000 (2 runs)." in text


def test_the_same_work_is_scaled_by_trainings() -> None:
    assert peer_work.n_trainings(500, 5) == 5 * (500 + 499 + 498 + 497 + 496)
    found = peer_work.scaled([(10, 1, 2.0), (20, 1, 3.0)], (500, 5))
    assert found["seconds"] == pytest.approx(0.03 * 12_450)
    work = peer_work.Work(n_samples=30, n_columns=6, n_steps=2, timed=((3, 1), (4, 1)), repetitions=1)
    found = peer_work.same_work(work)
    peer = found["peers"]["scikit-learn SFS, batches of 32"]
    assert [each["n_trainings"] for each in peer["timed"]] == [15, 20]
    for name, row in found["ngp"].items():
        assert peer["ratios"][name] == pytest.approx(peer["seconds"] / row["seconds"])
