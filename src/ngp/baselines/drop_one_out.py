"""Drop-one-out loss (Ye and Sun, 2018): eliminate with a predictor that is retrained without each feature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ngp._types import IntArray
from ngp.baselines.base import TrainingData
from ngp.baselines.elimination import Elimination, Judgement
from ngp.data.problem import Problem
from ngp.predictors.base import ColumnSets, Predictor
from ngp.predictors.committee import bind_predictor

__all__ = ["DropOneOut"]


class DropOneOut(Elimination):
    """Begin with all features, and drop the one without which a retrained predictor loses least, again and again.

    After Ye and Sun, "Variable Selection via Penalized Neural Network: a Drop-Out-One Loss Approach" (ICML 2018). A
    feature's utility is how much the validation loss rises when it is dropped and the predictor is trained anew. The
    features are eliminated until none is left; the validation loss along the way says where it would have been right
    to stop: at the smallest set that none of the next three larger sets beats by more than one standard error. (Much
    larger sets have no say, as their losses are optimistic: they were chosen from many by the same rows.)

    Parameters
    ----------
    predictor : object, default="kernel"
        What is retrained, as in `ngp.NeuralGreedyPursuit`. The kernel ridge regression is a penalised network with
        infinitely many units: it holds its own where there are more features than samples, and the losses without
        each feature follow quickly from the kernel with all of them. Others are trained plainly.
    step : int or float, default=1
        How many features leave in a step, or which share of those that are left (at least one).
    cv : int, float, "loo", splitter or splits, default=5
        How sets of features are judged: a number of random folds, a hold-out share, leave-one-out, any scikit-learn
        splitter, or pairs of row numbers.
    n_features_to_select : int, float or None, default=None
        The last so many features, or the last share of them; None leaves the choice to `threshold`.
    threshold : float or None, default=None
        Features whose importance, normalised to sum one, is above this are selected; None leaves the choice to the
        validation loss.
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
    >>> DropOneOut(random_state=0).fit(X, y).get_support(indices=True), truth
    (array([0, 1]), array([0, 1]))
    """

    def _judges(
        self, data: TrainingData, problem: Problem, predictor: Predictor, features: ColumnSets
    ) -> Callable[[IntArray], Judgement]:
        scorer = bind_predictor(predictor, problem, random_state=data.seed, n_jobs=self.n_jobs, device="auto")

        def judge(left: IntArray) -> Judgement:
            sets = [features[int(feature)] for feature in left]
            candidates = ColumnSets.of(sets if len(sets) > 1 else []).with_empty()
            losses = scorer.at(1).drop_losses(np.concatenate(sets), candidates)
            return Judgement(losses.parts[-1], losses.means[:-1])

        return judge
