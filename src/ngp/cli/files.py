"""Files that the commands read and write: tables as pandas data frames, and outputs.

Outputs are checked before the work, and written whole after it.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from ngp._formatting import counted, listed
from ngp.cli.messages import Failure, Refusal, quoted
from ngp.io import write_whole

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

__all__ = [
    "REDUCED", "Table", "check_outputs", "read_table", "require", "require_for_report", "write_reduced", "writing",
]  # fmt: skip

REDUCED = (".csv", ".tsv", ".parquet", ".feather")


@dataclass(frozen=True)
class Table:
    """A table that was read."""

    source: str  # for messages
    frame: DataFrame  # with different names of columns
    numbered: bool = False  # whether it came from an array, so that columns also have numbers

    def column(self, name: str, option: str) -> str:
        """The column that an option names."""
        names = self.frame.columns
        if name in names:
            return name
        if self.numbered and name.removeprefix("-").isdecimal() and -len(names) <= int(name) < len(names):
            return str(names[int(name)])
        close = get_close_matches(name, list(names[:10_000]), n=1)
        hint = f"did you mean {quoted(close)}?" if close else f"it has {quoted(list(names))}."
        raise Refusal(f"{option} {quoted([name])}: {self.source} has no such column; {hint}")


def require(package: str, what: str, extra: str) -> None:
    """Say how to install a package if it isn't there."""
    if find_spec(package) is None:
        raise Refusal(f"{what} needs {package}: install it with pip install 'neural-greedy-pursuit[{extra}]'.")


def read_table(path: str) -> Table:
    """Read a table from a file, or CSV from standard input."""
    require("pandas", "Reading tables", "cli")
    if path == "-":
        return _checked("Standard input", _read_text("Standard input", sys.stdin.buffer.read()))
    file = Path(path)
    if file.is_dir():
        raise Refusal(f"{path} is a folder: give a file.")
    if not file.exists():
        raise Refusal(f"{path} doesn't exist: give a file, or - for CSV on standard input.")
    read = READERS.get(file.suffix.lower())
    if read is None:
        raise Refusal(f"{path} has an unknown suffix: use one of {', '.join(READERS)}.")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Refusal(f"{path} can't be read: {error.strerror}.") from error
    return _checked(path, read(path, content), numbered=read is _read_arrays)


def _checked(source: str, frame: DataFrame, numbered: bool = False) -> Table:
    """Refuse tables with repeated names, or too few rows or columns."""
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(source, list(frame.columns))
    if len(frame.columns) < 2:
        raise Refusal(
            f"{source} has {counted(len(frame.columns), 'column')}: a target and at least one other column are needed."
        )
    if len(frame) < 2:
        raise Refusal(f"{source} has {counted(len(frame), 'row')} of data: at least 2 are needed.")
    return Table(source, frame, numbered)


