"""The life of selectors: fits, cuts, kills, checkpoints and copies, in any order, never change an answer.

Each selector is held against a plain fit of another one with the same parameters.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import ngp.io
from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor
from ngp.greedy.checkpoint import CheckpointError
from ngp.greedy.stopping import MaxFeatures, Plateau, RelativeImprovement
from ngp.predictors import SSFN

FAST_SSFN = SSFN(n_units=12, n_draws=1, refit_units=12)

N_SEQUENCES = int(os.environ.get("NGP_STATES", 0))  # of a long run; 0 for a few that are always the same
RULES = settings(
    max_examples=N_SEQUENCES or 3,
    derandomize=not N_SEQUENCES,
    stateful_step_count=20 if N_SEQUENCES else 6,
    suppress_health_check=list(HealthCheck),
)

# ---------------------------------------------------------------- data and parameters


@dataclass(frozen=True)
class Table:
    X: Any
    y: Any
    weights: Any = None


def tables(task: str) -> dict[str, Table]:
    """Small tables; some are alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 6))
    y: Any = 2 * X[:, 4] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=36)
    town = pd.Categorical(np.take(["a", "b", "c"], rng.integers(3, size=36)))
    others = [rng.normal(size=36), np.column_stack([y, X[:, 0]])]
    if task == "classification":
        others = [np.where(others[0] > 0, 1, 0), np.where(y < 1, "low", np.where(y < 2, "middle", "high"))]
        y = np.where(y > 1, "high", "low")
    return {
        "plain": Table(X, y),
        "weighted": Table(X, y, np.arange(36) % 3),
        "noise": Table(X, others[0]),
        "more outputs": Table(X, others[1]),
        "other rows": Table(X[::-1] + 0.5, y),
        "wide": Table(np.column_stack([X, X[:, :3] ** 2, np.ones(36)]), y),
        "sparse": Table(csr_array(X), y),
        "frame": Table(pd.DataFrame({"town": town, **{f"x {i}": X[:, i] for i in range(1, 6)}}), y),
    }


TABLES = {task: tables(task) for task in ("regression", "classification")}
ESTIMATORS = {"regression": Ridge(), "classification": GaussianNB()}
CHOICES: dict[str, list[Any]] = {
    "predictor": ["kernel", "estimator", ("several",)],
    "n_features_to_select": [2, 3, 0.5],
    "stop": ["plateau", MaxFeatures(4), Plateau(patience=2), RelativeImprovement(0.1)],
    "groups": [((0, 1), (1, 2), (3,), (4,)), ((4, 5), (2,), (0,), (1, 3))],
    "fixed": [(3,), (0, 4)],
    "cv": [3, "loo", 0.3],
    "floating": [True],
    "screen": [2],
    "p_values": ["all", None],
    "random_state": [7],
}
Settings = tuple[tuple[str, Any], ...]
some_settings = (
    st.dictionaries(st.sampled_from(sorted(CHOICES)), st.integers(0, 5), max_size=5)
    .map(lambda drawn: {name: CHOICES[name][place % len(CHOICES[name])] for name, place in drawn.items()})
    .map(lambda drawn: tuple(sorted(drawn.items())))
)
some_table = st.sampled_from(sorted(TABLES["regression"]))


@dataclass(frozen=True)
class Run:
    """What a fit is given."""

    kind: type[NeuralGreedyPursuit]
    task: str
    table: str
    settings: Settings

    @property
    def data(self) -> Table:
        return TABLES[self.task][self.table]

    @property
    def parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = {"predictor": FAST_SSFN, "random_state": 0, **dict(self.settings)}
        estimator = ESTIMATORS[self.task]
        named = {"estimator": estimator, ("several",): [FAST_SSFN, estimator]}
        return given | {"predictor": named.get(given["predictor"], given["predictor"])}

    @property
    def predicts(self) -> bool:
        return self.kind is not NeuralGreedyPursuit

    @property
    def candidates(self) -> tuple[Any, ...]:
        given, X = dict(self.settings), self.data.X
        return X.shape[1], isinstance(X, pd.DataFrame), given.get("groups"), given.get("fixed")

    def fit(self, selector: Any) -> Any:
        return selector.fit(self.data.X, self.data.y, self.data.weights)

    def cut(self, selector: Any, k: int | str) -> Any:
        return selector.cut(k, *(vars(self.data).values() if self.predicts else ()))

    def is_saved_as(self, other: Run) -> bool:
        """Whether the checkpoint of one goes on with the other."""
        mine, its = (
            ({"sparse": "plain"}.get(run.table, run.table), [each for each in run.settings if each[0] != "p_values"])
            for run in (self, other)
        )
        return mine == its


