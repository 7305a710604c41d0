"""The steps of a pursuit, and what they make up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from ngp._formatting import counted, outcomes, standing, step_in_words, visible, with_error
from ngp._types import FloatArray, IntArray
from ngp.predictors.base import Losses

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "Path",
    "Score",
    "Step",
    "additions",
    "chosen",
    "columns_of",
    "finished",
    "scored_step",
    "standard_error",
    "standard_errors",
    "suspect",
    "taken_back",
]

# What a single feature doesn't explain by itself unless it tells the target: R², or accuracy where fewer rows than
# that share are of the most frequent class.
SUSPECT_R2, SUSPECT_ACCURACY, SUSPECT_MAJORITY = 0.99, 0.995, 0.9


@dataclass(frozen=True)
class Step:
    """One step of a pursuit. Step 0 is the start: the constant prediction, or the fixed columns.

    Attributes
    ----------
    action : {"start", "add", "drop", "swap"}
        A swap adds a group and drops another.
    group : int or None
        The group that was added.
    name : str
        Its name; of a drop, the name of what was dropped.
    columns : int array
        The columns that it added; of a drop, those that were dropped.
    before : float
        Validation loss that the step started from: the `loss` of the last step that wasn't taken back.
    loss : float
        Validation loss after the step. A predictor with a ridge of its own choice is tuned to the selection before and
        after; the candidates' `losses` share one ridge, so that the winner's may be higher than this.
    standard_error : float
        Of that loss, over the parts of the validation.
    gain : float
        By which share the step lowers the loss it started from, (before - loss) / before; negative if it raises it.
    paired : float
        Validation loss of the selection before the step, under the conditions of the step: a predictor with random
        parts may draw them anew in each step, so that it can differ from `before`. The paper's relative improvement,
        which η (`tol`) is held against, is (paired - loss) / loss, and the candidates' `losses` are compared with it.
        Of a swap, it is the loss between dropping and adding.
    score : float
        What the predictor of this loss does on rows that it wasn't trained on, the parts of the validation: of
        classes the accuracy, of numbers R², the share of the constant prediction's loss that it takes away; NaN if the
        predictor can't say.
    score_error : float
        Standard error of the score over the parts of the validation.
    runner_up : int or None
        The group that came second; of an exchange of one for one, what was dropped. None where there was none.
    runner_up_loss : float
        The loss it would have led to; NaN where there was none.
    seconds : float
        Duration of the step.
    n_fits : int
        Number of selections that were scored: the candidates, without those that screening left out, once for each
        stage of the race; and what was tried to find pairs, to drop or to swap. What tunes the ridge or tests
        significance isn't counted.
    n_selected, n_columns : int
        Features (groups, fixed columns) and columns selected after the step.
    fold_losses, fold_weights : float arrays
        Loss in every part of the validation, and the parts' shares.
    losses : float array
        Loss of every group as a candidate, to be added or dropped; NaN where not tried.
    layers : int array
        How many random layers each of these losses comes from: the leaders of a race have more (see `SSFN`). Of an
        `MLP`, how many short trainings take as long.
    ridge : float
        Ridge penalty of the predictor, chosen for all candidates of the step (see `SSFN`); NaN if there is none.
    predictor : str
        What predicted: of several predictors the one that won.
    kept : bool
        Whether the step is part of the final selection: neither taken back nor undone by a later one.
    p_value : float
        Probability that the best of as many useless candidates looks as good (see `ngp.greedy.significance`), of a
        pair for both its steps; NaN if not computed.
    dropped : int or None
        The group that was dropped.
    ahead : float
        Loss of a pair, or of an exchange of one for several, which begins with the added group; NaN where there is
        none.
    n_ahead : int
        How many groups it adds.
    """

    action: Literal["start", "add", "drop", "swap"]
    group: int | None
    name: str
    columns: IntArray
    before: float
    loss: float
    standard_error: float
    gain: float
    paired: float
    n_selected: int
    n_columns: int
    fold_losses: FloatArray = field(repr=False)
    fold_weights: FloatArray = field(repr=False)
    losses: FloatArray = field(repr=False)
    predictor: str
    layers: IntArray = field(default_factory=lambda: np.zeros(0, np.intp), repr=False)
    ridge: float = nan
    runner_up: int | None = None
    runner_up_loss: float = nan
    seconds: float = 0.0
    n_fits: int = 0
    kept: bool = True
    p_value: float = nan
    dropped: int | None = None
    ahead: float = nan
    n_ahead: int = 1
    score: float = nan
    score_error: float = nan

    @property
    def drop(self) -> float:
        """The loss that the added group takes away; in an exchange, from what was left without the other one."""
        return (self.paired if self.action == "swap" else self.before) - self.loss


def scored_step(scored: Losses, position: int, *, before: float, score: Score, predictor: str, **others: Any) -> Step:
    """Make the step that leads to one of several selections."""
    parts, weights = scored.parts[position].copy(), scored.weights  # a view would keep the parts of all candidates
    loss = float(scored.means[position])
    return Step(
        before=before,
        loss=loss,
        standard_error=error_of(scored, position),
        gain=(before - loss) / before if before != 0 else nan,
        score=score.value,
        score_error=score.error,
        fold_losses=parts,
        fold_weights=weights,
        predictor=predictor if scored.predictors is None else str(scored.predictors[position]),
        **others,
    )


MOST_LINES = 20  # of a path's repr


class Score(NamedTuple):
    """Accuracy or R² on rows that a predictor wasn't trained on, and its standard error."""

    value: float = nan
    error: float = nan

    @classmethod
    def of(cls, errors: Losses, worst: float) -> Score:
        """From shares of mistakes, of which the worst is 1, or squared errors, with that of the constant prediction."""
        if worst == 0:
            return cls()
        return cls(1 - float(errors.means[0]) / worst, error_of(errors, 0) / worst)


