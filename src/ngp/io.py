"""Files: fitted selectors without pickle, whole files or none, and tables of text."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

if TYPE_CHECKING:
    from ngp.selector import NeuralGreedyPursuit

__all__ = ["check_archive", "load", "markdown_table", "refuse_other_suffixes", "save", "write_whole"]

FORMAT = "ngp-selector/1"


def save(selector: NeuralGreedyPursuit, path: str | PathLike[str]) -> None:
    """Write a fitted selector to a file, without pickle.

    Parameters
    ----------
    selector : NeuralGreedyPursuit, NGPClassifier or NGPRegressor
        A fitted selector. All that it holds must be of types that `load` trusts: functions are not, nor are estimators
        of other packages than scikit-learn.
    path : path
        The file; its folder must exist.

    Examples
    --------
    >>> from ngp import NGPRegressor
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NGPRegressor(random_state=0).fit(X, y)
    >>> save(selector, "ohm.ngp")
    >>> bool((load("ohm.ngp").predict(X) == selector.predict(X)).all())
    True
    """
    _require_skops()
    from sklearn.utils.validation import check_is_fitted
    from skops.io import dumps

    from ngp.selector import NeuralGreedyPursuit

    if not isinstance(selector, NeuralGreedyPursuit):
        raise TypeError(f"save takes a fitted selector, but got a {type(selector).__name__}.")
    check_is_fitted(selector)
    try:
        content = dumps({"format": FORMAT, "selector": selector})
        _check_parts(content)
    except Exception as error:  # of any kind: objects of users are taken apart
        raise ValueError(f"This selector can't be saved, because skops can't take it apart ({error}).") from error
    if refused := _untrusted(content):
        raise ValueError(
            f"This selector can't be saved, because it holds {', '.join(refused)}, which load doesn't trust: if it is "
            "in a parameter, replace it by set_params; otherwise pickle the selector."
        )
    write_whole(Path(path), content)


def load(path: str | PathLike[str]) -> NeuralGreedyPursuit:
    """Read a fitted selector from a file that `save` has written.

    No code of the file is run: it may only hold types of a fixed list, which hold data and nothing else. The trees and
    neighbour searches of scikit-learn don't check their own numbers, though, so that a forged file can still crash
    `predict`: load selectors with such estimators only from people you trust.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    NeuralGreedyPursuit, NGPClassifier or NGPRegressor
        It is of the same class, predicts as the saved one does, and has the same path, order and parameters.
    """
    _require_skops()
    from skops.io import loads

    from ngp.selector import NeuralGreedyPursuit

    content = Path(path).read_bytes()
    try:
        check_archive(content)
        _check_parts(content)
        refused = _untrusted(content)
        document = {} if refused else loads(content, trusted=_trusted())
    except Exception as error:  # of any kind: zipfile, json, numpy and skops each have their own
        raise ValueError(
            f"{path} is no saved selector, or a damaged one: give a file that save has written."
        ) from error
    if refused:
        raise ValueError(
            f"{path} holds {', '.join(refused)}, which this version of ngp doesn't trust: save the selector again."
        )
    selector = document.get("selector") if isinstance(document, dict) and document.get("format") == FORMAT else None
    if not isinstance(selector, NeuralGreedyPursuit):
        raise ValueError(f"{path} is no saved selector: give a file that save has written.")
    return selector


def check_archive(content: bytes) -> None:
    """Refuse a zip archive that is damaged, or holds more bytes than its own: nothing in it is compressed."""
    with ZipFile(BytesIO(content)) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > len(content):
            raise ValueError(f"it would unpack to {n_bytes:,} bytes")
        if name := archive.testzip():
            raise ValueError(f"its part {name} is damaged")


def _check_parts(content: bytes) -> None:
    """Refuse a file that needs many times its size in memory: parts that are read again and again, nested objects."""
    with ZipFile(BytesIO(content)) as archive:
        waiting, parts = [json.loads(archive.read("schema.json"))], set[tuple[str, int]]()
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            elif isinstance(node, dict):
                waiting += node.values()
                if isinstance(node.get("file"), str):  # objects of the same number are read once
                    parts.add((node["file"], node.get("__id__") or -len(parts)))
                if node.get("type") == "json" and len(node["shape"]["content"]) > 1:
                    raise ValueError("it holds an array of objects of more than one dimension")
        if sum(archive.getinfo(name).file_size for name, _ in parts) > len(content):
            raise ValueError("its parts are read more than once")


def _untrusted(content: bytes) -> list[str]:
    """Types in a file that `load` refuses."""
    from skops.io import get_untrusted_types

    return sorted(set(get_untrusted_types(data=content)) - set(_trusted()))


def _trusted() -> list[str]:
    """Types that a file may hold beside those that skops trusts by itself, such as arrays and most of scikit-learn.

    One by one: a rule such as "all of sklearn" would let a file call whatever can be reached from there.
    """
    from ngp.data.encoding import ColumnEncoder
    from ngp.data.groups import Groups, _NumberedNames
    from ngp.greedy import path, stopping
    from ngp.greedy.stability import Stability
    from ngp.kernels.layers import Layer, Network
    from ngp.predictors.base import Constant, ScaledColumns
    from ngp.predictors.estimator import Estimator, FittedEstimator
    from ngp.predictors.kernel import Kernel, KernelPredictor
    from ngp.predictors.networks import CNN, MLP, ImageNetwork, NetworkPredictor, Perceptron, SeenPixels
    from ngp.predictors.ssfn import SSFN, SSFNPredictor
    from ngp.predictors.ssfn_estimators import SSFNClassifier, SSFNRegressor
    from ngp.selector import NeuralGreedyPursuit, NGPClassifier, NGPRegressor

    own: list[Any] = [
        NeuralGreedyPursuit, NGPClassifier, NGPRegressor, path.Path, path.Step, Stability,
        ColumnEncoder, Groups, _NumberedNames,
        SSFN, MLP, CNN, Kernel, Estimator, SSFNClassifier, SSFNRegressor,
        Constant, FittedEstimator, KernelPredictor, NetworkPredictor, SSFNPredictor,
        ImageNetwork, Layer, Network, Perceptron, ScaledColumns, SeenPixels,
        *(getattr(stopping, name) for name in stopping.__all__),
    ]  # fmt: skip
    return [*(f"{each.__module__}.{each.__qualname__}" for each in own), *OTHER_TYPES]


OTHER_TYPES = (
    "builtins.range", "datetime.date", "datetime.datetime", "datetime.timedelta", "pandas.Interval",
    "pathlib.PosixPath",
    "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    *(f"sklearn.gaussian_process.kernels.{name}" for name in (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product",
        "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    )),
    *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in (
        "Chebyshev", "Euclidean", "Manhattan", "Minkowski",
    )),
    "sklearn.metrics._scorer._PassthroughScorer",
    *(f"sklearn.model_selection._split.{name}" for name in (
        "GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "LeaveOneOut", "LeavePGroupsOut", "LeavePOut",
        "PredefinedSplit", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold",
        "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit",
    )),
    "sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree", "sklearn.utils._bunch.Bunch",
)  # fmt: skip


def _require_skops() -> None:
    if find_spec("skops") is None:
        raise ImportError(
            "Saving and loading selectors needs skops: install it with pip install 'neural-greedy-pursuit[skops]'."
        )


def refuse_other_suffixes(path: str | PathLike[str], what: str, suffixes: Sequence[str]) -> None:
    """Refuse a name that promises another format than the one that is written."""
    if Path(path).suffix.lower() not in suffixes:
        raise ValueError(f"path={str(path)!r} is no name for {what}: use the suffix {' or '.join(suffixes)}.")


def write_whole(path: Path, content: bytes) -> None:
    """Write beside, then rename: nothing half-written ever replaces something whole.

    Behind a symlink it is the target that is replaced, and what is replaced keeps its mode.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of {path.name} doesn't exist: make it, or give another.")
    beside = path.with_name(f".ngp-{os.urandom(8).hex()}")  # short, since the name of the file may be as long as can be
    try:
        with beside.open("xb") as file:
            if path.exists():
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave the new name with nothing behind it
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table that reads well in a terminal too."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )
