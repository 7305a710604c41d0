"""What the parts of a stop rule say, beside when to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from ngp.greedy.stopping import (
    BeyondChance,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    RelativeImprovement,
    StepLike,
    Stop,
    StopRule,
)

__all__ = [
    "Most",
    "chance_level",
    "least_gain",
    "most_selected",
    "n_unproven",
    "room_left",
    "spent_budget",
    "with_what_is_left",
]


def _parts(rule: StopRule) -> Iterator[StopRule]:
    if isinstance(rule, FirstOf):
        for part in rule.rules:
            yield from _parts(part)
    else:
        yield rule


def least_gain(rule: StopRule) -> float:
    """The relative gain that a feature must bring to pay; 0, which is any gain, where a rule doesn't say."""
    return max((part.tol for part in _parts(rule) if isinstance(part, RelativeImprovement)), default=0.0)


def chance_level(rule: StopRule) -> float | None:
    """The largest probability of a gain by chance that still pays; None where a rule doesn't ask for it."""
    return min((part.level for part in _parts(rule) if isinstance(part, BeyondChance)), default=None)


def n_unproven(rule: StopRule, steps: Sequence[StepLike]) -> int:
    """How many of the last steps are additions that may be chance; none where a rule doesn't ask for it."""
    return max((part.n_unpaid(steps) for part in _parts(rule) if isinstance(part, BeyondChance)), default=0)


class Most(NamedTuple):
    """How many features and columns may be selected; infinity where nobody says."""

    features: float = inf
    columns: float = inf

    def exceeded(self, last: StepLike) -> bool:
        """Whether more are selected after a step."""
        return last.n_selected > self.features or last.n_columns > self.columns


def most_selected(rule: StopRule) -> Most:
    """How many features and columns a rule allows."""
    features = [part.n for part in _parts(rule) if isinstance(part, MaxFeatures)]
    columns = [part.n for part in _parts(rule) if isinstance(part, MaxColumns)]
    return Most(min(features, default=inf), min(columns, default=inf))


def room_left(rule: StopRule, last: StepLike) -> int | None:
    """How many more groups a rule allows; None where it says no number."""
    most = most_selected(rule)
    room = min(most.features - last.n_selected, most.columns - last.n_columns)
    return None if room == inf else int(room)


def spent_budget(rule: StopRule, steps: Sequence[StepLike]) -> Stop | None:
    """What a rule says when its time or its number of fits is used up; None as long as it isn't."""
    stops = [part.check(steps) for part in _parts(rule) if isinstance(part, MaxTime | MaxFits)]
    return next((stop for stop in stops if stop is not None), None)


def with_what_is_left(rule: StopRule, steps: Sequence[StepLike]) -> StopRule:
    """The same rule with that part of its budgets which some steps haven't used."""
    if isinstance(rule, FirstOf):
        return FirstOf([with_what_is_left(part, steps) for part in rule.rules])
    if isinstance(rule, MaxTime):
        return replace(rule, seconds=rule.seconds - sum(step.seconds for step in steps))
    if isinstance(rule, MaxFits):
        return replace(rule, n=rule.n - sum(step.n_fits for step in steps))
    return rule
