"""Tables are read as they are, whatever their format."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from ngp.cli import files
from ngp.cli.files import read_table
from ngp.cli.messages import Refusal
from ngp.cli.preparing import prepare

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": rng.normal(size=20), "t": ["u", "v"] * 10, "y": rng.normal(size=20)})


def written(path: Path, frame: pd.DataFrame) -> str:
    suffix = path.suffix
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return str(path)


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".feather", ".CSV"])
def test_formats_hold_the_same(suffix: str, tmp_path: Path) -> None:
    table = read_table(written(tmp_path / f"data{suffix}", FRAME))
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False, check_exact=True)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(separator: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "data.csv", index=False, sep=separator)
    pd.testing.assert_frame_equal(read_table(str(tmp_path / "data.csv")).frame, FRAME, check_dtype=False)


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
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(Refusal, match=r"data.csv can't be read: Permission denied\.$"):
        read_table(written(tmp_path / "data.csv", FRAME))
