"""Seconds of one step against everything it depends on, beside the machine's peak: python -m benchmarks.scaling."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import machine_facts, matmul_gflops, print_facts, save_json, side_by_side
from benchmarks.cost_model import CostModel, Size
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.predictors import ssfn
from ngp.predictors.base import ColumnSets
from ngp.predictors.ssfn import SSFN, SSFNScorer

Curves = dict[str, list[Size]]


@dataclass(frozen=True)
class Plan:
    """Where the curves are measured.

    The number of candidates is given for the first curve; elsewhere it is as many as need `work` operations, but
    `fewest` at least.
    """

    n_candidates: tuple[int, ...] = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
    n_samples: tuple[int, ...] = (300, 1000, 3000, 10_000, 30_000, 100_000)
    n_units: tuple[int, ...] = (25, 50, 100, 200, 400)
    n_selected: tuple[int, ...] = (0, 5, 20, 50, 100, 200)
    n_folds: tuple[int, ...] = (2, 5, 10, 20)
    n_outputs: tuple[int, ...] = (1, 3, 10, 30)
    work: float = 2e10
    fewest: int = 64
    repetitions: int = 3
    peak_size: int = 4096

    def curves(self, n_cores: int | None) -> Curves:
        """Sizes of every curve, by what changes along it; without cores there is none of threads."""
        curves = {"n_candidates": [Size(many) for many in self.n_candidates]}
        for name in ("n_samples", "n_units", "n_selected", "n_folds", "n_outputs"):
            curves[name] = [self.filled(Size(1, **{name: value})) for value in getattr(self, name)]
        if n_cores is not None:
            powers = [2**i for i in range(n_cores.bit_length()) if 2**i < n_cores]
            curves["n_jobs"] = [self.filled(Size(1, n_jobs=threads)) for threads in (*powers, n_cores)]
        return curves

    def filled(self, size: Size) -> Size:
        """The same with its number of candidates."""
        return replace(size, n_candidates=max(self.fewest, round(self.work / size.operations)))


PLANS = {
    "cpu": Plan(),
    "cuda": Plan(
        n_candidates=(1000, 4000, 16_000, 64_000, 256_000, 1_000_000),
        n_outputs=(1, 3, 10),
        work=2e11,
        fewest=1000,
        peak_size=8192,
    ),
}
QUICK = Plan(
    n_candidates=(50, 100),
    n_samples=(100, 300),
    n_units=(25, 100),
    n_selected=(0, 5),
    n_folds=(2, 5),
    n_outputs=(1, 3),
    work=1e8,
    fewest=20,
    repetitions=1,
    peak_size=256,
)


class Step:
    """One step on random numbers, after what is done once a fit."""

    def __init__(self, size: Size, device: str) -> None:
        self.size = size
        rng = np.random.default_rng(0)
        n_columns = size.n_selected + size.n_candidates
        X = rng.standard_normal((size.n_samples, n_columns), dtype=np.float32)
        y = rng.standard_normal((size.n_samples, size.n_outputs))
        problem = make_problem(X, y, groups=make_groups(None, n_columns), cv=size.n_folds)
        network, n_jobs = SSFN(n_units=size.n_units, n_draws=1), size.n_jobs or -1
        self.scorer: Any = network.bind(problem, random_state=0, n_jobs=n_jobs, device=device)
        self.selected = np.arange(size.n_selected)
        self.candidates = ColumnSets.singles(np.arange(size.n_selected, n_columns))
        if size.n_selected:  # which a step scores once more, beside its candidates
            self.candidates = self.candidates.with_empty()
        self()

    def __call__(self) -> None:
        self.scorer.add_losses(self.selected, self.candidates)

    @property
    def way(self) -> str:
        """What scores: a GPU's kernels can't do all sizes."""
        kind: type = SSFNScorer if type(self.scorer) is SSFNScorer else self.scorer._stack_class(self.size.n_folds)
        return kind.__name__


def peak_gflops(device: str, size: int) -> float:
    """Rate of a float32 matrix product, in 10⁹ operations a second."""
    if device == "cpu":
        return matmul_gflops(size)
    from benchmarks.gpu import peak_tflops

    return 1000 * peak_tflops(False, size)


def run(plan: Plan, device: str) -> dict[str, Any]:
    """Measure all curves, between two measurements of the peak."""
    curves = plan.curves(joblib.cpu_count() if device == "cpu" else None)
    peaks = [peak_gflops(device, plan.peak_size)]
    with threadpool_limits(1, user_api="blas"):  # as inside a fit
        steps = {size: Step(size, device) for curve in curves.values() for size in curve}
        taken = side_by_side({str(i): step for i, step in enumerate(steps.values())}, plan.repetitions)
        streamed = streamed_step(curves["n_candidates"][-1], device, plan.repetitions) if device == "cuda" else None
    peaks.append(peak_gflops(device, plan.peak_size))
    seconds = dict(zip(steps, map(min, taken.values()), strict=True))
    row = partial(point, steps, seconds, max(peaks))
    return {
        "machine": machine_facts(),
        "device": device,
        "plan": asdict(plan),
        "peak_gflops": {"before_after": peaks, "taken": max(peaks)},
        "curves": {name: [row(size) for size in sizes] for name, sizes in curves.items()},
    } | ({} if streamed is None else {"streamed": asdict(curves["n_candidates"][-1]) | {"seconds": streamed}})


def streamed_step(size: Size, device: str, repetitions: int) -> float:
    """Seconds of a step whose columns a GPU isn't allowed to keep from step to step."""
    with patch.object(ssfn, "COLUMNS_SHARE", 0.0):
        return min(side_by_side({"": Step(size, device)}, repetitions)[""])


