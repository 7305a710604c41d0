"""Values and steps as text, for messages, progress, plots and reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import floor, log10, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line imports this, and nothing that takes long
    from ngp.greedy.path import Step

__all__ = [
    "counted", "cuts_in_words", "described", "duration", "group_names", "left_behind", "listed", "loss_change",
    "metric", "named_score", "nearest_in_words", "number", "only_additions", "outcomes", "p_value", "score",
    "share_with_error", "standing", "step_in_words", "step_line", "taken_back", "undone", "visible", "with_error",
]  # fmt: skip


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[str], most: int = 5) -> str:
    """Items separated by commas; of many, only the first few."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def visible(text: str) -> str:
    """Replace characters that can't be seen, break a line or move the cursor by Python's escapes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def described(value: Any) -> str:
    """The name of a function, or the repr of anything else without its address, which changes from run to run."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def p_value(value: float) -> str:
    """A p-value with two digits; an empty text for NaN."""
    if value != value:
        return ""
    return f"{value:.2g}" if value >= 1e-3 else "<0.001"


def number(value: float | None) -> str:
    """A number with four digits, or a dash for None and NaN."""
    if value is None or value != value:
        return "–"
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def with_error(value: float | None, error: float | None) -> str:
    """A number and its standard error, to the same digit."""
    if value is None or not error or not error > 1e-9 * abs(value):  # none, or rounding
        return number(value)
    digits = max(0, 1 - floor(log10(error)))
    if digits > 7 or error >= 1e9:
        return f"{number(value)} ± {number(error)}"
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def only_additions(steps: Sequence[Step]) -> bool:
    """Whether no step drops or exchanges anything."""
    return all(step.dropped is None for step in steps)


def group_names(steps: Sequence[Step]) -> dict[int, str]:
    """Names of the groups that the steps add, by number."""
    return {step.group: step.name for step in steps if step.group is not None}


def standing(steps: Sequence[Step]) -> list[int]:
    """Numbers of the steps that weren't taken back before the last one was made, and of that one."""
    stood: list[int] = []
    for number, step in enumerate(steps):
        # What the rule took back is what would have to be undone for this step to be possible.
        before = step.n_selected - {"start": 0, "add": 1, "swap": 0, "drop": -1}[step.action]
        while stood and not (
            steps[stood[-1]].n_selected == before
            and (step.dropped is None or _holds(steps, stood, step.dropped))
            and (step.group is None or not _holds(steps, stood, step.group))
        ):
            stood.pop()
        stood.append(number)
    return stood


def undone(steps: Sequence[Step]) -> dict[int, int]:
    """Additions that a later step dropped or exchanged: the number of the addition -> the number of the later step."""
    stood = standing(steps)
    while stood and not steps[stood[-1]].kept:
        stood.pop()
    found: dict[int, int] = {}
    additions: dict[int | None, int] = {}
    for number in stood:
        if (dropped := steps[number].dropped) is not None:
            found[additions.pop(dropped)] = number
        additions[steps[number].group] = number
    return found


def _holds(steps: Sequence[Step], stood: Sequence[int], group: int) -> bool:
    """Whether a group is selected after some steps."""
    last = next((steps[i] for i in reversed(stood) if group in (steps[i].group, steps[i].dropped)), None)
    return last is not None and last.group == group


def taken_back(steps: Sequence[Step]) -> set[int]:
    """Numbers of the steps that the rule took back when it stopped."""
    later = undone(steps)
    return {number for number, step in enumerate(steps) if not step.kept and number not in later}


def outcomes(steps: Sequence[Step]) -> list[str]:
    """What became of each step: an empty text if it is kept, "taken back", or which later step undid it."""
    later, verbs = undone(steps), {"drop": "dropped", "swap": "exchanged"}
    texts = {number: f"{verbs[steps[by].action]} in step {by}" for number, by in later.items()}
    return ["" if step.kept else texts.get(number, "taken back") for number, step in enumerate(steps)]


def step_in_words(step: Step, steps: Sequence[Step], shown: Callable[[str], str] = str) -> str:
    """One of several steps as text such as "add age" or "swap age in, town out after step 4"."""
    if step.action == "start":
        return "(fixed columns)" if len(step.columns) else "(constant prediction)"
    if step.dropped is None or step.action == "drop":
        return f"{step.action} {shown(step.name)}{_after(step, steps)}"
    return f"swap {shown(step.name)} in, {shown(group_names(steps)[step.dropped])} out{_after(step, steps)}"


