"""A loaded selector is the one that was saved; what isn't a saved selector is refused with a sentence."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
import torch
from sklearn import model_selection
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from ngp import NeuralGreedyPursuit, NGPClassifier, NGPRegressor, SSFNRegressor
from ngp.data.groups import image_windows
from ngp.greedy import stopping
from ngp.io import load, markdown_table, save, write_whole
from ngp.predictors import CNN, MLP, SSFN, Kernel
from ngp.report.result import Result

FAST = SSFN(n_units=12, n_draws=2, refit_units=12)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 9))
SIGNAL = 2 * X[:, 3] + np.abs(X[:, 1])
TARGETS: dict[str, Any] = {
    "regression": SIGNAL,
    "outputs": np.stack([SIGNAL, X[:, 0]], axis=1),
    "text": np.where(SIGNAL > 1, "yes", "no").astype(object),
    "classes": np.array([3, 5, 9])[np.digitize(SIGNAL, [-0.5, 1.5])],
}
SPLITTER = model_selection.RepeatedKFold(n_splits=2, random_state=0)
PREDICTORS: dict[str, tuple[Any, str]] = {
    "ssfn": (FAST, "outputs"),
    "numpy's numbers": (SSFN(n_units=np.int64(9), clip=np.float32(3)), "text"),
    "mlp": (MLP(n_units=7, n_layers=2, epochs=1), "classes"),
    "cnn": (CNN(network="strong", epochs=1, refit_epochs=1), "text"),
    "kernel": (Kernel(), "regression"),
    "pipeline": (make_pipeline(StandardScaler(), FunctionTransformer(np.tanh), LogisticRegression()), "classes"),
    "forest": (RandomForestClassifier(4, max_depth=3), "text"),
    "boosting": (HistGradientBoostingRegressor(max_iter=3), "regression"),
    "neighbours": (KNeighborsRegressor(), "outputs"),
    "support vectors": (SVC(), "classes"),
    "Gauss": (GaussianProcessRegressor(), "regression"),
    "search": (model_selection.GridSearchCV(Ridge(), {"alpha": [1, 9]}, cv=model_selection.KFold(2)), "regression"),
    "growing network": (SSFNRegressor(max_layers=1, max_units=20), "regression"),
    "list": ([FAST, "kernel", Ridge()], "regression"),
}


def fitted(predictor: Any = FAST, target: str = "regression", data: Any = X, **others: Any) -> Any:
    parameters = {"n_features_to_select": 2, "cv": 2, "random_state": 0, **others}
    kind = NGPClassifier if target in ("text", "classes") else NGPRegressor
    return kind(predictor, **parameters).fit(data, TARGETS[target])


def saved(selector: NeuralGreedyPursuit, folder: Path) -> Path:
    selector.save(folder / "selector.ngp")
    return folder / "selector.ngp"


def after_saving(selector: Any, folder: Path) -> Any:
    return NeuralGreedyPursuit.load(saved(selector, folder))


def assert_same(first: Any, second: Any, data: Any = X) -> None:
    """Everything that a user can ask for is the same, bit for bit."""
    assert repr(first.get_params()) == repr(second.get_params())
    assert set(vars(first)) == set(vars(second))
    for one, other in zip(first.path_, second.path_, strict=True):
        for field in fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    assert list(first.groups_.names) == list(second.groups_.names)
    for name in ("transform", "predict", *(["predict_proba"] if first.task_ == "classification" else [])):
        mine, yours = getattr(first, name)(data), getattr(second, name)(data)
        assert type(mine) is type(yours)
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(yours))


@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.parametrize("name", PREDICTORS)
def test_every_predictor_comes_back(name: str, tmp_path: Path) -> None:
    selector = fitted(*PREDICTORS[name])
    loaded = after_saving(selector, tmp_path)
    assert_same(selector, loaded)
    assert_same(selector, after_saving(loaded, tmp_path))


def test_all_classes_come_back_as_what_they_were(tmp_path: Path) -> None:
    selector = NeuralGreedyPursuit(FAST, n_features_to_select=2, cv=2, random_state=0).fit(X, SIGNAL)
    loaded = after_saving(selector, tmp_path)
    assert type(loaded) is NeuralGreedyPursuit
    assert repr(loaded.path_) == repr(selector.path_)
    np.testing.assert_array_equal(loaded.cut(1).transform(X), selector.cut(1).transform(X))
    assert type(NGPRegressor.load(saved(fitted(), tmp_path))) is NGPRegressor
    with pytest.raises(TypeError, match=r"holds NGPRegressor, and this is NGPClassifier\.load: use NGPRegressor\.load"):
        NGPClassifier.load(saved(fitted(), tmp_path))


@pytest.mark.filterwarnings("ignore:Nothing was selected")
@pytest.mark.parametrize(
    "others",
    [
        {"n_features_to_select": None, "tol": 1e9},  # nothing is selected
        {"groups": image_windows((3, 3), 2, stride=1)},
        {"groups": {"both": [0, 3], "one": range(1, 3), "other": (4,)}, "fixed": [8]},
        {"stop": stopping.Plateau(), "n_features_to_select": None, "cv": SPLITTER},
        {
            "stop": stopping.FirstOf((stopping.RelativeImprovement(0.1), stopping.MaxColumns(2))),
            "n_features_to_select": None,
        },
        {"cv": (X[:9], SIGNAL[:9]), "checkpoint": Path("run.npz")},
    ],
    ids=lambda others: ", ".join(others),
)
def test_parameters_come_back(others: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    selector = fitted(**others)
    loaded = after_saving(selector, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), selector.predict(X))
    assert loaded.stop == selector.stop
    assert [columns.tolist() for columns in loaded.groups_.columns] == [c.tolist() for c in selector.groups_.columns]
    np.testing.assert_array_equal(clone(loaded).fit(X, SIGNAL).losses_, clone(selector).fit(X, SIGNAL).losses_)


def test_data_frames_with_categories(tmp_path: Path) -> None:
    for kind in ["text", "interval", "number", "date", "polars"]:
        values = {
            "interval": pd.cut(X[:, 4], [-9, -0.5, 0.5, 9]),
            "number": np.arange(60) % 3,
            "date": [pd.Timestamp(f"2024-0{1 + i % 3}-01").date() for i in range(60)],
        }.get(kind, np.array(["Bonn", "Kiel", "Ulm"])[np.arange(60) % 3])
        frame: Any = pd.DataFrame({"first": X[:, 5], "category": pd.Categorical(values), "last": X[:, 3]})
        if kind == "polars":
            frame = pl.from_pandas(frame)
        selector = fitted(data=frame, fixed=["category"]).set_output(transform="pandas")
        assert_same(selector, after_saving(selector, tmp_path), frame)


def test_torch_draws_the_same_numbers_after_loading(tmp_path: Path) -> None:
    save(fitted(MLP(n_units=5, epochs=1)), tmp_path / "mlp.ngp")
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    load(tmp_path / "mlp.ngp")
    assert torch.equal(torch.rand(3), expected)


def test_functions_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "selector.ngp"
    selector = fitted(lambda step: FAST if step == 1 else "kernel")
    with pytest.raises(
        ValueError, match=r"^This selector can't be saved, because it holds .*<lambda>.*set_params; .*\.$"
    ):
        save(selector, path)
    assert not path.exists()
    assert_same(selector.set_params(predictor="kernel"), after_saving(selector, tmp_path))
    with pytest.raises(TypeError, match=r"^save takes a fitted selector, but got a Ridge\.$"):
        save(Ridge(), path)  # type: ignore[arg-type]


def written(content: Any) -> bytes:
    return skops.io.dumps(content)


def inflated() -> bytes:
    """A small file with much in it."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 10**7)
    return content.getvalue()


