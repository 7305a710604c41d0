"""The file of a fitted selector: an archive with a JSON document and arrays."""

from __future__ import annotations

import json
import re
import sys
import warnings
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

import ngp
from ngp.data.groups import make_groups
from ngp.greedy.path import Step
from ngp.greedy.stability import Stability
from ngp.io import write_whole
from ngp.persistence.values import CannotSave, Reader, Writer
from ngp.predictors.estimator import FittedEstimator
from ngp.selector import NeuralGreedyPursuit

__all__ = ["load", "save"]

FORMAT = "neural-greedy-pursuit selector"
VERSION = 1
DOCUMENT = "selector.json"
# Parameters that only tell how a run is watched: a file leaves them out without a word.
WATCHING = ("callback",)
# What a fitted selector has beside the attributes that scikit-learn's convention shows by a last underscore.
PRIVATE = ("_single_output", "_sklearn_output_config")
# Made of the steps again.
DERIVED = ("losses_",)


def save(selector: NeuralGreedyPursuit, path: str | PathLike[str], *, stacklevel: int = 2) -> None:
    """Write a fitted selector to a file, without pickle.

    Warns
    -----
    UserWarning
        Where a parameter can't be saved, such as a function. The loaded selector predicts all the same, and has a
        mark in the parameter's place, which `fit` refuses.
    """
    if type(selector) is not NeuralGreedyPursuit:
        raise TypeError(f"save takes a NeuralGreedyPursuit, and not a {type(selector).__name__}.")
    check_is_fitted(selector)
    writer = Writer()
    parameters = selector.get_params(deep=False)
    kept = {name: None if name in WATCHING else value for name, value in parameters.items()}
    try:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": {"neural-greedy-pursuit": ngp.__version__, "scikit-learn": sklearn.__version__},
            "parameters": {name: writer.parameter(name, value) for name, value in kept.items()},
            "fitted": {
                name: writer.attribute(value) for name, value in vars(selector).items() if _is_fitted_name(name)
            },
        }
    except CannotSave as error:
        raise ValueError(f"This selector can't be saved: it holds {error}.") from error
    if writer.left_out:
        names = ", ".join(dict.fromkeys(writer.left_out))
        warnings.warn(
            f"The file doesn't hold {names}: what is loaded predicts as this selector does, but before it is fitted "
            "again that must be given anew.",
            stacklevel=stacklevel,
        )
    write_whole(Path(path), _archive(document, writer.members))


def _is_fitted_name(name: str) -> bool:
    """Whether a selector's attribute is something that `fit` has found, and that a file holds."""
    usual = re.fullmatch("[a-z][a-z0-9_]*_", name) and name not in DERIVED
    return bool(usual) or name in PRIVATE


def _archive(document: dict[str, Any], members: dict[str, bytes]) -> bytes:
    content = BytesIO()
    text = json.dumps(document, allow_nan=False, indent=1)
    with ZipFile(content, "w") as archive:
        for name, data in {DOCUMENT: text.encode(), **members}.items():
            archive.writestr(ZipInfo(name), data)  # without the time: equal selectors give equal files
    return content.getvalue()


def load(path: str | PathLike[str]) -> NeuralGreedyPursuit:
    """Read a fitted selector from a file that `save` has written.

    The file can only name types of a fixed list, all of which hold data and nothing else; no code of it is run.
    """
    path = Path(path)
    content = path.read_bytes()
    try:
        archive = ZipFile(BytesIO(content))
        document = _document(archive)
    except Exception as error:  # of whatever kind a broken archive or document raises
        raise ValueError(
            f"{path} is no saved selector, or not a whole one: give a file that save has written."
        ) from error
    if document["version"] > VERSION:
        raise ValueError(
            f"{path} has the format {document['version']}, and this version reads {VERSION}: "
            "install a newer neural-greedy-pursuit."
        )
    try:
        return _selector(document, Reader(archive))
    except ImportError:
        raise
    except Exception as error:  # of whatever kind numpy, torch or skops raise at what nobody has written
        first = re.split(r"\.\s|\n", str(error))[0].rstrip(".")
        reason = f" ({first})" if type(error) is ValueError else ""
        raise ValueError(f"{path} is damaged or was changed{reason}: save the selector again.") from error


