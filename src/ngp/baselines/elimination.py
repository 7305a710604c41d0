"""Methods that begin with all features and remove the least useful step by step: drop-one-out and ROAR.

Ye and Sun, "Variable Selection via Penalized Neural Network: a Drop-Out-One Loss Approach" (ICML 2018); Hooker et al.,
"A Benchmark for Interpretability Methods in Deep Neural Networks" (2019).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, check_X_y

from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.baselines.base import Baseline, PredictorEstimator, TrainingData, column_problem
from ngp.data.encoding import ColumnEncoder, briefly_refused_gaps
from ngp.data.folds import make_rounds
from ngp.data.problem import Problem
from ngp.greedy.path import standard_error
from ngp.kernels.parallel import one_blas_thread
from ngp.predictors.base import ColumnSets, FittedPredictor
from ngp.predictors.committee import bind_predictor, resolve_predictor

__all__ = ["ROAR", "DropOneOut", "EliminationStep", "RoarCurve", "roar_curve"]


@dataclass(frozen=True)
class EliminationStep:
    """One step of an elimination."""

    features: IntArray  # the features that are in
    loss: float  # validation loss with these
    standard_error: float  # of that loss
    removed: IntArray  # features that leave in this step, the least useful first
    rises: FloatArray  # rise of the loss without each of those, alone


# Columns of each feature that is left -> validation loss of each part with all of them; mean loss without each of them.
Judge = Callable[[list[IntArray]], tuple[FloatArray, FloatArray]]


@dataclass(kw_only=True, eq=False, repr=False)
class Elimination(Baseline):
    """Base of the methods that eliminate: a subclass judges each feature among those that are left."""

    predictor: Any = "kernel"
    step: int | float = 1
    cv: Any = 5
    threshold: float | str | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "threshold": [*Baseline._parameter_constraints["threshold"], None],
        "predictor": [object],
        "step": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "cv": [object],
    }

    @abstractmethod
    def _judge(self, bind: Callable[[Problem], Any], problem: Problem, seed: int) -> Judge:
        """Make the function that judges a set of features."""

    def own_estimator(self) -> Any:
        """Make the predictor that judges the features."""
        check_is_fitted(self)
        return PredictorEstimator(self.predictor, task=self.task_, random_state=self.random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        predictor = resolve_predictor(self.predictor)
        if predictor.scoring is not None:
            raise ValueError(f"predictor={predictor.name} with scoring can't judge features here: leave scoring out.")
        problem = column_problem(data.X, data.y, predictor, task=self.task_, cv=self.cv, seed=data.seed)

        def bind(problem: Problem) -> Any:
            return bind_predictor(predictor, problem, random_state=data.seed, n_jobs=self.n_jobs, device="auto").at(1)

        numbers = np.unique(data.origin)
        features = [np.flatnonzero(data.origin == number) for number in numbers]
        # The small matrix products gain nothing from BLAS threads and pay for their waiting.
        with one_blas_thread:
            steps = list(self._eliminate(problem, self._judge(bind, problem, data.seed), features))
        removed = np.concatenate([step.removed for step in steps])
        by_feature = np.zeros(len(numbers))
        by_feature[removed] = np.maximum.accumulate(np.concatenate([step.rises for step in steps]).clip(min=0))
        self.ranking_ = np.full(data.n_features, len(numbers) + 1)
        self.ranking_[numbers[removed]] = np.arange(len(numbers), 0, -1)
        self.path_ = tuple(
            replace(step, features=numbers[step.features], removed=numbers[step.removed]) for step in steps
        )
        # Columns of a category share their feature's importance.
        sizes = [len(columns) for columns in features]
        return np.repeat(by_feature / sizes, sizes)

    def _eliminate(self, problem: Problem, judge: Judge, features: list[IntArray]) -> Iterator[EliminationStep]:
        """Remove features until none is left."""
        left, weights = np.arange(len(features)), problem.part_weights
        constant = float(problem.constant_losses @ weights)
        while len(left):
            parts, without = judge([features[i] for i in left])
            loss = float(parts @ weights)
            without = without if len(left) > 1 else np.array([constant])
            # A loss that diverges is as bad as can be: such a feature stays. Of equals the last one goes.
            order = np.lexsort([-left, np.nan_to_num(without, nan=np.inf)])[: self._n_removed(len(left))]
            error = standard_error(parts, weights) if np.count_nonzero(weights) > 1 else 0.0
            rises = np.nan_to_num(without[order] - loss, nan=0.0, posinf=0.0)
            yield EliminationStep(left, loss, error, left[order], rises)
            left = np.delete(left, order)

    def _n_removed(self, n_left: int) -> int:
        if isinstance(self.step, Integral):
            return min(int(self.step), max(1, n_left - 1))
        return max(1, int(self.step * n_left))

    def _choose(self, number: int | None) -> BoolArray:
        if number is None and self.threshold is not None:
            return super()._choose(None)
        mask: BoolArray = self.ranking_ <= (self._best_size() if number is None else number)
        return mask

    def _best_size(self) -> int:
        """Go back from the last feature, as long as one of the next three sets has a clearly lower loss.

        Much larger sets don't count: their losses are optimistic, since they were chosen from many by the same rows.
        """
        losses = np.nan_to_num([step.loss for step in self.path_], nan=np.inf)[::-1]
        errors = np.array([step.standard_error for step in self.path_])[::-1]
        chosen = 0
        while any(losses[chosen + 1 : chosen + 4] < losses[chosen] - errors[chosen]):
            chosen += 1
        return len(self.path_[-1 - chosen].features)


class DropOneOut(Elimination):
    """Begin with all features, and drop the one without which a retrained predictor loses least, again and again.

    After Ye and Sun (2018). The utility of a feature is the rise of the validation loss when it is dropped and the
    predictor is trained again. Features are eliminated until none is left; then the validation loss decides: the
    smallest set is selected that none of the next three larger sets beats by more than one standard error.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    predictor : object, default="kernel"
        The predictor that is retrained, as in `ngp.NeuralGreedyPursuit`. With kernel ridge regression, the losses
        without each feature follow quickly from the kernel with all of them.
    step : int or float, default=1
        Number of features that leave in a step, or their share of those that are left (at least one).
    cv : int, float, "loo", splitter or splits, default=5
        Validation of sets of features, as in `ngp.NeuralGreedyPursuit`.
    n_features_to_select : int, float or None, default=None
        Number or share of the features to select, those that leave last.
    threshold : float, "mean" or None, default=None
        Features with a larger importance are selected; None lets the validation loss decide.
    n_jobs : int or None, default=None
        Parallel tasks. The result doesn't depend on it.
    random_state : int, RandomState or None, default=None
        Seed of folds and of the predictor.

    Attributes
    ----------
    importances_ : float array of shape (`n_features_in_`,)
        Rise of the loss when the feature left, at least that of features that left earlier; they sum to one.
    ranking_ : int array of shape (`n_features_in_`,)
        1 for the feature that left last, and so on; constant features share the last rank.
    path_ : tuple of EliminationStep
        All steps, from all features to the last one.

    Examples
    --------
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> DropOneOut(random_state=0).fit(X, y).get_support(indices=True), truth
    (array([0, 1]), array([0, 1]))
    """

    def _judge(self, bind: Callable[[Problem], Any], problem: Problem, seed: int) -> Judge:
        scorer = bind(problem)

        def judge(sets: list[IntArray]) -> tuple[FloatArray, FloatArray]:
            candidates = ColumnSets.of(sets if len(sets) > 1 else []).with_empty()
            losses = scorer.drop_losses(np.concatenate(sets), candidates)
            return losses.parts[-1], losses.means[:-1]

        return judge


@dataclass(kw_only=True, eq=False, repr=False)
class ROAR(Elimination):
    """Begin with all features, train, remove the share that the predictor misses least, and retrain.

    The usefulness of a feature is the rise of the loss on held-out rows when its values are replaced by their mean,
    without retraining; then the least useful features leave and the predictor is trained again. That is one training a
    step and fold, where `ngp.baselines.DropOneOut` needs one for each feature, but a feature that others could replace
    looks more useful than it is. The features are eliminated until none is left.

    The other parameters and the attributes are those of `ngp.baselines.DropOneOut`.

    Parameters
    ----------
    step : int or float, default=0.1
        Number of features that leave in a step, or their share of those that are left (at least one).
    threshold : float, "mean" or None, default=0.01
        Features with a larger importance are selected: the rule of the paper. None lets the validation loss decide.
    """

    step: int | float = 0.1
    threshold: float | str | None = 0.01

    def _judge(self, bind: Callable[[Problem], Any], problem: Problem, seed: int) -> Judge:
        X = problem.array
        rounds = [
            (part, [bind(_only_rows(problem, part.training(f), seed)) for f in range(part.n_folds)])
            for part in problem.rounds
        ]

        def predictions(sets: list[IntArray]) -> Iterator[FloatArray]:
            """Of each round, with each feature at its mean and with all as they are."""
            columns = np.concatenate(sets)
            for part, scorers in rounds:
                values = np.zeros((len(sets) + 1, len(X), problem.n_outputs))
                for f, scorer in enumerate(scorers):
                    test, means = part.validation(f), X[part.training(f)].mean(axis=0)
                    values[:, test] = _with_means(scorer.fit(columns), X[test], means, [*sets, columns[:0]])
                yield values[:, part.rows]

        def judge(sets: list[IntArray]) -> tuple[FloatArray, FloatArray]:
            losses = problem.part_losses(predictions(sets))
            return losses[-1], losses[:-1] @ problem.part_weights

        return judge


def _only_rows(problem: Problem, rows: IntArray, seed: int) -> Problem:
    """The problem of some rows alone, with folds of their own."""
    X, targets, classes = problem.array[rows], problem.targets[rows], problem.classes is not None
    y = problem.y[rows] if classes else targets
    rounds = make_rounds(min(5, len(rows)), X, y, classification=classes, random_state=seed)
    return replace(problem, X=X, targets=targets, weights=problem.weights[rows], rounds=rounds, n_fit=len(rows))


def _with_means(predictor: FittedPredictor, X: AnyArray, means: FloatArray, sets: list[IntArray]) -> FloatArray:
    """Predictions (n_sets, n_rows, n_outputs) with the columns of each set replaced by their means."""
    length = max(1, 2**22 // X.size)  # sets predicted together
    pieces = []
    for start in range(0, len(sets), length):
        copies = np.repeat(X[None], len(sets[start : start + length]), axis=0)
        for copy, columns in zip(copies, sets[start:], strict=False):
            copy[:, columns] = means[columns]
        pieces.append(predictor.predict(copies.reshape(-1, X.shape[1])).reshape(len(copies), len(X), -1))
    return np.concatenate(pieces)


@dataclass(frozen=True)
class RoarCurve:
    """Rise of the validation loss as the features that a ranking puts first are removed.

    Attributes
    ----------
    shares : float array
        Shares of the features that are removed.
    n_removed : int array
        Numbers of the features that are removed.
    losses : float array
        Validation losses of predictors that are retrained on the rest.
    standard_errors : float array
        Standard errors of these losses; NaN if the validation has a single part.
    """

    shares: FloatArray
    n_removed: IntArray
    losses: FloatArray
    standard_errors: FloatArray


def roar_curve(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    importances: npt.ArrayLike,
    *,
    shares: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    predictor: Any = "kernel",
    cv: Any = 5,
    task: str = "auto",
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> RoarCurve:
    """Judge a ranking of features: remove those it puts first, retrain, and measure how much is lost.

    The better the ranking, the steeper the curve (Hooker et al., 2019).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers; a data frame may have category columns too. Rows that the ranking was not made from are best.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    importances : array-like of shape (n_features,) or a fitted selector
        Importances, or a selector with `importances_` or `feature_importances_`; of equals the first counts as more
        important.
    shares : sequence of float
        Shares of the features to remove, from 0 to 1; with 1 the prediction is constant.
    predictor, cv, task, n_jobs, random_state : object
        As in `ngp.baselines.DropOneOut`.

    Returns
    -------
    RoarCurve
        The validation loss for each share.

    Examples
    --------
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> curve = roar_curve(X, y, [5, 4, 0, 0, 0, 0, 0, 0, 0, 0], shares=(0, 0.1, 0.2), random_state=0)
    >>> curve.n_removed, bool((np.diff(curve.losses) > 0).all())
    (array([0, 1, 2]), True)
    """
    encoder = ColumnEncoder().fit(X)
    encoded = encoder.transform(X)
    with briefly_refused_gaps():
        values, targets = check_X_y(encoded, y, multi_output=True, y_numeric=False, dtype=np.float64)
    blocks = encoder.feature_groups_ or np.arange(values.shape[1])[:, None]
    order = np.argsort(-_importances(importances, len(blocks)), kind="stable")
    wanted = np.asarray(shares, dtype=np.float64)
    if wanted.ndim != 1 or not len(wanted) or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"shares={shares!r} must be numbers from 0 to 1.")
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    model = resolve_predictor(predictor)
    problem = column_problem(values, targets, model, task=task, cv=cv, seed=seed)
    n_removed = np.round(wanted * len(order)).astype(np.intp)
    scorer = bind_predictor(model, problem, random_state=seed, n_jobs=n_jobs, device="auto").at(1)
    rest = [np.concatenate([np.zeros(0, np.intp), *(blocks[i] for i in sorted(order[n:]))]) for n in n_removed]
    with one_blas_thread:
        parts = scorer.add_losses(order[:0], ColumnSets.of([columns for columns in rest if len(columns)])).parts
    constant = scorer.constant_losses(problem)
    filled, weights = np.tile(constant.parts, (len(rest), 1)), constant.weights
    filled[[len(columns) > 0 for columns in rest]] = parts
    errors = np.array([standard_error(each, weights) if len(weights) > 1 else np.nan for each in filled])
    return RoarCurve(wanted, n_removed, filled @ weights, errors)


def _importances(given: Any, n_features: int) -> FloatArray:
    for name in ("importances_", "feature_importances_"):
        given = getattr(given, name, given)
    values = np.asarray(given, dtype=np.float64)
    if values.shape != (n_features,) or not np.isfinite(values).all():
        raise ValueError(
            f"importances of shape {values.shape} must be one finite number for each of the {n_features} features of X."
        )
    return values
