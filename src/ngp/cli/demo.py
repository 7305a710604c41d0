"""``ngp demo``: selections on two data sets that come with scikit-learn.

It prints what it does, and writes the same as ``report.md``, with plots and a report of each selection as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
import numpy as np
from pandas import DataFrame
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit, image_windows
from ngp._formatting import group_names, outcomes, step_in_words
from ngp._types import AnyArray, FloatArray
from ngp.cli.messages import Failure
from ngp.greedy.path import Step
from ngp.io import markdown_table, write_whole
from ngp.report import plot_path, plot_pixels, write_report
from ngp.report.result import Result

__all__ = ["demo"]

N_NOISE, WINDOW, N_WINDOWS, N_RESAMPLES = 90, 2, 6, 1000


class Part(NamedTuple):
    """One selection: its text, its plot and its result."""

    text: str
    plot: Callable[..., Any]
    result: Result


@click.command(epilog="\b\nExample:\n  ngp demo --out try")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    metavar="FOLDER",
    help="Folder for the reports.",
)
def demo(out: Path) -> None:
    """Select features on two small data sets, and write reports of it.

    It needs no data of yours, and takes a minute or so.
    """
    try:
        run(out)
    except OSError as error:
        raise Failure(f"{out} can't be written: {error.strerror or error}.") from error


def run(folder: Path) -> None:
    """Show both parts, and write what was shown."""
    folder.mkdir(parents=True, exist_ok=True)
    has_matplotlib = find_spec("matplotlib") is not None
    texts, results = ["# Neural Greedy Pursuit: a demonstration"], {}
    print(texts[0])
    for name, picture, show in (("diabetes", "path.png", show_diabetes), ("digits", "pixels.png", show_digits)):
        part = show()
        print(f"\n{part.text}", flush=True)
        texts.append(part.text)
        results[name] = part.result
        if has_matplotlib:
            _write_picture(folder / picture, part.plot)
            texts.append(f"![{picture}]({picture})")
    write_whole(folder / "report.md", "\n\n".join(texts).encode() + b"\n")
    if not has_matplotlib:
        print("\nNo pictures, since matplotlib is not installed: pip install neural-greedy-pursuit[plot].")
    print(f"\nText: {folder / 'report.md'}")
    for name, result in results.items():
        try:
            write_report(result, folder / f"{name}.html")
            print(f"Report: {folder / f'{name}.html'}")
        except ImportError as error:
            print(f"No {name}.html: {error}")


def _write_picture(path: Path, plot: Callable[..., Any]) -> None:
    from matplotlib.figure import Figure

    figure, picture = Figure(figsize=(8.0, 4.2), layout="constrained"), BytesIO()
    plot(ax=figure.add_subplot())
    figure.savefig(picture, format="png", dpi=120)
    write_whole(path, picture.getvalue())


def noisy_diabetes() -> tuple[DataFrame, DataFrame, AnyArray, AnyArray]:
    """Diabetes data with noise columns: shuffled copies of the real ones, then normal numbers, half and half."""
    bunch = load_diabetes()
    real, rng = bunch.data, np.random.default_rng(0)
    shuffled = [rng.permutation(real[:, i % real.shape[1]]) for i in range(N_NOISE // 2)]
    normal = rng.normal(size=(len(real), N_NOISE - len(shuffled)))
    names = [*bunch.feature_names, *(f"noise{i}" for i in range(N_NOISE))]
    X = DataFrame(np.column_stack([real, *shuffled, normal]), columns=names)
    X_train, X_test, y_train, y_test = train_test_split(X, bunch.target, test_size=1 / 3, random_state=0)
    return X_train, X_test, y_train, y_test


def show_diabetes() -> Part:
    """Ten real columns among noise: the selector with nothing but a seed."""
    X, X_test, y, y_test = noisy_diabetes()
    begin = perf_counter()
    selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    seconds = perf_counter() - begin
    chosen = [str(X.columns[column]) for column in selector.order_]
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25)))
    every, some = f"all {X.shape[1]}", f"the {len(chosen)} selected"
    scores = [
        ["ridge regression", every, r2(y_test, ridge.fit(X, y).predict(X_test))],
        ["ridge regression", some, r2(y_test, ridge.fit(X[chosen], y).predict(X_test[chosen]))] if chosen else [],
        ["the network", every, r2(y_test, all_columns(X, y).predict(X_test))],
        ["the network", some, r2(y_test, selector.predict(X_test))],
    ]
    text = f"""## Diabetes: {X.shape[1] - N_NOISE} real columns among {N_NOISE} of noise

