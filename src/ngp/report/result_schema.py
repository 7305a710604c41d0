"""The shape of a result's JSON document, and the check that a document has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["NAME", "SCHEMA", "VERSION", "check_document", "field_names"]

NAME, VERSION = "ngp-result", 1

TEXT, WHOLE, FLAG, NUMBER = (str,), (int,), (bool,), (int, float)
MAYBE_TEXT, MAYBE_WHOLE, MAYBE_NUMBER = (str, type(None)), (int, type(None)), (int, float, type(None))
ANYTHING: tuple[type, ...] = ()


class Maybe:
    """A part that may be null."""

    def __init__(self, part: Any) -> None:
        self.part = part


# A dict names the fields of an object, a list holds the shape of all items, a tuple the types of a value.
SCHEMA: dict[str, Any] = {
    "schema": TEXT,
    "created": TEXT,
    "versions": {"ngp": TEXT, "python": TEXT, "numpy": TEXT, "scikit-learn": TEXT, "platform": TEXT},
    "asked": {
        "task": TEXT,
        "target": TEXT,
        "classes": Maybe([TEXT]),
        "n_samples": WHOLE,
        "n_features": WHOLE,
        "n_groups": WHOLE,
        "n_outputs": WHOLE,
        "predictor": TEXT,
        "cv": TEXT,
        "loss": TEXT,
        "seed": MAYBE_WHOLE,
        "parameters": ANYTHING,
        "call": TEXT,
        "imports": [TEXT],
        "variables": [TEXT],
    },
    "features": {"names": [TEXT], "categories": [MAYBE_WHOLE], "fixed": [WHOLE]},
    "groups": {"names": [TEXT], "columns": [[WHOLE]], "costs": [NUMBER]},
    "answer": {
        "order": [WHOLE],
        "names": [TEXT],
        "ranking": [MAYBE_WHOLE],
        "importances": [NUMBER],
        "support": [FLAG],
        "n_selected": WHOLE,
        "loss": MAYBE_NUMBER,
        "standard_error": MAYBE_NUMBER,
        "constant_loss": MAYBE_NUMBER,
        "stop_reason": TEXT,
        "partial": FLAG,
        "seconds": NUMBER,
        "n_fits": WHOLE,
    },
    "path": [
        {
            "action": TEXT,
            "group": MAYBE_WHOLE,
            "name": TEXT,
            "columns": [WHOLE],
            "before": MAYBE_NUMBER,
            "loss": MAYBE_NUMBER,
            "standard_error": MAYBE_NUMBER,
            "gain": MAYBE_NUMBER,
            "runner_up": MAYBE_WHOLE,
            "runner_up_loss": MAYBE_NUMBER,
            "seconds": NUMBER,
            "n_fits": WHOLE,
            "n_selected": WHOLE,
            "n_columns": WHOLE,
            "fold_losses": [MAYBE_NUMBER],
            "fold_weights": [NUMBER],
            "losses": [MAYBE_NUMBER],
            "predictor": TEXT,
            "kept": FLAG,
            "chance": MAYBE_NUMBER,
            "dropped": MAYBE_WHOLE,
            "ahead": MAYBE_NUMBER,
            "n_ahead": WHOLE,
            "certainty": MAYBE_NUMBER,
        }
    ],
    "correlations": [{"group": WHOLE, "others": [{"group": WHOLE, "correlation": NUMBER}]}],
    "stability": Maybe(
        {
            "n_halves": WHOLE,
            "n_selected": NUMBER,
            "frequencies": [NUMBER],
            "threshold": NUMBER,
            "stable": [WHOLE],
            "expected_false": NUMBER,
            "stand_ins": [{"groups": [WHOLE], "correlation": NUMBER}],
        }
    ),
    "fit": {
        "rows": TEXT,
        "n_rows": WHOLE,
        "r2": MAYBE_NUMBER,
        "rmse": MAYBE_NUMBER,
        "accuracy": MAYBE_NUMBER,
        "scatter": Maybe({"output": WHOLE, "truth": [MAYBE_NUMBER], "predicted": [MAYBE_NUMBER]}),
        "confusion": Maybe({"classes": [TEXT], "counts": [[WHOLE]]}),
    },
    "image": Maybe({"shape": [WHOLE], "ranks": [[MAYBE_WHOLE]], "mean": [[MAYBE_NUMBER]]}),
}


def field_names(shape: Any = SCHEMA, prefix: str = "") -> Iterator[str]:
    """Dotted names of all fields; items of a list of objects are marked with []."""
    shape = shape.part if isinstance(shape, Maybe) else shape
    if isinstance(shape, list):
        yield from field_names(shape[0], f"{prefix}[]")
    if isinstance(shape, dict):
        for name, part in shape.items():
            dotted = f"{prefix}.{name}" if prefix else name
            yield dotted
            yield from field_names(part, dotted)


def check_document(document: Any) -> None:
    """Raise a ValueError that says what is wrong with a document, if anything is."""
    schema = document.get("schema") if isinstance(document, dict) else None
    name, _, version = schema.partition("/") if isinstance(schema, str) else ("", "", "")
    if name != NAME or not version.isdecimal():
        raise ValueError(f"it is no result of ngp, which would say {NAME}/{VERSION} in its field schema")
    if int(version) > VERSION:
        raise ValueError(f"its schema {schema} is newer than {NAME}/{VERSION}, which this version of ngp reads")
    _check(document, SCHEMA, "")
    _check_numbers(document)


def _check(value: Any, shape: Any, where: str) -> None:
    if isinstance(shape, Maybe):
        if value is None:
            return
        shape = shape.part
    if isinstance(shape, dict):
        _require(isinstance(value, dict), where, "an object")
        for name, part in shape.items():
            dotted = f"{where}.{name}" if where else name
            if name not in value:
                raise ValueError(f"it lacks the field {dotted}")
            _check(value[name], part, dotted)
    elif isinstance(shape, list):
        _require(isinstance(value, list), where, "a list")
        if isinstance(shape[0], tuple):  # all at once: there may be millions
            _require(set(map(type, value)) <= set(shape[0]), where, f"a list of {_kinds(shape[0])}")
            return
        for item in value:
            _check(item, shape[0], f"{where}[]")
    elif shape:
        _require(type(value) in shape, where, _kinds(shape))


def _check_numbers(document: dict[str, Any]) -> None:
    """Every number of a group or a column must be one that there is, and lists that belong together must match."""
    groups, features, image = document["groups"], document["features"], document["image"]
    n_groups, n_features, path = len(groups["names"]), len(features["names"]), document["path"]
    lengths = [
        ("groups.columns", groups["columns"], n_groups),
        ("groups.costs", groups["costs"], n_groups),
        ("features.categories", features["categories"], n_features),
        *((f"answer.{name}", document["answer"][name], n_features) for name in ("ranking", "importances", "support")),
        *(("path[].losses", step["losses"], n_groups) for step in path),
    ]
    stability = document["stability"]
    if stability is not None:
        lengths += [("stability.frequencies", stability["frequencies"], n_groups)]
        lengths += [("stability.stand_ins[].groups", pair["groups"], 2) for pair in stability["stand_ins"]]
    for where, values, length in lengths:
        _require(len(values) == length, where, f"a list of length {length}")
    used = [*document["answer"]["order"], *(item["group"] for item in document["correlations"])]
    used += [other["group"] for item in document["correlations"] for other in item["others"]]
    named = [step[name] for step in path for name in ("group", "runner_up", "dropped")]
    used += [group for group in named if group is not None]
    if stability is not None:
        used += stability["stable"] + [group for pair in stability["stand_ins"] for group in pair["groups"]]
    _require(all(0 <= group < n_groups for group in used), "groups.names", "long enough for all groups in use")
    columns = [column for step in path for column in step["columns"]] + features["fixed"]
    columns += [column for members in groups["columns"] for column in members]
    _require(all(0 <= column < n_features for column in columns), "features.names", "long enough for all columns")
    _require(bool(path), "path", "at least the start")
    _check_pictures(document["fit"], image)


def _check_pictures(fit: dict[str, Any], image: dict[str, Any] | None) -> None:
    if fit["scatter"] is not None:
        truth, predicted = fit["scatter"]["truth"], fit["scatter"]["predicted"]
        _require(len(truth) == len(predicted), "fit.scatter", "as many truths as predictions")
    if fit["confusion"] is not None:
        classes, counts = fit["confusion"]["classes"], fit["confusion"]["counts"]
        square = len(counts) == len(classes) and all(len(row) == len(classes) for row in counts)
        _require(square, "fit.confusion.counts", "a square, one row a class")
    if image is not None:
        shape = image["shape"]
        _require(len(shape) in (2, 3) and min(shape) > 0, "image.shape", "two or three positive numbers")
        for name in ("ranks", "mean"):
            fits = len(image[name]) == shape[0] and all(len(row) == shape[1] for row in image[name])
            _require(fits, f"image.{name}", "of the image's shape")


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise ValueError(f"its field {where} must be {what}")


def _kinds(types: tuple[type, ...]) -> str:
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
    return " or ".join(dict.fromkeys(words[kind] for kind in types if not (kind is int and float in types)))
