"""What very many columns would take, by what was measured with fewer: the predictions of docs/scaling.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.cost_model import CostModel, Size
from benchmarks.scaling import modelled
from ngp.greedy.screening import CHUNK_NUMBERS, n_scored
from ngp.kernels.parallel import TASKS_PER_WORKER
from ngp.predictors import ssfn

COLUMNS = 10**8
SAMPLES = 300
STEPS = 5
WORKERS = 100
GPUS = 8

Results = Mapping[str, Any]


class Part(NamedTuple):
    """Seconds that something takes when all candidates are scored, and when they are screened before."""

    name: str
    exact: float
    screened: float | None = None


def fitted(results: Results) -> CostModel:
    """The model of the steps that were measured."""
    points = modelled(dict(results))
    return CostModel.fit(list(points), list(points.values()))


def steps_seconds(model: CostModel, n_candidates: float) -> float:
    """Seconds of all steps with so many candidates each."""
    return sum(model.predict(Size(round(n_candidates), SAMPLES, n_selected=step)) for step in range(STEPS))


def million_columns(million: Results) -> int:
    """How many columns `benchmarks.million` selected from: each step had one candidate less."""
    exact = million["exact"]
    steps = len(exact["order"])
    return int(exact["n_fits"] + steps * (steps - 1) // 2) // steps


def cheap_seconds(model: CostModel, million: Results) -> float:
    """Seconds of the cheap pass a candidate: what the screened fit took beyond the exact pass, by the model."""
    n_columns, screened = million_columns(million), million["screened"]
    exact_pass = steps_seconds(model, screened["n_fits"] / STEPS)
    return float(screened["seconds"] - exact_pass) / (STEPS * n_columns)


def scan_seconds(files: Results) -> float:
    """Seconds of the first look at a number in a file: what the fit on the large file took beside its steps."""
    large = files["large"]
    return float(large["fit_seconds"] - large["seconds_of_the_steps"]) / (large["shape"][0] * large["shape"][1])


def exact_tasks(n_candidates: int, n_jobs: int) -> int:
    """Tasks of a step that scores so many candidates, as `SSFNScorer` cuts it."""
    fair = -(-n_candidates // (ssfn.CHUNKS_PER_JOB * n_jobs))
    most, least = ssfn.CHUNK_NUMBERS // SAMPLES, ssfn.FEWEST_NUMBERS // SAMPLES
    return min(-(-n_candidates // min(max(fair, least), most)), TASKS_PER_WORKER * n_jobs)


def screened_tasks(n_jobs: int) -> int:
    """Tasks of a screened step: those of the cheap pass, and of the exact one."""
    cheap = min(-(-COLUMNS // (CHUNK_NUMBERS // SAMPLES)), TASKS_PER_WORKER * n_jobs)
    return cheap + exact_tasks(n_scored("auto", COLUMNS), n_jobs)


def cluster_parts(cpu: Results, million: Results, workers: Results, files: Results) -> dict[str, Part]:
    """What the parts of a fit on a cluster take; workers are machines like the one that was measured."""
    model, n_jobs = fitted(cpu), WORKERS * int(cpu["machine"]["cores"])
    cheap = STEPS * COLUMNS / WORKERS * cheap_seconds(model, million)
    best = steps_seconds(model, n_scored("auto", COLUMNS) / WORKERS)
    scan, task = COLUMNS * SAMPLES * scan_seconds(files), float(workers["task_seconds"]["dask 2"])
    return {
        "scan": Part("means and deviations of all columns, by the driver alone", scan, scan),
        "work": Part(
            f"scoring, by each of {WORKERS} workers", steps_seconds(model, COLUMNS / WORKERS), cheap + best
        ),
        "tasks": Part(
            "handing out tasks, by the driver, while workers score",
            STEPS * task * exact_tasks(COLUMNS, n_jobs),
            STEPS * task * screened_tasks(n_jobs),
        ),
    }  # fmt: skip


def gpu_parts(gpu: Results, files: Results) -> dict[str, Part]:
    """What the parts of a fit on several GPUs take, whose memory can't hold all columns."""
    kept, streamed = gpu["curves"]["n_candidates"][-1], gpu["streamed"]
    moving = (streamed["seconds"] - kept["seconds"]) / (streamed["n_samples"] * streamed["n_candidates"])
    return {
        "scan": Part(
            "means and deviations of all columns, by the driver alone", COLUMNS * SAMPLES * scan_seconds(files)
        ),
        "work": Part(f"scoring, by each of {GPUS} GPUs", steps_seconds(fitted(gpu), COLUMNS / GPUS)),
        "moving": Part(
            "scaling columns and moving them to each GPU, in every step", STEPS * COLUMNS * SAMPLES / GPUS * moving
        ),
    }


def cluster_total(parts: Mapping[str, Part], way: str) -> float:
    """Seconds of the fit: the scan, then scoring or handing out tasks, whichever takes longer."""
    scan, work, tasks = (getattr(parts[name], way) for name in ("scan", "work", "tasks"))
    return float(scan + max(work, tasks))


def driver_bytes(million: Results) -> float:
    """Memory beside X of the process that calls fit, if it grows with the columns."""
    return float(million["exact"]["beside_x_mb"]) * 2**20 / million_columns(million) * COLUMNS


def sent_bytes(workers: Results) -> float:
    """What every worker is sent beside X: it grows with the columns."""
    beside = workers["sent"]["dask 2"]["largest_object_mb"] - workers["x_mb"]
    return float(beside) * 1e6 / workers["n_features"] * COLUMNS
