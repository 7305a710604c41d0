"""Ranges that `estimate` predicts beside the time of the fit: python -m benchmarks.estimates."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.ensemble import RandomForestRegressor

from benchmarks.common import machine_facts, print_facts, save_json
from benchmarks.data import make_wide_data
from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN

# Rows, columns, and the selector's parameters.
FITS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "SSFN": (300, 500, {"n_features_to_select": 5}),
    "SSFN, one draw, 40 steps": (300, 500, {"predictor": SSFN(n_draws=1), "n_features_to_select": 40}),
    "SSFN, many columns": (300, 20_000, {"n_features_to_select": 2}),
    "SSFN, screened": (300, 20_000, {"n_features_to_select": 5, "screen": "auto"}),
    "SSFN, many rows": (20_000, 50, {"n_features_to_select": 3}),
    "SSFN, floating": (300, 200, {"n_features_to_select": 4, "floating": True}),
    "SSFN, tol": (300, 500, {"tol": 0.05}),
    "SSFN, p-values": (300, 200, {}),
    "Kernel": (300, 500, {"predictor": "kernel", "n_features_to_select": 5}),
    "MLP": (300, 50, {"predictor": "mlp", "n_features_to_select": 2}),
    "random forest": (300, 20, {"predictor": RandomForestRegressor(30), "n_features_to_select": 2}),
}


def compare(name: str) -> dict[str, Any]:
    """Prediction and truth of one fit."""
    n_rows, n_columns, parameters = FITS[name]
    X, y = make_wide_data(n_rows, n_columns, "float64")
    selector = NeuralGreedyPursuit(**{"random_state": 0, "device": "cpu", **parameters})
    begin = perf_counter()
    found = selector.estimate(X, y)
    asked = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was selected")
        selector.fit(X, y)
    seconds, (low, high) = perf_counter() - asked, map(float, found.seconds)
    return {
        "fit": name,
        "predicted": [low, high],
        "seconds": seconds,
        "inside": low <= seconds <= high,
        "n_fits": found.n_fits,
        "estimate_seconds": asked - begin,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("--fits", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    print(f"\n{'seconds of a fit':28s}{'predicted':>20s}{'measured':>10s}  inside{'to estimate':>13s}")
    rows = []
    for name in options.fits:
        if name == "MLP" and find_spec("torch") is None:
            continue
        rows.append(row := compare(name))
        low, high = row["predicted"]
        print(
            f"{name:28s}{low:8.2f} to {high:8.2f}{row['seconds']:10.2f}  {'yes' if row['inside'] else 'no':6s}"
            f"{row['estimate_seconds']:13.1f}",
            flush=True,
        )
    inside = sum(row["inside"] for row in rows)
    print(f"{inside} of {len(rows)} fits are inside the range")
    save_json(options.json, {"machine": facts, "share_inside": inside / len(rows), "fits": rows})


if __name__ == "__main__":
    main()
