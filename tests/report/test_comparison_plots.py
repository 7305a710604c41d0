"""Plots of several methods show a row per method and a mark per predictor, or a curve per ranking."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ngp import compare
from ngp.baselines import RoarCurve
from ngp.datasets import make_ohm
from ngp.report import plot_comparison, plot_roar

pd = pytest.importorskip("pandas")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


def make_table(**columns: Any) -> Any:
    """Three methods, of which the last one has failed."""
    table = pd.DataFrame(
        {
            "status": ["ok", "ok", "ValueError: It went wrong."],
            "n_selected": [5.0, 12.4, np.nan],
            "ridge": [0.5, 0.6, np.nan],
            "ridge_se": [0.1, 0.2, np.nan],
            "ssfn": [0.7, np.nan, np.nan],
            "ssfn_se": [0.05, np.nan, np.nan],
            "seconds": [0.25, 10.0, np.nan],
            "agreement": [0.8, np.nan, np.nan],
            "within_error": [["ssfn"], ["ridge"], []],
        },
        index=["lasso", "ngp", "bart"],
    ).assign(**columns)
    table.attrs["scoring"] = "accuracy"
    return table


def marks(ax: Axes, label: str) -> np.ndarray:
    """The marks behind an entry of the legend, one (score, height) a row."""
    handles, labels = ax.get_legend_handles_labels()
    return np.asarray(dict(zip(labels, handles, strict=True))[label][0].get_xydata())


def bars(ax: Axes, label: str) -> list[list[float]]:
    """Left and right end of each error bar behind an entry of the legend."""
    handles, labels = ax.get_legend_handles_labels()
    lines = dict(zip(labels, handles, strict=True))[label][2][0].get_segments()
    return [line[:, 0].tolist() for line in lines if len(line)]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def facts(ax: Axes) -> list[str]:
    """What stands on the right."""
    ax.figure.draw_without_rendering()
    labels = [label.get_text() for label in ax.child_axes[0].get_yticklabels()]
    return [label.replace("\u2007", " ") for label in labels]


def test_marks_and_bars_are_means_and_errors() -> None:
    ax = plot_comparison(make_table())
    np.testing.assert_array_equal(marks(ax, "ridge")[:, 0], [0.5, 0.6, np.nan])
    np.testing.assert_array_equal(marks(ax, "ssfn")[:, 0], [0.7, np.nan, np.nan])
    np.testing.assert_allclose(bars(ax, "ridge"), [[0.4, 0.6], [0.4, 0.8]])
    assert [label.get_text() for label in ax.get_legend().get_texts()] == ["ridge", "ssfn"]
    assert (
        ax.get_xlabel() == "accuracy, mean ± standard error over the folds (hollow: worse than the best beyond error)"
    )


def test_marks_worse_than_the_best_beyond_error_are_hollow(tmp_path: Any) -> None:
    table = make_table()
    table.to_csv(tmp_path / "table.csv")
    for each in (table, pd.read_csv(tmp_path / "table.csv", index_col=0)):
        ax = plot_comparison(each)
        hollow = np.concatenate([line.get_xydata() for line in ax.lines if line.get_color() == "white"])
        np.testing.assert_array_equal(hollow[np.isfinite(hollow[:, 0]), 0], [0.5])  # lasso by ridge


def test_methods_stand_below_one_another_in_the_order_of_the_table() -> None:
    ax = plot_comparison(make_table())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["lasso", "ngp", "bart"]
    assert ax.get_ylim() == (2.5, -0.5)
    heights = np.concatenate([marks(ax, name)[:, 1].reshape(-1, 1) for name in ("ridge", "ssfn")], axis=1)
    np.testing.assert_array_equal(np.round(heights), [[0, 0], [1, 1], [2, 2]])
    assert (heights[:, 0] != heights[:, 1]).all()
    turned = plot_comparison(make_table().sort_values("ridge", ascending=False))
    assert [label.get_text() for label in turned.get_yticklabels()] == ["ngp", "lasso", "bart"]


def test_a_failed_method_shows_its_status_in_grey() -> None:
    ax = plot_comparison(make_table())
    assert texts(ax) == ["ValueError: It went wrong."]
    assert ax.texts[0].get_position()[1] == 2
    colors = [label.get_color() for label in ax.get_yticklabels()]
    assert colors == ["black", "black", ax.texts[0].get_color()]
    long = plot_comparison(make_table(status=["ok", "ok", "x" * 200]))
    assert texts(long) == ["x" * 71 + "…"]


def test_numbers_of_features_seconds_and_agreement_stand_on_the_right() -> None:
    assert facts(plot_comparison(make_table())) == [
        "   5 features,  0.25 s, agreement 0.80",
        "12.4 features, 10.00 s",
        "",
    ]


def test_a_predictor_that_failed_is_said_on_the_right() -> None:
    status = ["ok", "ssfn: ValueError: something that takes many words to say", "ValueError: It went wrong."]
    assert facts(plot_comparison(make_table(status=status)))[1].endswith("\nssfn: ValueError: something tha…")


def test_a_score_far_below_the_others_is_held_at_the_edge() -> None:
    ax = plot_comparison(make_table(ssfn=[0.7, -31.25, np.nan]))
    assert "◂ -31.2" in texts(ax)
    assert np.isnan(marks(ax, "ssfn")[1, 0])
    assert -1 < ax.get_xlim()[0] < 0.4
    near = plot_comparison(make_table(ssfn=[0.7, 0.3, np.nan]))
    assert texts(near) == ["ValueError: It went wrong."]
    assert marks(near, "ssfn")[1, 0] == 0.3


def test_nothing_overlaps_or_leaves_the_figure() -> None:
    table = make_table()
    many = pd.concat([table.iloc[:2]] * 8).set_axis([f"a method with a rather long label, {i}" for i in range(16)])
    many = many.assign(**{f"{name}{end}": many[f"ridge{end}"] for name in "abc" for end in ("", "_se")})
    ax = plot_comparison(many)
    ax.figure.draw_without_rendering()
    whole = ax.figure.bbox
    for axes in (ax, ax.child_axes[0]):
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert all(box.x0 >= 0 and box.x1 <= whole.width for box in boxes)
        assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))
    legend = ax.get_legend().get_window_extent()
    assert legend.y1 <= whole.height
    assert legend.y0 >= ax.get_window_extent().y1 - 1
    heights = sorted(height for name in ("ridge", "ssfn", *"abc") for height in marks(ax, name)[:, 1])
    gaps = np.diff(ax.transData.transform([(0, height) for height in heights])[:, 1])
    assert np.abs(gaps).min() > 5  # pixels, the size of a mark


def test_only_failed_methods_and_a_single_row() -> None:
    assert texts(plot_comparison(make_table().iloc[2:])) == ["ValueError: It went wrong."]
    assert len(marks(plot_comparison(make_table().iloc[:1]), "ridge")) == 1


def test_tables_of_compare_and_from_files(tmp_path: Any) -> None:
    X, y, _ = make_ohm(60, random_state=0)
    table = compare(X, y, ["lasso", "correlation"], n_features_to_select=1, cv=2, downstream=["ridge"], random_state=0)
    ax = plot_comparison(table)
    np.testing.assert_array_equal(marks(ax, "ridge")[:, 0], table["ridge"])
    assert ax.get_xlabel() == "R², mean ± standard error over the folds (hollow: worse than the best beyond error)"
    table.to_csv(tmp_path / "table.csv")
    stored = plot_comparison(pd.read_csv(tmp_path / "table.csv", index_col="method"))
    np.testing.assert_allclose(marks(stored, "ridge"), marks(ax, "ridge"))
    assert (
        stored.get_xlabel() == "score, mean ± standard error over the folds (hollow: worse than the best beyond error)"
    )


@pytest.mark.parametrize("table", [None, make_table().iloc[:0]])
def test_what_is_no_table_of_methods_is_refused(table: Any) -> None:
    with pytest.raises(
        TypeError, match=r"table has no scores to plot: give what ngp.compare returns, one row per method"
    ):
        plot_comparison(table)


CURVES = {
    name: RoarCurve(np.array([0.0, 0.5, 1.0]), np.array([0, 2, 4]), np.array(losses), np.full(3, 0.1))
    for name, losses in {"ngp": [1.0, 3.0, 4.0], "lasso": [1.0, 2.0, 4.0]}.items()
}


def test_each_curve_is_drawn_with_its_label() -> None:
    ax = plot_roar(CURVES)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["ngp", "lasso"]
    assert handles[0][0].get_xydata().tolist() == [[0, 1], [50, 3], [100, 4]]
    assert handles[1][0].get_xydata().tolist() == [[0, 1], [50, 2], [100, 4]]


@pytest.mark.parametrize("curves", [{}, CURVES["ngp"]])
def test_other_things_than_curves_are_refused(curves: object) -> None:
    with pytest.raises(TypeError, match="curves must be a mapping of labels to curves, such as"):
        plot_roar(curves)  # type: ignore[arg-type]
