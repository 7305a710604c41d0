"""How predictions depend on the selected columns: averages with one or two of them set to a value, whatever the others.

These are Friedman's partial dependences, of the fitted predictor. Two groups work together as far as their joint
dependence is not the sum of what each has alone (his H²).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.losses import probabilities

__all__ = ["Curve", "Together", "curves_of", "together_of"]

N_ROWS, N_VALUES = 200, 25  # that a curve is averaged over, and on it
MOST_CURVES, MOST_CLASSES = 12, 6
N_POINTS, MOST_TOGETHER = 30, 10  # rows and groups that are compared in pairs
BATCH = 2**22  # numbers that are predicted from at once


@dataclass(frozen=True)
class Curve:
    """The average prediction for each value of a column."""

    column: int
    values: list[float]  # of a category column, numbers of the categories
    categories: list[str] | None
    outputs: list[str]  # classes whose probability is predicted, or a name for each target
    averages: list[list[float]]  # one list per output


@dataclass(frozen=True)
class Together:
    """What two selected groups say together."""

    groups: list[int]
    share: float  # of the variance of their joint effect that neither has alone: 0 if effects add up
    size: float  # standard deviation of their joint effect, as a share of that of all predictions


def curves_of(selector: Any, data: AnyArray, blocks: Sequence[IntArray]) -> list[Curve]:
    """A curve for each of the first selected columns; `blocks` holds the encoded columns of each column."""
    order = [column for group in selector.order_ for column in selector.groups_.columns[group]]
    columns = list(dict.fromkeys(int(column) for column in order))[:MOST_CURVES]
    if not columns:
        return []
    rows = _some(selector, data, blocks, N_ROWS)
    settings = {column: _settings(selector, data, column, blocks[column]) for column in columns}
    averages = [_averages(selector, rows, blocks[column], settings[column]) for column in columns]
    outputs = _outputs(selector, averages[0].shape[1])
    ranges = np.max([np.ptp(each, axis=0) for each in averages], axis=0)
    shown = np.sort(np.argsort(-ranges, kind="stable")[:MOST_CLASSES])
    curves = []
    for column, found in zip(columns, averages, strict=True):
        levels = selector.encoder_.categories_.get(column)
        values = settings[column][:, 0].tolist() if levels is None else list(map(float, range(len(levels))))
        names = None if levels is None else list(map(str, levels))
        curves.append(Curve(column, values, names, [outputs[each] for each in shown], found[:, shown].T.tolist()))
    return curves


def together_of(selector: Any, data: AnyArray, blocks: Sequence[IntArray]) -> list[Together]:
    """All pairs of the first selected groups, those with the largest joint effect beyond their own first."""
    groups = [int(group) for group in selector.order_[:MOST_TOGETHER]]
    if len(groups) < 2:
        return []
    rows = _some(selector, data, blocks, N_POINTS)
    own = {group: np.concatenate([blocks[column] for column in selector.groups_.columns[group]]) for group in groups}
    alone = {group: _centred(_averages(selector, rows, own[group], rows[:, own[group]])) for group in groups}
    spread = float(np.sqrt((_centred(_predicted(selector, rows)) ** 2).sum()))
    found = []
    for pair in combinations(groups, 2):
        columns = np.union1d(own[pair[0]], own[pair[1]])
        joint = _centred(_averages(selector, rows, columns, rows[:, columns]))
        beyond = ((joint - alone[pair[0]] - alone[pair[1]]) ** 2).sum()
        size = (joint**2).sum()
        found.append(
            Together(list(pair), float(min(1.0, beyond / max(size, 1e-300))), float(size**0.5 / max(spread, 1e-300)))
        )
    return sorted(found, key=lambda pair: -pair.share * pair.size**2)


def _some(selector: Any, data: AnyArray, blocks: Sequence[IntArray], most: int) -> FloatArray:
    """Evenly spaced rows; of columns that the predictor doesn't read there are zeros."""
    columns = np.concatenate([blocks[column] for column in np.flatnonzero(selector.support_).tolist()])
    places = np.unique(np.linspace(0, len(data) - 1, most).astype(np.intp))
    rows = np.zeros((len(places), data.shape[1]))
    rows[:, columns] = data[np.ix_(places, columns)]
    return rows


def _settings(selector: Any, data: AnyArray, column: int, block: IntArray) -> FloatArray:
    """Values of a column as it is encoded: all categories, all of a few numbers, or quantiles without the ends."""
    if column in selector.encoder_.categories_:
        return np.eye(len(block))
    values = data[:, block[0]].astype(np.float64)
    found: FloatArray = np.unique(values)
    if len(found) > N_VALUES / 2:
        found = np.unique(np.quantile(values, np.linspace(0.02, 0.98, N_VALUES)))
    return found[:, None]


def _averages(selector: Any, rows: FloatArray, columns: IntArray, settings: FloatArray) -> FloatArray:
    """Average prediction (n_settings, n_outputs) over some rows with their columns at each of some settings."""
    length = max(1, BATCH // rows.size)

    def batches() -> Iterator[FloatArray]:
        for start in range(0, len(settings), length):
            some = settings[start : start + length]
            changed = np.tile(rows, (len(some), 1))
            changed[:, columns] = np.repeat(some, len(rows), axis=0)
            yield _predicted(selector, changed).reshape(len(some), len(rows), -1).mean(axis=1)

    return np.concatenate(list(batches()))


def _predicted(selector: Any, rows: FloatArray) -> FloatArray:
    """Predictions (n_rows, n_outputs): probabilities of classes, of two classes of the second one."""
    coded: FloatArray = selector.predictor_.predict(rows)
    if selector.task_ == "regression":
        return coded
    found = probabilities(coded)
    return found[:, 1:] if found.shape[1] == 2 else found


def _outputs(selector: Any, number: int) -> list[str]:
    if selector.task_ == "regression":
        return [""] if number == 1 else [f"output {output}" for output in range(1, number + 1)]
    return [str(each) for each in selector.classes_[-number:]]


def _centred(values: FloatArray) -> FloatArray:
    centred: FloatArray = values - values.mean(axis=0)
    return centred
