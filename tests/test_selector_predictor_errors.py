"""The scikit-learn face with predictors that can't do what is asked, or whose training goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from predictor_cases import FAST_MLP, FAST_SSFN, OnlySquares, fit, make_data, names
from sklearn.base import clone
from torch import Tensor, nn

from ngp.predictors import CNN, MLP

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.mark.parametrize(
    "predictor", [OnlySquares(), [FAST_MLP, OnlySquares()], lambda step: FAST_MLP if step == 1 else OnlySquares()]
)
@pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
def test_a_loss_that_a_predictor_cannot_score(predictor: Any, loss: str) -> None:
    with pytest.raises(ValueError, match=f"^loss='{loss}' can't be scored by OnlySquares: use one of squared_error"):
        fit(predictor, "classes", loss=loss)


def test_a_loss_that_the_first_predictor_of_a_callable_cannot_score_names_the_predictor() -> None:
    with pytest.raises(ValueError, match="loss='hinge' can't be scored by OnlySquares: use one of squared_error"):
        fit(lambda step: OnlySquares(), "classes", loss="hinge")


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": ("forest", ValueError, "The 'predictor' parameter .* must be a str among .* Got 'forest' instead"),
    "class": (MLP, TypeError, r"predictor=MLP is a class: give an object, made with MLP\(…\)"),
    "something else": (5, ValueError, "The 'predictor' parameter of NGPRegressor must be .* Got 5 instead"),
    "later step": (
        lambda step: FAST_SSFN if step == 1 else "forest",
        ValueError,
        "predictor='forest' is unknown: use one of ssfn, mlp, cnn, kernel",
    ),
    "no square image": ("cnn", ValueError, "image_shape=None, and X with 5 columns is no square image"),
    "bad setting": (MLP(n_units=0), ValueError, "The 'n_units' parameter of MLP must be"),
    "bad setting in a list": ([FAST_SSFN, MLP(epochs=0)], ValueError, "The 'epochs' parameter of MLP must be"),
}


@pytest.mark.parametrize(("predictor", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(predictor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(predictor)


@pytest.mark.filterwarnings("ignore:Nothing was selected")
def test_a_diverging_training_ends_the_pursuit() -> None:
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="Step 1 ends the pursuit: the loss of every"):
        selector = fit(clone(FAST_MLP).set_params(learning_rate=1e30))
    assert len(selector.order_) == 0


def test_a_diverging_member_leaves_the_pursuit_to_the_others() -> None:
    with np.errstate(all="ignore"):
        selector = fit([clone(FAST_MLP).set_params(learning_rate=1e30), FAST_SSFN])
    assert names(selector) == ["SSFN", "SSFN"]
    assert np.isfinite(selector.predict(make_data()[0])).all()


class Sightless(nn.Module):
    """No number as soon as the first pixel is seen."""

    def __init__(self, image: tuple[int, int, int], n_outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(image[1] * image[2], n_outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x[:, 0, 0, :1] != 0, torch.nan, self.layers(x))


def test_a_diverging_candidate_loses_with_a_warning() -> None:
    predictor = CNN(network=Sightless, image_shape=(1, 5), epochs=2, refit_epochs=2)
    with pytest.warns(UserWarning, match="^1 candidates have a loss that is no finite number: they lose"):
        selector = fit(predictor)
    assert 0 not in selector.order_
    assert np.isnan(selector.losses_[:, 0]).all()
    assert np.isfinite(selector.predict(make_data()[0])).all()
