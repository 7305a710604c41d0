"""Trials on handwritten digits: which pixels a method selects, and what can be told from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import isqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.baselines import registry
from ngp.baselines.downstream import PredictorEstimator
from ngp.data.groups import image_windows
from ngp.datasets import load_mnist
from ngp.paper.experiment import Plan, Protocol
from ngp.paper.published_ssfn import PublishedSSFN
from ngp.paper.trials import Record, Trial
from ngp.predictors import CNN, SSFN
from ngp.predictors.networks import one_torch_thread

__all__ = ["SHARES", "Method", "Setting", "digit_trial", "select_pixels", "setting_of", "shown_digits", "whole_groups"]

# Of the pixels; selections end with the last of them.
SHARES = (0.08, 0.16, 0.24, 0.32, 0.40)
# scikit-learn's small digits have no test set of their own: those after so many are one.
N_SMALL_TRAINING = 1000

Source = Literal["mnist", "digits"]
Subset = Literal["train", "test"]
MakeEstimator = Callable[[], Any]


class Method(NamedTuple):
    """What selects."""

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
    """How large a trial is."""

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
    """How large the trials of a plan are; in full as in the paper."""
    return plan.pick(
        Setting("mnist", 1000, 10_000, n_draws=SSFN().n_draws, epochs=10, cnn_cv=5, n_sweeps=20, n_burn_in=15),
        Setting("mnist", 300, 500, n_draws=1, epochs=4, cnn_cv=0.2, n_sweeps=3, n_burn_in=1),
        Setting("digits", 100, 300, n_draws=1, epochs=10, cnn_cv=0.2, n_sweeps=3, n_burn_in=1),
    )


def digit_trial(plan: Plan, method: Method, seed: int) -> Trial:
    """One run of a method: the same trial, and so run once, in whichever table or figure it is wanted."""
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
    judge = _Judge(method, own, _network(COMMON, sizes, seed), train, test)
    with one_torch_thread() if method.sees_images else nullcontext():
        accuracies = [
            {"share": share, "n_pixels": n, **judge.accuracies(pixels[:n])}
            for share, n in zip(SHARES, whole_groups(counts, train.X.shape[1]), strict=True)
        ]
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
    digits = load_digits()
    part = slice(N_SMALL_TRAINING) if subset == "train" else slice(N_SMALL_TRAINING, None)
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
    """How to make the predictor of a pursuit; if it finds its size by folds, these are of what it is fitted to."""
    predictor = _predictor(method, sizes)
    return lambda: PredictorEstimator(predictor, task="classification", random_state=seed)


def _pursued(
    method: Method, sizes: Setting, train: Images, cv: Any, seed: int, n_jobs: int
) -> tuple[list[int], list[list[int]]]:
    """Groups that a pursuit selects, and the pixels that each of them added."""
    predictor, side = _predictor(method, sizes), isqrt(train.X.shape[1])
    if isinstance(predictor, SSFN):
        predictor.refit_units = predictor.n_units  # the final predictor isn't used: let it be quick
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


class _Judge:
    """Trains a method's own predictor and the common one on some pixels; the same pixels are judged once."""

    def __init__(self, method: Method, own: MakeEstimator, common: MakeEstimator, train: Images, test: Images) -> None:
        self._method, self._own, self._common = method, own, common
        self._train, self._test = train, test
        self._known: dict[int, Record] = {0: dict.fromkeys(("train", "test", "common"))}

    def accuracies(self, pixels: list[int]) -> Record:
        """Accuracies on training and test images, and the common predictor's on test images."""
        if len(pixels) not in self._known:
            train, test = self._measured(self._own(), pixels, self._method.sees_images)
            common = test
            if self._method.name != COMMON.name:  # whose own predictor is the common one
                common = self._measured(self._common(), pixels, whole=False)[1]
            self._known[len(pixels)] = {"train": train, "test": test, "common": common}
        return self._known[len(pixels)]

    def _measured(self, estimator: Any, pixels: list[int], whole: bool) -> tuple[float, float]:
        """Accuracies on training and test images."""

        def seen(X: FloatArray) -> FloatArray:
            if not whole:
                return X[:, pixels]
            others = np.ones(X.shape[1], dtype=bool)
            others[pixels] = False
            return np.where(others, 0, X)

        estimator.fit(seen(self._train.X), self._train.y)
        train, test = (float((estimator.predict(seen(X)) == y).mean()) for X, y in (self._train, self._test))
        return train, test
