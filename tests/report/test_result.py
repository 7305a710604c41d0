"""A result holds what the selector found, and survives the file."""

from __future__ import annotations

import json
from collections.abc import Callable
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

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor
from ngp.data.groups import image_windows
from ngp.greedy.path import Step
from ngp.greedy.stopping import Plateau
from ngp.predictors import Estimator
from ngp.report.html import write_report
from ngp.report.plots import pixel_ranks
from ngp.report.result import Columns, Result


@pytest.mark.parametrize("name", ["categories", "digits", "nasty", "nothing", "halved", "exchanges"])
def test_a_written_result_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    case = cases.CASES[name]()
    case.result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json").to_json() == case.result.to_json()
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_the_stability_is_that_of_the_selector() -> None:
    case = cases.halved()
    found, stability = case.document()["stability"], case.selector.stability_
    assert found["frequencies"] == stability.frequencies.tolist()
    assert found["stable"] == stability.stable(found["threshold"]).tolist()
    assert found["expected_false"] == stability.expected_false(found["threshold"])
    assert [pair["groups"] for pair in found["stand_ins"]] == [[0, 5]]
    assert cases.regression().document()["stability"] is None


def test_the_answer_is_what_the_selector_says() -> None:
    case = cases.regression()
    selector, document = case.selector, case.document()
    answer = document["answer"]
    assert document["order"] == [f"x{column}" for column in selector.order_]
    assert answer["support"] == selector.support_.tolist()
    assert answer["importances"] == selector.feature_importances_.tolist()
    assert [answer["ranking"][column] for column in selector.order_] == [1, 2, 3]
    assert answer["ranking"].count(None) == 5
    assert answer["stop_reason"] == selector.stop_reason_
    assert answer["constant_loss"] == selector.path_[0].loss
    assert answer["loss"] == selector.path_[3].loss


def test_steps_come_back_with_all_their_fields(tmp_path: Path) -> None:
    case = cases.regression()
    case.result.write(tmp_path / "result.json")
    for read, step in zip(Result.read(tmp_path / "result.json").path, case.selector.path_, strict=True):
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
    assert result.features == Columns(["town", "age", "smoker", "noise"], [3, None, 2, None], fixed=[1])
    assert all(max(step.columns, default=0) < 4 for step in result.path)
    assert result.answer.support[1]
    assert result.answer.ranking[1] is None
    assert result.answer.ranking[2] == result.order.index("smoker") + 1


def test_the_fit_is_that_on_held_out_rows() -> None:
    case = cases.regression()
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    fit = Result.of(case.selector, case.X, case.y, held_out=(X, y)).fit
    predicted = case.selector.predict(X)
    assert (fit.n_rows, fit.classes, fit.confusion) == (30, None, None)
    assert fit.r2 == pytest.approx(r2_score(y, predicted))
    assert fit.rmse == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    assert (fit.truth, fit.predicted) == (y.tolist(), predicted.tolist())


def test_without_held_out_rows_the_score_is_the_cross_validated_one() -> None:
    case = cases.categories()
    assert case.result.fit is None
    last = [step for step in case.selector.path_ if step.kept][-1]
    assert (case.result.answer.score, case.result.answer.score_error) == (last.score, last.score_error)


def test_the_confusion_of_classes_is_that_of_held_out_rows() -> None:
    case = cases.categories()
    fit = Result.of(case.selector, case.X, case.y, held_out=(case.X[:50], case.y[:50])).fit
    assert fit is not None
    assert fit.classes == ["high", "low"]
    assert fit.confusion == confusion_matrix(case.y[:50], case.selector.predict(case.X[:50])).tolist()


def test_a_scatter_has_at_most_1000_points() -> None:
    case = cases.regression()
    X, y = np.tile(case.X, (20, 1)), np.tile(case.y, 20)
    fit = Result.of(case.selector, case.X, case.y, held_out=(X, y)).fit
    assert fit.n_rows == 2400
    assert len(fit.truth or ()) == len(fit.predicted or ()) == 1000


def test_of_many_classes_the_largest_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = np.minimum(rng.geometric(0.1, size=1000), 30) + 100 * (X[:, 0] > 0)
    selector = NGPClassifier(cases.QUICK, n_features_to_select=1, random_state=0).fit(X, y)
    fit = Result.of(selector, X, y, held_out=(X, y)).fit
    labels, sizes = np.unique(y, return_counts=True)
    assert len(labels) > 20
    assert fit.classes is not None
    assert len(fit.classes) == 21
    assert fit.classes[-1] == "other"
    counts = np.array(fit.confusion)
    assert counts.sum() == 1000
    assert sorted(counts.sum(axis=1)[:-1]) == sorted(sizes)[-20:]


