"""What a fitted selector found, as plain values: the parts of a result's document."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix, r2_score

from ngp import _formatting as words
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.groups import Groups
from ngp.data.sources import as_columns, in_memory
from ngp.greedy.path import additions
from ngp.greedy.stability import STABLE_FROM

__all__ = [
    "answer",
    "class_names",
    "correlations",
    "described",
    "features",
    "fit_on",
    "groups",
    "image",
    "path",
    "plain",
    "stability",
    "versions",
]

MOST_POINTS = 1000
MOST_CLASSES = 20
MOST_CORRELATED = 5
# Columns that are correlated at once: enough to be quick, few enough to need little memory.
CHUNK = 256


def plain(value: Any) -> Any:
    """Turn numbers and arrays of numpy into what JSON can hold; what is no finite number becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if np.isfinite(float(value)) else None
    return described(value)


def described(value: Any) -> str:
    """An object in words, without the address that changes from run to run."""
    if isinstance(value, BaseEstimator):
        return str(value.__repr__(N_CHAR_MAX=10_000))
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return words.described(value)


def versions() -> dict[str, str]:
    """What ran: packages and the kind of machine, and nothing that names one."""
    import sklearn

    from ngp import __version__

    return {
        "ngp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def features(selector: Any) -> dict[str, Any]:
    """The columns of X: names, how many categories each has, and which were fixed."""
    names = selector.encoder_.feature_names_ or [f"x{column}" for column in range(selector.n_features_in_)]
    categories = selector.encoder_.categories_
    return {
        "names": list(map(str, names)),
        "categories": [len(categories[column]) if column in categories else None for column in range(len(names))],
        "fixed": selector.fixed_.tolist(),
    }


def groups(selector: Any) -> dict[str, Any]:
    """The candidates and their columns of X."""
    return {
        "names": list(map(str, selector.groups_.names)),
        "columns": [columns.tolist() for columns in selector.groups_.columns],
        "costs": selector.groups_.costs.tolist(),
    }


def answer(selector: Any) -> dict[str, Any]:
    """What was selected, in which order, and why it ended there."""
    steps = selector.path_
    kept = [step for step in steps if step.kept]
    origin = _origin(selector)
    ranking: list[int | None] = [None] * selector.n_features_in_
    for rank, step in enumerate(additions(steps), 1):
        for column in np.unique(origin[step.columns]):
            ranking[column] = rank
    return {
        "order": selector.order_.tolist(),
        "names": [str(selector.groups_.names[group]) for group in selector.order_],
        "ranking": ranking,
        "importances": selector.feature_importances_.tolist(),
        "support": selector.support_.tolist(),
        "n_selected": kept[-1].n_selected,
        "loss": plain(kept[-1].loss),
        "standard_error": plain(kept[-1].standard_error),
        "constant_loss": plain(selector.constant_loss_),
        "stop_reason": selector.stop_reason_,
        "partial": bool(selector.partial_),
        "seconds": float(sum(step.seconds for step in steps)),
        "n_fits": sum(step.n_fits for step in steps),
    }


def path(selector: Any) -> list[dict[str, Any]]:
    """All steps with all their fields; columns are those of X, before categories became several."""
    origin = _origin(selector)
    steps = []
    for step in selector.path_:
        values = {field.name: plain(getattr(step, field.name)) for field in fields(step)}
        steps.append(values | {"columns": np.unique(origin[step.columns]).tolist()})
    return steps


def correlations(selector: Any, X: Any) -> list[dict[str, Any]]:
    """For each selected group the passed-over ones that are most correlated with it.

    Between groups of several columns it is the largest absolute correlation of any two of their columns.
    """
    data, candidates = in_memory(selector.encoder_.transform(as_columns(X))), selector.groups_
    data = data if isinstance(data, np.ndarray) else np.asarray(data)
    blocks = selector.encoder_.feature_groups_
    if blocks is not None:
        candidates = candidates.expand(blocks)
    taken = np.zeros(data.shape[1], dtype=bool)
    for step in (selector.path_[0], *additions(selector.path_)):
        taken[step.columns] = True
    order = selector.order_.tolist()
    if not order:
        return []
    strongest = _strongest(data, [candidates.columns[group] for group in order], taken)
    lists = []
    for group, values in zip(order, _by_group(strongest, candidates), strict=True):
        top = np.argsort(-values, kind="stable")[:MOST_CORRELATED]
        others = [{"group": int(i), "correlation": float(values[i])} for i in top if values[i] >= 0]
        lists.append({"group": group, "others": others})
    return lists


def stability(selector: Any) -> dict[str, Any] | None:
    """How often each group was selected on halves of the rows; None where nobody asked."""
    found = getattr(selector, "stability_", None)
    if found is None:
        return None
    return {
        "n_halves": found.n_halves,
        "n_selected": found.n_selected,
        "frequencies": found.frequencies.tolist(),
        "threshold": STABLE_FROM,
        "stable": found.stable(STABLE_FROM).tolist(),
        "expected_false": found.expected_false(STABLE_FROM),
        "stand_ins": [{"groups": list(pair), "correlation": value} for *pair, value in found.stand_ins()],
    }


def fit_on(selector: Any, X: Any, y: Any, rows: str) -> dict[str, Any]:
    """How well the final predictor does on some rows."""
    truth, predicted = np.asarray(y), selector.predict(X)
    empty: dict[str, Any] = dict.fromkeys(("r2", "rmse", "accuracy", "scatter", "confusion"))
    found = {"rows": rows, "n_rows": len(truth)}
    if selector.task_ == "classification":
        return empty | found | _classes_fit(truth.ravel(), predicted, selector.classes_)
    truth, predicted = (np.asarray(values, dtype=np.float64).reshape(len(truth), -1) for values in (truth, predicted))
    shown = np.linspace(0, len(truth) - 1, min(MOST_POINTS, len(truth)), dtype=np.intp)
    return empty | found | {
        "r2": plain(r2_score(truth, predicted)) if len(truth) > 1 else None,
        "rmse": plain(np.sqrt(np.mean((truth - predicted) ** 2))),
        "scatter": {"output": 0, "truth": plain(truth[shown, 0]), "predicted": plain(predicted[shown, 0])},
    }  # fmt: skip


def image(selector: Any, X: Any, shape: Sequence[int] | None) -> dict[str, Any] | None:
    """The step that selected each pixel (0: fixed), and the mean image behind it."""
    if shape is None:
        return None
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1 or np.prod(sizes) != selector.n_features_in_:
        raise ValueError(
            f"image_shape={tuple(shape)!r} doesn't fit the {selector.n_features_in_} columns of X: "
            "give (rows, cols) or (rows, cols, channels) whose product is that number."
        )
    ranks = np.full(selector.n_features_in_, -1)
    for rank, step in enumerate((selector.path_[0], *additions(selector.path_))):
        ranks[step.columns] = rank
    mean = np.asarray(in_memory(selector.encoder_.transform(as_columns(X))), dtype=np.float64).mean(axis=0)
    pixels = (sizes[0], sizes[1], -1)
    # A pixel of several channels came in with the first of them.
    first = np.where(ranks < 0, np.iinfo(np.intp).max, ranks).reshape(pixels).min(axis=2)
    return {
        "shape": list(sizes),
        "ranks": [[int(rank) if rank <= ranks.max() else None for rank in row] for row in first],
        "mean": plain(mean.reshape(pixels).mean(axis=2)),
    }


def _origin(selector: Any) -> IntArray:
    """The column of X that each encoded one stands for."""
    blocks = selector.encoder_.feature_groups_
    if blocks is None:
        return np.arange(selector.n_features_in_)
    return np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])


