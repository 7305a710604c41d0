"""scikit-learn estimators as bytes, by skops, which has no pickle in it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["TRUSTED", "estimator_bytes", "read_estimator"]

# What skops doesn't trust by itself, though estimators of scikit-learn and of this package are made of it. Types one by
# one and no functions: a rule such as "all of sklearn" would let a file call whatever can be reached from there.
TRUSTED = [
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._ball_tree.BallTree",
    *(
        f"sklearn.metrics._dist_metrics.{name}Distance64"
        for name in ("Chebyshev", "Euclidean", "Manhattan", "Minkowski")
    ),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    *(
        f"sklearn.gaussian_process.kernels.{name}"
        for name in (
            "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product",
            "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
        )
    ),
    "sklearn.utils._bunch.Bunch",
    "sklearn.metrics._scorer._PassthroughScorer",
    *(
        f"sklearn.model_selection._split.{name}"
        for name in ("KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit")
    ),
    "ngp.predictors.ssfn_estimators.SSFNClassifier",
    "ngp.predictors.ssfn_estimators.SSFNRegressor",
    "ngp.kernels.self_sizing.Layer",
    "ngp.kernels.self_sizing.Network",
]  # fmt: skip


def estimator_bytes(estimator: Any) -> bytes:
    """Take an estimator apart; ValueError where it has parts that `read_estimator` would refuse."""
    _require_skops()
    from skops import io

    try:
        content: bytes = io.dumps(estimator)
    except Exception as error:  # of whatever kind its parts raise
        raise ValueError(f"{type(estimator).__name__}, which skops can't take apart") from error
    unknown = _unknown(content)
    if unknown:
        raise ValueError(f"{type(estimator).__name__} with parts that are not scikit-learn's ({', '.join(unknown)})")
    return content


def read_estimator(content: bytes) -> Any:
    """Put an estimator together, of parts that are known to hold data only."""
    _require_skops()
    from skops import io

    unknown = _unknown(content)
    if unknown:
        raise ValueError(f"its estimator has parts that are not scikit-learn's, {', '.join(unknown)}")
    return io.loads(content, trusted=TRUSTED)


def _unknown(content: bytes) -> list[str]:
    from skops import io

    return sorted(set(io.get_untrusted_types(data=content)) - set(TRUSTED))


def _require_skops() -> None:
    if find_spec("skops") is None:
        raise ImportError(
            "A selector with a scikit-learn estimator needs skops to be saved or loaded: install it with "
            "pip install 'neural-greedy-pursuit[skops]'."
        )
