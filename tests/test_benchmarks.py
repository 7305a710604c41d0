"""The benchmarks run and measure what they say; no test here looks at a time."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.speed")


@pytest.fixture
def recovery(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.recovery")


def test_plain_loop_and_batched_scorer_give_the_same_losses(speed: ModuleType) -> None:
    X, y, _ = speed.make_artificial(90, 30, random_state=1)
    steps = speed.sample_steps(np.array([2, 4, 3, 0]), 30, 5)
    differences = speed.largest_difference(speed.bind(X, y), steps)
    assert max(differences.values()) <= speed.AGREEMENT


def test_another_model_is_not_taken_for_the_same(speed: ModuleType) -> None:
    X, y, _ = speed.make_artificial(90, 30, random_state=1)
    scorer = speed.bind(X, y, n_draws=2)
    with pytest.raises(RuntimeError, match="other losses"):
        speed.largest_difference(scorer, speed.sample_steps(np.array([2]), 30, 5))


def test_speed_writes_the_documented_keys(
    speed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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


def test_operations_of_the_headline(speed: ModuleType) -> None:
    assert speed.operations(300) == pytest.approx(300 * 103**2 + 5 * 103**3 / 3)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [([0.1, 0.0, 0.2, 0.0, 0.004], 60), ([0.0] * 5, 30), ([0.0, 0.0, 0.0, 0.0, 0.1], None)],
)
def test_threshold_is_where_the_rate_stays_low(recovery: ModuleType, rates: list[float], expected: int | None) -> None:
    assert recovery.threshold((30, 40, 50, 60, 80), rates) == expected
