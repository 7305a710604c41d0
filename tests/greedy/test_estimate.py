"""An estimate says what a fit would cost, without fitting, and leaves everything as it was."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from greedy_cases import FakeScorer, make_fake, random_loss, search_of
from scipy.sparse import csc_array
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from ngp import NeuralGreedyPursuit
from ngp.greedy import estimate, loop
from ngp.greedy.estimate import ASSUMED_STEPS, LEAST_BYTES, Estimate, estimate_pursuit
from ngp.greedy.loop import pursue
from ngp.greedy.screening import Screening
from ngp.greedy.stopping import FirstOf, MaxColumns, MaxFeatures, Plateau, RelativeImprovement, StopRule
from ngp.predictors import MLP, SSFN

FAST = SSFN(n_units=10, n_draws=1, ridge=1.0, refit_units=10)  # so that all candidates of a step are scored once
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12))
y = X[:, 3] + X[:, 0]
ROWS = np.arange(60)
NOTHING = np.zeros(0, np.intp)


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "SAMPLE_SECONDS", 0.02)


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
    monkeypatch.setattr(estimate, "SAMPLE_SECONDS", 0.3)
    return clock


FITS: dict[str, tuple[StopRule, dict[str, Any]]] = {
    "number": (MaxFeatures(4), {}),
    "columns": (MaxColumns(3), {}),
    "gain": (FirstOf([MaxFeatures(6), RelativeImprovement(0.02)]), {}),
    "floating": (MaxFeatures(3), {"floating": True}),
}


@pytest.mark.parametrize(("rule", "options"), FITS.values(), ids=FITS)
def test_the_range_contains_the_time_of_the_fit_and_takes_a_second(
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
        assert asked - begin < 1


@pytest.mark.parametrize("settings", [{"tol": 0.0}, {}, {"n_features_to_select": None}], ids=str)
def test_within_a_factor_on_real_data(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds of this process alone, whatever else the machine does."""
    monkeypatch.setattr(estimate, "perf_counter", process_time)
    monkeypatch.setattr(estimate, "SAMPLE_SECONDS", 0.3)
    table = rng.normal(size=(200, 2000))
    selector = make_selector(SSFN(n_draws=2), **settings)
    begin = process_time()
    low, high = selector.estimate(table, table[:, 0]).seconds
    asked = process_time()
    selector.fit(table, table[:, 0])
    taken = process_time() - asked
    assert low / 2 < taken < 2 * high
    assert asked - begin < 2 * taken


def test_if_candidates_are_slow_five_are_tried_and_nothing_is_fitted(clock: Clock) -> None:
    class Slower(Slow):
        def add_losses(self, selected: Any, candidates: Any) -> Any:
            self.clock.now += 10.0 * len(candidates)
            return super().add_losses(selected, candidates)

        def fit(self, selected: Any) -> None:
            raise AssertionError("it would take too long")

    fake = make_fake(50, random_loss(0))
    found = estimate_pursuit(search_of(Slower(fake.problem, fake.loss)), MaxFeatures(2), NOTHING, 0, False, 0.0)
    assert clock.now == pytest.approx(10 * (5 + 3), rel=0.01)  # and thrice the selection as it is
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
    "mlp": {"predictor": MLP(n_units=5, epochs=2)},
    "estimator": {"predictor": Ridge()},
    "callable": {"predictor": lambda step: FAST if step < 3 else Ridge()},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_number_of_fits_is_exact_if_the_number_of_features_is_given(name: str) -> None:
    selector = make_selector(**SETTINGS[name])
    found = selector.estimate(X, y)
    selector.fit(X, y)
    assert found.n_fits == sum(step.n_fits for step in selector.path_[1:])
    assert found.n_steps == len(selector.path_) - 1
    assert 0 < found.seconds[0] <= found.seconds[1]
    assert found.memory >= LEAST_BYTES
    assert found.device == "cpu"


def test_steps_are_assumed_if_losses_decide() -> None:
    for settings in [{}, {"tol": 0.5}, {"stop": "plateau"}, {"max_time": 1e5}]:
        found = make_selector(n_features_to_select=None, **settings).estimate(X, y)
        assert found.n_steps == ASSUMED_STEPS
        assert found.n_fits == sum(range(3, 13))
        assert make_selector(n_features_to_select=None, **settings).estimate(X[:, :4], y).n_fits == 10


def test_classes_frames_weights_and_sources() -> None:
    frame = pd.DataFrame(X).assign(town=pd.Categorical(np.where(X[:, 0] > 0, "Ulm", "Kiel")))
    frame.columns = frame.columns.map(str)
    assert make_selector(KNeighborsClassifier()).estimate(frame, y > 0).n_fits == 13 + 12 + 11
    assert make_selector().estimate(frame, y > 0, rng.uniform(size=60)).n_fits == 13 + 12 + 11
    assert make_selector().estimate(csc_array(X), y).n_fits == 33


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
    found = Estimate((40.0, 90.0), 2_345_000_000, 2, 1200, "cuda")
    work = "2 steps with 1,200 fits on the cuda"
    assert str(found) == f"Between 40 s and 1 min 30 s for {work}, and about 2.3 GB of memory beside X."
    found = Estimate((0.5, 1.0), 50_000_000, 1, 1, "cpu")
    assert str(found) == "Between 0.5 s and 1 s for 1 step with 1 fit on the cpu, and about 50 MB of memory beside X."


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
    assert (plain.n_fits, screened.n_fits) == (40 + 39 + 38, 15)
