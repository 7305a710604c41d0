"""Data for benchmarks.study: laws with known relevant columns, and real tables with noise columns added."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from ngp._types import AnyArray, FloatArray
from ngp.datasets import load_airfoil, load_boston, load_vowel, make_artificial

N_TEST = 2000
HELD_OUT = 0.3  # of the rows of real tables
BLOCK = 10  # correlated columns

Law = Callable[[np.random.Generator, int, int], tuple[FloatArray, AnyArray]]
Table = tuple[FloatArray, AnyArray]


class Data(NamedTuple):
    """What a run selects on, the columns that may be selected, and the rows that it is judged by."""

    X: FloatArray
    y: AnyArray
    relevant: list[int]
    X_test: FloatArray
    y_test: AnyArray


class Drawn(NamedTuple):
    """Rows drawn from a law that is known."""

    law: Law
    n_rows: int
    n_columns: int
    relevant: tuple[int, ...]
    task: str = "regression"

    def draw(self, seed: int) -> Data:
        """Training rows, and `N_TEST` fresh ones of the same law."""
        X, y = self.law(np.random.default_rng(seed), self.n_rows + N_TEST, self.n_columns)
        n = self.n_rows
        return Data(X[:n], y[:n], list(self.relevant), X[n:], y[n:])


class Real(NamedTuple):
    """A real table; which of its columns are relevant nobody knows, but noise isn't."""

    load: Callable[[], Table]
    task: str = "regression"

    def draw(self, seed: int) -> Data:
        """A random split; behind the real columns a shuffled copy of each, and as many normal ones."""
        X, y = self.load()
        rng = np.random.default_rng(seed)
        wide = np.hstack([X, rng.permuted(X, axis=0), rng.normal(size=X.shape)])
        classes = y if self.task == "classification" else None
        train, test = train_test_split(np.arange(len(y)), test_size=HELD_OUT, random_state=seed, stratify=classes)
        return Data(wide[train], y[train], list(range(X.shape[1])), wide[test], y[test])


Design = Drawn | Real


def with_noise(rng: np.random.Generator, signal: FloatArray, share: float) -> FloatArray:
    """The signal, which makes up this share of the variance, and normal noise."""
    y: FloatArray = signal + signal.std() * np.sqrt(1 / share - 1) * rng.normal(size=len(signal))
    return y


def linear(rng: np.random.Generator, n: int, p: int) -> Table:
    X = rng.normal(size=(n, p))
    return X, with_noise(rng, X[:, :5] @ [1.0, 0.8, 0.6, 0.45, 0.3], 0.8)


def additive(rng: np.random.Generator, n: int, p: int) -> Table:
    X = rng.normal(size=(n, p))
    signal = 1.2 * np.tanh(2 * X[:, 0]) + 1.5 * np.abs(X[:, 1]) + 0.6 * X[:, 2] ** 2 + np.sin(2 * X[:, 3])
    return X, with_noise(rng, signal, 0.8)


def interactions(rng: np.random.Generator, n: int, p: int) -> Table:
    X = rng.normal(size=(n, p))
    product, ratio = X[:, 0] * X[:, 1], X[:, 2] / (0.5 + np.abs(X[:, 3]))
    return X, with_noise(rng, product + ratio + X[:, [0, 1, 3]] @ [0.4, 0.4, 0.4], 0.85)


def parity(rng: np.random.Generator, n: int, p: int) -> Table:
    """An exclusive or of two bits, of which neither says anything by itself, and a third bit."""
    X = rng.integers(0, 2, size=(n, p)).astype(np.float64)
    signs = 2 * X - 1
    return X, with_noise(rng, signs[:, 0] * signs[:, 1] + 0.7 * signs[:, 2], 0.75)


