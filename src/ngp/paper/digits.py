"""Table 2 and figures 1 and 6: pixels of handwritten digits that methods select, and the accuracy with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import islice
from math import isqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.baselines import registry
from ngp.baselines.base import PredictorEstimator
from ngp.data.groups import image_windows
from ngp.datasets import load_mnist
from ngp.paper import published
from ngp.paper.experiment import Cell, Column, Experiment, Plan, Protocol, Record, ResultTable, Trial, cell
from ngp.paper.published_ssfn import PublishedSSFN
from ngp.predictors import CNN, SSFN
from ngp.predictors.networks import one_torch_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIG_1", "FIG_6", "TABLE_2", "mosaic", "overlay", "select_pixels"]

# Of the pixels; selections end with the last of them.
SHARES = (0.08, 0.16, 0.24, 0.32, 0.40)
Source = Literal["mnist", "digits"]
Subset = Literal["train", "test"]
MakeEstimator = Callable[[], Any]


class Method(NamedTuple):
    """A method that selects pixels."""

    # "ngp-ssfn", "ngp-ssfn-authors" (with the authors' settings), "ngp-cnn", or one of `ngp.baselines.registry`
    name: str
    window: int = 1  # side of the windows that are selected; 1 for pixels. Baselines rate pixels only
    stride: int = 1  # from one window to the next

    @property
    def pursues(self) -> bool:
        """Whether it is a pursuit, and not a competing method."""
        return self.name.startswith("ngp")

    @property
    def sees_images(self) -> bool:
        """Whether its network takes whole images, with zeros for the pixels that aren't selected."""
        return self.name in ("ngp-cnn", "deeplift")


# Whose predictor judges the pixels of all methods.
COMMON = Method("ngp-ssfn")


class Setting(NamedTuple):
    """Size of a trial."""

    source: Source  # "digits" are scikit-learn's, of 8 x 8 pixels, which need no files
    n_train: int  # images
    n_test: int  # images
    n_draws: int  # random layers by which an SSFN selects
    epochs: int  # of a CNN
    cnn_cv: float  # folds, or the share of images that are held out, by which a CNN selects in the sound protocol
    n_sweeps: int  # of BART
    n_burn_in: int  # of BART


class Images(NamedTuple):
    """Images as rows of pixels from 0 to 1, and the digits on them."""

    X: FloatArray
    y: IntArray


def setting_of(plan: Plan) -> Setting:
    """Size of the trials of a plan; in full as in the paper."""
    return plan.pick(
        Setting("mnist", 1000, 10_000, n_draws=SSFN().n_draws, epochs=10, cnn_cv=5, n_sweeps=20, n_burn_in=15),
        Setting("mnist", 300, 500, n_draws=1, epochs=4, cnn_cv=0.2, n_sweeps=3, n_burn_in=1),
        Setting("digits", 100, 200, n_draws=1, epochs=6, cnn_cv=0.2, n_sweeps=3, n_burn_in=1),
    )


def digit_trial(plan: Plan, method: Method, seed: int) -> Trial:
    """One run of a method; equal trials of several tables and figures are run once."""
    parameters = {"protocol": plan.protocol, "seed": seed, **method._asdict(), **setting_of(plan)._asdict()}
    return Trial(select_pixels, parameters, wide=method.pursues)


def select_pixels(
    *, protocol: Protocol, seed: int, name: str, window: int, stride: int, n_jobs: int, **setting: Any
) -> Record:
    """Select up to 40 % of the pixels, and train predictors on the first of them."""
    method, sizes = Method(name, window, stride), Setting(**setting)
    train, test = _drawn_images(sizes, seed)
    if protocol == "published":
        train, test = (Images(1 - X, y) for X, y in (train, test))
    if method.pursues:
        cv = test if protocol == "published" else sizes.cnn_cv if method.sees_images else 5
        order, groups = _pursued(method, sizes, train, cv, seed, n_jobs)
        own = _network(method, sizes, seed)
    else:
        order, own = _ranked(method, sizes, protocol, train, seed)
        groups = [[pixel] for pixel in order]
    pixels, counts = [pixel for group in groups for pixel in group], [len(group) for group in groups]

    @cache
    def judged(n: int) -> Record:
        """Accuracies of the method's own predictor, and of the common one on test images."""
        if not n:
            return dict.fromkeys(("train", "test", "common"))
        on_training, on_test = _accuracies(own(), train, test, pixels[:n], method.sees_images)
        common = on_test  # its own predictor is the common one
        if name != COMMON.name:
            common = _accuracies(_network(COMMON, sizes, seed)(), train, test, pixels[:n], whole=False)[1]
        return {"train": on_training, "test": on_test, "common": common}

    shares = zip(SHARES, whole_groups(counts, train.X.shape[1]), strict=True)
    with one_torch_thread() if method.sees_images else nullcontext():
        accuracies = [{"share": share, "n_pixels": n, **judged(n)} for share, n in shares]
    return {"order": order, "pixels": pixels, "sizes": counts, "accuracies": accuracies}


