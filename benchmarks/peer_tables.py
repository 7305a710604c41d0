"""What benchmarks.peers measured, as Markdown: python -m benchmarks.peer_tables FILE.

The best value of a column is bold, whoever has it; below each table is said which peers are better than NGP.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ngp._formatting import counted
from ngp.io import markdown_table

Found = dict[str, Any]
NGP = "NGP"
ROUNDING = 1e-9
DIGITS = {"fpsr": 3, "fnsr": 3, "f1": 3, "n_selected": 1, "score": 3, "seconds": 2, "mb": 1}
WITH_ERROR = ("f1", "score")
# Of the others more is worse; that fewer columns are selected is neither.
BEST = {"fpsr": min, "fnsr": min, "f1": max, "score": max, "seconds": min, "mb": min}
RULES = {"told": "given the number of columns", "own": "by their own rules"}
NAMES = {"f1": "F1"}


# ---------------------------------------------------------------- the same work


def work_text(found: Found) -> str:
    """What peers were timed on, what the whole selection takes by that, and how many times NGP's seconds it is."""
    work = found["work"]
    sizes = f"{work['n_steps']} of {work['n_columns']} columns, {work['n_samples']} samples, 5 folds"
    titles = ["selector", "columns", "steps", "trainings", "seconds", "ms a training"]
    rows = [
        [name, f"{row['seconds']:.2f}", *(f"{peer['ratios'][name]:.0f}" for peer in found["peers"].values())]
        for name, row in found["ngp"].items()
    ]
    lines = [
        f"\n## The same work{place(work)}: {sizes}, one thread\n",
        "Peers train `MLPRegressor(hidden_layer_sizes=(500,), max_iter=10, batch_size=...)` for every candidate and",
        "fold, with the paper's batches of 32 rows and with 200, scikit-learn's default.",
        "What was timed of them:\n",
        markdown_table(titles, timed_rows(found)),
        f"\nThe whole selection takes {found['n_trainings']:,} trainings:\n",
        *(f"- {name}: {row['seconds']:.0f} s, {how(row)}." for name, row in found["peers"].items()),
        "\nNGP's whole fits, measured, the final predictor included, and how many times as long the",
        "peers take. SSFN is a network that isn't trained by gradients; the MLPs are the peers' own network:\n",
        markdown_table(["", "seconds", *found["peers"]], rows),
    ]
    return "\n".join(lines)


def place(work: Found) -> str:
    return "" if work["device"] == "cpu" else f", NGP on {work['device']}"


def how(row: Found) -> str:
    """What a peer's seconds come from."""
    largest = max(each["n_trainings"] for each in row["timed"])
    in_full = f"; in full, once and after the turns, {row['whole_seconds']:.0f} s" if "whole_seconds" in row else ""
    return f"scaled from {counted(largest, 'training')} in turn with NGP{in_full}"


def timed_rows(found: Found) -> list[list[str]]:
    rows = []
    for name, row in found["peers"].items():
        for each in row["timed"]:
            counts = (str(each[key]) for key in ("n_columns", "n_steps", "n_trainings"))
            rows.append([name, *counts, f"{each['seconds']:.2f}", f"{1e3 * each['seconds_per_training']:.1f}"])
    return rows


# ---------------------------------------------------------------- designs


def design_text(name: str, results: Found) -> str:
    """Tables and verdicts of a design, those that are told the number and those that aren't apart."""
    found = results["designs"][name]
    kind = "relevant" if found["known"] else "real, the others noise"
    lines = [f"\n## {name}: {found['n_rows']} rows, {found['n_columns']} columns, {found['n_relevant']} {kind}"]
    for rule, words in RULES.items():
        rows = [row for row in found["rows"] if row["rule"] == rule]
        if not rows:
            continue
        number = f" ({found['told']})" if rule == "told" else ""
        lines += [f"\n{words.capitalize()}{number}:\n", rule_table(rows, found, results), ""]
        lines += [f"- {verdict(found, rule, measure)}" for measure in ("f1", "score") if has(rows, measure)]
    return "\n".join(lines)


def has(rows: Sequence[Found], measure: str) -> bool:
    return any(row[measure] is not None for row in rows)


def rule_table(rows: Sequence[Found], found: Found, results: Found) -> str:
    measures = [measure for measure in DIGITS if has(rows, measure)]
    best = {measure: best_of(rows, measure) for measure in measures if measure in BEST}
    titles = {"fpsr": "FPSR", "fnsr": "FNSR", "f1": "F1", "n_selected": "selected", "seconds": "seconds", "mb": "MB"}
    titles["score"] = score_name(found)
    cells = []
    for row in rows:
        about = results["methods"][row["method"]]
        first = [row["method"], f"{about['package']} {about['version']}", runs_of(row, results)]
        cells.append(first + [cell(row, measure, best) for measure in measures])
    return markdown_table(["method", "package", "runs", *(titles[measure] for measure in measures)], cells)


