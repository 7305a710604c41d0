"""Plots of a selection; matplotlib is only imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ngp._formatting import counted, group_names, metric, only_additions, share_with_error, taken_back, undone
from ngp._types import BoolArray, FloatArray, IntArray
from ngp.greedy.path import Step, additions
from ngp.report.dependence import Curve
from ngp.report.result import Result
from ngp.report.style import COLOURS, GREY, clean, figure_width, is_narrow, new_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = [
    "MOST_BARS", "MOST_PAIRS", "candidates_shown", "draw_candidates", "draw_curve", "draw_fit", "draw_pixels",
    "draw_ranking", "draw_runners_up", "draw_stability", "pixel_ranks", "plot_path", "plot_pixels", "until_end",
]  # fmt: skip

BLUE, ORANGE, PALE_GREY = *COLOURS[:2], "#8C8C8C"
WHITE = "#FDFDFD"  # also on a dark page, where "white" becomes the colour of the page
# How steps are marked, in the order of the legend: sign, colour, face.
MARKS = {
    "selected": ("o", BLUE, BLUE),
    "dropped": ("v", BLUE, BLUE),
    "undone later": ("o", BLUE, "white"),
    "taken back": ("o", GREY, "white"),
}
MOST_LABELS, MOST_BARS, MOST_PAIRS = 40, 60, 40


def steps_of(source: Any) -> Sequence[Step]:
    """The steps of a selector, a result or a path."""
    if hasattr(source, "fit") and hasattr(source, "get_params"):
        check_is_fitted(source, "path_")
        steps = source.path_
    else:
        steps = source.path if isinstance(source, Result) else getattr(source, "steps", source)
    if not isinstance(steps, Sequence) or not steps or not all(isinstance(step, Step) for step in steps):
        raise TypeError(f"path={source!r} has no steps to plot: give a fitted selector or its path_.")
    return steps


def plot_path(path: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the validation loss against the number of selected features.

    Error bars are one standard error. Above are the numbers of features and, of a selector or a result, the
    cross-validated accuracy or R². Filled circles are the steps that make up the selection, hollow grey ones were
    taken back. A grey dash beside a step is the loss that the runner-up would have led to, and the grey band what
    chance would have led to, if that was measured (`NeuralGreedyPursuit.measure_chance`). The axis of the losses is
    logarithmic if they differ by more than a factor of 10.

    If features were dropped or exchanged, the loss is plotted against the number of the step. A triangle is a drop;
    hollow blue circles are additions that a later step has undone.

    Parameters
    ----------
    path : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector, its result, or its steps (`path_`).
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> plot_path(selector).get_ylabel()
    'validation loss ± standard error'
    """
    steps = steps_of(path)
    ax = ax or new_axes("plot_path", min(14.0, max(6.4, 3.0 + 0.3 * len(steps))), 4.8)
    _draw_chance(ax, steps, path.chance if isinstance(path, Result) else getattr(path, "chance_", None))
    _draw_losses(ax, steps)
    _mark_end(ax, steps)
    _draw_runners_up(ax, steps)
    _label_steps(ax, steps, path.asked.task if isinstance(path, Result) else getattr(path, "task_", ""))
    _label_losses(ax, steps)
    n_fixed = steps[0].n_selected
    title = f"{len(additions(steps))} of {len(steps[0].losses)} candidates selected"
    ax.set_title(f"{title}, beside {n_fixed} fixed columns" if n_fixed else title)
    ax.spines[["top", "right"]].set_visible(False)
    _add_legend(ax)
    return ax


def _places(steps: Sequence[Step]) -> FloatArray:
    """Where each step is drawn: at its number of features or, as that can also fall, at its own number."""
    numbers = [step.n_selected for step in steps] if only_additions(steps) else range(len(steps))
    return np.array(numbers, dtype=np.float64)


