"""The benchmarks run and measure what they say; no test here looks at a time."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from benchmarks import (
    artificial,
    baselines,
    estimates,
    fifty,
    larger_than_memory,
    many_rows,
    million,
    mnist,
    networks,
    recovery,
    screening,
    searching,
    speed,
    stopping,
    study,
    workers,
)
from benchmarks.common import mean_and_error
from ngp.greedy.screening import n_scored

ROOT = Path(__file__).parents[1]


def test_plain_loop_and_batched_scorer_give_the_same_losses() -> None:
    X, y, _ = speed.make_artificial(90, 30, random_state=1)
    steps = speed.sample_steps(np.array([2, 4, 3, 0]), 30, 5)
    differences = speed.largest_difference(speed.bind(X, y), steps)
    assert max(differences.values()) <= speed.AGREEMENT


def test_another_model_is_not_taken_for_the_same() -> None:
    X, y, _ = speed.make_artificial(90, 30, random_state=1)
    scorer = speed.bind(X, y, n_draws=2)
    with pytest.raises(RuntimeError, match="other losses"):
        speed.largest_difference(scorer, speed.sample_steps(np.array([2]), 30, 5))


def test_speed_writes_the_documented_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = speed.Plan(
        sizes=((60, 20), (60, 40)), fit_widths=(20, 40), memory_width=20, headline=(60, 20, 2), n_plain=2,
        n_sequential=3, step_seconds=0.01, repetitions=1, peak_size=64,
    )  # fmt: skip
    monkeypatch.setattr(speed, "QUICK", tiny)
    speed.main(["--quick", "--json", str(tmp_path / "results" / "speed.json")])
    results = json.loads((tmp_path / "results" / "speed.json").read_text())
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    assert all(f"`{key}`" in documented for key in results)
    assert len(results["table"]) == 2
    assert results["table"][0]["share_of_peak"] > 0
    assert results["headline"]["n_candidates"] == 20 + 19
    assert "µs a candidate" in capsys.readouterr().out


def test_operations_of_the_headline() -> None:
    assert speed.operations(300) == pytest.approx(300 * 103**2 + 5 * 103**3 / 3)


def test_workers_of_all_backends_find_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "workers.json"
    sizes = ["--samples", "60", "--columns", "40", "--selected", "2", "--repetitions", "1"]
    workers.main([*sizes, "--backends", "threading", "loky", "--json", str(file)])
    results = json.loads(file.read_text())
    assert results["same_bits"]
    assert set(results["seconds"]) == {"threading 1", "threading 2", "loky 1", "loky 2"}
    sent = results["sent"]["loky 2"]
    assert sent["largest_object_mb"] > results["x_mb"] > sent["other_objects_mb"] / 10
    assert "loky: two workers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("losses", "kept"),  # pairs before and after a step; the mean square of the targets is 1
    [
        ([(1.0, 0.1)], None),  # the first step is not judged
        ([(1.0, 0.1), (0.1, 0.05)], None),  # -10 to -13 dB
        ([(1.0, 0.1), (0.1, 0.09)], 1),  # -10 to -10.5 dB: less than 6 %
        ([(1.0, 0.1), (0.1, 0.2)], 1),  # worse
        ([(1.0, 0.1), (0.2, 0.1)], None),  # each step under its own random numbers
    ],
)
def test_published_rule_judges_changes_in_decibels(losses: list[tuple[float, float]], kept: int | None) -> None:
    steps = [SimpleNamespace(before=before, loss=loss) for before, loss in [(np.nan, 1.0), *losses]]
    stop = artificial.PublishedRule(mean_square=1.0).check(steps)
    assert (None if stop is None else stop.keep) == kept


@pytest.mark.parametrize("protocol", ["sound", "published"])
def test_artificial_reports_what_was_selected(protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    artificial.main(
        ["--predictor", "ssfn", "--protocol", protocol, "--runs", "1", "--features", "8", "--json", str(file)]
    )
    results = json.loads(file.read_text())
    assert results["means"]["mean_fnsr"] == results["runs"][0]["fnsr"]
    assert set(results["runs"][0]["order"]) <= set(range(8))


def test_recovery_says_what_it_ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(recovery, "LAW_SIZES", (30, 60))
    recovery.main(["--runs", "1", "--jobs", "1"])
    printed = capsys.readouterr().out
    assert "(J=300, P=500, noise on each sample), tol=0.09, else the defaults, 1 runs" in printed
    assert "           J      30      60 " in printed


def test_baselines_are_judged_by_both_rules(tmp_path: Path) -> None:
    file = tmp_path / "baselines.json"
    methods = ["correlation", "lasso", "ngp"]
    baselines.main(["--methods", *methods, "--runs", "2", "--features", "12", "--jobs", "1", "--json", str(file)])
    results = json.loads(file.read_text(encoding="utf-8"))
    assert list(results["means"]) == methods
    assert len(results["runs"]) == 6
    for run in results["runs"]:
        X, y, truth = baselines.make_artificial(baselines.N_SAMPLES, 12, random_state=run["seed"])
        if run["method"] == "correlation":  # twelve importances, all above one per cent
            assert run["rule_selected"] == run["own_selected"] == 12
            assert run["rule_fpsr"] == pytest.approx(7 / 12)
            assert run["rule_fnsr"] == 0
            by_size = np.argsort([-abs(np.corrcoef(column, y)[0, 1]) for column in X.T])
            assert run["found_in_first"] == len(set(by_size[:5]) & set(truth)) / 5


def test_networks_are_measured_beside_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "networks.json"
    sizes = ["--repetitions", "1", "--features", "6", "--samples", "30", "--cnn-epochs", "1", "--device", "cpu"]
    networks.main([*sizes, "--json", str(file)])
    results = json.loads(file.read_text())
    assert results["mlp"]["n_candidates"] == 3  # two columns are left, and the selection as it is
    assert results["cnn"]["n_candidates"] == 49
    assert min(results[name]["ratio"] for name in ("mlp", "cnn")) > 0
    assert "times as long" in capsys.readouterr().out


def test_mnist_reports_the_largest_selection_within_each_share() -> None:
    sizes = mnist.sizes_of([16 * k for k in range(1, 21)])
    assert sizes == {0.08: 48, 0.16: 112, 0.24: 176, 0.32: 240, 0.4: 304, 320 / 784: 320}


def test_many_rows_are_fitted_in_a_process_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "many_rows.json"
    sizes = ["--rows", "3000", "--columns", "8", "--selected", "2", "--peak-size", "64"]
    many_rows.main([*sizes, "--json", str(file)])
    results = json.loads(file.read_text())
    assert len(results["fit"]["order"]) == len(results["fit"]["steps_seconds"]) == 2
    assert set(results["fit"]["order"]) <= set(range(5))
    assert results["share_of_peak"] > 0
    assert "peak beside X" in capsys.readouterr().out


def test_larger_than_memory_finds_the_relevant_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(larger_than_memory, "N_NOISE", 20)
    sizes = ["--sparse-gigabytes", "0.001", "--real-gigabytes", "0.001", "--columns", "50", "--candidates", "10"]
    file = tmp_path / "larger_than_memory.json"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        larger_than_memory.main([*sizes, "--repetitions", "1", "--folder", str(tmp_path), "--json", str(file)])
    results = json.loads(file.read_text())
    assert results["large"]["found"]
    assert [row["X"] for row in results["formats"]] == ["in memory", "Zarr", "Arrow", "Parquet", "sparse, 5 %"]
    assert min(row[key] for row in results["mapped"] for key in ("scan_ratio", "step_ratio")) > 0
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    assert all(f"`{key}`" in documented for key in results)
    assert [path.name for path in tmp_path.iterdir()] == ["larger_than_memory.json"]  # the files are gone
    assert "memmap, row by row" in capsys.readouterr().out


def test_screening_is_compared_with_scoring_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "screening.json"
    screening.main(["--seeds", "1", "--samples", "60", "--features", "150", "--json", str(file)])
    results = json.loads(file.read_text())
    for design in screening.DESIGNS:
        (run,) = results[design]["runs"]
        assert results[design]["summary"]["same_picks"] == (run["exact"] == run["screened"])
        assert max(run["ranks"]) == results[design]["summary"]["largest_rank"]
    assert "times as long" in capsys.readouterr().out


def test_ranks_are_counted_in_the_steps_of_the_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 30))
    assert screening.cheap_ranks(X, 3 * X[:, 4] + X[:, 9], [4, 9], 0) == [0, 0]
    assert screening.cheap_ranks(X, 3 * X[:, 4] + X[:, 9], [9, 4], 0) == [1, 0]


def test_many_columns_are_measured_in_a_process_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "million.json"
    million.main(["--samples", "60", "--features", "400", "--json", str(file)])
    results = json.loads(file.read_text())
    assert results["exact"]["n_fits"] == 400 + 399 + 398 + 397 + 396
    assert results["screened"]["n_fits"] == sum(n_scored("auto", n) for n in (400, 399, 398, 397, 396))
    assert len(results["exact"]["order"]) == len(results["screened"]["order"]) == 5


def test_estimates_are_held_against_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = {
        "tiny": estimates.Setting((40, 6), 2),
        "groups": estimates.Setting((40, 6), 1, in_groups_of=2, classes=True),
    }
    monkeypatch.setattr(estimates, "SETTINGS", tiny)
    monkeypatch.setattr(estimates, "elsewhere", estimates.here)
    estimates.main(["--settings", "tiny", "groups", "--json", str(tmp_path / "out.json")])
    assert "within a factor of 2: time " in capsys.readouterr().out
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["predicted"]["n_fits"] for row in found["settings"]] == [11, 3]
    assert all(row["measured"]["seconds"] > 0 and row["ratio"]["mb"] > 0 for row in found["settings"])
    ratios = [{"ratio": {"seconds": ratio}} for ratio in (0.4, 0.5, 1.0, 2.0, 2.1)]
    assert estimates.within(ratios, "seconds") == 3


def test_stopping_counts_what_was_selected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stopping.json"
    monkeypatch.setattr(stopping, "N_COLUMNS", 8)
    stopping.main(["--runs", "2", "--jobs", "1", "--designs", "no signal", "artificial, J=150", "--json", str(file)])
    found = json.loads(file.read_text())["designs"]
    assert found["no signal"]["nothing_selected"] == sum(not run["order"] for run in found["no signal"]["runs"])
    assert found["artificial, J=150"]["nothing_selected"] == 0
    assert all(each["times_a_plain_run"] >= 4 for each in found.values())
    assert "times a plain run" in capsys.readouterr().out


def test_searching_counts_what_was_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "searching.json"
    small = {name: searching.DESIGNS[name]._replace(n_rows=200, n_columns=8) for name in ("decoy", "xor")}
    monkeypatch.setattr(searching, "DESIGNS", small)
    searching.main(["--runs", "2", "--jobs", "1", "--json", str(file)])
    found = json.loads(file.read_text())["designs"]
    assert found["decoy"]["plain"]["with_decoy"] == 2
    assert found["decoy"]["more"] == {"found": 2, "found_alone": 2, "with_decoy": 0}
    assert found["xor"]["more"] == {"found": 2, "found_alone": 2, "with_decoy": None}
    assert found["xor"]["times_the_n_fits"] > 1
    assert "times the trainings" in capsys.readouterr().out


def test_study_compares_with_the_best_threshold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise OSError("it is nowhere")

    small = {name: study.DESIGNS[name]._replace(n_rows=100, n_columns=8) for name in ("linear", "no signal")}
    monkeypatch.setattr(study, "DESIGNS", small | {"vowel": study.DESIGNS["vowel"]._replace(load=missing)})
    monkeypatch.setattr(study, "N_TREES", 10)
    file = tmp_path / "study.json"
    study.main(["--runs", "2", "--first-seed", "3", "--jobs", "1", "--baselines", "lasso-cv", "--json", str(file)])
    results = json.loads(file.read_text())
    assert results["left_out"] == {"vowel": "it is nowhere"}
    assert set(results["designs"]) == {"linear", "no signal"}
    found = results["designs"]["linear"]
    assert [run["seed"] for run in found["runs"]] == [3, 4]
    scores = {each: found["variants"][each]["score"]["mean"] for each in map(study.threshold, study.THRESHOLDS)}
    for each in found["comparisons"][:2]:
        assert scores[each["threshold"]] == max(scores.values())
        first, second = (
            run["variants"][each["variant"]]["score"] - run["variants"][each["threshold"]]["score"]
            for run in found["runs"]
        )
        assert each["mean"] == pytest.approx((first + second) / 2)
        assert each["standard_error"] == pytest.approx(abs(first - second) / 2)
    assert found["variants"]["relevant columns"]["f1"]["mean"] == 1
    assert found["variants"]["all columns"]["fpsr"]["mean"] == pytest.approx(3 / 8)
    printed = capsys.readouterr().out
    assert "vowel: LEFT OUT. it is nowhere" in printed
    assert printed.count("not worse within one standard error: ") == 8


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    """Classes that the first and the third of twelve columns tell apart."""
    X = np.random.default_rng(0).normal(size=(150, 12))
    return X, (X[:, 0] > 0).astype(np.intp) + (X[:, 2] > 0)


def test_fifty_selects_without_the_held_out_rows() -> None:
    X, y = three_classes()
    found = fifty.run_once(X, y, seed=1, k=2, device="cpu")
    assert set(found["order"]) == {0, 2}
    assert found["ngp"] > 0.9
    assert found["ngp"] >= found["all"] > found["random"]
    _, rows = train_test_split(np.arange(len(X)), test_size=0.2, random_state=1)
    X[rows], y[rows] = -X[rows], 3  # a class that no training row has
    other = fifty.run_once(X, y, seed=1, k=2, device="cpu")
    assert other["order"] == found["order"]
    assert other["ngp"] == other["all"] == other["random"] == 0


def test_fifty_reports_means_beside_the_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(fifty.DATA, "mice", three_classes)
    monkeypatch.setattr(fifty, "N_SELECTED", 2)
    file = tmp_path / "fifty.json"
    fifty.main(["--data", "mice", "--seeds", "2", "--first-seed", "3", "--device", "cpu", "--json", str(file)])
    results = json.loads(file.read_text())
    found = results["data"]["mice"]
    first, second = found["runs"]
    assert [first["seed"], second["seed"]] == [3, 4]
    assert found["ngp"]["mean"] == pytest.approx((first["ngp"] + second["ngp"]) / 2)
    assert found["random"]["standard_error"] == pytest.approx(abs(first["random"] - second["random"]) / 2)
    assert found["difference"] == pytest.approx(found["ngp"]["mean"] - 0.997)
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    assert all(f"`{key}`" in documented for key in [*results, *found] if key not in ("rows", "columns"))
    assert "LassoNet 0.997" in capsys.readouterr().out


def test_fifty_shrinks_images_linearly() -> None:
    ramp = np.add.outer(np.linspace(0, 1, 32), np.linspace(0, 10, 32))
    small = np.add.outer(np.linspace(0, 1, 20), np.linspace(0, 10, 20))
    np.testing.assert_allclose(fifty.shrink(np.array([ramp, -ramp])), [small.ravel(), -small.ravel()], atol=1e-12)


def test_fifty_has_no_error_of_a_single_run() -> None:
    assert mean_and_error([0.5]) == {"mean": 0.5, "standard_error": None}
    assert fifty.with_error(mean_and_error([0.5])) == "0.5000"
