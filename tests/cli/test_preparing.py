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
from sklearn.model_selection import TimeSeriesSplit

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
    assert "On the 20 rows held out: accuracy 90.0%." in result.stdout


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


def days(n: int = 40) -> pd.DatetimeIndex:
    return pd.date_range("2024-01-30", periods=n)


class TestDates:
    """Dates are numbers, whatever the file and however they are written, and never categories."""

    @pytest.mark.parametrize(
        "texts",
        [
            days().strftime("%Y-%m-%d"),
            days().strftime("%Y-%m-%d %H:%M:%S"),
            days().strftime("%Y-%m-%dT%H:%MZ"),
            [f"{day:%Y-%m-%d}T{hour:02d}:00:00.5+{hour:02d}:00" for hour, day in enumerate(days(14))],
        ],
        ids=["dates", "times", "in UTC", "in several time zones"],
    )  # fmt: skip
    def test_text(self, texts: Any, folder: Path) -> None:
        frame = pd.DataFrame({"when": texts, "y": np.arange(len(texts)) / 3})
        frame.to_csv("data.csv", index=False)
        samples = prepare(read_table("data.csv"), ["y"])
        assert samples.X["when"].tolist() == pytest.approx(list(range(len(texts))))
        start = "2024-01-30T00:00:00.500000" if "." in texts[0] else "2024-01-30"
        assert f"Dates became numbers, days since the first: 'when' (from {start})." in samples.notes

    @pytest.mark.parametrize("kind", ["timestamps", "with a time zone", "dates", "categories"])
    @pytest.mark.parametrize("suffix", [".parquet", ".feather"])
    def test_typed(self, kind: str, suffix: str, folder: Path) -> None:
        column: Any = pd.Series(days())
        if kind == "with a time zone":
            column = column.dt.tz_localize("Europe/Stockholm")  # summer time begins on the way
        elif kind == "dates":
            column = column.dt.date
        elif kind == "categories":
            column = column.astype("category")
        frame = pd.DataFrame({"when": column, "y": np.arange(40) / 3})
        (frame.to_parquet if suffix == ".parquet" else frame.to_feather)(f"data{suffix}")
        samples = prepare(read_table(f"data{suffix}"), ["y"])
        assert samples.X["when"].to_numpy() == pytest.approx(np.arange(40), abs=0.05)
        assert samples.X["when"].dtype == np.float64

    def test_excel(self, folder: Path) -> None:
        pytest.importorskip("openpyxl")
        pd.DataFrame({"when": days(), "y": np.arange(40) / 3}).to_excel("data.xlsx", index=False)
        assert prepare(read_table("data.xlsx"), ["y"]).X["when"].tolist() == list(range(40))

    def test_months_and_gaps(self) -> None:
        frame = pd.DataFrame({"when": ["2024-01", None, "2024-03"] * 4, "a": np.arange(12.0), "y": np.arange(12) / 3})
        samples = prepare(Table("data.csv", frame), ["y"], missing="impute")
        assert set(samples.X["when"]) == {0, 30, 60}

    def test_a_target(self) -> None:
        frame = pd.DataFrame({"a": np.arange(40.0) ** 2, "when": days()})
        samples = prepare(Table("data.csv", frame), ["when"])
        assert (samples.task, samples.y.tolist()) == ("regression", list(range(40)))

    @pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d/%m/%Y %H:%M"])
    def test_dates_of_another_form_are_no_categories(self, form: str) -> None:
        texts = days(20).strftime(form).tolist() * 3
        frame = pd.DataFrame({"when": texts, "a": np.arange(60.0), "y": np.arange(60) / 3})
        said = f"dates that aren't written like 2026-01-31: 'when' \\(such as '{min(texts)}'\\)"
        with pytest.raises(Refusal, match=said) as refusal:
            prepare(Table("data.csv", frame), ["y"])
        assert refusal.value.message.endswith("--drop when")
        with pytest.raises(Refusal, match=f"Target 'when' can't be predicted \\(such as '{min(texts)}'\\)"):
            prepare(Table("data.csv", frame), ["when"])

    @pytest.mark.parametrize(
        "texts", [["2024-13", "0815-47"] * 20, ["12:30", "2024"] * 20, ["1.2.3", "1.2.2024"] * 20, ["u", "v"] * 20]
    )
    def test_other_text(self, texts: list[str]) -> None:
        frame = pd.DataFrame({"t": texts, "y": np.arange(40) / 3})
        samples = prepare(Table("data.csv", frame), ["y"])
        assert samples.X["t"].dtype == "category"
        assert samples.notes == []


