"""Whether a candidate knows anything about the targets that the selection doesn't know: p-values, and pairs.

What the selection leaves unexplained is compared with a few functions of each candidate's columns: the column itself,
its absolute value, waves. What the selected columns and their squares say about these functions is taken away first. If
a candidate knows nothing more, the rest of it goes with any row as well as with its own. So the rows of all candidates
are permuted together, again and again, and a candidate's p-value is the probability that the best of all candidates
looks as good as it does after a permutation.

What is compared are correlations: of a function with the residuals, and with their products with functions of the
selected columns, which an interaction would change. Each is turned into the logarithm of its tail probability, as if it
were normal, times the number of comparisons of its kind. The kinds share the error: half of it is for columns as they
are, since most effects are linear, by and large. Residuals are replaced by their normal scores, so that no row
outweighs the others.

If correlations leave it open whether a candidate is significant, the leading ones are trained, as they are and with
their rows permuted: the lowest loss of several has about a Gumbel distribution, which gives a second p-value. The
smaller of the two counts, but twice. Training shows what correlations miss, and they what is lost in its noise.

This takes rows for exchangeable, and dependence between columns for linear or quadratic. Without a selection, it is an
exact permutation test, whatever the distributions are. Rows that validation keeps together are permuted together. Of
rows in time, what is new in the residuals and in the candidates is compared, beside the rows before: two series that
only drift have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri
from scipy.stats import rankdata

from ngp._progress import phase
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.greedy.unexplained import CLIP, Unexplained, rows_read
from ngp.kernels.parallel import run_tasks
from ngp.predictors.base import ColumnSets, scaled_columns

__all__ = ["Pair", "SignificanceTest"]

MOST_LAGS, ROWS_PER_LAG = 8, 25  # of the autoregression of residuals in time
WAVE = 1.2  # first frequency of the waves, in a column's deviations: one wave spans most rows
# Error shares of a column as it is, of other functions of it, and of its interactions with the selection.
SHARES = (0.55, 0.25, 0.2)
# Selected columns that interact by themselves, at most, and with several outputs; of more, so many random combinations.
MOST_INTERACTING, MOST_SIGNALS = 8, 16
# Rows for each selected column that it takes to reckon with its square, and deviations beyond which it isn't squared.
ROWS_PER_SQUARE = 8
MOST_SQUARED = 3.0
# Number of permutations after which to see whether a few exceed what was found: then all of them would.
LOOKS = (19, 49, 99, 199)
EXCEEDED = 3
CLEAR = 1e-4  # a p-value of a single candidate that is lower needs no more permutations
CLEAR_SHARE = 0.1  # of the level: a p-value below it needs no more permutations, and no training
# Candidates that are trained in doubt, permutations of them, and p-values that need the larger number.
N_TRIED = 8
TRIED_LOOKS = (9, 19, 39)
UNCLEAR = 0.3
MOST_TRIED_ROWS = 2**12  # of more rows, correlations show enough
N_TAIL = 5  # permutations whose tail goes on beyond all of them
ROUNDING = 1e-4  # of logarithms of probabilities: closer ones are ties, and ties count against a candidate
TIED = 1e-9  # of deviations, or of the largest residual: closer numbers are ties, whatever rounding makes of them
CHANCE = 2.0  # times the share of a column's variance that functions of the selection explain by chance
DEAD = 1e-8  # share of a function's variance that the selection leaves at least
# Numbers in the columns of a task, and permutations at once. Fixed, as bits of a matrix product depend on what is
# multiplied together.
CHUNK_NUMBERS = 2**18
PERMUTED_AT_ONCE = 10
# Pairs are a second test: it gets this share of the level.
PAIR_SHARE = 0.5
PAIR_LOOKS = LOOKS[:3]
LEADING_PAIRS = 32  # of which the best one is found by training
HOPELESS_PAIR = 20.0  # times the level: no permutations are needed to see that nothing is there
# Pairs take no more operations than so many steps of networks with 100 units: else only the best columns are paired.
PAIR_STEPS = 10
NETWORK_OPERATIONS = 2e4  # of a row of a candidate's network
BLOCK_PAIRED = 512  # factors that are paired with all at a time
LEAST_VARIANCE = 0.05  # of a product of two factors with variance one: less is a few rows' doing
NULL_FACTORS = 512  # that are paired in permutations, besides the leading ones
STREAM = 0x436861  # of random numbers, so that no other part of a fit draws the same ones


@dataclass(frozen=True, eq=False)
class Signals:
    """What candidates are compared with, given a selection: scaled so that a correlation is a standard normal."""

    left: Unexplained  # by the selection
    basis: AnyArray  # orthonormal functions of the selected columns (b, J), which candidates are freed of
    values: AnyArray  # residuals, then their products with functions of the selected columns (J, Q + V)
    n_outputs: int  # Q
    n_columns: int  # of all candidates
    memory: FloatArray  # of the residuals, if rows are in time: by what they follow those before

    def sizes(self, functions: AnyArray) -> AnyArray:
        """Absolute correlations (8, n, Q + V) of freed functions of columns (8, n, J)."""
        sizes: AnyArray = np.abs(functions @ self.values) * self._corrections
        return sizes

    @cached_property
    def _corrections(self) -> AnyArray:
        """What makes correlations of freed columns (Q + V) as large, on average, as after a permutation.

        What a column is freed of is lost: it has fewer degrees of freedom, and the signals have a part elsewhere.
        """
        beside = self.values - self.basis.T @ (self.basis @ self.values)
        freedom = max(1, len(beside) - len(self.basis))
        sizes = np.sqrt((beside**2).sum(axis=0) / freedom)
        found: AnyArray = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        return found

    @property
    def residuals(self) -> AnyArray:
        """The residuals alone (J, Q)."""
        return self.values[:, : self.n_outputs]

    def kinds(self, sizes: AnyArray) -> Iterator[tuple[AnyArray, float]]:
        """Largest of the correlations (8, n, …, Q + V) of each kind, and the logarithm of how many share the error."""
        q = self.n_outputs
        for part, share in zip((sizes[:1, ..., :q], sizes[1:, ..., :q], sizes[..., q:]), SHARES, strict=True):
            if part.size:
                compared = 2 * self.n_columns * len(part) * part.shape[-1]
                yield part.max(axis=(0, -1)).astype(np.float64), log(compared / share)

    def evidence(self, sizes: AnyArray) -> FloatArray:
        """Logarithm of each column's p-value, times the number of comparisons, as if correlations were normal."""
        logs: FloatArray = np.min([multiple + log_ndtr(-largest) for largest, multiple in self.kinds(sizes)], axis=0)
        return logs


