"""A selection as a JSON document: what was asked and what was found.

The document is written from the dataclasses below and read back into them by their type annotations: a new field needs
nothing else.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from math import isfinite, nan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Self, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix, r2_score
from sklearn.utils.validation import check_is_fitted

from ngp import _formatting as formatting
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.folds import is_validation_set
from ngp.data.sources import as_columns, in_memory
from ngp.greedy.evidence import known_groups
from ngp.greedy.path import Step, additions
from ngp.greedy.stability import STABLE_FROM
from ngp.io import refuse_other_suffixes, write_whole
from ngp.predictors.committee import Committee, Schedule, settled
from ngp.report.dependence import Curve, Together, curves_of, together_of

__all__ = ["Result"]

SCHEMA = "ngp-result/4"
FDR = 0.1  # false discovery rate of what is called significant


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
    data: list[str]  # what was done to the data before, in words
    command: str  # of the command line; empty in Python


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
    score: float  # cross-validated accuracy or R², like the next two
    score_error: float
    all_columns_score: float
    rows_needed: float  # for the first candidate to be significant, if nothing was selected, about
    cuts: dict[str, int]  # where else the path may be cut: "significant" or "best" -> number of features
    stop_reason: str
    partial: bool
    seconds: float
    n_fits: int


@dataclass(frozen=True)
class Evidence:
    """What speaks for a group: the share of the constant prediction's loss that it saves, and its p-value."""

    group: int
    importance: float
    standard_error: float
    p_value: float
    significant: bool  # at a false discovery rate of FDR


@dataclass(frozen=True)
class Pair:
    """Two groups and a correlation: of their columns, or of being selected."""

    groups: list[int]
    correlation: float


@dataclass(frozen=True)
class Halves:
    """How often each group was selected on halves of the rows."""

    n_halves: int
    frequencies: list[float]
    threshold: float
    stable: list[int]
    expected_false: float
    stand_ins: list[Pair]


@dataclass(frozen=True)
class Fit:
    """How well the final predictor does on rows that were held out."""

    n_rows: int
    constant: float  # R² or accuracy of the constant prediction on the same rows
    r2: float = nan
    rmse: float = nan
    accuracy: float = nan
    truth: list[float] | None = None  # of the first output, at most 1000 rows
    predicted: list[float] | None = None
    classes: list[str] | None = None
    confusion: list[list[int]] | None = None  # one row per true class