def point(steps: dict[Size, Step], seconds: dict[Size, float], peak: float, size: Size) -> dict[str, Any]:
    """One measured point."""
    return asdict(size) | {
        "seconds": seconds[size],
        "way": steps[size].way,
        "microseconds_per_candidate": seconds[size] / size.n_candidates * 1e6,
        "operations": size.operations,
        "share_of_peak": size.operations / seconds[size] / 1e9 / peak,
    }


def size_of(point: dict[str, Any]) -> Size:
    """The size of a measured point."""
    return Size(**{name: point[name] for name in Size.__dataclass_fields__})


def modelled(results: dict[str, Any]) -> dict[Size, float]:
    """Seconds of the points that the model is fitted to: all cores, scored in the way of the first point."""
    points = [point for curve in results["curves"].values() for point in curve]
    own = points[0]["way"]
    return {size_of(each): each["seconds"] for each in points if each["way"] == own and each["n_jobs"] is None}


def report(results: dict[str, Any]) -> None:
    print_facts(results["machine"])
    print(
        f"{'float32 matmul peak':22s} {results['peak_gflops']['taken']:.0f} GFLOP/s, {results['device']}, in this run"
    )
    fitted = modelled(results)
    model = CostModel.fit(list(fitted), list(fitted.values()))
    ratios = dict(zip(fitted, model.ratios(list(fitted), list(fitted.values())), strict=True))
    for name, curve in results["curves"].items():
        print(f"\n{name:>12s} {'candidates':>11s} {'seconds':>9s} {'µs each':>9s} {'of peak':>8s} {'model off':>10s}")
        for each in curve:
            off = f"{ratios[size_of(each)]:10.2f}" if size_of(each) in ratios else f"{'–':>10s}"
            print(
                f"{each[name]:12d} {each['n_candidates']:11d} {each['seconds']:9.4f} "
                f"{each['microseconds_per_candidate']:9.1f} {each['share_of_peak']:8.1%} {off}"
            )
    if "streamed" in results:
        print(
            f"\nthe last of the first curve, if columns are moved in every step: {results['streamed']['seconds']:.3f} s"
        )
    print("\nseconds of the fitted model's terms")
    for name, value in model.seconds.items():
        print(f"  {name:14s} {value:.3e}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--quick", action="store_true", help="few and small sizes: to see whether it runs")
    parser.add_argument("--device", choices=list(PLANS), default="cpu")
    options = parser.parse_args(arguments)
    results = run(QUICK if options.quick else PLANS[options.device], options.device)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
