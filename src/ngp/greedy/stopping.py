"""Rules that say when a pursuit has selected enough.

A rule sees the steps made so far and nothing else. Step 0 is the start (the constant prediction, or the fixed
columns), so that a path of k additions has k + 1 steps, and a rule can stop before the first feature. Losses
are taken to be non-negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

from ngp._formatting import counted
from ngp.greedy.stop_rule import StepLike, Stop, StopRule
from ngp.greedy.uncertainty import standard_error

__all__ = [
    "BeyondChance",
    "FirstOf",
    "MaxColumns",
    "MaxFeatures",
    "MaxFits",
    "MaxTime",
    "Plateau",
    "RelativeImprovement",
    "StepLike",
    "Stop",
    "StopRule",
]

# A gain that comes by chance so often won't pay, whatever follows.
CLEARLY_CHANCE = 0.2
NO_CANDIDATE_LEFT = "no candidate is left"
LOSS_IS_ZERO = "the loss is zero and cannot improve"


@dataclass(frozen=True)
class MaxFeatures:
    """Stop at `n` features; a step that leads beyond is taken back.

    Parameters
    ----------
    n : int
        Number of features (groups of columns), at least 1.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=MaxFeatures(2), random_state=0).fit(X, y).order_
    array([1, 0])
    """

    n: int

    def __post_init__(self) -> None:
        _require_count("n", self.n)

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop when `n` features are selected."""
        return _stop_at([step.n_selected for step in steps], self.n, "features")


@dataclass(frozen=True)
class MaxColumns:
    """Stop at `n` columns; a group that leads beyond is taken back.

    Parameters
    ----------
    n : int
        Number of columns, at least 1.

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

    def __post_init__(self) -> None:
        _require_count("n", self.n)

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop when `n` columns are selected or the last group went beyond."""
        return _stop_at([step.n_columns for step in steps], self.n, "columns")


@dataclass(frozen=True)
class RelativeImprovement:
    r"""Stop when a further feature improves the loss too little.

    A step pays when its loss :math:`L_k` satisfies :math:`(L - L_k) / L_k \ge` `tol`, where :math:`L` is the loss
    before it (of the last selection that paid, carried along over steps that did not: small gains may add up to one
    that pays). After `patience` successive steps that did not pay, the pursuit stops and they are taken back; where
    looking ahead saw that steps to come will pay, as many as it saw may be made first. With ``tol=0`` any improvement
    pays, but an equal loss does not. A loss of zero stops at once, since nothing can improve on it. To drop or to
    exchange a feature needn't pay.

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

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop after `patience` steps in a row that did not pay, and keep those before."""
        if steps[0].loss == 0:
            return Stop(LOSS_IS_ZERO, 0)
        paid, ratio = 0, 1.0  # how many times larger the loss was at the last step that paid
        allowed = self.patience
        for k, step in enumerate(steps[1:], 1):
            if step.loss == 0:
                return Stop(LOSS_IS_ZERO, k)
            if paid == k - 1 and step.n_ahead > 1 and (step.ahead == 0 or self._pays(step.before / step.ahead)):
                allowed = max(allowed, step.n_ahead)
            ratio *= step.before / step.loss
            if self._pays(ratio) or step.action == "swap" or (step.action == "drop" and paid == k - 1):
                paid, ratio, allowed = k, 1.0, self.patience
        unpaid = len(steps) - 1 - paid
        if unpaid >= allowed or (exhausted and unpaid > 0):
            improvement_asked = f"relative improvement of at least {self.tol:g}" if self.tol else "improvement"
            return Stop(f"no {improvement_asked} of the loss in {counted(unpaid, 'step')}", paid)
        return None

    def _pays(self, ratio: float) -> bool:
        return ratio > 1 and ratio - 1 >= self.tol


@dataclass(frozen=True)
class Plateau:
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

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
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
        kept = f"the smallest selection within {self.standard_errors:g} standard errors of the lowest loss"
        return Stop(f"{why}; kept is {kept}", keep)


