"""Stop rules: each beside what its description says, and users' own rules, which count as much as the built-in ones."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, nan
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from greedy_cases import decoy_loss, fake_step, fake_steps, make_fake, random_loss, run, seen, weights_loss
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, combine_pvalues

from ngp import NeuralGreedyPursuit
from ngp.greedy.path import Step
from ngp.greedy.stopping import (
    Cut,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    Plateau,
    RelativeImprovement,
    Significance,
    Stop,
    StopRule,
    first_stop,
)
from ngp.predictors import SSFN

NOTHING = "no relative improvement of at least 0.1 of the loss in {}"
losses_strategy = st.lists(st.floats(0, 100), min_size=1, max_size=12)


def ask(rule: StopRule, steps: Sequence[Step]) -> tuple[int, Stop | None]:
    """Ask the rule after every step, as a pursuit does; return the number of additions and the answer."""
    for k in range(len(steps)):
        stop = rule.check(steps[: k + 1]) or rule.check_budget(steps[: k + 1])
        if stop is not None:
            return k, stop
    return len(steps) - 1, rule.check(steps, exhausted=True)


def test_limits_of_features_and_columns() -> None:
    assert ask(MaxFeatures(2), fake_steps([9, 8, 7, 6])) == (2, Stop("2 of at most 2 features are selected", 2))
    assert ask(MaxFeatures(4), fake_steps([9, 8, 7, 6])) == (3, None)
    steps = fake_steps([9, 8, 7, 6], columns_per_step=4)
    assert ask(MaxColumns(8), steps) == (2, Stop("8 of at most 8 columns are selected", 2))
    assert ask(MaxColumns(10), steps) == (3, Stop("8 of at most 10 columns are selected", 2))
    assert ask(MaxFeatures(1), steps)[1] == Stop("1 of at most 1 feature is selected", 1)
    assert ask(MaxColumns(3), steps) == (1, Stop("0 of at most 3 columns are selected", 0))
    start = fake_step(1.0, action="start", n_selected=5, n_columns=5)  # fixed columns stay
    assert MaxFeatures(3).check([start]) == Stop("5 of at most 3 features are selected", 0)


def test_room_is_what_the_limits_leave() -> None:
    last = fake_step(1.0, n_selected=3, n_columns=5)
    assert StopRule().room(last) is None
    assert MaxFeatures(4).room(last) == 1
    rule = FirstOf([MaxFeatures(9), MaxColumns(7), RelativeImprovement(0.1)])
    assert (rule.max_features, rule.max_columns, rule.room(last)) == (9, 7, 2)
    assert [MaxColumns(n).exceeded(last) for n in (4, 5)] == [True, False]


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.floats(1e-6, 2))
def test_relative_improvement_is_the_rule_of_the_paper(losses: list[float], tol: float) -> None:
    improvements = [(a - b) / b for a, b in pairwise(losses)]
    assume(all(abs(improvement - tol) > 1e-9 for improvement in improvements))
    stop = ask(RelativeImprovement(tol), fake_steps(losses))[1]
    paper = next((k for k, improvement in enumerate(improvements) if improvement < tol), None)
    assert (None if stop is None else stop.keep) == paper


@pytest.mark.parametrize(
    ("rule", "losses", "n_made", "reason", "keep"),
    [
        # (10 - 8) / 8 = 0.25, although the loss fell by only a fifth of the old one.
        (RelativeImprovement(0.25), [10, 8], 1, None, 1),
        (RelativeImprovement(0.1), [10, 10, 5], 1, NOTHING.format("1 step"), 0),
        (RelativeImprovement(0), [10, 9.99, 9.99], 2, "no improvement of the loss in 1 step", 1),
        # Small gains add up to one that pays.
        (RelativeImprovement(0.1, patience=2), [10, 9.5, 8, 7.9, 7.8, 7.7, 1], 4, NOTHING.format("2 steps"), 2),
        (RelativeImprovement(0.1, patience=3), [10, 5, 4.99], 2, NOTHING.format("1 step"), 1),  # no candidate is left
        (RelativeImprovement(0.1, patience=5), [0.0], 0, "the loss is zero and cannot improve", 0),
        (RelativeImprovement(0.1, patience=5), [3.0, 0.0, 0.0], 1, "the loss is zero and cannot improve", 1),
    ],
)
def test_relative_improvement(rule: StopRule, losses: list[float], n_made: int, reason: str | None, keep: int) -> None:
    expected = None if reason is None else Stop(reason, keep)
    assert ask(rule, fake_steps(losses)) == (n_made, expected)


@pytest.mark.parametrize(("action", "n_made"), [("add", 2), ("swap", 3), ("drop", 3)])
def test_a_drop_or_an_exchange_needn_t_pay(action: Any, n_made: int) -> None:
    steps = fake_steps([10, 5, 5.2, 5.2])
    steps[2] = replace(steps[2], action=action)
    assert ask(RelativeImprovement(0.1), steps) == (n_made, Stop(NOTHING.format("1 step"), n_made - 1))
    tested = [replace(step, p_value=0.5) for step in steps]
    assert Significance().n_unproven(tested) == (3 if action == "add" else 1)


def test_plateau_keeps_the_smallest_within_one_standard_error() -> None:
    steps = fake_steps([10, 5, 4.2, 4.0, 4.1, 4.1, 4.3, 1.0], spread=0.3)
    kept = "kept is the smallest selection within {} of the lowest loss"
    reason, one = "no lower loss in 3 steps; " + kept, kept.format("a standard error")
    for errors, text, keep in [(1, "a standard error", 2), (0, "0 standard errors", 3), (4, "4 standard errors", 1)]:
        assert ask(Plateau(standard_errors=errors), steps) == (6, Stop(reason.format(text), keep))
    assert ask(Plateau(patience=1), steps) == (4, Stop("no lower loss in 1 step; " + one, 2))
    few = fake_steps([10, 4.2, 4.0], spread=0.3)
    assert ask(Plateau(), few) == (2, Stop("no candidate is left; " + one, 1))
    # The standard error is that of the best step, and size counts, not place.
    few[1] = replace(few[1], fold_losses=np.array([0.0, 8.4]))
    few[2] = replace(few[2], fold_losses=np.array([3.9, 4.1]))
    assert ask(Plateau(), few)[1] == Stop("no candidate is left; " + one, 2)
    sizes = [(10.0, 0), (4.5, 1), (4.2, 2), (4.1, 1), (4.0, 2)]
    steps = [fake_step(loss, loss, spread=1.0, n_selected=size) for loss, size in sizes]
    assert Plateau().check(steps, exhausted=True) == Stop("no candidate is left; " + one, 3)


def test_plateau_with_a_single_fold() -> None:
    steps = [replace(step, fold_losses=np.array([step.loss]), fold_weights=np.ones(1)) for step in fake_steps([3, 2])]
    message = (
        "standard_errors needs at least 2 parts of the validation, but there is 1: "
        "use more folds, such as cv=5, or Plateau(standard_errors=0)."
    )
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Plateau().check(steps[:1])
    assert Plateau(standard_errors=0).check(steps) is None


@given(losses_strategy, st.floats(0, 10), st.floats(0, 3), st.integers(1, 4))
def test_plateau_properties(losses: list[float], spread: float, errors: float, patience: int) -> None:
    made, stop = ask(Plateau(patience, errors), fake_steps(losses, spread))
    assert stop is not None
    best = int(np.argmin(losses[: made + 1]))
    assert made - best <= patience
    assert stop.keep <= best
    slack = errors * spread * (1 + 1e-9) + 1e-9
    assert losses[stop.keep] <= losses[best] + slack
    slack = errors * spread * (1 - 1e-9) - 1e-9
    assert all(losses[k] > losses[best] + slack for k in range(stop.keep))


def steps_with(p_values: Sequence[float], losses: Sequence[float] | None = None) -> list[Step]:
    falling = [9.0 - each for each in range(len(p_values) + 1)]
    start, *added = fake_steps(falling if losses is None else [9.0, *losses])
    return [start, *(replace(step, p_value=each) for step, each in zip(added, p_values, strict=True))]


def n_paid(p_values: Sequence[float], losses: Sequence[float], level: float) -> int:
    """How many steps Significance keeps: the density of p-values is that of a beta distribution."""
    paid, remembered = 0, []
    for k, p_value in enumerate(p_values):

        def pays(p_value: float) -> bool:
            a = min(0.4, -1 / np.log(remembered[-3:]).mean()) if remembered else 0.0
            likely = remembered and beta.pdf(p_value, a, 1) >= 1 - a
            return p_value <= level or bool(likely)

        p_value, *before = np.maximum([p_value, *p_values[paid:k]], 1e-300)
        together = pays(p_value) and (not before or pays(combine_pvalues([*before, p_value]).pvalue))
        if (together and losses[k] < min([9.0, *losses[:k]])) or p_value <= level / 100:
            paid = k + 1
            remembered.append(p_value)
    return paid


STEPS = st.tuples(st.sampled_from([0.0, 1e-9, 1e-4, 0.003, 0.01, 0.02, 0.08, 0.2, 0.9]), st.floats(1, 10))


@given(steps=st.lists(STEPS, max_size=8), patience=st.integers(1, 4), exhausted=st.booleans())
@example(steps=[(0.003, 8.0), (0.01, 7.0), (0.08, 6.0)], patience=3, exhausted=False)  # effects that fade slowly
@example(steps=[(1e-9, 8.0), (1e-9, 7.0), (0.08, 6.0)], patience=1, exhausted=False)  # one that is far behind
@example(steps=[(1e-9, 8.0), (0.003, 8.5), (0.0, 9.5)], patience=3, exhausted=False)  # certain, at any loss
def test_significance_keeps_what_is_likelier_beside_the_last_steps_than_by_chance(
    steps: list[tuple[float, float]], patience: int, exhausted: bool
) -> None:
    p_values, losses = [each[0] for each in steps], [each[1] for each in steps]
    kept = n_paid(p_values, losses, 0.01)
    unpaid, rule, made = len(steps) - kept, Significance(patience=patience), steps_with(p_values, losses)
    assert rule.n_unproven(made) == unpaid
    stop = rule.check(made, exhausted=exhausted)
    if unpaid == 0 or (kept and unpaid < patience and not exhausted):
        assert stop is None
    else:
        what = "the last step is" if unpaid == 1 else f"the last {unpaid} steps are"
        smallest = min(p_values[kept:])
        why = "not significant" if smallest > 0.01 else "not significant or without a lower loss"
        assert stop == Stop(f"{what} {why}, p = {smallest:.2g}", kept, is_strict=True)
    # Whatever has a smaller p-value than what pays would pay as well.
    allowed = rule.allowance(made)
    assert n_paid([*p_values, 0.999 * allowed], [*losses, 0.5], 0.01) == len(steps) + 1
    assert n_paid([*p_values, 1.001 * allowed], [*losses, 0.5], 0.01) == kept


def test_the_first_of_a_pair_pays_by_the_loss_of_both() -> None:
    start, first, second = steps_with([0.005, 0.005], [9.5, 7.0])
    rule = Significance()
    assert rule.check([start, first]) is not None
    assert rule.check([start, replace(first, ahead=7.0, n_ahead=2)]) is None
    assert rule.n_unproven([start, replace(first, ahead=7.0, n_ahead=2), replace(second, loss=6.9)]) == 0


def test_budgets() -> None:
    steps = fake_steps([5, 4, 3, 2])  # 10 fits and a second each
    reason = "the time of 2.5 seconds is up; the path is partial"
    assert ask(MaxTime(2.5), steps) == (2, Stop(reason, 2, partial=True))
    assert ask(MaxTime(60), steps) == (3, None)
    reason = "the budget of {} used up; the path is partial"
    assert ask(MaxFits(20), steps) == (1, Stop(reason.format("20 fits is"), 1, partial=True))
    assert ask(MaxFits(1), steps) == (0, Stop(reason.format("1 fit is"), 0, partial=True))
    for rule in (MaxTime(1), MaxFits(1)):
        assert rule.check(steps, exhausted=True) is None  # a complete path isn't partial


def test_first_of_stops_with_the_first_and_keeps_the_least() -> None:
    steps = fake_steps([10, 5, 4, 3.9])
    improvement = RelativeImprovement(0.06)
    assert ask(FirstOf([improvement, MaxFeatures(2)]), steps) == ask(MaxFeatures(2), steps)
    assert ask(FirstOf([improvement, MaxFeatures(4)]), steps) == ask(improvement, steps)
    assert ask(FirstOf([MaxFeatures(9), MaxTime(99)]), steps) == (3, None)
    made, stop = ask(FirstOf([MaxFeatures(3), improvement, MaxFits(40)]), steps)
    assert stop is not None
    assert (made, stop.keep) == (3, 2)
    few = fake_steps([10, 4.2, 4.0], spread=0.3)
    assert FirstOf([Plateau()]).check(few, exhausted=True) == Plateau().check(few, exhausted=True)


def test_first_of_asks_for_what_the_strictest_asks_for() -> None:
    rule = FirstOf([RelativeImprovement(0.1), FirstOf([Significance(0.05), Significance(0.02)]), MaxFeatures(3)])
    assert (rule.least_gain, rule.level, rule.max_features, rule.max_columns) == (0.1, 0.02, 3, inf)
    assert rule.n_unproven(steps_with([0.04, 0.5])) == 2
    assert FirstOf([MaxFeatures(3)]).level is None


def test_limits_may_have_a_level_up_to_which_candidates_are_preferred() -> None:
    for limit in (MaxFeatures, MaxColumns):
        assert limit(3).level is None
        assert limit(3, level=0.05).level == 0.05
        assert not limit(3, level=0.05).is_strict  # so many are selected, significant or not
    steps = steps_with([0.001, 0.9, 0.5])
    assert ask(MaxFeatures(3, level=0.01), steps) == ask(MaxFeatures(3), steps)
    assert FirstOf([MaxFeatures(3, level=0.05), MaxColumns(4, level=0.02), Plateau()]).level == 0.02


def test_a_cut_goes_on_until_all_have_stopped_and_keeps_what_the_first_says() -> None:
    steps = fake_steps([10, 5, 4, 4.5, 4.4, 3, 3.1, 3.2, 3.3, 3.4])
    gain, lowest, number = RelativeImprovement(0.1), Plateau(patience=3, standard_errors=0), MaxFeatures(4)
    assert [ask(rule, steps)[0] for rule in (gain, lowest, number)] == [3, 8, 4]
    for first in (gain, lowest, number):
        others = [rule for rule in (gain, lowest, number) if rule is not first]
        assert ask(Cut([first, *others]), steps) == (8, ask(first, steps)[1])
        assert ask(Cut([first]), steps) == ask(first, steps)
    # If no candidate is left, all rules are told so.
    few = steps[:3]
    assert Cut([gain, lowest]).check(few) is None
    assert Cut([lowest, MaxFeatures(2)]).check(few, exhausted=True) == lowest.check(few, exhausted=True)


def test_what_a_cut_does_not_keep_is_unproven_while_it_goes_on() -> None:
    steps = fake_steps([10, 5, 4, 4.5, 4.4, 4.3])
    rule = Cut([RelativeImprovement(0.1), MaxFeatures(9)])
    assert [rule.n_unproven(steps[:n]) for n in range(1, 7)] == [0, 0, 0, 1, 2, 3]
    doubtful = steps_with([0.001, 0.5, 0.9, 0.9, 0.001])  # the last one comes too late
    rule = Cut([Significance(), MaxFeatures(9)])
    assert [rule.n_unproven(doubtful[:n]) for n in range(1, 7)] == [0, 0, 1, 2, 3, 4]
    assert Significance().n_unproven(doubtful) == 0


def test_a_cut_asks_for_what_its_first_rule_asks_for() -> None:
    rule = Cut([Significance(0.05), MaxFeatures(3, level=0.02)])
    assert (rule.level, rule.is_strict) == (0.02, True)
    assert Cut([MaxFeatures(3), Significance()]).is_strict  # all cuts are of one path
    first = FirstOf([RelativeImprovement(0.1), MaxFeatures(4), MaxColumns(7)])
    rule = Cut([first, Plateau()])
    assert (rule.least_gain, rule.max_features, rule.max_columns, rule.level) == (0.1, 4, 7, None)
    assert Cut([Plateau(), first]).max_features == inf
    steps = fake_steps([5, 4, 3, 2])
    for rule in (Cut([Plateau(), MaxFits(20)]), Cut([MaxFits(20), Plateau()])):
        assert ask(rule, steps) == ask(MaxFits(20), steps)  # a budget is a budget


def test_a_path_can_be_cut_at_either_answer() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 8))
    y = 2 * X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + rng.normal(size=100)
    quick: dict[str, Any] = {"predictor": SSFN(n_units=10, n_draws=1), "random_state": 0}
    found = {stop: NeuralGreedyPursuit(stop=stop, **quick).fit(X, y) for stop in ("auto", "plateau", None)}
    paths = {stop: selector.path_ for stop, selector in found.items()}
    significant = [path[: first_stop(Significance(), path).keep + 1] for path in paths.values()]
    assert len(significant[0]) > 2
    assert len({str([step.group for step in path]) for path in significant}) == 1
    assert seen(paths[None]) == seen(paths["auto"])
    for stop, rule in [("auto", Significance()), ("plateau", Plateau())]:
        expected = first_stop(rule, paths[stop], exhausted=len(paths[stop]) == 9)
        assert expected is not None
        assert [step.kept for step in paths[stop]].count(True) == expected.keep + 1
        assert found[stop].stop_reason_ == expected.reason


@given(losses_strategy, st.integers(1, 12), st.floats(0, 1), st.integers(1, 3))
def test_every_answer_is_a_step_of_the_path(losses: list[float], n: int, tol: float, patience: int) -> None:
    rules: list[StopRule] = [MaxFeatures(n), RelativeImprovement(tol, patience), Plateau(patience), MaxFits(10 * n)]
    steps = fake_steps(losses, spread=0.5, columns_per_step=3)
    made, stop = ask(FirstOf(rules), steps)
    alone = [ask(rule, steps) for rule in [*rules, MaxColumns(n)]]
    for additions, answer in [(made, stop), *alone]:
        assert answer is None or 0 <= answer.keep <= additions
    assert made == min(additions for additions, _ in alone[:-1])


def test_rules_are_plain_values_with_the_defaults_that_their_descriptions_name() -> None:
    rule = FirstOf([MaxFeatures(3), Plateau(), Significance(), RelativeImprovement(0.1)])
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert repr(rule) == (
        "FirstOf(rules=(MaxFeatures(n=3, level=None), Plateau(patience=3, standard_errors=1.0), "
        "Significance(level=0.01, patience=3), RelativeImprovement(tol=0.1, patience=1)))"
    )


COUNT = "must be an integer of at least 1."
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: MaxFeatures(0), f"n=0 {COUNT}"),
    (lambda: MaxFeatures(2.0), f"n=2.0 {COUNT}"),
    (lambda: MaxColumns(True), f"n=True {COUNT}"),
    (lambda: MaxFits(-1), f"n=-1 {COUNT}"),
    (lambda: MaxTime(0), "seconds=0 must be a finite number, more than 0: leave the rule out for no limit."),
    (lambda: RelativeImprovement(nan), "tol=nan must be a finite number, 0 or more: use 0 to stop when the loss no "),
    (lambda: RelativeImprovement("0.1"), "tol='0.1' must be a finite number, 0 or more: use 0 to stop when the los"),
    (lambda: RelativeImprovement(0.1, patience=0), f"patience=0 {COUNT}"),
    (lambda: Plateau(patience=0), f"patience=0 {COUNT}"),
    (lambda: Plateau(standard_errors=-1), "standard_errors=-1 must be a finite number, 0 or more: use 0 to keep the"),
    (lambda: Significance(patience=0), f"patience=0 {COUNT}"),
    (lambda: Significance(0), "level=0 must be a finite number, more than 0: use 0.01 for one wrong step in a hundre"),
    (lambda: Significance(1), "level=1 must be a probability below 1: use 0.01."),
    (lambda: FirstOf([]), "rules=[] must be a list of stop rules, such as [MaxFeatures(10)]."),
    (lambda: MaxFeatures(3, level=1), "level=1 must be a probability below 1: use 0.01."),
    (lambda: MaxColumns(3, level=0), "level=0 must be a finite number, more than 0: use 0.01 for one wrong step in"),
    (lambda: Cut([]), "rules=[] must be a list of stop rules, such as [MaxFeatures(10)]."),
    (lambda: Cut([3]), "rules holds 3, which is no StopRule: use one like MaxFeatures(10)."),
    (
        lambda: FirstOf(MaxFeatures(3)),
        "rules=MaxFeatures(n=3, level=None) must be a list of stop rules, such as [MaxFeatures(10)]",
    ),
    (lambda: FirstOf([3]), "rules holds 3, which is no StopRule: use one like MaxFeatures(10)."),
    (lambda: FirstOf([Plateau]), "rules holds <class 'ngp.greedy.stopping.Plateau'>, which is no StopRule: use one "),
]


def test_mistakes() -> None:
    for make, message in MISTAKES:
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            make()


# ---------------------------------------------------------------- a user's own rule


class Own(StopRule):
    """A rule that says what a built-in one says, but isn't one."""

    def __init__(self, like: StopRule) -> None:
        self.like = like

    least_gain = property(lambda self: self.like.least_gain)
    level = property(lambda self: self.like.level)
    is_strict = property(lambda self: self.like.is_strict)
    max_features = property(lambda self: self.like.max_features)
    max_columns = property(lambda self: self.like.max_columns)

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        return self.like.check(steps, exhausted)

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        return self.like.check_budget(steps)

    def n_unproven(self, steps: Sequence[Step]) -> int:
        return self.like.n_unproven(steps)

    def tests(self, steps: Sequence[Step]) -> bool:
        return self.like.tests(steps)


