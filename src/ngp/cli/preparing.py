"""From a table and the user's options to samples that the selector takes: columns chosen and checked, gaps filled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngp._formatting import counted, listed, visible
from ngp.cli.files import Table
from ngp.cli.messages import Refusal, drop_options, quoted

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame, Series

    from ngp._types import AnyArray

__all__ = ["Samples", "chosen_columns", "prepare", "read_groups"]

MOST_CLASSES = 1000  # every class is a column of the targets
MOST_LEVELS = 100  # of a text column


@dataclass(frozen=True)
class Samples:
    """The rows and columns to select from."""

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
    targets = chosen_columns(table, target, "--target")
    dropped = chosen_columns(table, drop, "--drop")
    if both := sorted(set(targets) & set(dropped)):
        raise Refusal(f"--drop {quoted(both)} is the target: leave out another column.")
    frame = table.frame.drop(columns=dropped)
    candidates = frame.columns.drop(targets)
    if not len(candidates):
        raise Refusal(f"{table.source} has no column left to select from: give more columns, or fewer with --drop.")
    typed = _plain(table.source, frame[candidates])
    _refuse_many_levels(table.source, typed)
    frame = typed.join(frame[targets])
    frame, left_out = _without_gaps(table.source, frame, targets, missing)
    X, y = frame[candidates], _target_values(table.source, frame[targets])
    _refuse_huge(table.source, X)
    task, why = _task(targets, y, task)
    counts = _row_numbers(X)
    unnamed = [name for name in counts if name.startswith("Unnamed: ")]
    index = unnamed if len(unnamed) < X.shape[1] else []  # else nothing would be left
    X, counts = X.drop(columns=index), [name for name in counts if name not in index]
    gappy, held_out = X.columns[X.isna().any()], None
    if hold_out is not None:
        train, test = _split(y, task, hold_out, seed)
        X, held_out, y = X.iloc[train], (X.iloc[test], y[test]), y[train]
        _check_targets(targets, y, task)
    notes = [left_out]
    if len(gappy):
        fillers = _fillers(X[gappy])
        X = X.fillna(fillers)
        held_out = held_out and (held_out[0].fillna(fillers), held_out[1])
        texts = {name: repr(value) if isinstance(value, str) else f"{value:.4g}" for name, value in fillers.items()}
        shown = listed([f"{visible(name)} with {text}" for name, text in texts.items()])
        notes.append(f"Filled missing values in {counted(len(gappy), 'column')}: {shown}.")
    if index:
        notes.append("Left out the column without a name, which only counts the rows.")
    if counts:
        notes.append(
            f"Note: {quoted(counts)} only counts the rows; if it is no measurement, leave it out with "
            f"{drop_options(counts)}."
        )
    summary = f"{table.source}: {_summary(X, held_out, targets)}: {task}, {why}."
    return Samples(X, y, targets, task, held_out, summary, [each for each in notes if each])


def chosen_columns(
    table: Table, names: Sequence[str], option: str, allowed: Collection[str] | None = None
) -> list[str]:
    """The columns that an option names."""
    columns = [table.column(name, option) for name in names]
    if twice := sorted(name for name, times in Counter(columns).items() if times > 1):
        raise Refusal(f"{option} names {quoted(twice)} twice: name each column once.")
    if allowed is not None and (wrong := [name for name in columns if name not in allowed]):
        raise Refusal(f"{option} {quoted(wrong)} is a target or left out with --drop: take another column.")
    return columns


def _target_values(source: str, frame: DataFrame) -> AnyArray:
    """Text as text, numbers as numbers; several targets side by side."""
    import numpy as np

    frame = _plain(source, frame)
    text = _categories(frame)
    if text and frame.shape[1] > 1:
        raise Refusal(f"Target {quoted(text)} is text: of several targets each must hold numbers.")
    values: AnyArray = frame.astype(str).to_numpy(dtype=object) if text else frame.to_numpy()
    if not text:
        _refuse_huge(source, frame)
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
    """Refuse targets that can't be predicted; return the number of classes, zero for a regression."""
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
    """Rows to learn from and rows to set aside, stratified by class if possible."""
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
    names = [visible(name) for name in _categories(X)]
    text = f" ({len(names)} of text, one-hot as groups: {listed(names)})" if names else ""
    return f"{rows}, {counted(X.shape[1], 'column')}{text} to select from; target {quoted(targets)}"


def read_groups(path: Path, table: Table, candidates: Collection[str]) -> dict[str, list[str]]:
    """Groups of columns from a JSON file; columns in none of them stay groups of their own."""
    try:
        groups = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"--groups {path} can't be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:200] or "it is no JSON"
        raise Refusal(f"--groups {path} is no JSON file that can be read: {reason}.") from error
    if not isinstance(groups, dict) or not groups:
        raise Refusal(f'--groups {path} must hold an object such as {{"size": ["length", "width"]}}.')
    found: dict[str, list[str]] = {}
    grouped: set[str] = set()
    for name, members in groups.items():
        if not isinstance(members, list) or not members or not all(isinstance(each, str | int) for each in members):
            raise Refusal(f"--groups {path}: {quoted([name])} must be a list of columns.")
        found[name] = chosen_columns(table, list(map(str, members)), f"--groups {quoted([name])}:", candidates)
        grouped.update(found[name])
    if clash := [name for name in found if name in candidates and name not in grouped]:
        raise Refusal(f"--groups {path}: {quoted(clash)} is the name of another column: choose another name.")
    return found | {name: [name] for name in candidates if name not in grouped}


