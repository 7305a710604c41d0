"""What a step of the pursuit costs: the operations that it needs, and a model of its seconds fitted to measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from benchmarks.speed import operations


@dataclass(frozen=True)
class Size:
    """What the time of a step depends on; `n_jobs` is None for all cores."""

    n_candidates: int
    n_samples: int = 300
    n_units: int = 100
    n_selected: int = 4
    n_folds: int = 5
    n_outputs: int = 1
    n_jobs: int | None = None

    @property
    def n_unknowns(self) -> int:
        """Of each output layer: units, the intercept, and the linear part with both signs."""
        return self.n_units + 1 + 2 * self.n_outputs

    @property
    def operations(self) -> float:
        """Operations that the whole step needs at least, counted as in `benchmarks.speed`."""
        return self.n_candidates * operations(self.n_samples, self.n_folds, self.n_outputs, self.n_units)


TERMS = {
    "step": "a step, whatever its size",
    "candidate": "a candidate, whatever its size",
    "gram": "10⁹ operations of Gram products",
    "solve": "10⁹ operations of factorisations and solutions",
    "linear": "10⁹ predictions of the linear part",
    "selection": "10⁹ operations with the selected columns",
}


def terms(size: Size) -> dict[str, float]:
    """How much of everything a step does; additions and multiplications count one each, symmetric halves once.

    A sample's row holds units, intercept and targets, and linear units of every fold, since the linear part sees no
    targets of the fold that it is judged by (see _rows.h). One Gram product of these rows serves all folds. What a
    candidate is beside the selected columns is found for each fold, too (see _linear.h).
    """
    many, J, K, Q, n = size.n_candidates, size.n_samples, size.n_folds, size.n_outputs, size.n_unknowns
    row = size.n_units + 1 + Q + 2 * Q * K
    return {
        "step": 1.0,
        "candidate": float(many),
        "gram": many * J * row**2 / 1e9,
        "solve": many * K * (n**3 / 3 + 2 * Q * n**2) / 1e9,
        "linear": many * J * K * Q / 1e9,
        "selection": many * 2 * size.n_selected * (J * (K + 1) + K * size.n_selected) / 1e9,
    }


@dataclass(frozen=True)
class CostModel:
    """Seconds for one of each term."""

    seconds: Mapping[str, float]

    @classmethod
    def fit(cls, sizes: Sequence[Size], seconds: Sequence[float]) -> CostModel:
        """The constants, none of them negative, with the least squares of relative errors."""
        rows = np.array([list(terms(size).values()) for size in sizes]) / np.array(seconds)[:, None]
        scales = rows.max(axis=0)
        found, _ = nnls(rows / scales, np.ones(len(rows)))
        return cls(dict(zip(TERMS, (found / scales).tolist(), strict=True)))

    def predict(self, size: Size) -> float:
        """Seconds of a step."""
        return sum(self.seconds[name] * amount for name, amount in terms(size).items())

    def ratios(self, sizes: Sequence[Size], seconds: Sequence[float]) -> list[float]:
        """By how much the model is off at each point, whichever of the two is larger: 1 is no error."""
        pairs = [(self.predict(size), measured) for size, measured in zip(sizes, seconds, strict=True)]
        return [max(pair) / min(pair) for pair in pairs]