def test_classes_that_only_held_out_rows_have_are_counted() -> None:
    case = cases.categories()
    fit = Result.of(case.selector, case.X, case.y, held_out=(case.X[:10], ["unheard of"] * 10)).fit
    assert fit.accuracy == 0
    assert fit.classes == ["high", "low", "unheard of"]
    assert np.sum(np.array(fit.confusion)[2]) == 10


def test_several_outputs_are_judged_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, :2] * [1, 10]
    selector = NGPRegressor(cases.QUICK, n_features_to_select=2, random_state=0).fit(X, y)
    result = Result.of(selector, X, y, held_out=(X, y))
    assert result.asked.n_outputs == 2
    assert result.fit is not None
    assert result.fit.r2 == pytest.approx(r2_score(y, selector.predict(X)))
    assert result.fit.truth == y[:, 0].tolist()


def correlated(result: Result, group: int) -> dict[int, float]:
    return {pair.groups[1]: pair.correlation for pair in result.correlations if pair.groups[0] == group}


def test_correlations_are_those_with_unselected_columns() -> None:
    case = cases.regression()
    full = np.abs(np.corrcoef(case.X.T))
    taken = case.selector.order_
    for group in taken:
        others = {column: full[group, column] for column in range(8) if column not in taken}
        expected = sorted(others, key=lambda column: -others[column])[:5]
        assert list(correlated(case.result, group)) == expected
        assert correlated(case.result, group) == pytest.approx({column: others[column] for column in expected})


def test_between_groups_the_strongest_pair_of_columns_counts() -> None:
    case = cases.digits()
    columns = [np.array(members) for members in case.result.groups.columns]
    full = np.abs(np.corrcoef(case.X.T))
    for pair in case.result.correlations:
        assert pair.correlation == pytest.approx(full[np.ix_(*(columns[group] for group in pair.groups))].max())


def test_a_constant_column_has_no_correlation() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = 5.0
    selector = NGPRegressor(cases.QUICK, n_features_to_select=1, random_state=0)
    with pytest.warns(UserWarning, match="constant features"):
        selector.fit(X, X[:, 0])
    assert correlated(Result.of(selector, X, X[:, 0]), 0)[2] == 0


def test_the_image_is_the_mean() -> None:
    case = cases.digits()
    image = case.result.image
    assert image is not None
    np.testing.assert_allclose(np.array(image.mean).ravel(), case.X.mean(axis=0))


def test_a_pixel_of_several_channels_is_one_pixel() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 12))
    selector = NGPRegressor(
        cases.QUICK, groups=image_windows((2, 2, 3), 1), n_features_to_select=1, random_state=0
    ).fit(X, X[:, 4])
    result = Result.of(selector, X, X[:, 4], image_shape=(2, 2, 3))
    assert result.image is not None
    assert result.image.shape == [2, 2, 3]
    np.testing.assert_array_equal(pixel_ranks(result.path, (2, 2, 3)), [[np.nan, 1], [np.nan, np.nan]])
    np.testing.assert_allclose(result.image.mean, X.mean(axis=0).reshape(2, 2, 3).mean(axis=2))


@pytest.mark.parametrize("shape", [(3, 3), (8,), (0, 8)])
def test_an_image_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    case = cases.regression()
    with pytest.raises(ValueError, match=r"image_shape=\(.*\) doesn't fit the 8 columns of X: give \(rows, cols\)"):
        Result.of(case.selector, case.X, case.y, image_shape=shape)


def test_an_unfitted_selector_is_refused() -> None:
    with pytest.raises(NotFittedError):
        Result.of(NeuralGreedyPursuit(), [[0.0]], [0.0])


