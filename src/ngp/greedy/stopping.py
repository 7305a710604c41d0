"""Rules that say when a pursuit has selected enough.

A rule sees the steps made so far and nothing else. Step 0 is the start (the constant prediction, or the fixed
columns), so that a path of k additions has k + 1 steps, and a rule can stop before the first feature. Losses
are taken to be non-negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from numbers import Integral, Real
from typing import Any, ClassVar

from scipy.special import chdtri

from ngp._formatting import counted
from ngp.greedy.path import Step, standard_error

__all__ = [
    "Cut",
    "FirstOf",
    "MaxColumns",
    "MaxFeatures",
    "MaxFits",
    "MaxTime",
    "Plateau",
    "RelativeImprovement",
    "Significance",
    "Stop",
    "StopRule",
]

# Steps that say how large the next p-value may be, and the largest power of their density.
N_REMEMBERED = 3
MOST_UNIFORM = 0.4
CERTAIN_SHARE = 0.01  # of the level: below that, a step pays whatever its loss is
TINY = 1e-300
NO_CANDIDATE_LEFT = "no candidate is left"
LOSS_IS_ZERO = "the loss is zero and cannot improve"


@dataclass(frozen=True)
class Stop:
    """The decision to stop.

    Attributes
    ----------
    reason : str
        Why, in words.
    keep : int
        Number of steps to keep, the start not counted: the selection is the one after ``steps[keep]``, later
        steps are taken back.
    partial : bool
        Whether the pursuit was cut short, and could have gone on.
    is_strict : bool
        Whether all that is kept has to be significant: what no longer is beside the others is dropped.
    """

    reason: str
    keep: int
    partial: bool = False
    is_strict: bool = False


class StopRule:
    """A rule that is asked after every step, the start included: a subclass overrides what it has to say.

    Attributes
    ----------
    least_gain : float
        Relative gain that a feature must bring to pay, by default 0: any gain. `floating` drops what gains less.
    level : float or None
        Largest p-value of a significant step: such candidates are preferred, and pairs are looked at if there is none.
        None, the default, computes no p-values: this is the paper's algorithm, and nothing else.
    is_strict : bool
        Whether steps that aren't significant are taken back, by default False. `floating` then drops what isn't
        significant any more.
    max_features, max_columns : float
        How many features and columns may be selected, by default infinity. Pairs, exchanges and estimates keep to it.
    """

    @property
    def least_gain(self) -> float:
        """Relative gain that a feature must bring to pay."""
        return 0.0

    @property
    def level(self) -> float | None:
        """Largest p-value of a significant step."""
        return None

    @property
    def is_strict(self) -> bool:
        """Whether steps that aren't significant are taken back."""
        return False

    @property
    def max_features(self) -> float:
        """How many features may be selected."""
        return inf

    @property
    def max_columns(self) -> float:
        """How many columns may be selected."""
        return inf

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Say whether to stop, and how much to keep; by default the pursuit goes on.

        Parameters
        ----------
        steps : sequence of Step
            All steps so far that weren't taken back; ``steps[0]`` is the start.
        exhausted : bool
            True when no candidate is left. The path ends then in any case; a rule may still take additions
            back, and None means that all are kept, but for those that are unproven.

        Returns
        -------
        Stop or None
            None to go on.
        """
        return None

    def cuts(self, steps: Sequence[Step], exhausted: bool = False) -> dict[str, int]:
        """Name the selections of a path that answer different questions, by default none.

        Parameters
        ----------
        steps : sequence of Step
            All steps that weren't taken back; ``steps[0]`` is the start.
        exhausted : bool
            Whether no candidate is left.

        Returns
        -------
        dict
            For each name the number of steps to keep, the start not counted; what isn't known yet is left out.
        """
        return {}

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        """Say whether a budget is used up; by default there is none.

        Parameters
        ----------
        steps : sequence of Step
            All steps so far, also those that were taken back; those restored from a checkpoint take zero seconds.

        Returns
        -------
        Stop or None
            None to go on.
        """
        return None

    def n_unproven(self, steps: Sequence[Step]) -> int:
        """Count the last steps that are additions which haven't paid yet, by default none.

        They are taken back if the pursuit ends with them, whatever ends it.

        Parameters
        ----------
        steps : sequence of Step
            All steps so far that weren't taken back; ``steps[0]`` is the start.

        Returns
        -------
        int
            How many they are.
        """
        return 0

    def tests(self, steps: Sequence[Step]) -> bool:
        """Say whether the p-values of the next step are asked for.

        By default they are if there is a level, until `Significance` would stop.

        Parameters
        ----------
        steps : sequence of Step
            All steps so far that weren't taken back; ``steps[0]`` is the start.

        Returns
        -------
        bool
            Whether candidates are tested.
        """
        return self.level is not None and first_stop(Significance(self.level), steps) is None

    def room(self, last: Step) -> int | None:
        """Count the groups that may still be added after a step; None if there is no limit."""
        room = min(self.max_features - last.n_selected, self.max_columns - last.n_columns)
        return None if room == inf else int(room)

    def exceeded(self, last: Step) -> bool:
        """Whether more is selected after a step than there may be."""
        return last.n_selected > self.max_features or last.n_columns > self.max_columns


@dataclass(frozen=True)
class MaxFeatures(StopRule):
    """Stop at `n` features; a step that leads beyond is taken back.

    Parameters
    ----------
    n : int
        Number of features (groups of columns), at least 1.
    level : float or None
        Up to which p-value a step is significant; None computes none (see `StopRule`).

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=MaxFeatures(2), random_state=0).fit(X, y).order_
    array([1, 0])
    """

    n: int
    level: float | None = None

    def __post_init__(self) -> None:
        _require_count("n", self.n)
        if self.level is not None:
            _require_level(self.level)

    @property
    def max_features(self) -> float:
        """At most `n`."""
        return self.n

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop when `n` features are selected."""
        return _stop_at([step.n_selected for step in steps], self.n, "feature")


