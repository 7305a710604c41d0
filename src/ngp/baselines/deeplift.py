"""DeepLIFT + SHAP: contributions of the columns to the outputs of a trained network."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ngp._types import AnyArray, FloatArray, IntArray
from ngp.baselines.base import Baseline, PredictorEstimator, TrainingData, column_problem
from ngp.kernels.devices import require_torch
from ngp.predictors.networks import CNN, MLP, NetworkPredictor, one_torch_thread

__all__ = ["DeepLIFT"]


@dataclass(kw_only=True, eq=False, repr=False)
class DeepLIFT(Baseline):
    """Rate each column by its DeepLIFT contributions to the outputs of a network that is trained on all columns.

    Random samples are explained by comparison with other random samples; the average approximates Shapley values, as in
    shap's ``DeepExplainer``. The importance of a column is the absolute contribution, summed over the explained samples
    and the outputs (class scores before the softmax). The networks of a predictor that has several are averaged.

    The other parameters and attributes are those of `ngp.baselines.Baseline`.

    Parameters
    ----------
    predictor : {"mlp", "cnn"}, `ngp.predictors.MLP` or `ngp.predictors.CNN`, default="mlp"
        The network and its training. It is trained once, for its `refit_epochs`, or for its `epochs` if that is
        ``"auto"``: the paper trains for a fixed number too. For a CNN, features are the pixels of images.
    n_background : int, default=100
        Number of samples that the explained ones are compared with; all if X has fewer.
    n_explained : int, default=100
        Number of samples that are explained; all if X has fewer.
    random_state : int, RandomState or None, default=None
        Seed of the training and of the samples.
    """

    predictor: str | MLP | CNN = "mlp"
    n_background: int = 100
    n_explained: int = 100
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Baseline._parameter_constraints,
        "predictor": [StrOptions({"mlp", "cnn"}), MLP, CNN],
        "n_background": [Interval(Integral, 1, None, closed="left")],
        "n_explained": [Interval(Integral, 1, None, closed="left")],
    }

    def own_estimator(self) -> Any:
        """Make a network of the same kind; one for images takes the selected pixels, and puts zeros for the others."""
        check_is_fitted(self)
        estimator = PredictorEstimator(self.predictor, task=self.task_, random_state=self.random_state)
        if not isinstance(self._network(), CNN):
            return estimator
        places = {"places": self.get_support(indices=True), "n_pixels": self.n_features_in_}
        return make_pipeline(FunctionTransformer(_in_place, kw_args=places), estimator)

    def _network(self) -> MLP | CNN:
        """The predictor as it is trained here."""
        names = {"mlp": MLP, "cnn": CNN}
        network: MLP | CNN = names[self.predictor]() if isinstance(self.predictor, str) else clone(self.predictor)
        if network.refit_epochs == "auto":
            network.refit_epochs = network.epochs
        return network

    def _column_importances(self, data: TrainingData) -> FloatArray:
        require_torch("DeepLIFT")
        network = self._network()
        with one_torch_thread():  # the work comes in small pieces, which more threads only slow down
            if isinstance(network, CNN):
                by_pixel = self._input_importances(network, _images(data), data.origin, data)
                return np.moveaxis(by_pixel, 0, -1).reshape(-1)[data.origin]  # channels come last in X
            columns = np.arange(data.X.shape[1])
            return self._input_importances(network, data.standardised, columns, data)

    def _input_importances(
        self, network: MLP | CNN, X: FloatArray, columns: IntArray, data: TrainingData
    ) -> FloatArray:
        """Importance of each input of a network that is trained on some columns."""
        import torch

        from ngp.kernels.deeplift import attributions

        trained = self._train(network, X, columns, data)
        rng = np.random.default_rng(data.seed)
        sizes = self.n_explained, self.n_background
        # All inputs of the networks are columns, shifted, scaled and clipped one by one: that doesn't change what
        # they contribute.
        samples = [torch.from_numpy(trained.reader(X[rng.permutation(len(X))[:size]])) for size in sizes]
        contributions = torch.stack([attributions(module, *samples) for module in trained.modules]).double().mean(dim=0)
        importances: FloatArray = contributions.abs().sum(dim=(0, 1)).numpy()
        if not np.isfinite(importances).all():
            raise ValueError(f"predictor={self.predictor!r} diverged in training: give one with a lower learning_rate.")
        return importances

    def _train(self, network: MLP | CNN, X: FloatArray, columns: IntArray, data: TrainingData) -> NetworkPredictor:
        from ngp.kernels.deeplift import explainable_layers

        y = data.scaled_targets if data.classes is None else data.y
        problem = column_problem(X, y, network, task=self.task_, cv=2, seed=data.seed)  # the folds aren't used
        scorer = network.bind(problem, random_state=data.seed)
        explainable_layers(scorer.module(len(columns), len(columns), 0))  # complains before the training
        return scorer.fit(columns)


def _images(data: TrainingData) -> FloatArray:
    """All pixels in their places, and zeros where they don't vary."""
    if len(np.unique(data.origin)) < len(data.origin):
        raise ValueError("predictor=CNN takes features for pixels, and X has category columns: use predictor='mlp'.")
    return _in_place(data.X / np.abs(data.X).max(), data.origin, data.n_features)


def _in_place(X: AnyArray, places: IntArray, n_pixels: int) -> FloatArray:
    pixels = np.zeros((len(X), n_pixels))
    pixels[:, places] = X
    return pixels
