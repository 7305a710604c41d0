"""The default beside that of an earlier revision: python -m benchmarks.default REV.

Whole fits with default settings on the same data, in turn: seconds, the number of columns, and the held-out score.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks import beside, mnist
from benchmarks.common import machine_facts, print_facts, save_json
from ngp._types import AnyArray
from ngp.datasets import load_wide, make_artificial

WARM_UP = "J=150 P=20, all defaults"
N_PIXELS = 125  # 16 per cent of them


class Data(NamedTuple):
    """What is fitted, held-out rows if there are some, and the number of columns, if it is given."""

    X: AnyArray
    y: AnyArray
    test: tuple[AnyArray, AnyArray] | None = None
    n_selected: int | None = None


def readme() -> Data:
    """The example of the README."""
    X, y, _ = make_artificial(600, 500, random_state=0)
    return Data(X[:300], y[:300], (X[300:], y[300:]))


def images() -> Data:
    """1,000 images of MNIST; all test images are held out."""
    return Data(*mnist.digits("train", 0, mnist.N_TRAIN), mnist.digits("test"), N_PIXELS)


def small_images() -> Data:
    """scikit-learn's digits, three tenths of them held out."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return Data(X, y, (X_test, y_test))


def classes() -> Data:
    """60 samples of 2,000 columns; ten of them are higher in one of two classes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1060, 2000)), rng.integers(0, 2, size=1060)
    X[:, :10] += 1.5 * y[:, None]
    return Data(X[:60], y[:60], (X[60:], y[60:]))


def leukemia() -> Data:
    table = load_wide("leukemia")
    return Data(table.X, table.y)


CASES: dict[str, Callable[[], Data]] = {
    "README": readme,
    "MNIST, 125 pixels": images,
    "digits": small_images,
    "60 x 2,000, classes": classes,
    "leukemia": leukemia,
}


def prepare(names: Sequence[str], folder: Path, jobs: int) -> tuple[dict[str, Path], dict[str, str]]:
    """Files that both sides read, and why some are left out."""
    files, left_out = {}, {}
    for number, name in enumerate(names):
        try:
            data = CASES[name]()
        except OSError as error:
            left_out[name] = str(error)
            print(f"{name}: LEFT OUT. {error}")
            continue
        files[name] = folder / f"{number}.npz"
        parameters = {"n_features_to_select": data.n_selected, "random_state": 0, "n_jobs": jobs}
        beside.write_case(files[name], parameters, data.X, data.y, data.test)
    return files, left_out


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Times and their ratios, as in benchmarks.beside, and what both sides found."""
    found = {side: {"order": last["order"], "score": last["score"]} for side, last in turns[-1].items()}
    return beside.summary(turns) | found


def show(name: str, case: Mapping[str, Any]) -> None:
    fit, sides = case["fit"], (case["this"], case["other"])
    line = f"{name:22s}{fit['seconds']:10.2f}{fit['other_seconds']:10.2f}{fit['ratio']:8.3f}"
    line += "".join(f"{len(side['order']):9d}" for side in sides)
    line += "".join(f"{'–' if side['score'] is None else format(side['score'], '.4f'):>9s}" for side in sides)
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default", description=__doc__)
    parser.add_argument("revision", metavar="REV", help="the earlier revision")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--turns", type=int, default=3, help="fits of each side")
    parser.add_argument("--jobs", type=int, default=1, help="of a fit")
    options = parser.parse_args(arguments)
    commit = beside.git("rev-parse", "--short", options.revision)
    results: dict[str, Any] = {"machine": machine_facts(), "beside": commit, "turns": options.turns, "cases": {}}
    print_facts(results["machine"])
    beside.build(beside.ROOT)
    with beside.checkout(options.revision) as tree, tempfile.TemporaryDirectory() as folder:
        beside.build(tree)
        files, results["left_out"] = prepare(options.cases, Path(folder), options.jobs)
        print(
            f"\n{'':22s}{'seconds':>10s}{commit:>10s}{'ratio':>8s}{'columns':>9s}{'then':>9s}{'score':>9s}{'then':>9s}"
        )
        with beside.both_sides(tree) as sides:
            beside.warm_up(sides, WARM_UP)
            for name, file in files.items():
                results["cases"][name] = summary(beside.take_turns(sides, str(file), options.turns))
                show(name, results["cases"][name])
                save_json(options.json, results)


if __name__ == "__main__":
    main()
