"""What changes if columns are standardised in each fold: python -m benchmarks.standardising.

The selector standardises once, by all rows that train. Here plain networks of the same kind are trained on what it
selected, once with such columns and once with columns that are standardised by a fold's own training rows: how the loss
changes, and whether the best of each step's leading candidates remains the best. And on tables without a signal: what
the best of their columns seems to gain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.kernels.layers import draw_biases, draw_weights, train_networks
from ngp.paper.regression import TOL
from ngp.predictors import SSFN

Array = NDArray[np.float64]
N_REPEATS = 5
N_LEADERS = 5
N_NOISE_TABLES, NOISE_SHAPE = 10, (150, 20)


def validation_loss(X: Array, y: Array, ridge: float, in_folds: bool, n_repeats: int = N_REPEATS) -> float:
    """Mean squared error over repeated folds; all random layers are the same for both ways."""
    config, n = SSFN(), X.shape[1]
    layers = [
        (draw_weights(0, (draw, 0, 0), n, config.n_units) / np.sqrt(n), draw_biases(0, (draw, 0, 0), config.n_units))
        for draw in range(config.n_draws)
    ]
    errors = []
    for repeat in range(n_repeats):
        for train, test in KFold(5, shuffle=True, random_state=repeat).split(X):
            rows = X[train] if in_folds else X
            Z = np.clip((X - rows.mean(axis=0)) / rows.std(axis=0), -4, 4)
            mean, deviation = y[train].mean(), y[train].std()
            targets, weights = (y[train, None] - mean) / deviation, np.ones(len(train))
            ridges = {"linear_ridge": config.linear_ridge * n * len(train), "ridges": [ridge * len(train)]}
            data = [(Z[train], targets, weights)]
            (networks,) = train_networks(lambda data=data: data, layers, **ridges, intercept=True)
            outputs = np.mean([network.predict(Z[test]) for network in networks], axis=0)[:, 0]
            errors.append(np.mean((outputs * deviation + mean - y[test]) ** 2))
    return float(np.mean(errors))


def best_of(X: Array, y: Array, selected: list[int], candidates: list[int], ridge: float) -> list[tuple[float, int]]:
    """The lowest loss of a selection with one more column, and that column: standardised once, and in each fold."""
    return [
        min((validation_loss(X[:, [*selected, column]], y, ridge, way, n_repeats=1), column) for column in candidates)
        for way in (False, True)
    ]


def main() -> None:
    data = {f"artificial, seed {seed}": make_artificial(300, 500, random_state=seed)[:2] for seed in range(5)}
    same = total = 0
    for name, (X, y) in {**data, "diabetes": load_diabetes(return_X_y=True)}.items():
        selector = NeuralGreedyPursuit(SSFN(), tol=TOL, random_state=0).fit(X, y)
        few, ridge = X[:, selector.support_], selector.path_[-1].ridge
        once, anew = (validation_loss(few, y, ridge, in_folds) for in_folds in (False, True))
        print(f"{name}: {few.shape[1]} columns, loss {once:.4g}, standardised in each fold {anew / once - 1:+.2%}")
        for k, step in enumerate(selector.path_[1 : 1 + len(selector.order_)]):
            leaders = np.argsort(step.losses)[:N_LEADERS].tolist()
            (_, first), (_, second) = best_of(X, y, selector.order_[:k].tolist(), leaders, step.ridge)
            same, total = same + (first == second), total + 1
    print(f"the best of {N_LEADERS} leading candidates is the same in {same} of {total} steps")
    gains = []
    for seed in range(N_NOISE_TABLES):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=NOISE_SHAPE), rng.normal(size=NOISE_SHAPE[0])
        gains.append([1 - loss / y.var() for loss, _ in best_of(X, y, [], list(range(X.shape[1])), 0.3)])
    once, anew = np.mean(gains, axis=0)
    print(f"noise: the best column's loss is {once:+.2%} below the variance, standardised in each fold {anew:+.2%}")


if __name__ == "__main__":
    main()
