"""The MLP's batched losses against the plainest loop: train each network anew with torch, predict, average losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlp_cases import (
    CANDIDATES,
    CLASS_LOSSES,
    NOTHING,
    SELECTED,
    bind,
    initial_network,
    make_case,
    make_data,
    predict_plainly,
    scaled_by_hand,
    train_plainly,
)
from scorer_cases import average_by_hand
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from torch.nn import functional

from ngp.data.problem import Problem
from ngp.kernels.perceptron import is_compiled
from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.networks import MLPScorer

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def predictions_by_hand(scorer: MLPScorer, selected: Any, new: Any, train: Any, judge: Any) -> Any:
    """Mean of the draws' predictions, for rows that judge after others have trained."""
    X = scaled_by_hand(scorer.problem, scorer.config)[0]
    rows = train[scorer.problem.weights[train] > 0]
    columns, outputs = [*selected, *new], []
    for draw in range(scorer.config.n_draws):
        network = initial_network(scorer, len(columns), len(selected), draw)
        if scorer.config.warm_start and len(selected):
            start = initial_network(scorer, len(selected), len(selected), draw)
            train_plainly(scorer, start, X[:, selected], rows, len(selected), draw)
            state = start.state_dict()
            state["0.weight"] = functional.pad(state["0.weight"], (0, len(new)))
            network.load_state_dict(state)
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
    for compiled in [True, False] if is_compiled() else [False]:
        for dtype, bound in [("float64", 1e-9), ("float32", 1e-4 if problem.loss == "squared_error" else 0.02)]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(networks, "is_compiled", lambda compiled=compiled: compiled)
                losses = bind(problem, dtype, **settings).add_losses(selected, candidates)
            for i, (expected, parts) in enumerate(twins):
                assert losses.means[i] == pytest.approx(expected, rel=bound)
                difference = losses.weights * np.abs(losses.parts[i] - parts) / expected
                assert difference.max() <= bound


PROBLEMS = {
    "regression": {},
    "several outputs": {"kind": "outputs"},
    "several outputs, sample weights": {"kind": "outputs", "weighted": True},
    **{f"binary, {loss}": {"kind": "binary", "loss": loss} for loss in CLASS_LOSSES},
    **{f"classes, {loss}": {"kind": "classes", "loss": loss} for loss in CLASS_LOSSES},
    "classes, weights, cross-entropy": {"kind": "classes", "loss": "cross_entropy", "weighted": True},
    "repeated folds": {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)},
    "ShuffleSplit": {"cv": ShuffleSplit(2, test_size=0.3, random_state=0), "weighted": True},
    "TimeSeriesSplit": {"cv": TimeSeriesSplit(3)},  # splits of very different sizes
    "uneven folds": {"cv": KFold(7), "kind": "outputs"},  # batches with rows that only fill up
    "hold-out share": {"cv": 0.3},
    "explicit validation set": {"cv": "explicit", "weighted": True},
    "explicit, classes": {"cv": "explicit", "kind": "classes", "loss": "cross_entropy"},
    "leave-one-out": {"cv": "loo", "data": make_data("regression", n_rows=12)},
}
SETTINGS = {
    "two draws": {"n_draws": 2},
    "narrow clip": {"clip": 1.0},
    "no clip": {"clip": None},
    "weight decay": {"weight_decay": 0.1},
    "two layers": {"n_layers": 2},
    "three layers, two draws": {"n_layers": 3, "n_draws": 2},
    "single rows": {"batch_size": 1, "epochs": 1, "learning_rate": 0.02},
    "one batch": {"batch_size": 500},
    "one unit": {"n_units": 1},
    "many units": {"n_units": 70},  # which learn more slowly
    "warm start": {"warm_start": True},
    "warm start, two layers and draws": {"warm_start": True, "n_layers": 2, "n_draws": 2, "weight_decay": 0.1},
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_losses_are_those_of_networks_trained_one_by_one(case: dict[str, Any]) -> None:
    check_against_twin(make_case(**case))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_of_other_networks(settings: dict[str, Any]) -> None:
    check_against_twin(make_case("outputs"), **settings)


@pytest.mark.parametrize("settings", [{}, {"warm_start": True}, {"n_layers": 2}])
def test_first_step_and_long_selections(settings: dict[str, Any]) -> None:
    problem = make_case("classes", loss="cross_entropy", weighted=True)
    check_against_twin(problem, NOTHING, ColumnSets.of([[0], [2], [3, 5], [6, 2, 0]]), **settings)
    check_against_twin(problem, np.array([6, 0, 3, 1, 2]), ColumnSets.of([[4], [5, 4]]), **settings)


@pytest.mark.parametrize("settings", [{}, {"n_layers": 2, "n_units": 60}])
def test_wide_layers_learn_more_slowly(settings: dict[str, Any]) -> None:
    problem = make_case(data=make_data("regression", n_columns=16))
    check_against_twin(problem, np.arange(14), ColumnSets.of([[14], [15]]), **settings)
