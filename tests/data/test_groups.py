"""Groups of columns: the ways to write them, and what is refused."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngp import NeuralGreedyPursuit
from ngp.data.groups import Groups, column_numbers, image_windows, make_groups
from ngp.predictors import SSFN


def as_lists(groups: Groups) -> list[list[int]]:
    return [columns.tolist() for columns in groups.columns]


def test_no_groups_means_single_columns() -> None:
    groups = make_groups(None, n_features=3)
    assert as_lists(groups) == [[0], [1], [2]]
    assert list(groups.names) == ["x0", "x1", "x2"]
    assert groups.names[1:] == ("x1", "x2")
    assert groups.costs.tolist() == [1, 1, 1]
    assert groups.are_columns
    assert groups.is_single
    assert list(make_groups(None, 2, feature_names=["a", "b"]).names) == ["a", "b"]


def test_a_million_single_columns_are_light() -> None:
    tracemalloc.start()
    groups = make_groups(make_groups(None, n_features=1_000_000), n_features=1_000_000)
    assert groups.is_single
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()
    assert len(pickle.dumps(groups)) < 20_000_000
    assert groups.columns[-1].tolist() == [999_999]
    with pytest.raises(IndexError):
        groups.names[1_000_000]


def test_labels_in_order_of_appearance() -> None:
    for labels in (["b", "a", "b"], np.array(["b", "a", "b"], dtype=object), pd.Series(["b", "a", "b"])):
        groups = make_groups(labels, n_features=3)
        assert as_lists(groups) == [[0, 2], [1]]
        assert groups.names == ("b", "a")
        assert not groups.is_single
    groups = make_groups(np.array([7, 3, 7], dtype=np.uint8), n_features=3)
    assert as_lists(groups) == [[0, 2], [1]]
    assert groups.names == ("7", "3")


def test_lists_keep_their_order_and_may_overlap() -> None:
    groups = make_groups([[2, 0], (1,), np.array([1, 2]), range(2)], n_features=4, feature_names=list("abcd"))
    assert as_lists(groups) == [[2, 0], [1], [1, 2], [0, 1]]
    assert groups.names == ("group 0", "b", "group 2", "group 3")
    assert as_lists(make_groups(np.array([[0, 1], [2, 3]]), n_features=4)) == [[0, 1], [2, 3]]


def test_columns_by_name_by_index_and_by_mask() -> None:
    groups = make_groups(
        {"first": ["c", "a"], 2: [1, "c"], "mask": [True, False, True]}, n_features=3, feature_names=["a", "b", "c"]
    )
    assert as_lists(groups) == [[2, 0], [1, 2], [0, 2]]
    assert groups.names == ("first", "2", "mask")
    assert column_numbers("fixed", ["c", 0], 3, ["a", "b", "c"]).tolist() == [2, 0]
    assert column_numbers("fixed", np.array([False, True]), 2).tolist() == [1]


def test_is_single_counts_distinct_columns() -> None:
    assert make_groups([[2], [0]], n_features=3).is_single
    assert not make_groups([[2], [2]], n_features=3).is_single


def test_groups_pass_through_with_their_names_and_costs() -> None:
    groups = make_groups({"a": [0, 1], "b": [2]}, n_features=3, costs=[1, 5])
    again = make_groups(groups, n_features=4, feature_names=list("wxyz"))
    assert as_lists(again) == [[0, 1], [2]]
    assert again.names == ("a", "b")
    assert again.costs.tolist() == [1, 5]
    assert make_groups(groups, n_features=3, costs=[2, 3]).costs.tolist() == [2, 3]


def test_groups_without_names_take_those_of_the_table() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    priced = make_groups(None, 3, costs=[1, 1, 9])
    selector = NeuralGreedyPursuit(SSFN(n_units=5, n_draws=1), groups=priced, n_features_to_select=1, random_state=0)
    selector.fit(X, X["b"] + X["c"])
    assert [step.name for step in selector.path_[1:]] == ["b"]
    assert selector.groups_.costs.tolist() == [1, 1, 9]
    assert make_groups(make_groups([[1, 2], [0]], 3), 3, cast(Any, X.columns)).names == ("group 0", "a")
    assert make_groups([["c", "b"]], 3, cast(Any, X.columns)).columns[0].tolist() == [2, 1]


def test_groups_of_another_table_are_refused() -> None:
    for groups, message in [
        (image_windows((2, 2), 2), "has the column 3, out of range: use 0 to 2."),
        (make_groups(None, 4), "groups was made for 4 columns, but X has 3"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            make_groups(groups, n_features=3)


def test_expand_replaces_columns_by_blocks() -> None:
    groups = make_groups({"both": [1, 0], "last": [2]}, n_features=3, costs=[2, 1])
    expanded = groups.expand([np.array([0]), np.array([1, 2, 3]), np.array([4, 5])])
    assert as_lists(expanded) == [[1, 2, 3, 0], [4, 5]]
    assert expanded.names == groups.names
    assert expanded.costs.tolist() == [2, 1]


def test_group_errors() -> None:
    for groups, error, message in [
        (3, TypeError, "groups=3 must be None, one label per column, a list of lists of columns, or a mapping"),
        ([], ValueError, "groups is empty: give at least one group, or None for single columns."),
        ({"a": []}, ValueError, "groups['a'] is empty: give it a column or leave it out."),
        ([[0, 3]], ValueError, "groups[0] has the column 3, out of range: use 0 to 2."),
        ([["a", "z"]], ValueError, "groups[0] has the unknown column 'z': use one of 'a', 'b', 'c'."),
        ([["b", 1]], ValueError, "groups[0] names the column 1 twice: name each column once."),
        ([0, 1], ValueError, "groups has 2 labels for 3 columns: give one label per column, or lists of columns."),
        ([0, "a", 1], TypeError, "groups has the label 'a': labels must be all integers or all strings."),
        ([[0], 1], TypeError, "groups[1]=1 must be a list of columns: give indices, names or a mask."),
        ({"a": "b"}, TypeError, "groups['a']='b' must be a list of columns: give indices, names or a mask."),
        ([[1.0]], TypeError, "groups[0] has the column 1.0: give columns as integer indices or as names."),
    ]:
        with pytest.raises(error, match="^" + re.escape(message)):
            make_groups(groups, n_features=3, feature_names=["a", "b", "c"])


def test_errors_about_names() -> None:
    with pytest.raises(ValueError, match=r"groups\[0\] has the column name 'a', but X has no column names: give ind"):
        make_groups([["a"]], n_features=3)
    with pytest.raises(ValueError, match=r"use one of 'c0', .*'c7' and 12 more\.$"):
        make_groups([["z"]], n_features=20, feature_names=[f"c{i}" for i in range(20)])
    with pytest.raises(ValueError, match="feature_names has 1 names for 2 columns: give one per column"):
        make_groups(None, n_features=2, feature_names=["a"])


def test_cost_errors() -> None:
    for costs, error, message in [
        ([1], ValueError, "costs has the shape (1,) for 2 groups: give one cost per group."),
        ([1, 0], ValueError, "costs[1]=0.0 must be positive and finite: use 1 for an ordinary group."),
        (["a", "b"], TypeError, "costs=['a', 'b'] must be numbers, one per group."),
    ]:
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


def test_window_errors() -> None:
    for shape, size, stride, error, message in [
        ((4, 4), (2, 5), None, ValueError, "size=(2, 5) is larger than the image of 4 x 4 pixels: choose a window"),
        ((4, 4), 0, None, ValueError, "size=0 must be positive: use 1 or more."),
        ((4, 4), True, None, TypeError, "size=True must be an integer or a sequence of integers."),
        ((4, 4), 1, (1,), ValueError, "stride=(1,) must be an integer or a pair of integers."),
        ((16,), 1, None, ValueError, "shape=(16,) must be (rows, cols) or (rows, cols, channels)."),
    ]:
        with pytest.raises(error, match="^" + re.escape(message)):
            image_windows(shape, size, stride)
