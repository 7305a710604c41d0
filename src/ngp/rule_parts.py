"""What the parts of a stop rule say, beside when to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ngp.stopping import (
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

__all__ = ["chance_level", "least_gain", "n_unproven", "room_left", "spent_budget"]


def _parts(rule: StopRule) -> Iterator[StopRule]:
    if isinstance(rule, FirstOf):
        for part in rule.rules:
            yield from _parts(part)
    else:
        yield rule


def least_gain(rule: StopRule) -> float:
    """The relative gain that a feature must bring to pay; 0, which is any gain, where a rule doesn't say.

    Parameters
    ----------
    rule : StopRule
        Says when to stop.

    Examples
    --------
    >>> least_gain(FirstOf([MaxFeatures(10), RelativeImprovement(0.06)])), least_gain(MaxFeatures(3))
    (0.06, 0.0)
    """
    return max((part.tol for part in _parts(rule) if isinstance(part, RelativeImprovement)), default=0.0)


def chance_level(rule: StopRule) -> float | None:
    """The largest probability of a gain by chance that still pays; None where a rule doesn't ask for it.

    Parameters
    ----------
    rule : StopRule
        Says when to stop.

    Examples
    --------
    >>> chance_level(FirstOf([MaxFeatures(10), BeyondChance(0.05)])), chance_level(MaxFeatures(3))
    (0.05, None)
    """
    return min((part.level for part in _parts(rule) if isinstance(part, BeyondChance)), default=None)


def n_unproven(rule: StopRule, steps: Sequence[StepLike]) -> int:
    """How many of the last steps are additions that may be chance; none where a rule doesn't ask for it.

    Parameters
    ----------
    rule : StopRule
        Says when to stop.
    steps : sequence of steps
        All steps so far.
    """
    return max((part.n_unpaid(steps) for part in _parts(rule) if isinstance(part, BeyondChance)), default=0)


def room_left(rule: StopRule, last: StepLike) -> int | None:
    """How many more groups a rule allows; None where it says no number.

    Parameters
    ----------
    rule : StopRule
        Says when to stop.
    last : StepLike
        The last step.
    """
    rooms = [part.n - last.n_selected for part in _parts(rule) if isinstance(part, MaxFeatures)]
    rooms += [part.n - last.n_columns for part in _parts(rule) if isinstance(part, MaxColumns)]
    return min(rooms, default=None)


def spent_budget(rule: StopRule, steps: Sequence[StepLike]) -> Stop | None:
    """What a rule says when its time or its number of fits is used up; None as long as it isn't.

    Parameters
    ----------
    rule : StopRule
        Says when to stop.
    steps : sequence of steps
        All steps so far.
    """
    stops = [part.check(steps) for part in _parts(rule) if isinstance(part, MaxTime | MaxFits)]
    return next((stop for stop in stops if stop is not None), None)
