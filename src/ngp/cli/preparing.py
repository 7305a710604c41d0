"""From a table and the user's options to samples that the selector takes: columns chosen and checked, gaps filled."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngp._formatting import counted, listed, visible
from ngp.cli.files import Table
from ngp.cli.messages import Refusal, command_with, drop_options, quoted

if TYPE_CHECKING:
    from pandas import DataFrame, Series, Timestamp

    from ngp._types import AnyArray, IntArray

__all__ = ["Samples", "chosen_columns", "prepare", "read_groups"]

MOST_CLASSES = 1000  # every class is a column of the targets
MOST_LEVELS = 100  # of a text column
MOST_DROPPED = 0.1  # share of the rows with gaps, beyond which it is better to fill them
ISO_DATE = (
    r"[0-9]{4}-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?)?"
)

# Without a standard that says which is the day.
OTHER_DATE = r"([0-9]{1,2}([./-])[0-9]{1,2}\2[0-9]{4}|[0-9]{4}([./])[0-9]{1,2}\3[0-9]{1,2})([T ].*)?"


@dataclass(frozen=True)
class Samples:
    """The rows and columns to select from."""

    X: DataFrame  # candidate columns: numbers, booleans and categories, without gaps
    y: AnyArray  # targets
    targets: list[str]  # their names
    task: str  # "regression" or "classification"
    held_out: tuple[DataFrame, AnyArray] | None  # rows that were set aside
    cv: Any  # way of validation
    cv_groups: AnyArray | None  # which rows it keeps together
    summary: str  # what was found, in one line
    notes: list[str]  # what was done to the data, and what looks odd

    def splits(self, seed: int) -> Any:
        """The way of validation, for those who can't keep rows together by themselves."""
        if self.cv_groups is None:
            return self.cv
        from ngp.data.folds import make_rounds

        classes = self.task == "classification"
        rounds = make_rounds(self.cv, self.y, self.y, classification=classes, random_state=seed, groups=self.cv_groups)
        return [(part.training(fold), part.validation(fold)) for part in rounds for fold in range(part.n_folds)]


class Obstacles:
    """All that keeps a table from being used, and the options that overcome it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._texts: list[str] = []
        self._options: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._texts)

    def without(self, frame: DataFrame, what: str, columns: dict[str, str]) -> DataFrame:
        """The table without columns that can't be used, each of which has something to say about it."""
        if columns:
            found = [f"{quoted([name])} ({text})" if text else quoted([name]) for name, text in columns.items()]
            self._texts.append(f"{what}: {listed(found)}")
            self._options.append(drop_options(list(columns)))
        return frame.drop(columns=list(columns))

    def add(self, text: str, option: str) -> None:
        """Something that an option overcomes."""
        self._texts.append(text)
        self._options.append(option)

    def refusal(self, last: str | None = None) -> Refusal:
        """All of it in a message, with a command that overcomes it, unless there is no option for the last one."""
        texts = self._texts if last is None else [*self._texts, last.rstrip(".")]
        lines = [f"{self.source} can't be used as it is:", *(f"  {text}" for text in texts)]
        options = " ".join(self._options)
        if last is None:
            lines += ["Correct the data, or say:", f"  {command_with(options)}"]
        else:
            lines += ["Correct the last; for the others, correct the data or add:", f"  {options}"]
        return Refusal("\n".join(lines))


def prepare(table: Table, target: Sequence[str], **settings: Any) -> Samples:
    """Choose columns, check them, deal with gaps, set rows aside; all that is wrong with the table is said at once."""
    found = Obstacles(table.source)
    try:
        samples = _samples(table, found, target, **settings)
    except Refusal as refusal:
        if not found:
            raise
        raise found.refusal(refusal.message) from refusal
    if found:
        raise found.refusal()
    return samples


def _samples(
    table: Table,
    found: Obstacles,
    target: Sequence[str],
    *,
    drop: Sequence[str] = (),
    task: str = "auto",
    missing: str = "error",
    hold_out: float | None = None,
    seed: int = 0,
    cv: int | float | str = "auto",
    cv_groups: str | None = None,
) -> Samples:
    """The samples as they are if all obstacles are overcome."""
    if cv == "time" and cv_groups is not None:
        raise Refusal("--cv time and --cv-groups are two ways of validation: give one of them.")
    targets = chosen_columns(table, target, "--target")
    days, first = _days(table.frame)
    frame = table.frame.assign(**days)
    X = frame.drop(columns=[*targets, *_left_out(table, targets, drop, cv_groups)])
    if not X.shape[1]:
        raise Refusal(f"{table.source} has no column left to select from: give more columns, or fewer with --drop.")
    X = _usable(found, X)
    frame, gaps = _without_gaps(found, X.join(frame[targets]), targets, missing)
    if not X.shape[1]:
        raise Refusal(f"{table.source} then has no column left to select from: give others.")
    X, y = frame[X.columns], _target_values(frame[targets])
    task, why = _task(targets, y, task)
    X, counts = _without_row_numbers(X)
    dated = {name: column.loc[X.index] for name, column in days.items() if name not in targets}
    together, order_note = None, ""
    if cv == "time":
        order, order_note = _in_time(dated, X)
        X, y = X.iloc[order], y[order]
    elif cv_groups is not None:
        together = _groups_of_rows(table, cv_groups, X)
    elif dated:
        hold = "holds" if len(dated) == 1 else "hold"
        order_note = (
            f"Note: {quoted(list(dated))} {hold} dates, and rows are predicted from earlier and later ones alike; if "
            "the future is to be predicted from the past, say --cv time."
        )
    held_out = None
    if hold_out is not None:
        train, test = _split(y, task, hold_out, seed, cv == "time", together)
        X, held_out, y = X.iloc[train], (X.iloc[test], y[test]), y[train]
        together = together if together is None else together[train]
        _check_targets(targets, y, task)
    X, held_out, filled = _filled(X, held_out)
    notes = [*table.notes, _note_of_dates({name: day for name, day in first.items() if name in frame})]
    notes += [order_note, gaps, filled, counts]
    summary = f"{table.source}: {_summary(X, held_out, targets)}: {task}, {why}."
    given_cv = _way_of_validation(cv, len(y), together)
    return Samples(X, y, targets, task, held_out, given_cv, together, summary, [each for each in notes if each])


def chosen_columns(
    table: Table, names: Sequence[str], option: str, allowed: Collection[str] | None = None
) -> list[str]:
    """The columns that an option names."""
    columns = [table.column(name, option) for name in names]
    if twice := sorted(name for name, times in Counter(columns).items() if times > 1):
        raise Refusal(f"{option} names {quoted(twice)} twice: name each column once.")
    if allowed is not None and (wrong := [name for name in columns if name not in allowed]):
        raise Refusal(f"{option} {quoted(wrong)} is a target or left out: take another column.")
    return columns


def _left_out(table: Table, targets: list[str], drop: Sequence[str], cv_groups: str | None) -> set[str]:
    """Columns that can't be selected beside the targets."""
    found = {"--drop": chosen_columns(table, drop, "--drop")}
    found["--cv-groups"] = chosen_columns(table, [] if cv_groups is None else [cv_groups], "--cv-groups")
    for option, columns in found.items():
        if both := sorted(set(targets) & set(columns)):
            raise Refusal(f"{option} {quoted(both)} is the target: take another column.")
    return {name for columns in found.values() for name in columns}


