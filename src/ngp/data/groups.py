"""Groups of columns: what a pursuit adds to its selection in one step.

A group is a list of columns that enter the selection together: a single column, the one-hot block of a
category, a window of an image, the sensors of one device. Groups may overlap; a group then adds those of its
columns that are not selected yet. A column in no group is never a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import product
from numbers import Integral, Number
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from ngp._formatting import listed
from ngp._types import BoolArray, FloatArray, IntArray

__all__ = ["Groups", "column_numbers", "image_windows", "make_groups", "ranks_of_columns"]


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Groups of columns with their names and costs; made by `make_groups` or `image_windows`.

    Attributes
    ----------
    columns : sequence of int arrays
        For each group its columns, in the order in which they were given.
    names : sequence of str
        One name per group.
    costs : float array
        One positive cost per group.

    Examples
    --------
    >>> groups = make_groups({"size": [0, 1], "age": [1, 2]}, n_features=3)
    >>> groups
    Groups(2 groups)
    >>> groups.new_columns(1, np.array([False, True, False]))
    array([2])
    """

    columns: Sequence[IntArray]  # an array of shape (n_features, 1) where each column is a group
    names: Sequence[str]
    costs: FloatArray

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.columns)

    @property
    def are_columns(self) -> bool:
        """Whether the groups are the columns, one by one and in their order."""
        return isinstance(self.columns, np.ndarray)

    def is_like(self, other: Groups) -> bool:
        """Whether the groups are of the same columns, in the same order."""
        if self.n_groups != other.n_groups or self.are_columns != other.are_columns:
            return False
        return self.are_columns or all(map(np.array_equal, self.columns, other.columns))

    @property
    def is_single(self) -> bool:
        """Whether every group is one column, and no two groups are the same column."""
        return self.are_columns or len({int(c[0]) for c in self.columns if len(c) == 1}) == self.n_groups

    @property
    def is_numbered(self) -> bool:
        """Whether the groups are the columns, without names of their own."""
        return self.are_columns and isinstance(self.names, _NumberedNames)

    @property
    def typical_size(self) -> int:
        """Median number of columns of a group."""
        return 1 if self.are_columns else int(np.median([len(columns) for columns in self.columns]))

    def new_columns(self, group: int, selected: BoolArray) -> IntArray:
        """Columns of a group that are not yet selected, in the group's order."""
        columns = self.columns[group]
        return columns[~selected[columns]]

    def expand(self, blocks: Sequence[IntArray]) -> Groups:
        """Replace every column by the columns it became, as when categories turn into one-hot columns."""
        return replace(self, columns=tuple(np.concatenate([blocks[c] for c in columns]) for columns in self.columns))

    def __repr__(self) -> str:
        return f"Groups({self.n_groups} groups)"


def make_groups(
    groups: Any,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    costs: npt.ArrayLike | None = None,
) -> Groups:
    """Make `Groups` from any of the ways to write groups of columns.

    Parameters
    ----------
    groups : None, labels, list of lists, mapping or Groups
        ``None``: each column is a group. One label per column (all integers or all strings): columns with the same
        label form a group, in the order in which the labels first appear. A list of lists of columns, or a mapping
        from names to lists of columns, where a column is an index or a name. A ``Groups`` object is checked and kept;
        names such as ``"x0"``, which columns without names have, are replaced by feature names.
    n_features : int
        Number of columns.
    feature_names : sequence of str, optional
        Names of the columns; ``"x0"``, ``"x1"``, … if not given.
    costs : array-like, optional
        One positive number per group; those of a ``Groups`` object, or ones, if not given. The candidate with the
        largest improvement per cost wins a step.

    Returns
    -------
    Groups
        To be passed to a selector as ``groups``.

    Examples
    --------
    >>> make_groups(["left", "right", "left"], n_features=3).columns
    (array([0, 2]), array([1]))
    >>> make_groups([["a", "b"], ["b", "c"]], n_features=3, feature_names=["a", "b", "c"]).columns
    (array([0, 1]), array([1, 2]))

    A price for each column; their names are those of the table that is passed to ``fit``:

    >>> make_groups(None, n_features=3, costs=[1, 1, 20]).costs
    array([ 1.,  1., 20.])
    """
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"feature_names has {len(feature_names)} names for {n_features} columns: give one per column.")
    names, columns = _read_groups(groups, n_features, feature_names)
    if isinstance(groups, Groups) and costs is None:
        costs = groups.costs
    return Groups(columns, names, _make_costs(costs, len(columns)))


