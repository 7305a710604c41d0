"""An estimate says what a fit would cost, in the right order of magnitude, and leaves everything as it was."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ngp import NeuralGreedyPursuit, calibration, rehearsal
from ngp.data.groups import image_windows
from ngp.greedy.estimate import ASSUMED_STEPS, LEAST_BYTES, Estimate
from ngp.greedy.stopping import MaxColumns, MaxFeatures, Plateau
from ngp.predictors import CNN, MLP, SSFN, Kernel

FAST = SSFN(n_units=10, n_draws=1, refit_units=10)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12))
y = X[:, 3] + X[:, 0]
ROWS = np.arange(60)
PAGE = (Path(__file__).parents[1] / "docs" / "estimate.md").read_text(encoding="utf-8")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "SAMPLE_SECONDS", 0.02)


def make_selector(predictor: Any = FAST, **settings: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(predictor, **{"n_features_to_select": 3, "random_state": 0, **settings})


def n_fits_of(selector: NeuralGreedyPursuit) -> int:
    return sum(step.n_fits for step in selector.path_)


# ---------------------------------------------------------------- what it says


def test_the_selector_stays_as_it_was() -> None:
    state = np.random.RandomState(0)
    selector = make_selector(random_state=state)
    before, drawn = dict(vars(selector)), state.get_state()[2]
    selector.estimate(X, y)
    assert vars(selector) == before
    assert state.get_state()[2] == drawn
    assert not hasattr(selector, "n_features_in_")


def test_a_fitted_selector_stays_fitted() -> None:
    selector = make_selector().fit(X, y)
    before = dict(vars(selector))
    selector.estimate(X[:, :5], y)
    assert vars(selector).keys() == before.keys()
    assert all(vars(selector)[name] is value for name, value in before.items())


GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9], [10, 11]]
SETTINGS: dict[str, dict[str, Any]] = {
    "a number": {},
    "a share": {"n_features_to_select": 0.5},
    "all": {"n_features_to_select": 12},
    "fixed": {"fixed": [1, 2]},
    "fixed alone": {"fixed": [1, 2, 3]},
    "everything fixed": {"fixed": list(range(12)), "n_features_to_select": 12},
    "groups": {"groups": GROUPS},
    "screened": {"screen": 4},
    "screened lightly": {"screen": 11},
    "pairs": {"look_ahead": 2},
    "pairs of groups": {"look_ahead": 2, "groups": GROUPS},
    "screened pairs": {"look_ahead": 2, "screen": 20},
    "fewer fits": {"max_fits": 13},
    "fewer features": {"n_features_to_select": None, "stop": MaxFeatures(2)},
    "fewer columns": {"n_features_to_select": None, "stop": MaxColumns(4)},
    "hold-out": {"cv": 0.3},
    "leave one out": {"cv": "loo"},
    "a validation set": {"cv": (X[:20], y[:20])},
    "two jobs": {"n_jobs": 2},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_number_of_fits_and_steps(name: str) -> None:
    selector = make_selector(**SETTINGS[name])
    found = selector.estimate(X, y)
    selector.fit(X, y)
    assert found.n_fits == n_fits_of(selector)
    assert found.n_steps == len(found.step_seconds) == len(selector.path_) - 1
    assert found.assumption == f"every step pays, until {selector.stop_reason_}"
    assert found.seconds > sum(found.step_seconds) > 0 or not found.n_steps
    assert found.memory >= LEAST_BYTES
    assert (found.device, found.n_jobs, found.rough) == ("cpu", SETTINGS[name].get("n_jobs", 1), False)


@pytest.mark.parametrize("settings", [{"beam_width": 3, "look_ahead": 3}, {"floating": True}])
def test_number_of_fits_is_about_right_where_losses_have_a_say(settings: dict[str, Any]) -> None:
    selector = make_selector(**settings)
    found = selector.estimate(X, y)
    assert 0.5 < found.n_fits / n_fits_of(selector.fit(X, y)) < 2


@pytest.mark.usefixtures("own_time")
def test_halves_of_the_rows_cost_half_as_much() -> None:
    plain, more = (make_selector(n_resamples=number).estimate(X, y) for number in (0, 400))
    assert more.n_fits == 401 * plain.n_fits
    assert 50 * sum(plain.step_seconds) < more.seconds < 1000 * sum(plain.step_seconds) + 2 * plain.seconds


@pytest.mark.parametrize("settings", [{}, {"tol": 0.5}, {"stop": "plateau"}, {"stop": Plateau(2)}, {"max_time": 1e5}])
def test_steps_are_assumed_where_losses_decide(settings: dict[str, Any]) -> None:
    found = make_selector(n_features_to_select=None, **settings).estimate(X, y)
    assert found.n_steps == ASSUMED_STEPS
    assert found.assumption == f"{ASSUMED_STEPS} steps, since the losses decide how many there are"


def test_all_columns_are_taken_where_they_are_few() -> None:
    found = make_selector(n_features_to_select=None, tol=0.1).estimate(X[:, :4], y)
    assert (found.n_steps, found.n_fits) == (4, 10)
    assert found.assumption == "every step pays, until no candidate is left"


@pytest.mark.parametrize("number", [None, 8])
def test_time_can_be_up(number: int | None) -> None:
    found = make_selector(n_features_to_select=number, max_time=1e-9).estimate(X, y)
    assert found.n_steps == 1
    assert found.assumption.startswith("every step pays, until the time of 1e-09 seconds is up")


def test_said_in_words() -> None:
    found = Estimate(90.0, (40.0, 44.0), 2_345_000_000, 2, "this", 1200, "cuda", 1, True)
    assert str(found) == (
        "About 1 min 30 s for 2 steps with 1,200 fits (42 s a step), and about 2.3 GB of memory beside X.\n"
        "Assumed: this. Device cuda, 1 job.\n"
        "This is rough: candidates take so long that only a few were tried."
    )
    nothing = Estimate(0.5, (), 50_000_000, 0, "that", 1, "cpu", 4, False)
    assert str(nothing) == (
        "About 0.5 s for 0 steps with 1 fit, and about 50 MB of memory beside X.\nAssumed: that. Device cpu, 4 jobs."
    )


# ---------------------------------------------------------------- how large


@pytest.fixture
def own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the seconds of this process alone, whatever else the machine does."""
    monkeypatch.setattr(calibration, "perf_counter", process_time)