BUILT_IN: dict[str, StopRule] = {
    "number": MaxFeatures(3),
    "columns": MaxColumns(3),
    "gain": RelativeImprovement(0.05),
    "plateau": Plateau(),
    "p-values": Significance(0.3),
    "fits": MaxFits(40),
    "gain and fits": FirstOf([RelativeImprovement(0.02), MaxFits(60)]),
    "number, of significant ones first": MaxFeatures(3, level=0.3),
    "p-values, until the plateau": Cut([Significance(0.3), Plateau(patience=1)]),
}


@pytest.mark.parametrize("name", BUILT_IN)
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), floating=st.booleans())
def test_a_rule_of_ones_own_counts_as_much_as_a_built_in_one(name: str, seed: int, floating: bool) -> None:
    rule = BUILT_IN[name]
    expected = run(make_fake(5, random_loss(seed)), rule, floating=floating)
    for own in (Own(rule), FirstOf([Own(rule), Own(StopRule())])):
        found = run(make_fake(5, random_loss(seed)), own, floating=floating)
        assert seen(found.steps) == seen(expected.steps)
        assert (found.reason, found.partial) == (expected.reason, expected.partial)


@dataclass(frozen=True)
class Says(StopRule):
    """A rule that says one thing, beside when to stop."""

    least_gain: float = 0.0
    max_features: float = inf
    level: float | None = None
    most_steps: int = 99
    unproven: int = 0
    n: int = 99

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        return Stop("enough", len(steps) - 1) if len(steps) > self.n else None

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        return Stop("spent", len(steps) - 1, partial=True) if len(steps) > self.most_steps else None

    def n_unproven(self, steps: Sequence[Step]) -> int:
        return min(self.unproven, len(steps) - 1)


