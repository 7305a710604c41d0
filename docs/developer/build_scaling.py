"""Fill docs/developer/scaling.template.md with the results of benchmarks: python -m docs.developer.build_scaling."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cost_model import TERMS, CostModel
from benchmarks.scaling import modelled, size_of
from ngp.io import markdown_table, write_whole
from ngp.report.style import COLOURS, GREY, clean

DOCS = Path(__file__).parent
RESULTS = DOCS.parents[1] / "benchmarks" / "results"
PICTURES = {"scaling": "scaling-cpu.png", "scaling-gpu": "scaling-gpu.png"}
BLANK = re.compile(r"\{\{(\w+) ?([\w-]*)\}\}")


def read(name: str) -> dict[str, Any]:
    """The results of a benchmark."""
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
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


def fitted(results: Mapping[str, Any]) -> CostModel:
    """The model of the steps that were measured."""
    points = modelled(dict(results))
    return CostModel.fit(list(points), list(points.values()))


def constants(name: str) -> str:
    seconds = fitted(read(name)).seconds
    return markdown_table(["for", "seconds"], [[words, shown(seconds[term])] for term, words in TERMS.items()])


def fit_words(name: str) -> str:
    results = read(name)
    points = modelled(results)
    ratios = fitted(results).ratios(list(points), list(points.values()))
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
        "first fit",
        "tuned",
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


# ---------------------------------------------------------------- pictures

AXES = {
    "n_candidates": "candidates P",
    "n_samples": "samples J",
    "n_units": "units H",
    "n_selected": "selected columns",
    "n_folds": "folds K",
    "n_outputs": "outputs Q",
    "n_jobs": "threads",
}


def draw(results: Mapping[str, Any], model: CostModel) -> bytes:
    """A PNG with a panel for each curve, and one for the share of the peak."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    panels = figure.subplots(2, 4).ravel()
    curves = results["curves"]
    for ax, (name, curve) in zip(panels, curves.items(), strict=False):
        _draw_curve(ax, name, curve, model, set(modelled(dict(results))))
    _draw_shares(panels[len(curves)], curves["n_samples"])
    for ax in panels[len(curves) + 1 :]:
        ax.set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=110, metadata={"Software": None})
    return target.getvalue()


def _draw_curve(ax: Any, name: str, curve: list[dict[str, Any]], model: CostModel, known: set[Any]) -> None:
    """Microseconds a candidate; of the curve against P the seconds of the step."""
    from matplotlib.ticker import LogLocator, NullLocator

    whole = name == "n_candidates"
    x = [each[name] for each in curve]
    y = [each["seconds"] if whole else each["microseconds_per_candidate"] for each in curve]
    ax.plot(x, y, "o", color=COLOURS[0], markersize=5, label="measured")
    lines = [(each[name], model.predict(size_of(each)), each) for each in curve if size_of(each) in known]
    if lines:
        values = [seconds if whole else seconds / each["n_candidates"] * 1e6 for _, seconds, each in lines]
        ax.plot([place for place, _, _ in lines], values, color=COLOURS[1], linewidth=1.4, label="model")
    if name == "n_jobs":
        ax.plot(x, [y[0] * x[0] / threads for threads in x], "--", color=GREY, linewidth=1, label="ideal")
        ax.legend(frameon=False, fontsize=8)
    if name == "n_selected":
        ax.set_xscale("symlog", linthresh=5, linscale=0.3)
    else:
        ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(min(y) / 3, max(y) * 3)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(y) < 100 * min(y) else (1,)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.yaxis.set_minor_locator(NullLocator())
    _ticks(ax, x)
    ax.set_xlabel(AXES[name])
    ax.set_ylabel("seconds a step" if whole else "µs a candidate")
    clean(ax)


def _draw_shares(ax: Any, curve: list[dict[str, Any]]) -> None:
    x = [each["n_samples"] for each in curve]
    ax.plot(x, [100 * each["share_of_peak"] for each in curve], "o-", color=COLOURS[2], markersize=5)
    ax.set_xscale("log")
    _ticks(ax, x)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(AXES["n_samples"])
    ax.set_ylabel("% of the peak")
    clean(ax)


def _ticks(ax: Any, x: list[int]) -> None:
    """Name the measured values, and nothing between them."""
    ax.set_xticks(x, [f"{value // 1000}k" if value >= 1000 else str(value) for value in x], fontsize=8)
    ax.set_xticks([], minor=True)


# ---------------------------------------------------------------- the page

FILL: dict[str, Callable[[str], str]] = {
    "repetitions": lambda name: str(read(name)["plan"]["repetitions"]),
    "machine": machine,
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
}


def document() -> str:
    """The template with its blanks filled in."""
    return BLANK.sub(lambda blank: FILL[blank[1]](blank[2]), (DOCS / "scaling.template.md").read_text())


def main() -> None:
    for name, picture in PICTURES.items():
        write_whole(DOCS / picture, draw(read(name), fitted(read(name))))
    write_whole(DOCS / "scaling.md", document().encode())


if __name__ == "__main__":
    main()