@pytest.mark.usefixtures("own_time")
@pytest.mark.parametrize("more", ["columns", "steps", "draws", "rows"])
def test_more_work_takes_longer(more: str) -> None:
    """Twenty times the work, and at least four times the time."""
    n_rows, n_columns, n_steps, n_draws = 100, 200, 2, 1
    table = rng.normal(size=(2000, 4000))

    def steps_seconds(factor: int) -> float:
        times = {name: factor if name == more else 1 for name in ("columns", "steps", "draws", "rows")}
        predictor = SSFN(n_draws=n_draws * times["draws"], refit_units=10)
        data = table[: n_rows * times["rows"], : n_columns * times["columns"]]
        found = make_selector(predictor, n_features_to_select=n_steps * times["steps"]).estimate(data, data[:, 0])
        return sum(found.step_seconds)

    assert steps_seconds(20) > 4 * steps_seconds(1)


@pytest.mark.usefixtures("own_time")
def test_within_a_factor_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "SAMPLE_SECONDS", 0.25)
    table = rng.normal(size=(200, 1000))
    selector = make_selector(SSFN(n_draws=2))
    found = selector.estimate(table, table[:, 0])
    begin = process_time()
    selector.fit(table, table[:, 0])
    assert found.seconds / 10 < process_time() - begin < found.seconds * 10


def test_losses_of_very_many_columns_need_memory() -> None:
    table = np.broadcast_to(rng.normal(size=(20, 1)), (20, 2_000_000))
    found = make_selector(screen=5).estimate(table, table[:, 0])
    losses = 8 * 4 * table.shape[1]
    assert losses < found.memory < 8 * losses


def test_memory_of_the_work_counts() -> None:
    table = rng.normal(size=(12_000, 4))
    layers = 20 * 12_000 * 104 * 4  # draws, rows, units, bytes
    found = make_selector(SSFN(n_draws=20, refit_units=1), n_features_to_select=1).estimate(table, table[:, 0])
    assert found.memory > layers


