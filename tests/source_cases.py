"""The same numbers in every kind of X that need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zarr
from pyarrow import parquet
from scipy import sparse


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


def saved(X: Any, folder: Path) -> Any:
    file = folder / f"x{len(list(folder.iterdir()))}.npy"
    np.save(file, X)
    return np.load(file, mmap_mode="r")


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
    from ngp import open_columns

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
    "npy": saved,
    "CSC": lambda X, folder: sparse.csc_array(X),
    "CSR": lambda X, folder: sparse.csr_matrix(X),
    "COO": lambda X, folder: sparse.coo_array(X),
    "Zarr": zarred,
    "Zarr 2": lambda X, folder: zarred(X, folder, zarr_format=2),
    "Arrow": table,
    "Parquet": parqueted,
}