def _target_values(frame: DataFrame) -> AnyArray:
    """Text as text, numbers as numbers; several targets side by side."""
    import numpy as np

    frame, odd = _plain(frame)
    for bad in (odd, _mixed(frame), _other_dates(frame), _huge(frame)):
        for name, what in bad.items():
            raise Refusal(f"Target {quoted([name])} can't be predicted ({what}): correct it, or give another one.")
    text = _categories(frame)
    if text and frame.shape[1] > 1:
        raise Refusal(f"Target {quoted(text)} is text: of several targets each must hold numbers.")
    values: AnyArray = frame.astype(str).to_numpy(dtype=object) if text else frame.to_numpy()
    if not text and frame.shape[1] > 1:
        values = values.astype(np.float64)
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


def _split(
    y: AnyArray, task: str, share: float, seed: int, last: bool, together: IntArray | None
) -> tuple[IntArray, IntArray]:
    """Rows to learn from and rows to set aside: the last ones, whole groups, or random ones of all classes."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    n_test = round(share * len(y))
    if not 1 <= n_test <= len(y) - 2:
        raise Refusal(f"--hold-out {share:g} of {counted(len(y), 'row')} doesn't leave rows on both sides: change it.")
    if last:
        train, test = np.split(np.arange(len(y)), [len(y) - n_test])
    elif together is not None:
        groups = np.random.default_rng(seed).permutation(together.max() + 1)
        sizes = np.bincount(together)[groups].cumsum()[:-1]  # of the first group, the first two, and so on
        aside = np.isin(together, groups[: 1 + np.argmin(np.abs(sizes - n_test))])
        train, test = np.flatnonzero(~aside), np.flatnonzero(aside)
    else:
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


def _days(frame: DataFrame) -> tuple[dict[str, Series], dict[str, Timestamp]]:
    """Columns of dates as days since the first one, and that one."""
    import numpy as np
    import pandas as pd

    days, first = {}, {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            continue
        if (stamps := _stamps(frame[name])) is not None:
            first[str(name)] = stamps.min()
            days[str(name)] = (stamps - stamps.min()) / pd.Timedelta(days=1)
    return days, first


def _stamps(column: Series) -> Series | None:
    """Dates and times in UTC, also those that are written as ISO 8601; None for anything else."""
    from datetime import date

    import pandas as pd
    from pandas.api import types

    if column.dtype == "category":
        column = column.astype(column.cat.categories.dtype)
    present = column.dropna()
    if not len(present):
        return None
    if not types.is_datetime64_any_dtype(column.dtype) and not all(isinstance(value, date) for value in present[:100]):
        if not types.is_string_dtype(present):
            return None
        if not (present[:100].str.fullmatch(ISO_DATE).all() and present.str.fullmatch(ISO_DATE).all()):
            return None
    try:
        return pd.to_datetime(column, format="ISO8601", utc=True).dt.tz_localize(None)
    except (ValueError, TypeError, OverflowError):
        return None


def _note_of_dates(first: dict[str, Timestamp]) -> str:
    shown = listed([f"{name!r} (from {day.isoformat().removesuffix('T00:00:00')})" for name, day in first.items()])
    return f"Dates became numbers, days since the first: {shown}." if first else ""


def _in_time(dated: dict[str, Series], X: DataFrame) -> tuple[IntArray, str]:
    """The order of the rows in time, and how it was found."""
    import numpy as np

    names = [name for name in dated if name in X] or list(dated)
    if len(names) != 1:
        why = f"several columns hold dates, {quoted(names)} (--drop the others)" if names else "no column holds dates"
        return np.arange(len(X)), f"Note: --cv time takes the rows in the order of the file, since {why}."
    days = dated[names[0]]
    if n_missing := int(days.isna().sum()):
        raise Refusal(
            f"--cv time orders the rows by {quoted(names)}, which is missing in {counted(n_missing, 'row')}: fill them "
            "in, or leave these rows out."
        )
    return np.argsort(days.to_numpy(), kind="stable"), f"Rows are in the order of {quoted(names)}, for --cv time."


def _groups_of_rows(table: Table, name: str, X: DataFrame) -> IntArray:
    """Numbers of the groups that rows belong to."""
    import pandas as pd

    labels = table.frame.loc[X.index, table.column(name, "--cv-groups")]
    if n_missing := int(labels.isna().sum()):
        raise Refusal(
            f"--cv-groups {quoted([name])} is missing in {counted(n_missing, 'row')}: fill them in, or leave these "
            "rows out."
        )
    numbers: IntArray = pd.factorize(labels)[0]
    if numbers.max() == 0:
        raise Refusal(
            f"--cv-groups {quoted([name])} has the same value in all rows: there are no groups to keep apart."
        )
    return numbers


def _way_of_validation(cv: int | float | str, n_rows: int, together: IntArray | None) -> Any:
    """What scikit-learn knows for a way of validation that is ours."""
    from sklearn.model_selection import TimeSeriesSplit

    if cv == "time":
        if n_rows < 3:
            raise Refusal(f"--cv time needs at least 3 rows to learn from, and there are {n_rows}: give more.")
        return TimeSeriesSplit(min(5, n_rows - 1))
    if together is not None:
        n_groups = len(set(together.tolist()))
        if n_groups < 2:
            raise Refusal("--hold-out leaves a single one of the --cv-groups to learn from: set less aside.")
        return min(5, n_groups) if cv == "auto" else cv
    return cv


def _usable(found: Obstacles, frame: DataFrame) -> DataFrame:
    """Columns as numbers and categories, without those that can't be used."""
    frame, odd = _plain(frame)
    frame = found.without(frame, "columns that are neither numbers nor text", odd)
    frame = found.without(frame, "columns of mixed content", _mixed(frame))
    frame = found.without(frame, "dates that aren't written like 2026-01-31", _other_dates(frame))
    frame = found.without(frame, "text with too many different values to be categories", _many_levels(frame))
    empty = frame.columns[frame.isna().all()]
    frame = found.without(frame, "columns without any value", dict.fromkeys(empty, ""))
    return found.without(frame, "columns beyond what can be computed with", _huge(frame))


