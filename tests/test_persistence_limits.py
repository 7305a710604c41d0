"""What a file keeps of parameters, and what no file can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import model_selection
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer
from torch import Tensor, nn

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups
from ngp.greedy.stopping import FirstOf, MaxColumns, MaxFeatures, MaxFits, MaxTime, Plateau, RelativeImprovement
from ngp.persistence import load, save
from ngp.persistence.kinds import SPLITTERS
from ngp.predictors import CNN, MLP, SSFN
from ngp.predictors.estimator import EstimatorPredictor

FAST = SSFN(n_units=8, n_draws=1, refit_units=8)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = 2 * X[:, 2] + X[:, 1]


def fitted(predictor: Any = FAST) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(predictor, n_features_to_select=2, cv=2, random_state=0).fit(X, Y)


def after_saving(selector: NeuralGreedyPursuit, folder: Path) -> NeuralGreedyPursuit:
    save(selector, folder / "selector.ngp")
    return load(folder / "selector.ngp")


TINY = fitted()
PARAMETERS: list[tuple[str, Any]] = [
    *(("cv", splitter()) for splitter in SPLITTERS if splitter.__name__[:6] not in ("LeaveP", "Predef")),
    ("cv", model_selection.RepeatedKFold(n_splits=3, n_repeats=4, random_state=1)),
    ("cv", model_selection.ShuffleSplit(2, test_size=0.25, random_state=np.random.RandomState(3))),
    ("cv", model_selection.LeavePOut(2)),
    ("cv", model_selection.PredefinedSplit([0, 1] * 5)),
    ("cv", [(np.arange(5), np.arange(5, 9)), ([1, 2], [3])]),
    ("cv", (X[:5], Y[:5])),
    ("cv", "loo"),
    ("cv", 0.25),
    ("stop", FirstOf([MaxFeatures(3), Plateau(patience=2), MaxColumns(9), MaxTime(1.5), MaxFits(10)])),
    ("stop", RelativeImprovement(0.5, patience=2)),
    ("groups", make_groups(None, 4)),
    ("groups", make_groups(None, 2, ["a", "b"])),
    ("groups", np.array(["a", "b"], dtype=object)),
    ("groups", np.array(["a", "b"], dtype=np.dtypes.StringDType())),
    ("group_costs", np.array([0.1, 0.2])),
    ("fixed", ["name", "näme \ud800 \n </script>"]),
    ("tol", np.float32(0.1)),
    ("tol", float("inf")),
    ("max_fits", 10**30),
    ("n_features_to_select", np.int64(3)),
    ("checkpoint", "run.checkpoint"),
    ("checkpoint", Path("folder") / "run.checkpoint"),
    ("predictor", MLP(n_units=np.int64(5))),
    ("predictor", CNN(image_shape=(3, 3), network="strong")),
    ("predictor", EstimatorPredictor(RandomForestClassifier(criterion="entropy"))),
    ("scoring", "r2"),
    ("random_state", None),
]


@pytest.mark.parametrize(("name", "value"), PARAMETERS, ids=lambda value: str(value)[:40])
def test_every_parameter_comes_back(name: str, value: Any, tmp_path: Path) -> None:
    loaded = after_saving(_with(name, value), tmp_path)
    own = getattr(loaded, name)
    assert type(own) is type(value)
    assert repr(own) == repr(value) or isinstance(getattr(value, "random_state", None), np.random.RandomState)


def _with(name: str, value: Any) -> NeuralGreedyPursuit:
    """A fitted selector with another parameter: only fit reads them."""
    selector = clone(TINY)
    selector.__dict__.update(vars(TINY))
    return selector.set_params(**{name: value})


def test_random_states_go_on_where_they_were(tmp_path: Path) -> None:
    random = np.random.RandomState(5)
    random.normal(size=3)
    loaded = after_saving(_with("random_state", random), tmp_path)
    np.testing.assert_array_equal(loaded.random_state.normal(size=9), random.normal(size=9))


@pytest.mark.parametrize(
    "series",
    [pd.Index(["a", "b"]), pd.Series(["a", "b"]), pl.Series(["a", "b"]), pd.Series(["a", "b"], dtype="category")],
    ids=repr,
)
def test_series_come_back_as_arrays(series: Any, tmp_path: Path) -> None:
    loaded = after_saving(_with("fixed", series), tmp_path)
    assert isinstance(loaded.fixed, np.ndarray)
    assert loaded.fixed.tolist() == ["a", "b"]


def test_a_callback_is_left_out_without_a_word(tmp_path: Path) -> None:
    assert after_saving(_with("callback", print), tmp_path).callback is None


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("cv", iter([(np.arange(5), np.arange(5, 9))]), "a list_iterator"),
        ("scoring", lambda estimator, X, y: 0.0, "function <lambda>"),
        ("cv", (pd.DataFrame(X), Y), "a DataFrame"),
        ("predictor", [FAST, FunctionTransformer(lambda x: x)], "a FunctionTransformer"),
        ("stop", MaxFeatures, "type MaxFeatures"),
    ],
)
def test_what_no_file_can_hold_leaves_a_mark(name: str, value: Any, what: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"The file doesn't hold {name}: .* given anew"):
        loaded = after_saving(_with(name, value), tmp_path)
    assert f"<{what}, which was not saved: give it again>" in repr(getattr(loaded, name)).replace(
        "test_persistence.", ""
    )
    np.testing.assert_array_equal(loaded.predict(X), TINY.predict(X))
    save(loaded, tmp_path / "again.ngp")  # the mark itself is no news
    assert repr(load(tmp_path / "again.ngp").get_params()) == repr(loaded.get_params())


class Own(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Own:
        self.mean_ = y.mean()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_) + X[:, 0]


class Twice(nn.Module):
    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.linear(x.flatten(1))


class Unfitted:
    pass


def test_estimators_of_others_are_refused(tmp_path: Path) -> None:
    expected = r"This selector can't be saved: it holds Own with parts that are not scikit-learn's \(.*\.Own\)\."
    with pytest.raises(ValueError, match=expected):
        save(fitted(Own()), tmp_path / "own.ngp")
    assert not list(tmp_path.iterdir())


def test_unknown_networks_are_refused(tmp_path: Path) -> None:
    selector = fitted(CNN(network=lambda image, n_outputs: Twice(n_outputs), epochs=1, refit_epochs=1))
    expected = r"can't be saved: it holds a network with a Twice \(only a Sequential of Linear, .* can be saved\)\."
    with pytest.raises(ValueError, match=expected):
        save(selector, tmp_path / "own.ngp")


def test_unknown_predictors_are_refused(tmp_path: Path) -> None:
    selector = fitted()
    selector.predictor_ = Unfitted()
    with pytest.raises(ValueError, match=r"This selector can't be saved: it holds an Unfitted\."):
        save(selector, tmp_path / "own.ngp")


def test_only_fitted_selectors_are_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save(NeuralGreedyPursuit(), tmp_path / "selector.ngp")
    with pytest.raises(TypeError, match=r"^save takes a NeuralGreedyPursuit, and not a Ridge\.$"):
        save(Ridge().fit(X, Y), tmp_path / "selector.ngp")  # type: ignore[arg-type]


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(fitted(MLP(n_units=4, epochs=1)), tmp_path / "mlp.ngp")
    save(fitted(Ridge()), tmp_path / "ridge.ngp")
    monkeypatch.setattr("ngp.kernels.devices.find_spec", lambda name: None)
    monkeypatch.setattr("ngp.persistence.estimators.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"torch networks needs torch: .* 'neural-greedy-pursuit\[torch\]'\.$"):
        load(tmp_path / "mlp.ngp")
    with pytest.raises(ImportError, match=r"needs skops to be saved or loaded: .* 'neural-greedy-pursuit\[skops\]'\.$"):
        load(tmp_path / "ridge.ngp")
    with pytest.raises(ImportError, match="needs skops"):
        save(fitted(Ridge()), tmp_path / "again.ngp")
