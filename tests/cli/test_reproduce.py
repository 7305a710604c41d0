"""``ngp reproduce`` does what its help says, and a mistake costs one sentence."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from ngp import __main__, __version__
from ngp.cli import cli
from ngp.cli.reproduce import NAMES, PROTOCOLS
from ngp.datasets import load_boston
from ngp.paper import catalogue
from ngp.paper.catalogue import EXPERIMENTS
from ngp.paper.experiment import Column, Experiment, Plan, Protocol, Record, ResultTable, Trial, cell


def constant(number: int, n_jobs: int) -> dict[str, Any]:
    return {"value": number}


def missing_file(number: int, n_jobs: int) -> dict[str, Any]:
    raise FileNotFoundError("Boston housing is not on disk.")


def damaged_file(number: int, n_jobs: int) -> dict[str, Any]:
    return {"value": load_boston().X.mean()}


def mistake_of_ours(number: int, n_jobs: int) -> dict[str, Any]:
    raise ValueError("shapes don't fit")


def interrupted(number: int, n_jobs: int) -> dict[str, Any]:
    raise KeyboardInterrupt


def experiment(run: Any = constant, **settings: Any) -> Experiment:
    def trials(plan: Plan) -> list[Trial]:
        return [Trial(run, {"number": seed}) for seed in plan.seeds]

    def table(plan: Plan, records: list[Record]) -> ResultTable:
        row = (("mean",), {"value": cell([record["value"] for record in records])})
        return ResultTable(("what",), (Column("value", "value"),), [row])

    return Experiment("table1", "A table", {"full": 4, "fast": 2, "tiny": 1}, (), trials, table, **settings)


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *args, **settings: monkeypatch.setitem(EXPERIMENTS, "table1", experiment(*args, **settings))


def call(*arguments: str) -> Any:
    return CliRunner().invoke(cli, [*arguments])


def test_names_are_those_of_the_experiments() -> None:
    assert tuple(EXPERIMENTS) == NAMES
    assert get_args(Protocol) == PROTOCOLS
    for name, each in EXPERIMENTS.items():
        assert each.name == name
        assert each.title.startswith(f"{name[:-1].replace('fig', 'figure').capitalize()} {name[-1]}")


@pytest.mark.parametrize(
    ("options", "mean"),
    [([], 1.5), (["--fast"], 0.5), (["--seed", "10", "--runs", "1"], 10.0)],
)
def test_reproduce_writes_tables(tmp_path: Path, replaced: Any, options: list[str], mean: float) -> None:
    replaced()
    result = call("reproduce", "table1", "--protocol", "sound", "--jobs", "1", "--out", str(tmp_path), *options)
    assert result.exit_code == 0, result.output
    assert f"| mean | {mean:.2f}" in (tmp_path / "table1-sound.md").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"table1-sound.md", "table1-sound.csv", "trials.jsonl"}
    assert str(tmp_path / "table1-sound.md") in result.output


def test_reproduce_says_what_it_did(tmp_path: Path, replaced: Any) -> None:
    replaced()
    call("reproduce", "table1", "--fast", "--jobs", "1", "--out", str(tmp_path))
    command = "ngp reproduce table1 --protocol published --runs 2 --seed 0 --fast"
    assert (tmp_path / "table1-published.csv").read_text().startswith(f"# {command} (ngp {__version__})\n")
    assert f"`{command}`, ngp {__version__}." in (tmp_path / "table1-published.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce"], "Missing argument 'NAME...'"),
        (["reproduce", "fig2"], "'fig2' is not one of 'table1'"),
        (["reproduce", "all", "--protocol", "unsound"], "'unsound' is not one of 'published', 'sound'"),
        (["reproduce", "all", "--runs", "0"], "0 is not in the range x>=1"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_out_must_not_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("reproduce", "table1", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "is a file" in result.output


def test_missing_packages(tmp_path: Path, replaced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(draw=lambda figure, plan, records: None)
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    result = call("reproduce", "table1", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "matplotlib not installed: run pip install 'neural-greedy-pursuit[paper]'." in result.output


def test_missing_data(tmp_path: Path, replaced: Any) -> None:
    replaced(missing_file)
    result = call("reproduce", "table1", "--jobs", "1", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "Error: Boston housing is not on disk." in result.output


def test_damaged_data(tmp_path: Path, replaced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boston.csv").write_text("nothing")
    monkeypatch.setenv("NGP_DATA", str(tmp_path))
    replaced(damaged_file)
    result = call("reproduce", "table1", "--jobs", "1", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'boston.csv'} is damaged or another file: its sha256 is " in result.output


def test_mistakes_of_ours_are_not_hidden(tmp_path: Path, replaced: Any) -> None:
    replaced(mistake_of_ours)
    result = call("reproduce", "table1", "--jobs", "1", "--out", str(tmp_path))
    assert isinstance(result.exception, ValueError)


def test_interruption_says_how_to_go_on(tmp_path: Path, replaced: Any) -> None:
    replaced(interrupted)
    result = call("reproduce", "table1", "--jobs", "1", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.output


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(__main__, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    assert stopped.value.code == 2
    assert "needs click and rich: run pip install 'neural-greedy-pursuit[cli]'." in capsys.readouterr().err


@pytest.mark.parametrize("command", [[sys.executable, "-m", "ngp"], [str(Path(sys.executable).with_name("ngp"))]])
def test_both_ways_to_call(command: list[str]) -> None:
    assert importlib.util.find_spec("ngp.__main__")
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ngp, version {__version__}\n"