def _plain(source: str, frame: DataFrame) -> DataFrame:
    """Numbers as numpy numbers, text as categories; refuse anything else."""
    import numpy as np

    odd: list[str] = []
    frame = frame.copy(deep=False)
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize != 2:
            continue
        column = _plain_column(frame[name])
        if column is None:
            odd.append(f"{name!r} ({dtype})")
        else:
            frame[name] = column
    if odd:
        raise Refusal(
            f"{source} has columns that are neither numbers nor text, {listed(odd)}: convert them, or leave them out "
            "with --drop."
        )
    _refuse_numbers_as_text(source, frame)
    return frame


def _categories(frame: DataFrame) -> list[str]:
    """Names of the category columns."""
    return [str(name) for name, dtype in frame.dtypes.items() if str(dtype) == "category"]


def _plain_column(column: Series) -> Series | None:
    """Numbers as numpy numbers, text as a category, None for anything else."""
    import pandas as pd
    from pandas.api import types

    dtype, present = column.dtype, column.dropna()
    if dtype == "category":
        return column.cat.remove_unused_categories()
    if types.is_string_dtype(dtype) and all(isinstance(value, str) for value in present):
        return column.astype(object).astype("category")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return None
    if any(isinstance(value, str | bytes) for value in present):
        return None
    try:
        return pd.Series(column.to_numpy(dtype="float64", na_value=float("nan")), index=column.index)
    except (TypeError, ValueError, OverflowError):
        return None


def _refuse_numbers_as_text(source: str, frame: DataFrame) -> None:
    """Refuse numbers that were read as text because of a word or decimal commas among them."""
    import pandas as pd

    for name in _categories(frame):
        texts = pd.Series([text for text in frame[name].cat.categories if isinstance(text, str)], dtype=object)
        right = pd.to_numeric(texts, errors="coerce").notna()
        close = pd.to_numeric(texts.str.strip().str.replace(",", "."), errors="coerce").notna()
        if right.all() or close.mean() <= 0.5:
            continue
        what = "numbers beside text" if not close.all() else "numbers that are written with commas"
        example = quoted([texts[~right].iloc[0]])
        raise Refusal(
            f"Column {quoted([name])} of {source} holds {what}, such as {example}: write numbers or text alone, or "
            "leave it out with --drop."
        )


def _refuse_many_levels(source: str, frame: DataFrame) -> None:
    sizes = {name: (len(frame[name].cat.categories), int(frame[name].notna().sum())) for name in _categories(frame)}
    many = {name: size for name, size in sizes.items() if size[0] > min(MOST_LEVELS, max(size[1] / 2, 2))}
    if many:
        counts = listed([f"{name!r} ({levels:,} in {counted(rows, 'row')})" for name, (levels, rows) in many.items()])
        raise Refusal(
            f"{source} has text columns with too many different values to be categories, {counts}: leave them out "
            f"with {drop_options(list(many))}."
        )


def _without_gaps(source: str, frame: DataFrame, targets: Sequence[str], missing: str) -> tuple[DataFrame, str]:
    """Refuse missing values, or drop their rows; values that will be imputed stay missing."""
    gaps = frame.isna()
    counts = gaps.sum()
    found = [str(name) for name, count in counts.items() if count]
    if not found:
        return frame, ""
    empty = [name for name in found if counts[name] == len(frame)]
    if empty:
        raise Refusal(
            f"{source} has columns without any value, {quoted(empty)}: leave them out with {drop_options(empty)}."
        )
    bad = gaps[list(targets)].any(axis=1) if missing == "impute" else gaps.any(axis=1)
    where = listed([f"{name!r} ({int(counts[name]):,})" for name in found])
    if missing == "error":
        raise Refusal(
            f"{source} has missing values in {counted(len(found), 'column')}, {where}: say --missing drop to leave out "
            f"the {counted(int(bad.sum()), 'row')} with gaps, --missing impute to fill them, or --drop for the columns."
        )
    kept = frame.loc[~bad]
    if len(kept) < 2:
        raise Refusal(
            f"--missing {missing} leaves {counted(len(kept), 'row')} of {source}: the gaps are in {where}; leave out "
            "columns with --drop."
        )
    what = "without target" if missing == "impute" else "with missing values"
    return kept, f"Left out {int(bad.sum()):,} of {counted(len(frame), 'row')}, {what}." if bad.any() else ""


def _fillers(frame: DataFrame) -> dict[str, Any]:
    """What fills the gaps of each column: its median, or its most frequent category."""
    empty = [str(name) for name in frame.columns[frame.isna().all()]]
    if empty:
        raise Refusal(f"Nothing is left to fill the gaps of {quoted(empty)} with: use {drop_options(empty)}.")
    categories = _categories(frame)
    return {name: frame[name].mode().iloc[0] if name in categories else frame[name].median() for name in frame.columns}


def _refuse_huge(source: str, frame: DataFrame) -> None:
    """Refuse infinite numbers, and those whose squares come near the end of double precision."""
    import numpy as np

    numbers = frame.select_dtypes("number")
    peaks = np.fmax.reduce(np.abs(numbers.to_numpy(dtype=np.float64)), axis=0, initial=0)
    if names := [str(name) for name in numbers.columns[peaks > 1e100]]:
        raise Refusal(
            f"{source} has infinite numbers, or some beyond 1e+100, in {quoted(names)}: correct or rescale them, or "
            "leave them out with --drop."
        )


def _row_numbers(frame: DataFrame) -> list[str]:
    """Columns that count the rows, such as an index that was saved with the data."""
    import numpy as np

    whole = frame.select_dtypes("integer")
    values = whole.to_numpy(dtype=np.float64)
    counting = (np.diff(values, axis=0) == 1).all(axis=0) & (len(values) >= 10)
    return [str(name) for name in whole.columns[counting]]