class TestRowsInTime:
    @pytest.fixture
    def shuffled(self) -> Table:
        order = np.random.default_rng(0).permutation(40)
        return Table(
            "data.csv", pd.DataFrame({"when": days(), "a": np.arange(40.0), "y": np.arange(40) / 3}).loc[order]
        )

    def test_without_the_option_there_is_a_caution(self, shuffled: Table) -> None:
        for drop in ([], ["when"]):
            caution = next(text for text in prepare(shuffled, ["y"], drop=drop).notes if text.startswith("Note: "))
            assert caution.startswith(
                "Note: 'when' holds dates, and rows are predicted from earlier and later ones alike"
            )
            assert "--cv time" in caution
        for others in ({"cv": "time"}, {"cv_groups": "a"}):
            assert not any("alike" in text for text in prepare(shuffled, ["y"], **others).notes)

    @pytest.mark.parametrize("drop", [[], ["when"]])
    def test_the_column_of_dates_orders_the_rows(self, drop: list[str], shuffled: Table) -> None:
        samples = prepare(shuffled, ["y"], drop=drop, cv="time", hold_out=0.25)
        assert samples.X["a"].tolist() == list(range(30))
        assert samples.y.tolist() == pytest.approx([i / 3 for i in range(30)])
        assert samples.held_out is not None
        assert samples.held_out[0]["a"].tolist() == list(range(30, 40))
        assert isinstance(samples.cv, TimeSeriesSplit)
        assert "Rows are in the order of 'when', for --cv time." in samples.notes
        for train, test in samples.cv.split(samples.X):
            assert max(samples.X["a"].iloc[train]) < min(samples.X["a"].iloc[test])

    def test_otherwise_the_file_orders_them(self, shuffled: Table) -> None:
        frame = shuffled.frame
        for other, why in [
            (frame.drop(columns="when"), "since no column holds dates."),
            (frame.assign(born=days()), "since several columns hold dates, 'when', 'born' (--drop the others)."),
        ]:
            samples = prepare(Table("data.csv", other), ["y"], cv="time")
            assert samples.X["a"].tolist() == frame["a"].tolist()
            assert f"Note: --cv time takes the rows in the order of the file, {why}" in samples.notes
        samples = prepare(Table("data.csv", frame.assign(born=days())), ["y"], cv="time", drop=["born"])
        assert samples.X["a"].tolist() == list(range(40))

    @pytest.mark.parametrize("n", [3, 4, 6])
    def test_few_rows(self, n: int) -> None:
        frame = pd.DataFrame({"a": np.arange(n) ** 2, "y": np.arange(n) / 3})
        assert prepare(Table("data.csv", frame), ["y"], cv="time").cv.get_n_splits() == min(5, n - 1)
        with pytest.raises(Refusal, match="--cv time needs at least 3 rows to learn from, and there are 2"):
            prepare(Table("data.csv", frame[:2]), ["y"], cv="time")


class TestRowsInGroups:
    @pytest.fixture
    def patients(self) -> Table:
        rng = np.random.default_rng(0)
        who = rng.choice(["ann", "bob", "cid", "dan"], 60, p=[0.1, 0.2, 0.3, 0.4])
        return Table("data.csv", pd.DataFrame({"who": who, "a": rng.normal(size=60), "y": rng.normal(size=60)}))

    def test_they_stay_together(self, patients: Table) -> None:
        who, sizes = patients.frame["who"], []
        for seed in range(6):
            samples = prepare(patients, ["y"], cv_groups="who", hold_out=0.3, seed=seed)
            assert list(samples.X.columns) == ["a"]
            assert samples.held_out is not None
            inside, outside = who[samples.X.index], who[samples.held_out[0].index]
            assert len(inside) + len(outside) == 60
            assert not set(inside) & set(outside)
            assert len(set(zip(inside, samples.cv_groups, strict=True))) == len(set(inside)) == samples.cv
            sizes.append(len(outside))
            for train, test in samples.splits(seed):
                assert not set(inside.iloc[train]) & set(inside.iloc[test])
        assert 12 <= np.median(sizes) <= 24

    def test_a_way_of_validation_is_kept(self, patients: Table) -> None:
        assert prepare(patients, ["y"], cv_groups="who").cv == 4
        assert [prepare(patients, ["y"], cv_groups="who", cv=cv).cv for cv in (2, 0.3, "loo")] == [2, 0.3, "loo"]
