from __future__ import annotations

import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngp.data.groups import Groups, image_windows, make_groups


def as_lists(groups: Groups) -> list[list[int]]:
    return [columns.tolist() for columns in groups.columns]


def test_no_groups_means_single_columns() -> None:
    groups = make_groups(None, n_features=3)
    assert as_lists(groups) == [[0], [1], [2]]
    assert list(groups.names) == ["x0", "x1", "x2"]
    assert groups.names[1:] == ("x1", "x2")
    assert groups.costs.tolist() == [1, 1, 1]
    assert groups.is_single
    assert groups.n_groups == 3


def test_single_columns_take_the_names_of_the_features() -> None:
    assert list(make_groups(None, 2, feature_names=["a", "b"]).names) == ["a", "b"]


def test_a_million_single_columns_are_light() -> None:
    tracemalloc.start()
    groups = make_groups(make_groups(None, n_features=1_000_000), n_features=1_000_000)
    assert groups.is_single
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()
    assert len(pickle.dumps(groups)) < 10_000_000
    assert groups.columns[-1].tolist() == [999_999]
    with pytest.raises(IndexError):
        groups.columns[1_000_000]


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        ("b", "a", "b"),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
    ],
)
def test_string_labels_in_order_of_appearance(labels: Any) -> None:
    groups = make_groups(labels, n_features=3)
    assert as_lists(groups) == [[0, 2], [1]]
    assert groups.names == ("b", "a")
    assert not groups.is_single


@pytest.mark.parametrize("labels", [[7, 3, 7], np.array([7, 3, 7], dtype=np.uint8), [np.int64(7), 3, 7]])
def test_integer_labels(labels: Any) -> None:
    groups = make_groups(labels, n_features=3)
    assert as_lists(groups) == [[0, 2], [1]]
    assert groups.names == ("7", "3")


def test_lists_keep_their_order_and_may_overlap() -> None:
    groups = make_groups([[2, 0], (1,), np.array([1, 2]), range(2)], n_features=4, feature_names=list("abcd"))
    assert as_lists(groups) == [[2, 0], [1], [1, 2], [0, 1]]
    assert groups.names == ("group 0", "b", "group 2", "group 3")


def test_columns_by_name_and_by_index() -> None:
    groups = make_groups({"first": ["c", "a"], 2: [1, "c"]}, n_features=3, feature_names=["a", "b", "c"])
    assert as_lists(groups) == [[2, 0], [1, 2]]
    assert groups.names == ("first", "2")


def test_rows_of_an_array_are_groups() -> None:
    assert as_lists(make_groups(np.array([[0, 1], [2, 3]]), n_features=4)) == [[0, 1], [2, 3]]


def test_is_single_counts_distinct_columns() -> None:
    assert make_groups([[2], [0]], n_features=3).is_single
    assert not make_groups([[2], [2]], n_features=3).is_single


def test_groups_pass_through_with_their_names_and_costs() -> None:
    groups = make_groups({"a": [0, 1], "b": [2]}, n_features=3, costs=[1, 5])
    again = make_groups(groups, n_features=4)
    assert as_lists(again) == [[0, 1], [2]]
    assert again.names == ("a", "b")
    assert again.costs.tolist() == [1, 5]
    assert make_groups(groups, n_features=3, costs=[2, 3]).costs.tolist() == [2, 3]


@pytest.mark.parametrize("groups", [image_windows((2, 2), 2), make_groups(None, n_features=4)])
def test_groups_of_a_larger_table_are_refused(groups: Groups) -> None:
    with pytest.raises(ValueError, match=r"has the column 3, out of range: use 0 to 2\.$"):
        make_groups(groups, n_features=3)


def test_new_columns_leaves_out_the_selected() -> None:
    groups = make_groups([[3, 1, 0]], n_features=4)
    assert groups.new_columns(0, np.array([False, True, False, False])).tolist() == [3, 0]
    assert groups.new_columns(0, np.ones(4, dtype=bool)).tolist() == []


def test_expand_replaces_columns_by_blocks() -> None:
    groups = make_groups({"both": [1, 0], "last": [2]}, n_features=3, costs=[2, 1])
    blocks = [np.array([0]), np.array([1, 2, 3]), np.array([4, 5])]
    expanded = groups.expand(blocks)
    assert as_lists(expanded) == [[1, 2, 3, 0], [4, 5]]
    assert expanded.names == groups.names
    assert expanded.costs.tolist() == [2, 1]


