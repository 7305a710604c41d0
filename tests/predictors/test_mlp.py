"""The MLP against the plainest loop: train each network anew with torch, predict, average losses."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from threading import Barrier, Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from scorer_cases import average_by_hand, inputs_by_hand, target_scales_by_hand
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit
from torch import Tensor, nn
from torch.nn import functional

from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.layers import draw_biases, draw_weights
from ngp.kernels.scoring import _kernels
from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import FINAL_STREAM, MLP, STEP_STREAM, MLPScorer, one_torch_thread

pytestmark = pytest.mark.usefixtures("one_torch_thread")

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


# Losses


def predictions_by_hand(scorer: MLPScorer, selected: Any, new: Any, train: Any, judge: Any) -> Any:
    """Mean of the draws' predictions, for rows that judge after others have trained."""
    X = scaled_by_hand(scorer.problem, scorer.config)[0]
    rows = train[scorer.problem.weights[train] > 0]
    columns, outputs = [*selected, *new], []
    for draw in range(scorer.config.n_draws):
        network = initial_network(scorer, len(columns), len(selected), draw)
        train_plainly(scorer, network, X[:, columns], rows, len(selected), draw)
        outputs.append(predict_plainly(scorer, network, X[np.ix_(judge, columns)]))
    return np.mean(outputs, axis=0)


def losses_by_hand(scorer: MLPScorer, selected: Any, new: Any) -> tuple[float, Any]:
    """The loss of one candidate and its parts, one network after the other."""

    def predict(r: int, f: int) -> Any:
        round_ = scorer.problem.rounds[r]
        return predictions_by_hand(scorer, selected, new, round_.training(f), round_.validation(f))

    return average_by_hand(scorer.problem, predict)


def check_against_twin(
    problem: Problem, selected: Any = SELECTED, candidates: ColumnSets = CANDIDATES, **settings: Any
) -> None:
    """Both ways of training in both precisions, against the same twin, which is in double.

    Where gradients of a batch cancel, which those of classes do, Adam turns rounding errors into steps.
    """
    twins = [losses_by_hand(bind(problem, **settings), selected, candidates[i]) for i in range(len(candidates))]
    for kernels in {_kernels, None}:
        for dtype, bound in [("float64", 1e-9), ("float32", 1e-4 if problem.loss == "squared_error" else 0.02)]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(networks, "_kernels", kernels)
                losses = bind(problem, dtype, **settings).add_losses(selected, candidates)
            for i, (expected, parts) in enumerate(twins):
                assert losses.means[i] == pytest.approx(expected, rel=bound)
                difference = losses.weights * np.abs(losses.parts[i] - parts) / expected
                assert difference.max() <= bound


PROBLEMS = {
    "regression": {},
    "several outputs, sample weights": {"kind": "outputs", "weighted": True},
    **{f"binary, {loss}": {"kind": "binary", "loss": loss} for loss in CLASS_LOSSES},
    **{f"classes, {loss}": {"kind": "classes", "loss": loss} for loss in CLASS_LOSSES},
    "repeated folds": {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)},
    "TimeSeriesSplit": {"cv": TimeSeriesSplit(3)},  # splits of very different sizes
    "uneven folds": {"cv": KFold(7), "kind": "outputs"},  # batches with rows that only fill up
    "hold-out share": {"cv": 0.3},
    "explicit validation set": {"cv": "explicit", "weighted": True},
    "leave-one-out": {"cv": "loo", "data": make_data("regression", n_rows=12)},
}
SETTINGS = {
    "two draws": {"n_draws": 2},
    "no clip": {"clip": None},
    "weight decay": {"weight_decay": 0.1},
    "two layers": {"n_layers": 2},
    "single rows": {"batch_size": 1, "epochs": 1, "learning_rate": 0.02},
    "one batch": {"batch_size": 500},
    "many units": {"n_units": 70},  # which learn more slowly
    "two layers and draws": {"n_layers": 2, "n_draws": 2, "weight_decay": 0.1},
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any]) -> None:
    check_against_twin(make_case(**case))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_of_other_networks(settings: dict[str, Any]) -> None:
    check_against_twin(make_case("outputs"), **settings)


