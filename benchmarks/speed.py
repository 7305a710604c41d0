"""Speed of the pursuit, beside the plain ways and the machine's peak: python -m benchmarks.speed."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks import beside
from benchmarks.common import machine_facts, matmul_gflops, print_facts, save_json, side_by_side
from benchmarks.data import make_wide_data
from benchmarks.memory import fit_memory
from benchmarks.plain import PlainLoop
from ngp import NGPRegressor
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.groups import make_groups
from ngp.data.problem import make_problem
from ngp.datasets import make_artificial
from ngp.predictors.base import ColumnSets
from ngp.predictors.ssfn import SSFN, SSFNScorer

N_UNITS = 100
N_FOLDS = 5
AGREEMENT = 1e-4  # largest relative difference between the batched scorer's losses and the plain loop's


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: tuple[tuple[int, int], ...] = tuple((j, p) for j in (300, 1000, 5000) for p in (500, 5000, 50_000))
    fit_widths: tuple[int, ...] = (500, 5000, 50_000)  # P of whole fits at J = 300
    memory_width: int = 50_000
    headline: tuple[int, int, int] = (300, 500, 5)  # J, P, N
    n_plain: int = 10  # candidates a step that the plain loop is timed on
    n_sequential: int = 12  # columns that scikit-learn's selector is given
    step_seconds: float = 2.0  # work a timing of one step
    repetitions: int = 5
    peak_size: int = 4096  # of the matrix product: the larger, the nearer to what the machine can do


QUICK = Plan(
    sizes=((300, 500), (300, 5000), (1000, 500)),
    fit_widths=(500, 5000),
    memory_width=5000,
    n_plain=4,
    n_sequential=6,
    step_seconds=0.3,
    repetitions=3,
)


def operations(n_samples: int, n_folds: int = N_FOLDS, n_outputs: int = 1, n_units: int = N_UNITS) -> float:
    """Additions and multiplications that a candidate needs: one Gram product, and a factorisation a fold."""
    n = 2 * n_outputs + n_units + 1
    return n_samples * n**2 + n_folds * n**3 / 3


def bind(
    X: AnyArray,
    y: FloatArray,
    *,
    n_draws: int = 1,
    dtype: str = "float32",
    cv: Any = N_FOLDS,
    n_jobs: int = -1,
) -> SSFNScorer:
    problem = make_problem(X, y, groups=make_groups(None, X.shape[1]), cv=cv)
    return SSFN(n_units=N_UNITS, n_draws=n_draws, dtype=dtype).bind(problem, random_state=0, n_jobs=n_jobs)


def make_selector(n_features: int, n_jobs: int = -1) -> NGPRegressor:
    predictor = SSFN(n_units=N_UNITS, n_draws=1)
    return NGPRegressor(predictor, n_features_to_select=n_features, cv=N_FOLDS, n_jobs=n_jobs, random_state=0)


# ---------------------------------------------------------------- the headline


def headline(plan: Plan) -> dict[str, Any]:
    """A whole fit, beside the plain loop and scikit-learn's sequential selector with a small MLP."""
    n_samples, n_features, n_steps = plan.headline
    X, y, _ = make_artificial(n_samples, n_features, random_state=0)
    n_candidates = sum(n_features - step for step in range(n_steps))
    fits = {"all": make_selector(n_steps), "one": make_selector(n_steps, n_jobs=1)}
    for selector in fits.values():
        selector.fit(X, y)
    scorer = bind(X, y)
    steps = sample_steps(np.asarray(fits["all"].order_), n_features, plan.n_plain)
    loops = plain_variants(scorer, steps)
    seconds = side_by_side(
        {f"fit {name}": partial(selector.fit, X, y) for name, selector in fits.items()} | loops,
        plan.repetitions,
    )
    fit = median(seconds["fit all"])
    plain = min(loops, key=lambda name: median(seconds[name]))
    n_timed = sum(len(candidates) for _, candidates in steps)
    plain_total = median(seconds[plain]) / n_timed * n_candidates
    sequential = sequential_selector(X[:, : plan.n_sequential], y, min(3, plan.repetitions))
    sequential_total = sequential["seconds_per_fit"] * n_candidates * N_FOLDS
    return {
        "n_samples": n_samples,
        "n_features": n_features,
        "n_selected": n_steps,
        "n_candidates": n_candidates,
        "fit_seconds": fit,
        "fit_seconds_all": seconds["fit all"],
        "steps_seconds": sum(step.seconds for step in fits["all"].path_),
        "fit_seconds_one_thread": median(seconds["fit one"]),
        "microseconds_per_candidate": fit / n_candidates * 1e6,
        "plain_loop": {
            "fastest_variant": plain,
            "microseconds_per_candidate": {name: median(seconds[name]) / n_timed * 1e6 for name in loops},
            "candidates_timed": n_timed,
            "seconds": plain_total,
            "ratio": plain_total / fit,
            "largest_relative_difference": largest_difference(scorer, steps),
        },
        "sequential_selector": sequential
        | {"fits": n_candidates * N_FOLDS, "seconds": sequential_total, "ratio": sequential_total / fit},
    }


