"""What the methods share that begin with all features and take the least useful away, step by step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ngp._types import BoolArray, FloatArray, IntArray
from ngp.baselines.base import SelfChoosing, TrainingData
from ngp.baselines.downstream import PredictorEstimator
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.path import standard_error
from ngp.predictors.base import ColumnSets, Predictor
from ngp.predictors.committee import PREDICTORS, resolve_predictor

__all__ = ["Elimination", "EliminationStep", "Judgement"]

# So many larger sets are looked at before a set is taken for large enough: two features may only help together.
PATIENCE = 3


@dataclass(frozen=True)
class Judgement:
    """What a set of features is worth, and each of them in it."""

    parts: FloatArray  # validation loss of the set in each part of the validation
    without: FloatArray  # validation loss without the feature


@dataclass(frozen=True)
class EliminationStep:
    """One step of an elimination."""

    features: IntArray  # the features that are in
    loss: float  # validation loss with these, and its standard error
    standard_error: float  # validation loss with these, and its standard error
    removed: IntArray  # which of them leave in this step, the least useful first
    rises: FloatArray  # by how much the loss rises without each of those, alone
    seconds: float  # duration of the step


class Elimination(SelfChoosing):
    """Base of the methods that eliminate: a subclass says what each feature is worth among those that are left.

    The importance of a feature is the rise of the loss when it left, but never less than that of a feature that left
    earlier; the last one's is the rise to the loss of the constant prediction.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfChoosing._parameter_constraints,
        "predictor": [
            StrOptions(set(PREDICTORS)),
            HasMethods("bind"),
            HasMethods(["fit", "predict"]),
            list,
            tuple,
            callable,
        ],
        "step": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "cv": [object],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        predictor: Any = "kernel",
        step: int | float = 1,
        cv: Any = 5,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.predictor = predictor
        self.step = step
        self.cv = cv
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    @abstractmethod
    def _judges(self, data: TrainingData, problem: Problem, predictor: Predictor, features: ColumnSets) -> Any:
        """Make a callable that judges a set of features, given as their numbers in ``features``."""

    def own_estimator(self) -> Any:
        """Make the predictor that judges the features."""
        check_is_fitted(self)
        return PredictorEstimator(self.predictor, task=self.task_, random_state=self.random_state)

    def _column_importances(self, data: TrainingData) -> FloatArray:
        predictor = resolve_predictor(self.predictor)
        if predictor.scoring is not None:
            raise ValueError(f"predictor={predictor.name} with scoring can't judge features here: leave scoring out.")
        problem = make_problem(
            data.X,
            data.y,
            groups=make_groups(None, data.X.shape[1]),
            task=self.task_,
            cv=self.cv,
            classification_loss=predictor.classification_loss,
            random_state=data.seed,
        )
        numbers = np.unique(data.origin)
        features = ColumnSets.of([np.flatnonzero(data.origin == number) for number in numbers])
        # The small matrix products gain nothing from BLAS threads and pay for their waiting.
        with threadpool_limits(1, user_api="blas"):
            judge = self._judges(data, problem, predictor, features)
            steps = tuple(self._eliminate(problem, judge, len(numbers)))
        self._store(steps, numbers, data.n_features)
        rises = np.maximum.accumulate(np.concatenate([step.rises for step in steps]).clip(min=0))
        by_feature = np.zeros(len(numbers))
        by_feature[np.concatenate([step.removed for step in steps])] = rises
        # Columns of a category share their feature's importance.
        return np.repeat(by_feature / features.sizes, features.sizes)

    def _eliminate(self, problem: Problem, judge: Any, n_features: int) -> Iterator[EliminationStep]:
        """Take features away until none is left."""
        left, weights = np.arange(n_features), problem.part_weights
        constant = float(problem.constant_losses() @ weights)
        while len(left):
            begin = perf_counter()
            judgement: Judgement = judge(left)
            loss = float(judgement.parts @ weights)
            without = judgement.without if len(left) > 1 else np.array([constant])
            # What diverges is as bad as can be: such a feature stays. Of equals the last one goes.
            order = np.lexsort([-left, np.nan_to_num(without, nan=np.inf)])[: self._n_removed(len(left))]
            error = standard_error(judgement.parts, weights) if np.count_nonzero(weights) > 1 else 0.0
            rises = np.nan_to_num(without[order] - loss, nan=0.0, posinf=0.0)
            yield EliminationStep(left, loss, error, left[order], rises, perf_counter() - begin)
            left = np.delete(left, order)

    def _n_removed(self, n_left: int) -> int:
        if isinstance(self.step, Integral):
            return min(int(self.step), max(1, n_left - 1))
        return max(1, int(self.step * n_left))

    def _store(self, steps: tuple[EliminationStep, ...], numbers: IntArray, n_features: int) -> None:
        """Keep the path in the numbers of all features, and what the validation loss says about where to stop."""
        self.path_ = tuple(
            EliminationStep(
                numbers[step.features], step.loss, step.standard_error, numbers[step.removed], step.rises, step.seconds
            )
            for step in steps
        )
        order = np.concatenate([step.removed for step in self.path_])
        self.ranking_ = np.full(n_features, len(order) + 1)
        self.ranking_[order] = np.arange(len(order), 0, -1)

    def _own_choice(self) -> BoolArray:
        """Go back from the last feature, as long as one of the next sets has a clearly lower loss.

        Large sets have no say: their losses are optimistic, since they were chosen from many by the same rows.
        """
        losses = np.nan_to_num([step.loss for step in self.path_], nan=np.inf)[::-1]
        errors = np.array([step.standard_error for step in self.path_])[::-1]
        chosen = 0
        while any(losses[chosen + 1 : chosen + 1 + PATIENCE] < losses[chosen] - errors[chosen]):
            chosen += 1
        return self._last_ones(len(self.path_[-1 - chosen].features))

    def _choose(self, number: int | None) -> BoolArray:
        return super()._choose(None) if number is None else self._last_ones(number)

    def _last_ones(self, number: int) -> BoolArray:
        mask: BoolArray = self.ranking_ <= number
        return mask
