"""Compare the compiled kernels, and the scorers built on them, with their plain twins, in cases drawn at random.

``make fuzz`` draws a thousand. A case depends on its number alone: ``--first 417 --cases 1`` repeats it. How far
results may be apart follows from the precision and the condition of the problem; where no digit is certain, they have
to be finite.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import layer_cases
import numpy as np
import scorer_cases
from kernels import test_perceptron, test_screening_kernel
from predictors import test_kernel, test_ssfn_scorer
from sklearn.model_selection import PredefinedSplit, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from threadpoolctl import threadpool_limits

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels import _kernels, plain, screening
from ngp.kernels.kernel_ridge import jitter
from ngp.kernels.layers import hidden_units
from ngp.kernels.ridge import fit_ridge
from ngp.kernels.scoring import gather_columns, score_blocks, score_chunk
from ngp.predictors import ColumnSets, ssfn
from ngp.predictors.base import Scorer
from ngp.predictors.kernel import KernelScorer

INSTRUCTION_SETS = ("avx512", "avx2", "plain")
SCALES = (-12, -3, 0, 0, 0, 0, 0, 0, 3, 12)  # powers of ten
WEIGHT_SCALES = (1e-12, 1e-3, 1.0, 1.0, 1e3, 1e12)
# Rounding errors are this many times as large as the condition alone says, at most.
SLACK = 16.0
# Tolerances beyond this share of the expected numbers say nothing: then there may be no result.
LOOSE = 0.1
# What random data may lack: training rows of positive weight, or classes.
REFUSED = ("sample_weight is zero", "y holds a single value", "cv holds classes that y doesn't")


class Check(NamedTuple):
    """Two results, and how far they may be apart."""

    what: str
    found: FloatArray | float
    expected: FloatArray | float
    tolerance: float

    @property
    def difference(self) -> float:
        """The largest one; infinite if anything isn't finite."""
        apart = np.abs(np.asarray(self.found, np.float64) - self.expected)
        return float(np.where(np.isfinite(apart), apart, np.inf).max(initial=0))

    @property
    def is_loose(self) -> bool:
        """Whether no digit is certain."""
        return not self.tolerance <= LOOSE * np.abs(self.expected).max(initial=1e-300)

    @property
    def fails(self) -> bool:
        """Whether they are too far apart."""
        return bool(np.isinf(self.found).any()) if self.is_loose else self.difference > self.tolerance


class Draws:
    """Random numbers of a case, and the parameters that were chosen."""

    def __init__(self, number: int) -> None:
        self.rng, self.chosen = np.random.default_rng(number), dict[str, Any]()

    def any_of(self, name: str, *values: Any) -> Any:
        """Choose one of the values."""
        self.chosen[name] = values[self.rng.integers(len(values))]
        return self.chosen[name]

    def size(self, name: str, low: int, high: int) -> int:
        """Choose a number, small ones as often as large ones."""
        return int(self.any_of(name, int(np.exp(self.rng.uniform(np.log(low), np.log(high + 1))))))

    @property
    def seed(self) -> int:
        """A seed for what draws its numbers itself."""
        return int(self.rng.integers(2**31))

    def instruction_set(self) -> str:
        """Switch to an instruction set, the plain one if the machine doesn't have it."""
        name: str = _kernels.use(self.any_of("instruction set", *INSTRUCTION_SETS))[0]
        return name

    def weights(self, n_rows: int, scales: tuple[float, ...] = (1.0,)) -> FloatArray:
        """Sample weights, at least one of them positive."""
        kind, scale = self.any_of("weights", "ones", "integers", "real"), self.any_of("weight scale", *scales)
        weights = np.ones(n_rows)
        if kind == "integers":
            weights = self.rng.integers(0, 4, size=n_rows).astype(float)
            weights[0] += not weights.any()
        elif kind == "real":
            weights = self.rng.uniform(0.1, 3, size=n_rows)
        weights *= scale
        return weights


def condition(
    rows: FloatArray, weights: FloatArray, penalty: FloatArray, left_out: slice = slice(0, 0)
) -> tuple[float, float]:
    """How much rounding errors grow in a ridge regression without some of the rows, and then in its predictions.

    Sums over the training rows may be those of all rows less the others', so that rounding errors are those of all
    rows; a factorisation doesn't mind the scales of the columns.
    """
    total = (rows.T * weights) @ rows + penalty
    scales = np.sqrt(np.diag(total))
    scales = np.where(scales > 0, scales, 1)
    trains = total - (rows[left_out].T * weights[left_out]) @ rows[left_out]
    smallest = np.linalg.eigvalsh(trains / scales / scales[:, None]).min(initial=1)
    return 1 / max(float(smallest), 1e-100), float(np.sqrt(((rows / scales) ** 2).sum(axis=1).max()))


