"""What the steps of a pursuit did, and what became of them, for all who show a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line imports this, and nothing that takes long
    from ngp.greedy.path import Step

__all__ = [
    "fates",
    "group_names",
    "left_behind",
    "only_additions",
    "step_in_words",
    "step_line",
    "taken_back",
    "undone",
]


def only_additions(steps: Sequence[Step]) -> bool:
    """Whether no step drops or exchanges anything, so that only the end of the path can be taken back."""
    return all(step.dropped is None for step in steps)


def group_names(steps: Sequence[Step]) -> dict[int, str]:
    """Names of all groups that some steps add, by their numbers."""
    return {step.group: step.name for step in steps if step.group is not None}


def undone(steps: Sequence[Step]) -> dict[int, int]:
    """For each addition that stood until a later step dropped what it had added: the numbers of both.

    A step that isn't kept has been undone in this way, or else was taken back. From the end on, each drop finds the
    last addition of its group that isn't accounted for.
    """
    found: dict[int, int] = {}
    drops: dict[int, int] = {}  # groups whose addition is still to be found, and the step that drops them
    for number in reversed(range(len(steps))):
        step = steps[number]
        if not step.kept:
            if step.group is None or step.group not in drops:
                continue
            found[number] = drops.pop(step.group)
        if step.dropped is not None:
            drops[step.dropped] = number
    return found


def taken_back(steps: Sequence[Step]) -> set[int]:
    """Numbers of the steps that the rule took back when it stopped."""
    later = undone(steps)
    return {number for number, step in enumerate(steps) if not step.kept and number not in later}


def fates(steps: Sequence[Step]) -> list[str]:
    """What became of each step: nothing where it stands, else that it was taken back, or the step that undid it."""
    later, words = undone(steps), {"drop": "dropped", "swap": "exchanged"}
    told = {number: f"{words[steps[by].action]} in step {by}" for number, by in later.items()}
    return ["" if step.kept else told.get(number, "taken back") for number, step in enumerate(steps)]


def step_in_words(step: Step, names: Mapping[int, str], shown: Callable[[str], str] = str) -> str:
    """What a step did, in the imperative; of an exchange what came in and what went out. Nothing for the start."""
    if step.action == "start":
        return ""
    if step.action != "swap":
        return f"{step.action} {shown(step.name)}"
    assert step.dropped is not None
    return f"swap {shown(step.name)} in, {shown(names.get(step.dropped, f'group {step.dropped}'))} out"


def left_behind(steps: Sequence[Step], shown: Callable[[str], str] = str) -> tuple[list[str], list[str]]:
    """Names of what was in for a while and then dropped or exchanged, and of what was only tried and taken back.

    What is selected in the end is in neither list, and nothing is in both.
    """
    selected = {step.group for step in steps if step.kept}
    dropped, tried = {}, {}
    for number, by in sorted(undone(steps).items(), key=lambda pair: pair[1]):
        step, last = steps[number], steps[by]
        instead = f" (for {shown(last.name)})" if last.action == "swap" else ""
        if step.group not in selected:
            dropped[step.group] = f"{shown(step.name)}{instead}"
    for number in sorted(taken_back(steps)):
        step = steps[number]
        if step.group is not None and step.group not in selected and step.group not in dropped:
            tried[step.group] = shown(step.name)
    return list(dropped.values()), list(tried.values())


def step_line(step: Step, steps: Sequence[Step] = ()) -> str:
    """A step in one line of text, which begins with the number of features that are selected then."""
    what = step_in_words(step, group_names(steps)) or "start"
    error = f" ± {step.standard_error:.2g}" if step.standard_error == step.standard_error else ""
    return f"{step.n_selected:4d}  {what:<24} loss {step.loss:.6g}{error}  {step.seconds:.1f} s"
