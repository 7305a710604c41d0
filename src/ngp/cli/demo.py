"""``ngp demo``: what a selection brings, on a table and on images that come with scikit-learn.

It prints what it does, and writes the same as ``report.md``, with a report of each selection as HTML.
"""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ngp._formatting import duration, metric, p_value, score
from ngp.cli.files import require_for_report, writing
from ngp.io import markdown_table, write_whole

if TYPE_CHECKING:
    from ngp._types import AnyArray
    from ngp.report.result import Result

__all__ = ["demo"]


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
    """Select features of a table and of images, see what it brings, and write reports of it.

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
    for name, show in (("table", show_table), ("images", show_images)):
        text, result = show()
        write_report(result, folder / f"{name}.html")
        print(f"\n{text}\n\nReport: {folder / name}.html", flush=True)
        texts.append(text)
    write_whole(folder / "report.md", "\n\n".join(texts).encode() + b"\n")
    print(f"Text: {folder / 'report.md'}")


def show_table(seed: int = 0) -> tuple[str, Result]:
    """A table in which five columns matter."""
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.svm import SVR

    from ngp import NGPRegressor

    X, y = make_friedman1(1300, n_features=100, noise=1.0, random_state=seed)
    about = """## A table: 100 columns, of which five matter

Made by scikit-learn's make_friedman1: y = 10 sin(π x0 x1) + 20 (x2 − ½)² + 10 x3 + 5 x4 + noise.
The columns x5 to x99 are random numbers that y doesn't depend on.

    NGPRegressor(random_state=0).fit(X, y)"""
    return compared(about, NGPRegressor(random_state=0), SVR(), RandomForestRegressor(random_state=0), X, y, 300)


def show_images(seed: int = 0) -> tuple[str, Result]:
    """Images of which a quarter matters."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.svm import SVC

    from ngp import NGPClassifier, image_windows

    digits, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    places = [rng.permutation(len(y)) for _ in range(4)]
    X = np.concatenate([digits[place].reshape(-1, 8, 8) / 16 for place in places], axis=2).reshape(-1, 256)
    about = """## Images: four digits, of which the third is to be read

Handwritten digits that come with scikit-learn, four at random side by side, as on a meter: images of 8 × 32
pixels. The third digit is in cols 16 to 23. A candidate is a window of 2 × 2 pixels.

    windows = ngp.image_windows((8, 32), 2)
    NGPClassifier(groups=windows, n_features_to_select=8, random_state=0).fit(X, y)"""
    selector = NGPClassifier(groups=image_windows((8, 32), 2), n_features_to_select=8, random_state=0)
    forest = RandomForestClassifier(random_state=0)
    return compared(about, selector, SVC(), forest, X, y[places[2]], 600, target="digit", image_shape=(8, 32))


def compared(
    about: str, selector: Any, svm: Any, forest: Any, X: AnyArray, y: AnyArray, n_train: int, **options: Any
) -> tuple[str, Result]:
    """Select on the first rows, and predict the others from all columns and from the selected ones."""
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    from ngp.report.result import Result

    X, X_test, y, y_test = X[:n_train], X[n_train:], y[:n_train], y[n_train:]
    selector.fit(X, y).measure_chance(X, y)
    result = Result.of(selector, X, y, held_out=(X_test, y_test), **options)
    answer, task, n, few = result.answer, result.asked.task, X.shape[1], selector.support_
    # The same network on all columns: they are fixed, and none is left to select.
    network = clone(selector).set_params(groups=None, fixed=range(n), n_features_to_select=n).fit(X, y)
    predictions = {"the same network": (network.predict(X_test), selector.predict(X_test))}
    tuned = GridSearchCV(svm, {"C": [10, 100, 1000], "gamma": [0.01, 0.03, 0.1, 0.3]})
    for name, model in (("SVM, tuned", tuned), ("random forest", forest)):
        from_all = model.fit(X, y).predict(X_test)
        predictions[name] = from_all, model.fit(X[:, few], y).predict(X_test[:, few])
    scores = {name: [new_score(y_test, one, task) for one in pair] for name, pair in predictions.items()}
    rows = [[name, *(score(*one, task) for one in pair)] for name, pair in scores.items()]
    before, after = (score(value, nan, task) for value, _ in scores["the same network"])
    kept = [step for step in result.path[1:] if step.kept]
    steps = [[step.name, score(step.score, step.score_error, task), p_value(step.p_value)] for step in kept]
    asked, seconds, back, of = result.asked, duration(answer.seconds), len(result.path) - 1 - len(kept), metric(task)
    text = f"""{about}

{markdown_table(["selected", f"{of} in cross-validation", "p-value"], steps)}

Why it stopped: {answer.stop_reason}. Steps tried and taken back: {back}.
{answer.n_fits:,} candidates scored in {seconds}; predictor: {asked.predictor}; validation: {asked.cv}.

{few.sum()} of {n} columns, selected on {len(y)} rows: {of} {after} instead of {before} with all of them.

{markdown_table([f"{of} on {len(y_test):,} new rows", f"all {n} columns", f"{few.sum()} selected"], rows)}"""
    return text, result


def new_score(truth: AnyArray, predicted: AnyArray, task: str) -> tuple[float, float]:
    """Accuracy or R² of predictions, and its standard error."""
    errors = 1.0 * (truth != predicted) if task == "classification" else (truth - predicted) ** 2 / truth.var()
    return 1 - errors.mean(), errors.std() / len(truth) ** 0.5
