"""The plot shows the path: its losses, what was kept, where it stopped, who came second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_ohm
from ngp.path import Path, Step
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
