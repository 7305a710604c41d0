"""docs/glossary.md names what there is, and all that Algorithm 1 has."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(ngp(?:\.\w+)+)`", PAGE)))


def found(name: str) -> object:
    """A module, or what is in one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(found(home), last)


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    assert found(name) is not None


def test_every_line_of_the_algorithm_is_there() -> None:
    lines = [
        r"\mathcal{D}'",
        r"\varnothing",
        r"k \leftarrow k + 1",
        r"\arg\min",
        r"\mathcal{A} - i_k^\star",
        r"\mathcal{S}_k = \mathcal{S}_{k-1} \cup i_k^\star",
        r"< \eta",
        r"\hat{\mathcal{S}} = \mathcal{S}_{k-1}",
        r"i_1^\star, i_2^\star",
    ]
    assert [line for line in lines if line not in PAGE] == []
    included = re.findall(r"literalinclude\} (\S+)\n:pyobject: (\S+)", PAGE)
    assert len(included) == 2
    for file, name in included:
        assert f"def {name.rpartition('.')[2]}(" in (Path(__file__).parents[1] / "docs" / file).read_text()
