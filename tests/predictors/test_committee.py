"""From what users write to a predictor; several in one pursuit, with made-up losses: who wins, who is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ngp.data.groups import make_groups
from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, make_problem
from ngp.greedy.candidates import Search
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path
from ngp.greedy.stopping import MaxFeatures, StopRule
from ngp.predictors import CNN, MLP, SSFN, Kernel
from ngp.predictors.base import ColumnSets, Losses, Predictor, Scorer
from ngp.predictors.committee import (
    PREDICTORS,
    Committee,
    Schedule,
    bind_predictor,
    predictor_names,
    resolve_predictor,
)
from ngp.predictors.estimator import Estimator

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
    members = [SSFN(), MLP(), SSFN(n_units=20), Estimator(Ridge()), Estimator(Ridge(2.0))]
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


def test_all_members_have_the_same_scoring() -> None:
    judged, members = Estimator(Ridge(), scoring="r2"), [Estimator(Ridge(alpha), scoring="r2") for alpha in (1, 2)]
    problem = make_case()
    constant = bound(*members, problem=problem).constant_losses(problem)
    np.testing.assert_array_equal(constant.parts, judged.bind(problem, random_state=0).constant_losses(problem).parts)
    with pytest.raises(ValueError, match=r"predictor: MLP is judged by scoring=None and another one by scoring='r2'"):
        Committee([judged, MLP()])
    schedule = Schedule(lambda step: judged if step == 1 else MLP()).bind(problem, **CONDITIONS)
    with pytest.raises(ValueError, match="give all of them the same"):
        schedule.at(2)


def test_real_members() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    problem = make_problem(X, X[:, 0] + np.abs(X[:, 1]), groups=make_groups(None, 4), cv=3)
    members = [
        SSFN(n_units=10, n_draws=1, refit_units=10),
        MLP(n_units=10, epochs=2, n_draws=1, refit_epochs=2),
        Estimator(Ridge()),
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


# Pursuits


def run(predictor: Any, rule: StopRule, fixed: tuple[int, ...] = (), name: str = "") -> Path:
    problem = make_case()
    scorer = predictor.bind(problem, **CONDITIONS)
    return pursue(Search(problem, lambda each: scorer, predictor=name), rule, fixed=np.array(fixed, dtype=np.intp))


def test_every_step_says_who_predicted() -> None:
    early = Fake("early", lambda columns: 3.0 - 0.1 * min(columns))
    late = Fake("late", lambda columns: {1: 4.0, 2: 2.0}.get(len(columns), 5.0))
    path = run(Committee([early, late]), MaxFeatures(3), name="committee")
    assert [step.predictor for step in path.steps] == ["constant", "early", "late", "early"]
    np.testing.assert_allclose([step.loss for step in path.steps[1:]], [2.7, 2.0, 3.0])
    assert path.steps[2].paired == pytest.approx(2.7)


def test_fixed_columns_are_predicted_by_the_best_member() -> None:
    members = [Fake("one", lambda columns: 3.0), Fake("other", lambda columns: 2.0)]
    path = run(Committee(members), MaxFeatures(3), fixed=(1,))
    assert path.steps[0].predictor == "other"
    assert path.steps[0].loss == pytest.approx(2.0)
    assert next(call for call in members[0].calls if call[0] == "add_losses") == ("add_losses", [1])


def test_where_nothing_is_tuned_candidates_are_scored_once() -> None:
    members = [Fake("one", lambda columns: 3.0), Fake("other", lambda columns: 2.0)]
    run(Committee(members), MaxFeatures(1))
    for member in members:
        assert [call for call in member.calls if call[0] == "add_losses"] == [("add_losses", [])]


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
        pursue(Search(problem, lambda each: scorer), MaxFeatures(2), fixed=NOTHING)


# What users write


@pytest.mark.parametrize(("name", "kind"), [("ssfn", SSFN), ("mlp", MLP), ("cnn", CNN), ("kernel", Kernel)])
def test_names(name: str, kind: type) -> None:
    found = resolve_predictor(name)
    assert type(found) is kind
    assert found.get_params() == kind().get_params()
    assert name in PREDICTORS


@pytest.mark.parametrize("predictor", [SSFN(n_units=7), MLP(n_units=7), CNN(epochs=7), Kernel(), Committee([SSFN()])])
def test_predictors_stay_as_they_are(predictor: Any) -> None:
    assert resolve_predictor(predictor) is predictor


def test_anything_that_can_be_bound_is_a_predictor() -> None:
    class Own(Predictor):
        losses = frozenset({"squared_error"})

        def bind(self, problem: Any, **conditions: Any) -> Any:
            raise AssertionError("nobody asked for this")

        def __call__(self, step: int) -> Any:  # which doesn't make it a schedule
            raise AssertionError("nobody asked for this")

    own = Own()
    assert resolve_predictor(own) is own
    assert resolve_predictor([own]).names == ("Own",)


@pytest.mark.parametrize("estimator", [Ridge(), SVC(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_estimators_are_wrapped(estimator: Any) -> None:
    found = resolve_predictor(estimator)
    assert isinstance(found, Estimator)
    assert found.estimator is estimator


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_committees(kind: type) -> None:
    found = resolve_predictor(kind(["ssfn", MLP(n_units=3), Ridge(), "mlp"]))
    assert isinstance(found, Committee)
    assert found.names == ("SSFN", "MLP 1", "Ridge", "MLP 2")
    assert resolve_predictor(["ssfn"]).names == ("SSFN",)


def test_callables_are_schedules() -> None:
    choices = {1: "ssfn", 2: MLP(n_units=3), 3: Ridge(), 4: ["ssfn", "kernel"]}
    found = resolve_predictor(choices.get)
    assert isinstance(found, Schedule)
    assert [type(found.predictor_of(step)) for step in choices] == [SSFN, MLP, Estimator, Committee]
    assert found.predictor_of(2) is choices[2]


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": ("forest", ValueError, "predictor='forest' is unknown: use one of ssfn, mlp, cnn, kernel."),
    "unknown name in a list": (["ssfn", "MLP"], ValueError, "predictor='MLP' is unknown: use one of ssfn, mlp"),
    "empty list": ([], ValueError, r"predictor=\[\] is empty: give at least one predictor"),
    "class": (MLP, TypeError, r"predictor=MLP is a class: give an object, made with MLP\(…\)"),
    "class in a list": (["ssfn", SVC], TypeError, r"predictor=SVC is a class: give an object, made with SVC\(…\)"),
    "number": (5, TypeError, r"predictor=5 can't predict: give a name \(ssfn, mlp, cnn, kernel\), an object of"),
    "None": (None, TypeError, "predictor=None can't predict: .* or a callable that returns one for each step"),
    "transformer": (PCA(), TypeError, r"predictor=PCA\(\) can't predict"),
    "number in a list": (["ssfn", 5], TypeError, "predictor=5 can't predict"),
    "list in a list": (["ssfn", ["mlp"]], TypeError, r"predictor=\['mlp'\] can't predict"),
    "callable in a list": (["ssfn", lambda step: "mlp"], TypeError, "predictor=<function .* can't predict"),
}


@pytest.mark.parametrize(("given", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve_predictor(given)


def test_mistakes_of_a_step_are_named() -> None:
    schedule = resolve_predictor({1: "ssfn", 2: lambda step: "mlp", 3: MLP}.get)
    assert type(schedule.predictor_of(1)) is SSFN
    with pytest.raises(TypeError, match="returned a callable for step 2: it must return a predictor"):
        schedule.predictor_of(2)
    with pytest.raises(TypeError, match="predictor=MLP is a class"):
        schedule.predictor_of(3)


def test_a_torch_network_is_no_schedule() -> None:
    with pytest.raises(TypeError, match=r"Linear is a torch module: give CNN\(network=…\) a function"):
        resolve_predictor(pytest.importorskip("torch").nn.Linear(3, 1))


def test_an_estimator_that_can_be_called_is_an_estimator() -> None:
    class Called(Ridge):
        def __call__(self, X: Any) -> Any:
            return self.predict(X)

    assert isinstance(resolve_predictor(Called()), Estimator)
