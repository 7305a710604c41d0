"""Screening: which candidates are scored exactly, and that it finds what scoring all of them finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from greedy_cases import OnStep, stop_after
from sklearn.linear_model import Ridge

from ngp import NGPRegressor
from ngp._types import AnyArray
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.datasets import make_artificial
from ngp.greedy import screening, unexplained
from ngp.greedy.screening import Screening, n_scored
from ngp.greedy.stopping import MaxFeatures
from ngp.greedy.unexplained import Unexplained, rows_read
from ngp.kernels import screening as screening_kernel
from ngp.predictors import MLP, SSFN
from ngp.predictors.base import ColumnSets

FAST = SSFN(n_draws=1, n_units=60, ridge=0.003)  # so that all candidates of a step are scored once
J, P, N, KEPT = 200, 200, 3, 20


def wide(seed: int) -> tuple[AnyArray, AnyArray]:
    """Three features that matter, the second one only where the first says so."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(J, P))
    return X, 2 * X[:, 7] + 2 * X[:, 7] * X[:, 120] + 2 * np.abs(X[:, 31]) + 0.3 * rng.normal(size=J)


def correlated(seed: int) -> tuple[AnyArray, AnyArray]:
    X, y, _ = make_artificial(J, P, random_state=seed)
    return X, y


X, Y = wide(0)


def fit(predictor: Any = FAST, X: Any = X, y: Any = Y, weights: Any = None, **settings: Any) -> NGPRegressor:
    settings = {"n_features_to_select": N, "random_state": 0, **settings}
    return NGPRegressor(predictor, **settings).fit(X, y, weights)


def problem_of(X: Any = X, y: Any = Y, groups: Any = None, **settings: Any) -> Problem:
    return make_problem(X, y, groups=make_groups(groups, X.shape[1]), **settings)


def promises(problem: Problem, selected: Any = (), seed: int = 0, n_jobs: int | None = None) -> AnyArray:
    candidates = ColumnSets.of(problem.groups.columns)
    return Screening("auto", seed, n_jobs).promises(problem, np.array(selected, dtype=np.intp), candidates)


@pytest.mark.parametrize("make", [wide, correlated])
@pytest.mark.parametrize("seed", range(2))
def test_finds_what_scoring_all_finds(make: Any, seed: int) -> None:
    X, y = make(seed)
    settings = {"X": X, "y": y, "random_state": seed, "n_features_to_select": None, "stop": MaxFeatures(N)}
    exact, screened = fit(**settings), fit(**settings, screen=KEPT)
    assert screened.order_.tolist() == exact.order_.tolist()
    for whole, few in zip(exact.path_[1:], screened.path_[1:], strict=True):
        tried = np.isfinite(few.losses)
        assert few.n_fits == tried.sum() == KEPT
        # Those that are tried are judged as they would be without screening.
        np.testing.assert_array_equal(few.losses[tried], whole.losses[tried])
        assert few.runner_up == np.flatnonzero(tried)[np.argsort(few.losses[tried])[1]]
        assert few.loss == whole.loss


def test_all_are_scored_where_there_are_no_more() -> None:
    exact = fit()
    for screen in (P, 10**6):
        np.testing.assert_array_equal(fit(screen=screen).losses_, exact.losses_)


def test_number_of_scored_candidates() -> None:
    assert n_scored(5, 100) == 5
    assert n_scored(500, 100) == 100
    numbers = [n_scored("auto", n) for n in (1, 50, 100, 101, 10_000, 1_000_000)]
    assert numbers == [1, 50, 100, 100, 1000, 10_000]
    assert fit(screen="auto", n_features_to_select=1).path_[1].n_fits == n_scored("auto", P)


@pytest.mark.parametrize(
    ("predictor", "settings"),
    [
        (Ridge(), {}),
        (MLP(epochs=1, n_draws=1, n_units=5), {}),
        (FAST, {"cv": 0.3}),
        (FAST, {"cv": "loo"}),
        (FAST, {"stop": "plateau", "n_features_to_select": None}),
    ],
    ids=["estimator", "mlp", "hold-out", "leave-one-out", "stop rule"],
)
def test_works_with_every_predictor_and_validation(predictor: Any, settings: dict[str, Any]) -> None:
    if isinstance(predictor, MLP):
        pytest.importorskip("torch")
    X, y = correlated(0)
    selector = fit(predictor, X[:, :60], y, screen=10, **settings)
    assert {step.n_fits for step in selector.path_[1:]} == {10}
    assert selector.path_[1].group in (1, 0, 2, 3, 4)
    assert np.isfinite(selector.predict(X[:, :60])).all()


def test_one_seed_gives_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of()
    expected = promises(problem, [7]).tobytes()
    assert promises(problem, [7], n_jobs=2).tobytes() == expected
    with joblib.parallel_config("loky", n_jobs=2):
        assert promises(problem, [7]).tobytes() == expected
    monkeypatch.setattr(screening, "CHUNK_NUMBERS", 7 * J)
    monkeypatch.setattr(screening, "LEAST_AT_ONCE", 1)
    assert promises(problem, [7]).tobytes() == expected
    assert promises(problem, [7], seed=1).tobytes() != expected
    order = np.random.default_rng(0).permutation(P)
    place = int(np.flatnonzero(order == 7)[0])
    np.testing.assert_array_equal(promises(problem_of(X[:, order]), [place]), promises(problem, [7])[order])


