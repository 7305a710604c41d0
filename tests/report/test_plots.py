"""The plots show what the selector found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import report_cases as cases
from sklearn.exceptions import NotFittedError

from ngp import NeuralGreedyPursuit
from ngp._formatting import taken_back
from ngp.greedy.path import Path, Step
from ngp.report import plot_path, plot_pixels
from ngp.report.plots import draw_candidates, draw_fit, draw_ranking, draw_runners_up, draw_stability
from ngp.report.result import Result
from ngp.report.style import COLOURS, shown_name

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402


def drawn(draw: Any, result: Result) -> Axes:
    """A plot of the report on axes of its own."""
    ax = pyplot.subplots()[1]
    draw(result, ax=ax)
    return ax


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


def make_steps(losses: list[float], n_kept: int, n_fixed: int = 0, name: str = "x{}") -> list[Step]:
    """A start and one addition a further loss; the first n_kept additions are kept."""
    start = Step(
        action="start", group=None, name="", columns=np.arange(n_fixed), before=np.nan, loss=losses[0],
        standard_error=0.1, gain=np.nan, paired=np.nan, runner_up=None, runner_up_loss=np.nan, seconds=0.1, n_fits=0,
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


def test_error_bars_are_one_standard_error() -> None:
    ax = plot_path(make_steps([4.0, 3.0], n_kept=1))
    segments = ax.containers[0].lines[2][0].get_segments()
    assert np.allclose(segments, [[[0, 3.9], [0, 4.1]], [[1, 2.9], [1, 3.1]]])


def test_runners_up_stand_beside_their_steps() -> None:
    runners_up = points(plot_path(make_steps([4.0, 3.0, 2.0], n_kept=2)), "runner-up")[1:]
    assert np.allclose(runners_up[:, 1], [3.05, 2.05])
    assert ((runners_up[:, 0] > [1, 2]) & (runners_up[:, 0] < [1.5, 2.5])).all()


def test_fixed_columns_are_named_as_the_start() -> None:
    ax = plot_path(make_steps([4.0, 3.0], n_kept=1, n_fixed=2))
    assert tick_names(ax)[0] == "fixed"
    assert np.allclose(points(ax, "fixed columns")[:, 1], 4)
    assert ax.get_title() == "1 of 99 candidates selected, beside 2 fixed columns"


def test_empty_selection() -> None:
    ax = plot_path(make_steps([4.0, 3.99], n_kept=0))
    assert points(ax, "the selection: 0 features").tolist() == [[0, 4]]


def test_long_path_names_some_steps() -> None:
    names = tick_names(plot_path(make_steps(list(np.linspace(4, 2, 61)), n_kept=30)))
    assert names[:3] == ["none", "x2", "x4"]
    assert len(names) <= 40


def test_long_names_are_rotated_and_cut() -> None:
    ax = plot_path(make_steps([4.0, 3.0, 2.0, 1.0], n_kept=3, name="a name that is far too long {}"))
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {35}
    assert max(map(len, tick_names(ax))) == 24


@pytest.mark.parametrize(("last", "scale"), [(0.3, "log"), (0.5, "linear"), (0.0, "linear")])
def test_losses_that_differ_much_are_shown_on_a_log_axis(last: float, scale: str) -> None:
    ax = plot_path(make_steps([4.0, last], n_kept=1))
    assert ax.get_yscale() == scale
    ax.figure.canvas.draw()


def points_of(steps: Sequence[Step], numbers: Sequence[int]) -> list[list[float]]:
    return [[number, steps[number].loss] for number in numbers]


def test_drops_and_exchanges_are_drawn_step_by_step() -> None:
    case = cases.exchanges()
    steps, ax = case.selector.path_, plot_path(case.selector)
    assert points(ax, "selected").tolist() == points_of(steps, [0, 3, 4, 5, 10])
    assert points(ax, "dropped").tolist() == points_of(steps, [8, 9])
    assert points(ax, "undone later").tolist() == points_of(steps, [1, 2, 7])
    assert points(ax, "taken back").tolist() == points_of(steps, [6, 11])
    assert points(ax, "the selection: 4 features").tolist() == points_of(steps, [10])
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
    stood = points_of(steps, [number for number in range(len(steps)) if number not in back])
    drawn = [line for line in plot_path(steps).lines if line.get_marker() == "None" and len(line.get_xdata()) > 1]
    lines = [np.asarray(line.get_xydata()).tolist() for line in drawn]
    assert stood in lines
    off = [line for line in lines if line[1] in points_of(steps, sorted(back))]
    assert all(line[0] in stood for line in off)
    assert sorted(point for line in off for point in line[1:]) == points_of(steps, sorted(back))


@pytest.mark.parametrize("width", [3.15, 6.4])
def test_labels_of_drops_and_exchanges_fit(width: float) -> None:
    figure = pyplot.figure(figsize=(width, 4.6), layout="constrained")
    ax = plot_path(cases.exchanges().selector, ax=figure.add_subplot())
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    if ax.get_xticklabels()[0].get_rotation() in (0, 90):
        assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    label = ax.xaxis.label.get_window_extent()
    assert 0 <= label.x0 < label.x1 <= figure.bbox.x1


def test_unfitted_selector() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        NeuralGreedyPursuit().plot_path()


@pytest.mark.parametrize("path", [[], 3])
def test_no_steps(path: object) -> None:
    with pytest.raises(TypeError, match="no steps to plot: give a fitted selector"):
        plot_path(path)


def bars(ax: Axes) -> list[float]:
    return [bar.get_width() for bar in ax.patches]


def colours(ax: Axes) -> list[str]:
    return [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]


def names(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


def notes(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_a_selector_its_result_and_its_steps_give_the_same_figure() -> None:
    case = cases.regression()
    path = case.selector.path_
    labels = [tick_names(plot_path(source)) for source in (case.selector, case.result, path, Path(path, ""))]
    assert labels == [labels[0]] * 4


@pytest.mark.parametrize(("name", "form", "what"), [("regression", "{:.2f}", "R²"), ("digits", "{:.0%}", "accuracy")])
def test_scores_stand_above_their_steps(name: str, form: str, what: str) -> None:
    case = cases.CASES[name]()
    for source, scored in ((case.selector, True), (case.result, True), (case.selector.path_, False)):
        (above,) = plot_path(source).child_axes
        texts = [text.get_text() for text in above.get_xticklabels()]
        numbers = [str(step.n_selected) for step in case.result.path]
        scores = [
            f"{number}\n{form.format(step.score)}" for number, step in zip(numbers, case.result.path, strict=True)
        ]
        assert texts == (scores if scored else numbers)
        assert (what in above.get_xlabel()) == scored


@pytest.mark.parametrize("name", ["regression", *cases.FLOATING])
def test_the_ranking_shows_importances(name: str) -> None:
    selector = cases.CASES[name]().selector
    ax = drawn(draw_ranking, cases.CASES[name]().result)
    assert names(ax) == [f"{rank}. x{group}" for rank, group in enumerate(selector.order_, 1)]
    assert bars(ax) == pytest.approx(100 * selector.importances_[selector.order_])
    assert notes(ax)[0] == f"{bars(ax)[0]:.1f}%"
    (errors,) = ax.containers[1].lines[2]
    lengths = [100 * segment[1, 0] - 100 * segment[0, 0] for segment in errors.get_segments()]
    assert np.array(lengths) / 100 == pytest.approx(200 * selector.importance_errors_[selector.order_])
    assert ax.get_xlabel() == "share of the constant prediction's loss (%)"


def test_of_many_ranks_the_first_are_shown() -> None:
    result = cases.regression().result
    many = replace(result, order=result.order * 27, evidence=result.evidence[:3] * 27)
    assert len(bars(drawn(draw_ranking, many))) == 60


def test_close_calls_are_orange() -> None:
    case = cases.digits()
    gaps = [0.5, 1.5, 8.0]  # in standard errors
    path = [
        step if gap is None else replace(step, standard_error=(step.runner_up_loss - step.loss) / gap)
        for step, gap in zip(case.result.path, [None, *gaps], strict=True)
    ]
    ax = drawn(draw_runners_up, replace(case.result, path=path))
    assert bars(ax) == pytest.approx([0.5, 1.5, 5])
    assert colours(ax) == [COLOURS[1], COLOURS[0], COLOURS[0]]
    assert notes(ax) == ["0.5 close", "1.5", "8.0"]
    winner, second = case.selector.order_[0], case.selector.path_[1].runner_up
    assert names(ax)[0] == f"{case.selector.groups_.names[winner]}\nover {case.selector.groups_.names[second]}"


def test_without_standard_errors_gaps_are_shares_of_the_loss() -> None:
    result = cases.regression().result
    single = replace(result, path=[replace(step, standard_error=np.nan) for step in result.path])
    ax = drawn(draw_runners_up, single)
    expected = [
        100 * (step.runner_up_loss - step.loss) / step.loss
        for step in single.path
        if step.kept and step.runner_up is not None
    ]
    assert bars(ax) == pytest.approx(expected)
    assert set(colours(ax)) == {COLOURS[0]}
    assert ax.get_xlabel() == "gap (% of the winner's loss)"


def test_candidates_are_coloured_by_their_share_of_the_winners_improvement() -> None:
    case = cases.regression()
    ax = drawn(draw_candidates, case.result)
    shares = np.ma.filled(ax.images[0].get_array(), np.nan)
    groups = [int(name[1:]) for name in names(ax)]
    assert groups[:3] == case.selector.order_.tolist()
    assert sorted(groups) == list(range(8))
    steps = case.selector.path_[1:]
    assert [step.paired > step.loss for step in steps[:3]] == [True, True, True]
    for number, step in enumerate(steps[:3]):
        expected = np.clip((step.paired - step.losses[groups]) / (step.paired - step.loss), 0, 1)
        np.testing.assert_allclose(shares[:, number], expected)


def test_a_step_that_improved_nothing_is_left_blank() -> None:
    result = cases.regression().result
    path = [replace(step, paired=0.0) if number == 2 else step for number, step in enumerate(result.path)]
    shares = np.ma.filled(drawn(draw_candidates, replace(result, path=path)).images[0].get_array(), np.nan)
    assert np.isfinite(shares).any(axis=0)[:3].tolist() == [True, False, True]


def rows_marked(ax: Axes, mark: str) -> list[tuple[float, str]]:
    """Step and candidate of all marks of a kind."""
    found = [line.get_xydata()[0] for line in ax.lines if line.get_marker() == mark]
    return sorted((float(x), names(ax)[int(y)]) for x, y in found)


def test_a_candidate_is_followed_as_long_as_it_is_in() -> None:
    ax = drawn(draw_candidates, cases.exchanges().result)
    assert rows_marked(ax, "x") == [(7, "x4"), (8, "x3"), (9, "x6")]
    picks = {"x3": 1, "x4": 2, "x1": 3, "x2": 4, "x0": 5, "x6": 7, "x8": 10}
    assert rows_marked(ax, "o") == sorted([*((step, name) for name, step in picks.items()), (6, "x6")])
    hollow = [line.get_xydata()[0, 0] for line in ax.lines if line.get_markerfacecolor() == "none"]
    assert hollow == [6]  # and step 11, after the selection, isn't shown
    ends = {"x4": 7, "x3": 8, "x6": 9}
    lines = [line for line in ax.lines if len(line.get_xdata()) == 2]
    spans = {names(ax)[int(line.get_ydata()[0])]: list(line.get_xdata()) for line in lines}
    del picks["x8"]  # which the last step adds
    assert spans == {name: [step + 0.5, ends.get(name, 11) - 0.5] for name, step in picks.items()}


def test_a_drop_has_no_candidates_to_be_added() -> None:
    steps = cases.exchanges().selector.path_[1:11]
    shares = np.ma.filled(drawn(draw_candidates, cases.exchanges().result).images[0].get_array(), np.nan)
    assert np.isnan(shares).all(axis=0).tolist() == [step.action == "drop" for step in steps]


def test_an_exchange_is_compared_with_what_it_gives_away() -> None:
    ax = drawn(draw_runners_up, cases.exchanges().result)
    assert len(names(ax)) == 8  # of ten steps up to the selection two are drops
    assert names(ax)[6] == "x6\nover x4"


def test_pixels_that_were_dropped_are_not_shown() -> None:
    selector = cases.exchanges().selector
    ax = plot_pixels(selector, (2, selector.n_features_in_ // 2))
    shown = np.asarray(ax.images[0].get_array())[..., 3] > 0
    assert shown.ravel().tolist() == selector.support_.tolist()
    assert notes(ax) == ["1", "2", "3", "4"]


def test_pixels_are_those_that_were_selected() -> None:
    case = cases.digits()
    ax = plot_pixels(case.selector, (8, 8))
    shown = np.asarray(ax.images[0].get_array())[..., 3] > 0
    assert shown.ravel().tolist() == case.selector.support_.tolist()
    assert notes(ax) == ["1", "2", "3"]
    for text, group in zip(ax.texts, case.selector.order_, strict=True):
        rows, cols = np.divmod(case.selector.groups_.columns[group], 8)
        assert text.get_position() == (cols.mean(), rows.mean())
    assert ax.get_title(loc="left") == "12 of 64 pixels, in 3 steps"


def test_the_image_behind_is_shown() -> None:
    case = cases.digits()
    picture = np.asarray(plot_pixels(case.result, (8, 8), case.X.mean(axis=0).reshape(8, 8)).images[0].get_array())
    support = case.selector.support_.reshape(8, 8)
    assert set(picture[support][:, 3]) == {1.0}
    assert set(picture[~support][:, 3]) == {0.5}


def test_an_image_that_does_not_fit_is_refused() -> None:
    case = cases.digits()
    with pytest.raises(ValueError, match=r"image_shape=\(2, 2\) is no shape of an image with a pixel \d+: give"):
        plot_pixels(case.selector, (2, 2))
    with pytest.raises(ValueError, match=r"image of shape \(3, 3\) isn't of the image_shape \(8, 8\): give one value"):
        plot_pixels(case.selector, (8, 8), np.zeros((3, 3)))


def test_frequencies_are_sorted_and_shown_in_percent() -> None:
    result = cases.halved().result
    assert result.stability is not None
    ax = drawn(draw_stability, replace(result, stability=replace(result.stability, frequencies=[0.35, 0, 1, 0, 0, 0])))
    assert names(ax) == ["x2", "x0"]
    assert bars(ax) == [100, 35]
    assert notes(ax) == ["100%", "35%"]


def test_the_fit_of_a_regression_is_a_scatter() -> None:
    result = cases.regression().result
    line = drawn(draw_fit, result).lines[0]
    assert line.get_xdata().tolist() == result.fit.truth
    assert line.get_ydata().tolist() == result.fit.predicted


def test_the_fit_of_classes_is_a_confusion_matrix() -> None:
    result = cases.digits().result
    ax = drawn(draw_fit, result)
    counts = np.array(result.fit.confusion)
    np.testing.assert_allclose(ax.images[0].get_array(), counts / counts.sum(axis=1, keepdims=True))
    assert notes(ax) == [str(count) for count in counts[counts > 0]]
    assert names(ax) == [str(digit) for digit in range(10)]


@pytest.mark.parametrize("draw", [plot_path, draw_ranking, draw_runners_up, draw_candidates])
def test_nasty_names_are_drawn_as_they_are(draw: Any) -> None:
    ax = drawn(draw, cases.nasty().result)
    with pytest.warns(UserWarning, match="Glyph"):  # the font that comes with matplotlib has no Chinese signs
        ax.figure.canvas.draw()


@pytest.mark.parametrize("plot", [plot_path, partial(plot_pixels, image_shape=(2, 4))])
def test_it_draws_on_given_axes(plot: Any) -> None:
    ax = pyplot.subplots()[1]
    assert plot(cases.regression().result, ax=ax) is ax


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot_path needs matplotlib.*pip install neural-greedy-pursuit\[plot\]"):
        plot_path(cases.regression().result)


def test_names_are_short() -> None:
    assert shown_name("x" * 10 + "end", 10) == "xxxxxx…end"
    assert len(shown_name("y" * 500)) == 24
    assert shown_name("$a$") == r"\$a\$"