Steps = list[tuple[IntArray, IntArray]]


def sample_steps(order: IntArray, n_features: int, n_candidates: int) -> Steps:
    """For each step of a pursuit, what was selected before it and some candidates drawn at random."""
    rng = np.random.default_rng(0)
    left = [np.setdiff1d(np.arange(n_features), order[:step]) for step in range(len(order))]
    return [
        (order[:step], rng.choice(free, min(n_candidates, len(free)), replace=False)) for step, free in enumerate(left)
    ]


def plain_variants(scorer: SSFNScorer, steps: Steps) -> dict[str, Callable[[], None]]:
    """The plain loop in both precisions, with BLAS threads as they come and with one."""

    def run(loop: PlainLoop, limit: int | None) -> None:
        with threadpool_limits(limit, user_api="blas"):
            for selected, candidates in steps:
                loop.losses(selected, candidates)

    loops = {dtype: PlainLoop(scorer, dtype) for dtype in ("float32", "float64")}
    return {
        f"{dtype}, {words}": partial(run, loop, limit)
        for dtype, loop in loops.items()
        for words, limit in (("BLAS threads as they come", None), ("one BLAS thread", 1))
    }


def largest_difference(scorer: SSFNScorer, steps: Steps) -> dict[str, float]:
    """By how much the plain loop's losses differ from the batched scorer's; an error if it is too much."""
    differences = {}
    for dtype in ("float32", "float64"):
        loop = PlainLoop(scorer, dtype)
        plain = np.concatenate([loop.losses(*step) for step in steps])
        batched = np.concatenate(
            [scorer.add_losses(selected, ColumnSets.singles(columns)).means for selected, columns in steps]
        )
        differences[dtype] = float(np.max(np.abs(plain / batched - 1)))
    if not max(differences.values()) <= AGREEMENT:
        raise RuntimeError(f"the plain loop gives other losses, by a share of {differences}")
    return differences


