"""Values and steps as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import report_cases as cases
from sklearn.datasets import load_wine

from ngp import NeuralGreedyPursuit
from ngp._formatting import (
    cuts_in_words,
    duration,
    group_names,
    left_behind,
    loss_change,
    named_score,
    number,
    only_additions,
    outcomes,
    step_in_words,
    taken_back,
    undone,
    visible,
    with_error,
)
from ngp.greedy.path import Step, additions, chosen, finished


def steps_of(words: str, taken: Sequence[int] = ()) -> tuple[Step, ...]:
    """A path such as "+1 +2 -1 3/2", of which some steps were taken back, as a pursuit would mark it."""
    first = cases.decoy().selector.path_[0]
    steps, stood = [first], 0
    for place, word in enumerate(words.split(), 1):
        added, _, dropped = word.partition("/") if "/" in word else (word[1:], "", word[1:])
        action: Literal["add", "drop", "swap"] = "swap" if "/" in word else "add" if word[0] == "+" else "drop"
        group, gone = (None if action == "drop" else int(added)), (None if action == "add" else int(dropped))
        steps.append(
            replace(
                first,
                action=action,
                group=group,
                dropped=gone,
                name=f"x{added}",
                columns=np.array([int(added)]),
                n_selected=steps[-1 if place in taken else stood].n_selected
                + {"add": 1, "swap": 0, "drop": -1}[action],
                kept=place not in taken,
            )
        )
        stood = stood if place in taken else place
    return finished(steps, "").steps


@pytest.mark.parametrize("name", ["regression", "categories", *cases.FLOATING])
def test_steps_that_stood_lead_to_the_selection(name: str) -> None:
    selector = cases.CASES[name]().selector
    steps = selector.path_
    back, later = taken_back(steps), undone(steps)
    stood = [step for place, step in enumerate(steps) if place not in back]
    assert [group for group in chosen(stood) if group is not None] == selector.order_.tolist()
    assert {place for place, step in enumerate(steps) if not step.kept} == back | set(later)
    assert all(steps[place].group == steps[by].dropped and place < by for place, by in later.items())
    assert only_additions(steps) is (name not in cases.FLOATING)
    for place, step in enumerate(stood):
        assert len(chosen(stood[: place + 1])) - 1 + len(selector.fixed_) == step.n_selected


@pytest.mark.parametrize(
    ("words", "taken", "expected"),
    [
        ("+1 +2 +3", [3], ["", "", "", "taken back"]),
        ("+1 +2 -1", [], ["", "dropped in step 3", "", ""]),
        ("+1 +2 3/1", [], ["", "exchanged in step 3", "", ""]),
        ("+1 +2 +3 3/1 -3", [3], ["", "exchanged in step 4", "", "taken back",
                                  "dropped in step 5", ""]),
        ("+1 +2 -1 +1", [], ["", "dropped in step 3", "", "", ""]),
        ("+1 +2 -1 +1", [3, 4], ["", "", "", "taken back", "taken back"]),
        ("+1 +2 3/1 1/2", [], ["", "exchanged in step 3", "exchanged in step 4", "", ""]),
    ],
)  # fmt: skip
def test_outcomes_of_steps(words: str, taken: list[int], expected: list[str]) -> None:
    assert outcomes(steps_of(words, taken)) == expected


def test_each_unselected_group_is_listed_once() -> None:
    assert left_behind(steps_of("+1 +2 +3", [3])) == ([], ["x3"])
    assert left_behind(steps_of("+1 +2 +4 3/1 -3 +3 +4", [3, 6, 7])) == (["x1 (for x3)", "x3"], ["x4"])
    assert left_behind(steps_of("+1 +2 +3 3/1", [3])) == (["x1 (for x3)"], [])  # x3 is selected
    assert left_behind(steps_of("+1 +2 -1 1/2")) == (["x2 (for x1)"], [])  # x1 came back
    assert left_behind(steps_of("+1 +2 -1 +1", [4]), str.upper) == (["X1"], [])


def test_steps_in_words() -> None:
    steps = steps_of("+1 +2 3/1 -2")
    assert group_names(steps) == {1: "x1", 2: "x2", 3: "x3"}
    words = ["(constant prediction)", "add x1", "add x2", "swap x3 in, x1 out", "drop x2"]
    assert [step_in_words(step, steps) for step in steps] == words
    assert step_in_words(steps[3], steps, str.upper) == "swap X3 in, X1 out"
    assert [step.name for step in additions(steps)] == ["x3"]


def test_a_step_says_which_one_it_followed_if_others_were_taken_back() -> None:
    steps = steps_of("+1 +2 +3 +4 -1 +3", [3, 4])
    assert [step_in_words(step, steps) for step in steps[1:]] == [
        "add x1", "add x2", "add x3", "add x4", "drop x1 after step 2", "add x3",
    ]  # fmt: skip
    steps = steps_of("+1 +2 +3 4/1", [3])
    assert step_in_words(steps[4], steps) == "swap x4 in, x1 out after step 2"


def test_the_change_of_a_step_is_from_the_loss_of_the_one_it_follows() -> None:
    X, y = load_wine(return_X_y=True)
    path = NeuralGreedyPursuit(random_state=0).fit(X, y).path_
    followed = [re.search(r" after step (\d+)$", step_in_words(step, path)) for step in path]
    assert any(followed)  # or else there is nothing to be seen here
    for place, (step, found) in enumerate(zip(path, followed, strict=True)):
        if place:
            start = path[int(found[1]) if found else place - 1].loss
            assert (step.before, step.gain) == (start, (start - step.loss) / start)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.25 s"),
        (9.96, "10 s"),
        (59.7, "1 min 0 s"),
        (3599.8, "1 h 0 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3321.4, 212.3, "3,321 ± 212"),
        (0.019876, 0.00423, "0.0199 ± 0.0042"),
        (0.5, float("nan"), "0.5"),
        (0.5, 0.0, "0.5"),
        (0.5, None, "0.5"),
        (None, 0.1, "–"),
        (2.0, 1e-12, "2"),
        (3e-9, 2e-10, "3.00e-09 ± 2.00e-10"),
        (5e12, 2e11, "5.00e+12 ± 2.00e+11"),
    ],
)
def test_numbers_with_their_errors(value: float | None, error: float | None, text: str) -> None:
    assert with_error(value, error) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (float("nan"), "–"), (999.96, "1000"), (1234.5, "1,234"), (-2e-5, "-2.00e-05")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_names_are_made_visible() -> None:
    assert visible("a\tb\u2028c\ud800") == r"a\tb\u2028c\ud800"
    assert visible("größe 名前") == "größe 名前"


def test_changes_of_the_loss_show_which_way_it_went() -> None:
    changes = {0.08: "−8.0%", -0.563: "+56.3%", 0.0: "0.0%", 1e-9: "0.0%", -1e-9: "0.0%", 1.0: "−100.0%"}
    assert {gain: loss_change(gain) for gain in changes} == changes
    assert loss_change(-766225.77) == "+76,622,577.0%"
    assert loss_change(np.nan) == ""


def test_a_score_says_what_it_is() -> None:
    assert named_score(0.5083, 0.0312, "regression") == "R² 0.508 ± 0.031"
    assert named_score(0.972, 0.0071, "classification") == "accuracy 97.2 ± 0.7%"
    assert named_score(1.0, np.nan, "classification") == "accuracy 100.0%"
    assert named_score(-0.02, np.nan, "regression") == "R² −0.020"
    assert named_score(-1e-9, 0.01, "regression") == "R² 0.000 ± 0.010"  # and not -0.000
    assert named_score(np.nan, np.nan, "regression") == ""


def test_the_other_cut_in_words() -> None:
    steps = [replace(step, n_selected=k, score=k / 10, score_error=0.01) for k, step in enumerate(steps_of("+1 +2 +3"))]
    words = cuts_in_words({"significant": 1, "best": 3}, steps, "regression", 0.44, "group")
    assert words == "1 group is beyond chance; 3 predict best (R² 0.300 ± 0.010, all columns 0.440)"
    words = cuts_in_words({"significant": 3, "best": 1}, steps, "classification", np.nan, "feature")
    assert words == "3 features are beyond chance; 1 predicts about as well as any number (accuracy 10.0 ± 1.0%)"
    for cuts in ({}, {"significant": 2, "best": 2}):
        assert cuts_in_words(cuts, steps, "regression", 0.44, "feature") == ""
