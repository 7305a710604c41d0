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
import numpy as np
import pandas as pd
import pytest

from ngp import __version__
from ngp.baselines import RandomForest, registry
from ngp.cli import cli, demo
from ngp.cli.compare import compare as compare_command
from ngp.comparison import METHODS

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
    assert [line.partition(":")[0] for line in result.stderr.splitlines()[1:3]] == ["ngp", "correlation"]
    table = pd.read_csv("table.csv", index_col="method")
    assert list(table.index) == ["ngp", "correlation"]
    assert table.loc["ngp", "status"] == "ok"
    assert set(json.loads(table.loc["ngp", "selected"])) >= {"town", "size"}
    assert (folder / "table.md").read_text(encoding="utf-8") == result.stdout
    assert result.stdout.startswith("| method      | columns | ridge ")
    assert f"{table.loc['ngp', 'ridge']:.3f} ± {table.loc['ngp', 'ridge_se']:.3f}" in result.stdout
    assert f"- ngp: {', '.join(json.loads(table.loc['ngp', 'selected']))}\n" in result.stdout
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_compare_quietly(houses: pd.DataFrame, call: Call) -> None:
    options = ["--methods", "correlation", "--features", "2", "--cv", "0.3", "--quiet", "--task", "regression"]
    result = call("compare", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "| correlation | 2.0 " in result.stdout
    assert len(result.stdout.splitlines()) == 3
    assert "±" not in result.stdout  # of a single fold
    assert "nan" not in result.stdout


def test_compare_explains_every_column_of_its_table(houses: pd.DataFrame, call: Call) -> None:
    houses.assign(price=houses["price"] > houses["price"].median()).to_csv("classes.csv", index=False)
    for file, linear, score in (
        ("houses.csv", "ridge", "R² of a ridge"),
        ("classes.csv", "logistic", "accuracy of a log"),
    ):
        shown = call("compare", file, "-t", "price", "--methods", "all,lasso-cv", "--cv", "3").stdout
        columns = [name.strip() for name in shown.splitlines()[0].strip("|").split("|")][1:]
        assert columns == ["columns", linear, "random-forest", "ssfn", "agreement", "seconds"]
        explained = shown.partition("The table, with means over the folds:\n")[2]
        for name in ("all", "columns", f"{linear}, random-forest, ssfn", "agreement", "seconds"):
            assert f"- {name}: " in explained
        assert score in explained
        assert "± standard error" in explained


def test_compare_says_which_differences_are_within_error(call: Call, folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    pd.DataFrame(X, columns=list("abcde")).assign(y=X[:, 0] + X[:, 1]).to_csv("sum.csv", index=False)
    methods = "all,lasso-cv,recursive-elimination"
    shown = call("compare", "sum.csv", "-t", "y", "--methods", methods, "--features", "2", "--cv", "3").stdout
    assert "- ridge: none beyond error\n" in shown
    shown = call("compare", "sum.csv", "-t", "y", "--methods", "all,correlation", "--features", "1", "--cv", "3").stdout
    assert "- ridge: all is best; worse correlation\n" in shown


def test_compare_is_interrupted_with_what_is_there(
    houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: Any, X: Any, y: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RandomForest, "fit", stop)
    result = call("compare", "houses.csv", "-t", "price", "--methods", "lasso-cv,random-forest", "--out", "table.csv")
    assert result.exit_code == 130
    assert "| lasso-cv | " in result.stdout
    assert "- random-forest: interrupted\n" in result.stdout
    assert pd.read_csv("table.csv", index_col="method")["status"].tolist() == ["ok", "interrupted"]


def test_compare_in_a_terminal_shows_a_bar(houses: pd.DataFrame, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal
    shown = call("compare", "houses.csv", "-t", "price", "--methods", "all,lasso-cv", "--cv", "2").stderr
    assert "all, fold 1" in shown
    assert "lasso-cv, fold 2" in shown
    assert "0/4" in shown


@pytest.mark.parametrize("options", [["--cv", "time"], ["--cv-groups", "rooms", "--cv", "2"]])
def test_compare_in_time_and_by_group(options: list[str], houses: pd.DataFrame, call: Call) -> None:
    result = call("compare", "houses.csv", "-t", "price", "--methods", "correlation", "--features", "1", *options)
    assert result.exit_code == 0, result.output
    assert "| correlation | 1.0 " in " ".join(result.stdout.split())


def test_compare_names_all_methods() -> None:
    told = next(each for each in compare_command.params if each.name == "methods")
    assert isinstance(told, click.Option)
    assert told.show_default == ",".join(METHODS)
    words = {word.strip(" .,;:") for word in f"{told.help} {told.show_default}".replace(",", " ").split()}
    assert words >= {*registry, "ngp", "all"}


def test_compare_shows_what_failed(houses: pd.DataFrame, call: Call) -> None:
    result = call("compare", "houses.csv", "-t", "price", "--methods", "ngp", "--cv", "2", "--max-time", "0.01s", "-q")
    assert result.exit_code == 1  # nothing succeeded
    assert result.stdout.splitlines()[-1].startswith("- ngp: out of time")


def test_demo(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "run", lambda out: print(f"into {out}"))
    assert call("demo").stdout == "into demo-report\n"
    assert call("demo", "--out", "here").stdout == "into here\n"

    def refuse(out: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "run", refuse)
    failed = call("demo")
    assert (failed.exit_code, failed.stderr) == (1, "Error: demo-report can't be written: No space left on device.\n")
