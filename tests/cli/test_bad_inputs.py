"""Bad inputs: status 2, one sentence, no traceback, and nothing written."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

rng = np.random.default_rng(0)
N = 40
NUMBERS = pd.DataFrame(rng.normal(size=(N, 3)).round(3), columns=["a", "b", "c"])
GOOD = NUMBERS.assign(y=NUMBERS["a"] + NUMBERS["b"])
OUTPUTS = ["--out", "out.json", "--reduced", "reduced.csv", "--checkpoint", "state.npz"]


def csv(frame: pd.DataFrame, **settings: Any) -> bytes:
    return str(frame.to_csv(index=False, **settings)).encode()


def parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content)
    return content.getvalue()


def npz(**arrays: Any) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def npy(array: Any, **settings: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array, **settings)
    return content.getvalue()


def with_cell(column: str, *values: Any) -> bytes:
    """The good table with one other cell, or with several in a column."""
    frame = GOOD.astype(object)
    frame.loc[3 : 2 + len(values), column] = values
    return csv(frame)


@dataclass(frozen=True)
class Bad:
    """A file, options, and what the message says."""

    says: str
    data: bytes | None = csv(GOOD)
    options: list[str] = field(default_factory=list)
    name: str = "data.csv"
    target: list[str] = field(default_factory=lambda: ["--target", "y"])
    others: dict[str, bytes] = field(default_factory=dict)


def groups(text: str | bytes, says: str) -> Bad:
    content = text if isinstance(text, bytes) else text.encode()
    return Bad(says, options=["--groups", "groups.json"], others={"groups.json": content})


BAD = {
    # Files
    "no such file": Bad("data.csv doesn't exist", None),
    "a folder": Bad("is a folder: give a file", None, name="folder.csv/"),
    "empty": Bad("data.csv is empty", b""),
    "one row": Bad("has 1 row of data: at least 2", b"a,b,y\n1,2,3\n"),
    "one column": Bad("has 1 column: a target and at least one other", b"y\n1\n2\n3\n"),
    "target alone": Bad("no column left to select from", options=["--drop=a", "--drop=b", "--drop=c"]),
    "unknown suffix": Bad("unknown suffix: use one of .csv, .tsv", name="data.xls"),
    "unclosed quote": Bad("is no CSV table: EOF inside string", b'a,b,y\n1,"2,3\n4,5,6\n7,8,9\n'),
    "too many values in a line": Bad("Expected 3 fields in line 3, saw 4", b"a,b,y\n1,2,3\n4,5,6,7\n"),
    "too many values in all lines": Bad("more values in a line than names", b"a,b,y\n1,2,3,4\n5,6,7,8\n"),
    "latin-1": Bad("isn't text in UTF-8 (byte 0xfc", "grün,y\n1,2\n3,4\n".encode("latin-1")),
    "zero bytes": Bad("is no text, but holds zero bytes", b"a,b,y\n1,\0,3\n"),
    "no line of names": Bad("numbers where the names of the columns belong", csv(GOOD, header=False)),
    "the same name twice": Bad("several columns of the same name, 'a'", b"a,a,y\n1,2,3\n4,5,6\n"),
    "broken Parquet": Bad("is no Parquet table that can be read", b"PAR1 and then something else", name="data.parquet"),
    "broken npz": Bad("no file of numpy arrays", b"PK\x03\x04 and so on", name="data.npz"),
    "broken gzip": Bad("no gzip file that can be read", b"a,b,y", name="data.csv.gz"),
    "half a gzip file": Bad("no gzip file that can be read", gzip.compress(csv(GOOD))[:-20], name="data.csv.gz"),
    "pickled objects": Bad("it holds Python objects", npy(np.array([{}, {}]), allow_pickle=True), name="data.npy"),
    "one dimension": Bad("two dimensions are needed", npy(np.arange(9.0)), name="data.npy"),
    "complex numbers": Bad("type complex128: numbers are needed", npy(np.ones((9, 2)) * 1j), name="data.npy"),
    "no X": Bad("has no array X, but 'u', 'v'", npz(u=np.ones(3), v=np.ones(3)), name="data.npz"),
    "X and y of other lengths": Bad(
        "X of shape (9, 2) and y of shape (8,)", npz(X=np.ones((9, 2)), y=np.ones(8)), name="data.npz"
    ),
    "names that do not fit X": Bad(
        "feature_names that don't fit X", npz(X=np.ones((9, 2)), y=np.ones(9), feature_names=["a"]), name="data.npz"
    ),
    # Columns
    "no such target": Bad("--target 'z': data.csv has no such column", target=["--target", "z"]),
    "nearly the target": Bad("did you mean 'y'", target=["--target", "y "]),
    "target twice": Bad("--target names 'y' twice", target=["--target", "y", "--target", "y"]),
    "target dropped": Bad("--drop 'y' is the target", options=["--drop", "y"]),
    "the target fixed": Bad("--fixed 'y' is a target", options=["--fixed", "y"]),
    "fixed twice": Bad("--fixed names 'a' twice", options=["--fixed", "a", "--fixed", "a"]),
    "constant target": Bad("Target 'y' has the same value in all rows", csv(GOOD.assign(y=7))),
    "constant columns": Bad("X has only constant columns", csv(GOOD[["y"]].assign(a=1, b=2))),
    "10,000 classes": Bad(
        "Target 'y' has 10,000 different values in 10,000 rows, too many for classes",
        csv(pd.DataFrame({"a": np.arange(10_000) % 7, "y": [f"class {i}" for i in range(10_000)]})),
    ),
    "text among targets": Bad("Target 't' is text: of several", csv(GOOD.assign(t="u")), target=["-t", "y", "-t", "t"]),
    "identifiers": Bad(
        "different values to be categories: 'id' (40 in 40 rows)", csv(GOOD.assign(id=[f"n{i}" for i in range(N)]))
    ),
    "too many categories": Bad(
        "to be categories: 'word' (150 in 450 rows)",
        csv(pd.DataFrame({"word": [f"w{i % 150}" for i in range(450)], "y": np.arange(450.0) / 7})),
    ),
    "dates beside text": Bad(
        "'when' (dates beside text, such as '2026-02-30')",
        csv(GOOD.assign(when=[*pd.date_range("2026-01-01", periods=N - 1).astype(str), "2026-02-30"])),
    ),
    "lists in cells": Bad(
        "neither numbers nor text: 'l' (object)", parquet(GOOD.assign(l=[[1, 2]] * N)), name="data.parquet"
    ),
    "text among numbers": Bad("'b' (numbers beside text, such as '?')", with_cell("b", "?")),
    "text among numbers of the target": Bad(
        "Target 'y' can't be predicted (numbers beside text, such as '?')", with_cell("y", "?")
    ),
    "commas in numbers that may mean thousands": Bad(
        "'b' (numbers written with commas, such as '0,5')", csv(GOOD.assign(b=[f"{i},5" for i in range(N)]))
    ),
    # Values
    "a gap": Bad("missing values: 'b' (1); --missing drop leaves out 1 of 40 rows", with_cell("b", "")),
    "an empty column": Bad("columns without any value: 'b'", csv(GOOD.assign(b=None))),
    "gaps in every row": Bad(
        "--missing drop leaves 0 rows",
        csv(GOOD.mask(np.arange(N * 4).reshape(N, 4) % 4 == np.arange(N)[:, None] % 2)),
        options=["--missing", "drop"],
    ),
    "infinity": Bad("'b' (infinite numbers, or some beyond 1e+100)", with_cell("b", "inf")),
    "huge numbers": Bad("'b' (infinite numbers, or some beyond 1e+100)", with_cell("b", "1e200")),
    # Tasks and validation
    "regression of text": Bad(
        "Target 'y' is text, which --task regression", csv(GOOD.assign(y=["u", "v"] * 20)), ["--task", "regression"]
    ),
    "classes of fractions": Bad("holds fractions, which are no classes", options=["--task", "classification"]),
    "classes of two targets": Bad(
        "takes one --target", options=["--task", "classification"], target=["-t", "y", "-t", "c"]
    ),
    "more folds than rows": Bad("--cv 41 folds don't fit 40 samples", options=["--cv", "41"]),
    "unknown validation": Bad("'many' is no way of validation", options=["--cv", "many"]),
    "not a share": Bad("'1.5' is no share", options=["--hold-out", "1.5"]),
    "hold out nothing": Bad("doesn't leave rows on both sides", options=["--hold-out", "0.001"]),
    "hold out a whole class": Bad(
        "sets aside all rows of class",
        csv(GOOD.assign(y=["u"] * 20 + ["v"] * 16 + list("wxpq"))),
        ["--hold-out", "0.9"],
    ),
    # Options
    "more features than columns": Bad("--features 4 is more than the 3 features", options=["--features", "4"]),
    "fewer features than fixed": Bad("is less than the 2 fixed", options=["--features=1", "--fixed=a", "--fixed=b"]),
    "negative tol": Bad("-1.0 is not in the range x>=0", options=["--tol", "-1"]),
    "no tol": Bad("'tol' parameter", options=["--tol", "nan"]),
    "no time": Bad("'0s' is no duration above zero", options=["--max-time", "0s"]),
    "two rules": Bad(
        "--tol and --cut are two rules for one thing: give one of them.", options=["--tol", "0.1", "--cut", "best"]
    ),
    "unknown rule": Bad("'never' is not one of 'significant', 'best'", options=["--cut", "never"]),
    "screening of none": Bad("'0' is no number of candidates", options=["--screen", "0"]),
    "unknown option": Bad("No such option '--feature'", options=["--feature", "3"]),
    "no target": Bad("Missing option '--target'", target=[]),
    # Groups
    "no groups file": Bad("--groups groups.json can't be read: No such file", options=["--groups", "groups.json"]),
    "groups that are no JSON": groups("{", "is no JSON file that can be read"),
    "a list of groups": groups('[["a", "b"]]', "must hold an object"),
    "an empty group": groups('{"g": []}', "'g' must be a list of columns"),
    "an unknown column in a group": groups('{"g": ["a", "q"]}', "--groups 'g': 'q': data.csv has no such column"),
    "the target in a group": groups('{"g": ["a", "y"]}', "--groups 'g': 'y' is a target or left out"),
    "a column twice in a group": groups('{"g": ["a", "a"]}', "--groups 'g': names 'a' twice"),
    "a group with the name of a column": groups('{"c": ["a", "b"]}', "'c' is the name of another column"),
    # Rows in time and in groups
    "in time and in groups": Bad("are two ways of validation: give one", options=["--cv=time", "--cv-groups=c"]),
    "the target as groups": Bad("--cv-groups 'y' is the target", options=["--cv-groups", "y"]),
    "no such groups": Bad("--cv-groups 'q': data.csv has no such column", options=["--cv-groups", "q"]),
    "a single group": Bad("'g' has the same value in all rows", csv(GOOD.assign(g=1)), options=["--cv-groups", "g"]),
    "rows in no group": Bad(
        "'g' is missing in 39 rows", csv(GOOD.assign(g=[1, *[None] * (N - 1)])), options=["--cv-groups", "g"]
    ),
    "more folds than groups": Bad(
        "--cv 5 folds don't fit 2 groups: give at least 2 folds",
        csv(GOOD.assign(g=[1, 2] * (N // 2))),
        options=["--cv-groups", "g", "--cv", "5"],
    ),
    "one group to learn from": Bad(
        "leaves a single one of the --cv-groups",
        csv(GOOD.assign(g=[1, 2] * (N // 2))),
        options=["--cv-groups", "g", "--hold-out", "0.5"],
    ),
    "a row without its time": Bad(
        "--cv time orders the rows by 'when', which is missing in 1 row",
        csv(GOOD.assign(when=[None, *pd.date_range("2026-01-01", periods=N - 1)])),
        options=["--cv", "time", "--drop", "when"],
    ),
    # Output files
    "result that is no JSON": Bad("--out r.txt has an unknown suffix: use .json", options=["--out", "r.txt"]),
    "output over the groups": Bad(
        "--out groups.json is the same file as --groups",
        options=["--groups", "groups.json", "--out", "groups.json"],
        others={"groups.json": b'{"g": ["a", "b"]}'},
    ),
    "a sheet of a CSV file": Bad("--sheet 'one' is for Excel workbooks (.xlsx): leave", options=["--sheet", "one"]),
    "reduced data of no format": Bad("--reduced r.xlsx has an unknown suffix", options=["--reduced", "r.xlsx"]),
    "report that is no HTML": Bad("--report r.pdf has an unknown suffix: use .html", options=["--report", "r.pdf"]),
    "output is a folder": Bad("--out folder is a folder", options=["--out", "folder"]),
    "output over the data": Bad("--reduced data.csv is the same file as DATA", options=["--reduced", "data.csv"]),
    "two outputs in one": Bad("is the same file as --out", options=["--checkpoint", "out.json"]),
    "checkpoint that is none": Bad(
        "other.npz", options=["--checkpoint", "other.npz"], others={"other.npz": b"nonsense"}
    ),
}


def check(result: Any, folder: Path, before: set[Path], says: str) -> None:
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    before_it, _, message = result.stderr.partition("Error: ")
    sentence, *more = message.splitlines()
    assert sentence.endswith((".", "?")) or (sentence.endswith("can't be used as it is:") and more)
    assert says in message, message
    assert "Traceback" not in result.output
    for line in before_it.splitlines():  # what it found in the data, where these are not the problem
        assert line.startswith(("data", "Note: ")), line
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_select(bad: Bad, folder: Path, call: Callable[..., Any]) -> None:
    if bad.name.endswith("/"):
        (folder / bad.name).mkdir()
    elif bad.data is not None:
        (folder / bad.name).write_bytes(bad.data)
    for name, content in bad.others.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    before = set(folder.rglob("*"))
    result = call("select", bad.name.rstrip("/"), *bad.target, *OUTPUTS, *bad.options)
    check(result, folder, before, bad.says)


def test_the_corpus_is_large_and_the_good_table_is_good(folder: Path, call: Callable[..., Any]) -> None:
    assert len(BAD) >= 50
    (folder / "data.csv").write_bytes(csv(GOOD))
    result = call("select", "data.csv", "--target", "y", *OUTPUTS)
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == {"data.csv", "out.json", "reduced.csv", "state.npz"}


def test_one_message_names_all_obstacles_and_a_command_overcomes_them(folder: Path, call: Callable[..., Any]) -> None:
    table = GOOD.astype(object).assign(id=[f"n{i}" for i in range(N)], empty=None)
    table["two words"] = table["id"]
    table.loc[3, "b"], table.loc[[4, 5], "a"], table.loc[6, "y"] = "?", None, None
    table["huge"] = [1e200, *range(N - 1)]
    table.to_csv("data.csv", index=False)
    result = call("select", "data.csv", "--target", "y", "--features", "1")
    assert result.exit_code == 2
    first, *obstacles, advice, command = result.stderr.splitlines()
    assert first == "Error: data.csv can't be used as it is:"
    assert [line.partition(":")[0] for line in obstacles] == [
        "  columns of mixed content",
        "  text with too many different values to be categories",
        "  columns without any value",
        "  columns beyond what can be computed with",
        "  missing values",
    ]
    assert advice == "Correct the data, or say:"
    options = "--drop b --drop id --drop 'two words' --drop empty --drop huge --missing drop"
    assert command == f"  ngp select data.csv --target y --features 1 {options}"
    again = call(*shlex.split(command)[1:])
    assert again.exit_code == 0, again.output
    assert "Left out 3 of 40 rows" in again.stderr


def test_with_many_gaps_the_command_fills_them(folder: Path, call: Callable[..., Any]) -> None:
    GOOD.mask(np.arange(N * 4).reshape(N, 4) % 20 == 0).assign(y=GOOD["y"]).to_csv("data.csv", index=False)
    result = call("select", "--target", "y", "--features", "1", "--", "data.csv")
    command = result.stderr.splitlines()[-1]
    assert command == "  ngp select --target y --features 1 --missing impute -- data.csv"
    assert call(*shlex.split(command)[1:]).exit_code == 0


def test_an_obstacle_without_an_option_is_named_beside_the_others(folder: Path, call: Callable[..., Any]) -> None:
    GOOD.assign(y=7, id=[f"n{i}" for i in range(N)]).to_csv("data.csv", index=False)
    result = call("select", "data.csv", "--target", "y")
    assert result.stderr.splitlines()[1:] == [
        "  text with too many different values to be categories: 'id' (40 in 40 rows)",
        "  Target 'y' has the same value in all rows: there is nothing to predict",
        "Correct the last; for the others, correct the data or add:",
        "  --drop id",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "Standard input is empty"),
        (b"\xff\xfe\xfd\n", "Standard input isn't text in UTF-8"),
    ],
)
def test_standard_input(content: bytes, says: str, folder: Path, call: Callable[..., Any]) -> None:
    check(call("select", "-", "--target", "a", *OUTPUTS, stdin=content), folder, set(), says)


OTHER_COMMANDS = {
    "compare: unknown method": (
        ["compare", "data.csv", "-t", "y", "--methods", "ngp,magic"],
        "methods has 'magic', which is",
    ),
    "compare: no method": (["compare", "data.csv", "-t", "y", "--methods", ""], "an empty name or one twice"),
    "compare: too many features": (["compare", "data.csv", "-t", "y", "--features", "9"], "more than the 3 features"),
    "compare: one row a fold": (
        ["compare", "data.csv", "-t", "y", "--cv", "loo"],
        "--cv loo leaves one row a fold, which has no R²: give a number of folds.",
    ),
    "compare: unknown format": (
        ["compare", "data.csv", "-t", "y", "--out", "table.xls"],
        "table.xls has an unknown suffix",
    ),
    "report: no file": (["report", "nothing.json"], "nothing.json can't be read"),
    "report: no JSON": (["report", "data.csv", "--out", "r.html"], "data.csv is not a JSON file"),
    "report: another document": (["report", "other.json"], "other.json is not a result that this version"),
    "report: no HTML": (["report", "other.json", "--out", "r.txt"], "r.txt has an unknown suffix: use .html"),
    "report: over the result": (["report", "page.html"], "page.html is the same file as"),
    "unknown command": (["selekt"], "No such command 'selekt'. Did you mean 'select'?"),
    "unknown option of the group": (["--verbose"], "No such option '--verbose'"),
}


@pytest.mark.parametrize(("arguments", "says"), OTHER_COMMANDS.values(), ids=OTHER_COMMANDS)
def test_other_commands(arguments: list[str], says: str, folder: Path, call: Callable[..., Any]) -> None:
    (folder / "data.csv").write_bytes(csv(GOOD))
    (folder / "other.json").write_text(json.dumps({"schema": "something else"}))
    (folder / "page.html").write_text("<p>")
    before = set(folder.rglob("*"))
    check(call(*arguments), folder, before, says)
