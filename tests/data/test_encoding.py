from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from ngp.data.encoding import ColumnEncoder


def blocks(encoder: ColumnEncoder) -> list[list[int]]:
    assert encoder.feature_groups_ is not None
    return [columns.tolist() for columns in encoder.feature_groups_]


def pandas_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "town": pd.Categorical(["Ulm", "Bonn", "Ulm"], categories=["Ulm", "Kiel", "Bonn"]),
            "age": [30, 40, 50],
            "paid": [True, False, True],
        }
    )


def polars_table(dtype: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "town": pl.Series(["Ulm", "Bonn", "Ulm"], dtype=dtype),
            "age": [30, 40, 50],
            "paid": [True, False, True],
        }
    )


TABLES = [pandas_table(), polars_table(pl.Categorical), polars_table(pl.Enum(["Ulm", "Kiel", "Bonn"]))]


@pytest.mark.parametrize("table", TABLES, ids=["pandas", "categorical", "enum"])
def test_categories_become_one_column_each(table: Any) -> None:
    encoder = ColumnEncoder().fit(table)
    encoded = encoder.transform(table)
    assert encoded.tolist() == [[0, 1, 30, 1], [1, 0, 40, 0], [0, 1, 50, 1]]
    assert encoded.dtype == np.float64
    assert blocks(encoder) == [[0, 1], [2], [3]]
    assert encoder.n_features_in_ == 3
    assert encoder.feature_names_ == ["town", "age", "paid"]


def test_unknown_categories_are_all_zero() -> None:
    encoder = ColumnEncoder().fit(pandas_table())
    for towns in (pd.Categorical(["Kiel", "Ulm"]), ["Kiel", "Ulm"]):
        new = pd.DataFrame({"town": towns, "age": [1, 2], "paid": [False, False]})
        assert encoder.transform(new).tolist() == [[0, 0, 1, 0], [0, 1, 2, 0]]


def test_categories_of_other_types() -> None:
    for values, order in [
        ([10, 2, 10], [2, 10]),
        (["b", 1, "a"], [1, "a", "b"]),
        (pd.cut([1, 2, 3], [0, 1, 2, 3]), None),
        (pd.to_datetime(["2021", "2020", "2020"]), None),
    ]:
        table = pd.DataFrame({"a": pd.Categorical(values)})
        encoded = ColumnEncoder().fit(table).transform(table)
        assert encoded.sum(axis=1).tolist() == [1, 1, 1]
        if order is not None:
            assert [order[i] for i in encoded.argmax(axis=1)] == list(values)


def test_a_table_of_categories_only() -> None:
    table = pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": pd.Categorical(["w", "w"])})
    encoder = ColumnEncoder().fit(table)
    assert encoder.transform(table).tolist() == [[1, 0, 1], [0, 1, 1]]
    assert blocks(encoder) == [[0, 1], [2]]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_numbers_stay_as_they_are(library: Any) -> None:
    table = library({"a": [1, 2], "b": [0.5, 1.5]})
    encoder = ColumnEncoder().fit(table)
    encoded = encoder.transform(table)
    assert encoded.tolist() == [[1, 0.5], [2, 1.5]]
    assert encoded.dtype == np.float64
    assert encoder.feature_groups_ is None


def test_integers_become_floats_and_single_precision_stays() -> None:
    for dtype, expected in [("int8", "float64"), ("float16", "float64"), ("float32", "float32")]:
        table = pd.DataFrame(np.ones((2, 2), dtype=dtype))
        assert ColumnEncoder().fit(table).transform(table).dtype == expected
    mixed = pd.DataFrame({"a": np.ones(2, dtype="float32"), "b": pd.Categorical(["u", "v"])})
    assert ColumnEncoder().fit(mixed).transform(mixed).dtype == np.float32


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(
            {
                "a": pd.array([1, None], dtype="Int64"),
                "b": [1.0, np.nan],
                "c": pd.array([True, None], dtype="boolean"),
            }
        ),
        pl.DataFrame({"a": [1, None], "b": [1.0, None], "c": [True, None]}),
    ],
    ids=["pandas", "polars"],
)
def test_missing_numbers_become_nan(table: Any) -> None:
    encoded = ColumnEncoder().fit(table).transform(table)
    np.testing.assert_array_equal(encoded, [[1, 1, 1], [np.nan] * 3])