def test_memory_of_unknown_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_resident", lambda: None)
    monkeypatch.setattr(calibration.os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert calibration._machine_bytes() == np.inf
    assert make_selector().estimate(X, y).memory >= LEAST_BYTES


# ---------------------------------------------------------------- every predictor

PREDICTORS: dict[str, Any] = {
    "ssfn": SSFN(n_units=10, n_draws=2),
    "kernel": Kernel(),
    "mlp": pytest.param(MLP(n_units=5, epochs=2), marks=needs_torch),
    "estimator": KNeighborsRegressor(),
    "list": [FAST, Ridge()],
    "callable": lambda step: FAST if step < 3 else Ridge(),
}


@pytest.mark.parametrize("predictor", PREDICTORS.values(), ids=PREDICTORS)
def test_every_predictor(predictor: Any) -> None:
    found = make_selector(predictor).estimate(X, y)
    assert (found.n_fits, found.device) == (12 + 11 + 10, "cpu")
    assert 0 < sum(found.step_seconds) < found.seconds < 100


@needs_torch
def test_images() -> None:
    images = rng.normal(size=(40, 64))
    groups = image_windows((8, 8), 4, stride=2)
    found = make_selector(CNN(epochs=1), groups=groups, n_features_to_select=2).estimate(images, images[:, 0] > 0)
    assert found.n_fits == groups.n_groups * 2 - 1


def test_classes_weights_and_frames() -> None:
    frame = pd.DataFrame(X).assign(town=pd.Categorical(np.where(X[:, 0] > 0, "Ulm", "Kiel")))
    frame.columns = frame.columns.map(str)
    weights, groups = rng.uniform(size=60), np.repeat(np.arange(6), 10)
    selector = make_selector(KNeighborsClassifier())
    assert selector.estimate(frame, y > 0, cv_groups=groups).n_fits == 13 + 12 + 11
    assert make_selector().estimate(frame, y > 0, weights).n_fits == 13 + 12 + 11


def test_workers_of_a_backend() -> None:
    with joblib.parallel_config(backend="loky"):
        found = make_selector(KNeighborsRegressor(), n_jobs=2).estimate(X, y)
    assert (found.n_fits, found.n_jobs) == (33, 2)


def test_a_source(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for source in (np.load(tmp_path / "x.npy", mmap_mode="r"), csc_array(X)):
        assert make_selector().estimate(source, y).n_fits == 33


# ---------------------------------------------------------------- what is slow


class Slow(KNeighborsRegressor):
    def fit(self, X: Any, y: Any) -> Any:
        Slow.n_calls += 1
        return super().fit(X, y)

    n_calls = 0


@pytest.mark.parametrize(("hopeless", "n_candidates"), [(10.0, 2), (0.0, 1)])
def test_a_slow_candidate_is_hardly_tried(hopeless: float, n_candidates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "HOPELESS_SECONDS", hopeless)
    monkeypatch.setattr(rehearsal, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(rehearsal, "LARGER_SECONDS", 0.0)
    monkeypatch.setattr(rehearsal, "SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(rehearsal, "TRACED_SECONDS", 0.0)
    Slow.n_calls = 0
    found = make_selector(Slow()).estimate(X, y)
    assert found.rough
    assert found.n_fits == 33
    # The first, and one beside a column and that column as it is; each in five folds.
    assert Slow.n_calls == 5 * (1 if n_candidates == 1 else 3)


def test_a_part_of_the_columns_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calibration, "SCAN_SECONDS", 0.0)
    wide = rng.normal(size=(30, 1000))
    wide[:, 3] = 7
    wide[:, 900] = np.nan
    np.save(tmp_path / "x.npy", wide)
    file = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.warns(UserWarning, match=r"X has constant features, 1 of 1000 \(x3\)") as caught:
        found = make_selector(cv=3).estimate(file, wide[:, 0])
    assert caught[0].filename == __file__
    assert found.n_fits == 999 + 998 + 997
    wide[0, 0] = np.inf
    np.save(tmp_path / "gaps.npy", wide)
    with pytest.raises(ValueError, match="X has NaN or infinity in the column 'x0'"):
        make_selector(cv=3).estimate(np.load(tmp_path / "gaps.npy", mmap_mode="r"), wide[:, 1])


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"n_features_to_select": 20}, ValueError, "n_features_to_select=20 is more than the 12 features that vary"),
        ({"n_features_to_select": 0}, ValueError, "'n_features_to_select' parameter of NeuralGreedyPursuit must be"),
        ({"stop": Plateau}, TypeError, "stop=Plateau is a class"),
        ({"stop": "plateau", "cv": [(ROWS[2:], ROWS[:1])]}, ValueError, "standard_errors needs at least 2 parts"),
        ({"tol": 0.1, "stop": "plateau"}, ValueError, "tol=0.1 and stop='plateau' are two rules for one thing"),
        ({"cv": 100}, ValueError, "cv=100 folds don't fit 60 samples"),
        ({"fixed": ["age"]}, ValueError, "fixed"),
        ({"loss": "hinge"}, ValueError, "loss='hinge' is for classes"),
        ({"screen": True}, TypeError, "screen=True is no number of candidates"),
    ],
)
def test_errors_are_those_of_fit(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
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


# ---------------------------------------------------------------- the page


def test_figures_are_those_of_the_code() -> None:
    assert f"Otherwise {ASSUMED_STEPS} steps are assumed" in PAGE
    assert f"Less than {LEAST_BYTES // 10**6} MB is never named" in PAGE
