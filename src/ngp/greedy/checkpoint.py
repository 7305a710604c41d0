"""Checkpoints: the steps of a pursuit in a file, so that a run that was killed goes on where it was.

A file holds what was run (hashes of the data, the parameters, the version), the seed, and all steps. It is a ``.npz``
of numbers and JSON texts, and nothing in it is ever executed. Each step replaces the whole file by renaming a new one,
so that there is never half a checkpoint.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ngp import _formatting as words
from ngp._types import AnyArray
from ngp.data.problem import Problem
from ngp.data.sources import ColumnSource, read_columns
from ngp.greedy.path import Step, chosen
from ngp.io import check_archive, write_whole

__all__ = ["Checkpoint", "CheckpointError", "Saving", "identity_of"]

FORMAT = "ngp-checkpoint/4"
WAYS_OUT = "give another path, or remove the file"
ARRAYS = [field.name for field in fields(Step) if "Array" in str(field.type)]  # all other fields fit into JSON
# What is known by a hash, or by a seed that nobody gave.
UNTOLD = ("X", "y", "sample_weight", "validation rows", "groups", "fixed", "random_state")
# Bytes of X that are hashed at a time.
HASHED_BYTES = 2**24


class CheckpointError(ValueError):
    """A file that is no checkpoint of this run."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says."""

    identity: Mapping[str, str]  # what was run (see `identity_of`)
    seed: int  # of the run
    steps: Sequence[Step]  # all steps so far

    def write(self, path: Path) -> None:
        """Replace the file."""
        document = {"format": FORMAT, "identity": dict(self.identity), "seed": self.seed}
        arrays: dict[str, Any] = {"document": _as_bytes(document), **steps_as_arrays(self.steps)}
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_whole(path, content.getvalue())

    @classmethod
    def read(cls, path: Path) -> Checkpoint | None:
        """Read a file; None if there is none."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(f"{path} can't be read ({error.strerror}): give another path.") from error
        try:
            check_archive(content)
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                document = _from_bytes(arrays["document"])
                identity, found = {name: str(text) for name, text in document["identity"].items()}, document["format"]
                if found == FORMAT:
                    return cls(identity, int(document["seed"]), steps_from_arrays(arrays))
        except Exception as error:  # of any kind: zipfile, zlib, json and numpy each have their own
            raise CheckpointError(f"{path} is no checkpoint, or a damaged one: {WAYS_OUT}.") from error
        version = identity.get("ngp's version", "of an unknown version")
        raise CheckpointError(
            f"{path} was written by ngp {version:.60}, whose format {found!r:.60} isn't this version's {FORMAT!r}: "
            f"{WAYS_OUT}."
        )

    def check(self, path: Path, identity: Mapping[str, str], problem: Problem) -> None:
        """Refuse to go on with the steps of another run, or with what no run can have written."""
        names = sorted({*identity, *self.identity})
        differences = [
            _difference(name, self.identity.get(name, ""), identity.get(name, ""))
            for name in names
            if self.identity.get(name) != identity.get(name)
        ]
        if differences:
            raise CheckpointError(f"{path} is the checkpoint of another run ({', '.join(differences)}): {WAYS_OUT}.")
        if not _are_possible(self.steps, problem):
            raise CheckpointError(f"{path} holds steps that no run on these data can have made: {WAYS_OUT}.")


@dataclass
class Saving:
    """Writes the checkpoint of a run after each step."""

    path: Path
    identity: Mapping[str, str]
    seed: int
    failed: bool = False  # whether it has been said that a step couldn't be saved

    def __call__(self, steps: Sequence[Step]) -> None:
        """Save all steps. If that fails at the start, the run does; later it goes on, with a single warning."""
        try:
            Checkpoint(self.identity, self.seed, steps).write(self.path)
        except OSError as error:
            problem = f"{self.path} can't be written ({error.strerror or 'its folder is gone'})"
            if len(steps) == 1:
                way_out = f"{problem}: give another path." if error.strerror else str(error)
                raise CheckpointError(way_out) from error
            if not self.failed:
                warnings.warn(
                    f"{problem}: the fit goes on, and its steps are saved once that is possible again.", stacklevel=10
                )
            self.failed = True


def _are_possible(steps: Sequence[Step], problem: Problem) -> bool:
    """Whether steps have a start, name groups and columns that exist, and drop only what was added before."""
    n_groups, n_columns = problem.groups.n_groups, problem.n_columns
    for step in steps:
        named = [group for group in (step.group, step.runner_up, step.dropped) if group is not None]
        if not all(0 <= group < n_groups for group in named) or {len(step.losses), len(step.layers)} != {n_groups}:
            return False
        if not ((step.columns >= 0) & (step.columns < n_columns)).all():
            return False
    try:
        chosen([step for step in steps if step.kept])
    except (KeyError, IndexError):  # something is dropped twice; there are no steps
        return False
    return [number for number, step in enumerate(steps) if step.kept and step.action == "start"] == [0]


def _difference(name: str, there: str, here: str) -> str:
    """What differs; values are shown where they say something."""
    if name in UNTOLD or len(there) + len(here) > 80:
        return f"other {name}"
    return f"{name} was {there} and is {here}"


def identity_of(problem: Problem, fixed: AnyArray, parameters: Mapping[str, Any]) -> dict[str, str]:
    """What makes a run the same run: data, folds, groups, parameters and version."""
    from ngp import __version__  # which is there once the package is imported

    rounds = [array for round_ in problem.rounds for array in (round_.rows, round_.segments)]
    groups: list[AnyArray] = [problem.groups.costs]
    if not problem.groups.is_numbered:  # millions of columns need not be named one by one
        names = [np.frombuffer(name.encode(), np.uint8) for name in problem.groups.names]
        groups += [*problem.groups.columns, *names]
    return {
        "ngp's version": __version__,
        "X": _hash(_columns_of(problem.X)),
        "y": _hash([problem.targets]),
        "sample_weight": _hash([problem.weights]),
        "validation rows": _hash([np.array([problem.n_fit]), *rounds]),
        "groups": _hash(groups),
        "fixed": _hash([fixed]),
        **{name: described(value) for name, value in parameters.items()},
    }


def _columns_of(X: AnyArray | ColumnSource) -> Iterator[AnyArray]:
    """All columns, a few at a time: the same for an array and for a source with the same numbers."""
    yield np.array(X.shape)
    length = max(1, HASHED_BYTES // (X.shape[0] * X.dtype.itemsize))
    for start in range(0, X.shape[1], length):
        yield read_columns(X, np.arange(start, min(start + length, X.shape[1])))


def _hash(arrays: Iterable[AnyArray]) -> str:
    """Of shapes, types and values; the memory order has no say."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        rows = max(1, HASHED_BYTES // max(1, array[:1].nbytes))
        for start in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[start : start + rows]).tobytes())
    return digest.hexdigest()


