"""The plot shows the path: its losses, what was kept, where it stopped, who came second."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import report_cases as cases
from sklearn.exceptions import NotFittedError

from ngp import NeuralGreedyPursuit
from ngp._formatting import taken_back
from ngp.datasets import make_ohm
from ngp.greedy.path import Path, Step
from ngp.report import plot_path
from ngp.report.plots import MOST_LABELS

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


def make_steps(losses: list[float], n_kept: int, n_fixed: int = 0, name: str = "x{}") -> list[Step]:
    """A start and one addition a further loss; the first n_kept additions are kept."""
    start = Step(
        action="start", group=None, name="", columns=np.arange(n_fixed), before=np.nan, loss=losses[0],
        standard_error=0.1, gain=np.nan, runner_up=None, runner_up_loss=np.nan, seconds=0.1, n_fits=0,
        n_selected=n_fixed, n_columns=n_fixed, fold_losses=np.array([losses[0]]), fold_weights=np.ones(1),
        losses=np.full(99, np.nan), predictor="SSFN",
    )  # fmt: skip
    return [start] + [
        replace(start, action="add", group=k, name=name.format(k), columns=np.array([k]), before=losses[k - 1],
                loss=loss, runner_up=0, runner_up_loss=loss + 0.05, n_selected=n_fixed + k, kept=k <= n_kept)
        for k, loss in enumerate(losses[1:], 1)
    ]  # fmt: skip


def points(ax: Axes, label: str) -> np.ndarray:
    """The points behind an entry of the legend, one (x, y) a row."""
    handles, labels = ax.get_legend_handles_labels()
    line = dict(zip(labels, handles, strict=True))[label]
    line = line[0] if isinstance(line, tuple) else line
    return np.asarray(line.get_xydata())


def tick_names(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_xticklabels()]


def test_kept_and_taken_back_steps_are_told_apart() -> None:
    ax = plot_path(make_steps([4.0, 3.0, 2.0, 2.1], n_kept=2))
    assert points(ax, "selected").tolist() == [[0, 4], [1, 3], [2, 2]]
    assert points(ax, "taken back").tolist() == [[3, 2.1]]
    assert points(ax, "the selection: 2 features").tolist() == [[2, 2]]
    assert tick_names(ax) == ["none", "x1", "x2", "x3"]
    assert ax.get_title() == "2 of 99 candidates selected"
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_nothing_is_taken_back_where_all_is_kept() -> None:
    ax = plot_path(make_steps([4.0, 3.0], n_kept=1))
    assert "taken back" not in ax.get_legend_handles_labels()[1]
    assert points(ax, "the selection: 1 feature").tolist() == [[1, 3]]


def test_error_bars_are_one_standard_error() -> None:
    ax = plot_path(make_steps([4.0, 3.0], n_kept=1))
    segments = ax.containers[0].lines[2][0].get_segments()
    assert np.allclose(segments, [[[0, 3.9], [0, 4.1]], [[1, 2.9], [1, 3.1]]])


def test_unknown_standard_errors_have_no_bars() -> None:
    ax = plot_path([replace(step, standard_error=np.nan) for step in make_steps([4.0, 3.0], n_kept=1)])
    assert np.allclose(np.diff(ax.containers[0].lines[2][0].get_segments(), axis=1), 0)


def test_runners_up_stand_beside_their_steps() -> None:
    runners_up = points(plot_path(make_steps([4.0, 3.0, 2.0], n_kept=2)), "runner-up")[1:]
    assert np.allclose(runners_up[:, 1], [3.05, 2.05])
    assert ((runners_up[:, 0] > [1, 2]) & (runners_up[:, 0] < [1.5, 2.5])).all()


def test_constant_prediction_is_a_line_across() -> None:
    assert np.allclose(points(plot_path(make_steps([4.0, 3.0], n_kept=1)), "constant prediction")[:, 1], 4)


def test_fixed_columns_are_named_as_the_start() -> None:
    ax = plot_path(make_steps([4.0, 3.0], n_kept=1, n_fixed=2))
    assert tick_names(ax)[0] == "fixed"
    assert np.allclose(points(ax, "fixed columns")[:, 1], 4)
    assert ax.get_title() == "1 of 99 candidates selected, beside 2 fixed columns"


def test_empty_selection() -> None:
    ax = plot_path(make_steps([4.0, 3.99], n_kept=0))
    assert points(ax, "the selection: 0 features").tolist() == [[0, 4]]


def test_only_the_start() -> None:
    assert tick_names(plot_path(make_steps([4.0], n_kept=0))) == ["none"]


def test_long_path_names_some_steps() -> None:
    names = tick_names(plot_path(make_steps(list(np.linspace(4, 2, 61)), n_kept=30)))
    assert names[:3] == ["none", "x2", "x4"]
    assert len(names) <= MOST_LABELS


def test_long_names_are_rotated_and_cut() -> None:
    ax = plot_path(make_steps([4.0, 3.0, 2.0, 1.0], n_kept=3, name="a name that is far too long {}"))
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {35}
    assert max(map(len, tick_names(ax))) == 24


@pytest.mark.parametrize(("last", "scale"), [(0.3, "log"), (0.5, "linear"), (0.0, "linear")])
def test_losses_that_differ_much_are_shown_on_a_log_axis(last: float, scale: str) -> None:
    ax = plot_path(make_steps([4.0, last], n_kept=1))
    assert ax.get_yscale() == scale
    ax.figure.canvas.draw()


def rows_of(steps: Sequence[Step], numbers: Sequence[int]) -> list[list[float]]:
    return [[number, steps[number].loss] for number in numbers]


def test_drops_and_exchanges_are_drawn_step_by_step() -> None:
    case = cases.exchanges()
    steps, ax = case.selector.path_, plot_path(case.selector)
    assert points(ax, "selected").tolist() == rows_of(steps, [0, 3, 4, 5, 10])
    assert points(ax, "dropped").tolist() == rows_of(steps, [8, 9])
    assert points(ax, "undone later").tolist() == rows_of(steps, [1, 2, 7])
    assert points(ax, "taken back").tolist() == rows_of(steps, [6, 11])
    assert points(ax, "the selection: 4 features").tolist() == rows_of(steps, [10])
    assert ax.get_title() == "4 of 10 candidates selected"
    assert tick_names(ax)[:4] == ["none", "+ x3", "+ x4", "+ x1"]
    assert tick_names(ax)[6:] == ["+ x6", "x6 for x4", "− x3", "− x6", "+ x8", "+ x5"]
    assert [text.get_color() == "black" for text in ax.get_xticklabels()] == [k not in (6, 11) for k in range(12)]
    assert ax.get_xlabel() == "feature added (+), dropped (−) or exchanged"


def test_the_numbers_of_features_are_above_where_they_fall_too() -> None:
    steps = cases.exchanges().selector.path_
    (above,) = plot_path(steps).child_axes
    assert above.get_xticks().tolist() == list(range(12))
    assert [text.get_text() for text in above.get_xticklabels()] == [str(step.n_selected) for step in steps]


@pytest.mark.parametrize("name", list(cases.FLOATING))
def test_the_line_follows_the_steps_that_stood(name: str) -> None:
    steps = cases.FLOATING[name]().selector.path_
    back = taken_back(steps)
    stood = rows_of(steps, [number for number in range(len(steps)) if number not in back])
    drawn = [line for line in plot_path(steps).lines if line.get_marker() == "None" and len(line.get_xdata()) > 1]
    lines = [np.asarray(line.get_xydata()).tolist() for line in drawn]
    assert stood in lines
    off = [line for line in lines if line[1] in rows_of(steps, sorted(back))]
    assert all(line[0] in stood for line in off)
    assert sorted(point for line in off for point in line[1:]) == rows_of(steps, sorted(back))


@pytest.mark.parametrize("name", list(cases.FLOATING))
@pytest.mark.parametrize("width", [3.15, 6.4])
def test_labels_of_drops_and_exchanges_fit(name: str, width: float) -> None:
    figure = pyplot.figure(figsize=(width, 4.6), layout="constrained")
    ax = plot_path(cases.FLOATING[name]().selector, ax=figure.add_subplot())
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    if ax.get_xticklabels()[0].get_rotation() in (0, 90):
        assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    label = ax.xaxis.label.get_window_extent()
    assert 0 <= label.x0 < label.x1 <= figure.bbox.x1


def test_selector_path_and_steps_are_the_same_to_it() -> None:
    X, y, _ = make_ohm(60, random_state=0)
    selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, y)
    ax = pyplot.figure().add_subplot()
    assert selector.plot_path(ax=ax) is ax
    shown = points(ax, "selected").tolist()
    assert shown == [[step.n_selected, step.loss] for step in selector.path_]
    for path in (selector, selector.path_, Path(selector.path_, "")):
        assert points(plot_path(path), "selected").tolist() == shown


def test_unfitted_selector() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        NeuralGreedyPursuit().plot_path()


@pytest.mark.parametrize("path", [[], 3, ["x1"]])
def test_no_steps(path: object) -> None:
    with pytest.raises(TypeError, match="no steps to plot: give a fitted selector"):
        plot_path(path)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install neural-greedy-pursuit\[plot\]"):
        plot_path(make_steps([4.0, 3.0], n_kept=1))
