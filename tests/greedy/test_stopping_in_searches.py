"""Stop rules on steps that look ahead, drop, exchange, or may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stopping_cases import FakeStep, path, run

from ngp.greedy.stopping import BeyondChance, Plateau, RelativeImprovement, Stop

NOTHING = "no relative improvement of at least 0.1 of the loss in {}"


def promising(losses: Sequence[float], number: int, ahead: float, n_ahead: int) -> list[FakeStep]:
    """Steps of which one has looked ahead."""
    steps = path(losses)
    steps[number] = replace(steps[number], ahead=ahead, n_ahead=n_ahead)
    return steps


@pytest.mark.parametrize("ahead", [5.0, 0.0])
def test_where_looking_ahead_saw_a_gain_as_many_steps_may_be_made(ahead: float) -> None:
    rule = RelativeImprovement(0.1)
    assert run(rule, promising([10, 10, 10, 5, 5], 1, ahead, 3)) == (4, Stop(NOTHING.format("1 step"), 3))
    assert run(rule, promising([10, 10, 10, 10, 5], 1, ahead, 3)) == (3, Stop(NOTHING.format("3 steps"), 0))


def test_a_gain_ahead_that_would_not_pay_is_no_reason_to_go_on() -> None:
    assert run(RelativeImprovement(0.1), promising([10, 10, 10, 5], 1, 9.5, 3)) == (
        1,
        Stop(NOTHING.format("1 step"), 0),
    )


def test_a_promise_counts_from_the_last_step_that_paid_on() -> None:
    steps = promising([10, 10, 10, 10, 10], 2, 1.0, 5)  # made on the way to another
    assert run(RelativeImprovement(0.1, patience=2), steps) == (2, Stop(NOTHING.format("2 steps"), 0))


@pytest.mark.parametrize(("action", "n_made"), [("add", 2), ("swap", 3), ("drop", 3)])
def test_to_drop_or_to_exchange_need_not_pay(action: str, n_made: int) -> None:
    steps = path([10, 5, 5.2, 5.2])
    steps[2] = replace(steps[2], action=action)
    assert run(RelativeImprovement(0.1), steps) == (n_made, Stop(NOTHING.format("1 step"), n_made - 1))


def chances(values: Sequence[float]) -> list[FakeStep]:
    start, *added = path([9.0] * (len(values) + 1))
    return [replace(start, action="start"), *map(lambda step, chance: replace(step, chance=chance), added, values)]


@given(
    values=st.lists(st.sampled_from([0.0, 0.01, 0.011, 0.2, 0.21, 1.0]), max_size=8),
    patience=st.integers(1, 4),
    exhausted=st.booleans(),
)
def test_beyond_chance_waits_for_what_is_in_doubt(values: list[float], patience: int, exhausted: bool) -> None:
    n_unpaid = 0
    for chance in values:
        n_unpaid = 0 if chance <= 0.01 else n_unpaid + 1
    rule, steps = BeyondChance(patience=patience), chances(values)
    stop = rule.check(steps, exhausted=exhausted)
    assert rule.n_unpaid(steps) == n_unpaid
    if n_unpaid == 0 or (n_unpaid < patience and values[-1] <= 0.2 and not exhausted):
        assert stop is None
    else:
        what = "the last step" if n_unpaid == 1 else f"the last {n_unpaid} steps together"
        reason = f"a gain as in {what} comes by chance with probability {values[-1]:.2g}"
        assert stop == Stop(reason, len(values) - n_unpaid)


@pytest.mark.parametrize("action", ["drop", "swap"])
def test_to_drop_or_to_exchange_need_not_be_beyond_chance(action: str) -> None:
    steps = chances([0.5, 0.5, 0.5])
    steps[2] = replace(steps[2], action=action)
    assert BeyondChance().n_unpaid(steps) == 1


def test_defaults_are_those_that_the_descriptions_name() -> None:
    assert BeyondChance() == BeyondChance(level=0.01, patience=3)
    assert Plateau() == Plateau(patience=3, standard_errors=1.0)
    assert RelativeImprovement(0.1) == RelativeImprovement(0.1, patience=1)
