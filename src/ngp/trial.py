"""One method on one fold of a comparison: here, or in a process that is killed when the method's time is over."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import _safe_indexing

from ngp._types import AnyArray, IntArray
from ngp.data.encoding import ColumnEncoder

__all__ = ["Trial", "Workplace", "run_fold"]


@dataclass(frozen=True, eq=False)
class Trial:
    """What all methods of a comparison have in common."""

    X: Any  # all rows and columns
    y: AnyArray  # targets of all rows
    names: list[str] | None  # names of the columns
    n_features: int  # number of columns
    folds: list[tuple[IntArray, IntArray]]  # rows that train, and rows that judge
    classes: bool  # whether y holds classes
    scoring: str  # name of the scorer
    scorer: Callable[..., float]  # A scikit-learn scorer, ``scorer(estimator, X, y)``
    predictors: dict[str, Any]  # what is trained on the selected columns: estimators by label


def run_fold(trial: Trial, selector: Any, fold: int) -> dict[str, Any]:
    """Let a method select on the training rows of a fold, and judge the selection on the others."""
    row: dict[str, Any] = {"status": "ok"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _select_and_judge(trial, clone(selector), *trial.folds[fold], row)
        except Exception as error:
            row["status"] = first_line(error)
    row["warnings"] = distinct(first_line(warning.message) for warning in caught)
    return row


def first_line(error: Any) -> str:
    """Type and first line of the message of an error or a warning."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def distinct(messages: Iterable[str]) -> list[str]:
    """Messages that differ in more than their numbers."""
    found: dict[str, str] = {}
    for message in messages:
        found.setdefault(re.sub(r"\d[\d.,e+-]*", "", message), message)
    return list(found.values())


def _select_and_judge(trial: Trial, selector: Any, train: IntArray, test: IntArray, row: dict[str, Any]) -> None:
    X, y = _safe_indexing(trial.X, train), trial.y[train]
    start = time.perf_counter()
    selector.fit(X, y)
    row["seconds"] = time.perf_counter() - start
    columns = selector.get_support(indices=True)
    row["n_selected"] = len(columns)
    row["selected"] = columns.tolist() if trial.names is None else [trial.names[i] for i in columns]
    X_test, y_test = _safe_indexing(trial.X, test), trial.y[test]
    inputs, test_inputs = _encoded(X, X_test, columns)
    failed = []
    for label, predictor in trial.predictors.items():
        try:
            if isinstance(predictor, str) and not hasattr(selector, "own_estimator"):
                row[label] = _own_score(trial, selector, X_test, y_test)
            elif (estimator := _estimator(trial, selector, predictor, len(columns))) is not None:
                row[label] = trial.scorer(estimator.fit(inputs, y), test_inputs, y_test)
        except Exception as error:
            failed.append(f"{label}: {first_line(error)}")
    if failed:
        row["status"] = "; ".join(failed)


def _encoded(X: Any, X_test: Any, columns: IntArray) -> tuple[Any, Any]:
    """Selected columns as numbers, for training and for the test."""
    if not len(columns):  # a data frame without columns may have lost its rows too
        return np.empty((X.shape[0], 0)), np.empty((X_test.shape[0], 0))
    chosen, test = _safe_indexing(X, columns, axis=1), _safe_indexing(X_test, columns, axis=1)
    encoder = ColumnEncoder().fit(chosen)
    return encoder.transform(chosen), encoder.transform(test)


def _own_score(trial: Trial, selector: Any, X: Any, y: AnyArray) -> float | None:
    """Score of a fitted selector that predicts by itself; None of one that doesn't."""
    if not hasattr(selector, "predict"):
        return None
    return trial.scorer(selector, X, y)


def _estimator(trial: Trial, selector: Any, predictor: Any, n_columns: int) -> Any:
    """What is to be trained on the selected columns; a constant where there are none."""
    estimator = selector.own_estimator() if isinstance(predictor, str) else clone(predictor)
    if estimator is None or n_columns:
        return estimator
    return DummyClassifier(strategy="prior") if trial.classes else DummyRegressor()


def _imported() -> bool:
    """Say that this module was imported."""
    return True


class Workplace:
    """Where folds are run: in this process, or, where there is a limit, in another one that can be killed."""

    def __init__(self, max_time: float | None) -> None:
        self._max_time = max_time
        self._process: ProcessPoolExecutor | None = None
        self.start_clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_process()

    def start_clock(self) -> None:
        """Begin with the next method."""
        self._left = self._max_time or 0.0
        self._end: str | None = None  # why the method was ended, and gets no further fold

    def run(self, trial: Trial, selector: Any, fold: int) -> dict[str, Any]:
        """Run a fold within what is left of the method's time (see `run_fold`)."""
        if self._max_time is None:
            return run_fold(trial, selector, fold)
        if self._end is not None:
            return {"status": self._end}
        process = self._start_process()
        start = time.perf_counter()
        try:
            row: dict[str, Any] = process.submit(run_fold, trial, selector, fold).result(timeout=self._left)
            self._left -= time.perf_counter() - start
            return row
        except TimeoutError:
            self._end = f"out of time: killed after {self._max_time:g} s"
        except BrokenProcessPool:
            self._end = "crashed: its process died"
        except Exception as error:  # what can't be sent to another process
            return {"status": first_line(error)}
        self._end_process()
        return {"status": self._end}

    def _start_process(self) -> ProcessPoolExecutor:
        """Start a process if none is there, and wait until it is ready, so that no method pays for that."""
        if self._process is None:
            self._process = ProcessPoolExecutor(max_workers=1)
            self._process.submit(_imported).result()
        return self._process

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.shutdown(kill_workers=True)
            self._process = None
