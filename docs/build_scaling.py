"""Fill docs/scaling.template.md with what benchmarks/results holds: python -m docs.build_scaling."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cost_model import TERMS, CostModel
from benchmarks.scaling import modelled, size_of
from docs import scaling_plan as plan
from docs.scaling_figure import AXES, draw
from ngp.greedy.screening import n_scored
from ngp.io import markdown_table, write_whole

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PICTURES = {"scaling": "scaling-cpu.png", "scaling-gpu": "scaling-gpu.png"}
BLANK = re.compile(r"\{\{(\w+) ?([\w-]*)\}\}")


class NotMeasured(Exception):
    """A file of results isn't there."""


def read(name: str) -> dict[str, Any]:
    """The results of a benchmark."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        raise NotMeasured(name)
    results: dict[str, Any] = json.loads(path.read_text())
    return results


def shown(figure: float) -> str:
    """Three digits, with commas from thousands on."""
    if figure == 0 or 0.001 <= abs(figure) < 1000:
        return f"{figure:.3g}"
    return f"{float(f'{figure:.3g}'):,.0f}" if abs(figure) >= 1000 else f"{figure:.2e}"


def duration(seconds: float) -> str:
    """Three digits of seconds, minutes or hours."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{shown(seconds / length)} {unit}"
    return f"{shown(seconds)} s"


def processor(results: dict[str, Any]) -> str:
    facts = results["machine"]
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['instruction_set']}"


# ---------------------------------------------------------------- one step


def machine(name: str) -> str:
    results = read(name)
    unit = results["machine"]["gpu"] if results["device"] == "cuda" else processor(results)
    return (
        f"Measured on {unit}, {results['machine']['date'][:10]}; "
        f"peak {shown(results['peak_gflops']['taken'])} GFLOP/s in the same run."
    )


def off(model: CostModel, points: Sequence[dict[str, Any]]) -> list[float]:
    return model.ratios([size_of(each) for each in points], [each["seconds"] for each in points])


def curves(name: str) -> str:
    """A table for each curve."""
    results = read(name)
    model, known = plan.fitted(results), modelled(results)
    tables = []
    for key, points in results["curves"].items():
        head = [AXES[key], "seconds", "µs a candidate", "share of the peak", "model off by"]
        head[1:1] = ["candidates"] if key != "n_candidates" else []
        rows = []
        for each, ratio in zip(points, off(model, points), strict=True):
            rows.append([f"{each[key]:,}"])
            rows[-1] += [f"{each['n_candidates']:,}"] if key != "n_candidates" else []
            rows[-1] += [shown(each["seconds"]), shown(each["microseconds_per_candidate"])]
            rows[-1] += [f"{each['share_of_peak']:.1%}", f"{ratio:.2f}" if size_of(each) in known else ""]
        tables.append(markdown_table(head, rows))
    return "\n\n".join(tables)


def constants(name: str) -> str:
    seconds = plan.fitted(read(name)).seconds
    return markdown_table(["for", "seconds"], [[words, shown(seconds[term])] for term, words in TERMS.items()])


def fit_words(name: str) -> str:
    results = read(name)
    points = modelled(results)
    ratios = plan.fitted(results).ratios(list(points), list(points.values()))
    return (
        f"Over {len(points)} points from {duration(min(points.values()))} to {duration(max(points.values()))}, "
        f"the model is off by a factor of {median(ratios):.2f} in the median and of {max(ratios):.2f} at most."
    )


# ---------------------------------------------------------------- whole fits


def gpu_fits(_: str) -> str:
    gpu = read("gpu")
    rows = []
    for name, found in gpu["results"].items():
        if "fits" not in found:
            continue
        share = found["gram_operations"] / 2 / found["pursuit_s"] / 1e12 / gpu["machine"]["peak_fp32_tflops"]
        each = shown(found["pursuit_s"] / found["fits"] * 1e6)
        fits = [duration(found[which]) for which in ("fit_s", "first_fit_s", "tuned_fit_s")]
        counts = [f"{found[which]:,}" for which in ("steps", "fits")]
        rows.append([name, *counts, *fits, each, f"{share:.1%}", f"{found['gpu_gb']:.1f} GB"])
    head = [
        "data",
        "steps",
        "trainings",
        "fit",
        "the first fit",
        "tuned in the end",
        "µs a training",
        "share",
        "GPU memory",
    ]
    return markdown_table(head, rows)


def agreement(_: str) -> str:
    found = read("gpu")["results"]["agreement"]
    return (
        f"Against double precision on a processor, {found['same_picks_from_the_first']} of {found['picks']} picks were "
        "the same from the first on, and the losses of all candidates in those steps differed by at most "
        f"{found['largest_relative_difference']:.1e} of themselves."
    )


def precision(_: str) -> str:
    found = read("gpu")["results"]["precision"]
    kinds = {
        "tf32x3": "three products of TF32 (what is used)",
        "tf32": "one product of TF32",
        "ieee": "float32 without the matrix units",
    }
    rows = [
        [words, duration(found[name]["step_s"]), f"{found[name]['largest_difference']:.1e}"]
        for name, words in kinds.items()
    ]
    return markdown_table(["products", "a step", "losses differ from double precision by"], rows)


