"""From what users write to a predictor, and what they are told where there is none in it."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

from ngp.predictors.base import Predictor
from ngp.predictors.cnn import CNN
from ngp.predictors.committee import Committee, Schedule
from ngp.predictors.estimator import EstimatorPredictor
from ngp.predictors.kernel import Kernel
from ngp.predictors.mlp import MLP
from ngp.predictors.resolve import PREDICTORS, resolve_predictor
from ngp.predictors.ssfn import SSFN


@pytest.mark.parametrize(("name", "kind"), [("ssfn", SSFN), ("mlp", MLP), ("cnn", CNN), ("kernel", Kernel)])
def test_names(name: str, kind: type) -> None:
    found = resolve_predictor(name)
    assert type(found) is kind
    assert found.get_params() == kind().get_params()
    assert name in PREDICTORS


@pytest.mark.parametrize("predictor", [SSFN(n_units=7), MLP(n_units=7), CNN(epochs=7), Kernel(), Committee([SSFN()])])
def test_predictors_stay_as_they_are(predictor: Any) -> None:
    assert resolve_predictor(predictor) is predictor


def test_anything_that_can_be_bound_is_a_predictor() -> None:
    class Own(Predictor):
        losses = frozenset({"squared_error"})

        def bind(self, problem: Any, **conditions: Any) -> Any:
            raise AssertionError("nobody asked for this")

        def __call__(self, step: int) -> Any:  # which doesn't make it a schedule
            raise AssertionError("nobody asked for this")

    own = Own()
    assert resolve_predictor(own) is own
    assert resolve_predictor([own]).names == ("Own",)


@pytest.mark.parametrize("estimator", [Ridge(), SVC(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_estimators_are_wrapped(estimator: Any) -> None:
    found = resolve_predictor(estimator)
    assert isinstance(found, EstimatorPredictor)
    assert found.estimator is estimator


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_committees(kind: type) -> None:
    found = resolve_predictor(kind(["ssfn", MLP(n_units=3), Ridge(), "mlp"]))
    assert isinstance(found, Committee)
    assert found.names == ("SSFN", "MLP 1", "Ridge", "MLP 2")
    assert resolve_predictor(["ssfn"]).names == ("SSFN",)


def test_callables_are_schedules() -> None:
    choices = {1: "ssfn", 2: MLP(n_units=3), 3: Ridge(), 4: ["ssfn", "kernel"]}
    found = resolve_predictor(choices.get)
    assert isinstance(found, Schedule)
    assert [type(found.predictor_of(step)) for step in choices] == [SSFN, MLP, EstimatorPredictor, Committee]
    assert found.predictor_of(2) is choices[2]


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": ("forest", ValueError, "predictor='forest' is unknown: use one of ssfn, mlp, cnn, kernel."),
    "unknown name in a list": (["ssfn", "MLP"], ValueError, "predictor='MLP' is unknown: use one of ssfn, mlp"),
    "empty list": ([], ValueError, r"predictor=\[\] is empty: give at least one predictor"),
    "empty tuple": ((), ValueError, "is empty: give at least one predictor"),
    "class": (MLP, TypeError, r"predictor=MLP is a class: give an object, made with MLP\(…\)"),
    "estimator class": (Ridge, TypeError, r"predictor=Ridge is a class: give an object, made with Ridge\(…\)"),
    "class in a list": (["ssfn", SVC], TypeError, r"predictor=SVC is a class: give an object, made with SVC\(…\)"),
    "number": (5, TypeError, r"predictor=5 can't predict: give a name \(ssfn, mlp, cnn, kernel\), an object of"),
    "None": (None, TypeError, "predictor=None can't predict: .* or a callable that returns one for each step"),
    "transformer": (PCA(), TypeError, r"predictor=PCA\(\) can't predict"),
    "number in a list": (["ssfn", 5], TypeError, "predictor=5 can't predict"),
    "list in a list": (["ssfn", ["mlp"]], TypeError, r"predictor=\['mlp'\] can't predict"),
    "callable in a list": (["ssfn", lambda step: "mlp"], TypeError, "predictor=<function .* can't predict"),
    "mapping": ({"mlp": 1}, TypeError, "predictor={'mlp': 1} can't predict"),
}


@pytest.mark.parametrize(("given", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve_predictor(given)


MISTAKEN_STEPS: dict[str, tuple[Any, type[Exception], str]] = {
    "callable": (lambda step: "mlp", TypeError, "returned a callable for step 2: it must return a predictor"),
    "class": (MLP, TypeError, "predictor=MLP is a class"),
    "unknown name": ("forest", ValueError, "predictor='forest' is unknown"),
    "nothing": (None, TypeError, "predictor=None can't predict"),
    "empty list": ([], ValueError, r"predictor=\[\] is empty"),
}


@pytest.mark.parametrize(("returned", "error", "message"), MISTAKEN_STEPS.values(), ids=MISTAKEN_STEPS)
def test_mistakes_of_a_step_are_named(returned: Any, error: type[Exception], message: str) -> None:
    schedule = resolve_predictor(lambda step: "ssfn" if step == 1 else returned)
    assert type(schedule.predictor_of(1)) is SSFN
    with pytest.raises(error, match=message):
        schedule.predictor_of(2)


def test_a_torch_network_is_no_schedule() -> None:
    with pytest.raises(TypeError, match=r"Sequential is a torch module: give CNN\(network=…\) a function"):
        resolve_predictor(nn.Sequential(nn.Linear(3, 1)))


def test_an_estimator_that_can_be_called_is_an_estimator() -> None:
    class Called(Ridge):
        def __call__(self, X: Any) -> Any:
            return self.predict(X)

    assert isinstance(resolve_predictor(Called()), EstimatorPredictor)