def image_windows(
    shape: Sequence[int], size: int | tuple[int, int], stride: int | tuple[int, int] | None = None
) -> Groups:
    """Windows that move across an image, each a group of pixels.

    Where the regular windows don't reach the lower or the right edge, a last one that lies flush with it is added, so
    that no pixel at the edge is out of reach; it overlaps its neighbour. A stride larger than the size leaves gaps.

    Parameters
    ----------
    shape : (rows, cols) or (rows, cols, channels)
        Shape of the image; the columns of X are its pixels in C order. A window takes all channels of its
        pixels.
    size : int or pair of int
        Rows and columns of a window.
    stride : int or pair of int, optional
        Distance from one window to the next; by default the size, so that the windows tile the image.

    Returns
    -------
    Groups
        One group per window, row by row, named by its rows and columns.

    Examples
    --------
    >>> image_windows((28, 28), 4).n_groups
    49
    >>> image_windows((2, 3), 2, stride=1).columns
    (array([0, 1, 3, 4]), array([1, 2, 4, 5]))
    >>> image_windows((8, 8), 4).names[1]
    'rows 0-3, cols 4-7'
    """
    dimensions = _positive_integers("shape", shape)
    if len(dimensions) not in (2, 3):
        raise ValueError(f"shape={shape!r} must be (rows, cols) or (rows, cols, channels).")
    sizes = _pair("size", size)
    strides = sizes if stride is None else _pair("stride", stride)
    if sizes[0] > dimensions[0] or sizes[1] > dimensions[1]:
        raise ValueError(
            f"size={size!r} is larger than the image of {dimensions[0]} x {dimensions[1]} pixels: "
            "choose a window that fits into it."
        )
    pixels = np.arange(np.prod(dimensions), dtype=np.intp).reshape(dimensions)
    corners = list(product(*map(_window_starts, dimensions[:2], sizes, strides)))
    columns = tuple(pixels[r : r + sizes[0], c : c + sizes[1]].ravel() for r, c in corners)
    names = tuple(f"{_span('row', r, sizes[0])}, {_span('col', c, sizes[1])}" for r, c in corners)
    return Groups(columns, names, np.ones(len(columns)))


def column_numbers(parameter: str, columns: Any, n_features: int, names: Sequence[str] | None = None) -> IntArray:
    """Numbers of columns that are given by number, by name or by a mask."""
    return _column_numbers(parameter, columns, n_features, _positions(names))


class _NumberedNames(Sequence[str]):
    """The names x0, x1, …, which take no memory for a million columns."""

    def __init__(self, length: int) -> None:
        self._numbers = range(length)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[str, ...]: ...
    def __getitem__(self, position: int | slice) -> str | tuple[str, ...]:
        chosen = self._numbers[position]
        return f"x{chosen}" if isinstance(chosen, int) else tuple(f"x{number}" for number in chosen)


def _column_names(n_features: int, feature_names: Sequence[str] | None) -> Sequence[str]:
    return _NumberedNames(n_features) if feature_names is None else tuple(feature_names)


def _read_groups(
    groups: Any, n_features: int, feature_names: Sequence[str] | None
) -> tuple[Sequence[str], Sequence[IntArray]]:
    if groups is None:
        return _column_names(n_features, feature_names), cast(Any, np.arange(n_features, dtype=np.intp)[:, None])
    if isinstance(groups, Groups):
        return _check_groups(groups, n_features, feature_names)
    if isinstance(groups, Mapping):
        return _read_lists(list(groups.values()), n_features, feature_names, list(map(str, groups)))
    entries = _as_list(groups)
    if entries is None:
        raise TypeError(
            f"groups={groups!r} must be None, one label per column, a list of lists of columns, "
            "or a mapping from names to lists of columns."
        )
    if entries and all(_is_scalar(entry) for entry in entries):
        return _read_labels(entries, n_features)
    return _read_lists(entries, n_features, feature_names)


def _check_groups(
    groups: Groups, n_features: int, feature_names: Sequence[str] | None
) -> tuple[Sequence[str], Sequence[IntArray]]:
    """Names and columns of groups that were made before X was known."""
    if groups.are_columns:
        if groups.n_groups != n_features:
            raise ValueError(
                f"groups was made for {groups.n_groups} columns, but X has {n_features}: "
                "use make_groups(None, X.shape[1], costs=…)."
            )
        named = groups.is_numbered and feature_names is not None
        return _column_names(n_features, feature_names) if named else groups.names, groups.columns
    names, columns = _read_lists(list(groups.columns), n_features, None, list(groups.names))
    if feature_names is not None:
        names = tuple(
            feature_names[c[0]] if len(c) == 1 and name == f"x{c[0]}" else name
            for name, c in zip(names, columns, strict=True)
        )
    return names, columns


def _read_labels(labels: list[Any], n_features: int) -> tuple[Sequence[str], Sequence[IntArray]]:
    if not all(isinstance(label, str) for label in labels):
        odd = [label for label in labels if not _is_whole(label)]
        if odd:
            raise TypeError(f"groups has the label {odd[0]!r}: labels must be all integers or all strings.")
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels)} labels for {n_features} columns: give one label per column, or lists of columns."
        )
    members: dict[Any, list[int]] = {}
    for column, label in enumerate(labels):
        members.setdefault(label, []).append(column)
    return tuple(map(str, members)), tuple(np.array(columns, dtype=np.intp) for columns in members.values())


