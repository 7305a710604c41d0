"""What every method of the registry must do, whoever wrote it; a new entry is tried without another line here."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

import boruta
import lassonet
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.exceptions import NotFittedError

from ngp.baselines import others, packages, registry
from ngp.baselines.base import Baseline, best_features

# Smaller than the defaults, where these take long.
QUICK: dict[str, dict[str, Any]] = {
    "random-forest": {"n_estimators": 20},
    "bart": {"n_trees": 10, "n_sweeps": 15, "n_burn_in": 5},
}
FIXED_NAMES = {"drop-one-out", "roar", "correlation", "lasso", "random-forest", "gam", "bart", "deeplift"}
# None of them is needed before a method that uses it is fitted. (scikit-learn itself imports pandas where it can.)
HEAVY = ["torch", "stochtree", "boruta", "lassonet", "feature_engine", "polars", "shap", "matplotlib", "numba"]

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6))
X[:, 2] = 0.1
GOOD, SECOND, CONSTANT = 1, 4, 2
SIGNAL = X[:, GOOD] + 0.1 * rng.normal(size=80)
TARGETS = {
    "regression": SIGNAL,
    "binary": np.where(SIGNAL > 0, "yes", "no"),
    "classes": np.digitize(SIGNAL, [-0.5, 0.5]) * 10,
    "outputs": np.column_stack([SIGNAL, X[:, SECOND] + 0.1 * rng.normal(size=80)]),
}
each_method = pytest.mark.parametrize("name", list(registry))
pytestmark = pytest.mark.filterwarnings("ignore:X has constant features")


@pytest.fixture(autouse=True, scope="module")
def _quick_packages() -> Iterator[None]:
    """Let the packages train less than by default."""
    small = {"hidden_dims": (5,), "lambda_start": 20, "path_multiplier": 2, "n_iters": (400, 100)}
    whole = boruta.BorutaPy
    with pytest.MonkeyPatch.context() as patch:
        for network in ("LassoNetRegressor", "LassoNetClassifier"):
            patch.setattr(lassonet, network, partial(getattr(lassonet, network), **small))
        quick = {"n_estimators": 25, "max_iter": 12}
        patch.setattr(boruta, "BorutaPy", lambda forest, **rest: whole(forest, **rest | quick))
        patch.setattr(others, "ExtraTreesRegressor", lambda _, **rest: ExtraTreesRegressor(10, **rest))
        patch.setattr(others, "ExtraTreesClassifier", lambda _, **rest: ExtraTreesClassifier(10, **rest))
        yield


def make(name: str, **settings: Any) -> Baseline:
    method = registry[name]
    seed = {"random_state": 0} if "random_state" in inspect.signature(method).parameters else {}
    return method(**seed, **QUICK.get(name, {}), **settings)


@cache
def fitted(name: str, kind: str) -> Baseline:
    """Fit once for all tests that only look."""
    return make(name).fit(X, TARGETS[kind])


def test_names_that_others_rely_on_are_there() -> None:
    assert set(registry) >= FIXED_NAMES


def test_the_registry_cannot_be_changed() -> None:
    assert isinstance(registry, Mapping)
    with pytest.raises(TypeError, match="does not support item assignment"):
        registry["other"] = Baseline  # type: ignore[index]


def test_parameters_are_keywords_with_a_common_rule_for_choosing() -> None:
    for method in registry.values():
        check_parameters(inspect.signature(method).parameters)


def check_parameters(parameters: Mapping[str, inspect.Parameter]) -> None:
    assert all(parameter.kind == parameter.KEYWORD_ONLY for parameter in parameters.values())
    assert {"n_features_to_select", "threshold", "task"} <= set(parameters)
    assert parameters["n_features_to_select"].default is None
    assert parameters["threshold"].default in ("mean", 0.01, 0.0, None)
    assert parameters["task"].default == "auto"
    if "random_state" in parameters:
        assert parameters["random_state"].default is None


def check_rating(name: str, kind: str) -> None:
    selector = fitted(name, kind)
    importances, support = selector.importances_, selector.support_
    assert selector.task_ == ("regression" if kind in ("regression", "outputs") else "classification")
    assert (importances >= 0).all()
    assert importances.sum() == pytest.approx(1)
    assert importances[GOOD] == max(importances) if kind != "outputs" else importances[[GOOD, SECOND]].sum() > 0.5
    assert support[GOOD]
    assert not support[CONSTANT]
    if selector.threshold == "mean":
        np.testing.assert_array_equal(support, importances >= importances.mean())
    elif selector.threshold is not None:
        np.testing.assert_array_equal(support, importances > selector.threshold)
    np.testing.assert_array_equal(selector.transform(X), X[:, support])


@each_method
def test_features_are_rated_and_selected(name: str) -> None:
    for kind in TARGETS:
        check_rating(name, kind)


@each_method
def test_the_given_number_of_features_is_selected(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_features_to_select=2 asks for 2 features, but only 1")
        selector = make(name, n_features_to_select=2).fit(X, TARGETS["outputs"])
    assert selector.support_.sum() == min(2, (selector.importances_ > 0).sum())
    np.testing.assert_array_equal(selector.support_, best_features(selector.importances_, 2))
    assert selector.support_[[GOOD, SECOND]].any()


@each_method
def test_one_seed_one_answer_and_data_stay_as_they_are(name: str) -> None:
    np.random.seed(17)  # noqa: NPY002 that nobody may rely on
    data, target = X.copy(), TARGETS["classes"].copy()
    data.flags.writeable = target.flags.writeable = False
    again = make(name).fit(data, target)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(again.importances_, fitted(name, "classes").importances_)


@each_method
def test_copies_carry_parameters_and_pickles_everything(name: str) -> None:
    selector = fitted(name, "binary")
    copy = clone(selector)
    assert {key: repr(value) for key, value in copy.get_params().items()} == {
        key: repr(value) for key, value in selector.get_params().items()
    }
    assert not hasattr(copy, "support_")
    with pytest.raises(NotFittedError):
        copy.transform(X)
    loaded = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(loaded.importances_, selector.importances_)
    np.testing.assert_array_equal(loaded.transform(X), selector.transform(X))


@each_method
def test_a_frame_with_a_category_gives_names(name: str) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["town"] = pd.Categorical(np.array(["Bonn", "Kiel", "Ulm", "Kiel"] * 20))
    selector = make(name).fit(frame, TARGETS["binary"])
    assert selector.importances_.shape == (7,)
    assert selector.importances_.argmax() == GOOD
    assert selector.feature_names_in_.tolist() == [*"abcdef", "town"]
    assert "b" in selector.get_feature_names_out()
    reduced = selector.set_output(transform="pandas").transform(frame)
    assert list(reduced.columns) == selector.get_feature_names_out().tolist()


def output(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_the_methods_imports_nothing_heavy() -> None:
    assert output(f"import sys, ngp.baselines; print(*[name for name in {HEAVY} if name in sys.modules])").split() == []


# Fits every method where nothing but scikit-learn is installed.
WITHOUT_EXTRAS = """
import importlib.machinery, json, sys, warnings
class WithoutExtras(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)
sys.meta_path = [WithoutExtras if f is importlib.machinery.PathFinder else f for f in sys.meta_path]

import numpy as np
from ngp.baselines import others, registry
warnings.simplefilter("ignore")
X, outcomes = np.random.default_rng(0).normal(size=(60, 4)), {}
for name, method in registry.items():
    try:
        method(**QUICK.get(name, {}), n_features_to_select=2).fit(X, X[:, 1])
        outcomes[name] = "fitted"
    except ImportError as error:
        outcomes[name] = str(error)
print(json.dumps(outcomes))
"""


def test_a_method_without_its_package_says_how_to_install_it() -> None:
    program = f"HIDDEN = {[*HEAVY, 'pandas', 'pyarrow']}\nQUICK = {QUICK}\n{WITHOUT_EXTRAS}"
    outcomes = json.loads(output(program))
    assert set(outcomes) == set(registry)
    for name in ("correlation", "lasso", "lasso-cv", "random-forest", "gam"):
        assert outcomes[name] == "fitted"
    way_out = r".+ needs \w+: install it with pip install 'neural-greedy-pursuit\[(baselines|torch)\]'\."
    for name, outcome in outcomes.items():
        assert (outcome == "fitted") == (name not in packages)
        assert outcome == "fitted" or re.fullmatch(way_out, outcome)
