"""What becomes of the columns and rows of a table before anything is selected."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ngp.cli.files import Table, read_table
from ngp.cli.messages import Refusal
from ngp.cli.preparing import prepare

Call = Callable[..., Any]


class TestMissing:
    @pytest.fixture
    def gaps(self, houses: pd.DataFrame) -> pd.DataFrame:
        houses["garden"] = houses["garden"].astype(object)
        houses.loc[[3, 4], "size"] = None
        houses.loc[5, "town"] = None
        houses.loc[6, "price"] = None
        houses.loc[7, "garden"] = None
        houses.to_csv("gaps.csv", index=False)
        return houses

    def test_drop(self, gaps: pd.DataFrame, call: Call) -> None:
        result = call("select", "gaps.csv", "-t", "price", "--missing", "drop", "--features", "2", "--json")
        assert "Left out 5 of 80 rows, with missing values." in result.stderr
        assert json.loads(result.stdout)["asked"]["n_samples"] == 75

    def test_impute(self, gaps: pd.DataFrame, call: Call) -> None:
        result = call("select", "gaps.csv", "-t", "price", "--missing", "impute", "--features", "2", "--json")
        assert "Left out 1 of 80 rows, without target." in result.stderr
        kept = gaps.drop(index=6)
        assert f"size with {kept['size'].median():.4g}" in result.stderr
        assert f"town with {kept['town'].mode()[0]!r}" in result.stderr
        assert json.loads(result.stdout)["asked"]["n_samples"] == 79

    def test_what_fills_comes_from_the_training_rows(self, gaps: pd.DataFrame) -> None:
        samples = prepare(read_table("gaps.csv"), ["price"], missing="impute", hold_out=0.5, seed=0)
        assert samples.held_out is not None
        X, held_out = samples.X, samples.held_out[0]
        assert set(X.index) | set(held_out.index) == set(gaps.index) - {6}
        sizes = gaps["size"][X.index].median()
        assert sizes != gaps["size"].median()
        assert {row: part.loc[row, "size"] for part in (X, held_out) for row in (3, 4) if row in part.index} == {
            3: sizes,
            4: sizes,
        }


def test_held_out_rows_have_all_classes(folder: Path, call: Call) -> None:
    y = ["often"] * 36 + ["seldom"] * 4
    pd.DataFrame({"a": np.arange(40) % 7, "y": y}).to_csv("data.csv", index=False)
    for seed in range(5):
        samples = prepare(read_table("data.csv"), ["y"], hold_out=0.5, seed=seed)
        assert samples.held_out is not None
        assert [part.tolist().count("seldom") for part in (samples.y, samples.held_out[1])] == [2, 2]
    result = call("select", "data.csv", "-t", "y", "--features", "1", "--hold-out", "0.5")
    assert "On the 20 rows held out: 90.0% of them right." in result.stdout


def test_nothing_to_fill_gaps_with() -> None:
    frame = pd.DataFrame({"a": [1.0, *[np.nan] * 19], "y": np.arange(20.0) / 3})
    with pytest.raises(Refusal, match="Nothing is left to fill the gaps of 'a' with: use --drop a"):
        prepare(Table("data.csv", frame), ["y"], missing="impute", hold_out=0.9, seed=1)


def test_targets_keep_their_kind(folder: Path) -> None:
    n = 40
    frame = pd.DataFrame({"a": np.arange(n) % 7, "flag": np.arange(n) % 2 == 0, "text": ["u", "v"] * 20})
    frame["whole"] = np.arange(n) % 3
    frame["decimal"] = [Decimal(i) / 3 for i in range(n)]
    frame["kind"] = pd.Categorical(np.arange(n) % 4)
    frame["huge"] = np.arange(n, dtype=np.uint64) + np.uint64(2**63)
    frame.to_feather("data.feather")
    table = read_table("data.feather")
    kinds = {name: prepare(table, [name], drop=["a"] if name != "a" else ["whole"]) for name in frame.columns}
    assert {name: samples.y.dtype.kind for name, samples in kinds.items()} == {
        "a": "i", "flag": "b", "text": "O", "whole": "i", "decimal": "f", "kind": "O", "huge": "u",
    }  # fmt: skip
    assert kinds["text"].y.tolist() == frame["text"].tolist()
    assert kinds["decimal"].y == pytest.approx(np.arange(n) / 3)
    assert kinds["huge"].y.min() == 2**63
    assert [kinds[name].task for name in ("a", "flag", "text", "whole", "kind")] == ["classification"] * 5


def test_kinds_of_columns(folder: Path) -> None:
    n = 60
    frame = pd.DataFrame(
        {
            "whole": pd.array([*range(n - 1), None], dtype="Int64"),
            "flag": pd.array([True, False, None] * 20, dtype="boolean"),
            "kind": pd.Categorical([1, 2, 3] * 20),
            "half": np.linspace(0, 1, n).astype(np.float16),
            "huge": [2**70 + i for i in range(n)],
            "y": np.linspace(0, 1, n),
        }
    )
    frame["huge"] = frame["huge"].astype(float)
    frame.to_parquet("data.parquet")
    samples = prepare(read_table("data.parquet"), ["y"], missing="impute")
    assert samples.X.dtypes.astype(str).to_dict() == {
        "whole": "float64",
        "flag": "float64",
        "kind": "int64",
        "half": "float64",
        "huge": "float64",
    }
    assert not samples.X.isna().any().any()
