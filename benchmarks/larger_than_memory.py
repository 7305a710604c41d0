"""A fit on an X that is larger than the memory, and what reading X from files costs.

python -m benchmarks.larger_than_memory

The large file is sparse: most of it are holes, which read as zeros and take no room on the disk. All of it is read.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json, side_by_side
from benchmarks.memory import peak_mb, status_mb
from ngp import NGPRegressor, open_columns
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.data.sources import as_columns
from ngp.predictors import SSFN
from ngp.predictors.base import ColumnSets

N_SAMPLES = 300
N_NOISE = 4000
# Columns that are written at a time: a whole number of pages in each row.
BLOCK = 2**16


def make_sparse_file(path: Path, gigabytes: float) -> tuple[Any, Any, list[int]]:
    """A float32 array, row by row, of which a block of noise and two relevant columns far apart are written."""
    n_columns = int(gigabytes * 1e9 / 4 / N_SAMPLES)
    X = np.memmap(path, np.float32, "w+", shape=(N_SAMPLES, n_columns))
    rng = np.random.default_rng(0)
    start = n_columns // 2
    X[:, start : start + N_NOISE] = rng.standard_normal((N_SAMPLES, N_NOISE))
    truth = [n_columns // 10, n_columns - 7]
    X[:, truth] = rng.standard_normal((N_SAMPLES, 2))
    y = np.sin(2 * X[:, truth[0]]) + X[:, truth[1]] ** 2 + 0.1 * rng.standard_normal(N_SAMPLES)
    X.flush()
    return np.memmap(path, np.float32, "r", shape=X.shape), y, truth


@contextmanager
def watched_memory(peak: dict[str, float]) -> Iterator[None]:
    """Note the most memory of the process's own (RssAnon), without pages of mapped files, which the system may drop."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak["own_mb"] = max(peak.get("own_mb", 0.0), status_mb("RssAnon") or 0.0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def fit_sparse_file(folder: Path, gigabytes: float) -> dict[str, Any]:
    """One fit, two features to select."""
    file = folder / "sparse.dat"
    X, y, truth = make_sparse_file(file, gigabytes)
    selector = NGPRegressor(n_features_to_select=2, n_jobs=-1, random_state=0)
    memory: dict[str, float] = {"before_mb": status_mb("RssAnon") or 0.0}
    begin = perf_counter()
    with watched_memory(memory), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has constant features")
        selector.fit(X, y)
    seconds = perf_counter() - begin
    begin = perf_counter()
    selector.predict(X)
    predict_seconds = perf_counter() - begin
    steps = sum(step.seconds for step in selector.path_)
    on_disk = os.stat(file).st_blocks * 512 / 1e9
    file.unlink()
    return {
        "gigabytes": X.nbytes / 1e9, "gigabytes_on_disk": on_disk, "shape": X.shape,
        "machine_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "fit_seconds": seconds, "seconds_of_the_steps": steps, "predict_seconds": predict_seconds,
        "peak_resident_mb": peak_mb(), **memory, "found": sorted(selector.order_.tolist()) == truth,
    }  # fmt: skip