@dataclass(frozen=True)
class BeyondChance:
    """Stop when steps gain no more than the best of so many candidates may gain by chance.

    A step pays when the probability of its gain, by chance, is `level` at most. One that doesn't, but isn't clearly
    chance either, may be followed by others: small gains may add up to one that pays. They pay if the gain of all of
    them together does, else they are taken back.

    Parameters
    ----------
    level : float
        Largest probability of a gain by chance that still pays.
    patience : int
        Number of successive steps allowed to bring nothing.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> NeuralGreedyPursuit(stop=BeyondChance(level=0.001), random_state=0).fit(X, y).order_
    array([1, 0])
    """

    level: float = 0.01
    patience: int = 3

    def __post_init__(self) -> None:
        _require_number("level", self.level, "use 0.01 for one wrong step in a hundred", zero=False)
        if self.level >= 1:
            raise ValueError(f"level={self.level!r} is no probability that could be too high: give less than 1.")
        _require_count("patience", self.patience)

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop when it is clear that the last steps may be chance, or they are too many; and take them back."""
        unpaid, last = self.n_unpaid(steps), steps[-1]
        if not unpaid or (unpaid < self.patience and last.chance <= CLEARLY_CHANCE and not exhausted):
            return None
        what = "the last step" if unpaid == 1 else f"the last {unpaid} steps together"
        return Stop(f"a gain as in {what} comes by chance with probability {last.chance:.2g}", len(steps) - 1 - unpaid)

    def n_unpaid(self, steps: Sequence[StepLike]) -> int:
        """Count the last steps that are additions which haven't paid.

        Parameters
        ----------
        steps : sequence of steps
            All steps so far; ``steps[0]`` is the start.

        Returns
        -------
        int
            How many they are.
        """
        paid = (k for k, step in enumerate(reversed(steps)) if step.action != "add" or step.chance <= self.level)
        return next(paid, len(steps))


@dataclass(frozen=True)
class MaxTime:
    """Stop after the step in which the time is up, and keep all that isn't in doubt; the path is partial.

    Parameters
    ----------
    seconds : float
        Time for all steps together.

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

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop when the steps took `seconds` or longer."""
        if exhausted or sum(step.seconds for step in steps) < self.seconds:
            return None
        return Stop(f"the time of {self.seconds:g} seconds is up; the path is partial", len(steps) - 1, partial=True)


@dataclass(frozen=True)
class MaxFits:
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
    ('the budget of 15 fits is used up; the path is partial', 19)
    """

    n: int

    def __post_init__(self) -> None:
        _require_count("n", self.n)

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Stop when the steps needed `n` fits or more."""
        if exhausted or sum(step.n_fits for step in steps) < self.n:
            return None
        return Stop(
            f"the budget of {counted(self.n, 'fit')} is used up; the path is partial", len(steps) - 1, partial=True
        )


@dataclass(frozen=True)
class FirstOf:
    """Stop as soon as one of several rules does; of those that stop together, the one that keeps least.

    Parameters
    ----------
    rules : sequence of stop rules
        At least one.

    Examples
    --------
    >>> FirstOf([MaxFeatures(10), RelativeImprovement(tol=0.06)]).rules
    (MaxFeatures(n=10), RelativeImprovement(tol=0.06, patience=1))
    """

    rules: Sequence[StopRule]

    def __post_init__(self) -> None:
        rules = tuple(self.rules) if isinstance(self.rules, Iterable) else ()
        if not rules:
            raise ValueError(f"rules={self.rules!r} must be a list of stop rules, such as [MaxFeatures(10)].")
        for rule in rules:
            if isinstance(rule, type) or not isinstance(rule, StopRule):
                raise ValueError(f"rules has {rule!r}, which is no stop rule: use one like MaxFeatures(10).")
        object.__setattr__(self, "rules", rules)

    def check(self, steps: Sequence[StepLike], exhausted: bool = False) -> Stop | None:
        """Ask every rule, and follow the one that keeps least."""
        answers = [rule.check(steps, exhausted) for rule in self.rules]
        return min((stop for stop in answers if stop is not None), key=lambda stop: stop.keep, default=None)


def _stop_at(counts: list[int], limit: int, what: str) -> Stop | None:
    if counts[-1] < limit:
        return None
    # The start cannot be taken back, even where the fixed columns alone exceed the limit.
    keep = max((k for k, count in enumerate(counts) if count <= limit), default=0)
    return Stop(f"{counts[keep]} of at most {limit} {what} are selected", keep)


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1.")


def _require_number(name: str, value: Any, way_out: str, zero: bool = True) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    if not is_number or value < 0 or (value == 0 and not zero):
        at_least = "0 or more" if zero else "more than 0"
        raise ValueError(f"{name}={value!r} must be a finite number, {at_least}: {way_out}.")
