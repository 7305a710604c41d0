"""Is stop="auto" as good as the best threshold in hindsight: python -m benchmarks.study.

On each design NGP selects with several thresholds η (`tol`), with stop="auto", with and without floating, and with
stop="plateau"; baselines choose by rules of their own. Selections are held against the truth, and judged by the same
trees, trained on the selected columns and scored on fresh rows. Of all thresholds that one counts which turns out best
over all runs of a design: nobody could have chosen better.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from benchmarks.common import machine_facts, mean_and_error, print_facts, save_json
from benchmarks.designs import DESIGNS, Data, Design, Real
from ngp import NeuralGreedyPursuit
from ngp._formatting import counted
from ngp.baselines import registry
from ngp.greedy.path import Step
from ngp.greedy.stopping import RelativeImprovement
from ngp.paper.curves import size_by_rule
from ngp.paper.metrics import false_negative_rate, false_positive_rate
from ngp.paper.regression import with_paper_rule

THRESHOLDS = (0.01, 0.03, 0.06, 0.09, 0.15, 0.3)
MOST_FEATURES = 15  # of the thresholds' pursuit
AUTO: dict[str, dict[str, Any]] = {"auto": {"stop": "auto"}, "auto, floating": {"stop": "auto", "floating": True}}
RULES: dict[str, dict[str, Any]] = {**AUTO, "plateau": {"stop": "plateau"}}
MOST_FLOATING = 100  # columns; with more it takes too long for a study
BASELINES = ("lasso-cv", "random-forest", "correlation", "mutual-information")
N_TREES = 100
# Without the bootstrap all trees are the same where columns are bits; whole trees learn the noise of a single column.
TREES = {"bootstrap": True, "min_samples_leaf": 2}
ROUNDING = 1e-9
MEASURES = ("fpsr", "fnsr", "f1", "n_selected", "score", "n_fits", "seconds")
TITLES = ("FPSR", "FNSR", "F1", "selected", "held-out score", "trainings", "seconds")
DIGITS = (3, 3, 3, 1, 3, 0, 2)
WIDTHS = (8, 8, 17, 10, 17, 11, 9)
COMPARED = {"score": "held-out score", "f1": "F1"}

Found = dict[str, Any]
Judge = Callable[[Sequence[int]], Found]


def run(name: str, baselines: Sequence[str], seed: int) -> Found:
    """All variants on the same data."""
    design = DESIGNS[name]
    data = design.draw(seed)
    judge = make_judge(design, data, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = by_thresholds(pursue(data, design.task, seed, tol=min(THRESHOLDS), most=MOST_FEATURES), judge)
        for label, parameters in RULES.items():
            if "floating" in parameters and data.X.shape[1] > MOST_FLOATING:
                continue
            selector = pursue(data, design.task, seed, **parameters)
            found[label] = by_ngp(chosen(selector), selector.path_, judge)
        for label in baselines:
            found[label] = by_baseline(label, data, design.task, seed, judge)
        found["relevant columns"] = judge(data.relevant)
        found["all columns"] = judge(range(data.X.shape[1]))
    return {"seed": seed, "variants": found}


def pursue(data: Data, task: str, seed: int, most: int | None = None, **parameters: Any) -> NeuralGreedyPursuit:
    """A fit on the training rows."""
    number = None if most is None else min(most, data.X.shape[1])
    selector = NeuralGreedyPursuit(
        n_features_to_select=number,
        task=task,
        device="cpu",
        n_jobs=1,
        random_state=seed,
        **parameters,
    )
    fitted: NeuralGreedyPursuit = selector.fit(data.X, data.y)
    return fitted


def chosen(selector: Any) -> list[int]:
    columns: list[int] = np.flatnonzero(selector.support_).tolist()
    return columns


def by_thresholds(selector: NeuralGreedyPursuit, judge: Judge) -> dict[str, Found]:
    """What each threshold would have selected: a higher one stops earlier on the path of the lowest."""
    found = {}
    order = [step.group for step in selector.path_ if step.group is not None]
    for tol in THRESHOLDS:
        size = size_by_rule(selector.path_, RelativeImprovement(tol))
        steps = selector.path_[: size + 2]  # with the start, and the step that didn't pay
        found[threshold(tol)] = by_ngp(order[:size], steps, judge)
    return found


def threshold(tol: float) -> str:
    return f"η = {tol:g}"


def by_baseline(label: str, data: Data, task: str, seed: int, judge: Judge) -> Found:
    """A baseline that chooses the number of columns in its own way, or by the rule of the paper."""
    selector = with_paper_rule(registry[label](task=task))
    if "random_state" in selector.get_params():
        selector.set_params(random_state=seed)
    start = perf_counter()
    selector.fit(data.X, data.y)
    seconds = perf_counter() - start
    return {**judge(chosen(selector)), "seconds": seconds}


def by_ngp(columns: Sequence[int], steps: Sequence[Step], judge: Judge) -> Found:
    """What is found with these columns, the columns themselves, and the trainings and seconds of the steps."""
    cost = {"n_fits": sum(step.n_fits for step in steps), "seconds": sum(step.seconds for step in steps)}
    return {"columns": list(columns), **judge(columns), **cost}


def make_judge(design: Design, data: Data, seed: int) -> Judge:
    """A function that judges columns; the trees are the same for the same columns, and grow only once."""
    scores: dict[tuple[int, ...], float] = {}

    def judge(columns: Sequence[int]) -> Found:
        key = tuple(sorted(columns))
        if key not in scores:
            scores[key] = held_out_score(design.task, data, list(key), seed)
        found: Found = {"n_selected": len(key), "score": scores[key], "fpsr": false_positive_rate(key, data.relevant)}
        # Of a real table nobody knows which of the columns are relevant, so that nothing can be said to be missed.
        known = not isinstance(design, Real)
        found["fnsr"] = false_negative_rate(key, data.relevant) if known else None
        found["f1"] = f1(key, data.relevant) if known else None
        return found | {"n_fits": None, "seconds": None}

    return judge


def f1(selected: Sequence[int], relevant: Sequence[int]) -> float:
    """Harmonic mean of precision and recall; 1 if nothing is relevant and nothing selected."""
    both = len(selected) + len(relevant)
    return 2 * len(set(selected) & set(relevant)) / both if both else 1.0


def held_out_score(task: str, data: Data, columns: list[int], seed: int) -> float:
    """R² or accuracy on the test rows, of trees that know these columns; without any, of a constant."""
    if not columns:
        constant = DummyRegressor() if task == "regression" else DummyClassifier()
        return float(constant.fit(data.X, data.y).score(data.X_test, data.y_test))
    kind = ExtraTreesRegressor if task == "regression" else ExtraTreesClassifier
    trees = kind(N_TREES, **TREES, random_state=seed)
    return float(trees.fit(data.X[:, columns], data.y).score(data.X_test[:, columns], data.y_test))


def summary(runs: list[Found]) -> Found:
    """Means over the runs, and how the automatic stop compares with the best threshold."""
    found: Found = {"n_runs": len(runs), "variants": {}, "comparisons": []}
    for variant in runs[0]["variants"]:
        values = {measure: [run["variants"][variant][measure] for run in runs] for measure in MEASURES}
        found["variants"][variant] = {measure: mean_and_error(values[measure]) for measure in MEASURES}
    for measure in COMPARED:
        if found["variants"]["auto"][measure] is None:
            continue
        best = max(map(threshold, THRESHOLDS), key=lambda each: found["variants"][each][measure]["mean"])
        found["comparisons"] += [
            compared(runs, variant, best, measure) for variant in AUTO if variant in found["variants"]
        ]
    return found | {"runs": runs}


def compared(runs: list[Found], variant: str, best: str, measure: str) -> Found:
    """The paired difference to the best threshold, and whether it isn't below zero by more than its error."""
    differences = [run["variants"][variant][measure] - run["variants"][best][measure] for run in runs]
    found = mean_and_error(differences)
    assert found is not None
    # If a single run differs, the mean is as large as its error; rounding isn't to decide then.
    not_worse = found["mean"] + (found["standard_error"] or 0.0) >= -ROUNDING
    return {"variant": variant, "measure": measure, "threshold": best, **found, "not_worse": not_worse}