def sequential_selector(X: AnyArray, y: FloatArray, repetitions: int) -> dict[str, Any]:
    """Time scikit-learn's forward selection on a few columns; the faster of one process and one a core."""
    model = MLPRegressor(hidden_layer_sizes=(500,), max_iter=10, random_state=0)
    n_fits = (X.shape[1] + X.shape[1] - 1) * N_FOLDS  # of the first two steps
    selectors = {
        f"n_jobs={n_jobs}": SequentialFeatureSelector(model, n_features_to_select=2, cv=N_FOLDS, n_jobs=n_jobs)
        for n_jobs in (None, -1)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        joblib.Parallel(n_jobs=-1)(joblib.delayed(abs)(0) for _ in range(4))  # starts the worker processes
        seconds = side_by_side({name: partial(s.fit, X, y) for name, s in selectors.items()}, repetitions)
    fastest = min(seconds, key=lambda name: median(seconds[name]))
    return {
        "fastest_variant": fastest,
        "fits_timed": n_fits,
        "seconds_per_fit": median(seconds[fastest]) / n_fits,
    }


# ---------------------------------------------------------------- one step at many sizes


class Step:
    """One step from four selected columns, over all candidates or as many as take about the time wanted."""

    selected = np.arange(4)

    def __init__(self, scorer: SSFNScorer, seconds: float) -> None:
        self.scorer = scorer
        n_features = scorer.problem.n_columns
        free = np.arange(len(self.selected), n_features)
        scorer.add_losses(self.selected, ColumnSets.singles(free[:1]))  # what is done once for all steps
        pilot = partial(scorer.add_losses, self.selected, ColumnSets.singles(free[:200]))
        rate = len(free[:200]) / side_by_side({"": pilot}, 1)[""][0]
        wanted = min(len(free), max(200, int(seconds * rate)))
        self.candidates = ColumnSets.singles(free if wanted == len(free) else _runs(free, wanted))
        self.share = wanted / len(free)

    def __call__(self) -> None:
        self.scorer.add_losses(self.selected, self.candidates)

    def microseconds(self, seconds: Sequence[float]) -> float:
        """Time a candidate, from the quickest repetition."""
        return min(seconds) / len(self.candidates) * 1e6


def _runs(columns: IntArray, wanted: int) -> IntArray:
    """Random runs of 256 neighbouring columns: memory is read as in a step over all of them."""
    starts = np.random.default_rng(0).permutation(np.arange(0, len(columns), 256))
    return np.concatenate([columns[start : start + 256] for start in starts])[:wanted]


def step_table(plan: Plan) -> list[dict[str, Any]]:
    """Time of one step a candidate, for each size."""
    steps = {}
    for n_samples, n_features in plan.sizes:
        X, y = make_wide_data(n_samples, n_features, "float32")
        steps[f"{n_samples}x{n_features}"] = Step(bind(X, y), plan.step_seconds)
    with threadpool_limits(1, user_api="blas"):  # as inside a fit
        seconds = side_by_side(steps, min(3, plan.repetitions))
    return [
        {
            "n_samples": n_samples,
            "n_features": n_features,
            "share_timed": step.share,
            "microseconds_per_candidate": step.microseconds(seconds[name]),
            "operations_per_candidate": operations(n_samples),
        }
        for (n_samples, n_features), (name, step) in zip(plan.sizes, steps.items(), strict=True)
    ]


def with_peak_shares(table: list[dict[str, Any]], peak_gflops: float) -> list[dict[str, Any]]:
    return [
        row
        | {"share_of_peak": row["operations_per_candidate"] / (row["microseconds_per_candidate"] * 1e3 * peak_gflops)}
        for row in table
    ]


def exponent(widths: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Slope of log time against log P."""
    return float(np.polyfit(np.log(widths), np.log(seconds), 1)[0]) if len(widths) > 1 else None


def step_exponents(table: list[dict[str, Any]]) -> dict[str, float | None]:
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in table:
        rows.setdefault(row["n_samples"], []).append(row)
    return {
        str(n_samples): exponent(
            [row["n_features"] for row in group],
            [row["microseconds_per_candidate"] * row["n_features"] for row in group],
        )
        for n_samples, group in rows.items()
    }


def whole_fits(plan: Plan) -> dict[str, Any]:
    """Fits that select one column, in full: with checks, scaling and the final predictor."""
    data = {width: make_wide_data(300, width, "float64") for width in plan.fit_widths}
    tasks = {str(width): partial(make_selector(1).fit, X, y) for width, (X, y) in data.items()}
    seconds = {int(width): min(times) for width, times in side_by_side(tasks, 2).items()}
    return {
        "n_samples": 300,
        "seconds": seconds,
        "exponent": exponent(list(seconds), list(seconds.values())),
    }


# ---------------------------------------------------------------- variations


def variations(plan: Plan) -> dict[str, dict[str, float]]:
    """What draws, double precision and leave-one-out cost, relative to one draw, float32 and five folds."""
    X, y = make_wide_data(*plan.headline[:2], "float64")
    options: dict[str, dict[str, Any]] = {f"n_draws={n}": {"n_draws": n} for n in (1, 2, 4, 8)}
    options |= {"dtype=float64": {"dtype": "float64"}, "cv=loo": {"cv": "loo"}, "n_jobs=1": {"n_jobs": 1}}
    steps = {name: Step(bind(X, y, **option), plan.step_seconds / 4) for name, option in options.items()}
    with threadpool_limits(1, user_api="blas"):  # as inside a fit
        seconds = side_by_side(steps, plan.repetitions)
    times = {name: step.microseconds(seconds[name]) for name, step in steps.items()}
    return {
        name: {"microseconds_per_candidate": time, "relative": time / times["n_draws=1"]}
        for name, time in times.items()
    }


# ---------------------------------------------------------------- the command


def run(plan: Plan) -> dict[str, Any]:
    """Measure everything."""
    peaks = [matmul_gflops(plan.peak_size)]
    results: dict[str, Any] = {"machine": machine_facts(), "plan": asdict(plan)}
    results["memory"] = {"n_samples": 300, "n_features": plan.memory_width} | fit_memory(300, plan.memory_width, 2)
    results["headline"] = headline(plan)
    results["variations"] = variations(plan)
    results["whole_fits"] = whole_fits(plan)
    peaks.append(matmul_gflops(plan.peak_size))
    table = step_table(plan)
    peaks.append(matmul_gflops(plan.peak_size))
    results["peak_gflops"] = {"before_between_after": peaks, "taken": max(peaks)}
    results["table"] = with_peak_shares(table, max(peaks))
    results["step_exponents"] = step_exponents(table)
    return results


def report(results: dict[str, Any]) -> None:
    print_facts(results["machine"])
    peaks = results["peak_gflops"]
    print(f"{'float32 matmul peak':22s} {peaks['taken']:.0f} GFLOP/s, all cores, in this run")
    _report_headline(results["headline"])
    print("\nOne step from 4 selected columns, float32, 5 folds, 100 units, one draw")
    print(f"{'J':>6s} {'P':>7s} {'µs a candidate':>15s} {'share of peak':>14s} {'candidates timed':>17s}")
    for row in results["table"]:
        print(
            f"{row['n_samples']:6d} {row['n_features']:7d} {row['microseconds_per_candidate']:15.1f} "
            f"{row['share_of_peak']:14.1%} {row['share_timed']:17.1%}"
        )
    exponents = ", ".join(f"{e:.3f} (J={j})" for j, e in results["step_exponents"].items() if e is not None)
    print(f"time of a step grows with P to the power {exponents}")
    fits = results["whole_fits"]
    seconds = ", ".join(f"{s:.2f} s (P={p})" for p, s in fits["seconds"].items())
    print(f"whole fits, one column selected, J={fits['n_samples']}: {seconds}; power {fits['exponent']:.3f}")
    memory = results["memory"]
    print(
        f"memory of a fit beside X at J={memory['n_samples']}, P={memory['n_features']}: "
        f"{memory['beside_x_mb']:.0f} MB (X itself: {memory['x_mb']:.0f} MB)"
    )
    print("\nOne step at the same J and P as the fit, relative to one draw, float32, 5 folds, all cores")
    for name, row in results["variations"].items():
        print(f"{name:15s} {row['microseconds_per_candidate']:9.1f} µs a candidate {row['relative']:8.2f}")


def _report_headline(head: dict[str, Any]) -> None:
    plain, sequential = head["plain_loop"], head["sequential_selector"]
    sizes = f"J={head['n_samples']}, P={head['n_features']}, N={head['n_selected']}"
    variants = plain["microseconds_per_candidate"]
    print(
        f"\nfit: {sizes}, 5 folds, 100 units, one draw, all cores\n"
        f"  {head['fit_seconds']:.3f} s, {head['microseconds_per_candidate']:.1f} µs a candidate "
        f"({head['n_candidates']} candidates); with one thread {head['fit_seconds_one_thread']:.3f} s;\n"
        f"  the steps alone, without checks and the final predictor, "
        f"{head['steps_seconds']:.3f} s\n"
        f"  plain numpy loop: {plain['seconds']:.1f} s, {plain['ratio']:.0f} times as long\n"
        f"    ({plain['fastest_variant']}, the fastest of {len(variants)} variants; "
        f"{plain['candidates_timed']} candidates timed, scaled to all;\n"
        f"    same losses to {max(plain['largest_relative_difference'].values()):.0e})\n"
        f"  SequentialFeatureSelector(MLPRegressor((500,), max_iter=10)): {sequential['seconds']:.0f} s, "
        f"{sequential['ratio']:.0f} times as long\n"
        f"    ({sequential['fastest_variant']}; {sequential['fits_timed']} fits timed at "
        f"{sequential['seconds_per_fit'] * 1e3:.1f} ms, scaled to {sequential['fits']} fits)"
    )


def parse_sizes(text: str) -> tuple[int, int]:
    n_samples, n_features = map(int, text.split("x"))
    return n_samples, n_features


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and shorter timings")
    parser.add_argument(
        "--sizes", type=parse_sizes, nargs="+", metavar="JxP", help="sizes of the table, such as 300x500"
    )
    parser.add_argument(
        "--beside", metavar="REV", help="instead of all that: whole fits in turn with those of another git revision"
    )
    options = parser.parse_args(arguments)
    if options.beside:
        found = {"machine": machine_facts()} | beside.compare(options.beside, quick=options.quick)
        beside.report(found)
        save_json(options.json, found)
        return
    plan = QUICK if options.quick else Plan()
    if options.sizes:
        plan = Plan(**(asdict(plan) | {"sizes": tuple(options.sizes)}))
    results = run(plan)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
