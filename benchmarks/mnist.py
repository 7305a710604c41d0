"""Pixels or windows of 1,000 training digits, judged on the 10,000 test digits: python -m benchmarks.mnist."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import machine_facts, print_facts, save_json
from ngp import NeuralGreedyPursuit
from ngp._types import FloatArray, IntArray
from ngp.datasets import load_mnist
from ngp.groups import image_windows
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
    return CNN(network=options.network) if options.predictor == "cnn" else SSFN(n_draws=options.draws)


def make_selector(options: argparse.Namespace, **parameters: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(make_predictor(options), n_jobs=-1, random_state=0, **parameters)


def sizes_of(selector: NeuralGreedyPursuit) -> dict[float, int]:
    """For each share of the pixels the largest selection within it, as a number of pixels; the last one is all."""
    counts = [step.n_columns for step in selector.path_ if step.kept and step.n_columns]
    shares = {share: max((n for n in counts if n <= round(share * 784)), default=0) for share in SHARES}
    reached = {share: n for share, n in shares.items() if 0 < n < counts[-1]}
    return reached | {counts[-1] / 784: counts[-1]}


def accuracies(selector: NeuralGreedyPursuit, train: Digits, test: Digits, options: Any) -> dict[str, dict[str, Any]]:
    """Test accuracy with the first pixels of the order. The test digits have no say in it."""
    pixels = np.concatenate([step.columns for step in selector.path_ if step.kept])
    result = {}
    for share, n in sizes_of(selector).items():
        final = make_selector(options, n_features_to_select=n, fixed=pixels[:n]).fit(*train)
        published = [known for at, known in PUBLISHED[options.predictor].items() if abs(at - share) < 0.02]
        result[f"{share:.3f}"] = {
            "n_pixels": n,
            "train_accuracy": final.score(*train),
            "test_accuracy": final.score(*test),
        } | ({"published": published[0]} if published else {})
    return result


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
    parser.add_argument("--first-image", type=int, default=0, help="train on this image and those that follow")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    train, test = digits("train", options.first_image, N_TRAIN), digits("test")
    groups = None if options.window == 1 else image_windows((28, 28), options.window)
    start = perf_counter()
    selector = make_selector(options, groups=groups, n_features_to_select=options.share, verbose=1).fit(*train)
    results = {
        "machine": facts,
        "predictor": repr(make_predictor(options)),
        "window": options.window,
        "first_image": options.first_image,
        "seconds": perf_counter() - start,
        "step_seconds": [step.seconds for step in selector.path_[1:]],
        "order": selector.order_.tolist(),
        "accuracy": accuracies(selector, train, test, options),
    }
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
