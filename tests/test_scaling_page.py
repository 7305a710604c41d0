"""The page about scaling says what the results say, and its model counts and predicts what it should."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost_model as model
from benchmarks import scaling
from docs import build_scaling as builder
from docs import scaling_figure, scaling_plan
from ngp.kernels.devices import has_nvidia_driver
from ngp.predictors.ssfn import SSFNGpuScorer

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MACHINE = {"cpu": "a processor", "cores": 2, "instruction_set": "none", "date": "2026-01-01T00:00:00", "gpu": "a GPU"}
# Seconds of the terms of a made-up machine.
COSTS = {"step": 0.01, "candidate": 1e-6, "gram": 0.02, "solve": 0.03, "linear": 5.0, "selection": 0.2}


@pytest.fixture
def made_up(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> dict[str, Any]:  # fmt: skip
    """Results of every benchmark, with round numbers, in place of the measured ones."""
    truth = model.CostModel(COSTS)

    def point(size: Any) -> dict[str, Any]:
        seconds = truth.predict(size) / (1 if size.n_jobs is None else size.n_jobs / 2)
        derived = {"microseconds_per_candidate": seconds / size.n_candidates * 1e6, "share_of_peak": 0.5}
        return vars(size) | {"seconds": seconds, "way": "one" if size.n_units <= 200 else "other"} | derived

    def curves(n_cores: int | None) -> dict[str, Any]:
        sizes = scaling.PLANS["cpu"].curves(n_cores)
        return {name: [point(size) for size in curve] for name, curve in sizes.items()}

    largest = curves(None)["n_candidates"][-1]
    streamed = largest | {"seconds": largest["seconds"] + 2e-9 * 300 * largest["n_candidates"]}
    common = {"machine": MACHINE, "plan": {"repetitions": 3}, "peak_gflops": {"taken": 100.0}}
    sent = {"largest_object_mb": 121.0, "other_objects_mb": 1.0, "all_tasks_mb": 1.0, "n_tasks": 100}
    fit = {"order": [0, 1, 2, 3, 4], "x_mb": 1144.0, "beside_x_mb": 100.0}
    ratios = {"scan_ratio": 1.0, "step_ratio": 1.0, "n_candidates": 10}
    summary = {"n_runs": 20, "same_picks": 19, "exact_found_all": 20, "screened_found_all": 20}
    summary |= {"exact_seconds": 20.0, "screened_seconds": 2.0, "ratio": 10.0}
    exact_pass = sum(truth.predict(model.Size(10_000, n_selected=step)) for step in range(5))
    gpu_fit = {"steps": 5, "fits": 10**6, "fit_s": 10.0, "first_fit_s": 12.0, "tuned_fit_s": 3.0, "pursuit_s": 8.0}
    gpu_fit |= {"gram_operations": 3.2e13, "gpu_gb": 10.0}
    results = {
        "scaling": common | {"device": "cpu", "curves": curves(2)},
        "scaling-gpu": common | {"device": "cuda", "curves": curves(None), "streamed": streamed},
        "gpu": {"machine": MACHINE | {"peak_fp32_tflops": 50.0}, "results": {
            "agreement": {"picks": 20, "same_picks_from_the_first": 19, "largest_relative_difference": 2e-6},
            "precision": {
                name: {"step_s": 0.01, "largest_difference": 1e-6} for name in ("tf32x3", "tf32", "ieee")
            },
            "a million columns": gpu_fit}},
        "workers": {"machine": MACHINE, "n_samples": 300, "n_features": 50_000, "n_selected": 3, "x_mb": 120.0,
                    "same_bits": True, "sent": {"dask 2": sent}, "ratios": {"threading": 2.0, "dask": 1.5},
                    "seconds": {"threading 1": [10.0], "threading 2": [5.0], "dask 1": [10.5, 12.0], "dask 2": [7.0]},
                    "task_seconds": {"dask 2": 0.005}},
        "screening": {"plan": {"designs": ["additive"], "draws": 1, "samples": 300, "features": 20_000},
                      "additive": {"summary": summary}},
        "million": {"machine": MACHINE, "exact": fit | {"seconds": 400.0, "n_fits": 4_999_990},
                    "screened": fit | {"seconds": exact_pass + 5.0, "n_fits": 50_000}},
        "many_rows": {"machine": MACHINE, "rows": 10**6, "columns": 200, "selected": 5, "draws": 1,
                      "share_of_peak": 0.8, "fit": fit | {"fit_seconds": 600.0}},
        "larger_than_memory": {"machine": MACHINE, "mapped": [{"X": "in memory"} | ratios], "formats": [], "large": {
            "shape": [300, 10**7], "gigabytes": 12.0, "machine_gb": 8.0, "fit_seconds": 40.0,
            "seconds_of_the_steps": 10.0, "own_mb": 300.0, "before_mb": 100.0, "found": True}},
    }  # fmt: skip
    for name, result in results.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    monkeypatch.setattr(builder, "RESULTS", tmp_path)
    return results


def test_the_page_is_what_the_results_make_of_the_template() -> None:
    page = (DOCS / "scaling.md").read_text()
    assert page == builder.document(), "run make docs"
    assert all((DOCS / picture).is_file() for picture in re.findall(r"\]\(([\w-]+\.png)\)", page))


def test_every_section_is_there_with_its_results_and_away_without(made_up: dict[str, Any], tmp_path: Path) -> None:
    template = (DOCS / "scaling.template.md").read_text()
    page = builder.document()
    assert re.findall("^#.*$", page, re.MULTILINE) == re.findall("^#.*$", template, re.MULTILINE)
    assert "{{" not in page
    for name in made_up:
        (tmp_path / f"{name}.json").unlink()
    assert re.findall("^#.*$", builder.document(), re.MULTILINE) == ["# How it scales", "## What to use"]


def test_every_blank_of_the_template_is_known_and_used() -> None:
    template = (DOCS / "scaling.template.md").read_text()
    assert {name for name, _ in builder.BLANK.findall(template)} == set(builder.FILL)


def test_operations_counted_by_hand() -> None:
    size = model.Size(7, n_samples=60, n_units=10, n_selected=3, n_folds=4, n_outputs=2)
    # rows of 10 units, 1, 2 targets and 4 × 4 linear units; systems of 10 + 1 + 4 unknowns
    assert model.terms(size) == pytest.approx(
        {
            "step": 1,
            "candidate": 7,
            "gram": 7 * 60 * 29 * 29 / 1e9,
            "solve": 7 * (4 * 15**3 / 3 + 4 * 2 * 15**2 * 2) / 1e9,
            "linear": 7 * 60 * 8 / 1e9,
            "selection": 7 * (2 * 60 * 3 + 4 * (2 * 60 * 3 + 2 * 3 * 3)) / 1e9,
        }
    )
    assert size.operations == pytest.approx(7 * (60 * 15**2 + 4 * 15**3 / 3))


def test_a_model_is_found_again_from_its_times() -> None:
    truth = model.CostModel(COSTS)
    sizes = [
        model.Size(many, n_samples, n_units, n_selected, n_folds, n_outputs)
        for many, n_samples in ((10, 100), (1000, 3000))
        for n_units, n_selected in ((25, 0), (200, 50))
        for n_folds, n_outputs in ((2, 1), (10, 5))
    ]
    seconds = [truth.predict(size) for size in sizes]
    found = model.CostModel.fit(sizes, seconds)
    assert found.seconds == pytest.approx(COSTS, rel=1e-4)
    assert found.ratios(sizes, [2 * each for each in seconds]) == pytest.approx([2.0] * len(sizes))


def test_points_that_the_model_is_not_for_are_left_out(made_up: dict[str, Any]) -> None:
    used = scaling.modelled(made_up["scaling"])
    assert {size.n_units for size in used} == {25, 50, 100, 200}
    assert {size.n_jobs for size in used} == {None}


def test_predictions_follow_from_the_measured_constants(made_up: dict[str, Any]) -> None:
    files, truth = made_up["larger_than_memory"], model.CostModel(COSTS)
    parts = scaling_plan.cluster_parts(made_up["scaling"], made_up["million"], made_up["workers"], files)
    exact, best = (sum(truth.predict(model.Size(n, n_selected=s)) for s in range(5)) for n in (10**6, 10**3))
    # the scan of 3 · 10⁹ numbers took 30 s; the cheap pass of 5 · 10⁶ candidates 5 s
    assert parts["scan"][1:] == pytest.approx((300.0, 300.0))
    assert parts["work"][1:] == pytest.approx((exact, 5.0 + best))
    # 5 ms for a task, of which each pass has eight for each of 200 cores
    assert parts["tasks"][1:] == pytest.approx((5 * 1600 * 0.005, 5 * 3200 * 0.005))
    assert scaling_plan.cluster_total(parts, "exact") == pytest.approx(300 + max(exact, 40.0))
    assert scaling_plan.driver_bytes(made_up["million"]) == pytest.approx(100 * 2**20 * 100)
    assert scaling_plan.sent_bytes(made_up["workers"]) == pytest.approx(1e6 * 2000)
    gpu = scaling_plan.gpu_parts(made_up["scaling-gpu"], files)
    exact = sum(truth.predict(model.Size(12_500_000, n_selected=s)) for s in range(5))
    assert [part.exact for part in gpu.values()] == pytest.approx([300.0, exact, 5 * 3e10 / 8 * 2e-9])


def test_figures_of_different_machines_make_no_plan(made_up: dict[str, Any], tmp_path: Path) -> None:
    elsewhere = made_up["million"] | {"machine": MACHINE | {"cores": 64}}
    (tmp_path / "million.json").write_text(json.dumps(elsewhere))
    with pytest.raises(ValueError, match="come from different machines"):
        builder.document()


def test_pictures_are_drawn(made_up: dict[str, Any]) -> None:
    pictures = builder.pictures()
    assert set(pictures) == {"scaling-cpu.png", "scaling-gpu.png"}
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())


def test_the_benchmark_measures_every_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaling.main(["--quick", "--json", str(tmp_path / "scaling.json")])
    results = json.loads((tmp_path / "scaling.json").read_text())
    documented = (ROOT / "benchmarks" / "README.md").read_text()
    assert all(f"`{key}`" in documented for key in results)
    for name, curve in results["curves"].items():
        assert [point[name] for point in curve] == sorted({point[name] for point in curve})
        assert all(point["seconds"] > 0 and point["way"] == "SSFNScorer" for point in curve)
    assert set(results["curves"]) == set(scaling_figure.AXES)
    assert "seconds of the fitted model's terms" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.skipif(not has_nvidia_driver(), reason="there is no CUDA device")
def test_the_benchmark_measures_a_gpu(tmp_path: Path) -> None:
    scaling.main(["--quick", "--device", "cuda", "--json", str(tmp_path / "scaling.json")])
    results = json.loads((tmp_path / "scaling.json").read_text())
    assert "n_jobs" not in results["curves"]
    assert results["streamed"]["seconds"] > 0


def test_a_streamed_step_keeps_no_columns() -> None:
    kept = []

    class Spy(scaling.Step):
        def __call__(self) -> None:
            plain = self.scorer
            on_device = SSFNGpuScorer(plain.config, plain.problem, plain.seed, None, gpu="cpu")
            on_device.add_losses(self.selected, self.candidates)
            kept.append(on_device._resident is not None)

    size = model.Size(20, n_samples=50)
    Spy(size, "cpu")()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling, "Step", Spy)
        assert scaling.streamed_step(size, "cpu", 1) > 0
    assert kept == [True, True, False, False]


def test_threads_double_up_to_all_cores() -> None:
    plan = scaling.QUICK
    assert [size.n_jobs for size in plan.curves(6)["n_jobs"]] == [1, 2, 4, 6]
    assert [size.n_jobs for size in plan.curves(1)["n_jobs"]] == [1]
    assert "n_jobs" not in plan.curves(None)
