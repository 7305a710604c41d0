"""Small images and networks for CNNs, and their plain twin: one network after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.networks import Targets
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import CNN, STEP_STREAM, CNNScorer

SHAPE = (5, 6, 2)  # rows, cols, channels
N_ROWS, N_COLUMNS = 22, 60
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([34, 7])
CANDIDATES = ColumnSets.of([[0], [20, 21, 22, 23], [], [59], [12, 3]])
Factory = Callable[[tuple[int, int, int], int], nn.Module]

# Networks: functions of this module, so that they can be pickled


def with_output(image: tuple[int, int, int], n_outputs: int, *layers: nn.Module) -> nn.Module:
    features = nn.Sequential(*layers, nn.Flatten())
    n_features = features.eval()(torch.zeros(1, *image)).shape[1]
    return nn.Sequential(*features, nn.Linear(n_features, n_outputs)).train()


def small(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.MaxPool2d(2))


def smooth(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # goes through vmap
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.Tanh(), nn.AvgPool2d(2))


def dropping(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.Dropout(0.4))


def dropping_channels(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # goes through vmap
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3), nn.ReLU(), nn.Dropout2d(0.4))


def normalised(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # one copy after the other
    return with_output(image, n_outputs, nn.Conv2d(image[0], 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU())


KINDS: dict[str, dict[str, Any]] = {
    "small": {},
    "through vmap": {"network": smooth},
    "dropout": {"network": dropping},
    "dropout through vmap": {"network": dropping_channels},
    "running statistics": {"network": normalised},
    "warm start": {"warm_start": True},
    "warm start, dropout, draws": {"network": dropping, "warm_start": True, "n_draws": 2},
}


def make_data(kind: str, n_rows: int = N_ROWS, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 255, size=(n_rows, N_COLUMNS)) * (rng.uniform(size=(n_rows, N_COLUMNS)) < 0.7)
    signal = X[:, [0, 7, 21]] / 100 + 0.4 * rng.normal(size=(n_rows, 3))
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > signal[:, 1], "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(
    kind: str = "classes", cv: Any = 3, loss: str = "cross_entropy", weighted: bool = False, data: Any = None
) -> Problem:
    X, y = make_data(kind) if data is None else data
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2 if weighted else None
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=9, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    groups = make_groups(None, X.shape[1])
    return make_problem(X, y, groups=groups, task=task, cv=cv, loss=loss, sample_weight=weights, random_state=3)


def make_cnn(**settings: Any) -> CNN:
    fast = {"network": small, "image_shape": SHAPE, "epochs": 2, "batch_size": 6, "learning_rate": 0.02}
    return CNN(**{**fast, "refit_epochs": 3, **settings})


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> CNNScorer:
    return make_cnn(dtype=dtype, **settings).bind(problem, random_state=11, n_jobs=n_jobs, device="cpu")


def images_by_hand(problem: Problem, columns: Any, X: Any = None) -> Tensor:
    """Images as torch has them, with nothing but the given pixels, and one scale for all of them."""
    ever_train = sorted(
        {int(row) for round_ in problem.rounds for f in range(round_.n_folds) for row in round_.training(f)}
    )
    train, weights = problem.X[ever_train], problem.weights[ever_train]
    varies = train[weights > 0].std(axis=0) > 0
    scale = np.sqrt(np.average(train[:, varies] ** 2, axis=0, weights=weights).mean())
    X = problem.X if X is None else X
    rows, cols, channels = SHAPE
    images = np.zeros((len(X), channels, rows, cols))
    for column in columns:
        row, col, channel = np.unravel_index(column, SHAPE)
        images[:, channel, row, col] = X[:, column] / scale
    return torch.from_numpy(images)


def initial_network(scorer: CNNScorer, n_selected: int, draw: int) -> nn.Module:
    rows, cols, channels = SHAPE
    with torch.random.fork_rng():
        torch.manual_seed(scorer.number(n_selected, draw))
        return scorer.config.network((channels, rows, cols), scorer.problem.n_outputs).double()


def train_plainly(
    scorer: CNNScorer, network: nn.Module, images: Tensor, rows: Any, n_selected: int, draw: int, **plan: Any
) -> None:
    """Train one network on some rows; the gradients of the losses have tests of their own."""
    config, problem = scorer.config, scorer.problem
    mean, spread = scorer.target_scales
    targets = Targets(torch.from_numpy((problem.targets - mean) / spread), problem.loss)
    epochs, stream = plan.get("epochs", config.epochs), plan.get("stream", STEP_STREAM)
    batches, shares = scorer.plan([rows], epochs, n_selected, draw, stream)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    falls = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(batches))
    network.train()
    for batch, share in zip(batches[:, 0], shares[:, 0], strict=True):
        own, weights = torch.from_numpy(batch[share > 0]), torch.from_numpy(share[share > 0])
        outputs = network(images[own])
        optimizer.zero_grad()
        outputs.backward(targets.gradients(outputs.detach(), own, weights))
        optimizer.step()
        falls.step()


def predict_plainly(scorer: CNNScorer, network: nn.Module, images: Tensor) -> Any:
    mean, spread = scorer.target_scales
    with torch.no_grad():
        outputs = Targets(torch.zeros(0), scorer.problem.loss).coded(network.eval()(images))
    return outputs.numpy() * spread + mean