def test_unusual_numbers_of_polars() -> None:
    table = pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128), "b": pl.Series([1, 2], dtype=pl.Decimal(10, 2))})
    assert ColumnEncoder().fit(table).transform(table).tolist() == [[1, 1], [2, 2]]


def test_column_names_that_are_no_strings() -> None:
    table = pd.DataFrame({0: [True, False], 1: pd.Categorical(["u", "v"]), 2: [3, 4]})
    encoder = ColumnEncoder().fit(table)
    assert encoder.feature_names_ is None
    assert encoder.transform(table).tolist() == [[1, 1, 0, 3], [0, 0, 1, 4]]


def test_what_is_no_data_frame_is_left_alone() -> None:
    for X in [
        np.ones((2, 3)),
        np.array([[1, "a", None]] * 2, dtype=object),
        [[1, 2, 3], [4, 5, 6]],
        scipy.sparse.csr_array(np.eye(2, 3)),
    ]:
        encoder = ColumnEncoder().fit(X)
        assert encoder.transform(X) is X
        assert encoder.n_features_in_ == 3
        assert encoder.feature_names_ is None
        assert encoder.feature_groups_ is None


def test_one_dimension_is_left_to_the_caller() -> None:
    column = np.ones(3)
    assert ColumnEncoder().fit(column).transform(column) is column


def test_array_after_data_frame_and_the_reverse() -> None:
    array = np.array([[1.0, 2.0]])
    table = pd.DataFrame(array, columns=["a", "b"])
    assert ColumnEncoder().fit(table).transform(array) is array
    assert ColumnEncoder().fit(array).transform(table).tolist() == [[1, 2]]


def test_fitting_again_forgets() -> None:
    encoder = ColumnEncoder().fit(pandas_table()).fit(np.ones((2, 2)))
    assert encoder.feature_groups_ is None
    assert encoder.n_features_in_ == 2
    encoder.transform(np.ones((2, 2)))


def test_survives_pickling() -> None:
    encoder = pickle.loads(pickle.dumps(ColumnEncoder().fit(pandas_table())))
    assert encoder.transform(pandas_table()).shape == (3, 4)


def test_neither_pandas_nor_polars_is_imported() -> None:
    # scikit-learn itself may import pandas where it is installed: nothing more may come with ngp.
    program = (
        "import sys, numpy as np, sklearn.feature_selection; before = set(sys.modules);"
        "from ngp.data.encoding import ColumnEncoder; X = np.ones((2, 2)); ColumnEncoder().fit(X).transform(X);"
        "assert not {'pandas', 'polars', 'matplotlib', 'torch'} & (set(sys.modules) - before)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def check_error(error: type[Exception], message: str, call: Any, *arguments: Any) -> None:
    with pytest.raises(error, match="^" + re.escape(message) + "$"):
        call(*arguments)


def test_text_and_dates_are_refused() -> None:
    for table, columns in [
        (pd.DataFrame({"a": [1], "b": ["x"]}), "'b' (String)"),
        (pd.DataFrame({"a": np.array([1], object)}), "'a' (Object)"),
        (pl.DataFrame({"a": ["x"], "b": [1]}), "'a' (String)"),
        (pl.DataFrame({"a": [[1]]}), "'a' (List)"),
        (
            pl.DataFrame({f"c{i}": ["x"] for i in range(10)}),
            ", ".join(f"'c{i}' (String)" for i in range(8)) + " and 2 more",
        ),
    ]:
        message = (
            f"X has columns that are neither numbers nor categories, {columns}: make them categories "
            'with astype("category") in pandas or cast(pl.Categorical) in polars, or drop them.'
        )
        check_error(ValueError, message, ColumnEncoder().fit, table)


def test_dates_are_no_categories() -> None:
    message = (
        "X has columns that are neither numbers nor categories, 'a' (Datetime), 'b' (String): make dates numbers, such "
        'as days since the first, and text categories with astype("category") in pandas or cast(pl.Categorical) in '
        "polars, or drop them."
    )
    table = pd.DataFrame({"a": pd.to_datetime(["2020"]), "b": ["x"]})
    check_error(ValueError, message, ColumnEncoder().fit, table)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", None]), "c": pd.Categorical([None, 1])}),
        pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [None, "y"]}).with_columns(
            pl.col("b", "c").cast(pl.Categorical)
        ),
    ],
    ids=["pandas", "polars"],
)
def test_missing_categories_are_refused(table: Any) -> None:
    message = (
        "X has missing values in the category columns 'b', 'c': drop these rows, or make missing a category of its own."
    )
    check_error(ValueError, message, ColumnEncoder().fit, table)
    whole = pd.DataFrame({"a": [1], "b": pd.Categorical(["x"]), "c": pd.Categorical(["y"])})
    check_error(ValueError, message, ColumnEncoder().fit(whole).transform, table)


