"""Text and tables of the report, made from a result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isnan, nan
from typing import Any, NamedTuple

from ngp._formatting import (
    counted,
    cuts_in_words,
    duration,
    left_behind,
    listed,
    loss_change,
    metric,
    named_score,
    nearest_in_words,
    number,
    only_additions,
    outcomes,
    p_value,
    score,
    share_with_error,
    step_in_words,
    taken_back,
    visible,
    with_error,
)
from ngp.greedy.path import Step, additions, suspect
from ngp.report.plots import MOST_BARS, MOST_PAIRS, candidates_shown, pixel_ranks, until_end
from ngp.report.result import FDR, Fit, Result
from ngp.report.style import PALETTE

__all__ = ["Table", "describe", "path_table", "seen"]

# What a pair has to share of its joint effect, and this of the spread of all predictions, to work only together.
ONLY_TOGETHER, LEAST_EFFECT = 0.5, 0.1
MOST_TOGETHER = 6
CORRELATED = 0.3  # from where on a correlation is worth showing

MOST_ROWS = 200
LOSSES = {"squared_error": "mean squared error", "cross_entropy": "cross-entropy", "hinge": "hinge loss"}
# Predictions of classes are estimates of 0 and 1, a column for each class or, of two, a single one.
BRIER = "Brier score, the mean squared error of each class's probability"


class Table(NamedTuple):
    """A table of text; the first cell of a row is its heading."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def seen(name: str) -> str:
    """A name with all of its characters visible."""
    return visible(name) or "(no name)"


def describe(result: Result) -> dict[str, Any]:
    """What the template shows beside the result itself and the figures."""
    noun, steps = _noun(result), result.path
    content: dict[str, Any] = {
        "result": result,
        "noun": noun,
        "counted": counted,
        "number": number,
        "score": _headline(result),
        "held_out": result.fit and _score(result.fit),
        "data": result.asked.data,
        "caution": suspect(steps, result.asked.task),
        "other_cut": cuts_in_words(result.answer.cuts, steps, result.asked.task, result.answer.all_columns_score, noun),
        "nearest": nearest_in_words(
            steps, {each.group: each.p_value for each in result.evidence}, result.answer.rows_needed
        ),
        "tested": any(step.p_value >= 0 for step in steps),
        "only_additions": only_additions(steps),
        "dropped": left_behind(steps, seen)[0],
        "tiles": _tiles(result, noun),
        "asked": _asked(result, noun),
        "path": path_table(steps, result.asked.task, result.chance),
        "curves": _curves_table(result),
        "legend": list(zip(result.curves[0].outputs, PALETTE, strict=False)) if result.curves else [],
        "n_columns": sum(len(result.groups.columns[step.group or 0]) for step in additions(steps)),
        "together": _together(result),
        "ranking": _ranking_table(result),
        "n_significant": sum(each.significant for each in result.evidence[: len(result.order)]),
        "proven": any(each.p_value >= 0 for each in result.evidence),
        "fdr": FDR,
        "most_bars": MOST_BARS,
        "most_pairs": MOST_PAIRS,
        "calls": _close_calls(result),
        "candidates": _candidates_table(result),
        "n_tried": len({group for step in until_end(steps) for group, loss in enumerate(step.losses) if loss == loss}),
        "groups": _groups_table(result) if noun == "group" else None,
        "categories": _categories_table(result),
        "pixels": _pixels_table(result),
        "correlations": _correlations(result),
        "halves": _halves(result),
        "scores": _scores_table(result),
        "fit": result.fit and _fit_table(result.fit),
        "code": _code(result),
        "settings": _settings_table(result),
        "versions": Table("Versions", ["Package", "Version"], list(result.versions.items())),
    }
    return content | {"sections": _sections(content)}


def _sections(content: dict[str, Any]) -> dict[str, str]:
    """Names and headings of the sections that have content, in their order."""
    path = content["result"].path
    headings = [
        ("path", "The path", len(path) > 1),
        ("ranking", "What matters most", any(e.importance == e.importance for e in content["result"].evidence)),
        ("pixels", "The image", content["pixels"]),
        ("curves", "What each column does", content["result"].curves),
        ("together", "What works together", content["together"]["rows"]),
        ("calls", "How sure the choice is", content["calls"]["table"].rows),
        ("stability", "How stable it is", content["halves"] and content["halves"]["table"].rows),
        ("candidates", "All candidates", len(until_end(path)) > 2),
        ("groups", "The groups", content["groups"] or content["categories"]),
        ("correlations", "What was passed over", content["correlations"]),
        ("fit", "How well it predicts", content["scores"].rows or content["fit"]),
        ("asked", "What was done", True),
        ("again", "To do it again", True),
    ]
    return {name: heading for name, heading, exists in headings if exists}


def _noun(result: Result) -> str:
    return "feature" if all(len(columns) == 1 for columns in result.groups.columns) else "group"


def _score(fit: Fit) -> str:
    if not isnan(fit.accuracy):
        return f"accuracy {100 * fit.accuracy:.1f}%"
    return f"RMSE {number(fit.rmse)}" if isnan(fit.r2) else f"R² {fit.r2:.3f}"


def _headline(result: Result) -> str:
    """Accuracy or R² of rows that were held out or, without such, from cross-validation; an empty text if unknown."""
    if result.fit is not None:
        return _score(result.fit)
    return named_score(result.answer.score, result.answer.score_error, result.asked.task)


def _tiles(result: Result, noun: str) -> list[tuple[str, str, str]]:
    """The main numbers: what, how much, and a comment."""
    answer, task, fit, headline = result.answer, result.asked.task, result.fit, _headline(result)
    rows = "cross-validated" if fit is None else f"on {fit.n_rows:,} held-out rows"
    what, _, value = headline.partition(" ")
    start = score(result.path[0].score, nan, task) if fit is None else score(fit.constant, nan, task)
    n_columns = sum(answer.support)
    pixels = f", {n_columns} of {counted(len(answer.support), 'column')}" if noun == "group" else ""
    tiles = [
        ("selected", f"{len(result.order)}", f"of {counted(len(result.groups.names), noun)}" + pixels),
        (what, value, rows),
        (f"{what} of all columns", score(answer.all_columns_score, nan, task), "cross-validated"),
        (
            _without_any(result, fit is None and len(result.path[0].columns) > 0),
            start,
            "for comparison" if fit is None else "on the same rows",
        ),
    ]
    if not headline:
        loss = with_error(answer.loss, answer.standard_error)
        tiles = [*tiles[:1], (_loss_name(result).partition(",")[0], loss, "in validation")]
    search = ("search", duration(answer.seconds), f"{counted(answer.n_fits, 'candidate')} scored")
    return [*(tile for tile in tiles if tile[1]), search]


def _without_any(result: Result, has_fixed: bool) -> str:
    """What predicts without any selected column: the fixed columns, if there are such, or a constant."""
    if has_fixed:
        return "fixed columns alone"
    return "most frequent class" if result.asked.task == "classification" else "constant prediction"


def _asked(result: Result, noun: str) -> list[tuple[str, str]]:
    asked, names = result.asked, result.features.names
    facts = [
        ("Target", seen(asked.target)),
        ("Task", asked.task + (f" with {len(asked.classes)} classes" if asked.classes else "")),
        ("Data", f"{counted(asked.n_samples, 'row')}, {counted(len(names), 'column')}"),
        ("Candidates", counted(len(result.groups.names), noun) + (" of columns" if noun == "group" else "")),
        ("Fixed columns", ", ".join(seen(names[column]) for column in result.features.fixed)),
        ("Predictor", asked.predictor),
        ("Judged by", _loss_name(result)),
        ("Validation", asked.cv),
        ("When to stop", _stop_in_words(asked.parameters)),
        ("Wrong picks", "dropped or exchanged" if asked.parameters.get("floating") else ""),
    ]
    return [(term, text) for term, text in facts if text]


def _loss_name(result: Result) -> str:
    loss = result.asked.loss
    if loss == "squared_error" and result.asked.task == "classification":
        return BRIER
    return LOSSES.get(loss, loss)


def _stop_in_words(parameters: dict[str, Any]) -> str:
    parts = []
    count, tol, stop, seconds = (parameters.get(key) for key in ("n_features_to_select", "tol", "stop", "max_time"))
    if count is not None:
        parts.append(f"at {count} features" if isinstance(count, int) else f"at {100 * count:g}% of the columns")
    if tol is not None:
        parts.append(f"when a step lowers the loss by less than {100 * tol:g}% of the new loss")
    if stop is not None:
        named = {"plateau": "on a plateau of the loss", "auto": "when gains are no longer significant"}
        parts.append(named.get(stop, str(stop)))
    if not parts:
        parts.append("when gains are no longer significant (the default)")
    if seconds is not None:
        parts.append(f"after {duration(seconds)}")
    return ", or ".join(parts)


def path_table(steps: Sequence[Step], task: str, chance: Sequence[Sequence[float]] | None = None) -> Table:
    """The path, step by step."""
    ranges = [(nan, nan)] * len(steps) if chance is None else chance
    is_plain = only_additions(steps)
    actions = [
        seen(step.name) if is_plain and step.group is not None else step_in_words(step, steps, seen) for step in steps
    ]
    columns = {
        "Step": [str(place) for place in range(len(steps))],
        "Added" if is_plain else "Added or dropped": actions,
        "Selected": [str(step.n_selected) for step in steps],
        f"{metric(task).capitalize()} ± standard error": [score(step.score, step.score_error, task) for step in steps],
        "Loss ± standard error": [with_error(step.loss, step.standard_error) for step in steps],
        "By chance": ["" if isnan(low) else f"{number(low)} to {number(high)}" for low, high in ranges],
        "Change of the loss": [loss_change(step.gain) for step in steps],
        "p-value": [p_value(step.p_value) for step in steps],
        "Candidates": [f"{step.n_fits:,}" for step in steps],
        "Time": [duration(step.seconds) for step in steps],
        "Kept": [outcome or "yes" for outcome in outcomes(steps)],
    }
    if is_plain:
        del columns["Selected"]
    known = {name: texts for name, texts in columns.items() if any(texts)}  # p-values and scores may be unknown
    return Table("The path, step by step", list(known), list(zip(*known.values(), strict=True)))


def _ranking_table(result: Result) -> Table:
    """What speaks for each feature; of those that weren't selected, at most some hundred."""
    changes = {step.group: step.gain for step in additions(result.path)}
    rows = [
        [str(rank) if rank <= len(result.order) else "–", seen(result.groups.names[each.group]),
         share_with_error(each.importance, each.standard_error) or "–", p_value(each.p_value) or "–",
         "–" if isnan(each.p_value) else "yes" if each.significant else "no",
         loss_change(changes.get(each.group, nan)) or "–"]
        for rank, each in enumerate(result.evidence[: len(result.order) + MOST_ROWS], 1)
    ]  # fmt: skip
    header = [
        "Rank",
        "Feature",
        "Importance ± standard error",
        "p-value",
        "Significant",
        "Change of the loss when added",
    ]
    return Table("Importances and p-values", header, rows)


def _close_calls(result: Result) -> dict[str, Any]:
    """Which picks were close: the gap to the runner-up is smaller than a standard error of the winner's loss."""
    names, rows, calls = result.groups.names, [], []
    back = taken_back(result.path)
    for place, step in enumerate(until_end(result.path), 1):
        gap, error, drop = step.runner_up_loss - step.loss, step.standard_error, step.paired - step.loss
        if step.runner_up is None or isnan(gap):
            continue
        calls.append(("close" if gap < error else "clear") if error > 0 else "–")
        rows.append([
            str(place), seen(step.name), seen(names[step.runner_up]), number(gap),
            f"{gap / error:.2f}" if error > 0 else "–",
            _percent(max(0.0, (drop - gap) / drop)) if drop > 0 else "–",
            _within_an_error(step, names), _outcome_of_runner_up(result.path, place, back), calls[-1],
        ])  # fmt: skip
    header = ["Step", "Picked", "Runner-up", "Gap", "In standard errors"]
    header += ["Share of the gain", "Within a standard error", "The runner-up", "Call"]
    table = Table("Picks and their runners-up", header, rows)
    return {"table": table, "n": calls.count("close"), "has_errors": set(calls) > {"–"} or calls.count("–") == 0}


def _within_an_error(step: Step, names: Sequence[str]) -> str:
    """The other candidates whose loss is less than a standard error above the winner's, lowest first."""
    if step.group is None or not step.standard_error > 0:
        return "–"
    limit = step.losses[step.group] + step.standard_error
    order = [int(group) for group in step.losses.argsort(kind="stable") if step.losses[group] < limit]
    others = [seen(names[group]) for group in order if group != step.group]
    return f"{len(others)}: {listed(others, 3)}" if others else "none"


def _outcome_of_runner_up(path: Sequence[Step], place: int, back: set[int]) -> str:
    runner_up = path[place].runner_up
    if runner_up == path[place].dropped:
        return "replaced"
    picks = [later for later in range(place + 1, len(path)) if path[later].group == runner_up and later not in back]
    return f"picked in step {picks[0]}" if picks else "passed over"


def _candidates_table(result: Result) -> Table:
    steps, names = until_end(result.path), result.groups.names
    rows = [[seen(names[group]), *(number(step.losses[group]) for step in steps)] for group in candidates_shown(steps)]
    header = [f"Step {k}{' (without it)' if step.action == 'drop' else ''}" for k, step in enumerate(steps, 1)]
    return Table("Validation loss of each candidate", ["Candidate", *header], rows)


def _groups_table(result: Result) -> Table:
    """The columns of each group, selected groups first."""
    names, columns = result.features.names, result.groups.columns
    ranks = {step.group: rank for rank, step in enumerate(additions(result.path), 1)}
    shown = sorted(range(len(columns)), key=lambda group: ranks.get(group, len(columns) + 1))[:MOST_ROWS]
    rows = [
        [seen(result.groups.names[group]), str(ranks.get(group, "–")), str(len(columns[group])),
         listed([seen(names[column]) for column in columns[group]], 12)]
        for group in shown
    ]  # fmt: skip
    more = "" if len(shown) == len(columns) else f" (the first {len(shown)} of {len(columns)})"
    return Table(f"Groups of columns{more}", ["Group", "Rank", "Size", "Columns"], rows)


def _categories_table(result: Result) -> Table | None:
    features, ranking = result.features, result.answer.ranking
    rows = [
        [seen(features.names[column]), str(count), "fixed" if column in features.fixed else str(ranking[column] or "–")]
        for column, count in enumerate(features.categories)
        if count is not None
    ]
    return Table("Category columns", ["Column", "Categories", "Rank"], rows[:MOST_ROWS]) if rows else None


def _pixels_table(result: Result) -> Table | None:
    if result.image is None:
        return None
    ranks = pixel_ranks(result.path, result.image.shape)
    rows = [
        [str(row), *("–" if isnan(rank) else f"{rank:.0f}" if rank else "fixed" for rank in values)]
        for row, values in enumerate(ranks, 1)
    ]
    header = ["Row", *(str(col + 1) for col in range(ranks.shape[1]))]
    return Table("The rank of each pixel in the order of selection", header, rows)


def _halves(result: Result) -> dict[str, Any] | None:
    found, names = result.stability, result.groups.names
    if found is None:
        return None
    selected = {step.group for step in additions(result.path)}
    order = sorted(range(len(names)), key=lambda group: -found.frequencies[group])[:MOST_ROWS]
    rows = [
        [seen(names[group]), _percent(found.frequencies[group]), "yes" if group in selected else "no"]
        for group in order
        if found.frequencies[group] > 0
    ]
    pairs = [" and ".join(seen(names[group]) for group in pair.groups) for pair in found.stand_ins]
    table = Table("Selected on halves of the rows", ["Candidate", "Share of the halves", "Selected on all rows"], rows)
    return {"table": table, "pairs": pairs}


def _curves_table(result: Result) -> Table:
    """The points of all curves."""
    names, single = result.features.names, all(len(curve.outputs) == 1 for curve in result.curves)
    rows = [
        [seen(names[curve.column]), curve.categories[place] if curve.categories else number(value),
         *([] if single else [seen(output)]), number(average)]
        for curve in result.curves
        for output, averages in zip(curve.outputs, curve.averages, strict=True)
        for place, (value, average) in enumerate(zip(curve.values, averages, strict=True))
    ]  # fmt: skip
    what = "Predicted" if result.asked.task == "regression" else "Probability"
    header = ["Column", "Value", *([] if single else ["Class" if what == "Probability" else "Target"]), what]
    return Table("Average predictions", header, rows)


def _together(result: Result) -> dict[str, Any]:
    """Pairs of selected groups by what they say only together, and which say hardly anything alone."""
    names = result.groups.names
    pairs = [(" and ".join(seen(names[group]) for group in pair.groups), pair) for pair in result.together]
    only = [text for text, pair in pairs if pair.share >= ONLY_TOGETHER and pair.size >= LEAST_EFFECT]
    return {"rows": [(text, pair.share, pair.size) for text, pair in pairs[:MOST_TOGETHER]], "only": only}


def _correlations(result: Result) -> list[tuple[str, list[tuple[str, float]]]]:
    """Selected groups, and up to three that are correlated with each."""
    names = result.groups.names
    return [
        (names[group], shown)
        for group, pairs in groupby(result.correlations, key=lambda pair: pair.groups[0])
        if (shown := [(names[p.groups[1]], p.correlation) for p in pairs if p.correlation >= CORRELATED][:3])
    ]


def _scores_table(result: Result) -> Table:
    """What the selection predicts in cross-validation, beside nothing and everything."""
    answer, task, start = result.answer, result.asked.task, result.path[0]
    scores = {
        "The selection": score(answer.score, answer.score_error, task),
        "All columns": score(answer.all_columns_score, nan, task),
        f"The {_without_any(result, len(start.columns) > 0)}": score(start.score, start.score_error, task),
    }
    rows = [[name, text] for name, text in scores.items() if text]
    return Table("Cross-validated", ["Columns", metric(task)], rows)


def _fit_table(fit: Fit) -> Table:
    if fit.classes is not None and fit.confusion is not None:
        classes = [seen(name) for name in fit.classes]
        counts = [[name, *map(str, row)] for name, row in zip(classes, fit.confusion, strict=True)]
        return Table("Rows: true class; columns: predicted class", ["True class", *classes], counts)
    points = zip(fit.truth or (), fit.predicted or (), strict=True)
    rows = [[str(place), number(truth), number(value)] for place, (truth, value) in enumerate(points, 1)]
    return Table("True and predicted values", ["Point", "True", "Predicted"], rows)


def _code(result: Result) -> str:
    """The selector as Python code."""
    asked, order = result.asked, [step.group for step in additions(result.path)]
    return "\n".join([
        f"from ngp import {asked.call.partition('(')[0]}",
        "",
        f"# {counted(asked.n_samples, 'row')}, {counted(len(result.features.names), 'column')}; "
        f"the target is {seen(asked.target)}",
        f"selector = {asked.call}",
        "selector.fit(X, y)",
        f"selector.order_  # {str(order) if len(order) <= 20 else f'{str(order[:20])[:-1]}, …]'}",
    ])  # fmt: skip


def _settings_table(result: Result) -> Table:
    rows = [[name, seen(str(value))[:400]] for name, value in sorted(result.asked.parameters.items())]
    return Table("Parameters of the selector", ["Parameter", "Value"], rows)


def _percent(share: float) -> str:
    return "–" if isnan(share) else f"{100 * share:.1f}%"
