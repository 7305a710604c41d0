"""Sources hand out the columns of the array that they stand for, and refuse what they can't read."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse
from source_cases import KINDS, mapped, parqueted, table, zarred

from ngp import open_columns
from ngp.data.sources import FewColumns, StackedRows, as_columns, in_memory, read_columns, zarrs
from ngp.data.sources.base import ColumnSource

NUMBERS = np.random.default_rng(0).integers(-9, 10, (11, 8)) / 4
DTYPES = ("float64", "float32", "int16", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_those_of_the_array(kind: str, dtype: str, tmp_path: Path) -> None:
    X = NUMBERS.astype(dtype)
    source = as_columns(KINDS[kind](X, tmp_path))
    assert isinstance(source, ColumnSource)
    assert (source.shape, len(source)) == (X.shape, 11)
    tables = kind in ("Arrow", "Parquet")  # are read as data frames are
    assert source.dtype == ("float64" if tables and dtype != "float32" else dtype)
    assert source.names == ([f"c{i}" for i in range(8)] if tables else None)
    for columns in ([2, 3, 4], [7, 0, 0, 5], [6], []):
        for rows in (slice(None), slice(3, 9), slice(4, 4)):
            taken = source.read(np.array(columns, dtype=np.intp), rows)
            assert taken.dtype == source.dtype
            np.testing.assert_array_equal(taken, X[rows][:, columns].T)
    np.testing.assert_array_equal(in_memory(source), X)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_read_the_same(kind: str, tmp_path: Path) -> None:
    source = as_columns(KINDS[kind](NUMBERS, tmp_path))
    source.read(np.arange(3))  # what was opened or unpacked stays at home
    copy = pickle.loads(pickle.dumps(source))
    assert (copy.shape, copy.dtype, copy.names, copy.by_rows) == (
        source.shape, source.dtype, source.names, source.by_rows
    )  # fmt: skip
    np.testing.assert_array_equal(copy.read(np.arange(8)), NUMBERS.T)
    assert pickle.loads(pickle.dumps(copy)).read(np.array([5])).tolist() == [NUMBERS[:, 5].tolist()]


@pytest.mark.parametrize("kind", ["memmap", "memmap, column by column", "part of a memmap", "npy", "Zarr", "Parquet"])
def test_files_travel_by_their_path(kind: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(400, 30))
    assert len(pickle.dumps(as_columns(KINDS[kind](X, tmp_path)))) < 10_000 < X.nbytes


@pytest.mark.parametrize("kind", KINDS)
def test_threads_may_read_at_once(kind: str, tmp_path: Path) -> None:
    source = as_columns(KINDS[kind](NUMBERS, tmp_path))
    wanted = [np.random.default_rng(i).integers(0, 8, 5) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for columns, taken in zip(wanted, pool.map(source.read, wanted), strict=True):
            np.testing.assert_array_equal(taken, NUMBERS[:, columns].T)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_shape_and_any_chunks(data: Any) -> None:
    n_samples, n_columns = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 9))
    X = np.arange(n_samples * n_columns, dtype=np.float32).reshape(n_samples, n_columns) % 5
    columns = np.array(data.draw(st.lists(st.integers(0, n_columns - 1))), dtype=np.intp)
    first = data.draw(st.integers(0, n_samples))
    rows = slice(first, data.draw(st.integers(first, n_samples)))
    chunks = data.draw(st.integers(1, 15)), data.draw(st.integers(1, 12))
    kept = data.draw(st.sampled_from([0, 1, 100, 2**20]))
    cut = data.draw(st.integers(0, n_samples))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarrs, "KEPT_BYTES", kept)
        array = zarred(X, Path(folder), tuple(min(pair) for pair in zip(chunks, X.shape, strict=True)))
        for source in (as_columns(array), StackedRows([X[:cut], as_columns(sparse.csc_array(X[cut:]))])):
            np.testing.assert_array_equal(source.read(columns, rows), X[rows][:, columns].T)


def test_what_fits_in_memory_is_left_alone(tmp_path: Path) -> None:
    changed = np.memmap(mapped(NUMBERS, tmp_path).filename, NUMBERS.dtype, "c", shape=NUMBERS.shape)
    words = pa.table({"a": [1, 2], "b": ["x", "y"]})
    for X in (NUMBERS, NUMBERS.tolist(), changed, changed[:, 0], words, None):
        assert as_columns(X) is X


@pytest.mark.parametrize("kind", ["memmap", "memmap, column by column", "npy"])
def test_neighbours_in_a_mapping_are_not_copied(kind: str, tmp_path: Path) -> None:
    X = KINDS[kind](NUMBERS, tmp_path)
    assert np.shares_memory(as_columns(X).read(np.arange(2, 6)), X)
    assert as_columns(X).by_rows == (kind != "memmap, column by column")


def test_a_sparse_matrix_by_columns_is_not_copied() -> None:
    X = sparse.csc_array(NUMBERS)
    assert as_columns(X).matrix is X


def test_entries_that_are_given_twice_add_up() -> None:
    X = sparse.csc_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(3, 2))
    np.testing.assert_array_equal(as_columns(X).read(np.arange(2)), X.toarray().T)


def test_a_chunk_of_zarr_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = as_columns(zarred(np.arange(40.0).reshape(2, 20), tmp_path, (2, 10)))
    asked: list[Any] = []
    original = zarr.Array.__getitem__
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda array, key: asked.append(key) or original(array, key))
    for start in range(0, 20, 3):
        source.read(np.arange(start, min(start + 3, 20)))
    assert asked == [(slice(None), slice(0, 10)), (slice(None), slice(10, 20))]


def test_few_stripes_of_zarr_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarrs, "KEPT_BYTES", 2 * 11 * 3 * 8)  # two of them
    source = as_columns(zarred(NUMBERS, tmp_path))
    for columns in ([0, 4], [7], [0, 1, 2]):
        np.testing.assert_array_equal(source.read(np.array(columns)), NUMBERS[:, columns].T)
        assert len(source._stripes) <= 2
    assert list(source._stripes) == [2, 0]


def test_nulls_become_nan_and_booleans_numbers() -> None:
    X = pa.table({"a": [1, None], "b": [True, None], "c": pa.array([1, 2], pa.decimal128(5, 1))})
    np.testing.assert_array_equal(as_columns(X).read(np.arange(3)), [[1, np.nan], [1, np.nan], [1, 2]])


def test_few_columns_are_indexed_as_an_array_is() -> None:
    few = FewColumns(NUMBERS[:, [1, 5, 6]], np.array([1, 5, 6]), n_columns=8)
    np.testing.assert_array_equal(few[:, [6, 1]], NUMBERS[:, [6, 1]])
    np.testing.assert_array_equal(few[2:5][:, [5]], NUMBERS[2:5, [5]])
    assert (few[2:5].shape, few.dtype, len(few)) == ((3, 8), np.float64, 11)


def test_arrays_are_read_as_sources_are() -> None:
    np.testing.assert_array_equal(read_columns(NUMBERS, np.array([4, 1]), slice(2, 5)), NUMBERS[2:5, [4, 1]].T)
    assert np.shares_memory(read_columns(NUMBERS, np.array([4, 5])), NUMBERS)


# --- Parquet


def written(folder: Path, name: str = "x.parquet", **columns: Any) -> Path:
    parquet.write_table(pa.table(columns or {"a": [1, 2], "b": [0.5, 1.5], "t": ["x", "y"]}), folder / name)
    return folder / name


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert open_columns(file, exclude=["t"]).names == ["a", "b"]
    chosen = open_columns(str(file), columns=["b", "a"])
    assert (chosen.names, chosen.read(np.arange(2)).tolist()) == (["b", "a"], [[0.5, 1.5], [1, 2]])
    below = open_columns([file, file], columns=["a"])
    assert below.read(np.array([0])).tolist() == [[1, 2, 1, 2]]


def test_only_what_is_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, asked = parqueted(NUMBERS, tmp_path), []
    original = parquet.ParquetFile.read
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *a, **k: asked.append(k["columns"]) or original(*a, **k))
    source.read(np.array([3, 1, 3]))
    assert asked == [["c3", "c1"]] * 2


def test_names_may_hold_anything(tmp_path: Path) -> None:
    file = written(tmp_path, **{"a.b": [1], "a": [2], "": [3]})
    assert open_columns(file).read(np.arange(3)).tolist() == [[1], [2], [3]]


BAD_PARQUET: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({}, ValueError, r"x.parquet has columns that are no numbers, 't' \(string\): exclude them"),
    "unknown": ({"columns": ["z"]}, ValueError, r"columns names columns that the file doesn't have, \['z'\]: it has a"),
    "unknown to exclude": (
        {"exclude": ["z"]},
        ValueError,
        r"exclude names columns that the file doesn't have, \['z'\]",
    ),
    "nothing left": ({"exclude": ["a", "b", "t"]}, ValueError, "left without columns: exclude fewer"),
    "twice": ({"columns": ["a", "a"]}, ValueError, "the column 'a' is there twice"),
    "no list": ({"exclude": "t"}, TypeError, "exclude='t' must be lists of names"),
}


@pytest.mark.parametrize(("options", "error", "message"), BAD_PARQUET.values(), ids=BAD_PARQUET)
def test_bad_columns_of_a_file(options: Any, error: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        open_columns(written(tmp_path), **options)


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none.parquet' can't be read: .*no such file"):
        open_columns(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match=r"folder without files \*.parquet: open .npy by numpy.load"):
        open_columns(tmp_path)
    np.save(tmp_path / "x.npy", NUMBERS)
    with pytest.raises(ValueError, match=r"x.npy' is no Parquet file: open .npy by numpy.load"):
        open_columns(tmp_path / "x.npy")
    with pytest.raises(ValueError, match="path is an empty list"):
        open_columns([])
    with pytest.raises(ValueError, match=r"b.parquet has other columns than .*a.parquet"):
        open_columns([written(tmp_path, "a.parquet", a=[1]), written(tmp_path, "b.parquet", b=[1])])


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_files_of_several_types_have_what_holds_all(order: list[str], tmp_path: Path) -> None:
    values = {"a": np.array([1, 2], np.float32), "b": np.array([1e300, 3])}
    X = open_columns([written(tmp_path, f"{name}.parquet", x=values[name]) for name in order])
    assert X.dtype == np.float64
    assert X.read(np.array([0])).tolist() == [[*values[order[0]], *values[order[1]]]]


def test_pyarrow_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("ngp.data.sources.tables.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"open_columns needs pyarrow: install it with pip install .*\[parquet\]"):
        open_columns("x.parquet")
    assert as_columns(NUMBERS) is NUMBERS


def test_bad_arrays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a sparse array of 1 dimensions and type float64"):
        as_columns(sparse.coo_array(NUMBERS[:, 0]))
    with pytest.raises(ValueError, match="a Zarr array of 1 dimensions and type float64"):
        as_columns(zarr.create_array(tmp_path / "a.zarr", shape=(4,), dtype="float64"))
    with pytest.raises(ValueError, match="a Zarr array of 2 dimensions and type complex128"):
        as_columns(zarr.create_array(tmp_path / "b.zarr", shape=(4, 4), dtype="complex128"))


def test_names_that_repeat_are_left_to_the_encoder() -> None:
    X = pa.Table.from_arrays([table(NUMBERS)["c0"], table(NUMBERS)["c1"]], names=["a", "a"])
    assert as_columns(X) is X


def resident(file: Any) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))
        for header in lines
        if header.endswith(str(file))
    )


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system doesn't tell")
@pytest.mark.parametrize("order", ["C", "F"])
def test_pages_are_let_go_and_come_back(order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(50, 40_000))
    written = mapped(X, tmp_path, order)
    source = as_columns(written)
    all_of_it = source.read(np.arange(40_000))
    assert all_of_it.sum() == pytest.approx(X.sum())  # by which every page has been touched
    assert resident(written.filename) >= X.nbytes
    monkeypatch.setattr("ngp.data.sources.mapped.MOST_MAPPED", 2**20)
    for start in range(0, 40_000, 500):
        assert source.read(np.arange(start, start + 500)).tobytes() == X[:, start : start + 500].T.tobytes()
        assert resident(written.filename) < X.nbytes / 2  # the system maps neighbouring pages by itself
    np.testing.assert_array_equal(source.read(np.array([7, 3])), X[:, [7, 3]].T)
    np.testing.assert_array_equal(all_of_it, X.T)


def test_what_was_written_to_a_mapping_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngp.data.sources.mapped.MOST_MAPPED", 0)
    written = np.memmap(tmp_path / "x.dat", np.float64, "w+", shape=(300, 50))
    written[:] = X = np.random.default_rng(0).normal(size=(300, 50))
    source = as_columns(written)  # of what is on no disk yet
    for _ in range(3):
        np.testing.assert_array_equal(source.read(np.arange(50)), X.T)
    np.testing.assert_array_equal(written, X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(np.arange(50)), X.T)
