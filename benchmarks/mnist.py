"""Pixels of 1,000 training digits, judged on the 10,000 test digits: python -m benchmarks.mnist."""

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
from ngp.predictors import SSFN

# Test accuracy in the paper, by share of the pixels.
PUBLISHED = {0.08: 0.8264, 0.16: 0.8499, 0.24: 0.8600, 0.32: 0.8649, 0.40: 0.8645}
N_TRAIN = 1000


def digits(subset: str, first: int = 0, n_images: int | None = None) -> tuple[FloatArray, IntArray]:
    images, labels = load_mnist(subset=subset)
    taken = slice(first, None if n_images is None else first + n_images)
    return images[taken].reshape(-1, 784) / 255, labels[taken].astype(np.intp)


def accuracies(
    order: IntArray, train: tuple[FloatArray, IntArray], test: tuple[FloatArray, IntArray], n_draws: int
) -> dict[str, dict[str, float]]:
    """Test accuracy with the first pixels of the order. The test digits have no say in it."""
    n_pixels = train[0].shape[1]
    shares = {share: round(share * n_pixels) for share in PUBLISHED if round(share * n_pixels) < len(order)}
    result = {}
    for share, n in (shares | {len(order) / n_pixels: len(order)}).items():
        selector = make_selector(n_draws, n_features_to_select=n, fixed=order[:n]).fit(*train)
        nearest = min(PUBLISHED, key=lambda published: abs(published - share))
        close = abs(nearest - share) * n_pixels < 1
        result[f"{share:.3f}"] = {
            "n_pixels": n,
            "train_accuracy": selector.score(*train),
            "test_accuracy": selector.score(*test),
        } | ({"published": PUBLISHED[nearest]} if close else {})
    return result


def make_selector(n_draws: int, **parameters: Any) -> NeuralGreedyPursuit:
    return NeuralGreedyPursuit(SSFN(n_draws=n_draws), n_jobs=-1, random_state=0, **parameters)


def report(results: dict[str, Any]) -> None:
    print(f"\n{results['n_draws']} draws, {results['seconds']:.0f} s for {len(results['order'])} pixels")
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
    parser.add_argument("--share", type=float, default=0.16, help="share of the pixels to select")
    parser.add_argument("--draws", type=int, default=SSFN().n_draws, help="random layers of the SSFN")
    parser.add_argument("--first-image", type=int, default=0, help="train on this image and those that follow")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print_facts(facts)
    train, test = digits("train", options.first_image, N_TRAIN), digits("test")
    start = perf_counter()
    selector = make_selector(options.draws, n_features_to_select=options.share, verbose=1).fit(*train)
    results = {
        "machine": facts,
        "n_draws": options.draws,
        "first_image": options.first_image,
        "seconds": perf_counter() - start,
        "order": selector.order_.tolist(),
        "accuracy": accuracies(selector.order_, train, test, options.draws),
    }
    report(results)
    save_json(options.json, results)


if __name__ == "__main__":
    main()
