"""A result holds what the selector found, and survives the file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_cases as cases
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import confusion_matrix, r2_score
from sklearn.model_selection import KFold

from ngp import NeuralGreedyPursuit
from ngp.data.groups import image_windows
from ngp.greedy.path import Step
from ngp.greedy.stopping import Plateau
from ngp.predictors import Estimator
from ngp.report.result import Result


@pytest.mark.parametrize("name", cases.CASES)
def test_a_written_result_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    case = cases.CASES[name]()
    case.result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json") == case.result
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_the_stability_is_that_of_the_selector() -> None:
    case = cases.halved()
    found, stability = case.document()["stability"], case.selector.stability_
    assert found["frequencies"] == stability.frequencies.tolist()
    assert found["stable"] == stability.stable(found["threshold"]).tolist()
    assert found["expected_false"] == stability.expected_false(found["threshold"])
    assert [pair["groups"] for pair in found["stand_ins"]] == [[0, 5]]
    assert cases.regression().document()["stability"] is None


def test_every_field_of_a_step_is_in_the_path() -> None:
    assert set(cases.regression().document()["path"][0]) == {field.name for field in fields(Step)}


def test_the_answer_is_what_the_selector_says() -> None:
    case = cases.regression()
    selector, answer = case.selector, case.result.answer
    assert answer["order"] == selector.order_.tolist()
    assert answer["names"] == [f"x{column}" for column in selector.order_]
    assert answer["support"] == selector.support_.tolist()
    assert answer["importances"] == selector.feature_importances_.tolist()
    assert [answer["ranking"][column] for column in selector.order_] == [1, 2, 3]
    assert answer["ranking"].count(None) == 5
    assert answer["stop_reason"] == selector.stop_reason_
    assert answer["constant_loss"] == selector.path_[0].loss
    assert answer["loss"] == selector.path_[3].loss


def test_steps_come_back_as_they_were() -> None:
    case = cases.regression()
    for read, step in zip(case.result.steps, case.selector.path_, strict=True):
        for field in fields(Step):
            np.testing.assert_array_equal(getattr(read, field.name), getattr(step, field.name))


def test_losses_that_were_not_tried_are_null() -> None:
    case = cases.regression()
    first = case.selector.path_[1].group
    losses = case.document()["path"][2]["losses"]
    assert losses[first] is None
    assert losses.count(None) == 1


def test_category_columns_count_once() -> None:
    result = cases.categories().result
    assert result.features == {
        "names": ["town", "age", "smoker", "noise"],
        "categories": [3, None, 2, None],
        "fixed": [1],
    }
    assert all(max(step["columns"], default=0) < 4 for step in result.path)
    assert result.answer["support"][1]
    assert result.answer["ranking"][1] is None
    assert result.answer["ranking"][2] == result.answer["names"].index("smoker") + 1


def test_a_partial_run_is_marked() -> None:
    X, y = cases.regression().X, cases.regression().y
    selector = NeuralGreedyPursuit(cases.QUICK, random_state=0).fit(X, y)
    assert Result.of(selector, X, y).answer["partial"] is False
    selector.partial_ = True
    assert Result.of(selector, X, y).answer["partial"] is True


def test_the_fit_is_that_on_held_out_rows() -> None:
    case = cases.regression()
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    fit = Result.of(case.selector, case.X, case.y, held_out=(X, y)).fit
    predicted = case.selector.predict(X)
    assert (fit["rows"], fit["n_rows"], fit["accuracy"], fit["confusion"]) == ("held out", 30, None, None)
    assert fit["r2"] == pytest.approx(r2_score(y, predicted))
    assert fit["rmse"] == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    assert fit["scatter"] == {"output": 0, "truth": y.tolist(), "predicted": predicted.tolist()}


def test_without_held_out_rows_the_result_says_so() -> None:
    case = cases.categories()
    fit = case.result.fit
    assert (fit["rows"], fit["n_rows"], fit["r2"], fit["scatter"]) == ("training", 150, None, None)
    assert fit["confusion"]["classes"] == ["high", "low"]
    assert fit["confusion"]["counts"] == confusion_matrix(case.y, case.selector.predict(case.X)).tolist()


def test_a_scatter_has_at_most_1000_points() -> None:
    case = cases.regression()
    X, y = np.tile(case.X, (20, 1)), np.tile(case.y, 20)
    fit = Result.of(case.selector, case.X, case.y, held_out=(X, y)).fit
    assert fit["n_rows"] == 2400
    assert len(fit["scatter"]["truth"]) == len(fit["scatter"]["predicted"]) == 1000


def test_of_many_classes_the_largest_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = np.minimum(rng.geometric(0.1, size=1000), 30) + 100 * (X[:, 0] > 0)
    selector = NeuralGreedyPursuit(cases.QUICK, task="classification", n_features_to_select=1, random_state=0).fit(X, y)
    confusion = Result.of(selector, X, y).fit["confusion"]
    labels, sizes = np.unique(y, return_counts=True)
    assert len(labels) > 20
    assert len(confusion["classes"]) == 21
    assert confusion["classes"][-1] == "other"
    counts = np.array(confusion["counts"])
    assert counts.sum() == 1000
    assert sorted(counts.sum(axis=1)[:-1]) == sorted(sizes)[-20:]


def test_classes_that_only_held_out_rows_have_are_counted() -> None:
    case = cases.categories()
    fit = Result.of(case.selector, case.X, case.y, held_out=(case.X[:10], ["unheard of"] * 10)).fit
    assert fit["accuracy"] == 0
    assert np.sum(fit["confusion"]["counts"][fit["confusion"]["classes"].index("unheard of")]) == 10


def test_several_outputs_are_judged_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, :2] * [1, 10]
    selector = NeuralGreedyPursuit(cases.QUICK, n_features_to_select=2, random_state=0).fit(X, y)
    result = Result.of(selector, X, y)
    assert result.asked["n_outputs"] == 2
    assert result.fit["r2"] == pytest.approx(r2_score(y, selector.predict(X)))
    assert result.fit["scatter"]["truth"] == y[:, 0].tolist()


def test_correlations_are_those_with_what_was_passed_over() -> None:
    case = cases.regression()
    full = np.abs(np.corrcoef(case.X.T))
    taken = case.selector.order_
    for item in case.result.correlations:
        others = {column: full[item["group"], column] for column in range(8) if column not in taken}
        expected = sorted(others, key=lambda column: -others[column])[:5]
        assert [other["group"] for other in item["others"]] == expected
        assert [other["correlation"] for other in item["others"]] == pytest.approx([others[c] for c in expected])


def test_between_groups_the_strongest_pair_of_columns_counts() -> None:
    case = cases.digits()
    columns = [np.array(members) for members in case.result.groups["columns"]]
    full = np.abs(np.corrcoef(case.X.T))
    for item in case.result.correlations:
        for other in item["others"]:
            expected = full[np.ix_(columns[item["group"]], columns[other["group"]])].max()
            assert other["correlation"] == pytest.approx(expected)


def test_a_constant_column_has_no_correlation() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = 5.0
    selector = NeuralGreedyPursuit(cases.QUICK, n_features_to_select=1, random_state=0)
    with pytest.warns(UserWarning, match="constant features"):
        selector.fit(X, X[:, 0])
    others = Result.of(selector, X, X[:, 0]).correlations[0]["others"]
    assert {other["group"]: other["correlation"] for other in others}[2] == 0


def test_the_image_says_which_step_took_a_pixel() -> None:
    case = cases.digits()
    image = case.result.image
    assert image is not None
    ranks = np.array(image["ranks"], dtype=float).ravel()
    for rank, group in enumerate(case.selector.order_, 1):
        assert np.flatnonzero(ranks == rank).tolist() == sorted(case.selector.groups_.columns[group])
    assert np.isnan(ranks).sum() == 64 - 12
    np.testing.assert_allclose(np.array(image["mean"]).ravel(), case.X.mean(axis=0))


def test_a_pixel_of_several_channels_is_one_pixel() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 12))
    selector = NeuralGreedyPursuit(
        cases.QUICK, groups=image_windows((2, 2, 3), 1), n_features_to_select=1, random_state=0
    ).fit(X, X[:, 4])
    image = Result.of(selector, X, X[:, 4], image_shape=(2, 2, 3)).image
    assert image is not None
    assert (image["shape"], image["ranks"]) == ([2, 2, 3], [[None, 1], [None, None]])
    np.testing.assert_allclose(image["mean"], X.mean(axis=0).reshape(2, 2, 3).mean(axis=2))


@pytest.mark.parametrize("shape", [(3, 3), (8,), (0, 8)])
def test_an_image_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    case = cases.regression()
    with pytest.raises(ValueError, match=r"image_shape=\(.*\) doesn't fit the 8 columns of X: give \(rows, cols\)"):
        Result.of(case.selector, case.X, case.y, image_shape=shape)


def test_an_unfitted_selector_is_refused() -> None:
    with pytest.raises(NotFittedError):
        Result.of(NeuralGreedyPursuit(), [[0.0]], [0.0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"predictor": Ridge(alpha=0.5), "cv": KFold(3), "stop": Plateau(patience=2)},
        {"predictor": ["ssfn", Ridge()], "fixed": [0], "n_features_to_select": 2, "cv": 0.25},
    ],
)
def test_the_code_makes_the_same_selector(options: dict[str, Any]) -> None:
    case = cases.regression()
    selector = NeuralGreedyPursuit(**options, random_state=3).fit(case.X, case.y)
    asked = Result.of(selector, case.X, case.y).asked
    assert asked["variables"] == []
    scope: dict[str, Any] = {}
    exec("\n".join([*asked["imports"], f"selector = {asked['call']}"]), scope)
    assert repr(scope["selector"]) == repr(selector)


def test_what_cannot_be_written_as_code_is_left_to_a_variable() -> None:
    case = cases.digits()
    assert case.result.asked["variables"] == ["groups"]
    assert "groups=groups" in case.result.asked["call"]
    X, y = cases.regression().X, cases.regression().y
    selector = NeuralGreedyPursuit(lambda step: cases.QUICK, cv=(X[:30], y[:30]), n_features_to_select=1).fit(X, y)
    asked = Result.of(selector, X, y).asked
    assert asked["variables"] == ["cv", "predictor"]
    assert asked["parameters"]["cv"] == asked["cv"] == "an explicit validation set of 30 rows"


@pytest.mark.parametrize(
    ("options", "cv", "loss"),
    [
        ({"cv": 3}, "3 random folds", "squared_error"),
        ({"cv": 0.25}, "a random 25% of the rows held out", "squared_error"),
        ({"cv": "loo", "loss": "squared_error"}, "leave one out", "squared_error"),
        ({"cv": [(np.arange(60), np.arange(60, 120))]}, "1 given splits", "squared_error"),
        ({"predictor": Estimator(Ridge(), scoring="r2")}, "5 random folds", "scoring: r2"),
    ],
)
def test_validation_and_loss_are_put_into_words(options: dict[str, Any], cv: str, loss: str) -> None:
    case = cases.regression()
    selector = NeuralGreedyPursuit(**{"predictor": cases.QUICK} | options, n_features_to_select=1, random_state=0)
    asked = Result.of(selector.fit(case.X, case.y), case.X, case.y).asked
    assert (asked["cv"], asked["loss"]) == (cv, loss)


def test_no_address_and_no_path_gets_into_the_document() -> None:
    for case in cases.CASES.values():
        text = case().result.to_json()
        assert " at 0x" not in text
        assert str(Path.home()) not in text
        assert str(Path.cwd()) not in text
        assert not {"checkpoint", "callback", "verbose"} & set(case().result.asked["parameters"])


def test_half_a_pair_of_surrogates_survives(tmp_path: Path) -> None:
    case = cases.regression()
    result = Result.of(case.selector, case.X, case.y, target="\ud800")
    result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json").asked["target"] == "\ud800"
