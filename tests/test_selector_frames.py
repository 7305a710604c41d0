"""The scikit-learn face: data frames in, names out, categories as one feature each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ngp import NGPClassifier, NGPRegressor
from ngp.predictors import SSFN

FAST = SSFN(n_units=15, n_draws=1, refit_units=15)
NUMBERS = ["v", "w", "x", "y", "z"]
rng = np.random.default_rng(0)
VALUES = rng.normal(size=(80, 5))
TOWN = rng.choice(["Bonn", "Kiel", "Ulm"], 80)
TARGET = VALUES[:, 3] + 2 * (TOWN == "Kiel") + 0.05 * rng.normal(size=80)


def make_selector(**settings: Any) -> NGPRegressor:
    return NGPRegressor(FAST, **{"n_features_to_select": 2, "random_state": 0, **settings})


def make_frame(kind: str, town: Any = TOWN, values: Any = VALUES) -> Any:
    """Numbers in v, w, x, y, z and a category before them."""
    if kind == "pandas":
        frame = pd.DataFrame(values, columns=NUMBERS)
        frame.insert(0, "town", pd.Categorical(town))
        return frame
    categories = {"town": pl.Series(town.tolist(), dtype=pl.Categorical)}
    return pl.DataFrame({**categories, **dict(zip(NUMBERS, values.T, strict=True))})


def without_town(frame: Any) -> Any:
    return frame[NUMBERS]


@pytest.fixture(params=["pandas", "polars"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def frame(kind: str) -> Any:
    return make_frame(kind)


def test_names_come_out(frame: Any) -> None:
    numbers = without_town(frame)
    selector = make_selector().fit(numbers, TARGET)
    plain = make_selector().fit(VALUES, TARGET)
    assert selector.feature_names_in_.tolist() == NUMBERS
    np.testing.assert_array_equal(selector.losses_, plain.losses_)
    assert selector.get_feature_names_out().tolist() == [NUMBERS[c] for c in sorted(plain.order_)]
    assert [step.name for step in selector.path_[1:]] == [NUMBERS[c] for c in plain.order_]
    np.testing.assert_array_equal(selector.predict(numbers), plain.predict(VALUES))
    np.testing.assert_array_equal(selector.transform(numbers), plain.transform(VALUES))
    assert not hasattr(selector.fit(VALUES, TARGET), "feature_names_in_")


def test_an_empty_selection_of_a_table_has_no_columns(kind: str, frame: Any) -> None:
    with pytest.warns(UserWarning, match="Nothing was selected"):
        selector = make_selector(n_features_to_select=None, tol=1e9).fit(frame, TARGET)
    with pytest.warns(UserWarning, match="No features were selected"):
        result = selector.transform(frame)
    assert type(result) is type(frame)
    assert list(result.columns) == []
    assert len(result) == (80 if kind == "pandas" else 0)  # without columns, polars has no rows


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_the_output_may_be_a_frame(frame: Any, output: str) -> None:
    numbers = without_town(frame)
    result = make_selector().set_output(transform=output).fit_transform(numbers, TARGET)
    assert isinstance(result, pd.DataFrame if output == "pandas" else pl.DataFrame)
    assert isinstance(make_selector().fit(VALUES, TARGET).transform(VALUES), np.ndarray)
    assert "y" in list(result.columns)
    assert result.shape == (80, 2)


@pytest.mark.parametrize("asked", [True, False])
def test_a_table_stays_what_it_was(kind: str, frame: Any, asked: bool) -> None:
    selector = make_selector().fit(frame, TARGET)
    result = (selector.set_output(transform=kind) if asked else selector).transform(frame)
    assert type(result) is type(frame)
    assert list(result.columns) == ["town", "y"]
    assert result["town"].dtype == frame["town"].dtype
    assert result["town"].to_list() == TOWN.tolist()
    np.testing.assert_array_equal(result["y"], VALUES[:, 3])
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        selector.transform(frame[["town", "y"]])


def test_a_category_is_one_feature(frame: Any) -> None:
    selector = make_selector().fit(frame, TARGET)
    assert sorted(selector.order_) == [0, 4]
    assert selector.support_.tolist() == [True, False, False, False, True, False]
    assert selector.n_features_in_ == 6
    assert selector.feature_names_in_.tolist() == list(frame.columns)
    assert selector.losses_.shape == (2, 6)
    assert selector.feature_importances_.shape == (6,)
    np.testing.assert_array_equal(selector.feature_importances_ > 0, selector.support_)
    added = {step.name: len(step.columns) for step in selector.path_[1:]}
    assert added == {"town": 3, "y": 1}
    assert selector.get_feature_names_out().tolist() == ["town", "y"]
    assert selector.score(frame, TARGET) > 0.95


def test_pandas_and_polars_give_the_same() -> None:
    both = [make_selector().fit(make_frame(kind), TARGET) for kind in ("pandas", "polars")]
    np.testing.assert_array_equal(both[0].losses_, both[1].losses_)
    predictions = [selector.predict(make_frame(kind)) for selector in both for kind in ("pandas", "polars")]
    for prediction in predictions[1:]:
        np.testing.assert_array_equal(prediction, predictions[0])


def test_new_frames_may_hold_unknown_and_fewer_categories(kind: str, frame: Any) -> None:
    selector = make_selector().fit(frame, TARGET)
    known = selector.predict(make_frame(kind, np.array(["Kiel", "Kiel"]), np.zeros((2, 5))))
    mixed = selector.predict(make_frame(kind, np.array(["Kiel", "Rom"]), np.zeros((2, 5))))
    assert known[0] == known[1] == mixed[0] != mixed[1]
    assert np.isfinite(mixed).all()


@pytest.mark.filterwarnings("ignore:X has feature names, but NGPRegressor was fitted without")
def test_after_an_array_without_names_a_frame_must_have_as_many_columns(kind: str, frame: Any) -> None:
    selector = make_selector().set_output(transform=kind).fit(VALUES, TARGET)
    assert selector.transform(without_town(frame)).shape == (80, 2)
    for columns in (NUMBERS[:-1], [*NUMBERS, "town"]):
        with pytest.raises(ValueError, match=f"X has {len(columns)} features, but NGPRegressor is expecting"):
            selector.transform(frame[columns])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_what_does_not_fit_the_frame_of_fit_is_refused(frame: Any) -> None:
    selector = make_selector().fit(frame, TARGET)
    with pytest.raises(ValueError, match="X is a ndarray, but fit saw a data frame with category columns"):
        selector.predict(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        selector.predict(frame[[*NUMBERS, "town"]])
    with pytest.raises(ValueError, match=r"yet now missing:\n- town"):
        selector.predict(without_town(frame))


def test_fixed_columns_by_name(frame: Any) -> None:
    selector = make_selector(fixed=["town"]).fit(frame, TARGET)  # three encoded columns count as one feature
    assert selector.order_.tolist() == [4]
    assert np.flatnonzero(selector.support_).tolist() == [0, 4]
    assert (selector.feature_importances_[[0, 4]] > 0).all()
    assert make_selector(fixed=["v", "x"], n_features_to_select=3).fit(frame, TARGET).support_[[1, 3]].all()


def test_groups_by_name_with_a_category_inside(frame: Any) -> None:
    groups = {"where": ["town", "y"], "rest": ["v", "w", "x", "z"]}
    selector = make_selector(n_features_to_select=1, groups=groups).fit(frame, TARGET)
    assert selector.order_.tolist() == [0]
    assert selector.path_[1].name == "where"
    assert np.flatnonzero(selector.support_).tolist() == [0, 4]
    importances = selector.feature_importances_
    assert importances[0] == importances[4] > 0 == importances[[1, 2, 3, 5]].sum()


def test_a_share_counts_a_category_once(frame: Any) -> None:
    assert make_selector(n_features_to_select=0.5).fit(frame, TARGET).support_.sum() == 3


def test_constant_columns_beside_categories_are_named(kind: str) -> None:
    values = VALUES.copy()
    values[:, 2] = 7
    with pytest.warns(UserWarning, match=r"X has constant features, 2 of 6 \(town, x\): they are never selected"):
        selector = make_selector(n_features_to_select=4).fit(make_frame(kind, np.repeat("Ulm", 80), values), TARGET)
    assert np.flatnonzero(~selector.support_).tolist() == [0, 3]


def test_an_explicit_validation_set_may_be_a_frame(kind: str, frame: Any) -> None:
    selector = make_selector(cv=(frame[60:], TARGET[60:])).fit(frame[:60], TARGET[:60])
    assert sorted(selector.order_) == [0, 4]
    numbers = without_town(frame)
    make_selector(cv=(VALUES[60:], TARGET[60:])).fit(numbers[:60], TARGET[:60])
    with pytest.raises(ValueError, match="X has its columns in another order than in fit"):
        make_selector(cv=(numbers[NUMBERS[::-1]], TARGET)).fit(numbers, TARGET)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, lambda values: pd.Series(pd.Categorical(values))])
def test_targets_may_be_series(make: Any, frame: Any) -> None:
    selector = NGPClassifier(FAST, n_features_to_select=2, random_state=0).fit(frame, make(TOWN.tolist()))
    assert (selector.task_, selector.classes_.tolist()) == ("classification", ["Bonn", "Kiel", "Ulm"])
    assert selector.order_[0] == 0
    assert selector.score(frame, TOWN) == 1


def test_booleans_and_whole_numbers_are_numbers(kind: str, frame: Any) -> None:
    flags, counts = VALUES[:, 0] > 0, np.round(VALUES[:, 1]).astype(int)
    if kind == "pandas":
        mixed = frame.assign(v=flags, w=counts)
    else:
        mixed = frame.with_columns(v=pl.Series(flags), w=pl.Series(counts))
    for table in (mixed, mixed[NUMBERS]):
        selector = make_selector(n_features_to_select=1).fit(table, 2.0 * flags + 0.01 * TARGET)
        assert selector.path_[1].name == "v"
        assert selector.score(table, 2.0 * flags) > 0.95


BAD_FRAMES = {
    "text": (lambda frame: frame.assign(x="some"), r"neither numbers nor categories, 'x' \(String\): make them"),
    "dates": (lambda frame: frame.assign(x=pd.Timestamp(0)), r"neither numbers nor categories, 'x' \(Datetime\)"),
    "missing category": (
        lambda frame: frame.assign(town=pd.Categorical(np.where(TOWN == "Ulm", None, TOWN))),
        "missing values in the category columns 'town': drop these rows",
    ),
    "missing number": (lambda frame: frame.assign(x=np.where(TOWN == "Ulm", np.nan, 0)), "X contains NaN"),
    "infinity": (lambda frame: frame.assign(x=np.inf), "X contains infinity"),
    "one name twice": (lambda frame: frame.rename(columns={"x": "y"}), "several columns of the same name"),
}


def test_bad_frames_are_refused() -> None:
    for spoil, message in BAD_FRAMES.values():
        with pytest.raises(ValueError, match=message):
            make_selector().fit(spoil(make_frame("pandas")), TARGET)


def test_text_and_lazy_frames_of_polars_are_refused() -> None:
    frame = make_frame("polars")
    with pytest.raises(ValueError, match=r"neither numbers nor categories, 'town' \(String\).*cast\(pl.Categorical\)"):
        make_selector().fit(frame.with_columns(town=pl.Series(TOWN.tolist())), TARGET)
    with pytest.raises(TypeError, match=r"X is a lazy LazyFrame: pass X\.collect"):
        make_selector().fit(frame.lazy(), TARGET)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fixed": ["city"]}, "fixed has the unknown column 'city': use one of 'town', 'v'"),
        ({"groups": [["town", "city"]]}, r"groups\[0\] has the unknown column 'city': use one of 'town', 'v'"),
    ],
)
def test_unknown_names_are_refused(frame: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_selector(**settings).fit(frame, TARGET)
