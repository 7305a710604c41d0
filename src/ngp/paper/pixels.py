"""Table 2 and figures 1 and 6: pixels of handwritten digits, and what can be told from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ngp._types import BoolArray, FloatArray
from ngp.paper import published
from ngp.paper.digits import SHARES, Method, digit_trial, setting_of, shown_digits
from ngp.paper.experiment import Experiment, Plan
from ngp.paper.tables import Cell, Column, Table, cell
from ngp.paper.trials import Record, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIG_1", "FIG_6", "TABLE_2", "mosaic", "overlay"]

# Red, green and blue of a pixel without ink and with the most: not selected, selected.
GREYS = np.array([[0.94, 0.94, 0.94], [0.35, 0.35, 0.35]])
REDS = np.array([[1.0, 0.68, 0.64], [0.55, 0.0, 0.0]])
GAP = 2  # white pixels between two images
SHOWN_IN_PANELS = (0, 2, 3, 5, 9)
PANELS_A_ROW = 4


class Line(NamedTuple):
    """A row of a table, or a panel of a figure."""

    label: str
    method: Method
    published: str | None = None  # its name in the paper's table 2
    most_runs: int | None = None

    def seeds(self, plan: Plan) -> range:
        """Seeds of its runs."""
        return plan.seeds[: self.most_runs]


def _lines(plan: Plan) -> dict[str, Line]:
    """All that is compared; the sides of windows depend on the size of a plan, and so do the labels."""
    side, cnn_side, stride = plan.pick(4, 4, 2), plan.pick(4, 7, 2), plan.pick(1, 2, 1)
    windows, cnn_windows = (f"{each} × {each}" for each in (side, cnn_side))
    return {
        "ssfn": Line("NGP + SSFN", Method("ngp-ssfn"), "ngp-ssfn"),
        "ssfn-tiled": Line(f"NGP + SSFN, {windows}", Method("ngp-ssfn", side, side)),
        "ssfn-sliding": Line(f"NGP + SSFN, {windows} sliding by {stride}", Method("ngp-ssfn", side, stride)),
        "ssfn-authors": Line(f"NGP + SSFN as the authors set it, {windows}", Method("ngp-ssfn-authors", side, side)),
        "cnn": Line(f"NGP + CNN, {cnn_windows}", Method("ngp-cnn", cnn_side, cnn_side), "ngp-cnn"),
        "lasso": Line("LASSO", Method("lasso"), "lasso"),
        "forest": Line("RF", Method("random-forest"), "random-forest"),
        "bart": Line("BART-50", Method("bart"), "bart", most_runs=5),  # by far the slowest
        "deeplift": Line("SHAP + DeepLIFT", Method("deeplift"), "deeplift"),
    }


def _chosen(plan: Plan, names: Sequence[str]) -> list[Line]:
    lines = _lines(plan)
    return [lines[name] for name in names]


def _trials(plan: Plan, names: Sequence[str]) -> list[Trial]:
    return [digit_trial(plan, line.method, seed) for line in _chosen(plan, names) for seed in line.seeds(plan)]


def _by_line(plan: Plan, names: Sequence[str], records: list[Record]) -> list[tuple[Line, list[Record]]]:
    """Lines with the records of their runs."""
    rest = iter(records)
    return [(line, list(islice(rest, len(line.seeds(plan))))) for line in _chosen(plan, names)]


def _figures(runs: list[Record], share: float, key: str) -> list[float | None]:
    """What was found at a share of the pixels, one figure a run; accuracies in per cent."""
    found = [each[key] for run in runs for each in run["accuracies"] if each["share"] == share]
    return found if key == "n_pixels" else [None if each is None else 100 * each for each in found]


def _images_note(plan: Plan) -> str:
    setting = setting_of(plan)
    images = "MNIST" if setting.source == "mnist" else "scikit-learn's small digits"
    return (
        f"{setting.n_train} training and {setting.n_test} test images of {images}, drawn anew in each run. "
        "Pixels come in whole windows: selections are the largest within their share."
    )


OWN_NOTE = (
    "Accuracies are those of the method's own predictor, trained on its selected pixels: of NGP its network, of LASSO "
    "a ridge classifier, of DeepLIFT a CNN. No predictor is tuned on test images, in either protocol. In parentheses: "
    "published."
)
TABLE_2_LINES = ("ssfn", "ssfn-tiled", "ssfn-authors", "cnn", "lasso", "forest", "bart", "deeplift")
FIG_6_LINES = ("lasso", "forest", "bart", "deeplift", "ssfn", "ssfn-tiled", "ssfn-sliding", "cnn")


def _table_2(plan: Plan, records: list[Record]) -> Table:
    columns = [
        Column("train", "training accuracy, %"),
        Column("test", "test accuracy, %"),
        Column("common", "test accuracy of an SSFN on the same pixels, %"),
        Column("n_pixels", "pixels", 0),
    ]
    fewest = Column("common_fewest", f"test accuracy of an SSFN on the first {_percent(SHARES[0])}, %")
    rows = []
    for line, runs in _by_line(plan, TABLE_2_LINES, records):
        known = dict(zip(("train", "test"), published.TABLE_2.get(line.published or "", ()), strict=False))
        cells = {each.key: cell(_figures(runs, SHARES[-1], each.key), known.get(each.key)) for each in columns}
        few = cell(_figures(runs, SHARES[0], "common"))
        rows.append(([line.label], cells | {fewest.key: few, "runs": Cell(len(runs))}))
    columns += [fewest, Column("runs", "runs", 0)]
    note = f"{_images_note(plan)} A pixel of no importance to a method is never selected.\n\n{OWN_NOTE}"
    return Table(["method"], columns, rows, note)


def _table_fig_1(plan: Plan, records: list[Record]) -> Table:
    columns = [Column("n_pixels", "pixels", 0), Column("test", "test accuracy, %")]
    rows = []
    for share in SHARES:
        pixels, test = (_figures(records, share, column.key) for column in columns)
        cells = {"n_pixels": cell(pixels), "test": cell(test, published.DIGITS_BY_SHARE[share])}
        rows.append(([_percent(share)], cells))
    return Table(["share of the pixels"], columns, rows, f"{_images_note(plan)}\n\n{OWN_NOTE}")


def _table_fig_6(plan: Plan, records: list[Record]) -> Table:
    columns = [Column(f"test_{_number(share)}", f"test accuracy at {_percent(share)}, %") for share in SHARES]
    pixels = Column("n_pixels", f"pixels at {_percent(SHARES[-1])}", 0)
    rows = []
    for line, runs in _by_line(plan, FIG_6_LINES, records):
        known = _published_by_share(line)
        cells = {
            column.key: cell(_figures(runs, share, "test"), known.get(share))
            for share, column in zip(SHARES, columns, strict=True)
        }
        rows.append(([line.label], cells | {pixels.key: cell(_figures(runs, SHARES[-1], "n_pixels"))}))
    return Table(["method"], [*columns, pixels], rows, f"{_images_note(plan)}\n\n{OWN_NOTE}")


def _published_by_share(line: Line) -> Mapping[float, float]:
    """Test accuracies that the paper has for a method; most are known at 40 % only."""
    if line.published == "ngp-ssfn":
        return published.DIGITS_BY_SHARE
    return {SHARES[-1]: published.TABLE_2[line.published][1]} if line.published else {}


def _number(share: float) -> int:
    return round(100 * share)


def _percent(share: float) -> str:
    return f"{_number(share)} %"


def overlay(image: FloatArray, selected: BoolArray) -> FloatArray:
    """An image in grey, and in red where pixels are selected; ink is dark in both."""
    colours = np.where(selected[..., None, None], REDS, GREYS)
    paper, ink = colours[..., 0, :], colours[..., 1, :]
    coloured: FloatArray = paper + image[..., None] * (ink - paper)
    return coloured


def mosaic(images: FloatArray, selections: Sequence[Sequence[int]]) -> FloatArray:
    """All images side by side, a row for each selection."""
    lines = []
    for pixels in selections:
        mask = np.zeros(images[0].size, dtype=bool)
        mask[list(pixels)] = True
        coloured = [overlay(image, mask.reshape(image.shape)) for image in images]
        lines.append(np.concatenate([_framed(each) for each in coloured], axis=1))
    return np.concatenate(lines)


def _framed(image: FloatArray) -> FloatArray:
    """An image with white on the right and below."""
    framed: FloatArray = np.pad(image, ((0, GAP), (0, GAP), (0, 0)), constant_values=1)
    return framed


def _draw_panel(ax: Axes, images: FloatArray, run: Record, accuracies: Sequence[str], first: bool = True) -> None:
    """A row of digits for each share, the share on the left of the first panel and the accuracy on the right of all."""
    counts = [each["n_pixels"] for each in run["accuracies"]]
    picture = mosaic(images, [run["pixels"][:n] for n in counts])
    ax.imshow(picture, interpolation="none")
    centres = (np.arange(len(SHARES)) + 0.5) * picture.shape[0] / len(SHARES) - (GAP + 1) / 2
    ax.set_yticks(centres, [_percent(share) for share in SHARES] if first else [""] * len(SHARES))
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for centre, text in zip(centres, accuracies, strict=True):
        ax.text(picture.shape[1], centre, text, va="center")


def _mean(figures: Sequence[float | None]) -> str:
    mean = cell(figures).mean
    return "–" if np.isnan(mean) else f"{mean:.1f} %"


def _draw_fig_1(figure: Figure, plan: Plan, records: list[Record]) -> None:
    figure.set_size_inches(12, 5.6)
    ax = figure.subplots()
    texts = [
        f"{_mean(_figures(records, share, 'test'))}   ({published.DIGITS_BY_SHARE[share]:.1f} %)" for share in SHARES
    ]
    _draw_panel(ax, shown_digits(setting_of(plan).source), records[0], texts)
    ax.set_title("Pixels that NGP selects (red), by share of all pixels")
    ax.text(ax.get_xlim()[1], ax.get_ylim()[1], "test accuracy\n(published)", va="bottom")


def _draw_fig_6(figure: Figure, plan: Plan, records: list[Record]) -> None:
    found = _by_line(plan, FIG_6_LINES, records)
    n_rows = -(-len(found) // PANELS_A_ROW)
    figure.set_size_inches(14, 3.1 * n_rows + 0.4)
    images = shown_digits(setting_of(plan).source)[list(SHOWN_IN_PANELS)]
    for i, (ax, (line, runs)) in enumerate(zip(figure.subplots(n_rows, PANELS_A_ROW).flat, found, strict=True)):
        texts = [_mean(_figures(runs, share, "test")) for share in SHARES]
        _draw_panel(ax, images, runs[0], texts, first=i % PANELS_A_ROW == 0)
        ax.set_title(line.label)
    figure.suptitle("Selected pixels (red), by share of all pixels, and the test accuracy with them")


def _experiment(name: str, title: str, lines: Sequence[str], full_runs: int, **parts: Any) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        runs={"full": full_runs, "fast": 1, "tiny": 1},
        trials=lambda plan: _trials(plan, lines),
        **parts,
    )


TABLE_2 = _experiment(
    "table2",
    "Table 2: handwritten digits told apart by 40 % of their pixels",
    TABLE_2_LINES,
    full_runs=10,
    needs=("torch", "stochtree"),
    table=_table_2,
)
FIG_1 = _experiment(
    "fig1",
    "Figure 1: pixels of handwritten digits that NGP selects",
    ("ssfn",),
    full_runs=1,
    needs=(),
    table=_table_fig_1,
    draw=_draw_fig_1,
)
FIG_6 = _experiment(
    "fig6",
    "Figure 6: pixels of handwritten digits that each method selects",
    FIG_6_LINES,
    full_runs=1,
    needs=("torch", "stochtree"),
    table=_table_fig_6,
    draw=_draw_fig_6,
)
