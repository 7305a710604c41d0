"""Which objects a saved selector may hold, and how each is taken apart and put together.

This is the list that makes loading safe: a file can name nothing but what is here, and what is here does nothing but
hold data. Fields are values again: plain ones, arrays, or objects of this list.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn import model_selection

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.encoding import ColumnEncoder
from ngp.data.groups import Groups, make_groups
from ngp.greedy.path import Step
from ngp.greedy.stability import Stability
from ngp.greedy.stopping import (
    BeyondChance,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    Plateau,
    RelativeImprovement,
)
from ngp.kernels.layers import Network
from ngp.persistence.modules import network_fields, network_predictor
from ngp.predictors.base import ColumnSets
from ngp.predictors.cnn import CNN, SeenPixels
from ngp.predictors.committee import Committee
from ngp.predictors.constant import Constant
from ngp.predictors.estimator import EstimatorPredictor, FittedEstimator
from ngp.predictors.kernel import Kernel
from ngp.predictors.kernel_predictor import KernelPredictor
from ngp.predictors.mlp import MLP
from ngp.predictors.networks import NetworkPredictor
from ngp.predictors.scaling import ScaledColumns
from ngp.predictors.ssfn import SSFN
from ngp.predictors.ssfn_scorer import SSFNPredictor

__all__ = ["KINDS", "Kind", "Unsaved", "kind_name"]


@dataclass(frozen=True, repr=False)
class Unsaved:
    """Stands for a parameter that a file can't hold, such as a function; `fit` refuses it."""

    what: str  # what it was

    def __repr__(self) -> str:
        return f"<{self.what}, which was not saved: give it again>"


class Kind(NamedTuple):
    """How objects of one type are taken apart into named fields, and put together of them."""

    take: Callable[[Any], dict[str, Any]]
    make: Callable[..., Any]


DATA = (
    Step, Constant, SSFNPredictor, Network, KernelPredictor, FittedEstimator, ScaledColumns, SeenPixels, Unsaved,
    Stability, MaxFeatures, MaxColumns, RelativeImprovement, Plateau, BeyondChance, MaxTime, MaxFits, FirstOf,
)  # fmt: skip
SETTINGS = (SSFN, MLP, CNN, Kernel, EstimatorPredictor)
SPLITTERS = tuple(
    getattr(model_selection, name)
    for name in (
        "KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold", "RepeatedKFold", "RepeatedStratifiedKFold",
        "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit", "LeaveOneOut", "LeavePOut", "LeaveOneGroupOut",
        "LeavePGroupsOut", "PredefinedSplit", "TimeSeriesSplit",
    )
)  # fmt: skip
# Values that categories of a pandas data frame may be; pandas is imported only where a file has them.
PANDAS = ("Interval", "Timestamp", "Timedelta")


def kind_name(value: Any) -> str | None:
    """Return the name under which an object is saved, or None where it can't be."""
    cls = type(value)
    if cls.__module__.partition(".")[0] == "pandas" and cls.__name__ in PANDAS:
        return f"pandas.{cls.__name__}"
    return NAMES.get(cls)


def _data_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _checked(cls: type[Any], **values: Any) -> Any:
    """An object of a dataclass whose fields are of the types that the class asks for."""
    hints = get_type_hints(cls)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(f"{cls.__name__}.{name} is a {type(value).__name__}")
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, for the types that occur here."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return isinstance(value, np.ndarray) and (scalar is Any or value.dtype.kind == np.dtype(scalar).kind)
    if origin in (tuple, Sequence):
        return isinstance(value, tuple | list) and all(_fits(item, arguments[0]) for item in value)
    return isinstance(value, origin or hint)


def _splitter_fields(splitter: Any) -> dict[str, Any]:
    """The arguments that a splitter was made with; repeated splitters keep some of them apart."""
    state = {**vars(splitter), **getattr(splitter, "cvargs", {})}
    return {name: state[name] for name in signature(type(splitter)).parameters}


def _group_fields(groups: Groups) -> dict[str, Any]:
    """Groups in a few arrays; where every column is a group of its own, only how many there are."""
    computed = groups.is_numbered
    shared = {"names": None if computed else list(groups.names), "costs": groups.costs}
    if groups.are_columns:
        return {"n_columns": len(groups.columns), **shared}
    sets = ColumnSets.of(groups.columns)
    return {"columns": sets.columns, "bounds": sets.bounds, **shared}


def _make_groups(
    names: list[str] | None,
    costs: FloatArray,
    n_columns: int | None = None,
    columns: IntArray | None = None,
    bounds: IntArray | None = None,
) -> Groups:
    if n_columns is not None:
        return make_groups(None, n_columns, names, costs)
    if columns is None or bounds is None or names is None or len(names) != len(bounds) - 1:
        raise ValueError("groups have no columns or no names")
    sets = ColumnSets(columns, bounds)
    return Groups(tuple(sets[group] for group in range(len(sets))), tuple(names), costs)