def workers(_: str) -> str:
    found = read("workers")
    rows = []
    for backend, ratio in found["ratios"].items():
        one, two = (min(found["seconds"][f"{backend} {n}"]) for n in (1, 2))
        sent = found["sent"].get(f"{backend} 2")
        bulk = f"{shown(sent['largest_object_mb'])} MB" if sent else "nothing"
        rest = f"{shown(sent['other_objects_mb'] + sent['all_tasks_mb'])} MB" if sent else "nothing"
        rows.append([backend, duration(one), duration(two), f"{ratio:.2f}", bulk, rest])
    head = ["backend", "one worker", "two workers", "times as fast", "sent once", "sent beside it in the fit"]
    return markdown_table(head, rows)


def workers_size(_: str) -> str:
    found = read("workers")
    return (
        f"{found['n_samples']:,} samples of {found['n_features']:,} columns ({shown(found['x_mb'])} MB), "
        f"{found['n_selected']} selected, on {processor(found)}"
    )


def workers_bits(_: str) -> str:
    same = read("workers")["same_bits"]
    return f"The losses of all fits were {'the same to the last bit' if same else '**not** the same'}."


def screening(_: str) -> str:
    found = read("screening")
    rows = []
    for design in found["plan"]["designs"]:
        each = found[design]["summary"]
        counts = (str(each[key]) for key in ("n_runs", "same_picks", "exact_found_all", "screened_found_all"))
        times = (duration(each[f"{way}_seconds"]) for way in ("exact", "screened"))
        rows.append([design, *counts, *times, f"{each['ratio']:.1f}"])
    head = ["design", "runs", "same picks", "all found, exact", "all found, screened", "exact", "screened", "ratio"]
    return markdown_table(head, rows)


def screening_size(_: str) -> str:
    size = read("screening")["plan"]
    draws = f"{size['draws']} draw{'s' * (size['draws'] > 1)}"
    return f"{size['samples']:,} samples of {size['features']:,} columns, five of which are planted, {draws}"


def million(_: str) -> str:
    found = read("million")
    rows = []
    for way in ("exact", "screened"):
        each = found[way]
        memory = (f"{shown(each[key])} MB" for key in ("beside_x_mb", "x_mb"))
        rows.append([way, duration(each["seconds"]), f"{each['n_fits']:,}", str(each["order"]), *memory])
    return markdown_table(["way", "fit", "candidates scored", "selected", "memory beside X", "X"], rows)


def many_rows(_: str) -> str:
    found = read("many_rows")
    fit = found["fit"]
    return (
        f"{found['rows']:,} rows of {found['columns']} columns, {found['selected']} selected, {found['draws']} draw, "
        f"on {processor(found)}. The fit took {duration(fit['fit_seconds'])}, its steps {found['share_of_peak']:.0%} "
        f"of the machine's peak; memory grew by {shown(fit['beside_x_mb'])} MB beside X of {shown(fit['x_mb'])} MB. "
        f"Selected were {fit['order']}; the first five columns matter."
    )


def large_file(_: str) -> str:
    found = read("larger_than_memory")["large"]
    return (
        f"A fit that selects two of {found['shape'][1]:,} columns, {shown(found['gigabytes'])} GB in a file (most of "
        f"it holes, which are read as zeros), on a machine with {shown(found['machine_gb'])} GB of memory, took "
        f"{duration(found['fit_seconds'])} and {shown(found['own_mb'] - found['before_mb'])} MB of memory of its own. "
        f"The relevant columns were {'found' if found['found'] else '**not** found'}."
    )


def mapped(_: str) -> str:
    found = read("larger_than_memory")
    rows = [
        [each["X"], f"{each['scan_ratio']:.2f}", f"{each['step_ratio']:.2f}", f"{each['n_candidates']:,}"]
        for each in found["mapped"] + found["formats"]
    ]
    return markdown_table(["X", "first look at all columns", "step", "candidates of the step"], rows)


# ---------------------------------------------------------------- predictions


def cluster_results() -> list[dict[str, Any]]:
    """What the plan is made of, all of it from machines of one kind."""
    found = [read(name) for name in ("scaling", "million", "workers", "larger_than_memory")]
    if len(kinds := {processor(each) for each in found}) > 1:
        raise ValueError(
            f"The results behind the plan come from different machines, {sorted(kinds)}: measure them anew on one."
        )
    return found


def parts_table(parts: dict[str, plan.Part]) -> str:
    ways = ["exact", "screened"] if all(part.screened is not None for part in parts.values()) else ["exact"]
    rows = [[part.name, *(duration(getattr(part, way)) for way in ways)] for part in parts.values()]
    return markdown_table(["part", *ways], rows)


def bottleneck(parts: dict[str, plan.Part], way: str) -> str:
    return max(parts.values(), key=lambda part: float(getattr(part, way))).name