def layer_tolerance(
    inputs: FloatArray,
    layer: tuple[FloatArray, FloatArray],
    targets: FloatArray,
    weights: FloatArray,
    bounds: IntArray,
    penalties: Any,
    dtype: str,
) -> float:
    """How far predictions of a one-layer SSFN may be apart."""
    largest, projections, intercept = 0.0, inputs @ layer[0] + layer[1], penalties.intercept

    def growth(rows: FloatArray, ridge: float) -> tuple[float, float]:
        rows = np.hstack([rows, np.ones((len(rows), int(intercept)))])
        ridges = np.where(np.arange(rows.shape[1]) < rows.shape[1] - intercept, ridge, 0)
        return condition(rows, weights, np.diag(ridges), own)

    for own in (slice(*part) for part in pairwise(bounds[1:])):
        train = np.delete(np.arange(len(inputs)), own)
        rows = inputs[train], targets[train], weights[train]
        ((slopes, offset),) = fit_ridge([rows], [penalties.linear_ridge], intercept=intercept)
        # The linear part, always in double precision, comes from an inverse, in which rounding errors grow twice.
        factor, reach = growth(inputs, penalties.linear_ridge)
        linear = float(np.finfo(np.float64).eps) * max(1, reach) * factor**2
        factor, reach = growth(hidden_units(inputs @ slopes + offset, projections), penalties.ridge)
        largest = max(largest, float(linear + float(np.finfo(dtype).eps) * max(1, reach) * factor))
    return float(SLACK * largest * np.sqrt((weights @ targets**2).sum()))


# ---------------------------------------------------------------- what is compared


def layers(draws: Draws) -> Iterator[Check]:
    """Networks as arrays."""
    folds = draws.any_of("folds", "2", "5", "uneven", "hold-out", "folds + training rows", "loo", "random", "random")
    case = layer_cases.Case(
        n_rows=draws.size("rows", *(3, 40) if folds == "loo" else (2, 400) if folds == "random" else (13, 400)),
        n_outputs=draws.any_of("outputs", 1, 1, 2, 3, 9), n_new=draws.any_of("new columns", 0, 1, 1, 2, 5),
        n_selected=draws.any_of("selected", 0, 1, 2, 6, 13), folds=folds,
        weights=draws.any_of("weights", "none", "integer", "real"),
        n_units=draws.any_of("units", 1, 7, 16, 33, 64, 100), n_draws=draws.any_of("draws", 1, 1, 2, 3),
        intercept=draws.any_of("intercept", True, True, False),
        ridge=draws.any_of("ridge", 0.1, 1.0, 100.0), linear_ridge=draws.any_of("linear ridge", 0.1, 3.0, 100.0),
        columns=draws.any_of("columns", "plain", "plain", "duplicated", "constant", "rare"),
        exponents=(draws.any_of("column scale", *SCALES), draws.any_of("target scale", *SCALES)),
        n_candidates=draws.size("candidates", 1, 7), seed=draws.seed,
    )  # fmt: skip
    bounds, weights = layer_cases.segment_bounds(case), layer_cases.draw(case)["weights"]
    if any(weights.sum() - weights[slice(*part)].sum() <= 0 for part in pairwise(bounds[1:])):
        case = replace(case, weights="none")  # a fold has no training rows
    numbers, dtype, name = layer_cases.draw(case), draws.any_of("dtype", "float64", "float32"), draws.instruction_set()
    exact, columns = layer_cases.make_task(case, instruction_set=name)
    task, _ = layer_cases.make_task(case, dtype, name)
    expected = next(plain.score_blocks(lambda _: iter([(exact, columns)])))
    tolerance = max(
        layer_tolerance(
            np.concatenate([numbers["selected"], new]).T, layer, numbers["targets"],
            numbers["weights"], bounds, task.penalties, dtype,
        )
        for new in columns
        for layer in zip(numbers["R"], numbers["bias"], strict=True)
    )  # fmt: skip
    yield Check("score_chunk", score_chunk(task, columns), expected, tolerance)
    found = layer_cases.in_blocks(score_blocks, case, task, columns, draws.size("blocks", 1, 9))
    yield Check("score_blocks", found, expected, tolerance)


