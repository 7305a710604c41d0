"""Reading a large CSV with pandas, pyarrow and polars: python -m benchmarks.reading.

Most columns are measurements, the others whole numbers, codes, text and days. Every reader runs in a process of its
own, in turn with the others, and ends with a pandas data frame, which is what `ngp select` works with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.memory import peak_mb

BLOCK = 20_000  # rows that are written at a time
N_FLOATS = 20


def write_table(path: Path, n_bytes: float) -> int:
    """Write a CSV of about this size, and return its number of rows."""
    import pandas as pd

    rng, n_rows = np.random.default_rng(0), 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < n_bytes:
            columns: dict[str, Any] = {f"x{i}": rng.normal(size=BLOCK).round(4 + 2 * (i % 4)) for i in range(N_FLOATS)}
            columns |= {f"n{i}": rng.integers(10**i, 10 ** (i + 2), BLOCK) for i in range(8)}
            columns |= {f"t{i}": rng.choice(["north", "south", "east", "Zürich"], BLOCK) for i in range(4)}
            columns |= {f"id{i}": [f"{number:08x}" for number in rng.integers(0, 2**32, BLOCK)] for i in range(2)}
            days = np.datetime64("2001-01-01") + rng.integers(0, 9000, BLOCK).astype("timedelta64[D]")
            pd.DataFrame(columns | {"day": days.astype(str)}).to_csv(file, index=False, header=n_rows == 0)
            n_rows += BLOCK
    return n_rows


def with_pandas(path: Path) -> Any:
    import pandas as pd

    return pd.read_csv(path, low_memory=False)


def with_pyarrow(path: Path) -> Any:
    import pandas as pd

    return pd.read_csv(path, engine="pyarrow")


def with_polars(path: Path, n_rows: int | None = None) -> Any:
    """Types of columns come from all rows, as with pandas, or from the first ones, so that later text is an error."""
    import polars as pl

    return pl.read_csv(path, infer_schema_length=n_rows).to_pandas()


def with_ngp(path: Path) -> Any:
    from ngp.cli.files import read_table

    return read_table(str(path)).frame


READERS: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "ngp": (with_ngp, ("pandas",)),
    "pandas": (with_pandas, ("pandas",)),
    "pyarrow": (with_pyarrow, ("pandas", "pyarrow")),
    "polars": (with_polars, ("pandas", "pyarrow", "polars")),
    "polars-10000": (partial(with_polars, n_rows=10_000), ("pandas", "pyarrow", "polars")),
}


def read_once(name: str, path: Path) -> dict[str, Any]:
    """Read with one of them, after its packages are loaded."""
    read, packages = READERS[name]
    for package in packages:
        __import__(package)
    before, processor, start = peak_mb(), process_time(), perf_counter()
    frame = read(path)
    seconds = {"seconds": perf_counter() - start, "processor_seconds": process_time() - processor}
    return {
        **seconds,
        "beside_mb": peak_mb() - before,
        "shape": list(frame.shape),
        "sum": float(frame.select_dtypes("number").to_numpy(np.float64).sum()),
    }


def in_its_own_process(name: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.reading", "--read", name, str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(folder: Path, gigabytes: float, repetitions: int) -> dict[str, Any]:
    path = folder / "large.csv"
    n_rows = write_table(path, gigabytes * 1e9)
    names = [name for name, (_, packages) in READERS.items() if all(map(find_spec, packages))]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(repetitions):
        for name in names:
            runs[name].append(run := in_its_own_process(name, path))
            times = f"{run['seconds']:8.2f} s{run['processor_seconds']:8.2f} s of processors"
            print(f"{name:14s}{times}{run['beside_mb']:8,.0f} MB", flush=True)
    first = runs[names[0]][0]
    readers = {
        name: {
            **{key: median(run[key] for run in of) for key in ("seconds", "processor_seconds", "beside_mb")},
            "alike": all(run["shape"] == first["shape"] and np.isclose(run["sum"], first["sum"]) for run in of),
            "runs": [run["seconds"] for run in of],
        }
        for name, of in runs.items()
    }
    return {"file": {"bytes": path.stat().st_size, "rows": n_rows}, "readers": readers}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the file")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the file is made, and removed again")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help="what each process is started with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args(arguments)
    if options.read:
        print(json.dumps(read_once(options.read[0], Path(options.read[1]))))
        return
    facts = machine_facts()
    facts |= {name: version(name) for name in ("pandas", "pyarrow", "polars") if find_spec(name)}
    print_facts(facts)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = compare(Path(folder), options.gigabytes, options.repetitions)
    save_json(options.json, {"machine": facts, **results})


if __name__ == "__main__":
    main()
