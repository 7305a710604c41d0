"""What a fit would cost: predicted from a little of its work."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from ngp._formatting import counted, duration
from ngp._types import IntArray
from ngp.data.problem import check_columns
from ngp.greedy.calibration import look_at_columns, watched_memory
from ngp.greedy.candidates import Candidates, Search
from ngp.greedy.look_ahead import n_sets
from ngp.greedy.path import Step
from ngp.greedy.rehearsal import Rehearsal
from ngp.greedy.rule_parts import chance_level, room_left
from ngp.greedy.screening import n_scored
from ngp.greedy.significance import FEWEST_DRAWS, bytes_kept
from ngp.greedy.stopping import NO_CANDIDATE_LEFT, Stop, StopRule
from ngp.kernels.parallel import keep_workers
from ngp.preparation import prepare, stop_rule

if TYPE_CHECKING:
    from ngp.selector import NeuralGreedyPursuit

__all__ = ["Estimate", "estimate_fit"]

# Steps where no number is given: then the losses decide, and nobody knows them before.
ASSUMED_STEPS = 10
# How many steps a stop rule is asked about that may have a limit of its own.
IMAGINED_STEPS = 300
HUGE_GAIN = 1e9
# What a thread, its scratch and the allocator take, which no array shows, and the least that is worth naming.
THREAD_BYTES = 8_000_000
LEAST_BYTES = 50_000_000


@dataclass(frozen=True)
class Estimate:
    """What a fit would cost; made by `NeuralGreedyPursuit.estimate`.

    Attributes
    ----------
    seconds : float
        Time of the whole fit: first look at X, steps, final predictor, and with `n_resamples` the halves of the rows.
    step_seconds : tuple of float
        Time of each step, on all rows.
    memory : int
        Bytes that the process needs beside X and what it has now, at the peak; 50 MB at least. Worker processes have
        their own, and so have GPUs.
    n_steps : int
        How many steps were assumed.
    assumption : str
        Why so many.
    n_fits : int
        How many candidates are trained in them, each on all folds; with `n_resamples`, also on halves of the rows.
    device : str
        Where candidates are scored.
    n_jobs : int
        How many tasks run side by side.
    rough : bool
        Whether candidates took so long that only a few were timed.

    Examples
    --------
    >>> import numpy as np
    >>> from ngp import NeuralGreedyPursuit
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> estimate = NeuralGreedyPursuit(n_features_to_select=3, random_state=0).estimate(X, X[:, 0])
    >>> estimate.n_fits
    57
    >>> print(estimate)
    About ... for 3 steps with 57 fits (... a step), and about ... MB of memory beside X.
    Assumed: every step pays, until 3 of at most 3 features are selected. Device cpu, 1 job.
    """

    seconds: float
    step_seconds: tuple[float, ...]
    memory: int
    n_steps: int
    assumption: str
    n_fits: int
    device: str
    n_jobs: int
    rough: bool

    def __str__(self) -> str:
        work = f"{counted(self.n_steps, 'step')} with {counted(self.n_fits, 'fit')}"
        if self.n_steps:
            work += f" ({duration(sum(self.step_seconds) / self.n_steps)} a step)"
        lines = [
            f"About {duration(self.seconds)} for {work}, and about {_megabytes(self.memory)} of memory beside X.",
            f"Assumed: {self.assumption}. Device {self.device}, {counted(self.n_jobs, 'job')}.",
        ]
        if self.rough:
            lines.append("This is rough: candidates take so long that only a few were tried.")
        return "\n".join(lines)


def _megabytes(n_bytes: int) -> str:
    """Bytes in MB or GB, with two digits."""
    number = float(f"{n_bytes / 1e6:.2g}")
    return f"{number:,.0f} MB" if number < 1000 else f"{number / 1000:g} GB"


def estimate_fit(
    selector: NeuralGreedyPursuit,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    cv_groups: npt.ArrayLike | None,
) -> Estimate:
    """Predict what a fit costs; the selector stays as it is."""
    asked = copy(selector)
    asked.random_state = deepcopy(selector.random_state)  # which would go on, were it a generator
    begin = perf_counter()
    with watched_memory() as growth:
        prepared = prepare(asked, X, y, sample_weight, cv_groups)
        preparing, problem, fixed = perf_counter() - begin, prepared.problem, prepared.fixed
        scan = look_at_columns(problem)
        check_columns(problem, fixed)
        with threadpool_limits(1, user_api="blas"), keep_workers():
            search = prepared.search(asked)
            plan = Plan.of(asked, search, fixed)
            n_steps = len(plan.steps(lambda *_: 0.0)[0])
            screening = search.screening
            trial = Rehearsal(problem, search.scorer, screening, fixed, n_steps, scan.columns, asked.n_jobs)
            steps, assumption = plan.steps(trial.step_seconds)
            total = preparing + scan.seconds + trial.once_seconds + trial.final_seconds
            # One draw after the other: there are the columns of one, and the losses of its candidates.
            n_bytes = trial.n_bytes(max((step.n_fits for step in steps), default=1) // plan.n_times)
            n_bytes += bytes_kept(problem) if plan.n_times > 1 else 0
    vectors = 8 * (3 * problem.n_columns + (len(steps) + 1) * problem.groups.n_groups)  # statistics, and all losses
    return Estimate(
        seconds=total + sum(step.seconds for step in steps) * (1 + asked.n_resamples / 2),  # halves of the rows
        step_seconds=tuple(step.seconds for step in steps),
        memory=max(LEAST_BYTES, vectors + max([trial.tasks * THREAD_BYTES + n_bytes, *growth])),
        n_steps=len(steps),
        assumption=assumption,
        n_fits=(sum(step.n_fits for step in steps) + int(len(fixed) > 0)) * (1 + asked.n_resamples),
        device=trial.device,
        n_jobs=trial.tasks,
        rough=trial.slow,
    )


@dataclass(frozen=True)
class Plan:
    """Which steps a fit would make, if every one of them paid."""

    rule: StopRule  # says when to stop
    start: Step  # what a fit begins with
    sizes: IntArray  # number of columns of each candidate of the first step
    search: Search  # says how many candidates and sets of them are scored
    floating: bool  # whether selected groups are dropped and exchanged
    # what decides how many there are: a number, the losses, or a rule of the user's, which may do either
    end: Literal["number", "losses", "rule"]

    @classmethod
    def of(cls, selector: NeuralGreedyPursuit, search: Search, fixed: IntArray) -> Plan:
        """What the parameters of a selector lead to."""
        problem = search.problem
        parts = problem.part_weights
        start = Step(
            action="start",
            group=None,
            name="",
            columns=fixed,
            before=nan,
            loss=1.0,
            standard_error=0.0,
            gain=nan,
            runner_up=None,
            runner_up_loss=nan,
            seconds=0.0,
            n_fits=int(len(fixed) > 0),
            n_selected=len(selector.fixed_),
            n_columns=len(fixed),
            fold_losses=np.ones(len(parts)),
            fold_weights=parts,
            losses=np.zeros(0),
            predictor="",
        )
        sizes = Candidates.beside(problem, fixed).columns.sizes
        if selector.n_features_to_select is not None:
            end: Literal["number", "losses", "rule"] = "number"
        else:
            end = "losses" if selector.stop in (None, "auto") else "rule"
        return cls(stop_rule(selector, problem, fixed), start, sizes, search, selector.floating, end)

    @property
    def n_times(self) -> int:
        """How many times the candidates of a step are scored: once, and as often on columns drawn anew as it takes."""
        return 1 if chance_level(self.rule) is None else 1 + FEWEST_DRAWS

    def steps(self, seconds: Callable[[int, int, int], float]) -> tuple[list[Step], str]:
        """Imagine the steps after the start, and say why there are so many."""
        steps, n_groups = [self.start], len(self.sizes)
        limits = {"number": n_groups + 1, "losses": ASSUMED_STEPS, "rule": IMAGINED_STEPS}
        for made in range(limits[self.end] + 1):
            exhausted = made == n_groups
            stop = self.rule.check(steps, exhausted=exhausted)
            if stop is None and exhausted:
                stop = Stop(NO_CANDIDATE_LEFT, made)
            if stop is not None:
                # That many steps would always pay is believed only where somebody has set their number.
                meant = self.end == "number" or not (stop.partial or exhausted)
                if meant or made <= ASSUMED_STEPS:
                    return self._exchanged(steps, seconds), f"every step pays, until {stop.reason}"
                break
            steps.append(self._next(steps[-1], made, n_groups - made, seconds))
        steps = self._exchanged(steps[: 1 + ASSUMED_STEPS], seconds)
        return steps, f"{counted(len(steps), 'step')}, since the losses decide how many there are"

    def _next(self, last: Step, made: int, n_left: int, seconds: Callable[[int, int, int], float]) -> Step:
        """A step that improves the loss more than any rule asks for."""
        looked, number = self._n_scored(n_left, room_left(self.rule, last))
        loss, times = 1 / (made + 2), self.n_times
        return replace(
            last,
            action="add",
            before=HUGE_GAIN * loss,
            loss=loss,
            fold_losses=np.full_like(last.fold_losses, loss),
            seconds=times * seconds(made, looked, number),
            n_fits=times * number,
            chance=0.0,
            n_selected=last.n_selected + 1,
            n_columns=last.n_columns + max(1, round(float(self.sizes.mean()))),
        )

    def _n_scored(self, n_left: int, room: int | None) -> tuple[int, int]:
        """How many candidates, or sets of them, a step looks at, and how many of them it scores."""
        search, screening = self.search, self.search.screening
        depth = min(search.look_ahead, n_left, search.look_ahead if room is None else max(1, room))
        sets = n_sets(n_left, depth, search.beam_width, screening is not None)
        if screening is None:
            return n_left + sets, n_left + sets
        return max(n_left, sets), n_scored(screening.screen, sets) + n_left if sets else n_scored(
            screening.screen, n_left
        )

    def _exchanged(self, steps: list[Step], seconds: Callable[[int, int, int], float]) -> list[Step]:
        """The steps after the start; the last one with what it takes to see that nothing is better exchanged."""
        made = len(steps) - 1
        if not self.floating or made == 0:
            return steps[1:]
        last, n_left = steps[-1], len(self.sizes) - made + 1
        number = n_left if self.search.screening is None else n_scored(self.search.screening.screen, n_left)
        times = 2 * made  # each group exchanged for all others, and left out
        duration_of_all = last.seconds + times * seconds(made - 1, n_left, number)
        return [*steps[1:-1], replace(last, seconds=duration_of_all, n_fits=last.n_fits + times * number)]