@dataclass(frozen=True)
class MaxColumns(StopRule):
    """Stop at `n` columns; a group that leads beyond is taken back.

    Parameters
    ----------
    n : int
        Number of columns, at least 1.
    level : float or None
        Up to which p-value a step is significant; None computes none (see `StopRule`).

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> groups = [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]
    >>> NeuralGreedyPursuit(stop=MaxColumns(4), groups=groups, random_state=0).fit(X, y).stop_reason_
    '4 of at most 4 columns are selected'
    """

    n: int
    level: float | None = None

    def __post_init__(self) -> None:
        _require_count("n", self.n)
        if self.level is not None:
            _require_level(self.level)

    @property
    def max_columns(self) -> float:
        """At most `n`."""
        return self.n

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop when `n` columns are selected or the last group went beyond."""
        return _stop_at([step.n_columns for step in steps], self.n, "column")


@dataclass(frozen=True)
class RelativeImprovement(StopRule):
    r"""Stop when a further feature improves the loss too little.

    A step pays when its loss :math:`L_k` satisfies :math:`(L - L_k) / L_k \ge` `tol`, where :math:`L` is the loss
    before it (of the last selection that paid, carried along over steps that did not: small gains may add up to one
    that pays). As in the paper it is a share of the new loss: with ``tol=0.25`` the loss must fall by a fifth. Both
    losses are of the random layers of the step (`Step.paired`), unlike those that `Step.gain` compares. After
    `patience` successive steps that did not pay, the pursuit stops and they are taken back. With ``tol=0`` any
    improvement pays, but an equal loss does not. A loss of zero stops at once, since nothing can improve on it. To drop
    or to exchange a feature needn't pay.

    Parameters
    ----------
    tol : float
        Smallest relative improvement that pays, the η of the paper.
    patience : int
        Number of successive steps allowed to bring nothing; with 1, the paper's rule.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=RelativeImprovement(tol=0.1), random_state=0).fit(X, y).stop_reason_
    'no relative improvement of at least 0.1 of the loss in 1 step'
    """

    tol: float
    patience: int = 1

    def __post_init__(self) -> None:
        _require_number("tol", self.tol, "use 0 to stop when the loss no longer falls")
        _require_count("patience", self.patience)

    @property
    def least_gain(self) -> float:
        """It is `tol`."""
        return self.tol

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop after `patience` steps in a row that did not pay, and keep those before."""
        if steps[0].loss == 0:
            return Stop(LOSS_IS_ZERO, 0)
        paid, ratio = 0, 1.0  # how many times larger the loss was at the last step that paid
        for k, step in enumerate(steps[1:], 1):
            if step.loss == 0:
                return Stop(LOSS_IS_ZERO, k)
            ratio *= step.paired / step.loss
            if self._pays(ratio) or step.action == "swap" or (step.action == "drop" and paid == k - 1):
                paid, ratio = k, 1.0
        unpaid = len(steps) - 1 - paid
        if unpaid >= self.patience or (exhausted and unpaid > 0):
            improvement_asked = f"relative improvement of at least {self.tol:g}" if self.tol else "improvement"
            return Stop(f"no {improvement_asked} of the loss in {counted(unpaid, 'step')}", paid)
        return None

    def _pays(self, ratio: float) -> bool:
        return ratio > 1 and ratio - 1 >= self.tol


