"""What travels to other processes in place of a scorer."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, Self, TypeVar, cast

from ngp.data.problem import Problem

__all__ = ["Recipe"]

ScorerType = TypeVar("ScorerType")


@dataclass(frozen=True, eq=False)
class Recipe(Generic[ScorerType]):
    """How to make a scorer of a problem: its class and its settings.

    A scorer itself is never sent: the problem is sent once for all scorers, and what a scorer has computed for itself
    stays where it is. In another process one scorer is made for all tasks; in its own, a recipe gives the scorer back.
    """

    kind: type[ScorerType]  # the scorer's class, a dataclass with a field `problem`
    settings: dict[str, Any]  # its other fields

    @classmethod
    def of(cls, scorer: ScorerType) -> Self:
        """Take a scorer's settings."""
        names = [field.name for field in fields(cast(Any, scorer)) if field.name != "problem"]
        recipe = cls(type(scorer), {name: getattr(scorer, name) for name in names})
        vars(recipe)["_made"] = weakref.ref(scorer)  # which may hold the recipe: a circle would keep X in memory
        return recipe

    def make(self, problem: Problem) -> ScorerType:
        """Return the scorer, made anew in the first call in another process."""
        if "_made" not in vars(self):
            make: Callable[..., ScorerType] = self.kind
            new = make(problem=problem, **self.settings)
            vars(self)["_made"] = lambda: new
        made: ScorerType = vars(self)["_made"]()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"kind": self.kind, "settings": self.settings}