@dataclass(frozen=True, eq=False, repr=False)
class Path(Sequence[Step]):
    """All steps of a pursuit, the start first: a sequence that says as well why it ended.

    Attributes
    ----------
    steps : tuple of Step
        The same steps.
    reason : str
        Why the pursuit ended.
    partial : bool
        Whether it was cut short, and could have gone on.
    cuts : dict
        Where the rule says that the path may be cut: names, and numbers of the last steps before the cut.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> path = NeuralGreedyPursuit(random_state=0).fit(X, y).path_
    >>> path[1].name, len(path)
    ('x1', 6)
    >>> path.to_frame().query("kept")["name"].tolist()
    ['', 'x1', 'x0']
    """

    steps: tuple[Step, ...]
    reason: str
    partial: bool = False
    cuts: Mapping[str, int] = field(default_factory=dict)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        """Number, action, loss and outcome of each step, a line each; of very many, the first and the last ones."""
        rows = [
            (str(number), step_in_words(step, self.steps, visible), with_error(step.loss, step.standard_error), outcome)
            for number, (step, outcome) in enumerate(zip(self.steps, outcomes(self.steps), strict=True))
        ]
        if len(rows) > MOST_LINES:
            rows[MOST_LINES // 2 : -MOST_LINES // 2] = [("…", "", "", "")]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{number:>{widths[0]}}  {what:<{widths[1]}}  {loss:>{widths[2]}}  {outcome}".rstrip()
            for number, what, loss, outcome in rows
        ]
        return "\n".join([f"Path of {counted(len(self.steps) - 1, 'step')} (loss ± standard error):", *lines])

    def to_frame(self) -> DataFrame:
        """Make a pandas data frame with a row per step, without the fields of `Step` that are arrays.

        Returns
        -------
        pandas DataFrame
            Its columns are the fields of `Step`, its index is the number of the step.
        """
        try:
            from pandas import DataFrame, RangeIndex
        except ImportError as error:
            raise ImportError("path_.to_frame() needs pandas: install it with pip install pandas.") from error
        names = [each.name for each in fields(Step) if "Array" not in str(each.type)]
        index = RangeIndex(len(self.steps), name="step")
        table = DataFrame([{name: getattr(step, name) for name in names} for step in self.steps], index, names)
        return table.astype(dict.fromkeys(["group", "runner_up", "dropped"], "Int64"))

    def cut(self, k: int | str) -> Path:
        """The same steps, those kept that led to `k` features, or to one of the `cuts`.

        Of several selections of `k` features, it is that of the path as it is, or else the one with the lowest loss.
        """
        own = max(number for number, step in enumerate(self.steps) if step.kept)
        if isinstance(k, str):
            if k not in self.cuts:
                ways_out = " or ".join([*map(repr, self.cuts), "a number of features"])
                raise ValueError(f"k={k!r} is no cut that the stop rule of this path knows: give {ways_out}.")
            end = self.cuts[k]
        else:
            found = [number for number, step in enumerate(self.steps) if step.n_selected == k]
            if not found:
                sizes = [step.n_selected for step in self.steps]
                raise ValueError(
                    f"k={k!r} is no number of features on this path: give one from {min(sizes)} to {max(sizes)}, or "
                    "fit again with n_features_to_select."
                )
            end = min(found, key=lambda number: (number != own, self.steps[number].loss))
        stood = set(standing(self.steps[: end + 1]))
        steps = [replace(step, kept=number in stood) for number, step in enumerate(self.steps)]
        reason = f"the path was cut at {counted(self.steps[end].n_selected, 'feature')}"
        return finished(steps, reason, self.partial, self.cuts)

    def ranks(self, n_groups: int) -> IntArray:
        """Rank of each group: 1, 2, … for the selected ones in their order, then the others by their loss.

        That is the loss in the step after the selection or, for what was no candidate there, in the last one before.
        What never was a candidate comes last.
        """
        after = 1 + max(number for number, step in enumerate(self.steps) if step.kept)
        order = [step.group for step in self.kept if step.group is not None]
        ranks = np.zeros(n_groups, dtype=np.intp)
        ranks[order] = np.arange(1, 1 + len(order))
        for step in reversed(self.steps[1 : after + 1]):
            if step.action in ("add", "swap"):
                others = np.flatnonzero((ranks == 0) & np.isfinite(step.losses))
                by_loss = others[np.argsort(step.losses[others], kind="stable")]
                ranks[by_loss] = ranks.max() + np.arange(1, 1 + len(others))
        ranks[ranks == 0] = ranks.max() + 1
        return ranks

    @property
    def kept(self) -> tuple[Step, ...]:
        """The steps that added what is selected."""
        return tuple(additions(self.steps))

    @property
    def columns(self) -> IntArray:
        """The selected columns, fixed ones first, then in the order of their selection."""
        return np.concatenate([self.steps[0].columns, *(step.columns for step in self.kept)])