def described(value: Any) -> str:
    """A parameter's value as text that is the same in another process.

    Lambdas and local functions are told apart by their code and their defaults, since their names say little. Values
    that they find outside themselves (in closures, in the module) aren't seen.
    """
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return _described_plain(value)
    settings = ", ".join(f"{name}={described(each)}" for name, each in sorted(value.get_params(deep=False).items()))
    return f"{type(value).__name__}({settings})"


def _described_plain(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {_hash([value])}"
    if isinstance(value, np.ndarray):  # its bytes are addresses
        value = value.tolist()
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    held = [value, getattr(value, "__func__", None), getattr(value, "func", None)]  # itself, or of a method, a partial
    held += getattr(value, "__dict__", {}).values()  # of a scorer, a class
    functions = [each for each in held if isinstance(each, FunctionType) and "<" in each.__qualname__]
    says_nothing = " object at 0x" in repr(value)  # such as a user's own stop rule
    attributes = sorted(getattr(value, "__dict__", {}).items()) if says_nothing else []
    told = [f"{name}={described(each)}" for name, each in attributes]
    return " ".join([words.described(value), *told, *map(_digest, functions)])


def _digest(function: FunctionType) -> str:
    """Of what a function does, as far as its own text says it."""
    text = _code_in_words(function.__code__) + described([function.__defaults__, function.__kwdefaults__])
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _code_in_words(value: Any) -> str:
    """Code, or a constant within it, as text that is the same in another process: sets have an order of their own."""
    if isinstance(value, frozenset):
        return str(sorted(map(repr, value)))
    if not isinstance(value, CodeType):
        return repr(value)
    return str([value.co_code, value.co_names, value.co_freevars, *map(_code_in_words, value.co_consts)])


def steps_as_arrays(steps: Sequence[Step]) -> dict[str, AnyArray]:
    """Steps as arrays without objects; `steps_from_arrays` makes the same steps of them, bit for bit."""
    plain = [{name: value for name, value in vars(step).items() if name not in ARRAYS} for step in steps]
    arrays = {"steps": _as_bytes(plain)}
    for name in ARRAYS:
        values = [getattr(step, name) for step in steps]
        arrays |= {name: np.concatenate(values), f"{name} ends": np.cumsum([len(value) for value in values])}
    return arrays


def steps_from_arrays(arrays: Mapping[str, AnyArray]) -> tuple[Step, ...]:
    """Steps that were put into arrays by `steps_as_arrays`."""
    values: dict[str, list[Any]] = {name: np.split(arrays[name], arrays[f"{name} ends"][:-1]) for name in ARRAYS}
    plain: list[dict[str, Any]] = _from_bytes(arrays["steps"])
    steps = tuple(Step(**each, **{name: values[name][i] for name in ARRAYS}) for i, each in enumerate(plain))
    kinds = get_type_hints(Step)
    if wrong := [name for step in steps for name, value in vars(step).items() if not _is_of(kinds[name], value)]:
        raise TypeError(f"{wrong[0]} is of another type")
    return steps


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value is of the type of a field of `Step`."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and np.can_cast(value.dtype, get_args(get_args(kind)[1])[0])
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) in (get_args(kind) or (kind,)) or (kind is float and type(value) is int)


def _as_bytes(document: Any) -> AnyArray:
    return np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)


def _from_bytes(array: AnyArray) -> Any:
    return json.loads(array.tobytes())
