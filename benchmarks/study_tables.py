"""What benchmarks.study measured, as the tables of docs/developer/study.md: python -m benchmarks.study_tables FILE….

A mark (*) is where the default is worse than the best threshold in hindsight by more than one standard error.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.designs import DESIGNS
from benchmarks.study import BASELINES, error_of
from ngp.io import markdown_table

Found = dict[str, Any]
FLOATING = "auto, floating"


def read(files: Sequence[Path]) -> dict[str, Found]:
    """The designs of all files, in the order of the study; each was measured once."""
    found: dict[str, Found] = {}
    for file in files:
        designs = json.loads(file.read_text(encoding="utf-8"))["designs"]
        if twice := found.keys() & designs.keys():
            raise ValueError(f"{', '.join(twice)}: measured twice, {file} is one of the files.")
        found |= designs
    return {name: found[name] for name in DESIGNS if name in found}


def score_table(designs: dict[str, Found]) -> str:
    """Held-out scores: R², or accuracy where there are classes."""
    rows = []
    for name, found in designs.items():
        best = comparison(found, "score")
        times = mean(found, "auto", "n_fits") / mean(found, best["threshold"], "n_fits")
        rows.append([
            name,
            str(found["n_runs"]),
            f"{mean(found, best['threshold'], 'score'):.3f} ({best['threshold']})",
            f"{mean(found, 'auto', 'score'):.3f}",
            difference(best),
            *(shown(found, variant, "score") for variant in (FLOATING, "plateau")),
            best_of_others(found, "score"),
            *(shown(found, variant, "score") for variant in ("relevant columns", "all columns")),
            f"{times:.1f}",
        ])  # fmt: skip
    header = ["design", "runs", "best η", "default", "difference", "floating", "plateau", "best other method"]
    return markdown_table([*header, "relevant columns", "all columns", "times the trainings"], rows)


def recovery_table(designs: dict[str, Found]) -> str:
    """How well the relevant columns are found, where they are known."""
    rows = []
    for name, found in designs.items():
        if found["variants"]["auto"]["f1"] is None:
            continue
        best = comparison(found, "f1")
        rows.append([
            name,
            f"{mean(found, best['threshold'], 'f1'):.3f} ({best['threshold']})",
            f"{mean(found, 'auto', 'f1'):.3f}",
            difference(best),
            *(shown(found, variant, "f1") for variant in (FLOATING, "plateau")),
            best_of_others(found, "f1"),
            *(shown(found, "auto", rate) for rate in ("fpsr", "fnsr")),
        ])  # fmt: skip
    header = ["design", "best η", "default", "difference", "floating", "plateau", "best other method"]
    return markdown_table([*header, "default: FPSR", "FNSR"], rows)


def comparison(found: Found, measure: str) -> Found:
    """The default against the best threshold."""
    return next(each for each in found["comparisons"] if (each["variant"], each["measure"]) == ("auto", measure))


def difference(best: Found) -> str:
    return f"{best['mean']:+.4f}{error_of(best, 4)}{'' if best['not_worse'] else ' *'}"


def mean(found: Found, variant: str, measure: str) -> float:
    return float(found["variants"][variant][measure]["mean"])


def shown(found: Found, variant: str, measure: str) -> str:
    return f"{mean(found, variant, measure):.3f}" if variant in found["variants"] else "–"


def best_of_others(found: Found, measure: str) -> str:
    known = [name for name in BASELINES if name in found["variants"]]
    best = max(known, key=lambda name: mean(found, name, measure))
    return f"{mean(found, best, measure):.3f} ({best})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study_tables", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what benchmarks.study has written")
    designs = read(parser.parse_args(arguments).files)
    print(score_table(designs), recovery_table(designs), sep="\n\n")


if __name__ == "__main__":
    main()