def test_a_selector_that_does_not_predict_has_no_fit(tmp_path: Path) -> None:
    case = cases.regression()
    selector = NeuralGreedyPursuit(cases.QUICK, random_state=0).fit(case.X, case.y)
    result = Result.of(selector, case.X, case.y)
    assert result.fit is None
    assert (result.order, result.answer.loss) == (case.result.order, case.result.answer.loss)
    result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json").fit is None
    write_report(result, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "held out" not in html
    assert "What each column does" not in html
    with pytest.raises(ValueError, match="held_out is for a selector that predicts, and NeuralGreedyPursuit doesn't"):
        Result.of(selector, case.X, case.y, held_out=(case.X, case.y))


def test_the_call_makes_the_same_selector() -> None:
    case = cases.regression()
    options = {"predictor": ["ssfn", Ridge(alpha=0.5)], "cv": KFold(3), "stop": Plateau(patience=2), "fixed": [0]}
    selector = NGPRegressor(**options, checkpoint=None, verbose=1, random_state=3).fit(case.X, case.y)
    made = eval(Result.of(selector, case.X, case.y).asked.call)
    assert repr(made) == repr(selector.set_params(verbose=0))


def test_long_parameters_are_put_into_words() -> None:
    X, y = cases.regression().X, cases.regression().y
    splits = [(np.arange(60), np.arange(60, 120))] * 40
    selector = NGPRegressor(lambda step: cases.QUICK, cv=splits, n_features_to_select=1).fit(X, y)
    asked = Result.of(selector, X, y).asked
    assert (asked.predictor, asked.cv, asked.parameters["cv"]) == ("one per step", "40 given splits", "40 given splits")
    assert len(asked.call) < 2000


@pytest.mark.parametrize(
    ("options", "cv", "loss"),
    [
        ({"cv": 3}, "3 random folds", "squared_error"),
        ({"cv": 0.25}, "a random 25% of the rows held out", "squared_error"),
        ({"cv": "loo", "loss": "squared_error"}, "leave one out", "squared_error"),
        ({"cv": [(np.arange(60), np.arange(60, 120))]}, "1 given split", "squared_error"),
        ({"cv": (np.ones((9, 8)), np.arange(9.0))}, "an explicit validation set of 9 rows", "squared_error"),
        ({"predictor": Estimator(Ridge(), scoring="r2")}, "5 random folds", "scoring: r2"),
    ],
)
def test_validation_and_loss_are_put_into_words(options: dict[str, Any], cv: str, loss: str) -> None:
    case = cases.regression()
    selector = NGPRegressor(**{"predictor": cases.QUICK} | options, n_features_to_select=1, random_state=0)
    asked = Result.of(selector.fit(case.X, case.y), case.X, case.y).asked
    assert (asked.cv, asked.loss) == (cv, loss)


def test_no_address_and_no_path_gets_into_the_document() -> None:
    for case in cases.CASES.values():
        text = case().result.to_json()
        assert " at 0x" not in text
        assert str(Path.home()) not in text
        assert str(Path.cwd()) not in text
        assert not {"checkpoint", "callback", "verbose"} & set(case().result.asked.parameters)


def test_half_a_pair_of_surrogates_survives(tmp_path: Path) -> None:
    case = cases.regression()
    result = Result.of(case.selector, case.X, case.y, target="\ud800")
    result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json").asked.target == "\ud800"


def broken(change: Callable[[dict[str, Any]], Any]) -> Callable[[], str]:
    """A document that was changed by hand, made when it is needed."""

    def make() -> str:
        changed = cases.digits().document()
        change(changed)
        return json.dumps(changed)

    return make


BROKEN: dict[str, tuple[str | Callable[[], str], str]] = {
    "it is cut": ('{"schema": "ngp', "is not a JSON file: "),
    "it is nested too deeply": ("[" * 100_000, "is not a JSON file: "),
    "it is a list": ("[1]", "its field schema is None instead of 'ngp-result/4'"),
    "it is of another version": ('{"schema": "ngp-result/1"}', "its field schema is 'ngp-result/1' instead of"),
    "a part is missing": (broken(lambda d: d.pop("fit")), "is a damaged result: .* 'fit'"),
    "a field is missing": (broken(lambda d: d["path"][1].pop("loss")), "is a damaged result: .* 'loss'"),
    "a number is a text": (broken(lambda d: d["answer"].update(loss="x")), "is a damaged result: .* 'x'"),
    "a text is a number": (broken(lambda d: d["path"][1].update(name=3)), "is a damaged result: 3 stands where .* str"),
    "a number has a point": (broken(lambda d: d["path"][1].update(n_selected=1.5)), "is a damaged result: 1.5 stands"),
    "a number is too large": (broken(lambda d: d["path"][1].update(columns=[10**30])), "is a damaged result: "),
    "an object is a number": (broken(lambda d: d.update(answer=3)), "is a damaged result: .*int"),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_file_that_is_no_result_is_refused(reason: str, tmp_path: Path) -> None:
    made, message = BROKEN[reason]
    file = tmp_path / "result.json"
    file.write_text(made if isinstance(made, str) else made(), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        Result.read(file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"can't be read: no such file or directory\."):
        Result.read(tmp_path / "missing.json")