def _refuse_repeated(source: str, names: list[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise Refusal(
            f"{source} has several columns of the same name, {quoted(repeated)}: give each a name of its own."
        )


def _read_text(source: str, content: bytes) -> DataFrame:
    """CSV with commas, semicolons or tabs, whichever its first line has."""
    import pandas as pd

    header, separator = _header(source, content)
    _refuse_repeated(source, [name for name in header if name.strip()])
    if any(_is_number(name) and not name.strip().isdecimal() for name in header):
        raise Refusal(f"{source} has numbers where the names of the columns belong: put a line of names first.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            # Without index_col=False a line that is too long would turn the first column into names of rows.
            frame = pd.read_csv(
                io.BytesIO(content), sep=separator, index_col=False, encoding="utf-8-sig", low_memory=False
            )
        except pd.errors.ParserWarning:
            raise Refusal(
                f"{source} has more values in a line than names in the first line: name each column."
            ) from None
        except ValueError as error:  # pandas' own errors are such
            raise Refusal(f"{source} is no CSV table: {_briefly(error)}.") from error
    if frame.columns[-1].startswith("Unnamed: ") and frame.iloc[:, -1].isna().all():
        frame = frame.iloc[:, :-1]  # every line ends with a separator
    return frame


def _header(source: str, content: bytes) -> tuple[list[str], str]:
    """The names in the first line, and their separator."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise Refusal(
            f"{source} isn't text in UTF-8 (byte 0x{byte:02x} at position {error.start:,}): convert it, for instance "
            "with iconv -f latin1 -t utf-8."
        ) from error
    if "\0" in text:
        raise Refusal(f"{source} is no text, but holds zero bytes: give a CSV file in UTF-8.")
    start = text[:1_000_000].lstrip("\r\n")
    if not start.strip():
        raise Refusal(f"{source} is empty: give a table with a line of names.")
    unquoted = re.sub(r'(?<![^,;\t])"(?:[^"]|"")*"', "name", start)  # in quotes nothing separates
    separator = max(",;\t", key=unquoted.splitlines()[0].count)
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=separator)), separator
    except csv.Error as error:
        raise Refusal(f"{source} is no CSV table: {_briefly(error)}.") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in ("nan", "inf", "infinity")  # words, too


def _read_arrow(source: str, content: bytes) -> DataFrame:
    """A Parquet or Feather table; a named index counts as a column."""
    kind = "Parquet" if source.lower().endswith(".parquet") else "Feather"
    require("pyarrow", f"Reading {kind}", "parquet")
    import pandas as pd

    try:
        frame = (pd.read_parquet if kind == "Parquet" else pd.read_feather)(io.BytesIO(content))
    except (ValueError, OSError, TypeError, KeyError, NotImplementedError, MemoryError) as error:
        raise Refusal(f"{source} is no {kind} table that can be read: {_briefly(error)}.") from error
    unnamed = all(name is None for name in frame.index.names)  # labels, which may repeat, as after pd.concat
    return frame.reset_index(drop=unnamed, allow_duplicates=True)


def _read_arrays(source: str, content: bytes) -> DataFrame:
    """The array X, names of its columns in feature_names, and the target in y; or one array with all columns."""
    import numpy as np
    import pandas as pd

    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        arrays = {"X": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, BadZipFile, KeyError, NotImplementedError) as error:
        reason = "it holds Python objects" if "pickle" in str(error).lower() else _briefly(error)
        raise Refusal(f"{source} is no file of numpy arrays that can be read: {reason}.") from error
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    main = "X" if "X" in arrays else tables[0] if len(tables) == 1 else None
    if main is None:
        raise Refusal(f"{source} has no array X, but {listed([repr(name) for name in arrays]) or 'none'}: name it X.")
    X, names = arrays[main], arrays.get("feature_names")
    if names is not None and (names.ndim != 1 or X.ndim != 2 or len(names) != X.shape[1]):
        raise Refusal(f"{source} has feature_names that don't fit {main}: give one name per column.")
    frame = _block(source, X, _numbered_names("x", X) if names is None else [str(name) for name in names])
    if "y" not in arrays or main == "y":
        return frame
    y = arrays["y"]
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise Refusal(f"{source} has X of shape {X.shape} and y of shape {y.shape}: they need the same number of rows.")
    target = _block(source, y.reshape(len(y), -1), ["y"] if y.size == len(y) else _numbered_names("y", y))
    return pd.concat([frame, target], axis=1)


def _numbered_names(letter: str, array: np.ndarray[Any, Any]) -> list[str]:
    return [f"{letter}{i}" for i in range(array.shape[1] if array.ndim == 2 else 0)]


def _block(source: str, array: np.ndarray[Any, Any], names: list[str]) -> DataFrame:
    import pandas as pd

    if array.ndim != 2:
        raise Refusal(f"{source} holds an array of shape {array.shape}: two dimensions are needed, rows and columns.")
    if array.dtype.kind not in "biufU":
        raise Refusal(f"{source} holds an array of type {array.dtype}: numbers are needed.")
    return pd.DataFrame(array, columns=names, copy=False)


def _briefly(error: BaseException) -> str:
    """The first line of a message, without its full stop."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text.removeprefix("Error tokenizing data. C error: ").rstrip(".:")[:200]


READERS: dict[str, Callable[[str, bytes], DataFrame]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".parquet": _read_arrow,
    ".feather": _read_arrow,
    ".npz": _read_arrays,
    ".npy": _read_arrays,
}


def check_outputs(source: str, outputs: Mapping[str, tuple[Path | None, Sequence[str]]]) -> None:
    """Refuse, before any work, files that can't be written, or that would replace one another or the data."""
    taken = {} if source == "-" else {Path(source).resolve(): "DATA"}
    for option, (path, suffixes) in outputs.items():
        if path is None:
            continue
        if suffixes and path.suffix.lower() not in suffixes:
            raise Refusal(f"{option} {path} has an unknown suffix: use {' or '.join(suffixes)}.")
        if path.is_dir():
            raise Refusal(f"{option} {path} is a folder: give a file.")
        if path.exists() and not path.is_file():  # a pipe or a device, in whose place a file would be put
            raise Refusal(f"{option} {path} is no plain file: give a file.")
        if not path.parent.is_dir():
            raise Refusal(f"{option} {path}: the folder {path.parent} doesn't exist.")
        if not os.access(path.parent, os.W_OK):
            raise Refusal(f"{option} {path}: the folder {path.parent} can't be written to.")
        if (other := taken.get(path.resolve())) is not None:
            raise Refusal(f"{option} {path} is the same file as {other}: choose another.")
        taken[path.resolve()] = option


def require_for_report(what: str) -> None:
    """Say, before any work, what a report needs and isn't installed."""
    for package in ("jinja2", "matplotlib"):
        require(package, what, "report")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence why a file can't be written."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{path} can't be written: {error.strerror or error}.") from error


def write_reduced(path: Path, frame: DataFrame) -> None:
    """Write selected columns and targets, in the format that the suffix says."""
    content, frame = io.BytesIO(), frame.reset_index(drop=True)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        frame.to_parquet(content)
    elif suffix == ".feather":
        frame.to_feather(content)
    else:
        frame.to_csv(content, index=False, sep="\t" if suffix == ".tsv" else ",")
    with writing(path):
        write_whole(path, content.getvalue())
