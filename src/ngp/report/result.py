"""`Result`: what was asked and what was found, as a JSON document that outlives the session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ngp.greedy.path import Step
from ngp.io import write_whole
from ngp.report import findings
from ngp.report.asking import asked
from ngp.report.result_schema import NAME, VERSION, check_document

__all__ = ["Result"]

WITHOUT_NUMBER = float("nan")


@dataclass(frozen=True)
class Result:
    """Everything a report needs, and a script would want, of one selection.

    The attributes are the fields of the JSON document, which ``docs/result-schema.md`` describes one by one.

    Attributes
    ----------
    schema : str
        Name and version of the document's shape.
    created : str
        Date and time in UTC.
    versions : dict
        Of ngp, Python and the libraries, and the kind of machine.
    asked : dict
        Task, target, sizes, predictor, cross-validation, loss, seed, and all parameters.
    features, groups : dict
        Names of columns and candidates, and which columns a candidate has.
    answer : dict
        What was selected, in order, and why the pursuit ended.
    path : list of dict
        All steps.
    correlations : list of dict
        For each selected candidate those passed over that are most correlated with it.
    stability : dict or None
        How often each candidate was selected on halves of the rows, where `n_resamples` asked for it.
    fit : dict
        How well the final predictor does.
    image : dict or None
        The selected pixels, where the columns are those of an image.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_ohm
    >>> X, y, truth = make_ohm(200, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> result = Result.of(selector, X, y, target="current")
    >>> result.answer["names"], result.asked["target"]
    (['x1', 'x0'], 'current')
    """

    schema: str
    created: str
    versions: dict[str, Any]
    asked: dict[str, Any]
    features: dict[str, Any]
    groups: dict[str, Any]
    answer: dict[str, Any]
    path: list[dict[str, Any]]
    correlations: list[dict[str, Any]]
    stability: dict[str, Any] | None
    fit: dict[str, Any]
    image: dict[str, Any] | None

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
            What y is called.
        held_out : (X, y), optional
            Rows that `fit` has not seen, to judge the final predictor. Without them it is judged on the rows that it
            was trained on, which flatters it, and the result says so.
        image_shape : (rows, cols) or (rows, cols, channels), optional
            Where the columns are the pixels of an image, in C order.

        Returns
        -------
        Result
            What was asked, and what was found.
        """
        check_is_fitted(selector, "path_")
        rows, seen = ("training", (X, y)) if held_out is None else ("held out", held_out)
        return cls(
            schema=f"{NAME}/{VERSION}",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=findings.versions(),
            asked=asked(selector, y, target),
            features=findings.features(selector),
            groups=findings.groups(selector),
            answer=findings.answer(selector),
            path=findings.path(selector),
            correlations=findings.correlations(selector, X),
            stability=findings.stability(selector),
            fit=findings.fit_on(selector, *seen, rows=rows),
            image=findings.image(selector, X, image_shape),
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read a result that `write` wrote; a ValueError says in a sentence why a file is none.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Result
            What was written.
        """
        try:
            document = json.loads(Path(path).read_bytes(), parse_constant=_refuse_constant)
        except OSError as error:
            raise ValueError(f"{path} can't be read: {(error.strerror or str(error)).lower()}.") from error
        except RecursionError as error:
            raise ValueError(f"{path} is no JSON that can be read: it is nested too deeply.") from error
        except ValueError as error:
            raise ValueError(f"{path} is no JSON: {error}.") from error
        try:
            check_document(document)
        except ValueError as error:
            raise ValueError(f"{path} can't be read as a result: {error}.") from error
        return cls(**{field.name: document[field.name] for field in fields(cls)})

    def to_json(self) -> str:
        """Make the document.

        Returns
        -------
        str
            JSON, one line a field.
        """
        lines = [
            f'"{field.name}": {json.dumps(getattr(self, field.name), ensure_ascii=False, allow_nan=False)}'
            for field in fields(self)
        ]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def write(self, path: str | PathLike[str]) -> None:
        """Write the document, whole or not at all.

        Parameters
        ----------
        path : path
            The file; its folder exists.
        """
        # Half a surrogate pair, which UTF-8 can't hold, is written as JSON writes it: with a backslash.
        write_whole(Path(path), self.to_json().encode("utf-8", "backslashreplace"))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The path as the steps that the plots take; columns are those of X, before categories became several."""
        return tuple(_step(values) for values in self.path)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"it has {constant}, which JSON doesn't know")


def _step(values: dict[str, Any]) -> Step:
    numbers = ("before", "loss", "standard_error", "gain", "runner_up_loss", "chance", "ahead", "certainty")
    lists = ("fold_losses", "fold_weights", "losses")
    known = {field.name: values[field.name] for field in fields(Step)}
    known |= {name: WITHOUT_NUMBER if values[name] is None else float(values[name]) for name in numbers}
    known |= {name: np.array(values[name], dtype=np.float64) for name in lists}  # where None becomes NaN
    return Step(**known | {"columns": np.array(values["columns"], dtype=np.intp)})
