"""The page about the reproduction says what the results say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from ngp.paper.catalogue import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_reproduction", DOCS / "build_reproduction.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_results_make_of_the_template(builder: ModuleType) -> None:
    assert (DOCS / "reproduction.md").read_text() == builder.document(), "run make docs"


def test_every_experiment_is_on_the_page(builder: ModuleType) -> None:
    page = builder.document()
    assert "{{" not in page
    for experiment in EXPERIMENTS.values():
        assert f"## {experiment.title}" in page


def test_results_are_full_runs_and_name_their_command() -> None:
    tables = sorted((DOCS / "reproduction").glob("*.csv"))
    assert tables
    for table in tables:
        name, protocol = table.stem.removesuffix("-curve").split("-")
        origin = rf"# ngp reproduce {name} --protocol {protocol} --runs \d+ --seed 0 \(ngp \d+\.\d+\.\d+\)"
        assert re.fullmatch(origin, table.read_text().splitlines()[0])


def test_pictures_are_there() -> None:
    for link in re.findall(r"\]\((reproduction/[^)]+)\)", (DOCS / "reproduction.md").read_text()):
        assert (DOCS / link).is_file()


def test_claims_are_held_against_the_results(
    builder: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(builder, "RESULTS", tmp_path)
    header = "data,method,fpsr,fnsr,p_nme"
    rows = ["artificial,NGP + SSFN,0.01,0.03,-12", "BOSTON,NGP + SSFN,0,0,-16"]
    (tmp_path / "table1-sound.csv").write_text("\n".join(["# a command", header, *rows]))
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in builder.verdicts().splitlines()[2:]]
    assert [line[3:] for line in lines] == [["0.01", "yes"], ["0.03", "**no**"], ["−16", "yes"]]
