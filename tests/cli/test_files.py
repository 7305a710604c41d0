"""Tables are read as they are, whatever their format."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from ngp.cli import files
from ngp.cli.files import check_outputs, read_table, write_reduced
from ngp.cli.messages import Failure, Refusal
from ngp.cli.preparing import prepare

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": rng.normal(size=20), "t": ["u", "v"] * 10, "y": rng.normal(size=20)})


def written(path: Path, frame: pd.DataFrame) -> str:
    suffix = path.suffix
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    elif suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return str(path)


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".feather", ".CSV", ".csv.gz", ".tsv.gz"])
def test_formats_hold_the_same(suffix: str, tmp_path: Path) -> None:
    table = read_table(written(tmp_path / f"data{suffix}", FRAME))
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False, check_exact=True)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(separator: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "data.csv", index=False, sep=separator)
    pd.testing.assert_frame_equal(read_table(str(tmp_path / "data.csv")).frame, FRAME, check_dtype=False)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(separator: str, tmp_path: Path) -> None:
    frame = FRAME.assign(small=FRAME["a"] / 1e7, whole=range(20), code=["1,2,3", "1.5"] * 10)
    frame.to_csv(tmp_path / "data.csv", index=False, sep=separator, decimal=",")
    table = read_table(str(tmp_path / "data.csv"))
    pd.testing.assert_frame_equal(table.frame, frame, check_dtype=False)
    assert table.notes == ("Note: read the commas in 'a', 'y', 'small' as decimal commas.",)


def test_commas_between_commas_may_mean_thousands(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('a,b\n"1,234",1\n"2,345",2\n')
    table = read_table(str(tmp_path / "data.csv"))
    assert table.frame["a"].tolist() == ["1,234", "2,345"]
    assert not table.notes


def test_sheets_of_a_workbook(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME[["a"]].to_excel(book, sheet_name="notes", index=False)
        FRAME.to_excel(book, sheet_name="data", index=False)
    pd.testing.assert_frame_equal(read_table(str(path), "data").frame, FRAME, check_dtype=False)
    with pytest.raises(Refusal, match=r"book.xlsx \(sheet 'notes' of 2, see --sheet\) has 1 column"):
        read_table(str(path))
    with pytest.raises(Refusal, match=r"^--sheet 'Data': .* has no such sheet; it has 'notes', 'data'\.$"):
        read_table(str(path), "Data")


def test_workbooks_that_cannot_be_read(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    FRAME.to_excel(path, index=False)
    for content in (b"nonsense", path.read_bytes()[:-500]):
        path.write_bytes(content)
        with pytest.raises(Refusal, match=r"book.xlsx is no Excel workbook that can be read: .*\.$"):
            read_table(str(path))
    pd.DataFrame([[1, 2], [3, 4]], columns=["a", "b"]).set_axis(["a", "a"], axis=1).to_excel(path, index=False)
    with pytest.raises(Refusal, match="several columns of the same name, 'a'"):
        read_table(str(path))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"Size, m2";"Price, EUR";y\n', ["Size, m2", "Price, EUR", "y"]),
        ('"a ""b"", c, d";y\n', ['a "b", c, d', "y"]),
        ('"two, or\nthree, lines";y\n', ["two, or\nthree, lines", "y"]),
        ('5" tube;6" tube\n', ['5" tube', '6" tube']),  # inches, not quotes
        ('"y; all"\t"x"\n', ["y; all", "x"]),
    ],
)
def test_separators_in_quotes_do_not_count(text: str, names: list[str], tmp_path: Path) -> None:
    separator = "\t" if "\t" in text else ";"
    (tmp_path / "data.csv").write_text(text + f"{separator.join('1' * len(names))}\n" * 2)
    frame = read_table(str(tmp_path / "data.csv")).frame
    assert list(frame.columns) == names
    assert frame.to_numpy().tolist() == [[1] * len(names)] * 2


def test_text_of_other_origins(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    for content in (
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",  # with a mark at its beginning, as Excel writes it
        b"a,b\r\n1,2\r\n3,4\r\n",
        b"a,b\n1,2\n3,4",
        b"\n\na,b\n1,2\n3,4\n",
        b"a,b,\n1,2,\n3,4,\n",  # a separator at the end of each line
    ):
        file.write_bytes(content)
        frame = read_table(str(file)).frame
        assert list(frame.columns) == ["a", "b"]
        assert frame.to_numpy().tolist() == [[1, 2], [3, 4]]


def test_a_header_of_many_names(tmp_path: Path) -> None:
    names = [f"{'a column with a long name ' * 40}{i}" for i in range(1000)]
    assert len(",".join(names)) > 1_000_000
    (tmp_path / "data.csv").write_text("\n".join([",".join(names), *[",".join("1" * len(names))] * 2]))
    assert list(read_table(str(tmp_path / "data.csv")).frame.columns) == names


def test_odd_names(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text('"two\nlines",<script>alert(1)</script>,"a,b",✓\n1,2,3,4\n5,6,7,8\n')
    assert list(read_table(str(file)).frame.columns) == ["two\nlines", "<script>alert(1)</script>", "a,b", "✓"]


def test_index_of_a_parquet_table(tmp_path: Path) -> None:
    FRAME.set_index("a").to_parquet(tmp_path / "data.parquet")
    assert list(read_table(str(tmp_path / "data.parquet")).frame.columns) == ["a", "t", "y"]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_labels_of_rows_that_repeat_multiply_nothing(suffix: str, tmp_path: Path) -> None:
    twice = pa.Table.from_pandas(pd.concat([FRAME, FRAME]))  # with the labels 0 to 19, and again
    (parquet.write_table if suffix == ".parquet" else feather.write_feather)(twice, tmp_path / f"data{suffix}")
    samples = prepare(read_table(str(tmp_path / f"data{suffix}")), ["y"])
    assert samples.X["a"].tolist() == [*FRAME["a"], *FRAME["a"]]
    assert samples.y.tolist() == [*FRAME["y"], *FRAME["y"]]


def test_labels_of_rows_with_the_name_of_a_column(tmp_path: Path) -> None:
    FRAME.rename_axis("a").to_parquet(tmp_path / "data.parquet")
    with pytest.raises(Refusal, match=r"several columns of the same name, 'a': give each a name of its own\.$"):
        read_table(str(tmp_path / "data.parquet"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        buffer = io.BytesIO(FRAME.to_csv(index=False).encode())

    monkeypatch.setattr("sys.stdin", Stream)
    assert read_table("-").frame.shape == FRAME.shape


def test_arrays(tmp_path: Path) -> None:
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    np.save(tmp_path / "data.npy", X)
    table = read_table(str(tmp_path / "data.npy"))
    assert list(table.frame.columns) == ["x0", "x1", "x2"]
    assert [table.column(name, "--target") for name in ("0", "x1", "-1")] == ["x0", "x1", "x2"]

    np.savez(tmp_path / "data.npz", X=X, y=y, other=np.ones(4))
    table = read_table(str(tmp_path / "data.npz"))
    assert list(table.frame.columns) == ["x0", "x1", "x2", "y"]
    assert table.frame["y"].tolist() == y.tolist()

    np.savez(tmp_path / "data.npz", X=X, y=np.column_stack([y, y]), feature_names=["a", "b", "c"])
    assert list(read_table(str(tmp_path / "data.npz")).frame.columns) == ["a", "b", "c", "y0", "y1"]

    np.savez(tmp_path / "data.npz", measured=X)
    assert list(read_table(str(tmp_path / "data.npz")).frame.columns) == ["x0", "x1", "x2"]


def test_columns_of_tables_have_no_numbers() -> None:
    table = files.Table("data.csv", FRAME)
    with pytest.raises(Refusal, match=r"^--target '0': data.csv has no such column; it has 'a', 't', 'y'\.$"):
        table.column("0", "--target")


@pytest.mark.parametrize(
    ("suffix", "missing", "message"),
    [
        (".csv", "pandas", "Reading tables needs pandas: install it with pip install 'neural-greedy-pursuit[cli]'."),
        (".CSV.XLSX", "openpyxl", "Reading Excel needs openpyxl: install it with pip install .*cli"),
        (".parquet", "pyarrow", "Reading Parquet needs pyarrow: install it with pip install .*parquet"),
    ],
)
def test_packages_that_are_missing(
    suffix: str, missing: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / f"data{suffix}", FRAME)
    monkeypatch.setattr(files, "find_spec", lambda name: None if name == missing else True)
    with pytest.raises(Refusal, match=message.replace("[", r"\[").replace("]", r"\]")):
        read_table(file)


def test_csv_needs_no_pyarrow(tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyarrow'] = None; from ngp.cli.files import read_table; read_table(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, written(tmp_path / "data.csv", FRAME)], check=True)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Refusal, match=r"data.csv can't be read: Permission denied\.$"):
        read_table(written(tmp_path / "data.csv", FRAME))


class TestReduced:
    """The reduced table has the cells of the file, as they are there."""

    def written(self, source: Path, columns: list[str], name: str) -> Path:
        target = source.with_name(name)
        write_reduced(target, read_table(str(source)), columns)
        return target

    @pytest.fixture
    def codes(self, tmp_path: Path) -> Path:
        text = 'zip,name,x,,y\n00849,NA,1.50,7,true\n12345,"a, b",-.5,,false\n,,2e3,8,\n'
        (tmp_path / "codes.csv").write_text(text, encoding="utf-8-sig")
        return tmp_path / "codes.csv"

    def test_text_to_text(self, codes: Path) -> None:
        columns = ["x", "zip", "Unnamed: 3", "name", "y"]
        few = self.written(codes, columns, "few.csv")
        expected = 'x,zip,Unnamed: 3,name,y\n1.50,00849,7,NA,true\n-.5,12345,,"a, b",false\n2e3,,8,,\n'
        assert few.read_text() == expected
        assert self.written(codes, ["zip", "y"], "few.tsv").read_text() == "zip\ty\n00849\ttrue\n12345\tfalse\n\t\n"

    def test_text_to_numbers(self, codes: Path) -> None:
        frame = pd.read_parquet(self.written(codes, ["zip", "x", "name"], "few.parquet"))
        assert frame["x"].tolist() == [1.5, -0.5, 2000]
        assert frame["zip"].isna().tolist() == [False, False, True]
        assert frame["zip"].tolist()[:2] == ["00849", "12345"]
        assert frame["name"].isna().tolist() == [True, False, True]

    def test_decimal_commas(self, tmp_path: Path) -> None:
        (tmp_path / "data.csv").write_text("a;b;c\n1,50;x;3\n-2,0;y;4\n")
        assert self.written(tmp_path / "data.csv", ["a", "c"], "few.csv").read_text() == "a;c\n1,50;3\n-2,0;4\n"

    @pytest.mark.parametrize("suffix", [".parquet", ".feather"])
    def test_whole_numbers_with_gaps(self, suffix: str, tmp_path: Path) -> None:
        whole = pd.array([1, None, 2**60 + 1], dtype="Int64")
        frame = pd.DataFrame({"n": whole, "x": [0.5, 1.5, 2.5], "when": pd.to_datetime(["2024-01-01"] * 3)})
        source = Path(written(tmp_path / f"data{suffix}", frame))
        assert self.written(source, ["n", "x"], "few.csv").read_text() == f"n,x\n1,0.5\n,1.5\n{2**60 + 1},2.5\n"
        again = pd.read_parquet(self.written(source, ["when", "n"], "few.parquet"), dtype_backend="numpy_nullable")
        assert again["n"].tolist()[2] == 2**60 + 1
        assert again["when"].tolist() == frame["when"].tolist()

    def test_a_named_index(self, tmp_path: Path) -> None:
        FRAME.set_index("a").to_parquet(tmp_path / "data.parquet")
        frame = pd.read_csv(self.written(tmp_path / "data.parquet", ["y", "a"], "few.csv"))
        pd.testing.assert_frame_equal(frame, FRAME[["y", "a"]])

    def test_excel(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"zip": ["00849", "12345"], "n": [1, None], "x": [0.5, 2]})
        source = Path(written(tmp_path / "data.xlsx", frame))
        assert self.written(source, ["zip", "n", "x"], "few.csv").read_text() == "zip,n,x\n00849,1,0.5\n12345,,2\n"
        assert pd.read_parquet(self.written(source, ["zip"], "few.parquet"))["zip"].tolist() == ["00849", "12345"]

    def test_a_file_that_has_changed(self, codes: Path) -> None:
        table = read_table(str(codes))
        codes.write_text(codes.read_text() + "1,2,3,4,5\n")
        with pytest.raises(Failure, match=r"few.csv isn't written, since .*codes.csv has changed in the meantime\.$"):
            write_reduced(codes.with_name("few.csv"), table, ["x"])
        assert not codes.with_name("few.csv").exists()


class TestOutputs:
    """Nothing that is read is written over, and what can't be written is refused before the work."""

    def refused(self, option: str, path: Path, **inputs: Path) -> str:
        with pytest.raises(Refusal) as caught:
            check_outputs(inputs, {option: (path, ())})
        return caught.value.message

    @pytest.mark.parametrize("link", [os.symlink, os.link])
    def test_links_to_an_input(self, link: Any, tmp_path: Path) -> None:
        (tmp_path / "groups.json").write_text("{}")
        link(tmp_path / "groups.json", tmp_path / "other.json")
        message = self.refused("--out", tmp_path / "other.json", groups=tmp_path / "groups.json")
        assert message.endswith("other.json is the same file as groups: choose another.")

    def test_links_to_each_other(self, tmp_path: Path) -> None:
        os.symlink(tmp_path / "yet to be made.json", tmp_path / "link.json")
        with pytest.raises(Refusal, match=r"made\.json is the same file as --out: choose another\.$"):
            check_outputs(
                {}, {"--out": (tmp_path / "link.json", ()), "--report": (tmp_path / "yet to be made.json", ())}
            )

    def test_a_link_into_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        os.symlink(tmp_path / "nowhere" / "out.json", tmp_path / "link.json")
        assert self.refused("--out", tmp_path / "link.json").endswith("nowhere doesn't exist.")

    def test_names_that_are_too_long(self, tmp_path: Path) -> None:
        assert "File name too long" in self.refused("--out", tmp_path / ("x" * 300 + ".html"))
