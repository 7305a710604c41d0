"""How an `SSFN` scores candidates on the GPUs of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs

from ngp._types import FloatArray, IntArray
from ngp.data.problem import Problem
from ngp.kernels.devices import resolve_device
from ngp.kernels.parallel import run_tasks
from ngp.predictors.base import ColumnSets, Losses
from ngp.predictors.recipe import Recipe
from ngp.predictors.ssfn_gpu import SSFNGpuScorer
from ngp.predictors.ssfn_scorer import SSFNScorer

__all__ = ["SSFNClusterScorer"]

# So many tasks that no worker waits long for the last one, each large enough for a GPU.
CHUNKS_PER_WORKER = 4


@dataclass(frozen=True)
class SSFNClusterScorer(SSFNGpuScorer):
    """An `SSFN` bound to a problem; workers score the candidates, each on the GPU that it sees.

    Each worker has an `SSFNGpuScorer` of its own, which keeps the columns in the GPU's memory from step to step.
    """

    @cached_property
    def recipe(self) -> Recipe[SSFNScorer]:
        """What a worker makes its scorer of."""
        return Recipe(SSFNGpuScorer, Recipe.of(self).settings)

    def add_losses(self, selected: IntArray, candidates: ColumnSets) -> Losses:
        """Validation losses of S + g for the new columns g of every candidate."""
        length = max(1, -(-len(candidates) // (CHUNKS_PER_WORKER * int(effective_n_jobs(self.n_jobs)))))
        starts = range(0, len(candidates), length)
        arguments = [(selected, candidates.part(start, start + length)) for start in starts]
        parts = run_tasks(_worker_losses, arguments, self.n_jobs, shared=(self.problem, self.recipe))
        return Losses(np.concatenate(parts), self.problem.part_weights)


def _worker_losses(
    problem: Problem, recipe: Recipe[SSFNGpuScorer], selected: IntArray, candidates: ColumnSets
) -> FloatArray:
    scorer = recipe.make(problem)
    resolve_device(scorer.gpu, scorer.dtype.name)  # says so where the worker sees no GPU
    return scorer.add_losses(selected, candidates).parts
