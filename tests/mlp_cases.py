"""Small problems for MLPs, and their plain twin: one network after the other, trained by torch's own means."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scorer_cases import inputs_by_hand, target_scales_by_hand
from torch import Tensor, nn
from torch.nn import functional

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import MLP, STEP_STREAM, MLPScorer

N_ROWS, N_COLUMNS = 30, 7
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([4, 1])
CANDIDATES = ColumnSets.of([[0], [2], [3, 5], [], [6], [6, 2, 0]])
CLASS_LOSSES = ("squared_error", "cross_entropy", "hinge")
TOLERANCES = {"float64": 1e-9, "float32": 1e-4}


def make_data(kind: str, n_rows: int = N_ROWS, seed: int = 0, n_columns: int = N_COLUMNS) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * rng.uniform(0.5, 3, size=n_columns) + rng.normal(size=n_columns)
    signal = np.tanh(X[:, [0, 1, 6]] @ np.random.default_rng(9).normal(size=(3, 3)) / 2)
    signal += 0.4 * rng.normal(size=signal.shape)
    y = {
        "regression": 5 + 3 * signal[:, 0],
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > 0, "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    return X, y


def make_case(
    kind: str = "regression",
    cv: Any = 3,
    loss: str = "squared_error",
    weighted: bool = False,
    data: Any = None,
) -> Problem:
    X, y = make_data(kind) if data is None else data
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)) / 2 if weighted else None
    if isinstance(cv, str) and cv == "explicit":
        cv = make_data(kind, n_rows=14, seed=2)
    task = "regression" if kind in ("regression", "outputs") else "classification"
    groups = make_groups(None, X.shape[1])
    return make_problem(X, y, groups=groups, task=task, cv=cv, loss=loss, sample_weight=weights, random_state=3)


def make_mlp(**settings: Any) -> MLP:
    fast = {"n_units": 9, "epochs": 2, "batch_size": 8, "learning_rate": 0.1, "n_draws": 1, "refit_epochs": 3}
    return MLP(**{**fast, **settings})


def bind(problem: Problem, dtype: str = "float64", n_jobs: int | None = None, **settings: Any) -> MLPScorer:
    return make_mlp(dtype=dtype, **settings).bind(problem, random_state=11, n_jobs=n_jobs, device="cpu")


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    bound = TOLERANCES[dtype]
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * np.abs(expected).mean())


def scaled_by_hand(problem: Problem, config: MLP) -> tuple[Any, Any, float]:
    """Inputs, mean and deviation of the targets."""
    X = inputs_by_hand(problem, config.clip)
    if problem.loss != "squared_error":
        return X, np.zeros(problem.n_outputs), 1.0
    return X, *target_scales_by_hand(problem)


def initial_network(scorer: MLPScorer, n_columns: int, n_selected: int, draw: int) -> nn.Sequential:
    """The network before its training: random hidden layers, and an output that begins at zero."""
    config, layers, n_inputs = scorer.config, [], n_columns
    for number in range(config.n_layers):
        key, layer = (draw, n_selected, number), nn.Linear(n_inputs, config.n_units).double()
        weights = draw_weights(scorer.seed, key, n_inputs, config.n_units)
        weights *= np.sqrt((1 if number == 0 else 2) / n_inputs)
        layer.weight.data = torch.from_numpy(weights.T.copy())
        biases = draw_biases(scorer.seed, key, config.n_units)
        layer.bias.data = torch.from_numpy(biases if number == 0 else np.zeros_like(biases))
        layers += [layer, nn.ReLU()]
        n_inputs = config.n_units
    output = nn.Linear(n_inputs, scorer.problem.n_outputs).double()
    nn.init.zeros_(output.weight)
    nn.init.zeros_(output.bias)
    return nn.Sequential(*layers, output)


def torch_loss(name: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """Losses of rows, by torch's own functions where it has them."""
    if name == "squared_error":
        return functional.mse_loss(outputs, targets, reduction="none").mean(dim=1)
    if targets.shape[1] == 1 and name == "cross_entropy":
        return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")[:, 0]
    if name == "cross_entropy":
        return functional.cross_entropy(outputs, targets.argmax(dim=1), reduction="none")
    if targets.shape[1] == 1:
        outputs, targets = torch.cat([1 - outputs, outputs], dim=1), torch.cat([1 - targets, targets], dim=1)
    rivals = torch.where(targets > 0, -torch.inf, outputs).max(dim=1).values
    return torch.relu(1 - (outputs * targets).sum(dim=1) + rivals)


def train_plainly(
    scorer: MLPScorer, network: nn.Sequential, X: Any, rows: Any, n_selected: int, draw: int, **plan: Any
) -> None:
    """Train one network on some rows with torch's own optimiser."""
    config, problem = scorer.config, scorer.problem
    _, centre, spread = scaled_by_hand(problem, config)
    inputs, targets = torch.from_numpy(X), torch.from_numpy((problem.targets - centre) / spread)
    slow = config.learning_rate * min(1, 50 / config.n_units)
    first, *others = network.parameters()
    groups = [
        {"params": [first, others[0]], "lr": config.learning_rate * min(1, 10 / (n_selected + 1))},
        {"params": others[1:], "lr": slow},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    epochs, stream = plan.get("epochs", config.epochs), plan.get("stream", STEP_STREAM)
    batches, shares = scorer.plan([rows], epochs, n_selected, draw, stream)
    falls = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(batches))
    for batch, share in zip(batches[:, 0], shares[:, 0], strict=True):
        real = share > 0
        losses = torch_loss(problem.loss, network(inputs[batch[real]]), targets[batch[real]])
        optimizer.zero_grad()
        (losses * torch.from_numpy(share[real])).sum().backward()
        optimizer.step()
        falls.step()


def predict_plainly(scorer: MLPScorer, network: nn.Sequential, X: Any) -> Any:
    _, centre, spread = scaled_by_hand(scorer.problem, scorer.config)
    with torch.no_grad():
        outputs = network(torch.from_numpy(X))
    if scorer.problem.loss == "cross_entropy":
        outputs = outputs.sigmoid() if outputs.shape[1] == 1 else outputs.softmax(dim=1)
    return outputs.numpy() * spread + centre
