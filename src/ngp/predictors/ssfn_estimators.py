"""The self size-estimating feed-forward network (SSFN) as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ngp._types import AnyArray, FloatArray
from ngp.kernels.layers import Layer, Network, hidden_units
from ngp.kernels.ridge import fit_ridge

__all__ = ["SSFNClassifier", "SSFNRegressor"]


# Parts of the docstrings that both estimators share.
PARAMETERS = """Parameters
    ----------
    max_layers : int, default=20
        Largest number of hidden layers; 0 leaves the linear prediction.
    max_units : int, default=1000
        Largest number of random units in a layer.
    units_per_step : int, default=50
        Random units added at a time. ``units_per_step=max_units`` gives layers of fixed width.
    node_tol : float, default=0.005
        A layer stops growing once a step of new units lowers the training error by a smaller share than this.
    layer_tol : float, default=0.1
        The network stops growing once a new layer lowers the training error by a smaller share than this.
    linear_ridge : float, default=1.0
        Ridge penalty of the linear regression at the start.
    ridge : float, default=30.0
        Ridge penalty of the output weights of each hidden layer. It pulls them towards the weights that
        reproduce the prediction of the layer below.
    norm_bound : float, "auto" or None, default="auto"
        Largest Frobenius norm of the output weights of a hidden layer. "auto" is ``2 * sqrt(2 * n_outputs)``;
        None is no bound.
    bias : bool, default=True
        Whether random units have a random bias, and output layers an (unpenalised, unbounded) intercept.
    standardize : bool, default=True
        Whether to bring features and targets (of a classifier: the indicators of the classes) to weighted mean zero
        and variance one before training.
    unit_norm : bool, default=False
        Whether to scale the random projections of each sample in each layer to norm one.
    random_state : int, RandomState instance or None, default=None
        Source of the random weights; pass an int for reproducible results."""
ATTRIBUTES = """n_layers_ : int
        Number of hidden layers.
    n_units_ : list of int
        Number of random units in each hidden layer.
    training_nme_ : ndarray of shape (`n_layers_` + 1,)
        Training error ``20 log10(||T - prediction|| / ||T||)`` in dB, T the targets as trained on: of the
        linear regression, then after each hidden layer.
    coefs_ : list of `n_layers_` + 1 ndarrays
        Output weights of the linear regression and of each hidden layer.
    intercepts_ : list of `n_layers_` + 1 ndarrays
        Intercepts of the linear regression and of each hidden layer.
    network_ : ngp.kernels.layers.Network
        The network with all of its weights.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings."""


class _SSFN(BaseEstimator):  # type: ignore[misc]
    """What the regressor and the classifier share: parameters, growing, and applying the network."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_layers": [Interval(Integral, 0, None, closed="left")],
        "max_units": [Interval(Integral, 1, None, closed="left")],
        "units_per_step": [Interval(Integral, 1, None, closed="left")],
        "node_tol": [Interval(Real, 0, None, closed="left")],
        "layer_tol": [Interval(Real, 0, None, closed="left")],
        "linear_ridge": [Interval(Real, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "norm_bound": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), None],
        "bias": ["boolean"],
        "standardize": ["boolean"],
        "unit_norm": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("{PARAMETERS}", PARAMETERS).replace("{ATTRIBUTES}", ATTRIBUTES)

    def __init__(
        self,
        *,
        max_layers: int = 20,
        max_units: int = 1000,
        units_per_step: int = 50,
        node_tol: float = 0.005,
        layer_tol: float = 0.1,
        linear_ridge: float = 1.0,
        ridge: float = 30.0,
        norm_bound: float | Literal["auto"] | None = "auto",
        bias: bool = True,
        standardize: bool = True,
        unit_norm: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.max_layers = max_layers
        self.max_units = max_units
        self.units_per_step = units_per_step
        self.node_tol = node_tol
        self.layer_tol = layer_tol
        self.linear_ridge = linear_ridge
        self.ridge = ridge
        self.norm_bound = norm_bound
        self.bias = bias
        self.standardize = standardize
        self.unit_norm = unit_norm
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, or labels of the classes: these in one dimension.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights: two counts as the sample given twice, zero as the sample removed.

        Returns
        -------
        SSFNRegressor or SSFNClassifier
            The trained estimator.
        """
        inputs, targets = validate_data(self, X, y, dtype=np.float64, **self._target_checks)
        weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64, ensure_non_negative=True)
        kept = weight > 0
        self._fit_network(inputs[kept], self._coded(targets[kept]), weight[kept])
        return self

    def _fit_network(self, X: FloatArray, targets: FloatArray, sample_weight: FloatArray) -> None:
        self._scale_inputs, self._scale_targets = (
            StandardScaler(with_mean=self.standardize, with_std=self.standardize) for _ in range(2)
        )
        inputs = self._scale_inputs.fit_transform(X, sample_weight=sample_weight)
        outputs = self._scale_targets.fit_transform(targets, sample_weight=sample_weight)
        self.network_, costs = self._grow_network(inputs, outputs, sample_weight)
        parts: list[Network | Layer] = [self.network_, *self.network_.layers]
        self.coefs_ = [part.coef for part in parts]
        self.intercepts_ = [part.intercept for part in parts]
        self.n_layers_ = len(self.network_.layers)
        self.n_units_ = [len(layer.bias) for layer in self.network_.layers]
        with np.errstate(divide="ignore"):  # a perfect fit is -inf dB
            self.training_nme_ = 20 * np.log10(costs)

    def _grow_network(
        self, inputs: FloatArray, targets: FloatArray, sample_weight: FloatArray
    ) -> tuple[Network, list[float]]:
        """Add layers until the next one lowers the training cost by less than `layer_tol`, relatively.

        The cost is the normalised mean error ||T - prediction||_F / ||T||_F, returned before the first layer and
        after each. It never rises from layer to layer (see `_grow_layer`).
        """
        rng, data = check_random_state(self.random_state), (targets, sample_weight)
        ((coef, intercept),) = fit_ridge([(inputs, *data)], [self.linear_ridge], intercept=self.bias)
        hidden, prediction = inputs, inputs @ coef + intercept
        layers: list[Layer] = []
        costs = [_cost(prediction, *data)]
        while len(layers) < self.max_layers:
            layer, hidden, cost = self._grow_layer(hidden, prediction, *data, rng)
            prediction = hidden @ layer.coef + layer.intercept
            layers.append(layer)
            costs.append(cost)
            if not _pays(costs[-2], cost, self.layer_tol):
                break
        return Network(coef, intercept, layers, self.unit_norm), costs

    def _grow_layer(
        self,
        below: FloatArray,
        prediction: FloatArray,
        targets: FloatArray,
        sample_weight: FloatArray,
        rng: np.random.RandomState,
    ) -> tuple[Layer, FloatArray, float]:
        """Add random units until the next ones lower the training cost by less than `node_tol`, relatively.

        The ridge shrinks the output weights not to zero but to those that reproduce the prediction of the layer
        below. These have no penalty, so the penalised squared error of the solution, and its squared error all
        the more, is at most the squared error of the layer below: the lossless flow property, for every ridge.
        It needs these weights to be feasible: a norm bound of at least sqrt(2 n_outputs).
        """
        weights, bias = np.empty((below.shape[1], 0)), np.empty(0)
        projections = np.empty((len(below), 0))
        n_outputs, previous_cost = targets.shape[1], np.inf
        for new_weights, new_bias in self._random_units(below.shape[1], rng):
            weights, bias = np.hstack([weights, new_weights]), np.append(bias, new_bias)
            projections = np.hstack([projections, below @ new_weights + new_bias])
            hidden = hidden_units(prediction, projections, self.unit_norm)
            lossless = np.zeros((hidden.shape[1], n_outputs))  # relu(p) - relu(-p) = p
            lossless[: 2 * n_outputs] = np.vstack([np.eye(n_outputs), -np.eye(n_outputs)])
            ((coef, intercept),) = fit_ridge(
                [(hidden, targets, sample_weight)],
                [self.ridge],
                intercept=self.bias,
                norm_bound=2 * np.sqrt(2 * n_outputs) if self.norm_bound == "auto" else self.norm_bound,
                centre=lossless,
            )
            cost = _cost(hidden @ coef + intercept, targets, sample_weight)
            if not _pays(previous_cost, cost, self.node_tol):
                break
            previous_cost = cost
        return Layer(weights, bias, coef, intercept), hidden, cost

    def _random_units(self, n_inputs: int, rng: np.random.RandomState) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the weights and biases of one step of random units after the other, up to the largest width."""
        for start in range(0, self.max_units, self.units_per_step):
            n_new = min(self.units_per_step, self.max_units - start)
            # Pre-activations of unit variance for inputs of unit variance, however many inputs there are.
            weights = rng.uniform(-1.0, 1.0, size=(n_inputs, n_new)) * np.sqrt(3.0 / n_inputs)
            bias = rng.uniform(-1.0, 1.0, size=n_new) if self.bias else np.zeros(n_new)
            yield weights, bias

    def _outputs(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        outputs = self.network_.predict(self._scale_inputs.transform(inputs))
        return np.asarray(self._scale_targets.inverse_transform(outputs), dtype=np.float64)


def _cost(prediction: FloatArray, targets: FloatArray, sample_weight: FloatArray) -> float:
    error = float(np.sqrt(sample_weight @ ((prediction - targets) ** 2).sum(axis=1)))
    size = float(np.sqrt(sample_weight @ (targets**2).sum(axis=1)))
    return error / size if size > 0 else error


def _pays(before: float, after: float, tol: float) -> bool:
    return before == np.inf or before - after >= max(tol * before, np.finfo(float).tiny)


class SSFNRegressor(MultiOutputMixin, RegressorMixin, _SSFN):  # type: ignore[misc]
    """Regression by a feed-forward network that finds its own size (SSFN).

    The network starts as a linear ridge regression. Each hidden layer passes on the prediction so far, split
    by sign, beside random ReLU units, and its output weights are solved for exactly; nothing is trained by
    gradient descent. Random units are added to a layer, and layers to the network, until the training error
    falls too little. Training is deterministic for a given ``random_state``.

    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}

    See Also
    --------
    SSFNClassifier : The same network for classification.

    Notes
    -----
    Lossless flow: ``training_nme_`` never rises from layer to layer, whatever the ridge, as long as
    ``norm_bound`` is None or at least ``sqrt(2 * n_outputs)``; "auto" is twice that.

    The authors' settings are ``linear_ridge=100, ridge=0, bias=False, standardize=False, unit_norm=True``.

    References
    ----------
    S. Chatterjee, A. M. Javid, M. Sadeghi, S. Kikuta, D. Liu, P. P. Mitra, M. Skoglund, "SSFN: Self
    Size-estimating Feed-forward Network with Low Complexity, Limited Need for Human Intervention, and
    Consistent Behaviour across Trials", arXiv:1905.07111.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from ngp.predictors.ssfn_estimators import SSFNRegressor
    >>> X, y = make_friedman1(n_samples=600, noise=1.0, random_state=0)
    >>> regressor = SSFNRegressor(random_state=0).fit(X[:400], y[:400])
    >>> regressor.score(X[400:], y[400:]) > 0.8
    True
    """

    _target_checks: ClassVar[dict[str, bool]] = {"multi_output": True, "y_numeric": True}

    def _coded(self, targets: AnyArray) -> FloatArray:
        self._single_output = targets.ndim == 1
        return targets.astype(np.float64).reshape(len(targets), -1)

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predict the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, of the form of the targets seen during fit.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self._single_output else outputs


class SSFNClassifier(ClassifierMixin, _SSFN):  # type: ignore[misc]
    """Classification by a feed-forward network that finds its own size (SSFN).

    The network of :class:`SSFNRegressor`, trained by least squares on the indicator of each class (for two
    classes, of the second).

    {PARAMETERS}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {ATTRIBUTES}

    See Also
    --------
    SSFNRegressor : The same network for regression, with notes and a reference.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ngp.predictors.ssfn_estimators import SSFNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = SSFNClassifier(random_state=0).fit(X[::2], y[::2])
    >>> classifier.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _target_checks: ClassVar[dict[str, bool]] = {}

    def _coded(self, labels: AnyArray) -> FloatArray:
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "SSFNClassifier needs samples of at least two classes with positive sample_weight; "
                f"got the one class {self.classes_.tolist()[0]!r}."
            )
        indicators = np.eye(len(self.classes_))[codes]
        return indicators[:, 1:] if len(self.classes_) == 2 else indicators

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Return how strongly each class is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The outputs of the network, one per class; for two classes that of the second class less one half,
            positive where it is the more likely one.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] - 0.5 if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Estimate the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For each sample the probabilities nearest to the outputs of the network.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            second = np.clip(scores + 0.5, 0.0, 1.0)
            return np.column_stack([1.0 - second, second])
        return _nearest_probabilities(scores)

    def predict(self, X: npt.ArrayLike) -> AnyArray:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The most likely class.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


def _nearest_probabilities(scores: FloatArray) -> FloatArray:
    """Project each row onto the probability vectors: one constant off the whole row, negative values to zero.

    True class indicators lie in that convex set, so the projection is never farther from them than the
    scores were, and it keeps the order of the classes.
    """
    descending = -np.sort(-scores, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, scores.shape[1] + 1)
    n_positive = (descending > excess).sum(axis=1)
    constant = excess[np.arange(len(scores)), n_positive - 1]
    return np.asarray(np.maximum(scores - constant[:, None], 0.0))
