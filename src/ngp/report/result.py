"""A selection as a JSON document: what was asked and what was found.

The document is written from the dataclasses below and read back into them by their type annotations: a new field needs
nothing else.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import UTC, datetime
from math import nan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix, r2_score
from sklearn.utils.validation import check_is_fitted

from ngp import _formatting as formatting
from ngp._types import AnyArray, BoolArray, FloatArray, IntArray
from ngp.data.folds import is_validation_set
from ngp.data.sources import as_columns, in_memory
from ngp.greedy.path import Step, additions
from ngp.greedy.stability import STABLE_FROM
from ngp.io import write_whole
from ngp.predictors.committee import Committee, Schedule, resolve_predictor

__all__ = ["Result", "correlations"]

SCHEMA = "ngp-result/2"
# Parameters that don't bear on what is selected.
NOT_ASKED = frozenset({"checkpoint", "verbose"})
MOST_POINTS, MOST_CLASSES, MOST_CORRELATED = 1000, 20, 5


@dataclass(frozen=True)
class Question:
    """What the selector was asked to do."""

    task: str  # "regression" or "classification"
    target: str
    classes: list[str] | None
    n_samples: int
    n_outputs: int
    predictor: str
    cv: str  # in words
    loss: str
    parameters: dict[str, Any]  # objects and long lists in words
    call: str  # repr of the selector


@dataclass(frozen=True)
class Columns:
    """The columns of X as they were given; a category column counts once."""

    names: list[str]
    categories: list[int | None]  # how many each column has; None for numbers
    fixed: list[int]


@dataclass(frozen=True)
class Candidates:
    """The groups of columns that could be selected."""

    names: list[str]
    columns: list[list[int]]
    costs: list[float]


@dataclass(frozen=True)
class Answer:
    """What was selected, and why the search ended."""

    support: list[bool]  # one per column of X, like the next two
    ranking: list[int | None]  # 1 for the first column; None if fixed or not selected
    importances: list[float]
    loss: float
    standard_error: float
    constant_loss: float
    stop_reason: str
    partial: bool
    seconds: float
    n_fits: int


@dataclass(frozen=True)
class Pair:
    """Two groups and a correlation: of their columns, or of being selected."""

    groups: list[int]
    correlation: float


@dataclass(frozen=True)
class Halves:
    """How often each group was selected on halves of the rows."""

    n_halves: int
    n_selected: float
    frequencies: list[float]
    threshold: float
    stable: list[int]
    expected_false: float
    stand_ins: list[Pair]


@dataclass(frozen=True)
class Fit:
    """How well the final predictor does."""

    rows: str  # "held out" or "training"
    n_rows: int
    r2: float = nan
    rmse: float = nan
    accuracy: float = nan
    truth: list[float] | None = None  # of the first output, at most 1000 rows
    predicted: list[float] | None = None
    classes: list[str] | None = None
    confusion: list[list[int]] | None = None  # one row per true class


@dataclass(frozen=True)
class Image:
    """The selected pixels."""

    shape: list[int]
    ranks: list[list[int | None]]  # 0 if fixed
    mean: list[list[float]]


@dataclass(frozen=True, eq=False)
class Result:
    """Everything that a report shows, and a script needs, of one selection.

    Attributes
    ----------
    schema : str
        Name and version of the document.
    created : str
        Date and time in UTC.
    versions : dict
        Of ngp, Python and the libraries, and the kind of machine.
    order : list of str
        Names of the selected features or groups, most important first.
    asked : Question
        Task, target, predictor, cross-validation, loss, and all parameters.
    features : Columns
        The columns of X.
    groups : Candidates
        The candidates and their columns.
    answer : Answer
        What was selected, and why the search ended.
    path : list of Step
        All steps; their columns are those of X, before categories became several.
    correlations : list of Pair
        For each selected group, the five unselected ones that are most correlated with it.
    stability : Halves or None
        How often each group was selected on halves of the rows, if that was measured.
    fit : Fit
        How well the final predictor does.
    image : Image or None
        The selected pixels, if the columns are those of an image.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> result = Result.of(selector, X, y, target="current")
    >>> result.order, result.asked.target
    (['x1', 'x0'], 'current')
    """

    schema: str
    created: str
    versions: dict[str, str]
    order: list[str]
    asked: Question
    features: Columns
    groups: Candidates
    answer: Answer
    path: list[Step]
    correlations: list[Pair]
    stability: Halves | None
    fit: Fit
    image: Image | None

    @classmethod
    def of(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        *,
        target: str = "y",
        held_out: tuple[Any, Any] | None = None,
        image_shape: Sequence[int] | None = None,
    ) -> Self:
        """Gather the result of a fitted selector.

        Parameters
        ----------
        selector : NeuralGreedyPursuit
            Fitted to `X` and `y`.
        X, y : array-like or data frame
            As they were given to `fit`.
        target : str
            Name of y.
        held_out : (X, y), optional
            Rows that `fit` has not seen, to judge the final predictor. Without them it is judged on its training rows,
            which is too optimistic, and the result says so.
        image_shape : (rows, cols) or (rows, cols, channels), optional
            If the columns are the pixels of an image, in C order.

        Returns
        -------
        Result
            What was asked, and what was found.
        """
        check_is_fitted(selector, "path_")
        groups = selector.groups_
        rows, seen = ("training", (X, y)) if held_out is None else ("held out", held_out)
        return cls(
            schema=SCHEMA,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=_versions(),
            order=[str(groups.names[group]) for group in selector.order_],
            asked=_question(selector, y, target),
            features=_columns(selector),
            groups=Candidates(
                list(map(str, groups.names)), [each.tolist() for each in groups.columns], groups.costs.tolist()
            ),
            answer=_answer(selector),
            path=_path(selector),
            correlations=correlations(selector, X),
            stability=_stability(selector),
            fit=_fit(selector, *seen, rows=rows),
            image=None if image_shape is None else _image(selector, X, image_shape),
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read a result that `write` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Result
            What was written.

        Raises
        ------
        ValueError
            If the file can't be read or isn't a result.
        """
        try:
            document = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise ValueError(f"{path} can't be read: {(error.strerror or str(error)).lower()}.") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a JSON file: {error}.") from error
        found = document.get("schema") if isinstance(document, dict) else None
        if found != SCHEMA:
            raise ValueError(
                f"{path} is not a result that this version of ngp can read: its field schema is {found!r} instead of "
                f"{SCHEMA!r}."
            )
        try:
            result: Self = _parsed(cls, document, "result")
            result._check()
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{path} is a damaged result: {error}.") from error
        return result

    def _check(self) -> None:
        """Refuse numbers of groups and columns that don't exist."""
        n_groups, n_features, steps = len(self.groups.names), len(self.features.names), self.path
        groups = [group for step in steps for group in (step.group, step.runner_up, step.dropped) if group is not None]
        groups += [group for pair in self.correlations for group in pair.groups]
        columns = [*self.features.fixed, *(column for members in self.groups.columns for column in members)]
        columns += [int(column) for step in steps for column in step.columns]
        lengths = [len(self.groups.columns) == n_groups, *(len(step.losses) == n_groups for step in steps)]
        lengths += [len(each) == n_features for each in (self.features.categories, self.answer.ranking)]
        if self.stability is not None:
            groups += [group for pair in self.stability.stand_ins for group in pair.groups]
            lengths += [len(self.stability.frequencies) == n_groups]
        if (
            not steps
            or not all(lengths)
            or not set(groups) <= {*range(n_groups)}
            or not set(columns) <= {*range(n_features)}
        ):
            raise ValueError("its groups and columns don't match its path")

    def to_json(self) -> str:
        """Make the document.

        Returns
        -------
        str
            JSON with one line per field. Undefined and infinite numbers are null.
        """
        parts = _plain(self).items()
        lines = [f'"{name}": {json.dumps(part, ensure_ascii=False, allow_nan=False)}' for name, part in parts]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def write(self, path: str | PathLike[str]) -> None:
        """Write the document, whole or not at all.

        Parameters
        ----------
        path : path
            The file; its folder exists.
        """
        # UTF-8 can't hold half a surrogate pair: it is written with a backslash, as JSON writes it.
        write_whole(Path(path), self.to_json().encode("utf-8", "backslashreplace"))