def _plain(frame: DataFrame) -> tuple[DataFrame, dict[str, str]]:
    """Numbers as numpy numbers, text as categories; and the types of columns that are neither."""
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
    return frame, odd


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


def _mixed(frame: DataFrame) -> dict[str, str]:
    """Numbers and dates that were read as text because of something else among them, or because of their commas."""
    import pandas as pd

    found = {}
    for name in _categories(frame):
        texts = pd.Series([text for text in frame[name].cat.categories if isinstance(text, str)], dtype=object)
        number = pd.to_numeric(texts, errors="coerce").notna()
        with_commas = pd.to_numeric(texts.str.strip().str.replace(",", "."), errors="coerce").notna()
        dated = pd.to_datetime(texts.where(texts.str.fullmatch(ISO_DATE)), format="ISO8601", utc=True, errors="coerce")
        for what, right, close in (
            ("numbers beside text", number, with_commas),
            ("dates beside text", dated.notna(), dated.notna()),
        ):
            if close.mean() > 0.5 and not right.all():
                said = "numbers written with commas" if close.all() else what
                found[name] = f"{said}, such as {quoted([texts[~right].iloc[0]])}"
    return found


def _other_dates(frame: DataFrame) -> dict[str, str]:
    """Dates whose order of day and month nobody can know, and which are no categories either."""
    texts = {name: frame[name].cat.categories for name in _categories(frame)}
    return {
        name: f"such as {quoted([found[0]])}"
        for name, found in texts.items()
        if len(found) and all(isinstance(text, str) and re.fullmatch(OTHER_DATE, text) for text in found)
    }


def _many_levels(frame: DataFrame) -> dict[str, str]:
    """Text columns that look like identifiers."""
    sizes = {name: (len(frame[name].cat.categories), int(frame[name].notna().sum())) for name in _categories(frame)}
    return {
        name: f"{levels:,} in {counted(rows, 'row')}"
        for name, (levels, rows) in sizes.items()
        if levels > min(MOST_LEVELS, max(rows / 2, 2))
    }