def correlated(rng: np.random.Generator, n: int, p: int) -> Table:
    """Blocks of ten columns, neighbours correlated by 0.8; the relevant ones are the fifth of the first blocks."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        if j % BLOCK:
            X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    a, b, c, d, e = X[:, 4 : 5 * BLOCK : BLOCK].T
    return X, with_noise(rng, a - 0.8 * b + np.tanh(2 * c) + 0.8 * np.abs(d) + 0.4 * e, 0.8)


def heavy_tails(rng: np.random.Generator, n: int, p: int) -> Table:
    """Columns and noise with 2.5 degrees of freedom."""
    X = rng.standard_t(2.5, size=(n, p))
    signal = 0.8 * X[:, 0] + 1.5 * np.tanh(X[:, 1]) + 0.7 * np.abs(X[:, 2]) + np.tanh(2 * X[:, 3])
    return X, signal + 0.6 * rng.standard_t(2.5, size=n)


def classes(rng: np.random.Generator, n: int, p: int) -> Table:
    """Three classes, the largest of three non-linear functions of four columns."""
    X = rng.normal(size=(n, p))
    scores = np.column_stack([1.5 * X[:, 0], 1.5 * X[:, 1] ** 2 - 1.5, 2 * np.abs(X[:, 2]) - 1.5 + X[:, 3]])
    return X, (scores + 0.4 * rng.gumbel(size=scores.shape)).argmax(axis=1)


def many_columns(rng: np.random.Generator, n: int, p: int) -> Table:
    X = rng.normal(size=(n, p))
    return X, with_noise(rng, X[:, [0, 1, 3]] @ [2.0, -1.7, 1.3] + 1.7 * np.tanh(2 * X[:, 2]), 0.9)


def no_signal(rng: np.random.Generator, n: int, p: int) -> Table:
    return rng.normal(size=(n, p)), rng.normal(size=n)


def weak(rng: np.random.Generator, n: int, p: int) -> Table:
    X = rng.normal(size=(n, p))
    return X, with_noise(rng, X[:, :10].sum(axis=1), 0.35)


def artificial(rng: np.random.Generator, n: int, p: int) -> Table:
    """The paper's artificial data."""
    X, y, _ = make_artificial(n, p, noise="sample", random_state=int(rng.integers(2**31)))
    return X, y


def discrete(rng: np.random.Generator, n: int, p: int) -> Table:
    """Bits, and between them whole numbers from 0 to 4."""
    X = rng.integers(0, np.where(np.arange(p) % 2, 5, 2), size=(n, p)).astype(np.float64)
    signal = 1.2 * X[:, 0] + 0.8 * np.abs(X[:, 1] - 2) + 1.5 * X[:, 2] * (X[:, 3] >= 3) + 0.2 * X[:, 3]
    return X, with_noise(rng, signal, 0.75)


def airfoil() -> Table:
    table = load_airfoil()
    return table.X, table.y


def boston() -> Table:
    table = load_boston(n_noise=0)
    return table.X, table.y


def vowel() -> Table:
    table = load_vowel()
    return table.X, table.y


def diabetes() -> Table:
    X, y = load_diabetes(return_X_y=True)
    return X, y


def breast_cancer() -> Table:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


FOUR, FIVE = (0, 1, 2, 3), (0, 1, 2, 3, 4)
DESIGNS: dict[str, Design] = {
    "linear": Drawn(linear, 200, 100, FIVE),
    "additive": Drawn(additive, 300, 100, FOUR),
    "interactions": Drawn(interactions, 400, 60, FOUR),
    "parity": Drawn(parity, 400, 30, (0, 1, 2)),
    "correlated blocks": Drawn(correlated, 300, 200, (4, 14, 24, 34, 44)),
    "heavy tails": Drawn(heavy_tails, 300, 100, FOUR),
    "classes": Drawn(classes, 400, 100, FOUR, "classification"),
    "many columns": Drawn(many_columns, 100, 1000, FOUR),
    "no signal": Drawn(no_signal, 300, 100, ()),
    "weak": Drawn(weak, 300, 60, tuple(range(10))),
    "artificial": Drawn(artificial, 300, 100, FIVE),
    "discrete": Drawn(discrete, 300, 60, FOUR),
    "diabetes": Real(diabetes),
    "breast cancer": Real(breast_cancer, "classification"),
    "airfoil": Real(airfoil),
    "boston": Real(boston),
    "vowel": Real(vowel, "classification"),
}
