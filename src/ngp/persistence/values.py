"""Values as a JSON document with arrays beside it, and back.

Numbers, text, truth values, None and lists are what JSON has for them; everything else is an object with a "type":
an array, a scikit-learn estimator, or one of `ngp.persistence.kinds`.
"""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from math import isfinite
from typing import Any
from zipfile import ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from ngp._types import AnyArray
from ngp.persistence.estimators import estimator_bytes, read_estimator
from ngp.persistence.kinds import KINDS, Unsaved, kind_name

__all__ = ["CannotSave", "Reader", "Writer"]

# Kinds of numpy arrays that are stored as such: booleans, numbers, text of fixed length, dates.
PLAIN_ARRAYS = "biufcUSmM"


class CannotSave(ValueError):
    """Something that can't be saved; the message says what."""


class Writer:
    """Turns values into what JSON can say, and keeps what it can't as the content of further files."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self.left_out: list[str] = []
        self._counts: Counter[str] = Counter()
        self._arrays: dict[int, tuple[int, AnyArray]] = {}  # by id; kept, so that no other array gets the same id

    def parameter(self, name: str, value: Any) -> Any:
        """Encode a parameter; where that isn't possible, something that says so takes its place."""
        return self._encode(value, name)

    def attribute(self, value: Any) -> Any:
        """Encode what `fit` has found; `CannotSave` where that isn't possible."""
        return self._encode(value, None)

    def _encode(self, value: Any, parameter: str | None) -> Any:
        if value is None or type(value) in (bool, int, str) or (type(value) is float and isfinite(value)):
            return value
        if type(value) is list:
            return [self._encode(item, parameter) for item in value]
        if parameter is not None and hasattr(value, "__array__") and len(getattr(value, "shape", ())) == 1:
            value = np.asarray(value)  # a series or an index of a data frame
        if isinstance(value, np.ndarray) and value.dtype.kind in PLAIN_ARRAYS:
            return {"type": "array", "number": self._array_number(value)}
        try:
            name = _type_name(value)
            if name is None:
                return {"type": "estimator", "number": self._add("estimators", "skops", estimator_bytes(value))}
            fields = KINDS[name].take(value)
        except ValueError as error:
            if parameter is None:
                raise CannotSave(str(error)) from error
            self.left_out.append(parameter)
            return self._encode(Unsaved(_description(value)), None)
        nested = parameter is not None and isinstance(value, BaseEstimator)  # which has parameters of its own
        inside = {key: self._encode(own, f"{parameter}.{key}" if nested else parameter) for key, own in fields.items()}
        return {"type": name, **inside}

    def _array_number(self, array: AnyArray) -> int:
        if id(array) not in self._arrays:
            content = BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            self._arrays[id(array)] = self._add("arrays", "npy", content.getvalue()), array
        return self._arrays[id(array)][0]

    def _add(self, folder: str, ending: str, content: bytes) -> int:
        number = self._counts[folder]
        self._counts[folder] += 1
        self.members[f"{folder}/{number}.{ending}"] = content
        return number


def _type_name(value: Any) -> str | None:
    """Name of an object's kind; None for a scikit-learn estimator."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OT":
        return "objects"
    if isinstance(value, np.generic) and value.dtype.kind in PLAIN_ARRAYS:
        return "scalar"
    name = "float" if type(value) is float else kind_name(value)
    if name is None and not (isinstance(value, BaseEstimator) and not isinstance(value, type)):
        raise ValueError(_description(value))
    return name


def _description(value: Any) -> str:
    """What something is, in a few words that are the same in every run."""
    name = getattr(value, "__qualname__", None)
    kind = type(value).__name__
    return f"{kind} {name}" if isinstance(name, str) else f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}"


class Reader:
    """Turns the document back into values.

    Files are read in memory by numbers that the document gives, never unpacked: names of further files in the archive
    mean nothing.
    """

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._arrays: dict[int, AnyArray] = {}

    def decode(self, value: Any) -> Any:
        """Return the value that a part of the document stands for."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        name = value.get("type")
        if name == "array":
            return self._array(_number(value))
        if name == "estimator":
            return read_estimator(self._archive.read(f"estimators/{_number(value)}.skops"))
        if name not in KINDS:
            raise ValueError(f"it holds a {name!r}, which no saved selector has")
        return KINDS[name].make(**{key: self.decode(own) for key, own in value.items() if key != "type"})

    def _array(self, number: int) -> AnyArray:
        if number not in self._arrays:
            content = BytesIO(self._archive.read(f"arrays/{number}.npy"))
            array = np.lib.format.read_array(content, allow_pickle=False)
            if array.dtype.kind not in PLAIN_ARRAYS or content.read(1):
                raise ValueError(f"array {number} is no plain array")
            self._arrays[number] = array
        return self._arrays[number]


def _number(value: dict[str, Any]) -> int:
    number = value["number"]
    if type(number) is not int:
        raise ValueError(f"it refers to a file by {number!r}")
    return number
