"""Any scikit-learn estimator as a predictor: retrained for every candidate, as plainly as it sounds."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.parallel import chunk_length, run_tasks
from ngp.predictors.base import ColumnSets, Losses, Predictor, Scorer

__all__ = ["Estimator", "resolve_scoring"]

# Largest number of numbers in the columns and predictions of one task.
CHUNK_NUMBERS = 2**22

# A warning's text with its numbers left out, its category, and what `warnings.warn_explicit` needs to show it.
Warned = dict[tuple[str, type[Warning]], tuple[str, type[Warning], str, int]]


class Estimator(Predictor, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier or regressor, pipelines included, as the predictor of a pursuit.

    A bare estimator given as `predictor` is wrapped in this by itself. A clone is fitted for every candidate and
    split; the estimator itself stays as it is. Clones get the columns in double precision, and the targets as the
    user gave them. Fits run in ``n_jobs`` processes, or as ``joblib.parallel_config`` says.

    Parameters
    ----------
    estimator : object
        The estimator. Every ``random_state`` that is None, also in the steps of a pipeline, is set to a number that
        depends on the pursuit's seed alone: one seed, one answer, and candidates differ by worth, not by luck.
    scoring : str, callable or None, default=None
        A scikit-learn scorer that judges the estimator instead of the selector's `loss`. What counts as the loss is
        one minus the score, or minus the score where that is a loss with its sign turned (``"neg_log_loss"``). With
        None, classes are judged by ``predict_proba`` where the estimator has it, otherwise by the predicted class.

    Notes
    -----
    Estimators that warn tend to do so in every fit. Each message is shown once in each step of the pursuit; messages
    that differ only in their numbers count as the same.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from ngp import NeuralGreedyPursuit
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> predictor = Estimator(GaussianNB(), scoring="roc_auc")
    >>> selector = NeuralGreedyPursuit(predictor, n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.order_
    array([22, 27])
    """

    def __init__(self, estimator: Any, scoring: str | Callable[..., float] | None = None) -> None:
        self.estimator = estimator
        self.scoring = scoring

    @property
    def name(self) -> str:  # type: ignore[override]
        """What the estimator is called in the records of a pursuit."""
        return type(self.estimator).__name__

    @property
    def classification_loss(self) -> str:  # type: ignore[override]
        """The squared error of probabilities; where there are none, the hinge loss, twice the share of errors.

        A mean of coded targets, the constant prediction, has a lower squared error than fair classes without
        probabilities, so that a pursuit would stop before its first feature.
        """
        return "squared_error" if hasattr(self.estimator, "predict_proba") else "hinge"

    def bind(
        self, problem: Problem, *, random_state: int, n_jobs: int | None = None, device: str = "auto"
    ) -> EstimatorScorer:
        """Prepare for one problem."""
        if problem.classes is None and is_classifier(self.estimator):
            raise ValueError(
                f"predictor={self.name} is a classifier, and y holds quantities: "
                "give a regressor, or task='classification' if y holds classes."
            )
        if problem.classes is not None and is_regressor(self.estimator):
            raise ValueError(
                f"predictor={self.name} is a regressor, and y holds classes: "
                "give a classifier, or task='regression' if y holds quantities."
            )
        keyword = _weight_keyword(self.estimator) if problem.is_weighted else None
        if problem.is_weighted and keyword is None:
            raise ValueError(
                f"sample_weight can't be used by {self.name}, whose fit takes none: "
                "leave it out, or give another predictor."
            )
        scoring = None if self.scoring is None else resolve_scoring(self.scoring)
        if scoring is not None and not all(len(test) for _, test in _splits(problem)):
            raise ValueError(
                "sample_weight is zero on all rows that scoring judges in a fold: use fewer folds or a loss."
            )
        return EstimatorScorer(Trainer(_with_seeds(self.estimator, random_state), keyword, scoring), problem, n_jobs)


def resolve_scoring(scoring: Any) -> Callable[..., float]:
    """Make a scorer of what the user gave."""
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring={scoring!r} is no scorer: give a name or a callable, scorer(estimator, X, y).")
    try:
        scorer: Callable[..., float] = check_scoring(scoring=scoring)
    except ValueError as error:
        if isinstance(scoring, str):
            raise ValueError(
                f"scoring={scoring!r} is unknown: sklearn.metrics.get_scorer_names() lists all names."
            ) from error
        name = getattr(scoring, "__name__", repr(scoring))
        raise ValueError(f"scoring={name} is a metric and no scorer: give make_scorer({name}).") from error
    return scorer


def _splits(problem: Problem) -> Iterator[tuple[IntArray, IntArray]]:
    """Training and validation rows of all folds of all rounds."""
    return (split for round_ in problem.rounds for split in problem.splits(round_))