@dataclass(frozen=True)
class Plateau(StopRule):
    """Go on until the loss stops falling, then keep the smallest selection that is as good as the best.

    The pursuit stops when the lowest loss is `patience` steps old, or when no candidate is left. Kept is the
    smallest selection whose loss exceeds the lowest by at most `standard_errors` standard errors: the
    one-standard-error rule. The standard error is that of the mean over the parts of the validation at the best
    step.

    Parameters
    ----------
    patience : int
        Number of steps without a new lowest loss after which to stop.
    standard_errors : float
        How many standard errors count as equally good. With 0 the lowest loss itself is kept; this is the only choice
        where the validation has a single part, as with `scoring` on a single hold-out set: that says nothing about
        its own error, and any other choice raises a ValueError rather than prune by a guess.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=Plateau(patience=2), random_state=0).fit(X, y).order_
    array([1, 0])
    """

    patience: int = 3
    standard_errors: float = 1.0

    def __post_init__(self) -> None:
        _require_count("patience", self.patience)
        _require_number("standard_errors", self.standard_errors, "use 0 to keep the lowest loss itself")

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop when the lowest loss is `patience` steps old, and keep the smallest that is as good."""
        best = min(range(len(steps)), key=lambda k: steps[k].loss)
        # Computed on every call, so that a single part is reported at the start and not after hours.
        slack = 0.0
        if self.standard_errors > 0:
            slack = self.standard_errors * standard_error(steps[best].fold_losses, steps[best].fold_weights)
        age = len(steps) - 1 - best
        if age < self.patience and not exhausted:
            return None
        good = [k for k in range(len(steps)) if steps[k].loss <= steps[best].loss + slack]
        keep = min(good, key=lambda k: (steps[k].n_selected, steps[k].loss))
        why = NO_CANDIDATE_LEFT if age < self.patience else f"no lower loss in {counted(age, 'step')}"
        slack_in_words = (
            "a standard error" if self.standard_errors == 1 else f"{self.standard_errors:g} standard errors"
        )
        kept = f"the smallest selection within {slack_in_words} of the lowest loss"
        return Stop(f"{why}; kept is {kept}", keep)

    def cuts(self, steps: Sequence[Step], exhausted: bool = False) -> dict[str, int]:
        """Name what it keeps ``"best"``."""
        stop = first_stop(self, steps, exhausted)
        return {} if stop is None else {"best": stop.keep}


@dataclass(frozen=True)
class Significance(StopRule):
    r"""Stop when no candidate knows anything significant that the selection doesn't know.

    A step pays if its loss is the lowest so far, and its p-value (see `ngp.greedy.significance`) is at most `level` or
    fits those of the last steps. By chance, p-values have a density of 1. Those of steps that paid have one of about
    :math:`a p^{a-1}`, where :math:`a = -1 / \overline{\log p}`, over the last three of them, maximises the likelihood,
    but is 0.4 at most. A p-value fits if that density is :math:`1 - a` or more: the more slowly effects fade, the more
    of them are to be expected. So a p-value of 0.2 pays after 0.01, 0.02 and 0.05, but one of 0.1 doesn't after three
    of :math:`10^{-9}`. Steps before it that didn't pay are kept with it if that also holds for the p-value
    of all of them together, by Fisher's method. Whatever the loss is, a p-value below a hundredth of `level` pays.
    Nothing is selected unless the first step is significant.

    Parameters
    ----------
    level : float
        Largest p-value that is significant by itself.
    patience : int
        Number of successive steps allowed to bring nothing.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=Significance(level=0.001), random_state=0).fit(X, y).order_
    array([1, 0])
    """

    level: float = 0.01
    patience: int = 3
    is_strict: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _require_level(self.level)
        _require_count("patience", self.patience)

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop after `patience` steps in a row that don't pay, or a first one, and take them back."""
        unpaid = self.n_unproven(steps)
        if not unpaid or (len(steps) - unpaid > 1 and unpaid < self.patience and not exhausted):
            return None
        p_value = min(step.p_value for step in steps[-unpaid:])
        what = "the last step is" if unpaid == 1 else f"the last {unpaid} steps are"
        why = "not significant" if p_value > self.level else "not significant or without a lower loss"
        return Stop(f"{what} {why}, p = {p_value:.2g}", len(steps) - 1 - unpaid, is_strict=True)

    def cuts(self, steps: Sequence[Step], exhausted: bool = False) -> dict[str, int]:
        """Name what it keeps ``"significant"``; if no candidate is left, that may be everything."""
        stop = first_stop(self, steps, exhausted)
        if stop is None:
            return {"significant": len(steps) - 1} if exhausted else {}
        return {"significant": stop.keep}

    def tests(self, steps: Sequence[Step]) -> bool:
        """In every step."""
        return True

    def allowance(self, steps: Sequence[Step]) -> float:
        """Up to which p-value the next step may pay: at first `level`, later what fits those that paid."""
        n_paid, p_values = self._paid(steps)
        return self._allowance(p_values, [step.p_value for step in steps[n_paid + 1 :]])

    def n_unproven(self, steps: Sequence[Step]) -> int:
        """Count the last steps that are additions which haven't paid."""
        return len(steps) - 1 - self._paid(steps)[0]

    def _paid(self, steps: Sequence[Step]) -> tuple[int, list[float]]:
        """The last step that paid, and the p-values of all additions that did."""
        last, lowest, p_values = 0, inf, list[float]()
        for k, step in enumerate(steps):
            loss = min(step.loss, step.ahead) if step.n_ahead > 1 else step.loss
            unproven = [each.p_value for each in steps[last + 1 : k]]
            likely = loss < lowest and step.p_value <= self._allowance(p_values, unproven)
            if likely or step.action != "add" or step.p_value <= self._certain:
                last = k
                p_values += [step.p_value] * (step.action == "add")
            lowest = min(lowest, loss)
        return last, p_values

    def _allowance(self, paid: Sequence[float], unproven: Sequence[float]) -> float:
        logs = _logs(paid[-N_REMEMBERED:])
        a = min(MOST_UNIFORM, len(logs) / max(-sum(logs), TINY))
        allowed = max(self.level, float((a / (1 - a)) ** (1 / (1 - a))) if logs else 0.0)
        if not unproven:
            return allowed
        together = float(chdtri(2 * len(unproven) + 2, allowed)) / 2
        return max(self._certain, min(allowed, exp(-together - sum(_logs(unproven)))))

    @property
    def _certain(self) -> float:
        return CERTAIN_SHARE * self.level