def _huge(frame: DataFrame) -> dict[str, str]:
    """Columns of infinite numbers, or of some whose squares come near the end of double precision."""
    import numpy as np

    numbers = frame.select_dtypes("number")
    peaks = np.fmax.reduce(np.abs(numbers.to_numpy(dtype=np.float64)), axis=0, initial=0)
    return dict.fromkeys(map(str, numbers.columns[peaks > 1e100]), "infinite numbers, or some beyond 1e+100")


def _without_gaps(found: Obstacles, frame: DataFrame, targets: Sequence[str], missing: str) -> tuple[DataFrame, str]:
    """Leave out rows with missing values; values that will be imputed stay missing."""
    gaps = frame.isna()
    counts = gaps.sum()
    if not counts.any():
        return frame, ""
    where = listed([f"{name!r} ({int(count):,})" for name, count in counts.items() if count])
    n_bad = int(gaps.any(axis=1).sum())
    if missing == "error":
        missing = "drop" if n_bad <= MOST_DROPPED * len(frame) else "impute"
        found.add(
            f"missing values: {where}; --missing drop leaves out {n_bad:,} of {counted(len(frame), 'row')}, --missing "
            "impute fills them",
            f"--missing {missing}",
        )
    bad = gaps[list(targets)].any(axis=1) if missing == "impute" else gaps.any(axis=1)
    kept = frame.loc[~bad]
    if len(kept) < 2:
        raise Refusal(
            f"--missing {missing} leaves {counted(len(kept), 'row')} of {found.source}: the gaps are in {where}; leave "
            "out columns with --drop."
        )
    what = "without target" if missing == "impute" else "with missing values"
    return kept, f"Left out {int(bad.sum()):,} of {counted(len(frame), 'row')}, {what}." if bad.any() else ""


def _filled(
    X: DataFrame, held_out: tuple[DataFrame, AnyArray] | None
) -> tuple[DataFrame, tuple[DataFrame, AnyArray] | None, str]:
    """Fill gaps with the median of the column, or its most frequent category, and say with what."""
    gappy = list(X.columns[X.isna().any()])
    if held_out is not None:
        gappy = [name for name in X if name in gappy or held_out[0][name].isna().any()]
    if not gappy:
        return X, held_out, ""
    empty = [str(name) for name in gappy if X[name].isna().all()]
    if empty:
        raise Refusal(f"Nothing is left to fill the gaps of {quoted(empty)} with: use {drop_options(empty)}.")
    categories = _categories(X[gappy])
    fillers = {name: X[name].mode().iloc[0] if name in categories else X[name].median() for name in gappy}
    texts = [f"{visible(name)} with {f'{v!r}' if isinstance(v, str) else f'{v:.4g}'}" for name, v in fillers.items()]
    filled = None if held_out is None else (held_out[0].fillna(fillers), held_out[1])
    return X.fillna(fillers), filled, f"Filled missing values in {counted(len(gappy), 'column')}: {listed(texts)}."


def _without_row_numbers(X: DataFrame) -> tuple[DataFrame, str]:
    """Leave out an index that was saved with the data, unless nothing else is left, and name other such columns."""
    import numpy as np

    whole = X.select_dtypes("integer")
    values = whole.to_numpy(dtype=np.float64)
    counting = (np.diff(values, axis=0) == 1).all(axis=0) & (len(values) >= 10)
    counts = [str(name) for name in whole.columns[counting]]
    index = [name for name in counts if name.startswith("Unnamed: ")]
    notes = []
    if 0 < len(index) < X.shape[1]:
        X, counts = X.drop(columns=index), [name for name in counts if name not in index]
        notes.append("Left out the column without a name, which only counts the rows.")
    if counts:
        notes.append(
            f"Note: {quoted(counts)} only counts the rows; if it is no measurement, leave it out with "
            f"{drop_options(counts)}."
        )
    return X, " ".join(notes)
