"""torch is needed by networks alone: everything else works without it, and never imports it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

# Hides torch from Python, as if it weren't installed.
HIDE = """
import importlib.machinery, sys
class WithoutTorch(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)
sys.meta_path = [WithoutTorch if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
"""
# Does what needs no torch, and then tries what does. Prints what came of it.
WORK = """
import json, pkgutil, sys, warnings
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import ngp, ngp.predictors
imported = "torch" in sys.modules
for module in pkgutil.iter_modules(ngp.predictors.__path__):
    __import__(f"ngp.predictors.{module.name}")
from ngp import NGPRegressor
from ngp.predictors import CNN, MLP, SSFN

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
y = X[:, 2] + 0.5 * X[:, 1] + 0.01 * rng.normal(size=40)
orders, messages, importing = {}, {}, {}
predictors = {
    "ssfn": SSFN(n_units=10, n_draws=1), "Ridge": Ridge(), "tree": DecisionTreeRegressor(max_depth=4),
    "list": ["ssfn", Ridge()], "callable": lambda step: "ssfn" if step == 1 else Ridge(),
    "kernel": "kernel",  # the last, since its device="auto" has to ask torch for a GPU
}
for name, predictor in predictors.items():
    selector = NGPRegressor(predictor, n_features_to_select=2, cv=2, random_state=0).fit(X, y)
    assert selector.predict(X).shape == (40,)
    orders[name], importing[name] = selector.order_.tolist(), "torch" in sys.modules
needy = {"mlp": "mlp", "cnn": "cnn", "MLP": MLP(), "CNN": CNN(), "list": ["ssfn", "mlp"],
         "later": lambda step: "ssfn" if step == 1 else "mlp"}
for name, predictor in needy.items() if HIDDEN else ():
    try:
        NGPRegressor(predictor, n_features_to_select=2, cv=2, random_state=0).fit(X, y)
        messages[name] = "nothing"
    except ImportError as error:
        messages[name] = str(error)
print(json.dumps({"imported": imported, "importing": importing, "orders": orders, "messages": messages}))
"""


def outcome(*, hidden: bool) -> dict[str, Any]:
    program = (HIDE if hidden else "") + f"HIDDEN = {hidden}\n" + WORK
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    result: dict[str, Any] = json.loads(found.stdout)
    return result


@pytest.fixture(scope="module")
def without_torch() -> dict[str, Any]:
    return outcome(hidden=True)


@pytest.fixture(scope="module")
def with_torch() -> dict[str, Any]:
    return outcome(hidden=False)


def test_what_needs_no_torch_works_without_it(without_torch: dict[str, Any], with_torch: dict[str, Any]) -> None:
    assert without_torch["orders"]["Ridge"] == [2, 1]
    assert set(without_torch["orders"]) == {"ssfn", "Ridge", "tree", "kernel", "list", "callable"}
    assert without_torch["orders"] == with_torch["orders"]


def test_networks_say_how_to_install_torch(without_torch: dict[str, Any]) -> None:
    for name in ("mlp", "cnn", "MLP", "CNN"):
        expected = (
            f"predictor='{name.lower()}' needs torch: install it with pip install 'neural-greedy-pursuit[torch]'."
        )
        assert without_torch["messages"][name] == expected
    assert all("neural-greedy-pursuit[torch]" in without_torch["messages"][name] for name in ("list", "later"))


def test_torch_is_imported_only_where_it_is_needed(with_torch: dict[str, Any]) -> None:
    assert not with_torch["imported"]
    assert not any(with_torch["importing"][name] for name in ("ssfn", "Ridge", "tree", "list", "callable"))
