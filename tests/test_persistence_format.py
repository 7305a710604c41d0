"""The format of saved selectors: what is in a file, and that files which others have keep loading."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ngp.persistence import load
from ngp.persistence.kinds import DATA, KINDS, SETTINGS, SPLITTERS
from ngp.persistence.values import Reader, Writer

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | hnp.arrays(st.sampled_from([np.float32, np.float64, np.int8, np.bool_, "<U3"]), hnp.array_shapes(min_side=0)),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_plain_values_come_back(value: Any) -> None:
    writer = Writer()
    text = json.dumps(writer.attribute(value), allow_nan=False)
    content = BytesIO()
    with ZipFile(content, "w") as archive:
        for name, data in writer.members.items():
            archive.writestr(name, data)
        own = Reader(archive).decode(json.loads(text))
    assert not writer.left_out
    assert repr(own) == repr(value)  # which tells 1 from True and from 1.0, and 0.0 from -0.0


def array_bytes(values: Any) -> bytes:
    content = BytesIO()
    np.lib.format.write_array(content, np.asarray(values), allow_pickle=False)
    return content.getvalue()


def test_files_of_format_1_keep_loading(tmp_path: Path) -> None:
    """A file written by hand; it may never change, since others have such."""
    arrays = [
        np.array([2]), np.array([0.5]), np.array([2.0]),  # 0-2: what is read, less 0.5, divided by 2
        np.array([[3.0]]), np.array([1.0]),  # 3-4: the random unit
        np.array([[-1.0]]), np.array([0.0]),  # 5-6: the linear part
        np.array([[10.0], [100.0], [1000.0]]), np.array([7.0]),  # 7-8: the output
        np.array([False, False, True]), np.array([0.0, 0.0, 0.75]), np.zeros(0, dtype=np.int64),  # 9-11
        np.ones(3), np.array([1.0, 3.0]), np.array([0.5, 0.5]), np.full(3, np.nan), np.array([0.5, np.nan, 0.25]),
    ]  # fmt: skip

    def array(number: int) -> dict[str, Any]:
        return {"type": "array", "number": number}

    nothing = {"type": "float", "text": "nan"}
    step = {
        "type": "Step", "action": "start", "group": None, "name": "", "columns": array(11), "before": nothing,
        "loss": 2.0, "standard_error": 1.0, "gain": nothing, "runner_up": None, "runner_up_loss": nothing,
        "seconds": 0.25, "n_fits": 0, "n_selected": 0, "n_columns": 0, "fold_losses": array(13),
        "fold_weights": array(14), "losses": array(15), "predictor": "constant", "kept": True,
    }  # fmt: skip
    addition = {
        "action": "add", "group": 2, "name": "x2", "columns": array(0), "before": 2.0, "loss": 0.25, "gain": 7.0,
        "runner_up": 0, "runner_up_loss": 0.5, "n_fits": 2, "n_selected": 1, "n_columns": 1, "losses": array(16),
        "predictor": "SSFN",
    }  # fmt: skip
    network = {
        "type": "Network", "weights": array(3), "biases": array(4), "slopes": array(5), "offset": array(6),
        "coef": array(7), "intercept": array(8), "unit_norm": False,
    }  # fmt: skip
    reader = {"type": "ScaledColumns", "columns": array(0), "mean": array(1), "scale": array(2), "clip": 4.0}
    predictor = {
        "type": "SSFNPredictor", "reader": reader, "networks": {"type": "tuple", "items": [network]},
        "target_mean": array(6), "target_scale": 2.0,
    }  # fmt: skip
    document = {
        "format": "neural-greedy-pursuit selector",
        "version": 1,
        "parameters": {"predictor": {"type": "SSFN", "n_units": 1}, "n_features_to_select": 1, "random_state": 4},
        "fitted": {
            "encoder_": {"type": "ColumnEncoder", "n_features": 3, "names": None, "categories": []},
            "n_features_in_": 3,
            "_single_output": True,
            "groups_": {"type": "Groups", "n_columns": 3, "names": None, "costs": array(12)},
            "fixed_": array(11),
            "path_": {"type": "tuple", "items": [step, {**step, **addition}]},
            "stop_reason_": "1 of at most 1 features are selected",
            "order_": array(0),
            "task_": "regression",
            "support_": array(9),
            "feature_importances_": array(10),
            "predictor_": predictor,
        },
    }
    with ZipFile(tmp_path / "old.ngp", "w") as archive:
        archive.writestr("selector.json", json.dumps(document))
        for number, values in enumerate(arrays):
            archive.writestr(f"arrays/{number}.npy", array_bytes(values))
    selector = load(tmp_path / "old.ngp")
    # x = 2.5 is 1 once scaled: unit relu(4), linear part relu(-1) and relu(1), so 2 (40 + 0 + 1000 + 7).
    np.testing.assert_array_equal(selector.predict([[0, 0, 2.5], [0, 0, 100.0]]), [2094.0, 2 * (130 + 4000 + 7)])
    assert selector.n_features_to_select == 1
    assert selector.predictor.n_units == 1
    assert selector.path_[1].gain == 7.0
    np.testing.assert_array_equal(selector.losses_, [[0.5, np.nan, 0.25]])


def test_every_kind_has_a_name_of_its_own() -> None:
    named = [cls.__name__ for cls in (*DATA, *SETTINGS, *SPLITTERS)]
    assert len(named) == len(set(named))
    assert set(named) <= set(KINDS)


def test_categories_of_pandas_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    interval = Writer().attribute(pd.Interval(0, 1))
    monkeypatch.setattr("ngp.persistence.kinds.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r"^A selector with categories of the type Interval needs pandas: install it\.$"
    ):
        Reader(ZipFile(BytesIO(), "w")).decode(interval)
