"""Tables that hold our figures against the published ones, as Markdown and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import nan

import numpy as np

from ngp.io import markdown_table

__all__ = ["Cell", "Column", "Table", "cell"]


@dataclass(frozen=True)
class Cell:
    """One figure over all runs, and what the paper says."""

    mean: float  # naN where there is no such figure
    spread: float = nan  # standard deviation over the runs; NaN for a single one
    published: float | None = None  # the paper's figure, if it has one


def cell(values: Sequence[float | None], published: float | None = None) -> Cell:
    """Mean and spread of some runs; runs without a figure don't count."""
    known = [value for value in values if value is not None]
    spread = float(np.std(known, ddof=1)) if len(known) > 1 else nan
    return Cell(float(np.mean(known)) if known else nan, spread, published)


@dataclass(frozen=True)
class Column:
    """A column of figures."""

    key: str  # its name in the CSV
    label: str  # its name in the Markdown, with the unit
    digits: int = 2  # behind the point


@dataclass(frozen=True)
class Table:
    """Rows with labels and figures.

    Attributes
    ----------
    labels : sequence of str
        What tells the rows apart, such as "data" and "method".
    columns : sequence of Column
        The figures.
    rows : sequence of (labels, cells)
        A label for each of `labels`; cells by the key of their column, none where there is no such figure.
    note : str
        What to know to read it; one paragraph or more.
    """

    labels: Sequence[str]
    columns: Sequence[Column]
    rows: Sequence[tuple[Sequence[str], Mapping[str, Cell]]]
    note: str = ""

    def to_markdown(self) -> str:
        """One line a row: mean ± standard deviation over the runs (published figure)."""
        header = [*self.labels, *(column.label for column in self.columns)]
        body = [
            [*labels, *(_text(cells.get(column.key), column.digits) for column in self.columns)]
            for labels, cells in self.rows
        ]
        return markdown_table(header, body)

    def to_csv(self, comment: str = "") -> str:
        """Three columns a figure: mean, standard deviation over the runs, published.

        Parameters
        ----------
        comment : str
            A line above the header, after "# "; none if empty.
        """
        text = StringIO()
        if comment:
            text.write(f"# {comment}\n")
        writer = csv.writer(text, lineterminator="\n")
        keys = [f"{column.key}{ending}" for column in self.columns for ending in ("", "_sd", "_published")]
        writer.writerow([*self.labels, *keys])
        for labels, cells in self.rows:
            figures = [figure for column in self.columns for figure in _figures(cells.get(column.key))]
            writer.writerow([*labels, *figures])
        return text.getvalue()


def _figures(found: Cell | None) -> list[str]:
    """Mean, spread and published figure with as many digits as matter; nothing where there is none."""
    if found is None:
        return ["", "", ""]
    return [
        "" if each is None or np.isnan(each) else f"{each:.6g}" for each in (found.mean, found.spread, found.published)
    ]


def _text(found: Cell | None, digits: int) -> str:
    if found is None:
        return ""
    text = "–" if np.isnan(found.mean) else f"{found.mean:.{digits}f}"
    if not np.isnan(found.spread):
        text += f" ± {found.spread:.{digits}f}"
    if found.published is not None:
        text += f" ({found.published:.{digits}f})"
    return text.replace("-", "−")
