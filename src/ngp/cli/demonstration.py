"""The demonstration: ``ngp demo`` selects features on two data sets that come with scikit-learn.

It prints what it does, writes the same as ``report.md``, with pictures where matplotlib is installed, and a report of
each selection as an HTML file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit
from ngp._formatting import group_names, outcomes, step_in_words
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.groups import image_windows
from ngp.greedy.path import Step
from ngp.io import markdown_table, write_whole
from ngp.report import plot_path, write_report
from ngp.report.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["run"]

SEED = 0
N_NOISE = 90
WINDOW, N_WINDOWS = 2, 6
N_RESAMPLES = 1000


class Data(NamedTuple):
    """Rows to learn from, rows held out, and the names of the columns."""

    X: FloatArray
    y: AnyArray
    X_test: FloatArray
    y_test: AnyArray
    names: list[str]

    def frames(self) -> tuple[DataFrame, DataFrame]:
        """Both sets of rows, with names."""
        from pandas import DataFrame

        return DataFrame(self.X, columns=self.names), DataFrame(self.X_test, columns=self.names)


class Part(NamedTuple):
    """What one part has to say: a text, how to draw its picture, and its result."""

    text: str
    draw: Callable[[Figure], None]
    result: Result


def run(folder: Path) -> None:
    """Show both parts, and write what was shown."""
    folder.mkdir(parents=True, exist_ok=True)
    has_matplotlib = find_spec("matplotlib") is not None
    text = ["# Neural Greedy Pursuit: a demonstration"]
    results: dict[str, Result] = {}
    print(text[0])
    for name, picture, show in (("diabetes", "path.png", show_diabetes), ("digits", "pixels.png", show_digits)):
        part = show()
        print(f"\n{part.text}", flush=True)
        text.append(part.text)
        results[name] = part.result
        if has_matplotlib:
            write_picture(folder / picture, part.draw)
            text.append(f"![{picture}]({picture})")
    write_whole(folder / "report.md", "\n\n".join(text).encode() + b"\n")
    if not has_matplotlib:
        print("\nNo pictures, since matplotlib is not installed: pip install neural-greedy-pursuit[plot].")
    print(f"\nText: {folder / 'report.md'}")
    for name, result in results.items():
        try:
            write_report(result, folder / f"{name}.html")
            print(f"Report: {folder / f'{name}.html'}")
        except ImportError as error:
            print(f"No {name}.html: {error}")


def noisy_diabetes() -> Data:
    """Diabetes data with noise columns: shuffled copies of the real ones, then normal numbers, half and half."""
    bunch = load_diabetes()
    real, rng = bunch.data, np.random.default_rng(SEED)
    shuffled = [rng.permutation(real[:, i % real.shape[1]]) for i in range(N_NOISE // 2)]
    normal = rng.normal(size=(len(real), N_NOISE - len(shuffled)))
    X = np.column_stack([real, *shuffled, normal])
    names = [*bunch.feature_names, *(f"noise{i}" for i in range(N_NOISE))]
    X, X_test, y, y_test = train_test_split(X, bunch.target, test_size=1 / 3, random_state=SEED)
    return Data(X, y, X_test, y_test, names)


def digit_images() -> Data:
    """Images of 8 × 8 pixels."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=SEED, stratify=y)
    return Data(X, y, X_test, y_test, [f"pixel {i}" for i in range(X.shape[1])])


def show_diabetes() -> Part:
    """Ten real columns among noise: the selector with nothing but a seed."""
    data = noisy_diabetes()
    X, X_test = data.frames()
    begin = perf_counter()
    selector = NeuralGreedyPursuit(random_state=SEED).fit(X, data.y)
    seconds = perf_counter() - begin
    n_real = len(data.names) - N_NOISE
    chosen = [data.names[column] for column in selector.order_]
    text = f"""## Diabetes: {n_real} real columns among {N_NOISE} of noise

{len(data.X)} patients to learn from, {len(data.X_test)} held out; the target is the progress of the disease in a year.
Half of the noise columns are shuffled copies of real ones, half are normal numbers.

    NeuralGreedyPursuit(random_state={SEED}).fit(X, y)

{steps_table(selector.path_)}

Selected: {", ".join(chosen) or "nothing"}. Noise columns among them: {(selector.order_ >= n_real).sum()} of {N_NOISE}.
Why it stopped: {selector.stop_reason_}.
{speed(selector, seconds)}

R² on the held-out rows, ± its standard error over {N_RESAMPLES} resamples of them:

{markdown_table(["predictor", "columns", "R²"], regression_scores(data, selector))}"""

    def draw(figure: Figure) -> None:
        plot_path(selector.path_, ax=figure.add_subplot())

    return Part(text, draw, Result.of(selector, X, data.y, target="progression", held_out=(X_test, data.y_test)))


def regression_scores(data: Data, selector: NeuralGreedyPursuit) -> list[list[str]]:
    """R² of a linear and of the non-linear predictor, with all columns and with the selected ones."""
    few = selector.support_
    every, some = f"all {len(data.names)}", f"the {selector.support_.sum()} selected"
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25)))
    return [
        ["ridge regression", every, r2(data, ridge.fit(data.X, data.y).predict(data.X_test))],
        ["ridge regression", some, r2(data, ridge.fit(data.X[:, few], data.y).predict(data.X_test[:, few]))],
        ["the network", every, r2(data, all_columns(data).predict(data.X_test))],
        ["the network", some, r2(data, selector.predict(data.frames()[1]))],
    ]