def _kinds(steps: Sequence[Step]) -> npt.NDArray[np.str_]:
    """Which of `MARKS` each step gets."""
    back = taken_back(steps)
    return np.array([
        "taken back" if number in back
        else "undone later" if not step.kept
        else "dropped" if step.action == "drop"
        else "selected"
        for number, step in enumerate(steps)
    ])  # fmt: skip


def _draw_losses(ax: Axes, steps: Sequence[Step]) -> None:
    places, kinds = _places(steps), _kinds(steps)
    losses = np.array([step.loss for step in steps])
    errors = np.nan_to_num(np.array([step.standard_error for step in steps]))
    bars = np.array([np.minimum(errors, 0.9 * np.abs(losses)), errors])  # above zero, where a logarithmic axis ends
    stood = np.flatnonzero(kinds != "taken back")
    # Steps that were taken back branch off from the last step that was not.
    for first, end in zip(stood, [*stood[1:], len(steps)], strict=True):
        if first + 1 < end:
            ax.plot(places[first:end], losses[first:end], color=GREY, linewidth=1.0, zorder=2)
    ax.plot(places[stood], losses[stood], color=BLUE, linewidth=1.8, zorder=2)
    size = 6.0 if len(steps) <= MOST_LABELS else 4.5
    for kind, (mark, color, face) in MARKS.items():
        part = kinds == kind
        if part.any():
            ax.errorbar(
                places[part], losses[part], yerr=bars[:, part], fmt=mark, color=color, markerfacecolor=face,
                markersize=size, elinewidth=1.0, label=kind, zorder=3,
            )  # fmt: skip
    start = "fixed columns" if len(steps[0].columns) else "constant prediction"
    ax.axhline(losses[0], color="black", linestyle="--", linewidth=0.8, label=start, zorder=1)


def _draw_chance(ax: Axes, steps: Sequence[Step], chance: npt.ArrayLike | None) -> None:
    """A band where the losses would be by chance."""
    if chance is not None:
        low, high = np.array(chance, dtype=np.float64).T
        places = _places(steps)
        for first in np.flatnonzero(np.isfinite(low)):
            label = None if np.isfinite(low[:first]).any() else "by chance"
            ends = [places[first] - 0.5, places[first] + 0.5]
            ax.fill_between(ends, low[first], high[first], color=PALE_GREY, alpha=0.3, linewidth=0, label=label)


def _mark_end(ax: Axes, steps: Sequence[Step]) -> None:
    number = max(number for number, step in enumerate(steps) if step.kept)
    last, place = steps[number], _places(steps)[number]
    label = f"the selection: {counted(last.n_selected, 'feature')}"
    ax.axvline(place, color=ORANGE, linewidth=1.0, alpha=0.5, zorder=1)
    ax.plot(place, last.loss, "o", color=ORANGE, ms=13, mfc="none", mew=1.8, label=label)


def _draw_runners_up(ax: Axes, steps: Sequence[Step]) -> None:
    losses = np.array([step.runner_up_loss for step in steps])
    if np.isfinite(losses).any():
        ax.plot(_places(steps) + 0.22, losses, "_", color=PALE_GREY, ms=7, mew=1.8, label="runner-up", zorder=2)


def _label_losses(ax: Axes, steps: Sequence[Step]) -> None:
    from matplotlib.ticker import LogLocator

    ax.set_ylabel("validation loss ± standard error")
    losses = np.array([step.loss for step in steps])
    if losses.min() > 0 and losses.max() > 10 * losses.min():
        ax.set_yscale("log")
        if losses.max() < 1000 * losses.min():
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.yaxis.set_minor_formatter("")


def _add_legend(ax: Axes) -> None:
    marks = zip(*ax.get_legend_handles_labels(), strict=True)
    handles, labels = zip(*sorted(marks, key=lambda mark: mark[1] not in MARKS), strict=True)
    if is_narrow(ax):  # inside, it would hide the path
        look: dict[str, Any] = {"ncols": 2, "fontsize": "small", "frameon": False, "handlelength": 1.4}
        ax.figure.legend(handles, labels, loc="outside lower left", columnspacing=1.0, **look)
    else:
        ax.legend(handles, labels, edgecolor="none", framealpha=0.9)