def changed(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """The same file, with what the selector is replaced."""
    new = BytesIO()
    with ZipFile(BytesIO(content)) as archive, ZipFile(new, "w") as other:
        for name in archive.namelist():
            part = archive.read(name)
            if name == "schema.json":
                document = json.loads(part)
                document["content"]["selector"] = change(document["content"]["selector"])
                part = json.dumps(document).encode()
            other.writestr(name, part)
    return new.getvalue()


def repeated() -> bytes:
    """A file of which a thousand arrays are one and the same part."""

    def copies(node: Any) -> Any:
        array = node["content"][0]
        node["content"] = [array | {"__id__": number} for number in range(1, 1001)]
        return node

    return changed(written({"format": "ngp-selector/1", "selector": [np.zeros(1000)]}), copies)


def nested() -> bytes:
    """A small array of lists, each of which holds the one before twice: 2 ** 40 objects in all."""

    def doubled(node: Any) -> Any:
        item = node["content"][0]["content"][0]
        kind = {"__class__": "list", "__module__": "builtins"}
        for number in range(40):
            again = kind | {"__loader__": "CachedNode", "__id__": item["__id__"]}
            item = kind | {"__loader__": "ListNode", "__id__": number + 1, "content": [item, again]}
        return node | {"content": [item]}

    return changed(written({"format": "ngp-selector/1", "selector": np.array([[1, "a"]], dtype=object)}), doubled)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content, message in [
        (b"PK", "is no saved selector, or a damaged one: give a file that save has written"),
        (b"", "is no saved selector, or a damaged one: "),
        (inflated(), "is no saved selector, or a damaged one: "),
        (repeated(), "is no saved selector, or a damaged one: "),
        (nested(), "is no saved selector, or a damaged one: "),
        (written(Ridge()), "is no saved selector: give a file that save has written"),
        (written({"format": "ngp-selector/2", "selector": 1}), "is no saved selector: "),
        (written({"format": "ngp-selector/1", "selector": 1}), "is no saved selector: "),
        (written({"format": "ngp-selector/1"}), "is no saved selector: "),
        (written(os.path.join), r"holds posixpath\.join, which this version of ngp doesn't trust: "),
        (written(FunctionTransformer(re.escape)), r"holds re\.escape, which "),
    ]:
        path = tmp_path / "other.ngp"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))} {message}"):
            load(path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "selector.ngp"
    save(fitted(), path)
    content = path.read_bytes()
    for damaged in (content[:-30], content[: len(content) // 2], content.replace(b'"selector"', b'"selected"')):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"no saved selector"):
            load(path)


def test_missing_skops_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngp.io.find_spec", lambda name: None)
    for call in (lambda: save(NeuralGreedyPursuit(), tmp_path / "a"), lambda: load(tmp_path / "a")):
        with pytest.raises(ImportError, match=r"needs skops: install it with .*'neural-greedy-pursuit\[skops\]'\.$"):
            call()


def test_tables_are_aligned_markdown() -> None:
    lines = markdown_table(["a", "long name"], [["value", "1"], ["2", "3"]]).splitlines()
    assert lines[1] == "| ----- | --------- |"
    assert len(set(map(len, lines))) == 1


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.md", b"first")
    write_whole(tmp_path / "report.md", b"second")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "report.md", 3)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
    assert (tmp_path / "report.md").read_bytes() == b"second"


def test_several_threads_may_write_one_file(tmp_path: Path) -> None:
    contents = [bytes([number]) * 1000 for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: write_whole(tmp_path / "run.npz", content), contents))
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    assert (tmp_path / "run.npz").read_bytes() in contents


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither modes nor links for everyone")
def test_what_is_written_over_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "report.md", tmp_path / "link.md"
    link.symlink_to(file)
    write_whole(link, b"first")  # through a link to what isn't there yet
    file.chmod(0o600)
    write_whole(link, b"second")
    assert link.is_symlink()
    assert file.read_bytes() == b"second"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["report.md"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^The folder .*missing of run\.npz doesn't exist: make it, or"):
        write_whole(tmp_path / "missing" / "run.npz", b"{}")


def test_a_name_as_long_as_can_be(tmp_path: Path) -> None:
    path = tmp_path / f"{'x' * 250}.json"
    write_whole(path, b"{}")
    assert list(tmp_path.iterdir()) == [path]


def test_names_that_promise_another_format(tmp_path: Path) -> None:
    selector = fitted()
    with pytest.raises(
        ValueError, match=r"^path='.*x\.pdf' is no name for a report: use the suffix \.html or \.htm\.$"
    ):
        selector.report(tmp_path / "x.pdf", X, TARGETS["regression"])
    with pytest.raises(ValueError, match=r"^path='.*x\.txt' is no name for a result: use the suffix \.json\.$"):
        Result.of(selector, X, TARGETS["regression"]).write(tmp_path / "x.txt")
    assert not list(tmp_path.iterdir())
