"""``ngp demo``: selections on two data sets that come with scikit-learn.

It prints what it does, and writes the same as ``report.md``, with a report of each selection as HTML.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ngp.cli.files import require_for_report, writing
from ngp.io import markdown_table, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

    from ngp import NGPClassifier, NGPRegressor
    from ngp._types import AnyArray
    from ngp.report.result import Result

__all__ = ["demo"]

N_NOISE, N_WINDOWS = 90, 6


@click.command(short_help="Try it on data that come along.", epilog="\b\nExample:\n  ngp demo --out try")
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

    It needs no data of yours, and takes less than a minute.
    """
    require_for_report("ngp demo")
    with writing(out):
        run(out)


def run(folder: Path) -> None:
    """Show both parts, and write what was shown."""
    from ngp.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    texts = ["# Neural Greedy Pursuit: a demonstration"]
    print(texts[0])
    for name, show in (("diabetes", show_diabetes), ("digits", show_digits)):
        text, result = show()
        write_report(result, folder / f"{name}.html")
        print(f"\n{text}\n\nReport: {folder / name}.html", flush=True)
        texts.append(text)
    write_whole(folder / "report.md", "\n\n".join(texts).encode() + b"\n")
    print(f"Text: {folder / 'report.md'}")


def noisy_diabetes() -> tuple[DataFrame, DataFrame, AnyArray, AnyArray]:
    """Diabetes data with noise columns: shuffled copies of the real ones, then normal numbers, half and half."""
    import numpy as np
    from pandas import DataFrame
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    bunch = load_diabetes()
    real, rng = bunch.data, np.random.default_rng(0)
    shuffled = [rng.permutation(real[:, i % real.shape[1]]) for i in range(N_NOISE // 2)]
    normal = rng.normal(size=(len(real), N_NOISE - len(shuffled)))
    names = [*bunch.feature_names, *(f"noise{i}" for i in range(N_NOISE))]
    X = DataFrame(np.column_stack([real, *shuffled, normal]), columns=names)
    X_train, X_test, y_train, y_test = train_test_split(X, bunch.target, test_size=1 / 3, random_state=0)
    return X_train, X_test, y_train, y_test


def show_diabetes() -> tuple[str, Result]:
    """Ten real columns among noise: the selector with nothing but a seed."""
    import numpy as np
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ngp import NGPRegressor
    from ngp.report.result import Result

    X, X_test, y, y_test = noisy_diabetes()
    selector = NGPRegressor(random_state=0).fit(X, y)
    chosen = [str(X.columns[column]) for column in selector.order_]
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25)))
    every, some = f"all {X.shape[1]}", f"the {len(chosen)} selected"
    scores = [
        ["ridge regression", every, r2(y_test, ridge.fit(X, y).predict(X_test))],
        ["ridge regression", some, r2(y_test, ridge.fit(X[chosen], y).predict(X_test[chosen]))],
        ["the network", every, r2(y_test, all_columns(NGPRegressor, X, y).predict(X_test))],
        ["the network", some, r2(y_test, selector.predict(X_test))],
    ]
    result = Result.of(selector, X, y, target="progression", held_out=(X_test, y_test))
    text = f"""## Diabetes: {X.shape[1] - N_NOISE} real columns among {N_NOISE} of noise

{len(X)} patients to learn from, {len(X_test)} held out; the target is the progress of the disease in a year.
Half of the noise columns are shuffled copies of real ones, half are normal numbers.

    NGPRegressor(random_state=0).fit(X, y)

{steps_table(result)}

Selected: {", ".join(chosen)}. Noise columns among them: {sum("noise" in name for name in chosen)} of {N_NOISE}.
Why it stopped: {selector.stop_reason_}.
{speed(result)}

R² on the held-out rows, ± its standard error over 1000 resamples of them:

{markdown_table(["predictor", "columns", "R²"], scores)}"""
    return text, result


def show_digits() -> tuple[str, Result]:
    """Windows of pixels: groups of columns that enter together."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from ngp import NGPClassifier, image_windows
    from ngp.report.result import Result

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    windows = image_windows((8, 8), 2)
    selector = NGPClassifier(groups=windows, n_features_to_select=N_WINDOWS, random_state=0).fit(X, y)
    rows = [
        ["all 64", accuracy(y_test, all_columns(NGPClassifier, X, y).predict(X_test))],
        [f"{selector.support_.sum()} in {N_WINDOWS} windows", accuracy(y_test, selector.predict(X_test))],
    ]
    result = Result.of(selector, X, y, target="digit", held_out=(X_test, y_test), image_shape=(8, 8))
    text = f"""## Digits: {N_WINDOWS} of {windows.n_groups} windows of an image

{len(X)} images of 8 × 8 pixels to learn from, {len(X_test)} held out; ten classes.
A candidate is a window of 2 × 2 pixels.

    windows = ngp.image_windows((8, 8), 2)
    NGPClassifier(groups=windows, n_features_to_select={N_WINDOWS}, random_state=0).fit(X, y)

{steps_table(result)}

{speed(result)}

Accuracy of the network on the held-out images, ± its standard error:

{markdown_table(["pixels", "accuracy"], rows)}"""
    return text, result


def all_columns(kind: type[NGPClassifier | NGPRegressor], X: Any, y: AnyArray) -> NGPClassifier | NGPRegressor:
    """Train the same network on all columns: they are fixed, and none is left to select."""
    n = X.shape[1]
    selector = kind(fixed=range(n), n_features_to_select=n, random_state=0)
    selector.fit(X, y)
    return selector


def r2(truth: AnyArray, predicted: AnyArray) -> str:
    """R² and its standard error, by resampling the rows."""
    import numpy as np
    from sklearn.metrics import r2_score

    draws = np.random.default_rng(0).integers(len(truth), size=(1000, len(truth))).T
    resampled = r2_score(truth[draws], predicted[draws], multioutput="raw_values")  # a resample is a column
    return f"{r2_score(truth, predicted):.3f} ± {np.std(resampled):.3f}"


def accuracy(truth: AnyArray, predicted: AnyArray) -> str:
    """Share of the rows that are predicted right, and its standard error."""
    share = float((truth == predicted).mean())
    return f"{share:.1%} ± {(share * (1 - share) / len(truth)) ** 0.5:.1%}"


def steps_table(result: Result) -> str:
    """The steps as the report shows them."""
    from ngp.report.page import path_table

    table = path_table(result.path, result.asked.task)
    return markdown_table(table.header, table.rows)


def speed(result: Result) -> str:
    """How long the search took, and how many candidates were retrained per second."""
    n_fits, seconds = result.answer.n_fits, result.answer.seconds
    return (
        f"The search took {seconds:.1f} s and retrained {n_fits:,} candidates, {n_fits / seconds:,.0f} a second, each "
        "for 5 folds\nwith 8 random layers."
    )
