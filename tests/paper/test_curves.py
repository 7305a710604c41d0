import numpy as np
import pytest

from ngp import NeuralGreedyPursuit
from ngp.greedy.stopping import MaxFeatures, RelativeImprovement
from ngp.paper.curves import ETAS, FIG_4, FIG_5, behaviour, errors_of_law, knee, nested_errors, pursue, size_by_rule
from ngp.paper.experiment import reproduce, run_trials
from ngp.paper.metrics import false_negative_rate, false_positive_rate
from ngp.paper.published import ETA_RATES, RANK_NME
from ngp.paper.regression import PublishedRule, artificial_split
from ngp.predictors import SSFN


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([-5.0, -40.0, -39.0, -38.0], 1),  # the constant prediction counts
        ([-5.0, -8.0, -40.0, -39.0], 2),
        ([-5.0, -10.0, -16.0, -21.0, -21.5], 3),
        ([-5.0, -6.0, -7.0, -8.0], 1),  # no knee at all: the first place
        ([-5.0, -6.0, -5.0], 1),
    ],
)
def test_the_knee_is_where_the_curve_bends_most(errors, expected):
    assert knee(errors) == expected


def test_two_values_have_no_knee():
    with pytest.raises(ValueError, match="at least 3"):
        knee([-5.0, -6.0])


@pytest.mark.parametrize("eta", [0.02, 0.5])
@pytest.mark.parametrize("protocol", ["published", "sound"])
def test_a_rule_keeps_of_a_finished_pursuit_what_it_would_have_selected(protocol, eta):
    split = artificial_split(protocol, 5001, n_features=12, n_rows=100)
    steps = pursue(split, 12, protocol=protocol, seed=5001, n_jobs=1)
    if protocol == "published":
        rule, cv = PublishedRule(float(np.mean(split.y_test**2)), eta), (split.X_test, split.y_test)
    else:
        rule, cv = RelativeImprovement(eta), 5
    selector = NeuralGreedyPursuit(SSFN(), stop=rule, cv=cv, random_state=5001).fit(split.X, split.y)
    order = [step.group for step in steps[1:]]
    assert order[: size_by_rule(steps, rule)] == selector.order_.tolist()
    assert 0 < len(selector.order_) < 12


def test_a_rule_that_never_stops_keeps_everything():
    steps = pursue(artificial_split("sound", 5000, 6, 60), 4, protocol="sound", seed=5000, n_jobs=1)
    assert size_by_rule(steps, MaxFeatures(5)) == 4
    assert size_by_rule(steps, MaxFeatures(2)) == 2
    assert size_by_rule(steps[:2], RelativeImprovement(100.0)) == 0  # the last step may be what stops it


def test_the_protocol_says_on_which_rows_features_are_chosen():
    split = artificial_split("sound", 5000, 8, 60)
    sound, published = (
        pursue(split, 2, protocol=protocol, seed=5000, n_jobs=1)[0].loss for protocol in ("sound", "published")
    )
    assert published == pytest.approx(np.mean((split.y_test - split.y.mean()) ** 2))
    assert sound == pytest.approx(split.y.var(), rel=0.1)
    assert sound != pytest.approx(published, rel=1e-3)


def test_nested_errors_begin_with_the_constant_prediction():
    split = artificial_split("sound", 5000, 8, 100)
    train, test = nested_errors(split, [2, 0], 5000)
    assert len(train) == len(test) == 3
    assert train[0] == pytest.approx(10 * np.log10(split.y.var() / np.mean(split.y**2)))
    assert test[0] > test[1] > test[2]
    swapped = nested_errors(split, [0, 2], 5000)[1]
    assert swapped[1] != test[1]


@pytest.fixture(scope="module", params=["published", "sound"])
def laws(request, tmp_path_factory):
    plan = FIG_4.plan(request.param, "tiny", seed=5000)
    folder = tmp_path_factory.mktemp("fig4")
    return plan, run_trials(FIG_4.trials(plan), folder / "trials.jsonl"), folder


def test_the_error_of_a_law_has_its_knee_at_the_true_number(laws):
    table = FIG_4.table(*laws[:2])
    assert [(law, cells["relevant"].mean) for [law], cells in table.rows] == [
        ("planck", 2),
        ("ohm", 2),
        ("gravitation", 3),
    ]
    for _, cells in table.rows:
        assert cells["knees"].mean == cells["runs"].mean == 2
        assert cells["nme"].mean < cells["nme_before"].mean - 15
        assert cells["nme"].mean < cells["nme_after"].mean


