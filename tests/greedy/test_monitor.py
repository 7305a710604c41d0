"""Who hears of the steps of a fit: the log, a callback, scikit-learn's callbacks; and Ctrl-C, which ends it."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_cases as cases
from ngp.greedy.monitor import step_line
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.kernels.parallel import run_tasks

X, Y, _ = make_artificial(80, 10, random_state=0)
SETTINGS: dict[str, Any] = {"n_features_to_select": 3, "random_state": 0}


class Listener:
    """A callback of scikit-learn's kind; it may stop the fit."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.stop_at = stop_at

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.calls.append(f"end {context.task_name} {context.task_id}")
        return context.task_name == "step" and context.task_id == self.stop_at


class Judge(Listener):
    """One that wants the selector as it would be if the fit ended now."""

    def __init__(self) -> None:
        super().__init__()
        self.fitted: list[Any] = []

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        self.fitted.append(fitted_estimator)
        return False


def test_scikit_learns_callbacks_hear_of_every_step() -> None:
    listener = Listener()
    NeuralGreedyPursuit(**SETTINGS).set_callbacks(listener).fit(X, Y)
    steps = [f"{what} step {number}" for number in range(3) for what in ("begin", "end")]
    assert listener.calls == ["setup", "begin fit 0", *steps, "end fit 0", "teardown"]


@pytest.mark.parametrize("stop_at", [0, 1])
def test_scikit_learns_callbacks_can_stop_a_fit(stop_at: int) -> None:
    selector = NeuralGreedyPursuit(**SETTINGS).set_callbacks(Listener(stop_at)).fit(X, Y)
    assert len(selector.order_) == stop_at + 1
    assert selector.partial_
    assert selector.stop_reason_ == "a callback asked to stop; the path is partial"
    assert selector.predict(X).shape == Y.shape


def test_scikit_learns_callbacks_can_have_the_selector_as_it_is() -> None:
    judge = Judge()
    selector = NeuralGreedyPursuit(**SETTINGS).set_callbacks(judge).fit(X, Y)
    *each, whole = judge.fitted
    assert whole is None  # the selector itself is fitted then
    for number, fitted in enumerate(each, 1):
        expected = NeuralGreedyPursuit(**{**SETTINGS, "n_features_to_select": number}).fit(X, Y)
        np.testing.assert_array_equal(fitted.order_, selector.order_[:number])
        np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


def test_scikit_learns_progress_bar_works(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = make_pipeline(StandardScaler(), NeuralGreedyPursuit(**SETTINGS)).set_callbacks(ProgressBar())
    pipeline.fit(X, Y)
    assert "NeuralGreedyPursuit" in capsys.readouterr().out


def test_a_plain_callback_hears_of_every_step_and_can_stop() -> None:
    seen: list[Any] = []
    selector = NeuralGreedyPursuit(**SETTINGS, callback=seen.append).fit(X, Y)
    assert [step.n_selected for step in seen] == [0, 1, 2, 3]
    assert seen[-1].loss == selector.path_[-1].loss
    assert not selector.partial_
    stopped = NeuralGreedyPursuit(**SETTINGS, callback=lambda step: step.n_selected == 2).fit(X, Y)
    np.testing.assert_array_equal(stopped.order_, selector.order_[:2])
    assert stopped.partial_
    assert clone(stopped).callback is stopped.callback


def test_the_log_and_the_screen_have_the_same_lines(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "ngp"):
        selector = NeuralGreedyPursuit(**SETTINGS, verbose=1).fit(X, Y)
    lines = [step_line(step, selector.path_) for step in selector.path_]
    assert caplog.messages == lines
    assert capsys.readouterr().out.splitlines() == [f"[ngp] {line}" for line in lines]
    assert "± nan" not in step_line(NeuralGreedyPursuit(**SETTINGS, cv=[([*range(40)], [50])]).fit(X, Y).path_[1])


def test_the_log_tells_drops_and_exchanges(caplog: pytest.LogCaptureFixture) -> None:
    case = cases.exchanges()
    with caplog.at_level(logging.INFO, "ngp"):
        clone(case.selector).fit(case.X, case.y)
    assert [line.partition(" loss ")[0].strip().split(maxsplit=1) for line in caplog.messages[5:10]] == [
        ["5", "add x0"],
        ["6", "add x6"],
        ["5", "swap x6 in, x4 out"],
        ["4", "drop x3"],
        ["3", "drop x6"],
    ]
    assert "swap x6 in, group 4 out" in step_line(case.selector.path_[7])  # nobody says what it is called


def test_the_log_says_that_a_fit_goes_on(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    NeuralGreedyPursuit(**SETTINGS, checkpoint=file, max_fits=10).fit(X, Y)
    with caplog.at_level(logging.INFO, "ngp"):
        NeuralGreedyPursuit(**SETTINGS, checkpoint=str(file)).fit(X, Y)
    assert caplog.messages[0] == f"going on after 1 steps that were found in {file}"


@pytest.mark.parametrize(("budget", "partial"), [({"max_fits": 15}, True), ({"max_time": 1e-9}, True), ({}, False)])
def test_what_was_cut_short_says_so(budget: dict[str, Any], partial: bool) -> None:
    selector = NeuralGreedyPursuit(**SETTINGS, **budget).fit(X, Y)
    assert selector.partial_ is partial
    assert ("the path is partial" in selector.stop_reason_) is partial


INTERRUPTED = """
import time, warnings
from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
X, y, _ = make_artificial(80, 10, random_state=0)
def slow(step):
    print(step.n_selected, flush=True)
    time.sleep(0.5 if step.n_selected == 2 else 0)
selector = NeuralGreedyPursuit(n_features_to_select=9, random_state=0, callback=slow).fit(X, y)
print(selector.stop_reason_, selector.partial_, selector.order_.tolist(), selector.predict(X).shape)
"""


def test_ctrl_c_keeps_what_is_there() -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for line in process.stdout:
        if line.strip() == "2":
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    order = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, Y).order_.tolist()
    assert rest.splitlines() == [f"interrupted; the path is partial True {order} (80,)"]
    assert process.returncode == 0


def test_an_error_in_one_task_spares_the_others() -> None:
    done: list[int] = []
    started = threading.Event()

    def task(number: int) -> None:
        if number == 0:
            started.wait(10)
            raise KeyboardInterrupt
        started.set()
        time.sleep(0.01)
        done.append(number)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(task, [(i,) for i in range(1000)], n_jobs=2)
    assert len(done) < 500
