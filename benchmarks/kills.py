"""Kill a fit at random moments, and see whether each goes on to the result of a fit that was left alone.

python -m benchmarks.kills --kills 100
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ngp import NGPRegressor
from ngp.datasets import make_artificial
from ngp.greedy.checkpoint import Checkpoint, steps_as_arrays

N_FEATURES = 20


def fit(checkpoint: Path | None) -> NGPRegressor:
    """A second or two of work, in many steps."""
    X, y, _ = make_artificial(300, 150, random_state=0)
    return NGPRegressor(n_features_to_select=N_FEATURES, checkpoint=checkpoint, random_state=0).fit(X, y)


def fingerprint(selector: NGPRegressor) -> bytes:
    """All bits of the path but the times, and of some predictions."""
    arrays = steps_as_arrays([replace(step, seconds=0.0) for step in selector.path_])
    X, _, _ = make_artificial(50, 150, random_state=1)
    return b"".join(array.tobytes() for array in arrays.values()) + selector.predict(X).tobytes()


def start(file: Path) -> subprocess.Popen[str]:
    """Start a fit in a process of its own, and wait until it has read its data."""
    command = [sys.executable, "-m", "benchmarks.kills", "--run", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "begin\n"
    return process


def kill_one(file: Path, delay: float) -> int | None:
    """Kill a fit after a while, and say how many steps its checkpoint has, -1 if there is none.

    None if the fit had ended by itself: that is no kill.
    """
    process = start(file)
    time.sleep(delay)
    ended = process.poll() is not None
    process.kill()
    process.wait()
    if ended:
        return None
    saved = Checkpoint.read(file)  # which refuses what is half-written
    return -1 if saved is None else len(saved.steps) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print("begin", flush=True)
        fit(options.run)
        return
    expected, rng = fingerprint(fit(None)), np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        process, begin = start(Path(folder) / "whole.npz"), time.perf_counter()
        process.wait()
        whole = time.perf_counter() - begin
        steps: list[int] = []
        different = late = 0
        while len(steps) < options.kills:
            file = Path(folder) / f"{len(steps)}-{late}.npz"
            made = kill_one(file, rng.uniform(0, 1) * whole)
            if made is None:
                late += 1
                continue
            steps.append(made)
            different += fingerprint(fit(file)) != expected
            print(f"\r{len(steps)} kills, {different} different results", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    counts = {made: steps.count(made) for made in sorted(set(steps))}
    print(f"{len(steps)} kills, {different} results that differ; {late} fits ended before their kill and don't count.")
    print(f"Steps that were saved at the kill (-1: no checkpoint yet): {counts}")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
