"""The final predictor as an ONNX graph, from all columns of X to predictions."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

import ngp
from ngp._types import AnyArray
from ngp.data.losses import SMALLEST_PROBABILITY
from ngp.io import write_whole
from ngp.kernels.layers import Network
from ngp.persistence.modules import flat_layers
from ngp.predictors.cnn import SeenPixels
from ngp.predictors.constant import Constant
from ngp.predictors.estimator import FittedEstimator
from ngp.predictors.kernel_predictor import KernelPredictor
from ngp.predictors.networks import NetworkPredictor
from ngp.predictors.scaling import ScaledColumns
from ngp.predictors.ssfn_scorer import SSFNPredictor

if TYPE_CHECKING:
    from torch import nn

    from ngp.selector import NeuralGreedyPursuit

__all__ = ["export_onnx"]

# Old enough for runtimes of the last years, new enough for all that is used here.
OPSET, IR_VERSION = 17, 8


def export_onnx(
    selector: NeuralGreedyPursuit, path: str | PathLike[str], *, dtype: Literal["float32", "float64"] = "float64"
) -> None:
    """Write the predictions of a fitted selector as an ONNX graph.

    The graph takes ``X`` with all columns of `fit`, of which it reads the selected ones, and scales and clips them by
    itself. For a regression it returns ``prediction``, in the shape of what `predict` returns; for classes ``label``
    and ``probabilities``.
    """
    if find_spec("onnx") is None:
        raise ImportError("export_onnx needs onnx: install it with pip install 'neural-greedy-pursuit[onnx]'.")
    check_is_fitted(selector)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} is unknown: use 'float32' or 'float64'.")
    if selector.encoder_.feature_groups_ is not None:
        raise ValueError(
            "export_onnx can't encode category columns: encode them as numbers before fit, with a pipeline that can "
            "be exported too."
        )
    graph = Graph(dtype)
    coded = graph.coded_targets(selector.predictor_, "X")
    if selector.task_ == "classification":
        graph.classes(coded, selector.classes_)
    else:
        graph.values(coded, selector._single_output)
    write_whole(Path(path), graph.model(selector.n_features_in_))


class Graph:
    """A graph that is put together node by node; methods take and return names of tensors."""

    def __init__(self, dtype: str) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, values: npt.ArrayLike, *, as_is: bool = False) -> str:
        """Add numbers in the precision of the graph, or anything else as it is."""
        from onnx import numpy_helper

        array = np.asarray(values)
        array = array.astype(self.dtype) if array.dtype.kind == "f" and not as_is else array
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def add(self, operation: str, *inputs: str | npt.ArrayLike, output: str = "", **attributes: Any) -> str:
        """Add a node; inputs are names, or values that become constants."""
        from onnx import helper

        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        output = output or f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, names, [output], **attributes))
        return output

    def result(self, name: str, tensor: str, dtype: int, *shape: str | int) -> None:
        """Make a tensor an output of the graph."""
        from onnx import helper

        self.add("Identity", tensor, output=name)
        self.outputs.append(helper.make_tensor_value_info(name, dtype, ["n", *shape]))

    @property
    def number_type(self) -> int:
        """What ONNX calls the precision."""
        return _onnx_type(self.dtype)

    def model(self, n_features: int) -> bytes:
        """Everything as the content of a file."""
        from onnx import checker, helper

        inputs = [helper.make_tensor_value_info("X", self.number_type, ["n", n_features])]
        graph = helper.make_graph(self.nodes, "neural_greedy_pursuit", inputs, self.outputs, self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="neural-greedy-pursuit",
            producer_version=ngp.__version__,
        )
        checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString()
        return content

    def values(self, coded: str, single: bool) -> None:
        """Return quantities."""
        if single:
            self.result("prediction", self.add("Squeeze", coded, np.array([1])), self.number_type)
        else:
            self.result("prediction", coded, self.number_type, "n_outputs")

    def classes(self, coded: str, classes: AnyArray) -> None:
        """Return labels and probabilities, as `ngp.data.losses` makes them of coded targets."""
        if len(classes) == 2:
            second = self.add("Squeeze", coded, np.array([1]))
            number = self.add("Cast", self.add("Greater", second, np.array(0.5)), to=_onnx_type(np.int64))
            coded = self.add("Concat", self.add("Sub", np.array(1.0), coded), coded, axis=1)
        else:
            number = self.add("ArgMax", coded, axis=1, keepdims=0)
        labels = _label_constants(classes)
        chosen = self.add("Gather", self.constant(labels, as_is=True), number)
        self.result("label", chosen, _onnx_type(np.str_ if labels.dtype == object else labels.dtype))
        clipped = self.add("Clip", coded, np.array(SMALLEST_PROBABILITY), np.array(1.0))
        total = self.add("ReduceSum", clipped, np.array([1]), keepdims=1)
        self.result("probabilities", self.add("Div", clipped, total), self.number_type, len(classes))

    def coded_targets(self, predictor: Any, X: str) -> str:
        """Add a predictor."""
        if isinstance(predictor, Constant):
            return self._constant_prediction(predictor, X)
        if isinstance(predictor, FittedEstimator):
            raise ValueError(
                f"export_onnx can't export a {type(predictor.estimator).__name__}: "
                "export selector.predictor_.estimator with skl2onnx, for the columns selector.predictor_.columns."
            )
        if isinstance(predictor, SSFNPredictor):
            inputs = self._columns(predictor.reader, X)
            outputs = self._mean([self._random_layer(network, inputs) for network in predictor.networks])
        elif isinstance(predictor, KernelPredictor):
            outputs = self._kernel(predictor, self._columns(predictor.reader, X))
        elif isinstance(predictor, NetworkPredictor):
            outputs = self._networks(predictor, X)
        else:
            raise ValueError(f"export_onnx can't export a {type(predictor).__name__}: use an SSFN, an MLP or a kernel.")
        scaled = self.add("Mul", outputs, np.array(predictor.target_scale))
        return self.add("Add", scaled, predictor.target_mean)

    def _constant_prediction(self, predictor: Constant, X: str) -> str:
        n_rows = self.add("Slice", self.add("Shape", X), np.array([0]), np.array([1]))
        shape = self.add("Concat", n_rows, np.array([len(predictor.values)]), axis=0)
        return self.add("Expand", predictor.values[None], shape)

    def _columns(self, reader: ScaledColumns, X: str) -> str:
        """Take columns, and standardise and clip them."""
        values = self.add("Sub", self.add("Gather", X, reader.columns.astype(np.int64), axis=1), reader.mean)
        values = self.add("Div", values, reader.scale)
        # Also where nothing is clipped: onnxruntime would make the scale of a single column part of the matrix product
        # that follows, in single precision.
        return self.add("Clip", values, np.array(-float(reader.clip)), np.array(float(reader.clip)))

    def _mean(self, tensors: list[str]) -> str:
        return self.add("Div", self.add("Sum", *tensors), np.array(float(len(tensors))))

    def _random_layer(self, network: Network, inputs: str) -> str:
        projections = self._affine(inputs, network.weights, network.biases)
        if network.unit_norm:
            squares = self.add("ReduceSum", self.add("Mul", projections, projections), np.array([1]), keepdims=1)
            norms = self.add("Sqrt", squares)
            safe = self.add("Where", self.add("Greater", norms, np.array(0.0)), norms, np.array(1.0))
            projections = self.add("Div", projections, safe)
        linear = self._affine(inputs, network.slopes, network.offset)
        together = self.add("Concat", projections, linear, self.add("Neg", linear), axis=1)
        return self._affine(self.add("Relu", together), network.coef, network.intercept)

    def _affine(self, inputs: str, matrix: AnyArray, offset: AnyArray) -> str:
        return self.add("Add", self.add("MatMul", inputs, matrix), offset)

    def _kernel(self, predictor: KernelPredictor, inputs: str) -> str:
        """Combine kernel functions, as `ngp.kernels.kernel_functions.kernel_matrix` has them."""
        factor, centres = predictor.factor, predictor.centres
        lengths = factor * (centres**2).sum(axis=0)
        squares = self.add("ReduceSum", self.add("Mul", inputs, inputs), np.array([1]), keepdims=1)
        own = self.add("Mul", squares, np.array(factor))
        if predictor.kernel == "rbf":
            distances = self.add("Add", own, lengths)
            values = self.add("Exp", self.add("Sub", self.add("MatMul", inputs, 2 * factor * centres), distances))
        else:
            products = self._affine(inputs, factor * centres, np.array(1.0))
            norms = self.add("Mul", self.add("Sqrt", self.add("Add", own, np.array(1.0))), np.sqrt(1 + lengths))
            values = self._arc_cosine(products, norms)
        return self._affine(values, predictor.coefficients, predictor.intercept)

    def _arc_cosine(self, products: str, norms: str) -> str:
        cosines = self.add("Clip", self.add("Div", products, norms), np.array(-1.0), np.array(1.0))
        # Runtimes have the angle in single precision only. With the sine of that angle, and not the one of the cosine,
        # its error cancels out to first order.
        angles = self._cast(self.add("Acos", self._cast(cosines, np.float32)), self.dtype)
        rest = self.add("Mul", self.add("Sub", np.array(np.pi), angles), cosines)
        both = self.add("Add", self.add("Sin", angles), rest)
        return self.add("Mul", norms, self.add("Div", both, np.array(np.pi)))

    def _cast(self, tensor: str, dtype: npt.DTypeLike) -> str:
        return self.add("Cast", tensor, to=_onnx_type(dtype))

    def _networks(self, predictor: NetworkPredictor, X: str) -> str:
        """Add torch networks; convolutions in single precision, since runtimes have no other."""
        reader, images = predictor.reader, isinstance(predictor.reader, SeenPixels)
        if isinstance(reader, SeenPixels):
            inputs = self._pixels(reader, X)
        elif isinstance(reader, ScaledColumns):
            inputs = self._columns(reader, X)
        else:
            raise ValueError(f"export_onnx can't export the inputs of a {type(reader).__name__}: use an MLP or a CNN.")
        own = self.dtype
        trained = np.dtype(str(next(predictor.modules[0].parameters()).dtype).removeprefix("torch."))
        self.dtype = np.dtype(np.float32) if images else min(own, trained, key=lambda each: each.itemsize)
        inputs = self._cast(inputs, self.dtype)
        outputs = [self._coded(self._network(module, inputs), predictor) for module in predictor.modules]
        self.dtype = own
        return self._mean([self._cast(each, own) for each in outputs])

    def _pixels(self, reader: SeenPixels, X: str) -> str:
        seen = self.add("Where", reader.seen[None], X, np.array(0.0))
        scaled = self.add("Div", seen, np.array(reader.scale))
        images = self.add("Reshape", scaled, np.array([-1, *reader.shape]))
        return self.add("Transpose", images, perm=[0, 3, 1, 2])

    def _network(self, module: nn.Module, x: str) -> str:
        for layer in flat_layers(module):
            x = self._layer(layer, x)
        return x

    def _layer(self, layer: Any, x: str) -> str:
        name = type(layer).__name__
        weights = [values.numpy() for values in layer.state_dict().values()]
        if name == "Linear":
            return self.add("Gemm", x, *weights, transB=1)
        if name == "ReLU":
            return self.add("Relu", x)
        if name in ("Dropout", "Identity"):  # which do nothing once a network is trained
            return x
        if name == "Flatten" and (layer.start_dim, layer.end_dim) == (1, -1):
            return self.add("Flatten", x, axis=1)
        if name == "Conv2d" and layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
            return self.add("Conv", x, *weights, group=layer.groups, **_window(layer))
        if name == "MaxPool2d" and not layer.return_indices:
            return self.add("MaxPool", x, ceil_mode=int(layer.ceil_mode), **_window(layer))
        raise ValueError(f"export_onnx can't export a network with {layer}: use torch.onnx for networks of your own.")

    def _coded(self, outputs: str, predictor: NetworkPredictor) -> str:
        """Estimates of coded targets from the outputs of a network."""
        if predictor.loss != "cross_entropy":
            return outputs
        return self.add("Sigmoid", outputs) if len(predictor.target_mean) == 1 else self.add("Softmax", outputs, axis=1)


def _window(layer: Any) -> dict[str, Any]:
    """Where the windows of a convolution or a maximum lie."""
    sizes = {
        name: [value, value] if isinstance(value, int) else list(value)
        for name, value in (
            ("kernel_shape", layer.kernel_size),
            ("strides", layer.stride),
            ("dilations", layer.dilation),
            ("pads", layer.padding),
        )
    }
    return sizes | {"pads": sizes["pads"] * 2}


def _onnx_type(dtype: npt.DTypeLike) -> int:
    from onnx import TensorProto, helper

    kind = np.dtype(dtype)
    return int(TensorProto.STRING if kind.kind == "U" else helper.np_dtype_to_tensor_dtype(kind))


def _label_constants(classes: AnyArray) -> AnyArray:
    """The classes in a type that ONNX has: whole numbers, text, truth values or numbers."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "UT" or (classes.dtype.kind == "O" and all(isinstance(each, str) for each in classes)):
        return classes.astype(object)
    if classes.dtype.kind == "b" or classes.dtype in (np.float32, np.float64):
        return classes
    raise ValueError(f"export_onnx can't export classes of the type {classes.dtype}: use text or whole numbers.")
