"""A fit that was cut off goes on with its checkpoint, to the same result; checkpoints of other runs are refused."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from greedy_cases import OnStep, stop_after
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.preprocessing import FunctionTransformer

import ngp
from ngp import NGPRegressor
from ngp.datasets import make_artificial
from ngp.greedy import checkpoint
from ngp.greedy.checkpoint import Checkpoint, CheckpointError, described, steps_as_arrays, steps_from_arrays
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import MLP, SSFN

SETTINGS: dict[str, Any] = {"n_features_to_select": 4, "random_state": 0}


def data(seed: int = 0) -> tuple[Any, Any]:
    X, y, _ = make_artificial(90, 12, random_state=seed)
    return X, y


def fit(
    path: Path | None, X: Any = None, y: Any = None, weights: Any = None, on_step: Any = None, **changes: Any
) -> NGPRegressor:
    own_X, own_y = data()
    selector = NGPRegressor(checkpoint=path, **{**SETTINGS, **changes})
    if on_step:
        selector.set_callbacks(OnStep(on_step))
    return selector.fit(own_X if X is None else X, own_y if y is None else y, weights)


def everything(selector: NGPRegressor) -> list[Any]:
    """All that a fit has found, but for how long it took."""
    found = []
    for step in selector.path_:
        fields = {name: value for name, value in vars(step).items() if name != "seconds"}
        found.append({k: v.tobytes() if isinstance(v, np.ndarray) else repr(v) for k, v in fields.items()})
    X, _ = data(1)
    return [found, selector.stop_reason_, selector.support_.tolist(), selector.predict(X).tobytes()]


@pytest.mark.parametrize(
    ("predictor", "n_made"), [("ssfn", 1), ("ssfn", 3), (MLP(epochs=3, n_units=5), 2), (Ridge(), 2)]
)
def test_a_fit_goes_on_to_the_same_bits(predictor: Any, n_made: int, tmp_path: Path) -> None:
    file, seen = tmp_path / "run.npz", list[int]()
    with pytest.raises(RuntimeError, match="killed"):
        fit(file, predictor=predictor, on_step=stop_after(n_made, RuntimeError("killed")))
    resumed = fit(file, predictor=predictor, on_step=lambda steps: seen.append(steps[-1].n_selected))
    assert seen == list(range(n_made + 1, 5))  # steps that are there aren't made again
    assert everything(resumed) == everything(fit(None, predictor=predictor))


def test_a_finished_fit_is_not_repeated(tmp_path: Path) -> None:
    file, seen = tmp_path / "run.npz", []
    first = fit(file)
    again = fit(file, on_step=seen.append)
    assert seen == []
    assert everything(again) == everything(first)
    assert [step.seconds for step in again.path_] == [step.seconds for step in first.path_]
    assert os.listdir(tmp_path) == ["run.npz"]


def test_without_a_seed_the_checkpoint_has_it(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, random_state=None, on_step=stop_after(2))
    saved = Checkpoint.read(file)
    assert saved
    resumed = fit(file, random_state=None)
    assert [step.loss for step in resumed.path_[:3]] == [step.loss for step in saved.steps]
    assert everything(fit(file, random_state=None)) == everything(resumed)


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_time_jobs_and_callbacks_may_change(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    some = fit(file, max_time=1e-9)
    assert (some.partial_, len(some.order_)) == (True, 0)
    whole = fit(file, max_time=600, n_jobs=2, verbose=0, on_step=lambda steps: None)
    assert not whole.partial_
    assert everything(whole) == everything(fit(None))


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_however_little_time_there_is_each_run_makes_a_step(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    made = [fit(file, max_time=1e-9) for _ in range(5)]
    assert [len(run.path_) for run in made] == [1, 2, 3, 4, 5]
    assert not made[-1].partial_
    assert everything(made[-1]) == everything(fit(None))


X_0, Y_0 = data()
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "X": ({"X": X_0 + 1e-9}, "other X"),
    "fewer rows": ({"X": X_0[:80], "y": Y_0[:80]}, "other X, other sample_weight, other validation rows, other y"),
    "y": ({"y": 2 * Y_0}, "other y"),
    "weights": ({"weights": np.arange(90) + 1}, "other sample_weight"),
    "folds": ({"cv": 3}, "other validation rows"),
    "groups": ({"groups": [[i] for i in range(11, -1, -1)]}, "other groups"),
    "fixed": ({"fixed": [0]}, "other fixed"),
    "seed": ({"random_state": 1}, "other random_state"),
    "number": ({"n_features_to_select": 3}, "n_features_to_select was 4 and is 3"),
    "threshold": ({"tol": 0.5}, "tol was None and is 0.5"),
    "predictor": ({"predictor": "kernel"}, "predictor was 'auto' and is 'kernel'"),
    "units": ({"predictor": SSFN(n_units=99)}, "other predictor"),
}


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, on_step=stop_after(1))
    before = file.read_bytes()
    for changes, difference in OTHERS.values():
        with pytest.raises(CheckpointError) as refused:
            fit(file, **changes)
        message = str(refused.value)
        assert message.startswith(f"{file} is the checkpoint of another run (")
        assert difference in message
        assert message.endswith("): give another path, or remove the file.")
        assert file.read_bytes() == before


def test_another_versions_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.npz"
    fit(file, on_step=stop_after(1))
    version = ngp.__version__
    monkeypatch.setattr("ngp.__version__", "77")
    with pytest.raises(CheckpointError, match=r"ngp's version was .* and is 77"):
        fit(file)
    monkeypatch.setattr(checkpoint, "FORMAT", "ngp-checkpoint/99")
    with pytest.raises(CheckpointError) as refused:
        fit(file)
    assert str(refused.value).startswith(f"{file} was written by ngp {version}, whose format 'ngp-checkpoint/")
    assert str(refused.value).endswith(
        " isn't this version's 'ngp-checkpoint/99': give another path, or remove the file."
    )


def archive(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


BROKEN = {
    "text": lambda _: b"hello",
    "truncated": lambda content: content[: len(content) // 2],
    "without steps": lambda _: archive(
        document=np.frombuffer(json.dumps({"format": checkpoint.FORMAT}).encode(), np.uint8)
    ),
    "pickled": lambda _: archive(document=np.array([{"format": checkpoint.FORMAT}], dtype=object)),
    "nothing": lambda _: b"",
    "nested": lambda _: archive(document=np.full(10**5, ord("["), np.uint8)),
    "compressed": lambda content: repacked(content, ZIP_DEFLATED),
    "a shorter array": lambda content: content.replace(b"'shape': (24,)", b"'shape': (12,)"),
    "another type": lambda content: with_steps(content, lambda steps: steps[1].update(loss="low")),
    "a field too many": lambda content: with_steps(content, lambda steps: steps[0].update(more=1)),
}


def with_steps(content: bytes, change: Callable[[list[dict[str, Any]]], Any]) -> bytes:
    """A checkpoint whose steps were changed by hand."""
    with np.load(io.BytesIO(content)) as arrays:
        steps = json.loads(arrays["steps"].tobytes())
        change(steps)
        return archive(**{**arrays, "steps": np.frombuffer(json.dumps(steps).encode(), np.uint8)})


def repacked(content: bytes, compression: int) -> bytes:
    """The same archive with 10 MB more in it."""
    new = io.BytesIO()
    with ZipFile(io.BytesIO(content)) as one, ZipFile(new, "w", compression) as other:
        for name in one.namelist():
            other.writestr(name, one.read(name) + (bytes(10**7) if name == "losses.npy" else b""))
    return new.getvalue()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, on_step=stop_after(1))
    whole = file.read_bytes()
    for broken in BROKEN.values():
        content = broken(whole)
        file.write_bytes(content)
        assert content != whole
        with pytest.raises(
            CheckpointError, match=r"run\.npz is no checkpoint, or a damaged one: give another path, or "
        ):
            fit(file)
        assert file.read_bytes() == content
    with pytest.raises(CheckpointError, match=r" can't be read \(Is a directory\): give another path\."):
        fit(tmp_path)


IMPOSSIBLE: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "a group too many": lambda steps: steps[1].update(group=12),
    "a negative group": lambda steps: steps[1].update(runner_up=-1),
    "dropped before it was added": lambda steps: steps[1].update(dropped=3),
    "no start": lambda steps: steps[0].update(kept=False),
}


def test_steps_that_cannot_be_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, on_step=stop_after(1))
    whole = file.read_bytes()
    for what, change in IMPOSSIBLE.items():
        file.write_bytes(with_steps(whole, change))
        with pytest.raises(
            CheckpointError, match=r"run\.npz holds steps that no run on these data can have made: give "
        ):
            fit(file)
        assert Checkpoint.read(file), what


def test_a_full_disk_ends_no_fit_and_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, n_written = tmp_path / "run.npz", list[int]()
    original = os.fsync

    def fsync(number: int) -> None:
        n_written.append(number)
        if 2 < len(n_written) < 5:  # the second and the third step
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(number)

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.warns(UserWarning, match="can't be written") as caught:
        found = fit(file)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{file} can't be written (No space left on device): the fit goes on")
    assert caught[0].filename == __file__
    assert everything(found) == everything(fit(None))
    saved = Checkpoint.read(file)
    assert saved
    assert len(saved.steps) == 5  # there was room for the last one again
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_path_that_cannot_be_written_is_refused_before_the_first_step(tmp_path: Path) -> None:
    path, seen = tmp_path / "missing" / "run.npz", list[Any]()
    with pytest.raises(CheckpointError) as refused:
        fit(path, on_step=seen.append)
    assert str(refused.value) == f"The folder {path.parent} of run.npz doesn't exist: make it, or give another."
    assert seen == []


def test_steps_come_back_as_they_were() -> None:
    steps = fit(None, fixed=[3], groups=[[0, 1], [2, 3], [4, 5, 6], [7]]).path_
    again = steps_from_arrays(steps_as_arrays(steps))
    assert len(again) == len(steps)
    for one, other in zip(steps, again, strict=True):
        for name, value in vars(one).items():
            twin = getattr(other, name)
            assert type(value) is type(twin)
            np.testing.assert_array_equal(value, twin)


def test_layers_and_ridges_come_back_too() -> None:
    """Of a race, in which the leaders have more layers, and of steps of which some have a ridge."""
    steps = fit(None, predictor="ssfn", stop=MaxFeatures(3), n_features_to_select=None).path_
    assert np.isnan(steps[0].ridge)
    assert all(3e-5 <= step.ridge <= 30 for step in steps[1:])
    assert all(step.layers[step.group] == 8 for step in steps[1:])
    assert any(0 < step.layers[np.isfinite(step.losses)].min() < 8 for step in steps[1:])
    again = steps_from_arrays(steps_as_arrays(steps))
    for one, other in zip(steps, again, strict=True):
        assert one.layers.dtype == other.layers.dtype
        np.testing.assert_array_equal(one.layers, other.layers)
        assert repr(one.ridge) == repr(other.ridge)


def test_descriptions_are_the_same_in_another_process() -> None:
    code = (
        "from ngp.greedy.checkpoint import described; from ngp.predictors import *\n"
        "from sklearn.linear_model import Ridge; from numpy import array\n"
        "print(described([SSFN(), Ridge(alpha=2), len, object(), array(['a b', 1.5], dtype=object), "
        "lambda x: x in {'a', 'b', 'c'}, lambda: lambda x: x]))"
    )
    texts = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(texts) == 1
    assert "Ridge(alpha=2, " in texts.pop()
    assert described(np.zeros(3)) == described(np.zeros(3)) != described(np.ones(3))
    assert described({"a": np.arange(2000)}) != described({"a": 2 * np.arange(2000)})


def _local(n: int) -> Any:
    """A class whose name is the same for all n."""

    class Local:
        def method(self) -> int:
            return 0

    class Other(Local):
        def method(self) -> int:
            return 1

    Other.__qualname__ = Local.__qualname__
    return (Local, Other)[n]


NAMELESS: dict[str, tuple[Any, Any]] = {
    "constant": (lambda x: x + 1, lambda x: x + 2),
    "name": (lambda x: x.sum(), lambda x: x.mean()),
    "default": (lambda x, n=1: x + n, lambda x, n=2: x + n),
    "keyword": (lambda x, *, n=1: x + n, lambda x, *, n=2: x + n),
    "within": (lambda x: (lambda z: z + 1)(x), lambda x: (lambda z: z + 2)(x)),
    "scorer": (make_scorer(lambda y, z: y @ z), make_scorer(lambda y, z: y @ z / 2)),
    "partial": (partial(lambda x, n: x + n, 1), partial(lambda x, n: x - n, 1)),
    "in a list": ([lambda x: x + 1], [lambda x: x + 2]),
    "in a mapping": ({"f": lambda x: x + 1}, {"f": lambda x: x + 2}),
    "in an estimator": (FunctionTransformer(lambda x: x + 1), FunctionTransformer(lambda x: x + 2)),
    "class": (_local(0), _local(1)),
}


def test_functions_of_the_same_name_are_known_by_what_they_do() -> None:
    for what, (one, other) in NAMELESS.items():
        assert described(one) == described(one) != described(other), what


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_checkpoint import fit
fit(Path(sys.argv[1]))
"""


def test_killed_at_any_moment_it_resumes_to_the_same_result(tmp_path: Path) -> None:
    """A few kills here; ``python -m benchmarks.kills`` makes a hundred."""
    expected, rng = everything(fit(None)), np.random.default_rng(0)
    file, here = tmp_path / "run.npz", Path(__file__).parent
    command = [sys.executable, "-c", KILLED, str(file), str(here), str(here.parent)]
    for _ in range(3):
        before = file.stat().st_mtime_ns if file.exists() else 0
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if file.exists() and file.stat().st_mtime_ns > before:  # another step was made
                break
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.wait()
        saved = Checkpoint.read(file)
        assert saved
        assert 1 <= len(saved.steps) <= 5
    assert everything(fit(file)) == expected