def test_its_least_gain_decides_what_floating_drops() -> None:
    def loss(columns: frozenset[int]) -> float:
        """Beside 1 and 2, column 0 still gains a little."""
        parts = len(columns & {1, 2})
        return 10.0 - max(6.0, 4.0 * parts) - 0.1 if 0 in columns else 10.0 - 4.0 * parts

    def dropped(least_gain: float) -> list[int]:
        path = run(make_fake(5, loss), Says(least_gain=least_gain, n=4), floating=True)
        return [step.dropped for step in path.steps if step.action == "drop" and step.dropped is not None]

    assert dropped(0.01) == []
    assert dropped(0.2) == [0]


def test_its_number_of_features_bounds_pairs_and_exchanges() -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(200, 5)).astype(float)
    y = (X[:, 1] != X[:, 3]).astype(float)
    for most, expected in [(inf, [2, 1]), (2, [2, 1]), (1, [1])]:
        rule = Says(max_features=most, level=0.01, n=min(most, 2))
        path = NeuralGreedyPursuit(SSFN(n_units=10, n_draws=1), stop=rule, random_state=0).fit(X, y).path_
        assert [step.n_ahead for step in path[1:]] == expected
    # One column is exchanged for four unless there may be no more than three.
    for most, expected in [(inf, [1, 2, 3, 4]), (3, [0])]:
        path = run(make_fake(9, decoy_loss), Says(least_gain=0.1, max_features=most, n=1), floating=True)
        assert sorted(path.columns) == expected


