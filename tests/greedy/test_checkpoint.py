"""A fit that was cut off goes on with its checkpoint, to the same result; other people's checkpoints are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold
from sklearn.preprocessing import FunctionTransformer

from ngp import NeuralGreedyPursuit, checkpoint
from ngp.datasets import make_artificial
from ngp.greedy.checkpoint import Checkpoint, CheckpointError, described, steps_as_arrays, steps_from_arrays
from ngp.predictors import MLP, SSFN

SETTINGS: dict[str, Any] = {"n_features_to_select": 4, "random_state": 0}


def data(seed: int = 0) -> tuple[Any, Any]:
    X, y, _ = make_artificial(90, 12, random_state=seed)
    return X, y


def fit(path: Path | None, X: Any = None, y: Any = None, weights: Any = None, **changes: Any) -> NeuralGreedyPursuit:
    own_X, own_y = data()
    selector = NeuralGreedyPursuit(checkpoint=path, **{**SETTINGS, **changes})
    return selector.fit(own_X if X is None else X, own_y if y is None else y, weights)


def everything(selector: NeuralGreedyPursuit) -> list[Any]:
    """All that a fit has found, but for how long it took."""
    found = []
    for step in selector.path_:
        fields = {name: value for name, value in vars(step).items() if name != "seconds"}
        found.append({k: v.tobytes() if isinstance(v, np.ndarray) else repr(v) for k, v in fields.items()})
    X, _ = data(1)
    return [found, selector.stop_reason_, selector.support_.tolist(), selector.predict(X).tobytes()]


def stop_after(n: int) -> Any:
    """A callback that is killed after so many steps."""

    def callback(step: Any) -> None:
        if step.n_selected == n:
            raise RuntimeError("killed")

    return callback


PREDICTORS: dict[str, Any] = {"ssfn": "ssfn", "mlp": MLP(epochs=3, n_units=5), "ridge": Ridge()}


@pytest.mark.parametrize("n_made", [0, 1, 3])
@pytest.mark.parametrize("name", PREDICTORS)
def test_a_fit_goes_on_to_the_same_bits(name: str, n_made: int, tmp_path: Path) -> None:
    file, predictor = tmp_path / "run.npz", PREDICTORS[name]
    with pytest.raises(RuntimeError, match="killed"):
        fit(file, predictor=predictor, callback=stop_after(n_made))
    seen: list[int] = []
    resumed = fit(file, predictor=predictor, callback=lambda step: seen.append(step.n_selected))
    assert seen == list(range(n_made + 1, 5))  # what is there isn't made again
    assert everything(resumed) == everything(fit(None, predictor=predictor))


def test_a_finished_fit_is_not_repeated(tmp_path: Path) -> None:
    file, seen = tmp_path / "run.npz", []
    first = fit(file)
    again = fit(file, callback=seen.append)
    assert seen == []
    assert everything(again) == everything(first)
    assert [step.seconds for step in again.path_] == [step.seconds for step in first.path_]
    assert os.listdir(tmp_path) == ["run.npz"]


def test_without_a_seed_the_checkpoint_has_it(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="killed"):
        fit(file, random_state=None, callback=stop_after(2))
    saved = Checkpoint.read(file)
    assert saved
    resumed = fit(file, random_state=None)
    assert [step.loss for step in resumed.path_[:3]] == [step.loss for step in saved.steps]
    assert everything(fit(file, random_state=None)) == everything(resumed)


def test_what_may_change(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    some = fit(file, max_fits=12)
    assert (some.partial_, len(some.order_)) == (True, 1)
    whole = fit(file, max_fits=10_000, max_time=600, n_jobs=2, verbose=0, callback=lambda step: None)
    assert not whole.partial_
    assert everything(whole) == everything(fit(None))


X_0, Y_0 = data()
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "X": ({"X": X_0 + 1e-9}, "other X"),
    "fewer rows": ({"X": X_0[:80], "y": Y_0[:80]}, "other X, other sample_weight, other validation rows, other y"),
    "y": ({"y": 2 * Y_0}, "other y"),
    "weights": ({"weights": np.arange(90) + 1}, "other sample_weight"),
    "folds": ({"cv": 3}, "other validation rows"),
    "splitter": ({"cv": KFold(5)}, "other validation rows"),
    "groups": ({"groups": [[i] for i in range(11, -1, -1)]}, "other groups"),
    "fixed": ({"fixed": [0]}, "other fixed"),
    "seed": ({"random_state": 1}, "other random_state, other validation rows"),
    "number": ({"n_features_to_select": 3}, "n_features_to_select was 4 and is 3"),
    "threshold": ({"tol": 0.5}, "tol was None and is 0.5"),
    "units": ({"predictor": SSFN(n_units=99)}, "other predictor"),
    "predictor": ({"predictor": "kernel"}, "predictor was 'ssfn' and is 'kernel'"),
    "precision": ({"predictor": SSFN(dtype="float64")}, "other predictor"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_runs_checkpoint_is_refused(what: str, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, max_fits=12)
    before = file.read_bytes()
    changes, difference = OTHERS[what]
    with pytest.raises(CheckpointError) as refused:
        fit(file, **changes)
    message = str(refused.value)
    assert message.startswith(f"{file} is the checkpoint of another run (")
    assert difference in message
    assert message.endswith("): give another path, or remove the file.")
    assert file.read_bytes() == before


def test_another_versions_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.npz"
    fit(file, max_fits=12)
    monkeypatch.setattr("ngp.__version__", "77")
    with pytest.raises(CheckpointError, match=r"ngp's version was .* and is 77"):
        fit(file)
    monkeypatch.undo()
    monkeypatch.setattr(checkpoint, "FORMAT", "ngp-checkpoint/2")
    with pytest.raises(CheckpointError, match="has the format 'ngp-checkpoint/1', and this is 'ngp-checkpoint/2'"):
        fit(file)


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _without_steps(_: bytes) -> bytes:
    import io

    out = io.BytesIO()
    np.savez(out, document=np.frombuffer(json.dumps({"format": checkpoint.FORMAT}).encode(), np.uint8))
    return out.getvalue()


def _pickled(_: bytes) -> bytes:
    import io

    out = io.BytesIO()
    np.savez(out, document=np.array([{"format": checkpoint.FORMAT}], dtype=object))
    return out.getvalue()


BROKEN = {
    "text": lambda _: b"hello",
    "empty": lambda _: b"",
    "truncated": _truncated,
    "without steps": _without_steps,
    "pickled": _pickled,
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_no_checkpoint_is_refused(how: str, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, max_fits=12)
    content = BROKEN[how](file.read_bytes())
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"run.npz is no checkpoint: give another path, or remove the file\."):
        fit(file)
    assert file.read_bytes() == content


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        fit(tmp_path)


def test_steps_come_back_as_they_were() -> None:
    steps = fit(None, fixed=[3], groups=[[0, 1], [2, 3], [4, 5, 6], [7]]).path_
    again = steps_from_arrays(steps_as_arrays(steps))
    assert len(again) == len(steps)
    for one, other in zip(steps, again, strict=True):
        for name, value in vars(one).items():
            twin = getattr(other, name)
            assert type(value) is type(twin)
            np.testing.assert_array_equal(value, twin)


def test_descriptions_are_the_same_in_another_process() -> None:
    code = (
        "from ngp.greedy.checkpoint import described; from ngp.predictors import *\n"
        "from sklearn.linear_model import Ridge\n"
        "print(described([SSFN(), Ridge(alpha=2), len, object(), lambda x: x in {'a', 'b', 'c'}, lambda: lambda x: x]))"
    )
    texts = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(texts) == 1
    assert "Ridge(alpha=2, " in texts.pop()
    assert described(np.zeros(3)) == described(np.zeros(3)) != described(np.ones(3))


def _local(n: int) -> Any:
    """A function, a class and a method that have the same names for all n."""
    if n == 0:

        def function(x: Any) -> Any:
            return x.sum()

        class Local:
            def method(self) -> int:
                return 0

    else:

        def function(x: Any) -> Any:
            return x.mean()

        class Local:  # type: ignore[no-redef]
            def method(self) -> int:
                return 1

    return {"function": function, "class": Local, "method": Local().method}


NAMELESS: dict[str, tuple[Any, Any]] = {
    "constant": (lambda x: x + 1, lambda x: x + 2),
    "operation": (lambda x: x + 1, lambda x: x - 1),
    "name": (lambda x: x.sum(), lambda x: x.mean()),
    "default": (lambda x, n=1: x + n, lambda x, n=2: x + n),
    "keyword": (lambda x, *, n=1: x + n, lambda x, *, n=2: x + n),
    "within": (lambda x: (lambda z: z + 1)(x), lambda x: (lambda z: z + 2)(x)),
    "scorer": (make_scorer(lambda y, z: y @ z), make_scorer(lambda y, z: y @ z / 2)),
    "partial": (partial(lambda x, n: x + n, 1), partial(lambda x, n: x - n, 1)),
    "in a list": ([lambda x: x + 1], [lambda x: x + 2]),
    "in an estimator": (FunctionTransformer(lambda x: x + 1), FunctionTransformer(lambda x: x + 2)),
    **{f"local {what}": (_local(0)[what], _local(1)[what]) for what in _local(0)},
}


@pytest.mark.parametrize("what", NAMELESS)
def test_functions_of_the_same_name_are_known_by_what_they_do(what: str) -> None:
    one, other = NAMELESS[what]
    assert described(one) != described(other)
    assert described(one) == described(one)
    assert described(_local(0)["function"]) == described(_local(0)["function"])


def test_another_lambdas_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    fit(file, predictor=lambda step: SSFN(n_units=10), max_fits=12)
    with pytest.raises(CheckpointError, match="is the checkpoint of another run"):
        fit(file, predictor=lambda step: SSFN(n_units=20))


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_checkpoint import fit
fit(Path(sys.argv[1]))
print("done")
"""


def test_killed_at_any_moment_it_resumes_to_the_same_result(tmp_path: Path) -> None:
    """A few kills here; ``python -m benchmarks.kills`` makes a hundred."""
    expected, rng = everything(fit(None)), np.random.default_rng(0)
    file = tmp_path / "run.npz"
    command = [sys.executable, "-c", KILLED, str(file), str(Path(__file__).parent)]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not file.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if file.exists():
            saved = Checkpoint.read(file)
            assert saved
            assert 1 <= len(saved.steps) <= 5
    assert everything(fit(file)) == expected
