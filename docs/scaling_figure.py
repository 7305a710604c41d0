"""The pictures of docs/scaling.md: measured points and the model's line."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from benchmarks.cost_model import CostModel
from benchmarks.scaling import modelled, size_of
from ngp.report.style import COLOURS, GREY, clean

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