def test_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    file, whole = tmp_path / "state.npz", fit(screen=KEPT)
    settings = {"n_features_to_select": N, "random_state": 0, "checkpoint": file, "screen": KEPT}
    NGPRegressor(FAST, **settings).set_callbacks(OnStep(stop_after(2))).fit(X, Y)
    np.testing.assert_array_equal(fit(screen=KEPT, checkpoint=file).losses_, whole.losses_)
    with pytest.raises(ValueError, match="screen was 20 and is None"):
        fit(checkpoint=file)


def test_the_numpy_twin_ranks_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of()
    compiled = promises(problem, [7, 31])
    monkeypatch.setattr(screening_kernel, "_kernels", None)
    np.testing.assert_allclose(promises(problem, [7, 31]), compiled, rtol=1e-3, atol=1e-3)


def test_residuals_are_centred_and_smaller_the_more_is_selected() -> None:
    problem = problem_of(sample_weight=np.random.default_rng(0).uniform(size=J))
    rows = rows_read(problem, 0)
    sizes = []
    for selected in ([], [7], [7, 31]):
        residuals = Unexplained.of(problem, np.array(selected, dtype=np.intp), rows, 0).residuals
        assert np.average(residuals, axis=0, weights=problem.weights[rows]) == pytest.approx(0, abs=1e-12)
        sizes.append(float(problem.weights[rows] @ residuals[:, 0] ** 2))
    assert sizes[0] > 1.2 * sizes[1] > 1.2**2 * sizes[2]


def test_rows_that_only_judge_dont_count() -> None:
    problem = problem_of(cv=0.3)
    judged = ~problem.trains
    assert judged.sum() == 60
    X2, y2 = X.copy(), Y.copy()
    X2[judged] += np.random.default_rng(1).normal(size=(60, P))
    y2[judged] = problem.targets[judged, 0][::-1]  # others, of the same mean and deviation
    np.testing.assert_allclose(promises(problem_of(X2, y2, cv=0.3), [7]), promises(problem, [7]), rtol=1e-4)


def test_of_very_many_rows_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unexplained, "MOST_ROWS", 120)
    problem = problem_of()
    rows = rows_read(problem, 0)
    assert len(np.unique(rows)) == 120
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows_read(problem, 0), rows)
    assert (rows_read(problem, 1) != rows).any()
    assert 7 in np.argsort(-promises(problem))[:3]
    assert fit(screen=KEPT).order_.tolist() == fit().order_.tolist()
    changed = np.setdiff1d(np.arange(J), rows)
    X2 = X.copy()
    X2[changed] = X2[changed[::-1]]  # the same means and deviations
    np.testing.assert_allclose(promises(problem_of(X2)), promises(problem), rtol=1e-6)


def test_weights_are_repetitions() -> None:
    counts = np.random.default_rng(0).integers(0, 3, J)
    rows = np.repeat(np.arange(J), counts)
    weighted = promises(problem_of(sample_weight=counts.astype(float)))
    repeated = promises(problem_of(X[rows], Y[rows]))
    # Gains are sums over rows, of which weights don't change the number; what is due to chance is the same for all.
    rest = repeated - weighted * len(rows) / np.count_nonzero(counts)
    np.testing.assert_allclose(rest, rest[0], atol=1e-3)
    assert np.ptp(repeated) > 10


def test_groups_of_several_columns() -> None:
    groups = [[c, c + 1] for c in range(0, P - 2, 2)] + [[P - 2], [P - 1]]
    selector = fit(groups=groups, screen=KEPT)
    assert {group for step in selector.path_[1:] for group in (step.group,)} == {3, 15, 60}
    # A group of noise explains more by chance, the more columns it has; that must not count.
    noise = np.random.default_rng(3).normal(size=(J, 180))
    values = promises(problem_of(noise, Y, groups=[[c] for c in range(90)] + np.split(np.arange(90, 180), 18)))
    assert np.median(values[90:]) < np.median(values[:90]) + 3 * values[:90].std()


def test_classes_and_several_outputs() -> None:
    labels = np.digitize(X[:, 7] + X[:, 31], [-1, 1])
    assert set(fit(y=labels, screen=KEPT, n_features_to_select=2).order_) == {7, 31}
    assert set(fit(y=np.c_[X[:, 7] ** 2, X[:, 31]], screen=KEPT, n_features_to_select=2).order_) == {7, 31}


def test_costs_decide_between_columns_that_matter() -> None:
    costs = np.ones(P)
    assert fit(screen=1, n_features_to_select=1).order_.tolist() == [7]
    costs[7] = 1000.0
    assert fit(screen=1, groups=make_groups(None, P, costs=costs), n_features_to_select=1).order_.tolist() == [31]


def test_fixed_columns_are_taken_into_account() -> None:
    selector = fit(fixed=[7], screen=1, n_features_to_select=2)
    assert selector.order_.tolist() == [120]  # which says nothing without them


def test_cheap_noise_does_not_crowd_out_what_matters() -> None:
    costs = np.full(P, 0.01)
    costs[[7, 31, 120]] = 1.0
    candidates = ColumnSets.singles(np.arange(P))
    assert 7 in Screening(KEPT, 0).best(problem_of(), np.zeros(0, np.intp), candidates, costs)


def test_ties_fall_to_the_first() -> None:
    same = np.repeat(X[:, [7]], 6, axis=1)
    best = Screening(4, 0).best(problem_of(same), np.zeros(0, np.intp), ColumnSets.singles(np.arange(6)), np.ones(6))
    assert best.tolist() == [0, 1, 2, 3]


def test_true_is_no_number() -> None:
    with pytest.raises(TypeError, match="screen=True is no number of candidates: give one, 'auto' or None"):
        fit(screen=True)