def test_other_columns_than_in_fit() -> None:
    table = pandas_table()
    encoder = ColumnEncoder().fit(table)
    cases = [
        (table.drop(columns="age"), "X has 2 columns, but fit saw 3: pass the same columns."),
        (
            table.rename(columns={"age": "AGE"}),
            "X has columns that fit did not see, 'AGE': pass the same columns.",
        ),
        (
            table[["age", "town", "paid"]],
            "X has its columns in another order than in fit, where 'town' came first: pass them in that order.",
        ),
        (
            table.assign(age=["a", "b", "c"]),
            "X has columns that held numbers in fit but not here, 'age' (String): convert them.",
        ),
        (
            table.to_numpy(),
            "X is a ndarray, but fit saw a data frame with category columns: pass a data frame with the same columns.",
        ),
    ]
    for X, message in cases:
        check_error(ValueError, message, encoder.transform, X)


def test_repeated_names_and_lazy_tables() -> None:
    twice = pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    message = "X has several columns of the same name: give each a name of its own."
    check_error(ValueError, message, ColumnEncoder().fit, twice)
    lazy = pl.DataFrame({"a": [1]}).lazy()
    check_error(TypeError, "X is a lazy LazyFrame: pass X.collect() instead.", ColumnEncoder().fit, lazy)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(-9, 9)), min_size=1, max_size=20),
    st.permutations([0, 1, 2]),
)
def test_encoding_can_be_read_back(rows: list[tuple[str, bool, int]], order: list[int]) -> None:
    names = [["letter", "flag", "number"][i] for i in order]
    table = pd.DataFrame(rows, columns=["letter", "flag", "number"]).astype({"letter": "category"})[names]
    encoder = ColumnEncoder().fit(table)
    encoded = encoder.transform(table)
    assert encoder.feature_groups_ is not None
    block = dict(zip(names, encoder.feature_groups_, strict=True))
    letters = sorted({letter for letter, _, _ in rows})
    assert sorted(np.concatenate(encoder.feature_groups_).tolist()) == list(range(encoded.shape[1]))
    for row, (letter, flag, number) in zip(encoded, rows, strict=True):
        assert row[block["letter"]].tolist() == [letter == other for other in letters]
        assert row[block["flag"]].tolist() == [flag]
        assert row[block["number"]].tolist() == [number]
    in_polars = pl.DataFrame({name: table[name].tolist() for name in names})
    in_polars = in_polars.with_columns(pl.col("letter").cast(pl.Categorical))
    np.testing.assert_array_equal(ColumnEncoder().fit(in_polars).transform(in_polars), encoded)