@dataclass(frozen=True)
class Pair:
    """Two candidates that may know something together."""

    leading: IntArray  # positions (n, 2) of the candidates of the pairs that look best, significant ones if there are
    p_value: float  # of the best one


@dataclass(frozen=True)
class SignificanceTest:
    """p-values of candidates, given a selection."""

    problem: Problem
    level: float  # largest p-value that is significant: what is clear is found out quickly
    seed: int = 0  # the same in all fits: only the data decide
    n_jobs: int | None = None
    quick: bool = False  # whether p-values only say what comes first: normal ones will do where they are clear
    looks: tuple[int, ...] = LOOKS
    tried_looks: tuple[int, ...] = TRIED_LOOKS

    @cached_property
    def _rows(self) -> IntArray:
        """Rows that are read, in an order of their own: permutations are the same whatever order they are given in."""
        rows = rows_read(self.problem, self.seed)
        if self.problem.together is not None:
            return rows[np.argsort(self.problem.together[rows], kind="stable")]
        if self.problem.in_time:
            return rows
        targets = self.problem.targets[rows]
        sums = np.zeros((2, len(rows)))  # which tell rows with the same targets apart
        if len(np.unique(targets, axis=0)) < len(rows):
            for columns in self._chunks(np.flatnonzero(self.problem.varies), len(rows)):
                values = scaled_columns(self.problem, columns, rows, CLIP)
                sums += np.exp(values).sum(axis=0), values.sum(axis=0)
        return rows[np.lexsort((*np.rint(sums / TIED), *targets.T))]

    @property
    def pair_level(self) -> float:
        """Largest p-value of a pair that is significant."""
        return PAIR_SHARE * self.level

    @phase("testing")
    def p_values(self, selected: IntArray, candidates: ColumnSets) -> FloatArray:
        """Probability of each candidate that the best of all looks as good by chance.

        The leading candidates are trained if correlations leave it open whether they are significant.
        """
        signals = self._signals(selected, len(candidates.columns))
        chunks = self._chunks(candidates.columns, len(signals.left.rows))
        shared, starts = (self.problem, signals), candidates.bounds[:-1]
        found = run_tasks(_chunk_evidence, [(chunk,) for chunk in chunks], self.n_jobs, shared=shared)
        logs, bounds = (np.minimum.reduceat(np.concatenate(each), starts) for each in zip(*found, strict=True))
        exchangeable = self.problem.together is None and not self.problem.in_time
        # Clear whatever the distributions are, or, to be quick, if correlations are normal.
        if exchangeable and (logs if self.quick else bounds).min() <= log(CLEAR_SHARE * self.level):
            certain: FloatArray = np.exp(np.minimum(logs, 0))
            return certain

        drawn = Leaders(np.zeros((0, len(signals.left.rows)), np.intp), np.zeros((0, 1)), np.zeros((0, 1), np.intp))

        def minima(orders: IntArray) -> FloatArray:
            nonlocal drawn
            found = Leaders.of(
                orders, run_tasks(_chunk_null, [(chunk, orders) for chunk in chunks], self.n_jobs, shared=shared)
            )
            drawn = drawn.and_then(found)
            return found.logs[:, 0]

        p_values = _ranked(logs, self._null(minima, float(logs.min()), self.level, len(selected), self.looks))
        hopeless = not len(selected) or len(signals.left.rows) > MOST_TRIED_ROWS or not exchangeable
        if hopeless or p_values.min() <= CLEAR_SHARE * self.level:
            return p_values

        def first(number: int) -> Leaders:
            if (n_drawn := len(drawn.orders)) < number:
                minima(self._orders(len(selected), n_drawn, number))
            return drawn

        return self._tried(Trial(self.problem, signals, candidates, self.n_jobs), logs, p_values, first)

    @phase("testing")
    def alone(self, selected: IntArray, candidates: ColumnSets) -> FloatArray:
        """p-value of each candidate as if it had been the only one: for those that were not chosen among others."""
        signals = self._signals(selected, 1)
        length = max(1, CHUNK_NUMBERS // len(signals.left.rows) // max(1, int(candidates.sizes.max(initial=1))))
        p_values, doubtful = np.ones(len(candidates)), np.arange(len(candidates))
        for number in (self.looks[0], self.looks[-1]):
            orders, some = self._orders(len(selected), 0, number), candidates.take(doubtful)
            chunks = [(some.part(i, i + length), orders) for i in range(0, len(some), length)]
            found = np.concatenate(run_tasks(_chunk_alone, chunks, self.n_jobs, shared=(self.problem, signals)))
            p_values[doubtful] = found
            doubtful = doubtful[found >= CLEAR]
            if not len(doubtful):
                break
        return p_values

    def _tried(
        self, trial: Trial, logs: FloatArray, p_values: FloatArray, first: Callable[[int], Leaders]
    ) -> FloatArray:
        """p-values of the leading candidates by their losses, too: the smaller one counts, but twice."""
        leading = np.sort(np.argsort(logs, kind="stable")[:N_TRIED])
        own, null = trial.losses([(trial.candidates.take(leading), None)])[0], np.zeros(0)
        found = p_values.copy()
        for number in self.tried_looks:
            some, drawn = slice(len(null), number), first(number)
            redrawn = [
                (trial.owners_of(each), order)
                for each, order in zip(drawn.columns[some], drawn.orders[some], strict=True)
            ]
            null = np.append(null, [losses.min() for losses in trial.losses(redrawn)])
            found[leading] = np.minimum(p_values[leading], _gumbel_tail(null, own))
            if not CLEAR_SHARE * self.level < 2 * found.min() <= UNCLEAR:
                break
        return np.minimum(1, 2 * found)

    @phase("testing pairs")
    def pair(self, selected: IntArray, candidates: ColumnSets) -> Pair:
        """The pairs of candidates that look best together, and the p-value of the best one.

        Compared are products of two columns, or of waves of them, with the residuals.
        """
        signals = self._signals(selected, len(candidates.columns))
        columns = self._pairable(signals, candidates, len(selected))
        factors = self._factors(signals, candidates, columns)
        starts = range(0, len(factors.values), BLOCK_PAIRED)
        found = run_tasks(_block_pairs, [(start,) for start in starts], self.n_jobs, shared=(factors,))
        sizes, places = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(-sizes, kind="stable")[: 4 * LEADING_PAIRS]
        order = order[sizes[order] > 0]  # no candidate is paired with itself
        if not len(order):
            return Pair(np.zeros((0, 2), np.intp), 1.0)
        leading, first = np.unique(np.sort(factors.owners[places[order]], axis=1), axis=0, return_index=True)
        ranked = np.argsort(first)[:LEADING_PAIRS]
        leading, logs = leading[ranked], np.array([factors.log_p(float(size)) for size in sizes[order[first[ranked]]]])
        best = float(logs[0])
        if best > log(HOPELESS_PAIR * self.level):
            return Pair(leading, 1.0)
        if self.quick and best <= log(CLEAR_SHARE * self.level):
            return Pair(leading[logs <= log(self.pair_level)], float(np.exp(best)))
        some = np.isin(factors.owners, leading)  # each with its own number of comparisons, so that fewer will do
        some[:: max(1, -(-len(some) // NULL_FACTORS))] = True
        null_factors = _Factors(factors.values[some], factors.owners[some], factors.residuals)
        null_starts = range(0, len(null_factors.values), BLOCK_PAIRED)

        def minima(orders: IntArray) -> FloatArray:
            arguments = [(start, orders) for start in null_starts]
            largest = run_tasks(_block_null, arguments, self.n_jobs, shared=(null_factors,))
            return np.array([null_factors.log_p(size) for size in np.max(largest, axis=0)])

        null = self._null(minima, best, self.pair_level, len(selected), PAIR_LOOKS)
        p_values = _ranked(logs, null)
        return Pair(leading[p_values <= max(p_values[0], self.pair_level)], float(p_values[0]))

    def _factors(self, signals: Signals, candidates: ColumnSets, places: IntArray) -> _Factors:
        """Columns at some places, and waves of them, to be multiplied with each other."""
        owners = np.repeat(np.arange(len(candidates)), candidates.sizes)[places]
        values = scaled_columns(self.problem, candidates.columns[places], signals.left.rows, CLIP).astype(np.float32)
        values = _freed(np.concatenate([values, np.cos(2 * WAVE * values)]), signals.basis)
        return _Factors(values * np.float32(sqrt(values.shape[1])), np.tile(owners, 2), signals.residuals)

    def _null(
        self,
        minima: Callable[[IntArray], FloatArray],
        best: float,
        level: float,
        step: int,
        looks: tuple[int, ...],
    ) -> FloatArray:
        """What is found in as many permutations as it takes to be clear about the best that was found."""
        null = np.zeros(0)
        for number in looks:
            null = np.append(null, minima(self._orders(step, len(null), number)))
            exceeding = np.count_nonzero(null <= best + ROUNDING)
            if exceeding >= EXCEEDED or (not exceeding and _tail(null, np.array([best]))[0] < CLEAR_SHARE * level):
                break
        return null

    def _signals(self, selected: IntArray, n_columns: int) -> Signals:
        """What candidates are compared with."""
        rows = self._rows
        left = Unexplained.of(self.problem, selected, rows, self.seed)
        inputs = left.inputs
        memory = _memory(left.residuals) if self.problem.in_time else np.zeros(0)
        residuals = _new(left.residuals.T, memory).T
        # Residuals of rows with the same numbers differ by rounding, and are ties.
        unit = TIED * np.abs(residuals).max(axis=0) + np.finfo(np.float64).tiny
        ranks = rankdata(np.rint(residuals / unit), axis=0)
        residuals = ndtri((ranks - 0.5) / len(rows)) * left.weights[:, None]
        columns = inputs.T
        most = min(MOST_INTERACTING, max(1, MOST_SIGNALS // residuals.shape[1]))
        if len(columns) > most:
            generator = np.random.default_rng([self.seed, STREAM, len(columns)])
            columns = generator.standard_normal((most, len(columns))) @ columns / sqrt(len(columns))
        functions = np.concatenate([columns, np.cos(2 * WAVE * columns)])
        functions -= functions.mean(axis=1, keepdims=True)
        interactions = (residuals[:, :, None] * functions.T[:, None, :]).reshape(len(rows), -1)
        values = _standard(np.hstack([residuals, interactions]))
        return Signals(left, _basis(inputs.T), values, residuals.shape[1], n_columns, memory)

    def _orders(self, step: int, first: int, end: int) -> IntArray:
        """Permutations of the rows, each the same whenever it is drawn.

        Of rows in groups, the groups are permuted as a whole; where one takes the place of a smaller or larger one,
        rows are left out or repeated.
        """
        key = np.array([self.seed, STREAM], dtype=np.uint64)
        generators = (
            np.random.Generator(np.random.Philox(key=key, counter=[0, step, draw, 0])) for draw in range(first, end)
        )
        return np.array([self._permuted(generator) for generator in generators], dtype=np.intp)

    def _permuted(self, generator: np.random.Generator) -> IntArray:
        """For each row the one that takes its place, as likely as they are if there is nothing to be found."""
        n_rows, together = len(self._rows), self.problem.together
        if together is None:
            return generator.permutation(n_rows)
        starts = np.unique(together[self._rows], return_index=True)[1]
        parts = np.split(np.arange(n_rows), starts[1:])
        others = generator.permutation(len(parts))
        return np.concatenate([np.resize(parts[other], len(part)) for part, other in zip(parts, others, strict=True)])

    def _chunks(self, columns: IntArray, n_rows: int) -> list[IntArray]:
        length = max(1, CHUNK_NUMBERS // n_rows)
        return [columns[start : start + length] for start in range(0, len(columns), length)]

    def _pairable(self, signals: Signals, candidates: ColumnSets, n_selected: int) -> IntArray:
        """Places of the columns to be paired: all, or as many as can be afforded, those that look best alone."""
        n_columns, n_outputs = len(candidates.columns), signals.residuals.shape[1]
        most = int(PAIR_STEPS * (n_selected + 1) * NETWORK_OPERATIONS / (8 * n_outputs))
        if n_columns <= most:
            return np.arange(n_columns)
        chunks = [(chunk,) for chunk in self._chunks(candidates.columns, len(signals.left.rows))]
        found = run_tasks(_chunk_evidence, chunks, self.n_jobs, shared=(self.problem, signals))
        logs = np.concatenate([each for each, _ in found])
        return np.sort(np.argsort(logs, kind="stable")[:most])


def _basis(columns: FloatArray) -> AnyArray:
    """Orthonormal combinations of one, some columns (k, J) and, if there are enough rows, their squares."""
    parts = [np.ones((1, columns.shape[1])), columns]
    if ROWS_PER_SQUARE * len(columns) <= columns.shape[1]:
        parts.append(np.clip(columns, -MOST_SQUARED, MOST_SQUARED) ** 2)
    _, deviations, basis = np.linalg.svd(np.concatenate(parts), full_matrices=False)
    kept: AnyArray = basis[deviations > 1e-9 * deviations[0]].astype(np.float32)
    return kept


def _standard(signals: FloatArray) -> AnyArray:
    """Signals with mean zero and, over permutations of the rows, unit variance of products with unit vectors."""
    signals = signals - signals.mean(axis=0)
    deviations = np.sqrt((signals**2).sum(axis=0) / max(1, len(signals) - 1))
    scaled = np.divide(signals, deviations, out=np.zeros_like(signals), where=deviations > 0)
    standard: AnyArray = scaled.astype(np.float32)
    return standard


def _functions(values: AnyArray) -> AnyArray:
    """Functions (8, n, J) of columns: themselves, their absolute values, three waves."""
    x = values.astype(np.float32)
    c, s = np.cos(WAVE * x), np.sin(WAVE * x)
    c2, s2 = 2 * c * c - 1, 2 * s * c
    return np.stack([x, np.abs(x), c, s, c2, s2, c2 * c - s2 * s, s2 * c + c2 * s])


def _freed(functions: AnyArray, basis: AnyArray) -> AnyArray:
    """Rows without what the basis says about them, of unit length; zero if nothing is left."""
    rows = functions.reshape(-1, functions.shape[-1])
    before = (rows * rows).sum(axis=1)
    rows = rows - (rows @ basis.T) @ basis
    after = (rows * rows).sum(axis=1)
    scale = np.divide(1, np.sqrt(after), out=np.zeros_like(after), where=after > DEAD * before)
    freed: AnyArray = (rows * scale[:, None]).reshape(functions.shape)
    return freed


def _memory(residuals: FloatArray) -> FloatArray:
    """By what residuals follow those before them: an autoregression, the same one for all outputs."""
    n_lags = max(1, min(MOST_LAGS, len(residuals) // ROWS_PER_LAG))
    centred = residuals - residuals.mean(axis=0)
    before = [centred[n_lags - lag : len(centred) - lag].ravel() for lag in range(1, n_lags + 1)]
    found: FloatArray = np.linalg.lstsq(np.stack(before, axis=1), centred[n_lags:].ravel())[0]
    return found


def _new(series: AnyArray, memory: FloatArray) -> AnyArray:
    """What is new in each row of series (…, J), beside the rows before it; zero in the first ones."""
    if not len(memory):
        return series
    new = series.copy()
    for lag, share in enumerate(memory.astype(series.dtype), 1):
        new[..., lag:] -= share * series[..., :-lag]
    new[..., : len(memory)] = 0
    return new


def _sent(signals: AnyArray, order: IntArray) -> AnyArray:
    """Signals (J, V) so arranged that they meet the rows of a candidate in some order, which may repeat rows."""
    places = np.argsort(order, kind="stable")
    if (order[places] == np.arange(len(order))).all():
        return signals[places]
    sent = np.zeros_like(signals)
    np.add.at(sent, order, signals)
    return sent


def _known(values: AnyArray, basis: AnyArray) -> AnyArray:
    """What the basis says about columns; their mean if it is no more than chance says, so that bits remain bits."""
    known: AnyArray = (values @ basis.T) @ basis
    means = values.mean(axis=1, keepdims=True)
    said, all_of_it = (np.square(each - means).sum(axis=1) for each in (known, values))
    return np.where((said <= CHANCE * len(basis) / values.shape[1] * all_of_it)[:, None], means, known)


def _chunk_evidence(problem: Problem, signals: Signals, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of each column's p-value times the number of comparisons: if normal, and by Bernstein's inequality."""
    functions = _chunk_functions(problem, signals, columns)
    sizes = signals.sizes(functions)
    jumps = np.abs(functions).max(axis=2)[..., None] * np.abs(signals.values).max(axis=0)
    exponents = sizes**2 / (2 + 2 / 3 * jumps * sizes)
    bounds = np.min([multiple - largest for largest, multiple in signals.kinds(exponents)], axis=0)
    return signals.evidence(sizes), bounds


def _chunk_null(problem: Problem, signals: Signals, columns: IntArray, orders: IntArray) -> tuple[FloatArray, IntArray]:
    """The smallest of these logarithms in each of some permutations, and the columns they are of."""
    functions, n_leading = _chunk_functions(problem, signals, columns), min(N_TRIED, len(columns))
    least, places = np.empty((len(orders), n_leading)), np.empty((len(orders), n_leading), np.intp)
    for some, logs in _permuted_evidence(signals, functions, orders):
        first = np.argsort(logs, axis=1, kind="stable")[:, :n_leading]
        least[some], places[some] = np.take_along_axis(logs, first, axis=1), columns[first]
    return least, places


def _chunk_alone(problem: Problem, signals: Signals, sets: ColumnSets, orders: IntArray) -> FloatArray:
    """p-value of each of some candidates as if there were no others.

    Functions are those of what the selected columns don't say about a column, not of the column: if that is independent
    of them, so are these, however the selected columns bear on the targets.
    """
    values = scaled_columns(problem, sets.columns, signals.left.rows, CLIP)
    own = values - _known(values, signals.basis)
    deviations = own.std(axis=1, keepdims=True)
    own = np.divide(own, deviations, out=np.zeros_like(own), where=deviations > 0)
    functions, starts = _functions_of(signals, own), sets.bounds[:-1]
    found = np.minimum.reduceat(signals.evidence(signals.sizes(functions)), starts)
    null = np.empty((len(orders), len(sets)))
    for some, logs in _permuted_evidence(signals, functions, orders):
        null[some] = np.minimum.reduceat(logs, starts, axis=1)
    return np.array([_ranked(found[[i]], null[:, i])[0] for i in range(len(sets))])


def _permuted_evidence(signals: Signals, functions: AnyArray, orders: IntArray) -> Iterator[tuple[slice, FloatArray]]:
    """The logarithms (n_orders, n) of columns with these functions after each permutation, a few at a time."""
    for start in range(0, len(orders), PERMUTED_AT_ONCE):
        some = slice(start, start + PERMUTED_AT_ONCE)
        permuted = np.concatenate([_sent(signals.values, order) for order in orders[some]], axis=1)
        products = functions.reshape(-1, len(permuted)) @ permuted
        sizes = np.abs(products, out=products).reshape(*functions.shape[:2], -1, signals.values.shape[1])
        yield some, signals.evidence(sizes).T


def _chunk_functions(problem: Problem, signals: Signals, columns: IntArray) -> AnyArray:
    """Functions (8, n, J) of some columns, freed of what the selected columns say about them."""
    return _functions_of(signals, scaled_columns(problem, columns, signals.left.rows, CLIP))


def _functions_of(signals: Signals, values: AnyArray) -> AnyArray:
    functions = _freed(_functions(values), signals.basis)
    if not len(signals.memory):
        return functions
    functions = _new(functions, signals.memory)
    return _freed(functions, np.zeros((0, functions.shape[-1]), functions.dtype))


class Leaders(NamedTuple):
    """Permutations, and the columns that look best in each of them, best first."""

    orders: IntArray
    logs: FloatArray
    columns: IntArray

    @classmethod
    def of(cls, orders: IntArray, chunks: Sequence[tuple[FloatArray, IntArray]]) -> Leaders:
        """The best of several chunks."""
        logs, columns = (np.concatenate(each, axis=1) for each in zip(*chunks, strict=True))
        best = np.argsort(logs, axis=1, kind="stable")[:, :N_TRIED]
        return cls(orders, np.take_along_axis(logs, best, axis=1), np.take_along_axis(columns, best, axis=1))

    def and_then(self, others: Leaders) -> Leaders:
        """These permutations, and others after them."""
        if not len(self.orders):
            return others
        joined: list[Any] = [np.concatenate(each) for each in zip(self, others, strict=True)]
        return Leaders(*joined)


@dataclass(frozen=True, eq=False)
class Trial:
    """Trains candidates, as they are or redrawn, to compare their losses."""

    problem: Problem
    signals: Signals
    candidates: ColumnSets
    n_jobs: int | None

    def owners_of(self, columns: IntArray) -> ColumnSets:
        """The candidates that some columns belong to."""
        places = np.searchsorted(self._sorted_columns, columns)
        return self.candidates.take(np.unique(self._owners[places]))

    @cached_property
    def _order(self) -> IntArray:
        return np.argsort(self.candidates.columns, kind="stable")

    @cached_property
    def _sorted_columns(self) -> IntArray:
        return self.candidates.columns[self._order]

    @cached_property
    def _owners(self) -> IntArray:
        return np.repeat(np.arange(len(self.candidates)), self.candidates.sizes)[self._order]

    def losses(self, drawn: Sequence[tuple[ColumnSets, IntArray | None]]) -> list[FloatArray]:
        """Losses of candidates, each list of them with its rows in some order; None: as they are."""
        return run_tasks(_trial_losses, drawn, self.n_jobs, shared=(self.problem, self.signals))


def _trial_losses(problem: Problem, signals: Signals, sets: ColumnSets, order: IntArray | None) -> FloatArray:
    """Leave-one-out errors with each of some candidates, their rows in some order."""
    columns = scaled_columns(problem, sets.columns, signals.left.rows, CLIP)
    if order is not None:
        known = _known(columns, signals.basis)
        columns = known + (columns - known)[:, order]
    return signals.left.errors_with([columns[start:end] for start, end in pairwise(sets.bounds)])


@dataclass(frozen=True, eq=False)
class _Factors:
    """Functions of columns (n, J) that are multiplied with each other, whose they are, and the residuals."""

    values: AnyArray
    owners: IntArray
    residuals: AnyArray

    def log_p(self, size: float) -> float:
        """Logarithm of the p-value of the largest correlation, times the number of comparisons."""
        n_compared = len(self.values) * (len(self.values) - 1) * self.residuals.shape[1]
        return log(n_compared) + float(log_ndtr(-size))


def _block_scales(factors: _Factors, start: int) -> tuple[slice, AnyArray]:
    """Rows of a block, and what turns its sums of products with all later factors into standard normals; 0: no pair."""
    values, block = factors.values, slice(start, start + BLOCK_PAIRED)
    n_rows = values.shape[1]
    means = values[block] @ values[start:].T / n_rows
    variances = np.square(values[block]) @ np.square(values[start:]).T / n_rows - means**2
    apart = np.triu(factors.owners[block, None] != factors.owners[None, start:], 1)
    scales = np.where(apart, 1 / np.sqrt(n_rows * np.maximum(variances, LEAST_VARIANCE)), 0)
    return block, scales.astype(np.float32)


def _block_sizes(factors: _Factors, block: slice, scales: AnyArray, residuals: AnyArray) -> AnyArray:
    """Largest correlation of each product with any of the residuals."""
    values = factors.values
    sizes = np.zeros_like(scales)
    for output in residuals.T:
        np.maximum(sizes, np.abs((values[block] * output) @ values[block.start :].T), out=sizes)
    sizes *= scales
    return sizes


def _block_pairs(factors: _Factors, start: int) -> tuple[FloatArray, IntArray]:
    """The largest correlations in a block, and the two factors of each."""
    block, scales = _block_scales(factors, start)
    sizes = _block_sizes(factors, block, scales, factors.residuals)
    flat = sizes.ravel()
    top = np.argpartition(-flat, min(len(flat) - 1, 4 * LEADING_PAIRS))[: 4 * LEADING_PAIRS]
    return flat[top].astype(np.float64), start + np.stack(np.unravel_index(top, sizes.shape), axis=1)


def _block_null(factors: _Factors, start: int, orders: IntArray) -> FloatArray:
    """The largest correlation in a block, in each of some permutations of the residuals."""
    block, scales = _block_scales(factors, start)
    return np.array([_block_sizes(factors, block, scales, factors.residuals[order]).max() for order in orders])


def _ranked(logs: FloatArray, null: FloatArray) -> FloatArray:
    """p-values by rank among the permutations; beyond all of them, by the tail of their distribution."""
    exceeding = np.searchsorted(np.sort(null), logs + ROUNDING, side="right")
    ranked = (1 + exceeding) / (1 + len(null))
    p_values: FloatArray = np.where(exceeding == 0, np.minimum(ranked, _tail(null, logs)), ranked)
    return p_values


def _gumbel_tail(null: FloatArray, losses: FloatArray) -> FloatArray:
    """How probable losses are that are as low, beside some that are the lowest of several each."""
    sizes = (null.mean() - losses) / max(float(null.std(ddof=1)), 1e-300)
    tails: FloatArray = -np.expm1(-np.exp(np.minimum(-pi / sqrt(6) * sizes - np.euler_gamma, 50)))
    return tails


def _tail(null: FloatArray, logs: FloatArray) -> FloatArray:
    """How probable logarithms of p-values are that are as small, where some were found by chance, most of them larger.

    Their tail falls by a factor of e per unit, or more slowly if they scatter more than that.
    """
    smallest = np.sort(null)[:N_TAIL]
    slope = min(1.0, pi / sqrt(6) / max(float(null.std(ddof=1)), 1e-12))
    tails: FloatArray = len(smallest) / (1 + len(null)) * np.exp(slope * np.minimum(0, logs - smallest[-1]))
    return tails
