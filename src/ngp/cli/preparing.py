"""From a table and what the user asks for to samples that the selector takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngp._formatting import counted, listed
from ngp.cli.cleaning import categories, fill_gaps, plain, refuse_huge, row_numbers, typed, without_gaps
from ngp.cli.reading import Table
from ngp.cli.saying import Refusal, drop_options, printable, quoted

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from ngp._types import AnyArray

__all__ = ["Samples", "prepare", "read_groups"]

# More classes would take more memory than they are worth: every class is a column of the targets.
MOST_CLASSES = 1000


@dataclass(frozen=True)
class Samples:
    """What is selected from."""

    X: DataFrame  # candidate columns: numbers, booleans and categories, without gaps
    y: AnyArray  # targets
    targets: list[str]  # their names
    task: str  # "regression" or "classification"
    held_out: tuple[DataFrame, AnyArray] | None  # rows that were set aside
    summary: str  # what was found, in one line
    notes: list[str]  # what was done to the data, and what looks odd


def prepare(
    table: Table,
    target: Sequence[str],
    *,
    drop: Sequence[str] = (),
    task: str = "auto",
    missing: str = "error",
    hold_out: float | None = None,
    seed: int = 0,
) -> Samples:
    """Choose columns, check them, deal with gaps, set rows aside."""
    targets = _columns(table, target, "--target")
    dropped = _columns(table, drop, "--drop")
    if both := sorted(set(targets) & set(dropped)):
        raise Refusal(f"--drop {quoted(both)} is the target: leave out another column.")
    frame = table.frame.drop(columns=dropped)
    candidates = frame.columns.drop(targets)
    if not len(candidates):
        raise Refusal(f"{table.source} has no column left to select from: give more columns, or fewer with --drop.")
    frame = typed(table.source, frame[candidates]).join(frame[targets])
    frame, left_out = without_gaps(table.source, frame, targets, missing)
    X, y = frame[candidates], _target_values(table.source, frame[targets])
    refuse_huge(table.source, X)
    task, why = _task(targets, y, task)
    counts = row_numbers(X)
    unnamed = [name for name in counts if name.startswith("Unnamed: ")]
    index = unnamed if len(unnamed) < X.shape[1] else []  # else nothing would be left
    X, counts = X.drop(columns=index), [name for name in counts if name not in index]
    held_out, filled = None, ""
    if hold_out is not None:
        train, test = _split(y, task, hold_out, seed)
        X, X_out, y, y_out = X.iloc[train], X.iloc[test], y[train], y[test]
        _check_targets(targets, y, task)
        X, X_out, filled = fill_gaps(X, X_out)
        held_out = X_out, y_out
    else:
        X, _, filled = fill_gaps(X, None)
    notes = [left_out, filled]
    if index:
        notes.append("Left out the column without a name, which only counts the rows.")
    if counts:
        notes.append(
            f"Note: {quoted(counts)} only counts the rows; if it is no measurement, leave it out with "
            f"{drop_options(counts)}."
        )
    summary = f"{table.source}: {_summary(X, held_out, targets)}: {task}, {why}."
    return Samples(X, y, targets, task, held_out, summary, [each for each in notes if each])


def _columns(table: Table, names: Sequence[str], option: str) -> list[str]:
    columns = [table.column(name, option) for name in names]
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise Refusal(f"{option} names {quoted(twice)} twice: name each column once.")
    return columns


def _target_values(source: str, frame: DataFrame) -> AnyArray:
    """Text as text, numbers as numbers; several targets side by side."""
    import numpy as np

    frame = plain(source, frame, lambda names: f" in the target {quoted(names)}")
    text = categories(frame)
    if text and frame.shape[1] > 1:
        raise Refusal(f"Target {quoted(text)} is text: of several targets each must hold numbers.")
    values: AnyArray = frame.astype(str).to_numpy(dtype=object) if text else frame.to_numpy()
    if not text:
        refuse_huge(source, frame)
        values = values if frame.shape[1] == 1 else values.astype(np.float64)
    return values[:, 0] if frame.shape[1] == 1 else values


def _task(targets: list[str], y: AnyArray, asked: str) -> tuple[str, str]:
    """Regression or classification, and why."""
    from ngp.data.problem import detect_task

    task = detect_task(y) if asked == "auto" else asked
    n_classes = _check_targets(targets, y, task)
    if asked != "auto":
        return task, f"as --task says{f' ({n_classes:,} classes)' if n_classes else ''}"
    if y.ndim == 2:
        return task, f"since there are {y.shape[1]} targets"
    kind = {"O": "it is text", "b": "it is true or false"}.get(y.dtype.kind, "it holds whole numbers")
    if task == "classification":
        return task, f"since {kind} with {n_classes:,} different values (--task overrides)"
    fractions = y.dtype.kind == "f" and bool((y % 1 != 0).any())
    why = "it holds fractions" if fractions else f"it holds {len(set(y.tolist())):,} different whole numbers"
    return task, f"since {why} (--task overrides)"


def _check_targets(targets: list[str], y: AnyArray, task: str) -> int:
    """Refuse what can't be predicted; return the number of classes, zero for a regression."""
    import numpy as np

    for name, values in zip(targets, y.reshape(len(y), -1).T, strict=True):
        if len(set(values.tolist())) < 2:
            raise Refusal(f"Target {quoted([name])} has the same value in all rows: there is nothing to predict.")
    if task == "regression":
        if y.dtype.kind == "O":
            raise Refusal(f"Target {quoted(targets)} is text, which --task regression can't predict: give numbers.")
        return 0
    if y.ndim == 2:
        raise Refusal("--task classification takes one --target: run it once for each.")
    if y.dtype.kind == "f" and (y % 1 != 0).any():
        raise Refusal(
            f"Target {quoted(targets)} holds fractions, which are no classes: leave out --task classification."
        )
    n_classes = len(np.unique(y))
    if n_classes > min(MOST_CLASSES, len(y) / 2):
        raise Refusal(
            f"Target {quoted(targets)} has {n_classes:,} different values in {counted(len(y), 'row')}, too many "
            f"for classes: give a target with at most {MOST_CLASSES:,}, each in two rows on average."
        )
    return n_classes