def whole_groups(sizes: Sequence[int], n_pixels: int) -> list[int]:
    """For each of `SHARES` the number of pixels of the largest selection of whole groups within it."""
    reached = np.cumsum([0, *sizes])
    return [int(reached[reached <= round(share * n_pixels)][-1]) for share in SHARES]


def shown_digits(source: Source) -> FloatArray:
    """The first test image of each digit, of shape (10, rows, cols)."""
    images, labels, brightest = _load(source, "test")
    return np.array([images[np.flatnonzero(labels == digit)[0]] / brightest for digit in range(10)])


def _load(source: Source, subset: Subset) -> tuple[AnyArray, AnyArray, float]:
    """Images, their digits, and the largest value of a pixel."""
    if source == "mnist":
        return *load_mnist(subset=subset), 255.0
    digits = load_digits()  # without a test set of its own
    part = slice(1000) if subset == "train" else slice(1000, None)
    return digits.images[part], digits.target[part], 16.0


def _drawn_images(sizes: Setting, seed: int) -> tuple[Images, Images]:
    """Random images for training and for the test, none of them twice."""
    rng = np.random.default_rng(seed)

    def draw(subset: Subset, number: int) -> Images:
        images, labels, brightest = _load(sizes.source, subset)
        rows = rng.choice(len(images), number, replace=False)
        return Images(images[rows].reshape(number, -1) / brightest, labels[rows].astype(np.intp))

    return draw("train", sizes.n_train), draw("test", sizes.n_test)


def _predictor(method: Method, sizes: Setting) -> SSFN | PublishedSSFN | CNN:
    if method.sees_images:
        return CNN(epochs=sizes.epochs, refit_epochs=sizes.epochs)  # no more of them in the end: so does the paper
    return PublishedSSFN() if method.name == "ngp-ssfn-authors" else SSFN()


def _network(method: Method, sizes: Setting, seed: int) -> MakeEstimator:
    """A function that makes the predictor of a pursuit."""
    predictor = _predictor(method, sizes)
    return lambda: PredictorEstimator(predictor, task="classification", random_state=seed)


def _pursued(
    method: Method, sizes: Setting, train: Images, cv: Any, seed: int, n_jobs: int
) -> tuple[list[int], list[list[int]]]:
    """Groups that a pursuit selects, and the pixels that each of them added."""
    predictor, side = _predictor(method, sizes), isqrt(train.X.shape[1])
    if isinstance(predictor, SSFN):
        predictor.n_draws = sizes.n_draws
    selector = NeuralGreedyPursuit(
        predictor,
        groups=None if method.window == 1 else image_windows((side, side), method.window, method.stride),
        n_features_to_select=SHARES[-1],
        cv=cv,
        task="classification",
        n_jobs=n_jobs,
        random_state=seed,
    ).fit(*train)
    kept = [step for step in selector.path_[1:] if step.kept]
    return selector.order_.tolist(), [step.columns.tolist() for step in kept]


def _ranked(
    method: Method, sizes: Setting, protocol: Protocol, train: Images, seed: int
) -> tuple[list[int], MakeEstimator]:
    """Pixels by a competing method's importances, those of no importance left out, and its own predictor."""
    settings: dict[str, dict[str, Any]] = {
        "lasso": {},
        "random-forest": {"random_state": seed},
        "bart": {"n_sweeps": sizes.n_sweeps, "n_burn_in": sizes.n_burn_in, "random_state": seed},
        "deeplift": {"predictor": _predictor(method, sizes), "random_state": seed},
    }
    if method.name == "deeplift" and protocol == "published":
        settings["deeplift"]["n_explained"] = 10
    baseline = registry[method.name](n_features_to_select=SHARES[-1], task="classification", **settings[method.name])
    baseline.fit(*train)
    best = np.argsort(-baseline.importances_, kind="stable")[: int(baseline.support_.sum())]
    # DeepLIFT's own estimator knows the places of all selected pixels only, not those of the first of them.
    own = _network(method, sizes, seed) if method.sees_images else baseline.own_estimator
    return best.tolist(), own