def additions(steps: Sequence[Step]) -> list[Step]:
    """Those of all steps of a finished path that added what is selected in the end."""
    return [step for step in steps[1:] if step.kept and step.group is not None]


def chosen(steps: Sequence[Step]) -> dict[int | None, IntArray]:
    """The groups that are selected after some steps, in their order, with the columns that each added.

    None stands for the fixed columns.
    """
    found: dict[int | None, IntArray] = {None: steps[0].columns}
    for step in steps[1:]:
        if step.dropped is not None:
            del found[step.dropped]
        if step.group is not None:
            found[step.group] = step.columns
    return found


def columns_of(selected: Mapping[int | None, IntArray]) -> IntArray:
    """All columns that are selected."""
    return np.concatenate(list(selected.values()))


def taken_back(steps: Sequence[Step], keep: int) -> list[Step]:
    """The same steps, of those still standing only the start and the next `keep` kept; exchanges are never undone."""
    standing = [number for number, step in enumerate(steps) if step.kept]
    actions = [steps[number].action for number in standing]
    for place in range(len(standing)):
        if actions[place] == "swap":
            end = place + steps[standing[place]].n_ahead  # of one for several
            while actions[end : end + 1] == ["drop"]:
                end += 1
            keep = max(keep, end - 1)
    return [replace(step, kept=step.kept and number <= standing[keep]) for number, step in enumerate(steps)]


def suspect(steps: Sequence[Step], task: str) -> str:
    """A caution if the first feature explains nearly everything, as one does that is known only after the target."""
    if len(steps) < 2 or len(steps[0].columns):
        return ""
    constant, first = steps[:2]
    if task == "regression":
        explains, what = first.score >= SUSPECT_R2, "R²"
    else:
        explains, what = first.score >= SUSPECT_ACCURACY and constant.score < SUSPECT_MAJORITY, "accuracy"
    if not explains:
        return ""
    return (
        f"{visible(first.name)} explains nearly everything by itself ({what} {first.score:.3f}): "
        "is it known before the target is? If not, leave it out."
    )


def finished(steps: Sequence[Step], reason: str, partial: bool = False, cuts: Mapping[str, int] | None = None) -> Path:
    """A path that ends with some steps; those that later ones have undone are marked as not kept."""
    last = {step.group: number for number, step in enumerate(steps) if step.kept}
    selected = chosen([step for step in steps if step.kept])
    marked = [
        replace(
            step, kept=step.kept and (step.group is None or (step.group in selected and last[step.group] == number))
        )
        for number, step in enumerate(steps)
    ]
    return Path(tuple(marked), reason, partial, dict(cuts or {}))


def error_of(losses: Losses, position: int) -> float:
    """Standard error of one of several losses; NaN if the validation has a single part."""
    several = np.count_nonzero(losses.weights) > 1
    return standard_error(losses.parts[position], losses.weights) if several else nan


def standard_error(fold_losses: FloatArray, fold_weights: FloatArray) -> float:
    r"""Return the standard error of the weighted mean of the folds' losses.

    It is :math:`\sqrt{\frac{n}{n-1} \sum_f w_f^2 (l_f - \bar l)^2}` with :math:`\bar l = \sum_f w_f l_f`,
    over the n folds of positive weight: for equal weights the usual ``std(ddof=1) / sqrt(n)``.
    """
    n = int(np.count_nonzero(fold_weights))
    if n < 2:
        raise ValueError(
            f"standard_errors needs at least 2 parts of the validation, but there is {n}: "
            "use more folds, such as cv=5, or Plateau(standard_errors=0)."
        )
    return float(standard_errors(fold_losses[None], fold_weights)[0])


def standard_errors(losses: FloatArray, weights: FloatArray) -> FloatArray:
    """The same of several means, whose parts (n_means, n_folds) have the same weights; two or more of them count."""
    n = int(np.count_nonzero(weights))
    deviations = weights * (losses - (losses @ weights)[:, None])
    errors: FloatArray = np.sqrt(n / (n - 1) * (deviations**2).sum(axis=1))
    return errors