@cache
def fresh(run: Run, cuts: tuple[int | str, ...] = ()) -> Any:
    """A plain fit of a new selector, cut."""
    if cuts:
        return run.cut(fresh(run, cuts[:-1]), cuts[-1])
    return run.fit(run.kind(**run.parameters))


@cache
def n_calls(run: Run) -> int:
    """About how many functions a fit calls."""
    with counted_calls() as calls:
        run.fit(run.kind(**run.parameters))
    return calls[0]


@contextmanager
def counted_calls(last: int = 0, error: BaseException | None = None) -> Iterator[list[int]]:
    """Count the calls that the package makes or gets, and raise an error at the last one."""
    calls = [0]

    def count(frame: Any, event: str, _: Any) -> None:
        if event in ("call", "c_call") and frame.f_globals.get("__name__", "").startswith("ngp"):
            calls[0] += 1
            if calls[0] == last and error:
                raise error

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


# ---------------------------------------------------------------- what is found

MEASURED = ("chance_", "stability_")


def bits(value: Any) -> Any:
    """Something whose repr tells every bit."""
    return (value.dtype.str, value.shape, value.tolist()) if isinstance(value, np.ndarray) else value


def dense(X: Any) -> Any:
    return X.toarray() if issparse(X) else np.asarray(X)


def steps(selector: Any, but: tuple[str, ...] = ("seconds",)) -> list[str]:
    return [repr({k: bits(v) for k, v in vars(step).items() if k not in but}) for step in selector.path_]


def found(selector: Any, table: Table) -> dict[str, str]:
    """All that a fitted selector says."""
    left_out = (*MEASURED, "path_", "encoder_", "predictor_")
    answers = {name: bits(value) for name, value in vars(selector).items() if name[-1] == "_" and name not in left_out}
    answers |= {"steps": steps(selector), "names": bits(selector.get_feature_names_out())}
    answers |= {"summary": selector.summary().to_csv(), "significant": bits(selector.significant())}
    uses = {name: getattr(selector, name) for name in ("predict", "predict_proba") if hasattr(selector, name)}
    answers |= {name: bits(use(table.X)) for name, use in uses.items()}
    if uses:
        answers["score"] = selector.score(table.X, table.y, table.weights)
    return {name: repr(answer) for name, answer in answers.items()}


@cache
def expected(run: Run, cuts: tuple[int | str, ...]) -> dict[str, str]:
    return found(fresh(run, cuts), run.data)


def check_with_itself(selector: Any, data: Table, predicts: bool) -> None:
    """What a selector says in several ways is the same."""
    path, X = selector.path_, data.X
    n_columns, support = X.shape[1], selector.support_
    assert support.shape == selector.ranking_.shape == selector.feature_importances_.shape == (n_columns,)
    assert selector.n_features_in_ == n_columns
    assert selector.order_.tolist() == [step.group for step in path.kept]
    columns = selector.groups_.columns
    selected = set(selector.fixed_.tolist()).union(*(columns[group].tolist() for group in selector.order_))
    assert set(np.flatnonzero(support)) == selected
    assert len(selector.losses_) == len(path) - 1
    assert (selector.stop_reason_, selector.partial_) == (path.reason, path.partial)
    assert (selector.feature_importances_[~support] == 0).all()
    assert (selector.ranking_[support] <= max(1, len(selector.order_))).all()
    assert np.isnan(np.delete(selector.importances_, selector.order_)).all()
    assert len(selector.order_) + len(selector.fixed_) == [step for step in path if step.kept][-1].n_selected
    np.testing.assert_array_equal(dense(selector.transform(X)), dense(X)[:, support])
    names = X.columns.tolist() if isinstance(X, pd.DataFrame) else [f"x{i}" for i in range(n_columns)]
    assert selector.get_feature_names_out().tolist() == np.array(names, dtype=object)[support].tolist()
    if predicts and hasattr(selector, "predict") and not isinstance(X, pd.DataFrame):
        np.testing.assert_array_equal(selector.predict(np.where(support, dense(X), 77.0)), selector.predict(X))


# ---------------------------------------------------------------- the machine


