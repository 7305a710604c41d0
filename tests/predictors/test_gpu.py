"""On a CUDA device predictors give the losses that they give on the CPU."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import KFold, TimeSeriesSplit
from torch import nn

from ngp import NGPRegressor
from ngp.data.groups import make_groups
from ngp.data.problem import Problem, make_problem
from ngp.kernels.kernel_ridge import NumpyAlgebra, TorchAlgebra
from ngp.predictors import networks
from ngp.predictors.base import ColumnSets
from ngp.predictors.kernel import Kernel
from ngp.predictors.networks import CNN, MLP

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

DEVICE = "cuda"
SHAPE = (6, 5, 2)  # rows, cols, channels
N_ROWS, N_COLUMNS = 30, 60
NOTHING = np.zeros(0, dtype=np.intp)
SELECTED = np.array([34, 7])
CANDIDATES = ColumnSets.of([[0], [20, 21, 22], [], [59], [12, 3]])
PROBLEMS = {
    "outputs": {"kind": "outputs"},
    "outputs, weights, uneven splits": {"kind": "outputs", "cv": TimeSeriesSplit(3), "weighted": True},
    "two classes": {"kind": "binary", "loss": "cross_entropy"},
    "classes": {"kind": "classes", "loss": "cross_entropy"},
    "classes, hinge, hold-out": {"kind": "classes", "loss": "hinge", "cv": 0.3},
}


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    """Convolutions without TF32, which has three digits."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def make_case(kind: str = "outputs", cv: Any = None, loss: str = "squared_error", weighted: bool = False) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(N_ROWS, N_COLUMNS))
    signal = X[:, [0, 7, 21]] + 0.4 * rng.normal(size=(N_ROWS, 3))
    y = {
        "outputs": 5 + 3 * signal,
        "binary": np.where(signal[:, 0] > signal[:, 1], "yes", "no"),
        "classes": np.array(["a", "b", "c"])[signal.argmax(axis=1)],
    }[kind]
    weights = rng.integers(0, 4, size=N_ROWS) / 2 if weighted else None
    groups, cv = make_groups(None, N_COLUMNS), KFold(4) if cv is None else cv  # folds of seven and of eight rows
    return make_problem(X, y, groups=groups, cv=cv, loss=loss, sample_weight=weights, random_state=3)


def with_output(image: tuple[int, int, int], n_outputs: int, *layers: nn.Module) -> nn.Module:
    features = nn.Sequential(*layers, nn.Flatten())
    n_features = features.eval()(torch.zeros(1, *image)).shape[1]
    return nn.Sequential(*features, nn.Linear(n_features, n_outputs)).train()


