"""One selection of benchmarks.peers, in a process of its own with one thread: time, memory, and what was selected.

The process is a fork of one that has imported all packages, so that imports count for nobody, and that has computed
nothing. A method that takes longer than its limit is ended.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.designs import DESIGNS as STUDIED
from benchmarks.designs import FIVE, Data, Design, Drawn, Law, Table, artificial
from benchmarks.memory import peak_mb, status_mb
from benchmarks.peer_methods import METHODS, TOLD, Job
from benchmarks.study import make_judge
from ngp.paper.curves import LAWS

N_LAW_COLUMNS = 10
LAW_ROWS = (30, 50, 100)
LAST_SECONDS = 10  # for a process that has said everything, before it is ended


class PeerDesign(NamedTuple):
    """Data, and the number of columns that methods are told."""

    data: Design
    told: int

    def draw(self, seed: int) -> Data:
        """Columns, and targets that are numbers, are standardised by the training rows, for all methods alike."""
        data = self.data.draw(seed)
        X = StandardScaler().fit(data.X)
        scaled = data._replace(X=X.transform(data.X), X_test=X.transform(data.X_test))
        if self.data.task == "classification":
            return scaled
        y = StandardScaler().fit(data.y[:, None])
        return scaled._replace(y=y.transform(data.y[:, None])[:, 0], y_test=y.transform(data.y_test[:, None])[:, 0])


def law(name: str) -> Law:
    def draw(rng: np.random.Generator, n: int, p: int) -> Table:
        X, y, _ = LAWS[name](n, p, random_state=int(rng.integers(2**31)))
        return X, y

    return draw


def law_design(name: str, n_rows: int) -> PeerDesign:
    truth = tuple(LAWS[name](3, N_LAW_COLUMNS).truth.tolist())
    return PeerDesign(Drawn(law(name), n_rows, N_LAW_COLUMNS, truth), len(truth))


DESIGNS: dict[str, PeerDesign] = {
    "artificial": PeerDesign(Drawn(artificial, 300, 500, FIVE), len(FIVE)),
    "artificial-50": PeerDesign(Drawn(artificial, 300, 50, FIVE), len(FIVE)),  # where slow ones may end
    **{f"{name}-{n_rows}": law_design(name, n_rows) for name in LAWS for n_rows in LAW_ROWS},
    "breast-cancer": PeerDesign(STUDIED["breast cancer"], 10),  # nobody knows the right number
}
# Of the laws one size: with 50 rows some methods miss inputs of gravitation. The others are there to be asked for.
USUAL = tuple(name for name in DESIGNS if not name.endswith(("-30", "-100")))


class Task(NamedTuple):
    """A method on a design, with the seed of both."""

    design: str
    method: str
    rule: str
    seed: int


PROCESSES = multiprocessing.get_context("forkserver")


def import_once(methods: Sequence[str]) -> None:
    """Name the packages that the process imports which all others are forks of; it has to be done before the first."""
    PROCESSES.set_forkserver_preload([__name__, *dict.fromkeys(METHODS[name].module for name in methods)])


def run(task: Task, limit: float) -> dict[str, Any]:
    """Let a process select; what it found, or why it found nothing."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(theirs, task))
    process.start()
    theirs.close()
    try:
        found = answer(ours, limit)
        if found["status"] != "not ended":
            process.join(LAST_SECONDS)
        return task._asdict() | found
    finally:
        process.kill()
        process.join()


def answer(connection: Connection, limit: float) -> dict[str, Any]:
    """What the process says; only the selection itself has a limit."""
    try:
        connection.recv()  # that it begins
        if not connection.poll(limit):
            return {"status": "not ended"}
        found: dict[str, Any] = connection.recv()
        return found if found["status"] != "ended" else found | connection.recv()
    except EOFError:
        return {"status": "failed", "error": "its process died"}


def work(connection: Connection, task: Task) -> None:
    """Select, and say so at once; then judge what is selected."""
    method, design = METHODS[task.method], DESIGNS[task.design]
    import_module(method.module)
    data = design.draw(task.seed)
    job = Job(data.X, data.y, design.data.task, design.told if task.rule == TOLD else None, task.seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection.send("begin")
        try:
            found = measured(job, method.select)
        except Exception as error:  # a peer's mistake is a row of the table, not the end of all
            connection.send({"status": "failed", "error": f"{type(error).__name__}: {error}"[:500]})
            return
        connection.send(found)
        judge = make_judge(design.data, data, task.seed)
        judged = judge(found["columns"])
    connection.send({measure: judged[measure] for measure in ("n_selected", "score", "fpsr", "fnsr", "f1")})


def measured(job: Job, select: Any) -> dict[str, Any]:
    """Columns, seconds, and the growth of the process's own memory to its peak; files that it maps don't count."""
    forget_peak()
    before = own_mb("VmRSS")
    start = perf_counter()
    columns = sorted(int(column) for column in select(job))
    seconds = perf_counter() - start
    return {"status": "ended", "columns": columns, "seconds": seconds, "mb": max(0.0, own_mb("VmHWM") - before)}


def forget_peak() -> None:
    """Linux' peak begins anew: data was drawn with more memory than is held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def own_mb(key: str) -> float:
    """Resident memory (VmRSS) or its peak (VmHWM) without mapped files; elsewhere than on Linux, the peak so far."""
    total = status_mb(key)
    return peak_mb() if total is None else total - (status_mb("RssFile") or 0.0)