def _document(archive: ZipFile) -> dict[str, Any]:
    """The document of an archive; an error where it isn't one of ours."""
    document = json.loads(archive.read(DOCUMENT), parse_constant=_refuse_constant)
    if not isinstance(document, dict) or document["format"] != FORMAT:
        raise ValueError("another format")
    if type(document["version"]) is not int or document["version"] < 1:
        raise ValueError("no version")
    return document


def _refuse_constant(token: str) -> Any:
    raise ValueError(f"{token} is no JSON")


def _selector(document: dict[str, Any], reader: Reader) -> NeuralGreedyPursuit:
    parameters = {name: reader.decode(value) for name, value in document["parameters"].items()}
    selector = NeuralGreedyPursuit(**parameters)
    for name, value in document["fitted"].items():
        if not _is_fitted_name(name):
            raise ValueError(f"it has an unknown attribute {name}")
        setattr(selector, name, reader.decode(value))
    selector.losses_ = np.array([step.losses for step in selector.path_[1:]])
    selector.losses_ = selector.losses_.reshape(-1, selector.groups_.n_groups)
    _check(selector)
    return selector


def _check(selector: NeuralGreedyPursuit) -> None:
    """Refuse what doesn't fit together."""
    n_features, groups, steps = selector.n_features_in_, selector.groups_, selector.path_
    n_groups, n_columns = make_groups(groups, n_features).n_groups, n_features  # which also checks them
    if selector.encoder_.feature_groups_ is not None:
        n_columns = int(selector.encoder_._ends[-1])
    sound = {
        "encoder_": selector.encoder_.n_features_in_ == n_features,
        "support_": _is_array(selector.support_, "b", (n_features,)),
        "feature_importances_": _is_array(selector.feature_importances_, "f", (n_features,)),
        "order_": _are_numbers(selector.order_, n_groups),
        "fixed_": _are_numbers(selector.fixed_, n_features),
        "stop_reason_": isinstance(selector.stop_reason_, str),
        "task_": selector.task_ == ("classification" if hasattr(selector, "classes_") else "regression"),
        "_single_output": isinstance(selector._single_output, bool),
        "path_": len(steps) > 0 and all(_fits(step, n_groups, n_columns) for step in steps),
        "stability_": _is_stability(getattr(selector, "stability_", None), n_groups),
        "predictor_": _predicts(selector, n_columns),
    }
    wrong = [name for name, fits in sound.items() if not fits]
    if wrong:
        raise ValueError(f"its {wrong[0]} doesn't fit the rest")


def _is_array(value: Any, kind: str, shape: tuple[int, ...]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == kind and value.shape == shape


def _are_numbers(value: Any, limit: int) -> bool:
    """Whether a value is an array of numbers of columns or groups."""
    return _is_array(value, "i", (len(value),)) and bool(((value >= 0) & (value < limit)).all())


def _fits(step: Any, n_groups: int, n_columns: int) -> bool:
    return (
        isinstance(step, Step)
        and step.losses.shape == (n_groups,)
        and step.fold_losses.shape == step.fold_weights.shape == (len(step.fold_weights),)
        and _are_numbers(step.columns, n_columns)
        and (step.action in ("start", "drop")) == (step.group is None)
        and (step.action in ("drop", "swap")) == (step.dropped is not None)
        and all(group is None or group in range(n_groups) for group in (step.group, step.dropped))
    )


def _is_stability(value: Any, n_groups: int) -> bool:
    if not isinstance(value, Stability):
        return value is None
    sound = len(value.selections) > 0 and all(_are_numbers(selected, n_groups) for selected in value.selections)
    return sound and value.n_groups == n_groups


def _predicts(selector: NeuralGreedyPursuit, n_columns: int) -> bool:
    """Whether the predictor makes a row of outputs of a row of zeros; estimators aren't tried, only looked at."""
    fitting = range(1, 2) if selector._single_output else range(1, sys.maxsize)
    if selector.task_ == "classification":
        classes = selector.classes_
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            return False
        n_outputs = 1 if len(classes) == 2 else len(classes)
        fitting = range(n_outputs, n_outputs + 1)
    predictor = selector.predictor_
    if isinstance(predictor, FittedEstimator):
        seen = getattr(predictor.estimator, "n_features_in_", len(predictor.columns))
        return seen == len(predictor.columns) and _are_numbers(predictor.columns, n_columns)
    outputs = predictor.predict(np.zeros((1, n_columns)))
    return outputs.ndim == 2 and len(outputs) == 1 and outputs.shape[1] in fitting
