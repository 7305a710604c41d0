"""What networks trained by gradient descent have in common: all candidates of a step are trained together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, product
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.parallel import run_tasks
from ngp.predictors.base import ColumnSets, Losses, Scorer
from ngp.predictors.recipe import Recipe

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ngp.kernels.stacks import StackedNetwork
    from ngp.kernels.training import Inputs, Targets

__all__ = ["NetworkPredictor", "NetworkScorer", "one_torch_thread"]

# Numbers in the layers of the networks that are trained together: what stays in the cache of a core, or a share of
# the free memory of a GPU (four bytes each, and several times as many for gradients and what autograd keeps).
CPU_NUMBERS = 1 << 20
GPU_SHARE = 1 / 40
# Chunks on a CPU, so that its cores have something to share.
FEWEST_CHUNKS = 16
# Rows that are predicted together.
PREDICTED_ROWS = 256
# With refit_epochs="auto" the final network is trained for so many times `epochs`, whichever does best on the folds.
EPOCH_FACTORS = (1, 3)
# Keys of the random order of rows: in the steps of a pursuit, and for the final network.
STEP_STREAM, FINAL_STREAM = range(2)

Split = tuple[int, int]  # a round, and a fold in it


@dataclass(frozen=True)
class Run:
    """One training of the candidates of a step."""

    selected: IntArray  # S, the columns that are selected already
    draw: int  # number of the draw, which the initial weights and the batches depend on
    splits: list[Split]  # the splits in which the networks are trained, each a round and a fold in it
    plan: tuple[IntArray, FloatArray]  # the batches (see `ngp.kernels.training.plan_batches`)
    start: list[Tensor] | None = None  # parameters to begin with, one copy a split


@dataclass(frozen=True)
class NetworkScorer(Scorer):
    """A torch network bound to a problem (see `ngp.predictors.base.Scorer`)."""

    config: Any
    problem: Problem
    seed: int
    n_jobs: int | None
    device: str

    @property
    def dtype(self) -> str:
        """Precision of the networks."""
        return str(self.config.dtype)

    @abstractmethod
    def module(self, n_columns: int, n_selected: int, draw: int) -> nn.Module:
        """Make a network of the step after `n_selected` columns, with the initial weights that candidates share."""

    @abstractmethod
    def architecture(self, n_columns: int) -> Callable[[], nn.Module]:
        """Make what makes a network of so many inputs, with weights of no meaning."""

    @abstractmethod
    def inputs(self, selected: IntArray, candidates: Sequence[IntArray]) -> Inputs:
        """What the networks of S + g see."""

    @abstractmethod
    def adapt(self, network: StackedNetwork, sizes: IntArray, start: list[Tensor] | None) -> None:
        """Make the initial weights fit candidates of several sizes, or those of a warm start."""

    @abstractmethod
    def numbers(self, n_columns: int) -> int:
        """About how many numbers the layers of one network hold while it is trained with a batch."""

    @abstractmethod
    def reader(self, selected: IntArray) -> Callable[[AnyArray], FloatArray]:
        """Make the picklable function from X to the inputs of the final network."""

    @cached_property
    def recipe(self) -> Recipe[NetworkScorer]:
        """What other processes make the scorer of."""
        return Recipe.of(self)

    @cached_property
    def target_scales(self) -> tuple[FloatArray, float]:
        """Mean of each target and one common deviation; classes under a loss of their own stay as they are."""
        if self.problem.loss != "squared_error":
            return np.zeros(self.problem.n_outputs), 1.0
        return self.problem.target_scales

    @cached_property
    def targets(self) -> Targets:
        """Scaled targets on the device."""
        from ngp.kernels.training import Targets

        mean, scale = self.target_scales
        return Targets(self.tensor((self.problem.targets - mean) / scale), self.problem.loss)

    def tensor(self, values: AnyArray) -> Tensor:
        """Put numbers on the device, in the precision of the networks."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(values, dtype=self.dtype)).to(self.device)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        selected = np.asarray(selected, dtype=np.intp)
        with one_torch_thread():
            step = _Step.of(self, selected, self.config.epochs, warm=self.config.warm_start)
            shared = self.problem, self.recipe, step
            order = np.argsort(candidates.sizes, kind="stable")  # so that candidates of one size are together
            length = self._chunk_length(len(candidates), len(selected) + int(candidates.sizes.max()))
            chunks = [order[i : i + length] for i in range(0, len(order), length)]
            arguments = [([candidates[i] for i in chunk],) for chunk in chunks]
            if self.device == "cpu":
                losses = run_tasks(_step_losses, arguments, self.n_jobs, shared=shared)
            else:  # a GPU gains nothing from threads
                losses = [_step_losses(*shared, *each) for each in arguments]
        parts = np.empty((len(candidates), len(self.problem.part_weights)))
        parts[order] = np.concatenate(losses)
        return Losses(parts, self.problem.part_weights)

    def _chunk_length(self, n_candidates: int, n_columns: int) -> int:
        """Number of candidates that are trained together; it doesn't depend on the number of jobs."""
        import torch

        n_splits = max(len(group) for group in self.split_groups)
        most = CPU_NUMBERS // (n_splits * self.numbers(n_columns))
        if self.device == "cpu":
            return max(1, min(most, -(-n_candidates // FEWEST_CHUNKS)))
        if self.device == "cuda":
            most = int(torch.cuda.mem_get_info()[0] * GPU_SHARE) // (4 * n_splits * self.numbers(n_columns))
        return max(1, most)

    @cached_property
    def split_groups(self) -> list[list[Split]]:
        """Splits that take equally many steps of the optimiser, and so can be trained together."""
        rounds = self.problem.rounds
        splits = [(r, f) for r, round_ in enumerate(rounds) for f in range(round_.n_folds)]
        ordered = sorted(splits, key=self._n_batches)  # stable
        return [list(group) for _, group in groupby(ordered, key=self._n_batches)]

    def _n_batches(self, split: Split) -> int:
        from ngp.kernels.training import n_batches

        return n_batches(len(self.training_rows(split)), self.config.batch_size)

    def training_rows(self, split: Split) -> IntArray:
        """Rows of a split that train; those without weight have no say."""
        rows = self.problem.rounds[split[0]].training(split[1])
        return rows[self.problem.weights[rows] > 0]

    def plan(
        self, splits: list[IntArray], epochs: int, n_selected: int, draw: int, stream: int = STEP_STREAM
    ) -> tuple[IntArray, FloatArray]:
        """Cut the training rows into batches."""
        from ngp.kernels.training import plan_batches

        key = self.seed, stream, n_selected, draw
        return plan_batches(splits, self.problem.weights, self.config.batch_size, epochs, key)

    def trained(self, run: Run, candidates: Sequence[IntArray], inputs: Inputs) -> StackedNetwork:
        """Networks of all candidates, trained in each split of a run."""
        from ngp.kernels.training import train

        network = self.untrained(run, candidates)
        rates = self.rates(len(run.selected), len(network.parameters))
        train(network, inputs, self.targets, run.plan, rates=rates, weight_decay=self.config.weight_decay)
        return network

    def untrained(self, run: Run, candidates: Sequence[IntArray]) -> StackedNetwork:
        """Networks of all candidates for each split of a run, as they begin."""
        n_selected = len(run.selected)
        sizes = np.repeat([n_selected + len(new) for new in candidates], run.plan[0].shape[1])
        network = self.stack(len(sizes), int(sizes.max()), n_selected, run.draw)
        self.adapt(network, sizes, run.start)
        return network

    def estimates(self, run: Run, candidates: Sequence[IntArray], rows: IntArray) -> FloatArray:
        """Train, and estimate the scaled targets of rows (splits, rows): (candidates, splits, rows, outputs)."""
        from ngp.kernels.training import predict

        inputs = self.inputs(run.selected, candidates)
        return predict(self.trained(run, candidates, inputs), inputs, self.targets, rows, PREDICTED_ROWS)

    def rates(self, n_selected: int, n_parameters: int) -> list[float]:
        """Learning rate of each parameter in the step after `n_selected` columns."""
        return [self.config.learning_rate] * n_parameters

    def stack(self, n_copies: int, n_columns: int, n_selected: int, draw: int) -> StackedNetwork:
        """Make copies of a network of the step after `n_selected` columns."""
        import torch

        from ngp.kernels.stacks import StackedNetwork

        module, dtype = self.module(n_columns, n_selected, draw), getattr(torch, self.dtype)
        return StackedNetwork(module, n_copies, device=self.device, dtype=dtype, seed=self.number(n_selected, draw))

    def number(self, *key: int) -> int:
        """A seed for torch, made of the pursuit's and a key."""
        return int(np.random.SeedSequence([self.seed, *key]).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def fit(self, selected: IntArray) -> NetworkPredictor:
        """Train the final predictor on all rows that may train."""
        selected = np.asarray(selected, dtype=np.intp)
        with one_torch_thread():
            epochs = self._refit_epochs(selected)
            modules = tuple(self._final_module(selected, epochs, draw) for draw in range(self.config.n_draws))
        architecture = self.architecture(len(selected))
        return NetworkPredictor(self.reader(selected), architecture, modules, self.problem.loss, *self.target_scales)

    def _final_module(self, selected: IntArray, epochs: int, draw: int) -> nn.Module:
        rows, size = np.flatnonzero(self.problem.weights[: self.problem.n_fit] > 0), len(selected)
        run = Run(selected, draw, [], self.plan([rows], epochs, size, draw, FINAL_STREAM))
        nothing = [selected[:0]]
        network = self.trained(run, nothing, self.inputs(selected, nothing))
        module = self.module(size, size, draw).to(network.parameters[0].dtype)
        return network.copy_into(0, module).eval()

    def _refit_epochs(self, selected: IntArray) -> int:
        """For how many epochs to train the final network."""
        config = self.config
        if config.refit_epochs != "auto":
            return int(config.refit_epochs)
        losses = []
        for factor in EPOCH_FACTORS:
            step = _Step.of(self, selected, config.epochs * factor, warm=False)
            parts = _step_losses(self.problem, self.recipe, step, [selected[:0]])[0]
            loss = float(parts @ self.problem.part_weights)
            losses.append((loss if isfinite(loss) else inf, factor))
        return int(config.epochs * min(losses)[1])


@dataclass(frozen=True, eq=False)
class _Step:
    """What all chunks of candidates of a step need: how they are trained."""

    runs: list[Run]

    @classmethod
    def of(cls, scorer: NetworkScorer, selected: IntArray, epochs: int, *, warm: bool) -> _Step:
        runs = []
        for splits, draw in product(scorer.split_groups, range(scorer.config.n_draws)):
            plan = scorer.plan([scorer.training_rows(split) for split in splits], epochs, len(selected), draw)
            run = Run(selected, draw, splits, plan)
            if warm and len(selected):
                nothing = [selected[:0]]
                network = scorer.trained(run, nothing, scorer.inputs(selected, nothing))
                run = replace(run, start=[p.detach() for p in network.parameters])
            runs.append(run)
        return cls(runs)


def _step_losses(
    problem: Problem, recipe: Recipe[NetworkScorer], step: _Step, candidates: list[IntArray]
) -> FloatArray:
    """Losses of a few candidates in all parts of the validation; draws are averaged."""
    scorer, rounds = recipe.make(problem), problem.rounds
    predictions = [np.zeros((len(candidates), len(round_.rows), problem.n_outputs)) for round_ in rounds]
    mean, scale = scorer.target_scales
    with one_torch_thread():
        for run in step.runs:
            judged = [rounds[r].validation(f) for r, f in run.splits]
            rows = np.zeros((len(judged), max(map(len, judged))), dtype=np.intp)
            for own, known in zip(rows, judged, strict=True):
                own[: len(known)] = known
            outputs = scorer.estimates(run, candidates, rows) * (scale / scorer.config.n_draws)
            for i, (r, f) in enumerate(run.splits):
                first, last = rounds[r].segments[f + 1 : f + 3]
                predictions[r][:, first:last] += outputs[:, i, : last - first]
    return problem.part_losses(iter([values + mean for values in predictions]))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Tasks run side by side, each in a thread of its own: torch needs no more of them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class NetworkPredictor:
    """The final networks, on the CPU; their predictions are averaged."""

    reader: Callable[[AnyArray], FloatArray]
    architecture: Callable[[], nn.Module]  # makes a network like the others
    modules: tuple[nn.Module, ...]
    loss: str
    target_mean: FloatArray
    target_scale: float

    def __getstate__(self) -> dict[str, Any]:
        """Weights as plain arrays, since a file that may hold torch's own objects could run any code."""
        weights = [{name: values.numpy() for name, values in module.state_dict().items()} for module in self.modules]
        return vars(self) | {"modules": weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import torch

        from ngp.kernels.stacks import seeded

        modules = []
        for weights in state["modules"]:
            with seeded(0):  # whatever is drawn is replaced
                module = state["architecture"]()
            # Copied, since torch aligns its own memory, and sums can depend on that in their last bits.
            module.load_state_dict({name: torch.tensor(values) for name, values in weights.items()}, assign=True)
            modules.append(module.eval())
        vars(self).update(state, modules=tuple(modules))

    def predict(self, X: AnyArray) -> FloatArray:
        """Coded targets of shape (n_samples, n_outputs)."""
        import torch

        from ngp.kernels.training import Targets

        dtype = next(self.modules[0].parameters()).dtype
        targets = Targets(torch.zeros(0), self.loss)
        results = []
        with torch.no_grad():
            for start in range(0, len(X), PREDICTED_ROWS):
                x = torch.from_numpy(self.reader(X[start : start + PREDICTED_ROWS])).to(dtype)
                results.append(np.mean([targets.coded(module(x)).double().numpy() for module in self.modules], axis=0))
        return np.concatenate(results) * self.target_scale + self.target_mean
