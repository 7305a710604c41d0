"""A fit finds the same, to the last bit, whatever kind of X holds the numbers, and never holds all of them."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from source_cases import KINDS, mapped, parqueted, table, zarred

from ngp import NeuralGreedyPursuit, compare, scan
from ngp.baselines import Correlation
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.data.scan import column_moments
from ngp.data.sources import StackedRows, as_columns, in_memory
from ngp.greedy.checkpoint import identity_of
from ngp.predictors import CNN, MLP, SSFN, Kernel
from ngp.predictors.ssfn_gpu import SSFNGpuScorer

FAST = SSFN(n_units=12, n_draws=1, refit_units=12)
RNG = np.random.default_rng(0)
# Quarters, with many zeros: exact in every type, and worth a sparse matrix.
X = np.where(RNG.random((60, 9)) < 0.4, 0, RNG.integers(-12, 13, (60, 9)) / 4)
Y = X[:, 4] * 2 + np.abs(X[:, 1]) + 0.1 * RNG.normal(size=60)


def fit(data: Any, predictor: Any = FAST, y: Any = Y, **options: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(predictor, **{"n_features_to_select": 3, "random_state": 0, **options}).fit(data, y)


def bits(selector: NeuralGreedyPursuit, data: Any) -> list[Any]:
    predicted = selector.predict(data)
    return [selector.order_.tolist(), selector.losses_.tobytes(), selector.support_.tolist(), predicted.tobytes()]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_bits_of_the_array(kind: str, dtype: str, tmp_path: Path) -> None:
    dense = (4 * X).astype(dtype)
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
    "ssfn, as it is": SSFN(n_units=10, n_draws=1, standardize=False, redraw=True),
    "kernel": Kernel(gamma="median"),
    "mlp": MLP(n_units=5, epochs=2),
    "cnn": CNN(image_shape=(3, 3), epochs=1, network=tiny_network),
    "ridge": Ridge(),
    "neighbours": KNeighborsRegressor(3),
    "two": [FAST, Ridge()],
}


@pytest.mark.parametrize("kind", ["memmap", "CSR", "Parquet"])
@pytest.mark.parametrize("name", PREDICTORS)
def test_every_predictor_takes_sources(name: str, kind: str, tmp_path: Path) -> None:
    if name in ("mlp", "cnn"):
        pytest.importorskip("torch")
    data = KINDS[kind](X, tmp_path)
    options = {"n_features_to_select": 2, "cv": 3}
    selector = fit(data, PREDICTORS[name], **options)
    assert bits(selector, data) == bits(fit(X, PREDICTORS[name], **options), X)


OPTIONS: dict[str, dict[str, Any]] = {
    "groups": {"groups": [[0, 4], [1], [2, 3, 4]], "n_features_to_select": 2},
    "fixed": {"fixed": [7]},
    "leave one out": {"cv": "loo"},
    "hold-out": {"cv": 0.3},
    "threads": {"n_jobs": 2},
    "splits": {"cv": [(np.arange(30), np.arange(30, 60))]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", ["memmap", "CSC", "Zarr"])
def test_every_option_takes_sources(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    data = KINDS[kind](X, tmp_path)
    assert bits(fit(data, **options), data) == bits(fit(X, **options), X)


def test_weights_and_splitters(tmp_path: Path) -> None:
    weights, groups = RNG.integers(0, 3, 60), np.arange(60) // 6
    for data in (mapped(X, tmp_path), sparse.csc_matrix(X)):
        found = [
            NeuralGreedyPursuit(FAST, n_features_to_select=2, cv=GroupKFold(3), random_state=0)
            .fit(each, Y, sample_weight=weights, cv_groups=groups)
            .losses_
            for each in (data, X)
        ]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", KINDS)
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
        scorer = SSFNGpuScorer(FAST, problem, 0, None, np.dtype("float64"), gpu="cpu")
        if not resident:
            vars(scorer)["_resident"] = None
        from ngp.predictors import ColumnSets

        return scorer.add_losses(np.array([4]), ColumnSets.singles(np.array([0, 1, 8]))).parts

    for resident in (True, False):
        np.testing.assert_array_equal(losses(as_columns(sparse.csr_array(X)), resident), losses(X, resident))


def test_classes_have_probabilities() -> None:
    y = np.where(np.median(Y) < Y, "high", "low")
    data = sparse.csr_array(X)
    selector, expected = fit(data, y=y), fit(X, y=y)
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
            with pytest.raises(ValueError, match="X has 8 features, but NeuralGreedyPursuit is expecting 9"):
                method(data)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_arrow_tables_with_categories_stay_data_frames() -> None:
    data = table(X).append_column("town", pa.array(["a", "b"] * 30).dictionary_encode())
    selector = fit(data, y=Y + 9 * (np.arange(60) % 2))
    assert selector.support_[9]
    with pytest.raises(ValueError, match="fit saw a data frame with category columns"):
        selector.predict(sparse.csr_array(np.hstack([X, X[:, :1]])))


# --- What is refused


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_named(kind: str, value: float, tmp_path: Path) -> None:
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


def test_others_refuse_what_is_not_in_memory(tmp_path: Path) -> None:
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
    monkeypatch.setattr("ngp.data.sources.zarrs.KEPT_BYTES", 60 * 5 * 8 - 1)
    data = zarred(X, tmp_path, (60, 5))
    with pytest.warns(UserWarning, match=r"chunks of X are 5 columns wide.* Store X .* chunks=\(60, 100\)") as warned:
        selector = fit(data)
    assert Path(warned[0].filename).name == "test_fit.py"
    np.testing.assert_array_equal(selector.losses_, fit(X).losses_)


# --- Moments


def problem_of(data: Any, **options: Any) -> Problem:
    return make_problem(data, Y, groups=make_groups(None, 9), **options)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_moments_do_not_depend_on_how_x_is_stored(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n_samples, n_columns = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 6))
    values = rng.normal(5, 2, (n_samples, n_columns)) * 10.0 ** rng.integers(-3, 4, n_columns)
    values[:, data.draw(st.integers(0, n_columns - 1))] = 0.1
    weights = rng.integers(0, 3, n_samples).astype(float)
    weights[data.draw(st.integers(0, n_samples - 1))] = 1
    cut = data.draw(st.integers(0, n_samples))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "SCAN_ROWS", data.draw(st.integers(1, 40)))
        found = column_moments(values, weights)
        patch.setattr(scan, "SCAN_COLUMNS", data.draw(st.integers(1, 4)))
        patch.setattr(scan, "SCAN_NUMBERS", data.draw(st.integers(1, 100)))
        stacked = StackedRows([np.asfortranarray(values[:cut]), values[cut:]])
        for other in (values, np.asfortranarray(values), as_columns(sparse.csc_array(values)), stacked):
            again = column_moments(other, weights)
            assert (again.mean.tobytes(), again.variance.tobytes()) == (found.mean.tobytes(), found.variance.tobytes())
    mean = np.average(values, axis=0, weights=weights)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    variance = np.average((values - mean) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9, atol=1e-24)


def test_many_rows_are_read_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "SCAN_ROWS", 7)
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
    monkeypatch.setattr(scan, "SCAN_ROWS", 30)
    steps, constant = np.repeat([1.0, 3.0], 30), np.full(60, 0.1)
    problem = make_problem(np.column_stack([steps, constant]), Y, groups=make_groups(None, 2))
    np.testing.assert_allclose(problem.column_statistics, [[2, 0.1], [1, 0]], rtol=1e-12)
    assert problem.varies.tolist() == [True, False]


# --- Bigger than memory, and other processes


def test_a_fit_needs_memory_for_a_few_columns_only(tmp_path: Path) -> None:
    shape = (100, 60_000)
    data = np.memmap(tmp_path / "x.dat", np.float32, "w+", shape=shape)  # 24 MB, 48 in double precision
    data[:, 30_000:30_200] = np.random.default_rng(0).normal(size=(100, 200))
    tracemalloc.start()
    with pytest.warns(UserWarning, match="X has constant features, 59800 of 60000"):
        selector = fit(data, y=data[:, 30_007] ** 2, n_features_to_select=1)
    selector.predict(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert selector.order_.tolist() == [30_007]
    assert peak < 12e6  # some vectors with a number for each column, 0.5 MB each


@pytest.mark.filterwarnings("ignore:X has constant features")
@pytest.mark.parametrize("predictor", [FAST, Ridge(), Kernel()])
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


def test_a_problem_on_disk_travels_lightly(tmp_path: Path) -> None:
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
        for kind in ("memmap", "part of a memmap", "CSC", "Zarr", "Parquet"):
            np.testing.assert_array_equal(fit(KINDS[kind](X, tmp_path)).losses_, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_know_numbers_not_files(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    (tmp_path / "data").mkdir()
    whole = fit(X)
    seen: list[int] = []
    fit(X, checkpoint=file, n_features_to_select=3, callback=lambda step: step.n_selected == 2)
    data = KINDS[kind](X, tmp_path / "data")
    if kind in ("Arrow", "Parquet"):  # whose columns have names, which are part of the result
        with pytest.raises(ValueError, match=r"is the checkpoint of another run \(other groups"):
            fit(data, checkpoint=file)
        return
    resumed = fit(data, checkpoint=file, callback=lambda step: seen.append(step.n_selected))
    assert seen == [3]
    assert bits(resumed, data) == bits(whole, X)
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