def _label_steps(ax: Axes, steps: Sequence[Step], task: str) -> None:
    """Write what was added or dropped below the axis (of a long path only some steps), numbers and scores above."""
    room, simple = min(1.0, figure_width(ax) / 6.4), only_additions(steps)
    every = -(-len(steps) // int(MOST_LABELS * room))
    shown, places = steps[::every], _places(steps)
    many = len(shown) > 12 * room
    names = _tick_names(steps, shown, longest=18 if many else 24)
    letters = 15 * (figure_width(ax) - 1)  # that fit side by side, approximately
    look: dict[str, Any] = {}
    if (max(map(len, names)) + (not simple)) * len(names) > letters:
        look = {"rotation": 90} if many else {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(places[::every], names, **look)
    for kind, text in zip(_kinds(steps)[::every], ax.get_xticklabels(), strict=True):
        text.set_color(GREY if kind == "taken back" else "black")
    what = "feature added" if simple else "feature added (+), dropped (−) or exchanged"
    if not simple and room < 1:
        what = "added (+) or dropped (−)"
    ending = {2: "nd", 3: "rd"}.get(every, "th")
    ax.set_xlabel(what if every == 1 else f"{what} (every {every}{ending} is named)")
    above, every = ax.secondary_xaxis("top"), -(-len(steps) // int(20 * room))
    scored = task and any(step.score == step.score for step in steps)
    form = "{}" if not scored else "{}\n{:.0%}" if task == "classification" else "{}\n{:.2f}"
    above.set_xticks(places[::every], [form.format(step.n_selected, step.score) for step in steps[::every]])
    above.tick_params(length=0, labelsize="small", labelcolor=GREY)
    above.spines["top"].set_visible(False)
    unit = f", and {'' if room < 1 else 'cross-validated '}{metric(task)}" if scored else ""
    above.set_xlabel(f"number of features{unit}", fontsize="small", color=GREY)


def _tick_names(steps: Sequence[Step], shown: Sequence[Step], longest: int) -> list[str]:
    added, plus = group_names(steps), "" if only_additions(steps) else "+ "

    def label(step: Step) -> str:
        if step.action == "start":
            return "fixed" if len(step.columns) else "none"
        if step.action == "swap" and step.dropped is not None:
            return f"{shown_name(step.name, longest // 2)} for {shown_name(added[step.dropped], longest // 2)}"
        return f"{'− ' if step.action == 'drop' else plus}{shown_name(step.name, longest)}"

    return [label(step) for step in shown]


def draw_ranking(result: Result, ax: Axes) -> None:
    """By how much the loss rises without each selected feature, as a share of the constant prediction's."""
    first = result.evidence[: min(len(result.order), MOST_BARS)]
    shares, errors = (
        [100 * each for each in part] for part in zip(*((e.importance, e.standard_error) for e in first), strict=True)
    )
    names = [
        f"{rank}. {shown_name(result.groups.names[each.group], _longest(ax))}" for rank, each in enumerate(first, 1)
    ]
    ends = [max(0.0, share) + (error if error > 0 else 0.0) for share, error in zip(shares, errors, strict=True)]
    _draw_bars(
        ax, names, shares, [share_with_error(share / 100, np.nan) for share in shares], [BLUE] * len(names), ends
    )
    ax.errorbar(shares, range(len(shares)), xerr=np.nan_to_num(errors), fmt="none", ecolor="black", elinewidth=1.0)
    _label_bars(
        ax, "rise of the loss without it (%)" if is_narrow(ax) else "share of the constant prediction's loss (%)"
    )


def draw_runners_up(result: Result, ax: Axes) -> None:
    """How far the runner-up of each step was behind, in standard errors of the winner's loss (cut at 5).

    Without standard errors the gap is a share of the winner's loss. Close calls are orange.
    """
    steps = [step for step in until_end(result.path) if step.runner_up is not None][:MOST_PAIRS]
    gaps = np.array([step.runner_up_loss - step.loss for step in steps])
    errors = np.array([step.standard_error for step in steps])
    has_errors = bool((errors > 0).all())
    scaled = gaps / errors if has_errors else 100 * gaps / np.array([step.loss or np.nan for step in steps])
    close = (scaled < 1) & has_errors
    pairs = [(step.name, result.groups.names[step.runner_up or 0]) for step in steps]
    names = ["\nover ".join(shown_name(name, _longest(ax)) for name in pair) for pair in pairs]
    unit = "" if has_errors else "%"
    labels = [f"{gap:.1f}{unit}{' close' if near else ''}" for gap, near in zip(scaled, close, strict=True)]
    lengths = np.minimum(scaled, 5.0) if has_errors else scaled
    _draw_bars(ax, names, lengths, labels, [ORANGE if near else BLUE for near in close])
    if has_errors:
        ax.axvline(1, color="black", linewidth=0.8, linestyle="--")
    _label_bars(ax, "gap (standard errors)" if has_errors else "gap (% of the winner's loss)")


def draw_stability(result: Result, ax: Axes) -> None:
    """How often each feature was selected on halves of the rows; the most frequent ones."""
    assert result.stability is not None
    frequencies = zip(result.groups.names, result.stability.frequencies, strict=True)
    ranked = sorted((pair for pair in frequencies if pair[1] > 0), key=lambda pair: -pair[1])[:MOST_BARS]
    shares = [100 * share for _, share in ranked]
    colours = [BLUE if share >= 50 else COLOURS[5] for share in shares]
    _draw_bars(ax, [shown_name(name) for name, _ in ranked], shares, [f"{share:.0f}%" for share in shares], colours)
    ax.set_xlim(0, 112)
    ax.set_xticks(range(0, 101, 25))
    ax.axvline(50, color="black", linewidth=0.8, linestyle="--")
    _label_bars(ax, "share of the repetitions that selected the feature (%)")


def _longest(ax: Axes) -> int:
    return 18 if is_narrow(ax) else 30


def _draw_bars(
    ax: Axes,
    names: Sequence[str],
    lengths: Sequence[float],
    labels: Sequence[str],
    colours: Sequence[str],
    ends: Sequence[float] | None = None,  # where labels begin
) -> None:
    rows = range(len(names))
    ax.barh(rows, lengths, color=colours, height=0.68)
    for row, length, label in zip(rows, ends or lengths, labels, strict=True):
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # so that no line runs through it
        place = (max(float(length), 0.0), row)
        ax.annotate(label, place, (4, 0), textcoords="offset points", va="center", fontsize="small", bbox=ground)
    ax.set_yticks(rows, names)
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)  # the first one on top
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.22 if is_narrow(ax) else 0.12)
    clean(ax)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(GREY)


def _label_bars(ax: Axes, text: str) -> None:
    """Name the axis; in a narrow figure, where the text is longer than the axis, flush right."""
    ax.set_xlabel(text, loc="right" if is_narrow(ax) else "center", fontsize="small" if is_narrow(ax) else "medium")


def draw_curve(result: Result, curve: Curve, ax: Axes) -> None:
    """The average prediction for each value of a column."""
    values = curve.values if curve.categories is None else range(len(curve.values))
    for averages, colour in zip(curve.averages, COLOURS, strict=False):
        if curve.categories is None and len(values) > 2:
            ax.plot(values, averages, color=colour, linewidth=1.8)
        else:
            ax.plot(values, averages, "o", color=colour, markersize=6, linestyle=":", linewidth=1.0)
    if curve.categories is not None:
        names = [shown_name(name, 10) for name in curve.categories]
        rotation = 90 if sum(map(len, names)) > 24 else 0
        every = -(-len(names) // 12)
        ax.set_xticks(values[::every], names[::every], rotation=rotation)
    every_average = np.concatenate([np.ravel(each.averages) for each in result.curves])
    low, high = float(every_average.min()), float(every_average.max())
    room = 0.06 * (high - low or 1.0)
    ax.set_ylim(low - room, high + room)
    ax.locator_params(axis="y", nbins=4)
    if curve.categories is None:
        ax.locator_params(axis="x", nbins=5)
    ax.tick_params(labelsize="small")
    clean(ax)


def draw_candidates(result: Result, ax: Axes) -> None:
    """For every step, the improvement of each candidate as a share of the winner's.

    A dot marks the winner. A line follows a selected candidate, up to a cross if it was dropped.
    """
    steps, n_shades = until_end(result.path), 5
    rows = candidates_shown(steps)
    cells = ax.imshow(
        _improvement_shares(steps)[:, rows].T, cmap=_blues(0.04, n_shades), vmin=0, vmax=1, aspect="auto",
        interpolation="none", extent=(0.5, len(steps) + 0.5, len(rows) - 0.5, -0.5),
    )  # fmt: skip
    _mark_winners(ax, [result.path[0], *steps], rows)
    size = "x-small" if len(rows) > 30 else "small"
    names = [shown_name(result.groups.names[group], _longest(ax)) for group in rows]
    ax.set_yticks(range(len(rows)), names, fontsize=size)
    ax.set_xticks(range(1, len(steps) + 1, -(-len(steps) // (8 if is_narrow(ax) else 20))))
    ax.set_xlabel("step")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(cells, ax=ax, location="top", aspect=40, pad=0.01, fraction=0.05, shrink=0.9)
    place = "right" if is_narrow(ax) else "center"
    bar.set_label("improvement, as a share of the winner's (%)", fontsize="small", loc=place)
    bar.set_ticks([0, 0.2, 0.4, 0.6, 0.8, 1], labels=["0", "20", "40", "60", "80", "100"])
    bar.ax.tick_params(labelsize="small", length=0)
    bar.outline.set_visible(False)


def _blues(least: float, n_shades: int = 256) -> Colormap:
    """Transparent to blue, so that small values fade into any background."""
    from matplotlib.colors import LinearSegmentedColormap

    blue = (0.09, 0.50, 0.78)
    return LinearSegmentedColormap.from_list("blues", [(*blue, least), (*blue, 1.0)], N=n_shades)


def _improvement_shares(steps: Sequence[Step]) -> FloatArray:
    """Improvement of the loss as a share of the winner's, one row per step; NaN if not tried, and in drops.

    Steps that improved nothing remain empty, too.
    """
    rows = []
    for step in steps:
        if step.action == "drop" or step.group is None or not step.losses[step.group] < step.paired < np.inf:
            rows.append(np.full(len(step.losses), np.nan))
            continue
        losses = np.where(np.isfinite(step.losses), step.losses, np.nan)
        rows.append(np.clip((step.paired - losses) / (step.paired - step.losses[step.group]), 0, 1))
    return np.array(rows).reshape(len(steps), -1)


def until_end(path: Sequence[Step]) -> Sequence[Step]:
    """The steps that led to the selection, without those that were tried after it and taken back."""
    return path[1 : 1 + max(number for number, step in enumerate(path) if step.kept)]


def candidates_shown(steps: Sequence[Step]) -> IntArray:
    """Candidates that were picked, in order, then those that came closest; none that was never tried."""
    if not steps:
        return np.zeros(0, dtype=np.intp)
    nearest = np.nan_to_num(_improvement_shares(steps), nan=-1.0).max(axis=0)
    picked = [*dict.fromkeys(step.group for step in steps if step.group is not None)]
    nearest[picked] = np.inf
    others = [int(group) for group in np.argsort(-nearest, kind="stable") if 0 <= nearest[group] < np.inf]
    # Of many candidates, those that never had a fifth of the winner's improvement are left out.
    n_near = len(picked) + sum(nearest[group] >= 0.2 for group in others)
    return np.array([*picked, *others][: min(60, max(20, n_near))], dtype=np.intp)


def _mark_winners(ax: Axes, steps: Sequence[Step], rows: IntArray) -> None:
    """A dot where a candidate was picked (hollow if taken back), a line while it is in, a cross where it is dropped."""
    places = {int(group): row for row, group in enumerate(rows)}
    size = min(5.0, max(1.5, 30 * figure_width(ax) / max(len(steps) - 1, 1)))  # so that it fits its cell
    drops, back = undone(steps), taken_back(steps)
    for number, step in enumerate(steps):
        row = places.get(-1 if step.group is None else step.group)
        if row is None:
            continue
        face = "none" if number in back else WHITE
        ax.plot(number, row, "o", markersize=size, markerfacecolor=face, markeredgecolor=WHITE, clip_on=False)
        end = drops.get(number, len(steps))
        if number not in back and number + 1 < end:
            ax.plot([number + 0.5, end - 0.5], [row, row], color=GREY, linewidth=1.0, alpha=0.6)
        if end < len(steps):
            ax.plot(end, row, "x", markersize=size + 1, markeredgewidth=1.5, color="#000000", clip_on=False)


def draw_fit(result: Result, ax: Axes) -> None:
    """Predictions against the truth, or the confusion matrix of classes."""
    fit, target = result.fit, shown_name(result.asked.target)
    assert fit is not None
    if fit.classes is not None:
        _draw_confusion(ax, fit.classes, np.array(fit.confusion))
        ax.set(xlabel=f"predicted {target}", ylabel=f"true {target}")
    else:
        _draw_scatter(ax, np.array(fit.truth), np.array(fit.predicted))
        ax.set(xlabel=f"true {target}", ylabel=f"predicted {target}")


def _draw_scatter(ax: Axes, truth: FloatArray, predicted: FloatArray) -> None:
    opacity = float(np.clip(60 / max(len(truth), 1), 0.25, 0.7))
    ax.plot(truth, predicted, "o", color=BLUE, markersize=4, markeredgewidth=0, alpha=opacity)
    both = np.concatenate([truth, predicted])
    finite = both[np.isfinite(both)]
    if len(finite):
        ends = [float(finite.min()), float(finite.max())]
        ax.plot(ends, ends, color="black", linewidth=0.8, linestyle="--")
    ax.set_aspect("equal", adjustable="datalim")
    clean(ax)


def _draw_confusion(ax: Axes, classes: list[str], counts: IntArray) -> None:
    """Counts, coloured by their share in the row, so that rare classes show as well."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap=_blues(0.0), vmin=0, vmax=1, interpolation="none")
    names = [shown_name(name, 14) for name in classes]
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) * len(names) > 40 else 0)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0, labelsize="small")
    cell = 72 * (figure_width(ax) - 1.2) / len(names)
    size = min(8.5, (cell - 3) / (0.65 * len(str(counts.max()))))
    if size >= 5.5:  # smaller letters can't be read
        for row, col in np.argwhere(counts > 0):
            colour = WHITE if shares[row, col] > 0.45 else "black"
            ax.text(col, row, str(counts[row, col]), ha="center", va="center", fontsize=size, color=colour)
    ax.spines[:].set_color(PALE_GREY)


def plot_pixels(
    source: Any, image_shape: Sequence[int], image: npt.ArrayLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot which pixels were selected, with their rank in the order of selection if there is room for it.

    Parameters
    ----------
    source : NeuralGreedyPursuit, Result, Path or sequence of Step
        A fitted selector whose columns are the pixels of an image in C order, its result, or its steps.
    image_shape : (rows, cols) or (rows, cols, channels)
        Shape of the image.
    image : array of shape (rows, cols), optional
        What is shown in grey behind, such as the mean of all images; the darker, the larger.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ngp import NeuralGreedyPursuit
    >>> X, y = load_digits(return_X_y=True)
    >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X[:300], y[:300])
    >>> plot_pixels(selector, (8, 8), X.mean(axis=0).reshape(8, 8)).get_title(loc="left")
    '2 of 64 pixels, in 2 steps'
    """
    steps = steps_of(source)
    shape, n_steps = tuple(int(size) for size in image_shape), len(additions(steps))
    highest = max((int(column) for step in (steps[0], *additions(steps)) for column in step.columns), default=0)
    if len(shape) not in (2, 3) or min(shape) < 1 or highest >= np.prod(shape):
        raise ValueError(
            f"image_shape={tuple(image_shape)!r} is no shape of an image with a pixel {highest}: "
            "give (rows, cols) or (rows, cols, channels)."
        )
    ranks = pixel_ranks(steps, shape)
    rows, cols = ranks.shape
    ax = ax or new_axes("plot_pixels", 4.4, 4.4 * min(2.0, max(0.4, rows / cols)) + 0.4)
    chosen = np.isfinite(ranks)
    ax.imshow(_coloured(chosen, image), interpolation="none")
    _outline(ax, ranks)
    _write_ranks(ax, ranks, n_steps)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=PALE_GREY)
    ax.set_title(f"{chosen.sum()} of {rows * cols} pixels, in {counted(n_steps, 'step')}", loc="left")
    return ax


def draw_pixels(result: Result, ax: Axes) -> None:
    """The selected pixels over the mean image."""
    assert result.image is not None
    plot_pixels(result, result.image.shape, result.image.mean, ax=ax)


def pixel_ranks(steps: Sequence[Step], shape: Sequence[int]) -> FloatArray:
    """The rank of each pixel in the order of selection, 0 if fixed, NaN if not selected; the first of its channels."""
    ranks = np.full(int(np.prod(shape)), np.nan)
    for rank, step in enumerate((steps[0], *additions(steps))):
        ranks[step.columns] = rank
    first: FloatArray = np.fmin.reduce(ranks.reshape(shape[0], shape[1], -1), axis=2)
    return first


def _write_ranks(ax: Axes, ranks: FloatArray, n_steps: int) -> None:
    pixel = 72 * figure_width(ax) * 0.9 / ranks.shape[1]  # points
    for rank in range(1, n_steps + 1):
        members: IntArray = np.argwhere(ranks == rank)
        width = pixel * np.sqrt(len(members))
        if width >= 13:  # else it can't be read
            row, col = members.mean(axis=0)
            box = {"boxstyle": "round,pad=0.2", "facecolor": "#1A1A1A", "edgecolor": "none"}
            size = min(12.0, max(7.0, 0.3 * width))
            ax.text(col, row, str(rank), color=WHITE, ha="center", va="center", fontsize=size, bbox=box)


def _outline(ax: Axes, ranks: FloatArray) -> None:
    """Draw the edges between pixels of different steps."""
    padded = np.pad(np.nan_to_num(ranks, nan=-1.0), 1, constant_values=-1)
    look: dict[str, Any] = {"color": ORANGE, "linewidth": 1.8, "clip_on": False}
    for row, col in np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1]):
        ax.plot([col - 0.5] * 2, [row - 0.5, row + 0.5], **look)
    for row, col in np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1]):
        ax.plot([col - 0.5, col + 0.5], [row - 0.5] * 2, **look)


def _coloured(chosen: BoolArray, image: npt.ArrayLike | None) -> FloatArray:
    """The image, its selected pixels in shades of orange and the others in pale grey; or the selection alone."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    if image is None:
        return np.where(chosen[..., None], to_rgba(ORANGE), 0.0)
    values = np.asarray(image, dtype=np.float64)
    if values.shape != chosen.shape:
        raise ValueError(
            f"image of shape {values.shape} isn't of the image_shape {chosen.shape}: give one value per pixel."
        )
    shades = (values - values.min()) / (float(np.ptp(values)) or 1.0)
    grey, orange = colormaps["gray_r"](shades), colormaps["Oranges"](0.2 + 0.8 * shades)
    grey[..., 3] = 0.5
    mixed: FloatArray = np.where(chosen[..., None], orange, grey)
    return mixed