@pytest.mark.parametrize("settings", [{}, {"n_layers": 2}])
def test_first_step_and_long_selections(settings: dict[str, Any]) -> None:
    problem = make_case("classes", loss="cross_entropy", weighted=True)
    check_against_twin(problem, NOTHING, ColumnSets.of([[0], [2], [3, 5], [6, 2, 0]]), **settings)
    check_against_twin(problem, np.array([6, 0, 3, 1, 2]), ColumnSets.of([[4], [5, 4]]), **settings)


@pytest.mark.parametrize("settings", [{}, {"n_layers": 2, "n_units": 60}])
def test_wide_layers_learn_more_slowly(settings: dict[str, Any]) -> None:
    problem = make_case(data=make_data("regression", n_columns=16))
    check_against_twin(problem, np.arange(14), ColumnSets.of([[14], [15]]), **settings)


# Losses depend on the question alone


@pytest.fixture(params=["compiled", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Train by the compiled kernel, or as if it weren't there."""
    if request.param == "torch":
        monkeypatch.setattr(networks, "_kernels", None)
    elif _kernels is None:
        pytest.skip("the compiled module isn't built")
    return str(request.param)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_candidates_together_are_candidates_alone(dtype: str, way: str) -> None:
    problem = make_case("classes", cv=TimeSeriesSplit(3), loss="cross_entropy", weighted=True)
    scorer = bind(problem, dtype)
    for selected in (SELECTED, NOTHING):
        together = scorer.add_losses(selected, CANDIDATES).parts
        for i in range(len(CANDIDATES)):
            if len(selected) or len(CANDIDATES[i]):
                assert_close(scorer.add_losses(selected, ColumnSets.of([CANDIDATES[i]])).parts[0], together[i], dtype)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_no_column_at_all_can_be_scored(way: str) -> None:
    scorer = bind(make_case())
    alone = scorer.add_losses(NOTHING, ColumnSets.of([[]])).parts[0]
    beside_others = scorer.add_losses(NOTHING, ColumnSets.of([[2], []])).parts[1]
    np.testing.assert_allclose(alone, beside_others, rtol=1e-9)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize("settings", [{"n_layers": 2}, {"n_draws": 2}])
def test_jobs_and_chunks_change_nothing(settings: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = "float32"
    problem = make_case("classes", cv=TimeSeriesSplit(3), loss="cross_entropy", weighted=True)
    expected = bind(problem, dtype, **settings).add_losses(SELECTED, CANDIDATES).parts
    for n_jobs in (1, 2):
        for numbers in (1, 2**11, 2**30):
            monkeypatch.setattr(networks, "CPU_NUMBERS", numbers)
            parts = bind(problem, dtype, n_jobs, **settings).add_losses(SELECTED, CANDIDATES).parts
            if way == "compiled" and "n_layers" not in settings:
                np.testing.assert_array_equal(parts, expected)
            else:
                assert_close(parts, expected, dtype)


@pytest.mark.parametrize("settings", [{}, {"n_draws": 2, "n_layers": 2}])
def test_earlier_calls_change_nothing(settings: dict[str, Any], way: str) -> None:
    problem = make_case("outputs", cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    scorer = bind(problem, "float32", **settings)
    expected = scorer.add_losses(SELECTED, CANDIDATES).parts
    other = bind(problem, "float32", **settings)
    other.fit(np.array([0]))
    other.add_losses(np.array([2]), ColumnSets.of([[1], [3]]))
    torch.manual_seed(99)
    np.testing.assert_array_equal(other.add_losses(SELECTED, CANDIDATES).parts, expected)
    np.testing.assert_array_equal(other.add_losses(SELECTED, CANDIDATES).parts, expected)
    copy = pickle.loads(pickle.dumps(scorer)).on(problem)
    np.testing.assert_array_equal(copy.add_losses(SELECTED, CANDIDATES).parts, expected)
    reverse = ColumnSets.of([CANDIDATES[i] for i in reversed(range(len(CANDIDATES)))])
    assert_close(other.add_losses(SELECTED, reverse).parts[::-1], expected, "float32")


def test_permuting_columns_permutes_losses(way: str) -> None:
    dtype = "float32"
    X, y = make_data("outputs")
    order = np.random.default_rng(5).permutation(N_COLUMNS)
    place = np.argsort(order)  # where a column is found after the permutation
    expected = bind(make_case("outputs"), dtype).add_losses(SELECTED, CANDIDATES).parts
    permuted = ColumnSets.of([place[CANDIDATES[i]] for i in range(len(CANDIDATES))])
    problem = make_case("outputs", data=(X[:, order], y))
    np.testing.assert_array_equal(bind(problem, dtype).add_losses(place[SELECTED], permuted).parts, expected)


def test_rows_of_weight_zero_do_not_count(way: str) -> None:
    """Neither in training nor in validation: what they hold doesn't matter."""
    X, y = make_data("regression")
    without = np.flatnonzero(make_case(weighted=True).weights == 0)
    assert len(without)
    spoiled, wrong = X.copy(), y.copy()
    spoiled[without] = -50.0
    wrong[without] = 1e4
    expected, found = (bind(make_case(weighted=True, data=data)) for data in [(X, y), (spoiled, wrong)])
    losses = expected.add_losses(SELECTED, CANDIDATES)
    np.testing.assert_allclose(found.add_losses(SELECTED, CANDIDATES).means, losses.means, rtol=1e-9)
    np.testing.assert_allclose(found.fit(SELECTED).predict(X), expected.fit(SELECTED).predict(X), rtol=1e-9)


def test_weights_count_only_beside_each_other(way: str) -> None:
    X, y = make_data("outputs")
    weights = np.random.default_rng(0).uniform(0.5, 2, size=N_ROWS)

    def losses(factor: float) -> Any:
        problem = make_problem(X, y, groups=make_groups(None, N_COLUMNS), cv=3, sample_weight=factor * weights)
        return bind(problem).add_losses(SELECTED, CANDIDATES).means

    np.testing.assert_allclose(losses(3.0), losses(1.0), rtol=1e-9)


def test_scales_of_inputs_and_targets_do_not_matter(way: str) -> None:
    scale = 1e6
    X, y = make_data("outputs")
    expected = bind(make_case("outputs")).add_losses(SELECTED, CANDIDATES).means
    found = bind(make_case("outputs", data=(7 + scale * X, scale * y - 3))).add_losses(SELECTED, CANDIDATES).means
    np.testing.assert_allclose(found, expected * scale**2, rtol=1e-6)


def test_torch_keeps_its_threads_and_its_random_numbers(way: str) -> None:
    scorer, before = bind(make_case(), n_jobs=2), torch.get_rng_state()
    torch.set_num_threads(2)
    scorer.add_losses(SELECTED, CANDIDATES)
    scorer.fit(SELECTED)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_and_steps_have_networks_of_their_own() -> None:
    scorer = bind(make_case(), n_layers=2)

    def weights(n_columns: int, n_selected: int, draw: int) -> Any:
        return [p.detach().numpy() for p in scorer.module(n_columns, n_selected, draw).parameters()]

    base = weights(3, 2, 0)
    for other in (weights(3, 1, 0), weights(3, 2, 1)):
        assert (base[0] != other[0]).all()
        assert (base[2] != other[2]).all()
    longer = weights(5, 2, 0)
    np.testing.assert_allclose(base[0] * np.sqrt(3), longer[0][:, :3] * np.sqrt(5))  # slots keep their numbers
    np.testing.assert_array_equal(base[2], longer[2])
    assert not base[4].any()
    assert not base[5].any()


def test_draws_steps_and_the_final_network_have_batches_of_their_own() -> None:
    scorer, rows = bind(make_case()), [np.arange(N_ROWS)]
    first = scorer.plan(rows, 2, 1, 0)[0]
    np.testing.assert_array_equal(scorer.plan(rows, 2, 1, 0)[0], first)
    others = [scorer.plan(rows, 2, 2, 0), scorer.plan(rows, 2, 1, 1), scorer.plan(rows, 2, 1, 0, FINAL_STREAM)]
    assert all((other[0] != first).any() for other in others)


def test_a_diverging_training_has_no_finite_loss(way: str) -> None:
    with np.errstate(all="ignore"):
        losses = bind(make_case(), "float32", learning_rate=1e30).add_losses(SELECTED, CANDIDATES)
    assert not np.isfinite(losses.means).any()


# The final predictor


def final_by_hand(scorer: MLPScorer, epochs: int) -> Any:
    """Predictions for all rows of networks trained on all rows that may train."""
    X = scaled_by_hand(scorer.problem, scorer.config)[0][:, SELECTED]
    rows = np.flatnonzero(scorer.problem.weights[:N_ROWS] > 0)
    size, outputs = len(SELECTED), []
    for draw in range(scorer.config.n_draws):
        network = initial_network(scorer, size, size, draw)
        train_plainly(scorer, network, X, rows, size, draw, epochs=epochs, stream=FINAL_STREAM)
        outputs.append(predict_plainly(scorer, network, X))
    return np.mean(outputs, axis=0)


FINALS = {
    "regression": ({"kind": "outputs", "weighted": True}, {}),
    "explicit validation set": ({"kind": "outputs", "cv": "explicit", "weighted": True}, {"clip": 0.7}),
    "classes": ({"kind": "classes", "loss": "cross_entropy"}, {"n_draws": 2}),
    "two classes": ({"kind": "binary", "loss": "cross_entropy"}, {"n_layers": 2}),
    "hinge": ({"kind": "classes", "loss": "hinge"}, {"weight_decay": 0.1}),
}


@pytest.mark.parametrize(("case", "settings"), FINALS.values(), ids=FINALS)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(
    case: dict[str, Any], settings: dict[str, Any]
) -> None:
    epochs = 4
    scorer = bind(make_case(**case), refit_epochs=epochs, **settings)
    fitted = scorer.fit(SELECTED)
    X = scorer.problem.X
    np.testing.assert_allclose(fitted.predict(X), final_by_hand(scorer, epochs), rtol=1e-9, atol=1e-12)
    unread = X.copy()
    unread[:, np.setdiff1d(np.arange(N_COLUMNS), SELECTED)] = np.nan
    np.testing.assert_array_equal(fitted.predict(unread), fitted.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_automatic_epochs_are_the_better_of_once_and_three_times_as_many(rate: float) -> None:
    problem = make_case("classes", loss="cross_entropy")
    as_it_is = ColumnSets.of([[]])
    losses = {
        epochs: bind(problem, epochs=epochs, learning_rate=rate).add_losses(SELECTED, as_it_is).means[0]
        for epochs in (4, 12)
    }
    better = min(losses, key=lambda epochs: losses[epochs])
    automatic, known = (
        bind(problem, epochs=4, learning_rate=rate, refit_epochs=refit).fit(SELECTED).predict(problem.X)
        for refit in ("auto", better)
    )
    np.testing.assert_array_equal(automatic, known)
    assert better == {1e-3: 12, 0.3: 4}[rate]  # so that both are seen


def test_a_training_that_diverged_is_not_taken_for_the_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = bind(make_case(), epochs=4, refit_epochs="auto")
    for bad, expected in [(4, 12), (12, 4)]:

        def loss(scorer: Any, selected: Any, epochs: int, bad: int = bad) -> float:
            return np.nan if epochs == bad else 1.0

        def losses(problem: Any, remote: Any, step: float, candidates: Any) -> Any:
            return np.full((1, len(problem.part_weights)), step)

        monkeypatch.setattr(networks._Step, "of", loss)
        monkeypatch.setattr(networks, "_step_losses", losses)
        assert scorer._refit_epochs(SELECTED) == expected


EASY: dict[str, Callable[[Any], Any]] = {
    "regression": lambda X: X[:, 2] ** 2,
    "binary": lambda X: np.where(np.abs(X[:, 2]) > 0.7, "far", "near"),
    "classes": lambda X: np.array(["low", "middle", "high"])[np.digitize(X[:, 2], [-0.5, 0.5])],
}


@pytest.mark.parametrize(
    ("kind", "loss"), [("regression", "squared_error"), ("binary", "cross_entropy"), ("classes", "hinge")]
)
def test_an_easy_problem_is_solved(kind: str, loss: str) -> None:
    X = np.random.default_rng(0).normal(size=(90, 4))
    problem = make_case(kind, loss=loss, data=(X, EASY[kind](X)))
    scorer = bind(problem, "float32", n_units=30, epochs=20, refit_epochs=20, learning_rate=0.05)
    losses = scorer.add_losses(NOTHING, ColumnSets.of([[0], [1], [2], [3]])).means
    assert losses.argmin() == 2
    assert losses[2] < 0.5 * float(problem.constant_losses @ problem.part_weights)
    others = np.random.default_rng(1).normal(size=(200, 4))
    truth = make_case(kind, loss=loss, data=(others, EASY[kind](others))).targets
    found = scorer.fit(np.array([2])).predict(others)
    if kind == "regression":
        assert np.mean((found - truth) ** 2) < 0.2 * truth.var()
    elif kind == "binary":
        assert ((found > 0.5) == truth).mean() > 0.85
    else:
        assert (found.argmax(axis=1) == truth.argmax(axis=1)).mean() > 0.85


# What goes wrong

BAD_SETTINGS = {
    "n_units": 0, "n_layers": 0, "epochs": 0, "batch_size": 0, "learning_rate": 0.0, "weight_decay": -1.0,
    "n_draws": 0, "clip": 0.0, "refit_epochs": "many", "dtype": "half",
}  # fmt: skip


def test_bad_settings_are_named() -> None:
    for name, value in BAD_SETTINGS.items():
        with pytest.raises(ValueError, match=f"The '{name}' parameter of MLP must be"):
            bind(make_case(), **{name: value})


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"device='mps' isn't available here .*: use device='cpu' or 'auto'"):
        make_mlp(dtype="float64").bind(make_case(), random_state=0, device="mps")  # which has no doubles


def test_the_configuration_is_cloned_and_pickled() -> None:
    config = make_mlp(n_draws=3)
    assert clone(config).get_params() == config.get_params()
    assert pickle.loads(pickle.dumps(config)).get_params() == config.get_params()
    assert config.classification_loss == "cross_entropy"


def test_threads_side_by_side_give_back_torchs_threads() -> None:
    """The first one ends while the second one has a single thread, which must not be what is given back."""
    both, ended, seen = Barrier(2), Event(), list[int]()

    def first() -> None:
        with one_torch_thread():
            both.wait(60)
        seen.append(torch.get_num_threads())
        ended.set()

    def second() -> None:
        with one_torch_thread():
            both.wait(60)
            ended.wait(60)
            with one_torch_thread():
                pass
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    threads = [Thread(target=function) for function in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late = Thread(target=lambda: seen.append(torch.get_num_threads()))
    late.start()
    late.join()
    torch.set_num_threads(1)  # as in all tests of this file
    assert seen == [2, 1, 2, 2]
