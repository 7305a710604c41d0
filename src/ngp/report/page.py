"""The words and tables of the report, made from a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ngp._formatting import (
    counted,
    duration,
    group_names,
    left_behind,
    listed,
    number,
    only_additions,
    outcomes,
    p_value,
    taken_back,
    with_error,
)
from ngp.greedy.path import Step
from ngp.report.candidates_plot import candidates_shown
from ngp.report.ranking_plot import MOST_BARS, MOST_PAIRS
from ngp.report.result import Result
from ngp.report.style import visible

__all__ = ["Table", "describe", "seen"]

MOST_NAMED = 8
MOST_GROUPS = 200
# Groups of so many columns together are written out in the code that does it again.
MOST_WRITTEN_COLUMNS = 128
LOSSES = {
    "squared_error": "mean squared error",
    "cross_entropy": "cross-entropy",
    "hinge": "hinge loss",
}


@dataclass(frozen=True)
class Table:
    """A table of text; the first cell of a row is its heading."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def seen(name: str) -> str:
    """A user's name so that all of it can be seen."""
    return visible(name) or "(no name)"


def describe(result: Result) -> dict[str, Any]:
    """Everything that the template shows, but the figures."""
    noun, steps = "feature" if _is_single(result) else "group", result.steps
    return {
        "target": result.asked["target"],
        "question": f"Which of {counted(result.asked['n_groups'], noun)} predict",
        "noun": noun,
        "answer": _answer(result, noun),
        "partial": result.answer["partial"],
        "stop_reason": result.answer["stop_reason"],
        "screened": result.asked["parameters"].get("screen") is not None,
        "floating": bool(result.asked["parameters"].get("floating")),
        "look_ahead": result.asked["parameters"].get("look_ahead", 1),
        "only_additions": only_additions(steps),
        "dropped": left_behind(steps, seen)[0],
        "tiles": _tiles(result, noun),
        "asked": _asked(result, noun),
        "path": _path_table(result, steps),
        "ranking": _ranking_table(result),
        "most_bars": MOST_BARS,
        "most_pairs": MOST_PAIRS,
        "calls": _close_calls(result, steps),
        "candidates": _candidates_table(result, steps),
        "n_candidates": result.asked["n_groups"],
        "n_tried": len({g for step in result.path for g, loss in enumerate(step["losses"]) if loss is not None}),
        "groups": _groups_table(result),
        "categories": _categories_table(result),
        "pixels": _pixels_table(result),
        "correlations": _correlations(result),
        "stability": _stability(result),
        "fit": _fit(result),
        "code": _code(result),
        "settings": _settings_table(result),
        "versions": _versions_table(result),
        "created": result.created.replace("T", " ").replace("+00:00", " UTC"),
    }


def _answer(result: Result, noun: str) -> dict[str, Any]:
    """Parts of the one sentence, so that the template can set the names apart."""
    answer, names = result.answer, result.answer["names"]
    first, last = result.path[0]["loss"], answer["loss"]
    saved = None if not first or last is None else f"{100 * (first - last) / first:.1f}%"
    return {
        "names": names[:MOST_NAMED],
        "n_more": max(0, len(names) - MOST_NAMED),
        "n_fixed": len(result.features["fixed"]),
        "count": counted(len(names), noun),
        "saved": saved,
        "score": _score(result),
        "rows": "held-out" if result.fit["rows"] == "held out" else "training",
        "n_rows": f"{result.fit['n_rows']:,}",
    }


def _score(result: Result) -> str:
    fit = result.fit
    if fit["accuracy"] is not None:
        return f"accuracy {100 * fit['accuracy']:.1f}%"
    return f"R² {fit['r2']:.3f}" if fit["r2"] is not None else f"RMSE {number(fit['rmse'])}"


def _tiles(result: Result, noun: str) -> list[tuple[str, str, str]]:
    """The few figures that one looks for first: what, how much, and a word on it."""
    answer, fit = result.answer, result.fit
    what, value = _score(result).split(" ", 1)
    rows = "held-out" if fit["rows"] == "held out" else "training"
    beside = "" if answer["constant_loss"] is None else f"constant prediction {number(answer['constant_loss'])}"
    return [
        ("selected", f"{len(answer['order'])}", f"of {counted(result.asked['n_groups'], noun)}"),
        ("validation loss", with_error(answer["loss"], answer["standard_error"]), beside),
        (what, value, f"on {fit['n_rows']:,} {rows} rows"),
        ("search", duration(answer["seconds"]), f"{counted(answer['n_fits'], 'candidate')} scored"),
    ]


