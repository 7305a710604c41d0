"""Kill a fit at random moments, and see whether each goes on to the result of a fit that was left alone.

python -m benchmarks.kills --kills 100
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.checkpoint import Checkpoint, steps_as_arrays
from ngp.datasets import make_artificial

N_FEATURES = 20


def fit(checkpoint: Path | None) -> NeuralGreedyPursuit:
    """A second or two of work, in many steps."""
    X, y, _ = make_artificial(300, 150, random_state=0)
    return NeuralGreedyPursuit(n_features_to_select=N_FEATURES, checkpoint=checkpoint, random_state=0).fit(X, y)


def fingerprint(selector: NeuralGreedyPursuit) -> bytes:
    """All bits of the path but the times, and of some predictions."""
    arrays = steps_as_arrays(selector.path_)
    arrays["numbers"] = arrays["numbers"][:, :-1]  # the last one is how long a step took
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
    """Kill a fit after a while, and say how many steps its checkpoint has; None if there is none."""
    process = start(file)
    time.sleep(delay)
    process.kill()
    process.wait()
    saved = Checkpoint.read(file)  # which refuses what is half-written
    return None if saved is None else len(saved.steps) - 1


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
        steps, different = [], 0
        for number in range(options.kills):
            file = Path(folder) / f"{number}.npz"
            steps.append(kill_one(file, rng.uniform(0, 1) * whole))
            different += fingerprint(fit(file)) != expected
            print(f"\r{number + 1} kills, {different} different results", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    counts = {str(key): steps.count(key) for key in sorted(set(steps), key=lambda each: -1 if each is None else each)}
    print(f"{options.kills} kills, {different} results that differ; steps that were saved at the kill: {counts}")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