def _encoder_fields(encoder: ColumnEncoder) -> dict[str, Any]:
    return {
        "n_features": encoder.n_features_in_,
        "names": encoder.feature_names_,
        "categories": [[position, list(places)] for position, places in encoder._places.items()],
    }


def _make_encoder(n_features: int, names: list[str] | None, categories: list[tuple[int, list[Any]]]) -> ColumnEncoder:
    encoder = ColumnEncoder()
    encoder.n_features_in_, encoder.feature_names_, encoder.feature_groups_ = n_features, names, None
    encoder._places = {place: {value: i for i, value in enumerate(values)} for place, values in categories}
    widths = np.ones(n_features, dtype=np.intp)
    for position, places in encoder._places.items():
        widths[position] = len(places)
    encoder._ends = np.cumsum(widths)
    if encoder._places:
        encoder.feature_groups_ = tuple(np.split(np.arange(widths.sum()), encoder._ends[:-1]))
    if names is not None and len(names) != n_features:
        raise ValueError("there is not one name for each column")
    return encoder


def _make_random_state(state: tuple[Any, ...]) -> np.random.RandomState:
    random = np.random.RandomState(0)
    random.set_state(state)
    return random


def _make_object_array(items: list[Any], shape: tuple[int, ...], dtype: Literal["object", "string"]) -> AnyArray:
    if dtype == "string":
        return np.array(items, dtype=np.dtypes.StringDType()).reshape(shape)
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values.reshape(shape)


def _make_pandas(name: str, **values: Any) -> Any:
    if find_spec("pandas") is None:
        raise ImportError(f"A selector with categories of the type {name} needs pandas: install it.")
    import pandas as pd

    return getattr(pd, name)(**values)


def _by_text(cls: Any) -> Kind:
    return Kind(lambda value: {"text": value.isoformat()}, lambda text: cls.fromisoformat(text))


KINDS: dict[str, Kind] = {
    **{cls.__name__: Kind(_data_fields, partial(_checked, cls)) for cls in DATA},
    **{cls.__name__: Kind(lambda value: value.get_params(deep=False), cls) for cls in SETTINGS},
    **{cls.__name__: Kind(_splitter_fields, cls) for cls in SPLITTERS},
    "Committee": Kind(lambda value: {"members": list(value.members)}, Committee),
    "Groups": Kind(_group_fields, _make_groups),
    "ColumnEncoder": Kind(_encoder_fields, _make_encoder),
    "NetworkPredictor": Kind(network_fields, network_predictor),
    "RandomState": Kind(lambda value: {"state": value.get_state()}, _make_random_state),
    "float": Kind(lambda value: {"text": str(value)}, lambda text: float(text)),
    "tuple": Kind(lambda value: {"items": list(value)}, lambda items: tuple(items)),
    "dict": Kind(
        lambda value: {"items": [list(item) for item in value.items()]}, lambda items: {key: own for key, own in items}
    ),
    "range": Kind(
        lambda value: {"start": value.start, "stop": value.stop, "step": value.step},
        lambda start, stop, step: range(start, stop, step),
    ),
    "scalar": Kind(lambda value: {"value": np.asarray(value)}, lambda value: value[()]),
    "objects": Kind(
        lambda value: {
            "items": value.ravel().tolist(),
            "shape": value.shape,
            "dtype": "object" if value.dtype.kind == "O" else "string",
        },
        _make_object_array,
    ),
    "path": Kind(lambda value: {"text": str(value)}, lambda text: Path(text)),
    "date": _by_text(date),
    "datetime": _by_text(datetime),
    "timedelta": Kind(
        lambda value: {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}, timedelta
    ),
    "pandas.Interval": Kind(
        lambda value: {"left": value.left, "right": value.right, "closed": value.closed},
        partial(_make_pandas, "Interval"),
    ),
    "pandas.Timestamp": Kind(
        lambda value: {"ts_input": value.isoformat()},
        partial(_make_pandas, "Timestamp"),
    ),
    "pandas.Timedelta": Kind(lambda value: {"value": value.isoformat()}, partial(_make_pandas, "Timedelta")),
}
OTHERS = (Committee, Groups, ColumnEncoder, NetworkPredictor, np.random.RandomState, tuple, dict, range)
NAMES: dict[type[Any], str] = {
    **{cls: cls.__name__ for cls in (*DATA, *SETTINGS, *SPLITTERS, *OTHERS, date, datetime, timedelta)},
    type(Path()): "path",
}
