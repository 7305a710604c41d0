"""What figures 4 and 5 have in common: errors along the order in which features were selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ngp import NeuralGreedyPursuit
from ngp._types import IntArray
from ngp.baselines.base import PredictorEstimator
from ngp.greedy.path import Step
from ngp.greedy.stopping import StopRule
from ngp.paper.metrics import normalized_mean_error_db
from ngp.paper.regression import Split
from ngp.predictors import SSFN
from ngp.report.style import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MEANS", "draw_errors", "knee", "nested_errors", "pursue", "size_by_rule"]

# What `draw_errors` draws, for the titles.
MEANS = "(means; shaded: lowest to highest)"


def pursue(split: Split, n_features: int, *, protocol: str, seed: int, n_jobs: int) -> tuple[Step, ...]:
    """Steps of a pursuit of so many features, the start included."""
    cv = (split.X_test, split.y_test) if protocol == "published" else 5
    # What is selected doesn't depend on the final predictor: no need to look for its best size.
    selector = NeuralGreedyPursuit(
        SSFN(refit_units=100), n_features_to_select=n_features, cv=cv, n_jobs=n_jobs, random_state=seed
    )
    steps: tuple[Step, ...] = selector.fit(split.X, split.y).path_
    return steps


def size_by_rule(steps: Sequence[Step], rule: StopRule) -> int:
    """How many features a rule would have kept of a finished pursuit; all of them if it would have gone on."""
    for length in range(1, len(steps) + 1):
        if stop := rule.check(steps[:length]):
            return stop.keep
    return len(steps) - 1


def nested_errors(split: Split, order: Sequence[int] | IntArray, seed: int) -> tuple[list[float], list[float]]:
    """Training and test NME in dB of an SSFN on the first 0, 1, 2, … features of an order.

    With no features the prediction is the mean of the training targets.
    """
    mean = split.y.mean()
    train = [normalized_mean_error_db(split.y, np.full_like(split.y, mean))]
    test = [normalized_mean_error_db(split.y_test, np.full_like(split.y_test, mean))]
    for size in range(1, len(order) + 1):
        columns = list(order[:size])
        network = PredictorEstimator(task="regression", random_state=seed).fit(split.X[:, columns], split.y)
        train.append(normalized_mean_error_db(split.y, network.predict(split.X[:, columns])))
        test.append(normalized_mean_error_db(split.y_test, network.predict(split.X_test[:, columns])))
    return train, test


def knee(errors: Sequence[float]) -> int:
    """Number of features at which an error curve bends most: what it falls before, less what it falls after."""
    if len(errors) < 3:
        raise ValueError(f"errors has {len(errors)} values: a curve with a knee has at least 3.")
    return 1 + int(np.argmax(np.diff(errors, 2)))


def draw_errors(ax: Axes, errors: Sequence[Sequence[float]], colour: str, *, label: str, style: str = "-") -> None:
    """Mean curve of several runs, from one feature on, with a band from the lowest to the highest."""
    runs = np.array(errors)[:, 1:]
    sizes = np.arange(1, runs.shape[1] + 1)
    ax.fill_between(sizes, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    ax.plot(sizes, runs.mean(axis=0), style, color=colour, marker="o", markersize=4, label=label)
    ax.set_xticks(sizes)
    ax.set_xlabel("number of features")
    clean(ax)
