"""Table 2 and figures 1 and 6 at their smallest, with trials that were made up where only their form counts."""

import numpy as np
import pytest

from ngp.paper import published
from ngp.paper.digits import FIG_1, FIG_6, GAP, SHARES, TABLE_2, mosaic, overlay, shown_digits
from ngp.paper.experiment import Plan, reproduce

EXPERIMENTS = [TABLE_2, FIG_1, FIG_6]


def made_up(trial):
    """A record of a trial: the first pixels in C order, and accuracies that are easy to know again."""
    area = trial.parameters["window"] ** 2
    n_seen = 64 if trial.parameters["source"] == "digits" else 784
    counts = [round(share * n_seen) // area * area for share in SHARES]
    run = trial.parameters["seed"] % 10
    return {
        **trial.parameters,
        "pixels": list(range(counts[-1])),
        "sizes": [area] * (counts[-1] // area),
        "accuracies": [
            {
                "share": share,
                "n_pixels": n,
                "train": 0.9,
                "test": share + run / 100,
                "common": 0.5 + share * (share == 0.08),
            }
            for share, n in zip(SHARES, counts, strict=True)
        ],
    }


def red(picture):
    return picture[..., 0] > picture[..., 1] + 1e-9


def records_of(experiment, plan):
    return [made_up(trial) for trial in experiment.trials(plan)]


def test_figure_1_is_drawn_from_the_real_trial(tmp_path):
    pytest.importorskip("matplotlib")
    names = {path.name for path in reproduce(FIG_1, FIG_1.plan("published", "tiny", seed=5000), tmp_path)}
    assert names == {f"fig1-published.{kind}" for kind in ("csv", "md", "png", "svg")}


def test_tables_hold_figures_against_the_paper():
    plan = Plan("sound", "full", runs=2, seed=5000)
    rows = TABLE_2.table(plan, records_of(TABLE_2, plan)).rows
    found = {labels[0]: cells for labels, cells in rows}
    assert [labels[0] for labels, _ in rows][-4:] == ["LASSO", "RF", "BART-50", "SHAP + DeepLIFT"]
    for label, name in (("NGP + SSFN", "ngp-ssfn"), ("NGP + CNN, 4 × 4", "ngp-cnn"), ("RF", "random-forest")):
        cells = found[label]
        assert (cells["train"].published, cells["test"].published) == published.TABLE_2[name]
        assert cells["test"].mean == pytest.approx(40.5)  # two runs: 40 and 41 %
        assert cells["common"].mean == pytest.approx(50)
        assert cells["common_fewest"].mean == pytest.approx(8 + 50)
    assert found["NGP + SSFN, 4 × 4"]["test"].published is None
    assert found["NGP + SSFN, 4 × 4"]["n_pixels"].mean == 304
    assert found["RF"]["n_pixels"].mean == 314


def test_bart_which_takes_long_has_fewer_runs_and_the_table_says_so():
    plan = Plan("sound", "full", runs=7, seed=5000)
    rows = {labels[0]: cells for labels, cells in TABLE_2.table(plan, records_of(TABLE_2, plan)).rows}
    assert {label: cells["runs"].mean for label, cells in rows.items()} == dict.fromkeys(rows, 7) | {"BART-50": 5}
    assert rows["BART-50"]["test"].mean == pytest.approx(42)  # five runs: 40 to 44 %
    assert rows["SHAP + DeepLIFT"]["test"].mean == pytest.approx(43)


def test_table_of_figure_1():
    plan = Plan("sound", "full", runs=1, seed=5000)
    rows = FIG_1.table(plan, records_of(FIG_1, plan)).rows
    assert [labels[0] for labels, _ in rows] == ["8 %", "16 %", "24 %", "32 %", "40 %"]
    assert [cells["test"].mean for _, cells in rows] == pytest.approx([8, 16, 24, 32, 40])
    assert [cells["test"].published for _, cells in rows] == list(published.DIGITS_BY_SHARE.values())
    assert [cells["n_pixels"].mean for _, cells in rows] == [63, 125, 188, 251, 314]


def test_table_of_figure_6():
    plan = Plan("sound", "full", runs=1, seed=5000)
    table = FIG_6.table(plan, records_of(FIG_6, plan))
    assert len(table.rows) == 8
    for labels, cells in table.rows:
        assert [cells[f"test_{share}"].mean for share in (8, 16, 24, 32, 40)] == pytest.approx([8, 16, 24, 32, 40])
        if labels[0] == "LASSO":
            assert cells["test_40"].published == published.TABLE_2["lasso"][1]
            assert cells["test_8"].published is None


def test_what_was_not_found_is_left_open():
    plan = Plan("sound", "tiny", runs=1, seed=5000)
    records = records_of(FIG_6, plan)
    records[0]["pixels"] = []
    for each in records[0]["accuracies"]:
        each.update(n_pixels=0, train=None, test=None, common=None)
    assert np.isnan(FIG_6.table(plan, records).rows[0][1]["test_40"].mean)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    FIG_6.draw(figure, plan, records)
    assert {text.get_text() for text in figure.axes[0].texts} == {"–"}


def test_experiments_share_their_trials():
    plan = Plan("sound", "full", runs=1, seed=5000)
    keys = [{trial.key for trial in experiment.trials(plan)} for experiment in EXPERIMENTS]
    assert keys[1] < keys[0]
    assert keys[1] < keys[2]
    assert len(keys[0] & keys[2]) == 7  # all but the authors' settings and the sliding windows


def test_runs_have_seeds_that_follow():
    plan = Plan("sound", "tiny", runs=3, seed=5000)
    assert [trial.parameters["seed"] for trial in FIG_1.trials(plan)] == [5000, 5001, 5002]


@pytest.mark.parametrize(("experiment", "n_panels", "n_digits"), [(FIG_1, 1, 10), (FIG_6, 8, 5)])
def test_figures_have_a_panel_for_each_method(experiment, n_panels, n_digits):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    plan = Plan("sound", "tiny", runs=2, seed=5000)
    records = records_of(experiment, plan)
    experiment.draw(figure, plan, records)
    assert len(figure.axes) == n_panels
    for ax, first in zip(figure.axes, records[:: plan.runs], strict=True):
        (image,) = ax.images
        picture = np.asarray(image.get_array())
        assert picture.shape == (5 * (8 + GAP), n_digits * (8 + GAP), 3)
        n_red = red(picture).reshape(5, -1).sum(axis=1)
        assert n_red.tolist() == [n_digits * each["n_pixels"] for each in first["accuracies"]]
        texts = [text.get_text() for text in ax.texts]
        assert [text.split(" %")[0] for text in texts[:5]] == ["8.5", "16.5", "24.5", "32.5", "40.5"]  # means


def test_panels_are_named_after_their_methods():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    plan = Plan("sound", "full", runs=1, seed=5000)
    tiny = Plan("sound", "tiny", runs=1, seed=5000)
    FIG_6.draw(figure, tiny, records_of(FIG_6, tiny))
    assert [ax.get_title() for ax in figure.axes] == [
        labels[0] for labels, _ in FIG_6.table(tiny, records_of(FIG_6, tiny)).rows
    ]
    assert "NGP + SSFN, 4 × 4 sliding by 1" in [
        labels[0] for labels, _ in FIG_6.table(plan, records_of(FIG_6, plan)).rows
    ]


def test_red_pixels_are_the_selected_ones_and_ink_is_dark():
    rng = np.random.default_rng(0)
    image, selected = rng.uniform(size=(8, 8)), rng.uniform(size=(8, 8)) < 0.4
    picture = overlay(image, selected)
    np.testing.assert_array_equal(red(picture), selected)
    assert picture.min() >= 0
    assert picture.max() <= 1
    for part in (selected, ~selected):
        order = np.argsort(image[part])
        assert (np.diff(picture[part].sum(axis=-1)[order]) < 0).all()


def test_rows_of_a_mosaic_show_their_selections_on_all_digits():
    images, selections = shown_digits("digits"), [[0], [0, 9, 63], []]
    picture = mosaic(images, selections)
    assert picture.shape == (3 * (8 + GAP), 10 * (8 + GAP), 3)
    for i, pixels in enumerate(selections):
        for j, image in enumerate(images):
            row, col = i * (8 + GAP), j * (8 + GAP)
            shown = picture[row : row + 8, col : col + 8]
            assert np.flatnonzero(red(shown)).tolist() == pixels
            without = overlay(image, np.zeros((8, 8), dtype=bool))
            np.testing.assert_array_equal(shown[~red(shown)], without[~red(shown)])