def _strongest(data: AnyArray, members: list[IntArray], taken: Any) -> FloatArray:
    """Largest absolute correlation of each column with any column of each member; -1 where it is taken itself."""
    chosen = [_standardised(data[:, columns]) for columns in members]
    strongest = np.full((len(members), data.shape[1]), -1.0)
    free = np.flatnonzero(~taken)
    for start in range(0, len(free), CHUNK):
        chunk = free[start : start + CHUNK]
        values = _standardised(data[:, chunk])
        for row, own in enumerate(chosen):
            strongest[row, chunk] = np.abs(own.T @ values).max(axis=0).clip(max=1.0)
    return strongest


def _standardised(values: AnyArray) -> FloatArray:
    """Columns of mean zero and norm one; of zeros where they are constant."""
    centred: FloatArray = values.astype(np.float64)
    centred -= centred.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    scaled: FloatArray = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12)
    return scaled


def _by_group(strongest: FloatArray, candidates: Groups) -> FloatArray:
    """The strongest of a group's columns that are not taken; -1 where all are."""
    if candidates.are_columns:
        return strongest[:, : candidates.n_groups]
    return np.array([strongest[:, columns].max(axis=1) for columns in candidates.columns]).T


def _classes_fit(truth: AnyArray, predicted: AnyArray, classes: AnyArray) -> dict[str, Any]:
    """Accuracy and confusion matrix: the classes with the most rows, and the others as one."""
    known = np.unique(np.concatenate([classes, truth]))
    counts = confusion_matrix(truth, predicted, labels=known)
    names = class_names(known)
    if len(known) > MOST_CLASSES:
        largest = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
        place = np.full(len(known), MOST_CLASSES)
        place[largest] = np.arange(MOST_CLASSES)
        merged = np.zeros((MOST_CLASSES + 1, MOST_CLASSES + 1), dtype=np.intp)
        np.add.at(merged, (place[:, None], place[None, :]), counts)
        counts, names = merged, [*(names[i] for i in largest), "other"]
    accuracy = float(np.mean(truth == predicted))
    return {"accuracy": accuracy, "confusion": {"classes": names, "counts": counts.tolist()}}


def class_names(classes: AnyArray) -> list[str]:
    """Classes as text, whole numbers without a point."""
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in classes.tolist()]
