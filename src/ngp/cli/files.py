"""Files that the commands read and write: tables as pandas data frames, and outputs.

Outputs are checked before the work, and written whole after it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
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
DECIMAL_COMMA = r"\s*[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?\s*"
LEADING_ZERO = r"\s*[+-]?0[0-9]"
Opener = Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Table:
    """A table that was read."""

    source: str  # for messages
    frame: DataFrame  # with different names of columns
    numbered: bool = False  # whether it came from an array, so that columns also have numbers
    notes: tuple[str, ...] = ()  # what was decided in reading it
    cells: Callable[[list[str]], DataFrame] | None = None  # reads columns again, each cell as the file has it
    separator: str = ","  # that goes with the cells

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


def read_table(path: str, sheet: str | None = None) -> Table:
    """Read a table from a file, or CSV from standard input."""
    require("pandas", "Reading tables", "cli")
    source = "Standard input" if path == "-" else path
    suffix = ".csv" if path == "-" else _suffix(Path(path))
    if sheet is not None and suffix != ".xlsx":
        raise Refusal(f"--sheet {quoted([sheet])} is for Excel workbooks (.xlsx): leave it out for {source}.")
    if path == "-":
        content = sys.stdin.buffer.read()
        table = _read_text(source, lambda: io.BytesIO(content))
    elif suffix == ".xlsx":
        table = _read_excel(source, partial(_opened, Path(path)), sheet)
    else:
        table = READERS[suffix](source, partial(_opened, Path(path)))
    _check(table)
    return table


def _suffix(file: Path) -> str:
    """The suffix that says how to read a file."""
    if file.is_dir():
        raise Refusal(f"{file} is a folder: give a file.")
    if not file.exists():
        raise Refusal(f"{file} doesn't exist: give a file, or - for CSV on standard input.")
    suffix = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:]).lower()
    if suffix not in (known := [*READERS, ".xlsx"]):
        raise Refusal(f"{file} has an unknown suffix: use one of {', '.join(known)}.")
    return suffix


def _opened(file: Path) -> IO[bytes]:
    try:
        return cast(IO[bytes], gzip.open(file)) if file.suffix.lower() == ".gz" else file.open("rb")
    except OSError as error:
        raise Refusal(f"{file} can't be read: {error.strerror}.") from error


def _check(table: Table) -> None:
    """Refuse tables with repeated names, or too few rows or columns."""
    source, frame = table.source, table.frame
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(source, list(frame.columns))
    if len(frame.columns) < 2:
        raise Refusal(
            f"{source} has {counted(len(frame.columns), 'column')}: a target and at least one other column are needed."
        )
    if len(frame) < 2:
        raise Refusal(f"{source} has {counted(len(frame), 'row')} of data: at least 2 are needed.")


def _refuse_repeated(source: str, names: list[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise Refusal(
            f"{source} has several columns of the same name, {quoted(repeated)}: give each a name of its own."
        )


def _check_header(source: str, header: list[str]) -> None:
    _refuse_repeated(source, [name for name in header if name.strip()])
    if any(_is_number(name) and not name.strip().isdecimal() for name in header):
        raise Refusal(f"{source} has numbers where the names of the columns belong: put a line of names first.")


def _read_text(source: str, opened: Opener) -> Table:
    """CSV with commas, semicolons or tabs, whichever its first line has."""
    try:
        header, separator = _header(source, opened)
        _check_header(source, header)
        frame = _parsed(source, opened, separator)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Refusal(f"{source} is no gzip file that can be read: {_briefly(error)}.") from error
    if frame.columns[-1].startswith("Unnamed: ") and frame.iloc[:, -1].isna().all():
        frame = frame.iloc[:, :-1]  # every line ends with a separator
    names, decimals = list(frame.columns), [] if separator == "," else _convert_decimal_commas(frame)

    def cells(columns: list[str]) -> DataFrame:
        places = [names.index(name) for name in columns]
        return _parsed(source, opened, separator, usecols=places, dtype=str, keep_default_na=False)[columns]

    notes = (f"Note: read the commas in {quoted(decimals)} as decimal commas.",) if decimals else ()
    return Table(source, frame, notes=notes, cells=cells, separator=";" if decimals or separator == ";" else ",")


def _parsed(source: str, opened: Opener, separator: str, **settings: Any) -> DataFrame:
    """CSV as pandas reads it: about as fast as polars, twice as fast as pyarrow (`python -m benchmarks.reading`)."""
    import pandas as pd

    with warnings.catch_warnings(), opened() as stream:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            # Without index_col=False a line that is too long would turn the first column into names of rows.
            return pd.read_csv(
                stream, sep=separator, index_col=False, encoding="utf-8-sig", low_memory=False, **settings
            )
        except pd.errors.ParserWarning:
            raise Refusal(
                f"{source} has more values in a line than names in the first line: name each column."
            ) from None
        except UnicodeDecodeError as error:
            raise _not_utf8(source, error) from error
        except ValueError as error:  # pandas' own errors are such
            raise Refusal(f"{source} is no CSV table: {_briefly(error)}.") from error


def _header(source: str, opened: Opener) -> tuple[list[str], str]:
    """The names in the first line, and their separator."""
    with opened() as stream:
        begin = stream.read(1_000_000) + stream.readline()
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(begin)
    except UnicodeDecodeError as error:
        raise _not_utf8(source, error) from error
    if "\0" in text:
        raise Refusal(f"{source} is no text, but holds zero bytes: give a CSV file in UTF-8.")
    start = text.lstrip("\r\n")
    if not start.strip():
        raise Refusal(f"{source} is empty: give a table with a line of names.")
    unquoted = re.sub(r'(?<![^,;\t])"(?:[^"]|"")*"', "name", start)  # in quotes nothing separates
    separator = max(",;\t", key=unquoted.splitlines()[0].count)
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=separator)), separator
    except csv.Error as error:
        raise Refusal(f"{source} is no CSV table: {_briefly(error)}.") from error


def _not_utf8(source: str, error: UnicodeDecodeError) -> Refusal:
    return Refusal(
        f"{source} isn't text in UTF-8 (byte 0x{error.object[error.start]:02x}): convert it, for instance with iconv "
        "-f latin1 -t utf-8."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in ("nan", "inf", "infinity")  # words, too


def _convert_decimal_commas(frame: DataFrame) -> list[str]:
    """Make numbers of columns that hold nothing but numbers with decimal commas, and return their names."""
    import pandas as pd
    from pandas.api.types import is_string_dtype

    found = []
    for name in frame.columns:
        texts = frame[name].dropna()
        if not len(texts) or not is_string_dtype(texts):
            continue
        if texts.iloc[:100].str.fullmatch(DECIMAL_COMMA).all() and texts.str.fullmatch(DECIMAL_COMMA).all():
            frame[name] = pd.to_numeric(frame[name].str.strip().str.replace(",", ".", regex=False))
            found.append(str(name))
    return found


def _read_excel(source: str, opened: Opener, sheet: str | None) -> Table:
    """A sheet of a workbook, the first one by default."""
    require("openpyxl", "Reading Excel", "cli")
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of styles and the like
        try:
            with opened() as stream, pd.ExcelFile(stream, engine="openpyxl") as book:
                sheets = list(map(str, book.sheet_names))
                chosen = sheets[0] if sheet is None else sheet
                if chosen not in sheets:
                    raise Refusal(f"--sheet {quoted([chosen])}: {source} has no such sheet; it has {quoted(sheets)}.")
                header = pd.read_excel(book, chosen, header=None, nrows=1, dtype=object)
                _check_header(source, [str(name) for name in header.dropna(axis=1).to_numpy().ravel()])
                frame = pd.read_excel(book, chosen)
        except (ValueError, OSError, KeyError, TypeError, IndexError, AttributeError, BadZipFile) as error:
            raise Refusal(f"{source} is no Excel workbook that can be read: {_briefly(error)}.") from error

    def cells(columns: list[str]) -> DataFrame:
        with opened() as stream:
            again = pd.read_excel(stream, chosen, engine="openpyxl", dtype=object, keep_default_na=False)
        return again.set_axis(map(str, again.columns), axis=1)[columns]

    if sheet is None and len(sheets) > 1:
        source = f"{source} (sheet {quoted([chosen])} of {len(sheets)}, see --sheet)"
    return Table(source, frame, cells=cells)


def _read_arrow(source: str, opened: Opener) -> Table:
    """A Parquet or Feather table; a named index counts as a column."""
    kind = "Parquet" if source.lower().endswith(".parquet") else "Feather"
    require("pyarrow", f"Reading {kind}", "parquet")
    import pandas as pd

    def read(**settings: Any) -> DataFrame:
        with opened() as stream:
            frame = (pd.read_parquet if kind == "Parquet" else pd.read_feather)(stream, **settings)
        index.update(str(name) for name in frame.index.names if name is not None)
        return frame.reset_index(drop=not index, allow_duplicates=True)  # labels without a name may repeat

    index: set[str] = set()
    try:
        frame = read()
    except (ValueError, OSError, TypeError, KeyError, NotImplementedError, MemoryError) as error:
        raise Refusal(f"{source} is no {kind} table that can be read: {_briefly(error)}.") from error

    def cells(columns: list[str]) -> DataFrame:
        again = read(columns=[name for name in columns if name not in index], dtype_backend="pyarrow")
        return again.set_axis(map(str, again.columns), axis=1)[columns]

    return Table(source, frame, cells=cells)


def _read_arrays(source: str, opened: Opener) -> Table:
    """The array X, names of its columns in feature_names, and the target in y; or one array with all columns."""
    import numpy as np
    import pandas as pd

    try:
        with opened() as stream:
            found = np.load(stream, allow_pickle=False)
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
        return Table(source, frame, numbered=True)
    y = arrays["y"]
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise Refusal(f"{source} has X of shape {X.shape} and y of shape {y.shape}: they need the same number of rows.")
    target = _block(source, y.reshape(len(y), -1), ["y"] if y.size == len(y) else _numbered_names("y", y))
    return Table(source, pd.concat([frame, target], axis=1), numbered=True)


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


READERS: dict[str, Callable[[str, Opener], Table]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".csv.gz": _read_text,
    ".tsv.gz": _read_text,
    ".parquet": _read_arrow,
    ".feather": _read_arrow,
    ".npz": _read_arrays,
    ".npy": _read_arrays,
}


def check_outputs(
    inputs: Mapping[str, str | Path | None], outputs: Mapping[str, tuple[Path | None, Sequence[str]]]
) -> None:
    """Refuse, before any work, files that can't be written, or that would replace one another or an input."""
    taken = {_identity(Path(path)): name for name, path in inputs.items() if path is not None and path != "-"}
    for option, (path, suffixes) in outputs.items():
        if path is None:
            continue
        try:
            path.lstat()
        except FileNotFoundError:
            pass
        except OSError as error:  # such as a name that is too long
            raise Refusal(f"{option} {path} can't be written: {error.strerror}.") from error
        if path.is_dir():
            raise Refusal(f"{option} {path} is a folder: give a file.")
        if suffixes and path.suffix.lower() not in suffixes:
            raise Refusal(f"{option} {path} has an unknown suffix: use {' or '.join(suffixes)}.")
        if path.exists() and not path.is_file():  # a pipe or a device, in whose place a file would be put
            raise Refusal(f"{option} {path} is no plain file: give a file.")
        folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise Refusal(f"{option} {path}: the folder {folder} doesn't exist.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Refusal(f"{option} {path}: the folder {folder} can't be written to.")
        if (other := taken.get(_identity(path))) is not None:
            raise Refusal(f"{option} {path} is the same file as {other}: choose another.")
        taken[_identity(path)] = option


def _identity(path: Path) -> tuple[int, int] | str:
    """What is the same for all names of a file, be they links."""
    try:
        found = path.stat()
    except OSError:  # it is yet to be made
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


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


def write_reduced(path: Path, table: Table, columns: list[str]) -> None:
    """Write columns, each cell as the file has it, in the format that the suffix says."""
    frame = table.frame[columns]
    cells = frame if table.cells is None else table.cells(columns).reset_index(drop=True)
    if len(cells) != len(frame):
        raise Failure(f"{path} isn't written, since {table.source} has changed in the meantime.")
    content, suffix = io.BytesIO(), path.suffix.lower()
    if suffix == ".parquet":
        _typed(frame, cells).to_parquet(content)
    elif suffix == ".feather":
        _typed(frame, cells).to_feather(content)
    else:
        cells.to_csv(content, index=False, sep="\t" if suffix == ".tsv" else table.separator)
    with writing(path):
        write_whole(path, content.getvalue())


def _typed(frame: DataFrame, cells: DataFrame) -> DataFrame:
    """Cells of text as the numbers that were read from them, but for codes such as 00849."""
    from pandas.api.types import is_numeric_dtype, is_object_dtype, is_string_dtype

    def column(name: str) -> Any:
        read, cell = frame[name], cells[name]
        if not is_string_dtype(cell) and not is_object_dtype(cell):
            return cell  # it has a type in the file
        is_code = is_numeric_dtype(read) and cell.astype(str).str.match(LEADING_ZERO).any()
        return cell.astype(str).where(read.notna(), None) if is_code else read

    return frame.assign(**{name: column(name) for name in frame.columns})
