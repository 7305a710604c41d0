"""Targets: which task they ask for, and how classes are coded."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngp.data.problem import code_targets, detect_task


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "b"], "classification"),
        (np.array(["a", "b"], dtype=object), "classification"),
        ([True, False], "classification"),
        ([0, 1, 1, 0], "classification"),
        ([0.0, 1.0, 1.0, 0.0], "classification"),
        ([-3, 7, 7, -3], "classification"),
        ([[0], [1], [1], [0]], "classification"),
        (np.arange(20).repeat(2), "classification"),
        (np.arange(21).repeat(2), "regression"),  # more than 20 values
        ([0, 1, 2], "regression"),  # seen once each
        (np.arange(100), "regression"),
        ([0.0, 1.0, 1.0, 0.5], "regression"),
        ([[0, 1], [1, 0], [1, 0], [0, 1]], "regression"),
    ],
)
def test_detect_task(y: Any, task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert detect_task(np.asarray(y)) == task


@pytest.mark.parametrize("y", [[1, 0, 1, 1], [[1], [0], [1], [1]], ["p", "n", "p", "p"], [True, False, True, True]])
def test_two_classes_are_one_column(y: Any) -> None:
    targets, classes = code_targets(np.asarray(y), "classification")
    assert targets.tolist() == [[1], [0], [1], [1]]
    assert classes is not None
    assert classes[targets[:, 0].astype(int)].tolist() == np.ravel(y).tolist()


@given(st.lists(st.sampled_from("abcdef"), min_size=3))
def test_more_classes_are_a_column_each(labels: list[str]) -> None:
    labels = [*labels, "a", "b", "c"]
    targets, classes = code_targets(np.array(labels), "classification")
    assert classes is not None
    assert classes.tolist() == sorted(set(labels))
    assert (targets.sum(axis=1) == 1).all()
    assert set(targets.ravel()) == {0.0, 1.0}
    assert classes[targets.argmax(axis=1)].tolist() == labels


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, float, object])
def test_quantities_stay_as_they_are(shape: tuple[int, ...], dtype: Any) -> None:
    y = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    targets, classes = code_targets(y, "regression")
    assert classes is None
    assert targets.dtype == np.float64
    assert np.array_equal(targets, y.reshape(6, -1).astype(float))
