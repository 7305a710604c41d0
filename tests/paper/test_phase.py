from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ngp.paper.experiment import reproduce, run_trials
from ngp.paper.phase import ARTIFICIAL_SIZES, FIG_3, LAW_SIZES, missed_shares, phase_change
from ngp.paper.published import FNSR_CURVES, PHASE_CHANGE

DATA = ["planck", "ohm", "gravitation", "artificial"]
ARTIFICIAL = {"data": "artificial", "n_samples": 50, "n_features": 20, "first_seed": 5000, "runs": 5, "n_jobs": 1}


@pytest.mark.parametrize(
    ("rates", "change"),
    [
        ([0.3, 0.0, 0.0, 0.0], 60),
        ([0.3, 0.0, 0.1, 0.0], 80),  # what it reaches for a moment doesn't count
        ([0.3, 0.005, 0.005, 0.0], 60),  # 0.005 is low enough
        ([0.3, 0.0051, 0.0, 0.0], 70),
        ([0.0, 0.0, 0.0, 0.0], 50),
        ([0.0, 0.0, 0.0, 0.1], None),
    ],
)
def test_the_phase_changes_where_the_rate_begins_to_stay_low(rates, change):
    assert phase_change([50, 60, 70, 80], rates) == change


def test_one_missed_feature_of_two_in_a_hundred_runs_is_low_enough():
    assert phase_change([50], [float(np.mean([0.5] + 99 * [0.0]))]) == 50


@pytest.mark.parametrize("protocol", ["published", "sound"])
def test_missed_shares_depend_on_the_seed_alone(protocol):
    whole, *parts = (
        missed_shares(**ARTIFICIAL | {"first_seed": first, "runs": runs, "n_jobs": n_jobs}, protocol=protocol)["fnsr"]
        for first, runs, n_jobs in [(5000, 5, 1), (5000, 2, 2), (5002, 3, 2)]
    )
    assert whole == [*parts[0], *parts[1]]
    assert len(set(whole)) > 1  # a seed has a say


def test_further_rows_that_choose_help_the_artificial_data():
    published, sound = (missed_shares(**ARTIFICIAL, protocol=protocol)["fnsr"] for protocol in ("published", "sound"))
    assert np.mean(published) < np.mean(sound)


def test_every_run_is_in_one_trial_of_each_size():
    plan = FIG_3.plan("sound", runs=25, seed=7)
    seeds = {}
    for trial in FIG_3.trials(plan):
        asked = trial.parameters
        block = range(asked["first_seed"], asked["first_seed"] + asked["runs"])
        seeds.setdefault((asked["data"], asked["n_samples"]), []).extend(block)
        assert asked["n_features"] == (500 if asked["data"] == "artificial" else 10)
    laws = [(data, size) for data in DATA[:3] for size in LAW_SIZES]
    assert set(seeds) == {*laws, *(("artificial", size) for size in ARTIFICIAL_SIZES)}
    assert all(found == list(plan.seeds) for found in seeds.values())


@pytest.fixture(scope="module", params=["published", "sound"])
def tiny(request, tmp_path_factory):
    plan = FIG_3.plan(request.param, "tiny", seed=5000)
    store = tmp_path_factory.mktemp("fig3") / "trials.jsonl"
    return plan, run_trials(FIG_3.trials(plan), store)


def test_the_table_has_a_row_for_each_data_set(tiny):
    plan, records = tiny
    table = FIG_3.table(plan, records)
    assert [labels for labels, _ in table.rows] == [[data] for data in DATA]
    for [data], cells in table.rows:
        assert cells["phase_change"].published == PHASE_CHANGE[data]
        assert cells["fnsr_at_50"].published == FNSR_CURVES[data][0]
        assert cells["same_rule"].mean > PHASE_CHANGE[data]  # the authors' curves rise again behind their thresholds
        assert 0 <= cells["fnsr_at_50"].mean <= 1
        assert cells["runs"].mean == plan.runs
        assert cells["features"].mean == (20 if data == "artificial" else 10)
    assert "features" in table.to_markdown()


def test_fewer_features_are_missed_with_more_samples(tiny):
    plan, records = tiny
    rates = {tuple(labels): cells["fnsr"].mean for labels, cells in FIG_3.curve(plan, records).rows}
    few, many = (np.mean([rates[law, size] for law in DATA[:3]]) for size in ("20", "100"))
    assert many < few or few == 0
    if plan.protocol == "sound":  # else ten rows choose, and luck has a say
        assert many < 0.05
    assert rates["artificial", "150"] < rates["artificial", "50"]
    assert len(rates) == 11


def test_without_a_phase_change_there_is_none_in_the_table(tiny):
    plan, records = tiny
    hopeless = [record | {"fnsr": [1.0] * record["runs"]} for record in records]
    table = FIG_3.table(plan, hopeless)
    assert all(np.isnan(cells["phase_change"].mean) for _, cells in table.rows)
    assert f"– ({PHASE_CHANGE['ohm']})" in table.to_markdown()


def test_files_do_not_depend_on_the_number_of_processes(tmp_path):
    pytest.importorskip("matplotlib")
    plan = replace(FIG_3.plan("sound", "tiny", seed=5000), runs=1)
    written = [reproduce(FIG_3, plan, Path(tmp_path, str(n_jobs)), n_jobs=n_jobs) for n_jobs in (1, 2)]
    names = {path.name for path in written[0]}
    assert names == {f"fig3-sound{ending}" for ending in (".csv", "-curve.csv", ".md", ".png", ".svg")}
    for one, two in zip(*written, strict=True):
        assert one.name == two.name
        assert one.read_bytes() == two.read_bytes()