@dataclass(frozen=True)
class Image:
    """The mean image."""

    shape: list[int]
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
    evidence : list of Evidence
        Importances and p-values of the selected groups, and the p-values of others if all were asked for.
    chance : list of list of float, or None
        For each step, the range of the loss that it would have led to by chance, if that was measured.
    correlations : list of Pair
        For each selected group, the five unselected ones that are most correlated with it.
    curves : list of Curve
        How the predictions depend on each selected column; empty for images, and without a predictor.
    together : list of Together
        What pairs of selected groups say together, beyond what each says alone.
    stability : Halves or None
        How often each group was selected on halves of the rows, if that was measured.
    fit : Fit or None
        How well the final predictor does on rows that were held out; None if there are none, or no predictor.
    image : Image or None
        Shape and mean image, if the columns are the pixels of an image.

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
    evidence: list[Evidence]
    chance: list[list[float]] | None
    correlations: list[Pair]
    curves: list[Curve]
    together: list[Together]
    stability: Halves | None
    fit: Fit | None
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
        data: Sequence[str] = (),
        command: str = "",
    ) -> Self:
        """Gather the result of a fitted selector.

        Parameters
        ----------
        selector : NGPRegressor, NGPClassifier or NeuralGreedyPursuit
            Fitted to `X` and `y`. The last one doesn't predict, so that there is no `fit` and no `curves`.
        X, y : array-like or data frame
            As they were given to `fit`.
        target : str
            Name of y.
        held_out : (X, y), optional
            Rows that `fit` has not seen, to judge the final predictor. Without them, its cross-validated score is all
            that is known.
        image_shape : (rows, cols) or (rows, cols, channels), optional
            If the columns are the pixels of an image, in C order.
        data : sequence of str
            Where the data come from and what was done to them, in sentences for the report.
        command : str
            What was typed, if the command line was used.

        Returns
        -------
        Result
            What was asked, and what was found.
        """
        check_is_fitted(selector, "path_")
        groups, predicts = selector.groups_, hasattr(selector, "predictor_")
        if held_out is not None and not hasattr(selector, "predict"):
            raise ValueError(
                f"held_out is for a selector that predicts, and {type(selector).__name__} doesn't: use NGPRegressor or "
                "NGPClassifier."
            )
        values, blocks = _encoded(selector, X), selector.encoder_.feature_groups_
        if blocks is None:
            blocks = tuple(np.arange(selector.n_features_in_)[:, None])
        chance = getattr(selector, "chance_", None)
        return cls(
            schema=SCHEMA,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=_versions(),
            order=[str(groups.names[group]) for group in selector.order_],
            asked=_question(selector, y, target, list(data), command),
            features=_columns(selector),
            groups=Candidates(
                list(map(str, groups.names)), [c.tolist() for c in groups.columns], groups.costs.tolist()
            ),
            answer=_answer(selector),
            path=[replace(step, columns=np.unique(_origin(selector)[step.columns])) for step in selector.path_],
            evidence=_evidence(selector),
            chance=None if chance is None else chance.tolist(),
            correlations=_correlations(selector, values),
            curves=curves_of(selector, values, blocks) if predicts and image_shape is None else [],
            together=together_of(selector, values, blocks) if predicts else [],
            stability=_stability(selector),
            fit=_fit(selector, y, *held_out) if held_out is not None and predicts else None,
            image=None if image_shape is None else _image(selector, values, image_shape),
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read a result that `write` wrote; a ValueError says why it can't be read."""
        try:
            document = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise ValueError(f"{path} can't be read: {(error.strerror or str(error)).lower()}.") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a JSON file: {error}.") from error
        found = document.get("schema") if isinstance(document, dict) else None
        if found != SCHEMA:
            raise ValueError(
                f"{path} is not a result that this version of ngp can read: its field schema is {found!r:.60} instead "
                f"of {SCHEMA!r}."
            )
        try:
            result: Self = _parsed(cls, document)
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is a damaged result: {str(error)[:200]}.") from error
        return result

    def to_json(self) -> str:
        """The document, with one line per field; undefined and infinite numbers are null."""
        parts = _plain(self).items()
        lines = [f'"{name}": {json.dumps(part, ensure_ascii=False, allow_nan=False)}' for name, part in parts]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def write(self, path: str | PathLike[str]) -> None:
        """Write the document to a .json file, whole or not at all."""
        refuse_other_suffixes(path, "a result", (".json",))
        # UTF-8 can't hold half a surrogate pair: it is written with a backslash, as JSON writes it.
        write_whole(Path(path), self.to_json().encode("utf-8", "backslashreplace"))


def _plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    if isinstance(value, DOCUMENTS):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if value is None or isinstance(value, int | float | str) else _described(value)


DOCUMENTS = (Result, Question, Columns, Candidates, Answer, Step, Evidence, Pair, Curve, Together, Halves, Fit, Image)


def _parsed(kind: Any, value: Any) -> Any:
    """Turn what JSON holds into a value of an annotated type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in DOCUMENTS:
        hints = get_type_hints(kind).items()
        return kind(**{name: _parsed(hint, value[name]) for name, hint in hints if name in value})
    if NoneType in arguments:
        return None if value is None else _parsed(arguments[0], value)
    if origin is np.ndarray:
        return np.array(value, dtype=get_args(arguments[1])[0])  # where None becomes NaN
    if origin is list:
        return [_parsed(arguments[0], item) for item in value]
    if kind is float:
        return nan if value is None else float(value)
    if kind in (bool, int, str) and type(value) is not kind:
        raise TypeError(f"{value!r} stands where there must be {kind.__name__}")
    return value


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


def _question(selector: Any, y: Any, target: str, data: list[str], command: str) -> Question:
    classes, shape = getattr(selector, "classes_", None), np.shape(y)
    silent = {"checkpoint", "verbose"}  # they don't bear on what is selected
    given = {name: value for name, value in selector.get_params(deep=False).items() if name not in silent}
    n_rows, n_candidates, used = int(shape[0]), selector.groups_.n_groups, selector.cv
    predictor, _ = settled(selector.predictor, used, n_rows=n_rows, n_candidates=n_candidates)
    if isinstance(used, str) and used == "auto":
        used = "loo" if len(selector.path_[0].fold_weights) == n_rows else 5
    cv = _cv_in_words(used)
    name = "one per step" if isinstance(predictor, Schedule) else predictor.name
    return Question(
        task=selector.task_,
        target=target,
        classes=None if classes is None else _class_names(classes),
        n_samples=n_rows,
        n_outputs=int(shape[1]) if len(shape) > 1 else 1,
        predictor=", ".join(predictor.names) if isinstance(predictor, Committee) else name,
        cv=cv,
        loss=_loss_in_words(selector, predictor),
        parameters={
            name: cv if name == "cv" and isinstance(value, list | tuple) else _short(value)
            for name, value in given.items()
        },
        call=formatting.described(type(selector)(**given)),
        data=data,
        command=command,
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
        score=last.score,
        score_error=last.score_error,
        all_columns_score=selector.all_columns_score_,
        rows_needed=selector.rows_needed_,
        cuts=selector.cuts_,
        stop_reason=selector.stop_reason_,
        partial=bool(selector.partial_),
        seconds=float(sum(step.seconds for step in steps)),
        n_fits=sum(step.n_fits for step in steps),
    )


def _evidence(selector: Any) -> list[Evidence]:
    """Selected groups in their order, then others with a p-value, the lowest first: of nothing, the nearest one."""
    significant = set(selector.significant(FDR))
    return [
        Evidence(
            group,
            float(selector.importances_[group]),
            float(selector.importance_errors_[group]),
            float(selector.p_values_[group]),
            group in significant,
        )
        for group in known_groups(selector.order_, selector.p_values_)
    ]


def _origin(selector: Any) -> IntArray:
    """The column of X that each encoded column stands for."""
    blocks = selector.encoder_.feature_groups_
    if blocks is None:
        return np.arange(selector.n_features_in_)
    return np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])


def _correlations(selector: Any, data: AnyArray) -> list[Pair]:
    """For each selected group, the five unselected ones that are most correlated with it.

    Between groups of several columns it is the largest absolute correlation of any two of their columns.
    """
    groups, blocks = selector.groups_, selector.encoder_.feature_groups_
    if blocks is not None:
        groups = groups.expand(blocks)
    taken = np.zeros(data.shape[1], dtype=bool)
    for step in (selector.path_[0], *additions(selector.path_)):
        taken[step.columns] = True
    free, order = np.flatnonzero(~taken), selector.order_.tolist()
    strongest = np.full((len(order), data.shape[1]), -1.0)
    chosen = [_standardised(data[:, groups.columns[group]]) for group in order]
    for start in range(0, len(free) if order else 0, 256):  # few columns at once need little memory
        chunk = free[start : start + 256]
        values = _standardised(data[:, chunk])
        for row, own in enumerate(chosen):
            strongest[row, chunk] = np.abs(own.T @ values).max(axis=0).clip(max=1.0)
    sizes = [len(columns) for columns in groups.columns]
    by_group = np.maximum.reduceat(strongest[:, np.concatenate(groups.columns)], np.cumsum([0, *sizes[:-1]]), axis=1)
    pairs = []
    for group, values in zip(order, by_group, strict=True):
        top = np.argsort(-values, kind="stable")[:5]
        pairs += [Pair([group, int(other)], float(values[other])) for other in top if values[other] >= 0]
    return pairs


def _encoded(selector: Any, X: Any) -> AnyArray:
    return np.asarray(in_memory(selector.encoder_.transform(as_columns(X))))


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
        frequencies=found.frequencies.tolist(),
        threshold=STABLE_FROM,
        stable=found.stable(STABLE_FROM).tolist(),
        expected_false=found.expected_false(STABLE_FROM),
        stand_ins=[Pair([first, second], correlation) for first, second, correlation in found.stand_ins()],
    )


def _fit(selector: Any, y_train: Any, X: Any, y: Any) -> Fit:
    truth, predicted = np.asarray(y), selector.predict(X)
    if selector.task_ == "classification":
        names, counts = _confusion(truth.ravel(), predicted, selector.classes_)
        known, sizes = np.unique(np.asarray(y_train), return_counts=True)
        constant, accuracy = (float(np.mean(truth.ravel() == guess)) for guess in (known[np.argmax(sizes)], predicted))
        return Fit(len(truth), constant, accuracy=accuracy, classes=names, confusion=counts.tolist())
    truth, predicted = (np.asarray(values, dtype=np.float64).reshape(len(truth), -1) for values in (truth, predicted))
    mean = np.asarray(y_train, dtype=np.float64).reshape(len(y_train), -1).mean(axis=0)
    shown = np.linspace(0, len(truth) - 1, min(1000, len(truth)), dtype=np.intp)
    return Fit(
        len(truth),
        float(r2_score(truth, np.broadcast_to(mean, truth.shape))) if len(truth) > 1 else nan,
        r2=float(r2_score(truth, predicted)) if len(truth) > 1 else nan,
        rmse=float(np.sqrt(np.mean((truth - predicted) ** 2))),
        truth=truth[shown, 0].tolist(),
        predicted=predicted[shown, 0].tolist(),
    )


def _confusion(truth: AnyArray, predicted: AnyArray, classes: AnyArray) -> tuple[list[str], IntArray]:
    """Names and confusion matrix of the 20 classes with the most rows; all others are counted as one."""
    known, sizes = np.unique(np.concatenate([classes, truth]), return_counts=True)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:20])
    place = np.full(len(known), len(largest))
    place[largest] = np.arange(len(largest))
    names = _class_names(known[largest]) + (["other"] if len(known) > len(largest) else [])
    coded = (place[np.searchsorted(known, values)] for values in (truth, predicted))
    return names, confusion_matrix(*coded, labels=range(len(names)))


def _class_names(classes: AnyArray) -> list[str]:
    """Classes as text, whole numbers without a point."""
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in classes.tolist()]


def _image(selector: Any, data: AnyArray, shape: Sequence[int]) -> Image:
    sizes = [int(size) for size in shape]
    if len(sizes) not in (2, 3) or min(sizes) < 1 or np.prod(sizes) != selector.n_features_in_:
        raise ValueError(
            f"image_shape={tuple(shape)!r} doesn't fit the {selector.n_features_in_} columns of X: "
            "give (rows, cols) or (rows, cols, channels) whose product is that number."
        )
    mean = data.astype(np.float64).mean(axis=0)
    return Image(sizes, mean.reshape(sizes[0], sizes[1], -1).mean(axis=2).tolist())