def _read_lists(
    entries: list[Any], n_features: int, feature_names: Sequence[str] | None, names: Sequence[str] | None = None
) -> tuple[Sequence[str], Sequence[IntArray]]:
    if not entries:
        raise ValueError("groups is empty: give at least one group, or None for single columns.")
    positions, keys = _positions(feature_names), range(len(entries)) if names is None else names
    columns = tuple(
        _column_numbers(f"groups[{key!r}]", entry, n_features, positions)
        for key, entry in zip(keys, entries, strict=True)
    )
    if empty := [key for key, each in zip(keys, columns, strict=True) if not len(each)]:
        raise ValueError(f"groups[{empty[0]!r}] is empty: give it a column or leave it out.")
    if names is None:
        column_names = _column_names(n_features, feature_names)
        names = [column_names[int(c[0])] if len(c) == 1 else f"group {i}" for i, c in enumerate(columns)]
    return tuple(names), columns


def _positions(names: Iterable[str] | None) -> dict[str, int]:
    return {name: i for i, name in enumerate(() if names is None else names)}


def _column_numbers(where: str, columns: Any, n_features: int, positions: Mapping[str, int]) -> IntArray:
    members = _as_list(columns)
    if members is None:
        raise TypeError(f"{where}={columns!r} must be a list of columns: give indices, names or a mask.")
    if len(members) == n_features and all(isinstance(member, bool | np.bool_) for member in members):
        return np.flatnonzero(members)
    numbers = [_column_number(where, member, n_features, positions) for member in members]
    if len(set(numbers)) < len(numbers):
        twice = next(member for i, member in enumerate(members) if numbers[i] in numbers[:i])
        raise ValueError(f"{where} names the column {twice!r} twice: name each column once.")
    return np.array(numbers, dtype=np.intp)


def _column_number(where: str, member: Any, n_features: int, positions: Mapping[str, int]) -> int:
    if isinstance(member, str):
        if member in positions:
            return positions[member]
        if not positions:
            raise ValueError(f"{where} has the column name {member!r}, but X has no column names: give indices.")
        known = listed([repr(name) for name in positions], 8)
        raise ValueError(f"{where} has the unknown column {member!r}: use one of {known}.")
    if not _is_whole(member):
        raise TypeError(f"{where} has the column {member!r}: give columns as integer indices or as names.")
    if not 0 <= member < n_features:
        raise ValueError(f"{where} has the column {member}, out of range: use 0 to {n_features - 1}.")
    return int(member)


def _make_costs(costs: npt.ArrayLike | None, n_groups: int) -> FloatArray:
    if costs is None:
        return np.ones(n_groups)
    try:
        values = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"costs={costs!r} must be numbers, one per group.") from None
    if values.shape != (n_groups,):
        raise ValueError(f"costs has the shape {values.shape} for {n_groups} groups: give one cost per group.")
    bad = np.flatnonzero(~((values > 0) & np.isfinite(values)))
    if len(bad):
        raise ValueError(f"costs[{bad[0]}]={values[bad[0]]} must be positive and finite: use 1 for an ordinary group.")
    return values


def _as_list(value: Any) -> list[Any] | None:
    """Return the items of a list, tuple, array or series; None for what has no items or no order of items."""
    if isinstance(value, np.ndarray):
        return list(value.tolist()) if value.ndim else None
    if _is_scalar(value) or isinstance(value, (Mapping, AbstractSet)):
        return None
    return list(value) if hasattr(value, "__len__") and hasattr(value, "__iter__") else None


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes, Number, np.generic))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _positive_integers(name: str, value: Any) -> tuple[int, ...]:
    numbers = [value] if _is_scalar(value) else _as_list(value)
    if numbers is None or not all(_is_whole(number) for number in numbers):
        raise TypeError(f"{name}={value!r} must be an integer or a sequence of integers.")
    if any(number < 1 for number in numbers):
        raise ValueError(f"{name}={value!r} must be positive: use 1 or more.")
    return tuple(int(number) for number in numbers)


def _pair(name: str, value: Any) -> tuple[int, int]:
    numbers = _positive_integers(name, value)
    if _is_scalar(value):
        numbers *= 2
    if len(numbers) != 2:
        raise ValueError(f"{name}={value!r} must be an integer or a pair of integers.")
    return numbers[0], numbers[1]


def _window_starts(length: int, size: int, stride: int) -> list[int]:
    starts = list(range(0, length - size + 1, stride))
    if starts[-1] + size < length:
        starts.append(length - size)
    return starts


def _span(word: str, start: int, size: int) -> str:
    return f"{word} {start}" if size == 1 else f"{word}s {start}-{start + size - 1}"


def ranks_of_columns(ranks: IntArray, groups: Groups, fixed: IntArray, n_features: int) -> IntArray:
    """Rank of each column from those of the groups: of several groups the first; 1 if fixed, last if in no group."""
    if groups.are_columns:
        found = ranks.copy()
    else:
        found = np.full(n_features, len(ranks) + 1, dtype=np.intp)
        np.minimum.at(found, np.concatenate(groups.columns), np.repeat(ranks, [len(each) for each in groups.columns]))
    found[fixed] = 1
    return np.unique(found, return_inverse=True)[1].reshape(-1) + 1  # without gaps
