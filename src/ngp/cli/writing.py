"""Files that the commands write: checked before the work, written whole after it."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ngp.cli.cleaning import categories
from ngp.cli.reading import require
from ngp.cli.saying import Failure, Refusal, quoted
from ngp.io import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

    from ngp._types import AnyArray

__all__ = ["REDUCED", "check_outputs", "check_reduced", "require_for_report", "save", "write_reduced"]

REDUCED = (".csv", ".tsv", ".parquet", ".feather", ".npz")


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


def save(path: Path, content: bytes) -> None:
    """Write a file whole, or say in one sentence why not."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise Failure(f"{path} can't be written: {error.strerror or error}.") from error


def check_reduced(path: Path | None, X: DataFrame) -> None:
    """Refuse, before any work, what the format of the reduced data can't hold."""
    suffix = "" if path is None else path.suffix.lower()
    if suffix in (".parquet", ".feather"):
        require("pyarrow", f"--reduced {path}", "parquet")
    text = categories(X)
    if suffix == ".npz" and text:
        raise Refusal(f"--reduced {path} can hold numbers only, and {quoted(text)} is text: write .csv or .parquet.")


def write_reduced(path: Path, frame: DataFrame, targets: list[str]) -> None:
    """Write selected columns and targets, in the format that the suffix says."""
    content, frame = io.BytesIO(), frame.reset_index(drop=True)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        frame.to_parquet(content)
    elif suffix == ".feather":
        frame.to_feather(content)
    elif suffix == ".npz":
        import numpy as np

        X, y = frame.drop(columns=targets), frame[targets]
        names, target = np.array(X.columns, dtype=str), _array(y)
        target = target[:, 0] if len(targets) == 1 else target
        np.savez_compressed(content, allow_pickle=False, X=_array(X), feature_names=names, y=target)
    else:
        content.write(frame.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode())
    save(path, content.getvalue())


def _array(frame: DataFrame) -> AnyArray:
    """The columns in one type: text, or numbers, among which true is 1 and a gap NaN."""
    values: AnyArray = frame.to_numpy()
    if values.dtype.kind == "O":
        is_text = any(isinstance(value, str) for value in values.flat)
        values = values.astype(str) if is_text else frame.to_numpy(dtype="float64", na_value=float("nan"))
    return values