def _accuracies(estimator: Any, train: Images, test: Images, pixels: list[int], whole: bool) -> tuple[float, float]:
    """Accuracies on training and test images; whole images have zeros for the other pixels."""

    def seen(X: FloatArray) -> FloatArray:
        return np.where(np.isin(np.arange(X.shape[1]), pixels), X, 0) if whole else X[:, pixels]

    estimator.fit(seen(train.X), train.y)
    on_training, on_test = (float((estimator.predict(seen(X)) == y).mean()) for X, y in (train, test))
    return on_training, on_test


# Tables and pictures

# Red, green and blue of a pixel without ink and with the most: not selected, selected.
GREYS = np.array([[0.94, 0.94, 0.94], [0.35, 0.35, 0.35]])
REDS = np.array([[1.0, 0.68, 0.64], [0.55, 0.0, 0.0]])
GAP = 2  # white pixels between two images


class Line(NamedTuple):
    """A row of a table, or a panel of a figure."""

    label: str
    method: Method
    published: str | None = None  # its name in the paper's table 2
    most_runs: int | None = None

    def seeds(self, plan: Plan) -> range:
        """Seeds of its runs."""
        return plan.seeds[: self.most_runs]


def _lines(plan: Plan, names: Sequence[str]) -> list[Line]:
    """Rows by name; the sides of windows, and so the labels, depend on the size of a plan."""
    side, cnn_side, stride = plan.pick(4, 4, 2), plan.pick(4, 7, 2), plan.pick(1, 2, 1)
    windows, cnn_windows = (f"{each} × {each}" for each in (side, cnn_side))
    lines = {
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
    return [lines[name] for name in names]


def _trials(plan: Plan, names: Sequence[str]) -> list[Trial]:
    return [digit_trial(plan, line.method, seed) for line in _lines(plan, names) for seed in line.seeds(plan)]


def _by_line(plan: Plan, names: Sequence[str], records: list[Record]) -> list[tuple[Line, list[Record]]]:
    """Lines with the records of their runs."""
    rest = iter(records)
    return [(line, list(islice(rest, len(line.seeds(plan))))) for line in _lines(plan, names)]


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


def _table_2(plan: Plan, records: list[Record]) -> ResultTable:
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
    return ResultTable(["method"], columns, rows, note)


def _table_fig_1(plan: Plan, records: list[Record]) -> ResultTable:
    columns = [Column("n_pixels", "pixels", 0), Column("test", "test accuracy, %")]
    rows = []
    for share in SHARES:
        pixels, test = (_figures(records, share, column.key) for column in columns)
        cells = {"n_pixels": cell(pixels), "test": cell(test, published.DIGITS_BY_SHARE[share])}
        rows.append(([_percent(share)], cells))
    return ResultTable(["share of the pixels"], columns, rows, f"{_images_note(plan)}\n\n{OWN_NOTE}")


def _table_fig_6(plan: Plan, records: list[Record]) -> ResultTable:
    columns = [Column(f"test_{round(100 * share)}", f"test accuracy at {_percent(share)}, %") for share in SHARES]
    pixels = Column("n_pixels", f"pixels at {_percent(SHARES[-1])}", 0)
    rows = []
    for line, runs in _by_line(plan, FIG_6_LINES, records):
        known = _published_by_share(line)
        cells = {
            column.key: cell(_figures(runs, share, "test"), known.get(share))
            for share, column in zip(SHARES, columns, strict=True)
        }
        rows.append(([line.label], cells | {pixels.key: cell(_figures(runs, SHARES[-1], "n_pixels"))}))
    return ResultTable(["method"], [*columns, pixels], rows, f"{_images_note(plan)}\n\n{OWN_NOTE}")


def _published_by_share(line: Line) -> Mapping[float, float]:
    """Test accuracies that the paper has for a method; most are known at 40 % only."""
    if line.published == "ngp-ssfn":
        return published.DIGITS_BY_SHARE
    return {SHARES[-1]: published.TABLE_2[line.published][1]} if line.published else {}


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"


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
        framed = [np.pad(each, ((0, GAP), (0, GAP), (0, 0)), constant_values=1) for each in coloured]  # in white
        lines.append(np.concatenate(framed, axis=1))
    return np.concatenate(lines)


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
    n_rows = -(-len(found) // 4)
    figure.set_size_inches(14, 3.1 * n_rows + 0.4)
    images = shown_digits(setting_of(plan).source)[[0, 2, 3, 5, 9]]
    for i, (ax, (line, runs)) in enumerate(zip(figure.subplots(n_rows, 4).flat, found, strict=True)):
        texts = [_mean(_figures(runs, share, "test")) for share in SHARES]
        _draw_panel(ax, images, runs[0], texts, first=i % 4 == 0)
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