def show_digits() -> Part:
    """Windows of pixels: groups of columns that enter together."""
    data = digit_images()
    windows = image_windows((8, 8), WINDOW)
    selector = NeuralGreedyPursuit(groups=windows, n_features_to_select=N_WINDOWS, random_state=SEED)
    begin = perf_counter()
    selector.fit(data.X, data.y)
    seconds = perf_counter() - begin
    n_pixels = int(selector.support_.sum())
    rows = [
        [f"all {len(data.names)}", accuracy(data, all_columns(data).predict(data.X_test))],
        [f"{n_pixels} in {N_WINDOWS} windows", accuracy(data, selector.predict(data.X_test))],
    ]
    text = f"""## Digits: {N_WINDOWS} of {windows.n_groups} windows of an image

{len(data.X)} images of 8 × 8 pixels to learn from, {len(data.X_test)} held out; ten classes.
A candidate is a window of {WINDOW} × {WINDOW} pixels.

    windows = ngp.data.groups.image_windows((8, 8), {WINDOW})
    NeuralGreedyPursuit(groups=windows, n_features_to_select={N_WINDOWS}, random_state={SEED}).fit(X, y)

{steps_table(selector.path_)}

{speed(selector, seconds)}

Accuracy of the network on the held-out images, ± its standard error:

{markdown_table(["pixels", "accuracy"], rows)}"""
    result = Result.of(
        selector, data.X, data.y, target="digit", held_out=(data.X_test, data.y_test), image_shape=(8, 8)
    )
    return Part(text, lambda figure: draw_windows(figure, data, windows.columns, selector.order_), result)


def all_columns(data: Data) -> NeuralGreedyPursuit:
    """Train the same network on all columns: they are fixed, and none is left to select."""
    n = len(data.names)
    selector = NeuralGreedyPursuit(fixed=range(n), n_features_to_select=n, random_state=SEED)
    selector.fit(data.X, data.y)
    return selector


def r2(data: Data, predictions: FloatArray) -> str:
    """R² on the held-out rows and its standard error, by resampling them."""
    rng = np.random.default_rng(SEED)
    draws = rng.integers(len(data.y_test), size=(N_RESAMPLES, len(data.y_test)))
    error = np.std([r2_score(data.y_test[rows], predictions[rows]) for rows in draws])
    return f"{r2_score(data.y_test, predictions):.3f} ± {error:.3f}"


def accuracy(data: Data, predictions: AnyArray) -> str:
    """Share of the held-out rows that are predicted right, and its standard error."""
    share = float(np.mean(predictions == data.y_test))
    error = np.sqrt(share * (1 - share) / len(data.y_test))
    return f"{share:.1%} ± {error:.1%}"


def steps_table(steps: Sequence[Step]) -> str:
    """One row a step: what it did, the validation loss, the gain, the runner-up's loss, what became of it."""
    rows, names = [], group_names(steps)
    digits = max(0, 1 - int(np.floor(np.log10(np.median([step.standard_error for step in steps])))))
    for number, (step, fate) in enumerate(zip(steps, outcomes(steps), strict=True)):
        first = step.action == "start"
        what = "(constant prediction)" if first else step.name if step.action == "add" else step_in_words(step, names)
        loss = f"{step.loss:.{digits}f} ± {step.standard_error:.{digits}f}"
        gain = "" if first else f"{step.gain:.1%}"
        second = "" if step.runner_up is None else f"{step.runner_up_loss:.{digits}f}"
        rows.append([str(number), f"{what} ({fate})" if fate else what, loss, gain, second])
    return markdown_table(["step", "feature", "loss ± se", "gain", "runner-up's loss"], rows)


def speed(selector: NeuralGreedyPursuit, seconds: float) -> str:
    """How long it took, and how many candidates were retrained a second."""
    n_fits, search = (sum(getattr(step, what) for step in selector.path_) for what in ("n_fits", "seconds"))
    return (
        f"Time: {seconds:.1f} s, of which the search took {search:.1f} s and the final predictor the rest. The search "
        f"retrained {n_fits:,} candidates,\n{n_fits / search:,.0f} a second, each for 5 folds with 8 random layers."
    )


def draw_windows(figure: Figure, data: Data, windows: Sequence[IntArray], order: IntArray) -> None:
    """Show the mean image with the selected windows in their order, and what is left of one image of each digit."""
    chosen = np.zeros(64, dtype=bool)
    chosen[np.concatenate([windows[window] for window in order])] = True
    figure.set_size_inches(8.0, 2.8)
    figure.suptitle(f"The selected windows, in order, and what the predictor sees: {chosen.sum()} of 64 pixels")
    grid = figure.add_gridspec(2, 7)
    mean = figure.add_subplot(grid[:, :2])
    mean.imshow(data.X.mean(axis=0).reshape(8, 8), cmap="gray_r")
    mean.set_axis_off()
    for rank, window in enumerate(order, 1):
        row, column = divmod(int(windows[window].min()), 8)
        box = {"boxstyle": "square,pad=0.2", "facecolor": "#D55E00", "edgecolor": "none"}
        mean.text(column + 0.5, row + 0.5, str(rank), color="white", ha="center", va="center", bbox=box)
    for digit in range(10):
        axes = figure.add_subplot(grid[digit // 5, 2 + digit % 5])
        axes.imshow(data.X_test[np.argmax(data.y_test == digit)].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.imshow(np.ma.masked_where(chosen, np.ones(64)).reshape(8, 8), cmap="Blues", vmin=0, vmax=2, alpha=0.85)
        axes.set_axis_off()


def write_picture(path: Path, draw: Callable[[Figure], None]) -> None:
    """Draw without a window, and write the picture whole or not at all."""
    from io import BytesIO

    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    draw(figure)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_whole(path, picture.getvalue())


if __name__ == "__main__":
    run(Path("demo-report"))