def small(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    layers = [nn.Conv2d(image[0], 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3)]
    return with_output(image, n_outputs, *layers)


def strided(image: tuple[int, int, int], n_outputs: int) -> nn.Module:
    return with_output(image, n_outputs, nn.Conv2d(image[0], 4, (3, 2), stride=(2, 1), padding=1), nn.ReLU())


def smooth(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # goes through vmap
    return with_output(image, n_outputs, nn.Conv2d(image[0], 4, 3), nn.Tanh(), nn.AvgPool2d(2))


def normalised(image: tuple[int, int, int], n_outputs: int) -> nn.Module:  # one copy after the other
    return with_output(image, n_outputs, nn.Conv2d(image[0], 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())


def make_mlp(**settings: Any) -> MLP:
    fast = {"n_units": 9, "epochs": 2, "batch_size": 8, "learning_rate": 0.1, "n_draws": 1, "refit_epochs": 3}
    return MLP(**{**fast, **settings})


def make_cnn(**settings: Any) -> CNN:
    fast = {"network": small, "image_shape": SHAPE, "epochs": 2, "batch_size": 8, "learning_rate": 0.02}
    return CNN(**{**fast, "refit_epochs": 3, **settings})


NETWORKS = {
    "MLP": make_mlp(),
    "MLP, two layers": make_mlp(n_layers=2, weight_decay=0.1, learning_rate=0.01),
    "MLP, two draws, many units": make_mlp(n_draws=2, n_units=130),
    "CNN": make_cnn(),
    "CNN, strides": make_cnn(network=strided, weight_decay=0.1),
    "CNN, through vmap": make_cnn(network=smooth),
    "CNN, running statistics": make_cnn(network=normalised),
    "CNN, two draws": make_cnn(n_draws=2),
}


def bind(predictor: Any, problem: Problem, dtype: str = "float64", device: str = DEVICE, **options: Any) -> Any:
    return clone(predictor).set_params(dtype=dtype).bind(problem, random_state=11, device=device, **options)


def assert_close(found: Any, expected: Any, bound: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * np.abs(expected).mean())


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("predictor", NETWORKS.values(), ids=NETWORKS)
def test_losses_are_those_of_the_cpu(predictor: Any) -> None:
    for case in PROBLEMS.values():
        check_losses(predictor, make_case(**case))


def check_losses(predictor: Any, problem: Problem) -> None:
    here, there = (bind(predictor, problem, device=device) for device in ("cpu", DEVICE))
    assert there.device == DEVICE
    for selected in (SELECTED, NOTHING):
        expected = here.add_losses(selected, CANDIDATES).parts
        assert_close(there.add_losses(selected, CANDIDATES).parts, expected, 1e-6)


@pytest.mark.parametrize("predictor", NETWORKS.values(), ids=NETWORKS)
def test_losses_in_single_precision_are_near_those_in_double(predictor: Any) -> None:
    problem = make_case()
    single, double = (
        bind(predictor, problem, dtype).add_losses(SELECTED, CANDIDATES) for dtype in ("float32", "float64")
    )
    assert_close(single.means, double.means, 1e-2)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("predictor", NETWORKS.values(), ids=NETWORKS)
def test_candidates_together_are_candidates_alone(predictor: Any, dtype: str, bound: float) -> None:
    scorer = bind(predictor, make_case(), dtype)
    together = scorer.add_losses(SELECTED, CANDIDATES).parts
    for i in range(len(CANDIDATES)):
        assert_close(scorer.add_losses(SELECTED, ColumnSets.of([CANDIDATES[i]])).parts[0], together[i], bound)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("predictor", [make_mlp(), make_cnn()], ids=["MLP", "CNN"])
def test_jobs_and_chunks_change_nothing(
    predictor: Any, dtype: str, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_case()
    expected = bind(predictor, problem, dtype).add_losses(SELECTED, CANDIDATES).parts
    assert_close(bind(predictor, problem, dtype, n_jobs=2).add_losses(SELECTED, CANDIDATES).parts, expected, bound)
    monkeypatch.setattr(networks, "GPU_SHARE", 0.0)  # one candidate at a time
    assert_close(bind(predictor, problem, dtype).add_losses(SELECTED, CANDIDATES).parts, expected, bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("predictor", [make_mlp(), make_mlp(n_layers=2), make_cnn()], ids=["MLP", "two layers", "CNN"])
def test_the_same_question_has_the_same_answer(predictor: Any, dtype: str) -> None:
    problem = make_case()
    first, second = (bind(predictor, problem, dtype).add_losses(SELECTED, CANDIDATES).parts for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("predictor", NETWORKS.values(), ids=NETWORKS)
def test_the_final_predictor_lives_on_the_cpu(predictor: Any) -> None:
    problem = make_case(**PROBLEMS["classes"])
    here, there = (bind(predictor, problem, device=device).fit(SELECTED) for device in ("cpu", DEVICE))
    for module in there.modules:
        assert {values.device.type for values in module.state_dict().values()} == {"cpu"}
    found = there.predict(problem.X)
    assert_close(found, here.predict(problem.X), 1e-6)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)).predict(problem.X), found)


# The kernel that trains perceptrons


@pytest.mark.skipif(find_spec("triton") is None, reason="triton isn't installed")
@pytest.mark.parametrize("n_units", [1, 16, 37, 500])
@pytest.mark.parametrize("case", [case for case in PROBLEMS.values() if case.get("loss") != "hinge"])
def test_the_compiled_perceptron_is_the_one_of_torch(
    case: dict[str, Any], n_units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In single precision, where Adam makes steps of rounding errors if the gradients of a batch cancel."""
    from ngp.kernels import perceptron_gpu

    problem = make_case(**case)
    predictor = make_mlp(n_units=n_units, weight_decay=0.1)
    assert perceptron_gpu.fits(n_units, 8, problem.n_outputs, problem.loss)
    found = bind(predictor, problem, "float32").add_losses(SELECTED, CANDIDATES).means
    monkeypatch.setattr(perceptron_gpu, "fits", lambda *sizes: False)
    expected = bind(predictor, problem, "float32").add_losses(SELECTED, CANDIDATES).means
    assert_close(found, expected, 1e-3 if problem.loss == "squared_error" else 0.02)


@pytest.mark.skipif(find_spec("triton") is None, reason="triton isn't installed")
def test_a_gpu_too_small_for_the_compiled_perceptron_leaves_it_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    from ngp.kernels import perceptron_gpu

    def refuse(*arguments: Any, **settings: Any) -> Any:
        raise perceptron_gpu.OutOfResources(2, 1, "shared memory")

    monkeypatch.setattr(perceptron_gpu, "fits", lambda *sizes: False)
    expected = bind(make_mlp(), make_case(), "float32").add_losses(SELECTED, CANDIDATES).parts
    monkeypatch.undo()
    monkeypatch.setattr(perceptron_gpu, "train_perceptrons", refuse)
    found = bind(make_mlp(), make_case(), "float32").add_losses(SELECTED, CANDIDATES).parts
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# Kernels


@pytest.mark.parametrize("settings", [{}, {"landmarks": 9}, {"ridge": 1e-3, "clip": 1.0}])
@pytest.mark.parametrize("name", ["outputs, weights, uneven splits", "classes, hinge, hold-out"])
def test_kernels_are_those_of_numpy(name: str, settings: dict[str, Any]) -> None:
    problem, predictor = make_case(**PROBLEMS[name]), Kernel(**settings)
    here, there = (bind(predictor, problem, device=device) for device in ("cpu", DEVICE))
    assert isinstance(here.algebra, NumpyAlgebra)
    assert isinstance(there.algebra, TorchAlgebra)
    for selected in (SELECTED, NOTHING):
        candidates = CANDIDATES if len(selected) else ColumnSets.of([[0], [20, 21, 22], [59]])
        expected = here.add_losses(selected, candidates).parts
        assert_close(there.add_losses(selected, candidates).parts, expected, 1e-6)
        for i in range(len(candidates)):
            alone = there.add_losses(selected, ColumnSets.of([candidates[i]])).parts[0]
            assert_close(alone, expected[i], 1e-6)
    several, leaving = np.arange(6), ColumnSets.of([[0], [4, 2], [], [5, 1, 0, 3]])
    expected = here.drop_losses(several, leaving).parts
    assert_close(there.drop_losses(several, leaving).parts, expected, 1e-6)
    fitted = there.fit(SELECTED)
    assert_close(fitted.predict(problem.X), here.fit(SELECTED).predict(problem.X), 1e-6)
    found = pickle.loads(pickle.dumps(fitted)).predict(problem.X)
    np.testing.assert_array_equal(found, fitted.predict(problem.X))


# The selector


def test_auto_takes_the_gpu() -> None:
    problem = make_case()
    assert bind(make_mlp(), problem, device="auto").device == DEVICE
    assert bind(make_cnn(), problem, device="auto").device == DEVICE
    assert isinstance(bind(Kernel(), problem, device="auto").algebra, TorchAlgebra)


@pytest.mark.parametrize(
    "predictor",
    [[make_mlp(dtype="float64")], [make_mlp(dtype="float64"), make_cnn(dtype="float64"), Kernel(dtype="float64")]],
    ids=["MLP", "all"],
)
def test_selections_are_those_of_the_cpu(predictor: Any) -> None:
    problem = make_case()
    here, there = (
        NGPRegressor(predictor, n_features_to_select=2, cv=3, device=device, random_state=0).fit(
            problem.X, problem.targets
        )
        for device in ("cpu", DEVICE)
    )
    assert there.order_.tolist() == here.order_.tolist()
    assert_close(there.predict(problem.X), here.predict(problem.X), 1e-6)
    np.testing.assert_allclose(there.losses_, here.losses_, rtol=1e-6)