def test_the_curve_of_a_law_falls_to_its_true_number(laws):
    rows = {(law, int(size)): cells for (law, size), cells in FIG_4.curve(*laws[:2]).rows}
    assert len(rows) == 3 * 5  # four features, and none
    for law, true in (("planck", 2), ("ohm", 2), ("gravitation", 3)):
        errors = [rows[law, size]["test_nme"].mean for size in range(true + 1)]
        assert errors == sorted(errors, reverse=True)
        assert rows[law, true]["train_nme"].mean < rows[law, 0]["train_nme"].mean - 20


@pytest.mark.parametrize(("protocol", "n_test"), [("published", 100), ("sound", 1000)])
def test_sizes_are_those_of_the_paper(protocol, n_test):
    plan = FIG_4.plan(protocol)
    sizes = {(t.parameters["n_train"], t.parameters["n_test"], t.parameters["n_features"]) for t in FIG_4.trials(plan)}
    assert sizes == {(900, n_test, 10)}
    assert len(FIG_4.trials(plan)) == 30
    assert {(t.parameters["n_rows"], t.parameters["n_features"]) for t in FIG_5.trials(FIG_5.plan(protocol))} == {
        (300, 500)
    }


def test_trials_do_not_depend_on_the_number_of_threads():
    law = {"law": "ohm", "n_train": 40, "n_test": 20, "n_features": 4, "protocol": "sound", "seed": 5000}
    assert errors_of_law(**law, n_jobs=1) == errors_of_law(**law, n_jobs=2)
    artificial = {"n_rows": 40, "n_features": 7, "protocol": "published", "seed": 5000}
    assert behaviour(**artificial, n_jobs=1) == behaviour(**artificial, n_jobs=2)


@pytest.fixture(scope="module", params=["published", "sound"])
def ranks(request, tmp_path_factory):
    plan = FIG_5.plan(request.param, "tiny", seed=5000)
    folder = tmp_path_factory.mktemp("fig5")
    return plan, run_trials(FIG_5.trials(plan), folder / "trials.jsonl"), folder


def test_the_order_of_the_pursuit_is_better_than_others(ranks):
    rows = [cells for _, cells in FIG_5.table(*ranks[:2]).rows[:10]]
    for cells in rows[:4]:
        assert cells["test_nme"].mean < cells["random_nme"].mean
        assert cells["test_nme"].mean < cells["reversed_nme"].mean
    # The same five features in the end, but for the random weights that each gets.
    assert rows[4]["test_nme"].mean == pytest.approx(rows[4]["reversed_nme"].mean, abs=1)
    assert min(rows, key=lambda cells: cells["test_nme"].mean) is rows[4]
    assert sum(cells["knee"].mean for cells in rows) == 2
    assert "random_nme" not in rows[5]


def test_published_figures_stand_beside_ours(ranks):
    table = FIG_5.table(*ranks[:2])
    for size, (_, cells) in enumerate(table.rows[:5]):
        published = [cells[key].published for key in ("test_nme", "random_nme", "reversed_nme")]
        assert published == [RANK_NME[order][size] for order in ("ngp", "random", "reversed")]
    assert [labels for labels, _ in table.rows[10:]] == [[f"η = {eta:.2f}"] for eta in ETAS]
    for eta, (_, cells) in zip(ETAS, table.rows[10:], strict=True):
        assert (cells["fpsr"].published, cells["fnsr"].published) == ETA_RATES.get(eta, (None, None))


def test_rates_are_those_of_the_selections(ranks):
    plan, records, _ = ranks
    for number, (_, cells) in enumerate(FIG_5.table(plan, records).rows[10:]):
        selections = [record["order"][: record["sizes"][number]] for record in records]
        assert cells["fpsr"].mean == np.mean([false_positive_rate(selection, range(5)) for selection in selections])
        assert cells["fnsr"].mean == np.mean([false_negative_rate(selection, range(5)) for selection in selections])
    for record in records:
        assert record["sizes"] == sorted(record["sizes"], reverse=True)  # a stricter rule selects no more


def check_files(experiment, plan, records, folder, kinds):
    files = reproduce(experiment, plan, folder)  # from the stored trials
    stem = f"{experiment.name}-{plan.protocol}"
    assert {path.name.removeprefix(stem) for path in files} == kinds
    assert (folder / f"{stem}.png").stat().st_size > 10_000
    assert experiment.table(plan, records).to_markdown() in (folder / f"{stem}.md").read_text()


def test_figure_4_has_a_table_a_curve_and_a_picture(laws):
    pytest.importorskip("matplotlib")
    check_files(FIG_4, *laws, {".csv", "-curve.csv", ".md", ".png", ".svg"})


def test_figure_5_has_a_table_and_a_picture(ranks):
    pytest.importorskip("matplotlib")
    check_files(FIG_5, *ranks, {".csv", ".md", ".png", ".svg"})