def _split(y: AnyArray, task: str, share: float, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows to learn from and rows to set aside, alike in their classes where they can be."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    n_test = round(share * len(y))
    if not 1 <= n_test <= len(y) - 2:
        raise Refusal(f"--hold-out {share:g} of {counted(len(y), 'row')} doesn't leave rows on both sides: change it.")
    counts = np.unique(y, return_counts=True)[1] if task == "classification" else np.zeros(1)
    stratified = task == "classification" and counts.min() >= 2 and min(n_test, len(y) - n_test) >= len(counts)
    train, test = train_test_split(
        np.arange(len(y)), test_size=n_test, random_state=seed, stratify=y if stratified else None
    )
    unseen = set(y[test].tolist()) - set(y[train].tolist()) if task == "classification" else set()
    if unseen:
        raise Refusal(
            f"--hold-out {share:g} sets aside all rows of class {quoted(sorted(map(str, unseen)))}: give more rows "
            "of it, or no --hold-out."
        )
    return np.sort(train), np.sort(test)


def _summary(X: DataFrame, held_out: tuple[DataFrame, AnyArray] | None, targets: list[str]) -> str:
    rows = counted(len(X), "row")
    if held_out is not None:
        rows += f" to learn from and {len(held_out[0]):,} held out"
    names = [printable(name) for name in categories(X)]
    text = f" ({len(names)} of text, one-hot as groups: {listed(names)})" if names else ""
    return f"{rows}, {counted(X.shape[1], 'column')}{text} to select from; target {quoted(targets)}"


def read_groups(path: Path, table: Table, candidates: Sequence[str]) -> dict[str, list[str]]:
    """Groups of columns from a JSON file; columns in none of them stay groups of their own."""
    try:
        groups = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_repetition)
    except OSError as error:
        raise Refusal(f"--groups {path} can't be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:200] or "it is no JSON"
        raise Refusal(f"--groups {path} is no JSON file that can be read: {reason}.") from error
    if not isinstance(groups, dict) or not groups:
        raise Refusal(f'--groups {path} must hold an object such as {{"size": ["length", "width"]}}.')
    known, found, grouped = set(candidates), {}, set()
    for name, members in groups.items():
        if not isinstance(members, list) or not members or not all(isinstance(each, str | int) for each in members):
            raise Refusal(f"--groups {path}: {quoted([name])} must be a list of columns.")
        columns = _columns(table, list(map(str, members)), f"--groups {quoted([name])}:")
        if unknown := [column for column in columns if column not in known]:
            raise Refusal(f"--groups {path}: {quoted([name])} has {quoted(unknown)}, a target or a column left out.")
        found[name] = columns
        grouped.update(columns)
    if clash := [name for name in found if name in known and name not in grouped]:
        raise Refusal(f"--groups {path}: {quoted(clash)} is the name of another column: choose another name.")
    return found | {name: [name] for name in candidates if name not in grouped}


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"it has the name {next(name for name in names if names.count(name) > 1)!r} twice")
    return dict(pairs)