def plan_size(_: str) -> str:
    scored = n_scored("auto", plan.COLUMNS)
    return (
        f"{plan.COLUMNS:,} columns × {plan.SAMPLES} samples, {plan.STEPS} selected, one draw, 5 folds, 100 units, "
        f'every candidate scored (exact) or {scored:,} a step (`screen="auto"`)'
    )


def plan_workers(_: str) -> str:
    return f"{plan.WORKERS} machines like the one measured ({processor(cluster_results()[0])}) with Dask"


def cluster_plan(_: str) -> str:
    return parts_table(plan.cluster_parts(*cluster_results()))


def cluster_words(_: str) -> str:
    cpu, one_million, dask, files = cluster_results()
    parts = plan.cluster_parts(cpu, one_million, dask, files)
    cores = plan.WORKERS * cpu["machine"]["cores"]
    lines = []
    for way in ("exact", "screened"):
        work, total = getattr(parts["work"], way), plan.cluster_total(parts, way)
        rate = 4 * plan.COLUMNS * plan.SAMPLES * plan.STEPS / work / 1e9
        lines.append(
            f"- **{way.capitalize()}**: {duration(total)} in all, and {shown(work * cores / 3600)} core hours of "
            f"scoring. The bottleneck is: {bottleneck(parts, way)}. To keep the workers busy, the storage must deliver "
            f"{shown(rate)} GB a second."
        )
    gigabytes = 4 * plan.COLUMNS * plan.SAMPLES / 1e9
    lines += [
        f"- **X** has {gigabytes:,.0f} GB in float32, and is read {plan.STEPS + 1} times: once by the driver, "
        f"then once a step, {shown(gigabytes / plan.WORKERS)} GB by each worker. In the workers' memory each would "
        "hold all of it: hence the file.",
        f"- **Each worker** is sent {shown(plan.sent_bytes(dask) / 1e9)} GB beside X: what is known of every column.",
        f"- **The driver** needs {shown(plan.driver_bytes(one_million) / 1e9)} GB beside X, as much a column as with a "
        "million of them.",
    ]
    return "\n".join(lines)


def cheap_pass(_: str) -> str:
    cpu, one_million, *_others = cluster_results()
    return shown(plan.cheap_seconds(plan.fitted(cpu), one_million) * 1e6)


def gpu_plan(_: str) -> str:
    return parts_table(plan.gpu_parts(read("scaling-gpu"), read("larger_than_memory")))


def gpu_words(_: str) -> str:
    parts = plan.gpu_parts(read("scaling-gpu"), read("larger_than_memory"))
    total = sum(part.exact for part in parts.values())
    resident = 8 * plan.COLUMNS * plan.SAMPLES / 1e9
    return (
        f"{duration(total)} in all, one after the other. The bottleneck is: {bottleneck(parts, 'exact')}. A GPU keeps "
        f"columns from step to step only if all of them fit in its memory, here {resident:,.0f} GB in double "
        "precision; so they are moved anew in every step, as they were where the largest measured step was not allowed "
        "to keep them."
    )


# ---------------------------------------------------------------- the page

FILL: dict[str, Callable[[str], str]] = {
    "repetitions": lambda name: str(read(name)["plan"]["repetitions"]),
    "machine": machine,
    "curves": curves,
    "constants": constants,
    "fit": fit_words,
    "gpu_name": lambda _: read("gpu")["machine"]["gpu"],
    "gpu_fits": gpu_fits,
    "agreement": agreement,
    "precision": precision,
    "workers": workers,
    "workers_size": workers_size,
    "workers_bits": workers_bits,
    "screening": screening,
    "screening_size": screening_size,
    "million": million,
    "million_machine": lambda _: processor(read("million")),
    "many_rows": many_rows,
    "large_file": large_file,
    "mapped": mapped,
    "plan_size": plan_size,
    "plan_workers": plan_workers,
    "cluster_plan": cluster_plan,
    "cluster_words": cluster_words,
    "cheap_pass": cheap_pass,
    "scan_rate": lambda _: shown(plan.scan_seconds(read("larger_than_memory")) * 1e9),
    "task_cost": lambda _: shown(read("workers")["task_seconds"]["dask 2"] * 1e3),
    "gpu_plan": gpu_plan,
    "gpu_words": gpu_words,
}


def document() -> str:
    """The template with its blanks filled in, less the sections whose results aren't there."""
    sections = re.split(r"^(?=## )", (DOCS / "scaling.template.md").read_text(), flags=re.MULTILINE)
    filled = []
    for section in sections:
        try:
            filled.append(BLANK.sub(lambda blank: FILL[blank[1]](blank[2]), section).strip())
        except NotMeasured:
            continue
    return "\n\n".join(filled) + "\n"


def pictures() -> dict[str, bytes]:
    """The pictures of the page, by their names."""
    there = [name for name in PICTURES if (RESULTS / f"{name}.json").exists()]
    return {PICTURES[name]: draw(read(name), plan.fitted(read(name))) for name in there}


def main() -> None:
    for name, picture in pictures().items():
        write_whole(DOCS / name, picture)
    target = DOCS / "scaling.md"
    write_whole(target, document().encode())
    print(target)


if __name__ == "__main__":
    main()