def test_its_level_is_the_reason_for_p_values() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    y = 4 * X[:, 0] + 2 * X[:, 1] + rng.normal(size=100)
    rules = [Says(level=level, n=3) for level in (None, 0.05)]
    plain, own = (NeuralGreedyPursuit(SSFN(n_units=10, n_draws=1), stop=rule, random_state=0) for rule in rules)
    assert np.isnan([step.p_value for step in plain.fit(X, y).path_]).all()
    assert [step.p_value <= 0.05 for step in own.fit(X, y).path_] == [False, True, True, False]
    assert np.isnan(own.path_[0].p_value)
    assert len(own.order_) == 3  # what to do about it is for the rule to say


def test_its_budget_ends_a_pursuit_and_its_unproven_steps_are_taken_back() -> None:
    path = run(make_fake(5, weights_loss([5, 4, 3, 2, 1])), Says(most_steps=2))
    assert (path.reason, path.partial, path.columns.tolist()) == ("spent", True, [0, 1])
    for rule in (Says(unproven=1, n=3), Says(unproven=1, most_steps=3), Says(unproven=1)):
        path = run(make_fake(4, weights_loss([5, 4, 3, 2])), rule)
        assert path.columns.tolist() == [0, 1, 2][: len(path.steps) - 2]  # one less than were added
    assert run(make_fake(9, decoy_loss), Says(most_steps=1, n=1), floating=True).columns.tolist() == [0]