def test_costs_are_copied() -> None:
    costs = np.array([1.0, 2.0])
    groups = make_groups(None, n_features=2, costs=costs)
    costs[0] = 7
    assert groups.costs.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (
            "ab",
            TypeError,
            "groups='ab' must be None, one label per column, a list of lists of columns, "
            "or a mapping from names to lists of columns.",
        ),
        (3, TypeError, "groups=3 must be None, one label per column, "),
        ({1, 2}, TypeError, "groups={1, 2} must be None, one label per column, "),
        (np.array(3), TypeError, "groups=array(3) must be None, one label per column, "),
        ([], ValueError, "groups is empty: give at least one group, or None for single columns."),
        ({}, ValueError, "groups is empty: give at least one group, or None for single columns."),
        ([[0], []], ValueError, "groups[1] is empty: give it a column or leave it out."),
        ({"a": []}, ValueError, "groups['a'] is empty: give it a column or leave it out."),
        ([[0, 3]], ValueError, "groups[0] has the column 3, out of range: use 0 to 2."),
        ([[-1]], ValueError, "groups[0] has the column -1, out of range: use 0 to 2."),
        ([["a", "z"]], ValueError, "groups[0] has the unknown column 'z': use one of 'a', 'b', 'c'."),
        ([[0, 1, 0]], ValueError, "groups[0] names the column 0 twice: name each column of a group once."),
        ([["b", 1]], ValueError, "groups[0] names the column 1 twice: name each column of a group once."),
        (
            [0, 1],
            ValueError,
            "groups has 2 labels for 3 columns: give one label per column, or lists of columns.",
        ),
        ([0, "a", 1], TypeError, "groups has the label 'a': labels must be all integers or all strings."),
        ([0.5, 1.0, 1.0], TypeError, "groups has the label 0.5: labels must be all integers or all strings."),
        ([True, False, True], TypeError, "groups has the label True: labels must be all integers or all "),
        ([None, 1, 1], TypeError, "groups has the label None: labels must be all integers or all strings."),
        ([[0], 1], TypeError, "groups[1]=1 must be a list of columns, such as [0, 1]."),
        ({"a": "b"}, TypeError, "groups['a']='b' must be a list of columns, such as [0, 1]."),
        ([[0], {1}], TypeError, "groups[1]={1} must be a list of columns, such as [0, 1]."),
        ([[1.0]], TypeError, "groups[0] has the column 1.0: give columns as integer indices or as names."),
        ([[True]], TypeError, "groups[0] has the column True: give columns as integer indices or as names."),
        (np.eye(3) > 0, TypeError, "groups[0] has the column True: give columns as integer indices or as "),
    ],
)
def test_group_errors(groups: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="^" + re.escape(message)):
        make_groups(groups, n_features=3, feature_names=["a", "b", "c"])


def test_names_without_feature_names() -> None:
    message = "groups[0] has the column name 'a', but X has no column names: give indices."
    with pytest.raises(ValueError, match=re.escape(message)):
        make_groups([["a"]], n_features=3)


def test_a_long_list_of_names_is_cut() -> None:
    with pytest.raises(ValueError, match=r"use one of 'c0', .*'c7', …\.$"):
        make_groups([["z"]], n_features=20, feature_names=[f"c{i}" for i in range(20)])


def test_wrong_number_of_feature_names() -> None:
    message = "feature_names has 1 names for 2 columns: give one per column."
    with pytest.raises(ValueError, match=re.escape(message)):
        make_groups(None, n_features=2, feature_names=["a"])


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([1], ValueError, "group costs have the shape (1,) for 2 groups: give one cost per group."),
        ([[1, 2]], ValueError, "group costs have the shape (1, 2) for 2 groups: give one cost per group."),
        ([1, 0], ValueError, "cost 0.0 of group 1 must be positive and finite: use 1 for an ordinary group."),
        ([-1, 1], ValueError, "cost -1.0 of group 0 must be positive and finite: use 1 for an ordinary group."),
        ([1, np.nan], ValueError, "cost nan of group 1 must be positive and finite: use 1 for an ordinary group."),
        ([1, np.inf], ValueError, "cost inf of group 1 must be positive and finite: use 1 for an ordinary group."),
        (["a", "b"], TypeError, "group costs ['a', 'b'] must be numbers, one per group."),
    ],
)
def test_cost_errors(costs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="^" + re.escape(message) + "$"):
        make_groups(None, n_features=2, costs=costs)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
