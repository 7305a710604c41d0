"""From what users write to a predictor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ngp.predictors.base import Predictor
from ngp.predictors.cnn import CNN
from ngp.predictors.committee import Committee, Schedule
from ngp.predictors.estimator import EstimatorPredictor
from ngp.predictors.kernel import Kernel
from ngp.predictors.mlp import MLP
from ngp.predictors.ssfn import SSFN

__all__ = ["PREDICTORS", "resolve_predictor"]

PREDICTORS: dict[str, Callable[[], Predictor]] = {"ssfn": SSFN, "mlp": MLP, "cnn": CNN, "kernel": Kernel}


def resolve_predictor(given: Any) -> Predictor:
    """Make a predictor of a name, a predictor, a scikit-learn estimator, a list of those, or a callable."""
    if isinstance(given, type):
        raise TypeError(f"predictor={given.__name__} is a class: give an object, made with {given.__name__}(…).")
    if isinstance(given, list | tuple):
        if not given:
            raise ValueError("predictor=[] is empty: give at least one predictor.")
        return Committee([_resolve_one(member) for member in given])
    if callable(given) and not any(hasattr(given, name) for name in ("bind", "fit", "forward")):
        return Schedule(lambda step: _of_step(given, step))
    return _resolve_one(given)


def _of_step(given: Callable[[int], Any], step: int) -> Predictor:
    predictor = resolve_predictor(given(step))
    if isinstance(predictor, Schedule):
        raise TypeError(f"predictor(step) returned a callable for step {step}: it must return a predictor.")
    return predictor


def _resolve_one(given: Any) -> Predictor:
    if isinstance(given, type):
        raise TypeError(f"predictor={given.__name__} is a class: give an object, made with {given.__name__}(…).")
    if isinstance(given, str):
        if given not in PREDICTORS:
            raise ValueError(f"predictor={given!r} is unknown: use one of {', '.join(PREDICTORS)}.")
        return PREDICTORS[given]()
    if isinstance(given, Predictor):
        return given
    if hasattr(given, "bind"):
        raise TypeError(f"predictor={given!r} is no ngp.predictors.Predictor: let its class inherit from that.")
    if hasattr(given, "fit") and hasattr(given, "predict"):
        return EstimatorPredictor(given)
    if hasattr(given, "forward"):
        raise TypeError(
            f"predictor={type(given).__name__} is a torch module: give CNN(network=…) a function that makes such."
        )
    raise TypeError(
        f"predictor={given!r} can't predict: give a name ({', '.join(PREDICTORS)}), an object of ngp.predictors, "
        "a scikit-learn estimator, a list of those, or a callable that returns one for each step."
    )
