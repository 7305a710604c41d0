"""Peak memory of one `fit` beside X: python -m benchmarks.memory 300 50000 2 (J, P, N)."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.data import make_wide_data


def fit_memory(n_samples: int, n_features: int, n_selected: int) -> dict[str, float]:
    """Run the measurement in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", str(n_samples), str(n_features), str(n_selected)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def status_mb(key: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(key + ":")), None)


def peak_mb() -> float:
    """Largest resident memory of this process so far.

    Linux' own figure is preferred: ru_maxrss also counts what the parent held when it started this process.
    """
    peak = status_mb("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return peak if peak is not None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    from ngp import NGPRegressor
    from ngp.predictors import SSFN

    n_samples, n_features, n_selected = map(int, sys.argv[1:])
    X, y = make_wide_data(n_samples, n_features, "float64")
    selector = NGPRegressor(SSFN(n_draws=1), n_features_to_select=n_selected, n_jobs=-1, random_state=0)
    before = status_mb("VmRSS") or peak_mb()
    selector.fit(X, y)
    print(json.dumps({"x_mb": X.nbytes / 2**20, "beside_x_mb": peak_mb() - before}))


if __name__ == "__main__":
    main()