def write_copies(folder: Path, shape: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    """The same random numbers in files row by row and column by column, and how to open them."""
    rows = np.memmap(folder / "rows.dat", np.float32, "w+", shape=shape)
    columns = np.memmap(folder / "columns.dat", np.float32, "w+", shape=shape, order="F")
    rng = np.random.default_rng(0)
    for start in range(0, shape[1], BLOCK):
        block = rng.standard_normal((shape[0], min(BLOCK, shape[1] - start)), dtype=np.float32)
        rows[:, start : start + BLOCK] = columns[:, start : start + BLOCK] = block
    rows.flush()
    columns.flush()
    return {
        "in memory": lambda: np.fromfile(folder / "rows.dat", np.float32).reshape(shape),
        "memmap, row by row": lambda: np.memmap(folder / "rows.dat", np.float32, "r", shape=shape),
        "memmap, column by column": lambda: np.memmap(folder / "columns.dat", np.float32, "r", shape=shape, order="F"),
    }


def write_formats(folder: Path, shape: tuple[int, int], chunk: int) -> dict[str, Callable[[], Any]]:
    """The same random numbers in other formats, and how to open them; all but the sparse matrix are dense."""
    import pyarrow as pa
    import zarr
    from pyarrow import parquet
    from scipy.sparse import random_array

    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    table = pa.table({f"x{i}": column for i, column in enumerate(values.T)})
    parquet.write_table(table, folder / "x.parquet")
    stored = zarr.create_array(folder / "x.zarr", shape=shape, chunks=(shape[0], chunk), dtype="float32")
    stored[:] = values
    sparse = random_array(shape, density=0.05, format="csc", dtype=np.float32, rng=np.random.default_rng(0))
    return {
        "in memory": lambda: values,
        "Zarr": lambda: zarr.open_array(folder / "x.zarr", mode="r"),
        "Arrow": lambda: table,
        "Parquet": lambda: open_columns(folder / "x.parquet"),
        "sparse, 5 %": lambda: sparse,
    }


def bind(X: Any) -> Any:
    """A scorer, before X has been looked at."""
    X = as_columns(X)
    y = np.random.default_rng(1).standard_normal(X.shape[0])
    problem = make_problem(X, y, groups=make_groups(None, X.shape[1]))
    return SSFN(n_draws=1).bind(problem, random_state=0, n_jobs=-1, device="cpu")


def drop_from_cache(folder: Path) -> None:
    """Make the system forget the files, so that they come from the disk."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def compare(folder: Path, kinds: dict[str, Callable[[], Any]], n_candidates: int, repetitions: int) -> list[Any]:
    """Seconds of the scan of X, from the disk and from the system's cache, and of a step over some candidates."""
    scorers = {name: bind(make()) for name, make in kinds.items()}
    n_columns = next(iter(scorers.values())).problem.n_columns
    candidates = ColumnSets.singles(np.arange(n_columns - min(n_candidates, n_columns), n_columns))
    scans = {name: partial(scan, scorer.problem) for name, scorer in scorers.items()}
    steps = {name: partial(scorer.add_losses, np.array([0]), candidates) for name, scorer in scorers.items()}
    cold = {}
    for name, task in scans.items():
        drop_from_cache(folder)
        cold[name] = side_by_side({name: task}, 1)[name][0]
    warm, step = (side_by_side(tasks, repetitions) for tasks in (scans, steps))
    first = next(iter(kinds))
    return [
        {
            "X": name,
            "scan_cold_seconds": cold[name],
            "scan_seconds": min(warm[name]),
            "step_seconds": min(step[name]),
            "scan_ratio": min(warm[name]) / min(warm[first]),
            "step_ratio": min(step[name]) / min(step[first]),
            "n_candidates": len(candidates),
        }
        for name in kinds
    ]


def scan(problem: Problem) -> None:
    """Look at all of X anew."""
    vars(problem).pop("column_statistics", None)
    problem.column_statistics  # noqa: B018


def print_rows(title: str, rows: list[Any]) -> None:
    print(f"\n{title}\n{'X':26s}   scan, disk  scan, cache       step   scan ratio   step ratio")
    for row in rows:
        cold, warm, step = (row[f"{name}_seconds"] for name in ("scan_cold", "scan", "step"))
        ratios = f"{row['scan_ratio']:12.2f} {row['step_ratio']:12.2f}"
        print(f"{row['X']:26s} {cold:10.2f} s {warm:10.2f} s {step:8.2f} s {ratios}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sparse-gigabytes", type=float, default=40)
    parser.add_argument("--real-gigabytes", type=float, default=2)
    parser.add_argument("--columns", type=int, default=10_000, help="of the other formats")
    parser.add_argument("--candidates", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files are made, and removed in the end")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    results: dict[str, Any] = {"machine": facts}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        large = results["large"] = fit_sparse_file(Path(name), options.sparse_gigabytes)
    print(f"\nA file of {large['gigabytes']:.1f} GB on a machine with {large['machine_gb']:.1f} GB")
    for key, value in large.items():
        print(f"  {key:22s} {value:.3g}" if isinstance(value, float) else f"  {key:22s} {value}")
    shape = (N_SAMPLES, int(options.real_gigabytes * 1e9 / 4 / N_SAMPLES))
    for key, write in (
        ("mapped", lambda folder: write_copies(folder, shape)),
        ("formats", lambda folder: write_formats(folder, (N_SAMPLES, options.columns), 1000)),
    ):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            results[key] = compare(folder, write(folder), options.candidates, options.repetitions)
    print_rows(f"{shape[0]} × {shape[1]} numbers, {options.candidates} candidates", results["mapped"])
    print_rows(f"{N_SAMPLES} × {options.columns} numbers, all candidates", results["formats"])
    save_json(options.json, results)


if __name__ == "__main__":
    main()
