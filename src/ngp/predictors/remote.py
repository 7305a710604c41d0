"""Scorers in other processes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, fields
from typing import Any, Generic, Self, TypeVar

from ngp.data.problem import Problem

__all__ = ["RemoteScorer"]

ScorerType = TypeVar("ScorerType")


@dataclass(frozen=True, eq=False)
class RemoteScorer(Generic[ScorerType]):
    """Stands for a scorer in other processes, where it is made of the problem, its class and its settings.

    A scorer itself is never sent: the problem is sent once for all scorers, and what a scorer has computed for itself
    stays where it is. In another process one scorer is made for all tasks; in its own, it is the scorer itself.
    """

    kind: type[ScorerType]  # the scorer's class, a dataclass with a field `problem`
    settings: dict[str, Any]  # its other fields

    @classmethod
    def of(cls, scorer: Any) -> Self:
        """Take a scorer's settings."""
        settings = {each.name: getattr(scorer, each.name) for each in fields(scorer) if each.name != "problem"}
        remote = cls(type(scorer), settings)
        vars(remote)["_made"] = weakref.ref(scorer)  # which may hold the remote one: a circle would keep X in memory
        return remote

    def make(self, problem: Problem) -> ScorerType:
        """Return the scorer, made anew in the first call in another process."""
        if "_made" not in vars(self):
            kind: Any = self.kind
            new = kind(problem=problem, **self.settings)
            vars(self)["_made"] = lambda: new
        made: ScorerType = vars(self)["_made"]()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"kind": self.kind, "settings": self.settings}
