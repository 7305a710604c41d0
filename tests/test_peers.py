"""benchmarks.peers measures what it says, whoever wins; no test here looks at a time."""

from __future__ import annotations

import json
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression

from benchmarks import peer_runs, peer_tables, peer_work, peers

ROOT = Path(__file__).parents[1]


def test_the_command_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "peers.json"
    methods = ["NGP", "SelectFromModel, lasso"]
    peers.main(["--json", str(file), "--designs", "ohm-30", "--methods", *methods, "--runs", "2", "--repetitions", "0"])
    results = json.loads(file.read_text())
    assert {"machine", "settings", "methods", "left_out", "designs"} == results.keys()
    assert results["machine"]["scikit-learn"] == results["methods"]["SelectFromModel, lasso"]["version"]
    found = results["designs"]["ohm-30"]
    assert (found["n_rows"], found["n_columns"], found["n_relevant"], found["told"]) == (30, 10, 2, 2)
    assert [(row["method"], row["rule"], row["n_runs"]) for row in found["rows"]] == [
        (method, rule, 2) for method in methods for rule in ("told", "own")
    ]
    assert "runs" not in found
    said = capsys.readouterr().out
    peer_tables.main([str(file)])
    assert peer_tables.design_text("ohm-30", results) in said
    assert peer_tables.design_text("ohm-30", results) in capsys.readouterr().out


def test_single_runs_say_what_was_selected_and_what_it_took() -> None:
    ledger = peers.Ledger(limit=60, budget=60)
    found = peers.measure("ohm-30", ["NGP", "SelectFromModel, lasso"], range(9000, 9002), ledger, jobs=1)
    for each in found["runs"]:
        assert each["status"] == "ended"
        assert each["seconds"] > 0
        assert each["mb"] >= 0
        assert len(each["columns"]) == each["n_selected"]
        assert each["fpsr"] == sum(column > 1 for column in each["columns"]) / max(1, len(each["columns"]))
    assert {each["seed"] for each in found["runs"]} == {9000, 9001}


def test_runs_are_the_same_again() -> None:
    task = peer_runs.Task("ohm-30", "SelectFromModel, forest", "own", 5)
    first, again = (peer_runs.run(task, 60) for _ in range(2))
    assert first["columns"] == again["columns"]
    assert first["score"] == again["score"]


def test_memory_is_what_a_selection_takes() -> None:
    def select(job: Any) -> list[int]:
        return [int(np.ones(10_000_000)[-1])]

    found = peer_runs.measured(None, select)
    assert found["columns"] == [1]
    if Path("/proc/self/status").exists():
        assert 70 < found["mb"] < 100  # 80 · 10⁶ bytes


def test_a_missing_package_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda module: "abess" not in module)
    file = tmp_path / "peers.json"
    peers.main(["--json", str(file), "--methods", "NGP", "abess", "--runs", "0", "--repetitions", "0"])
    line = "abess: not installed (pip install abess), left out"
    results = json.loads(file.read_text())
    assert results["left_out"] == {"abess": line}
    assert list(results["methods"]) == ["NGP"]
    assert line in capsys.readouterr().out.splitlines()


def test_what_does_not_end_is_said_and_not_tried_again() -> None:
    ledger = peers.Ledger(limit=0.01, budget=60)
    found = peers.measure("ohm-30", ["scikit-learn SFS, forest"], range(3), ledger, jobs=1)
    (row,) = found["rows"]
    assert len(found["runs"]) == row["n_not_ended"] == 1
    assert row["n_runs"] == 0
    assert row["f1"] is None
    about = {"package": "scikit-learn", "version": "1", "settings": ""}
    results = {"settings": {"limit": 0.01}, "methods": {row["method"]: about}, "designs": {"ohm-30": found}}
    assert "| 0, not ended within 0.01 s |" in peer_tables.design_text("ohm-30", results)


def test_a_budget_ends_the_runs_of_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {"status": "ended", "seconds": 4.0}
    monkeypatch.setattr(peers, "run", lambda task, limit: task._asdict() | ended)
    ledger = peers.Ledger(limit=60, budget=10)
    slow, quick = (
        [ledger.run(peers.Task("ohm-30", method, "told", seed)) is not None for seed in range(n)]
        for method, n in (("LassoNet", 5), ("abess", 3))
    )
    assert slow == [True, True, True, False, False]
    assert all(quick)


def test_a_peers_mistake_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: Any) -> list[int]:
        raise ValueError("a | b")

    method = peer_runs.METHODS["abess"]._replace(module="sklearn", select=fail)
    monkeypatch.setitem(peer_runs.METHODS, "abess", method)
    task = peer_runs.Task("ohm-30", "abess", "told", 0)
    ours, theirs = Pipe()
    peer_runs.work(theirs, task)
    row = peers.summary("abess", "told", [task._asdict() | peer_runs.answer(ours, 1)])
    assert (row["n_runs"], row["n_failed"], row["f1"]) == (0, 1, None)
    assert peer_tables.runs_of(row, {}) == "0, 1 failed: ValueError: a / b"


def run_of(method: str, rule: str, seed: int, f1: float | None, score: float = 0.5) -> dict[str, Any]:
    found = {"method": method, "rule": rule, "seed": seed, "status": "ended", "f1": f1, "fpsr": 0.1, "fnsr": 0.2}
    return found | {"score": score, "n_selected": 3, "seconds": 2.0, "mb": 10.0}


