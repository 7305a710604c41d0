import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_squared_error

from ngp.paper.metrics import false_negative_rate, false_positive_rate, normalized_mean_error_db, paper_mse

index_sets = st.sets(st.integers(0, 11))


def as_mask(indices, width=12):
    mask = np.zeros(width, dtype=bool)
    mask[list(indices)] = True
    return mask


@given(selected=index_sets, truth=index_sets)
def test_rates_follow_their_definition(selected, truth):
    positive = false_positive_rate(selected, truth)
    negative = false_negative_rate(selected, truth)
    assert positive == (sum(i not in truth for i in selected) / len(selected) if selected else 0)
    assert negative == (sum(i not in selected for i in truth) / len(truth) if truth else 0)


@pytest.mark.parametrize("rate", [false_positive_rate, false_negative_rate])
@given(selected=index_sets, truth=index_sets)
def test_every_way_to_write_a_selection_counts_the_same(rate, selected, truth):
    expected = rate(selected, truth)
    assert rate(as_mask(selected), as_mask(truth)) == expected
    assert rate(as_mask(selected).tolist(), np.array(sorted(truth), dtype=np.intp)) == expected
    assert rate((i for i in selected), list(truth) * 2) == expected
    assert type(expected) is float


def test_mask_is_not_read_as_indices():
    assert false_positive_rate([False, False, True, True], [2, 3]) == 0
    assert false_negative_rate(np.array([False, False, True, True]), [0, 1]) == 1


@pytest.mark.parametrize("selected", [[0.5], ["a"], [-1], [[0, 1]]])
@pytest.mark.parametrize("rate", [false_positive_rate, false_negative_rate])
def test_bad_selection_is_named(rate, selected):
    with pytest.raises(ValueError, match="selected is neither a list of column indices nor a boolean mask"):
        rate(selected, [0, 1])


@pytest.mark.parametrize(("factor", "decibel"), [(0.9, -20), (1.01, -40), (0, 0), (-1, 20 * math.log10(2))])
def test_nme_of_a_scaled_target(factor, decibel):
    y = np.random.default_rng(0).normal(5, 2, (40, 3))
    assert normalized_mean_error_db(y, factor * y) == pytest.approx(decibel, abs=1e-9)


def test_nme_does_not_depend_on_the_unit_but_on_the_offset():
    rng = np.random.default_rng(1)
    y, prediction = rng.normal(size=(2, 50))
    error = normalized_mean_error_db(y, prediction)
    assert normalized_mean_error_db(1e3 * y, 1e3 * prediction) == pytest.approx(error)
    assert normalized_mean_error_db(y + 10, prediction + 10) < error - 10


def test_perfect_prediction(recwarn):
    assert normalized_mean_error_db([1, 2], [1, 2]) == -math.inf
    assert paper_mse([1, 2], [1, 2]) == 0
    assert not recwarn


@pytest.mark.parametrize("shape", [(30,), (30, 4)])
def test_paper_mse_against_the_mean_squared_error(shape):
    y, prediction = np.random.default_rng(2).normal(size=(2, *shape))
    n_outputs = y[0].size
    expected = math.sqrt(n_outputs * mean_squared_error(y, prediction) / 30)
    assert paper_mse(y, prediction) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [paper_mse, normalized_mean_error_db])
def test_unsigned_integers_do_not_wrap_around(metric):
    y, prediction = np.array([3, 4], dtype=np.uint8), np.array([4, 3], dtype=np.uint8)
    assert metric(y, prediction) == metric([3.0, 4.0], [4.0, 3.0])


@pytest.mark.parametrize("metric", [paper_mse, normalized_mean_error_db])
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        (np.ones(3), np.ones((3, 1)), r"y_true has shape \(3,\) and y_pred \(3, 1\)"),
        ([], [], r"y_true has shape \(0,\)"),
        ([1.0, 2.0], [np.inf, 2.0], "y_pred contains NaN or infinity"),
    ],
)
def test_bad_targets_are_named(metric, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred)


def test_nme_needs_a_target_that_is_not_zero():
    with pytest.raises(ValueError, match="y_true is zero everywhere"):
        normalized_mean_error_db([0, 0], [1, 2])
