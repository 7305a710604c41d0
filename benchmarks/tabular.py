"""Real tables with columns of noise: python -m benchmarks.tabular.

The data of Cherepanova et al., "A Performance-Driven Benchmark for Feature Selection in Tabular Deep Learning", NeurIPS
2023: noise is added to the d columns of a table, d columns are selected on the training rows, and an MLP is trained on
them. Its error on the test rows counts. Validation rows decide which of a few MLPs is taken, and when training ends.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise, product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.stats import rankdata
from sklearn.feature_selection import f_regression
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import QuantileTransformer
from threadpoolctl import threadpool_limits

from benchmarks.common import machine_facts, mean_and_error, print_facts, save_json
from benchmarks.peer_methods import is_installed
from benchmarks.rankings import Method, highest, ngp
from ngp._types import BoolArray, FloatArray, IntArray
from ngp.baselines import registry
from ngp.datasets.loaders import _find

NOISES = ("random", "corrupted", "second-order")
SHARES = (0.5, 0.75)
# The best of the paper's methods, for both shares.
PUBLISHED = {
    "california": {"random": (0.441, 0.446), "corrupted": (0.437, 0.441), "second-order": (0.436, 0.434)},
    "house16h": {"random": (0.549, 0.549), "corrupted": (0.549, 0.563), "second-order": (0.548, 0.542)},
}
# All of these MLPs are trained for every method.
GRID = tuple({"learning_rate": rate, "dropout": dropout} for rate, dropout in product((1e-3, 3e-3), (0.1, 0.2)))
TRAINING = {"widths": (128, 128, 128), "weight_decay": 1e-4, "batch": 512, "epochs": 200, "patience": 20}
OURS, TRUE = "ngp", "true"

Found = dict[str, Any]


class Data(NamedTuple):
    """Columns as normal deviates, the standardised target, and which columns are real."""

    X: FloatArray
    y: FloatArray
    parts: tuple[IntArray, IntArray, IntArray]  # rows for training, validation and test
    real: BoolArray


def load(name: str) -> tuple[FloatArray, FloatArray]:
    path = _find(file := f"tables/{name}.npz")
    if path is None:
        raise OSError(f"{name} is not on disk; set NGP_DATA to a folder that holds {file}.")
    with np.load(path) as data:
        return data["X"].astype(np.float64), data["y"].astype(np.float64)


def noise_columns(X: FloatArray, noise: str, share: float, rng: np.random.Generator) -> FloatArray:
    """As many columns as make up this share of all of them."""
    n = round(X.shape[1] * share / (1 - share))
    normal, (first, second) = rng.normal(size=(len(X), n)), rng.integers(X.shape[1], size=(2, n))
    if noise == "random":
        return normal
    if noise == "corrupted":
        return 0.5 * X[:, first] + 0.5 * X[:, first].std(axis=0) * normal
    return X[:, first] * X[:, second]


def prepare(table: str, noise: str, share: float, seed: int, n_rows: int | None) -> Data:
    """The table with noise, its columns in random order, scaled by the training rows as in the paper."""
    rng = np.random.default_rng(seed)
    X, y = load(table)
    rows, d = rng.permutation(len(X))[:n_rows], X.shape[1]
    X, y = X[rows], y[rows]
    X = np.column_stack([X, noise_columns(X, noise, share, rng)])
    order = rng.permutation(X.shape[1])
    rest, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=seed)
    train, validation = train_test_split(rest, test_size=0.15 / 0.8, random_state=seed)
    deviations = 1e-3 / np.maximum(X[train].std(axis=0), 1e-3)  # of noise that tells equal values apart
    to_normal = QuantileTransformer(
        n_quantiles=max(min(len(train) // 30, 1000), 10), output_distribution="normal", subsample=None
    ).fit(X[train] + deviations * rng.normal(size=X[train].shape))
    y = (y - y[train].mean()) / y[train].std()
    return Data(to_normal.transform(X)[:, order], y, (train, validation, test), order < d)


# ---------------------------------------------------------------- selection


def xgboost(X: FloatArray, y: FloatArray, number: int, seed: int) -> list[int]:
    model = import_module("xgboost").XGBRegressor(importance_type="total_gain", n_jobs=1, random_state=seed)
    return highest(model.fit(X, y).feature_importances_, number)


def baseline(name: str, X: FloatArray, y: FloatArray, number: int, seed: int) -> list[int]:
    """A method of `ngp.baselines` that rates all columns."""
    selector = registry[name](n_features_to_select=number, task="regression", random_state=seed, n_jobs=1)
    return highest(selector.fit(X, y).importances_, number)


def lasso(X: FloatArray, y: FloatArray, number: int, seed: int) -> list[int]:
    """Columns in the order in which they enter the path, those that enter together by their coefficients."""
    model = LassoCV(random_state=seed).fit(X, y)
    lengths = np.count_nonzero(model.path(X, y, alphas=model.alphas_)[1], axis=1)
    return np.lexsort([-np.abs(model.coef_), -lengths])[:number].tolist()


METHODS: dict[str, Method] = {
    OURS: Method("NGP", ngp),
    "xgboost": Method("XGBoost", xgboost, "xgboost"),
    "forest": Method("random forest", partial(baseline, "random-forest")),
    "lassonet": Method("LassoNet", partial(baseline, "lassonet"), "lassonet"),
    "lasso": Method("L1", lasso),
    "univariate": Method("univariate", lambda X, y, number, seed: highest(f_regression(X, y)[0], number)),
    "all": Method("all columns", lambda X, y, number, seed: list(range(X.shape[1]))),
}
TITLES = {name: method.title for name, method in METHODS.items()} | {TRUE: "true columns"}


def select(name: str, data: Data, seed: int) -> tuple[list[int], float]:
    """As many columns as are real, and the seconds that it took."""
    import_module(METHODS[name].module)
    train = data.parts[0]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        columns = METHODS[name].rank(data.X[train], data.y[train], int(data.real.sum()), seed)
        return columns, perf_counter() - start


# ---------------------------------------------------------------- MLPs


def errors(data: Data, sets: Sequence[Sequence[int]], setting: Found, seed: int, device: str) -> FloatArray:
    """RMSE of an MLP for each set of columns on validation and test rows, from its best epoch on validation rows.

    The MLPs are one stack, but each is what it would be alone: all start with the same random numbers, see the same
    batches and drop the same units. Missing columns are columns of zeros.
    """
    import torch

    stack = np.zeros((len(sets), len(data.X), max(map(len, sets))), dtype=np.float32)
    for own, columns in zip(stack, sets, strict=True):
        own[:, : len(columns)] = data.X[:, columns]
    X, y = torch.tensor(stack, device=device), torch.tensor(data.y, dtype=torch.float32, device=device)
    train, *held_out = (torch.tensor(part, device=device) for part in data.parts)
    random = torch.Generator(device).manual_seed(seed)
    layers = []
    for n_in, n_out in pairwise([data.X.shape[1], *TRAINING["widths"], 1]):
        fans = torch.tensor([n_in if layers else len(columns) for columns in sets], device=device)
        draw = torch.randn((n_in, n_out), generator=random, device=device)[: n_in if layers else X.shape[2]]
        weights = draw / (3 * fans[:, None, None]).sqrt()  # the variance of torch's own layers
        layers.append((weights.requires_grad_(), torch.zeros(len(sets), 1, n_out, device=device, requires_grad=True)))

    def predict(inputs: Any, dropout: float = 0.0) -> Any:
        *hidden, (weights, offsets) = layers
        for each in hidden:
            inputs = torch.relu(torch.baddbmm(each[1], inputs, each[0]))
            if dropout:
                kept = torch.rand(inputs.shape[1:], generator=random, device=device) >= dropout
                inputs = inputs * kept / (1 - dropout)
        return torch.baddbmm(offsets, inputs, weights)[..., 0]

    optimizer = torch.optim.AdamW(
        [parameter for layer in layers for parameter in layer],
        lr=setting["learning_rate"],
        weight_decay=TRAINING["weight_decay"],
    )
    best = torch.full((2, len(sets)), torch.inf, device=device)
    best_epoch = torch.zeros(len(sets), device=device)
    for epoch in range(TRAINING["epochs"]):
        for batch in train[torch.randperm(len(train), generator=random, device=device)].split(TRAINING["batch"]):
            optimizer.zero_grad()
            (predict(X[:, batch], setting["dropout"]) - y[batch]).square().mean(dim=1).sum().backward()
            optimizer.step()
        with torch.no_grad():
            found = torch.stack([(predict(X[:, part]) - y[part]).square().mean(dim=1).sqrt() for part in held_out])
        going_on = epoch - best_epoch <= TRAINING["patience"]
        better = going_on & (found[0] < best[0])
        best, best_epoch = torch.where(better, found, best), torch.where(better, epoch, best_epoch)
        if not going_on.any():
            break
    return best.cpu().numpy().astype(np.float64)


def run(table: str, noise: str, share: float, seed: int, options: argparse.Namespace) -> Found:
    """Select with all methods from the same data, then train the MLPs."""
    from ngp.predictors.networks import one_torch_thread

    data = prepare(table, noise, share, seed, options.rows)
    methods: Found = {}
    for name in options.methods:
        columns, seconds = select(name, data, seed)
        methods[name] = {"seconds": seconds, "real": int(data.real[columns].sum()), "columns": columns}
    methods[TRUE] = {"columns": np.flatnonzero(data.real).tolist()}
    # Methods that select the same columns, in whatever order, share their MLPs, and so have the same error.
    sets = list(dict.fromkeys(tuple(sorted(each["columns"])) for each in methods.values()))
    with one_torch_thread():
        trained = np.array([errors(data, sets, setting, seed, options.device) for setting in GRID])
    for each in methods.values():
        validation, test = trained[:, :, sets.index(tuple(sorted(each["columns"])))].T
        each |= {"setting": int(validation.argmin()), "rmse": float(test[validation.argmin()])}
    return {"cell": (table, noise, share), "seed": seed, "n_columns": len(data.real), "methods": methods}


# ---------------------------------------------------------------- results


def summary(runs: Sequence[Found]) -> Found:
    """Means over the seeds, and how much larger each method's error is than NGP's, seed by seed."""
    runs = sorted(runs, key=lambda run: run["seed"])
    table, noise, share = runs[0]["cell"]
    methods: Found = {}
    for name in runs[0]["methods"]:
        own = [run["methods"][name] for run in runs]
        methods[name] = {"rmse": mean_and_error([each["rmse"] for each in own])}
        if name != TRUE:
            methods[name] |= {key: float(np.mean([each[key] for each in own])) for key in ("real", "seconds")}
        if name != TRUE and OURS in runs[0]["methods"]:
            pairs = [each["rmse"] - run["methods"][OURS]["rmse"] for each, run in zip(own, runs, strict=True)]
            methods[name]["minus_ngp"] = mean_and_error(pairs)
    published = PUBLISHED[table][noise][SHARES.index(share)]
    about = {"table": table, "noise": noise, "share": share, "d": len(runs[0]["methods"][TRUE]["columns"])}
    return about | {"published": published, "methods": methods, "runs": runs}


def mean_ranks(cells: Sequence[Found]) -> dict[str, float]:
    """Means over the cells; the true columns have no rank, as nobody knows them."""
    names = [name for name in cells[0]["methods"] if name != TRUE]
    ranks = [rankdata([cell["methods"][name]["rmse"]["mean"] for name in names]) for cell in cells]
    return dict(zip(names, np.mean(ranks, axis=0).tolist(), strict=True))


def with_error(value: Mapping[str, Any], sign: str = "") -> str:
    error = value["standard_error"]
    return f"{value['mean']:{sign}.3f}" + ("" if error is None else f" ± {error:.3f}")


def where(cell: Found) -> str:
    return f"{cell['table']}, {cell['noise']} {cell['share']:.0%}"


def markdown(cells: Sequence[Found]) -> str:
    """Where NGP is behind, by however little, then all errors."""
    lines = ["Ahead of NGP (RMSE minus NGP's):", ""]
    for cell in cells:
        behind = {name: each["minus_ngp"] for name, each in cell["methods"].items() if "minus_ngp" in each}
        better = sorted((each["mean"], name) for name, each in behind.items() if each["mean"] < 0)
        if better:
            text = ", ".join(f"{TITLES[name]} {with_error(behind[name], '+')}" for _, name in better)
            lines.append(f"- {where(cell)}: {text}")
    lines += ["- nowhere"] if len(lines) == 2 else []
    names, ranks = list(cells[0]["methods"]), mean_ranks(cells)
    titles = ["RMSE (real columns among those kept)", *(TITLES[name] for name in names), "published, best"]
    rows = [titles, ["---"] + ["---:"] * (len(titles) - 1)]
    for cell in cells:
        found = cell["methods"].values()
        entries = [with_error(each["rmse"]) + (f" ({each['real']:.1f})" if "real" in each else "") for each in found]
        rows.append([f"{where(cell)}, d = {cell['d']}", *entries, f"{cell['published']:.3f}"])
    rows.append([f"mean rank in {len(cells)} cells", *(f"{ranks[n]:.2f}" if n in ranks else "" for n in names), ""])
    return "\n".join([*lines, "", *(f"| {' | '.join(row)} |" for row in rows)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabular", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--show", type=Path, nargs="+", metavar="FILE", help="run nothing: the table of these results")
    parser.add_argument("--tables", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--shares", nargs="+", type=float, choices=SHARES, default=list(SHARES), help="of noise")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5, help="of the noise, the split and the methods, from 0 on")
    parser.add_argument("--rows", type=int, help="rows of each table, drawn at random; all by default")
    parser.add_argument("--device", default="cpu", help="of the MLPs")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    options = parser.parse_args(arguments)
    if options.show:
        print(markdown([cell for file in options.show for cell in json.loads(file.read_text())["cells"]]))
        return
    for name in [name for name in options.methods if not is_installed(METHODS[name].module)]:
        print(f"{name}: LEFT OUT. {METHODS[name].module} is not installed.")
        options.methods.remove(name)
    machine = machine_facts() | {name: version(name) for name in ("lassonet", "xgboost") if name in options.methods}
    plan = {name: getattr(options, name) for name in ("methods", "seeds", "rows", "device")}
    results: Found = {"machine": machine, "plan": plan | {"grid": GRID, "training": TRAINING}}
    print_facts(machine)
    titles = "".join(f"{TITLES[name]:>14s}" for name in [*options.methods, TRUE])
    print(f"\n{'':12s}{'noise':14s}{'share':>5s}{'seed':>6s}{titles}", flush=True)
    done: dict[Any, list[Found]] = {cell: [] for cell in product(options.tables, options.noises, options.shares)}
    for found in joblib.Parallel(options.jobs, return_as="generator_unordered")(
        joblib.delayed(run)(*cell, seed, options) for cell in done for seed in range(options.seeds)
    ):
        table, noise, share = found["cell"]
        rmse = "".join(f"{each['rmse']:14.4f}" for each in found["methods"].values())
        print(f"{table:12s}{noise:14s}{share:5.0%}{found['seed']:6d}{rmse}", flush=True)
        done[found["cell"]].append(found)
        if len(done[found["cell"]]) == options.seeds:
            results["cells"] = [summary(runs) for runs in done.values() if len(runs) == options.seeds]
            results["mean_ranks"] = mean_ranks(results["cells"])
            save_json(options.json, results)
    print(f"\n{markdown(results['cells'])}")


if __name__ == "__main__":
    main()
