"""What comes before the first step, of a fit and of its estimate alike."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from ngp._types import IntArray
from ngp.data.encoding import check_training_data, checked_cv
from ngp.data.groups import column_numbers, make_groups
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.rule_parts import chance_level
from ngp.greedy.screening import Screening
from ngp.greedy.significance import Chance
from ngp.greedy.stopping import (
    BeyondChance,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxFits,
    MaxTime,
    Plateau,
    RelativeImprovement,
    StopRule,
)
from ngp.predictors.base import Predictor, Scorer
from ngp.predictors.committee import bind_predictor, resolve_predictor

if TYPE_CHECKING:
    from ngp.selector import NeuralGreedyPursuit

__all__ = ["Prepared", "prepare", "stop_rule"]


class Prepared(NamedTuple):
    """What a selector is to work on."""

    problem: Problem  # the data and the candidates
    predictor: Predictor  # what is retrained
    fixed: IntArray  # columns of the problem that are selected from the start
    seed: int  # of folds and random layers

    def bind(self, selector: NeuralGreedyPursuit) -> Scorer:
        """The predictor, ready to score."""
        return bind_predictor(
            self.predictor, self.problem, random_state=self.seed, n_jobs=selector.n_jobs, device=selector.device
        )

    def search(self, selector: NeuralGreedyPursuit) -> Search:
        """What finds the best candidate of a step."""
        return Search(
            self.problem,
            self.bind(selector),
            None if selector.screen is None else Screening(selector.screen, self.seed, selector.n_jobs),
            look_ahead=selector.look_ahead,
            beam_width=selector.beam_width,
            predictor=self.predictor.name,
        )

    def chance(self, selector: NeuralGreedyPursuit, rule: StopRule) -> Chance | None:
        """What says how much a step gains by chance, if a rule asks for it."""
        level = chance_level(rule)
        if level is None:
            return None
        return Chance(lambda problem: self._replace(problem=problem).search(selector), self.seed, level)


def prepare(
    selector: NeuralGreedyPursuit,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    cv_groups: npt.ArrayLike | None,
    seed: int | None = None,
) -> Prepared:
    """Check what `fit` is given, and make a problem of it; whether columns vary is not yet asked."""
    if isinstance(selector.stop, type):
        name = selector.stop.__name__
        raise TypeError(f"stop={name} is a class: give an object, made with {name}(…).")
    if selector.n_resamples % 2:
        raise ValueError(f"n_resamples={selector.n_resamples} is odd, but halves come in pairs: give an even number.")
    predictor = resolve_predictor(selector.predictor)
    data, targets = check_training_data(selector, X, y)
    selector._single_output = targets.ndim == 1
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
    if seed is None:
        seed = check_random_state(selector.random_state).randint(np.iinfo(np.int32).max)
    names, n_features = selector.encoder_.feature_names_, selector.n_features_in_
    groups = make_groups(selector.groups, n_features, names)
    fixed = column_numbers("fixed", () if selector.fixed is None else selector.fixed, n_features, names)
    blocks = selector.encoder_.feature_groups_
    selector.groups_, selector.fixed_ = groups, fixed
    if blocks is not None:
        groups = groups.expand(blocks)
        fixed = np.concatenate([fixed[:0], *(blocks[column] for column in fixed)])
    if predictor.scoring is not None and selector.loss != "auto":
        raise ValueError(
            f"loss={selector.loss!r} and scoring={predictor.scoring!r} exclude each other: give only one of them."
        )
    problem = make_problem(
        data,
        targets,
        groups=groups,
        task=selector.task,
        cv=checked_cv(selector),
        loss=selector.loss,
        classification_loss=predictor.classification_loss,
        sample_weight=weights,
        cv_groups=None if cv_groups is None else np.asarray(cv_groups),
        random_state=seed,
    )
    return Prepared(problem, predictor, fixed, seed)


def stop_rule(selector: NeuralGreedyPursuit, problem: Problem, fixed: IntArray) -> StopRule:
    """What the parameters of a selector say about the end of a pursuit."""
    number, n_fixed = selector.n_features_to_select, len(selector.fixed_)
    limits: list[StopRule] = []
    if isinstance(number, Integral):
        most = problem.n_candidates(fixed) + n_fixed
        if number > most:
            raise ValueError(
                f"n_features_to_select={number} is more than the {most} features that vary: give at most {most}."
            )
        if number < n_fixed:
            raise ValueError(f"n_features_to_select={number} is less than the {n_fixed} fixed columns: give more.")
        limits.append(MaxFeatures(int(number)))
    elif number is not None and selector.groups_.are_columns:
        limits.append(MaxFeatures(max(1, round(float(number) * selector.n_features_in_))))
    elif number is not None:
        limits.append(MaxColumns(max(1, round(float(number) * problem.n_columns))))
    rules = [*limits, *_what_pays(selector.tol, selector.stop, bool(limits))]
    if selector.max_time is not None:
        rules.append(MaxTime(selector.max_time))
    if selector.max_fits is not None:
        rules.append(MaxFits(selector.max_fits))
    return rules[0] if len(rules) == 1 else FirstOf(rules)


def _what_pays(tol: float | None, stop: str | StopRule | None, limited: bool) -> list[StopRule]:
    """The rule that says when a step no longer pays; none where there is a limit and nothing else is asked for."""
    if stop is not None and tol is not None:
        raise ValueError(f"tol={tol} and stop={stop!r} are two rules for one thing: give one of them.")
    if tol is not None:
        return [RelativeImprovement(tol)]
    if stop is None:
        return [] if limited else [BeyondChance()]
    if isinstance(stop, str):
        return [BeyondChance() if stop == "auto" else Plateau()]
    return [stop]