def gathers(draws: Draws) -> Iterator[Check]:
    """Standardised columns."""
    n_rows, n_columns = draws.size("rows", 1, 400), draws.size("columns", 1, 40)
    X = draws.rng.normal(size=(n_rows, n_columns)) * 10.0 ** draws.rng.choice(SCALES, size=n_columns)
    dtype = draws.any_of("dtype", "float64", "float32", "int32", ">f8")
    X = in_memory_order((X.clip(-1e9, 1e9) if dtype == "int32" else X).astype(dtype), draws)
    rows = draws.rng.permutation(n_rows)[: draws.size("taken", 1, n_rows)]
    columns = draws.rng.integers(n_columns, size=draws.size("gathered", 1, 20))
    mean, scale = draws.rng.normal(size=len(columns)), 10.0 ** draws.rng.choice(SCALES, size=len(columns))
    bound, expected = draws.any_of("bound", 1.0, 4.0, np.inf), np.empty((len(columns), len(rows)))
    plain.gather(X.astype(np.float64), rows, columns, mean, scale, bound, expected)
    yield Check("gather", gather_columns(X, rows, columns, mean, scale, bound), expected, 0)


def in_memory_order(X: AnyArray, draws: Draws) -> AnyArray:
    """The same numbers in another order."""
    order = draws.any_of("order", "C", "F", "strided", "backwards")
    if order == "strided":
        return np.repeat(X, 2, axis=1)[:, ::2]
    return X[::-1].copy()[::-1] if order == "backwards" else np.array(X, order=order)


def ridges(draws: Draws) -> Iterator[Check]:
    """Ridge regressions against least squares with rows for the ridge."""
    n_rows, n_features = draws.size("rows", 2, 400), draws.size("features", 1, 60)
    n_outputs = draws.size("outputs", 1, 4)
    features = draws.rng.normal(0.5, 1, size=(n_rows, n_features)) * 10.0 ** draws.any_of("column scale", *SCALES)
    if draws.any_of("columns", "plain", "duplicated") == "duplicated":
        features = features[:, draws.rng.integers(n_features, size=n_features)]
    features[:, 0] *= draws.any_of("first column", 0, 1, 1)
    targets = draws.rng.normal(1, 1, size=(n_rows, n_outputs)) * 10.0 ** draws.any_of("target scale", *SCALES)
    weights, intercept = draws.weights(n_rows), draws.any_of("intercept", True, False)
    penalties = draws.any_of("ridges", [0.1], [3.0], [0.1, 1.0, 100.0])
    cuts = np.sort(draws.rng.integers(n_rows, size=draws.size("blocks", 1, 4) - 1))
    blocks = zip(*(np.split(values, cuts) for values in (features, targets, weights)), strict=True)
    design = np.hstack([features, np.ones((n_rows, int(intercept)))])
    for ridge, (coef, constant) in zip(penalties, fit_ridge(blocks, penalties, intercept=intercept), strict=True):
        own = np.repeat([ridge, 0.0], [n_features, int(intercept)])
        rows = np.vstack([design * np.sqrt(weights)[:, None], np.diag(np.sqrt(own))])
        scales = np.linalg.norm(rows, axis=0)
        right = np.vstack([targets * np.sqrt(weights)[:, None], np.zeros((len(own), n_outputs))])
        expected = design @ (np.linalg.lstsq(rows / scales, right)[0] / scales[:, None])
        factor, reach = condition(design, weights, np.diag(own))
        tolerance = SLACK * np.finfo(float).eps * max(1, reach) * factor * np.linalg.norm(right)
        yield Check(f"ridge {ridge}", features @ coef + constant, expected, tolerance)


