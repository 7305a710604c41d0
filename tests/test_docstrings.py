"""Docstrings of the public API are complete: numpydoc's checks, and a few that it doesn't make.

Public is what docs/api/index.md lists, with all methods and properties that it has from ngp.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pydoc import locate
from types import ModuleType
from typing import Any

import pytest

from ngp.baselines.base import Baseline
from ngp.greedy.stopping import StopRule
from ngp.predictors import Predictor

docscrape = pytest.importorskip("numpydoc.docscrape")
numpydoc = pytest.importorskip("numpydoc.validate")

PAGE = (Path(__file__).parents[1] / "docs" / "api" / "index.md").read_text(encoding="utf-8")
LISTED = [
    f"{module}.{name}"
    for module, block in re.findall(r"currentmodule:: (\S+)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"^   ([\w.]+)$", block, flags=re.MULTILINE)
]
PACKAGES = [
    "ngp", "ngp.baselines", "ngp.datasets", "ngp.data.groups", "ngp.paper.metrics", "ngp.predictors", "ngp.report",
    "ngp.greedy.stopping",
]  # fmt: skip
UNLISTED = {
    "ngp.__version__": "a text, of which there is nothing more to say",
    "ngp.baselines.registry": "a mapping, which has no docstring; the page of `ngp.compare` tells of it",
}

# What isn't asked of anybody: not everything has a relative to see also, or more to say than a line.
NOT_ASKED = {"SA01", "ES01"}
# First words of summaries that numpydoc takes for verbs, by their last letter (SS05).
NOUNS = {"Letters", "Ohm's", "Photographs", "Pictures", "Planck's", "Prices", "Proteins", "Vowels", "Windows"}
# They hold values, and others make them: an example would only repeat their fields (EX01).
RECORDS = {
    "ngp.baselines.RoarCurve",
    "ngp.datasets.Dataset",
    "ngp.datasets.RealDataset",
    "ngp.greedy.path.Step",
    "ngp.greedy.stopping.Stop",
}
# Methods that are documented where they are asked for; whoever has one needn't repeat it (PR01, RT01).
CONTRACTS = {"bind": Predictor, "check": StopRule, "own_estimator": Baseline}


def function_of(member: Any) -> Any:
    """What a property, a class method or an `available_if` calls; anything else as it is."""
    for inner in ("fget", "func", "__func__", "fn"):
        member = getattr(member, inner, member)
    return member


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties from ngp, by the name of the class that defines them."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None:
            continue
        member = vars(owner)[name]
        if str(getattr(function_of(member), "__module__", "")).partition(".")[0] == "ngp":
            is_property = hasattr(member, "fget") or hasattr(member, "func")
            yield f"{owner.__module__}.{owner.__qualname__}.{name}", member if is_property else function_of(member)


CLASSES = {name: cls for name in LISTED if inspect.isclass(cls := locate(name))}
MEMBERS = dict(member for cls in CLASSES.values() for member in members(cls))
PUBLIC = {name: locate(name) for name in LISTED} | MEMBERS


def is_protocol(thing: Any) -> bool:
    return getattr(thing, "_is_protocol", False)


def is_implementer(name: str) -> bool:
    cls, _, method = name.rpartition(".")
    return method in CONTRACTS and locate(cls) is not CONTRACTS[method]


def is_exempt(code: str, name: str) -> bool:
    """Whether a complaint of numpydoc is no fault."""
    thing = PUBLIC[name]
    if code == "SS05":
        return inspect.getdoc(thing).split()[0] in NOUNS
    if code == "EX01":  # an example of a class shows its methods
        return name in MEMBERS or is_protocol(thing) or name in RECORDS
    if code == "PR01" and inspect.isclass(thing):  # nobody calls a protocol; fields have a check of their own
        return is_protocol(thing) or field_names(thing) != []
    if code in ("PR01", "RT01"):
        return is_implementer(name)
    return code in NOT_ASKED


def field_names(cls: type) -> list[str]:
    """Fields of a dataclass or a named tuple, which may stand under Attributes as well as under Parameters."""
    return [field.name for field in fields(cls)] if is_dataclass(cls) else list(getattr(cls, "_fields", ()))


def complaints(name: str) -> dict[str, str]:
    """What numpydoc says of a docstring, by its codes."""
    return dict(numpydoc.validate(docscrape.get_doc_object(PUBLIC[name]))["errors"])


@pytest.mark.parametrize("name", PUBLIC)
def test_numpydoc_finds_no_fault(name: str) -> None:
    assert {code: text for code, text in complaints(name).items() if not is_exempt(code, name)} == {}


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_and_attribute_is_described(name: str) -> None:
    document = docscrape.NumpyDocString(inspect.getdoc(CLASSES[name]))
    documented = {each for entry in document["Parameters"] + document["Attributes"] for each in entry.name.split(", ")}
    assert [field for field in field_names(CLASSES[name]) if field not in documented] == []
    for attribute in document["Attributes"]:
        assert attribute.type, attribute.name
        assert " ".join(attribute.desc).endswith("."), attribute.name


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isfunction(thing)])
def test_what_is_returned_is_described(name: str) -> None:
    """Numpydoc looks for a return statement, and a method of a protocol has none."""
    document = docscrape.NumpyDocString(inspect.getdoc(PUBLIC[name]))
    returns = inspect.signature(PUBLIC[name]).return_annotation not in (None, "None")
    assert is_implementer(name) or returns == bool(document["Returns"] or document["Yields"])


@pytest.mark.parametrize("name", [name for name in MEMBERS if is_implementer(name)])
def test_implementers_take_what_the_contract_says(name: str) -> None:
    method = name.rpartition(".")[2]
    contract = inspect.signature(getattr(CONTRACTS[method], method))
    assert list(inspect.signature(PUBLIC[name]).parameters) == list(contract.parameters)


def test_every_exemption_is_needed() -> None:
    first_words = {inspect.getdoc(thing).split()[0] for name, thing in PUBLIC.items() if "SS05" in complaints(name)}
    assert first_words >= NOUNS
    assert [name for name in RECORDS if "EX01" not in complaints(name)] == []
    for method, contract in CONTRACTS.items():
        assert f"{contract.__module__}.{contract.__qualname__}.{method}" in MEMBERS
        assert any(name.endswith(f".{method}") for name in MEMBERS if is_implementer(name))


@pytest.mark.parametrize("package", PACKAGES)
def test_all_that_a_package_offers_is_listed(package: str) -> None:
    home = import_module(package)
    offered = {f"{package}.{name}" for name in home.__all__ if not isinstance(getattr(home, name), ModuleType)}
    assert offered - set(LISTED) == {name for name in UNLISTED if name.rpartition(".")[0] == package}


def test_every_listed_name_is_offered_where_it_is() -> None:
    homes = [name.rpartition(".") for name in LISTED]
    assert [name for home, _, name in homes if name not in import_module(home).__all__] == []
