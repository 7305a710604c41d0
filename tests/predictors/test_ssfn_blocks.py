"""An SSFN that goes through the rows in blocks says the same as one that takes all at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_cases import CANDIDATES, PROBLEMS, SELECTED, SSFN_SETTINGS, make_case

from ngp import NGPRegressor
from ngp.data.folds import Round
from ngp.data.problem import Problem
from ngp.datasets import make_artificial
from ngp.predictors import SSFN, ssfn
from ngp.predictors.ssfn import SSFNScorer, row_blocks

BLOCKED = {name: case for name, case in PROBLEMS.items() if "leave-one-out" not in name}


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **options: Any) -> SSFNScorer:
    config = SSFN(dtype=dtype, **{"n_units": 12, "n_draws": 2, **options})
    return config.bind(problem, random_state=11, n_jobs=n_jobs)


def parts(scorer: SSFNScorer) -> Any:
    return scorer.add_losses(SELECTED, CANDIDATES).parts


@settings(deadline=None)
@given(order=st.permutations(range(30)), n_used=st.integers(4, 30), most_rows=st.integers(1, 40), data=st.data())
def test_blocks_share_out_the_rows(order: list[int], n_used: int, most_rows: int, data: st.DataObject) -> None:
    inner = sorted(data.draw(st.lists(st.integers(0, n_used), min_size=3, max_size=3)))
    round_ = Round(np.array(order[:n_used]), np.array([0, *inner, n_used]))
    blocks = row_blocks(round_, most_rows)
    assert max(len(block.rows) for block in blocks) <= most_rows
    assert np.array_equal(np.sort(np.concatenate([block.places for block in blocks])), np.arange(n_used))
    for block in blocks:
        assert np.array_equal(block.rows, round_.rows[block.places])
        assert (np.diff(block.places) > 0).all()
        owner = np.searchsorted(round_.segments[1:], block.places, side="right")
        assert np.array_equal(block.segments, np.searchsorted(owner, np.arange(len(round_.segments))))
    last = [block.rows.max() for block in blocks]
    assert all(block.rows.min() > before for before, block in zip(last, blocks[1:], strict=False))


@pytest.mark.parametrize("case", BLOCKED.values(), ids=BLOCKED)
def test_blocked_losses(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case(**case)
    for dtype, bound in (("float64", 1e-10), ("float32", 1e-4)):
        expected = bind(problem, dtype).add_losses(SELECTED, CANDIDATES)
        for rows in (5, 19, 40):
            with monkeypatch.context() as patch:
                patch.setattr(ssfn, "BLOCK_ROWS", rows)
                scorer = bind(problem, dtype)
                assert any(len(blocks) > 1 for blocks in scorer._blocks)
                differences = np.abs(parts(scorer) - expected.parts) * expected.weights
            assert (differences / expected.means[:, None]).max() <= bound


@pytest.mark.parametrize("options", SSFN_SETTINGS.values(), ids=SSFN_SETTINGS)
def test_blocked_losses_of_other_networks(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = parts(bind(make_case("outputs"), **options))
    monkeypatch.setattr(ssfn, "BLOCK_ROWS", 11)
    np.testing.assert_allclose(parts(bind(make_case("outputs"), **options)), expected, rtol=1e-8)


def test_too_many_folds_for_sums_stay_in_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = parts(bind(make_case(cv="loo")))
    monkeypatch.setattr(ssfn, "BLOCK_ROWS", 11)
    several = bind(make_case(cv="loo"))
    np.testing.assert_allclose(parts(several), expected, rtol=1e-8)
    assert len(several._blocks[0]) > 1
    monkeypatch.setattr(ssfn, "CHUNK_BYTES", 48 * 2 * 8 * 14**2)
    alone = bind(make_case(cv="loo"))
    assert len(alone._blocks[0]) == 1
    np.testing.assert_array_equal(parts(alone), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_and_threads_change_no_bit(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssfn, "BLOCK_ROWS", 13)
    problem = make_case("outputs")
    expected = parts(bind(problem, dtype))
    for n_jobs, n_bytes in [(2, 2**27), (1, 10**5), (2, 10**5)]:
        monkeypatch.setattr(ssfn, "CHUNK_BYTES", n_bytes)
        np.testing.assert_array_equal(parts(bind(problem, dtype, n_jobs)), expected)


def test_any_block_size_gives_the_same_picks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = make_artificial(200, 12, random_state=0)
    selector = NGPRegressor(SSFN(n_draws=2), n_features_to_select=4, random_state=0)
    whole = selector.fit(X, y)
    order, predictions = whole.order_.tolist(), whole.predict(X)
    for rows in (23, 150):
        monkeypatch.setattr(ssfn, "BLOCK_ROWS", rows)
        monkeypatch.setattr(ssfn, "LAYER_NUMBERS", 10 * rows)
        monkeypatch.setattr(ssfn, "PREDICTED_ROWS", rows)
        assert selector.fit(X, y).order_.tolist() == order
        np.testing.assert_allclose(selector.predict(X), predictions, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"bias": False}])
@pytest.mark.parametrize("kind", ["outputs", "binary"])
def test_blocked_final_predictor(kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_case(kind, weighted=True)
    scorer = bind(problem, **options)
    size, predicted = scorer._refit_size(SELECTED), scorer.fit(SELECTED).predict(problem.X)
    monkeypatch.setattr(ssfn, "BLOCK_ROWS", 7)
    monkeypatch.setattr(ssfn, "LAYER_NUMBERS", 100)
    monkeypatch.setattr(ssfn, "PREDICTED_ROWS", 10)
    assert scorer._refit_size(SELECTED) == size
    np.testing.assert_allclose(scorer.fit(SELECTED).predict(problem.X), predicted, rtol=1e-7)


MEASURE = """
import json, sys
from pathlib import Path
import numpy as np
from ngp import NGPRegressor
from ngp.predictors import SSFN

def memory(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))

rng = np.random.default_rng(0)
X = rng.standard_normal((150_000, 4), dtype=np.float32)
y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(150_000)
warm = NGPRegressor(SSFN(refit_units=10), n_features_to_select=1, n_jobs=2, random_state=0)
warm.fit(X[:100], y[:100])
before = memory("VmRSS")
warm.fit(X, y)
warm.score(X, y)
print(json.dumps({"order": warm.order_.tolist(), "beside": memory("VmHWM") - before}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_rows() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["order"] == [0]
    # The pre-activations of eight draws alone would take more than 500 MB.
    assert result["beside"] < 300
