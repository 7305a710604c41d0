"""An estimate says what a fit would cost, without fitting, and leaves everything as it was."""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from greedy_cases import FakeScorer, make_fake, random_loss, search_of
from scipy.sparse import csc_array
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from ngp import NeuralGreedyPursuit
from ngp.greedy import estimate, loop
from ngp.greedy.estimate import LEAST_BYTES, LEAST_STEPS, USUAL_STEPS, Estimate, estimate_pursuit
from ngp.greedy.loop import pursue
from ngp.greedy.screening import Screening
from ngp.greedy.stopping import FirstOf, MaxColumns, MaxFeatures, Plateau, RelativeImprovement, StopRule
from ngp.predictors import MLP, SSFN

FAST = SSFN(n_units=10, n_draws=1, ridge=0.003, refit_units=10)  # so that all candidates of a step are scored once
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12))
y = X[:, 3] + X[:, 0]
ROWS = np.arange(60)
NOTHING = np.zeros(0, np.intp)


def make_selector(predictor: Any = FAST, **settings: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(predictor, **{"n_features_to_select": 3, "random_state": 0, **settings})


# ---------------------------------------------------------------- how long


class Clock:
    """A clock that only a scorer moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow(FakeScorer):
    """Takes 1 ms for a candidate, and 0.1 ms more for each column that is selected."""

    clock: Clock

    def add_losses(self, selected: Any, candidates: Any) -> Any:
        self.clock.now += len(candidates) * (0.001 + 0.0001 * len(selected))
        return super().add_losses(selected, candidates)

    def fit(self, selected: Any) -> None:
        self.clock.now += 0.05


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(estimate, "perf_counter", clock)
    monkeypatch.setattr(loop, "perf_counter", clock)
    monkeypatch.setattr(Slow, "clock", clock, raising=False)
    return clock


FITS: dict[str, tuple[StopRule, dict[str, Any]]] = {
    "number": (MaxFeatures(4), {}),
    "columns": (MaxColumns(3), {}),
    "gain": (FirstOf([MaxFeatures(6), RelativeImprovement(0.02)]), {}),
    "floating": (MaxFeatures(3), {"floating": True}),
}


@pytest.mark.parametrize(("rule", "options"), FITS.values(), ids=FITS)
def test_the_range_contains_the_time_of_the_fit_and_takes_a_part_of_it(
    rule: StopRule, options: dict[str, Any], clock: Clock
) -> None:
    options = dict(options)
    floating = options.pop("floating", False)
    for seed in range(3):
        luck = random_loss(seed)
        weights = np.random.default_rng(seed).exponential(size=300) ** 3
        fake = make_fake(300, lambda columns: 900 - sum(weights[list(columns)]) + 0.1 * luck(columns))  # noqa: B023
        search = search_of(Slow(fake.problem, fake.loss), **options)
        begin = clock.now
        found = estimate_pursuit(search, rule, NOTHING, 0, floating, 0.1)
        asked = clock.now
        path = pursue(search, rule, fixed=NOTHING, floating=floating)
        search.scorer.fit(path.columns)
        low, high = found.seconds
        assert low <= clock.now - asked + 0.1 <= high
        assert asked - begin < 0.2 * (clock.now - asked)


TABLES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "kernel": (200, 60, {}),
    "ssfn": (200, 1000, {}),
    "ssfn of many rows": (2500, 20, {}),
    "classes": (1100, 20, {}),
    "nothing to be found": (1100, 20, {}),
    "number": (200, 1000, {"n_features_to_select": 3}),
    "a single step": (2500, 6, {"n_features_to_select": 1}),
    "a single step, and the score of all columns": (300, 900, {"n_features_to_select": 1}),
    "tol": (200, 1000, {"tol": 0.0}),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_range_holds_on_real_data_and_takes_less_time_than_the_fit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the seconds of this process alone, whatever else the machine does."""
    n_rows, n_columns, settings = TABLES[name]
    monkeypatch.setattr(estimate, "perf_counter", process_time)
    table = np.random.default_rng(1).normal(size=(n_rows, n_columns))
    y = np.random.default_rng(2).normal(size=n_rows)
    if name != "nothing to be found":
        y = 0.5 * y + np.abs(table[:, 0]) + table[:, 1] + table[:, 2]
    if name == "classes":
        y = np.digitize(y, [0.0, 2.0])
    selector = NeuralGreedyPursuit(random_state=0, device="cpu", **settings)
    begin = process_time()
    low, high = selector.estimate(table, y).seconds
    asked = process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        selector.fit(table, y)
    taken = process_time() - asked
    assert low / 1.5 < taken < 1.5 * high  # clocks are noisy
    assert asked - begin < 0.8 * taken


def test_no_time_beyond_the_limit_is_predicted() -> None:
    table = rng.normal(size=(200, 1000))
    selector = NeuralGreedyPursuit(random_state=0, max_time=0.01)
    free, limited = (
        each.estimate(table, table[:, 0]).seconds for each in (clone(selector).set_params(max_time=None), selector)
    )
    assert limited[0] < free[0]
    assert limited[1] < free[1] / 2


def test_if_candidates_are_slow_two_are_tried_and_nothing_is_fitted(clock: Clock) -> None:
    class Slower(Slow):
        def add_losses(self, selected: Any, candidates: Any) -> Any:
            self.clock.now += 10.0 * len(candidates)
            return super().add_losses(selected, candidates)

        def fit(self, selected: Any) -> None:
            raise AssertionError("it would take too long")

    fake = make_fake(50, random_loss(0))
    found = estimate_pursuit(search_of(Slower(fake.problem, fake.loss)), MaxFeatures(2), NOTHING, 0, False, 0.0)
    assert clock.now == pytest.approx(20, rel=0.01)  # for the time, and for the memory
    assert found.seconds[0] < 10 * (50 + 49) < found.seconds[1]


# ---------------------------------------------------------------- how many fits, and how much memory

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9], [10, 11]]
SETTINGS: dict[str, dict[str, Any]] = {
    "a number": {},
    "a share": {"n_features_to_select": 0.5},
    "all": {"n_features_to_select": 12},
    "fixed": {"fixed": [1, 2]},
    "everything fixed": {"fixed": list(range(12)), "n_features_to_select": 12},
    "groups": {"groups": GROUPS},
    "screened": {"screen": 4},
    "screened, more than there are": {"screen": 20},
    "a rule": {"n_features_to_select": None, "stop": MaxFeatures(2)},
    "two jobs": {"n_jobs": 2},
    "mlp": {"predictor": MLP(n_units=5, epochs=1, n_draws=1)},
    "estimator": {"predictor": Ridge()},
    "callable": {"predictor": lambda step: FAST if step < 3 else Ridge()},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_number_of_fits_is_exact_if_the_number_of_features_is_given(name: str) -> None:
    selector = make_selector(**SETTINGS[name])
    found = selector.estimate(X, y)
    selector.fit(X, y)
    assert found.n_fits == (sum(step.n_fits for step in selector.path_[1:]),) * 2
    assert found.n_steps == (len(selector.path_) - 1,) * 2
    assert 0 < found.seconds[0] <= found.seconds[1]
    assert found.memory >= LEAST_BYTES
    assert found.device == "cpu"


def test_the_usual_steps_are_assumed_if_the_data_decide() -> None:
    least, most = USUAL_STEPS
    for settings in [{}, {"stop": "plateau"}, {"max_time": 1e5}, {"tol": 0.5}]:
        fewest = LEAST_STEPS if "tol" in settings else least
        found = make_selector(n_features_to_select=None, **settings).estimate(X, y)
        assert found.n_steps == (fewest, min(12, most))
        assert found.n_fits == (sum(range(13 - fewest, 13)), sum(range(1, 13)))
        found = make_selector(n_features_to_select=None, **settings).estimate(X[:, :4], y)
        assert (found.n_steps, found.n_fits[1]) == ((min(4, fewest), 4), 10)
    found = make_selector(n_features_to_select=8, stop="auto").estimate(X, y)  # eight at most
    assert found.n_steps == (least, 8)


def test_classes_frames_weights_and_sources() -> None:
    frame = pd.DataFrame(X).assign(town=pd.Categorical(np.where(X[:, 0] > 0, "Ulm", "Kiel")))
    frame.columns = frame.columns.map(str)
    assert make_selector(KNeighborsClassifier()).estimate(frame, y > 0).n_fits[1] == 13 + 12 + 11
    assert make_selector().estimate(frame, y > 0, rng.uniform(size=60)).n_fits[1] == 13 + 12 + 11
    assert make_selector().estimate(csc_array(X), y).n_fits[1] == 33


def test_memory_of_columns_and_of_the_work_counts() -> None:
    wide = np.broadcast_to(rng.normal(size=(20, 1)), (20, 1_000_000))
    found = make_selector(screen=5).estimate(wide, wide[:, 0])
    losses = 8 * 4 * wide.shape[1]
    assert losses < found.memory < 10 * losses
    table = rng.normal(size=(12_000, 4))
    layers = 20 * 12_000 * 104 * 4  # draws, rows, units, bytes
    found = make_selector(SSFN(n_draws=20, refit_units=1), n_features_to_select=1).estimate(table, table[:, 0])
    assert found.memory > layers


# ---------------------------------------------------------------- as a user sees it


def test_a_selector_stays_as_it_was() -> None:
    state = np.random.RandomState(0)
    selector = make_selector(random_state=state)
    before, drawn = dict(vars(selector)), state.get_state()[2]
    selector.estimate(X, y)
    assert vars(selector) == before
    assert state.get_state()[2] == drawn
    selector.fit(X, y)
    before = dict(vars(selector))
    selector.estimate(X[:, :5], y)
    assert vars(selector).keys() == before.keys()
    assert all(vars(selector)[name] is value for name, value in before.items())


def test_printed() -> None:
    found = Estimate((40.0, 90.0), 2_345_000_000, (2, 2), (1200, 1200), "cuda")
    work = "2 steps with 1,200 fits on the cuda"
    assert str(found) == f"Between 40 s and 1 min 30 s for {work}, and about 2.3 GB of memory beside X."
    found = Estimate((0.5, 1.0), 50_000_000, (1, 1), (1, 1), "cpu")
    assert str(found) == "Between 0.5 s and 1 s for 1 step with 1 fit on the cpu, and about 50 MB of memory beside X."
    found = Estimate((0.5, 5.0), 50_000_000, (5, 30), (500, 2600), "cpu")
    work = "5 to 30 steps with 500 to 2,600 fits on the cpu (as usual: how many pay, only the fit can tell)"
    assert str(found) == f"Between 0.5 s and 5 s for {work}, and about 50 MB of memory beside X."


def test_errors_are_those_of_fit() -> None:
    for settings, kind, message in [
        ({"n_features_to_select": 20}, ValueError, "n_features_to_select=20 is more than the 12 features that vary"),
        ({"n_features_to_select": 0}, ValueError, "'n_features_to_select' parameter of NeuralGreedyPursuit must be"),
        ({"tol": 0.1, "stop": "plateau"}, ValueError, "tol=0.1 and stop='plateau' are two rules for one thing"),
        ({"stop": Plateau}, ValueError, "The 'stop' parameter of NeuralGreedyPursuit must be"),
        ({"cv": 100}, ValueError, "cv=100 folds don't fit 60 samples"),
        ({"fixed": ["age"]}, ValueError, "fixed"),
    ]:
        said = []
        for method in ("estimate", "fit"):
            with pytest.raises(kind, match=message) as caught:
                getattr(make_selector(**settings), method)(X, y)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_bad_data_are_refused_as_by_fit() -> None:
    bad = X.copy()
    bad[3, 3] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make_selector().estimate(bad, y)
    with pytest.raises(ValueError, match="X has only constant columns"):
        make_selector().estimate(np.ones((60, 3)), y)


def test_screening_is_timed_too() -> None:
    fake = make_fake(40, random_loss(0))
    search = search_of(Slow(fake.problem, fake.loss), screening=Screening(5, 0))
    Slow.clock = Clock()
    plain, screened = (
        estimate_pursuit(each, MaxFeatures(3), NOTHING, 0, False, 0.0)
        for each in (search_of(Slow(fake.problem, fake.loss)), search)
    )
    assert (plain.n_fits, screened.n_fits) == ((40 + 39 + 38,) * 2, (15, 15))