def show(name: str, found: Found, data: Data) -> None:
    (rows, columns), what = data.X.shape, "real" if isinstance(DESIGNS[name], Real) else "relevant"
    runs = counted(found["n_runs"], "run")
    print(f"\n{name}: {rows} rows, {columns} columns, {len(data.relevant)} of them {what}; {runs}")
    print(" " * 20 + "".join(f"{title:>{width}s}" for title, width in zip(TITLES, WIDTHS, strict=True)))
    for variant, measures in found["variants"].items():
        print(f"{variant:20s}" + "".join(map(cell, measures, measures.values(), DIGITS, WIDTHS)))
    for each in found["comparisons"]:
        verdict = "yes" if each["not_worse"] else "no"
        difference = f"{each['mean']:+.4f}{error_of(each, 4)}"
        print(
            f"{each['variant']} less {each['threshold']}, the best by {COMPARED[each['measure']]}: {difference}; "
            f"not worse within one standard error: {verdict}"
        )


def cell(measure: str, value: dict[str, Any] | None, digits: int, width: int) -> str:
    """A mean, with its error where it is compared."""
    if value is None:
        return f"{'–':>{width}s}"
    return f"{value['mean']:.{digits}f}{error_of(value, digits) if measure in COMPARED else ''}".rjust(width)


