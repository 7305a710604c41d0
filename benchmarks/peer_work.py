"""The same work for benchmarks.peers: forward selection by a network of the paper's size, 5 of 500 columns.

scikit-learn's and mlxtend's sequential selectors train scikit-learn's MLP for every candidate and fold, with the
paper's batches of 32 rows and with the 200 that are scikit-learn's default. They take turns with
NGP, with few columns, and their seconds a training are multiplied by the trainings of the whole selection. NGP is
timed on the whole of it; so are they, once and after the turns, if that is asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from benchmarks.common import side_by_side
from benchmarks.peer_methods import N_FOLDS, is_installed
from ngp import NeuralGreedyPursuit
from ngp._types import AnyArray, FloatArray
from ngp.datasets import make_artificial
from ngp.predictors import MLP, SSFN

N_UNITS, EPOCHS = 500, 10
BATCHES = (32, 200)  # the paper's, and MLPRegressor's default


class Work(NamedTuple):
    """Sizes of the selection, and of those (columns, steps) that peers are timed on."""

    n_samples: int = 300
    n_columns: int = 500
    n_steps: int = 5
    timed: tuple[tuple[int, int], ...] = ((10, 1), (20, 1))
    repetitions: int = 3
    is_whole: bool = False  # whether peers are timed on the whole selection, too, once
    device: str = "cpu"  # NGP's; the peers know none but the CPU

    @property
    def whole(self) -> tuple[int, int]:
        return self.n_columns, self.n_steps


def n_trainings(n_columns: int, n_steps: int) -> int:
    """Networks that a forward selection trains: one for every candidate that is left, and fold, in every step."""
    return N_FOLDS * sum(n_columns - step for step in range(n_steps))


def same_work(work: Work = Work()) -> dict[str, Any]:  # noqa: B008, a tuple doesn't change
    """Everything in turn, with one thread."""
    X, y, _ = make_artificial(work.n_samples, work.n_columns, noise="sample", random_state=0)
    X, y = scale(X), scale(y)
    tasks: dict[str, Callable[[], Any]] = {
        f"NGP, {name}": partial(ngp(predictor, work).fit, X, y) for name, predictor in predictors().items()
    }
    peers = installed_peers()

    def selections(size: tuple[int, int]) -> dict[str, Callable[[], Any]]:
        columns, steps = size
        return {timed_name(name, size): partial(fit, X[:, :columns], y, steps) for name, fit in peers.items()}

    for size in work.timed:
        tasks |= selections(size)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for predictor in predictors().values():
            ngp(predictor, work._replace(n_steps=1)).fit(X[:, :4], y)  # what is done once in a process
        seconds = side_by_side(tasks, work.repetitions)
        if work.is_whole:
            seconds |= side_by_side(selections(work.whole), 1)
    return {"work": work._asdict(), "n_trainings": n_trainings(*work.whole)} | compared(seconds, list(peers), work)


def timed_name(peer: str, size: tuple[int, int]) -> str:
    return f"{peer}, {size[0]} x {size[1]}"


def compared(seconds: dict[str, list[float]], peers: Sequence[str], work: Work) -> dict[str, Any]:
    """NGP's medians, the peers' scaled to the whole selection, and how many times as long those are.

    What a peer took for the whole counts for nothing here: other things may have gone on than in NGP's turns.
    """
    ngp_rows = {
        name: {"seconds": median(times), "seconds_all": times}
        for name, times in seconds.items()
        if name.startswith("NGP")
    }
    rows = {}
    for name in peers:
        sizes = [(*size, median(seconds[timed_name(name, size)])) for size in work.timed]
        rows[name] = scaled(sizes, work.whole)
        if work.is_whole:
            rows[name]["whole_seconds"] = seconds[timed_name(name, work.whole)][0]
        rows[name]["ratios"] = {each: rows[name]["seconds"] / row["seconds"] for each, row in ngp_rows.items()}
    return {"ngp": ngp_rows, "peers": rows}


def scaled(sizes: Sequence[tuple[int, int, float]], whole: tuple[int, int]) -> dict[str, Any]:
    """Seconds of the whole selection, by the seconds a training of the largest that was timed.

    Each size is columns, steps and seconds. If seconds a training are alike for all sizes, time goes with trainings.
    """
    timed = [
        {"n_columns": columns, "n_steps": steps, "n_trainings": trainings, "seconds": seconds}
        | {"seconds_per_training": seconds / trainings}
        for columns, steps, seconds in sizes
        if (trainings := n_trainings(columns, steps))
    ]
    largest = max(timed, key=lambda each: each["n_trainings"])
    return {
        "timed": timed,
        "seconds_per_training": largest["seconds_per_training"],
        "seconds": largest["seconds_per_training"] * n_trainings(*whole),
    }


def predictors() -> dict[str, Any]:
    """NGP's networks: its own, with one draw and as by default, and MLPs, which need torch."""
    found: dict[str, Any] = {"SSFN, 1 draw": SSFN(n_draws=1), "SSFN, 8 draws (default)": SSFN()}
    if is_installed("torch"):
        mlp = MLP(n_units=N_UNITS, epochs=EPOCHS)
        for batch in BATCHES:
            found[f"MLP, 1 draw, batches of {batch}"] = clone(mlp).set_params(batch_size=batch, n_draws=1)
        found["MLP, 2 draws, batches of 32 (default)"] = mlp
    return found


def ngp(predictor: Any, work: Work) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(
        predictor, n_features_to_select=work.n_steps, cv=folds(), n_jobs=1, device=work.device, random_state=0
    )


def folds() -> KFold:
    return KFold(N_FOLDS, shuffle=True, random_state=0)


def network(batch: int) -> MLPRegressor:
    return MLPRegressor(hidden_layer_sizes=(N_UNITS,), max_iter=EPOCHS, batch_size=batch, random_state=0)


def fit_sklearn(X: FloatArray, y: AnyArray, n_steps: int, batch: int) -> None:
    SequentialFeatureSelector(network(batch), n_features_to_select=n_steps, cv=folds(), n_jobs=1).fit(X, y)


def fit_mlxtend(X: FloatArray, y: AnyArray, n_steps: int, batch: int) -> None:
    from mlxtend.feature_selection import SequentialFeatureSelector as Sequential

    Sequential(network(batch), k_features=n_steps, cv=list(folds().split(X)), n_jobs=1).fit(X, y)


class Peer(NamedTuple):
    """A sequential selector around the network."""

    module: str
    fit: Callable[[FloatArray, AnyArray, int, int], None]


PEERS = {"scikit-learn SFS": Peer("sklearn", fit_sklearn), "mlxtend SFS": Peer("mlxtend", fit_mlxtend)}


def installed_peers() -> dict[str, Callable[[FloatArray, AnyArray, int], None]]:
    """The selectors that can run, each with every size of batches."""
    return {
        f"{name}, batches of {batch}": partial(peer.fit, batch=batch)
        for batch in BATCHES
        for name, peer in PEERS.items()
        if is_installed(peer.module)
    }
