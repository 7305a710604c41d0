"""How much there is to say for each column of a finished selection: its importance, and its p-value.

A selected group's importance is by how much the loss rises without it, the predictor retrained. Its p-value, given the
others that were selected, is multiplied by the number of candidates (Bonferroni), since it was chosen among them by the
same rows. A group that wasn't selected was not chosen for anything, so that its p-value is taken as it is.
"""

from __future__ import annotations

import numpy as np

from ngp._types import FloatArray
from ngp.greedy.candidates import Candidates, Search
from ngp.greedy.path import Path, error_of
from ngp.greedy.significance import SignificanceTest
from ngp.predictors.base import ColumnSets, Losses

__all__ = ["importances", "p_values"]


def importances(search: Search, path: Path) -> FloatArray:
    """By how much the loss rises without each selected group, and the standard error of that: (n_groups, 2)."""
    found = np.full((search.problem.groups.n_groups, 2), np.nan)
    if not path.kept:
        return found
    scorer = search.scorer_of(path.columns, len(path.kept))
    sets = ColumnSets.of([step.columns for step in path.kept])
    if len(sets.columns) == len(path.columns) and len(sets) == 1:  # nothing is left without it
        parts = scorer.drop_losses(path.columns, ColumnSets.of([path.columns[:0]])).parts
        parts = np.concatenate([search.scorer.at(1).constant_losses(search.problem).parts, parts])
    else:
        parts = scorer.drop_losses(path.columns, sets.with_empty()).parts
    rises = Losses(parts[:-1] - parts[-1], search.problem.part_weights)
    for place, step in enumerate(path.kept):
        found[step.group] = rises.means[place], error_of(rises, place)
    return found


def p_values(test: SignificanceTest, path: Path, of_all: bool) -> FloatArray:
    """p-value of each selected group given the others and, if asked for, of all others given the selection."""
    problem = test.problem
    found = np.full(problem.groups.n_groups, np.nan)
    for step in path.kept:
        rest = np.setdiff1d(path.columns, step.columns)
        n_candidates = len(Candidates.beside(problem, rest).names)
        alone = float(test.alone(rest, ColumnSets.of([step.columns]))[0])
        found[step.group] = min(1.0, n_candidates * alone)
    if of_all:
        candidates = Candidates.beside(problem, path.columns)
        if len(candidates.names):
            found[candidates.names] = test.alone(path.columns, candidates.columns)
    return found
