"""X that need not fit in memory: every kind has the numbers of its array, and the same fit to the bit."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
from collections.abc import Callable
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
from joblib import parallel_config
from pyarrow import parquet
from scipy import sparse
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsRegressor

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor, compare, open_columns
from ngp.baselines import Correlation
from ngp.data import problem as problems
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, column_moments, make_problem
from ngp.data.sources import (
    ColumnSource,
    FewColumns,
    MappedColumns,
    StackedRows,
    ZarrColumns,
    as_columns,
    in_memory,
    read_columns,
)
from ngp.greedy.checkpoint import identity_of
from ngp.predictors import CNN, MLP, SSFN, ColumnSets, Kernel
from ngp.predictors.ssfn import SSFNGpuScorer

NUMBERS = np.random.default_rng(0).integers(-9, 10, (11, 8)) / 4
FAST = SSFN(n_units=12, n_draws=1, refit_units=12)
RNG = np.random.default_rng(0)
# Quarters, with many zeros: exact in every type, and worth a sparse matrix.
X = np.where(RNG.random((60, 9)) < 0.4, 0, RNG.integers(-12, 13, (60, 9)) / 4)
Y = X[:, 4] * 2 + np.abs(X[:, 1]) + 0.1 * RNG.normal(size=60)


def mapped(X: Any, folder: Path, order: Any = "C") -> Any:
    written = np.memmap(folder / f"x{len(list(folder.iterdir()))}.dat", X.dtype, "w+", shape=X.shape, order=order)
    written[:] = X
    written.flush()
    return np.memmap(written.filename, X.dtype, "r", shape=X.shape, order=order)


def part_of_mapping(X: Any, folder: Path) -> Any:
    """Every second row and a few columns of a larger one."""
    larger = np.full((2 * X.shape[0] + 1, X.shape[1] + 3), 7, X.dtype)
    larger[1::2, 2:-1] = X
    return mapped(larger, folder)[1::2, 2:-1]


def zarred(X: Any, folder: Path, chunks: tuple[int, int] = (7, 3), **options: Any) -> Any:
    path = folder / f"x{len(list(folder.iterdir()))}.zarr"
    array = zarr.create_array(path, shape=X.shape, chunks=chunks, dtype=X.dtype, **options)
    array[:] = X
    return zarr.open_array(path, mode="r")


def table(X: Any, folder: Path | None = None) -> pa.Table:
    """In several chunks."""
    whole = pa.table({f"c{i}": column for i, column in enumerate(X.T)})
    half = len(X) // 2
    return pa.concat_tables([whole.slice(0, half), whole.slice(half)])


def parqueted(X: Any, folder: Path) -> Any:
    """In two files, with the target beside X."""
    home = folder / f"x{len(list(folder.iterdir()))}"
    home.mkdir()
    whole = table(X).append_column("target", pa.array(["?"] * len(X)))
    for number, part in enumerate([whole.slice(0, 5), whole.slice(5)]):
        parquet.write_table(part, home / f"{number}.parquet", row_group_size=4)
    return open_columns(home, exclude=["target"])


KINDS: dict[str, Callable[[Any, Path], Any]] = {
    "memmap": mapped,
    "memmap, column by column": lambda X, folder: mapped(X, folder, "F"),
    "part of a memmap": part_of_mapping,
    "CSC": lambda X, folder: sparse.csc_array(X),
    "CSR": lambda X, folder: sparse.csr_matrix(X),
    "Zarr": zarred,
    "Zarr 2": lambda X, folder: zarred(X, folder, zarr_format=2),
    "Arrow": table,
    "Parquet": parqueted,
}


# --- Reading


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_those_of_the_array(kind: str, tmp_path: Path) -> None:
    for dtype in ("float32", "bool"):
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


@pytest.mark.parametrize("kind", ["part of a memmap", "CSR", "Zarr", "Parquet"])
def test_copies_and_threads_read_the_same(kind: str, tmp_path: Path) -> None:
    source = as_columns(KINDS[kind](NUMBERS, tmp_path))
    source.read(np.arange(3))  # opened or unpacked data are not pickled
    copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(source))))
    assert (copy.shape, copy.dtype, copy.names, copy.by_rows) == (
        source.shape, source.dtype, source.names, source.by_rows
    )  # fmt: skip
    np.testing.assert_array_equal(copy.read(np.arange(8)), NUMBERS.T)
    wanted = [np.random.default_rng(i).integers(0, 8, 5) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for columns, taken in zip(wanted, pool.map(source.read, wanted), strict=True):
            np.testing.assert_array_equal(taken, NUMBERS[:, columns].T)


def test_files_are_pickled_by_their_path(tmp_path: Path) -> None:
    for kind in ["part of a memmap", "Zarr", "Parquet"]:
        X = np.random.default_rng(0).normal(size=(400, 30))
        assert len(pickle.dumps(as_columns(KINDS[kind](X, tmp_path)))) < 10_000 < X.nbytes


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
        patch.setattr(ZarrColumns, "KEPT_BYTES", kept)
        array = zarred(X, Path(folder), tuple(min(pair) for pair in zip(chunks, X.shape, strict=True)))
        for source in (as_columns(array), StackedRows([X[:cut], as_columns(sparse.csc_array(X[cut:]))])):
            np.testing.assert_array_equal(source.read(columns, rows), X[rows][:, columns].T)


def test_what_fits_in_memory_is_returned_as_it_is(tmp_path: Path) -> None:
    changed = np.memmap(mapped(NUMBERS, tmp_path).filename, NUMBERS.dtype, "c", shape=NUMBERS.shape)
    words = pa.table({"a": [1, 2], "b": ["x", "y"]})
    for X in (NUMBERS, NUMBERS.tolist(), changed, changed[:, 0], words, None):
        assert as_columns(X) is X


def test_neighbours_in_a_mapping_and_sparse_matrices_by_columns_are_not_copied(tmp_path: Path) -> None:
    for order in ("C", "F"):
        data = mapped(NUMBERS, tmp_path, order)
        assert np.shares_memory(as_columns(data).read(np.arange(2, 6)), data)
        assert as_columns(data).by_rows == (order == "C")
    by_columns = sparse.csc_array(NUMBERS)
    assert as_columns(by_columns).matrix is by_columns
    assert np.shares_memory(read_columns(NUMBERS, np.array([4, 5])), NUMBERS)


def test_entries_that_are_given_twice_add_up() -> None:
    data = sparse.csc_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(3, 2))
    np.testing.assert_array_equal(as_columns(data).read(np.arange(2)), data.toarray().T)


def test_a_chunk_of_zarr_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = as_columns(zarred(np.arange(40.0).reshape(2, 20), tmp_path, (2, 10)))
    asked: list[Any] = []
    original = zarr.Array.__getitem__
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda array, key: asked.append(key) or original(array, key))
    for start in range(0, 20, 3):
        source.read(np.arange(start, min(start + 3, 20)))
    assert asked == [(slice(None), slice(0, 10)), (slice(None), slice(10, 20))]


def test_few_stripes_of_zarr_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZarrColumns, "KEPT_BYTES", 2 * 11 * 3 * 8)  # two of them
    source = as_columns(zarred(NUMBERS, tmp_path))
    for columns in ([0, 4], [7], [0, 1, 2]):
        np.testing.assert_array_equal(source.read(np.array(columns)), NUMBERS[:, columns].T)
        assert len(source._stripes) <= 2
    assert list(source._stripes) == [2, 0]


def test_nulls_become_nan_and_booleans_numbers() -> None:
    data = pa.table({"a": [1, None], "b": [True, None], "c": pa.array([1, 2], pa.decimal128(5, 1))})
    np.testing.assert_array_equal(as_columns(data).read(np.arange(3)), [[1, np.nan], [1, np.nan], [1, 2]])


def test_few_columns_are_indexed_as_an_array_is() -> None:
    few = FewColumns(NUMBERS[:, [1, 5, 6]], np.array([1, 5, 6]), n_columns=8)
    np.testing.assert_array_equal(few[:, [6, 1]], NUMBERS[:, [6, 1]])
    np.testing.assert_array_equal(few[2:5][:, [5]], NUMBERS[2:5, [5]])
    assert (few[2:5].shape, few.dtype, len(few)) == ((3, 8), np.float64, 11)


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


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    "nothing left": ({"exclude": ["a", "b", "t"]}, ValueError, "left without columns: exclude fewer"),
    "twice": ({"columns": ["a", "a"]}, ValueError, "the column 'a' is there twice"),
    "no list": ({"exclude": "t"}, TypeError, "exclude='t' must be lists of names"),
}


def test_bad_columns_of_a_file(tmp_path: Path) -> None:
    for options, error, message in BAD_PARQUET.values():
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


def test_files_of_several_types_have_the_type_that_holds_all(tmp_path: Path) -> None:
    first, second = np.array([1, 2], np.float32), np.array([1e300, 3])
    data = open_columns([written(tmp_path, "a.parquet", x=first), written(tmp_path, "b.parquet", x=second)])
    assert data.dtype == np.float64
    assert data.read(np.array([0])).tolist() == [[*first, *second]]


def test_pyarrow_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("ngp.data.sources.find_spec", lambda name: None)
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


def test_repeated_names_are_left_to_the_encoder() -> None:
    data = pa.Table.from_arrays([table(NUMBERS)["c0"], table(NUMBERS)["c1"]], names=["a", "a"])
    assert as_columns(data) is data


# --- Memory


def resident(file: Any) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))
        for header in lines
        if header.endswith(str(file))
    )


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc")
def test_pages_are_released_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(50, 40_000))
    written = mapped(X, tmp_path)
    source = as_columns(written)
    all_of_it = source.read(np.arange(40_000))
    assert all_of_it.sum() == pytest.approx(X.sum())  # by which every page has been touched
    assert resident(written.filename) >= X.nbytes
    monkeypatch.setattr(MappedColumns, "MOST_MAPPED", 2**20)
    for start in range(0, 40_000, 500):
        assert source.read(np.arange(start, start + 500)).tobytes() == X[:, start : start + 500].T.tobytes()
        assert resident(written.filename) < X.nbytes / 2  # the system maps neighbouring pages by itself
    np.testing.assert_array_equal(source.read(np.array([7, 3])), X[:, [7, 3]].T)
    np.testing.assert_array_equal(all_of_it, X.T)


def test_what_was_written_to_a_mapping_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MappedColumns, "MOST_MAPPED", 0)
    written = np.memmap(tmp_path / "x.dat", np.float64, "w+", shape=(300, 50))
    written[:] = X = np.random.default_rng(0).normal(size=(300, 50))
    source = as_columns(written)  # of what is on no disk yet
    for _ in range(3):
        np.testing.assert_array_equal(source.read(np.arange(50)), X.T)
    np.testing.assert_array_equal(written, X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(np.arange(50)), X.T)


# --- Fits


def fit(data: Any, predictor: Any = FAST, y: Any = Y, **options: Any) -> NGPRegressor:
    return NGPRegressor(predictor, **{"n_features_to_select": 3, "random_state": 0, **options}).fit(data, y)


def bits(selector: NGPRegressor, data: Any) -> list[Any]:
    predicted = selector.predict(data)
    return [selector.order_.tolist(), selector.losses_.tobytes(), selector.support_.tolist(), predicted.tobytes()]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_bits_of_the_array(kind: str, tmp_path: Path) -> None:
    dense = (4 * X).astype("float32" if kind in ("Arrow", "memmap") else "int16")
    data = KINDS[kind](dense, tmp_path)
    expected, selector = fit(dense), fit(data)
    assert bits(selector, data) == bits(expected, dense)
    assert selector.predict(dense).tobytes() == expected.predict(dense).tobytes()
    assert selector.score(data, Y) == expected.score(dense, Y)
    reduced = selector.transform(data)
    assert sparse.issparse(reduced) == sparse.issparse(data)
    reduced = reduced.toarray() if sparse.issparse(reduced) else reduced
    np.testing.assert_array_equal(reduced, dense[:, expected.support_])
    assert reduced.dtype == as_columns(data).dtype


def tiny_network(shape: Any, n_outputs: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, n_outputs))


PREDICTORS: dict[str, Any] = {
    "ssfn": SSFN(n_units=10, n_draws=2),
    "kernel": Kernel(),
    "mlp": MLP(n_units=5, epochs=2),
    "cnn": CNN(image_shape=(3, 3), epochs=1, network=tiny_network),
    "neighbours": KNeighborsRegressor(3),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_predictor_takes_sources(name: str) -> None:
    if name in ("mlp", "cnn"):
        pytest.importorskip("torch")
    data = sparse.csr_array(X)
    options = {"n_features_to_select": 2, "cv": 3}
    selector = fit(data, PREDICTORS[name], **options)
    assert bits(selector, data) == bits(fit(X, PREDICTORS[name], **options), X)


OPTIONS: dict[str, dict[str, Any]] = {
    "groups": {"groups": [[0, 4], [1], [2, 3, 4]], "n_features_to_select": 2},
    "fixed": {"fixed": [7]},
    "hold-out": {"cv": 0.3},
    "threads": {"n_jobs": 2},
}


def test_every_option_takes_sources(tmp_path: Path) -> None:
    for options in OPTIONS.values():
        data = zarred(X, tmp_path)
        assert bits(fit(data, **options), data) == bits(fit(X, **options), X)


def test_weights_and_splitters(tmp_path: Path) -> None:
    weights, groups = RNG.integers(0, 3, 60), np.arange(60) // 6
    selector = NeuralGreedyPursuit(FAST, n_features_to_select=2, cv=GroupKFold(3), random_state=0)
    found = [
        selector.fit(each, Y, sample_weight=weights, cv_groups=groups).losses_ for each in (mapped(X, tmp_path), X)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", ["memmap", "CSC", "Parquet"])
def test_explicit_validation_sets(kind: str, tmp_path: Path) -> None:
    (train, val), (y, y_val) = np.split(X, [40]), np.split(Y, [40])
    expected = fit(train, y=y, cv=(val, y_val)).losses_
    one, other = KINDS[kind](train, tmp_path), KINDS[kind](val, tmp_path)
    for data, validation in ((one, other), (one, val), (train, other)):
        np.testing.assert_array_equal(fit(data, y=y, cv=(validation, y_val)).losses_, expected)
    with pytest.raises(ValueError, match=r"cv=\(X, y\) of shapes \(20, 8\) and \(20,\) doesn't fit X with 9 columns"):
        fit(one, y=y, cv=(KINDS[kind](val[:, :8], tmp_path), y_val))


def test_gpu_scorer_reads_sources() -> None:
    pytest.importorskip("torch")

    def losses(data: Any, resident: bool) -> Any:
        problem = problem_of(data)
        scorer = SSFNGpuScorer(SSFN(n_units=12, dtype="float64"), problem, 0, None, n_layers=1, ridge=0.003, gpu="cpu")
        if not resident:
            vars(scorer)["_resident"] = None
        parts = scorer.add_losses(np.array([4]), ColumnSets.singles(np.array([0, 1, 8]))).parts
        assert np.isfinite(parts).all()
        return parts

    for resident in (True, False):
        np.testing.assert_array_equal(losses(as_columns(sparse.csr_array(X)), resident), losses(X, resident))


def test_classes_have_probabilities() -> None:
    y = np.where(np.median(Y) < Y, "high", "low")
    data = sparse.csr_array(X)
    selector, expected = (
        NGPClassifier(FAST, n_features_to_select=3, random_state=0).fit(each, y) for each in (data, X)
    )
    np.testing.assert_array_equal(selector.predict(data), expected.predict(X))
    np.testing.assert_array_equal(selector.predict_proba(data), expected.predict_proba(X))


# --- Names


@pytest.mark.parametrize("make", [parqueted, table])
def test_names_are_those_of_the_columns(make: Any, tmp_path: Path) -> None:
    data = make(X, tmp_path)
    selector = fit(data, fixed=["c7"], groups={"first": ["c0", "c4"], "second": ["c1"]}, n_features_to_select=3)
    assert selector.feature_names_in_.tolist() == [f"c{i}" for i in range(9)]
    assert set(selector.get_feature_names_out()) == {"c0", "c1", "c4", "c7"}
    assert selector.path_[1].name == "first"
    frame = pytest.importorskip("pandas").DataFrame(X, columns=selector.feature_names_in_)
    assert selector.predict(frame).tobytes() == selector.predict(data).tobytes()
    assert list(selector.set_output(transform="pandas").transform(data)) == ["c0", "c1", "c4", "c7"]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    selector = fit(table(X))
    with pytest.raises(ValueError, match="X has the column 'c1' where fit saw 'c0': pass the same columns"):
        selector.predict(table(X).select([f"c{i}" for i in (1, 0, 2, 3, 4, 5, 6, 7, 8)]))
    for data in (mapped(X[:, :8], tmp_path), sparse.csr_array(X[:, :8])):
        for method in (selector.predict, selector.transform):
            with pytest.raises(ValueError, match="X has 8 features, but NGPRegressor is expecting 9"):
                method(data)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_arrow_tables_with_categories_stay_data_frames() -> None:
    data = table(X).append_column("town", pa.array(["a", "b"] * 30).dictionary_encode())
    selector = fit(data, y=Y + 9 * (np.arange(60) % 2))
    assert selector.support_[9]
    with pytest.raises(ValueError, match="fit saw a data frame with category columns"):
        selector.predict(sparse.csr_array(np.hstack([X, X[:, :1]])))


# --- What is refused


@pytest.mark.parametrize(
    ("kind", "value"), [("memmap", np.nan), ("CSR", -np.inf), ("Zarr", np.inf), ("Parquet", np.nan)]
)
def test_a_column_with_gaps_is_named(kind: str, value: float, tmp_path: Path) -> None:
    spoiled = X.copy()
    spoiled[17, 6] = value
    data = KINDS[kind](spoiled, tmp_path)
    name = "c6" if kind in ("Arrow", "Parquet") else "x6"
    message = f"X has NaN or infinity in the column '{name}': drop rows or columns with gaps"
    with pytest.raises(ValueError, match=message):
        fit(data)
    selector = fit(X, n_features_to_select=9)
    for method in (selector.predict, selector.transform):
        with pytest.raises(ValueError, match="X has NaN or infinity in the column"):
            method(data)
    without = fit(X, n_features_to_select=2)
    assert not without.support_[6]
    np.testing.assert_array_equal(without.predict(data), without.predict(X))  # the column isn't read


def test_gaps_in_rows_without_weight_are_named(tmp_path: Path) -> None:
    spoiled = X.copy()
    spoiled[50, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in the column 'x2'"):
        fit(mapped(spoiled[:40], tmp_path), y=Y[:40], cv=(mapped(spoiled[40:], tmp_path), Y[40:]))
    weights = np.ones(60)
    weights[50] = 0
    with pytest.raises(ValueError, match="NaN or infinity in the column 'x2'"):
        NeuralGreedyPursuit(FAST).fit(mapped(spoiled, tmp_path), Y, weights)


def test_bad_targets_and_shapes(tmp_path: Path) -> None:
    data = mapped(X, tmp_path)
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        fit(data, y=None)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        fit(data, y=Y[:-1])
    with pytest.raises(ValueError, match=r"X has the shape \(1, 9\): give at least 2 samples and 1 feature"):
        fit(data[:1], y=Y[:1])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        fit(data[:, 0])
    with pytest.raises(ValueError, match="X has only constant columns"):
        fit(sparse.csc_array((60, 9)))


def test_other_methods_need_an_array(tmp_path: Path) -> None:
    for data, name in ((parqueted(X, tmp_path), "ParquetColumns"), (sparse.csr_array(X), "csr_array")):
        with pytest.raises(
            TypeError, match=f"Correlation needs X as an array in memory, and X is a {name}: give an ar"
        ):
            Correlation().fit(data, Y)
        with pytest.raises(TypeError, match=f"ngp.compare needs X as an array in memory, and X is a {name}"):
            compare(data, Y)
    few = Correlation(n_features_to_select=2).fit(X, Y)
    np.testing.assert_array_equal(few.transform(mapped(X, tmp_path)), few.transform(X))


def test_chunks_that_are_too_wide_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZarrColumns, "KEPT_BYTES", 60 * 5 * 8 - 1)
    data = zarred(X, tmp_path, (60, 5))
    with pytest.warns(UserWarning, match=r"chunks of X are 5 columns wide.* Store X .* chunks=\(60, 100\)") as warned:
        selector = fit(data)
    assert Path(warned[0].filename).name == Path(__file__).name
    np.testing.assert_array_equal(selector.losses_, fit(X).losses_)


# --- Moments


def problem_of(data: Any, **options: Any) -> Problem:
    return make_problem(data, Y, groups=make_groups(None, 9), **options)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_moments_do_not_depend_on_how_x_is_stored(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n_samples, n_columns = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 6))
    units = 10.0 ** rng.choice([-300, -160, -3, 0, 3, 160, 300], n_columns)
    values = rng.normal(5, 2, (n_samples, n_columns))
    values[:, data.draw(st.integers(0, n_columns - 1))] = 0.1
    values *= units
    weights = rng.integers(0, 3, n_samples).astype(float)
    weights[data.draw(st.integers(0, n_samples - 1))] = 1
    cut = data.draw(st.integers(0, n_samples))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "SCAN_ROWS", data.draw(st.integers(1, 40)))
        found = column_moments(values, weights)
        stacked = StackedRows([np.asfortranarray(values[:cut]), values[cut:]])
        for other in (values, np.asfortranarray(values), as_columns(sparse.csc_array(values)), stacked):
            again = column_moments(other, weights)
            assert [each.tobytes() for each in again] == [each.tobytes() for each in found]
    values = values / units
    mean = np.average(values, axis=0, weights=weights)
    np.testing.assert_allclose(found.mean / units, mean, rtol=1e-12)
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(found.deviation / units, deviation, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.low / units, values[weights > 0].min(axis=0), rtol=1e-15)
    np.testing.assert_allclose(found.high / units, values[weights > 0].max(axis=0), rtol=1e-15)


def test_many_rows_are_read_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "SCAN_ROWS", 7)
    asked: list[slice] = []
    source = as_columns(mapped(X, tmp_path))
    original = type(source).read
    monkeypatch.setattr(type(source), "read", lambda self, c, rows: asked.append(rows) or original(self, c, rows))
    column_moments(source, np.ones(60))
    assert [rows.start for rows in asked] == list(range(0, 60, 7))  # no row is read twice
    asked.clear()
    column_moments(as_columns(mapped(X, tmp_path, "F")), np.ones(60))
    assert asked == [slice(0, 60)]


def test_a_column_that_is_constant_in_slabs_varies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "SCAN_ROWS", 30)
    steps, constant = np.repeat([1.0, 3.0], 30), np.full(60, 0.1)
    problem = make_problem(np.column_stack([steps, constant]), Y, groups=make_groups(None, 2))
    np.testing.assert_allclose(problem.column_statistics, [[2, 0.1], [1, 0]], rtol=1e-12)
    assert problem.varies.tolist() == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_vary_however_large_their_mean_is(kind: str, tmp_path: Path) -> None:
    whole = np.rint(X * 100)
    shifted = 1e15 + whole
    shifted[:, 2] = 1e15
    problem = problem_of(as_columns(KINDS[kind](shifted, tmp_path)))
    assert problem.varies.tolist() == (np.arange(9) != 2).tolist()
    kept = problem.varies
    np.testing.assert_allclose(problem.column_scales[1][kept], whole.std(axis=0)[kept], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_too_far_apart_are_refused(kind: str, tmp_path: Path) -> None:
    far = X.copy()
    far[:, 4] = np.where(np.arange(len(X)) == 7, -1.7e308, 1.7e308)
    name = "x4" if (source := as_columns(KINDS[kind](far, tmp_path))).names is None else source.names[4]
    message = f"X has numbers from -1.7e+308 to 1.7e+308 in the column '{name}', .*: divide the column by a constant"
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        _ = problem_of(source).column_statistics


# --- Bigger than memory, and other processes


def test_a_fit_needs_memory_for_a_few_columns_only(tmp_path: Path) -> None:
    shape = (100, 60_000)
    data = np.memmap(tmp_path / "x.dat", np.float32, "w+", shape=shape)  # 24 MB, 48 in double precision
    data[:, 30_000:30_050] = np.random.default_rng(0).normal(size=(100, 50))
    tracemalloc.start()
    with pytest.warns(UserWarning, match="X has constant features, 59950 of 60000"):
        selector = fit(data, y=data[:, 30_007] ** 2, n_features_to_select=1)
    selector.predict(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert selector.order_.tolist() == [30_007]
    assert peak < 12e6  # some vectors with a number for each column, 0.5 MB each


@pytest.mark.filterwarnings("ignore:X has constant features")
@pytest.mark.parametrize("predictor", [FAST, Kernel()])
def test_sparse_matrices_are_never_made_dense(predictor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sparse.random_array((200, 5000), density=0.001, format="csc", rng=np.random.default_rng(0))
    made: list[int] = []
    original = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array, "toarray", lambda self, *a, **k: made.append(np.prod(self.shape)) or original(self, *a, **k)
    )
    monkeypatch.setattr(sparse.csc_array, "toarray", None)
    y = np.asarray(data[:, [5]].sum(axis=1)) + np.random.default_rng(0).normal(size=(200, 1))
    selector = fit(data, predictor, y=y[:, 0], n_features_to_select=1, cv=2)
    selector.predict(data)
    assert 0 < max(made) <= data.shape[0] * data.shape[1] / 4


def test_a_problem_on_disk_is_pickled_without_its_numbers(tmp_path: Path) -> None:
    large = np.random.default_rng(0).normal(size=(60, 2000))
    for data in (mapped(large, tmp_path), zarred(large, tmp_path, (60, 100))):
        problem = make_problem(as_columns(data), Y, groups=make_groups(None, 2000))
        sent = pickle.dumps(problem)
        assert len(sent) < large.nbytes / 10
        np.testing.assert_array_equal(pickle.loads(sent).columns(np.arange(2000)), large.T)
        np.testing.assert_array_equal(pickle.loads(sent).column_statistics, problem.column_statistics)


@pytest.mark.slow
def test_other_processes_read_by_themselves(tmp_path: Path) -> None:
    expected = fit(X).losses_
    with parallel_config(backend="loky", n_jobs=2):
        for kind in ("part of a memmap", "CSC", "Zarr", "Parquet"):
            np.testing.assert_array_equal(fit(KINDS[kind](X, tmp_path)).losses_, expected)


@pytest.mark.parametrize("kind", ["memmap", "CSR", "Zarr"])
def test_checkpoints_know_numbers_not_files(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    (tmp_path / "data").mkdir()
    whole = fit(X, checkpoint=file)
    data = KINDS[kind](X, tmp_path / "data")
    assert bits(fit(data, checkpoint=file), data) == bits(whole, X)
    other = X.copy()
    other[3, 3] += 1
    with pytest.raises(ValueError, match=r"is the checkpoint of another run \(other X"):
        fit(KINDS[kind](other, tmp_path / "data"), checkpoint=file)


def test_identity_is_the_same_for_every_chunk_of_a_zarr_array(tmp_path: Path) -> None:
    names = {identity_of(problem_of(as_columns(zarred(X, tmp_path, (60, n)))), np.zeros(0), {})["X"] for n in (1, 4, 9)}
    assert names == {identity_of(problem_of(X), np.zeros(0), {})["X"]}


def test_report_of_a_source(tmp_path: Path) -> None:
    from ngp.report.result import Result

    data = mapped(X, tmp_path)
    selector = fit(data)
    assert Result.of(selector, data, Y).correlations == Result.of(selector, X, Y).correlations
    image = Result.of(selector, sparse.csr_array(X), Y, image_shape=(3, 3)).image
    assert image == Result.of(selector, X, Y, image_shape=(3, 3)).image
    assert in_memory(X) is X