def error_of(value: dict[str, Any], digits: int) -> str:
    error = value["standard_error"]
    return "" if error is None else f" ± {error:.{digits}f}"


def show_verdicts(results: Found) -> None:
    """On which designs the automatic stop is not worse than the best threshold, within one standard error."""
    print("\nnot worse than the best threshold in hindsight, within one standard error")
    for variant in AUTO:
        for measure, title in COMPARED.items():
            verdicts = {
                name: each["not_worse"]
                for name, found in results["designs"].items()
                for each in found["comparisons"]
                if (each["variant"], each["measure"]) == (variant, measure)
            }
            if not verdicts:
                continue
            worse = ", ".join(name for name, not_worse in verdicts.items() if not not_worse)
            count = f"{sum(verdicts.values())} of {counted(len(verdicts), 'design')}"
            print(f"{variant:16s}{title:16s}{count}" + (f"; worse: {worse}" if worse else ""))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--baselines", nargs="*", choices=registry, default=list(BASELINES))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1000, help="the runs have this seed and those that follow")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    results: Found = {"machine": machine_facts(), "first_seed": options.first_seed, "left_out": {}, "designs": {}}
    print_facts(results["machine"])
    drawn = {}
    for name in options.designs:
        try:
            drawn[name] = DESIGNS[name].draw(options.first_seed)
        except OSError as error:
            results["left_out"][name] = str(error)
            print(f"\n{name}: LEFT OUT. {error}", flush=True)
    seeds = range(options.first_seed, options.first_seed + options.runs)
    runs = joblib.Parallel(n_jobs=options.jobs, return_as="generator")(  # one after the other, in this order
        joblib.delayed(run)(name, options.baselines, seed) for name in drawn for seed in seeds
    )
    for name, data in drawn.items():
        results["designs"][name] = found = summary(list(islice(runs, options.runs)))
        show(name, found, data)
        sys.stdout.flush()
        save_json(options.json, results)
    show_verdicts(results)


if __name__ == "__main__":
    main()
