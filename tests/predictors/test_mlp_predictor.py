"""The MLP's final networks against networks trained plainly, what they learn, and settings that are refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from mlp_cases import (
    CLASS_LOSSES,
    N_COLUMNS,
    N_ROWS,
    NOTHING,
    SELECTED,
    TOLERANCES,
    assert_close,
    bind,
    initial_network,
    make_case,
    make_data,
    make_mlp,
    predict_plainly,
    scaled_by_hand,
    train_plainly,
)
from sklearn.base import clone

from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import FINAL_STREAM, MLPScorer

pytestmark = pytest.mark.usefixtures("one_torch_thread")


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
    "hinge": ({"kind": "classes", "loss": "hinge"}, {"warm_start": True, "weight_decay": 0.1}),
}


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize(("case", "settings"), FINALS.values(), ids=FINALS)
def test_the_final_predictor_is_trained_on_all_rows_that_may_train(
    case: dict[str, Any], settings: dict[str, Any], epochs: int
) -> None:
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

        def loss(scorer: Any, selected: Any, epochs: int, *, warm: bool, bad: int = bad) -> float:
            assert not warm  # the final network begins afresh, and so must those that are judged
            return np.nan if epochs == bad else 1.0

        def losses(problem: Any, recipe: Any, step: float, candidates: Any) -> Any:
            return np.full((1, len(problem.part_weights)), step)

        monkeypatch.setattr(networks._Step, "of", loss)
        monkeypatch.setattr(networks, "_step_losses", losses)
        assert scorer._refit_epochs(SELECTED) == expected


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_predictions_come_in_pieces_of_any_length(dtype: str) -> None:
    predictor = bind(make_case("outputs"), dtype).fit(SELECTED)
    X = make_data("outputs", n_rows=600)[0]
    found = predictor.predict(X)
    assert found.shape == (600, 3)
    assert found.dtype == np.float64
    assert_close(np.concatenate([predictor.predict(X[i : i + 7]) for i in range(0, 600, 7)]), found, dtype)


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_cross_entropy_predicts_probabilities(kind: str) -> None:
    problem = make_case(kind, loss="cross_entropy")
    found = bind(problem, "float32", epochs=20, refit_epochs=20).fit(np.array([0, 1, 6])).predict(problem.X)
    assert found.min() >= 0
    assert found.max() <= 1
    if kind == "classes":
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


EASY: dict[str, Callable[[Any], Any]] = {
    "regression": lambda X: X[:, 2] ** 2,
    "binary": lambda X: np.where(np.abs(X[:, 2]) > 0.7, "far", "near"),
    "classes": lambda X: np.array(["low", "middle", "high"])[np.digitize(X[:, 2], [-0.5, 0.5])],
}


@pytest.mark.parametrize("loss", CLASS_LOSSES)
@pytest.mark.parametrize("kind", EASY)
def test_an_easy_problem_is_solved(kind: str, loss: str) -> None:
    if kind == "regression" and loss != "squared_error":
        pytest.skip("a loss of classes")
    X = np.random.default_rng(0).normal(size=(90, 4))
    problem = make_case(kind, loss=loss, data=(X, EASY[kind](X)))
    scorer = bind(problem, "float32", n_units=30, epochs=20, refit_epochs=20, learning_rate=0.05)
    losses = scorer.add_losses(NOTHING, ColumnSets.of([[0], [1], [2], [3]])).means
    assert losses.argmin() == 2
    assert losses[2] < 0.5 * float(problem.constant_losses() @ problem.part_weights)
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
    "n_draws": 0, "warm_start": "yes", "clip": 0.0, "refit_epochs": "many", "dtype": "half",
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS.items())
def test_bad_settings_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of MLP must be"):
        bind(make_case(), **{name: value})


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_device_that_is_not_there(name: str) -> None:
    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    dtype = "float32" if name == "cuda" else "float64"  # which no mps has
    with pytest.raises(ValueError, match=rf"device='{name}' isn't available here .*: use device='cpu' or 'auto'"):
        make_mlp(dtype=dtype).bind(make_case(), random_state=0, device=name)


def test_the_configuration_is_cloned_and_pickled() -> None:
    config = make_mlp(n_draws=3, warm_start=True)
    assert clone(config).get_params() == config.get_params()
    assert pickle.loads(pickle.dumps(config)).get_params() == config.get_params()
    assert config.classification_loss == "cross_entropy"
