"""What docs/selection.md shows is what happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import study_tables
from benchmarks.designs import DESIGNS
from ngp.greedy import significance as chance
from ngp.greedy.stopping import CLEARLY_CHANCE, BeyondChance

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")


def results_of(benchmark: str, part: str) -> dict[str, Any]:
    """What a benchmark measured, in one or several runs on different machines."""
    found: dict[str, Any] = {}
    for file in sorted((ROOT / "benchmarks" / "results").glob(f"{benchmark}*.json")):
        measured = json.loads(file.read_text())[part]
        assert not found.keys() & measured.keys()
        found |= measured
    return found


def test_figures_of_stopping_are_those_that_were_measured() -> None:
    designs = results_of("stopping", "designs")
    assert designs.keys() >= {"no signal", "no signal, correlated", "artificial, J=300", "artificial, J=150"}
    for design, found in designs.items():
        rates = f"{found['fpsr']:.4f} | {found['fnsr']:.4f} | {found['times_a_plain_run']:.1f} |"
        assert f"| {design} | {found['nothing_selected']} of {found['n_runs']} | {rates}" in PAGE
    assert f"from {chance.FEWEST_DRAWS} to {chance.MOST_DRAWS} times" in PAGE
    assert f"is {BeyondChance().level} at most" in PAGE
    assert f"a probability of {CLEARLY_CHANCE})" in PAGE
    assert BeyondChance().patience == 3  # "by up to two others"


def test_figures_of_searching_are_those_that_were_measured() -> None:
    designs = results_of("searching", "designs")
    assert designs.keys() >= {"decoy", "decoy, auto", "xor", "parity"}
    for design, found in designs.items():
        told = [design]
        for way in ("plain", "more"):
            counts = found[way]
            decoy = "" if counts["with_decoy"] is None else f", the decoy in {counts['with_decoy']}"
            told.append(f"{counts['found']}, alone in {counts['found_alone']}{decoy}")
        told += [f"{found['times_the_n_fits']:.1f}", f"{found['times_the_seconds']:.1f}"]
        assert f"| {' | '.join(told)} |" in PAGE
        assert found["n_runs"] == 100


def test_figures_of_fifty_features_are_those_that_were_measured() -> None:
    data = results_of("fifty", "data")
    assert len(data) == 6
    for name, found in data.items():
        told = [f"{found[way]['mean']:.4f} ± {found[way]['standard_error']:.4f}" for way in ("ngp", "all", "random")]
        assert f"| {name} | {' | '.join(told)} | {found['published']['lassonet']:.3f} |" in PAGE
        assert (len(found["runs"]), found["held_out"]) == (5, 0.6 if name.endswith("4000") else 0.2)


def test_figures_of_the_study_are_those_that_were_measured() -> None:
    designs = study_tables.read([ROOT / "benchmarks" / "results" / "study.json"])
    assert designs.keys() == DESIGNS.keys()
    assert f"\n{study_tables.score_table(designs)}\n" in PAGE
    assert f"\n{study_tables.recovery_table(designs)}\n" in PAGE
    counts = []
    for measure in ("score", "f1"):
        compared = [study_tables.comparison(found, measure) for found in designs.values() if has(found, measure)]
        counts.append(f"on {sum(each['not_worse'] for each in compared)} of {len(compared)}")
    assert "By the score the default is not worse {} designs, by F1 {}.".format(*counts) in PAGE
    ahead, default = (designs["parity"]["variants"][name] for name in ("auto, look_ahead=2", "auto"))
    told = f"an F1 of {ahead['f1']['mean']:.3f} and a score of {ahead['score']['mean']:.3f}"
    times = ahead["n_fits"]["mean"] / default["n_fits"]["mean"]
    assert f"{told}, with {times:.1f} times the default's trainings" in PAGE


def has(found: dict[str, Any], measure: str) -> bool:
    return any(each["measure"] == measure for each in found["comparisons"])