{len(X)} patients to learn from, {len(X_test)} held out; the target is the progress of the disease in a year.
Half of the noise columns are shuffled copies of real ones, half are normal numbers.

    NeuralGreedyPursuit(random_state=0).fit(X, y)

{steps_table(selector.path_)}

Selected: {", ".join(chosen) or "nothing"}. Noise columns among them: {sum("noise" in c for c in chosen)} of {N_NOISE}.
Why it stopped: {selector.stop_reason_}.
{speed(selector, seconds)}

R² on the held-out rows, ± its standard error over {N_RESAMPLES} resamples of them:

{markdown_table(["predictor", "columns", "R²"], [row for row in scores if row])}"""
    result = Result.of(selector, X, y, target="progression", held_out=(X_test, y_test))
    return Part(text, partial(plot_path, selector), result)


def show_digits() -> Part:
    """Windows of pixels: groups of columns that enter together."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    windows = image_windows((8, 8), WINDOW)
    selector = NeuralGreedyPursuit(groups=windows, n_features_to_select=N_WINDOWS, random_state=0)
    begin = perf_counter()
    selector.fit(X, y)
    seconds = perf_counter() - begin
    rows = [
        ["all 64", accuracy(y_test, all_columns(X, y).predict(X_test))],
        [f"{selector.support_.sum()} in {N_WINDOWS} windows", accuracy(y_test, selector.predict(X_test))],
    ]
    text = f"""## Digits: {N_WINDOWS} of {windows.n_groups} windows of an image

{len(X)} images of 8 × 8 pixels to learn from, {len(X_test)} held out; ten classes.
A candidate is a window of {WINDOW} × {WINDOW} pixels.

    windows = ngp.image_windows((8, 8), {WINDOW})
    NeuralGreedyPursuit(groups=windows, n_features_to_select={N_WINDOWS}, random_state=0).fit(X, y)

{steps_table(selector.path_)}

{speed(selector, seconds)}

Accuracy of the network on the held-out images, ± its standard error:

{markdown_table(["pixels", "accuracy"], rows)}"""
    result = Result.of(selector, X, y, target="digit", held_out=(X_test, y_test), image_shape=(8, 8))
    return Part(text, partial(plot_pixels, selector, (8, 8), X.mean(axis=0).reshape(8, 8)), result)


def all_columns(X: Any, y: AnyArray) -> NeuralGreedyPursuit:
    """Train the same network on all columns: they are fixed, and none is left to select."""
    n = X.shape[1]
    selector = NeuralGreedyPursuit(fixed=range(n), n_features_to_select=n, random_state=0)
    selector.fit(X, y)
    return selector


def r2(truth: FloatArray, predicted: FloatArray) -> str:
    """R² and its standard error, by resampling the rows."""
    draws = np.random.default_rng(0).integers(len(truth), size=(N_RESAMPLES, len(truth)))
    error = np.std([r2_score(truth[rows], predicted[rows]) for rows in draws])
    return f"{r2_score(truth, predicted):.3f} ± {error:.3f}"


def accuracy(truth: AnyArray, predicted: AnyArray) -> str:
    """Share of the rows that are predicted right, and its standard error."""
    share = float(np.mean(truth == predicted))
    return f"{share:.1%} ± {np.sqrt(share * (1 - share) / len(truth)):.1%}"


def steps_table(steps: Sequence[Step]) -> str:
    """One row per step: what it did and what became of it, the validation loss, the gain, the runner-up's loss."""
    rows, names = [], group_names(steps)
    digits = max(0, 1 - int(np.floor(np.log10(np.median([step.standard_error for step in steps])))))
    for number, (step, outcome) in enumerate(zip(steps, outcomes(steps), strict=True)):
        first = step.action == "start"
        what = "(constant prediction)" if first else step.name if step.action == "add" else step_in_words(step, names)
        loss = f"{step.loss:.{digits}f} ± {step.standard_error:.{digits}f}"
        gain = "" if first else f"{step.gain:.1%}"
        second = "" if step.runner_up is None else f"{step.runner_up_loss:.{digits}f}"
        rows.append([str(number), f"{what} ({outcome})" if outcome else what, loss, gain, second])
    return markdown_table(["step", "feature", "loss ± se", "gain", "runner-up's loss"], rows)


def speed(selector: NeuralGreedyPursuit, seconds: float) -> str:
    """How long it took, and how many candidates were retrained per second."""
    n_fits, search = (sum(getattr(step, what) for step in selector.path_) for what in ("n_fits", "seconds"))
    return (
        f"Time: {seconds:.1f} s, of which the search took {search:.1f} s and the final predictor the rest. The search "
        f"retrained {n_fits:,} candidates,\n{n_fits / search:,.0f} a second, each for 5 folds with 8 random layers."
    )
