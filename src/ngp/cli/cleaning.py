"""Columns of a table as numbers or categories, without gaps; what can be neither is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ngp._formatting import counted, listed
from ngp.cli.saying import Refusal, drop_options, printable, quoted

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["categories", "fill_gaps", "plain", "refuse_huge", "row_numbers", "typed", "without_gaps"]

# A text column with more different values is no category that a few hundred or thousand rows say anything about.
MOST_LEVELS = 100
# Squares of larger numbers come near the end of double precision.
LARGEST = 1e100


def typed(source: str, frame: DataFrame) -> DataFrame:
    """Give every candidate column a plain type: numbers, booleans or a category."""
    frame = plain(source, frame, lambda names: f", or leave out what can't be: {drop_options(names)}")
    _refuse_many_levels(source, frame, categories(frame))
    return frame


def plain(source: str, frame: DataFrame, way_out: Callable[[Sequence[str]], str]) -> DataFrame:
    """Numbers as numpy numbers, text as categories; refuse anything else."""
    import numpy as np

    odd: dict[str, str] = {}
    frame = frame.copy(deep=False)
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize != 2:
            continue
        column = _plain_column(frame[name])
        if column is None:
            odd[str(name)] = str(dtype)
        else:
            frame[name] = column
    if odd:
        kinds = listed([f"{name!r} ({kind})" for name, kind in odd.items()])
        raise Refusal(
            f"{source} has columns that are neither numbers nor text, {kinds}: convert them{way_out(list(odd))}."
        )
    _refuse_numbers_as_text(source, frame, way_out)
    return frame


def categories(frame: DataFrame) -> list[str]:
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


def _refuse_numbers_as_text(source: str, frame: DataFrame, way_out: Callable[[Sequence[str]], str]) -> None:
    """Refuse a column of numbers that a word or a decimal comma among them has turned into text."""
    import pandas as pd

    for name in categories(frame):
        texts = pd.Series([text for text in frame[name].cat.categories if isinstance(text, str)], dtype=object)
        right = pd.to_numeric(texts, errors="coerce").notna()
        close = pd.to_numeric(texts.str.strip().str.replace(",", "."), errors="coerce").notna()
        if right.all() or close.mean() <= 0.5:
            continue
        what = "numbers beside text" if not close.all() else "numbers that are written with commas"
        example = quoted([texts[~right].iloc[0]])
        raise Refusal(
            f"Column {quoted([name])} of {source} holds {what}, such as {example}: write numbers or text "
            f"alone{way_out([name])}."
        )


def _refuse_many_levels(source: str, frame: DataFrame, categories: Sequence[str]) -> None:
    levels = {name: len(frame[name].cat.categories) for name in categories}
    present = {name: int(frame[name].notna().sum()) for name in categories}
    many = [name for name in categories if levels[name] > min(MOST_LEVELS, max(present[name] / 2, 2))]
    if many:
        counts = listed([f"{name!r} ({levels[name]:,} in {counted(present[name], 'row')})" for name in many])
        raise Refusal(
            f"{source} has text columns with too many different values to be categories, {counts}: leave them out "
            f"with {drop_options(many)}."
        )


def without_gaps(source: str, frame: DataFrame, targets: Sequence[str], missing: str) -> tuple[DataFrame, str]:
    """Refuse gaps or leave rows out, as the user says; gaps that are to be filled stay."""
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


def fill_gaps(frame: DataFrame, held_out: DataFrame | None) -> tuple[DataFrame, DataFrame | None, str]:
    """Fill gaps with the median of a column, or with its most frequent category."""
    parts = [frame] if held_out is None else [frame, held_out]
    gaps = sum(part.isna().sum() for part in parts)
    found = [str(name) for name in frame.columns[gaps > 0]]
    if not found:
        return frame, held_out, ""
    empty = [name for name in found if frame[name].isna().all()]
    if empty:
        raise Refusal(f"Nothing is left to fill the gaps of {quoted(empty)} with: use {drop_options(empty)}.")
    fillers: dict[str, Any] = {name: _filler(frame[name]) for name in found}
    filled = [part.fillna(fillers) for part in parts]
    shown = listed([f"{printable(name)} with {_shown(filler)}" for name, filler in fillers.items()])
    said = f"Filled missing values in {counted(len(found), 'column')}: {shown}."
    return filled[0], filled[1] if held_out is not None else None, said


def _filler(column: Series) -> Any:
    return column.mode().iloc[0] if column.dtype == "category" else column.median()


def _shown(filler: Any) -> str:
    return quoted([filler]) if isinstance(filler, str) else f"{filler:.4g}"


def refuse_huge(source: str, frame: DataFrame) -> None:
    """Refuse infinite numbers, and those whose squares are."""
    import numpy as np

    numbers = frame.select_dtypes("number")
    peaks = np.fmax.reduce(np.abs(numbers.to_numpy(dtype=np.float64)), axis=0, initial=0)
    for bad, what in ((np.isinf(peaks), "infinite numbers"), (peaks > LARGEST, f"numbers beyond {LARGEST:g}")):
        names = [str(name) for name in numbers.columns[bad]]
        if names:
            raise Refusal(
                f"{source} has {what} in {quoted(names)}: correct or rescale them, or leave them out with "
                f"{drop_options(names)}."
            )


def row_numbers(frame: DataFrame) -> list[str]:
    """Columns that count the rows, 0, 1, 2 and so on: an index that somebody saved along with the data."""
    import numpy as np

    whole = frame.select_dtypes("integer")
    values = whole.to_numpy(dtype=np.float64)
    counting = (np.diff(values, axis=0) == 1).all(axis=0) & (len(values) >= 10)
    return [str(name) for name in whole.columns[counting]]
