"""DeepLIFT: contributions add up, and agree with shap's DeepExplainer."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import shap
import torch
from torch import Tensor, nn

from ngp.kernels import deeplift
from ngp.kernels.deeplift import attributions, explainable_layers
from ngp.predictors.networks import convolutional

pytestmark = pytest.mark.usefixtures("one_torch_thread")
EXACT = 1e-8  # the bar; what is measured is 1e-14 or so


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def perceptron(n_inputs: int, n_layers: int, n_outputs: int) -> nn.Sequential:
    sizes = [n_inputs, *[30, 20, 10][:n_layers]]
    hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], n_outputs))


def network_and_shape(name: str) -> tuple[nn.Module, tuple[int, ...]]:
    image = (1, 28, 28) if name == "paper" else (3, 13, 10)
    if name in ("paper", "paper in colours"):
        return convolutional("paper", image, 10 if name == "paper" else 1), image
    if name == "strong":
        return convolutional("strong", image, 3), image
    return perceptron(6, int(name), 4), (6,)


NETWORKS = ["paper", "paper in colours", "strong", "1", "2", "3"]


def by_shap(network: nn.Module, inputs: Tensor, baselines: Tensor) -> Tensor:
    values = shap.DeepExplainer(copy.deepcopy(network), baselines).shap_values(inputs, check_additivity=False)
    return torch.from_numpy(np.moveaxis(values, -1, 1))


def lack(network: nn.Module, inputs: Tensor, baselines: Tensor) -> float:
    """By how much contributions miss the difference of the outputs."""
    found = attributions(network, inputs, baselines).flatten(2).sum(dim=2)
    network.eval()
    with torch.no_grad():
        return float((found - (network(inputs) - network(baselines).mean(dim=0))).abs().max())


@pytest.mark.parametrize("name", NETWORKS)
def test_contributions_add_up_and_agree_with_shap(name: str) -> None:
    network, shape = network_and_shape(name)
    network.double()
    inputs, baselines = torch.randn(4, *shape).double(), torch.randn(7, *shape).double()
    found = attributions(network, inputs, baselines)
    assert found.shape == (4, network[-1].out_features, *shape)
    assert lack(network, inputs, baselines) < EXACT
    assert (found - by_shap(network, inputs, baselines)).abs().max() < EXACT
    assert found.abs().mean() > 1e-4  # of what is compared


@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_that_equal_a_baseline_or_share_pixels_with_it(name: str) -> None:
    network, shape = network_and_shape(name)
    network.double()
    inputs, baselines = torch.randn(3, *shape).double(), torch.randn(4, *shape).double()
    baselines[0], baselines[1] = inputs[0], inputs[1]
    baselines[2, ..., :4] = inputs[2, ..., :4]  # hidden units with no difference too
    assert (attributions(network, inputs[:1], inputs[:1]) == 0).all()
    found = attributions(network, inputs, baselines)
    assert lack(network, inputs, baselines) < EXACT
    assert (found - by_shap(network, inputs, baselines)).abs().max() < EXACT
    assert (attributions(network, inputs[2:], baselines[2:3])[..., :4] == 0).all()


@pytest.mark.parametrize("first", [nn.MaxPool2d(2), nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))])
def test_ties_in_a_maximum(first: nn.Module) -> None:
    network = nn.Sequential(first, nn.Flatten(), nn.Linear(2 * 9, 3)).double()
    inputs, baselines = (torch.randint(-1, 3, (n, 2, 6, 6)).double() for n in (20, 10))
    inputs[0], baselines[0] = 1, 1  # all the same
    assert lack(network, inputs, baselines) < EXACT
    assert (attributions(network, inputs, baselines) - by_shap(network, inputs, baselines)).abs().max() < EXACT


def test_paper_network_on_flat_images() -> None:  # all its maxima tie
    network = convolutional("paper", (1, 28, 28), 10).double()
    inputs, baselines = torch.zeros(2, 1, 28, 28).double(), torch.ones(2, 1, 28, 28).double()
    inputs[1, :, 10:18, 10:18] = 1
    assert lack(network, inputs, baselines) < EXACT
    assert (attributions(network, inputs, baselines) - by_shap(network, inputs, baselines)).abs().max() < EXACT


def test_tiny_differences_count_too() -> None:  # shap takes the slope for differences below 1e-6
    network, shape = network_and_shape("paper")
    network.double()
    baselines = torch.randn(1, *shape).double()
    inputs = baselines + 1e-7 * torch.randn(50, *shape).double()
    assert lack(network, inputs, baselines) < 1e-14


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular"),
        nn.Conv2d(2, 4, (3, 2), stride=(1, 3), padding=(2, 0), dilation=(2, 1), groups=2, bias=False),
        nn.MaxPool2d((2, 3)),
        nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.MaxPool2d(2, stride=3),
    ],
    ids=str,
)
def test_layers_of_any_geometry(layer: nn.Module) -> None:
    body = nn.Sequential(nn.Conv2d(2, 2, 3), nn.ReLU(), layer, nn.ReLU(), nn.Flatten())
    n_hidden = body(torch.zeros(1, 2, 9, 11)).shape[1]
    network = nn.Sequential(body, nn.Linear(n_hidden, 3, bias=False)).double()
    inputs, baselines = torch.randn(4, 2, 9, 11).double(), torch.randn(5, 2, 9, 11).double()
    assert lack(network, inputs, baselines) < EXACT
    assert (attributions(network, inputs, baselines) - by_shap(network, inputs, baselines)).abs().max() < EXACT


@pytest.mark.parametrize("pool", [nn.MaxPool2d(3, stride=1), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2, 1, dilation=2)])
def test_overlapping_maxima_add_up(pool: nn.Module) -> None:  # shap forgets all windows of a pixel but one
    size = pool(torch.zeros(1, 1, 8, 8)).numel()
    network = nn.Sequential(pool, nn.ReLU(), nn.Flatten(), nn.Linear(size, 2)).double()
    inputs, baselines = torch.randn(6, 1, 8, 8).double(), torch.randn(5, 1, 8, 8).double()
    assert lack(network, inputs, baselines) < EXACT


def test_a_maximum_by_hand() -> None:
    pool = nn.Sequential(nn.MaxPool2d(2), nn.Flatten())
    inputs = torch.tensor([[5.0, 4.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0], [3.0, -1.0, -2.0, 0.0]]).reshape(3, 1, 2, 2)
    base = torch.tensor([[1.0, 3.0, 0.0, 0.0]]).reshape(1, 1, 2, 2)
    # Risen by two: to the sample's largest. Fallen by one: to the baseline's largest. Just as large: to none.
    expected = [[2.0, 0, 0, 0], [0, -1.0, 0, 0], [0, 0, 0, 0]]
    assert attributions(pool, inputs, base).reshape(3, 4).tolist() == expected


@pytest.mark.parametrize(("bias", "slope"), [(0.5, 1), (-0.5, 0)])
def test_a_unit_without_a_difference_has_its_slope(bias: float, slope: int) -> None:
    network = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    state = {"0.weight": torch.tensor([[1.0, -1.0]]), "0.bias": torch.tensor([bias]), "2.weight": torch.tensor([[3.0]])}
    network.load_state_dict(state, strict=False)
    inputs, baselines = torch.tensor([[4.0, 4.0]]).double(), torch.tensor([[2.0, 2.0]]).double()
    assert attributions(network, inputs, baselines).tolist() == [[[6.0 * slope, -6.0 * slope]]]
    assert by_shap(network, inputs, baselines).tolist() == [[[6.0 * slope, -6.0 * slope]]]


def test_linear_network() -> None:
    network = nn.Linear(5, 2).double()
    inputs, baselines = torch.randn(3, 5).double(), torch.randn(4, 5).double()
    expected = network.weight * (inputs - baselines.mean(dim=0))[:, None]
    torch.testing.assert_close(attributions(network, inputs, baselines), expected)


@pytest.mark.parametrize("most_pairs", [1, 3, 10])
def test_chunks_change_nothing(most_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, shape = network_and_shape("paper in colours")
    network.double()
    inputs, baselines = torch.randn(9, *shape).double(), torch.randn(4, *shape).double()
    whole = attributions(network, inputs, baselines)
    monkeypatch.setattr(deeplift, "MOST_PAIRS", most_pairs)
    torch.testing.assert_close(attributions(network, inputs, baselines), whole, rtol=0, atol=1e-13)


def test_leaves_the_network_and_torch_alone() -> None:
    layers = nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(8, 2)
    network = nn.Sequential(*layers).double()
    network[0].weight.requires_grad_(False)
    network[3].eval()
    inputs, baselines = torch.randn(3, 4).double(), torch.randn(2, 4).double()
    before, state = copy.deepcopy(network), torch.random.get_rng_state()
    kept = inputs.clone(), baselines.clone()
    found = attributions(network, inputs, baselines)
    assert [m.training for m in network.modules()] == [m.training for m in before.modules()]
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), before.parameters(), strict=True))
    assert [p.requires_grad for p in network.parameters()] == [p.requires_grad for p in before.parameters()]
    assert all(p.grad is None for p in network.parameters())
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    assert not any(getattr(module, name) for module in network.modules() for name in hooks)
    assert torch.is_grad_enabled()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not found.requires_grad
    assert torch.equal(inputs, kept[0])
    assert torch.equal(baselines, kept[1])
    assert torch.equal(attributions(network, inputs, baselines), found)  # nothing is dropped
    assert lack(network, inputs, baselines) < EXACT


def test_works_in_the_precision_of_the_network() -> None:
    network = perceptron(6, 2, 3)
    inputs, baselines = torch.randn(3, 6).double(), torch.randn(2, 6)
    single = attributions(network, inputs, baselines)
    double = attributions(copy.deepcopy(network).double(), inputs, baselines)
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Tanh(),
        nn.BatchNorm1d(4),
        nn.ModuleList([nn.Linear(4, 4)]),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_layer_without_a_rule_is_named(layer: nn.Module) -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Sequential(layer))
    with pytest.raises(ValueError, match="no DeepLIFT rule for that: give an") as error:
        explainable_layers(network)
    assert str(error.value).startswith(f"network holds {layer}")
    with pytest.raises(ValueError, match="no DeepLIFT rule"):
        attributions(network, torch.zeros(1, 4), torch.zeros(1, 4))


def test_a_network_of_another_kind_is_named() -> None:
    class Residual(nn.Module):
        pass

    with pytest.raises(ValueError, match=r"network holds Residual\(\), and there is no DeepLIFT rule"):
        attributions(Residual(), torch.zeros(1, 4), torch.zeros(1, 4))


@pytest.mark.parametrize("shape", [(0, 4), (2, 5), (2, 4, 1)])
def test_baselines_that_do_not_fit(shape: tuple[int, ...]) -> None:
    message = re.escape(f"baselines of shape {shape} don't fit inputs of shape (3, 4): give at least one sample")
    with pytest.raises(ValueError, match=message):
        attributions(nn.Linear(4, 1), torch.zeros(3, 4), torch.zeros(shape))


def test_outputs_that_are_no_row() -> None:
    with pytest.raises(ValueError, match=r"network returns \(1, 2, 6, 6\) for one sample: it must return one row"):
        attributions(nn.Conv2d(1, 2, 3), torch.zeros(3, 1, 8, 8), torch.zeros(1, 1, 8, 8))
