"""Pixels or windows of 1,000 training digits, judged on the 10,000 test digits: python -m benchmarks.mnist."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import FloatArray, IntArray
from ngp.data.groups import image_windows, make_groups
from ngp.data.problem import make_problem
from ngp.datasets import load_mnist
from ngp.predictors import CNN, SSFN, Predictor

# Test accuracy in the paper, by share of the pixels.
PUBLISHED = {
    "ssfn": {0.08: 0.8264, 0.16: 0.8499, 0.24: 0.8600, 0.32: 0.8649, 0.40: 0.8645},
    "cnn": {0.40: 0.8625},
}
SHARES = tuple(PUBLISHED["ssfn"])
N_TRAIN = 1000

Digits = tuple[FloatArray, IntArray]


def digits(subset: str, first: int = 0, n_images: int | None = None) -> Digits:
    images, labels = load_mnist(subset=subset)
    taken = slice(first, None if n_images is None else first + n_images)
    return images[taken].reshape(-1, 784) / 255, labels[taken].astype(np.intp)


def make_predictor(options: argparse.Namespace) -> Predictor:
    if options.predictor == "ssfn":
        return SSFN(n_draws=options.draws)
    return CNN(network=options.network, refit_epochs=options.refit_epochs or "auto")


def sizes_of(counts: Sequence[int]) -> dict[float, int]:
    """For each share of the pixels the largest selection within it, as a number of pixels; the last one is all."""
    shares = {share: max((n for n in counts if n <= round(share * 784)), default=0) for share in SHARES}
    reached = {share: n for share, n in shares.items() if 0 < n < counts[-1]}
    return reached | {counts[-1] / 784: counts[-1]}


def accuracies(columns: Sequence[IntArray], train: Digits, test: Digits, options: Any) -> dict[str, dict[str, Any]]:
    """Accuracies with the first of the selected windows or pixels. The test digits have no say in them."""
    sizes, pixels = sizes_of(np.cumsum([len(each) for each in columns]).tolist()), np.concatenate(columns)
    tasks = [(pixels[:n], train, test, options, seed) for n in sizes.values() for seed in range(options.seeds)]
    n_jobs = 1 if options.predictor == "ssfn" or options.seeds == 1 else -1
    found = joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(final_accuracies)(*task) for task in tasks)
    result = {}
    for i, (share, n) in enumerate(sizes.items()):
        own = np.array(found[i * options.seeds : (i + 1) * options.seeds])
        published = [known for at, known in PUBLISHED[options.predictor].items() if abs(at - share) < 0.02]
        result[f"{share:.3f}"] = {
            "n_pixels": n,
            "train_accuracy": own[:, 0].mean(),
            "test_accuracy": own[:, 1].mean(),
            "test_accuracies": own[:, 1].tolist(),
        } | ({"published": published[0]} if published else {})
    return result


def final_accuracies(pixels: IntArray, train: Digits, test: Digits, options: Any, seed: int) -> tuple[float, float]:
    """Accuracies of the predictor that a selector ends with, on training and test digits."""
    predictor = make_predictor(options)
    seed = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)  # as the selector does
    loss = predictor.classification_loss
    problem = make_problem(*train, groups=make_groups(None, 784), loss=loss, random_state=seed)
    final = predictor.bind(problem, random_state=seed, n_jobs=-1, device="auto").fit(pixels)
    first, second = (float((final.predict(X).argmax(axis=1) == y).mean()) for X, y in (train, test))
    return first, second


def select(train: Digits, options: argparse.Namespace) -> NeuralGreedyPursuit:
    groups = None if options.window == 1 else image_windows((28, 28), options.window)
    selector = NeuralGreedyPursuit(
        make_predictor(options), groups=groups, n_features_to_select=options.share, n_jobs=-1, random_state=0, verbose=1
    )
    return selector.fit(*train)


def report(results: dict[str, Any]) -> None:
    print(f"\n{results['predictor']}, {results['seconds']:.0f} s for {len(results['order'])} steps")
    print(f"{'share':>6s} {'pixels':>7s} {'train':>7s} {'test':>7s} {'published':>10s}")
    for share, row in results["accuracy"].items():
        published = f"{row['published']:.2%}" if "published" in row else ""
        print(
            f"{float(share):6.0%} {row['n_pixels']:7d} {row['train_accuracy']:7.2%} "
            f"{row['test_accuracy']:7.2%} {published:>10s}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mnist", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--predictor", choices=("ssfn", "cnn"), default="ssfn")
    parser.add_argument("--network", choices=("paper", "strong"), default="paper", help="of the CNN")
    parser.add_argument("--window", type=int, default=1, help="side of the windows that are selected; 1 for pixels")
    parser.add_argument("--share", type=float, default=0.16, help="share of the pixels to select")
    parser.add_argument("--draws", type=int, default=SSFN().n_draws, help="random layers of the SSFN")
    parser.add_argument("--order", type=Path, metavar="FILE", help="take the selection of an earlier run")
    parser.add_argument("--refit-epochs", type=int, help="of the final CNN; by default its own choice")
    parser.add_argument("--seeds", type=int, default=1, help="final predictors whose accuracies are averaged")
    parser.add_argument("--first-image", type=int, default=0, help="train on this image and those that follow")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    train, test = digits("train", options.first_image, N_TRAIN), digits("test")
    results = {
        "machine": facts,
        "predictor": repr(make_predictor(options)),
        "window": options.window,
        "first_image": options.first_image,
        "seeds": options.seeds,
    }
    start = perf_counter()
    if options.order:
        results["order"] = json.loads(options.order.read_text())["order"]
        results["order_of"] = options.order.name
    else:
        selector = select(train, options)
        results["step_seconds"] = [step.seconds for step in selector.path_[1:]]
        results["order"] = selector.order_.tolist()
    results["seconds"] = perf_counter() - start
    columns = [image_windows((28, 28), options.window).columns[group] for group in results["order"]]
    results["accuracy"] = accuracies(columns, train, test, options)
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