def test_labels_partition_the_columns(labels: list[int]) -> None:
    groups = make_groups(labels, n_features=len(labels))
    assert sorted(np.concatenate(list(groups.columns)).tolist()) == list(range(len(labels)))
    for name, columns in zip(groups.names, groups.columns, strict=True):
        assert {str(labels[c]) for c in columns} == {name}
    firsts = [int(columns[0]) for columns in groups.columns]
    assert firsts == sorted(firsts)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, unique=True), min_size=1), st.data())
def test_lists_come_back_as_given(lists: list[list[int]], data: st.DataObject) -> None:
    groups = make_groups(lists, n_features=10)
    assert as_lists(groups) == lists
    selected = np.array(data.draw(st.lists(st.booleans(), min_size=10, max_size=10)))
    for i, columns in enumerate(lists):
        assert groups.new_columns(i, selected).tolist() == [c for c in columns if not selected[c]]


def test_windows_tile_the_image() -> None:
    groups = image_windows((28, 28), 4)
    assert groups.n_groups == 49
    assert groups.names[9] == "rows 4-7, cols 8-11"
    assert groups.columns[9][:5].tolist() == [120, 121, 122, 123, 148]
    assert groups.costs.tolist() == [1.0] * 49


def test_a_last_window_is_flush_with_the_edge() -> None:
    assert image_windows((1, 5), (1, 2)).names == ("row 0, cols 0-1", "row 0, cols 2-3", "row 0, cols 3-4")


def test_windows_take_all_channels() -> None:
    assert as_lists(image_windows((1, 2, 3), 1)) == [[0, 1, 2], [3, 4, 5]]


def test_size_and_stride_by_direction() -> None:
    groups = image_windows((4, 4), (2, 4), stride=(1, 4))
    assert groups.names == ("rows 0-1, cols 0-3", "rows 1-2, cols 0-3", "rows 2-3, cols 0-3")


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3), st.data())
def test_windows_cover_every_pixel(rows: int, cols: int, channels: int, data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    stride = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    groups = image_windows((rows, cols, channels), (height, width), stride)
    assert all(len(columns) == height * width * channels for columns in groups.columns)
    assert set(np.concatenate(list(groups.columns)).tolist()) == set(range(rows * cols * channels))
    assert len(set(groups.names)) == groups.n_groups
    make_groups(groups, n_features=rows * cols * channels)


@pytest.mark.parametrize(
    ("shape", "size", "stride", "error", "message"),
    [
        (
            (4, 4),
            5,
            None,
            ValueError,
            "size=5 is larger than the image of 4 x 4 pixels: choose a window that ",
        ),
        ((4, 4), (2, 5), None, ValueError, "size=(2, 5) is larger than the image of 4 x 4 pixels: "),
        ((4, 4), 0, None, ValueError, "size=0 must be positive: use 1 or more."),
        ((4, 4), 2, (1, -1), ValueError, "stride=(1, -1) must be positive: use 1 or more."),
        ((4, 4), 2.0, None, TypeError, "size=2.0 must be an integer or a sequence of integers."),
        ((4, 4), True, None, TypeError, "size=True must be an integer or a sequence of integers."),
        ((4, 4), (1, 2, 3), None, ValueError, "size=(1, 2, 3) must be an integer or a pair of integers."),
        ((4, 4), 1, (1,), ValueError, "stride=(1,) must be an integer or a pair of integers."),
        ((16,), 1, None, ValueError, "shape=(16,) must be (rows, cols) or (rows, cols, channels)."),
        ((4, 0), 1, None, ValueError, "shape=(4, 0) must be positive: use 1 or more."),
        (16, 1, None, ValueError, "shape=16 must be (rows, cols) or (rows, cols, channels)."),
        ((4, "4"), 1, None, TypeError, "shape=(4, '4') must be an integer or a sequence of integers."),
    ],
)
def test_window_errors(shape: Any, size: Any, stride: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="^" + re.escape(message)):
        image_windows(shape, size, stride)