def _asked(result: Result, noun: str) -> list[tuple[str, str]]:
    asked, names = result.asked, result.features["names"]
    fixed = [seen(names[column]) for column in result.features["fixed"]]
    facts = [
        ("Target", seen(asked["target"])),
        ("Task", asked["task"] + (f" with {len(asked['classes'])} classes" if asked["classes"] else "")),
        ("Data", f"{counted(asked['n_samples'], 'row')}, {counted(asked['n_features'], 'column')}"),
        ("Candidates", counted(asked["n_groups"], noun) + (" of columns" if noun == "group" else "")),
        ("Fixed columns", ", ".join(fixed)),
        ("Predictor", asked["predictor"]),
        ("Judged by", LOSSES.get(asked["loss"], asked["loss"])),
        ("Validation", asked["cv"]),
        ("When to stop", _stop_in_words(asked["parameters"])),
        ("Looking ahead", _ahead_in_words(asked["parameters"], noun)),
        ("Wrong picks", "dropped or exchanged" if asked["parameters"].get("floating") else ""),
    ]
    return [(term, text) for term, text in facts if text]


def _ahead_in_words(parameters: dict[str, Any], noun: str) -> str:
    depth, width = parameters.get("look_ahead", 1), parameters.get("beam_width")
    if depth == 1:
        return ""
    grown = "" if width is None else f", grown from the best {counted(width, 'smaller one')}"
    return f"{noun}s in {'pairs' if depth == 2 else f'sets of {depth}'}{grown}"


def _stop_in_words(parameters: dict[str, Any]) -> str:
    parts = []
    count, tol, stop = (parameters.get(name) for name in ("n_features_to_select", "tol", "stop"))
    if count is not None:
        parts.append(f"at {count} features" if isinstance(count, int) else f"at {100 * count:g}% of the columns")
    if tol is not None:
        parts.append(f"when a step gains less than {100 * tol:g}%")
    if stop is not None:
        named = {"plateau": "on a plateau of the loss", "auto": "when steps gain no more than chance may"}
        parts.append(named.get(stop, str(stop)))
    if not parts:
        parts.append("when steps gain no more than chance may (the default)")
    if parameters.get("max_time") is not None:
        parts.append(f"after {duration(parameters['max_time'])}")
    if parameters.get("max_fits") is not None:
        parts.append(f"after {parameters['max_fits']:,} fits")
    return ", or ".join(parts)


def _path_table(result: Result, steps: Sequence[Step]) -> Table:
    names, what_became, is_plain, rows = group_names(steps), outcomes(steps), only_additions(steps), []
    for place, step in enumerate(result.path):
        rows.append([
            str(place), _what_was_done(step, names, is_plain), number(step["loss"]), number(step["standard_error"]),
            _percent(step["gain"]), f"{step['n_fits']:,}", duration(step["seconds"]), what_became[place] or "yes",
        ])  # fmt: skip
    header = ["Step", "Added", "Loss", "Standard error", "Gain", "Candidates", "Time", "Kept"]
    if any(step["chance"] is not None for step in result.path):
        header.insert(5, "By chance")
        for row, step in zip(rows, result.path, strict=True):
            row.insert(5, p_value(float("nan") if step["chance"] is None else step["chance"]))
    if is_plain:
        return Table("The path, step by step", header, rows)
    header[1:2] = ["Added or dropped", "Selected"]
    rows = [[*row[:2], str(step.n_selected), *row[2:]] for row, step in zip(rows, steps, strict=True)]
    return Table("The path, step by step (the gain of an exchange is that of what came in)", header, rows)


def _what_was_done(step: dict[str, Any], names: dict[int, str], is_plain: bool) -> str:
    """What a step added or dropped; where nothing is ever dropped, the name alone says it."""
    name = seen(step["name"])
    if step["action"] == "start":
        return "fixed columns" if step["columns"] else "constant prediction"
    if step["action"] == "drop":
        return f"{name} dropped"
    if step["action"] == "swap":
        return f"{name} instead of {seen(names[step['dropped']])}"
    return name if is_plain else f"{name} added"


def _ranking_table(result: Result) -> Table:
    start = result.path[0]["loss"] or 1.0
    rows = [
        [str(rank), seen(step["name"]), _percent(_drop(step) / start), _percent(step["gain"]), number(step["loss"]),
         step["predictor"]]
        for rank, step in enumerate((step for step in result.path if step["kept"] and step["group"] is not None), 1)
    ]  # fmt: skip
    header = ["Rank", "Feature", "Share of the first loss", "Gain", "Loss after", "Predictor"]
    return Table("The ranking", header, rows)


def _drop(step: dict[str, Any]) -> float:
    return float(step["before"] - step["loss"]) if None not in (step["before"], step["loss"]) else 0.0


def _close_calls(result: Result, steps: Sequence[Step]) -> dict[str, Any]:
    """Which picks were close: the gap to the runner-up is smaller than a standard error of the winner's loss."""
    names, rows, n_close, has_errors = result.groups["names"], [], 0, False
    back = taken_back(steps)
    for place, step in enumerate(result.path):
        if step["runner_up"] is None or None in (step["loss"], step["runner_up_loss"]):
            continue
        gap, error, drop = step["runner_up_loss"] - step["loss"], step["standard_error"], _drop(step)
        close = bool(error) and gap < error
        has_errors, n_close = has_errors or bool(error), n_close + close
        share = _percent(max(0.0, (drop - gap) / drop)) if drop > 0 else "–"
        call = ("close" if close else "clear") if error else "–"
        rows.append([
            str(place), seen(step["name"]), seen(names[step["runner_up"]]), number(gap),
            f"{gap / error:.2f}" if error else "–", _percent(step["certainty"]), share,
            _what_became_of_the_runner_up(result.path, place, back), call,
        ])  # fmt: skip
    header = [
        "Step",
        "Picked",
        "Runner-up",
        "Gap",
        "In standard errors",
        "Probability to be better",
        "Share of the gain",
    ]
    header += ["The runner-up", "Call"]
    table = Table("Picks and their runners-up", header, rows)
    return {"table": table, "n": n_close, "n_picks": len(rows), "has_errors": has_errors}


def _what_became_of_the_runner_up(path: Sequence[dict[str, Any]], place: int, back: set[int]) -> str:
    runner_up = path[place]["runner_up"]
    if runner_up == path[place]["dropped"]:
        return "replaced"
    picks = [later for later in range(place + 1, len(path)) if path[later]["group"] == runner_up and later not in back]
    return f"picked in step {picks[0]}" if picks else "passed over"


def _candidates_table(result: Result, steps: Sequence[Step]) -> Table:
    names, places = result.groups["names"], candidates_shown(steps[1:])
    rows = [[seen(names[group]), *(number(step["losses"][group]) for step in result.path[1:])] for group in places]
    numbered = [f"Step {k}{' (without it)' if step.action == 'drop' else ''}" for k, step in enumerate(steps)]
    return Table("Validation loss of each candidate", ["Candidate", *numbered[1:]], rows)


def _groups_table(result: Result) -> Table | None:
    """What each group holds, selected ones first; only where groups are more than single columns."""
    if _is_single(result):
        return None
    names, columns, order = result.features["names"], result.groups["columns"], result.answer["order"]
    ranks = {group: rank for rank, group in enumerate(order, 1)}
    shown = [*order, *(group for group in range(len(columns)) if group not in ranks)][:MOST_GROUPS]
    rows = [
        [seen(result.groups["names"][group]), str(ranks.get(group, "–")), str(len(columns[group])),
         listed([seen(names[column]) for column in columns[group]], 12)]
        for group in shown
    ]  # fmt: skip
    more = "" if len(shown) == len(columns) else f" (the first {len(shown)} of {len(columns)})"
    return Table(f"Groups of columns{more}", ["Group", "Rank", "Size", "Columns"], rows)


def _categories_table(result: Result) -> Table | None:
    """Columns that came as categories, and entered as a block of 0/1 columns."""
    found = [(column, count) for column, count in enumerate(result.features["categories"]) if count is not None]
    if not found:
        return None
    names, ranking = result.features["names"], result.answer["ranking"]
    fixed = set(result.features["fixed"])
    rows = [
        [seen(names[column]), str(count), "fixed" if column in fixed else str(ranking[column] or "–")]
        for column, count in found[:MOST_GROUPS]
    ]
    return Table("Category columns", ["Column", "Categories", "Rank"], rows)


def _pixels_table(result: Result) -> Table | None:
    if result.image is None:
        return None
    rows = [
        [str(row + 1), *("–" if rank is None else "fixed" if rank == 0 else str(rank) for rank in ranks)]
        for row, ranks in enumerate(result.image["ranks"])
    ]
    header = ["Row", *(str(col + 1) for col in range(result.image["shape"][1]))]
    return Table("The rank of each pixel in the order of selection", header, rows)


def _stability(result: Result) -> dict[str, Any] | None:
    found, names = result.stability, result.groups["names"]
    if found is None:
        return None
    order = sorted(range(len(names)), key=lambda group: -found["frequencies"][group])
    rows = [
        [seen(names[group]), _percent(found["frequencies"][group]), "yes" if result.answer["names"] and group in
         result.answer["order"] else "no"]
        for group in order[:MOST_GROUPS]
        if found["frequencies"][group] > 0
    ]  # fmt: skip
    pairs = [" and ".join(seen(names[group]) for group in pair["groups"]) for pair in found["stand_ins"]]
    table = Table("Selected on halves of the rows", ["Candidate", "Share of the halves", "Selected on all rows"], rows)
    return found | {"table": table, "pairs": pairs}


def _correlations(result: Result) -> list[dict[str, Any]]:
    names = result.groups["names"]
    return [
        {
            "name": names[item["group"]],
            "others": [(names[other["group"]], other["correlation"]) for other in item["others"][:3]],
        }
        for item in result.correlations
        if item["others"]
    ]


def _fit(result: Result) -> dict[str, Any]:
    fit = result.fit
    if fit["confusion"] is not None:
        classes = [seen(name) for name in fit["confusion"]["classes"]]
        counts = [[name, *map(str, row)] for name, row in zip(classes, fit["confusion"]["counts"], strict=True)]
        table = Table("Rows: true class; columns: predicted class", ["True class", *classes], counts)
    else:
        points = zip(fit["scatter"]["truth"], fit["scatter"]["predicted"], strict=True) if fit["scatter"] else ()
        rows = [[str(place), number(truth), number(value)] for place, (truth, value) in enumerate(points, 1)]
        table = Table("True and predicted values", ["Point", "True", "Predicted"], rows)
    rmse = None if fit["rmse"] is None else number(fit["rmse"])
    return {
        "table": table,
        "held_out": fit["rows"] == "held out",
        "n_rows": f"{fit['n_rows']:,}",
        "n_outputs": result.asked["n_outputs"],
        "n_shown": len(table.rows) if fit["confusion"] is None else None,
        "score": _score(result),
        "rmse": rmse,
    }


def _code(result: Result) -> str:
    """Python that does it again, given the same data."""
    asked, answer = result.asked, result.answer
    lines = [
        *asked["imports"],
        "",
        f"# {counted(asked['n_samples'], 'row')}, {counted(asked['n_features'], 'column')}",
    ]
    lines += [f"X, y = ...  # the target is {seen(asked['target'])}"]
    for name in asked["variables"]:
        lines += [_definition(name, result)]
    order = answer["order"]
    shown = str(order) if len(order) <= 20 else f"{str(order[:20])[:-1]}, …]"
    return "\n".join([*lines, "", f"selector = {asked['call']}", "selector.fit(X, y)", f"selector.order_  # {shown}"])


def _definition(name: str, result: Result) -> str:
    """How to get a parameter that the call leaves to a variable."""
    groups = result.groups
    is_short = sum(map(len, groups["columns"])) <= MOST_WRITTEN_COLUMNS
    if name == "groups" and is_short and len(set(groups["names"])) == len(groups["names"]):
        pairs = zip(groups["names"], groups["columns"], strict=True)
        return "groups = {\n" + "".join(f"    {key!r}: {columns},\n" for key, columns in pairs) + "}"
    return f"{name} = ...  # {seen(str(result.asked['parameters'][name]))[:200]}"


def _settings_table(result: Result) -> Table:
    rows = [[name, seen(str(value))] for name, value in sorted(result.asked["parameters"].items())]
    return Table("Parameters of the selector", ["Parameter", "Value"], [[name, text[:400]] for name, text in rows])


def _versions_table(result: Result) -> Table:
    return Table("Versions", ["Package", "Version"], [[name, version] for name, version in result.versions.items()])


def _is_single(result: Result) -> bool:
    columns = result.groups["columns"]
    return all(len(members) == 1 for members in columns)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"
