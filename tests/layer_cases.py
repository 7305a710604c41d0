"""Networks for the scorers of layers, and the plainest loop that trains them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq

FOLDS = {  # how many rows always train, then the shares of the folds
    "2": (0, [1, 1]),
    "5": (0, [1, 1, 1, 1, 1]),
    "uneven": (0, [7, 1, 3, 2]),
    "hold-out": (2, [1]),
    "folds + training rows": (1, [1, 2, 1]),
    "loo": (0, None),
}


@dataclass(frozen=True)
class Case:
    n_rows: int = 83
    n_outputs: int = 1
    n_new: int = 1
    n_selected: int = 2
    folds: str = "5"
    weights: str = "none"
    n_units: int = 16
    n_draws: int = 1
    intercept: bool = True
    linear: bool = True
    unit_norm: bool = False
    ridge: float = 1.0
    linear_ridge: float = 1.0
    norm_bound: float | None = None
    own_base: bool = False
    columns: str = "plain"
    noise: float = 0.5
    n_candidates: int = 3
    seed: int = 0


def segment_bounds(case: Case) -> Any:
    always, shares = FOLDS[case.folds]
    if shares is None:
        return np.concatenate([[0], np.arange(case.n_rows + 1)])
    bounds = np.cumsum([0, always, *shares])
    return bounds * case.n_rows // bounds[-1]


def draw(case: Case) -> dict[str, Any]:
    """Draw the numbers of a case: they depend on nothing but the case."""
    rng = np.random.default_rng(case.seed)
    k, m, n, n_rows = case.n_selected, case.n_new, case.n_candidates, case.n_rows
    X = rng.normal(0.5, 1, size=(k + n * m, n_rows))
    if case.columns == "duplicated":
        X[1:] = X[rng.integers(0, 2, size=len(X) - 1)]
    elif case.columns == "constant":
        X[::2] = 3.0
    elif case.columns == "rare":
        X[k:] *= np.arange(n_rows) >= n_rows - 2  # nothing but zeros in the last fold's training rows
    mixing = rng.normal(size=(len(X), case.n_outputs)) / np.sqrt(len(X))
    targets = np.tanh(X.T @ mixing) + 1
    targets += case.noise * rng.normal(size=targets.shape)  # so that no loss is a mere rounding error
    weights = {
        "none": np.ones(n_rows),
        "integer": rng.integers(0, 4, size=n_rows).astype(float),
        "real": rng.uniform(0.1, 3, size=n_rows),
    }[case.weights]
    R = rng.normal(size=(case.n_draws, k + m, case.n_units)) / np.sqrt(k + m)
    bias = rng.normal(size=(case.n_draws, 1, case.n_units))
    names = ("selected", "columns", "targets", "weights", "R", "bias")
    values = (X[:k], X[k:].reshape(n, m, n_rows), targets, weights, R, bias)
    return dict(zip(names, values, strict=True))


@cache
def plain_predictions(case: Case) -> Any:
    """Train every network of a case as a naive user would: one after the other, from scratch."""
    numbers, bounds = draw(case), segment_bounds(case)
    T, weights, selected = numbers["targets"], numbers["weights"], numbers["selected"]
    result = np.zeros((case.n_candidates, case.n_rows, case.n_outputs))
    for candidate, new in enumerate(numbers["columns"]):
        X = np.concatenate([selected, new]).T
        for first, last in pairwise(bounds[1:]):
            train = np.delete(np.arange(case.n_rows), np.arange(first, last))
            for R, bias in zip(numbers["R"], numbers["bias"], strict=True):
                Z = X @ R + bias
                if case.unit_norm:
                    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
                layer = np.maximum(Z, 0)
                if case.linear:
                    predict = plain_ridge(X[train], T[train], weights[train], case.linear_ridge, case.intercept, None)
                    Y = predict(X)
                    layer = np.hstack([layer, np.maximum(Y, 0), np.maximum(-Y, 0)])
                predict = plain_ridge(
                    layer[train], T[train], weights[train], case.ridge, case.intercept, case.norm_bound
                )
                result[candidate, first:last] += predict(layer[first:last]) / case.n_draws
    return result


def plain_ridge(X: Any, T: Any, weights: Any, ridge: float, intercept: bool, bound: float | None) -> Any:
    n = X.shape[1]
    A = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    penalty = np.diag(np.arange(A.shape[1]) < n).astype(float)
    left, right = A.T @ (weights[:, None] * A), A.T @ (weights[:, None] * T)

    def solve(multiplier: float) -> Any:
        return np.linalg.solve(left + multiplier * penalty, right)

    def excess(exponent: float) -> float:
        return float(np.linalg.norm(solve(np.exp(exponent))[:n]) / bound - 1)

    lowest = np.log(max(ridge, 1e-9))
    if bound is not None and excess(lowest) > 0:
        coef = solve(np.exp(brentq(excess, lowest, 20, xtol=1e-14, rtol=1e-15)))
    elif ridge == 0:
        root = np.sqrt(weights)[:, None]
        coef = np.linalg.lstsq(root * A, root * T, rcond=1e-12)[0]
    else:
        coef = solve(ridge)
    return lambda rows: rows @ coef[:n] + (coef[n] if intercept else 0)


def losses(predictions: Any, case: Case) -> Any:
    """Mean squared errors over the rows that judge, unweighted, so that every prediction counts."""
    judged = slice(segment_bounds(case)[1], None)
    return np.mean((predictions[:, judged] - draw(case)["targets"][judged]) ** 2, axis=(1, 2))


def random_case(seed: int) -> Case:
    """Combine everything with everything."""
    rng = np.random.default_rng([seed, 1])

    def any_of(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    folds = any_of(*FOLDS)
    return Case(
        n_rows=int(rng.integers(30, 45)) if folds == "loo" else int(rng.integers(60, 230)),
        n_outputs=any_of(1, 3), n_new=any_of(1, 2, 5), n_selected=any_of(0, 1, 6),
        folds=folds, weights=any_of("none", "integer", "real"),
        n_units=any_of(1, 16, 33, 100), n_draws=any_of(1, 3),
        intercept=any_of(True, True, False), linear=any_of(True, True, False),
        unit_norm=any_of(False, False, True), ridge=any_of(0.1, 1.0),
        linear_ridge=any_of(0.1, 1.0), norm_bound=any_of(None, 0.3, 1e3),
        own_base=any_of(False, False, True),
        columns=any_of("plain", "plain", "duplicated", "constant", "rare"),
        n_candidates=any_of(1, 3, 6),
        seed=seed,
    )  # fmt: skip


SINGLE_CASES = {
    "plain": Case(),
    "Q=3": Case(n_outputs=3),
    "m=2, Q=1": Case(n_new=2),
    "m=2, Q=3": Case(n_new=2, n_outputs=3),
    "m=5, Q=3": Case(n_new=5, n_outputs=3),
    "k=0": Case(n_selected=0),
    "k=0, m=5": Case(n_selected=0, n_new=5),
    "k=6": Case(n_selected=6, n_outputs=3),
    **{f"folds {folds}": Case(folds=folds, n_outputs=3) for folds in FOLDS},
    **{f"weights {weights}": Case(weights=weights, n_new=2) for weights in ("integer", "real")},
    "weights integer, hold-out": Case(weights="integer", folds="hold-out"),
    **{f"H={H}": Case(n_units=H) for H in (1, 7, 8, 15, 17, 33, 64, 100)},
    "draws": Case(n_draws=3, n_outputs=3),
    "no intercept": Case(intercept=False, n_outputs=3),
    "no linear part": Case(linear=False),
    "neither": Case(linear=False, intercept=False),
    "unit norm": Case(unit_norm=True),
    "bound active": Case(norm_bound=0.3, n_outputs=3),
    "bound inactive": Case(norm_bound=1e3),
    "bound, no intercept": Case(norm_bound=0.3, intercept=False, weights="real"),
    "no ridge": Case(ridge=0.0, n_rows=300, n_units=7, linear=False, n_selected=6),
    "no linear ridge": Case(linear_ridge=0.0, n_selected=6),
    "bound instead of ridge": Case(n_rows=60, n_units=100, ridge=0.0, norm_bound=0.5),
    "bound instead of ridge, Q=3": Case(n_rows=60, n_units=100, ridge=0.0, norm_bound=0.5, n_outputs=3),
    "own base": Case(own_base=True, n_draws=3, n_new=2),
    **{f"{kind} columns": Case(columns=kind, n_new=2) for kind in ("duplicated", "constant", "rare")},
    **{
        f"{kind} columns, no linear ridge": Case(columns=kind, n_new=2, linear_ridge=0.0, n_selected=3)
        for kind in ("constant", "rare")
    },
    "row blocks": Case(n_rows=64 * 5 + 3),
    "row blocks, hold-out": Case(n_rows=64 * 5 + 3, folds="hold-out", weights="real"),
    "too many folds to keep their sums": Case(n_rows=150, n_units=100, folds="loo", n_candidates=1),
    "groups": Case(n_rows=1200, n_units=100, n_candidates=6),
    "groups, own base": Case(n_rows=1200, n_units=100, n_candidates=5, own_base=True, weights="real"),
    "little noise": Case(n_rows=1500, n_units=100, noise=0.01, n_selected=1, n_candidates=1),
    "little noise, Q=3": Case(n_rows=1500, n_units=100, noise=0.01, n_selected=1, n_candidates=1, n_outputs=3),
}
CASES = {**SINGLE_CASES, **{f"random {seed}": random_case(seed) for seed in range(40)}}


def tolerance(case: Case, dtype: str) -> float:
    """Largest relative error of a loss; in single precision it grows as the ridge falls below one."""
    return 1e-9 if dtype == "float64" else 1e-4 / min(case.ridge or 1, 1)