def screens(draws: Draws) -> Iterator[Check]:
    """Gains of the cheap pass."""
    sizes = [draws.size(name, 1, most) for name, most in (("units", 20), ("new columns", 5), ("outputs", 4))]
    n_units, n_new, n_outputs = sizes
    n_rows, scale = draws.size("rows", 2, 450), 10.0 ** draws.any_of("column scale", -3, 0, 0, 3)
    base, slots = draws.rng.normal(size=(n_rows, n_units)), draws.rng.normal(size=(n_new, n_units))
    residuals = draws.rng.normal(size=(n_rows, n_outputs)) * 10.0 ** draws.any_of("target scale", *SCALES)
    columns = draws.rng.normal(size=(draws.size("candidates", 1, 40), n_new, n_rows)) * scale
    columns[:, 0] *= draws.any_of("first column", 0, 1, 1)
    columns[0, -1] = columns[0, 0]
    weights, ridge = draws.weights(n_rows), test_screening_kernel.RIDGE
    draws.instruction_set()
    found = screening.gains(screening.screen_task(base, slots, residuals, weights, ridge), columns)
    for new, gain in zip(columns, found, strict=True):
        units = np.maximum(base + new.T @ slots, 0) - np.maximum(base, 0)
        rows, own = np.hstack([units, new.T, np.ones((n_rows, 1))]), np.repeat([ridge, 0], [n_units + n_new, 1])
        growth = condition(rows, weights, np.diag(own))[0] * (weights @ residuals**2).sum()
        expected = test_screening_kernel.plain_gain(base, slots, residuals, weights, new)
        yield Check("gain", gain, expected, SLACK * float(np.finfo(np.float32).eps) * growth)


def perceptrons(draws: Draws) -> Iterator[Check]:
    """Perceptrons against torch in double precision, which says itself what rounding errors do to the training."""
    loss, n_outputs = draws.any_of("loss", *test_perceptron.CODED.values())
    # Without weights, derivatives of the hinge loss cancel but for rounding errors, of which Adam makes whole steps.
    weighted = loss == "hinge" or draws.any_of("weighted", True, False)
    case = test_perceptron.Case(
        loss, n_outputs, draws.size("inputs", 1, 20), draws.size("units", 1, 100), draws.size("batch", 1, 30),
        draws.size("epochs", 1, 5), draws.any_of("decay", 0.0, 0.1), draws.any_of("rates", (0.05, 0.03), (0.01, 0.01)),
        weighted, draws.any_of("dtype", "float64", "float32"), draws.seed,
    )  # fmt: skip
    draws.instruction_set()
    numbers = test_perceptron.make_numbers(replace(case, dtype="float64"))
    expected, eps = test_perceptron.train_by_torch(case, numbers), float(np.finfo(case.dtype).eps)
    growth = np.abs(expected).max() + 1

    def disturbed(values: FloatArray) -> FloatArray:
        return values * (1 + eps * draws.rng.normal(size=values.shape))

    for _ in range(3):
        changed = {"inputs": disturbed(numbers["inputs"]), "layers": [disturbed(layer) for layer in numbers["layers"]]}
        other = test_perceptron.train_by_torch(case, {**numbers, **changed})
        growth = max(growth, float(np.abs(other - expected).max()) / eps)
    given = {**numbers, **{name: numbers[name].astype(case.dtype) for name in ("inputs", "targets")}}
    n_roundings = len(numbers["plan"][0]) * max(case.n_inputs, case.n_units, case.batch_size)
    tolerance = SLACK * eps * growth * n_roundings**0.5
    yield Check("perceptron", test_perceptron.by_kernel(case, given), expected, tolerance)


def random_problem(draws: Draws) -> Problem | None:
    """A problem for the scorers, unless its data are refused."""
    kind = draws.any_of("kind", "regression", "outputs", "binary", "classes")
    cv = draws.any_of("cv", 2, 5, "loo", 0.3, "repeated", "shuffles", "time", "training rows", "explicit")
    n_rows, seed = draws.size("rows", 12, 30 if cv == "loo" else 120), draws.seed
    X, y = scorer_cases.make_data(kind, n_rows, seed)
    splits = {
        "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        "shuffles": ShuffleSplit(3, test_size=0.3, random_state=0),
        "time": TimeSeriesSplit(3),
        "training rows": PredefinedSplit(np.arange(n_rows) % 4 - 1),
        "explicit": scorer_cases.make_data(kind, 20, seed + 1),
    }
    special = draws.any_of("a column is", "duplicated", "constant")
    X[:, draws.rng.integers(X.shape[1])] = X[:, 0] if special == "duplicated" else 3
    if kind in ("binary", "classes"):
        loss = draws.any_of("loss", *scorer_cases.CLASS_LOSSES)
    else:
        loss, y = "squared_error", y * 10.0 ** draws.any_of("target scale", *SCALES)
    X = in_memory_order(X.astype(draws.any_of("type of X", "float64", "float32")), draws)
    task = "regression" if loss == "squared_error" and kind in ("regression", "outputs") else "classification"
    given = {"groups": make_groups(None, X.shape[1]), "task": task, "loss": loss, "cv": splits.get(cv, cv)}
    try:
        return make_problem(X, y, sample_weight=draws.weights(n_rows, WEIGHT_SCALES), random_state=seed, **given)
    except ValueError as error:
        if not str(error).startswith(REFUSED):
            raise
        return None


