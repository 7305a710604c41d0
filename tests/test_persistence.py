"""A loaded selector is the one that was saved."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import model_selection
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ngp import NeuralGreedyPursuit, SSFNRegressor
from ngp.data.groups import image_windows
from ngp.datasets import make_ohm
from ngp.persistence import load, save
from ngp.predictors import CNN, MLP, SSFN, Kernel
from ngp.predictors.committee import Committee
from ngp.predictors.estimator import EstimatorPredictor

FAST = SSFN(n_units=12, n_draws=2, refit_units=12)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 9))
SIGNAL = 2 * X[:, 3] + np.abs(X[:, 1])
TARGETS: dict[str, Any] = {
    "regression": SIGNAL,
    "outputs": np.stack([SIGNAL, X[:, 0]], axis=1),
    "binary": np.where(SIGNAL > 1, "yes", "no"),
    "classes": np.array([3, 5, 9])[np.digitize(SIGNAL, [-0.5, 1.5])],
    "objects": np.where(SIGNAL > 1, "yes", "no").astype(object),
    "booleans": SIGNAL > 1,
}
TOWN = rng.choice(["Bonn", "Kiel", "Ulm"], 60)


def normed_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    inner = nn.Sequential(nn.Conv2d(image[0], 3, 2), nn.BatchNorm2d(3), nn.GELU(), nn.AvgPool2d(2))
    return nn.Sequential(inner, nn.Flatten(), nn.Linear(3, n_outputs, bias=False))


PREDICTORS: dict[str, tuple[Any, str]] = {
    "ssfn": (FAST, "regression"),
    "numpy's numbers": (SSFN(n_units=np.int64(9), unit_norm=np.True_, clip=np.float32(3)), "regression"),
    "ssfn of the paper": (SSFN.published(), "regression"),
    "several outputs": (FAST, "outputs"),
    "two classes": (FAST, "binary"),
    "three classes": (FAST, "classes"),
    "text as objects": (FAST, "objects"),
    "booleans": (FAST, "booleans"),
    "mlp": (MLP(n_units=7, epochs=1), "regression"),
    "mlp of two layers": (MLP(n_units=7, n_layers=2, epochs=1, n_draws=1), "classes"),
    "cnn": (CNN(network="strong", epochs=1, refit_epochs=1), "binary"),
    "kernel": (Kernel(), "regression"),
    "arc-cosine": (Kernel(kernel="arc-cosine", clip=None), "classes"),
    "Ridge": (Ridge(), "regression"),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), "classes"),
    "functions of numpy": (make_pipeline(FunctionTransformer(np.tanh), Ridge()), "regression"),
    "forest": (RandomForestClassifier(4, max_depth=3), "binary"),
    "boosting": (HistGradientBoostingRegressor(max_iter=3), "regression"),
    "neighbours": (KNeighborsRegressor(), "outputs"),
    "support vectors": (SVC(), "classes"),
    "Gauss": (GaussianProcessRegressor(), "regression"),
    "voting": (VotingRegressor([("ridge", Ridge())]), "regression"),
    "search": (model_selection.GridSearchCV(Ridge(), {"alpha": [1, 9]}, cv=model_selection.KFold(2)), "regression"),
    "growing network": (SSFNRegressor(max_layers=1, max_units=20), "regression"),
    "list": ([FAST, "kernel", Ridge()], "regression"),
    "committee": (Committee([FAST, EstimatorPredictor(Ridge())]), "regression"),
}


def fitted(predictor: Any = FAST, target: str = "regression", data: Any = X, **others: Any) -> NeuralGreedyPursuit:
    parameters = {"n_features_to_select": 2, "cv": 2, "random_state": 0, **others}
    return NeuralGreedyPursuit(predictor, **parameters).fit(data, TARGETS[target])


def after_saving(selector: NeuralGreedyPursuit, folder: Path) -> NeuralGreedyPursuit:
    save(selector, folder / "selector.ngp")
    return load(folder / "selector.ngp")


def text_of(parameters: Any) -> str:
    return re.sub(r" at 0x\w+", "", repr(parameters))


def assert_same(first: NeuralGreedyPursuit, second: NeuralGreedyPursuit, data: Any = X) -> None:
    """Everything that a user can ask for is the same, bit for bit."""
    check_is_fitted(second)
    assert text_of(first.get_params()) == text_of(second.get_params())
    assert set(vars(first)) == set(vars(second))
    for name in ("support_", "order_", "losses_", "feature_importances_", "fixed_"):
        assert getattr(first, name).dtype == getattr(second, name).dtype
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("stop_reason_", "task_", "n_features_in_", "partial_"):
        assert getattr(first, name) == getattr(second, name)
    assert len(first.path_) == len(second.path_)
    for one, other in zip(first.path_, second.path_, strict=True):
        for field in fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    assert list(first.groups_.names) == list(second.groups_.names)
    np.testing.assert_array_equal(first.groups_.costs, second.groups_.costs)
    for one, other in zip(first.groups_.columns, second.groups_.columns, strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.get_feature_names_out().tolist() == second.get_feature_names_out().tolist()
    pairs = [(first.transform(data), second.transform(data)), (first.predict(data), second.predict(data))]
    if first.task_ == "classification":
        pairs += [(first.predict_proba(data), second.predict_proba(data)), (first.classes_, second.classes_)]
    for mine, yours in pairs:
        assert type(mine) is type(yours)
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(yours))
        assert not isinstance(mine, np.ndarray) or mine.dtype == yours.dtype


@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.parametrize("name", PREDICTORS)
def test_every_predictor_comes_back(name: str, tmp_path: Path) -> None:
    predictor, target = PREDICTORS[name]
    selector = fitted(predictor, target)
    loaded = after_saving(selector, tmp_path)
    assert_same(selector, loaded)
    new = np.random.default_rng(1).normal(size=(700, 9)).astype(np.float32)
    np.testing.assert_array_equal(selector.predict(new), loaded.predict(new))


@pytest.mark.parametrize("name", ["ssfn", "mlp", "Ridge", "list"])
def test_a_loaded_selector_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    predictor, target = PREDICTORS[name]
    selector = fitted(predictor, target)
    again = clone(after_saving(selector, tmp_path)).fit(X, TARGETS[target])
    np.testing.assert_array_equal(again.losses_, selector.losses_)
    np.testing.assert_array_equal(again.predict(X), selector.predict(X))


def test_a_loaded_selector_can_be_saved_again(tmp_path: Path) -> None:
    loaded = after_saving(fitted(), tmp_path)
    content = (tmp_path / "selector.ngp").read_bytes()
    save(loaded, str(tmp_path / "selector.ngp"))
    before, after = (ZipFile(BytesIO(each)) for each in (content, (tmp_path / "selector.ngp").read_bytes()))
    assert before.namelist() == after.namelist()
    assert all(before.read(name) == after.read(name) for name in before.namelist() if name != "selector.json")


def test_a_schedule_is_saved_with_its_last_predictor(tmp_path: Path) -> None:
    selector = fitted(lambda step: FAST if step == 1 else "kernel")
    with pytest.warns(UserWarning, match="The file doesn't hold predictor: what is loaded predicts as this selector"):
        loaded = after_saving(selector, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), selector.predict(X))
    with pytest.raises(ValueError, match=r"'predictor' .*function .*lambda.* was not saved: give it again"):
        clone(loaded).fit(X, SIGNAL)
    again = clone(loaded).set_params(predictor=FAST).fit(X, SIGNAL)
    np.testing.assert_array_equal(again.order_, selector.order_)


def test_a_network_of_ones_own_is_saved_if_it_is_made_of_known_layers(tmp_path: Path) -> None:
    selector = fitted(CNN(network=normed_network, epochs=1, refit_epochs=1, n_draws=2))
    with pytest.warns(UserWarning, match=r"doesn't hold predictor\.network: "):
        loaded = after_saving(selector, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), selector.predict(X))
    with pytest.raises(ValueError, match=r"'network' .*function normed_network, which was not saved"):
        loaded.fit(X, SIGNAL)


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@pytest.mark.parametrize("target", ["regression", "outputs", "binary", "classes"])
def test_nothing_selected(target: str, tmp_path: Path) -> None:
    selector = fitted(target=target, n_features_to_select=None, tol=1e9)
    assert not selector.support_.any()
    loaded = after_saving(selector, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), selector.predict(X))
    assert loaded.losses_.shape == selector.losses_.shape


@pytest.mark.parametrize(
    "others",
    [
        {"groups": image_windows((3, 3), 2, stride=1)},
        {"groups": ["a", "b", "c"] * 3, "group_costs": [1.0, 2.0, 1.5]},
        {"groups": {"both": [0, 3], "one": range(1, 3), "other": (4,)}, "fixed": [8]},
        {"groups": [[3], [1]]},
        {"fixed": [8, 0], "n_features_to_select": 4, "loss": "squared_error", "verbose": 0},
        {"stop": "plateau", "n_features_to_select": 3, "cv": 3},
        {"max_fits": 1, "n_features_to_select": None, "tol": 0.0},
    ],
    ids=str,
)
def test_groups_and_fixed_columns(others: dict[str, Any], tmp_path: Path) -> None:
    selector = fitted(**others)
    assert_same(selector, after_saving(selector, tmp_path))


def make_frame(kind: str, category: Any) -> Any:
    numbers = {f"number {i}": X[:, i] for i in range(4)}
    if kind == "pandas":
        return pd.DataFrame({"first": X[:, 5], "category": pd.Categorical(category), **numbers})
    return pl.DataFrame({"first": X[:, 5], "category": pl.Series(list(category), dtype=pl.Categorical), **numbers})


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_data_frames_with_categories(kind: str, output: str, tmp_path: Path) -> None:
    frame = make_frame(kind, TOWN)
    selector = fitted(data=frame, fixed=["category"], n_features_to_select=3).set_output(transform=output)
    loaded = after_saving(selector, tmp_path)
    assert_same(selector, loaded, frame)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    unknown = make_frame(kind, np.where(TOWN == "Ulm", "Trier", TOWN))
    np.testing.assert_array_equal(loaded.predict(unknown), selector.predict(unknown))
    with pytest.raises(ValueError, match="pass a data frame with the same columns"):
        loaded.predict(X[:, :6])


@pytest.mark.parametrize(
    "category",
    [
        np.arange(60) % 3,
        np.arange(60) % 2 == 0,
        (np.arange(60) % 3) / 2,
        pd.cut(X[:, 4], [-9, -0.5, 0.5, 9]),
        pd.to_datetime(["2024-01-01 12:00:00.000000001", "2024-02-29 00:00:00.0"] * 30),
        pd.to_timedelta([1, 10**9], unit="ns").repeat(30),
    ],
    ids=["int", "bool", "float", "interval", "time", "duration"],
)
def test_categories_of_all_types(category: Any, tmp_path: Path) -> None:
    frame = make_frame("pandas", category)
    selector = fitted(data=frame, fixed=["category"])
    loaded = after_saving(selector, tmp_path)
    assert_same(selector, loaded, frame)
    assert loaded.encoder_._places == selector.encoder_._places


TINY = fitted()


def test_plots_work(tmp_path: Path) -> None:
    assert after_saving(TINY, tmp_path).plot_path().get_ylabel() == TINY.plot_path().get_ylabel()


def test_torch_draws_the_same_numbers_after_loading(tmp_path: Path) -> None:
    save(fitted(MLP(n_units=5, epochs=1)), tmp_path / "mlp.ngp")
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    load(tmp_path / "mlp.ngp")
    assert torch.equal(torch.rand(3), expected)


def test_only_what_is_needed_is_imported(tmp_path: Path) -> None:
    save(TINY, tmp_path / "ssfn.ngp")
    program = (
        "import sys; from ngp.persistence import load; selector = load(sys.argv[1])\n"
        "print({'torch', 'skops', 'onnx', 'matplotlib'} & set(sys.modules) or 'nothing')"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "ssfn.ngp")], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "nothing"


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_random_problems(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    n_samples, n_columns = data.draw(st.integers(6, 20)), data.draw(st.integers(1, 5))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = random.normal(size=(n_samples, n_columns)) * 10.0 ** random.integers(-9, 9, n_columns)
    n_classes = data.draw(st.sampled_from([0, 2, 3]))
    y = np.arange(n_samples) % n_classes if n_classes else random.normal(size=(n_samples, data.draw(st.integers(1, 3))))
    predictor = data.draw(st.sampled_from([SSFN(n_units=3, n_draws=1, refit_units=4), Kernel(landmarks=3)]))
    names = data.draw(st.one_of(st.none(), st.lists(st.text(), min_size=n_columns, max_size=n_columns, unique=True)))
    given_table = table if names is None else pd.DataFrame(table, columns=names)
    fixed = data.draw(st.sampled_from([None, [0]]))
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=1, cv=2, fixed=fixed, random_state=0)
    selector.fit(given_table, y)
    assert_same(selector, after_saving(selector, tmp_path_factory.mktemp("random")), given_table)


def test_the_selectors_own_methods_do_the_same(tmp_path: Path) -> None:
    X, y, _ = make_ohm(60, random_state=0)
    selector = NeuralGreedyPursuit(random_state=0, cv=(part for part in [([*range(40)], [*range(40, 60)])])).fit(X, y)
    with pytest.warns(UserWarning, match="The file doesn't hold cv") as caught:
        selector.save(tmp_path / "a.ngp")
    assert caught[0].filename == __file__
    assert_same(NeuralGreedyPursuit.load(tmp_path / "a.ngp"), load(tmp_path / "a.ngp"), X)