@dataclass(frozen=True)
class MaxTime(StopRule):
    """Stop after the step in which the time is up, and keep all that isn't in doubt; the path is partial.

    Parameters
    ----------
    seconds : float
        Time for all steps together. Steps that are restored from a checkpoint take none of it.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> selector = NeuralGreedyPursuit(stop=FirstOf([MaxTime(3600), MaxFeatures(2)]), random_state=0).fit(X, y)
    >>> selector.stop_reason_, selector.partial_
    ('2 of at most 2 features are selected', False)
    """

    seconds: float

    def __post_init__(self) -> None:
        _require_number("seconds", self.seconds, "leave the rule out for no limit", zero=False)

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        """Stop when the steps took `seconds` or longer."""
        if sum(step.seconds for step in steps) < self.seconds:
            return None
        return Stop(f"the time of {self.seconds:g} seconds is up; the path is partial", len(steps) - 1, partial=True)


@dataclass(frozen=True)
class MaxFits(StopRule):
    """Stop after the step in which the fits are used up, and keep all that isn't in doubt; the path is partial.

    Parameters
    ----------
    n : int
        Number of candidate fits in all steps together. The last step is finished, so that it may be exceeded.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> selector = NeuralGreedyPursuit(stop=MaxFits(15), random_state=0).fit(X, y)
    >>> selector.stop_reason_, sum(step.n_fits for step in selector.path_)
    ('the budget of 15 fits is used up; the path is partial', 20)
    """

    n: int

    def __post_init__(self) -> None:
        _require_count("n", self.n)

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        """Stop when the steps needed `n` fits or more."""
        if sum(step.n_fits for step in steps) < self.n:
            return None
        return Stop(
            f"the budget of {counted(self.n, 'fit')} is used up; the path is partial", len(steps) - 1, partial=True
        )


