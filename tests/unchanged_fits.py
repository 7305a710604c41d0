"""Small fits whose answers must not change: `python tests/unchanged_fits.py` writes them to unchanged_fits.json.

Only the public API is used, so that revisions with other modules can be held against each other.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ngp import NGPClassifier, NGPRegressor, SSFNClassifier, SSFNRegressor
from ngp.paper.published_ssfn import PublishedSSFN
from ngp.predictors import CNN, MLP, SSFN, Kernel

FILE = Path(__file__).with_suffix(".json")
ROWS, COLUMNS = 80, 9
_draw = np.random.default_rng(2207).standard_normal
X = _draw((ROWS, COLUMNS))
X[:, 8] = X[:, 0] + X[:, 1] + 0.3 * X[:, 8]  # a decoy
Y = {
    "curve": np.sin(2 * X[:, 2]) + X[:, 5] * X[:, 3] + 0.1 * _draw(ROWS),
    "sum": X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.2 * _draw(ROWS),
    "product": X[:, 1] * X[:, 6] + 0.1 * _draw(ROWS),
    "two": np.stack([X[:, 1] + X[:, 2] ** 2, X[:, 7]], axis=1) + 0.1 * _draw((ROWS, 2)),
    "noise": _draw(ROWS),
}
Y["classes"] = np.array(["a", "b", "c"])[np.digitize(Y["sum"], [-0.6, 0.6])]
Y["signs"] = np.where(Y["product"] > 0, "yes", "no")
GROUPS = [[0, 1], [2], [3, 4], [4, 5, 6], [7], [8]]
WEIGHTS = np.random.default_rng(1).integers(0, 4, ROWS).astype(float)
SMALL = {"n_units": 20, "n_draws": 2, "refit_units": 20}
NETWORK = {"n_units": 8, "epochs": 3, "n_draws": 1, "refit_epochs": 3}


def selector(target: str, predictor: Any = None, *, rows: slice = slice(None), **options: Any) -> Callable[[], Any]:
    """How to make a fit."""

    def fit() -> NGPClassifier | NGPRegressor:
        given = SSFN(**SMALL) if predictor is None else predictor() if isinstance(predictor, type) else predictor
        fitting = {name: options.pop(name) for name in ("sample_weight", "cv_groups") if name in options}
        kind = NGPClassifier if target in ("classes", "signs") else NGPRegressor
        return kind(given, random_state=7, **options).fit(X[rows], Y[target][rows], **fitting)

    return fit


def network(cls: Any, target: str, **options: Any) -> Callable[[], Any]:
    """How to fit a network on all columns."""
    return lambda: cls(random_state=3, **options).fit(X, Y[target])


def image() -> Any:
    """A network that reads images of 3 x 3 pixels."""
    return CNN(
        network=lambda shape, n_outputs: _image_network(shape, n_outputs), epochs=2, batch_size=40, refit_epochs=2
    )


def _image_network(shape: tuple[int, int, int], n_outputs: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Conv2d(shape[0], 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, n_outputs))


def each_step(step: int) -> Any:
    """A predictor of its own for every step."""
    return Kernel() if step == 1 else SSFN(**SMALL)


FITS: Mapping[str, Callable[[], Any]] = {
    "all defaults": selector("curve", SSFN),
    "all defaults, classes": selector("classes", SSFN),
    "all defaults, nothing to find": selector("noise", SSFN),
    "a number": selector("curve", n_features_to_select=3),
    "a share": selector("curve", n_features_to_select=0.35),
    "all columns": selector("sum", n_features_to_select=COLUMNS),
    "eta": selector("curve", tol=0.06),
    "eta and a number": selector("sum", tol=0.0, n_features_to_select=2),
    "plateau": selector("sum", stop="plateau"),
    "beyond chance": selector("sum", stop="auto"),
    "two outputs": selector("two", n_features_to_select=3),
    "three classes": selector("classes", n_features_to_select=3),
    "three classes, cross-entropy": selector("classes", n_features_to_select=2, loss="cross_entropy"),
    "three classes, hinge": selector("classes", n_features_to_select=2, loss="hinge"),
    "two classes": selector("signs", n_features_to_select=2),
    "groups": selector("curve", groups=GROUPS, n_features_to_select=3),
    "groups, by chance": selector("curve", groups=GROUPS),
    "labels": selector("sum", groups=[0, 0, 1, 1, 2, 2, 3, 3, 4], n_features_to_select=2),
    "fixed": selector("curve", fixed=[4, 2], n_features_to_select=4),
    "weights": selector("curve", n_features_to_select=3, sample_weight=WEIGHTS),
    "weights, by chance": selector("sum", sample_weight=WEIGHTS),
    "leave-one-out": selector("curve", cv="loo", n_features_to_select=2, rows=slice(40)),
    "hold-out": selector("curve", cv=0.3, n_features_to_select=2),
    "validation set": selector("curve", cv=(X[60:], Y["curve"][60:]), n_features_to_select=2, rows=slice(60)),
    "groups of rows": selector("sum", cv=GroupKFold(4), cv_groups=np.arange(ROWS) % 8, n_features_to_select=2),
    "floating": selector("sum", n_features_to_select=3, floating=True),
    "floating, by chance": selector("sum", floating=True),
    "floating, eta": selector("sum", tol=0.02, floating=True),
    "floating, groups": selector("sum", groups=GROUPS, n_features_to_select=2, floating=True),
    "pairs": selector("product", n_features_to_select=2),
    "pairs, by chance": selector("product"),
    "pairs, floating": selector("product", n_features_to_select=3, floating=True),
    "screened": selector("curve", screen=4, n_features_to_select=3),
    "screened pairs": selector("product", screen=6, n_features_to_select=2),
    "double precision": selector("curve", SSFN(**SMALL, dtype="float64"), n_features_to_select=3),
    "as it comes": selector("curve", SSFN(**SMALL, standardize=False, bias=False), n_features_to_select=2),
    "as published": selector("sum", PublishedSSFN(), n_features_to_select=2),
    "final network of its own size": selector("sum", SSFN(n_units=20, n_draws=2), n_features_to_select=2),
    "kernel": selector("curve", Kernel, n_features_to_select=2),
    "kernel, loo": selector("curve", Kernel(), cv="loo", n_features_to_select=2),
    "kernel, classes": selector("classes", Kernel, n_features_to_select=2),
    "mlp": selector("curve", MLP(**NETWORK), n_features_to_select=2),
    "mlp, classes, two layers": selector("classes", MLP(**NETWORK, n_layers=2), n_features_to_select=2),
    "cnn": selector("sum", image(), n_features_to_select=2),
    "tree": selector("sum", DecisionTreeRegressor(max_depth=3, random_state=0), n_features_to_select=2),
    "tree, classes": selector("classes", DecisionTreeClassifier(max_depth=3, random_state=0), n_features_to_select=2),
    "ridge": selector("sum", Ridge(), n_features_to_select=2),
    "several": selector("curve", [SSFN(**SMALL), Kernel()], n_features_to_select=2),
    "one for each step": selector("curve", each_step, n_features_to_select=2),
    "SSFNRegressor": network(SSFNRegressor, "sum", max_units=40, max_layers=2),
    "SSFNClassifier": network(SSFNClassifier, "classes", max_units=40, max_layers=2),
}


def answer(name: str) -> dict[str, Any]:
    """What a fit says, as numbers that JSON can hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = FITS[name]()
        predicted = getattr(fitted, "predict_proba", fitted.predict)(X[:4])
    found: dict[str, Any] = {"predicted": np.round(predicted, 9).tolist()}
    if not hasattr(fitted, "path_"):
        return found
    return found | {
        "order": fitted.order_.tolist(),
        "actions": [step.action for step in fitted.path_],
        "kept": [step.kept for step in fitted.path_],
        "groups": [step.group for step in fitted.path_],
        "n_fits": [step.n_fits for step in fitted.path_],
        "losses": [step.loss for step in fitted.path_],
        "before": [step.paired for step in fitted.path_[1:]],
        "errors": [step.standard_error for step in fitted.path_],
        "importances": fitted.feature_importances_.tolist(),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: answer(name) for name in FITS}, indent=1) + "\n", encoding="utf-8")