def _plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    if isinstance(value, DOCUMENTS):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if np.isfinite(float(value)) else None
    return _described(value)


DOCUMENTS = (Result, Question, Columns, Candidates, Answer, Step, Pair, Halves, Fit, Image)


def _parsed(kind: Any, value: Any, where: str) -> Any:
    """Turn what JSON holds into a value of an annotated type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:  # X | None
        return None if value is None and NoneType in arguments else _parsed(arguments[0], value, where)
    if kind in DOCUMENTS and isinstance(value, dict):
        if absent := [field.name for field in fields(kind) if field.name not in value and field.default is MISSING]:
            raise ValueError(f"{where} lacks {absent[0]}")
        hints = get_type_hints(kind).items()
        return kind(**{name: _parsed(hint, value[name], f"{where}.{name}") for name, hint in hints if name in value})
    if origin is np.ndarray and isinstance(value, list):
        return np.array(value, dtype=get_args(arguments[1])[0])  # where None becomes NaN
    elif origin is list and isinstance(value, list):
        return [_parsed(arguments[0], item, f"{where}[]") for item in value]
    elif origin is dict and isinstance(value, dict):
        return {name: _parsed(arguments[1], item, f"{where}.{name}") for name, item in value.items()}
    elif origin is Literal and value in arguments:
        return value
    elif kind is float and (value is None or type(value) in (int, float)):
        return nan if value is None else float(value)
    elif type(value) is kind:
        return value
    raise ValueError(f"{where} can't be {formatting.described(value)[:60]}")


def _described(value: Any) -> str:
    if isinstance(value, BaseEstimator):
        return str(value.__repr__(N_CHAR_MAX=10_000))
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return formatting.described(value)


def _versions() -> dict[str, str]:
    import sklearn

    from ngp import __version__

    return {
        "ngp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _question(selector: Any, y: Any, target: str) -> Question:
    classes, shape = getattr(selector, "classes_", None), np.shape(y)
    given = {name: value for name, value in selector.get_params(deep=False).items() if name not in NOT_ASKED}
    predictor, cv = resolve_predictor(selector.predictor), _cv_in_words(selector.cv)
    name = "one per step" if isinstance(predictor, Schedule) else predictor.name
    return Question(
        task=selector.task_,
        target=target,
        classes=None if classes is None else _class_names(classes),
        n_samples=int(shape[0]),
        n_outputs=int(shape[1]) if len(shape) > 1 else 1,
        predictor=", ".join(predictor.names) if isinstance(predictor, Committee) else name,
        cv=cv,
        loss=_loss_in_words(selector, predictor),
        parameters={
            name: cv if name == "cv" and isinstance(value, list | tuple) else _short(value)
            for name, value in given.items()
        },
        call=formatting.described(type(selector)(**given)),
    )


def _loss_in_words(selector: Any, predictor: Any) -> str:
    """The loss that `fit` used for ``"auto"``, or the name of the scorer."""
    if predictor.scoring is not None:
        return f"scoring: {_plain(predictor.scoring)}"
    if selector.loss == "auto":
        return "squared_error" if selector.task_ == "regression" else str(predictor.classification_loss)
    return str(selector.loss)


def _cv_in_words(cv: Any) -> str:
    if isinstance(cv, str):
        return "leave one out"
    if isinstance(cv, Integral):
        return f"{cv} random folds"
    if isinstance(cv, Real):
        return f"a random {100 * float(cv):g}% of the rows held out"
    if is_validation_set(cv):
        return f"an explicit validation set of {len(cv[0])} rows"
    if isinstance(cv, list | tuple):
        return formatting.counted(len(cv), "given split")
    return _described(cv)


def _short(value: Any) -> Any:
    """A parameter as a plain value; a long list only by its length."""
    plain = _plain(value)
    if isinstance(plain, list | dict) and len(json.dumps(plain)) > 10_000:
        return f"{type(value).__name__} of length {len(value)}"
    return plain


def _columns(selector: Any) -> Columns:
    names = selector.encoder_.feature_names_ or [f"x{column}" for column in range(selector.n_features_in_)]
    categories = selector.encoder_.categories_
    counts = [len(categories[column]) if column in categories else None for column in range(len(names))]
    return Columns(list(map(str, names)), counts, selector.fixed_.tolist())


def _answer(selector: Any) -> Answer:
    steps = selector.path_
    last = [step for step in steps if step.kept][-1]
    origin = _origin(selector)
    ranking: list[int | None] = [None] * selector.n_features_in_
    for rank, step in enumerate(additions(steps), 1):
        for column in np.unique(origin[step.columns]):
            ranking[column] = rank
    return Answer(
        support=selector.support_.tolist(),
        ranking=ranking,
        importances=selector.feature_importances_.tolist(),
        loss=last.loss,
        standard_error=last.standard_error,
        constant_loss=selector.constant_loss_,
        stop_reason=selector.stop_reason_,
        partial=bool(selector.partial_),
        seconds=float(sum(step.seconds for step in steps)),
        n_fits=sum(step.n_fits for step in steps),
    )


def _path(selector: Any) -> list[Step]:
    origin = _origin(selector)
    return [replace(step, columns=np.unique(origin[step.columns])) for step in selector.path_]


def _origin(selector: Any) -> IntArray:
    """The column of X that each encoded column stands for."""
    blocks = selector.encoder_.feature_groups_
    if blocks is None:
        return np.arange(selector.n_features_in_)
    return np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])


def correlations(selector: Any, X: Any) -> list[Pair]:
    """For each selected group, the unselected ones that are most correlated with it.

    Between groups of several columns it is the largest absolute correlation of any two of their columns.
    """
    data, candidates = in_memory(selector.encoder_.transform(as_columns(X))), selector.groups_
    data = data if isinstance(data, np.ndarray) else np.asarray(data)
    blocks = selector.encoder_.feature_groups_
    if blocks is not None:
        candidates = candidates.expand(blocks)
    taken = np.zeros(data.shape[1], dtype=bool)
    for step in (selector.path_[0], *additions(selector.path_)):
        taken[step.columns] = True
    order = selector.order_.tolist()
    strongest = _strongest(data, [candidates.columns[group] for group in order], taken)
    pairs = []
    for group, by_column in zip(order, strongest, strict=True):
        if candidates.are_columns:
            values = by_column[: candidates.n_groups]
        else:
            values = np.array([by_column[columns].max() for columns in candidates.columns])
        top = np.argsort(-values, kind="stable")[:MOST_CORRELATED]
        pairs += [Pair([group, int(other)], float(values[other])) for other in top if values[other] >= 0]
    return pairs


def _strongest(data: AnyArray, members: list[IntArray], taken: BoolArray) -> FloatArray:
    """Largest absolute correlation of each column with any column of each member; -1 for columns that are taken."""
    chosen = [_standardised(data[:, columns]) for columns in members]
    strongest = np.full((len(members), data.shape[1]), -1.0)
    free = np.flatnonzero(~taken)
    for start in range(0, len(free) if members else 0, 256):  # few columns at once need little memory
        chunk = free[start : start + 256]
        values = _standardised(data[:, chunk])
        for row, own in enumerate(chosen):
            strongest[row, chunk] = np.abs(own.T @ values).max(axis=0).clip(max=1.0)
    return strongest


def _standardised(values: AnyArray) -> FloatArray:
    """Columns with mean zero and norm one; constant ones become zeros."""
    centred: FloatArray = values.astype(np.float64)
    centred -= centred.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    scaled: FloatArray = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12)
    return scaled


def _stability(selector: Any) -> Halves | None:
    found = getattr(selector, "stability_", None)
    if found is None:
        return None
    return Halves(
        n_halves=found.n_halves,
        n_selected=found.n_selected,
        frequencies=found.frequencies.tolist(),
        threshold=STABLE_FROM,
        stable=found.stable(STABLE_FROM).tolist(),
        expected_false=found.expected_false(STABLE_FROM),
        stand_ins=[Pair([first, second], correlation) for first, second, correlation in found.stand_ins()],
    )


def _fit(selector: Any, X: Any, y: Any, rows: str) -> Fit:
    truth, predicted = np.asarray(y), selector.predict(X)
    if selector.task_ == "classification":
        names, counts = _confusion(truth.ravel(), predicted, selector.classes_)
        accuracy = float(np.mean(truth.ravel() == predicted))
        return Fit(rows, len(truth), accuracy=accuracy, classes=names, confusion=counts.tolist())
    truth, predicted = (np.asarray(values, dtype=np.float64).reshape(len(truth), -1) for values in (truth, predicted))
    shown = np.linspace(0, len(truth) - 1, min(MOST_POINTS, len(truth)), dtype=np.intp)
    return Fit(
        rows,
        len(truth),
        r2=float(r2_score(truth, predicted)) if len(truth) > 1 else nan,
        rmse=float(np.sqrt(np.mean((truth - predicted) ** 2))),
        truth=truth[shown, 0].tolist(),
        predicted=predicted[shown, 0].tolist(),
    )


def _confusion(truth: AnyArray, predicted: AnyArray, classes: AnyArray) -> tuple[list[str], IntArray]:
    """Names and confusion matrix of the classes with the most rows; all others are counted as one."""
    known = np.unique(np.concatenate([classes, truth]))
    counts, names = confusion_matrix(truth, predicted, labels=known), _class_names(known)
    if len(known) <= MOST_CLASSES:
        return names, counts
    largest = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
    place = np.full(len(known), MOST_CLASSES)
    place[largest] = np.arange(MOST_CLASSES)
    merged = np.zeros((MOST_CLASSES + 1, MOST_CLASSES + 1), dtype=np.intp)
    np.add.at(merged, (place[:, None], place[None, :]), counts)
    return [*(names[i] for i in largest), "other"], merged


def _class_names(classes: AnyArray) -> list[str]:
    """Classes as text, whole numbers without a point."""
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in classes.tolist()]


def _image(selector: Any, X: Any, shape: Sequence[int]) -> Image:
    """The step that selected each pixel, and the mean image."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1 or np.prod(sizes) != selector.n_features_in_:
        raise ValueError(
            f"image_shape={tuple(shape)!r} doesn't fit the {selector.n_features_in_} columns of X: "
            "give (rows, cols) or (rows, cols, channels) whose product is that number."
        )
    ranks = pixel_ranks(selector.path_, sizes)
    mean = np.asarray(in_memory(selector.encoder_.transform(as_columns(X))), dtype=np.float64).mean(axis=0)
    return Image(
        shape=list(sizes),
        ranks=[[None if np.isnan(rank) else int(rank) for rank in row] for row in ranks],
        mean=mean.reshape(sizes[0], sizes[1], -1).mean(axis=2).tolist(),
    )


def pixel_ranks(steps: Sequence[Step], shape: Sequence[int]) -> FloatArray:
    """The rank of each pixel in the order of selection, 0 if fixed, NaN if not selected; the first of its channels."""
    ranks = np.full(int(np.prod(shape)), np.nan)
    for rank, step in enumerate((steps[0], *additions(steps))):
        ranks[step.columns] = rank
    first: FloatArray = np.fmin.reduce(ranks.reshape(shape[0], shape[1], -1), axis=2)
    return first