def score_name(found: Found) -> str:
    return f"held-out {'accuracy' if found['task'] == 'classification' else 'R²'}"


def runs_of(row: Found, results: Found) -> str:
    """How many runs ended, and what became of others."""
    words = [str(row["n_runs"])]
    if row["n_not_ended"]:
        words.append(f"not ended within {results['settings']['limit']:g} s")
    if row["error"]:
        words.append(f"{row['n_failed']} failed: {row['error'].splitlines()[0].replace('|', '/')[:80]}")
    return ", ".join(words)


def best_of(rows: Sequence[Found], measure: str) -> str:
    """The best value as it is shown, so that all that look as good are marked."""
    return shown(BEST[measure](row[measure]["mean"] for row in rows if row[measure] is not None), measure)


def shown(value: float, measure: str) -> str:
    return f"{value:.{DIGITS[measure]}f}"


def cell(row: Found, measure: str, best: dict[str, str]) -> str:
    if row[measure] is None:
        return "–"
    text = marked(shown(row[measure]["mean"], measure), best.get(measure))
    error = row[measure]["standard_error"]
    return text if measure not in WITH_ERROR or error is None else f"{text} ± {shown(error, measure)}"


def marked(text: str, best: str | None) -> str:
    return f"**{text}**" if text == best else text


def verdict(found: Found, rule: str, measure: str) -> str:
    """Which peers are better than NGP in the runs that both have, or how near the best of them comes."""
    of_rule = [each for each in found["comparisons"] if (each["rule"], each["measure"]) == (rule, measure)]
    title = NAMES.get(measure, score_name(found))
    if not of_rule:
        return f"{title}: nothing to compare."
    ranked = sorted(of_rule, key=lambda each: -each["mean"])
    better = [difference(each) for each in ranked if each["better"]]
    if better:
        return f"{title}: better than {NGP}: {'; '.join(better)}."
    equal = [each["method"] for each in ranked if each["mean"] >= -ROUNDING]
    if equal:
        return f"{title}: no peer is better than {NGP}; as good: {'; '.join(equal)}."
    return f"{title}: no peer is better than {NGP}; next: {difference(ranked[0])}."


def difference(each: Found) -> str:
    error = "" if each["standard_error"] is None else f" ± {each['standard_error']:.3f}"
    return f"{each['method']} {each['mean']:+.3f}{error} ({counted(each['n_runs'], 'run')})"


# ---------------------------------------------------------------- the whole


def text(results: Found) -> str:
    facts = results["machine"]
    gpu = f", {facts['gpu']}" if "gpu" in facts else ""
    lines = [
        "# NGP beside its peers",
        f"\nMade by `{command(results)}`; `python -m benchmarks.peer_tables` makes tables of it.",
        f"\n{facts['cpu']}, {counted(facts['cores'], 'core')}, {facts['instruction_set']}{gpu}; {facts['system']};",
        f"Python {facts['python']}, numpy {facts['numpy']}, scikit-learn {facts['scikit-learn']}; {facts['date']}.",
        *(how_selected(results["settings"]) if results["designs"] else ()),
    ]
    if results["left_out"]:
        lines += ["", *(f"- {line}" for line in results["left_out"].values())]
    methods = [
        [name, f"{about['package']} {about['version']}", about["settings"]]
        for name, about in results["methods"].items()
    ]
    if results["designs"]:
        lines += ["", markdown_table(["method", "package", "settings"], methods)]
    if "same_work" in results:
        lines.append(work_text(results["same_work"]))
    return "\n".join([*lines, *(design_text(name, results) for name in results["designs"])])


def command(results: Found) -> str:
    if results["designs"]:
        return "make bench-peers"
    return f"python -m benchmarks.peers --runs 0 --device {results['same_work']['work']['device']}"


def how_selected(asked: Found) -> list[str]:
    return [
        f"Seeds from {asked['first_seed']} on, {counted(asked['runs'], 'run')} at most; a method that has taken",
        f"{asked['budget']:g} s on a design begins no further run there. Each selection has a process of its own with",
        f"one thread, {asked['jobs']} at a time; seconds and MB are those of the selection alone. Means, ± standard",
        "errors; differences are paired. The best value of a column is bold.",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_tables", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="what benchmarks.peers has written")
    print(text(json.loads(parser.parse_args(arguments).file.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