def test_a_selector_takes_it(tmp_path: FilePath) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    quick: dict[str, Any] = {"predictor": SSFN(n_units=10, n_draws=1), "random_state": 0}
    selector = NeuralGreedyPursuit(stop=Says(max_features=2, n=2), **quick)
    assert selector.estimate(X, X[:, 0]).n_fits[1] == 6 + 5
    assert (selector.fit(X, X[:, 0]).stop_reason_, len(selector.order_)) == ("enough", 2)
    # With its attributes, but without a repr of its own, a checkpoint knows it.
    file = tmp_path / "run.npz"
    NeuralGreedyPursuit(stop=Own(MaxFeatures(2)), checkpoint=file, **quick).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="is the checkpoint of another run"):
        NeuralGreedyPursuit(stop=Own(MaxFeatures(3)), checkpoint=file, **quick).fit(X, X[:, 0])


@pytest.mark.parametrize("seed", range(3))
def test_the_cuts_of_a_path_are_the_selections_of_the_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 8))
    y = X[:, 0] + X[:, 1] / 2 + X[:, 2] / 4 + rng.normal(size=80)
    quick: dict[str, Any] = {"predictor": SSFN(n_units=10, n_draws=1), "random_state": seed}
    sizes = {}
    for name, stop in (("significant", "auto"), ("best", "plateau")):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Nothing was selected")
            selector = NeuralGreedyPursuit(stop=stop, **quick).fit(X, y)
        sizes[name] = len(selector.order_)
    assert selector.cuts_ == sizes
    for other in ({"tol": 0.1}, {"n_features_to_select": 2}):
        assert NeuralGreedyPursuit(**quick, **other).fit(X, y).cuts_ == {}
    assert list(NeuralGreedyPursuit(**quick, stop=Plateau()).fit(X, y).cuts_) == ["best"]