def _after(step: Step, steps: Sequence[Step]) -> str:
    """Which step it followed, if that isn't the one before: others were taken back then, and its gain is from there."""
    number = next((number for number, each in enumerate(steps) if each is step), 0)
    if not number or step.before == steps[number - 1].loss:
        return ""
    stood = standing(steps[: number + 1])
    return f" after step {stood[-2]}" if stood[-2:-1] not in ([], [number - 1]) else ""


def left_behind(steps: Sequence[Step], shown: Callable[[str], str] = str) -> tuple[list[str], list[str]]:
    """Names of unselected groups: those that were dropped or exchanged, and those whose step was taken back."""
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


def step_line(step: Step, steps: Sequence[Step], task: str) -> str:
    """One of several steps in a line, which begins with the number of features that are selected then."""
    what, loss, change = step_in_words(step, steps), with_error(step.loss, step.standard_error), loss_change(step.gain)
    parts = [named_score(step.score, step.score_error, task), f"loss {loss}" + (change and f" ({change})")]
    return "  ".join([f"{step.n_selected:4d}  {what:<24}", *filter(None, parts), f"{step.seconds:.1f} s"])


def nearest_in_words(steps: Sequence[Step], p_values: Any, rows_needed: float) -> str:
    """Which candidate came nearest if nothing was selected; an empty text if that is unknown."""
    if rows_needed != rows_needed:
        return ""
    first = steps[1]
    change = f"would {'lower' if first.gain > 0 else 'raise'} the loss by {100 * abs(first.gain):.1f}%"
    found = f"Nearest came {visible(first.name)}: it {change}, p = {p_value(p_values[first.group or 0])}"
    if rows_needed == float("inf"):
        return f"{found}; no number of rows can be foreseen for it to be significant."
    return f"{found}; about {float(f'{rows_needed:.2g}'):,.0f} rows would be needed for it to be significant."


def loss_change(gain: float) -> str:
    """By how much a step changes the loss it started from, such as −8.0%; an empty text for NaN."""
    if gain != gain:
        return ""
    text = f"{-100 * gain:+,.1f}%"
    return text[1:] if text[1:] == "0.0%" else text.replace("-", "−")


def metric(task: str) -> str:
    """What the scores of a task are called."""
    return "accuracy" if task == "classification" else "R²"


def score(value: float, error: float, task: str) -> str:
    """Accuracy in percent or R², with its standard error if it is known; an empty text for NaN."""
    if value != value:
        return ""
    if task != "classification":
        return f"{value:z.3f}".replace("-", "−") + (f" ± {error:.3f}" if error == error else "")
    return share_with_error(value, error)


def share_with_error(value: float, error: float) -> str:
    """A share in percent with its standard error, if that is known; an empty text for NaN."""
    if value != value:
        return ""
    return f"{100 * value:z.1f}".replace("-", "−") + (f" ± {100 * error:.1f}%" if error == error else "%")


def named_score(value: float, error: float, task: str) -> str:
    """A score and what it is; an empty text for NaN."""
    return f"{metric(task)} {score(value, error, task)}" if value == value else ""


def cuts_in_words(cuts: Mapping[str, int], steps: Sequence[Step], task: str, all_columns: float, noun: str) -> str:
    """How many features are significant and how many predict best, if these numbers differ."""
    significant, best = cuts.get("significant"), cuts.get("best")
    if significant is None or best is None or significant == best:
        return ""
    step = min((step for step in steps if step.n_selected == best), key=lambda step: step.loss)
    scores = [named_score(step.score, step.score_error, task)]
    if all_columns == all_columns:
        scores.append(f"all columns {score(all_columns, nan, task)}")
    beyond = f"{counted(significant, noun)} {'is' if significant == 1 else 'are'} beyond chance"
    predict = f"{best} {'predicts' if best == 1 else 'predict'}"
    well = "best" if best > significant else "about as well as any number"
    return f"{beyond}; {predict} {well} ({', '.join(filter(None, scores))})"
