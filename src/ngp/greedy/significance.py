"""How much the best of all candidates would gain if none of them had anything to say beyond the selection.

The best of many candidates always gains something. To see how much of it is chance, all columns that aren't selected
are drawn anew, given those that are: what the selected ones and their squares say about a column stays, and the rest of
all columns together goes to other rows. Such columns are as correlated with the selection and with each other as the
real ones, but know nothing of the targets that the selection doesn't know. Plain shuffled columns would know less: they
lose to irrelevant ones that are correlated with the selection, wherever the predictor hasn't learnt all of it.

This takes rows for exchangeable, and dependence between columns for linear or quadratic. Where columns depend on each
other in another way, a redrawn one knows a little less of the selection than the real one, and chance is taken for
rarer than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, isnan, log, log1p, pi, sqrt

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.data.sources import ColumnSource, in_memory, read_columns
from ngp.greedy.candidates import Search
from ngp.greedy.path import Step, chosen, columns_of
from ngp.greedy.stopping import StopRule
from ngp.predictors.base import ColumnSets

__all__ = ["RedrawnColumns", "SignificanceTest", "bytes_kept", "is_clear", "share_taken", "tail_probability"]

# After so many draws, so many deviations are clear: few draws say little about how large a deviation is.
CLEAR_DEVIATIONS = {3: 25.0, 4: 13.0, 5: 10.0}
ALWAYS_CLEAR = 8.0
FEWEST_DRAWS = min(CLEAR_DEVIATIONS)
# From so many on, what is so many standard errors away from the level is clear, too; there are never more than those.
DRAWS_TO_TELL = 6
CLEAR_ERRORS = 2.0
MOST_DRAWS = 40
# Draws of a selected group, to see whether it still pays: each is one training.
OWN_DRAWS = 20
# Columns that take no more bytes are drawn once and kept, others whenever they are read.
KEPT_BYTES = 2**28
BLOCK_BYTES = 2**20  # that are drawn at once
# Rows for each selected column that it takes to reckon with its square, and deviations beyond which it isn't squared:
# a few far rows would make up all of it.
ROWS_PER_SQUARE = 8
MOST_SQUARED = 3.0
# Variance of a combination of selected columns, relative to the largest, that is taken for rounding.
LEAST_VARIANCE = 1e-10
EULER = 0.5772156649015329
MOST_EXPONENT = 700.0  # of a double
STREAM = 0x436861  # of random numbers, so that no other part of a fit draws the same ones


class RedrawnColumns(ColumnSource):
    """X with columns drawn anew, given the selected ones: all others, or some of them."""

    def __init__(
        self, problem: Problem, selected: IntArray, key: tuple[int, int, int], drawn: IntArray | None = None
    ) -> None:
        self.X, self.selected, self.drawn = problem.X, selected, drawn
        self.shape, self.dtype = (problem.n_samples, problem.n_columns), np.dtype(np.float64)
        self.names = getattr(problem.X, "names", None)
        weights = np.where(problem.trains, problem.weights, 0.0)
        self._shares = weights / weights.sum()
        n_rows = int(np.count_nonzero(weights))
        self._basis = self._orthonormal(self._with_squares(problem.columns(selected), n_rows))
        self._rows = self._order(problem, key)
        # Regressions leave less than is there: as much as their parameters took.
        self._factor = sqrt(max(1, n_rows - 1) / max(1, n_rows - 1 - len(self._basis)))

    @staticmethod
    def _order(problem: Problem, key: tuple[int, int, int]) -> IntArray:
        """Row from which the rest of each row is taken; rows that train and rows that only judge don't mix."""
        seed, step, draw = key
        names = np.array([seed, STREAM], dtype=np.uint64)
        generator = np.random.Generator(np.random.Philox(key=names, counter=[0, step, draw, 0]))
        source, trains = np.arange(problem.n_samples), problem.trains[problem.useful]
        for rows in (problem.useful[trains], problem.useful[~trains]):
            source[rows] = generator.permutation(rows)
        return source

    def _means(self, columns: FloatArray) -> FloatArray:
        means: FloatArray = (columns * self._shares).sum(axis=1, keepdims=True)
        return means

    def _with_squares(self, columns: FloatArray, n_rows: int) -> FloatArray:
        """Columns and their squares, as long as there are enough rows to tell what they say."""
        if ROWS_PER_SQUARE * len(columns) > n_rows:
            return columns
        centred = columns - self._means(columns)
        deviations = np.sqrt((centred**2 * self._shares).sum(axis=1, keepdims=True))
        scaled = np.divide(centred, deviations, out=np.zeros_like(centred), where=deviations > 0)
        return np.concatenate([columns, np.clip(scaled, -MOST_SQUARED, MOST_SQUARED) ** 2])

    def _orthonormal(self, columns: FloatArray) -> FloatArray:
        """Combinations of columns with mean 0, variance 1 and no correlation; what repeats others is left out."""
        columns = columns - self._means(columns)
        values, vectors = np.linalg.eigh((columns * self._shares) @ columns.T)
        large = values > LEAST_VARIANCE * values.max(initial=0)
        basis: FloatArray = (vectors[:, large] / np.sqrt(values[large])).T @ columns
        return basis

    def read(self, columns: IntArray, rows: slice = slice(None)) -> AnyArray:
        """Read columns, as rows of an array (see `ColumnSource.read`)."""
        redrawn = np.array(read_columns(self.X, columns), dtype=np.float64, order="C")
        changes = ~np.isin(columns, self.selected) if self.drawn is None else np.isin(columns, self.drawn)
        new = np.flatnonzero(changes)
        step = max(1, BLOCK_BYTES // (8 * self.shape[0]))
        for start in range(0, len(new), step):
            block = new[start : start + step]
            redrawn[block] = self._drawn(redrawn[block])
        return redrawn[:, rows]

    def _drawn(self, real: FloatArray) -> FloatArray:
        """Other columns in place of real ones."""
        means = self._means(real)
        real = real - means
        known = np.zeros_like(real)
        for direction in self._basis:  # one by one: bits of a matrix product depend on what is read together
            known += (real * (self._shares * direction)).sum(axis=1, keepdims=True) * direction
        drawn: FloatArray = known + self._factor * (real - known)[:, self._rows] + means
        return drawn


def bytes_kept(problem: Problem) -> int:
    """Memory for the columns of a draw; none where there are so many that they are drawn whenever they are read."""
    n_bytes = 8 * problem.n_samples * problem.n_columns
    return n_bytes if n_bytes <= KEPT_BYTES else 0


def share_taken(before: float, loss: float) -> float:
    """Share of a loss that was taken away; nothing can be taken from none."""
    return 1 - loss / before if before > 0 else 0.0


class SignificanceTest:
    """p-values of the steps of a pursuit."""

    def __init__(self, search: Search, rule: StopRule, seed: int) -> None:
        assert rule.level is not None
        self.search, self.rule, self.level, self.seed = search, rule, rule.level, seed
        self._draws: dict[int, Draws] = {}  # the last one, by the number of its first step

    def p_value(self, steps: Sequence[Step], step: Step) -> float:
        """Probability that the best candidate gains as much by chance as the one that a new step adds.

        It is that of the step together with those directly before it that aren't significant.
        """
        return self._draws_of(steps, len(steps), len(steps)).see(step)

    def null_gains(self, steps: Sequence[Step]) -> FloatArray:
        """What the best of all candidates gained by chance when the last addition was judged."""
        number = max(number for number, step in enumerate(steps) if step.action == "add")
        return self._draws_of(steps, number, number + 1).first_gains

    def _draws_of(self, steps: Sequence[Step], number: int, end: int) -> Draws:
        """What the addition with a number is compared with, after the draws have seen the steps up to the end."""
        first = number - self.rule.n_unproven(steps[:number])
        if first not in self._draws:
            selected = chosen([step for step in steps[:first] if step.kept])
            self._draws = {first: Draws(self, columns_of(selected), len(selected))}
        draws, n_fits = self._draws[first], self.search.tally.n_fits
        for step in steps[first + draws.n_steps : end]:  # those of an earlier process are seen again
            draws.see(step)
        self.search.tally.n_fits = n_fits  # which their steps have counted
        return draws

    def p_value_of_selected(self, standing: Sequence[Step], group: int, without: float, together: float) -> float:
        """Probability that a selected group lowers the loss as much by chance, if it knew no more than the rest.

        The columns of the group alone are drawn anew, given the rest.
        """
        problem, selected = self.search.problem, chosen(standing)
        own, step, rest = selected.pop(group), len(selected), columns_of(selected)
        selections = ColumnSets.of([np.sort(np.concatenate([rest, own]))])
        gains = []
        for draw in range(OWN_DRAWS):
            redrawn = RedrawnColumns(problem, rest, (self.seed, step, MOST_DRAWS + draw), own)
            scorer = self.search.bind(problem.with_changed(own, redrawn)).at(step)
            gains.append(share_taken(without, float(scorer.add_losses(rest[:0], selections).means[0])))
        self.search.tally.n_fits += OWN_DRAWS
        return tail_probability(np.array(gains), share_taken(without, together))[1]


@dataclass
class _Drawn:
    """What was selected and gained on columns that were drawn anew."""

    columns: IntArray
    before: float = 0.0  # the loss before the first step
    gains: list[float] = field(default_factory=list)  # of the best steps up to each


class Draws:
    """Steps that come one after another, and how much as many steps gain by chance.

    Several steps gain what the best of them, together with those before it, gain: a further one that gains nothing
    changes nothing, though it may gain less by chance.
    """

    def __init__(self, test: SignificanceTest, selected: IntArray, step: int) -> None:
        self.test, self.selected, self.step = test, selected, step
        self._before = self._gain = 0.0
        self._aheads: list[int] = []
        self._drawn: list[_Drawn] = []

    @property
    def n_steps(self) -> int:
        """How many steps it has seen."""
        return len(self._aheads)

    @property
    def first_gains(self) -> FloatArray:
        """What the first step gained by chance, in each draw."""
        return np.array([drawn.gains[0] for drawn in self._drawn])

    def see(self, step: Step) -> float:
        """See one more step, and say how probable the gain of all steps is by chance.

        Chance means that no candidate knows anything that the selection before the first step doesn't know. As many
        draws are made as it takes to be clear about it.
        """
        loss = step.loss if isnan(step.ahead) else step.ahead
        if self._aheads:
            self._gain = max(self._gain, share_taken(self._before, loss))
        else:
            self._before, self._gain = step.before, share_taken(step.before, loss)
        self._aheads.append(step.n_ahead)
        for drawn in range(len(self._drawn)):
            self._go_on(drawn)
        while True:
            n_draws = len(self._drawn)
            if n_draws >= FEWEST_DRAWS:
                deviations, probability = tail_probability(
                    np.array([each.gains[-1] for each in self._drawn]), self._gain
                )
                if n_draws >= MOST_DRAWS or is_clear(deviations, n_draws, self.test.level):
                    return probability
            self._drawn.append(_Drawn(self.selected))
            self._go_on(n_draws)

    def _go_on(self, number: int) -> None:
        """Make as many steps of a draw as there are steps."""
        # Nothing else is kept of a draw: its columns may be large, and are the same whenever they are drawn.
        problem, drawn = self.test.search.problem, self._drawn[number]
        redrawn = RedrawnColumns(problem, self.selected, (self.test.seed, self.step, number))
        X = in_memory(redrawn) if bytes_kept(problem) else redrawn  # the same numbers
        search = self.test.search.on(replace(problem, X=X))
        for made in range(len(drawn.gains), len(self._aheads)):
            found = search.best(drawn.columns, self.step + made, self._aheads[made])
            if found.diverged:
                drawn.gains.append(drawn.gains[-1] if made else 0.0)
                continue
            if made == 0:
                drawn.before = found.before
            drawn.gains.append(max([share_taken(drawn.before, found.final_loss), *drawn.gains[-1:]]))
            drawn.columns = np.concatenate([drawn.columns, found.candidates.columns[found.best]])


def tail_probability(gains: FloatArray, gain: float) -> tuple[float, float]:
    """How many standard deviations a gain is above others, and how probable that is.

    The largest of many numbers has nearly a Gumbel distribution; it is fitted by mean and deviation.
    """
    n, deviation = len(gains), float(gains.std(ddof=1))
    if deviation == 0:
        return (np.inf, 0.0) if gain > gains[0] else (0.0, 1.0)
    # The mean is known no better than from n draws.
    deviations = float(gain - gains.mean()) / (deviation * sqrt(1 + 1 / n))
    return deviations, -expm1(-exp(min(MOST_EXPONENT, -(deviations * pi / sqrt(6) + EULER))))


def is_clear(deviations: float, n_draws: int, level: float) -> bool:
    """Whether so many draws are enough to say on which side of a level the probability is."""
    if deviations > CLEAR_DEVIATIONS.get(n_draws, ALWAYS_CLEAR):
        return True
    at_level = -(log(-log1p(-level)) + EULER) * sqrt(6) / pi
    # Of a mean and, for a Gumbel distribution, of a deviation.
    error = sqrt((1 + 1.1 * deviations**2) / n_draws)
    return n_draws >= DRAWS_TO_TELL and abs(deviations - at_level) > CLEAR_ERRORS * error