def _weight_keyword(estimator: Any) -> str | None:
    """What sample weights are called in the estimator's fit, or None where it takes none."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        keyword = _weight_keyword(last)
        return None if keyword is None else f"{step}__{keyword}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _with_seeds(estimator: Any, seed: int) -> Any:
    """Return a clone in which no random_state is open."""
    copy = clone(estimator)
    settings = copy.get_params(deep=True)
    unset = sorted(name for name in settings if name.split("__")[-1] == "random_state" and settings[name] is None)
    numbers = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.int32).max, size=len(unset))
    return copy.set_params(**dict(zip(unset, numbers.tolist(), strict=True)))


@dataclass(frozen=True)
class EstimatorScorer(Scorer):
    """An `Estimator` bound to a problem (see `ngp.predictors.base.Scorer`)."""

    trainer: Trainer
    problem: Problem
    n_jobs: int | None

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate, one chunk of them a task."""
        selected = np.asarray(selected, dtype=np.intp)
        length = self._chunk_length(candidates)
        chunks = [_chunk(selected, candidates, start, start + length) for start in range(0, len(candidates), length)]
        counts = [min(length, len(candidates) - start) for start in range(0, len(candidates), length)]
        shared = self.problem, _Step(self.trainer, os.getpid(), get_config())
        with _held_back_warnings() as warned:
            results = run_tasks(_chunk_losses, chunks, self.n_jobs, shared=shared, prefer="processes", counts=counts)
        for _, elsewhere in results:
            for kind, warning in elsewhere.items():
                warned.setdefault(kind, warning)
        for warning in warned.values():
            warnings.warn_explicit(*warning)
        return Losses(np.concatenate([losses for losses, _ in results]), self._part_weights)

    def out_of_fold(self, selected: IntArray, new: IntArray) -> Sequence[AnyArray]:
        """Predictions of the rows that a fold's training left out: some folds a task."""
        columns = np.concatenate([selected, new]).astype(np.intp)
        splits = [(r, *split) for r, round_ in enumerate(self.problem.rounds) for split in self.problem.splits(round_)]
        n_tasks = min(len(splits), int(effective_n_jobs(self.n_jobs)))
        tasks = [(columns, splits[i::n_tasks]) for i in range(n_tasks)]
        shared = self.problem, _Step(self.trainer, os.getpid(), get_config())
        found = run_tasks(_split_predictions, tasks, self.n_jobs, shared=shared, prefer="processes")
        outputs = [np.zeros((self.problem.n_samples, self.problem.n_outputs)) for _ in self.problem.rounds]
        for r, test, predicted in itertools.chain(*found):
            outputs[r][test] = predicted
        return [values[round_.rows] for values, round_ in zip(outputs, self.problem.rounds, strict=True)]

    @property
    def _part_weights(self) -> FloatArray:
        """Share of each part of the validation; a scorer judges every fold as a whole."""
        if self.trainer.scoring is None:
            return self.problem.part_weights
        n_splits = sum(round_.n_folds for round_ in self.problem.rounds)
        return np.full(n_splits, 1 / n_splits)

    def constant_losses(self, problem: Problem) -> Losses:
        """Losses of the constant prediction; a scorer judges a dummy estimator, which predicts the same."""
        if self.trainer.scoring is None:
            return super().constant_losses(problem)
        dummy = DummyRegressor() if problem.classes is None else DummyClassifier(strategy="prior")
        parts = []
        for train, test in _splits(problem):
            weights = problem.weights[train] if problem.is_weighted else None
            dummy.fit(np.zeros((len(train), 1)), problem.y[train], weights)
            parts.append(self.trainer.loss(dummy, np.zeros((len(test), 1)), problem, test))
        return Losses(np.array([parts]), self._part_weights)

    def _chunk_length(self, candidates: ColumnSets) -> int:
        """Number of candidates a task: no answer depends on it."""
        numbers = self.problem.n_samples * (int(candidates.sizes.max()) + self.problem.n_outputs)
        return chunk_length(len(candidates), self.n_jobs, CHUNK_NUMBERS // numbers)

    def fit(self, selected: IntArray) -> FittedEstimator:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        rows = np.flatnonzero(self.problem.weights[: self.problem.n_fit] > 0)
        with _named_columns(self.trainer, selected):
            return self.trainer.train(self.problem, selected, rows)


def _chunk(selected: IntArray, candidates: ColumnSets, start: int, stop: int) -> tuple[IntArray, list[IntArray]]:
    """The columns that some candidates need, and sets of places among them."""
    bounds = candidates.bounds[start : stop + 1]
    columns = np.concatenate([selected, candidates.columns[bounds[0] : bounds[-1]]])
    places = np.arange(len(columns))
    known, new = np.split(places, [len(selected)])
    return columns, [np.concatenate([known, each]) for each in np.split(new, bounds[1:-1] - bounds[0])]


@dataclass(frozen=True)
class Trainer:
    """How an estimator is fitted and judged."""

    estimator: Any  # never fitted itself
    weight_keyword: str | None  # what sample weights are called in its fit; None where there are none
    scoring: Callable[..., float] | None  # what judges it; None for the problem's loss

    def train(self, problem: Problem, columns: IntArray, rows: IntArray) -> FittedEstimator:
        """Fit a clone on some columns and rows."""
        X = np.ascontiguousarray(problem.columns(columns, rows).T)
        weights = {} if self.weight_keyword is None else {self.weight_keyword: problem.weights[rows]}
        return FittedEstimator(columns, clone(self.estimator).fit(X, problem.y[rows], **weights), problem.classes)

    def loss(self, fitted: Any, X: AnyArray, problem: Problem, rows: IntArray) -> float:
        """The best score, which is 1, minus the score; if the best is 0 ("neg_log_loss"), the negative score."""
        assert self.scoring is not None
        weights = {"sample_weight": problem.weights[rows]} if problem.is_weighted else {}
        score = float(self.scoring(fitted, X, problem.y[rows], **weights))
        return -score if getattr(self.scoring, "_sign", 1) < 0 else 1 - score


@dataclass(frozen=True)
class FittedEstimator:
    """A fitted estimator that picks its columns (see `ngp.predictors.base.FittedPredictor`)."""

    columns: IntArray
    estimator: Any
    classes: AnyArray | None

    def inputs(self, X: AnyArray) -> FloatArray:
        """The estimator's columns of X."""
        return np.array(X[:, self.columns], dtype=np.float64, order="C")

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        X = self.inputs(X)
        if self.classes is None:
            return np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(len(X), -1)
        if hasattr(self.estimator, "predict_proba"):
            coded = np.zeros((len(X), len(self.classes)))
            known = getattr(self.estimator, "classes_", self.classes)  # a fold may lack a class
            coded[:, np.searchsorted(self.classes, known)] = self.estimator.predict_proba(X)
        else:
            coded = (np.ravel(self.estimator.predict(X))[:, None] == self.classes).astype(np.float64)
        return coded[:, 1:] if len(self.classes) == 2 else coded


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need."""

    trainer: Trainer  # what fits
    home: int  # the process that asks
    settings: dict[str, Any]  # its configuration of scikit-learn, which no other process or thread knows


def _chunk_losses(
    problem: Problem, step: _Step, columns: IntArray, sets: Sequence[IntArray]
) -> tuple[FloatArray, Warned]:
    """Losses of sets of places among some columns in all parts, and the warnings that the caller can't see."""
    losses = _prediction_losses if step.trainer.scoring is None else _scores
    few = problem.only(columns)
    with config_context(**step.settings):
        if os.getpid() == step.home:
            return losses(step.trainer, few, columns, sets), {}
        with _held_back_warnings() as warned:
            return losses(step.trainer, few, columns, sets), warned


def _split_predictions(
    problem: Problem, step: _Step, columns: IntArray, splits: Sequence[tuple[int, IntArray, IntArray]]
) -> list[tuple[int, IntArray, FloatArray]]:
    """Round, validation rows and their predictions of a few splits; all warnings were shown when they were scored."""
    found, few = [], problem.only(columns)
    with config_context(**step.settings), _held_back_warnings():
        for r, train, test in splits:
            if len(test):
                fitted = step.trainer.train(few, np.arange(len(columns)), train)
                found.append((r, test, fitted.predict(few.array[test])))
    return found


def _prediction_losses(trainer: Trainer, problem: Problem, names: IntArray, sets: Sequence[IntArray]) -> FloatArray:
    """Losses (n_sets, n_parts) of out-of-fold predictions."""

    def predictions() -> Iterator[AnyArray]:
        places = np.zeros(problem.n_samples, dtype=np.intp)
        for round_ in problem.rounds:
            places[round_.rows] = np.arange(len(round_.rows))
            outputs = np.zeros((len(sets), len(round_.rows), problem.n_outputs))
            for train, test in problem.splits(round_):
                X = problem.array[test]
                for i, columns in enumerate(sets if len(test) else []):
                    with _named_columns(trainer, names[columns]):
                        outputs[i, places[test]] = trainer.train(problem, columns, train).predict(X)
            yield outputs

    return problem.part_losses(predictions())


def _scores(trainer: Trainer, problem: Problem, names: IntArray, sets: Sequence[IntArray]) -> FloatArray:
    """Losses (n_sets, n_splits) by the scorer."""
    losses = []
    for train, test in _splits(problem):
        X = problem.array[test]
        for columns in sets:
            with _named_columns(trainer, names[columns]):
                model = trainer.train(problem, columns, train)
                losses.append(trainer.loss(model.estimator, model.inputs(X), problem, test))
    return np.array(losses).reshape(-1, len(sets)).T


@contextmanager
def _named_columns(trainer: Trainer, names: IntArray) -> Iterator[None]:
    """Note in errors which columns an estimator was given."""
    try:
        yield
    except Exception as error:
        some = ", ".join(map(str, names[:10])) + (", …" if len(names) > 10 else "")
        error.add_note(f"This happened to {type(trainer.estimator).__name__} on the columns {some} of X.")
        raise


@contextmanager
def _held_back_warnings() -> Iterator[Warned]:
    """Keep the first warning of every kind, and show none."""
    warned: Warned = {}

    def keep(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        text = str(message)
        warned.setdefault((re.sub(r"\d[\d.e+-]*", "#", text), category), (text, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep
        yield warned
