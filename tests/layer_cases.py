"""Networks for the scorers of layers: as arrays, and scored by the plain numpy twin, which is the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ngp.kernels import plain, scoring
from ngp.kernels.scoring import LayerTask, LinearFit, Penalties, segment_moments

FOLDS = {  # how many rows always train, then the shares of the folds
    "2": (0, [1, 1]),
    "5": (0, [1, 1, 1, 1, 1]),
    "uneven": (0, [7, 1, 3, 2]),
    "hold-out": (2, [1]),
    "folds + training rows": (1, [1, 2, 1]),
    "loo": (0, None),
}
RANDOM = "random"  # as many folds as the seed says
DTYPES = ("float64", "float32")


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
    ridge: float = 1.0
    linear_ridge: float = 1.0
    columns: str = "plain"
    noise: float = 0.5
    exponents: tuple[int, int] = (0, 0)  # powers of ten that columns and targets are multiplied by
    n_candidates: int = 3
    seed: int = 0


def segment_bounds(case: Case) -> Any:
    if case.folds == RANDOM:
        return random_bounds(np.random.default_rng([case.seed, 2]), case.n_rows)
    always, shares = FOLDS[case.folds]
    if shares is None:
        return np.concatenate([[0], np.arange(case.n_rows + 1)])
    bounds = np.cumsum([0, always, *shares])
    return bounds * case.n_rows // bounds[-1]


def random_bounds(rng: np.random.Generator, n_rows: int) -> Any:
    """Bounds of the rows that always train, if there are such, and of folds of any length."""
    n_cuts = int(rng.integers(1, min(n_rows, 12)))
    cuts = np.sort(rng.choice(np.arange(1, n_rows), n_cuts, replace=False))
    return np.concatenate([[0] if n_cuts == 1 or rng.integers(2) else [0, 0], cuts, [n_rows]])


def draw(case: Case) -> dict[str, Any]:
    """Draw the numbers of a case: they depend on nothing but the case."""
    rng = np.random.default_rng(case.seed)
    k, m, n, n_rows = case.n_selected, case.n_new, case.n_candidates, case.n_rows
    X = rng.normal(0.5, 1, size=(k + n * m, n_rows))
    if case.columns == "duplicated":
        X[1:] = X[rng.integers(0, 2, size=max(len(X) - 1, 0))]
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
    X, targets = X * 10.0 ** case.exponents[0], targets * 10.0 ** case.exponents[1]
    R = rng.normal(size=(case.n_draws, k + m, case.n_units)) / np.sqrt(k + m)
    bias = rng.normal(size=(case.n_draws, 1, case.n_units))
    names = ("selected", "columns", "targets", "weights", "R", "bias")
    values = (X[:k], X[k:].reshape(n, m, n_rows), targets, weights, R, bias)
    return dict(zip(names, values, strict=True))


def make_task(
    case: Case, dtype: str = "float64", instruction_set: str = "", targets: Any = None
) -> tuple[LayerTask, Any]:
    """Switch to an instruction set and put a case into arrays for the scorer, padded for that set."""
    numbers, segments, k = draw(case), segment_bounds(case), case.n_selected
    targets = numbers["targets"] if targets is None else targets
    selected, columns, R, weights = (numbers[name] for name in ("selected", "columns", "R", "weights"))
    base = np.einsum("kj,dkh->djh", selected, R[:, :k]) + numbers["bias"]
    vector_bytes = scoring._kernels.use(instruction_set)[1] if scoring._kernels else 1
    padding = -case.n_units % max(1, vector_bytes // np.dtype(dtype).itemsize)
    rows = selected, targets, weights, segments
    linear = LinearFit.of(segment_moments(*rows), k, ridge=case.linear_ridge, centred=case.intercept).state(*rows)
    penalties = Penalties(case.ridge, case.linear_ridge, case.intercept)
    arrays = targets.astype(dtype), pad(base, padding, dtype), pad(R[:, k:], padding, dtype)
    return LayerTask(segments, weights, *arrays, linear, case.n_units, penalties), columns


def pad(array: Any, n: int, dtype: str) -> Any:
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, n)]).astype(dtype)


def make_blocks(case: Case, task: LayerTask, columns: Any, members: list[Any]) -> scoring.Blocks:
    """Cut a task into blocks of rows, each in fold order; the regressions are those of sums over the blocks."""
    numbers, bounds = draw(case), segment_bounds(case)
    parts = []
    for rows in members:
        data = numbers["selected"][:, rows], numbers["targets"][rows], numbers["weights"][rows]
        parts.append((*data, np.searchsorted(rows, bounds)))
    moments = np.sum([segment_moments(*part) for part in parts], axis=0)
    fit = LinearFit.of(moments, case.n_selected, ridge=case.linear_ridge, centred=case.intercept)

    def blocks(layers: bool) -> Iterator[tuple[LayerTask, Any]]:
        for rows, part in zip(members, parts, strict=True):
            base = np.ascontiguousarray(task.base[:, rows if layers else rows[:0]])
            own = {"segments": part[-1], "weights": task.weights[rows], "targets": task.targets[rows]}
            yield replace(task, **own, base=base, linear=fit.state(*part)), columns[:, :, rows]

    return blocks


def in_blocks(score: Any, case: Case, task: LayerTask, columns: Any, n_blocks: int = 3) -> Any:
    """Predictions with every row in a block drawn at random; some blocks may lack a fold."""
    owner = np.random.default_rng(case.seed).integers(n_blocks, size=case.n_rows)
    members = [rows for block in range(n_blocks) if len(rows := np.flatnonzero(owner == block))]
    result = np.zeros((len(columns), *task.targets.shape), task.targets.dtype)
    for rows, part in zip(members, score(make_blocks(case, task, columns, members)), strict=True):
        result[:, rows] = part
    return result


@cache
def twin_losses(case: Case) -> Any:
    """Losses of the candidates of a case by the numpy twin, in double precision."""
    task, columns = make_task(case)
    return losses(next(plain.score_blocks(lambda _: iter([(task, columns)]))), case)


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
        intercept=any_of(True, True, False), ridge=any_of(0.1, 1.0), linear_ridge=any_of(0.1, 1.0),
        columns=any_of("plain", "plain", "duplicated", "constant", "rare"),
        n_candidates=any_of(1, 3, 6),
        seed=seed,
    )  # fmt: skip


CASES = {
    "plain": Case(),
    "Q=3": Case(n_outputs=3),
    "m=0": Case(n_new=0, n_draws=2),
    "m=0, Q=3": Case(n_new=0, n_outputs=3, n_draws=2, weights="real"),
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
    **{f"{kind} columns": Case(columns=kind, n_new=2) for kind in ("duplicated", "constant", "rare")},
    "row blocks": Case(n_rows=64 * 5 + 3),
    "row blocks, hold-out": Case(n_rows=64 * 5 + 3, folds="hold-out", weights="real"),
    "too many folds to keep their sums": Case(n_rows=150, n_units=100, folds="loo", n_candidates=1),
    "groups": Case(n_rows=1200, n_units=100, n_candidates=6),
    "little noise": Case(n_rows=1500, n_units=100, noise=0.01, n_selected=1, n_candidates=1),
    "little noise, Q=3": Case(n_rows=1500, n_units=100, noise=0.01, n_selected=1, n_candidates=1, n_outputs=3),
    **{f"random {seed}": random_case(seed) for seed in range(16)},
}
# For paths that differ from the others in little: other instruction sets, another precision.
SAMPLE = (
    "plain", "m=5, Q=3", "k=0", "folds uneven", "folds hold-out", "folds loo", "weights real", "H=17", "draws",
    "no intercept", "rare columns", "groups",
)  # fmt: skip


def tolerance(case: Case, dtype: str) -> float:
    """Largest relative error of a loss; in single precision it grows as the ridge falls below one."""
    return 1e-9 if dtype == "float64" else 1e-4 / min(case.ridge, 1)
