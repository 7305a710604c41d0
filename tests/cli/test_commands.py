"""The other commands, the help of all of them, and how quickly it comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest

from ngp import __version__
from ngp.baselines import registry
from ngp.cli import cli, demo
from ngp.cli.compare import METHODS
from ngp.cli.compare import compare as compare_command

Call = Callable[..., Any]
COMMANDS = ["select", "compare", "report", "demo", "reproduce"]


def test_commands_are_listed_most_used_first(call: Call) -> None:
    told = call("--help")
    assert told.exit_code == 0
    listed = told.stdout.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()[: len(COMMANDS)]] == COMMANDS
    assert "..." not in listed  # no sentence is cut


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_explains_every_option(name: str, call: Call) -> None:
    shown = call(name, "-h")
    assert shown.exit_code == 0
    assert f"  ngp {name} " in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert all(option.help and option.help.endswith((".", "?")) for option in options)


def test_version(call: Call) -> None:
    assert call("--version").stdout == f"ngp, version {__version__}\n"


def imported_by(*arguments: str) -> set[str]:
    """Packages that a command has imported in the end."""
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('imported:', *{name.partition('.')[0] for name in sys.modules}))\n"
        "from ngp.__main__ import main; sys.argv[0] = 'ngp'; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["select", "--help"], ["compare", "--help"]])
def test_help_imports_little(arguments: list[str]) -> None:
    found = imported_by(*arguments)
    assert "click" in found
    assert not found & {
        "torch",
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "jinja2",
        "sklearn",
        "scipy",
        "numpy",
        "rich",
    }


@pytest.mark.parametrize(("words", "word"), [("ngp select --max", "--max-time"), ("ngp sel", "select")])
def test_completion_of_commands_and_options(words: str, word: str) -> None:
    environment = os.environ | {"_NGP_COMPLETE": "fish_complete", "COMP_WORDS": words, "COMP_CWORD": words.split()[-1]}
    done = subprocess.run([sys.executable, "-m", "ngp"], env=environment, capture_output=True, text=True, check=False)
    assert f"plain,{word}" in done.stdout


def test_compare(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    files = ["table.csv", "table.md", "plot.png"]
    options = [word for name in files for word in ("--out", name)]
    result = call("compare", "houses.csv", "-t", "price", "--methods", "ngp,correlation", "--cv", "2", *options)
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("houses.csv: 80 rows, 5 columns (1 of text")
    assert "[ngp] ngp              fold 2 of 2" in result.stderr
    table = pd.read_csv("table.csv", index_col="method")
    assert list(table.index) == ["ngp", "correlation"]
    assert table.loc["ngp", "status"] == "ok"
    assert set(json.loads(table.loc["ngp", "selected"])) >= {"town", "size"}
    assert (folder / "table.md").read_text(encoding="utf-8") == result.stdout
    assert result.stdout.startswith("| method      | status | features | own ")
    assert f"{table.loc['ngp', 'ridge']:.3f} ± {table.loc['ngp', 'ridge_std']:.3f}" in result.stdout
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_compare_quietly(houses: pd.DataFrame, call: Call) -> None:
    options = ["--methods", "correlation", "--features", "2", "--cv", "0.3", "--quiet", "--task", "regression"]
    result = call("compare", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "| correlation | ok     | 2.0 " in result.stdout
    assert "±" not in result.stdout  # of a single fold
    assert "nan" not in result.stdout


@pytest.mark.parametrize("options", [["--cv", "time"], ["--cv-groups", "rooms", "--cv", "2"]])
def test_compare_in_time_and_by_group(options: list[str], houses: pd.DataFrame, call: Call) -> None:
    result = call("compare", "houses.csv", "-t", "price", "--methods", "correlation", "--features", "1", *options)
    assert result.exit_code == 0, result.output
    assert f"fold 1 of {5 if options == ['--cv', 'time'] else 2}" in result.stderr
    assert "| correlation | ok " in result.stdout


def test_compare_names_all_methods() -> None:
    told = next(each for each in compare_command.params if each.name == "methods")
    assert isinstance(told, click.Option)
    words = {word.strip(" .,;:") for word in f"{told.help} {METHODS}".replace(",", " ").split()}
    assert words >= {*registry, "ngp", "all"}


def test_compare_shows_what_failed(houses: pd.DataFrame, call: Call) -> None:
    result = call("compare", "houses.csv", "-t", "price", "--methods", "ngp", "--cv", "2", "--max-time", "0.01s", "-q")
    assert result.exit_code == 0
    assert "time" in result.stdout.splitlines()[-1]


def test_demo(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "run", lambda out: print(f"into {out}"))
    assert call("demo").stdout == "into demo-report\n"
    assert call("demo", "--out", "here").stdout == "into here\n"

    def refuse(out: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "run", refuse)
    failed = call("demo")
    assert (failed.exit_code, failed.stderr) == (1, "Error: demo-report can't be written: No space left on device.\n")
