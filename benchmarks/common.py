"""What the benchmarks share: the machine's facts, timing side by side, means, results as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_info

import ngp
from ngp.kernels.scoring import _kernels


def machine_facts() -> dict[str, Any]:
    """What a reader needs to judge the figures; nothing that tells machines of the same kind apart."""
    facts = {
        "cpu": _cpu_name(),
        "cores": joblib.cpu_count(),
        "instruction_set": _kernels.use("")[0] if _kernels else "numpy",
        "blas": sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()}),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return facts | packages | _torch_facts() | {"ngp": ngp.__version__}


def _torch_facts() -> dict[str, str]:
    """Version of torch and name of the GPU, where there are such."""
    try:
        import torch
    except ImportError:
        return {}
    gpu = {"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}
    return {"torch": torch.__version__} | gpu


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def matmul_gflops(size: int) -> float:
    """Best rate of a float32 matrix product, in 10⁹ operations a second; BLAS threads as they come."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    seconds = side_by_side({"": lambda: np.matmul(a, b, out=out)}, 8)[""]
    return 2 * size**3 / min(seconds[1:]) / 1e9  # the first warms up


def side_by_side(tasks: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, list[float]]:
    """Seconds of each task, run in turn, so that a slow spell of the machine hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repetitions):
        for name, task in tasks.items():
            start = perf_counter()
            task()
            seconds[name].append(perf_counter() - start)
    return seconds


def mean_and_error(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean and its standard error, None of a single value; None where there is nothing to measure."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    error = float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else None
    return {"mean": float(np.mean(known)), "standard_error": error}


def save_json(path: Path | None, results: Mapping[str, Any]) -> None:
    """Write the results beside the file, then put them in its place."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    os.replace(new, path)
    print(f"\nwritten to {path}", file=sys.stderr)


def print_facts(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        print(f"{name:22s} {', '.join(value) if isinstance(value, list) else value}")
