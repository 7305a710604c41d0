"""Files that aren't what they should be: one sentence, and no code is run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer

from ngp import NeuralGreedyPursuit
from ngp.persistence import load, save
from ngp.predictors import MLP, SSFN

FAST = SSFN(n_units=8, n_draws=1, refit_units=8)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = 2 * X[:, 2] + X[:, 1]
Edit = Callable[[dict[str, Any], dict[str, bytes]], object]


def fitted(predictor: Any = FAST, y: Any = Y) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(predictor, n_features_to_select=2, cv=2, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "selector.ngp"
    save(fitted(), path)
    return path


def changed(source: Path, target: Path, edit: Edit) -> Path:
    """A copy of a saved selector with another document or other files."""
    with ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members.pop("selector.json"))
    edit(document, members)
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        archive.writestr("selector.json", json.dumps(document))
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def npy(values: Any, *, allow_pickle: bool = False) -> bytes:
    content = BytesIO()
    np.lib.format.write_array(content, np.asarray(values), allow_pickle=allow_pickle)
    return content.getvalue()


def one_sentence(text: str) -> bool:
    return text.endswith(".") and "\n" not in text and ". " not in text


def test_a_copy_that_is_packed_anew_is_read(whole: Path, tmp_path: Path) -> None:
    copy = changed(whole, tmp_path / "copy.ngp", lambda document, members: members.update({"note.txt": b"mine"}))
    np.testing.assert_array_equal(load(copy).predict(X), load(whole).predict(X))


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", b"step,loss\n1,2\n", b'{"format": "neural-greedy-pursuit selector"}', bytes(range(256)) * 9],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.ngp"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"other\.ngp is no saved selector, or not a whole one: give a file that save has written"
    ) as info:
        load(path)
    assert one_sentence(str(info.value))


def test_other_archives_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", X=X)
    with pytest.raises(ValueError, match="is no saved selector"):
        load(tmp_path / "arrays.npz")


@pytest.mark.parametrize(
    "text",
    [
        "[]", "1", "{}", '{"format": "another"}', '{"format": "neural-greedy-pursuit selector"}', "{", "[" * 10**5,
        '{"format": "neural-greedy-pursuit selector", "version": "1"}',
        '{"format": "neural-greedy-pursuit selector", "version": 0}',
        '{"format": "neural-greedy-pursuit selector", "version": 1, "parameters": NaN}',
    ],
)  # fmt: skip
def test_other_documents_are_refused(text: str, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "other.ngp", "w") as archive:
        archive.writestr("selector.json", text)
    with pytest.raises(ValueError, match="is no saved selector"):
        load(tmp_path / "other.ngp")


def test_missing_files_and_folders_are_said_to_be_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.ngp")
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(fitted(), tmp_path / "missing" / "selector.ngp")


def test_a_newer_format_is_refused(whole: Path, tmp_path: Path) -> None:
    newer = changed(whole, tmp_path / "newer.ngp", lambda document, _: document.update(version=2))
    expected = r"newer\.ngp has the format 2, and this version reads 1: install a newer neural-greedy-pursuit\."
    with pytest.raises(ValueError, match=expected):
        load(newer)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_half_a_file_or_a_wrong_byte_is_found(
    whole: Path, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(whole.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        content = content[:place]
    path = tmp_path_factory.mktemp("broken") / "broken.ngp"
    path.write_bytes(content)
    message = ""
    try:
        loaded = load(path)
    except ValueError as error:
        message = str(error)
    if message:
        assert one_sentence(message)
    else:  # a byte that says nothing about the content, such as the time
        np.testing.assert_array_equal(loaded.predict(X), load(whole).predict(X))


def set_fitted(name: str, value: Any) -> Edit:
    return lambda document, _: document["fitted"].update({name: value})


def set_array(find: Callable[[dict[str, Any]], dict[str, Any]], values: Any) -> Edit:
    """Put other numbers where a part of the document refers to an array."""

    def edit(document: dict[str, Any], members: dict[str, bytes]) -> None:
        members["arrays/900.npy"] = npy(values)
        find(document["fitted"])["number"] = 900

    return edit


def first_step(fitted: dict[str, Any]) -> Any:
    return fitted["path_"]["items"][1]


def network(fitted: dict[str, Any]) -> Any:
    return fitted["predictor_"]["networks"]["items"][0]


UNSOUND: dict[str, tuple[Edit, str]] = {
    "short support": (set_array(lambda f: f["support_"], [True]), "its support_ doesn't fit the rest"),
    "numbers as support": (set_array(lambda f: f["support_"], [1, 0, 0, 1]), "its support_ doesn't fit the rest"),
    "unknown group": (set_array(lambda f: f["order_"], [4]), "its order_ doesn't fit the rest"),
    "negative group": (set_array(lambda f: f["order_"], [-1]), "its order_ doesn't fit the rest"),
    "unknown fixed column": (set_array(lambda f: f["fixed_"], [9]), "its fixed_ doesn't fit the rest"),
    "few importances": (set_array(lambda f: f["feature_importances_"], [0.5]), "its feature_importances_ doesn't fit"),
    "more features": (set_fitted("n_features_in_", 5), "its encoder_ doesn't fit the rest"),
    "features as text": (set_fitted("n_features_in_", "4"), ""),
    "no steps": (set_fitted("path_", {"type": "tuple", "items": []}), ""),
    "a path of numbers": (set_fitted("path_", [1, 2]), ""),
    "short losses": (set_array(lambda f: first_step(f)["losses"], [0.5]), ""),
    "losses as text": (set_array(lambda f: first_step(f)["losses"], ["a"] * 4), "Step.losses is a ndarray"),
    "a loss as text": (lambda d, _: first_step(d["fitted"]).update(loss="low"), "Step.loss is a str"),
    "an unknown action": (lambda d, _: first_step(d["fitted"]).update(action="leap"), "Step.action is a str"),
    "a number for the stability": (set_fitted("stability_", 3), "its stability_ doesn't fit the rest"),
    "a drop of nothing": (lambda d, _: first_step(d["fitted"]).update(action="drop"), "its path_ doesn't fit the rest"),
    "a drop without need": (lambda d, _: first_step(d["fitted"]).update(dropped=0), "its path_ doesn't fit the rest"),
    "a step too many": (lambda d, _: first_step(d["fitted"]).update(more=1), ""),
    "a step's field missing": (lambda d, _: first_step(d["fitted"]).pop("loss"), ""),
    "unknown columns": (set_array(lambda f: first_step(f)["columns"], [77]), "its path_ doesn't fit the rest"),
    "a group of a step": (lambda d, _: first_step(d["fitted"]).update(group=4), "its path_ doesn't fit the rest"),
    "few folds": (set_array(lambda f: first_step(f)["fold_losses"], [0.5]), "its path_ doesn't fit the rest"),
    "too wide weights": (set_array(lambda f: network(f)["weights"], np.ones((2, 99))), ""),
    "no weights": (set_array(lambda f: network(f)["coef"], np.ones(3)), ""),
    "whole weights": (set_array(lambda f: network(f)["coef"], np.ones((10, 1), int)), "Network.coef is a ndarray"),
    "columns beyond X": (set_array(lambda f: f["predictor_"]["reader"]["columns"], [1, 44]), ""),
    "two outputs": (set_array(lambda f: f["predictor_"]["target_mean"], [0.0, 1.0]), "its predictor_ doesn't fit"),
    "classes of a regression": (set_fitted("classes_", ["a", "b"]), "its task_ doesn't fit the rest"),
    "another task": (set_fitted("task_", "clustering"), "its task_ doesn't fit the rest"),
    "no predictor": (set_fitted("predictor_", None), ""),
    "settings for a predictor": (set_fitted("predictor_", {"type": "SSFN"}), ""),
    "a reason of numbers": (set_fitted("stop_reason_", 3), "its stop_reason_ doesn't fit the rest"),
    "a wrong truth value": (set_fitted("_single_output", 1), "its _single_output doesn't fit the rest"),
    "other costs": (set_array(lambda f: f["groups_"]["costs"], [1.0]), "group costs have the shape"),
    "negative costs": (set_array(lambda f: f["groups_"]["costs"], [-1.0] * 4), "must be positive"),
    "names missing": (
        lambda d, _: d["fitted"]["encoder_"].update(names=["a"]),
        "there is not one name for each column",
    ),
    "groups without columns": (
        set_fitted("groups_", {"type": "Groups", "names": ["a"], "costs": 1}),
        "groups have no columns or no names",
    ),
    "unknown parameter": (lambda d, _: d["parameters"].update(speed=9), ""),
    "no parameters": (lambda d, _: d.pop("parameters"), ""),
    "nothing fitted": (lambda d, _: d.update(fitted={}), ""),
    "an array that isn't there": (lambda d, members: members.pop("arrays/0.npy"), ""),
    "half an array": (lambda d, members: members.update({"arrays/0.npy": npy(Y)[:-3]}), ""),
    "more than an array": (lambda d, members: members.update({"arrays/0.npy": npy([1]) + b"x"}), "no plain array"),
    "a huge array": (
        lambda d, members: members.update({"arrays/0.npy": npy(np.ones(1)).replace(b"(1,)", b"(9999999999999,)")}),
        "",
    ),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_does_not_fit_together_is_refused(name: str, whole: Path, tmp_path: Path) -> None:
    edit, reason = UNSOUND[name]
    path = changed(whole, tmp_path / "unsound.ngp", edit)
    with pytest.raises(
        ValueError, match=r"unsound\.ngp is damaged or was changed.*: save the selector again\.$"
    ) as info:
        load(path)
    assert reason in str(info.value)
    assert one_sentence(str(info.value))


def make_file(path: Path) -> None:
    path.write_text("run")


class Payload:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return make_file, (self.path,)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "os.system", "command": "touch run"},
        {"type": "builtins.eval", "source": "make_file('run')"},
        {"type": "function", "name": "os.system"},
        {"type": "Path.touch"},
        {"type": "SSFNScorer"},
        {"type": None},
        {"type": ["SSFN"]},
        {},
    ],
)
@pytest.mark.parametrize("place", ["parameters", "fitted"])
def test_unknown_types_are_refused(value: Any, place: str, whole: Path, tmp_path: Path) -> None:
    path = changed(whole, tmp_path / "evil.ngp", lambda document, _: document[place].update(stop_reason_=value))
    with pytest.raises(ValueError, match="is damaged or was changed") as info:
        load(path)
    assert isinstance(value.get("type"), list) or "which no saved selector has" in str(info.value)


def test_pickled_arrays_are_not_loaded(whole: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    pickled = npy(np.array([Payload(trace)], dtype=object), allow_pickle=True)
    path = changed(whole, tmp_path / "evil.ngp", lambda _, members: members.update({"arrays/0.npy": pickled}))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        load(path)
    assert not trace.exists()
    np.lib.format.read_array(BytesIO(pickled), allow_pickle=True)
    assert trace.exists()  # the attack as such works


@pytest.mark.parametrize("number", ["../../secret", "/etc/passwd", 1.0, True, None, -1])
def test_arrays_are_named_by_numbers_alone(number: Any, whole: Path, tmp_path: Path) -> None:
    reference = {"type": "array", "number": number}
    path = changed(whole, tmp_path / "evil.ngp", set_fitted("order_", reference))
    with pytest.raises(ValueError, match="is damaged or was changed"):
        load(path)


def test_names_in_the_archive_lead_nowhere(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    names = ["../escaped", "/tmp/escaped-from-a-selector", "..\\escaped", "arrays/../../escaped"]
    path = changed(whole, folder / "evil.ngp", lambda _, members: members.update(dict.fromkeys(names, b"x")))
    load(path)
    assert [each.name for each in tmp_path.rglob("*")] == ["inner", "evil.ngp"]
    assert not Path(names[1]).exists()


@pytest.mark.parametrize("name", ["predict", "transform", "fit", "__class__", "__dict__", "_predict_coded", "losses_"])
def test_methods_are_not_replaced(name: str, whole: Path, tmp_path: Path) -> None:
    path = changed(whole, tmp_path / "evil.ngp", set_fitted(name, "something"))
    with pytest.raises(ValueError, match=f"it has an unknown attribute {name}"):
        load(path)


@pytest.mark.parametrize("function", [make_file, print, eval, Path.touch])
def test_estimators_with_unknown_parts_are_refused(function: Any, tmp_path: Path) -> None:
    save(fitted(Ridge()), tmp_path / "ridge.ngp")
    evil = skops.io.dumps(FunctionTransformer(function))
    path = changed(
        tmp_path / "ridge.ngp", tmp_path / "evil.ngp", lambda _, members: members.update({"estimators/1.skops": evil})
    )
    with pytest.raises(ValueError, match="its estimator has parts that are not scikit-learn's"):
        load(path)


def test_no_module_is_imported_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(fitted(Ridge()), tmp_path / "ridge.ngp")
    (tmp_path / "evil_module.py").write_text("Ridge = None")
    monkeypatch.syspath_prepend(tmp_path)

    def edit(document: dict[str, Any], members: dict[str, bytes]) -> None:
        inner = BytesIO(members["estimators/1.skops"])
        with ZipFile(inner) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        assert b"sklearn.linear_model._ridge" in parts["schema.json"]
        parts["schema.json"] = parts["schema.json"].replace(b"sklearn.linear_model._ridge", b"evil_module")
        with ZipFile(inner := BytesIO(), "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        members["estimators/1.skops"] = inner.getvalue()

    with pytest.raises(ValueError, match=r"not scikit-learn's, evil_module\.Ridge"):
        load(changed(tmp_path / "ridge.ngp", tmp_path / "evil.ngp", edit))
    assert "evil_module" not in sys.modules


def test_an_estimator_of_other_columns_is_refused(tmp_path: Path) -> None:
    save(fitted(Ridge()), tmp_path / "ridge.ngp")
    other = skops.io.dumps(Ridge().fit(X, Y))
    path = changed(
        tmp_path / "ridge.ngp", tmp_path / "other.ngp", lambda _, members: members.update({"estimators/1.skops": other})
    )
    with pytest.raises(ValueError, match="its predictor_ doesn't fit the rest"):
        load(path)


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (["Linear", {"in_features": 2}, {}], "a network has an unknown layer 'Linear'"),
        (["Module", {}, {}], "a network has an unknown layer 'Module'"),
        (["ReLU"], ""),
    ],
)
def test_unknown_layers_are_refused(layer: Any, what: str, tmp_path: Path) -> None:
    save(fitted(MLP(n_units=4, epochs=1, n_draws=1)), tmp_path / "mlp.ngp")

    def edit(document: dict[str, Any], members: dict[str, bytes]) -> None:
        settings = {"type": "dict", "items": [list(item) for item in layer[1].items()]} if len(layer) > 1 else None
        weights = {"type": "dict", "items": []}
        document["fitted"]["predictor_"]["networks"] = [[[layer[0], settings, weights][: len(layer)]]]

    with pytest.raises(ValueError, match="is damaged or was changed") as info:
        load(changed(tmp_path / "mlp.ngp", tmp_path / "evil.ngp", edit))
    assert what in str(info.value)


def test_weights_of_other_shapes_are_refused(tmp_path: Path) -> None:
    save(fitted(MLP(n_units=4, epochs=1, n_draws=1)), tmp_path / "mlp.ngp")

    def edit(document: dict[str, Any], members: dict[str, bytes]) -> None:
        weights = document["fitted"]["predictor_"]["networks"][0][0][2]["items"][0][1]
        members[f"arrays/{weights['number']}.npy"] = npy(np.ones((4, 3), np.float32))

    with pytest.raises(ValueError, match="is damaged or was changed"):
        load(changed(tmp_path / "mlp.ngp", tmp_path / "other.ngp", edit))
