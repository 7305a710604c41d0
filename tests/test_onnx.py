"""An exported graph says what the selector says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from torch import nn

from ngp import NeuralGreedyPursuit
from ngp.data.groups import image_windows
from ngp.persistence import export_onnx
from ngp.predictors import CNN, MLP, SSFN, Kernel

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before it is imported
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

FAST = SSFN(n_units=12, n_draws=2, refit_units=12)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 16)) * np.geomspace(0.01, 100, 16) + np.linspace(-5, 5, 16)
NEW = rng.normal(size=(300, 16)) * np.geomspace(0.02, 200, 16) + np.linspace(-5, 5, 16)  # clipped, now and then
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
SIGNAL = SCALED[:, 3] + np.abs(SCALED[:, 9])
TARGETS: dict[str, Any] = {
    "regression": SIGNAL * 1000 - 5,
    "outputs": np.stack([SIGNAL, -SIGNAL, X[:, 1]], axis=1),
    "text": np.where(SIGNAL > 1, "ja", "nein"),
    "objects": np.where(SIGNAL > 1, "ja", "näh").astype(object),
    "whole": np.array([-3, 5, 9], dtype=np.int32)[np.digitize(SIGNAL, [0, 1.5])],
    "booleans": SIGNAL > 1,
    "numbers": np.where(SIGNAL > 1, 2.0, 1.0),
}


def small_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    convolution = nn.Conv2d(image[0], 4, (3, 2), stride=(1, 2), padding=(1, 0), bias=False)
    pool = nn.MaxPool2d((2, 1), stride=1, padding=(1, 0), ceil_mode=True)
    return nn.Sequential(convolution, nn.Identity(), pool, nn.Flatten(), nn.Linear(40, n_outputs))


PREDICTORS: dict[str, Any] = {
    "ssfn": FAST,
    "ssfn of the paper": SSFN.published(),
    "ssfn without clipping": SSFN(n_units=12, n_draws=1, refit_units=12, clip=None),
    "mlp": MLP(n_units=9, epochs=2, refit_epochs=4),
    "mlp of two layers": MLP(n_units=9, n_layers=2, n_draws=1, epochs=2, refit_epochs=4),
    "cnn": CNN(epochs=1, refit_epochs=2, n_draws=2, network="strong"),
    "own cnn": CNN(epochs=1, refit_epochs=2, network=small_network, image_shape=(4, 4, 1)),
    "kernel": Kernel(),
    "arc-cosine": Kernel(kernel="arc-cosine"),
}


def fitted(predictor: Any = FAST, target: str = "regression", data: Any = X, **others: Any) -> NeuralGreedyPursuit:
    task = "regression" if target in ("regression", "outputs") else "classification"
    parameters = {"n_features_to_select": 3, "cv": 2, "random_state": 0, "task": task, **others}
    return NeuralGreedyPursuit(predictor, **parameters).fit(data, TARGETS[target])


def run(selector: NeuralGreedyPursuit, folder: Path, data: Any = NEW, dtype: Any = "float64") -> dict[str, Any]:
    path = folder / "graph.onnx"
    export_onnx(selector, path, dtype=dtype)
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["X"]
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": data.astype(dtype)}), strict=True))


def assert_agrees(
    selector: NeuralGreedyPursuit, outputs: dict[str, Any], data: Any = NEW, digits: float = 1e-6
) -> None:
    if selector.task_ == "regression":
        expected = selector.predict(data)
        assert list(outputs) == ["prediction"]
        assert outputs["prediction"].shape == expected.shape
        size = np.abs(expected).max()
        np.testing.assert_allclose(outputs["prediction"], expected, rtol=0, atol=digits * size)
        return
    assert list(outputs) == ["label", "probabilities"]
    shares = selector.predict_proba(data)
    np.testing.assert_allclose(outputs["probabilities"], shares, rtol=0, atol=digits)
    clear = np.sort(shares, axis=1)[:, -1] - np.sort(shares, axis=1)[:, -2] > 2 * digits
    assert clear.mean() > 0.9
    assert outputs["label"].shape == (len(data),)
    np.testing.assert_array_equal(outputs["label"][clear], selector.predict(data)[clear])


@pytest.mark.parametrize("target", ["regression", "outputs", "text", "whole"])
@pytest.mark.parametrize("name", PREDICTORS)
def test_graphs_agree_with_the_selector(name: str, target: str, tmp_path: Path) -> None:
    selector = fitted(PREDICTORS[name], target)
    outputs = run(selector, tmp_path)
    assert_agrees(selector, outputs)
    numbers = outputs.get("prediction", outputs.get("probabilities"))
    assert numbers is not None
    assert numbers.dtype == np.float64


@pytest.mark.parametrize("name", ["ssfn", "kernel", "arc-cosine"])
def test_double_precision_is_exact(name: str, tmp_path: Path) -> None:
    selector = fitted(PREDICTORS[name])
    assert_agrees(selector, run(selector, tmp_path), digits=1e-11)


@pytest.mark.parametrize("target", ["regression", "whole"])
@pytest.mark.parametrize("name", PREDICTORS)
def test_single_precision(name: str, target: str, tmp_path: Path) -> None:
    selector = fitted(PREDICTORS[name], target)
    outputs = run(selector, tmp_path, dtype="float32")
    assert_agrees(selector, outputs, digits=1e-3)
    assert all(values.dtype in (np.float32, np.int64) for values in outputs.values())


def test_a_network_in_double_precision(tmp_path: Path) -> None:
    selector = fitted(MLP(n_units=9, epochs=2, refit_epochs=4, dtype="float64"))
    assert_agrees(selector, run(selector, tmp_path), digits=1e-12)
    assert_agrees(selector, run(selector, tmp_path, dtype="float32"), digits=1e-4)


@pytest.mark.parametrize(
    ("target", "kind"),
    [("text", object), ("objects", object), ("whole", np.int64), ("booleans", np.bool_), ("numbers", np.float64)],
)
def test_labels_of_all_types(target: str, kind: Any, tmp_path: Path) -> None:
    selector = fitted(target=target)
    outputs = run(selector, tmp_path)
    assert_agrees(selector, outputs)
    assert outputs["label"].dtype == kind
    assert set(outputs["label"]) <= set(TARGETS[target])
    single = run(selector, tmp_path, dtype="float32")
    assert single["label"].dtype == kind


@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy", "hinge"])
@pytest.mark.parametrize("target", ["text", "whole"])
def test_networks_for_classes_under_every_loss(loss: str, target: str, tmp_path: Path) -> None:
    selector = fitted(PREDICTORS["mlp"], target, loss=loss)
    assert_agrees(selector, run(selector, tmp_path))


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@pytest.mark.parametrize("target", ["regression", "outputs", "text", "whole"])
def test_nothing_selected(target: str, tmp_path: Path) -> None:
    selector = fitted(target=target, n_features_to_select=None, tol=1e9)
    outputs = run(selector, tmp_path)
    first = outputs.get("prediction", outputs.get("label"))
    assert first is not None
    if target in ("regression", "outputs"):
        np.testing.assert_allclose(first, selector.predict(NEW))
    else:
        np.testing.assert_array_equal(first, selector.predict(NEW))


def test_groups_of_pixels_and_names(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(16)])
    selector = fitted(data=frame, groups=image_windows((4, 4), 2), fixed=["pixel 5"], n_features_to_select=3)
    outputs = run(selector, tmp_path)
    named = pd.DataFrame(NEW, columns=frame.columns)
    np.testing.assert_allclose(outputs["prediction"], selector.predict(named))


def test_only_selected_columns_count(tmp_path: Path) -> None:
    selector = fitted()
    other = np.where(selector.support_, NEW, np.inf)
    np.testing.assert_array_equal(run(selector, tmp_path)["prediction"], run(selector, tmp_path, other)["prediction"])


@pytest.mark.parametrize("n_rows", [1, 2])
def test_few_rows(n_rows: int, tmp_path: Path) -> None:
    for name in ("ssfn", "cnn"):
        selector = fitted(PREDICTORS[name], "whole")
        outputs = run(selector, tmp_path, NEW[:n_rows])
        assert outputs["probabilities"].shape == (n_rows, 3)
        np.testing.assert_allclose(outputs["probabilities"], selector.predict_proba(NEW[:n_rows]), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_columns=st.integers(1, 4),
    n_outputs=st.integers(1, 3),
    predictor=st.builds(
        SSFN,
        n_units=st.integers(1, 9),
        n_draws=st.integers(1, 3),
        bias=st.booleans(),
        standardize=st.booleans(),
        unit_norm=st.booleans(),
        clip=st.none() | st.floats(0.1, 9.0) | st.integers(1, 9),
        refit_units=st.integers(1, 9),
    ),
)
def test_random_networks(
    seed: int, n_columns: int, n_outputs: int, predictor: SSFN, tmp_path_factory: pytest.TempPathFactory
) -> None:
    random = np.random.default_rng(seed)
    table, y = random.normal(size=(12, n_columns)), random.normal(size=(12, n_outputs))
    selector = NeuralGreedyPursuit(predictor, n_features_to_select=1, cv=2, random_state=0).fit(table, y)
    outputs = run(selector, tmp_path_factory.mktemp("random"), table)
    np.testing.assert_allclose(outputs["prediction"], selector.predict(table), atol=1e-9)


def other_network(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(16, n_outputs))


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    path = tmp_path / "graph.onnx"
    with pytest.raises(NotFittedError):
        export_onnx(NeuralGreedyPursuit(), path)
    with pytest.raises(
        ValueError, match=r"export_onnx can't export a Ridge: export .* with skl2onnx, for the columns .*\.$"
    ):
        export_onnx(fitted(Ridge()), path)
    with pytest.raises(ValueError, match=r"can't export a network with Tanh\(\): use torch\.onnx .*\.$"):
        export_onnx(fitted(CNN(network=other_network, epochs=1, refit_epochs=1)), path)
    with pytest.raises(ValueError, match=r"^dtype='float16' is unknown: use 'float32' or 'float64'\.$"):
        export_onnx(fitted(), path, dtype="float16")  # type: ignore[arg-type]
    frame = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(e=pd.Categorical(["u", "v"] * 30))
    with pytest.raises(ValueError, match=r"^export_onnx can't encode category columns: encode them as numbers .*\.$"):
        export_onnx(fitted(data=frame), path)
    selector = fitted(target="text")
    selector.classes_ = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    with pytest.raises(
        ValueError, match=r"can't export classes of the type datetime64\[D\]: use text or whole numbers"
    ):
        export_onnx(selector, path)
    selector.predictor_ = object()
    with pytest.raises(ValueError, match=r"^export_onnx can't export a object: use an SSFN, an MLP or a kernel\.$"):
        export_onnx(selector, path)
    assert not path.exists()


def test_missing_onnx_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngp.persistence.export.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r"^export_onnx needs onnx: install it with .*'neural-greedy-pursuit\[onnx\]'\.$"
    ):
        export_onnx(fitted(), tmp_path / "graph.onnx")