@dataclass(frozen=True)
class FirstOf(StopRule):
    """Stop as soon as one of several rules does; of those that stop together, the one that keeps least.

    Parameters
    ----------
    rules : sequence of StopRule
        At least one.

    Examples
    --------
    >>> FirstOf([MaxFeatures(10), RelativeImprovement(tol=0.06)]).rules
    (MaxFeatures(n=10, level=None), RelativeImprovement(tol=0.06, patience=1))
    """

    rules: Sequence[StopRule]

    def __post_init__(self) -> None:
        rules = tuple(self.rules) if isinstance(self.rules, Iterable) else ()
        if not rules:
            raise ValueError(f"rules={self.rules!r} must be a list of stop rules, such as [MaxFeatures(10)].")
        for rule in rules:
            if not isinstance(rule, StopRule):
                raise ValueError(f"rules holds {rule!r}, which is no StopRule: use one like MaxFeatures(10).")
        object.__setattr__(self, "rules", rules)

    @property
    def least_gain(self) -> float:
        """The largest of the rules'."""
        return max(rule.least_gain for rule in self.rules)

    @property
    def is_strict(self) -> bool:
        """Whether one of the rules is."""
        return any(rule.is_strict for rule in self.rules)

    @property
    def level(self) -> float | None:
        """The smallest of the rules'."""
        return min((rule.level for rule in self.rules if rule.level is not None), default=None)

    @property
    def max_features(self) -> float:
        """The smallest of the rules'."""
        return min(rule.max_features for rule in self.rules)

    @property
    def max_columns(self) -> float:
        """The smallest of the rules'."""
        return min(rule.max_columns for rule in self.rules)

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Ask every rule, and follow the one that keeps least."""
        answers = [rule.check(steps, exhausted) for rule in self.rules]
        return min((stop for stop in answers if stop is not None), key=lambda stop: stop.keep, default=None)

    def cuts(self, steps: Sequence[Step], exhausted: bool = False) -> dict[str, int]:
        """Collect those of all rules."""
        return {name: keep for rule in self.rules for name, keep in rule.cuts(steps, exhausted).items()}

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        """Say whether the budget of any rule is used up."""
        answers = [rule.check_budget(steps) for rule in self.rules]
        return next((stop for stop in answers if stop is not None), None)

    def tests(self, steps: Sequence[Step]) -> bool:
        """Whether any of the rules asks for p-values."""
        return any(rule.tests(steps) for rule in self.rules)

    def n_unproven(self, steps: Sequence[Step]) -> int:
        """Count the last steps that any of the rules doubts."""
        return max(rule.n_unproven(steps) for rule in self.rules)


@dataclass(frozen=True)
class Cut(StopRule):
    """Go on until each of several rules has stopped, and keep what the first of them says.

    So one path answers several questions, and can be cut at either answer.

    Parameters
    ----------
    rules : sequence of StopRule
        At least one; the first one chooses the cut.

    Examples
    --------
    Which columns are significant, and, for the record, which ones predict best:

    >>> Cut([Significance(), Plateau()]).rules
    (Significance(level=0.01, patience=3), Plateau(patience=3, standard_errors=1.0))
    """

    rules: Sequence[StopRule]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(FirstOf(self.rules).rules))

    @property
    def least_gain(self) -> float:
        """The first rule's."""
        return self.rules[0].least_gain

    @property
    def is_strict(self) -> bool:
        """Whether one of the rules is: all cuts are of one path."""
        return FirstOf(self.rules).is_strict

    @property
    def max_features(self) -> float:
        """The first rule's."""
        return self.rules[0].max_features

    @property
    def max_columns(self) -> float:
        """The first rule's."""
        return self.rules[0].max_columns

    @property
    def level(self) -> float | None:
        """The smallest of the rules'."""
        return FirstOf(self.rules).level

    def check(self, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
        """Stop when all rules have stopped, and keep what the first one says."""
        answers = [first_stop(rule, steps, exhausted) for rule in self.rules]
        return answers[0] if None not in answers else None

    def cuts(self, steps: Sequence[Step], exhausted: bool = False) -> dict[str, int]:
        """Collect those of all rules."""
        return FirstOf(self.rules).cuts(steps, exhausted)

    def tests(self, steps: Sequence[Step]) -> bool:
        """Whether a rule that hasn't stopped asks for p-values."""
        return any(rule.tests(steps) and first_stop(rule, steps) is None for rule in self.rules)

    def check_budget(self, steps: Sequence[Step]) -> Stop | None:
        """Say whether the budget of any rule is used up."""
        return FirstOf(self.rules).check_budget(steps)

    def n_unproven(self, steps: Sequence[Step]) -> int:
        """Count the last steps that the first rule doubts or doesn't keep."""
        stop = first_stop(self.rules[0], steps)
        return self.rules[0].n_unproven(steps) if stop is None else len(steps) - 1 - stop.keep


def first_stop(rule: StopRule, steps: Sequence[Step], exhausted: bool = False) -> Stop | None:
    """What a rule said when it stopped for the first time, if it did."""
    for number in range(1, len(steps) + 1):
        if stop := rule.check(steps[:number], exhausted and number == len(steps)):
            return stop
    return None


def _logs(p_values: Sequence[float]) -> list[float]:
    return [log(max(each, TINY)) for each in p_values]


def _require_level(level: Any) -> None:
    _require_number("level", level, "use 0.01 for one wrong step in a hundred", zero=False)
    if level >= 1:
        raise ValueError(f"level={level!r} must be a probability below 1: use 0.01.")


def _stop_at(counts: list[int], limit: int, what: str) -> Stop | None:
    if counts[-1] < limit:
        return None
    # The start cannot be taken back, even where the fixed columns alone exceed the limit.
    keep = max((k for k, count in enumerate(counts) if count <= limit), default=0)
    verb = "is" if counts[keep] == 1 else "are"
    return Stop(f"{counts[keep]} of at most {counted(limit, what)} {verb} selected", keep)


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1.")


def _require_number(name: str, value: Any, way_out: str, zero: bool = True) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    if not is_number or value < 0 or (value == 0 and not zero):
        at_least = "0 or more" if zero else "more than 0"
        raise ValueError(f"{name}={value!r} must be a finite number, {at_least}: {way_out}.")
