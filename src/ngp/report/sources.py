"""What the plots are given: a fitted selector, its result, or the steps of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ngp.greedy.path import Step

__all__ = ["names_of", "steps_of"]


def steps_of(path: Any) -> Sequence[Step]:
    """The steps of a selector, a result or a path."""
    if hasattr(path, "fit") and hasattr(path, "get_params"):
        check_is_fitted(path, "path_")
    steps = getattr(path, "path_", getattr(path, "steps", path))
    if not isinstance(steps, Sequence) or not steps or not all(isinstance(step, Step) for step in steps):
        raise TypeError(f"path={path!r} has no steps to plot: give a fitted selector or its path_.")
    return steps


def names_of(source: Any) -> Sequence[str]:
    """Names of the candidates of a selector or a result."""
    if hasattr(source, "groups_"):
        names: Sequence[str] = source.groups_.names
        return names
    if isinstance(getattr(source, "groups", None), dict):
        return list(source.groups["names"])
    raise TypeError(f"{source!r} doesn't name its candidates: give a fitted selector or its result.")
