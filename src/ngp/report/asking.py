"""What a selector was asked, in words, as plain values and as Python code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ngp.data.folds import is_validation_set
from ngp.data.groups import Groups
from ngp.predictors.committee import Committee, Schedule, predictor_names, resolve_predictor
from ngp.report.findings import class_names, described, plain

__all__ = ["asked"]

# Parameters that say where a run writes and whom it tells, not what is selected.
NOT_ASKED = frozenset({"checkpoint", "callback", "verbose"})
# Longer lists are put into words, and left to a variable in the code.
LONGEST_LIST, LONGEST_CODE = 1000, 40


def asked(selector: Any, y: Any, target: str) -> dict[str, Any]:
    """What the selector was asked to do."""
    shape = np.shape(y)
    n_samples, n_outputs = int(shape[0]), int(shape[1]) if len(shape) > 1 else 1
    seed, classes = selector.random_state, getattr(selector, "classes_", None)
    predictor = resolve_predictor(selector.predictor)
    given = {name: value for name, value in selector.get_params(deep=False).items() if name not in NOT_ASKED}
    call, imports, variables = _call(selector, given)
    return {
        "task": selector.task_,
        "target": target,
        "classes": None if classes is None else class_names(classes),
        "n_samples": n_samples,
        "n_features": selector.n_features_in_,
        "n_groups": selector.groups_.n_groups,
        "n_outputs": n_outputs,
        "predictor": _predictor_name(predictor),
        "cv": _cv_in_words(selector.cv),
        "loss": _loss_in_words(selector, predictor),
        "seed": int(seed) if isinstance(seed, Integral) else None,
        "parameters": {name: _short(value) for name, value in given.items()} | _rows_in_words(selector.cv),
        "call": call,
        "imports": imports,
        "variables": variables,
    }


def _predictor_name(predictor: Any) -> str:
    if isinstance(predictor, Committee):
        return ", ".join(predictor.names)
    if isinstance(predictor, Schedule):
        return "another one for each step"
    return predictor_names([predictor])[0]


def _loss_in_words(selector: Any, predictor: Any) -> str:
    """The loss that `fit` made of ``"auto"``, or the name of the scorer."""
    if predictor.scoring is not None:
        return f"scoring: {_short(predictor.scoring)}"
    if selector.loss != "auto":
        return str(selector.loss)
    if selector.task_ == "regression":
        return "squared_error"
    return str(predictor.classification_loss)


def _rows_in_words(cv: Any) -> dict[str, str]:
    """The parameter cv without the rows, where it holds some."""
    return {"cv": _cv_in_words(cv)} if isinstance(cv, list | tuple) else {}


def _cv_in_words(cv: Any) -> str:
    if isinstance(cv, str):
        return "leave one out"
    if isinstance(cv, Integral):
        return f"{cv} random folds"
    if isinstance(cv, Real):
        return f"a random {100 * float(cv):g}% of the rows held out"
    if is_validation_set(cv):
        return f"an explicit validation set of {len(cv[0])} rows"
    if isinstance(cv, list | tuple):
        return f"{len(cv)} given splits"
    return described(cv)


def _short(value: Any) -> Any:
    """A parameter as a plain value, or in words where it is too long to be read."""
    if isinstance(value, np.ndarray) and value.size > LONGEST_LIST:
        return described(value)
    if isinstance(value, list | tuple | range | Mapping) and _size(value) > LONGEST_LIST:
        return f"{type(value).__name__} of length {len(value)}"
    return plain(value)


def _size(value: Any) -> int:
    """Number of items, those of lists within lists counted one by one."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return len(value) if isinstance(value, range | np.ndarray) else 1


def _call(selector: Any, given: dict[str, Any]) -> tuple[str, list[str], list[str]]:
    """The selector as Python code, what to import for it, and what to define before.

    A parameter that can't be written down is given as a variable of the same name.
    """
    defaults = {name: parameter.default for name, parameter in signature(type(selector).__init__).parameters.items()}
    changed = {name: value for name, value in given.items() if not _same(value, defaults.get(name))}
    expressions = {name: _expression(value) for name, value in changed.items()}
    written = {name: text or name for name, text in expressions.items()}
    variables = [name for name, text in expressions.items() if text is None]
    own, imports = type(selector).__name__, {f"from {_public_module(selector)} import {type(selector).__name__}"}
    for name, value in changed.items():
        if name not in variables:
            imports.update(_imports(value))
    call = f"{own}({', '.join(f'{name}={text}' for name, text in written.items())})"
    if len(call) > 88:
        call = f"{own}(\n{''.join(f'    {name}={text},{chr(10)}' for name, text in written.items())})"
    return call, sorted(imports), variables


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | bool | int | float) and bool(value == default))


def _expression(value: Any) -> str | None:
    """Python code that makes the value, where that is short."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, range) or (isinstance(value, BaseEstimator) and not _has_objects(value)):
        return described(value)
    if is_dataclass(value) and not isinstance(value, Groups | type):
        return repr(value)
    if _is_splitter(value) and isinstance(getattr(value, "random_state", None), int | None):
        return repr(value)
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim == 1 else value
    if isinstance(value, list | tuple) and _size(value) <= LONGEST_CODE:
        items = [_expression(item) for item in value]
        if all(item is not None for item in items):
            return f"[{', '.join(map(str, items))}]"
    return None


def _is_splitter(value: Any) -> bool:
    return type(value).__module__.startswith("sklearn.model_selection") and hasattr(value, "split")


def _has_objects(estimator: BaseEstimator) -> bool:
    return any(_expression(value) is None for value in estimator.get_params(deep=False).values())


def _imports(value: Any) -> set[str]:
    if isinstance(value, list | tuple):
        return set().union(*map(_imports, value))
    if isinstance(value, BaseEstimator):
        parts = [value, *(part for part in value.get_params().values() if isinstance(part, BaseEstimator))]
    else:
        parts = [value] if is_dataclass(value) or _is_splitter(value) else []
    return {f"from {_public_module(part)} import {type(part).__name__}" for part in parts}


def _public_module(value: Any) -> str:
    """Where users import an object's class from."""
    parts = type(value).__module__.split(".")
    if parts[0] == "ngp":
        return {"selector": "ngp", "predictors": "ngp.predictors", "ssfn": "ngp"}.get(parts[1], f"ngp.{parts[1]}")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])