def random_selection(draws: Draws) -> tuple[IntArray, ColumnSets]:
    """Selected columns, and sets of others."""
    order = draws.rng.permutation(scorer_cases.N_COLUMNS)
    n_selected = draws.any_of("selected", 0, 1, 2, 4)
    free = order[n_selected:]
    sets = [free[:1], free[1:3], free[:0] if n_selected else free[1:2], free[-1:]]
    return order[:n_selected], ColumnSets.of(sets)


def loss_tolerance(problem: Problem, tolerance: float, loss: float) -> float:
    """How far losses may be apart, divided by the loss, if predictions may be apart by so much."""
    tolerance += SLACK * float(np.finfo(np.float64).eps) * sqrt(loss)  # of the losses' own rounding
    if problem.loss == "squared_error":
        return tolerance * (2 * sqrt(loss) + tolerance) / loss
    return tolerance * (2 if problem.loss == "hinge" else 2e3) / loss


def ssfns(draws: Draws) -> Iterator[Check]:
    """The SSFN's scorer, whole and in blocks of rows."""
    problem = random_problem(draws)
    if problem is None:
        return
    draws.instruction_set()
    dtype, (selected, candidates) = draws.any_of("dtype", "float64", "float32"), random_selection(draws)
    options = {
        "n_units": draws.any_of("units", 1, 12, 37), "n_draws": draws.any_of("draws", 1, 2),
        "ridge": draws.any_of("ridge", 1e-3, 0.01, 1.0), "linear_ridge": draws.any_of("linear ridge", 1e-3, 0.03),
        "bias": draws.any_of("bias", True, True, False), "clip": draws.any_of("clip", 1.0, 4.0, None),
        "standardize": draws.any_of("standardize", True, True, True, False),
    }  # fmt: skip
    scorer = test_ssfn_scorer.bind(problem, dtype, **options)
    X, centre, spread = test_ssfn_scorer.scaled_by_hand(problem, scorer.config)
    tolerance, targets = 0.0, (problem.targets - centre) / spread
    for new, round_ in ((candidates[i], round_) for i in range(len(candidates)) for round_ in problem.rounds):
        columns, rows = [*selected, *new], round_.rows
        layer = scorer.layer(0, len(selected), len(columns), scorer.config.n_units)
        data = X[rows][:, columns], layer, targets[rows], problem.weights[rows], round_.segments
        penalties = scorer.penalties(len(selected), round_.training_weight(problem.weights))
        tolerance = max(tolerance, spread * layer_tolerance(*data, penalties, dtype))
    smallest = float(scorer.add_losses(selected, candidates).means.min())  # a hinge loss may be zero
    before, ssfn.BLOCK_ROWS = ssfn.BLOCK_ROWS, draws.any_of("rows of a block", 10**6, 10**6, 7, 40)
    try:
        scorer = test_ssfn_scorer.bind(problem, dtype, **options)
        found = test_ssfn_scorer.difference_from_twin(scorer, selected, candidates)
    finally:
        ssfn.BLOCK_ROWS = before
    if smallest > 0:
        yield Check("add_losses", 1 + found, 1.0, loss_tolerance(problem, tolerance, smallest))


def kernels(draws: Draws) -> Iterator[Check]:
    """The kernel predictor's scorer: folds from one factorisation, landmarks, and columns taken away."""
    problem = random_problem(draws)
    if problem is None:
        return
    dtype, (selected, candidates) = draws.any_of("dtype", "float64", "float32"), random_selection(draws)
    options = {
        "landmarks": draws.any_of("landmarks", None, None, 5, 20), "clip": draws.any_of("clip", 1.0, 4.0, None),
        "ridge": draws.any_of("ridge", 1e-4, 1e-3, 0.01, 0.1),
    }  # fmt: skip
    scorer, exact = (test_kernel.bind(problem, precision, **options) for precision in (dtype, "float64"))
    smallest = float(exact.add_losses(selected, candidates).means.min())
    tolerance = max(kernel_tolerance(scorer, [*selected, *candidates[i]]) for i in range(len(candidates)))
    difference = test_kernel.difference_from_twin(scorer, selected, candidates)
    if smallest > 0:
        yield Check("add_losses", 1 + difference, 1.0, loss_tolerance(problem, tolerance, smallest))
    leaving = ColumnSets.singles(selected)
    expected = Scorer.drop_losses(exact, selected, leaving).means
    smallest = float(expected.min(initial=np.inf))
    if len(selected) > 1 and smallest > 0:
        rest = [np.setdiff1d(selected, column) for column in selected]
        tolerance = len(selected) * max(kernel_tolerance(scorer, columns) for columns in rest)
        found = scorer.drop_losses(selected, leaving).means / expected
        yield Check("drop_losses", found, np.ones(len(found)), loss_tolerance(problem, tolerance, smallest))


