"""The plot shows ROAR's curves as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from ngp.baselines import RoarCurve
from ngp.report import plot_roar

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

CURVES = {
    name: RoarCurve(np.array([0.0, 0.5, 1.0]), np.array([0, 2, 4]), np.array(losses), np.full(3, 0.1))
    for name, losses in {"ngp": [1.0, 3.0, 4.0], "lasso": [1.0, 2.0, 4.0]}.items()
}


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_each_curve_is_drawn_with_its_label() -> None:
    ax = plot_roar(CURVES)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["ngp", "lasso"]
    assert handles[0][0].get_xydata().tolist() == [[0, 1], [50, 3], [100, 4]]
    assert handles[1][0].get_xydata().tolist() == [[0, 1], [50, 2], [100, 4]]


def test_it_draws_where_it_is_told_to() -> None:
    ax = pyplot.subplots()[1]
    assert plot_roar(CURVES, ax=ax) is ax


@pytest.mark.parametrize("curves", [{}, None, CURVES["ngp"]])
def test_other_things_are_refused(curves: object) -> None:
    with pytest.raises(TypeError, match="curves must be a mapping of labels to curves, such as"):
        plot_roar(curves)  # type: ignore[arg-type]


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot_roar needs matplotlib.*pip install neural-greedy-pursuit\[plot\]"):
        plot_roar(CURVES)
