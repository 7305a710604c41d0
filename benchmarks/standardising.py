"""How the validation loss changes if columns are standardised in each fold: python -m benchmarks.standardising.

The selector standardises once, by all rows that train. Here plain networks of the same kind are trained on what it
selected, once with such columns and once with columns that are standardised by a fold's own training rows.
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


def validation_loss(X: Array, y: Array, ridge: float, in_folds: bool) -> float:
    """Mean squared error over repeated folds; all random layers are the same for both ways."""
    config, n = SSFN(), X.shape[1]
    layers = [
        (draw_weights(0, (draw, 0, 0), n, config.n_units) / np.sqrt(n), draw_biases(0, (draw, 0, 0), config.n_units))
        for draw in range(config.n_draws)
    ]
    errors = []
    for repeat in range(N_REPEATS):
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


def main() -> None:
    data = {f"artificial, seed {seed}": make_artificial(300, 500, random_state=seed)[:2] for seed in range(5)}
    for name, (X, y) in {**data, "diabetes": load_diabetes(return_X_y=True)}.items():
        selector = NeuralGreedyPursuit(SSFN(), tol=TOL, random_state=0).fit(X, y)
        few, ridge = X[:, selector.support_], selector.path_[-1].ridge
        once, anew = (validation_loss(few, y, ridge, in_folds) for in_folds in (False, True))
        print(f"{name}: {few.shape[1]} columns, loss {once:.4g}, standardised in each fold {anew / once - 1:+.2%}")


if __name__ == "__main__":
    main()
