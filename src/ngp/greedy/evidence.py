"""How much there is to say for each column of a finished selection: its importance, and its p-value.

A selected group's importance is by how much the loss rises without it, the predictor retrained. Its p-value, given the
others that were selected, is multiplied by the number of candidates (Bonferroni), since it was chosen among them by the
same rows. A group that wasn't selected was not chosen for anything, so that its p-value is taken as it is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from ngp._types import FloatArray, IntArray
from ngp.greedy.candidates import Candidates, Search
from ngp.greedy.path import Path, Step, error_of
from ngp.greedy.significance import SignificanceTest
from ngp.predictors.base import ColumnSets, Losses

__all__ = ["importances", "known_groups", "p_values", "rows_needed"]

N_STAGES = 2  # of a race: a few random layers will do to compare losses with and without a feature
MOST_TIMES = 100  # as many rows as there are: more are not foreseen


def importances(search: Search, path: Path) -> FloatArray:
    """By how much the loss rises without each selected group, and the standard error of that: (n_groups, 2)."""
    found = np.full((search.problem.groups.n_groups, 2), np.nan)
    if not path.kept:
        return found
    scorer = search.scorer_of(path.columns, len(path.kept)).stages[:N_STAGES][-1]
    sets = ColumnSets.of([step.columns for step in path.kept])
    if len(sets) == 1 and len(sets.columns) == len(path.columns):  # nothing is left without it
        together = scorer.drop_losses(path.columns, ColumnSets.of([path.columns[:0]]))
        without = search.scorer.at(1).constant_losses(search.problem)
        parts = np.concatenate([without.parts, together.parts])
    else:
        together = scorer.drop_losses(path.columns, sets.with_empty())
        parts = together.parts
    rises = Losses(parts[:-1] - parts[-1], together.weights)
    for place, step in enumerate(path.kept):
        found[step.group] = rises.means[place], error_of(rises, place)
    return found


def p_values(test: SignificanceTest, path: Path, of_all: bool) -> FloatArray:
    """p-value of each selected group given the others and, if asked for, of all others given the selection."""
    problem = test.problem
    found = np.full(problem.groups.n_groups, np.nan)
    candidates = Candidates.beside(problem, path.columns)
    if of_all and len(candidates.names):
        found[candidates.names] = test.alone(path.columns, candidates.columns)
    for step in path.kept:
        rest = np.setdiff1d(path.columns, step.columns)
        alone, n_candidates = _alone(test, step, rest)
        found[step.group] = min(1.0, n_candidates * alone)
    if not path.kept and len(path) > 1 and path[1].p_value >= 0:  # the one that came nearest was chosen, too
        found[path[1].group] = path[1].p_value
    return found


def known_groups(order: IntArray, p_values: FloatArray) -> list[int]:
    """The selected groups in their order, then the others with a p-value, the lowest first."""
    ranked = np.argsort(p_values, kind="stable")
    others = ranked[~np.isnan(p_values[ranked]) & ~np.isin(ranked, order)]
    return [*order.tolist(), *others.tolist()]


def rows_needed(test: SignificanceTest, path: Path) -> float:
    """About how many rows it would take for the first candidate of a path to be significant, as strong as it seems.

    A correlation's normal score grows with the root of the number of rows. Infinite if there is none to be seen.
    """
    alone, n_candidates = _alone(test, path[1], path[0].columns)
    score, needed = -ndtri(alone / 2), -ndtri(test.level / n_candidates / 2)
    n_rows = int((test.problem.trains & (test.problem.weights > 0)).sum())
    rows = n_rows * (needed / max(score, 1e-9)) ** 2
    return float(rows) if rows <= MOST_TIMES * n_rows else np.inf


def _alone(test: SignificanceTest, step: Step, rest: IntArray) -> tuple[float, int]:
    """p-value of what a step adds beside some columns, and of how many candidates it is the best."""
    alone = float(test.alone(rest, ColumnSets.of([step.columns]))[0])
    return alone, len(Candidates.beside(test.problem, rest).names)