def results_of(runs: list[dict[str, Any]], rows: list[tuple[str, str]]) -> dict[str, Any]:
    sizes = {"n_rows": 30, "n_columns": 10, "n_relevant": 2, "known": True, "task": "regression", "told": 2}
    about = {name: {"package": name, "version": "1.0", "settings": ""} for name, _ in rows}
    found = {"rows": [peers.summary(*row, runs) for row in rows], "comparisons": peers.comparisons(runs, rows)}
    return {"settings": {"limit": 9}, "methods": about, "designs": {"d": sizes | found}}


def test_tables_show_a_peer_that_wins() -> None:
    rows = [("NGP", "own"), ("abess", "own"), ("Boruta", "own")]
    runs = [run_of("NGP", "own", seed, f1, 0.7) for seed, f1 in enumerate((0.8, 0.6))]
    runs += [run_of("abess", "own", seed, f1) for seed, f1 in enumerate((0.9, 0.9))]
    runs += [run_of("Boruta", "own", 0, 0.7)]  # which ran once: less than NGP there
    text = peer_tables.design_text("d", results_of(runs, rows))
    ngp, abess = (line for line in text.splitlines() if line.startswith(("| NGP ", "| abess ")))
    assert "| **0.900** ± 0.000 |" in abess
    assert "| 0.700 ± 0.100 " in ngp
    assert "| **0.700** ± 0.000 " in ngp
    assert "- F1: better than NGP: abess +0.200 ± 0.100 (2 runs)." in text
    assert "- held-out R²: no peer is better than NGP; next: abess -0.200 ± 0.000 (2 runs)." in text


def test_tables_tell_equal_from_worse_and_rules_apart() -> None:
    rows = [("NGP", "told"), ("NGP", "own"), ("abess", "told"), ("abess", "own")]
    values = {("NGP", "told"): 0.5, ("NGP", "own"): 1.0, ("abess", "told"): 0.5, ("abess", "own"): 0.9}
    runs = [run_of(*row, 0, f1) for row, f1 in values.items()]
    told, own = peer_tables.design_text("d", results_of(runs, rows)).split("By their own rules")
    assert "Told the number of columns (2):" in told
    assert "F1: no peer is better than NGP; as good: abess." in told
    assert "F1: no peer is better than NGP; next: abess -0.100 (1 run)." in own


def test_of_real_tables_recovery_is_unknown() -> None:
    rows = [("NGP", "told"), ("abess", "told")]
    text = peer_tables.design_text("d", results_of([run_of(*row, 0, None) for row in rows], rows))
    assert "F1" not in text
    assert "held-out" in text


class Counting(LinearRegression):
    """Counts its fits."""

    n_fits = 0

    def fit(self, X: Any, y: Any) -> Counting:
        Counting.n_fits += 1
        return super().fit(X, y)


def test_trainings_are_those_that_sequential_selectors_do() -> None:
    assert peer_work.n_trainings(500, 5) == 5 * (500 + 499 + 498 + 497 + 496) == 12_450
    rng = np.random.default_rng(0)
    SequentialFeatureSelector(Counting(), n_features_to_select=2, cv=peer_work.folds()).fit(
        rng.normal(size=(30, 6)), rng.normal(size=30)
    )
    assert Counting.n_fits == peer_work.n_trainings(6, 2) == 55


def test_seconds_are_scaled_by_trainings() -> None:
    found = peer_work.scaled([(10, 1, 2.0), (20, 1, 3.0)], (500, 5))
    assert [each["seconds_per_training"] for each in found["timed"]] == [0.04, 0.03]
    assert found["seconds"] == pytest.approx(0.03 * 12_450)


def test_the_same_work_says_what_is_scaled() -> None:
    work = peer_work.Work(n_samples=30, n_columns=6, n_steps=2, timed=((3, 1), (4, 1)), repetitions=1)
    found = peer_work.same_work(work)
    assert found["n_trainings"] == 55
    ngp, peer = found["ngp"], found["peers"]["scikit-learn SFS, batches of 32"]
    assert {"NGP, SSFN, 1 draw", "NGP, SSFN, 8 draws (default)"} <= ngp.keys()
    assert [each["n_trainings"] for each in peer["timed"]] == [15, 20]
    for name, row in ngp.items():
        assert peer["ratios"][name] == pytest.approx(peer["seconds"] / row["seconds"])
    text = peer_tables.work_text(found)
    assert "scaled from 20 trainings in turn with NGP." in text


def test_the_same_work_in_full_stands_beside_what_was_measured_in_turn() -> None:
    work = peer_work.Work(n_samples=30, n_columns=5, n_steps=2, timed=((2, 1),), repetitions=1, is_whole=True)
    found = peer_work.same_work(work)
    text = peer_tables.work_text(found)
    for peer in found["peers"].values():
        assert [each["n_trainings"] for each in peer["timed"]] == [10]
        assert peer["seconds"] == pytest.approx(peer["timed"][0]["seconds"] * 45 / 10)
        assert f"in turn with NGP; in full, once and after the turns, {peer['whole_seconds']:.0f} s." in text


@pytest.mark.parametrize("batch", peer_work.BATCHES)
def test_ngps_networks_of_the_same_work_are_the_peers(batch: int) -> None:
    pytest.importorskip("torch")
    ours = peer_work.predictors()[f"MLP, 1 draw, batches of {batch}"]
    theirs = peer_work.network(batch)
    assert (ours.n_units,) == theirs.hidden_layer_sizes
    assert (ours.n_layers, ours.epochs, ours.batch_size) == (1, theirs.max_iter, theirs.batch_size)
    assert theirs.activation == "relu"
    assert theirs.solver == "adam"
