"""Numbers in pages are those in benchmarks/results, whoever wins."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks import inference, nonlinear, peer_tables, standardising, study_tables
from benchmarks.designs import DESIGNS
from docs import build_peers
from docs.developer import build_scaling
from ngp.greedy import significance
from ngp.greedy.stopping import Significance

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def results_of(benchmark: str, part: str) -> dict[str, Any]:
    """What a benchmark measured, in one or several runs on different machines."""
    found: dict[str, Any] = {}
    for file in sorted(RESULTS.glob(f"{benchmark}*.json")):
        found |= json.loads(file.read_text())[part]
    return found


@pytest.mark.parametrize("name", ["peers", "peers-h200"])
def test_peers(name: str) -> None:
    results = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == peer_tables.text(results) + "\n"


def test_readme() -> None:
    results = build_peers.results()
    assert build_peers.filled(page("README.md"), results) == page("README.md"), "run python -m docs.build_peers"
    with Image.open(build_peers.PICTURE) as picture:
        expected = build_peers.description(results["designs"]["artificial"], results["settings"]["limit"])
        assert picture.info["Description"] == expected


def test_scaling() -> None:
    assert page("docs/developer/scaling.md") == build_scaling.document(), "run python -m docs.developer.build_scaling"


def test_standardising(capsys: pytest.CaptureFixture[str]) -> None:
    standardising.main()
    printed, text = capsys.readouterr().out, page("docs/getting-started.md")
    changes = [abs(float(change)) for change in re.findall(r"columns.*fold ([+-][\d.]+)%", printed)]
    (picks,) = re.findall(r"\d+ of \d+ steps", printed)
    ((once, anew),) = re.findall(r"([\d.]+)% .*\+([\d.]+)%$", printed)
    assert picks in text
    assert f"seem to gain {anew} %{' as it does now' * (once == anew)}" in text
    (limit,) = re.findall(r"loss would change by less than ([\d.]+) %", text)
    assert changes
    assert max(changes) < float(limit)


def test_stopping() -> None:
    text = page("docs/selection.md")
    for design, found in results_of("stopping", "designs").items():
        rates = f"{found['fpsr']:.3f} | {found['fnsr']:.3f} | {found['seconds']:.2f} |"
        assert f"| {design} | {found['nothing_selected']} of {found['n_runs']} | {rates}" in text
    assert f"{significance.LOOKS[0]} to {significance.LOOKS[-1]} times" in text
    assert f"among those with p ≤ {Significance().level}. " in text


def test_searching() -> None:
    for design, found in results_of("searching", "designs").items():
        cells = [design]
        for way in ("plain", "more"):
            counts = found[way]
            decoy = "" if counts["with_decoy"] is None else f", the decoy in {counts['with_decoy']}"
            cells.append(f"{counts['found']}, alone in {counts['found_alone']}{decoy}")
        cells += [f"{found['times_the_n_fits']:.1f}", f"{found['times_the_seconds']:.1f}"]
        assert f"| {' | '.join(cells)} |" in page("docs/selection.md")


def test_nonlinear() -> None:
    results = json.loads((RESULTS / "nonlinear.json").read_text(encoding="utf-8"))
    shares = {(row["n"], row["generator"]): row["best_p"] for row in results["means"]}
    for n, published in results["published"].items():
        best = [max(column) for column in zip(*published.values(), strict=True)]
        pairs = zip(nonlinear.GENERATORS, best, strict=True)
        cells = [f"{100 * shares[int(n), name]:.1f} ({100 * other:.1f})" for name, other in pairs]
        assert f"| {n} | {' | '.join(cells)} |" in page("docs/selection.md")
    largest = [cell for cell in results["cells"] if (cell["generator"], cell["n"], cell["m"]) == ("xor", 1000, 2048)]
    assert [cell["best_p"] for cell in largest] == [1.0]


def test_study_and_fifty_features() -> None:
    text = page("docs/developer/study.md")
    for name, found in results_of("fifty", "data").items():
        cells = [f"{found[way]['mean']:.4f} ± {found[way]['standard_error']:.4f}" for way in ("ngp", "all", "random")]
        assert f"| {name} | {' | '.join(cells)} | {found['published']['lassonet']:.3f} |" in text
    designs = study_tables.read([RESULTS / "study.json"])
    assert designs.keys() == DESIGNS.keys()
    assert f"\n{study_tables.score_table(designs)}\n" in text
    assert f"\n{study_tables.recovery_table(designs)}\n" in text
    counts = []
    for measure in ("score", "f1"):
        known = [each for each in designs.values() if any(c["measure"] == measure for c in each["comparisons"])]
        compared = [study_tables.comparison(found, measure) for found in known]
        counts.append(f"on {sum(each['not_worse'] for each in compared)} of {len(compared)}")
    assert "By the score the default is not worse {} designs, by F1 {}.".format(*counts) in text
    false = np.mean([found["variants"]["auto"]["fpsr"]["mean"] for found in designs.values()])
    scores = [
        [round(found["variants"][way]["score"]["mean"], 3) for way in ("auto", "plateau")] for found in designs.values()
    ]
    better, worse = sum(auto < plateau for auto, plateau in scores), sum(auto > plateau for auto, plateau in scores)
    text = page("docs/how-it-works.md")
    assert f"{100 * false:.1f} % of the selected columns are false" in text
    assert f"predicts better on {better} of them and worse on {worse}" in text


def test_inference() -> None:
    text, results = (
        page("docs/developer/study.md"),
        json.loads((RESULTS / "inference.json").read_text(encoding="utf-8")),
    )
    assert "\n".join(inference.table(results["cells"])) in text
    walks, clusters = (results["dependent"][kind] for kind in ("random walks", "clusters"))
    assert f"(`TimeSeriesSplit`), {walks['selected_something']} select something" in text
    assert f"(`cv_groups`) {clusters['selected_something']}." in text


def test_default() -> None:
    for name, case in results_of("default", "cases").items():
        sides = [case["other"], case["this"]]
        cells = [name, f"{case['fit']['other_seconds']:.1f} s", f"{case['fit']['seconds']:.1f} s"]
        cells += [f"{1 / case['fit']['ratio']:.1f}", ", ".join(str(len(side["order"])) for side in sides)]
        cells.append(", ".join("–" if side["score"] is None else f"{side['score']:.4f}" for side in sides))
        assert f"| {' | '.join(cells)} |" in page("docs/developer/figures.md")


def test_wide_tables() -> None:
    text, results = page("docs/developer/study.md"), json.loads((RESULTS / "wide.json").read_text(encoding="utf-8"))
    cells = {
        f"{name} | {k}": [accuracy[method]["mean"] for method in results["overall"]]
        for name, found in results["tables"].items()
        for k, accuracy in found["accuracy"].items()
    }
    for title, values in {**cells, "mean |": list(results["overall"].values())}.items():
        assert f"| {title} | {' | '.join(f'{value:.3f}' for value in values)} |" in text
    (behind,) = results["behind"]
    assert (behind["table"], behind["k"], behind["best"]) == ("GLIOMA", 30, "forest")
    assert f"ahead of NGP by {-behind['difference']:.3f}" in text


def test_other_methods() -> None:
    cell = r" ([\d.]+) \|"
    rows = re.findall(rf"^\| ([a-z-]+) \|{cell * 4}", page("docs/methods.md"), flags=re.MULTILINE)
    means = json.loads((RESULTS / "baselines-sample.json").read_text())["means"]
    assert len(rows) == 9
    for name, *cells in rows:
        found = means[name]
        digits = {"rule_fpsr": 2, "rule_fnsr": 2, "rule_selected": 1, "seconds": 1}
        assert cells == [f"{found[key]:.{n}f}" for key, n in digits.items()], name


def test_the_same_work() -> None:
    text = page("docs/developer/figures.md")
    for name, ours in [
        ("peers", "SSFN, 8 draws (default)"),
        ("peers", "MLP, 1 draw, batches of {}"),
        ("peers-h200", "MLP, 1 draw, batches of {}"),
    ]:
        peers = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["same_work"]["peers"]
        times = {
            batch: " and ".join(
                f"{peers[f'{peer} SFS, batches of {batch}']['ratios'][f'NGP, {ours.format(batch)}']:.0f}"
                for peer in ("scikit-learn", "mlxtend")
            )
            for batch in (32, 200)
        }
        (line,) = [line for line in text.splitlines() if f"| {times[32]} times as long" in line]
        assert f"; {times[200]} times |" in line


def test_the_paper() -> None:
    """Results are of full runs, and name their command; the pages include all of them."""
    home = ROOT / "docs" / "developer"
    pages = page("docs/developer/reproduction.md") + page("docs/developer/reproduction-published.md")
    for table in (home / "reproduction").glob("*.csv"):
        name, protocol = table.stem.removesuffix("-curve").split("-")
        origin = rf"# ngp reproduce {name} --protocol {protocol} --runs \d+ --seed 0 \(ngp \d+\.\d+\.\d+\)"
        assert re.fullmatch(origin, table.read_text().splitlines()[0])
        assert f"{{include}} reproduction/{name}-{protocol}.md" in pages