@dataclass
class Life:
    """A selector, and what is known of it."""

    selector: Any
    run: Run  # what its next fit is given
    fitted: Run | None = None  # what its last fit was given
    cuts: tuple[int | str, ...] = ()
    whole: bool = True  # not interrupted
    output: str = "default"
    measured: frozenset[str] = frozenset()  # beside the fit

    def has_fitted(self, whole: bool) -> None:
        self.fitted, self.cuts, self.whole, self.measured = self.run, (), whole, frozenset()

    def check(self) -> None:
        assert {name for name in MEASURED if hasattr(self.selector, name)} == self.measured
        if self.fitted is None:
            for use in (self.selector.get_support, self.selector.summary, lambda: self.selector.cut(1)):
                with pytest.raises(NotFittedError):
                    use()
            return
        data = self.fitted.data
        if self.whole:
            now, then = found(self.selector, data), expected(self.fitted, self.cuts)
            names = now.keys() | then.keys()
            assert {name: (now.get(name), then.get(name)) for name in names if now.get(name) != then.get(name)} == {}
        else:
            but = ("seconds", "kept", "n_fits")
            some, all_ = steps(self.selector, but), steps(fresh(self.fitted), but)
            assert some == all_[: len(some)]
        if issparse(data.X) and self.output == "pandas":  # which scikit-learn refuses
            return
        kind = pd.DataFrame if self.output == "pandas" and isinstance(data.X, np.ndarray) else type(data.X)
        assert type(self.selector.transform(data.X)) is kind
        check_with_itself(self.selector, data, hasattr(self.selector, "predictor_"))


lives: Bundle[Life] = Bundle("lives")
some_kind = st.sampled_from([NeuralGreedyPursuit, NGPRegressor, NGPClassifier])


class Lives(RuleBasedStateMachine):
    """Several selectors, and one file for their checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.file = self.folder / "run.npz"
        self.saved: Run | None = None  # whose checkpoint it is
        self.all: list[Life] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @invariant()
    def all_are_as_they_should_be(self) -> None:
        for life in self.all:
            life.check()

    def born(self, life: Life) -> Life:
        self.all.append(life)
        return life

    @initialize(target=lives, kind=some_kind, table=some_table, settings=some_settings, fitted=st.booleans())
    def make(self, kind: type[NeuralGreedyPursuit], table: str, settings: Settings, fitted: bool) -> Life:
        run = Run(kind, "classification" if kind is NGPClassifier else "regression", table, settings)
        life = self.born(Life(kind(**run.parameters), run))
        if fitted:
            self.fit(life)
        return life

    def is_given(self, life: Life, run: Run) -> None:
        life.run = run
        life.selector.set_params(**{**run.kind().get_params(deep=False), **run.parameters})

    @rule(life=lives, table=some_table, task=st.sampled_from(sorted(TABLES)))
    def other_data(self, life: Life, table: str, task: str) -> None:
        self.is_given(life, replace(life.run, table=table, task=life.run.task if life.run.predicts else task))

    @rule(life=lives, name=st.sampled_from(sorted(CHOICES)), place=st.integers(0, 3))
    def other_parameter(self, life: Life, name: str, place: int) -> None:
        settings = dict(life.run.settings)
        settings.pop(name, None)
        if place < len(CHOICES[name]):  # else the default
            settings[name] = CHOICES[name][place]
        self.is_given(life, replace(life.run, settings=tuple(sorted(settings.items()))))

    @rule(life=lives)
    def fit(self, life: Life) -> None:
        life.run.fit(life.selector.set_params(checkpoint=None, max_time=None))
        life.has_fitted(True)

    @rule(life=lives, hurry=st.booleans())
    def go_on(self, life: Life, hurry: bool) -> None:
        """A fit with the checkpoint, whosever it is; in a hurry, it makes one step at most."""
        try:
            life.run.fit(life.selector.set_params(checkpoint=self.file, max_time=1e-9 if hurry else None))
        except CheckpointError:
            self.was_refused(life)
            return
        self.saved = life.run
        assert hurry or not life.selector.partial_
        life.has_fitted(not hurry)

    @rule(life=lives, name=st.sampled_from(sorted(CHOICES)), place=st.integers(0, 3), table=st.none() | some_table)
    def change_and_go_on(self, life: Life, name: str, place: int, table: str | None) -> None:
        """One change makes it another run: refused, unless the answer is the same."""
        self.go_on(life, hurry=True)
        if table:
            self.other_data(life, table, life.run.task)
        else:
            self.other_parameter(life, name, place)
        self.go_on(life, hurry=False)

    @rule(
        life=lives,
        percent=st.integers(0, 120),
        how=st.sampled_from([KeyboardInterrupt, KeyboardInterrupt, MemoryError, SystemExit]),
        saves=st.booleans(),
    )
    def kill(self, life: Life, percent: int, how: type[BaseException], saves: bool) -> None:
        """A fit that ends at any call of a function."""
        life.selector.set_params(checkpoint=self.file if saves else None, max_time=None)
        before = self.content
        try:
            with counted_calls(1 + percent * n_calls(life.run) // 100, how("killed")):
                life.run.fit(life.selector)
            life.has_fitted(how is not KeyboardInterrupt)
        except CheckpointError:
            self.was_refused(life)
        except how:
            pass
        if self.content != before:
            self.saved = life.run

    @property
    def content(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""

    def was_refused(self, life: Life) -> None:
        assert self.file.exists()
        assert self.saved is None or not self.saved.is_saved_as(life.run)

    @rule(how=st.sampled_from(["remove", "truncate", "leave a rest"]), percent=st.integers(0, 99))
    def spoil(self, how: str, percent: int) -> None:
        """The checkpoint is gone or damaged, or a kill has left what hasn't got its name yet."""
        if how == "leave a rest":
            (self.folder / ".ngp-0123456789abcdef").write_bytes(b"half")
        elif self.file.exists():
            content, self.saved = self.content, None
            self.file.unlink()
            if how == "truncate":
                self.file.write_bytes(content[: len(content) * percent // 100])

    @rule(target=lives, life=lives, place=st.integers(0, 9), named=st.booleans(), like_fit=st.booleans())
    def cut(self, life: Life, place: int, named: bool, like_fit: bool) -> Any:
        if life.fitted and like_fit:
            self.is_given(life, life.fitted)
        selector = life.selector
        if life.fitted:
            sizes = sorted({step.n_selected for step in selector.path_})
            choice = sorted(selector.cuts_) if named and selector.cuts_ else sizes
            k = choice[place % len(choice)]
            if life.run.candidates != life.fitted.candidates and life.run.predicts:
                with pytest.raises(ValueError, match="than in fit"):
                    life.run.cut(selector, k)
            elif life.run == life.fitted or not life.run.predicts:
                kept = life.measured - {"stability_"}
                only_adds = {step.action for step in selector.path_} <= {"start", "add"}
                before = () if only_adds else life.cuts  # of several selections of a size, the present one comes first
                other = life.run.cut(selector, k)
                n_selected = len(other.order_) + len(other.fixed_)
                assert n_selected == (selector.cuts_[k] if isinstance(k, str) else k)
                return self.born(replace(life, selector=other, cuts=(*before, k), measured=kept))
        return multiple()

    @rule(target=lives, life=lives, how=st.sampled_from(["clone", "pickle", "deepcopy", "save"]))
    def copied(self, life: Life, how: str) -> Any:
        if how == "clone":
            return self.born(Life(clone(life.selector), life.run, output=life.output))
        if how == "save":
            file = self.folder / "selector.ngp"
            if not life.fitted:
                with pytest.raises(NotFittedError):
                    ngp.io.save(life.selector, file)
                return multiple()
            ngp.io.save(life.selector, file)
            return self.born(replace(life, selector=ngp.io.load(file)))
        selector = deepcopy(life.selector) if how == "deepcopy" else pickle.loads(pickle.dumps(life.selector))
        return self.born(replace(life, selector=selector))

    @rule(life=lives, output=st.sampled_from(["default", "pandas"]))
    def set_output(self, life: Life, output: str) -> None:
        life.output = output
        life.selector.set_output(transform=output)

    @rule(life=lives, like_fit=st.booleans())
    def measure(self, life: Life, like_fit: bool) -> None:
        """What is measured beside the fit leaves it as it is."""
        if life.fitted and like_fit:
            self.is_given(life, life.fitted)
        selector, data = life.selector.set_params(max_time=None), life.run.data
        if life.fitted == life.run:
            selector.measure_stability(data.X, data.y, data.weights, n_halves=2)
            assert len(selector.measure_chance(data.X, data.y, data.weights)) == len(selector.path_)
            life.measured = frozenset(MEASURED)
        elif life.fitted and life.fitted.candidates != life.run.candidates:
            for task in (selector.measure_stability, selector.measure_chance):
                with pytest.raises(ValueError, match="than in fit"):
                    task(data.X, data.y, data.weights)


TestLives = pytest.mark.filterwarnings("ignore")(Lives.TestCase)
TestLives.settings = RULES
