"""Several predictors in one pursuit, with made-up losses: who wins, who is named, who is trained in the end."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path
from ngp.greedy.stopping import MaxFeatures, StopRule
from ngp.predictors.base import ColumnSets, Losses, Predictor, Scorer
from ngp.predictors.committee import Committee, Schedule, bind_predictor, predictor_names
from ngp.predictors.estimator import EstimatorPredictor
from ngp.predictors.mlp import MLP
from ngp.predictors.ssfn import SSFN

NOTHING = np.zeros(0, dtype=np.intp)
CONDITIONS = {"random_state": 0, "n_jobs": None, "device": "cpu"}
LossOf = Callable[[frozenset[int]], float]


@dataclass
class Fake(Predictor):
    """A predictor that looks losses up and keeps what it was asked."""

    name: str
    loss: LossOf = lambda columns: 1.0
    losses: frozenset[str] = frozenset(LOSSES)
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def bind(self, problem: Problem, **conditions: Any) -> FakeScorer:
        self.calls.append(("bind", conditions))
        return FakeScorer(self, problem)


@dataclass
class FakeScorer(Scorer):
    predictor: Fake
    problem: Problem

    def add_losses(self, selected: Any, candidates: ColumnSets) -> Losses:
        self.predictor.calls.append(("add_losses", selected.tolist()))
        sets = [frozenset([*selected.tolist(), *candidates[i].tolist()]) for i in range(len(candidates))]
        means = np.array([self.predictor.loss(columns) for columns in sets])
        weights = self.problem.part_weights
        wave = np.cos(np.arange(len(weights)) + len(self.predictor.name))
        wave -= weights @ wave  # parts differ, their mean is the loss
        return Losses(means[:, None] * (1 + 0.1 * wave), weights)

    def fit(self, selected: Any) -> str:
        self.predictor.calls.append(("fit", selected.tolist()))
        return f"{self.predictor.name} on {selected.tolist()}"


def make_case(loss: str = "auto", n_columns: int = 4) -> Problem:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, n_columns)), rng.normal(size=12)
    if loss in ("cross_entropy", "hinge"):
        y = (y > 0).astype(int)
    return make_problem(X, y, groups=make_groups(None, n_columns), cv=3, loss=loss)


def random_loss(seed: int) -> LossOf:
    return lambda columns: float(np.random.default_rng([seed, *sorted(columns)]).uniform(1, 2))


def bound(*members: Any, problem: Problem | None = None) -> Any:
    return Committee(members).bind(make_case() if problem is None else problem, **CONDITIONS)


def singles(n_columns: int = 4) -> ColumnSets:
    return ColumnSets.singles(np.arange(n_columns))


# Committees


@given(seed=st.integers(0, 1000), n_members=st.integers(1, 4))
def test_the_loss_of_a_candidate_is_the_smallest_of_the_members(seed: int, n_members: int) -> None:
    problem = make_case()
    members = [Fake("abcd"[i] * (i + 1), random_loss(seed + i)) for i in range(n_members)]
    found = bound(*members, problem=problem).add_losses(NOTHING, singles())
    alone = [member.bind(problem).add_losses(NOTHING, singles()) for member in members]
    for i in range(4):
        winner = min(range(n_members), key=lambda m: alone[m].means[i])
        assert found.predictors[i] == members[winner].name
        np.testing.assert_array_equal(found.parts[i], alone[winner].parts[i])
    np.testing.assert_array_equal(found.weights, problem.part_weights)


def test_the_first_of_equal_members_wins() -> None:
    found = bound(Fake("one", lambda columns: 1.0), Fake("other", lambda columns: 1.0)).add_losses(NOTHING, singles())
    assert found.predictors.tolist() == ["one"] * 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_members_without_a_finite_loss_lose(bad: float) -> None:
    failing = Fake("failing", lambda columns: bad if columns & {1, 3} else 0.5)
    hopeless = Fake("hopeless", lambda columns: bad)
    found = bound(failing, hopeless, Fake("steady", lambda columns: 1.0)).add_losses(NOTHING, singles())
    assert found.predictors.tolist() == ["failing", "steady", "failing", "steady"]
    np.testing.assert_allclose(found.means, [0.5, 1.0, 0.5, 1.0])
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(bound(failing, hopeless).add_losses(NOTHING, singles()).means[[1, 3]]).any()


def test_the_member_with_the_lowest_loss_is_trained() -> None:
    good_alone = Fake("good alone", lambda columns: 1.0 if len(columns) < 2 else 9.0)
    good_together = Fake("good together", lambda columns: 2.0)
    scorer = bound(good_alone, good_together)
    assert scorer.fit(np.array([2])) == "good alone on [2]"
    assert scorer.fit(np.array([2, 0])) == "good together on [2, 0]"
    assert ("fit", [2, 0]) not in good_alone.calls


def test_a_member_without_a_finite_loss_is_not_trained() -> None:
    scorer = bound(Fake("failing", lambda columns: np.nan), Fake("steady", lambda columns: 1e9))
    assert scorer.fit(np.array([1])) == "steady on [1]"


def test_a_single_member_is_trained_without_further_questions() -> None:
    member = Fake("only", lambda columns: 1.0)
    assert bound(member).fit(np.array([1])) == "only on [1]"
    assert [call for call, _ in member.calls] == ["bind", "fit"]


def test_all_members_work_under_the_same_conditions() -> None:
    members = [Fake(name, lambda columns: 1.0) for name in "ab"]
    bound(*members)
    assert [member.calls for member in members] == [[("bind", CONDITIONS)]] * 2


def test_only_members_that_use_a_gpu_are_given_one() -> None:
    members = [Fake(name, lambda columns: 1.0) for name in "ab"]
    members[1].uses_gpu = True
    Committee(members).bind(make_case(), **CONDITIONS | {"device": "cuda"})
    assert [member.calls[0][1]["device"] for member in members] == ["cpu", "cuda"]
    with pytest.raises(ValueError, match=r"^device='cuda' can't run a: use device='cpu' or 'auto'\.$"):
        bind_predictor(members[0], make_case(), **CONDITIONS | {"device": "cuda"})


def test_members_of_the_same_kind_are_numbered() -> None:
    members = [SSFN(), MLP(), SSFN(n_units=20), EstimatorPredictor(Ridge()), EstimatorPredictor(Ridge(2.0))]
    assert Committee(members).names == ("SSFN 1", "MLP", "SSFN 2", "Ridge 1", "Ridge 2")
    assert Committee(members[:2]).names == ("SSFN", "MLP")
    assert predictor_names([Fake("own name", lambda columns: 1.0), SSFN()]) == ("own name", "SSFN")


def test_a_committee_scores_what_all_its_members_score() -> None:
    few = Fake("few", lambda columns: 1.0, frozenset({"squared_error", "hinge"}))
    assert Committee([SSFN(), few]).losses == {"squared_error", "hinge"}


def test_a_committee_prefers_what_all_its_members_prefer() -> None:
    assert Committee([MLP(), MLP(n_units=3)]).classification_loss == "cross_entropy"
    assert Committee([MLP(), SSFN()]).classification_loss == "squared_error"
    assert Committee([SSFN(), Fake("no preference", lambda columns: 1.0)]).classification_loss == "squared_error"


def test_a_member_that_cannot_score_the_loss_is_named() -> None:
    plain = Fake("plain", lambda columns: 1.0, frozenset({"squared_error"}))
    with pytest.raises(ValueError, match=r"^loss='hinge' can't be scored by plain: use one of squared_error\.$"):
        bound(SSFN(), plain, problem=make_case("hinge"))
    bind_predictor(plain, make_case("squared_error"), **CONDITIONS)


def test_a_scorer_of_scikit_learn_is_for_its_estimators() -> None:
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(12, 2)), rng.normal(size=12), groups=make_groups(None, 2), scoring="r2")
    bind_predictor(EstimatorPredictor(Ridge()), problem, **CONDITIONS)
    with pytest.raises(ValueError, match="scoring is for scikit-learn estimators, and MLP is none: use loss instead"):
        bound(EstimatorPredictor(Ridge()), MLP(), problem=problem)


def test_real_members() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    problem = make_problem(X, X[:, 0] + np.abs(X[:, 1]), groups=make_groups(None, 4), cv=3)
    members = [
        SSFN(n_units=10, n_draws=1, refit_units=10),
        MLP(n_units=10, epochs=2, n_draws=1, refit_epochs=2),
        EstimatorPredictor(Ridge()),
    ]
    scorer = bound(*members, problem=problem)
    candidates = ColumnSets.of([[0], [1], [2, 3], []])
    found = scorer.add_losses(np.array([3]), candidates)
    alone = np.array(
        [member.bind(problem, **CONDITIONS).add_losses(np.array([3]), candidates).means for member in members]
    )
    np.testing.assert_allclose(found.means, alone.min(axis=0), rtol=1e-12)
    names = np.array(["SSFN", "MLP", "Ridge"])
    assert found.predictors.tolist() == names[alone.argmin(axis=0)].tolist()
    assert scorer.fit(np.array([0, 1])).predict(X).shape == (40, 1)
    copy = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_array_equal(copy.add_losses(np.array([3]), candidates).parts, found.parts)


# Pursuits


def run(predictor: Any, rule: StopRule, fixed: tuple[int, ...] = (), name: str = "") -> Path:
    problem = make_case()
    scorer = predictor.bind(problem, **CONDITIONS)
    return pursue(Search(problem, scorer, predictor=name), rule, fixed=np.array(fixed, dtype=np.intp))


def test_every_step_says_who_predicted() -> None:
    early = Fake("early", lambda columns: 3.0 - 0.1 * min(columns))
    late = Fake("late", lambda columns: {1: 4.0, 2: 2.0}.get(len(columns), 5.0))
    path = run(Committee([early, late]), MaxFeatures(3), name="committee")
    assert [step.predictor for step in path.steps] == ["constant", "early", "late", "early"]
    np.testing.assert_allclose([step.loss for step in path.steps[1:]], [2.7, 2.0, 3.0])
    assert path.steps[2].before == pytest.approx(2.7)


def test_fixed_columns_are_predicted_by_the_best_member() -> None:
    members = [Fake("one", lambda columns: 3.0), Fake("other", lambda columns: 2.0)]
    path = run(Committee(members), MaxFeatures(3), fixed=(1,))
    assert path.steps[0].predictor == "other"
    assert path.steps[0].loss == pytest.approx(2.0)
    assert next(call for call in members[0].calls if call[0] == "add_losses") == ("add_losses", [])


def of_steps(asked: list[int] | None = None) -> Schedule:
    """Make a predictor for each step, which is named after it."""

    def predictor_of(step: int) -> Fake:
        if asked is not None:
            asked.append(step)
        return Fake(f"step {step}", lambda columns: 5.0 - len(columns) - 0.1 * max(columns, default=0))

    return Schedule(predictor_of)


def test_steps_are_counted_from_one() -> None:
    asked: list[int] = []
    path = run(of_steps(asked), MaxFeatures(3), name="schedule")
    assert [step.predictor for step in path.steps] == ["constant", "step 1", "step 2", "step 3"]
    assert sorted(set(asked)) == [1, 2, 3]
    assert asked == sorted(asked)


def test_fixed_columns_are_predicted_as_in_the_first_step() -> None:
    asked: list[int] = []
    path = run(of_steps(asked), MaxFeatures(4), fixed=(3, 0))
    assert [step.predictor for step in path.steps] == ["step 1", "step 1", "step 2"]
    assert path.columns.tolist() == [3, 0, 1, 2]


def test_a_step_may_have_a_committee() -> None:
    def predictor_of(step: int) -> Any:
        poor, good = Fake("poor", lambda columns: 9.0), Fake("good", lambda columns: 5.0 - len(columns))
        return Committee([poor, good]) if step == 2 else poor

    path = run(Schedule(predictor_of), MaxFeatures(2))
    assert [step.predictor for step in path.steps[1:]] == ["poor", "good"]


def test_the_final_predictor_is_the_one_of_its_step() -> None:
    scorer = of_steps().bind(make_case(), **CONDITIONS)
    assert scorer.at(2).fit(np.array([3, 2])) == "step 2 on [3, 2]"
    plain = Fake("plain", lambda columns: 1.0).bind(make_case())
    assert plain.at(2) is plain


def test_what_a_schedule_scores_is_what_its_first_predictor_scores() -> None:
    few = Fake("few", lambda columns: 1.0, frozenset({"squared_error"}))
    schedule = Schedule(lambda step: few if step == 1 else MLP())
    assert schedule.losses == {"squared_error"}
    assert schedule.classification_loss == "squared_error"
    assert Schedule(lambda step: MLP()).classification_loss == "cross_entropy"


def test_a_later_predictor_that_cannot_score_the_loss_is_named() -> None:
    plain = Fake("plain", lambda columns: 1.0, frozenset({"squared_error"}))
    schedule = Schedule(lambda step: plain if step == 2 else Fake("any", lambda columns: 1.0))
    scorer = schedule.bind(problem := make_case("hinge"), **CONDITIONS)
    with pytest.raises(ValueError, match="loss='hinge' can't be scored by plain: use one of squared_error"):
        pursue(Search(problem, scorer), MaxFeatures(2), fixed=NOTHING)
