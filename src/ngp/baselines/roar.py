"""ROAR, remove and retrain (Hooker et al., 2019): a curve for any ranking, and an elimination."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y
from threadpoolctl import threadpool_limits

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.baselines.base import TrainingData
from ngp.baselines.elimination import Elimination, Judgement
from ngp.data.encoding import ColumnEncoder, briefly_refused_gaps
from ngp.data.folds import make_rounds
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.path import standard_error
from ngp.predictors.base import ColumnSets, FittedPredictor, Predictor
from ngp.predictors.committee import bind_predictor, resolve_predictor

__all__ = ["ROAR", "RoarCurve", "roar_curve"]

# Numbers in the copies of the data that are predicted together.
MOST_NUMBERS = 2**22
# Folds by which a predictor settles what it leaves open.
TUNING_FOLDS = 5


@dataclass(frozen=True)
class RoarCurve:
    """How the validation loss rises as the features that a ranking puts first are removed.

    Attributes
    ----------
    shares : float array
        Shares of the features that are removed.
    n_removed : int array
        How many these are.
    losses : float array
        Validation losses of predictors that are retrained on the rest.
    standard_errors : float array
        Of these losses; NaN where the validation has a single part.
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
    """Judge a ranking of features: remove those it puts first, retrain, and see how much is lost.

    The better the ranking, the steeper the curve (Hooker et al., "A Benchmark for Interpretability Methods in Deep
    Neural Networks", 2019).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers; a data frame may hold category columns too. Best are rows that the ranking was not made from.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    importances : array-like of shape (n_features,) or a fitted selector
        The larger, the more important; of a selector its `importances_` or `feature_importances_`. Of equals the
        first count as more important.
    shares : sequence of float
        Shares of the features to remove, from 0 to 1; with 1 the prediction is constant.
    predictor : object, default="kernel"
        What is retrained, as in `ngp.NeuralGreedyPursuit`.
    cv : object, default=5
        How losses are validated, as in `ngp.NeuralGreedyPursuit`.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Parallel tasks.
    random_state : int, RandomState or None, default=None
        Seed of folds and of the predictor.

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
    problem = make_problem(
        values,
        targets,
        groups=make_groups(None, values.shape[1]),
        task=task,
        cv=cv,
        classification_loss=model.classification_loss,
        random_state=seed,
    )
    n_removed = np.round(wanted * len(order)).astype(np.intp)
    scorer = bind_predictor(model, problem, random_state=seed, n_jobs=n_jobs, device="auto").at(1)
    rest = [np.concatenate([np.zeros(0, np.intp), *(blocks[i] for i in sorted(order[n:]))]) for n in n_removed]
    with threadpool_limits(1, user_api="blas"):
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


class ROAR(Elimination):
    """Begin with all features, train, remove the share that the predictor misses least, and retrain.

    A feature's worth is the rise of the loss on rows that were held out when its values are replaced by their mean,
    without retraining; only then the least useful features leave and the predictor is trained anew. So it needs one
    training a step and fold, where `ngp.baselines.DropOneOut` needs one for each feature, but a feature that others
    could stand in for looks more useful than it is. The features are eliminated until none is left.

    Parameters
    ----------
    predictor : object, default="kernel"
        What is trained, as in `ngp.NeuralGreedyPursuit`.
    step : int or float, default=0.1
        How many features leave in a step, or which share of those that are left (at least one).
    cv : int, float, "loo", splitter or splits, default=5
        How sets of features are judged: a number of random folds, a hold-out share, leave-one-out, any scikit-learn
        splitter, or pairs of row numbers.
    n_features_to_select : int, float or None, default=None
        The last so many features, or the last share of them; None leaves the choice to `threshold`.
    threshold : float or None, default=0.01
        Features whose importance, normalised to sum one, is above this are selected: the rule of the paper. None
        leaves the choice to the validation loss, as `ngp.baselines.DropOneOut` does.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is.
    n_jobs : int or None, default=None
        Parallel tasks. The result doesn't depend on it.
    random_state : int, RandomState or None, default=None
        Seed of folds and of the predictor.

    Attributes
    ----------
    importances_ : float array of shape (`n_features_in_`,)
        The rise of the loss when a feature left, but never less than that of one that left earlier; they sum to one.
    support_ : bool array of shape (`n_features_in_`,)
        The selected features.
    ranking_ : int array of shape (`n_features_in_`,)
        1 for the feature that stayed longest, and so on; constant features come last, all alike.
    path_ : tuple of EliminationStep
        All steps, from all features to the last one.

    Examples
    --------
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(100, random_state=0)
    >>> ROAR(random_state=0).fit(X, y).get_support(indices=True), truth
    (array([0, 1]), array([0, 1]))
    """

    def __init__(
        self,
        *,
        predictor: Any = "kernel",
        step: int | float = 0.1,
        cv: Any = 5,
        n_features_to_select: int | float | None = None,
        threshold: float | None = 0.01,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            predictor=predictor,
            step=step,
            cv=cv,
            n_features_to_select=n_features_to_select,
            threshold=threshold,
            task=task,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def _judges(
        self, data: TrainingData, problem: Problem, predictor: Predictor, features: ColumnSets
    ) -> Callable[[IntArray], Judgement]:
        splits = [
            (round_.training(f), round_.validation(f)) for round_ in problem.rounds for f in range(round_.n_folds)
        ]
        trainers = [self._trainer(data, predictor, _only_rows(problem, train, data.seed)) for train, _ in splits]

        def judge(left: IntArray) -> Judgement:
            sets = [features[int(feature)] for feature in left]
            columns, X = np.concatenate(sets), problem.array
            predictions = [
                _with_means(train_on(columns), X[test], X[train].mean(axis=0), [*sets, columns[:0]])
                for train_on, (train, test) in zip(trainers, splits, strict=True)
            ]
            losses = _part_losses(problem, predictions)
            return Judgement(losses[-1], losses[:-1] @ problem.part_weights)

        return judge

    def _trainer(
        self, data: TrainingData, predictor: Predictor, problem: Problem
    ) -> Callable[[IntArray], FittedPredictor]:
        scorer = bind_predictor(predictor, problem, random_state=data.seed, n_jobs=self.n_jobs, device="auto")
        return scorer.at(1).fit


def _only_rows(problem: Problem, rows: IntArray, seed: int) -> Problem:
    """The problem of some rows alone, with folds of their own."""
    labels = problem.targets[rows] if problem.classes is None else problem.y[rows]
    n_folds = min(TUNING_FOLDS, len(rows))
    rounds = make_rounds(
        n_folds, problem.array[rows], labels, classification=problem.classes is not None, random_state=seed
    )
    return replace(
        problem,
        X=problem.array[rows],
        targets=problem.targets[rows],
        weights=problem.weights[rows],
        rounds=rounds,
        n_fit=len(rows),
    )


def _with_means(predictor: FittedPredictor, X: AnyArray, means: FloatArray, sets: Sequence[IntArray]) -> FloatArray:
    """Predictions (n_sets, n_rows, n_outputs) with the columns of each set replaced by their means."""
    length = max(1, MOST_NUMBERS // X.size)
    pieces = []
    for start in range(0, len(sets), length):
        piece = sets[start : start + length]
        copies = np.repeat(X[None], len(piece), axis=0)
        for copy, columns in zip(copies, piece, strict=True):
            copy[:, columns] = means[columns]
        pieces.append(predictor.predict(copies.reshape(-1, X.shape[1])).reshape(len(piece), len(X), -1))
    return np.concatenate(pieces)


def _part_losses(problem: Problem, predictions: Sequence[FloatArray]) -> FloatArray:
    """Losses (n_sets, n_parts) from the predictions of each split's rows."""
    remaining = iter(predictions)

    def in_fold_order() -> Iterator[FloatArray]:
        for round_ in problem.rounds:
            values = np.zeros((len(predictions[0]), len(round_.rows), problem.n_outputs))
            for f in range(round_.n_folds):
                values[:, round_.segments[f + 1] : round_.segments[f + 2]] = next(remaining)
            yield values

    return problem.part_losses(in_fold_order())