def kernel_tolerance(scorer: KernelScorer, columns: Sequence[int] | IntArray) -> float:
    """How far predictions of kernel ridge regressions may be apart."""
    problem, landmarks = scorer.problem, scorer.config.landmarks
    X, centre, _ = test_kernel.scaled_by_hand(problem, scorer.config.clip)
    eps, largest = float(np.finfo(scorer.algebra.dtype).eps), 0.0
    for part, round_ in zip(scorer.parts, problem.rounds, strict=True):
        training = part.rows[: part.n_training]
        inputs, weights = X[training][:, columns], problem.weights[training]
        ridge = scorer.ridge * round_.training_weight(problem.weights)
        values = test_kernel.kernel_by_hand(inputs, inputs)
        matrix = values + np.diag(ridge / weights)
        scales = np.sqrt(np.diag(matrix))
        smallest = float(np.linalg.eigvalsh(matrix / scales / scales[:, None])[0])
        growth = eps * sqrt(len(values)) / max(smallest, 1e-100)
        places = scorer._landmarks(training, landmarks)
        if places is not None:
            own = values[np.ix_(places, places)] + jitter(0, len(places), scorer.algebra.dtype) * np.eye(len(places))
            growth /= sqrt(max(float(np.linalg.eigvalsh(own)[0]), 1e-100))
            # The twin solves for the functions themselves, and leaves out what comes near to its rounding errors.
            rows = np.column_stack([values[:, places], np.ones(len(values))])
            penalty = np.pad(ridge * own, (0, 1))
            growth += 1e-14 * np.prod(condition(rows, weights, penalty)) * np.sqrt(weights.sum())
        largest = max(largest, growth)
    return float(SLACK * largest * np.abs(problem.targets - centre).max())


KINDS: tuple[Callable[[Draws], Iterator[Check]], ...] = (
    layers, ssfns, layers, kernels, layers, ridges, screens, layers, perceptrons, gathers,
)  # fmt: skip


@dataclass
class Count:
    """What was compared in the cases of a kind."""

    cases: int = 0
    results: int = 0
    loose: int = 0  # of the results
    closest: float = 0.0  # largest difference, divided by what is allowed

    def add(self, check: Check) -> None:
        self.results += 1
        self.loose += check.is_loose
        if check.tolerance and not check.is_loose:
            self.closest = max(self.closest, check.difference / check.tolerance)


def run(first: int, n_cases: int, only: str = "") -> list[str]:
    """Run some cases, print how many there were of each kind, and return those that failed."""
    failures: list[str] = []
    counts: dict[str, Count] = defaultdict(Count)
    for number in range(first, first + n_cases):
        kind, draws = KINDS[number % len(KINDS)], Draws(number)
        if only not in kind.__name__:
            continue
        found, count = [], counts[kind.__name__]
        count.cases += 1
        try:
            for check in kind(draws):
                count.add(check)
                if check.fails:
                    found.append(f"{check.what} is {check.difference:.3g} apart, {check.tolerance:.3g} is allowed")
        except Exception:
            found.append(traceback.format_exc())
        failures += [f"case {number}, {kind.__name__}: {each}; {draws.chosen}" for each in found]
    _kernels.use("")
    for name, count in sorted(counts.items()):
        print(
            f"{name:11} {count.cases:5} cases, {count.results:5} results, {count.loose:4} without a certain digit; "
            f"differences are up to {count.closest:.2f} of what is allowed"
        )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the compiled kernels with their plain twins in random cases.")
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--only", default="", help="a single kind of cases: " + ", ".join(sorted({kind.__name__ for kind in KINDS}))
    )
    options = parser.parse_args()
    with threadpool_limits(1):  # more are slow on matrices this small
        failures = run(options.first, options.cases, options.only)
    print("\n".join(failures))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
