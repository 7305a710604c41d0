"""SSFN as a predictor: one layer of random ReLU units, all candidates of a step scored together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ngp.data.problem import Problem
from ngp.kernels.devices import resolve_device
from ngp.kernels.parallel import on_cluster
from ngp.predictors.base import Predictor
from ngp.predictors.ssfn_cluster import SSFNClusterScorer
from ngp.predictors.ssfn_gpu import SSFNGpuScorer
from ngp.predictors.ssfn_scorer import SSFNScorer

__all__ = ["SSFN"]

# By itself a GPU is chosen only where a step takes so many operations: a second or two of a CPU's core, no less than
# it takes to get a GPU ready.
GPU_FROM_OPERATIONS = 1e11


class SSFN(Predictor, BaseEstimator):  # type: ignore[misc]
    """One-layer self size-estimating feed-forward network, the predictor of the paper's experiments.

    Random ReLU units and the sign-split linear prediction feed a linear output layer that is solved for exactly, so
    that thousands of candidates can be retrained a second. The prediction is the mean over a few independent
    random layers. All candidates of a step share their random weights, so that they differ by worth, not by luck;
    each step has weights of its own, so that no selection is tuned to one layer's luck.

    Parameters
    ----------
    n_units : int, default=100
        Random units in a layer.
    n_draws : int, default=8
        Independent random layers whose predictions are averaged. The cost is proportional.
    ridge : float, default=1.0
        Ridge penalty of the output layer.
    linear_ridge : float, default=3.0
        Ridge penalty of the linear part, times the number of selected columns where they are standardised.
    norm_bound : float, "auto" or None, default=None
        Largest norm of the output weights; ``"auto"`` is the authors' 2 sqrt(2 n_outputs).
    bias : bool, default=True
        Whether units have a random bias and the outputs an intercept.
    standardize : bool, default=True
        Whether columns and targets are scaled to mean zero and deviation one, and the pre-activations divided by
        the root of the number of columns.
    clip : float or None, default=4.0
        Standardised columns are held within so many deviations, so that no outlier, in training or later, rules the
        layer. None lets them go; raw columns are never clipped.
    unit_norm : bool, default=False
        Whether each sample's random projections are scaled to unit norm.
    redraw : bool, default=False
        Whether every candidate gets random weights of its own, so that luck has a say. Slower.
    distribution : {"normal", "uniform"}, default="normal"
        Of the random weights and biases.
    refit_units : int or "auto", default="auto"
        Width of the layers of the final predictor. ``"auto"`` also tries wider layers and larger ridges, and takes what
        has the lowest validation loss, or the fewest mistakes where classes are judged by the squared error. It is
        judged on the splits of the pursuit, ten of them where there are more; more than ten folds, as of leave-one-out,
        are first put together to five, at random. Wider layers have fewer draws, so that the number of units stays
        the same until one layer is left.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the scoring.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(SSFN(n_draws=2), n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.order_
    array([1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "linear_ridge": [Interval(Real, 0, None, closed="left")],
        "norm_bound": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "bias": ["boolean"],
        "standardize": ["boolean"],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "unit_norm": ["boolean"],
        "redraw": ["boolean"],
        "distribution": [StrOptions({"normal", "uniform"})],
        "refit_units": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "dtype": [StrOptions({"float32", "float64"})],
    }

    uses_gpu = True

    def __init__(
        self,
        *,
        n_units: int = 100,
        n_draws: int = 8,
        ridge: float = 1.0,
        linear_ridge: float = 3.0,
        norm_bound: float | Literal["auto"] | None = None,
        bias: bool = True,
        standardize: bool = True,
        clip: float | None = 4.0,
        unit_norm: bool = False,
        redraw: bool = False,
        distribution: Literal["normal", "uniform"] = "normal",
        refit_units: int | Literal["auto"] = "auto",
        dtype: str = "float32",
    ) -> None:
        self.n_units = n_units
        self.n_draws = n_draws
        self.ridge = ridge
        self.linear_ridge = linear_ridge
        self.norm_bound = norm_bound
        self.bias = bias
        self.standardize = standardize
        self.clip = clip
        self.unit_norm = unit_norm
        self.redraw = redraw
        self.distribution = distribution
        self.refit_units = refit_units
        self.dtype = dtype

    @classmethod
    def published(cls) -> SSFN:
        """Make the network as in the authors' code: no bias, raw features, unit-norm projections, fresh weights.

        Returns
        -------
        SSFN
            For ``predictor`` of `ngp.NeuralGreedyPursuit`.

        Examples
        --------
        >>> SSFN.published().linear_ridge
        100.0
        """
        return cls(
            n_draws=1,
            ridge=0.0,
            linear_ridge=100.0,
            norm_bound="auto",
            bias=False,
            standardize=False,
            unit_norm=True,
            redraw=True,
            distribution="uniform",
            refit_units=100,
        )

    def bind(
        self,
        problem: Problem,
        *,
        random_state: int,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> SSFNScorer:
        """Prepare for one problem."""
        self._validate_params()
        kind = SSFNScorer
        if self._device(problem, device) == "cuda":
            kind = SSFNClusterScorer if on_cluster() else SSFNGpuScorer
        return kind(self, problem, random_state, n_jobs, np.dtype(self.dtype))

    def _device(self, problem: Problem, asked: str) -> str:
        """Where to score: a GPU where one is asked for, or where it can and pays."""
        able = self.ridge > 0 and self.norm_bound is None and not self.redraw
        if asked == "mps" or (asked == "cuda" and not able):
            kind = "an SSFN" if able else "an SSFN with a norm bound, without a ridge or with redraw=True"
            raise ValueError(f"device={asked!r} can't run {kind}: use device='cpu' or 'auto'.")
        if on_cluster():  # whose workers have devices of their own
            return "cpu" if asked == "auto" else asked
        if asked == "auto":
            rows = sum(len(round_.rows) for round_ in problem.rounds)
            operations = 2.0 * problem.groups.n_groups * self.n_draws * rows * self.n_units**2
            if not able or operations < GPU_FROM_OPERATIONS:
                return "cpu"
        return "cuda" if resolve_device(asked, self.dtype) == "cuda" else "cpu"
